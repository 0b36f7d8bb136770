//! A blocking receive without a request (`Wait::Message`) is ended without tending by who has pushed its message, whatever else comes meanwhile.

use super::world::{World, assert_alone, check_pct, check_random, irecv, recv, recv_any, send, wait};

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
