//! Ranks move from core to core, at any time, against everything else that happens to them.

use super::kill::{assert_tried, explore_in, seen};
use super::world::{World, assert_alone, check_pct, check_random, recv, send};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use std::sync::atomic::{AtomicU32, Ordering};
use vmpi_shared::control::Balance;
use vmpi_shared::mem::sync;
use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched::{self, regrant, supervise};

const ROUNDS: usize = 1000;

/// Everybody has a core, each core knows how many, and nobody is left in a queue.
fn assert_settled(node: &NodeSegment) -> u32 {
    assert_alone(node);
    let (ranks, cores) = (node.header().ranks, node.header().cores);
    for core in 0..cores {
        let there = (0..ranks).filter(|rank| node.core_of(*rank) == core).count();
        assert_eq!(node.core(core).ranks.load(Ordering::SeqCst) as usize, there);
        assert_eq!((node.ready_count(core), node.core(core).running.load(Ordering::SeqCst)), (0, 0));
    }
    (0..ranks).map(|rank| node.rank(rank).moves.load(Ordering::SeqCst)).sum()
}

/// What the daemon does meanwhile: it helps idle cores, and so often
#[derive(Copy, Clone, Default)]
struct Daemon {
    /// it takes the core from a rank,
    takes: u32,
    /// it tells a rank to move,
    tells: u32,
    /// and it gives a core, that may be idle, to a rank, that may have lost its own.
    gives: u32,
}

/// Tokens go round in both directions. Returns how many ranks have moved, and how many were given a core outside MPI, in all executions.
fn explore(how: Balance, placement: &'static [u32], spin_ticks: u64, laps: i32, daemon: Daemon) -> (u32, u32) {
    let moved: &'static AtomicU32 = Box::leak(Box::default());
    let given: &'static AtomicU32 = Box::leak(Box::default());
    let scenario = move || {
        let world = World::balanced(how, placement, spin_ticks);
        let n = placement.len() as u32;
        let rank = |me: u32| {
            world.rank(me, move |endpoint| {
                let (before, after) = ((me + n - 1) % n, (me + 1) % n);
                for lap in 0..laps {
                    sched::scheduling_point(&endpoint.node, me);
                    send(endpoint, after, 2 * lap);
                    send(endpoint, before, 2 * lap + 1);
                    if daemon.gives > 0 && thread_rng().gen_bool(0.5) {
                        // Does something that may take long: as if the daemon had taken its core.
                        sched::take_core(&endpoint.node, me);
                    }
                    // Computes, so that others wait for its core.
                    (0..thread_rng().gen_range(0..8)).for_each(|_| sync::yield_cpu());
                    sched::scheduling_point(&endpoint.node, me);
                    recv(endpoint, before, 2 * lap);
                    sched::yield_core(&endpoint.node, me);
                    recv(endpoint, after, 2 * lap + 1);
                }
            })
        };
        let mut threads: Vec<_> = (0..n).map(rank).collect();
        let node = world.node.another_view(spin_ticks);
        threads.push(thread::spawn(move || {
            let cores = node.header().cores;
            for turn in 0..daemon.takes.max(daemon.tells).max(daemon.gives) {
                (0..thread_rng().gen_range(0..40)).for_each(|_| thread::yield_now());
                if turn < daemon.tells {
                    let (rank, core) = (thread_rng().gen_range(0..n), thread_rng().gen_range(0..cores));
                    node.rank(rank).target.store(core + 1, Ordering::SeqCst);
                }
                if turn < daemon.takes
                    && let Some(rank) = node.running_on(thread_rng().gen_range(0..cores))
                {
                    sched::take_core(&node, rank);
                }
                if turn < daemon.gives {
                    (0..thread_rng().gen_range(0..20)).for_each(|_| thread::yield_now());
                    let given_now = (0..n).filter(|rank| {
                        let core = regrant::core_for(&node, *rank, 0);
                        core.is_some_and(|core| regrant::regrant(&node, (*rank, 0), core).is_some())
                    });
                    given.fetch_add(given_now.count() as u32, Ordering::Relaxed);
                }
                supervise::assist(&node);
            }
        }));
        for thread in threads {
            thread.join().unwrap();
        }
        moved.fetch_add(assert_settled(&world.node), Ordering::Relaxed);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS, 3);
    (moved.load(Ordering::Relaxed), given.load(Ordering::Relaxed))
}

