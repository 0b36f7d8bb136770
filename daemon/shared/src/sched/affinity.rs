//! Processes pinned to the CPUs of cores.
//!
//! Who has moved looks whenever it gets a core whether it still is on that one's CPU: Intel's OpenMP runtime (libiomp5) reads the mask when it is loaded, and sets it
//! again for the thread that begins the first parallel region, even one of a single thread. The rank would run where it was started, vmpi would count it where it
//! was moved to, and one CPU would have two ranks while another idles. A mask that is neither that of the core nor that of the start is the program's own
//! choice: such a process stays.

use crate::node::NodeSegment;

#[cfg(not(feature = "model"))]
mod real {
    use crate::mem::sync::Ordering;
    use crate::node::{NodeSegment, RankDescriptor};
    use crate::proc;
    use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
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
        bring_threads(node, pid, before, core);
    }

    /// All threads of a process that are pinned to the CPU of core `before` go to that of `core`.
    fn bring_threads(node: &NodeSegment, pid: i32, before: u32, core: u32) {
        let Some(seen) = proc::seen_as(pid) else { return };
        let threads = proc::threads_of(seen).into_iter();
        let threads = threads.filter_map(|thread| proc::pid_of(&format!("{seen}/task/{thread}")));
        for thread in threads.filter(|thread| is_pinned_to(node, *thread, before)).collect::<Vec<_>>() {
            pin(node, thread, core);
        }
    }

    /// Is this thread of `rank` pinned to `core`, where it belongs, or back to where it was started?
    fn is_pinned(node: &NodeSegment, rank: u32, thread: i32, core: u32) -> bool {
        is_pinned_to(node, thread, core) || is_back(node, rank, thread, core).is_some()
    }

    /// The core where `rank` was started, if this thread is pinned to that instead of to `core`.
    fn is_back(node: &NodeSegment, rank: u32, thread: i32, core: u32) -> Option<u32> {
        let home = node.home_of(rank).min(node.header().cores - 1);
        (home != core && is_pinned_to(node, thread, home)).then_some(home)
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
        or_stays(node, rank, is_pinned(node, rank, pid, from) && pin(node, pid, to))
    }

    /// As `follow` for the daemon, which knows the process, of one that runs: with all its threads.
    pub fn bring(node: &NodeSegment, (rank, pid): (u32, i32), from: u32, to: u32) -> bool {
        if node.header().bind == 0 {
            return true;
        }
        let moved = or_stays(node, rank, is_pinned(node, rank, pid, from) && pin(node, pid, to));
        if moved {
            pin_threads(node, rank, pid, to);
        }
        moved
    }

    /// May this process change its own CPU?
    pub fn is_ours(node: &NodeSegment, me: u32, core: u32) -> bool {
        or_stays(node, me, node.header().bind == 0 || is_pinned(node, me, 0, core))
    }

    /// This process, `me`, has moved some time ago: is it still where it was moved to?
    pub fn look_after(node: &NodeSegment, me: u32) {
        let (rank, core) = (node.rank(me), node.core_of(me));
        if node.header().bind == 0 || rank.pinned.load(RELAXED) == RankDescriptor::STAYS {
            return;
        }
        let cpu = node.core(core).cpu.load(RELAXED);
        if sched_getcpu().is_ok_and(|on| on as u32 == cpu) {
            return;
        }
        match is_back(node, me, 0, core) {
            Some(home) => bring_threads(node, std::process::id() as i32, home, core),
            None => drop(or_stays(node, me, is_pinned_to(node, 0, core))),
        }
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

    pub fn look_after(_: &NodeSegment, _: u32) {}
}

pub(super) use real::*;

/// This rank has a core: is it the one on whose CPU the process is?
#[inline]
pub(super) fn settle_in(node: &NodeSegment, me: u32) {
    if node.has_moved(node.rank(me)) {
        settle_moved(node, me);
    }
}

#[cold]
fn settle_moved(node: &NodeSegment, me: u32) {
    if node.has_moved_again(node.rank(me)) {
        settle(node, me);
    } else {
        look_after(node, me);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::settle_in;
    use crate::control::Balance;
    use crate::mem::sync::Ordering::SeqCst;
    use crate::node::{NodeConfig, NodeSegment, RankDescriptor};
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    fn set(cpus: &[usize]) {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu).unwrap());
        sched_setaffinity(Pid::from_raw(0), &set).unwrap();
    }

    fn is_on(cpus: &[usize]) -> bool {
        let found = sched_getaffinity(Pid::from_raw(0)).unwrap();
        (0..CpuSet::count()).all(|cpu| found.is_set(cpu).unwrap() == cpus.contains(&cpu))
    }

    #[test]
    fn who_was_moved_and_put_back_is_pinned_again_and_who_chooses_itself_is_not() {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let cpus: Vec<usize> = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap()).collect();
        let [first, second, ..] = cpus[..] else { return eprintln!("skipped: one CPU only") };
        let mut node = NodeSegment::create(&NodeConfig {
            cpus: vec![first as u32, second as u32],
            own_cores: 2,
            placement: vec![0, 1],
            balance: Balance::Steal,
            bind: true,
            ..NodeConfig::on_one_core(0, 2)
        })
        .unwrap();
        node.set_actor(0);
        // Each thread has a mask of its own.
        std::thread::scope(|scope| {
            let test = || {
                set(&[first]);
                settle_in(&node, 0);
                assert!(is_on(&[first]));
                node.rank(0).core.store(1, SeqCst);
                node.rank(0).moves.fetch_add(1, SeqCst);
                settle_in(&node, 0);
                assert!(is_on(&[second]), "it follows");
                set(&[first]);
                settle_in(&node, 0);
                assert!(is_on(&[second]) && node.rank(0).may_move(), "put back, as libiomp5 does");
                // The kernel leaves it where it is when the mask becomes wider, as a rule.
                for _ in 0..100 {
                    set(&[first]);
                    set(&[first, second]);
                    settle_in(&node, 0);
                    if !node.rank(0).may_move() {
                        break;
                    }
                }
                assert!(is_on(&[first, second]), "its own choice");
                assert_eq!(node.rank(0).pinned.load(SeqCst), RankDescriptor::STAYS);
                set(&[first]);
                settle_in(&node, 0);
                assert!(is_on(&[first]), "and from then on it is left alone");
            };
            scope.spawn(test).join().unwrap();
        });
    }
}
