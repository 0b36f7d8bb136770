//! When a rank waits or looks in virtual time, and what its messages cost it.

use super::{MINE, RELAXED, compute, is_on, now, owed, spend};
use crate::process::{self, endpoint};
use std::sync::atomic::AtomicU32;
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::matching::request::FLAG_AWAITED;
use vmpi_shared::node::recording;
use vmpi_shared::simulate::Fault;
use vmpi_shared::simulate::layout::Step;
use vmpi_shared::simulate::play::Holding;

/// This rank calls MPI no more: whoever traces it is told.
pub(super) fn finish() {
    let endpoint = endpoint();
    if is_on() && recording::is_on(&endpoint.node, endpoint.me) {
        recording::left_virtual_time(&endpoint.node);
    }
}

/// Polls in a row that have found nothing.
static MISSES: AtomicU32 = AtomicU32::new(0);

/// What has come up to the clock is to be looked at next; or just go on with what is there.
#[cold]
pub(crate) fn progress(looks: bool) {
    compute::pay();
    if looks {
        endpoint().look_in_virtual_time();
        check();
    }
    endpoint().progress();
}

/// Wait for something to arrive. The caller has armed what it waits for; `beside`: collectives are to be gone on with meanwhile.
#[cold]
pub(crate) fn wait(call: u32, peer: i32, tag: i32, beside: bool) {
    MISSES.store(0, RELAXED);
    let endpoint = endpoint();
    let (waiting, missing) = {
        let head = endpoint.queues().head;
        (head.waiting != 0, head.wait_count)
    };
    if waiting && missing == 0 {
        // It came while this rank was sending.
        return;
    }
    // Which of several comes first, and with what else, is answered when all is there that is earlier.
    let any = !waiting || beside || is_choice(endpoint, missing);
    if any && endpoint.look_in_virtual_time() {
        return check();
    }
    let begun = now();
    endpoint.wait_in_virtual_time(if any { 1 } else { missing }, !any, (call, peer, tag));
    check();
    let waited = now().zip(begun).map_or(0, |(now, begun)| now - begun);
    if waited > 0 && recording::is_on(&endpoint.node, endpoint.me) {
        recording::waited(&endpoint.node, endpoint.me, (call, peer, tag), waited);
    }
}

/// Take part in a collective that the engine plays, to its end. `steps`: what this rank sends and receives, by ranks of the job; `holding`: what it brings, and
/// then the result.
#[cold]
pub(crate) fn join(context: u32, steps: &mut [Step], holding: &mut Holding, call: u32) {
    MISSES.store(0, RELAXED);
    compute::pay();
    endpoint().join_in_virtual_time(context, steps, holding, (call, -1, -1));
    check();
}

/// Are more of its requests awaited than must be over?
fn is_choice(endpoint: &Endpoint, missing: u32) -> bool {
    let queues = endpoint.queues();
    let used = (queues.head.slots_used as usize).min(queues.slots.len());
    let open = (0..used as u32)
        .filter(|index| queues.slots[*index as usize].flags & FLAG_AWAITED != 0 && !queues.is_over(*index));
    open.take(missing as usize + 1).count() > missing as usize
}

/// A poll has found nothing, which takes its time: look once more after that. Always true.
#[cold]
pub(crate) fn missed() -> bool {
    let Some(mine) = MINE.get() else { return false };
    let cost = mine.machine.poll_cost(MISSES.fetch_add(1, RELAXED)).max(1);
    spend(cost);
    progress(true);
    true
}

/// A message of the job's rank `from` has been received: that keeps this rank busy.
#[cold]
pub(crate) fn received(from: u32, bytes: u64) {
    MISSES.store(0, RELAXED);
    if let Some(mine) = MINE.get() {
        let busy = endpoint().simulated_cost(from, mine.me, bytes).receive_overhead;
        endpoint().owe_in_virtual_time(busy);
        mine.segment.rank(mine.me).sent.fetch_add(busy, RELAXED);
    }
}

/// Messages to `to` of up to so many bytes go without its receiver.
#[cold]
pub(crate) fn eager_limit(to: u32) -> u32 {
    let limit = MINE.get().map_or(0, |mine| mine.machine.eager_limit(&mine.machine.path(mine.me, to)));
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// A message is to wait for its receiver: `may` it? Another one does so for want of memory, which no machine that is simulated knows of.
#[cold]
pub(crate) fn may_wait(may: bool) {
    if !may && is_on() {
        process::abort(
            125,
            "the simulation cannot go on: no memory is left for the payloads of messages that have not been received",
        );
    }
}

/// A receive is about to be posted in this slot.
#[cold]
pub(crate) fn posting(slot: u32) {
    owed::pay();
    if let Some(now) = now() {
        endpoint().queues().slots[slot as usize].posted_at = now;
    }
}

/// The simulation may be unable to go on.
pub(crate) fn check() {
    let Some(fault) = endpoint().fault() else { return };
    let why = match fault {
        Fault::Exhausted => {
            "too many messages are under way, or have come to ranks that do not look, for the memory of this simulation"
                .to_owned()
        }
        Fault::NoRoom => "no memory is left for messages that no receive has asked for".to_owned(),
        Fault::NoCopy { from } => format!(
            "the memory of rank {from} cannot be read (process_vm_readv: ptrace scope, ranks in namespaces of their own, or seccomp), which a \
             simulation needs for large messages"
        ),
    };
    process::abort(125, &format!("the simulation cannot go on: {why}"));
}
