//! A node's part when a job of several nodes grows (`vmpi_shared::spawn_protocol` says how the launcher leads).
//!
//! Prepare makes an entry for every new rank, here and elsewhere, and lets the carrier know of them, so that when the first of them runs all nodes
//! know where it is. What has been started is held back, by the answer to its first word, until the launcher says that all have been.
//!
//! A node whose part of the job ends does not answer: the launcher hears of the end anyway, and an error given to the rank that asked could
//! end the job on its node first, and be taken for the cause.

use std::os::fd::OwnedFd;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vmpi_shared::control::{NewRank, Reply};
use vmpi_shared::dynamic::SpawnApp;
use vmpi_shared::spawn_protocol::{Birth, Growth, Misfit, Stage, Step};

use super::{Job, Phase};
use crate::limits;
use crate::rank::{Member, Rank};
use crate::spawn::Start;

/// A process that has asked to be a rank before it may be.
pub struct Waiting {
    pub token: u64,
    pub rank: u32,
    pub word: String,
    pub face: String,
    pub pid: i32,
}

/// The world that is being started.
struct Growing {
    world: u32,
    /// The ranks of this node.
    starts: Vec<Start>,
    first_stream: u32,
    /// What the launcher is told if all goes well.
    news: Vec<NewRank>,
    pipes: Vec<OwnedFd>,
    waiting: Vec<Waiting>,
}

pub struct Spread {
    growing: Option<Growing>,
    /// The newest world that the launcher has told.
    world: u32,
    /// The launcher knows that no rank lived here when that world was the newest.
    told_idle: Option<u32>,
    /// No rank will come any more.
    concluded: bool,
}

impl Default for Spread {
    /// As long as there is no world but the first.
    fn default() -> Spread {
        Spread { growing: None, world: 1, told_idle: None, concluded: false }
    }
}

/// A step in a word: what it carries (an environment) is not for messages.
pub fn name_of(step: &Step) -> &'static str {
    match step {
        Step::Prepare { .. } => "prepare",
        Step::Begin => "begin",
        Step::Commit => "commit",
        Step::Abandon => "abandon",
    }
}

impl Job {
    pub fn is_here(&self, birth: &Birth) -> bool {
        self.spec.nodes.as_ref().is_some_and(|nodes| nodes.here == birth.node)
    }

    fn grew(&mut self, world: u32, stage: Stage, error: Option<String>) {
        self.outbox.push((Reply::Grew { world, stage, error }, Vec::new()));
    }

    pub fn prepare(&mut self, world: u32, growth: Growth, open_fds: u64) {
        self.spread.world = world;
        if self.phase != Phase::Running {
            return;
        }
        let room = (self.node.header().ranks, self.spec.nodes.as_ref().map_or(0, |nodes| nodes.names.len()));
        // Those of other nodes are over for this one, whether they live or not.
        let runs_here = |rank: u32| self.ranks.get(rank as usize).is_some_and(|entry| !entry.over);
        let known = self.worlds.iter().any(|known| known.number == world);
        let misfit = growth.check(world, room, runs_here).err().or(known.then_some(Misfit::Known(world)));
        if let Some(misfit) = misfit {
            return self.grew(world, Stage::Prepared, Some(misfit.to_string()));
        }
        if growth.apps.len() > SpawnApp::MOST || !growth.apps.iter().all(SpawnApp::is_bearable) {
            return self.grew(world, Stage::Prepared, Some("it names too many programs, or files for one".into()));
        }
        if self.spread.growing.is_some() {
            return self.grew(world, Stage::Prepared, Some("another spawn is under way".into()));
        }
        let starts = self.enter_world(&growth);
        let first_stream = growth.first_stream;
        let here: Vec<Birth> = growth.births.iter().filter(|birth| self.is_here(birth)).copied().collect();
        let programs = self.programs_of(&growth, &here, open_fds);
        self.spread.growing =
            Some(Growing { world, starts, first_stream, news: Vec::new(), pipes: Vec::new(), waiting: Vec::new() });
        match programs {
            Err(reason) => self.grew(world, Stage::Prepared, Some(reason)),
            Ok(programs) => {
                let starts = self.spread.growing.iter_mut().flat_map(|growing| &mut growing.starts);
                for ((start, program), birth) in starts.zip(programs).zip(&here) {
                    start.program = program;
                    let entry = &mut self.ranks[birth.rank as usize];
                    (entry.program, entry.appnum) = (program, birth.app);
                }
                // Its answer is this node's.
                self.tell_carrier(Reply::Enrol { world, births: growth.births });
            }
        }
    }

    /// Make an entry for each rank of a new world; returns those of this node, whose programs are not known yet.
    fn enter_world(&mut self, growth: &Growth) -> Vec<Start> {
        let world = self.worlds.len();
        self.worlds.push(growth.world.clone());
        let mut load = self.load();
        let world_size = growth.births.len() as u32;
        let local_size = growth.births.iter().filter(|birth| self.is_here(birth)).count() as u32;
        let mut starts: Vec<Start> = Vec::with_capacity(local_size as usize);
        for (world_rank, birth) in (0..).zip(&growth.births) {
            let (rank, here) = (birth.rank as usize, self.is_here(birth));
            if let Some(nodes) = &mut self.spec.nodes {
                nodes.of_rank.resize(nodes.of_rank.len().max(rank + 1), birth.node);
                nodes.of_rank[rank] = birth.node;
            }
            let count = self.ranks.len().max(rank + 1);
            self.ranks.resize_with(count, Rank::default);
            self.placement.resize(count, 0);
            // Those of other nodes are over for this one.
            self.ranks[rank] = Rank { over: !here, held: here, ..Rank::new(world, world_rank, 0, birth.app) };
            if !here {
                self.node.place_far(birth.rank, birth.node);
                continue;
            }
            // The core with the fewest ranks, the first of those.
            let core = (0..load.len()).min_by_key(|core| load[*core]).unwrap_or(0);
            load[core] += 1;
            self.node.place_here(birth.rank, birth.node, core as u32);
            self.placement[rank] = core as u32;
            starts.push(Start {
                rank: birth.rank,
                program: 0,
                core: core as u32,
                world_rank,
                world_size,
                local_rank: starts.len() as u32,
                local_size,
                stop: false,
            });
        }
        self.remaining += local_size;
        starts
    }

