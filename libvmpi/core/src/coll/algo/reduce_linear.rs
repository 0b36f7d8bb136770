//! Reduce where the ranks share a core: the root combines all contributions itself, piece by piece.
//!
//! However the work is dealt out, one CPU does all of it, so what counts is that there are few messages, that nobody waits in turn, and that
//! a piece is still in the cache when it is combined. The senders offer all their pieces at once; the root takes them one after another
//! without giving the core up in between.

use super::{piece, run};
use crate::coll::plan::{Data, Plan, Ranks};

/// Pieces of a contribution at most.
const MOST_PIECES: u64 = 256;
/// Pieces that are received at a time.
const AT_ONCE: usize = 4;

/// `send` is `recv` if in place; `recv`: at the root only. Contributions are combined in rank order, the highest first.
pub fn build(plan: &mut Plan, ranks: Ranks, send: Data, recv: Option<Data>, root: u32) {
    let each = piece(send, MOST_PIECES);
    let pieces = send.count.div_ceil(each.max(1));
    let Some(recv) = recv.filter(|_| ranks.rank == root) else {
        (0..pieces).for_each(|number| plan.send_some(ranks, root, run(send, each, number)));
        plan.fence();
        return;
    };
    let last = ranks.size - 1;
    // The highest rank's contribution is where the sum grows: in the result, unless that is this rank's own contribution.
    let aside = (send.at == recv.at && root != last).then(|| plan.temp(send.elem, each));
    let memory: Vec<Data> = (0..AT_ONCE.min(last as usize)).map(|_| plan.temp(send.elem, each)).collect();
    for number in 0..pieces {
        let (own, into) = (run(send, each, number), run(recv, each, number));
        let sum = aside.map_or(into, |aside| aside.slice(0, into.count));
        if root == last {
            plan.copy(own, sum);
        } else {
            plan.recv_some(ranks, last, sum);
        }
        let mut lower: Vec<u32> = (0..last).collect();
        while !lower.is_empty() {
            let batch = lower.split_off(lower.len().saturating_sub(AT_ONCE));
            let rooms: Vec<Data> = memory.iter().map(|room| room.slice(0, into.count)).collect();
            for (source, room) in batch.iter().zip(&rooms).filter(|(source, _)| **source != root) {
                plan.recv_some(ranks, *source, *room);
            }
            plan.fence();
            for (source, room) in batch.iter().zip(&rooms).rev() {
                plan.reduce(if *source == root { own } else { *room }, sum);
            }
        }
        plan.fence();
        plan.copy(sum, into);
    }
}
