//! The watch over an idle core goes to the rank that is expected to run next, and nothing is lost on the way.

use super::world::{World, assert_alone, recv, send};
use std::sync::atomic::{AtomicU32, Ordering};
use vmpi_shared::mem::sync;

const ROUNDS: usize = 1000;

/// A token goes round `laps` times; ranks of a core answer each other and those of the other core in turn. Counts the
/// executions in which a rank learned that another runs after it.
fn ring(placement: &'static [u32], laps: i32, spin_ticks: u64) -> u32 {
    static LEARNED: AtomicU32 = AtomicU32::new(0);
    LEARNED.store(0, Ordering::Relaxed);
    let scenario = move || {
        let world = World::new(placement, 8, spin_ticks);
        let n = placement.len() as u32;
        let threads: Vec<_> = (0..n)
            .map(|me| {
                world.rank(me, move |endpoint| {
                    for lap in 0..laps {
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
        for thread in threads {
            thread.join().unwrap();
        }
        assert_alone(&world.node);
        let learned =
            (0..n).any(|rank| ![0, rank + 1].contains(&world.node.rank(rank).heir.load(sync::Ordering::SeqCst)));
        LEARNED.fetch_add(u32::from(learned), Ordering::Relaxed);
    };
    shuttle::check_random(scenario, ROUNDS);
    shuttle::check_pct(scenario, ROUNDS, 3);
    LEARNED.load(Ordering::Relaxed)
}

#[test]
fn two_ranks_on_each_of_two_cores() {
    assert!(ring(&[0, 0, 1, 1], 4, 40) > 0, "no rank ever learned who runs after it");
}

#[test]
fn three_ranks_on_one_core_and_one_on_the_other() {
    assert!(ring(&[0, 0, 0, 1], 3, 40) > 0, "no rank ever learned who runs after it");
}
