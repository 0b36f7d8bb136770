//! The segment of a simulated job: the machine, and virtual time. Made by the daemon, mapped by every rank; one lock over all that changes.
//!
//! Death story: who dies with the lock in its hands leaves the others spinning with it; its death ends the job, and with it them.

use super::engine::Engine;
use super::heap::Entry;
use super::layout::{Counts, Event, Flowing, Header, MOST_STEPS, Part, SimRank, Step};
use crate::mem::segment::{Head, Segment, SegmentError, layout_hash};
use crate::mem::sync::{Ordering, spin_loop, yield_cpu};
use serde::{Deserialize, Serialize};
use std::os::fd::{BorrowedFd, OwnedFd};

const VERSION: u64 = 5;
const LAYOUT: u64 = layout_hash(&[
    VERSION,
    size_of::<Header>() as u64,
    size_of::<SimRank>() as u64,
    size_of::<Event>() as u64,
    size_of::<Entry>() as u64,
    size_of::<Part>() as u64,
]);
const HEADER_AT: u64 = (size_of::<Head>() as u64).next_multiple_of(64);
const IMAGE_AT: u64 = (HEADER_AT + size_of::<Header>() as u64).next_multiple_of(64);
/// Looks at the lock between two turns of others on this CPU: who holds it may be waiting for that.
const LOOKS: u32 = 100;
/// Messages of a rank that has not looked meanwhile what has come.
const MOST_SENDS_AT_ONCE: u32 = 256;

/// What a simulated rank's own computation takes of its virtual time, beside what the machine says of its cores (`vmpirun --compute`).
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compute {
    /// Nothing.
    None,
    /// Its CPU time, times so many millionths.
    Measured { millionths: u64 },
    /// Its CPU time, which goes into a file (`recording`), too.
    Record,
    /// What such a file says.
    Replay,
    /// What its instructions take where so many a second are done.
    Instructions { per_second: u64 },
}

/// What a simulation is made from.
pub struct SimulationConfig<'a> {
    pub ranks: u32,
    /// The machine, as its reader has written it.
    pub image: &'a [u8],
    /// No message takes less, from any rank to any other; not 0.
    pub lookahead: u64,
    pub compute: Compute,
    /// Collectives go message by message: the engine plays none.
    pub by_messages: bool,
    /// What the network's flows need to remember, and who writes the first of it.
    pub flow_bytes: u64,
    pub begin_flows: &'a dyn Fn(&mut [u8]),
}

/// A mapped segment of a simulation.
pub struct SimulationSegment {
    segment: Segment,
    header: *mut Header,
    parts: Parts,
    ranks: u32,
    room: u32,
    image_bytes: u32,
    flow_bytes: u64,
}

// SAFETY: what changes is touched under the lock; the rest is written before the segment is handed to anyone, or is atomic.
unsafe impl Send for SimulationSegment {}
// SAFETY: as above.
unsafe impl Sync for SimulationSegment {}

/// Where the parts lie, and how long all is.
struct Parts {
    ranks: u64,
    played: u64,
    events: u64,
    leaving: u64,
    arriving: u64,
    running: u64,
    flowing: u64,
    flows: u64,
    bytes: u64,
}

impl Parts {
    fn of(ranks: u32, room: u32, image_bytes: u32, flow_bytes: u64) -> Parts {
        let mut at = IMAGE_AT + u64::from(image_bytes);
        let mut part = |count: u64, size: usize| {
            let start = at.next_multiple_of(64);
            at = start + count * size as u64;
            start
        };
        let (ranks, room) = (u64::from(ranks), u64::from(room));
        let ranks_at = part(ranks, size_of::<SimRank>());
        let played = part(ranks, size_of::<Part>());
        let events = part(room, size_of::<Event>());
        let leaving = part(room, size_of::<Entry>());
        let arriving = part(room, size_of::<Entry>());
        let running = part(ranks, size_of::<u32>());
        let flowing = part(if flow_bytes == 0 { 0 } else { room }, size_of::<Flowing>());
        let flows = part(flow_bytes, 1);
        let bytes = at.next_multiple_of(4096);
        Parts { ranks: ranks_at, played, events, leaving, arriving, running, flowing, flows, bytes }
    }
}

