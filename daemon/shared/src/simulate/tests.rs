//! Programs of random steps, whose ranks are run in random order: what each sees, and when, is the same in any.

use super::engine::{Departure, Engine, Look, NONE};
use super::layout::status;
use super::network::{Cost, Network};
use super::{Compute, SimulationConfig, SimulationSegment};
use crate::matching::envelope::{Envelope, FLAG_SYNC, kind};
use crate::mem::sync::Ordering::SeqCst;

const LATENCY: u64 = 1000;

/// Distances differ, and small messages overtake large ones.
struct Uneven;

impl Network for Uneven {
    fn cost(&self, from: u32, to: u32, bytes: u64) -> Cost {
        let wire = LATENCY + u64::from(from.abs_diff(to)) * 7 + bytes * 3;
        Cost { send_overhead: 50, wire, receive_overhead: 0, gap: 20 }
    }
}

#[derive(Copy, Clone, Debug)]
enum Step {
    Send {
        to: u32,
        bytes: u64,
        asks: bool,
    },
    /// Until so many messages have come, all together.
    Wait {
        count: usize,
    },
    /// What has come by now?
    Look,
    Compute {
        time: u64,
    },
}

fn program(ranks: u32, random: &mut fastrand::Rng) -> Vec<Step> {
    let mut count = 0;
    (0..40)
        .map(|_| match random.u32(..10) {
            0..=3 => Step::Send { to: random.u32(..ranks), bytes: random.u64(..1000), asks: random.u32(..4) == 0 },
            4..=5 => {
                count += random.usize(1..3);
                Step::Wait { count }
            }
            6..=7 => Step::Look,
            // Often the same times at several ranks.
            _ => Step::Compute { time: random.u64(..4) * 500 },
        })
        .collect()
}

/// A rank: where it is, and what it has seen.
struct Rank {
    steps: Vec<Step>,
    next: usize,
    clock: u64,
    number: u64,
    before: Vec<(u32, u64)>,
    /// It waits in its step: it has asked the engine for that.
    asked: bool,
    /// Messages: arrival, sender, and their number.
    messages: Vec<(u64, u32, i32)>,
    seen: Vec<String>,
}

impl Rank {
    fn number(&mut self) -> u64 {
        self.number += 2;
        self.number
    }

    /// Take in, and answer who asks for that.
    fn take_in(&mut self, engine: &mut Engine<'_>, me: u32, taken: Vec<(u64, Envelope)>) {
        for (at, envelope) in taken {
            if envelope.kind == kind::FIN {
                self.messages.push((at, envelope.from, -1));
                continue;
            }
            self.messages.push((at, envelope.from, envelope.tag));
            if envelope.flags & FLAG_SYNC != 0 {
                let mut fin = Envelope::EMPTY;
                (fin.kind, fin.from) = (kind::FIN, me);
                let number = self.number();
                engine.arrive(at + LATENCY + 50, (me, number), envelope.from, &fin).unwrap();
            }
        }
    }

    /// One go. False: it cannot go on now.
    fn step(&mut self, engine: &mut Engine<'_>, me: u32) -> bool {
        let Some(step) = self.steps.get(self.next).copied() else {
            engine.finish(me);
            return false;
        };
        let mut taken = Vec::new();
        match step {
            Step::Send { to, bytes, asks } => {
                let mut envelope = Envelope::EMPTY;
                (envelope.kind, envelope.from, envelope.len, envelope.tag) = (kind::SLAB, me, bytes, self.next as i32);
                envelope.flags = if asks { FLAG_SYNC } else { 0 };
                let (number, before) = (self.number(), self.before[to as usize]);
                let departure = Departure { at: self.clock, number, from: me, to, before, envelope: &envelope };
                let (event, tie) = engine.send(&departure).unwrap();
                self.before[to as usize] = (event + 1, tie);
                if engine.has_nothing(me) {
                    engine.advance(me, self.clock);
                }
                self.clock += 50;
            }
            Step::Compute { time } => self.clock += time,
            Step::Wait { count } => {
                if self.asked {
                    self.clock = self.clock.max(engine.take_woken(me, &mut taken));
                    self.asked = false;
                    self.take_in(engine, me, taken);
                    return true;
                }
                if self.messages.len() < count {
                    engine.take(me, self.clock, &mut taken);
                    if taken.is_empty() {
                        match engine.until(me, 1) {
                            Ok(until) => {
                                engine.take(me, until, &mut taken);
                                self.clock = self.clock.max(until);
                            }
                            Err(left) => {
                                engine.ranks[me as usize].clock.store(self.clock, SeqCst);
                                engine.wait(me, left);
                                self.asked = true;
                                return false;
                            }
                        }
                    }
                    self.take_in(engine, me, taken);
                    return true;
                }
                // More may have been taken, if they came by now; how many is no matter of the program's.
                self.seen.push(format!("{:?} at {}", &self.messages[..count], self.clock));
            }
            Step::Look => {
                let look = match self.asked {
                    true => engine.wait_on(me, self.clock),
                    false => {
                        let number = self.number();
                        engine.wait_until(me, self.clock, number).unwrap()
                    }
                };
                match look {
                    Look::Take => {
                        engine.take(me, self.clock, &mut taken);
                        self.take_in(engine, me, taken);
                        return true;
                    }
                    Look::Waits => {
                        self.asked = true;
                        return false;
                    }
                    Look::Reached => self.asked = false,
                }
                self.seen.push(format!("{} by {}: {:?}", self.messages.len(), self.clock, self.messages.last()));
            }
        }
        self.next += 1;
        true
    }
}

