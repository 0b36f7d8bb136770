//! Collectives that the engine plays: their messages are events as all others, at the same times, but the ranks are not made to run for each of them.
//!
//! A rank that joins says which messages it sends and receives, step by step, and waits. From then on whoever goes through events takes its steps: the one
//! message of a step leaves at the rank's clock, the other one is met, the clock goes on as the rank itself would have it, and so on to the end, when the
//! rank is made to run. So each rank is switched in once instead of in each round (muPi's virtual barrier, whose members join by a counter), and
//! times are those of message by message by construction: interfaces, shared links and the order of a pair's messages are the same code.
//! So are results: a few data go with the messages, and are combined as the rank itself would combine them, in the same order.

use super::engine::{Engine, Exhausted, NONE, asks};
use super::layout::{Event, MOST_DATA, MOST_STEPS, NOBODY, Part, Step, add, does, status, what};
use super::network::Network;
use crate::arith::{Builtin, Element, combine};
use crate::matching::envelope::{Envelope, kind};
use crate::mem::sync::Ordering;

const RELAXED: Ordering = Ordering::Relaxed;

/// How it stands with a rank that has joined.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Played {
    /// It is to answer what it has been given, and to ask again.
    Take,
    Waits,
    /// Its part is over at this time; it runs.
    Over(u64),
}

/// What a rank has in a collective: at first what it brings, in the end the result.
#[derive(Copy, Clone)]
pub struct Holding {
    pub bytes: u32,
    pub data: [u8; MOST_DATA],
    /// How what is received is combined with it, where that is said.
    pub arithmetic: Option<(Builtin, Element)>,
    /// More bytes have come than it has.
    pub too_long: bool,
}

impl Holding {
    /// What a barrier's messages carry.
    pub const NOTHING: Holding = Holding { bytes: 0, data: [0; MOST_DATA], arithmetic: None, too_long: false };
}

impl Part {
    fn mine(&self) -> &[u8] {
        &self.data[..(self.bytes as usize).min(MOST_DATA)]
    }

    /// The message of `step` has come, with these data of so many bytes.
    fn take_in(&mut self, step: &Step, bytes: u64, data: &[u8; MOST_DATA]) {
        if bytes > u64::from(self.bytes) {
            // As with messages: what is sent from now on is a byte too long, so that all who would get something wrong hear of it.
            self.too_long = 1;
        }
        let len = (bytes as usize).min(self.mine().len());
        let (theirs, mine) = (&data[..len], &mut self.data[..len]);
        // What comes out of shared memory may be anything.
        let arithmetic = (Builtin::try_from(self.op).ok()).zip(Element::try_from(self.element).ok());
        match (step.does, arithmetic) {
            (does::REPLACE, _) => mine.copy_from_slice(theirs),
            (does::COMBINE, Some((op, element))) => {
                combine(op, element, theirs, mine);
            }
            (does::COMBINE_BEHIND, Some((op, element))) => {
                let mut result = *data;
                combine(op, element, mine, &mut result[..len]);
                mine.copy_from_slice(&result[..len]);
            }
            _ => {}
        }
    }
}

