//! A blocking receive without a request (`Wait::Message`) is ended without tending by who has pushed its message, whatever else comes meanwhile.

use super::world::{World, assert_alone, check_pct, check_random, irecv, recv, recv_any, send, wait};
use std::sync::Arc;
use vmpi_shared::mem::sync::{AtomicU32, Ordering, fence};

const ROUNDS: usize = 3000;

/// Two senders; the receiver waits in turn in ways that are ended without tending and in one that is not, so that who pushes may find it in another
/// wait than the one at which it looked. One sender's messages come in the wrong order.
fn receive_in_all_ways(placement: &'static [u32], spin_ticks: u64) {
    let scenario = move || {
        let world = World::new(placement, 4, spin_ticks);
        let ranks = [
            world.rank(0, |endpoint| {
                for tag in 0..2 {
                    recv(endpoint, 1, tag);
                    let posted = irecv(endpoint, 1, 10 + tag);
                    assert_eq!(wait(endpoint, posted), (1, 10 + tag));
                    recv(endpoint, 2, tag);
                }
                let others = [recv_any(endpoint, 20), recv_any(endpoint, 20)];
                assert!(others == [1, 2] || others == [2, 1]);
            }),
            world.rank(1, |endpoint| [0, 10, 1, 11, 20].into_iter().for_each(|tag| send(endpoint, 0, tag))),
            world.rank(2, |endpoint| [1, 0, 20].into_iter().for_each(|tag| send(endpoint, 0, tag))),
        ];
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

#[test]
fn on_one_core() {
    receive_in_all_ways(&[0, 0, 0], 0);
}

#[test]
fn from_other_cores() {
    receive_in_all_ways(&[0, 1, 2], 0);
}

#[test]
fn from_its_own_core_and_another_with_spinning() {
    receive_in_all_ways(&[0, 0, 1], 3);
}

/// What a rank waits for in a cell comes about just before it is SUSPENDED, so that nobody wakes it, and a message that is not what it waits for has others tend
/// for it as it looks: it finds itself tended, and a moment later given back.
#[test]
fn who_is_given_back_while_it_looks_goes_on() {
    let scenario = || {
        let world = World::new(&[0, 1], 4, 0);
        let posted = Arc::new(AtomicU32::new(0));
        let seen = posted.clone();
        let ranks = [
            world.rank(0, move |endpoint| {
                let over = || seen.load(Ordering::SeqCst) == 1;
                while !over() {
                    endpoint.progress();
                    endpoint.suspend_for_cell(0, 5, over);
                }
                recv(endpoint, 1, 0);
            }),
            world.rank(1, move |endpoint| {
                posted.store(1, Ordering::SeqCst);
                fence(Ordering::SeqCst); // SYNC A
                endpoint.wake_cell(0, std::iter::once(0));
                send(endpoint, 0, 0);
            }),
        ];
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 4);
}
