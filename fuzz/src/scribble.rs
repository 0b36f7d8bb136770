//! The segments of a job over which one of its ranks has written, and all that a daemon of other jobs, too, does to them: it may get any answer, and comes back.

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::fd::BorrowedFd;
use vmpi_shared::control::{Balance, OnBlock, Policy, Wtime};
use vmpi_shared::endpoint::inspect;
use vmpi_shared::job::{JobConfig, JobSegment};
use vmpi_shared::monitor::Matrix;
use vmpi_shared::node::{NodeConfig, NodeSegment, Patience, Pids, last_words};
use vmpi_shared::sched::{self, corruption, lease, outside, recover, report, supervise};
use vmpi_shared::trace::{RingReader, regions};

pub const RANKS: u32 = 5;
pub const CORES: u32 = 2;
/// Where head and header of a node segment end, of which each process has its own copy.
const NODE_HEADER_BYTES: usize = 2048;
const PIECE_WORDS: usize = 1 << 13;

pub fn node(recovery: bool, balance: Balance) -> NodeSegment {
    let mut node = NodeSegment::create(&NodeConfig {
        job: 1,
        ranks: RANKS,
        v: 3,
        cpus: vec![0, 0],
        placement: vec![0, 0, 0, 1, 1],
        policy: Policy::Rr,
        balance,
        own_cores: CORES,
        bind: false,
        on_block: OnBlock::Release,
        wtime: Wtime::Wall,
        quantum_ms: 0,
        recovery,
        answers_first: false,
        patience: Patience::default(),
    })
    .expect("a node segment");
    node.set_pids(Pids::create(RANKS).expect("a file of pids"));
    node
}

/// Write over some of the words, or all.
pub fn scribble(words: &mut [u64], dice: &mut fastrand::Rng) {
    let share = [1, 3, 20, 200, 2000][dice.usize(..5)];
    for word in words {
        if dice.usize(..share) == 0 {
            *word = match dice.usize(..6) {
                0 => 0,
                1 => u64::MAX,
                2 => dice.u64(..16),
                3 => u64::from(dice.u32(..8)) << 32 | u64::from(dice.u32(..8)),
                4 => u64::from(u32::MAX) << 32 | u64::from(dice.u32(..)),
                _ => dice.u64(..),
            };
        }
    }
}

/// All that a daemon does to the ranks of a job, in some order.
fn look_after(node: &NodeSegment, dice: &mut fastrand::Rng) {
    for _ in 0..12 {
        let (rank, core) = (dice.u32(..RANKS), dice.u32(..CORES));
        match dice.usize(..17) {
            0 => supervise::assist(node),
            1 => drop(corruption::find(node, &[0, 0, 0, 1, 1])),
            2 => drop(last_words::listen(node, |_| 0)),
            3 => last_words::heard(node, rank, dice.bool()),
            4 => last_words::begin(node, rank),
            5 => drop(sched::take_core(node, rank)),
            6 => sched::wake(node, rank),
            7 => drop(recover::mend(node, core)),
            8 => outside::over(node, rank),
            9 => drop((outside::idle_of(node, core), report::core_report(node, core))),
            10 => drop((sched::rank_report(node, rank), node.peer(rank), node.pid(rank))),
            11 => drop((report::stand_of_core(node, core), report::stand(node, rank, 0))),
            12 => drop((lease::is_awaited(node, core), lease::is_held(node, core), lease::is_wanted(node, core))),
            13 => drop((sched::all_run(node), sched::is_idle(node, 0), node.running_on(core), node.state(rank))),
            14 => drop((node.ready_count(core), node.running_for_ns(core), node.heap_fd(rank), node.node_of(rank))),
            15 => sched::rank_died(node, rank),
            _ => {
                node.renew(rank, core);
                node.set_pid(rank, 1);
                node.end_pid(rank);
            }
        }
    }
}

