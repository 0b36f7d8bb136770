//! Lent queues: a rank that computes is matched for, and one thread at a time has its queues.

use super::world::{World, announce, assert_alone, check_pct, check_random, irecv, irecv_large, recv, send, wait};
use std::sync::Arc;
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::matching::request::state;
use vmpi_shared::mem::sync::{AtomicU32, Ordering, yield_cpu};

const ROUNDS: usize = 1000;

/// Compute outside MPI, queues lent, until a message for the request in `slot` has been matched by somebody else.
fn compute_until_matched(endpoint: &mut Endpoint, slot: u32) {
    if !endpoint.offer_queues() {
        return;
    }
    // The model runs one thread at a time, so this look at what a deliverer may be changing is no race.
    while endpoint.queues().slots[slot as usize].state == state::POSTED {
        yield_cpu();
    }
    endpoint.reclaim_queues();
}

/// MPI_Isend of a large message to rank 0 under each of `tags`, MPI_Waitall.
fn send_large(endpoint: &mut Endpoint, tags: std::ops::Range<i32>) {
    let sends: Vec<_> = tags.map(|tag| announce(endpoint, 0, tag)).collect();
    sends.into_iter().for_each(|slot| {
        wait(endpoint, slot);
    });
}

/// Rank 0 posts receives and computes; it goes on only when a deliverer has matched: a message that nobody matches is a rank that
/// computes for ever.
fn matched_while_computing(placement: &'static [u32], spin_ticks: u64) {
    let scenario = move || {
        let world = World::new(placement, 4, spin_ticks);
        let mut ranks = vec![world.rank(0, |endpoint| {
            let posted: Vec<_> = (0..4).map(|n| (1 + n % 2, irecv_large(endpoint, 1 + n % 2, n / 2))).collect();
            for (n, (source, slot)) in posted.into_iter().enumerate() {
                compute_until_matched(endpoint, slot);
                assert_eq!(wait(endpoint, slot), (source, n as i32 / 2), "overtaken, lost or doubled");
            }
            send(endpoint, 1, 9);
        })];
        ranks.push(world.rank(1, |endpoint| {
            send_large(endpoint, 0..2);
            recv(endpoint, 0, 9);
        }));
        ranks.push(world.rank(2, |endpoint| send_large(endpoint, 0..2)));
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

#[test]
fn a_computing_rank_is_matched_for() {
    matched_while_computing(&[0, 1, 2], 0);
}

#[test]
fn a_computing_rank_is_matched_for_by_ranks_of_one_core() {
    matched_while_computing(&[0, 1, 1], 3);
}

/// In and out of MPI all the time, while two others deliver, into an inbox that is full now and then: one has the queues at a time, so nothing is lost,
/// doubled or overtaken, and nobody waits for ever.
#[test]
fn lending_and_taking_back_while_messages_come() {
    let scenario = || {
        let world = World::new(&[0, 1, 1], 2, 0);
        let mut ranks = vec![world.rank(0, |endpoint| {
            let mut next = [0; 3];
            let mut slot = irecv_large(endpoint, -1, -2);
            for n in 0..6 {
                for _ in 0..3 {
                    if endpoint.offer_queues() {
                        endpoint.reclaim_queues();
                    }
                    endpoint.progress();
                }
                let (source, tag) = wait(endpoint, slot);
                assert_eq!(tag, next[source as usize], "overtaken, lost or doubled");
                next[source as usize] += 1;
                if n < 5 {
                    slot = if n % 2 == 0 { irecv(endpoint, -1, -2) } else { irecv_large(endpoint, -1, -2) };
                }
            }
            assert_eq!(next, [0, 3, 3]);
        })];
        for me in 1..3 {
            ranks.push(world.rank(me, |endpoint| {
                send_large(endpoint, 0..1);
                send(endpoint, 0, 1);
                send_large(endpoint, 2..3);
            }));
        }
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

/// A sender that computes is not in the way of one that waits and comes behind it.
#[test]
fn one_that_waits_behind_one_that_computes() {
    let scenario = || {
        let world = World::new(&[0, 1, 2], 4, 0);
        let over = Arc::new(AtomicU32::new(0));
        let (told, tell) = (over.clone(), over);
        let ranks = [
            world.rank(0, move |endpoint| {
                let slots = [1, 2].map(|source| irecv_large(endpoint, source, 0));
                compute_until_matched(endpoint, slots[1]);
                assert_eq!(wait(endpoint, slots[1]), (2, 0));
                tell.store(1, Ordering::SeqCst);
                assert_eq!(wait(endpoint, slots[0]), (1, 0));
            }),
            world.rank(1, move |endpoint| {
                let slot = announce(endpoint, 0, 0);
                while told.load(Ordering::SeqCst) == 0 {
                    yield_cpu();
                }
                wait(endpoint, slot);
            }),
            world.rank(2, |endpoint| send_large(endpoint, 0..1)),
        ];
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

/// Two that wait for a third, which computes: what one matches for the other, that one moves, or the other way round.
#[test]
fn each_of_two_senders_moves_its_own() {
    let scenario = || {
        let world = World::new(&[0, 1, 2], 4, 0);
        let ranks = [
            world.rank(0, |endpoint| {
                let slots = [1, 2].map(|source| irecv_large(endpoint, source, 0));
                if endpoint.offer_queues() {
                    while slots.iter().any(|slot| endpoint.queues().slots[*slot as usize].state != state::COMPLETE) {
                        yield_cpu();
                    }
                    endpoint.reclaim_queues();
                }
                slots.into_iter().for_each(|slot| {
                    wait(endpoint, slot);
                });
            }),
            world.rank(1, |endpoint| send_large(endpoint, 0..1)),
            world.rank(2, |endpoint| send_large(endpoint, 0..1)),
        ];
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}