impl SimulationSegment {
    /// # Errors
    /// Those of the system.
    pub fn create(config: &SimulationConfig<'_>) -> Result<SimulationSegment, SegmentError> {
        let room = config.ranks.saturating_mul(1024).clamp(1 << 14, 1 << 22);
        let image_bytes = config.image.len() as u32;
        let parts = Parts::of(config.ranks, room, image_bytes, config.flow_bytes);
        let segment = Segment::create("simulation", LAYOUT, parts.bytes)?;
        let (compute, scale) = match config.compute {
            Compute::None => (0, 0),
            Compute::Measured { millionths } => (1, millionths),
            Compute::Record => (2, 0),
            Compute::Replay => (3, 0),
            Compute::Instructions { per_second } => (4, per_second),
        };
        let header = segment.at(HEADER_AT, size_of::<Header>()).cast::<Header>().as_ptr();
        // SAFETY: inside the fresh mapping, aligned, not yet shared.
        unsafe {
            (*header).ranks = config.ranks;
            (*header).room = room;
            (*header).image_bytes = image_bytes;
            (*header).flow_bytes = config.flow_bytes;
            (*header).lookahead = config.lookahead.max(1);
            (*header).compute = compute;
            (*header).scale = scale;
            (*header).by_messages = config.by_messages.into();
            let image = segment.at(IMAGE_AT, config.image.len());
            std::ptr::copy_nonoverlapping(config.image.as_ptr(), image.as_ptr(), config.image.len());
        }
        let (ranks, flow_bytes) = (config.ranks, config.flow_bytes);
        let simulation = SimulationSegment { segment, header, parts, ranks, room, image_bytes, flow_bytes };
        simulation.locked(0, |engine| {
            engine.begin();
            (config.begin_flows)(engine.flows);
        });
        Ok(simulation)
    }

    /// Map the segment that the daemon handed over.
    ///
    /// # Errors
    /// It is none of this version.
    pub fn map(fd: OwnedFd) -> Result<SimulationSegment, SegmentError> {
        let segment = Segment::map("simulation", LAYOUT, fd)?;
        let header = segment.at(HEADER_AT, size_of::<Header>()).cast::<Header>().as_ptr();
        // SAFETY: inside the mapping; written before the descriptor was sent. Read once.
        let (ranks, room, image_bytes, flow_bytes) =
            unsafe { ((*header).ranks, (*header).room, (*header).image_bytes, (*header).flow_bytes) };
        let parts = Parts::of(ranks, room, image_bytes, flow_bytes);
        let (expected, found) = (parts.bytes, segment.bytes() as u64);
        if found != expected {
            return Err(SegmentError::Size { expected, found });
        }
        Ok(SimulationSegment { segment, header, parts, ranks, room, image_bytes, flow_bytes })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    /// The machine.
    pub fn image(&self) -> &[u8] {
        let bytes = self.image_bytes as usize;
        // SAFETY: inside the mapping, and nobody writes there.
        unsafe { std::slice::from_raw_parts(self.segment.at(IMAGE_AT, bytes).as_ptr(), bytes) }
    }

    pub fn compute(&self) -> Compute {
        // SAFETY: inside the mapping; written before it was shared.
        match unsafe { ((*self.header).compute, (*self.header).scale) } {
            (1, millionths) => Compute::Measured { millionths },
            (2, _) => Compute::Record,
            (3, _) => Compute::Replay,
            (4, per_second) => Compute::Instructions { per_second },
            _ => Compute::None,
        }
    }

    /// Does the engine play collectives? Else each rank sends its own messages.
    pub fn plays_collectives(&self) -> bool {
        // SAFETY: inside the mapping; written before it was shared.
        unsafe { (*self.header).by_messages == 0 }
    }

    /// A rank lets virtual time come up to it after so many messages: however far it runs ahead, there is room for what is under way.
    pub fn sends_at_once(&self) -> u32 {
        (self.room / self.ranks.max(1) / 4).clamp(1, MOST_SENDS_AT_ONCE)
    }

    /// What the engine has gone through so far.
    pub fn events(&self) -> u64 {
        // SAFETY: inside the mapping, aligned; a number that others may be changing, of no consequence.
        unsafe { (&raw const (*self.header).counts.events).read_volatile() }
    }

    /// How often the lower bound on what may still happen has let events be gone through.
    pub fn rounds(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (&raw const (*self.header).counts.rounds).read_volatile() }
    }

