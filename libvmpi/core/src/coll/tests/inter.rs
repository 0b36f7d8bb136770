//! Collectives of intercommunicators.

use super::*;
use crate::coll::inter;
use crate::consts::{PROC_NULL, ROOT};

/// What rank `id` of two groups of `a` and `b` has to do, built and run.
fn between<T>(
    a: usize,
    b: usize,
    setup: impl Fn(usize, bool, usize) -> (T, Work),
    check: impl Fn(usize, bool, usize, &T),
) {
    let shape = Shape::Inter(a, b);
    let place = |id: usize| (id >= a, if id < a { id } else { id - a });
    let build = |id: usize| {
        let (second, rank) = place(id);
        let (own, other) = if second { (b, a) } else { (a, b) };
        let (state, work) = setup(id, second, rank);
        let mut plan = Plan::default();
        let local = Ranks { via: Via::Local, ..main_ranks(rank, own) };
        inter::build(&mut plan, local, main_ranks(rank, other), &work).unwrap();
        (state, plan)
    };
    simulate(shape, compose, build, |id, state| {
        let (second, rank) = place(id);
        check(id, second, rank, state);
    });
}

#[test]
fn intercommunicators() {
    for (a, b) in [(1, 1), (1, 3), (4, 1), (2, 5), (6, 3), (3, 3)] {
        let count = 12;
        let ids = |second: bool| if second { a..a + b } else { 0..a };
        let gathered = |second: bool| -> Vec<u64> { ids(second).flat_map(|id| contribution(id, count)).collect() };
        // The root is rank a - 1 of the first group.
        let root_of = |second: bool, rank: usize| match (second, rank + 1 == a) {
            (true, _) => a as i32 - 1,
            (false, true) => ROOT,
            (false, false) => PROC_NULL,
        };

        between(a, b, |_, _, _| ((), Work::Barrier), |_, _, _, ()| {});
        between(
            a,
            b,
            |id, second, rank| {
                let root = root_of(second, rank);
                let data = match root {
                    ROOT => Buffer::new(elem(id), &contribution(0, count)),
                    _ => Buffer::blank(elem(id), count),
                };
                let work = Work::Bcast { data: data.data, root };
                (data, work)
            },
            |_, second, _, data| {
                if second {
                    assert_eq!(data.values(), contribution(0, count));
                }
            },
        );
        between(
            a,
            b,
            |id, second, rank| {
                let root = root_of(second, rank);
                let send = Buffer::new(elem(id), &contribution(id, count));
                let recv = Buffer::blank(elem(id + 1), b * count);
                let at_root = (root == ROOT).then(|| even(&recv, b));
                let work = Work::Gather { send: Some(send.data), recv: at_root, root, even: true };
                ((send, recv), work)
            },
            |_, second, rank, (_, recv)| {
                if root_of(second, rank) == ROOT {
                    assert_eq!(recv.values(), gathered(true));
                }
            },
        );
        between(
            a,
            b,
            |id, second, rank| {
                let root = root_of(second, rank);
                let send = Buffer::new(elem(id), &gathered(true));
                let recv = Buffer::blank(elem(id + 1), count);
                let at_root = (root == ROOT).then(|| even(&send, b));
                let work = Work::Scatter { send: at_root, recv: Some(recv.data), root, even: true };
                ((send, recv), work)
            },
            |id, second, _, (_, recv)| {
                if second {
                    assert_eq!(recv.values(), contribution(id, count));
                }
            },
        );
        between(
            a,
            b,
            |id, second, _| {
                let send = Buffer::new(elem(id), &contribution(id, count));
                let others = if second { a } else { b };
                let recv = Buffer::blank(elem(id + 1), others * count);
                let work = Work::Allgather { send: Some(send.data), recv: even(&recv, others), even: true };
                ((send, recv), work)
            },
            |_, second, _, (_, recv)| assert_eq!(recv.values(), gathered(!second)),
        );
        between(
            a,
            b,
            |id, second, _| {
                let others = if second { a } else { b };
                let send = Buffer::new(elem(id), &contribution(id, others * 2));
                let recv = Buffer::blank(elem(id + 1), others * 2);
                let work = Work::Alltoall { send: Some(even(&send, others)), recv: even(&recv, others), even: true };
                ((send, recv), work)
            },
            |_, second, rank, (_, recv)| {
                let mine = if second { b } else { a };
                let want: Vec<u64> =
                    ids(!second).flat_map(|id| contribution(id, mine * 2)[rank * 2..][..2].to_vec()).collect();
                assert_eq!(recv.values(), want);
            },
        );
        between(
            a,
            b,
            |id, second, rank| {
                let root = root_of(second, rank);
                let send = Buffer::new(elem(0), &contribution(id, count));
                let recv = Buffer::blank(elem(0), count);
                let at_root = (root == ROOT).then_some(recv.data);
                let work = Work::Reduce { send: send.data, recv: at_root, root, commutative: false };
                ((send, recv), work)
            },
            |_, second, rank, (_, recv)| {
                if root_of(second, rank) == ROOT {
                    assert_eq!(recv.values(), reduced(compose, ids(true), count));
                }
            },
        );
        between(
            a,
            b,
            |id, _, _| {
                let send = Buffer::new(elem(1), &contribution(id, count));
                let recv = Buffer::blank(elem(1), count);
                let work = Work::Allreduce { send: send.data, recv: recv.data, commutative: false };
                ((send, recv), work)
            },
            |_, second, _, (_, recv)| assert_eq!(recv.values(), reduced(compose, ids(!second), count)),
        );
        between(
            a,
            b,
            |id, second, _| {
                let total = a * b * 2;
                let (mine, each) = if second { (b, 2 * a) } else { (a, 2 * b) };
                let send = Buffer::new(elem(1), &contribution(id, total));
                let recv = Buffer::blank(elem(1), each);
                let counts = vec![each as u64; mine];
                let work = Work::ReduceScatter {
                    send: send.data,
                    recv: recv.data,
                    counts,
                    in_place: false,
                    commutative: false,
                };
                ((send, recv), work)
            },
            |_, second, rank, (_, recv)| {
                let each = if second { 2 * a } else { 2 * b };
                let want = reduced(compose, ids(!second), a * b * 2);
                assert_eq!(recv.values(), want[rank * each..][..each]);
            },
        );
    }
}
