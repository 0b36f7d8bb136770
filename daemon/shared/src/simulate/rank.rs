//! What a rank itself knows of its virtual time, and how what it sends gets to the engine.

use super::engine::Departure;
use super::layout::{DETACHED, Step, add, status};
use super::{Compute, Exhausted, Grant, Network, SimulationSegment};
use crate::matching::envelope::{Envelope, FLAG_SYNC, kind};
use crate::mem::sync::Ordering;
use std::collections::HashMap;

const RELAXED: Ordering = Ordering::Relaxed;

/// Why a simulation cannot go on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Too much is under way.
    Exhausted,
    /// A rank has no room for another unexpected message.
    NoRoom,
    /// The kernel lets this rank not copy from that one.
    NoCopy { from: u32 },
}

/// Do the operation of one's own that has this request: what is granted by that.
pub type Does = fn(u32) -> Vec<Grant>;

/// A rank's virtual time.
pub struct Simulated {
    pub(crate) segment: &'static SimulationSegment,
    pub(crate) network: Box<dyn Network + Send>,
    pub(crate) does: Does,
    me: u32,
    /// Of the next event.
    number: u64,
    /// The last message to each rank, as the engine knows it: its event + 1, and its tie.
    before: Box<[(u32, u64)]>,
    /// When what is being matched has arrived; 0: it was there.
    pub(crate) arriving: u64,
    pub(crate) taken: Vec<(u64, Envelope)>,
    pub(crate) woken: Vec<u32>,
    pub(crate) fault: Option<Fault>,
    /// What has left its sender's buffer, by the request that its receiver answers.
    copies: HashMap<u32, Box<[u8]>>,
    detached: u32,
    /// Messages since it has looked or waited last.
    sent: u32,
    /// What the messages that it has received keep it busy for, and its clock does not have yet.
    owed: u64,
}

impl Simulated {
    pub fn new(
        segment: &'static SimulationSegment,
        network: Box<dyn Network + Send>,
        does: Does,
        me: u32,
    ) -> Simulated {
        Simulated {
            segment,
            network,
            does,
            me,
            number: 0,
            before: vec![(0, 0); segment.ranks() as usize].into(),
            arriving: 0,
            taken: Vec::new(),
            woken: Vec::new(),
            fault: None,
            copies: HashMap::new(),
            detached: 0,
            sent: 0,
            owed: 0,
        }
    }

    /// A message has been received, which keeps the rank busy for so long: from when the call is over, or it does something before. Which of several that it waits
    /// for it has seen first says real time, so that must not say what it waits beside.
    pub(crate) fn owe(&mut self, busy: u64) {
        self.owed += busy;
    }

    pub(crate) fn pay(&mut self) {
        if self.owed > 0 {
            let owed = std::mem::take(&mut self.owed);
            self.segment.rank(self.me).clock.fetch_add(owed, RELAXED);
        }
    }

    pub(crate) fn clock(&self) -> u64 {
        self.segment.rank(self.me).clock.load(RELAXED)
    }

    /// The clock goes on to `at`, if it is behind: the rank has been waiting.
    pub(crate) fn wait_to(&self, at: u64) {
        let rank = self.segment.rank(self.me);
        let now = rank.clock.load(RELAXED);
        if at > now {
            rank.clock.store(at, RELAXED);
            rank.waited.fetch_add(at - now, RELAXED);
        }
    }

    /// Numbers for so many events.
    pub(crate) fn numbers(&mut self, count: u64) -> u64 {
        self.number += count;
        self.number - count
    }

    pub(crate) fn note(&mut self, done: Result<(), Exhausted>) {
        if done.is_err() {
            self.fault = Some(Fault::Exhausted);
        }
    }

    /// It lets the others come up to it: it is not ahead.
    pub(crate) fn looks(&mut self) -> bool {
        self.sent = 0;
        false
    }

    /// So many more messages are sent without that. True: it has run ahead so far that it is to look.
    pub(crate) fn runs_ahead(&mut self, messages: u32) -> bool {
        self.sent = self.sent.saturating_add(messages);
        self.sent >= self.segment.sends_at_once()
    }

