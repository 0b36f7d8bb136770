//! Who watches an idle core, and how: the rank that is expected to run next, for a bounded time.
//!
//! A process switch between a message and its receiver costs more than the message. So the switch to the rank that ran next the last
//! time (the heir) is made in the idle time, and a rank that is its own heir, or alone on its core, watches without leaving it.
//!
//! SYNC H: whoever leaves mail to a spinner looks at the holder afterwards; whoever ends the spinning (the spinner, or the daemon
//! after a death) looks at the mail, and at the spinner's own, afterwards. Death story: a watch ends by itself after its patience; a spinner
//! that dies, and a rank that dies between naming an heir and telling it, are the daemon's: `rank_died` ends the spinning, and wakes all
//! who had left it something to do.

use super::baton::{Left, dispatch, hand_over, take_next, wake};
use super::clocks::watched;
use super::lease::REVOKED;
use super::run_state::{CLAIMED, IDLE, RunState, SPINNING, holder_word};
use super::{balance, policy, run_queue};
use crate::mem::sync::{AtomicU64, Ordering, spin_loop, yield_cpu};
use crate::node::{CoreDescriptor, NodeSegment, Post};

const SEQ: Ordering = Ordering::SeqCst;
const RELAXED: Ordering = Ordering::Relaxed;

/// Values of `CoreDescriptor::idles`: the last idle time that nobody watched to its end was long, or not known; it was short enough to be
/// watched; it was too long although those before were short.
const LONG: u32 = 0;
const SHORT: u32 = 1;
const MISJUDGED: u32 = 2;

/// How long to watch a core: for its patience; if its idle times lately were short, for `long_ticks`. A wake-up costs 10 to 30 times as much
/// as a hand-over, and the longer a CPU has slept the more. So in a ring of 32 ranks on two cores, each of which is idle for 80 us of each
/// round, a hop took 6.4 us when cores were watched for 60 us, and takes 4.5.
struct Watch<'a> {
    node: &'a NodeSegment,
    core: &'a CoreDescriptor,
    start: u64,
    patience: u64,
    long: bool,
}

impl<'a> Watch<'a> {
    fn new(node: &'a NodeSegment, core: &'a CoreDescriptor, patience: u64) -> Self {
        Watch { node, core, start: node.now(), patience, long: false }
    }

    /// Between two looks. True if that took long.
    #[inline]
    fn rest(&self) -> bool {
        if self.long {
            // Threads and programs that want this CPU, too, do not wait for a time slice.
            yield_cpu();
            return true;
        }
        rest(self.node)
    }

    fn is_over(&mut self) -> bool {
        if self.node.now().saturating_sub(self.start) < self.patience {
            return false;
        }
        let idles = &self.core.idles;
        if self.long {
            idles.store(MISJUDGED, RELAXED);
        } else if self.patience > 0 && idles.load(RELAXED) == SHORT {
            (self.long, self.patience) = (true, self.node.header().long_ticks.max(self.patience));
            return false;
        }
        true
    }
}

/// A core that nobody watches gets work.
#[cold]
pub(super) fn note_work(node: &NodeSegment, core: u32) {
    let descriptor = node.core(core);
    let idle = node.now().saturating_sub(descriptor.released_at.load(RELAXED));
    let short = idle < node.header().long_ticks && descriptor.idles.load(RELAXED) != MISJUDGED;
    descriptor.idles.store(if short { SHORT } else { LONG }, RELAXED);
}

/// Watch for the end of a wait that has not been published, so that nobody else can end it: without leaving the core, and only if this
/// rank would run next on it anyway (`None` otherwise). True if the wait is over; false: suspend, without watching again.
#[inline]
pub fn watch(node: &NodeSegment, me: u32, mut over: impl FnMut() -> bool) -> Option<bool> {
    runs_next_itself(node, me).then(|| watch_running(node, me, node.header().spin_ticks, &mut over))
}

/// Is this rank likely to be the next to run on its core? It is if it is alone there, or was the last time.
#[inline(always)]
pub(super) fn runs_next_itself(node: &NodeSegment, me: u32) -> bool {
    node.rank(me).heir.load(RELAXED) == me + 1 || node.core(node.core_of(me)).ranks.load(RELAXED) == 1
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
        rank.heir.store(0, RELAXED);
    }
    watched(node, me, time.start);
    ended
}

/// Between two looks. True if that took long: in a job of several nodes the carrier, which brings what is waited for, may need this CPU.
#[inline]
fn rest(node: &NodeSegment) -> bool {
    let carried = node.header().spread != 0 && node.post().asleep.load(RELAXED) == Post::AWAKE;
    if carried {
        yield_cpu();
    } else {
        spin_loop();
    }
    carried
}

/// A core of a job of several nodes waits from now on: its carrier may look on, if it sleeps only because none did.
fn rouse_carrier(node: &NodeSegment) {
    ring_if(node, |sleep| matches!(sleep, Post::DOZING | Post::CALLED));
}

/// A rank leaves a core: its carrier, should it have been called, need not wait any longer for more.
#[inline]
pub(super) fn hurry_carrier(node: &NodeSegment) {
    if node.header().spread != 0 {
        ring_if(node, |sleep| sleep == Post::CALLED);
    }
}

