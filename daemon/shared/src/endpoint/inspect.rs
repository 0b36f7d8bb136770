//! What a rank's queues say, for one who does not own them (the daemon): a look at memory that may be changing.
//!
//! Nothing read here is trusted: numbers are bounds-checked, loops are bounded, and what a rank that runs meanwhile changes may be
//! mixed. It is exact for a rank that stays SUSPENDED while it is read.

use crate::job::JobSegment;
use crate::matching::queues::{HOLDS, LEAST_UNEXPECTED_LIMIT, QueueHead, Unexpected, each_unexpected};
use crate::matching::request::{ASKED, FLAG_AWAITED, FLAG_CROWDED, FLAG_WAKE, NOBODY, Slot, state};
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;
use crate::sched::{RunState, Wait};
use crate::waits::{Crowd, Unasked, WaitKind, WaitOn};
use std::collections::BTreeMap;

/// What a rank has under way.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Messages that it waits for, the first of them.
    pub awaited: Vec<WaitOn>,
    /// How many there are in all.
    pub awaited_count: u32,
    /// How many of them must complete.
    pub missing: u32,
    /// A blocking probe, or a receive without a request.
    pub probe: Option<WaitOn>,
    pub unexpected: Vec<Unasked>,
    pub unexpected_count: u32,
    pub crowd: Option<Crowd>,
}

fn head_of(job: &JobSegment, rank: u32) -> QueueHead {
    // SAFETY: mapped and aligned; plain integers, any value of which is valid.
    unsafe { job.parts(rank).head.read_volatile() }
}

/// Unexpected messages that `rank` holds.
pub fn unexpected(job: &JobSegment, rank: u32) -> u32 {
    head_of(job, rank).unexpected_count
}

/// Requests that `rank` has in use.
pub fn requests(job: &JobSegment, rank: u32) -> u32 {
    head_of(job, rank).slots_live.min(job.config().slots)
}

/// What `rank` holds, and the memory for that, if it holds many messages. Reads each of them.
pub fn crowd(job: &JobSegment, rank: u32) -> Option<Crowd> {
    let head = head_of(job, rank);
    if head.unexpected_count < LEAST_UNEXPECTED_LIMIT {
        return None;
    }
    // SAFETY: the segment outlives it, and it is only looked at.
    let store = unsafe { job.parts(rank).store() };
    let mut senders: BTreeMap<u32, u32> = BTreeMap::new();
    let mut bytes = 0u64;
    each_unexpected(&head, &store, |Unexpected { envelope, .. }| {
        *senders.entry(envelope.from).or_default() += 1;
        bytes = bytes.saturating_add(envelope.len);
        true
    });
    let (mostly, of_these) = senders.into_iter().max_by_key(|(_, count)| *count)?;
    let (used_bytes, limit_bytes) = job.chunks().used_bytes();
    let messages = head.unexpected_count;
    Some(Crowd {
        rank,
        messages,
        bytes,
        mostly,
        of_these,
        used_bytes,
        limit_bytes,
        stuck: is_stuck_by(job, rank, &head),
    })
}

/// The crowd of the rank that holds most messages.
pub fn largest_crowd(job: &JobSegment) -> Option<Crowd> {
    crowd(job, (0..job.ranks_in_use()).max_by_key(|rank| head_of(job, *rank).unexpected_count)?)
}

/// Is the next message for `rank` one for which memory has ended?
pub fn is_stuck(job: &JobSegment, rank: u32) -> bool {
    is_stuck_by(job, rank, &head_of(job, rank))
}

fn is_stuck_by(job: &JobSegment, rank: u32, head: &QueueHead) -> bool {
    declines(job, rank, head) && head.roomy == 0 && job.chunks().is_exhausted()
}

/// Is there a message in the inbox of `rank` that found no memory when somebody last looked?
pub fn has_declined(job: &JobSegment, rank: u32) -> bool {
    declines(job, rank, &head_of(job, rank))
}

fn declines(job: &JobSegment, rank: u32, head: &QueueHead) -> bool {
    let inbox = job.inbox(rank);
    head.declined != 0 && head.declined_at == inbox.gone() as u32 && inbox.has_mail()
}

