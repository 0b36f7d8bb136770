//! What the ranks of a job did and when: a ring of records per rank, for timelines.
//!
//! Reading order: `record` (what is recorded), this file (how a rank does it), `ring` (where it lies, and how it is read), `regions`.
//!
//! A rank writes its own ring, in its area of the job segment, and only while `RankDescriptor::monitor` has [`FOR_TRACE`]: memory is used
//! once somebody traces, and off, this is a branch on a word that lies on a line which the rank touches anyway. One record is written for
//! a whole turn (when the rank gets its core: how long it had waited, and what became of the core meanwhile), so a hand-off costs one
//! record. The newest records are kept; a ring that is full loses its oldest ones, and who reads knows how many.
//!
//! With MPI_THREAD_MULTIPLE one thread at a time is in MPI, and so in here.

mod record;
pub mod regions;
mod ring;

const RECORD_BYTES: u64 = 8 * RECORD_WORDS as u64;

pub use record::{COUNTERS, Call, Record, Turn, Within};
pub use ring::{CAPACITY_FLOOR, RECORD_WORDS, Ring, RingReader, Rings, Used, bytes_for, capacity_for};

use crate::clock::Moment;
use crate::node::{NodeSegment, RankDescriptor};
use crate::sched::adopt::Given;
use crate::sched::lease;
use crate::sched::outside::{self, Span};
use serde::{Deserialize, Serialize};
use std::sync::Mutex;
// Words of this process alone: no model looks at them.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// `RankDescriptor::monitor`: the rank records what it does.
pub const FOR_TRACE: u32 = 2;

/// The MPI function that this process entered last: where its name lies, and its length in the lowest byte, in one word.
static CALLING: AtomicU64 = AtomicU64::new(0);

/// An MPI call begins: what this rank waits for from now on, it waits for in `function`.
#[inline]
pub fn calling(function: &'static str) {
    debug_assert!(function.len() < 256);
    CALLING.store((function.as_ptr() as u64) << 8 | function.len() as u64 & 0xff, Relaxed);
}

/// The word, and the name that it stands for.
fn called() -> (u64, &'static str) {
    let word = CALLING.load(Relaxed);
    if word == 0 {
        return (0, "");
    }
    // SAFETY: only `calling` writes it: address (47 bits at most) and length of a `&'static str`.
    let bytes = unsafe { std::slice::from_raw_parts((word >> 8) as *const u8, (word & 0xff) as usize) };
    (word, std::str::from_utf8(bytes).unwrap_or_default())
}

/// This process's end of its rank's ring.
#[derive(Default)]
pub(crate) struct Recorder {
    ring: Option<Ring<'static>>,
    /// The name that was used last, as a word of `CALLING` and an index; and all that this process has put in the ring.
    last: AtomicU64,
    last_index: AtomicU64,
    known: Mutex<Vec<(u64, u16)>>,
    /// Messages sent while recording.
    messages: AtomicU64,
    /// The program wants nothing recorded (`pause`).
    paused: AtomicBool,
}

impl Recorder {
    /// # Safety
    /// The ring outlives this.
    pub(crate) unsafe fn new(ring: Ring<'_>) -> Recorder {
        // SAFETY: the caller's promise.
        let ring = unsafe { std::mem::transmute::<Ring<'_>, Ring<'static>>(ring) };
        Recorder { ring: Some(ring), ..Recorder::default() }
    }

    #[inline]
    fn put(&self, record: &Record) {
        if !self.paused.load(Relaxed) {
            self.put_always(record);
        }
    }

    fn put_always(&self, record: &Record) {
        if let Some(ring) = &self.ring {
            ring.put(&record.words());
        }
    }

    /// The index + 1 of the name of the call that this process is in; 0: none, or no room for more names.
    fn name(&self) -> u16 {
        let (word, name) = called();
        if word == self.last.load(Relaxed) {
            return self.last_index.load(Relaxed) as u16;
        }
        let Some(ring) = &self.ring else { return 0 };
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let index = match known.iter().find(|(known, _)| *known == word) {
            Some((_, index)) => *index,
            None => {
                let index = ring.name_index(name);
                known.push((word, index));
                index
            }
        };
        self.last.store(word, Relaxed);
        self.last_index.store(index.into(), Relaxed);
        index
    }
}

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
    let call = if turn.left == 0 { Call::default() } else { call(node, me) };
    node.recorder().put(&Record::Turn(Turn { call, ..turn }));
}

/// The rank has watched without leaving its core.
#[cold]
pub(crate) fn watched(node: &NodeSegment, me: u32, from: u64, until: u64) {
    let core = node.core_of(me) as u16;
    node.recorder().put(&Record::Watched { core, call: call(node, me), from, until });
}

