//! Who watches an idle core, and how: the rank that is expected to run next, for a bounded time.
//!
//! A process switch between a message and its receiver costs more than the message. So the switch to the rank that ran next the last
//! time (the heir) is made in the idle time, and a rank that is its own heir, or alone on its core, watches without leaving it.
//!
//! SYNC H: whoever leaves mail to a spinner looks at the holder afterwards; whoever ends the spinning (the spinner, or the daemon
//! after a death) looks at the mail, and at the spinner's own, afterwards. Death story: a watch ends by itself after its patience; a spinner
//! that dies, and a rank that dies between naming an heir and telling it, are the daemon's: `rank_died` ends the spinning, and wakes all
//! who had left it something to do.

use super::carrier_bell::rouse_carrier;
use super::clocks::watched;
use super::dispatch::{dispatch, hand_over, take_next};
use super::idle_time::Watch;
use super::lease::REVOKED;
use super::permit::Release;
use super::wake::wake;
use super::{balance, policy, run_queue};
use crate::mem::sync::{AtomicU64, Ordering};
use crate::node::NodeSegment;
use crate::node::run_state::{CLAIMED, RunState, SPINNING, holder_word};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// Watch for the end of a wait that has not been published, so that nobody else can end it: without leaving the core, and only if this
/// rank would run next on it anyway (`None` otherwise). True if the wait is over; false: suspend, without watching again.
#[inline]
pub fn watch(node: &NodeSegment, me: u32, mut over: impl FnMut() -> bool) -> Option<bool> {
    runs_next_itself(node, me).then(|| watch_running(node, me, node.header().spin_ticks, &mut over))
}

/// Is this rank likely to be the next to run on its core? It is if it is alone there, or was the last time.
#[inline(always)]
pub(super) fn runs_next_itself(node: &NodeSegment, me: u32) -> bool {
    node.rank(me).expected_next.load(RELAXED) == me + 1 || node.core(node.core_of(me)).ranks.load(RELAXED) == 1
}

/// Watch for the end of the own wait without leaving the core, while nobody else is READY for it and for `patience` ticks at most.
/// True if the wait is over. Between two ranks that answer each other on two cores this saves them all that leaving and coming
/// back takes. The clocks count the time as waiting and the core as idle, as if the rank had left.
pub(super) fn watch_running(node: &NodeSegment, me: u32, patience: u64, over: &mut dyn FnMut() -> bool) -> bool {
    let (rank, core) = (node.rank(me), node.core(node.core_of(me)));
    let set = node.ready(node.core_of(me));
    let mut time = Watch::new(node, core, patience);
    let mut turns = 0u32;
    let mut ended = false;
    let spread = node.header().spread != 0;
    if spread {
        core.watched.store(1, RELAXED);
        rouse_carrier(node);
    }
    while run_queue::is_empty(set) {
        ended = over() || rank.wake.load(SEQ) != 0;
        if ended {
            // The line is one that senders look at: written only if need be.
            if rank.wake.load(SEQ) != 0 {
                rank.wake.store(0, SEQ);
            }
            break;
        }
        turns += 1;
        if time.rest() || turns.is_multiple_of(16) {
            let taken = rank.state.load(RELAXED) != RunState::Running.word();
            if taken || core.lease.load(SEQ) == REVOKED || time.is_over() {
                break;
            }
        }
    }
    if spread {
        core.watched.store(0, RELAXED);
    }
    if !ended {
        // Perhaps another rank comes first by now.
        rank.expected_next.store(0, RELAXED);
    }
    watched(node, me, time.start);
    ended
}

/// What a rank that spins on its idle core looks after.
pub(super) struct Idle<'a> {
    /// Is its own wait over, or has it got mail?
    pub(super) over: &'a mut dyn FnMut() -> bool,
    /// Match for a rank of the core that has got mail.
    pub(super) tend: &'a mut dyn FnMut(u32),
    /// For how many ticks to look.
    pub(super) patience: u64,
}

/// Do `then` for a rank that leaves its core without watching it.
pub(super) fn unwatched<R>(then: impl FnOnce(&mut Idle<'_>) -> R) -> R {
    then(&mut Idle { over: &mut || false, tend: &mut |_| {}, patience: 0 })
}

impl Idle<'_> {
    /// Look once: at this rank's own wait, and at the mail of the core's other ranks.
    #[inline]
    fn look(&mut self, node: &NodeSegment, me: u32, mail: &[AtomicU64]) {
        if (self.over)() {
            wake(node, me);
        }
        self.tend_all(mail);
    }

    #[inline]
    fn tend_all(&mut self, mail: &[AtomicU64]) {
        while let Some(rank) = run_queue::next_from(mail, 0) {
            if run_queue::remove(mail, rank) {
                (self.tend)(rank);
            }
        }
    }
}