    /// The programs of these ranks of this node, among the spawner's.
    fn programs_of(&mut self, growth: &Growth, here: &[Birth], open_fds: u64) -> Result<Vec<usize>, String> {
        self.segment.use_ranks(self.ranks.len() as u32);
        self.segment.reach(self.ranks.len() as u32 - 1).map_err(|error| error.to_string())?;
        if here.is_empty() {
            return Ok(Vec::new());
        }
        limits::check_growth(here.len() as u32, open_fds).map_err(|error| error.to_string())?;
        let mut known = vec![None; growth.apps.len()];
        here.iter()
            .map(|birth| {
                let app = birth.app as usize;
                match known[app] {
                    Some(program) => Ok(program),
                    None => self
                        .add_program(&growth.apps[app], &growth.variables)
                        .inspect(|program| known[app] = Some(*program)),
                }
            })
            .collect()
    }

    /// The carrier knows the ranks of a world.
    pub fn enrolled(&mut self, world: u32, error: Option<String>) {
        if self.is_growing(world) {
            self.grew(world, Stage::Prepared, error);
        }
    }

    fn is_growing(&self, world: u32) -> bool {
        self.spread.growing.as_ref().is_some_and(|growing| growing.world == world)
    }

    /// Start this node's ranks of a world; returns (pid, rank) of those that have been.
    pub fn begin_world(&mut self, world: u32) -> Vec<(i32, u32)> {
        let mut started = Vec::new();
        if self.phase != Phase::Running {
            return started;
        }
        let Some(mut growing) = self.spread.growing.take_if(|growing| growing.world == world) else { return started };
        let mut error = None;
        for start in &growing.starts {
            match self.start_one(start) {
                Ok((pid, ends)) => {
                    started.push((pid, start.rank));
                    growing.pipes.extend(ends);
                    growing.news.push(NewRank {
                        rank: start.rank,
                        pid,
                        world,
                        world_rank: start.world_rank,
                        program: self.spawner.path_of(start.program).to_string(),
                        node: None,
                        stream: growing.first_stream.wrapping_add(start.world_rank),
                    });
                }
                Err(reason) => {
                    error = Some(reason);
                    break;
                }
            }
        }
        self.spread.growing = Some(growing);
        self.grew(world, Stage::Begun, error);
        started
    }

    /// All ranks of a world have been started, on all nodes. Returns those who wait to attach.
    pub fn commit(&mut self, world: u32) -> Vec<Waiting> {
        let Some(growing) = self.spread.growing.take_if(|growing| growing.world == world) else { return Vec::new() };
        self.announce(growing.news, growing.pipes);
        for start in &growing.starts {
            self.ranks[start.rank as usize].held = false;
        }
        growing.waiting
    }

    pub fn settle_world(&mut self, world: u32) {
        let Some(index) = self.worlds.iter().rposition(|known| known.number == world) else { return };
        let members: Vec<Member> = self.worlds[index].ranks.iter().filter_map(|rank| self.member(rank)).collect();
        for member in members {
            if self.ranks[member.index()].world == index {
                self.settle(member.number());
            }
        }
        self.end_if_all_over();
    }

    /// A spawn has failed on some node: nothing of it stays.
    pub fn abandon_world(&mut self, world: u32) {
        let growing = self.spread.growing.take_if(|growing| growing.world == world);
        for start in growing.into_iter().flat_map(|growing| growing.starts) {
            let entry = &mut self.ranks[start.rank as usize];
            (entry.held, entry.abandoned) = (false, true);
            if entry.pid == 0 {
                entry.over = true;
                self.remaining -= 1;
                self.vacate(start.rank);
                continue;
            }
            if entry.ended.is_none() {
                let _ = kill(Pid::from_raw(entry.pid), Signal::SIGKILL);
            }
            self.settle(start.rank);
        }
        self.end_if_all_over();
    }

    /// A process wants to be `rank` before it is known whether there will be such a one: it is answered when that is known.
    pub fn keep_waiting(&mut self, token: u64, rank: u32, word: &str, face: &str, pid: i32) -> bool {
        let held = self.ranks.get(rank as usize).is_some_and(|entry| entry.held) && self.word == word;
        if let Some(growing) = self.spread.growing.as_mut().filter(|_| held && self.phase == Phase::Running) {
            // Who asks again is not to be answered twice.
            growing.waiting.retain(|waiting| waiting.token != token);
            growing.waiting.push(Waiting { token, rank, word: word.to_string(), face: face.to_string(), pid });
            return true;
        }
        false
    }

    /// No rank lives here: may this node's part end? Others may spawn; who knows whether is the launcher.
    pub fn may_conclude(&mut self) -> bool {
        let Spread { world, told_idle, concluded, .. } = &mut self.spread;
        let (world, news) = (*world, told_idle.replace(*world) != Some(*world));
        if news && !*concluded && self.phase == Phase::Running {
            self.outbox.push((Reply::Idle { world }, Vec::new()));
        }
        *concluded
    }

    /// The launcher knows that nobody spawns any more.
    pub fn conclude_spread(&mut self) {
        self.spread.concluded = true;
        self.end_if_all_over();
    }
}
