//! Which READY rank runs next.
//!
//! A policy that prefers some ranks to others gives one turn in [`FAIR`] to the rank that has been READY longest. So with k ranks
//! READY on a core none waits for more than k times [`FAIR`] hand-overs.

use super::run_queue;
use crate::control;
use crate::mem::sync::Ordering::Relaxed;
use crate::node::NodeSegment;
use crate::node::run_state::{RunState, Wait};

/// Of so many turns of a policy that prefers some ranks, one is by age alone.
const FAIR: u32 = 16;

/// Ranks at which `priority` looks for one choice: what it costs is bounded, also in a job of thousands.
const LOOKS: u32 = 256;

/// A scheduling policy: a choice among the READY ranks of one core.
pub trait Policy: Sync {
    /// The rank to run next on `core`, or none if none is READY. It is only a proposal: the caller takes it from the queue.
    fn next(&self, node: &NodeSegment, core: u32) -> Option<u32>;

    /// May the rank that spins on the idle core go on before the others that became READY with it? That saves switching
    /// to one of them and back.
    fn spinner_first(&self) -> bool {
        true
    }

    /// May the kernel choose among the READY ranks that have not parked, where it is the turn of `next`? It takes them in turn, too, though
    /// not in rank order, and nobody has to be woken.
    fn kernel_may_choose(&self, _node: &NodeSegment, _next: u32) -> bool {
        false
    }
}

/// Round robin in rank order, from the rank that ran last.
struct RoundRobin;

impl Policy for RoundRobin {
    #[inline(always)]
    fn next(&self, node: &NodeSegment, core: u32) -> Option<u32> {
        let last = node.core(core).last.load(Relaxed);
        run_queue::next_from(node.ready(core), last.wrapping_add(1))
    }

    /// Not if this rank has just made the next one READY and sends to nobody else: what goes in the order of the ranks gathers on its way. Where ranks
    /// exchange with several neighbours nothing gathers, and each hand-over by name costs a wake-up, or a turn of each awake rank that the
    /// kernel runs first.
    #[inline]
    fn kernel_may_choose(&self, node: &NodeSegment, next: u32) -> bool {
        node.actor()
            .is_none_or(|me| node.rank(me).follower.load(Relaxed) != next + 1 || !node.send_pattern().is_one_way())
    }
}

/// Whoever has been READY longest.
struct Fifo;

impl Policy for Fifo {
    fn next(&self, node: &NodeSegment, core: u32) -> Option<u32> {
        run_queue::members(node.ready(core)).min_by_key(|rank| ready_at(node, *rank).unwrap_or(0))
    }

    fn spinner_first(&self) -> bool {
        false
    }
}

/// Whoever has become READY last: what it needs is most likely in the cache.
struct Lifo;

impl Policy for Lifo {
    fn next(&self, node: &NodeSegment, core: u32) -> Option<u32> {
        if is_fair_turn(node, core) {
            return Fifo.next(node, core);
        }
        // A rank that lets others run has become READY last, but is not who is to run.
        let age = |rank: &u32| (node.actor() != Some(*rank), ready_at(node, *rank).unwrap_or(u64::MAX));
        run_queue::members(node.ready(core)).max_by_key(age)
    }
}

/// The rank for which most suspended ranks wait, of several the one that has been READY longest.
///
/// Whom a rank waits for is what it tells `vmpictl`: the peer of its first open message, by its number in the communicator. So in other
/// communicators than MPI_COMM_WORLD, and for all but the first of several messages, this is a guess; a wrong one costs nothing but order.
struct Priority;

impl Policy for Priority {
    fn next(&self, node: &NodeSegment, core: u32) -> Option<u32> {
        let set = node.ready(core);
        let mut ready = run_queue::members(set);
        let first = ready.next()?;
        if ready.next().is_none() {
            return Some(first);
        }
        if is_fair_turn(node, core) {
            return Fifo.next(node, core);
        }
        let waiting = waiting_for(node, core);
        // Numbers beyond the ranks are scribbles: first, so that the caller takes them out and drops them.
        let rank = |rank: &u32| match ready_at(node, *rank) {
            Some(at) => (waiting[(*rank % LOOKS) as usize], u64::MAX - at),
            None => (u16::MAX, u64::MAX),
        };
        run_queue::members(set).max_by_key(rank)
    }

