//! Programs of random steps, whose ranks are run in random order: what each sees, and when, is the same in any.

use super::engine::{Departure, Engine, Look, NONE};
use super::layout::{Step as Part, status};
use super::network::Network;
use super::play::{Holding, Played};
use super::{Compute, SimulationConfig, SimulationSegment};
use crate::matching::envelope::{Envelope, FLAG_SYNC, FLAG_UNANSWERED, kind};
use crate::matching::queues::answer;
use crate::mem::sync::Ordering::SeqCst;
use std::cell::RefCell;
use std::rc::Rc;

mod known;
mod networks;
mod operations;

use networks::{Even, LATENCY, Narrow, RECEIVE, Uneven};

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
    /// Until a message of this rank has come that no such step has had.
    Named {
        from: u32,
    },
    /// What has come by now?
    Look,
    Compute {
        time: u64,
    },
    Barrier,
    /// Change a number of another rank's, which takes no part; what it was is seen.
    Change {
        at: u32,
        bytes: u64,
    },
    /// Until all that have been begun are answered.
    Flush,
}

/// Requests of changes, from here on.
const CHANGES: u32 = 1000;

/// The tag of a barrier's messages.
const BARRIER: i32 = -2;

/// All ranks come to each barrier: no wait keeps one from it.
fn program_with_barriers(ranks: u32, random: &mut fastrand::Rng) -> Vec<Step> {
    (0..40)
        .map(|at| match random.u32(..10) {
            _ if at % 8 == 7 => Step::Barrier,
            0..=4 => Step::Send { to: random.u32(..ranks), bytes: random.u64(..3) * 700, asks: random.u32(..3) == 0 },
            5..=6 => Step::Look,
            _ => Step::Compute { time: random.u64(..4) * 500 },
        })
        .collect()
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
    /// Barriers are played by the engine; else message by message.
    played: bool,
    /// It has joined one, which is to begin.
    joined: bool,
    begins: bool,
    /// It takes what it names as soon as it is known; so many were.
    eager: bool,
    known: usize,
    /// Of one by messages: the round, whether its message is sent, and those that have come of each rank.
    round: u32,
    sent: bool,
    met: Vec<u32>,
    /// A number of each rank, and whose it changes by which request.
    numbers: Rc<RefCell<Vec<u64>>>,
    changes: Vec<u32>,
    answered: usize,
}

