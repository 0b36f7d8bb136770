//! Policies that prefer some ranks: tokens in both directions of a ring, and nobody is left out.

use super::world::{World, assert_alone, check_pct, check_random, recv, send};
use vmpi_shared::control::Policy;

const ROUNDS: usize = 300;

/// Each rank sends to both neighbours and receives from both, `laps` times, for each policy.
fn ring(placement: &'static [u32], spin_ticks: u64, laps: i32) {
    for (_, policy) in Policy::NAMES {
        let scenario = move || {
            let world = World::under(policy, placement, 8, spin_ticks);
            let n = placement.len() as u32;
            let rank = |me: u32| {
                world.rank(me, move |endpoint| {
                    let (before, after) = ((me + n - 1) % n, (me + 1) % n);
                    for lap in 0..laps {
                        send(endpoint, before, 2 * lap);
                        send(endpoint, after, 2 * lap + 1);
                        recv(endpoint, after, 2 * lap);
                        recv(endpoint, before, 2 * lap + 1);
                    }
                })
            };
            let threads: Vec<_> = (0..n).map(rank).collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_alone(&world.node);
        };
        check_random(scenario, ROUNDS);
        check_pct(scenario, ROUNDS, 3);
    }
}

#[test]
fn policies_on_one_core() {
    ring(&[0, 0, 0, 0], 0, 2);
}

#[test]
fn policies_on_two_cores_with_spinning() {
    ring(&[0, 0, 1, 1], 20, 2);
}
