//! A rank in virtual time (`vmpirun --simulate`): when it asks what has come, what its own work and its calls take, and what its clocks say.
//!
//! Reading order: this file (what it is part of), `compute` (the time between two calls), `tape` (the same in a file), `clocks` (what the program is told), `wait` (waits, looks, and
//! what messages cost), `operations` (one-sided). The engine is `vmpi_shared::simulate`, a rank's end of it `vmpi_shared::endpoint::simulated`.

pub mod clocks;
mod compute;
pub(crate) mod operations;
mod owed;
mod tape;
pub(crate) mod wait;

pub use compute::compute;
pub(crate) use compute::{entered, left, look};

use crate::errors::{Class, Error, Result};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use vmpi_machine::{Flows, Image, Model, Way};
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::node::recording;
use vmpi_shared::simulate::{Cost, Flow, Network, Simulated, SimulationSegment};

const RELAXED: Ordering = Ordering::Relaxed;

/// The simulation that this rank is part of.
struct Mine {
    segment: &'static SimulationSegment,
    machine: Image<'static>,
    me: u32,
}

static MINE: OnceLock<Mine> = OnceLock::new();

/// The costs that the machine tells; the latest answers are kept, since each message is asked about several times, and most are like the ones before.
pub(super) struct Wires {
    machine: Image<'static>,
    ways: Kept<(u32, u32), Way>,
    costs: Kept<(u32, u32, u64), Cost>,
}

/// So many answers of a kind; a power of two.
const KEPT: usize = 256;

/// The latest answer among the questions that have the same place.
struct Kept<Question, Answer>(Box<[Cell<Option<(Question, Answer)>>]>);

impl<Question: Copy + PartialEq, Answer: Copy> Kept<Question, Answer> {
    fn new() -> Self {
        Kept((0..KEPT).map(|_| Cell::new(None)).collect())
    }

    #[inline]
    fn get(&self, place: u32, question: Question, answer: impl FnOnce() -> Answer) -> Answer {
        let cell = &self.0[place as usize % KEPT];
        match cell.get() {
            Some((known, answer)) if known == question => answer,
            _ => {
                let answer = answer();
                cell.set(Some((question, answer)));
                answer
            }
        }
    }
}

impl Wires {
    fn new(machine: Image<'static>) -> Wires {
        Wires { machine, ways: Kept::new(), costs: Kept::new() }
    }

    #[inline]
    fn way(&self, from: u32, to: u32) -> Way {
        // Neighbours in number are apart, there and back.
        let place = from.wrapping_mul(37).wrapping_add(to);
        self.ways.get(place, (from, to), || *self.machine.path(from, to).way())
    }
}

impl Network for Wires {
    fn cost(&self, from: u32, to: u32, bytes: u64) -> Cost {
        let place = from.wrapping_mul(37).wrapping_add(to).wrapping_add((bytes as u32).wrapping_mul(7));
        self.costs.get(place, (from, to, bytes), || {
            let cost = self.machine.cost_by(&self.way(from, to), bytes);
            Cost {
                send_overhead: cost.send_overhead,
                wire: cost.wire,
                receive_overhead: cost.receive_overhead,
                gap: cost.gap,
            }
        })
    }

    fn word(&self, from: u32, to: u32) -> Cost {
        match self.machine.rules().rendezvous_handshake {
            true => self.cost(from, to, 0),
            // Both ends know at once: the least time that there is.
            false => Cost { wire: 1, ..Cost::default() },
        }
    }

    fn detaches(&self, bytes: u64) -> bool {
        self.machine.rules().eager_leaves_when_received && bytes < vmpi_machine::RENDEZVOUS_FROM
    }

    fn shares(&self, from: u32, to: u32, bytes: u64) -> bool {
        // What takes nothing of its links leaves all to others.
        let has_volume = bytes > 0 || self.machine.model() == Model::Smpi;
        has_volume && self.machine.link_count() > 0 && self.way(from, to).shares()
    }

    fn start(&self, memory: &mut [u8], flow: &Flow) -> bool {
        let path = self.machine.path(flow.from, flow.to);
        let start = |mut flows: Flows<'_>| flows.start(flow.at, flow.key, &self.machine, &path, flow.bytes);
        Flows::open(memory).and_then(start).is_ok()
    }

    fn next(&self, memory: &mut [u8]) -> Option<u64> {
        Flows::open(memory).ok()?.next_event()
    }

    fn advance(&self, memory: &mut [u8], to: u64, ended: &mut Vec<(u64, u64)>) -> bool {
        let Ok(mut flows) = Flows::open(memory) else { return false };
        if flows.advance(to).is_err() {
            return false;
        }
        loop {
            match flows.completed() {
                Ok(Some(flow)) => ended.push(flow),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }
}

/// This rank calls MPI no more.
pub(crate) fn finish() {
    compute::finish();
    wait::finish();
}

/// Does this rank live in virtual time?
#[inline]
pub(crate) fn is_on() -> bool {
    MINE.get().is_some()
}

/// Does the engine play collectives (`coll::played`)?
pub(crate) fn plays() -> bool {
    MINE.get().is_some_and(|mine| mine.segment.plays_collectives())
}

/// This rank of a simulated job is about to start.
///
/// # Errors
/// The segment is none of this version.
pub(crate) fn begin(endpoint: &mut Endpoint, segment: SimulationSegment) -> Result<()> {
    // As long as the process lives.
    let segment: &'static SimulationSegment = Box::leak(Box::new(segment));
    let machine = Image::new(segment.image()).map_err(|error| Error::new(Class::Other, error.to_string()))?;
    endpoint.simulate(Simulated::new(segment, Box::new(Wires::new(machine)), operations::perform, endpoint.me));
    compute::begin(endpoint, segment.compute())?;
    let _ = MINE.set(Mine { segment, machine, me: endpoint.me });
    recording::live_in_virtual_time(&endpoint.node, endpoint.me, || now().unwrap_or(0));
    Ok(())
}

/// This rank's clock: picoseconds since the job's start.
fn now() -> Option<u64> {
    let mine = MINE.get()?;
    compute::pay();
    Some(mine.segment.rank(mine.me).clock.load(RELAXED))
}

/// The rank does nothing else for so long.
fn spend(time: u64) {
    if let Some(mine) = MINE.get() {
        mine.segment.rank(mine.me).clock.fetch_add(time, RELAXED);
    }
}

/// For regions: this rank's clock from 1 on, and how long it has waited, in picoseconds; `None`: time is real.
pub(crate) fn region_clocks() -> Option<(u64, u64)> {
    let mine = MINE.get()?;
    let rank = mine.segment.rank(mine.me);
    Some((look().saturating_add(1), rank.waited.load(RELAXED)))
}

/// This rank accesses a file, so many bytes of it: that takes its time. (An access that finds the end of the file takes what it asked for.)
pub(crate) fn storage(bytes: u64) {
    if let Some(mine) = MINE.get() {
        let cost = mine.machine.storage_cost(bytes);
        spend(cost);
        mine.segment.rank(mine.me).waited.fetch_add(cost, RELAXED);
    }
}

/// The host of the simulated machine that a rank of the job runs on.
pub(crate) fn host_of(rank: u32) -> Option<u32> {
    MINE.get().map(|mine| mine.machine.host_of(rank))
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
