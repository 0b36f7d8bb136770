//! What a rank's queues say, for one who does not own them (the daemon): a look at memory that may be changing.
//!
//! Nothing read here is trusted: numbers are bounds-checked, loops are bounded, and what a rank that runs meanwhile changes may be
//! mixed. It is exact for a rank that stays SUSPENDED while it is read.

use super::queues::{QueueHead, Unexpected};
use super::request::{FLAG_AWAITED, FLAG_WAKE, NOBODY, Slot, state};
use crate::job::JobSegment;
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;
use crate::sched::RunState;
use crate::waits::{Unasked, WaitKind, WaitOn};

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
    /// Something that only the rank itself or its peer can go on with: data is on its way.
    pub moving: bool,
    pub unexpected: Vec<Unasked>,
    pub unexpected_count: u32,
}

fn head_of(job: &JobSegment, rank: u32) -> QueueHead {
    // SAFETY: mapped and aligned; plain integers, any value of which is valid.
    unsafe { job.parts(rank).head.read_volatile() }
}

/// Unexpected messages that `rank` holds.
pub fn unexpected(job: &JobSegment, rank: u32) -> u32 {
    head_of(job, rank).unexpected_count
}

/// How often `rank` has been switched in, if it is suspended with nothing in its inbox. What says so twice, with the same number, has not run in between.
pub fn is_suspended(node: &NodeSegment, job: &JobSegment, rank: u32) -> Option<u64> {
    let suspended = node.state(rank) == RunState::Suspended && node.rank(rank).wake.load(Ordering::SeqCst) == 0;
    (suspended && job.inbox(rank).is_quiet()).then(|| node.switches(rank))
}

/// Is data on its way to or from `rank`, or its wait over, as far as its queues know? Reads every request in use. Of several requests that it waits for
/// some may have been completed: that alone ends no wait.
pub fn is_moving(job: &JobSegment, rank: u32) -> bool {
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
    let mut seen = Seen { missing: head.wait_count, moving: is_moving(job, rank), ..Seen::default() };
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
    if head.direct_room != 0 || head.probe_active != 0 {
        let kind = if head.direct_room != 0 { WaitKind::Receive } else { WaitKind::Probe };
        let (context, peer, tag) = (head.probe_context, head.probe_source, head.probe_tag);
        let bytes = u64::from(head.direct_room.saturating_sub(1));
        seen.probe = Some(WaitOn { kind, context, peer, tag, bytes, ranks: Vec::new() });
    }
    seen.unexpected_count = head.unexpected_count;
    let at = job.parts(rank).unexpected.cast::<Unexpected>();
    let mut next = head.arrived.first;
    while next != 0 && next <= job.config().unexpected && seen.unexpected.len() < most {
        // SAFETY: inside the rank's array, which is mapped; plain integers.
        let entry: Unexpected = unsafe { at.add(next as usize - 1).read_volatile() };
        let envelope = &entry.envelope;
        seen.unexpected.push(Unasked {
            context: envelope.context,
            source: envelope.source,
            from: envelope.from,
            tag: envelope.tag,
            bytes: envelope.len,
        });
        next = entry.next_arrived;
    }
    seen
}

fn wait_of(slot: &Slot) -> WaitOn {
    let receive = slot.state == state::POSTED;
    WaitOn {
        kind: if receive { WaitKind::Receive } else { WaitKind::Send },
        context: slot.context,
        peer: if receive { slot.source } else { -1 },
        tag: slot.tag,
        bytes: slot.capacity,
        ranks: Some(slot.from).filter(|from| *from != NOBODY).into_iter().collect(),
    }
}
