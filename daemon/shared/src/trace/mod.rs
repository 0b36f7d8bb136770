//! What the ranks of a job did and when: a ring of records per rank, for timelines.
//!
//! Reading order: `record` (what is recorded), this file (a process's end of its ring, and what goes with the rings to who reads them), `ring` (where it lies, and how it is
//! read), `regions`; `node::recording` has what a rank records when.
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
use serde::{Deserialize, Serialize};
use std::sync::{Mutex, OnceLock};
// Words of this process alone: no model looks at them.
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// `RankDescriptor::monitor`: the rank records what it does.
pub const FOR_TRACE: u32 = 2;
/// The same word: the rank's use of MPI is checked. Not a wish for anything that `FOR_TRACE` or the counting of transfers is about.
pub const FOR_CHECK: u32 = 4;

/// The MPI function that this process entered last: where its name lies, and its length in the lowest byte, in one word.
static CALLING: AtomicU64 = AtomicU64::new(0);

/// An MPI call begins: what this rank waits for from now on, it waits for in `function`.
#[inline]
pub fn calling(function: &'static str) {
    debug_assert!(function.len() < 256);
    CALLING.store((function.as_ptr() as u64) << 8 | function.len() as u64 & 0xff, Relaxed);
}

/// The MPI function that this process entered last.
pub fn called() -> &'static str {
    called_word().1
}

/// The word, and the name that it stands for.
fn called_word() -> (u64, &'static str) {
    let word = CALLING.load(Relaxed);
    if word == 0 {
        return (0, "");
    }
    // SAFETY: only `calling` writes it: address (47 bits at most) and length of a `&'static str`, so what lies there is text, too.
    let name = unsafe {
        let bytes = std::slice::from_raw_parts((word >> 8) as *const u8, (word & 0xff) as usize);
        std::str::from_utf8_unchecked(bytes)
    };
    (word, name)
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
    pub(crate) messages: AtomicU64,
    /// The program wants nothing recorded (`node::recording::pause`).
    pub(crate) paused: AtomicBool,
    /// In virtual time: what it is, in picoseconds.
    pub(crate) virtual_time: OnceLock<fn() -> u64>,
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
    pub(crate) fn put(&self, record: &Record) {
        if !self.paused.load(Relaxed) {
            self.put_always(record);
        }
    }

    pub(crate) fn put_always(&self, record: &Record) {
        if let Some(ring) = &self.ring {
            ring.put(&record.words());
        }
    }

    /// The index + 1 of the name of the call that this process is in; 0: none, or no room for more names.
    pub(crate) fn name(&self) -> u16 {
        let (word, name) = called_word();
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

/// A rank's life: begin, MPI, end. Ticks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// When its process was to start.
    pub born: u64,
    /// Its core then.
    pub core: u32,
    /// It was in MPI from then until then; not yet: `None`.
    pub entered: Option<u64>,
    pub left: Option<u64>,
    pub over: Option<u64>,
}

impl Span {
    /// Until when it was STARTING, and since when it is or was ENDING, of a life that goes until `now` if it is not over; and when that ends.
    pub fn edges(&self, now: u64) -> (u64, u64, u64) {
        let end = self.over.unwrap_or(now).max(self.born);
        let entered = self.entered.unwrap_or(end).clamp(self.born, end);
        // Who never was in MPI did not leave it either.
        let left = self.left.filter(|_| self.entered.is_some()).unwrap_or(end).clamp(entered, end);
        (entered, left, end)
    }

    /// How long it was STARTING and ENDING until `now`, and how long its life was: ticks.
    pub fn times(&self, now: u64) -> (u64, u64, u64) {
        let (entered, left, end) = self.edges(now);
        (entered - self.born, end - left, end - self.born)
    }
}

/// A core was given to a rank outside MPI. Ticks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    pub core: u32,
    /// When its last one had been taken from it.
    pub taken: u64,
    pub at: u64,
    /// Since when the core was idle.
    pub released: u64,
    /// The rank's process-POV clock.
    pub clock: u64,
}
