//! What the ranks of a job did and when: a ring of records per rank, for timelines.
//!
//! Reading order: this file (what is recorded, and how a rank does it), `ring` (where it lies, and how it is read), `regions`.
//!
//! A rank writes its own ring, in its area of the job segment, and only while `RankDescriptor::monitor` has [`FOR_TRACE`]: memory is used
//! once somebody traces, and off, this is a branch on a word that lies on a line which the rank touches anyway. One record is written for
//! a whole turn (when the rank gets its core: how long it had waited, and what became of the core meanwhile), so a hand-off costs one
//! record. The newest records are kept; a ring that is full loses its oldest ones, and who reads knows how many.
//!
//! With MPI_THREAD_MULTIPLE one thread at a time is in MPI, and so in here.

pub mod regions;
mod ring;

const RECORD_BYTES: u64 = 8 * RECORD_WORDS as u64;

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

/// One event. Times are ticks of the node's clock.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The rank got its core.
    Turn(Turn),
    /// The rank has waited, in its turn, without leaving its core: the core was idle for the clocks.
    Watched {
        core: u16,
        call: Call,
        from: u64,
        until: u64,
    },
    /// The core had been taken from the rank (it was outside MPI, asleep in the kernel or past its quantum).
    Away {
        from: u64,
        until: u64,
    },
    /// A message was sent to, or taken by, job rank `peer`.
    ///
    /// `call`: index + 1 of the name of the function that sent it, as in `Call`; 0: not known. `within`: of who sent it only.
    Message {
        sent: bool,
        call: u16,
        id: u16,
        at: u64,
        bytes: u64,
        peer: u32,
        context: u32,
        tag: i32,
        within: Within,
    },
    /// A blocking collective call of the program. `call`: as of a message; `root` as the program gave it.
    Collective {
        call: u16,
        from: u64,
        until: u64,
        context: u32,
        root: i32,
        sent: u64,
        received: u64,
        within: Within,
    },
    /// The program has begun or ended a region, of `regions`.
    Region {
        begins: bool,
        region: u16,
        at: u64,
    },
    /// The program wants nothing recorded from now on (MPI_Pcontrol), or wants it again; its core.
    Paused {
        core: u16,
        at: u64,
    },
    Resumed {
        core: u16,
        at: u64,
    },
    /// The rank has left MPI.
    Ended {
        at: u64,
    },
    /// Performance counters of the rank, and of its core, as they stood then (`Counted`).
    Counted {
        at: u64,
        core: u16,
        values: [u64; COUNTERS],
        of_core: [u64; COUNTERS],
    },
}

/// Performance counters of a record.
pub const COUNTERS: usize = 3;

/// Who is who in a communicator: this rank, how many there are (of its own group), and who is at the other end; size 0: not known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Within {
    pub rank: u32,
    pub size: u32,
    pub peer: u32,
}

/// A rank got its core.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    pub core: u16,
    /// What it had waited in.
    pub call: Call,
    /// When it had left its core; 0: it had none before.
    pub left: u64,
    /// When its wait was over.
    pub ready: u64,
    pub run: u64,
    /// When the core was given to it, and when the one before it had left it.
    pub granted: u64,
    pub released: u64,
    /// Its process-POV clock at `run`.
    pub clock: u64,
}

/// In which MPI call a rank waits, and for whom.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Index in the ring's names + 1; 0: not known.
    pub name: u16,
    /// Index in `sched::report::CALLS`.
    pub kind: u8,
    /// Rank in the communicator, and tag; negative: any, or none.
    pub peer: i32,
    pub tag: i32,
}

const TURN: u64 = 1;
const WATCHED: u64 = 2;
const AWAY: u64 = 3;
const SENT: u64 = 4;
const RECEIVED: u64 = 5;
const ENDED: u64 = 6;
const COUNTED: u64 = 7;
const REGION: u64 = 8;
const PAUSED: u64 = 9;
const RESUMED: u64 = 10;
const COLLECTIVE: u64 = 11;