fn segment(ranks: u32, lookahead: u64) -> SimulationSegment {
    let config = SimulationConfig {
        ranks,
        image: &[0; 13],
        lookahead,
        compute: Compute::None,
        flow_bytes: 0,
        begin_flows: &|_| {},
    };
    SimulationSegment::create(&config).unwrap()
}

/// What each rank has seen.
fn run(ranks: u32, programs: u64, order: u64) -> (Vec<Vec<String>>, u64) {
    let segment = segment(ranks, LATENCY);
    let mut random = fastrand::Rng::with_seed(programs);
    let mut all: Vec<Rank> = (0..ranks)
        .map(|_| Rank {
            steps: program(ranks, &mut random),
            next: 0,
            clock: 0,
            number: 0,
            before: vec![(0, 0); ranks as usize],
            asked: false,
            messages: Vec::new(),
            seen: Vec::new(),
        })
        .collect();
    let mut random = fastrand::Rng::with_seed(order);
    loop {
        let mut woken = Vec::new();
        let runs = |rank: &u32| segment.rank(*rank).status.load(SeqCst) == status::RUNS;
        let ready: Vec<u32> = (0..ranks).filter(runs).collect();
        if ready.is_empty() || random.u32(..4) == 0 {
            segment.locked(0, |engine| engine.settle(&Uneven, &mut woken)).unwrap();
            if ready.is_empty() && woken.is_empty() {
                break;
            }
            continue;
        }
        let me = ready[random.usize(..ready.len())];
        // Some go on for long, some hardly.
        for _ in 0..random.u32(1..6) {
            if !segment.locked(me, |engine| all[me as usize].step(engine, me)) {
                break;
            }
        }
    }
    let stalled = segment.locked(0, |engine| {
        assert!(engine.is_stalled() && NONE == 0);
        engine.counts.events
    });
    assert!(segment.is_stalled());
    (all.into_iter().map(|rank| rank.seen).collect(), stalled)
}

#[test]
fn what_ranks_see_follows_from_their_programs_alone() {
    let (mut waits, mut all_events) = (0, 0);
    for programs in 0..60 {
        let ranks = [2, 3, 5, 9][programs as usize % 4];
        let (first, events) = run(ranks, programs, 0);
        waits += first.iter().flatten().count();
        all_events += events;
        for order in 1..12 {
            assert_eq!(run(ranks, programs, order).0, first, "programs {programs}, order {order}");
        }
    }
    assert!(waits > 300 && all_events > 2000, "they have seen something: {waits} times, {all_events} events");
}

#[test]
fn a_message_takes_what_the_network_says_and_keeps_its_place() {
    let segment = segment(2, LATENCY);
    let arrivals = segment.locked(0, |engine| {
        let mut before = (0, 0);
        // The second is small, and would be there before the first.
        for (number, (at, bytes)) in [(0, 1000), (10, 0), (50_000, 0)].into_iter().enumerate() {
            let mut envelope = Envelope::EMPTY;
            (envelope.kind, envelope.len) = (kind::SLAB, bytes);
            let number = number as u64;
            let (event, tie) =
                engine.send(&Departure { at, number, from: 0, to: 1, before, envelope: &envelope }).unwrap();
            before = (event + 1, tie);
        }
        let mut woken = Vec::new();
        engine.wait(0, NONE);
        engine.wait(1, 3);
        engine.settle(&Uneven, &mut woken).unwrap();
        assert_eq!(woken, [1], "when the third is there");
        let mut taken = Vec::new();
        assert_eq!(engine.take_woken(1, &mut taken), 51_057);
        taken.iter().map(|(at, envelope)| (*at, envelope.len)).collect::<Vec<_>>()
    });
    assert_eq!(arrivals, [(50 + 1007 + 3000, 1000), (50 + 1007 + 3000, 0), (50_000 + 50 + 1007, 0)]);
}

#[test]
fn nothing_is_settled_that_a_running_rank_may_still_come_before() {
    let segment = segment(3, LATENCY);
    segment.locked(0, |engine| {
        let mut envelope = Envelope::EMPTY;
        envelope.kind = kind::INLINE;
        let departure = Departure { at: 0, number: 0, from: 0, to: 1, before: (0, 0), envelope: &envelope };
        engine.send(&departure).unwrap();
        let mut woken = Vec::new();
        engine.wait(0, NONE);
        engine.wait(1, 1);
        engine.settle(&Uneven, &mut woken).unwrap();
        assert!(woken.is_empty(), "rank 2 may send at 0");
        engine.advance(2, 1);
        engine.settle(&Uneven, &mut woken).unwrap();
        assert!(woken.is_empty(), "it leaves, and what rank 2 sends may be there before");
        engine.advance(2, 57);
        engine.settle(&Uneven, &mut woken).unwrap();
        assert!(woken.is_empty());
        engine.advance(2, 58);
        engine.settle(&Uneven, &mut woken).unwrap();
        assert_eq!(woken, [1], "whatever rank 2 sends comes later");
    });
}

#[test]
fn events_that_have_no_room_are_refused() {
    let segment = segment(1, 1);
    segment.locked(0, |engine| {
        let room = engine.events.len();
        let envelope = Envelope::EMPTY;
        for number in 0..room as u64 {
            assert_eq!(engine.is_crowded(), number as usize > room / 4 * 3);
            engine.arrive(5, (0, number), 0, &envelope).unwrap();
        }
        assert!(engine.arrive(5, (0, room as u64), 0, &envelope).is_err());
        let mut woken = Vec::new();
        engine.wait(0, 1);
        engine.settle(&Uneven, &mut woken).unwrap();
        let mut taken = Vec::new();
        engine.take(0, 5, &mut taken);
        assert_eq!(taken.len(), room);
        engine.arrive(9, (0, room as u64 + 1), 0, &envelope).unwrap();
    });
}
