//! Full inboxes: senders suspend until there is room (`Wait::Space`), and nobody is lost.

use super::world::{World, assert_alone, check_pct, check_random, irecv, recv, recv_any, send, wait};

const ROUNDS: usize = 500;

/// Two senders of four messages each to a receiver whose inbox has two cells; rank 0 receives in order per sender.
fn flood(placement: &'static [u32], spin_ticks: u64) {
    let scenario = move || {
        let world = World::new(placement, 2, spin_ticks);
        let mut ranks = vec![world.rank(0, |endpoint| {
            let mut next = [0; 3];
            for _ in 0..8 {
                let index = irecv(endpoint, -1, -2);
                let (source, tag) = wait(endpoint, index);
                assert_eq!(tag, next[source as usize], "overtaken, lost or doubled");
                next[source as usize] += 1;
            }
            assert_eq!(next, [0, 4, 4]);
        })];
        for me in 1..3 {
            ranks.push(world.rank(me, |endpoint| (0..4).for_each(|tag| send(endpoint, 0, tag))));
        }
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

#[test]
fn flood_on_one_core() {
    flood(&[0, 0, 0], 0);
}

#[test]
fn flood_from_another_core() {
    flood(&[0, 1, 1], 0);
}

#[test]
fn flood_on_three_cores_with_spinning() {
    flood(&[0, 1, 2], 3);
}

/// The receiver does not receive at first: it only waits for the third rank, whose word comes last.
#[test]
fn flood_while_the_receiver_waits_for_another() {
    let scenario = || {
        let world = World::new(&[0, 0, 1], 2, 0);
        let ranks = [
            world.rank(0, |endpoint| {
                recv(endpoint, 2, 9);
                (0..4).for_each(|tag| recv(endpoint, 1, tag));
            }),
            world.rank(1, |endpoint| {
                (0..4).for_each(|tag| send(endpoint, 0, tag));
                send(endpoint, 2, 8);
            }),
            world.rank(2, |endpoint| {
                recv(endpoint, 1, 8);
                send(endpoint, 0, 9);
            }),
        ];
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

/// Everybody floods everybody through inboxes of two cells: each waits for room at another that waits for room.
#[test]
fn all_flood_all() {
    let scenario = || {
        let world = World::new(&[0, 0, 1], 2, 0);
        let ranks: Vec<_> = (0..3)
            .map(|me| {
                world.rank(me, move |endpoint| {
                    for tag in 0..3 {
                        send(endpoint, (me + 1) % 3, tag);
                        send(endpoint, (me + 2) % 3, tag);
                    }
                    for tag in 0..3 {
                        let mut from = [recv_any(endpoint, tag), recv_any(endpoint, tag)];
                        from.sort_unstable();
                        assert!(from[0] != from[1] && !from.contains(&(me as i32)));
                    }
                })
            })
            .collect();
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}