impl Rank {
    fn new(steps: Vec<Step>, ranks: u32, played: bool) -> Rank {
        Rank {
            steps,
            next: 0,
            clock: 0,
            number: 0,
            before: vec![(0, 0); ranks as usize],
            asked: false,
            messages: Vec::new(),
            seen: Vec::new(),
            played,
            joined: false,
            begins: false,
            eager: false,
            known: 0,
            round: 0,
            sent: false,
            met: vec![0; ranks as usize],
            numbers: Rc::default(),
            changes: Vec::new(),
            answered: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.number += 2;
        self.number
    }

    /// Take in, and answer who asks for that.
    fn take_in(&mut self, engine: &mut Engine<'_>, me: u32, taken: Vec<(u64, Envelope)>) {
        for (at, envelope) in taken {
            if envelope.kind == kind::OPERATION {
                self.change(engine, me, at, envelope.request);
                continue;
            }
            if envelope.kind == kind::FIN {
                self.answered += usize::from(envelope.request >= CHANGES);
                self.messages.push((at, envelope.from, -1));
                continue;
            }
            if envelope.kind == kind::PLACED {
                self.messages.push((at, envelope.from, -3));
                continue;
            }
            if envelope.tag == BARRIER {
                self.met[envelope.from as usize] += 1;
                continue;
            }
            self.messages.push((at, envelope.from, envelope.tag));
            if envelope.flags & FLAG_SYNC != 0 {
                let mut fin = Envelope::EMPTY;
                (fin.kind, fin.from) = (kind::FIN, me);
                (fin.len, fin.request) = (envelope.len, envelope.request);
                let heard = at + LATENCY + 50;
                if envelope.kind == kind::RTS {
                    engine.send_data(heard, (me, 0), (envelope.from, envelope.request.into()), &fin).unwrap();
                    continue;
                }
                engine.arrive(heard, me, (envelope.from, envelope.request.into()), &fin, &mut Vec::new()).unwrap();
            }
        }
    }

    fn send(&mut self, engine: &mut Engine<'_>, me: u32, network: &dyn Network, to: u32, envelope: &Envelope) {
        let (number, before) = (self.number(), self.before[to as usize]);
        let departure = Departure { at: self.clock, number, from: me, to, before, envelope };
        let (event, tie) = engine.send(&departure, network, &mut Vec::new()).unwrap();
        self.before[to as usize] = (event + 1, tie);
        if engine.has_nothing(me) {
            engine.advance(me, self.clock);
        }
        self.clock += 50;
    }

    /// One go of waiting for one more arrival. False: it cannot go on now.
    fn wait(&mut self, engine: &mut Engine<'_>, me: u32, need: u32) -> bool {
        let mut taken = Vec::new();
        let until = if self.asked {
            engine.take_woken(me, &mut taken)
        } else {
            let Some(until) = engine.wait_for(me, need, &mut taken) else {
                engine.ranks[me as usize].clock.store(self.clock, SeqCst);
                self.asked = true;
                return false;
            };
            until
        };
        self.asked = false;
        self.clock = self.clock.max(until);
        self.take_in(engine, me, taken);
        true
    }

    /// A barrier by dissemination, message by message. `None`: it is over.
    fn barrier(&mut self, engine: &mut Engine<'_>, me: u32, network: &dyn Network) -> Option<bool> {
        let ranks = self.met.len() as u32;
        while 1 << self.round < ranks {
            let distance = 1 << self.round;
            if !self.sent {
                let mut envelope = Envelope::EMPTY;
                (envelope.kind, envelope.from, envelope.tag) = (kind::SLAB, me, BARRIER);
                self.send(engine, me, network, (me + distance) % ranks, &envelope);
                self.sent = true;
            }
            let met = &mut self.met[((me + ranks - distance) % ranks) as usize];
            if *met == 0 {
                return Some(self.wait(engine, me, 1));
            }
            *met -= 1;
            self.clock += RECEIVE;
            (self.round, self.sent) = (self.round + 1, false);
        }
        self.round = 0;
        None
    }

    /// The same, played. `None`: it is over.
    fn join(&mut self, engine: &mut Engine<'_>, me: u32, network: &dyn Network) -> Option<bool> {
        let (mut taken, mut woken) = (Vec::new(), Vec::new());
        if !self.joined {
            let ranks = self.met.len() as u32;
            let step = |round: u32| {
                let (to, from) = ((me + (1 << round)) % ranks, (me + ranks - (1 << round)) % ranks);
                let (before, before_tie) = self.before[to as usize];
                Part { to, from, before, does: 0, before_tie }
            };
            let steps: Vec<Part> = (0..32).take_while(|round| 1u64 << round < u64::from(ranks)).map(step).collect();
            let number = self.number + 2;
            self.number += 2 * steps.len() as u64;
            engine.join(me, (self.clock, number), 7, &steps, &Holding::NOTHING);
            (self.joined, self.begins) = (true, true);
        }
        if std::mem::take(&mut self.asked) {
            engine.take_woken(me, &mut taken);
            self.take_in(engine, me, taken);
            return Some(true);
        }
        let begins = std::mem::take(&mut self.begins);
        match engine.play_on(me, begins, network, (&mut taken, &mut woken)).unwrap() {
            Played::Take => {
                self.take_in(engine, me, taken);
                Some(true)
            }
            Played::Waits => {
                self.asked = true;
                Some(false)
            }
            Played::Over(clock) => {
                self.clock = clock;
                let sent: Vec<_> = engine.sent_in_part(me).collect();
                sent.into_iter().for_each(|(to, (event, tie))| self.before[to as usize] = (event + 1, tie));
                self.joined = false;
                None
            }
        }
    }

    /// One go. False: it cannot go on now.
    fn step(&mut self, engine: &mut Engine<'_>, me: u32, network: &dyn Network) -> bool {
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
                envelope.request = self.next as u32;
                if asks && self.next.is_multiple_of(2) {
                    envelope.kind = kind::RTS;
                }
                self.send(engine, me, network, to, &envelope);
            }
            Step::Change { at, bytes } => {
                let request = CHANGES + self.changes.len() as u32;
                self.changes.push(at);
                let mut envelope = answer(kind::OPERATION, request);
                (envelope.from, envelope.len) = (me, bytes);
                envelope.flags = if request.is_multiple_of(3) { FLAG_UNANSWERED } else { 0 };
                envelope.set_offset(bytes / 2);
                self.send(engine, me, network, at, &envelope);
            }
            Step::Flush => {
                if self.asked || self.answered < self.changes.len() {
                    return self.wait(engine, me, 1);
                }
                self.seen.push(format!("all by {}", self.clock));
            }
            Step::Compute { time } => self.clock += time,
            Step::Named { from } => {
                if let Some(goes_on) = self.await_named(engine, me, from) {
                    return goes_on;
                }
            }
            Step::Barrier => {
                let goes_on = match self.played {
                    true => self.join(engine, me, network),
                    false => self.barrier(engine, me, network),
                };
                if let Some(goes_on) = goes_on {
                    return goes_on;
                }
                self.seen.push(format!("a barrier at {}", self.clock));
            }
            Step::Wait { count } => {
                if self.asked || self.messages.len() < count {
                    return self.wait(engine, me, count.saturating_sub(self.messages.len()).max(1) as u32);
                }
                // What has been taken besides is seen by a program that has several requests open.
                self.seen.push(format!("{:?} at {}", self.messages, self.clock));
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
                self.messages.sort_unstable();
                self.seen.push(format!("{} by {}: {:?}", self.messages.len(), self.clock, self.messages.last()));
                if let Some(number) = self.numbers.borrow().get(me as usize) {
                    self.seen.push(format!("{number:x}"));
                }
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
        by_messages: false,
        flow_bytes: 1 << 14,
        begin_flows: &|_| {},
    };
    SimulationSegment::create(&config).unwrap()
}

/// What each rank has seen, and what the engine has gone through.
fn run_all(network: &dyn Network, all: Vec<Rank>, order: u64) -> (Vec<Vec<String>>, u64) {
    let (all, events) = run_to_the_end(network, all, order);
    (all.into_iter().map(|rank| rank.seen).collect(), events)
}

/// The ranks at their ends.
fn run_to_the_end(network: &dyn Network, mut all: Vec<Rank>, order: u64) -> (Vec<Rank>, u64) {
    let ranks = all.len() as u32;
    let segment = segment(ranks, LATENCY);
    let mut random = fastrand::Rng::with_seed(order);
    loop {
        let mut woken = Vec::new();
        let runs = |rank: &u32| segment.rank(*rank).status.load(SeqCst) == status::RUNS;
        let ready: Vec<u32> = (0..ranks).filter(runs).collect();
        if ready.is_empty() || random.u32(..4) == 0 {
            segment.locked(0, |engine| engine.settle(network, &mut woken)).unwrap();
            if ready.is_empty() && woken.is_empty() {
                break;
            }
            continue;
        }
        let me = ready[random.usize(..ready.len())];
        // Some go on for long, some hardly.
        for _ in 0..random.u32(1..6) {
            if !segment.locked(me, |engine| all[me as usize].step(engine, me, network)) {
                break;
            }
        }
    }
    let events = segment.locked(0, |engine| {
        assert!(engine.is_stalled() && NONE == 0);
        engine.counts.events
    });
    assert!(segment.is_stalled());
    (all, events)
}

fn run(network: &dyn Network, ranks: u32, programs: u64, order: u64) -> (Vec<Vec<String>>, u64) {
    let mut random = fastrand::Rng::with_seed(programs);
    let all = (0..ranks).map(|_| Rank::new(program(ranks, &mut random), ranks, false)).collect();
    run_all(network, all, order)
}

#[test]
fn what_ranks_see_follows_from_their_programs_alone() {
    let (mut waits, mut all_events) = (0, 0);
    for programs in 0..90 {
        let ranks = [2, 3, 5, 9][programs as usize % 4];
        let network: &dyn Network = [&Uneven as &dyn Network, &Even, &Narrow][programs as usize % 3];
        let (first, events) = run(network, ranks, programs, 0);
        waits += first.iter().flatten().count();
        all_events += events;
        for order in 1..12 {
            assert_eq!(run(network, ranks, programs, order).0, first, "programs {programs}, order {order}");
        }
    }
    assert!(waits > 300 && all_events > 2000, "they have seen something: {waits} times, {all_events} events");
}

/// What comes at one time comes one after the other, by sender: whoever waits for one of them takes one, whether they were there before it waited or not.
#[test]
fn of_what_comes_at_the_same_time_no_more_is_taken_than_is_waited_for() {
    let taken = |late: bool| {
        let segment = segment(3, LATENCY);
        segment.locked(0, |engine| {
            let mut woken = Vec::new();
            for from in [2, 1] {
                let mut envelope = Envelope::EMPTY;
                (envelope.kind, envelope.from) = (kind::INLINE, from);
                let departure = Departure { at: 0, number: 0, from, to: 0, before: (0, 0), envelope: &envelope };
                engine.send(&departure, &Even, &mut woken).unwrap();
                engine.wait(from, NONE);
            }
            let mut taken = Vec::new();
            if late {
                engine.advance(0, 100);
                engine.settle(&Even, &mut woken).unwrap();
                assert_eq!(engine.wait_for(0, 1, &mut taken), Some(LATENCY + 50));
            } else {
                assert_eq!(engine.wait_for(0, 1, &mut taken), None);
                engine.settle(&Even, &mut woken).unwrap();
                assert_eq!((engine.take_woken(0, &mut taken), woken), (LATENCY + 50, vec![0]));
            }
            taken.into_iter().map(|(at, envelope)| (at, envelope.from)).collect::<Vec<_>>()
        })
    };
    assert_eq!(taken(false), [(LATENCY + 50, 1)]);
    assert_eq!(taken(true), [(LATENCY + 50, 1)]);
}

/// A rank that does not come is named by those that wait for it.
#[test]
fn who_is_waited_for_in_a_barrier_is_told() {
    let segment = segment(3, LATENCY);
    assert_eq!(segment.awaits(0), None);
    let mut ranks: Vec<Rank> = (0..3).map(|_| Rank::new(vec![Step::Barrier], 3, true)).collect();
    for me in [0, 2] {
        segment.locked(me, |engine| assert!(!ranks[me as usize].step(engine, me, &Even)));
    }
    let mut woken = Vec::new();
    segment.locked(1, |engine| {
        // What has come before it joins is none of its business yet, though it waits for something else.
        engine.ranks[1].clock.store(500, SeqCst);
        engine.wait(1, 1);
        engine.settle(&Even, &mut woken).unwrap();
        assert_eq!((engine.ranks[1].clock.load(SeqCst), woken.len(), engine.ranks[1].need), (500, 0, 1));
        engine.finish(1);
        engine.settle(&Even, &mut woken).unwrap();
    });
    assert_eq!((segment.awaits(0), segment.awaits(2)), (Some((7, 1)), Some((7, 1))));
    assert!(woken.is_empty() && segment.is_stalled() && segment.awaits(3).is_none());
}

/// Skewed by what they compute and send meanwhile, on networks with distances, ties, and shared links; some answer others while they wait in the barrier.
#[test]
fn a_barrier_that_is_played_takes_what_its_messages_take() {
    let (mut barriers, mut rounds) = (0, (0, 0));
    for programs in 0..60 {
        let ranks = [2, 3, 5, 8, 13][programs as usize % 5];
        let network: &dyn Network = [&Uneven as &dyn Network, &Even, &Narrow][programs as usize % 3];
        let run = |played: bool, order: u64| {
            let mut random = fastrand::Rng::with_seed(programs);
            let ranks = 0..ranks;
            let all =
                ranks.clone().map(|_| Rank::new(program_with_barriers(ranks.end, &mut random), ranks.end, played));
            run_all(network, all.collect(), order)
        };
        let (by_messages, events) = run(false, 0);
        rounds.0 += events;
        barriers += by_messages.iter().flatten().filter(|line| line.starts_with("a barrier")).count() as u32 / ranks;
        for order in 0..8 {
            let (played, events) = run(true, order);
            assert_eq!(played, by_messages, "programs {programs}, order {order}");
            rounds.1 += events;
        }
    }
    assert_eq!(barriers, 60 * 5);
    assert!(rounds.0 > 5000 && rounds.1 > 5000, "{rounds:?}");
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
            let (event, tie) = engine
                .send(&Departure { at, number, from: 0, to: 1, before, envelope: &envelope }, &Uneven, &mut Vec::new())
                .unwrap();
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
        let mut woken = Vec::new();
        engine.send(&departure, &Uneven, &mut woken).unwrap();
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
        let mut woken = Vec::new();
        for request in 0..room as u32 {
            engine.arrive(5, 0, (0, request.into()), &envelope, &mut woken).unwrap();
        }
        assert!(engine.arrive(5, 0, (0, room as u64), &envelope, &mut woken).is_err());
        engine.wait(0, 1);
        engine.settle(&Uneven, &mut woken).unwrap();
        let mut taken = Vec::new();
        engine.take(0, 5, &mut taken);
        assert_eq!(taken.len(), room);
        engine.arrive(9, 0, (0, 0), &envelope, &mut woken).unwrap();
    });
}
