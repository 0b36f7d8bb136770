//! What a rank records when, while it is traced (`trace`).

use super::{NodeSegment, RankDescriptor};
use crate::trace::{COUNTERS, Call, FOR_TRACE, Record, Turn, Within};
use std::sync::atomic::Ordering::Relaxed;

/// Does rank `me`, which this process is, record?
#[inline]
pub fn is_on(node: &NodeSegment, me: u32) -> bool {
    records(node.rank(me))
}

/// Does the rank of this descriptor record?
#[inline]
pub(crate) fn records(rank: &RankDescriptor) -> bool {
    rank.monitor.load(Relaxed) & FOR_TRACE != 0
}

/// From now on this process, which is a rank that has its core for itself, records in virtual time, which `now` tells in picoseconds: nothing of cores, and of who has them.
pub fn live_in_virtual_time(node: &NodeSegment, me: u32, now: fn() -> u64) {
    let _ = node.recorder().virtual_time.set(now);
    let at = stamp(node);
    if is_on(node, me) {
        let turn = Turn { core: me as u16, ready: at, run: at, granted: at, released: at, ..Turn::default() };
        node.recorder().put_always(&Record::Turn(turn));
    }
}

fn is_virtual(node: &NodeSegment) -> bool {
    node.recorder().virtual_time.get().is_some()
}

/// The time of a record: ticks, or in virtual time picoseconds from 1 on (0 is none).
fn stamp(node: &NodeSegment) -> u64 {
    node.recorder().virtual_time.get().map_or_else(|| node.now(), |now| now().saturating_add(1))
}

/// In virtual time this rank has waited for so long, until now, in a call of this kind, for this peer and tag.
#[cold]
pub fn waited(node: &NodeSegment, me: u32, (kind, peer, tag): (u32, i32, i32), time: u64) {
    let (name, until) = (node.recorder().name(), stamp(node));
    let call = Call { name, kind: kind as u8, peer, tag };
    node.recorder().put(&Record::Watched { core: me as u16, call, from: until.saturating_sub(time), until });
}

/// In virtual time this rank calls MPI no more.
#[cold]
pub fn left_virtual_time(node: &NodeSegment) {
    node.recorder().put_always(&Record::Ended { at: stamp(node) });
}

/// When what is recorded as one record with its end begins.
pub fn begins(node: &NodeSegment) -> u64 {
    stamp(node)
}

/// What the rank waits in.
fn call(node: &NodeSegment, me: u32) -> Call {
    let rank = node.rank(me);
    Call {
        name: node.recorder().name(),
        kind: rank.call.load(Relaxed) as u8,
        peer: rank.peer.load(Relaxed),
        tag: rank.tag.load(Relaxed),
    }
}

/// The rank has got its core.
#[cold]
pub(crate) fn turn(node: &NodeSegment, me: u32, turn: Turn) {
    if is_virtual(node) {
        return;
    }
    let call = if turn.left == 0 { Call::default() } else { call(node, me) };
    node.recorder().put(&Record::Turn(Turn { call, ..turn }));
}

/// The rank has watched without leaving its core.
#[cold]
pub(crate) fn watched(node: &NodeSegment, me: u32, from: u64, until: u64) {
    if is_virtual(node) {
        return;
    }
    let core = node.core_of(me) as u16;
    node.recorder().put(&Record::Watched { core, call: call(node, me), from, until });
}

/// The rank, from which the core had been taken, wants it back.
#[cold]
pub(crate) fn away(node: &NodeSegment, from: u64, until: u64) {
    if is_virtual(node) {
        return;
    }
    node.recorder().put(&Record::Away { from: from.min(until), until });
}

/// The rank has left MPI.
#[cold]
pub(crate) fn ended(node: &NodeSegment, at: u64) {
    if is_virtual(node) {
        return;
    }
    node.recorder().put_always(&Record::Ended { at });
}

/// A message is sent to job rank `peer`; what the receiver is to tell it by (`Envelope::trace`).
#[cold]
pub fn sent(node: &NodeSegment, peer: u32, context: u32, tag: i32, bytes: u64, within: Within) -> u16 {
    let recorder = node.recorder();
    if recorder.paused.load(Relaxed) {
        return 0;
    }
    let count = recorder.messages.load(Relaxed).wrapping_add(1);
    recorder.messages.store(count, Relaxed);
    // Never 0, which means that its sender does not record.
    let id = (count % u64::from(u16::MAX)) as u16 + 1;
    let call = recorder.name();
    recorder.put(&Record::Message { sent: true, call, id, at: stamp(node), bytes, peer, context, tag, within });
    id
}

/// A message of job rank `peer` has been received.
#[cold]
pub fn received(node: &NodeSegment, id: u16, peer: u32, context: u32, tag: i32, bytes: u64) {
    let (at, within) = (stamp(node), Within::default());
    node.recorder().put(&Record::Message { sent: false, call: 0, id, at, bytes, peer, context, tag, within });
}

/// What a collective call of the program was about.
#[derive(Copy, Clone, Debug, Default)]
pub struct Collective {
    pub context: u32,
    /// Negative: it has none.
    pub root: i32,
    pub sent: u64,
    pub received: u64,
    pub within: Within,
}

/// A blocking collective call, which began at `from`, is over.
#[cold]
pub fn collective(node: &NodeSegment, from: u64, about: Collective) {
    let (recorder, until) = (node.recorder(), stamp(node));
    let Collective { context, root, sent, received, within } = about;
    let call = recorder.name();
    recorder.put(&Record::Collective { call, from: from.min(until), until, context, root, sent, received, within });
}

/// The program begins or ends a region; that is told while it wants nothing else recorded, too: what it began before would not end.
#[cold]
pub fn region(node: &NodeSegment, region: usize, begins: bool, at: u64) {
    node.recorder().put_always(&Record::Region { begins, region: region as u16, at });
}

/// The program wants nothing recorded, or wants it again; whoever begins to trace meanwhile is told of nothing until then.
#[cold]
pub fn pause(node: &NodeSegment, me: u32, paused: bool) {
    let recorder = node.recorder();
    if recorder.paused.swap(paused, Relaxed) != paused && is_on(node, me) {
        let (core, at) = (node.core_of(me) as u16, stamp(node));
        recorder.put_always(&if paused { Record::Paused { core, at } } else { Record::Resumed { core, at } });
    }
}

/// The rank leaves `core`; its performance counters, and that core's.
#[cold]
pub(crate) fn counted(node: &NodeSegment, core: u16, values: [u64; COUNTERS], of_core: [u64; COUNTERS]) {
    if is_virtual(node) {
        return;
    }
    node.recorder().put(&Record::Counted { at: node.now(), core, values, of_core });
}

/// Record from now on, or no more; ranks to come, too.
pub fn switch(node: &NodeSegment, on: bool) {
    for rank in 0..node.header().ranks {
        let word = &node.rank(rank).monitor;
        if on {
            word.fetch_or(FOR_TRACE, Relaxed);
        } else {
            word.fetch_and(!FOR_TRACE, Relaxed);
        }
    }
}