fn two(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl Record {
    /// As it lies in the ring.
    #[inline]
    pub fn words(&self) -> [u64; RECORD_WORDS] {
        let head = |kind: u64, call: u8, core: u16, name: u16| {
            kind | u64::from(call) << 8 | u64::from(core) << 16 | u64::from(name) << 32
        };
        let about = |call: &Call| two(call.peer as u32, call.tag as u32);
        match *self {
            Record::Turn(Turn { core, call, left, ready, run, granted, released, clock }) => {
                [head(TURN, call.kind, core, call.name), left, ready, run, granted, released, clock, about(&call)]
            }
            Record::Watched { core, call, from, until } => {
                [head(WATCHED, call.kind, core, call.name), from, until, 0, 0, 0, 0, about(&call)]
            }
            Record::Away { from, until } => [AWAY, from, until, 0, 0, 0, 0, 0],
            Record::Message { sent, call, id, at, bytes, peer, context, tag, within } => {
                let kind = if sent { SENT } else { RECEIVED };
                let (own, other) = (two(within.rank, within.size), two(0, within.peer));
                [head(kind, 0, call, id), at, bytes, two(peer, context), own, other, 0, two(0, tag as u32)]
            }
            Record::Collective { call, from, until, context, root, sent, received, within } => {
                let (who, own) = (two(root as u32, context), two(within.rank, within.size));
                [head(COLLECTIVE, 0, call, 0), from, until, sent, received, who, own, two(0, within.peer)]
            }
            Record::Region { begins, region, at } => [head(REGION, begins.into(), 0, region), at, 0, 0, 0, 0, 0, 0],
            Record::Paused { core, at } => [head(PAUSED, 0, core, 0), at, 0, 0, 0, 0, 0, 0],
            Record::Resumed { core, at } => [head(RESUMED, 0, core, 0), at, 0, 0, 0, 0, 0, 0],
            Record::Ended { at } => [ENDED, at, 0, 0, 0, 0, 0, 0],
            Record::Counted { at, core, values: [a, b, c], of_core: [d, e, f] } => {
                [head(COUNTED, 0, core, 0), at, a, b, c, d, e, f]
            }
        }
    }

    /// What the words of a ring say; `None`: nothing that a rank writes.
    pub fn of_words(words: &[u64; RECORD_WORDS]) -> Option<Record> {
        let [head, a, b, c, d, e, f, g] = *words;
        let (kind, call, core, name) = (head & 0xff, (head >> 8) as u8, (head >> 16) as u16, (head >> 32) as u16);
        let ((peer, tag), ordered) = (halves(g), |times: &[u64]| times.is_sorted());
        let call = Call { name, kind: call, peer: peer as i32, tag: tag as i32 };
        let record = match kind {
            TURN => {
                let turn = Turn { core, call, left: a, ready: b, run: c, granted: d, released: e, clock: f };
                (ordered(&[a, b, c]) && ordered(&[e, d, c])).then_some(Record::Turn(turn))?
            }
            WATCHED => ordered(&[a, b]).then_some(Record::Watched { core, call, from: a, until: b })?,
            AWAY => ordered(&[a, b]).then_some(Record::Away { from: a, until: b })?,
            SENT | RECEIVED => {
                let (peer, context) = halves(c);
                let (sent, call, id) = (kind == SENT, core, name);
                let ((rank, size), (_, other)) = (halves(d), halves(e));
                let within = Within { rank, size, peer: other };
                Record::Message { sent, call, id, at: a, bytes: b, peer, context, tag: tag as i32, within }
            }
            COLLECTIVE => {
                let ((root, context), (rank, size), (_, other)) = (halves(e), halves(f), halves(g));
                let within = Within { rank, size, peer: other };
                let (root, sent, received) = (root as i32, c, d);
                ordered(&[a, b]).then_some(Record::Collective {
                    call: core,
                    from: a,
                    until: b,
                    context,
                    root,
                    sent,
                    received,
                    within,
                })?
            }
            REGION => Record::Region { begins: call.kind != 0, region: name, at: a },
            PAUSED => Record::Paused { core, at: a },
            RESUMED => Record::Resumed { core, at: a },
            ENDED => Record::Ended { at: a },
            COUNTED => Record::Counted { at: a, core, values: [b, c, d], of_core: [e, f, g] },
            _ => return None,
        };
        Some(record)
    }

    /// When it was written, nearly: records of a ring are in this order.
    pub fn at(&self) -> u64 {
        match self {
            Record::Turn(turn) => turn.run,
            Record::Watched { until, .. } | Record::Away { until, .. } | Record::Collective { until, .. } => *until,
            Record::Message { at, .. } | Record::Ended { at } | Record::Counted { at, .. } => *at,
            Record::Region { at, .. } | Record::Paused { at, .. } | Record::Resumed { at, .. } => *at,
        }
    }
}

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

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_went() {
        let call = Call { name: 7, kind: 3, peer: -1, tag: -2 };
        let turn = Turn { core: 9, call, left: 1, ready: 2, run: 9, granted: 8, released: 6, clock: u64::MAX };
        for record in [
            Record::Turn(turn),
            Record::Watched { core: 65535, call, from: 1, until: 1 },
            Record::Away { from: 1, until: 2 },
            Record::Message {
                sent: true,
                call: 3,
                id: 65535,
                at: 5,
                bytes: 1 << 40,
                peer: 70000,
                context: u32::MAX,
                tag: -2,
                within: Within { rank: 3, size: 70000, peer: 69999 },
            },
            Record::Message {
                sent: false,
                call: 0,
                id: 0,
                at: 0,
                bytes: 0,
                peer: 0,
                context: 0,
                tag: i32::MAX,
                within: Within::default(),
            },
            Record::Collective {
                call: 2,
                from: 5,
                until: 6,
                context: 8,
                root: -1,
                sent: 1 << 50,
                received: 7,
                within: Within { rank: 1, size: 2, peer: 0 },
            },
            Record::Region { begins: true, region: 127, at: 9 },
            Record::Region { begins: false, region: 0, at: 9 },
            Record::Paused { core: 3, at: 4 },
            Record::Resumed { core: 65535, at: 4 },
            Record::Ended { at: 3 },
            Record::Counted { at: 3, core: 1, values: [1, 2, 3], of_core: [4, 5, u64::MAX] },
        ] {
            assert_eq!(Record::of_words(&record.words()), Some(record));
        }
    }

    #[test]
    fn nonsense_is_no_record() {
        assert_eq!(Record::of_words(&[0; RECORD_WORDS]), None);
        assert_eq!(Record::of_words(&[u64::MAX; RECORD_WORDS]), None);
        let backwards = Record::Turn(Turn { left: 5, ready: 4, run: 9, ..Turn::default() });
        assert_eq!(Record::of_words(&backwards.words()), None);
    }
}
