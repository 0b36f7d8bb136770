//! A killer: rank 0 dies at a random point, the daemon notices and revokes it, and the others finish.

use super::world::{World, assert_alone, check_random, recv, send};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::AtomicU32;
use shuttle::thread::{self, JoinHandle, ThreadId};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::mem::sync::{self, Killed};
use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched::{self, RunState};

const ROUNDS: usize = 1500;
pub const ALIVE: u32 = 0;
const FINISHED: u32 = 1;
const GONE: u32 = 2;

/// In which states the victim died: RUNNING, SUSPENDED, READY, spinning as the last rank of its core, and READY on an OPEN core.
pub type Seen = [std::sync::atomic::AtomicU32; 5];

/// Rank 0, which may be killed anywhere in `life`.
pub fn victim(
    mut endpoint: Endpoint,
    end: Arc<AtomicU32>,
    life: impl Fn(&mut Endpoint) + Send + 'static,
) -> JoinHandle<()> {
    thread::spawn(move || {
        let how = match catch_unwind(AssertUnwindSafe(|| {
            sched::enter(&endpoint.node, 0);
            life(&mut endpoint);
            sched::finish(&endpoint.node, 0);
        })) {
            Ok(()) => FINISHED,
            Err(payload) if payload.is::<Killed>() => GONE,
            Err(payload) => resume_unwind(payload),
        };
        end.store(how, Ordering::SeqCst);
    })
}

/// Kills the victim some time, sees that it is gone, and revokes its baton.
pub fn daemon(
    node: NodeSegment,
    doomed: ThreadId,
    latest: u32,
    end: Arc<AtomicU32>,
    seen: &'static Seen,
) -> JoinHandle<()> {
    thread::spawn(move || {
        for _ in 0..thread_rng().gen_range(0..latest) {
            thread::yield_now();
        }
        sync::doom(doomed);
        while end.load(Ordering::SeqCst) == ALIVE {
            thread::yield_now();
        }
        // It notices late.
        for _ in 0..thread_rng().gen_range(0..200) {
            thread::yield_now();
        }
        if end.load(Ordering::SeqCst) == GONE {
            let core = node.core(node.core_of(0));
            let spins =
                core.holder.load(Ordering::SeqCst) == sched::SPINNING && core.spinner.load(Ordering::SeqCst) == 0;
            let state = match node.state(0) {
                RunState::Running => Some(0),
                _ if spins => Some(3),
                RunState::Suspended | RunState::Tended => Some(1),
                RunState::Ready if core.holder.load(Ordering::SeqCst) == sched::OPEN => Some(4),
                RunState::Ready => Some(2),
                _ => None,
            };
            if let Some(state) = state {
                seen[state].fetch_add(1, Ordering::Relaxed);
            }
            sched::rank_died(&node, 0);
            assert_eq!(node.state(0), RunState::Dead);
        }
    })
}

fn explore(placement: &'static [u32], spin_ticks: u64, seen: &'static Seen) {
    explore_in(move || World::new(placement, 8, spin_ticks), spin_ticks, 120, seen);
}

/// Three ranks, of which the first may die.
pub fn explore_in(
    world: impl Fn() -> World + Send + Sync + 'static,
    spin_ticks: u64,
    latest: u32,
    seen: &'static Seen,
) {
    let scenario = move || {
        let world = world();
        let end = Arc::new(AtomicU32::new(ALIVE));
        let victim = victim(world.endpoint(0), end.clone(), |endpoint| {
            for tag in 0..4 {
                sync::yield_cpu(); // computes: a place to die while RUNNING
                recv(endpoint, 1, tag);
                send(endpoint, 2, tag);
                sched::yield_core(&endpoint.node, 0);
            }
        });
        let doomed = victim.thread().id();
        let mut threads = vec![victim];
        for me in 1..3u32 {
            threads.push(world.rank(me, move |endpoint| {
                for tag in 0..4 {
                    if me == 1 {
                        send(endpoint, 0, tag);
                    }
                    send(endpoint, 3 - me, 10 + tag);
                    recv(endpoint, 3 - me, 10 + tag);
                    sched::yield_core(&endpoint.node, me);
                }
            }));
        }
        threads.push(daemon(world.node.another_view(spin_ticks), doomed, latest, end, seen));
        for thread in threads {
            thread.join().unwrap();
        }
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
}

pub fn seen() -> &'static Seen {
    Box::leak(Box::default())
}