    fn spinner_first(&self) -> bool {
        false
    }
}

/// How many suspended ranks wait for each rank, by its number modulo [`LOOKS`]. In larger jobs only the ranks around those of the
/// core are asked.
fn waiting_for(node: &NodeSegment, core: u32) -> [u16; LOOKS as usize] {
    let mut waiting = [0u16; LOOKS as usize];
    let ranks = node.header().ranks;
    let start = node.core(core).last.load(Relaxed).saturating_sub(LOOKS / 2).min(ranks.saturating_sub(LOOKS));
    for rank in start..ranks.min(start + LOOKS) {
        let descriptor = node.rank(rank);
        if !matches!(RunState::from_word(descriptor.state.load(Relaxed)), RunState::Suspended | RunState::Tended) {
            continue;
        }
        let for_room = descriptor.wait_kind.load(Relaxed) == Wait::Space as u32;
        let peer = match for_room {
            true => Some(descriptor.wait_operand.load(Relaxed)),
            false => u32::try_from(descriptor.peer.load(Relaxed)).ok(),
        };
        if let Some(peer) = peer.filter(|peer| *peer != rank) {
            waiting[(peer % LOOKS) as usize] += 1;
        }
    }
    waiting
}

/// The rank that the one which gives the core up has made READY last: a send runs its receiver next. Otherwise as round robin.
struct Follow;

impl Policy for Follow {
    fn next(&self, node: &NodeSegment, core: u32) -> Option<u32> {
        if is_fair_turn(node, core) {
            return Fifo.next(node, core);
        }
        let follower = node.actor().and_then(|me| node.rank(me).follower.load(Relaxed).checked_sub(1));
        follower.filter(|rank| run_queue::contains(node.ready(core), *rank)).or_else(|| RoundRobin.next(node, core))
    }
}

/// The rank that has drawn the highest lot, of several the one that has been READY longest.
///
/// A lot is drawn by the rank itself in its calls of MPI, so the order follows from what ranks do and not from when. Lots are few, and each rank that runs
/// draws again: nobody waits for ever.
struct Drawn;

impl Policy for Drawn {
    fn next(&self, node: &NodeSegment, core: u32) -> Option<u32> {
        // Numbers beyond the ranks are scribbles: first, so that the caller takes them out and drops them.
        let lot = |rank: &u32| match ready_at(node, *rank) {
            Some(at) => (node.rank(*rank).lot().load(Relaxed), u64::MAX - at),
            None => (u64::MAX, u64::MAX),
        };
        run_queue::members(node.ready(core)).max_by_key(lot)
    }

    fn spinner_first(&self) -> bool {
        false
    }
}

/// When a rank became READY; none for numbers that are no rank's, which only a scribbler writes.
fn ready_at(node: &NodeSegment, rank: u32) -> Option<u64> {
    (rank < node.header().ranks).then(|| node.rank(rank).ready_at.load(Relaxed))
}

/// Is the turn that is to be given one that goes by age? However often it is asked, the answer for a turn is the same: a hand-over asks more than once.
fn is_fair_turn(node: &NodeSegment, core: u32) -> bool {
    node.core(core).handoffs.load(Relaxed).wrapping_add(1).is_multiple_of(u64::from(FAIR))
}

/// The rank to run next on `core`, by the node's policy.
#[inline(always)]
pub(super) fn next(node: &NodeSegment, core: u32) -> Option<u32> {
    if is_round_robin(node) { RoundRobin.next(node, core) } else { next_of_others(node, core) }
}

/// May the kernel choose instead of `next`?
#[inline]
pub(super) fn kernel_may_choose(node: &NodeSegment, next: u32) -> bool {
    if is_round_robin(node) { RoundRobin.kernel_may_choose(node, next) } else { others_let_choose(node, next) }
}

#[cold]
fn next_of_others(node: &NodeSegment, core: u32) -> Option<u32> {
    answering(node, core).or_else(|| of(node).next(node, core))
}

#[cold]
fn others_let_choose(node: &NodeSegment, next: u32) -> bool {
    node.header().answers_first == 0 && of(node).kernel_may_choose(node, next)
}

