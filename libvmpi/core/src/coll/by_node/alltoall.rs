//! Alltoall of small blocks of one size: the blocks from one node to another travel in one message.

use crate::coll::by_node::order::all_of;
use crate::coll::plan::{Data, Plan, Regions};
use crate::comm::layout::Layout;

/// All blocks have `bytes` packed bytes; `send` may be `recv` (in place: what is sent is copied first).
///
/// Each member sends its node's first one all its blocks, in the order of the nodes; from these the first member
/// makes a message for each other node, sorted by who the blocks are for, and of what arrives, one for each member.
pub fn build(plan: &mut Plan, layout: &Layout, send: &Regions, recv: &Regions, bytes: u64) {
    let ranks = all_of(layout);
    let total = u64::from(ranks.size) * bytes;
    let order: Vec<u32> = (0..layout.nodes()).flat_map(|node| layout.members(node).iter().copied()).collect();
    let count = layout.local().len() as u64;
    let leads = layout.place() == 0;
    // What the members send, one after another; later, what they receive.
    let outgoing = plan.temp_bytes(if leads { count * total } else { total });
    let of = |all: Data, place: u64, first: u64, blocks: u64| all.slice(place * total + first * bytes, blocks * bytes);
    for (position, rank) in (0..).zip(&order) {
        plan.copy(send.get(*rank as usize), of(outgoing, 0, position, 1));
    }
    if !leads {
        let leader = layout.local()[0];
        plan.send(ranks, leader, outgoing);
        plan.fence();
        plan.recv(ranks, leader, outgoing);
        plan.fence();
    } else {
        for (place, member) in (1..).zip(&layout.local()[1..]) {
            plan.recv(ranks, *member, of(outgoing, place, 0, u64::from(ranks.size)));
        }
        plan.fence();
        let incoming = plan.temp_bytes(count * total);
        let mut first = 0;
        let mut crossing = Vec::new();
        for node in 0..layout.nodes() {
            let members = layout.members(node);
            let theirs = members.len() as u64;
            let memory = |plan: &mut Plan| plan.temp_bytes(count * theirs * bytes);
            if node == layout.here() {
                for (from, to) in pairs(count, theirs) {
                    plan.copy(of(outgoing, from, first + to, 1), of(incoming, to, first + from, 1));
                }
            } else {
                // For each of them the blocks of all of us, and the other way round.
                let (packed, arrived) = (memory(plan), memory(plan));
                for (from, to) in pairs(count, theirs) {
                    plan.copy(of(outgoing, from, first + to, 1), packed.slice((to * count + from) * bytes, bytes));
                }
                plan.recv(ranks, members[0], arrived);
                plan.send(ranks, members[0], packed);
                crossing.push((arrived, first, theirs));
            }
            first += theirs;
        }
        plan.fence();
        for (arrived, first, theirs) in crossing {
            for to in 0..count {
                plan.copy(arrived.slice(to * theirs * bytes, theirs * bytes), of(incoming, to, first, theirs));
            }
        }
        for (place, member) in (1..).zip(&layout.local()[1..]) {
            plan.send(ranks, *member, of(incoming, place, 0, u64::from(ranks.size)));
        }
        unpack(plan, &order, of(incoming, 0, 0, u64::from(ranks.size)), recv, bytes);
        plan.fence();
        return;
    }
    unpack(plan, &order, outgoing, recv, bytes);
}

fn pairs(ours: u64, theirs: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..theirs).flat_map(move |to| (0..ours).map(move |from| (from, to)))
}

fn unpack(plan: &mut Plan, order: &[u32], packed: Data, recv: &Regions, bytes: u64) {
    for (position, rank) in (0..).zip(order) {
        plan.copy(packed.slice(position * bytes, bytes), recv.get(*rank as usize));
    }
}