impl Engine<'_> {
    /// `rank`, which runs, joins at `clock` with its steps, and what it brings; its messages have numbers from `number` on. No more than [`MOST_STEPS`].
    pub fn join(&mut self, rank: u32, (clock, number): (u64, u64), context: u32, steps: &[Step], brings: &Holding) {
        let part = &mut self.parts[rank as usize];
        (part.context, part.clock, part.number) = (context, clock, number);
        (part.bytes, part.too_long) = (brings.bytes.min(MOST_DATA as u32), brings.too_long.into());
        part.data[..part.bytes as usize].copy_from_slice(&brings.data[..part.bytes as usize]);
        if let Some((op, element)) = brings.arithmetic {
            (part.op, part.element) = (op as u8, element as u8);
        }
        (part.at, part.sent, part.under_way) = (0, 0, 1);
        let count = steps.len().min(MOST_STEPS);
        part.steps = count as u32;
        part.step[..count].copy_from_slice(&steps[..count]);
    }

    /// `rank`, which runs and has joined: what now? At first (`begins`) its steps begin.
    pub fn play_on(
        &mut self,
        rank: u32,
        begins: bool,
        network: &dyn Network,
        (taken, woken): (&mut Vec<(u64, Envelope)>, &mut Vec<u32>),
    ) -> Result<Played, Exhausted> {
        if begins {
            self.wait(rank, NONE);
            self.play(rank, network, woken)?;
        }
        let part = &self.parts[rank as usize];
        let over = (part.under_way == 0).then_some(part.clock);
        // What it has to answer by then; nobody waits for that while it waits. If its part is not over, that ends behind all that has come.
        if let Some((index, at)) = self.first_asking(rank).filter(|(_, at)| over.is_none_or(|over| *at <= over)) {
            if self.ranks[rank as usize].status.load(RELAXED) == status::WAITS {
                self.set_running(rank, at);
            } else if at < self.ranks[rank as usize].bound {
                self.advance(rank, at);
            }
            self.take_through(rank, at, index, taken);
            return Ok(Played::Take);
        }
        if let Some(clock) = over {
            self.advance(rank, clock);
            return Ok(Played::Over(clock));
        }
        if !begins {
            self.wait(rank, NONE);
        }
        Ok(Played::Waits)
    }

    /// A message of a collective is there.
    pub(super) fn meet(&mut self, index: u32, network: &dyn Network, woken: &mut Vec<u32>) -> Result<(), Exhausted> {
        let rank = self.events[index as usize].to;
        self.events[index as usize].next = 0;
        let part = &mut self.parts[rank as usize];
        match part.early_last {
            0 => part.early = index + 1,
            last => self.events[last as usize - 1].next = index + 1,
        }
        self.parts[rank as usize].early_last = index + 1;
        self.play(rank, network, woken)
    }

    /// The first of what has arrived at `rank` that it has to answer (index + 1), and when that came.
    fn first_asking(&self, rank: u32) -> Option<(u32, u64)> {
        let mut at = self.ranks[rank as usize].first;
        while let Some(event) = at.checked_sub(1).map(|index| &self.events[index as usize]) {
            if asks(&event.envelope) {
                return Some((at, event.time));
            }
            at = event.next;
        }
        None
    }

    /// Take the steps of `rank` that can be taken.
    fn play(&mut self, rank: u32, network: &dyn Network, woken: &mut Vec<u32>) -> Result<(), Exhausted> {
        loop {
            let part = &self.parts[rank as usize];
            if part.under_way == 0 {
                return Ok(());
            }
            if part.at >= part.steps.min(MOST_STEPS as u32) {
                self.end(rank, woken);
                return Ok(());
            }
            let step = part.step[part.at as usize];
            if part.sent == 0 {
                self.send_step(rank, &step, network, woken)?;
            }
            if step.from != NOBODY {
                let Some(index) = self.take_early(rank, step.from) else { return Ok(()) };
                let Event { time: at, envelope: Envelope { len: bytes, .. }, .. } = self.events[index as usize];
                if step.does != does::NOTHING {
                    let data = &self.events[index as usize].envelope.body;
                    self.parts[rank as usize].take_in(&step, bytes, data);
                }
                self.free_event(index);
                let busy = network.cost(step.from, rank, bytes).receive_overhead;
                let (part, descriptor) = (&mut self.parts[rank as usize], &self.ranks[rank as usize]);
                add(&descriptor.waited, at.saturating_sub(part.clock));
                add(&descriptor.sent, busy);
                part.clock = part.clock.max(at).saturating_add(busy);
            }
            let part = &mut self.parts[rank as usize];
            (part.at, part.sent) = (part.at + 1, 0);
        }
    }

    fn send_step(
        &mut self,
        rank: u32,
        step: &Step,
        network: &dyn Network,
        woken: &mut Vec<u32>,
    ) -> Result<(), Exhausted> {
        let part = &mut self.parts[rank as usize];
        part.sent = 1;
        if step.to == NOBODY {
            return Ok(());
        }
        let (at, clock, number) = (part.at as usize, part.clock, part.number + u64::from(part.at));
        let context = part.context;
        let bytes = u64::from(part.bytes) + u64::from(part.too_long);
        let index = self.make(what::LEAVES, (rank, number), step.to, &Envelope::EMPTY)?;
        let (event, part) = (&mut self.events[index as usize], &self.parts[rank as usize]);
        (event.envelope.kind, event.envelope.len) = (kind::SLAB, bytes);
        event.envelope.body[..part.mine().len()].copy_from_slice(part.mine());
        (event.before, event.before_tie, event.played) = (step.before, step.before_tie, context + 1);
        let tie = event.tie;
        self.depart(index, clock, network, woken)?;
        let busy = network.cost(rank, step.to, bytes).send_overhead;
        let (part, descriptor) = (&mut self.parts[rank as usize], &self.ranks[rank as usize]);
        (part.step[at].before, part.step[at].before_tie) = (index + 1, tie);
        part.clock = clock.saturating_add(busy);
        add(&descriptor.sent, busy);
        add(&descriptor.messages, 1);
        Ok(())
    }

    /// The first message of `from` for the collective that `rank` is in, if it has come: its event, which is the caller's now.
    fn take_early(&mut self, rank: u32, from: u32) -> Option<u32> {
        let (context, mut at) = (self.parts[rank as usize].context, self.parts[rank as usize].early);
        let mut before = 0;
        while let Some(index) = at.checked_sub(1) {
            let event = &self.events[index as usize];
            let next = event.next;
            if event.from == from && event.played == context + 1 {
                match before {
                    0 => self.parts[rank as usize].early = next,
                    before => self.events[before as usize - 1].next = next,
                }
                if next == 0 {
                    self.parts[rank as usize].early_last = before;
                }
                return Some(index);
            }
            (before, at) = (at, next);
        }
        None
    }

    /// The part of `rank` is over. It may run already, to answer something.
    fn end(&mut self, rank: u32, woken: &mut Vec<u32>) {
        let part = &mut self.parts[rank as usize];
        part.under_way = 0;
        let (clock, descriptor) = (part.clock, &self.ranks[rank as usize]);
        descriptor.clock.store(clock, RELAXED);
        if descriptor.status.load(RELAXED) == status::WAITS {
            self.wake(rank, clock, (0, clock), woken);
        }
    }

    /// What `rank`, whose part is over, has now.
    pub fn result(&self, rank: u32) -> Holding {
        let part = &self.parts[rank as usize];
        Holding { bytes: part.bytes, data: part.data, arithmetic: None, too_long: part.too_long != 0 }
    }

    /// The messages that `rank` has sent in its part: to whom, and what the next one to the same rank knows each by.
    pub fn sent_in_part(&self, rank: u32) -> impl Iterator<Item = (u32, (u32, u64))> {
        let part = &self.parts[rank as usize];
        let steps = &part.step[..(part.steps as usize).min(MOST_STEPS)];
        steps
            .iter()
            .filter(|step| step.to != NOBODY)
            .map(|step| (step.to, (step.before.wrapping_sub(1), step.before_tie)))
    }
}
