//! What the daemon of all jobs does with a job's node segment when a rank has written anything at all over it: it gets wrong numbers, and comes back with them.

#![cfg(not(feature = "model"))]

use nix::sys::mman::{MapFlags, ProtFlags, mmap};
use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::time::Duration;
use vmpi_shared::control::{Balance, OnBlock, Policy, Wtime};
use vmpi_shared::node::{NodeConfig, NodeSegment, Patience, Pids, last_words};
use vmpi_shared::sched::{self, corruption, lease, outside, recover, report, supervise};

const RANKS: u32 = 5;
const CORES: u32 = 2;
/// Where a segment's head and header end, of which each process has its own copy.
const HEADER_BYTES: usize = 2048;

fn node(recovery: bool, balance: Balance) -> NodeSegment {
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
    .unwrap();
    node.set_pids(Pids::create(RANKS).unwrap());
    node
}

/// Write over some of the words, or all.
fn scribble(words: &mut [u64], dice: &mut fastrand::Rng) {
    let share = [1, 3, 20, 200][dice.usize(..4)];
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

fn round(seed: u64) {
    let mut dice = fastrand::Rng::with_seed(seed);
    let balance = [Balance::None, Balance::Steal, Balance::Refine, Balance::Rescue][dice.usize(..4)];
    let node = node(dice.bool(), balance);
    let bytes = nix::sys::stat::fstat(node.fd()).unwrap().st_size as usize;
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a mapping of its own, of the whole file.
    let at =
        unsafe { mmap(None, NonZeroUsize::new(bytes).unwrap(), access, MapFlags::MAP_SHARED, node.fd(), 0) }.unwrap();
    // SAFETY: that mapping, which nobody unmaps before the process ends; the other mapping of the file is used by this thread alone.
    let words = unsafe {
        std::slice::from_raw_parts_mut(at.as_ptr().byte_add(HEADER_BYTES).cast::<u64>(), (bytes - HEADER_BYTES) / 8)
    };
    for _ in 0..4 {
        scribble(words, &mut dice);
        look_after(&node, &mut dice);
    }
    // SAFETY: as above; the slice is not used any more.
    unsafe { nix::sys::mman::munmap(at, bytes) }.unwrap();
}

#[test]
fn a_daemon_comes_back_from_memory_that_a_rank_has_written_over() {
    let first = std::env::var("VMPI_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(40u64);
    let rounds = std::env::var("VMPI_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(60u64);
    let (say, hear) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let comes_back = |seed: &u64| {
            let _ = say.send(*seed);
            std::panic::catch_unwind(|| round(*seed)).is_ok()
        };
        (first..first + rounds).filter(|seed| !comes_back(seed)).collect::<Vec<u64>>()
    });
    let mut at = first;
    loop {
        match hear.recv_timeout(Duration::from_secs(60)) {
            Ok(seed) => at = seed,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not come back: seed {at}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let ended = worker.join().unwrap();
    assert!(ended.is_empty(), "it ended with these seeds: {ended:?}");
}
