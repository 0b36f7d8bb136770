//! The launcher's part when ranks of a job of several nodes spawn others (`vmpi_shared::spawn_protocol`): one spawn after the other. Pure.

use super::spawn_placement::Rooms;
use std::collections::{BTreeSet, VecDeque};
use vmpi_shared::dynamic::{Answer, Ask, NewContexts, Parent, Ranks, SpawnApp, Why, World};
use vmpi_shared::ports::Told;
use vmpi_shared::spawn_protocol::{Birth, Growth, Stage, Step};

/// What is to be done.
#[derive(Debug)]
pub enum Order {
    /// All nodes are told this step of this world.
    Step(u32, Step),
    Answer(Told),
}

/// A spawn that somebody has asked for.
struct Wanted {
    rank: u32,
    number: u64,
    apps: Vec<SpawnApp>,
    parent: Ranks,
    errhandler: String,
    variables: Vec<(String, String)>,
    contexts: NewContexts,
}

/// The spawn that is under way.
struct Growing {
    /// Who asked, and the number of the question.
    asker: (u32, u64),
    stage: Stage,
    /// Nodes that have not said how they got on.
    waiting: BTreeSet<usize>,
    /// What went wrong, on the first node where something did.
    wrong: Option<(usize, String)>,
    ranks: Ranks,
    counts: Vec<u32>,
    contexts: NewContexts,
}

/// How a job of several nodes grows.
pub struct SpawnCoordinator {
    names: Vec<String>,
    /// The node of each rank.
    of_rank: Vec<u32>,
    /// Ranks that vmpirun started.
    first: u32,
    rooms: Option<Rooms>,
    queue: VecDeque<Wanted>,
    growing: Option<Growing>,
    world: u32,
    streams: u32,
}

impl SpawnCoordinator {
    pub fn new(names: Vec<String>, of_rank: Vec<u32>) -> SpawnCoordinator {
        let first = of_rank.len() as u32;
        SpawnCoordinator {
            names,
            of_rank,
            first,
            rooms: None,
            queue: VecDeque::new(),
            growing: None,
            world: 1,
            streams: first,
        }
    }

    /// All nodes have started; `cores`: of each.
    pub fn open(&mut self, cores: &[u32], capacity: u32) -> Vec<Order> {
        self.rooms = Some(Rooms::new(cores, &self.of_rank, capacity));
        self.go_on()
    }

    /// The node of every rank that the job ever had.
    pub fn of_rank(&self) -> &[u32] {
        &self.of_rank
    }

    /// The newest world; `None`: one is being started, or about to be.
    pub fn settled(&self) -> Option<u32> {
        (self.growing.is_none() && self.queue.is_empty()).then_some(self.world)
    }

    /// A rank that vmpirun started is no more.
    pub fn ended(&mut self, rank: u32) {
        if let (true, Some(&node), Some(rooms)) = (rank < self.first, self.of_rank.get(rank as usize), &mut self.rooms)
        {
            rooms.ended(node, None);
        }
    }

    /// A rank that was spawned is no more, and its number may be used again.
    pub fn vacant(&mut self, rank: u32) {
        if let (Some(&node), Some(rooms)) = (self.of_rank.get(rank as usize), &mut self.rooms) {
            rooms.ended(node, Some(rank));
        }
    }

    /// Question `number` of `rank`, if it is one that is answered here.
    ///
    /// # Errors
    /// The question, if it is another one.
    pub fn ask(&mut self, rank: u32, number: u64, ask: Ask, contexts: NewContexts) -> Result<Vec<Order>, Ask> {
        let Ask::Spawn { apps, parent, errhandler, variables } = ask else { return Err(ask) };
        self.queue.push_back(Wanted { rank, number, apps, parent, errhandler, variables, contexts });
        Ok(self.go_on())
    }

    /// Begin the next spawn, if it is time to.
    fn go_on(&mut self) -> Vec<Order> {
        let mut orders = Vec::new();
        while let (None, Some(rooms)) = (&self.growing, &mut self.rooms) {
            let Some(wanted) = self.queue.pop_front() else { break };
            let Wanted { rank, number, apps, parent, errhandler, variables, contexts } = wanted;
            let home = self.of_rank.get(rank as usize).copied().unwrap_or(0);
            let (counts, births) = match rooms.deal(&apps, home) {
                Ok(dealt) => dealt,
                Err(full) => {
                    orders.push(denied((rank, number), full.to_string()));
                    continue;
                }
            };
            for Birth { rank, node, .. } in &births {
                let count = self.of_rank.len().max(*rank as usize + 1);
                self.of_rank.resize(count, *node);
            }
            self.world += 1;
            let [inter @ .., own] = contexts;
            let ranks: Ranks = births.iter().map(|birth| birth.rank).collect();
            let world = World {
                number: self.world,
                ranks: ranks.clone(),
                context: own,
                parent: Some(Parent { ranks: parent, contexts: inter }),
                errhandler,
            };
            let first_stream = self.streams;
            self.streams += births.len() as u32;
            self.growing = Some(Growing {
                asker: (rank, number),
                stage: Stage::Prepared,
                waiting: (0..self.names.len()).collect(),
                wrong: None,
                ranks,
                counts,
                contexts,
            });
            let growth = Box::new(Growth { world, apps, variables, births, first_stream });
            orders.push(Order::Step(self.world, Step::Prepare { growth }));
        }
        orders
    }

