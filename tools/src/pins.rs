//! Ranks whose node, and CPU, is said one by one: by a rank file, or since each program of the job has hosts of its own (`-host a ./x : -host b ./y`).

use crate::cli::{AppOptions, RankPlace, RunOptions, Slots, named_cpus};
use crate::failure::Failure;
use crate::hosts::{self, Host};
use crate::nodes::place::{Room, distribute};
use crate::topology::Topology;

/// Where each rank goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins {
    /// The number of each rank's node among those of the job.
    node_of: Vec<usize>,
    /// Its lines of the rank file, which says CPUs there.
    places: Vec<RankPlace>,
}

impl Pins {
    /// What the options say about single ranks, if they do; `names`: the job's nodes, one if it is this one alone.
    ///
    /// # Errors
    /// Exit code 2: a rank without a place, or one on a node that is none of the job's.
    pub fn of(options: &RunOptions, ranks: Option<u32>, names: &[String]) -> Result<Option<Pins>, Failure> {
        if !options.rank_places.is_empty() {
            return Pins::of_file(&options.rank_places, ranks, names).map(Some);
        }
        let own = options.apps.len() > 1 && options.apps.iter().any(|app| !app.hosts.is_empty());
        if own && names.len() > 1 { Pins::of_programs(&options.apps, names).map(Some) } else { Ok(None) }
    }

    fn of_file(places: &[RankPlace], ranks: Option<u32>, names: &[String]) -> Result<Pins, Failure> {
        let last = places.last().map_or(0, |place| place.rank + 1);
        let ranks = ranks.unwrap_or(last);
        let missing = (0..ranks).find(|rank| places.binary_search_by_key(rank, |place| place.rank).is_err());
        if let Some(rank) = missing {
            return Err(Failure::usage(format!("the rank file has no place for rank {rank} of {ranks}")));
        }
        let places: Vec<&RankPlace> = places.iter().filter(|place| place.rank < ranks).collect();
        let node = |place: &&RankPlace| match &place.host {
            None => Ok(0),
            Some(host) => number(host, names).ok_or_else(|| {
                Failure::usage(format!(
                    "the rank file puts rank {} on {host}, which is none of the job's nodes ({}): name it by --host",
                    place.rank,
                    names.join(", ")
                ))
            }),
        };
        let node_of = places.iter().map(node).collect::<Result<_, _>>()?;
        Ok(Pins { node_of, places: places.into_iter().cloned().collect() })
    }

    /// A program's ranks fill its hosts in order; one without hosts has all.
    fn of_programs(apps: &[AppOptions], names: &[String]) -> Result<Pins, Failure> {
        let mut node_of = Vec::new();
        for app in apps {
            let own: Vec<Host> = match app.hosts.is_empty() {
                true => names.iter().map(|name| Host { name: name.clone(), slots: None }).collect(),
                false => app.hosts.clone(),
            };
            let rooms: Vec<Room> = own.iter().map(|host| Room { slots: host.slots, cores: 1 }).collect();
            let counts = distribute(Some(app.ranks.unwrap_or(1)), None, None, &rooms);
            for (host, count) in own.iter().zip(counts) {
                let node = number(&host.name, names)
                    .ok_or_else(|| Failure::usage(format!("{} is none of the job's nodes", host.name)))?;
                node_of.extend(std::iter::repeat_n(node, count as usize));
            }
        }
        Ok(Pins { node_of, places: Vec::new() })
    }

    pub fn ranks(&self) -> u32 {
        self.node_of.len() as u32
    }

    /// Ranks on each node.
    pub fn counts(&self, nodes: usize) -> Vec<u32> {
        (0..nodes).map(|node| self.node_of.iter().filter(|of| **of == node).count() as u32).collect()
    }

    /// The CPUs of each of a node's ranks, in their order, where the rank file names any.
    ///
    /// # Errors
    /// Exit code 2: the node does not have them, or some ranks have none.
    pub fn cpus_on(&self, node: usize, topology: &Topology) -> Result<Option<Vec<Vec<u32>>>, Failure> {
        if self.places.iter().all(|place| place.slot == Slots::Any) {
            return Ok(None);
        }
        let own: Vec<&RankPlace> =
            self.node_of.iter().zip(&self.places).filter(|(of, _)| **of == node).map(|(_, place)| place).collect();
        named_cpus(&own, topology)
    }

    /// The seat of each rank, where seats are in the order of the nodes.
    pub fn seats(&self) -> Vec<usize> {
        let mut by_node: Vec<usize> = (0..self.node_of.len()).collect();
        by_node.sort_by_key(|rank| self.node_of[*rank]);
        let mut seat_of = vec![0; by_node.len()];
        by_node.into_iter().enumerate().for_each(|(seat, rank)| seat_of[rank] = seat);
        seat_of
    }
}

/// The node that is meant: by its name, or `+n1`, the second.
fn number(host: &str, names: &[String]) -> Option<usize> {
    if let Some(number) = host.strip_prefix("+n").and_then(|number| number.parse::<usize>().ok()) {
        return (number < names.len()).then_some(number);
    }
    names.iter().position(|name| name == host || (hosts::is_here(name) && hosts::is_here(host)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Command, parse};

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| name.to_string()).collect()
    }

    fn options(line: &str) -> RunOptions {
        match parse(&names(&line.split(' ').collect::<Vec<_>>())) {
            Ok(Command::Run(options)) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_rank_file_says_where() {
        let path = std::env::temp_dir().join(format!("vmpi-pins-{}", std::process::id()));
        std::fs::write(&path, "rank 0=b slot=1\nrank 1=a slot=0\nrank 2=+n1 slot=0\n").unwrap();
        let line = format!("--host a,b --rankfile {} x", path.display());
        let options = options(&line);
        let pins = Pins::of(&options, None, &names(&["a", "b"])).unwrap().unwrap();
        assert_eq!((pins.ranks(), pins.counts(2), pins.seats()), (3, vec![1, 2], vec![1, 0, 2]));
        let cpus = |node| pins.cpus_on(node, &Topology::default());
        assert_eq!((cpus(0), cpus(1)), (Ok(Some(vec![vec![0]])), Ok(Some(vec![vec![1], vec![0]]))));
        assert_eq!(Pins::of(&options, Some(2), &names(&["a", "b"])).unwrap().unwrap().ranks(), 2);
        let refused = |ranks, list: &[&str]| Pins::of(&options, ranks, &names(list)).unwrap_err().sentence;
        assert!(refused(Some(4), &["a", "b"]).contains("no place for rank 3 of 4"));
        assert!(refused(None, &["a", "c"]).contains("rank 0 on b"));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn programs_have_hosts_of_their_own() {
        let options = options("-n 1 -host b x : -n 3 -host a:2,b:1 y : -n 2 z");
        let pins = Pins::of(&options, None, &names(&["a", "b"])).unwrap().unwrap();
        assert_eq!(pins.node_of, [1, 0, 0, 1, 0, 1]);
        assert_eq!(pins.cpus_on(0, &Topology::default()), Ok(None));
        assert_eq!(Pins::of(&self::options("-host a,b -n 2 x : -n 1 y"), None, &names(&["a"])), Ok(None));
    }
}