/// `rank` of another core has got mail. If a rank of that core spins there, leave the tending to it: true.
#[inline]
pub fn leave_to_spinner(node: &NodeSegment, core: u32, rank: u32) -> bool {
    let holder = &node.core(core).holder;
    if holder.load(SEQ) != SPINNING {
        return false;
    }
    if node.core(core).spinner.load(SEQ) == rank {
        // SYNC H: it looks into its own inbox all the time, and once more after it has left SPINNING.
        return holder.load(SEQ) == SPINNING;
    }
    run_queue::insert(node.mail(core), rank);
    // SYNC H: the spinner looks into the set after it has left SPINNING.
    if holder.load(SEQ) == SPINNING {
        return true;
    }
    run_queue::remove(node.mail(core), rank);
    false
}

/// The rank that is to watch the idle core instead of `me`: the one that got it when `me` had left it idle the last time. If that is
/// right again, the switch to it lies in the idle time and not between a message and its receiver.
#[inline]
pub(super) fn expected_next(node: &NodeSegment, me: u32, core: u32) -> Option<u32> {
    let expected_next = node.rank(me).expected_next.load(RELAXED).checked_sub(1)?;
    let there = expected_next != me
        && expected_next < node.header().ranks
        && node.core_of(expected_next) == core
        && node.rank(expected_next).state.load(SEQ) == RunState::Suspended.word();
    there.then_some(expected_next)
}

/// Idle core, and this rank watches: its own wait, the run queue and the core's mail, for a bounded time.
pub(super) fn spin(node: &NodeSegment, me: u32, core: u32, idle: &mut Idle<'_>) -> Release {
    let descriptor = node.core(core);
    let (set, mail) = (node.ready(core), node.mail(core));
    let mut time = Watch::new(node, descriptor, idle.patience);
    if node.header().spread != 0 {
        rouse_carrier(node);
    }
    let mut turns = 0u32;
    loop {
        if (idle.over)() {
            break;
        }
        idle.tend_all(mail);
        if !run_queue::is_empty(set) {
            break;
        }
        turns += 1;
        if time.rest() || turns.is_multiple_of(16) {
            if time.is_over() || descriptor.lease.load(SEQ) == REVOKED || balance::could_steal(node, core) {
                break;
            }
            if descriptor.holder.load(SEQ) != SPINNING {
                idle.look(node, me, mail); // SYNC H: the daemon has ended the spinning
                return Release::Alone;
            }
        }
    }
    // The core is still ours to give away unless the daemon declared us dead.
    if descriptor.spinner.load(SEQ) != me || descriptor.holder.compare_exchange(SPINNING, CLAIMED, SEQ, SEQ).is_err() {
        idle.look(node, me, mail);
        return Release::Alone;
    }
    idle.tend_all(mail); // SYNC H: what was left to us just before
    if (idle.over)() {
        // SYNC H, too. The common case: straight back to work.
        if policy::of(node).spinner_first() && take_back(node, me, core) {
            return Release::Back;
        }
        wake(node, me);
    }
    end_idle(node, me, core)
}

/// The rank that has claimed its idle core takes it for itself: READY, in no queue, and holder. False if somebody tends it or has
/// made it READY, or another job is to have the core. It becomes RUNNING where all do, after it has been counted: whoever then takes
/// the core from it counts it out.
#[inline]
fn take_back(node: &NodeSegment, me: u32, core: u32) -> bool {
    let (descriptor, rank) = (node.core(core), node.rank(me));
    if descriptor.lease.load(SEQ) == REVOKED
        || rank.state.compare_exchange(RunState::Suspended.word(), RunState::Ready.word(), SEQ, SEQ).is_err()
    {
        return false;
    }
    descriptor.last.store(me, RELAXED);
    note_heir(node, core, me);
    let now = node.now();
    rank.ready_at.store(now, RELAXED);
    descriptor.granted_at.store(now, RELAXED);
    descriptor.holder.store(holder_word(me), SEQ);
    true
}

/// `next` gets the core that was idle: the rank that had left it so is told for the next time.
#[inline]
fn note_heir(node: &NodeSegment, core: u32, next: u32) {
    let idler = node.core(core).idler.load(RELAXED);
    if idler < node.header().ranks {
        node.rank(idler).expected_next.store(next + 1, RELAXED);
    }
}

/// The core, idle until now and claimed by its spinner, goes to a READY rank if there is one: to `me` first, if the policy allows.
fn end_idle(node: &NodeSegment, me: u32, core: u32) -> Release {
    let descriptor = node.core(core);
    let revoked = descriptor.lease.load(SEQ) == REVOKED;
    let next = if revoked {
        None
    } else if policy::of(node).spinner_first() && run_queue::remove(node.ready(core), me) {
        descriptor.last.store(me, RELAXED);
        Some(me)
    } else {
        take_next(node, core)
    };
    if let Some(next) = next {
        note_heir(node, core, next);
        descriptor.granted_at.store(node.now(), RELAXED);
        if hand_over(node, core, next) {
            return if next == me { Release::Alone } else { Release::Passed };
        }
    }
    dispatch(node, core);
    Release::Alone
}