/// How often `rank` has been switched in, if it is suspended with nothing in its inbox, or nothing that it can take. What says so twice, with the same number, has not run in between.
pub fn is_suspended(node: &NodeSegment, job: &JobSegment, rank: u32) -> Option<u64> {
    let suspended = node.state(rank) == RunState::Suspended && node.rank(rank).wake.load(Ordering::SeqCst) == 0;
    let quiet = || job.inbox(rank).is_quiet() || is_stuck(job, rank);
    (suspended && quiet()).then(|| node.switches(rank))
}

/// Is data on its way to or from `rank`, or its wait over, as far as its queues know? Reads every request in use. Of several requests that it waits for
/// some may have been completed: that alone ends no wait.
pub fn is_moving(node: &NodeSegment, job: &JobSegment, rank: u32) -> bool {
    let descriptor = node.rank(rank);
    if descriptor.wait_kind.load(Ordering::SeqCst) == Wait::Space as u32 {
        // It goes on with anything else only when there is room.
        let to = descriptor.wait_operand.load(Ordering::SeqCst);
        return to < job.ranks_in_use() && job.inbox(to).has_space();
    }
    let head = head_of(job, rank);
    head.service.first != 0
        || head.is_stirred()
        || slots(job, rank, &head).any(|slot| matches!(slot.state, state::TO_PULL | state::PULLING | state::TO_PUSH))
}

fn slots(job: &JobSegment, rank: u32, head: &QueueHead) -> impl Iterator<Item = Slot> {
    let at = job.parts(rank).slots.cast::<Slot>();
    let used = head.slots_used.min(job.config().slots);
    // SAFETY: inside the rank's array of slots, which is mapped; plain integers.
    (0..used).map(move |index| unsafe { at.add(index as usize).read_volatile() })
}

/// Look at the queues of `rank`; lists have at most `most` entries.
pub fn look(job: &JobSegment, rank: u32, most: usize) -> Seen {
    let head = head_of(job, rank);
    let mut seen = Seen { missing: head.wait_count, ..Seen::default() };
    let open = |slot: &Slot| matches!(slot.state, state::POSTED | state::SENT);
    let with = |flag: u32| move |slot: &Slot| open(slot) && slot.flags & flag != 0;
    // Of several threads, and for nonblocking collectives, what would wake the rank.
    let flag = if slots(job, rank, &head).any(|slot| with(FLAG_AWAITED)(&slot)) { FLAG_AWAITED } else { FLAG_WAKE };
    for slot in slots(job, rank, &head).filter(with(flag)) {
        seen.awaited_count += 1;
        if seen.awaited.len() < most {
            seen.awaited.push(wait_of(&slot));
        }
    }
    let direct = head.direct_room != 0 && head.direct_room != HOLDS;
    if direct || head.probe_active != 0 {
        let kind = if direct { WaitKind::Receive } else { WaitKind::Probe };
        let (context, peer, tag) = (head.probe_context, head.probe_source, head.probe_tag);
        let bytes = if direct { u64::from(head.direct_room - 1) } else { 0 };
        seen.probe = Some(WaitOn { kind, context, peer, tag, bytes, ..WaitOn::default() });
    }
    seen.unexpected_count = head.unexpected_count;
    // SAFETY: the segment outlives it, and it is only looked at.
    let store = unsafe { job.parts(rank).store() };
    each_unexpected(&head, &store, |Unexpected { envelope, .. }| {
        seen.unexpected.push(Unasked {
            context: envelope.context,
            source: envelope.source,
            from: envelope.from,
            tag: envelope.tag,
            bytes: envelope.len,
        });
        seen.unexpected.len() < most
    });
    seen.crowd = crowd(job, rank);
    seen
}

fn wait_of(slot: &Slot) -> WaitOn {
    let receive = slot.state == state::POSTED;
    if !receive && (slot.context, slot.tag) == ASKED {
        // Who keeps the answer from coming is not known here: of a lock it is whoever has it.
        return WaitOn { kind: WaitKind::Window, peer: slot.source, tag: -2, ..WaitOn::default() };
    }
    WaitOn {
        kind: if receive { WaitKind::Receive } else { WaitKind::Send },
        context: slot.context,
        peer: if receive { slot.source } else { -1 },
        tag: slot.tag,
        bytes: slot.capacity,
        crowded: !receive && slot.flags & FLAG_CROWDED != 0,
        ranks: Some(slot.from).filter(|from| *from != NOBODY).into_iter().collect(),
    }
}
