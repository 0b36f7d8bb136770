//! A rank's end of virtual time: what it sends goes to the engine, what has arrived by its clock comes from there into its queues.
//!
//! In a simulated job the inboxes are closed (`Inbox::close`), and only a rank itself matches for itself. So nothing is visible above that has not arrived by its
//! clock. It takes what has come when it waits, and when it asks what has come by now ([`Endpoint::look_in_virtual_time`]), and at no other time: when that is
//! depends on the program alone. An announced message is copied when it is matched; its receive and its send end when the network has carried it.

use super::envelope::{Envelope, kind};
use super::tend::Endpoint;
use super::transfer::RankMover;
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;
use crate::sched::{self, Wait};
use crate::simulate::engine::Departure;
use crate::simulate::layout::status;
use crate::simulate::{Compute, Exhausted, Network, SimulationSegment};
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

/// A rank's virtual time.
pub struct Simulated {
    segment: &'static SimulationSegment,
    network: Box<dyn Network + Send>,
    me: u32,
    /// Of the next event.
    number: u64,
    /// The last message to each rank, as the engine knows it.
    before: HashMap<u32, (u32, u64)>,
    /// When what is being matched has arrived; 0: it was there.
    arriving: u64,
    taken: Vec<(u64, Envelope)>,
    woken: Vec<u32>,
    fault: Option<Fault>,
}

impl Simulated {
    pub fn new(segment: &'static SimulationSegment, network: Box<dyn Network + Send>, me: u32) -> Simulated {
        Simulated {
            segment,
            network,
            me,
            number: 0,
            before: HashMap::new(),
            arriving: 0,
            taken: Vec::new(),
            woken: Vec::new(),
            fault: None,
        }
    }

    fn clock(&self) -> u64 {
        self.segment.rank(self.me).clock.load(RELAXED)
    }

    /// The clock goes on to `at`, if it is behind: the rank has been waiting.
    fn wait_to(&self, at: u64) {
        let rank = self.segment.rank(self.me);
        let now = rank.clock.load(RELAXED);
        if at > now {
            rank.clock.store(at, RELAXED);
            rank.waited.fetch_add(at - now, RELAXED);
        }
    }

    /// Numbers for so many events.
    fn numbers(&mut self, count: u64) -> u64 {
        self.number += count;
        self.number - count
    }

    fn note(&mut self, done: Result<(), Exhausted>) {
        if done.is_err() {
            self.fault = Some(Fault::Exhausted);
        }
    }

    /// A message leaves at this rank's clock, which goes on by what that keeps it busy.
    fn send(&mut self, to: u32, envelope: &Envelope) -> bool {
        let (segment, from, at) = (self.segment, self.me, self.clock());
        let number = self.numbers(1);
        let before = self.before.get(&to).map_or((0, 0), |(event, tie)| (event + 1, *tie));
        let departure = Departure { at, number, from, to, before, envelope };
        let measures = segment.compute() != Compute::None;
        let sent = segment.locked(from, |engine| {
            let sent = engine.send(&departure)?;
            // What it owes an answer for may have come before.
            if engine.has_nothing(from) {
                engine.advance(from, at);
                if measures {
                    engine.settle(&*self.network, &mut self.woken)?;
                }
            }
            Ok((sent, engine.is_crowded()))
        });
        let bytes = if envelope.kind == kind::RTS { 0 } else { envelope.len };
        let busy = self.network.cost(from, to, bytes).send_overhead;
        let rank = segment.rank(from);
        rank.clock.fetch_add(busy, RELAXED);
        rank.sent.fetch_add(busy, RELAXED);
        rank.messages.fetch_add(1, RELAXED);
        match sent {
            Ok((event, is_crowded)) => {
                self.before.insert(to, event);
                is_crowded
            }
            Err(Exhausted) => {
                self.fault = Some(Fault::Exhausted);
                false
            }
        }
    }

    /// The answer to a message of `to` that a receive has taken.
    fn answer(&mut self, to: u32, fin: &Envelope) {
        let (segment, me) = (self.segment, self.me);
        let matched = fin.offset().max(self.arriving);
        let cost = self.network.cost(me, to, 0);
        let heard = matched.saturating_add(cost.send_overhead).saturating_add(cost.wire);
        let number = self.numbers(2);
        let done = segment.locked(me, |engine| match fin.blocks().checked_sub(1) {
            Some(request) => engine.send_data(heard, (me, number), to, request, fin),
            None => engine.arrive(heard, (me, number), to, fin),
        });
        self.note(done);
    }

    fn runs(&self) -> bool {
        self.segment.rank(self.me).status.load(Ordering::SeqCst) == status::RUNS
    }
}

impl Endpoint {
    /// This rank lives in virtual time, from its start on.
    pub fn simulate(&mut self, simulated: Simulated) {
        self.simulated = Some(Box::new(simulated));
        // Through the engine, as to all others.
        self.posts_to_itself = true;
        self.lends = false;
    }

    /// Each call of MPI is to be noted as it begins and ends, by way of what looks after queues that are lent.
    pub fn note_each_call(&mut self) {
        self.lends = true;
        self.queues().head.posted_large |= 1 << 30;
    }

    #[inline]
    pub fn is_simulated(&self) -> bool {
        self.simulated.is_some()
    }

    /// Why this simulation cannot go on, if so.
    pub fn fault(&self) -> Option<Fault> {
        self.simulated.as_ref().and_then(|simulated| simulated.fault)
    }

