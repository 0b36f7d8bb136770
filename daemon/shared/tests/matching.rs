//! Matching against a naive model: two lists, scanned in order. Random posts, arrivals, probes and cancels, with
//! wildcards, several contexts, and keys chosen to share a bin.

#![cfg(not(feature = "model"))]

use proptest::prelude::*;
use std::collections::VecDeque;
use vmpi_shared::job::{JobConfig, JobSegment};
use vmpi_shared::matching::envelope::{Envelope, FLAG_SYNC, kind};
use vmpi_shared::matching::mover::{Mover, Transfer};
use vmpi_shared::matching::queues::{Outgoing, Queues, Verdict};
use vmpi_shared::matching::request::{ANY_SOURCE, ANY_TAG, FLAG_AWAITED, FLAG_WAKE, Slot, accepts, state};

const SLOTS: u32 = 12;
const CELLS: u32 = 4;
const SENDER: u32 = 1;

/// Context, source, tag.
type Key = (u32, i32, i32);

#[derive(Debug, Clone)]
enum Step {
    /// `awaited` and `wake` are the slot's flags.
    Post {
        key: Key,
        awaited: bool,
        wake: bool,
    },
    Arrive {
        key: Key,
        sync: bool,
    },
    Probe(Key),
    /// MPI_Mprobe and MPI_Mrecv.
    Take(Key),
    Cancel(prop::sample::Index),
    /// Reap a completed receive.
    Reap(prop::sample::Index),
    Drain,
    /// Prepare to wait for so many completions.
    Arm(u32),
    BlockingProbe(Key),
}

/// Keys without wildcards, several of which share a bin with others.
fn keys() -> Vec<Key> {
    let mut keys = Vec::new();
    // The queues' own hash (if it changes, fewer of these collide, and the test is as right as before).
    let bin = |(context, source, tag): Key| {
        let mix = (u64::from(context) << 40) ^ ((source as u64) << 20) ^ tag as u64;
        mix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
    };
    for context in 0..3 {
        for source in 0..3 {
            keys.push((context, source, 0));
            let home = bin((0, 0, 0));
            keys.extend((1..).map(|tag| (context, source, tag)).filter(|key| bin(*key) == home).take(2));
        }
    }
    keys
}

fn key() -> impl Strategy<Value = Key> {
    prop::sample::select(keys())
}

fn wild() -> impl Strategy<Value = Key> {
    (key(), prop::bool::weighted(0.3), prop::bool::weighted(0.3)).prop_map(|((context, source, tag), any, all)| {
        (context, if any { ANY_SOURCE } else { source }, if all { ANY_TAG } else { tag })
    })
}

fn step() -> impl Strategy<Value = Step> {
    let rarely = || prop::bool::weighted(0.1);
    prop_oneof![
        5 => (wild(), any::<bool>(), rarely()).prop_map(|(key, awaited, wake)| Step::Post { key, awaited, wake }),
        5 => (key(), rarely()).prop_map(|(key, sync)| Step::Arrive { key, sync }),
        1 => wild().prop_map(Step::Probe),
        1 => wild().prop_map(Step::Take),
        1 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        3 => any::<prop::sample::Index>().prop_map(Step::Reap),
        2 => Just(Step::Drain),
        1 => (0..3u32).prop_map(Step::Arm),
        1 => wild().prop_map(Step::BlockingProbe),
    ]
}

#[derive(Clone, Debug)]
struct Message {
    key: Key,
    serial: u32,
    sync: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Receive {
    Posted,
    Got(i32, i32, u32),
    Cancelled,
}

/// What MPI says, in the plainest way.
#[derive(Default)]
struct Naive {
    /// Slot, key, flags and fate; in order of posting.
    receives: Vec<(u32, Key, u32, Receive)>,
    inbox: VecDeque<Message>,
    unexpected: Vec<Message>,
    /// Most of them.
    room: usize,
    missing: u32,
    waiting: bool,
    wake: bool,
    probe: Option<Key>,
    /// The last message that there was no room for.
    declined: Option<u32>,
    /// Synchronous messages that were matched: their senders must be told.
    told: Vec<u32>,
}

fn fits(want: Key, have: Key) -> bool {
    want.0 == have.0 && accepts(want.1, want.2, have.1, have.2)
}

impl Naive {
    fn complete(&mut self, at: usize, fate: Receive) {
        let flags = self.receives[at].2;
        if flags & FLAG_AWAITED != 0 {
            self.missing = self.missing.saturating_sub(1);
        }
        self.wake |= flags & FLAG_WAKE != 0;
        self.receives[at].3 = fate;
    }

