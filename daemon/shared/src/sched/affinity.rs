//! Processes pinned to the CPUs of cores.

use crate::node::NodeSegment;

#[cfg(not(feature = "model"))]
mod real {
    use crate::mem::sync::Ordering;
    use crate::node::{NodeSegment, RankDescriptor};
    use crate::proc;
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    const RELAXED: Ordering = Ordering::Relaxed;

    /// The set of a core's CPU alone.
    fn cpu_of(node: &NodeSegment, core: u32) -> Option<CpuSet> {
        let mut set = CpuSet::new();
        set.set(node.core(core).cpu.load(RELAXED) as usize).ok()?;
        Some(set)
    }

    /// Is this thread pinned as vmpi pins? Programs that choose their CPUs themselves are left where they are.
    fn is_pinned_to(node: &NodeSegment, thread: i32, core: u32) -> bool {
        let found = sched_getaffinity(Pid::from_raw(thread)).ok();
        found.is_some() && found == cpu_of(node, core)
    }

    fn pin(node: &NodeSegment, thread: i32, core: u32) -> bool {
        cpu_of(node, core).is_some_and(|set| sched_setaffinity(Pid::from_raw(thread), &set).is_ok())
    }

    /// All threads of process `pid`, which is `rank`, go to the CPU of `core`, but those that chose another one themselves.
    fn pin_threads(node: &NodeSegment, rank: u32, pid: i32, core: u32) {
        let pinned = &node.rank(rank).pinned;
        let before = pinned.load(RELAXED).wrapping_sub(1);
        if before == core || before >= node.header().cores {
            return;
        }
        pinned.store(core + 1, RELAXED);
        let Some(seen) = proc::seen_as(pid) else { return };
        let threads = std::fs::read_dir(format!("/proc/{seen}/task")).into_iter().flatten().flatten();
        let threads =
            threads.filter_map(|thread| proc::pid_of(&format!("{seen}/task/{}", thread.file_name().to_str()?)));
        for thread in threads.filter(|thread| is_pinned_to(node, *thread, before)).collect::<Vec<_>>() {
            pin(node, thread, core);
        }
    }

    /// A process may move if `so`; if not, it stays for good.
    fn or_stays(node: &NodeSegment, rank: u32, so: bool) -> bool {
        if !so {
            node.rank(rank).pinned.store(RankDescriptor::STAYS, RELAXED);
        }
        so
    }

    /// `rank`, which sleeps, moves: its process is to wake up on the other CPU. False if it must stay where it is.
    pub fn follow(node: &NodeSegment, rank: u32, from: u32, to: u32) -> bool {
        // The daemon takes no pid from shared memory: there the rank changes the CPU itself when it runs (`settle`).
        if node.header().bind == 0 || node.actor().is_none() {
            return true;
        }
        let Some(pid) = node.peer_pid(rank) else { return false };
        or_stays(node, rank, is_pinned_to(node, pid, from) && pin(node, pid, to))
    }

    /// As `follow` for the daemon, which knows the process, of one that runs: with all its threads.
    pub fn bring(node: &NodeSegment, (rank, pid): (u32, i32), from: u32, to: u32) -> bool {
        if node.header().bind == 0 {
            return true;
        }
        let moved = or_stays(node, rank, is_pinned_to(node, pid, from) && pin(node, pid, to));
        if moved {
            pin_threads(node, rank, pid, to);
        }
        moved
    }

    /// May this process change its own CPU?
    pub fn is_ours(node: &NodeSegment, me: u32, core: u32) -> bool {
        or_stays(node, me, node.header().bind == 0 || is_pinned_to(node, 0, core))
    }

    /// This process, `me`, has moved: all its threads go along.
    #[cold]
    pub fn settle(node: &NodeSegment, me: u32) {
        if node.header().bind != 0 {
            let core = node.core_of(me);
            pin(node, 0, core);
            pin_threads(node, me, std::process::id() as i32, core);
        }
    }
}

/// In the model there are no CPUs.
#[cfg(feature = "model")]
mod real {
    use crate::node::NodeSegment;

    pub fn follow(_: &NodeSegment, _: u32, _: u32, _: u32) -> bool {
        true
    }

    pub fn bring(_: &NodeSegment, _: (u32, i32), _: u32, _: u32) -> bool {
        true
    }

    pub fn is_ours(_: &NodeSegment, _: u32, _: u32) -> bool {
        true
    }

    pub fn settle(_: &NodeSegment, _: u32) {}
}

pub(super) use real::*;

/// This rank has a core: is it the one on whose CPU the process is?
#[inline]
pub(super) fn settle_in(node: &NodeSegment, me: u32) {
    if node.has_moved(node.rank(me)) {
        settle(node, me);
    }
}