/// The rank, from which the core had been taken, wants it back.
#[cold]
pub(crate) fn away(node: &NodeSegment, from: u64, until: u64) {
    node.recorder().put(&Record::Away { from: from.min(until), until });
}

/// The rank has left MPI.
#[cold]
pub(crate) fn ended(node: &NodeSegment, at: u64) {
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
    recorder.put(&Record::Message { sent: true, call, id, at: node.now(), bytes, peer, context, tag, within });
    id
}

/// A message of job rank `peer` has been received.
#[cold]
pub fn received(node: &NodeSegment, id: u16, peer: u32, context: u32, tag: i32, bytes: u64) {
    let (at, within) = (node.now(), Within::default());
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
    let (recorder, until) = (node.recorder(), node.now());
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
        let (core, at) = (node.core_of(me) as u16, node.now());
        recorder.put_always(&if paused { Record::Paused { core, at } } else { Record::Resumed { core, at } });
    }
}

/// The rank leaves `core`; its performance counters, and that core's.
#[cold]
pub(crate) fn counted(node: &NodeSegment, core: u16, values: [u64; COUNTERS], of_core: [u64; COUNTERS]) {
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

/// How a job's rings are to be read, and how its ranks stood when the daemon looked: goes with a descriptor of the job segment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceMap {
    pub job: u32,
    pub program: String,
    /// Recording goes on.
    pub on: bool,
    /// From when to when was recorded, ticks, and what they are.
    pub since: u64,
    pub until: u64,
    pub ticks_per_second: f64,
    /// CLOCK_BOOTTIME and CLOCK_REALTIME at `until`, nanoseconds.
    pub boottime_ns: u64,
    pub realtime_ns: u64,
    /// A moment at the beginning, so that ticks become CLOCK_BOOTTIME by a line; and how far off that may be at either end.
    pub began: Moment,
    pub within_ns: u64,
    /// Ranks stay on their cores.
    pub ranks_stay: bool,
    /// When the end of the job began, ticks; 0: it has not.
    #[serde(default)]
    pub ends_at: u64,
    pub cores: Vec<TraceCore>,
    /// Names of the performance counters.
    pub counters: Vec<String>,
    pub rings: Rings,
    /// Of each rank that is or was in use.
    pub ranks: Vec<TraceRank>,
}

/// How a core stood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceCore {
    pub cpu: u32,
    /// Since when it has been another job's, ticks; 0: it is this job's.
    pub withheld_at: u64,
}

/// How a rank stood.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TraceRank {
    /// Its process; 0: none yet.
    pub pid: i32,
    /// It lives on this node.
    pub here: bool,
    /// Records in its ring before the recording began.
    pub skip: u64,
    /// As `vmpictl show` names it; of a dead one the state in which it died.
    pub state: String,
    #[serde(default)]
    pub is_dead: bool,
    /// When it came and went.
    #[serde(default)]
    pub life: Option<Span>,
    pub core: u32,
    /// The last change of who runs, when it became READY: ticks.
    pub t: u64,
    pub ready_at: u64,
    /// Index in `sched::report::CALLS`.
    pub call: u32,
    pub peer: i32,
    pub tag: i32,
    /// Cores that it was given while it was outside MPI, of which its ring does not tell.
    pub given: Vec<Given>,
}

/// How core `core` stands now.
pub fn stand_of_core(node: &NodeSegment, core: u32) -> TraceCore {
    let descriptor = node.core(core);
    let withheld_at = if lease::is_held(node, core) { 0 } else { descriptor.withheld_at.load(Relaxed).max(1) };
    TraceCore { cpu: descriptor.cpu.load(Relaxed), withheld_at }
}

/// How rank `rank` stands now.
pub fn stand(node: &NodeSegment, rank: u32, skip: u64) -> TraceRank {
    let (descriptor, died) = (node.rank(rank), outside::died_as(node, rank));
    TraceRank {
        pid: node.pid(rank),
        here: !node.is_remote(rank),
        skip,
        state: died.unwrap_or_else(|| node.state(rank)).name().to_owned(),
        is_dead: died.is_some(),
        life: Span::of(node, rank),
        core: node.core_of(rank),
        t: descriptor.t.load(Relaxed),
        ready_at: descriptor.ready_at.load(Relaxed),
        call: descriptor.call.load(Relaxed),
        peer: descriptor.peer.load(Relaxed),
        tag: descriptor.tag.load(Relaxed),
        given: Vec::new(),
    }
}