/// What a daemon is asked about messages, traces and communicators, and what it does for spawned programs.
fn inspect_messages(node: &NodeSegment, job: &JobSegment, dice: &mut fastrand::Rng) {
    let file = File::from(job.fd().try_clone_to_owned().expect("a descriptor"));
    for _ in 0..12 {
        let rank = dice.u32(..RANKS);
        match dice.usize(..10) {
            0 => _ = inspect::look(job, rank, 8),
            1 => _ = (inspect::largest_crowd(job), inspect::crowd(job, rank)),
            2 => _ = (inspect::is_suspended(node, job, rank), inspect::is_moving(node, job, rank)),
            3 => {
                _ = (inspect::requests(job, rank), inspect::unexpected(job, rank));
                _ = (inspect::has_declined(job, rank), inspect::is_stuck(job, rank));
            }
            4 => {
                let rows = (0..RANKS).map(|rank| job.monitor(rank));
                let _ = Matrix::gather(1, true, vec![0; RANKS as usize], rows);
            }
            5 => {
                let rings = job.rings();
                let table = rings.regions_at(&file, rank);
                let regions = table.and_then(|table| regions::read(&file, table)).unwrap_or_default();
                assert!(regions.len() < 10_000, "{} regions", regions.len());
                let used = rings.used(&file, rank).expect("the file is there");
                let _ = used.marks(&file);
            }
            6 => {
                let rings = job.rings();
                let read = RingReader::read(&file, &rings, rank, dice.u64(..4)).expect("the file is there");
                assert!(read.records.len() as u64 <= rings.capacity);
            }
            7 => {
                let context = [dice.u32(..), dice.u32(..64), 0, 2][dice.usize(..4)];
                let of_cell = job.roster_of_cell(dice.u32(..)).map(|roster| (roster.name(), roster.members().len()));
                let found =
                    job.find_roster(context).map(|roster| (roster.name(), roster.members().len(), roster.member(rank)));
                let _ = (of_cell, found);
            }
            8 => {
                let context = job.new_context();
                let _ = (job.new_context_without_cell(), job.agreed_context(dice.u32(..)));
                job.reclaim_context([context, dice.u32(..)][dice.usize(..2)]);
            }
            _ => _ = (job.ranks_in_use(), job.changes(), job.failures(), job.constant_words()),
        }
    }
}

/// The words of a segment behind its first `head` bytes, to be written over.
struct Words {
    at: std::ptr::NonNull<std::ffi::c_void>,
    bytes: usize,
    head: usize,
}

impl Words {
    fn of(fd: BorrowedFd<'_>, head: usize) -> Words {
        let bytes = nix::sys::stat::fstat(fd).expect("a descriptor").st_size as usize;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let length = NonZeroUsize::new(bytes).expect("a segment");
        // SAFETY: a mapping of its own, of the whole file.
        let at = unsafe { mmap(None, length, access, MapFlags::MAP_SHARED, fd, 0) }.expect("room");
        Words { at, bytes, head }
    }

    fn slice(&mut self) -> &mut [u64] {
        // SAFETY: inside that mapping; the other mapping of the file is used by this thread alone, and not meanwhile.
        unsafe {
            std::slice::from_raw_parts_mut(
                self.at.byte_add(self.head).cast::<u64>().as_ptr(),
                (self.bytes - self.head) / 8,
            )
        }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: `of` has mapped it; no slice of it is left.
        unsafe { munmap(self.at, self.bytes) }.expect("it was mapped");
    }
}

pub fn round(seed: u64) {
    let mut dice = fastrand::Rng::with_seed(seed);
    let balance = [Balance::None, Balance::Steal, Balance::Refine, Balance::Rescue][dice.usize(..4)];
    let node = node(dice.bool(), balance);
    let config = JobConfig { cells: 4, ..JobConfig::for_ranks(RANKS) };
    let job = JobSegment::create(&config).expect("a job segment");
    let mut words = Words::of(node.fd(), NODE_HEADER_BYTES);
    let mut messages = Words::of(job.fd(), job.constant_words().len() * 8);
    for _ in 0..4 {
        scribble(words.slice(), &mut dice);
        look_after(&node, &mut dice);
        // Payloads are large, and nobody interprets them: the head, and what of one rank is looked at.
        let all = messages.slice();
        scribble(&mut all[..PIECE_WORDS], &mut dice);
        let (rank, rings) = (dice.u32(..RANKS), job.rings());
        let (inbox, unexpected) = job.places(rank);
        let trace = rings.first + u64::from(rank) * rings.stride;
        for place in [inbox - 8192, unexpected, trace - 8192] {
            let from = place as usize / 8 - job.constant_words().len();
            scribble(&mut all[from..from + PIECE_WORDS], &mut dice);
        }
        inspect_messages(&node, &job, &mut dice);
    }
}