    #[cold]
    pub(super) fn send_in_virtual_time(&mut self, to: u32, envelope: &Envelope) {
        let (node, me) = (&self.node, self.me);
        let Some(simulated) = &mut self.simulated else { return };
        let mut is_crowded = false;
        match envelope.kind {
            kind::INLINE | kind::SLAB | kind::RTS => is_crowded = simulated.send(to, envelope),
            kind::FIN => simulated.answer(to, envelope),
            // For threads of the receiver: they look whenever it runs.
            kind::WAKE => {}
            _ => simulated.fault = Some(Fault::NoCopy { from: to }),
        }
        wake_all(node, me, &mut simulated.woken);
        if is_crowded {
            self.look_in_virtual_time();
        }
    }

    /// Take what arrives until this rank's clock, all of it: wait until that is there. False: nothing has come since the last time.
    #[cold]
    pub fn look_in_virtual_time(&mut self) -> bool {
        let me = self.me;
        let Some(simulated) = &mut self.simulated else { return false };
        let (segment, number, now) = (simulated.segment, simulated.numbers(1), simulated.clock());
        let asked = segment.locked(me, |engine| {
            let reached = engine.wait_until(me, now, number)?;
            if reached {
                engine.take(me, now, &mut simulated.taken);
            }
            Ok(reached)
        });
        let mut reached = asked.unwrap_or_else(|Exhausted| {
            simulated.fault = Some(Fault::Exhausted);
            true
        });
        let mut any = !simulated.taken.is_empty();
        if reached && !any {
            return false;
        }
        while !reached {
            // There, or to answer something that has come.
            self.await_turn();
            let Some(simulated) = &mut self.simulated else { return any };
            segment.locked(me, |engine| engine.take(me, now, &mut simulated.taken));
            any |= !simulated.taken.is_empty();
            self.match_taken();
            reached = segment.locked(me, |engine| engine.wait_on(me));
        }
        self.match_taken();
        segment.locked(me, |engine| engine.advance(me, now));
        any
    }

    /// Wait for at least one arrival; `need`: so many must come before what this rank waits for can be over. `what`: for `vmpictl`, as in `suspend`.
    #[cold]
    pub fn wait_in_virtual_time(&mut self, need: u32, what: (u32, i32, i32)) {
        let me = self.me;
        super::tend::tell(&self.node, me, what);
        let Some(simulated) = &mut self.simulated else { return };
        let (segment, now) = (simulated.segment, simulated.clock());
        let taken = segment.locked(me, |engine| {
            engine.take(me, now, &mut simulated.taken);
            if !simulated.taken.is_empty() {
                return Some(now);
            }
            match engine.until(me, need.max(1)) {
                Ok(until) => {
                    engine.take(me, until, &mut simulated.taken);
                    Some(until)
                }
                Err(left) => {
                    engine.wait(me, left);
                    None
                }
            }
        });
        let until = taken.unwrap_or_else(|| {
            self.await_turn();
            let Some(simulated) = &mut self.simulated else { return now };
            segment.locked(me, |engine| engine.take_woken(me, &mut simulated.taken))
        });
        if let Some(simulated) = &self.simulated {
            simulated.wait_to(until);
        }
        self.match_taken();
        self.receivers.clear();
        self.queues().head.waiting = 0;
    }

    /// This rank waits, as far as the engine is concerned: go on until it runs.
    fn await_turn(&mut self) {
        let (node, me) = (&self.node, self.me);
        let Some(simulated) = &mut self.simulated else { return };
        let done = simulated.segment.locked(me, |engine| engine.settle(&*simulated.network, &mut simulated.woken));
        simulated.note(done);
        wake_all(node, me, &mut simulated.woken);
        while !simulated.runs() {
            sched::suspend(node, me, Wait::Queues, 0, || simulated.runs());
        }
        self.core = self.node.core_of(me);
    }

    /// Match what has been taken, and send the answers.
    fn match_taken(&mut self) {
        let Some(simulated) = &mut self.simulated else { return };
        let mut taken = std::mem::take(&mut simulated.taken);
        for (at, envelope) in taken.drain(..) {
            let mut mover = RankMover { node: &self.node, job: &self.job, me: self.me, on: self.me };
            // SAFETY: as in `queues`.
            let mut queues = unsafe { self.own.queues() };
            let accepted = queues.accept(&envelope, &mut mover, &mut self.outgoing);
            if let Some(simulated) = &mut self.simulated {
                simulated.arriving = at;
                if !accepted {
                    simulated.fault = Some(Fault::NoRoom);
                }
            }
            self.flush();
        }
        if let Some(simulated) = &mut self.simulated {
            (simulated.arriving, simulated.taken) = (0, taken);
        }
    }

    /// This rank does nothing more.
    pub fn leave_virtual_time(&mut self) {
        let (node, me) = (&self.node, self.me);
        let Some(simulated) = &mut self.simulated else { return };
        let done = simulated.segment.locked(me, |engine| {
            engine.finish(me);
            engine.settle(&*simulated.network, &mut simulated.woken)
        });
        simulated.note(done);
        wake_all(node, me, &mut simulated.woken);
    }
}

/// These run now.
fn wake_all(node: &NodeSegment, me: u32, woken: &mut Vec<u32>) {
    for rank in woken.drain(..) {
        if rank != me {
            sched::wake(node, rank);
        }
    }
}
