//! A job grows: MPI_Comm_spawn (MPI 4.1 chapter 11).
//!
//! A spawned process is one more rank of the job that asked, with a world of its own. The segments have room for more ranks than
//! the job started with (address space, not memory: they are sparse). Numbers never used come first, then those of ranks that
//! have ended, the longest ended first; a number that is used again gets queues as new (`JobSegment::renew_rank`).
//! A spawn succeeds for all of its processes or for none: if one cannot be executed, those started before it are killed.

use std::collections::{HashSet, VecDeque};
use std::os::fd::{AsFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use vmpi_shared::control::{MOST_RANKS, NewRank, Reply, Stdio};
use vmpi_shared::dynamic::{Answer, Parent, Ranks, SpawnApp, Why, World};
use vmpi_shared::job::JobConfig;
use vmpi_shared::spawn_protocol::choose_counts;

use crate::job::{Job, Phase};
use crate::limits;
use crate::log::debug;
use crate::rank::Rank;
use crate::spawn::{Start, Streams, limit_of};

/// Ranks that a job may have besides those that it starts with.
const HEADROOM: u32 = 256;
/// Pairs of descriptors in one message to the launcher.
const PAIRS: usize = 100;

/// Room for the ranks of a job that starts with `ranks`, and for those to come. A launcher with a limit on its address space
/// (`ulimit -v`, `h_vmem` of batch systems) gets smaller pools and room for fewer more: a quarter of it is for the segment, and an eighth for `unexpected_bytes` of memory
/// for unexpected messages.
pub fn room_for(ranks: u32, launcher: i32, unexpected_bytes: u64) -> JobConfig {
    let limit = limit_of(launcher, libc::RLIMIT_AS as _).map_or(libc::RLIM_INFINITY, |limit| limit.rlim_cur);
    // The whole lies in one sparse file.
    let file = getrlimit(Resource::RLIMIT_FSIZE).map_or(libc::RLIM_INFINITY, |(soft, _)| soft);
    let most = [(limit, 8), (file, 2)]
        .map(|(limit, share)| if limit == libc::RLIM_INFINITY { u64::MAX } else { limit / share });
    let config = room_within(if limit == libc::RLIM_INFINITY { u64::MAX } else { limit / 4 }, ranks);
    config.with_memory(unexpected_bytes.min(most[0]).min(most[1]))
}

fn room_within(addresses: u64, ranks: u32) -> JobConfig {
    let mut config = JobConfig::for_ranks(ranks);
    while u64::from(ranks) * config.rank_bytes() > addresses && config.slots > JobConfig::default().slots {
        config.slots /= 2;
    }
    let bearable = (addresses / config.rank_bytes()).min(u64::from(MOST_RANKS)) as u32;
    config.ranks = ranks.saturating_add(HEADROOM).min(bearable).max(ranks);
    config
}

/// Variables, and those on top of them: of each name the last one counts. In one go, however many a program says there are.
fn with(variables: &[(String, String)], more: &[(String, String)]) -> Vec<(String, String)> {
    let mut seen = HashSet::new();
    let last = more.iter().rev().filter(|(name, _)| seen.insert(name.as_str())).collect::<Vec<_>>();
    let kept = variables.iter().filter(|(name, _)| !seen.contains(name.as_str()));
    kept.chain(last.iter().rev().copied()).cloned().collect()
}

/// The numbers that new ranks may have.
pub struct RankNumbers {
    capacity: u32,
    /// The first number never used.
    fresh: u32,
    /// Numbers of ranks that have ended, the longest ended first.
    vacant: VecDeque<u32>,
}

impl RankNumbers {
    pub fn new(ranks: u32, capacity: u32) -> RankNumbers {
        RankNumbers { capacity, fresh: ranks, vacant: VecDeque::new() }
    }

    /// How many more ranks fit.
    pub fn left(&self) -> u32 {
        self.capacity - self.fresh + self.vacant.len() as u32
    }

    /// Take a number; `true`: it was used before.
    fn take(&mut self) -> Option<(u32, bool)> {
        if self.fresh < self.capacity {
            self.fresh += 1;
            return Some((self.fresh - 1, false));
        }
        self.vacant.pop_front().map(|rank| (rank, true))
    }

    fn give(&mut self, rank: u32) {
        self.vacant.push_back(rank);
    }
}

/// One process to be started.
struct Place {
    start: Start,
    appnum: u32,
}

impl Job {
    /// Start the processes that `asker` asks for. Returns the answer and the processes started, (pid, rank) each.
    pub fn grow(
        &mut self,
        asker: u32,
        apps: &[SpawnApp],
        parent: Ranks,
        errhandler: String,
        open_fds: u64,
    ) -> (Answer, Vec<(i32, u32)>) {
        let mut started = Vec::new();
        let answer = match self.try_to_grow(asker, apps, parent, errhandler, open_fds, &mut started) {
            Ok(answer) => answer,
            Err(reason) => {
                debug!("job {}: rank {asker} cannot spawn: {reason}", self.id);
                Answer::Denied { why: Why::Spawn, reason }
            }
        };
        (answer, started)
    }

    fn try_to_grow(
        &mut self,
        asker: u32,
        apps: &[SpawnApp],
        parent: Ranks,
        errhandler: String,
        open_fds: u64,
        started: &mut Vec<(i32, u32)>,
    ) -> Result<Answer, String> {
        if !matches!(self.phase, Phase::Spawning(_) | Phase::Running) {
            return Err("the job is ending".into());
        }
        if !parent.fit(self.ranks.len() as u32) || !parent.iter().any(|rank| rank == asker) {
            return Err("the group that spawns makes no sense".into());
        }
        if !apps.iter().all(SpawnApp::is_bearable) || apps.len() > SpawnApp::MOST {
            return Err(format!("it names more than {} programs, or files or numbers for one of them", SpawnApp::MOST));
        }
        let left = self.room.left();
        let counts = choose_counts(apps, left).ok_or_else(|| {
            let wanted: u64 = apps.iter().filter_map(|app| app.counts.first()).map(|n| u64::from(*n)).sum();
            format!(
                "{wanted} more processes do not fit: job {} has room for {} ranks, of which {} are in use; let spawned ones end \
                 first, or spawn fewer",
                self.id,
                self.room.capacity,
                self.room.capacity - left
            )
        })?;
        let total: u32 = counts.iter().sum();
        limits::check_growth(total, open_fds).map_err(|error| error.to_string())?;
        let places = self.make_places(asker, apps, &counts)?;
        let number = self.worlds.iter().map(|world| world.number).max().unwrap_or(1) + 1;
        let ranks: Ranks = places.iter().map(|place| place.start.rank).collect();
        let contexts = std::array::from_fn(|_| self.segment.new_context_without_cell());
        let context = self.segment.new_context();
        self.worlds.push(World {
            number,
            ranks: ranks.clone(),
            context,
            parent: Some(Parent { ranks: parent, contexts }),
            errhandler,
        });
        self.start_places(&places, started)?;
        self.remaining += total;
        Ok(Answer::Spawned { ranks, contexts, counts })
    }

    /// Numbers, cores and programs for `counts` processes of each program.
    fn make_places(&mut self, asker: u32, apps: &[SpawnApp], counts: &[u32]) -> Result<Vec<Place>, String> {
        let world_size: u32 = counts.iter().sum();
        let mut load = self.load();
        let mut places: Vec<Place> = Vec::with_capacity(world_size as usize);
        let variables = self.variables_of(asker);
        let programs: Vec<usize> =
            apps.iter().map(|app| self.add_program(app, &variables)).collect::<Result<_, String>>()?;
        for (program, count) in programs.into_iter().zip(counts) {
            for _ in 0..*count {
                let rank = self.take_number().ok_or("the memory of ended ranks cannot be used again")?;
                // The core with the fewest ranks, the first of those.
                let core = (0..load.len()).min_by_key(|core| load[*core]).unwrap_or(0);
                load[core] += 1;
                let world_rank = places.len() as u32;
                let start = Start {
                    rank,
                    program,
                    core: core as u32,
                    world_rank,
                    world_size,
                    local_rank: world_rank,
                    local_size: world_size,
                    stop: false,
                };
                places.push(Place { start, appnum: 0 });
            }
        }
        let mut at = 0;
        for (appnum, count) in (0..).zip(counts) {
            places[at..at + *count as usize].iter_mut().for_each(|place| place.appnum = appnum);
            at += *count as usize;
        }
        Ok(places)
    }

    /// The environment that `rank` was started with, but for what is a rank's own.
    pub(crate) fn variables_of(&self, rank: u32) -> Vec<(String, String)> {
        self.spawner.variables_of(self.ranks[rank as usize].program).to_vec()
    }

    /// A program that a rank wants started on this node, on top of these variables: its index among the spawner's.
    pub(crate) fn add_program(&mut self, app: &SpawnApp, variables: &[(String, String)]) -> Result<usize, String> {
        self.spawner
            .add_program(app.program()?, &app.argv, with(variables, &app.env), &app.cwd)
            .map_err(|error| format!("an argument or a variable holds a NUL byte: {error}"))
    }

    /// Ranks that live on each core.
    pub(crate) fn load(&self) -> Vec<u32> {
        let mut load = vec![0; self.spec.all_cpus().count()];
        for (number, rank) in self.ranks.iter().enumerate() {
            if !rank.over {
                load[self.placement[number] as usize] += 1;
            }
        }
        load
    }

    fn take_number(&mut self) -> Option<u32> {
        while let Some((rank, used)) = self.room.take() {
            if !used || self.segment.renew_rank(rank).is_ok() {
                return Some(rank);
            }
        }
        None
    }

    /// Start the processes of the newest world.
    fn start_places(&mut self, places: &[Place], started: &mut Vec<(i32, u32)>) -> Result<(), String> {
        let world = self.worlds.len() - 1;
        for place in places {
            let rank = place.start.rank as usize;
            if self.ranks.len() <= rank {
                self.ranks.resize_with(rank + 1, Rank::default);
            }
            self.ranks[rank] = Rank::new(world, place.start.world_rank, place.start.program, place.appnum);
            self.node.place(place.start.rank, place.start.core);
            self.placement.resize(self.ranks.len().max(self.placement.len()), 0);
            self.placement[rank] = place.start.core;
        }
        self.segment.use_ranks(self.ranks.len() as u32);
        self.segment.reach(self.ranks.len() as u32 - 1).map_err(|e| e.to_string())?;
        let mut news = Vec::with_capacity(places.len());
        let mut pipes = Vec::new();
        for (at, place) in places.iter().enumerate() {
            match self.start_one(&place.start) {
                Ok((pid, ends)) => {
                    started.push((pid, place.start.rank));
                    pipes.extend(ends);
                    news.push(NewRank {
                        rank: place.start.rank,
                        pid,
                        world: self.worlds[world].number,
                        world_rank: place.start.world_rank,
                        program: self.spawner.path_of(place.start.program).to_string(),
                        node: None,
                        stream: 0,
                    });
                }
                Err(reason) => {
                    self.abandon(&places[..at], &places[at..]);
                    return Err(reason);
                }
            }
        }
        self.announce(news, pipes);
        Ok(())
    }

    /// Start one process; with pipes of its own, their read ends come back.
    pub(crate) fn start_one(&mut self, start: &Start) -> Result<(i32, Vec<OwnedFd>), String> {
        let group = self.ranks.iter().rev().find(|r| r.pid != 0 && r.ended.is_none()).map_or(0, |r| r.group);
        let no_pipe = |errno: nix::errno::Errno| format!("no pipe for the output of rank {}: {errno}", start.rank);
        let null = self.null.as_fd();
        let mut ends = Vec::new();
        let process = match self.spec.stdio {
            Stdio::Shared => {
                let [.., out, err] = &self.fds[..] else { return Err("the launcher's streams are closed".into()) };
                let streams = Streams { stdin: null, stdout: out.as_fd(), stderr: err.as_fd() };
                self.spawner.spawn(start, group, streams)
            }
            Stdio::PerRank => {
                let (out, out_end) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(no_pipe)?;
                let (err, err_end) = nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(no_pipe)?;
                ends.extend([out, err]);
                let streams = Streams { stdin: null, stdout: out_end.as_fd(), stderr: err_end.as_fd() };
                self.spawner.spawn(start, group, streams)
            }
        };
        let process = process.map_err(|error| error.to_string())?;
        let entry = &mut self.ranks[start.rank as usize];
        entry.pid = process.pid;
        entry.group = process.group;
        self.live += 1;
        Ok((process.pid, ends))
    }

    /// The spawn has failed: kill what was started, take the numbers of the others back.
    fn abandon(&mut self, started: &[Place], others: &[Place]) {
        for place in started {
            let entry = &mut self.ranks[place.start.rank as usize];
            entry.abandoned = true;
            let _ = kill(Pid::from_raw(entry.pid), Signal::SIGKILL);
            self.remaining += 1;
        }
        for place in others {
            self.ranks[place.start.rank as usize].over = true;
            self.room.give(place.start.rank);
        }
        if started.is_empty()
            && let Some(world) = self.worlds.last()
        {
            self.segment.reclaim_context(world.context);
        }
    }

    /// Tell the launcher, with the pipes.
    pub(crate) fn announce(&mut self, mut news: Vec<NewRank>, mut pipes: Vec<OwnedFd>) {
        while !news.is_empty() {
            let ranks: Vec<NewRank> = news.drain(..news.len().min(PAIRS)).collect();
            let ends = pipes.drain(..pipes.len().min(2 * ranks.len())).collect();
            let reply = (Reply::Grown { ranks }, ends);
            match self.phase {
                Phase::Collecting | Phase::Spawning(_) => self.early.push(reply),
                Phase::Running | Phase::Ending => self.outbox.push(reply),
            }
        }
    }

    /// A rank is over: its number may be given to another one, and with the last of its world the world's cell is free.
    pub fn vacate(&mut self, rank: u32) {
        let world = self.ranks[rank as usize].world;
        if world == 0 {
            return;
        }
        // The number of a failed rank stays its own: groups of survivors go on naming it.
        if self.node.failure(rank).is_none() {
            match self.spec.nodes {
                Some(_) => self.outbox.push((Reply::Vacant { rank }, Vec::new())),
                None => self.room.give(rank),
            }
        }
        let over = |rank: u32| self.ranks.get(rank as usize).is_none_or(|r| r.world != world || r.over);
        if self.worlds[world].ranks.iter().all(over) {
            self.segment.reclaim_context(self.worlds[world].context);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_variable_of_a_name_counts() {
        let list = |text: &str| -> Vec<(String, String)> {
            text.split_whitespace().filter_map(|one| one.split_once('=')).map(|(n, v)| (n.into(), v.into())).collect()
        };
        assert_eq!(with(&list("A=1 B=2 C=3"), &list("B=4 D=5 B=6")), list("A=1 C=3 D=5 B=6"));
        assert_eq!(with(&list("A=1"), &[]), list("A=1"));
        // What took hours, of the daemon of all jobs.
        let many: Vec<_> = (0..300_000).map(|n| (format!("V{n}"), String::new())).collect();
        assert_eq!(with(&many, &many).len(), many.len());
    }

    #[test]
    fn numbers_never_used_come_first_then_the_longest_vacant() {
        let mut room = RankNumbers::new(2, 4);
        assert_eq!(room.left(), 2);
        assert_eq!(room.take(), Some((2, false)));
        room.give(2);
        assert_eq!([room.take(), room.take()], [Some((3, false)), Some((2, true))]);
        assert_eq!((room.take(), room.left()), (None, 0));
        room.give(3);
        room.give(2);
        assert_eq!(room.take(), Some((3, true)));
    }

    #[test]
    fn there_is_room_for_more_ranks_than_start() {
        let me = std::process::id() as i32;
        assert_eq!(room_for(1, me, 0).ranks, 257);
        assert_eq!(room_for(1000, me, 0).ranks, 1256);
        assert_eq!(room_for(MOST_RANKS, me, 0).ranks, MOST_RANKS);
    }

    #[test]
    fn few_addresses_give_smaller_pools_first_and_fewer_ranks_to_come_then() {
        let whole = JobConfig::for_ranks(4);
        let tight = room_within(4 * whole.rank_bytes() - 1, 4);
        assert_eq!(tight.slots, whole.slots / 2);
        let least = room_within(1, 4);
        assert_eq!((least.slots, least.ranks), (JobConfig::default().slots, 4));
        let ample = room_within(u64::MAX, 4);
        assert_eq!((ample.slots, ample.ranks), (whole.slots, 4 + HEADROOM));
    }
}
