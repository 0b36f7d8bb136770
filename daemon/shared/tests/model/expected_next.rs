//! The watch over an idle core goes to the rank that is expected to run next, and nothing is lost on the way.

use super::world::{World, assert_alone, check_pct, check_random, recv, send};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use std::sync::atomic::{AtomicU32, Ordering};
use vmpi_shared::mem::sync;
use vmpi_shared::sched::{self};

const ROUNDS: usize = 1000;

/// A token goes round `laps` times; ranks of a core answer each other and those of the other core in turn. Counts the
/// executions in which a rank learned that another runs after it.
/// `takes`: so often the daemon takes a core from the rank that holds it.
fn ring(placement: &'static [u32], laps: i32, spin_ticks: u64, takes: u32) -> u32 {
    let learned: &'static AtomicU32 = Box::leak(Box::default());
    let scenario = move || {
        let world = World::new(placement, 8, spin_ticks);
        let n = placement.len() as u32;
        let mut threads: Vec<_> = (0..n)
            .map(|me| {
                world.rank(me, move |endpoint| {
                    for lap in 0..laps {
                        sched::scheduling_point(&endpoint.node, me);
                        if me == 0 {
                            send(endpoint, 1, lap);
                        }
                        recv(endpoint, (me + n - 1) % n, lap);
                        if me != 0 {
                            send(endpoint, (me + 1) % n, lap);
                        }
                    }
                })
            })
            .collect();
        if takes > 0 {
            let node = world.node.another_view(spin_ticks);
            threads.push(thread::spawn(move || {
                for _ in 0..takes {
                    for _ in 0..thread_rng().gen_range(0..60) {
                        thread::yield_now();
                    }
                    if let Some(rank) = node.running_on(thread_rng().gen_range(0..node.header().cores)) {
                        sched::take_core(&node, rank);
                    }
                }
            }));
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert_alone(&world.node);
        let one = (0..n)
            .any(|rank| ![0, rank + 1].contains(&world.node.rank(rank).expected_next.load(sync::Ordering::SeqCst)));
        learned.fetch_add(u32::from(one), Ordering::Relaxed);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS, 3);
    learned.load(Ordering::Relaxed)
}

#[test]
fn two_ranks_on_each_of_two_cores() {
    assert!(ring(&[0, 0, 1, 1], 4, 40, 0) > 0, "no rank ever learned who runs after it");
}

#[test]
fn three_ranks_on_one_core_and_one_on_the_other() {
    assert!(ring(&[0, 0, 0, 1], 3, 40, 0) > 0, "no rank ever learned who runs after it");
}

/// A core may be taken at any step, also from a rank that has just found its wait over and goes straight back to work.
#[test]
fn cores_are_taken_meanwhile() {
    assert!(ring(&[0, 0, 1, 1], 4, 40, 6) > 0, "no rank ever learned who runs after it");
}

#[test]
fn cores_of_single_ranks_are_taken_meanwhile() {
    ring(&[0, 1], 4, 6, 6);
}