/// Under any policy, where ranks take part in handshakes themselves: one that only has to answer and then waits on. In its turn, behind ranks that compute,
/// its message would not move meanwhile, and there would be nothing to compute when they wait. It has answered before it is made READY for the
/// next time, so it keeps nobody from running.
fn answering(node: &NodeSegment, core: u32) -> Option<u32> {
    if node.header().answers_first == 0 {
        return None;
    }
    run_queue::members(node.ready(core)).find(|rank| run_queue::contains(node.answering(), *rank))
}

/// This rank is made READY: only to answer?
#[inline]
pub(crate) fn note_answering(node: &NodeSegment, rank: u32, only_answers: bool) {
    if node.header().answers_first != 0 {
        if only_answers {
            run_queue::insert(node.answering(), rank);
        } else {
            run_queue::remove(node.answering(), rank);
        }
    }
}

/// The usual policy, which is asked without a call: every hand-over asks.
#[inline]
fn is_round_robin(node: &NodeSegment) -> bool {
    node.header().policy == control::Policy::Rr as u32 && node.header().answers_first == 0
}

/// The policy of a node.
pub fn of(node: &NodeSegment) -> &'static dyn Policy {
    const FIFO: u32 = control::Policy::Fifo as u32;
    const LIFO: u32 = control::Policy::Lifo as u32;
    const PRIORITY: u32 = control::Policy::Priority as u32;
    const FOLLOW: u32 = control::Policy::Follow as u32;
    const DRAWN: u32 = control::Policy::Drawn as u32;
    match node.header().policy {
        FIFO => &Fifo,
        LIFO => &Lifo,
        PRIORITY => &Priority,
        FOLLOW => &Follow,
        DRAWN => &Drawn,
        _ => &RoundRobin,
    }
}