#[inline(never)]
fn ring_if(node: &NodeSegment, so: impl Fn(u32) -> bool) {
    let asleep = &node.post().asleep;
    let sleep = asleep.load(RELAXED);
    if so(sleep)
        && asleep.compare_exchange(sleep, Post::AWAKE, SEQ, SEQ).is_ok()
        && let Some(bell) = node.carrier_bell()
    {
        bell.ring();
    }
}

/// Does nobody run on the core of `cpu`? Whoever takes that CPU then takes it from no rank that has work; false also for one that is
/// another job's. True for a CPU that is none of the job's.
pub fn is_idle(node: &NodeSegment, cpu: u32) -> bool {
    let mut cores = (0..node.header().cores).map(|core| node.core(core)).filter(|core| core.cpu.load(RELAXED) == cpu);
    cores.all(waits)
}

/// Does somebody run on every core, so that a rank which became READY now would have to wait?
pub fn all_run(node: &NodeSegment) -> bool {
    !(0..node.header().cores).map(|core| node.core(core)).any(waits)
}

/// Does a core have nobody who works, though it may have one who watches?
fn waits(core: &CoreDescriptor) -> bool {
    matches!(core.holder.load(RELAXED), IDLE | SPINNING) || core.watched.load(RELAXED) != 0
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
pub(super) fn heir(node: &NodeSegment, me: u32, core: u32) -> Option<u32> {
    let heir = node.rank(me).heir.load(RELAXED).checked_sub(1)?;
    let there = heir != me
        && heir < node.header().ranks
        && node.core_of(heir) == core
        && node.rank(heir).state.load(SEQ) == RunState::Suspended.word();
    there.then_some(heir)
}

/// Idle core, and this rank watches: its own wait, the run queue and the core's mail, for a bounded time.
pub(super) fn spin(node: &NodeSegment, me: u32, core: u32, idle: &mut Idle<'_>) -> Left {
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
                return Left::Alone;
            }
        }
    }
    // The core is still ours to give away unless the daemon declared us dead.
    if descriptor.spinner.load(SEQ) != me || descriptor.holder.compare_exchange(SPINNING, CLAIMED, SEQ, SEQ).is_err() {
        idle.look(node, me, mail);
        return Left::Alone;
    }
    idle.tend_all(mail); // SYNC H: what was left to us just before
    if (idle.over)() {
        // SYNC H, too. The common case: straight back to work.
        if policy::of(node).spinner_first() && take_back(node, me, core) {
            return Left::Back;
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
        node.rank(idler).heir.store(next + 1, RELAXED);
    }
}

/// The core, idle until now and claimed by its spinner, goes to a READY rank if there is one: to `me` first, if the policy allows.
fn end_idle(node: &NodeSegment, me: u32, core: u32) -> Left {
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
            return if next == me { Left::Alone } else { Left::Passed };
        }
    }
    dispatch(node, core);
    Left::Alone
}

/// A rank that has been told to spin where it cannot (it was taken from its core, and waits to get it back): the core goes to
/// whoever is READY.
#[cold]
pub(super) fn decline_spin(node: &NodeSegment, me: u32) {
    let core = node.core_of(me);
    let descriptor = node.core(core);
    if descriptor.spinner.load(SEQ) == me && descriptor.holder.compare_exchange(SPINNING, CLAIMED, SEQ, SEQ).is_ok() {
        wake_all_with_mail(node, core); // SYNC H
        dispatch(node, core);
    }
}

/// Nobody tends for the ranks that have got mail: let them look for themselves.
pub(super) fn wake_all_with_mail(node: &NodeSegment, core: u32) {
    let mail = node.mail(core);
    while let Some(rank) = run_queue::next_from(mail, 0) {
        if run_queue::remove(mail, rank) && rank < node.header().ranks {
            wake(node, rank);
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::node::NodeConfig;

    #[test]
    fn short_idle_times_are_watched_to_their_end() {
        let node = NodeSegment::private(&NodeConfig::on_one_core(0, 2));
        let (core, long) = (node.core(0), node.header().long_ticks);
        let idle_for = |ticks: u64| {
            core.released_at.store(node.now() - ticks, RELAXED);
            note_work(&node, 0);
            core.idles.load(RELAXED)
        };
        let watched_for = |patience: u64| {
            let mut watch = Watch::new(&node, core, patience);
            while !watch.is_over() {
                watch.rest();
            }
            node.now() - watch.start
        };
        // Another program may take the CPU meanwhile.
        let quickest = |patience: u64| (0..20).map(|_| watched_for(patience)).min();
        assert_eq!(idle_for(2 * long), LONG);
        assert!(quickest(1000) < Some(long));
        assert_eq!(idle_for(long / 2), SHORT);
        assert!(quickest(0) < Some(long), "who has watched already does not do so again");
        assert!(watched_for(1000) >= long);
        // That was in vain: the time ends soon after, and would not have been short.
        assert_eq!(idle_for(long / 2), LONG);
        assert!(quickest(1000) < Some(long));
        assert_eq!(idle_for(long / 2), SHORT);
    }
}