    /// Has nobody anything to do any more, and nothing is under way? For who looks from outside, without the lock: a rank that has it runs.
    pub fn is_stalled(&self) -> bool {
        // SAFETY: as above.
        let at = |number: *const u32| unsafe { number.read_volatile() };
        // SAFETY: as above; addresses only.
        unsafe {
            let counts = &raw const (*self.header).counts;
            at(&raw const (*counts).running) == 0
                && at(&raw const (*counts).leaving) == 0
                && at(&raw const (*counts).arriving) == 0
                && at(&raw const (*counts).flowing) == 0
        }
    }

    /// The collective that `rank` is in, if the engine plays it (its context), and whose message it waits for there. For who looks from outside.
    pub fn awaits(&self, rank: u32) -> Option<(u32, u32)> {
        let at = self.parts.played + u64::from(rank) * size_of::<Part>() as u64;
        let part = (rank < self.ranks).then(|| self.segment.at(at, size_of::<Part>()).cast::<Part>().as_ptr())?;
        // SAFETY: inside the mapping, aligned; numbers that others may be changing, of no consequence.
        let read = |number: *const u32| unsafe { number.read_volatile() };
        // SAFETY: as above; addresses only.
        unsafe {
            let (at, steps) = (read(&raw const (*part).at), read(&raw const (*part).steps));
            if read(&raw const (*part).under_way) == 0 || at >= steps || at as usize >= MOST_STEPS {
                return None;
            }
            let step = (&raw const (*part).step).cast::<Step>().add(at as usize);
            let from = read(&raw const (*step).from);
            (from < self.ranks).then(|| (read(&raw const (*part).context), from))
        }
    }

    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// A rank, of which only what is atomic may be looked at without the lock.
    pub fn rank(&self, rank: u32) -> &SimRank {
        assert!(rank < self.ranks);
        let at = self.parts.ranks + u64::from(rank) * size_of::<SimRank>() as u64;
        // SAFETY: inside the mapping, aligned; all-zero is a good start.
        unsafe { self.segment.at(at, size_of::<SimRank>()).cast::<SimRank>().as_ref() }
    }

    #[allow(clippy::mut_from_ref)]
    fn part<T>(&self, at: u64, count: impl Into<u64>) -> &mut [T] {
        let count = count.into() as usize;
        // SAFETY: inside the mapping, aligned, plain integers; the caller has the lock, and uses each part once.
        unsafe {
            std::slice::from_raw_parts_mut(self.segment.at(at, count * size_of::<T>()).cast::<T>().as_ptr(), count)
        }
    }

    /// Do something with the engine, as `holder`, which has not got it already.
    pub fn locked<R>(&self, holder: u32, work: impl FnOnce(&mut Engine<'_>) -> R) -> R {
        // SAFETY: inside the mapping; an atomic.
        let lock = unsafe { &(*self.header).lock };
        let mut looks = 0;
        while lock.compare_exchange(0, holder + 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            looks += 1;
            if looks % LOOKS == 0 { yield_cpu() } else { spin_loop() }
        }
        let parts = &self.parts;
        // SAFETY: the lock makes this the only user of all that changes.
        let counts: &mut Counts = unsafe { &mut (*self.header).counts };
        // SAFETY: written before the segment was shared.
        let lookahead = unsafe { (*self.header).lookahead };
        let mut engine = Engine {
            counts,
            ranks: self.part(parts.ranks, self.ranks),
            parts: self.part(parts.played, self.ranks),
            events: self.part(parts.events, self.room),
            leaving: self.part(parts.leaving, self.room),
            arriving: self.part(parts.arriving, self.room),
            running: self.part(parts.running, self.ranks),
            flowing: self.part(parts.flowing, if self.flow_bytes == 0 { 0 } else { self.room }),
            flows: self.part(parts.flows, self.flow_bytes),
            lookahead,
        };
        let result = work(&mut engine);
        lock.store(0, Ordering::Release);
        result
    }
}