    fn give(&mut self, at: usize, message: &Message) {
        if message.sync {
            self.told.push(message.serial);
        }
        self.complete(at, Receive::Got(message.key.1, message.key.2, message.serial));
    }

    fn post(&mut self, slot: u32, key: Key, flags: u32) {
        self.receives.push((slot, key, flags, Receive::Posted));
        if let Some(found) = self.unexpected.iter().position(|message| fits(key, message.key)) {
            let message = self.unexpected.remove(found);
            self.give(self.receives.len() - 1, &message);
        }
    }

    fn drain(&mut self) -> Verdict {
        while let Some(message) = self.inbox.front().cloned() {
            let taker =
                self.receives.iter().position(|(_, key, _, fate)| *fate == Receive::Posted && fits(*key, message.key));
            match taker {
                Some(at) => self.give(at, &message),
                None if self.unexpected.len() == self.room => {
                    // Its owner looks at it once.
                    self.wake |= self.declined.replace(message.serial) != Some(message.serial);
                    break;
                }
                None => {
                    self.wake |= self.probe.is_some_and(|key| fits(key, message.key));
                    self.unexpected.push(message.clone());
                }
            }
            self.inbox.pop_front();
        }
        if self.wake || (self.waiting && self.missing == 0) { Verdict::Ready } else { Verdict::Wait }
    }
}

struct NoCopies;

impl Mover for NoCopies {
    fn owner(&self) -> u32 {
        0
    }
    fn is_owner(&self) -> bool {
        true
    }
    fn transfer(&mut self, _: &Envelope, _: u32, _: &Slot) -> Transfer {
        unreachable!("only small messages here")
    }
    fn piece(&mut self, _: &Envelope, _: &Slot) {
        unreachable!("only small messages here")
    }
    fn help(&mut self, _: &Envelope, _: &Slot) {
        unreachable!("only small messages here")
    }
}

fn envelope(message: &Message) -> Envelope {
    let mut envelope = Envelope::EMPTY;
    envelope.kind = kind::INLINE;
    (envelope.context, envelope.source, envelope.tag) = message.key;
    envelope.from = SENDER;
    envelope.flags = if message.sync { FLAG_SYNC } else { 0 };
    envelope.request = message.serial;
    envelope.len = 4;
    envelope.body[..4].copy_from_slice(&message.serial.to_le_bytes());
    envelope
}

fn serial(inline: &[u8]) -> u32 {
    u32::from_le_bytes(inline[..4].try_into().unwrap())
}

/// Every receive's fate is the model's.
fn compare(queues: &Queues<'_>, naive: &Naive) {
    for (slot, key, _, fate) in &naive.receives {
        let real = &queues.slots[*slot as usize];
        let real = match real.state {
            state::POSTED => Receive::Posted,
            state::CANCELLED => Receive::Cancelled,
            state::ARRIVED => Receive::Got(real.matched_source, real.matched_tag, serial(&real.inline)),
            other => panic!("slot {slot} is in state {other}"),
        };
        assert_eq!(&real, fate, "receive {key:?} in slot {slot}");
    }
    assert_eq!(queues.head.unexpected_count as usize, naive.unexpected.len());
    assert_eq!(queues.head.slots_live as usize, naive.receives.len());
}

/// A rank with room for `own` unexpected messages, in a job with so many chunks for more.
fn run(steps: Vec<Step>, own: u32, chunks: u32) {
    let job = JobSegment::create(&JobConfig {
        ranks: 2,
        inbox_cells: CELLS,
        slots: SLOTS,
        unexpected: own,
        chunks,
        slab_bytes: 4096,
        cells: 1,
        ..JobConfig::default()
    })
    .unwrap();
    // SAFETY: nobody else has this segment.
    let mut queues = unsafe { job.queues(0) };
    let mut naive = Naive { room: if chunks == 0 { own as usize } else { usize::MAX }, ..Naive::default() };
    let mut out = Outgoing::new();
    let mut next_serial = 0;
    for step in steps {
        match step {
            Step::Post { key, awaited, wake } => {
                let Some(index) = queues.take_slot() else {
                    assert_eq!(naive.receives.len(), SLOTS as usize - 1, "a slot was free");
                    continue;
                };
                let flags = if awaited { FLAG_AWAITED } else { 0 } | if wake { FLAG_WAKE } else { 0 };
                let slot = &mut queues.slots[index as usize];
                (slot.context, slot.source, slot.tag) = key;
                slot.flags = flags;
                assert!(naive.receives.iter().all(|(taken, ..)| *taken != index), "slot {index} was in use");
                queues.post(index, &mut NoCopies, &mut out);
                naive.post(index, key, flags);
            }
            Step::Arrive { key, sync } => {
                let message = Message { key, serial: next_serial, sync };
                next_serial += 1;
                let pushed = job.inbox(0).push(&envelope(&message)).is_ok();
                assert_eq!(pushed, naive.inbox.len() < CELLS as usize, "room in the inbox");
                if pushed {
                    naive.inbox.push_back(message);
                }
            }
            Step::Probe(key) => {
                let real = queues.find_unexpected(key.0, key.1, key.2).map(|at| {
                    let e = &queues.unexpected[at as usize].envelope;
                    (e.source, e.tag, serial(&e.body))
                });
                let expected = naive.unexpected.iter().find(|m| fits(key, m.key)).map(|m| (m.key.1, m.key.2, m.serial));
                assert_eq!(real, expected, "probe {key:?}");
            }
            Step::Take(key) => {
                let expected = naive.unexpected.iter().position(|message| fits(key, message.key));
                let real = queues.find_unexpected(key.0, key.1, key.2);
                assert_eq!(real.is_some(), expected.is_some());
                let (Some(real), Some(expected)) = (real, expected) else { continue };
                let Some(slot) = queues.take_slot() else { continue };
                let envelope = queues.take_unexpected(real);
                queues.assign(slot, &envelope, &mut NoCopies, &mut out);
                let message = naive.unexpected.remove(expected);
                naive.receives.push((slot, key, 0, Receive::Posted));
                naive.give(naive.receives.len() - 1, &message);
            }
            Step::Cancel(which) => {
                if naive.receives.is_empty() {
                    continue;
                }
                let at = which.index(naive.receives.len());
                let open = naive.receives[at].3 == Receive::Posted;
                assert_eq!(queues.cancel(naive.receives[at].0), open, "cancel");
                if open {
                    naive.complete(at, Receive::Cancelled);
                }
            }
            Step::Reap(which) => {
                let over: Vec<_> =
                    (0..naive.receives.len()).filter(|at| naive.receives[*at].3 != Receive::Posted).collect();
                if !over.is_empty() {
                    let (slot, ..) = naive.receives.remove(over[which.index(over.len())]);
                    assert!(queues.is_over(slot));
                    queues.free_slot(slot);
                }
            }
            Step::Drain => assert_eq!(queues.drain(&mut NoCopies, &mut out), naive.drain(), "verdict"),
            Step::Arm(missing) => {
                (queues.head.wait_count, queues.head.waiting, queues.head.wake) = (missing, u32::from(missing > 0), 0);
                (naive.missing, naive.waiting, naive.wake) = (missing, missing > 0, false);
            }
            Step::BlockingProbe(key) => {
                let head = &mut *queues.head;
                (head.probe_active, head.probe_context, head.probe_source, head.probe_tag) = (1, key.0, key.1, key.2);
                naive.probe = Some(key);
            }
        }
        compare(&queues, &naive);
        assert!(naive.unexpected.len() <= own as usize || queues.head.chunks != 0 || chunks == 0);
        assert!(naive.unexpected.len() <= (own + own / 4) as usize || queues.head.index != 0 || chunks == 0);
        assert!(!naive.unexpected.is_empty() || queues.head.chunks == 0, "all is given back");
    }
    assert!(out.iter().all(|(to, e)| (*to, e.kind) == (SENDER, kind::FIN)));
    assert_eq!(out.iter().map(|(_, e)| e.request).collect::<Vec<_>>(), naive.told, "answers to synchronous senders");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn matching_is_a_scan_in_order(steps in prop::collection::vec(step(), 1..200)) {
        run(steps, 8, 0);
    }

    /// The same with messages in chunks, and tables to find them by.
    #[test]
    fn so_it_is_of_very_many(steps in prop::collection::vec(step(), 1..200)) {
        run(steps.clone(), 1, 4);
        run(steps, 5, 4);
    }
}