/// The states in which deaths must have been tried, or the test says nothing.
pub fn assert_tried(seen: &Seen, states: &[usize]) {
    let counts: Vec<_> = seen.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    assert!(
        states.iter().all(|state| counts[*state] > 0),
        "deaths RUNNING, SUSPENDED, READY, spinning, OPEN: {counts:?}"
    );
}

#[test]
fn killer_on_one_core() {
    let seen = seen();
    explore(&[0, 0, 0], 0, seen);
    assert_tried(seen, &[0, 1, 2]);
}

#[test]
fn killer_beside_another_core() {
    let seen = seen();
    explore(&[0, 0, 1], 0, seen);
    assert_tried(seen, &[0, 1, 2]);
}

#[test]
fn killer_of_a_rank_that_watches_while_running() {
    let seen = seen();
    explore(&[1, 0, 0], 8, seen);
    assert_tried(seen, &[0]);
}

/// Two ranks of one core wait for a third elsewhere that takes its time; the victim may be the one that watches the idle core.
#[test]
fn killer_of_the_spinning_rank() {
    let seen = seen();
    let scenario = move || {
        let world = World::new(&[0, 0, 1], 8, 60);
        let end = Arc::new(AtomicU32::new(ALIVE));
        let victim = victim(world.endpoint(0), end.clone(), |endpoint| {
            // So that the other one of the core is there first in some executions.
            (0..thread_rng().gen_range(0..20)).for_each(|_| sync::yield_cpu());
            sched::yield_core(&endpoint.node, 0);
            recv(endpoint, 2, 0);
        });
        let doomed = victim.thread().id();
        let patient = world.rank(1, |endpoint| {
            recv(endpoint, 2, 1);
            recv(endpoint, 2, 2);
        });
        let busy = world.rank(2, |endpoint| {
            for (to, tag) in [(1, 1), (0, 0), (1, 2)] {
                (0..200).for_each(|_| sync::yield_cpu());
                send(endpoint, to, tag);
            }
        });
        let daemon = daemon(world.node.another_view(60), doomed, 500, end, seen);
        for thread in [victim, patient, busy, daemon] {
            thread.join().unwrap();
        }
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    assert_tried(seen, &[0, 3]);
}

/// The victim, READY and awake, is the one that an OPEN core was left to; the other rank of the core is asleep when its message comes.
#[test]
fn killer_of_the_rank_that_an_open_core_was_left_to() {
    let seen = seen();
    let scenario = move || {
        let world = World::new(&[0, 0, 1], 8, 0);
        let end = Arc::new(AtomicU32::new(ALIVE));
        let victim = victim(world.endpoint(0), end.clone(), |endpoint| {
            for _ in 0..40 {
                sync::yield_cpu();
                // However often staying awake was in vain.
                endpoint.node.rank(0).cold.store(0, sync::Ordering::SeqCst);
                sched::yield_core(&endpoint.node, 0);
            }
        });
        let doomed = victim.thread().id();
        let patient = world.rank(1, |endpoint| (0..8).for_each(|tag| recv(endpoint, 2, tag)));
        let busy = world.rank(2, |endpoint| {
            for tag in 0..8 {
                (0..20).for_each(|_| sync::yield_cpu());
                send(endpoint, 1, tag);
            }
        });
        let daemon = daemon(world.node.another_view(0), doomed, 300, end, seen);
        for thread in [victim, patient, busy, daemon] {
            thread.join().unwrap();
        }
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    assert_tried(seen, &[4]);
}