    /// What the engine is to know of the message before, to each rank that a step sends to.
    pub(crate) fn fill_in(&self, steps: &mut [Step]) {
        for step in steps {
            if let Some(before) = self.before.get(step.to as usize) {
                (step.before, step.before_tie) = *before;
            }
        }
    }

    pub(crate) fn has_sent(&mut self, to: u32, (event, tie): (u32, u64)) {
        if let Some(before) = self.before.get_mut(to as usize) {
            *before = (event + 1, tie);
        }
    }

    /// A message leaves at this rank's clock, which goes on by what that keeps it busy. True: it has run ahead so far that it is to look. After how many
    /// messages follows from the program and the number of ranks, not from how full the memory is: that says how far the others are in real time.
    pub(crate) fn send(&mut self, to: u32, envelope: &Envelope) -> bool {
        self.pay();
        let (segment, from, at) = (self.segment, self.me, self.clock());
        let number = self.numbers(1);
        let before = self.before.get(to as usize).copied().unwrap_or((0, 0));
        let departure = Departure { at, number, from, to, before, envelope };
        let measures = segment.compute() != Compute::None;
        let sent = segment.locked(from, |engine| {
            let sent = engine.send(&departure, &*self.network, &mut self.woken)?;
            // What it owes an answer for may have come before.
            if engine.has_nothing(from) {
                engine.advance(from, at);
                if measures {
                    engine.settle(&*self.network, &mut self.woken)?;
                }
            }
            Ok(sent)
        });
        let cost = match envelope.kind {
            kind::RTS => self.network.word(from, to),
            _ => self.network.cost(from, to, envelope.len),
        };
        let busy = cost.send_overhead;
        let rank = segment.rank(from);
        rank.clock.fetch_add(busy, RELAXED);
        add(&rank.sent, busy);
        add(&rank.messages, 1);
        match sent {
            Ok(event) => {
                self.has_sent(to, event);
                self.runs_ahead(1)
            }
            Err(Exhausted) => {
                self.fault = Some(Fault::Exhausted);
                false
            }
        }
    }

    /// The message has these data, which are kept until a receive has taken them; it is announced now. One that waits to be matched (`FLAG_SYNC`) has a request of its own.
    pub(crate) fn detach(&mut self, message: &Envelope, data: Box<[u8]>) -> Envelope {
        let mut announced = Envelope { kind: kind::RTS, body: Envelope::EMPTY.body, ..*message };
        if message.flags & FLAG_SYNC == 0 {
            // So many are not under way at once.
            self.detached = self.detached.wrapping_add(1) & (DETACHED - 1);
            announced.request = DETACHED | self.detached;
        }
        announced.set_addr(data.as_ptr() as u64);
        self.copies.insert(announced.request, data);
        announced
    }

    /// The answer to a message has come: is there anybody whom it concerns?
    pub(crate) fn answered(&mut self, fin: &Envelope) -> bool {
        if fin.kind != kind::FIN {
            return true;
        }
        self.copies.remove(&fin.request);
        fin.request & DETACHED == 0
    }

    /// The number that the next message gets.
    pub(crate) fn next_number(&self) -> u64 {
        self.number
    }

    /// The answer to the message of `to` with this number, which a receive has taken.
    pub(crate) fn answer(&mut self, (to, number): (u32, u64), fin: &Envelope) {
        let (segment, me) = (self.segment, self.me);
        let matched = fin.offset().max(self.arriving);
        let cost = self.network.word(me, to);
        let heard = matched.saturating_add(cost.send_overhead).saturating_add(cost.wire);
        let done = segment.locked(me, |engine| match fin.blocks().checked_sub(1) {
            Some(request) => engine.send_data(heard, (me, request), (to, number), fin),
            None => engine.arrive(heard, me, (to, number), fin, &mut self.woken),
        });
        self.note(done);
    }

    pub(crate) fn runs(&self) -> bool {
        self.segment.rank(self.me).status.load(Ordering::SeqCst) == status::RUNS
    }
}