#[test]
fn an_idle_core_takes_over() {
    assert!(explore(Balance::Steal, &[0, 0, 0, 1], 0, 2, Daemon::default()).0 > 0, "nothing has moved");
}

#[test]
fn a_watching_core_takes_over() {
    assert!(explore(Balance::Steal, &[0, 0, 0, 1], 40, 2, Daemon::default()).0 > 0, "nothing has moved");
}

#[test]
fn taken_over_while_cores_are_taken() {
    assert!(
        explore(Balance::Steal, &[0, 0, 0, 1], 30, 2, Daemon { takes: 6, ..Daemon::default() }).0 > 0,
        "nothing has moved"
    );
    assert!(
        explore(Balance::Steal, &[0, 0, 1, 2], 30, 2, Daemon { takes: 6, ..Daemon::default() }).0 > 0,
        "nothing has moved"
    );
}

#[test]
fn one_that_starves_is_taken_over() {
    assert!(explore(Balance::Rescue, &[0, 0, 0, 1], 0, 2, Daemon::default()).0 > 0, "nothing has moved");
    assert!(
        explore(Balance::Rescue, &[0, 0, 1, 2], 30, 2, Daemon { takes: 6, ..Daemon::default() }).0 > 0,
        "nothing has moved"
    );
}

#[test]
fn ranks_move_themselves() {
    assert!(
        explore(Balance::Refine, &[0, 0, 1, 1], 0, 3, Daemon { tells: 6, ..Daemon::default() }).0 > 0,
        "nothing has moved"
    );
    assert!(
        explore(Balance::Refine, &[0, 0, 1, 1], 30, 3, Daemon { tells: 6, ..Daemon::default() }).0 > 0,
        "nothing has moved"
    );
}

#[test]
fn ranks_move_themselves_while_cores_are_taken() {
    assert!(
        explore(Balance::Refine, &[0, 0, 0, 1], 30, 3, Daemon { takes: 6, tells: 6, ..Daemon::default() }).0 > 0,
        "nothing has moved"
    );
}

/// On its own core, on another one, just as it comes into MPI, and with others that take it over.
#[test]
fn cores_are_given_to_ranks_outside_mpi() {
    let daemon = Daemon { takes: 8, gives: 8, ..Daemon::default() };
    assert!(explore(Balance::None, &[0, 0, 0], 0, 2, daemon).1 > 0, "no core was given");
    let (moved, given) = explore(Balance::Steal, &[0, 0, 1], 0, 2, daemon);
    assert!(moved > 0 && given > 0, "{moved} moves, {given} cores given");
    let (moved, given) = explore(Balance::Rescue, &[0, 0, 1, 1], 30, 2, daemon);
    assert!(moved > 0 && given > 0, "{moved} moves, {given} cores given");
}

/// Who dies may be in hand, on its way, or just have got another core.
#[test]
fn killer_of_ranks_that_are_taken_over() {
    let seen = seen();
    explore_in(|| World::balanced(Balance::Steal, &[0, 0, 1], 0), 0, 120, seen);
    explore_in(|| World::balanced(Balance::Steal, &[0, 0, 1], 30), 30, 300, seen);
    explore_in(|| World::balanced(Balance::Rescue, &[0, 0, 1], 30), 30, 300, seen);
    assert_tried(seen, &[0, 1, 2]);
}

#[test]
fn killer_of_ranks_that_move_themselves() {
    let seen = seen();
    let world = || {
        let world = World::balanced(Balance::Refine, &[0, 0, 1], 30);
        (0..3).for_each(|rank| world.node.rank(rank).target.store((rank + 1) % 2 + 1, Ordering::SeqCst));
        world
    };
    explore_in(world, 30, 800, seen);
    assert_tried(seen, &[0, 2]);
}
