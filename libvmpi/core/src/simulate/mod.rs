//! A rank in virtual time (`vmpirun --simulate`): when it asks what has come, what its own work and its calls take, and what its clocks say.
//!
//! Reading order: this file (waits, looks, costs), `compute` (the time between two calls), `clocks` (what the program is told).
//! The engine is `vmpi_shared::simulate`, a rank's end of it `vmpi_shared::matching::simulated`.

pub mod clocks;
mod compute;

pub use compute::compute;
pub(crate) use compute::{entered, left};

use crate::errors::{Class, Error, Result};
use crate::process::{self, endpoint};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use vmpi_machine::Image;
use vmpi_shared::matching::request::FLAG_AWAITED;
use vmpi_shared::matching::simulated::{Fault, Simulated};
use vmpi_shared::matching::tend::Endpoint;
use vmpi_shared::simulate::{Cost, Network, SimulationSegment};

const RELAXED: Ordering = Ordering::Relaxed;

/// The simulation that this rank is part of.
struct Mine {
    segment: &'static SimulationSegment,
    machine: Image<'static>,
    me: u32,
}

static MINE: OnceLock<Mine> = OnceLock::new();
/// Polls in a row that have found nothing.
static MISSES: AtomicU32 = AtomicU32::new(0);

/// The costs that the machine tells.
#[derive(Copy, Clone)]
struct Wires(Image<'static>);

impl Network for Wires {
    fn cost(&self, from: u32, to: u32, bytes: u64) -> Cost {
        let cost = self.0.cost(&self.0.path(from, to), bytes);
        Cost {
            send_overhead: cost.send_overhead,
            wire: cost.wire,
            receive_overhead: cost.receive_overhead,
            gap: cost.gap,
        }
    }
}

/// Does this rank live in virtual time?
#[inline]
pub(crate) fn is_on() -> bool {
    MINE.get().is_some()
}

/// This rank of a simulated job is about to start.
///
/// # Errors
/// The segment is none of this version.
pub(crate) fn begin(endpoint: &mut Endpoint, segment: SimulationSegment) -> Result<()> {
    // As long as the process lives.
    let segment: &'static SimulationSegment = Box::leak(Box::new(segment));
    let machine = Image::new(segment.image()).map_err(|error| Error::new(Class::Other, error.to_string()))?;
    endpoint.simulate(Simulated::new(segment, Box::new(Wires(machine)), endpoint.me));
    compute::begin(endpoint, segment.compute());
    crate::tool::event::simulate();
    let _ = MINE.set(Mine { segment, machine, me: endpoint.me });
    Ok(())
}

/// It has left MPI for good.
pub(crate) fn end() {
    if is_on() {
        endpoint().leave_virtual_time();
    }
}

/// This rank's clock: picoseconds since the job's start.
fn now() -> Option<u64> {
    MINE.get().map(|mine| mine.segment.rank(mine.me).clock.load(RELAXED))
}

/// The rank does nothing else for so long.
fn spend(time: u64) {
    if let Some(mine) = MINE.get() {
        mine.segment.rank(mine.me).clock.fetch_add(time, RELAXED);
    }
}

/// What has come up to the clock is to be looked at next; or just go on with what is there.
#[cold]
pub(crate) fn progress(looks: bool) {
    if looks {
        endpoint().look_in_virtual_time();
        check();
    }
    endpoint().progress();
}

/// Wait for something to arrive. The caller has armed what it waits for.
#[cold]
pub(crate) fn wait(call: u32, peer: i32, tag: i32) {
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
    let any = !waiting || crate::request::collectives_under_way() || is_choice(endpoint, missing);
    if any && endpoint.look_in_virtual_time() {
        return check();
    }
    endpoint.wait_in_virtual_time(if any { 1 } else { missing }, (call, peer, tag));
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
        let busy = Wires(mine.machine).cost(from, mine.me, bytes).receive_overhead;
        spend(busy);
        mine.segment.rank(mine.me).sent.fetch_add(busy, RELAXED);
    }
}

/// Messages to `to` of up to so many bytes go without its receiver.
#[cold]
pub(crate) fn eager_limit(to: u32) -> u32 {
    MINE.get().map_or(0, |mine| u32::try_from(mine.machine.eager_limit(&mine.machine.path(mine.me, to))).unwrap_or(u32::MAX))
}

/// A message is to wait for its receiver: `may` it? Another one does so for want of memory, which no machine that is simulated knows of.
#[cold]
pub(crate) fn may_wait(may: bool) {
    if !may && is_on() {
        process::abort(125, "the simulation cannot go on: no memory is left for the payloads of messages that have not been received");
    }
}

/// A receive is about to be posted in this slot.
#[cold]
pub(crate) fn posting(slot: u32) {
    if let Some(now) = now() {
        endpoint().queues().slots[slot as usize].posted_at = now;
    }
}

/// The simulation may be unable to go on.
fn check() {
    let Some(fault) = endpoint().fault() else { return };
    let why = match fault {
        Fault::Exhausted => {
            "too many messages are under way, or have come to ranks that do not look, for the memory of this simulation".to_owned()
        }
        Fault::NoRoom => "no memory is left for messages that no receive has asked for".to_owned(),
        Fault::NoCopy { from } => format!(
            "the memory of rank {from} cannot be read (process_vm_readv: ptrace scope, ranks in namespaces of their own, or seccomp), which a \
             simulation needs for large messages"
        ),
    };
    process::abort(125, &format!("the simulation cannot go on: {why}"));
}

/// Refuse what is not done in virtual time; `what` is the call.
///
/// # Errors
/// `Class::UnsupportedOperation`, if this job is simulated.
pub fn refuse(what: &str, why: &str) -> Result<()> {
    if is_on() {
        return Err(Error::new(
            Class::UnsupportedOperation,
            format!("{what} is not offered in a simulated job (vmpirun --simulate): {why}"),
        ));
    }
    Ok(())
}

/// The host of the simulated machine that this rank runs on.
pub(crate) fn host_name() -> Option<String> {
    MINE.get().map(|mine| format!("host{}", mine.machine.host_of(mine.me)))
}