    /// How a node got on with its part.
    pub fn heard(&mut self, node: usize, world: u32, stage: Stage, error: Option<String>) -> Vec<Order> {
        let Some(growing) = self.growing.as_mut().filter(|growing| world == self.world && growing.stage == stage)
        else {
            return Vec::new();
        };
        growing.waiting.remove(&node);
        if let Some(error) = error
            && growing.wrong.as_ref().is_none_or(|(known, _)| node < *known)
        {
            growing.wrong = Some((node, error));
        }
        if !growing.waiting.is_empty() {
            return Vec::new();
        }
        if growing.wrong.is_none() && stage == Stage::Prepared {
            growing.stage = Stage::Begun;
            growing.waiting = (0..self.names.len()).collect();
            return vec![Order::Step(world, Step::Begin)];
        }
        let Some(Growing { asker: (rank, number), wrong, ranks, counts, contexts, .. }) = self.growing.take() else {
            return Vec::new();
        };
        let mut orders = match wrong {
            None => {
                let [contexts @ .., _] = contexts;
                let answer = Answer::Spawned { ranks, contexts, counts };
                vec![Order::Step(world, Step::Commit), Order::Answer(Told { rank, number, answer })]
            }
            Some((node, why)) => {
                let name = self.names.get(node).map_or("?", String::as_str);
                vec![Order::Step(world, Step::Abandon), denied((rank, number), format!("node {name}: {why}"))]
            }
        };
        orders.extend(self.go_on());
        orders
    }
}

fn denied((rank, number): (u32, u64), reason: String) -> Order {
    Order::Answer(Told { rank, number, answer: Answer::Denied { why: Why::Spawn, reason } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spawn(count: u32) -> Ask {
        let app = SpawnApp {
            candidates: vec!["/x".into()],
            argv: vec!["x".into()],
            cwd: "/".into(),
            nodes: vec![],
            env: vec![],
            counts: vec![count],
        };
        Ask::Spawn { apps: vec![app], parent: (0..2).collect(), errhandler: String::new(), variables: vec![] }
    }

    fn told(orders: &[Order]) -> Vec<String> {
        let order = |order: &Order| match order {
            Order::Step(world, Step::Prepare { growth }) => {
                let births: Vec<_> = growth.births.iter().map(|b| format!("{}@{}", b.rank, b.node)).collect();
                format!("prepare {world} {} from stream {}", births.join(" "), growth.first_stream)
            }
            Order::Step(world, step) => format!("{step:?} {world}"),
            Order::Answer(Told { rank, number, answer: Answer::Spawned { ranks, contexts, counts } }) => {
                format!("{rank}.{number}: {:?} {contexts:?} {counts:?}", ranks.iter().collect::<Vec<_>>())
            }
            Order::Answer(Told { rank, number, answer: Answer::Denied { reason, .. } }) => {
                format!("{rank}.{number}: {reason}")
            }
            other => format!("{other:?}"),
        };
        orders.iter().map(order).collect()
    }

    fn open() -> SpawnCoordinator {
        let mut spawns = SpawnCoordinator::new(vec!["a".into(), "b".into()], vec![0, 1]);
        assert!(spawns.ask(1, 7, spawn(2), [1, 2, 3, 4]).unwrap().is_empty(), "not before all have started");
        assert_eq!(spawns.settled(), None);
        assert_eq!(told(&spawns.open(&[1, 1], 10)), ["prepare 2 2@0 3@1 from stream 2"]);
        spawns
    }

    #[test]
    fn all_nodes_take_each_step_together() {
        let mut spawns = open();
        assert!(spawns.ask(0, 1, spawn(1), [5, 6, 7, 8]).unwrap().is_empty(), "one after the other");
        assert!(spawns.heard(1, 2, Stage::Prepared, None).is_empty());
        assert!(spawns.heard(1, 2, Stage::Begun, None).is_empty(), "not yet asked for");
        assert_eq!(told(&spawns.heard(0, 2, Stage::Prepared, None)), ["Begin 2"]);
        assert!(spawns.heard(0, 2, Stage::Begun, None).is_empty());
        let orders = spawns.heard(1, 2, Stage::Begun, None);
        assert_eq!(told(&orders), ["Commit 2", "1.7: [2, 3] [1, 2, 3] [2]", "prepare 3 4@0 from stream 4"]);
        assert_eq!((spawns.of_rank(), spawns.settled()), (&[0, 1, 0, 1, 0][..], None));
        spawns.heard(0, 3, Stage::Prepared, None);
        spawns.heard(1, 3, Stage::Prepared, None);
        spawns.heard(0, 3, Stage::Begun, None);
        spawns.heard(1, 3, Stage::Begun, None);
        assert_eq!(spawns.settled(), Some(3));
        assert!(spawns.ask(0, 2, Ask::OpenPort, [0; 4]).is_err());
    }

    #[test]
    fn what_fails_anywhere_is_taken_back_everywhere() {
        for stage in [Stage::Prepared, Stage::Begun] {
            let mut spawns = open();
            if stage == Stage::Begun {
                spawns.heard(0, 2, Stage::Prepared, None);
                spawns.heard(1, 2, Stage::Prepared, None);
            }
            assert!(spawns.heard(1, 2, stage, Some("there is no file /x".into())).is_empty());
            let orders = spawns.heard(0, 2, stage, None);
            assert_eq!(told(&orders), ["Abandon 2", "1.7: node b: there is no file /x"]);
            // Its numbers come back when its processes are gone.
            let next =
                |spawns: &mut SpawnCoordinator, count| told(&spawns.ask(0, 1, spawn(count), [1, 2, 3, 4]).unwrap());
            assert!(next(&mut spawns, 7)[0].contains("7 more processes do not fit"));
            spawns.vacant(3);
            spawns.vacant(2);
            let got = next(&mut spawns, 8);
            assert!(got[0].starts_with("prepare 3 ") && got[0].ends_with("from stream 4"), "{got:?}");
        }
    }
}