/// This process makes `rank` READY.
#[inline(always)]
pub(super) fn note_ready(node: &NodeSegment, rank: u32) {
    const WANT: [u32; 2] = [control::Policy::Follow as u32, control::Policy::Rr as u32];
    if WANT.contains(&node.header().policy)
        && let Some(me) = node.actor()
    {
        node.rank(me).follower.store(rank + 1, Relaxed);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::mem::sync::Ordering::SeqCst;
    use crate::node::NodeConfig;

    /// `ranks` ranks of one core, all READY, the first one first, as `rank 0` sees them.
    fn node(ranks: u32, policy: control::Policy) -> NodeSegment {
        let config = NodeConfig { policy, ..NodeConfig::on_one_core(0, ranks) };
        let mut node = NodeSegment::create(&config).unwrap();
        node.set_actor(0);
        for rank in 0..ranks {
            make_ready(&node, rank, u64::from(rank) + 1);
        }
        node
    }

    fn make_ready(node: &NodeSegment, rank: u32, at: u64) {
        node.rank(rank).state.store(RunState::Ready.word(), SeqCst);
        node.rank(rank).ready_at.store(at, SeqCst);
        run_queue::insert(node.ready(0), rank);
    }

    fn choose(node: &NodeSegment) -> Option<u32> {
        of(node).next(node, 0)
    }

    #[test]
    fn each_chooses_as_its_name_says() {
        use control::Policy as P;
        for (policy, wanted) in [(P::Rr, 2), (P::Fifo, 0), (P::Lifo, 4), (P::Priority, 0), (P::Follow, 2)] {
            let node = node(5, policy);
            node.core(0).last.store(1, SeqCst);
            assert_eq!(choose(&node), Some(wanted), "{policy:?}");
            (0..5).for_each(|rank| assert!(run_queue::remove(node.ready(0), rank)));
            assert_eq!(choose(&node), None, "{policy:?}");
        }
        assert_eq!(P::NAMES.map(|(name, policy)| policy.name() == name), [true; 5]);
    }

    /// Whom a rank has made READY in an earlier turn says nothing about this one: with a barrier after a ring, every rank woke the next one otherwise.
    #[test]
    fn a_receiver_is_followed_in_the_turn_of_its_message() {
        let node = node(3, control::Policy::Rr);
        note_ready(&node, 1);
        assert!(!kernel_may_choose(&node, 1), "it has just been made READY");
        assert!(kernel_may_choose(&node, 2));
        super::super::release::run_at(&node, 0, node.now());
        assert!(kernel_may_choose(&node, 1), "that was another turn");
    }

    /// Where ranks exchange with neighbours nothing gathers by following one of them.
    #[test]
    fn only_who_sends_one_way_is_followed() {
        let node = node(3, control::Policy::Rr);
        let follows_after = |sends: &[u32]| {
            sends.iter().for_each(|to| node.send_pattern().note_send(*to));
            note_ready(&node, 1);
            !kernel_may_choose(&node, 1)
        };
        assert!(follows_after(&[1; 100]));
        assert!(!follows_after(&[2, 1]));
    }

    #[test]
    fn who_lets_others_run_is_not_chosen_as_the_last_one() {
        let node = node(3, control::Policy::Lifo);
        make_ready(&node, 0, 100);
        assert_eq!(choose(&node), Some(2));
        for rank in [1, 2] {
            run_queue::remove(node.ready(0), rank);
        }
        assert_eq!(choose(&node), Some(0), "there is nobody else");
    }

    #[test]
    fn who_only_answers_goes_first_under_any_policy() {
        for (_, policy) in control::Policy::NAMES {
            let first = |answers_first| {
                let config = NodeConfig { policy, answers_first, ..NodeConfig::on_one_core(0, 5) };
                let mut node = NodeSegment::create(&config).unwrap();
                node.set_actor(0);
                (0..5).for_each(|rank| make_ready(&node, rank, u64::from(rank) + 1));
                note_answering(&node, 3, true);
                let first = super::next(&node, 0);
                note_answering(&node, 3, false);
                (first, super::next(&node, 0))
            };
            let (usual, again) = first(false);
            assert!(usual == again && usual != Some(3), "{policy:?} {usual:?}");
            assert_eq!(first(true), (Some(3), usual), "{policy:?}");
        }
    }

    #[test]
    fn priority_goes_to_whom_most_wait_for() {
        let node = node(6, control::Policy::Priority);
        for (waiter, peer) in [(3, 2), (4, 1), (5, 1)] {
            run_queue::remove(node.ready(0), waiter);
            node.rank(waiter).state.store(RunState::Suspended.word(), SeqCst);
            node.rank(waiter).peer.store(peer, SeqCst);
        }
        assert_eq!(choose(&node), Some(1));
        node.rank(4).peer.store(-1, SeqCst);
        // As many for 1 as for 2: by age.
        assert_eq!(choose(&node), Some(1));
        node.rank(4).wait_kind.store(Wait::Space as u32, SeqCst);
        node.rank(4).wait_operand.store(2, SeqCst);
        assert_eq!(choose(&node), Some(2));
    }

    #[test]
    fn follow_goes_to_whom_the_last_one_woke() {
        let node = node(5, control::Policy::Follow);
        note_ready(&node, 3);
        assert_eq!(choose(&node), Some(3));
        run_queue::remove(node.ready(0), 3);
        assert_eq!(choose(&node), Some(1), "as round robin");
    }

    #[test]
    fn the_highest_lot_goes_first_and_of_equal_ones_the_oldest() {
        let node = node(4, control::Policy::Drawn);
        assert_eq!(choose(&node), Some(0));
        for (rank, lot) in [(1, 5), (2, 7), (3, 7)] {
            node.rank(rank).lot().store(lot, SeqCst);
        }
        assert_eq!(choose(&node), Some(2));
        node.rank(2).lot().store(1, SeqCst);
        assert_eq!(choose(&node), Some(3));
    }

    /// Ranks 0 and 1 are preferred for ever; 2 and 3 get the core within the bound, in each policy.
    #[test]
    fn nobody_starves() {
        for (name, policy) in control::Policy::NAMES {
            let node = node(4, policy);
            let mut waits = [0u32; 4];
            for step in 0..10_000u64 {
                node.rank(0).peer.store(1, SeqCst);
                // As a hand-over does, which first asks whether the kernel may choose.
                let proposed = choose(&node);
                let next = choose(&node).expect("somebody is READY");
                assert_eq!(proposed, Some(next), "{name}");
                assert!(run_queue::remove(node.ready(0), next));
                node.core(0).last.store(next, SeqCst);
                node.core(0).handoffs.fetch_add(1, SeqCst);
                for (rank, wait) in waits.iter_mut().enumerate() {
                    *wait = if rank as u32 == next { 0 } else { *wait + 1 };
                    assert!(*wait <= 4 * FAIR, "{name}: rank {rank} has waited for {wait} hand-overs");
                }
                note_ready(&node, next);
                make_ready(&node, next, 100 + step);
                note_ready(&node, (step % 2) as u32);
            }
        }
    }
}
