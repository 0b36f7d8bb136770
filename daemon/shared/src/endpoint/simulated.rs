//! A rank's end of virtual time: what it sends goes to the engine, what has arrived by its clock comes from there into its queues.
//!
//! In a simulated job the inboxes are closed (`Inbox::close`), and only a rank itself matches for itself. So nothing is visible above that has not arrived by its
//! clock. It takes what has come when it waits, and when it asks what has come by now ([`Endpoint::look_in_virtual_time`]), and at no other time: when that is
//! depends on the program alone. An announced message is copied when it is matched; its receive and its send end when the network has carried it.

use super::Endpoint;
use super::transfer::RankMover;
use crate::job::JobSegment;
use crate::matching::envelope::{Envelope, kind};
use crate::matching::queues::{Claims, answer};
use crate::matching::request::Slot;
use crate::mem::slab::Slab;
use crate::node::NodeSegment;
use crate::sched::{self, Wait};
use crate::simulate::engine::{Look, OF_DETACHED, asks, number_of};
use crate::simulate::layout::{DETACHED, NOBODY, Step};
use crate::simulate::play::{Holding, Played};
use crate::simulate::{Cost, Exhausted, Fault, Simulated};

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

    /// What a message of so many bytes costs, if it is alone.
    pub fn simulated_cost(&self, from: u32, to: u32, bytes: u64) -> Cost {
        self.simulated.as_ref().map_or_else(Cost::default, |simulated| simulated.network.cost(from, to, bytes))
    }

    /// Why this simulation cannot go on, if so.
    pub fn fault(&self) -> Option<Fault> {
        self.simulated.as_ref().and_then(|simulated| simulated.fault)
    }

    /// A message that it has received keeps this rank busy for so long: it owes that.
    pub fn owe_in_virtual_time(&mut self, busy: u64) {
        if let Some(simulated) = &mut self.simulated {
            simulated.owe(busy);
        }
    }

    /// Its clock gets what it owes.
    pub fn pay_in_virtual_time(&mut self) {
        if let Some(simulated) = &mut self.simulated {
            simulated.pay();
        }
    }

    #[cold]
    pub(super) fn send_in_virtual_time(&mut self, to: u32, envelope: &Envelope) {
        let (node, me) = (&self.node, self.me);
        let Some(simulated) = &mut self.simulated else { return };
        let mut is_ahead = false;
        match envelope.kind {
            kind::INLINE | kind::SLAB if simulated.network.detaches(envelope.len) => {
                let slab = self.job.slab(me);
                let announced = simulated.detach(envelope, data_of(envelope, &slab));
                number(&self.job, me, &announced, simulated.next_number());
                is_ahead = simulated.send(to, &announced);
            }
            kind::INLINE | kind::SLAB | kind::RTS => {
                number(&self.job, me, envelope, simulated.next_number());
                is_ahead = simulated.send(to, envelope);
            }
            kind::FIN => simulated.answer((to, number_answered(&self.job, to, envelope)), envelope),
            // For threads of the receiver: they look whenever it runs.
            kind::WAKE => {}
            _ => simulated.fault = Some(Fault::NoCopy { from: to }),
        }
        wake_all(node, me, &mut simulated.woken);
        if is_ahead {
            self.look_in_virtual_time();
        }
    }

    /// One-sided: `bytes` go to rank `to`, where `request` of this rank does something (`Does`) unless that has been done, and `back` come back; `flags`: of
    /// `kind::OPERATION`.
    #[cold]
    pub fn operate_in_virtual_time(&mut self, to: u32, request: u32, (bytes, back): (u64, u64), flags: u8) {
        let (node, me) = (&self.node, self.me);
        let Some(simulated) = &mut self.simulated else { return };
        let mut envelope = answer(kind::OPERATION, request);
        (envelope.from, envelope.len, envelope.flags) = (me, bytes, flags);
        envelope.set_offset(back);
        let is_ahead = simulated.send(to, &envelope);
        wake_all(node, me, &mut simulated.woken);
        if is_ahead {
            self.look_in_virtual_time();
        }
    }

    /// What this rank has begun at another one's memory has got there.
    fn do_operation(&mut self, at: u64, request: u32) {
        let (node, me) = (&self.node, self.me);
        let Some(simulated) = &mut self.simulated else { return };
        let grants = (simulated.does)(request);
        let segment = simulated.segment;
        let done =
            segment.locked(me, |engine| engine.has_done(me, at, &grants, &*simulated.network, &mut simulated.woken));
        simulated.note(done);
        wake_all(node, me, &mut simulated.woken);
    }

    /// Take what arrives until this rank's clock, all of it: wait until that is there. False: nothing has come since the last time.
    #[cold]
    pub fn look_in_virtual_time(&mut self) -> bool {
        let me = self.me;
        let Some(simulated) = &mut self.simulated else { return false };
        simulated.pay();
        let (segment, number, now) = (simulated.segment, simulated.numbers(1), simulated.clock());
        simulated.looks();
        let (mut any, mut asked) = (false, false);
        loop {
            let Some(simulated) = &mut self.simulated else { return any };
            let look = segment.locked(me, |engine| {
                let look = if asked { engine.wait_on(me, now) } else { engine.wait_until(me, now, number)? };
                match look {
                    Look::Take => engine.take(me, now, &mut simulated.taken),
                    Look::Waits => engine.settle(&*simulated.network, &mut simulated.woken)?,
                    Look::Reached => {}
                }
                Ok(look)
            });
            match look {
                Ok(Look::Take) => {
                    any = true;
                    self.match_taken();
                }
                // There, or to answer something that has come.
                Ok(Look::Waits) => {
                    asked = true;
                    self.await_turn();
                    if self.fault().is_some() {
                        return any;
                    }
                }
                Ok(Look::Reached) => return any,
                Err(Exhausted) => {
                    simulated.fault = Some(Fault::Exhausted);
                    return any;
                }
            }
        }
    }

    /// Wait for at least one arrival; `need`: so many must come before what this rank waits for can be over. `what`: for `vmpictl`, as in `suspend`.
    /// `all`: all that is awaited is waited for. Then what is known to come is taken, whoever else may still send something.
    #[cold]
    pub fn wait_in_virtual_time(&mut self, need: u32, all: bool, what: (u32, i32, i32)) {
        let me = self.me;
        super::tell(&self.node, me, what);
        let Some(simulated) = &mut self.simulated else { return };
        let (segment, now) = (simulated.segment, simulated.clock());
        // SAFETY: as in `queues`.
        let mut queues = unsafe { self.own.queues() };
        let hope = if all { queues.hope(need.max(1)) } else { None };
        if hope.is_none() {
            // All others come up to what it waits for.
            simulated.looks();
        }
        let mut claims = Claims::default();
        let taken = segment.locked(me, |engine| {
            if hope.is_some() {
                let until = engine.take_known(me, |envelope| queues.claim(&mut claims, envelope), &mut simulated.taken);
                if !simulated.taken.is_empty() {
                    return Ok(Some(until));
                }
            }
            let until = engine.wait_for(me, need.max(1), &mut simulated.taken);
            if until.is_none() {
                engine.hope(me, hope.unwrap_or_default());
                return engine.settle(&*simulated.network, &mut simulated.woken).map(|()| None);
            }
            Ok(until)
        });
        let taken = taken.unwrap_or_else(|Exhausted| {
            simulated.fault = Some(Fault::Exhausted);
            None
        });
        let until = taken.unwrap_or_else(|| {
            self.await_turn();
            let Some(simulated) = &mut self.simulated else { return now };
            // SAFETY: as in `queues`.
            let mut queues = unsafe { self.own.queues() };
            segment.locked(me, |engine| {
                let until = engine.take_woken(me, &mut simulated.taken);
                if hope.is_none() || !simulated.taken.is_empty() {
                    return until;
                }
                engine.take_known(me, |envelope| queues.claim(&mut claims, envelope), &mut simulated.taken)
            })
        });
        // SAFETY: as in `queues`.
        unsafe { self.own.queues() }.let_claims_go(&claims);
        if let Some(simulated) = &self.simulated {
            simulated.wait_to(until);
        }
        self.match_taken();
        self.receivers.clear();
        self.queues().head.waiting = 0;
    }

    /// This rank waits, as far as the engine is concerned, and what was settled then has been gone through: until it runs, or nothing can.
    fn await_turn(&mut self) {
        let (node, me) = (&self.node, self.me);
        let Some(simulated) = &mut self.simulated else { return };
        wake_all(node, me, &mut simulated.woken);
        while simulated.fault.is_none() && !simulated.runs() {
            sched::suspend(node, me, Wait::Queues, 0, || simulated.runs());
        }
        self.core = self.node.core_of(me);
    }

    /// Take part in a collective of `context` that the engine plays, to its end. `steps`: what this rank sends and receives; `holding`: what it brings, and then
    /// the result; `what` as above.
    #[cold]
    pub fn join_in_virtual_time(
        &mut self,
        context: u32,
        steps: &mut [Step],
        holding: &mut Holding,
        what: (u32, i32, i32),
    ) {
        let me = self.me;
        super::tell(&self.node, me, what);
        let Some(simulated) = &mut self.simulated else { return };
        simulated.pay();
        let (segment, number, now) = (simulated.segment, simulated.numbers(steps.len() as u64), simulated.clock());
        // Whether it waits follows from its steps, not from who has come already.
        let only_sends = steps.iter().all(|step| step.from == NOBODY);
        let is_ahead = if only_sends { simulated.runs_ahead(steps.len() as u32) } else { simulated.looks() };
        simulated.fill_in(steps);
        segment.locked(me, |engine| engine.join(me, (now, number), context, steps, holding));
        let mut begins = true;
        loop {
            let Some(simulated) = &mut self.simulated else { return };
            let played = segment.locked(me, |engine| {
                let network = &*simulated.network;
                let played = engine.play_on(me, begins, network, (&mut simulated.taken, &mut simulated.woken))?;
                if played == Played::Waits {
                    engine.settle(network, &mut simulated.woken)?;
                }
                Ok(played)
            });
            begins = false;
            match played {
                Ok(Played::Take) => {}
                Ok(Played::Waits) => {
                    self.await_turn();
                    if self.fault().is_some() {
                        return;
                    }
                    let Some(simulated) = &mut self.simulated else { return };
                    segment.locked(me, |engine| engine.take_woken(me, &mut simulated.taken));
                }
                Ok(Played::Over(_)) => {
                    wake_all(&self.node, me, &mut simulated.woken);
                    break;
                }
                Err(Exhausted) => {
                    simulated.fault = Some(Fault::Exhausted);
                    return;
                }
            }
            self.match_taken();
        }
        if let Some(simulated) = &mut self.simulated {
            let sent: Vec<_> = segment.locked(me, |engine| {
                *holding = engine.result(me);
                engine.sent_in_part(me).collect()
            });
            sent.into_iter().for_each(|(to, event)| simulated.has_sent(to, event));
        }
        if is_ahead {
            self.look_in_virtual_time();
        }
    }

    /// Match what has been taken, and send the answers.
    fn match_taken(&mut self) {
        let Some(simulated) = &mut self.simulated else { return };
        let mut taken = std::mem::take(&mut simulated.taken);
        for (at, envelope) in taken.drain(..) {
            if envelope.kind == kind::OPERATION {
                self.do_operation(at, envelope.request);
                continue;
            }
            if self.simulated.as_mut().is_some_and(|simulated| !simulated.answered(&envelope)) {
                continue;
            }
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

/// These run now. One that is not suspended yet looks whether it runs when it is; nobody tends for ranks in virtual time, but the daemon may wake one.
fn wake_all(node: &NodeSegment, me: u32, woken: &mut Vec<u32>) {
    for rank in woken.drain(..) {
        if rank != me && !sched::ready_untended(node, rank, node.rank(rank)) {
            sched::wake(node, rank);
        }
    }
}

/// A message of rank `me` that is to be answered is about to leave with this number: its request knows it, for who answers.
fn number(job: &JobSegment, me: u32, message: &Envelope, number: u64) {
    if let Some(at) = numbered(job, me, message).filter(|_| asks(message)) {
        // SAFETY: inside the rank's array of slots, which is mapped; this rank's own.
        unsafe { at.write_volatile(number) };
    }
}

/// The number of the message of `to` that `fin` answers.
fn number_answered(job: &JobSegment, to: u32, fin: &Envelope) -> u64 {
    match numbered(job, to, fin) {
        // SAFETY: as above; the request is in use until this answer has come.
        Some(at) => unsafe { number_of(at.read_volatile()) },
        None => OF_DETACHED | u64::from(fin.request),
    }
}

/// Where a request of `rank` that a message or its answer names has the message's number: a send is not posted. The sender writes it before the message leaves, and the
/// receiver has had the message through the engine's lock.
fn numbered(job: &JobSegment, rank: u32, envelope: &Envelope) -> Option<*mut u64> {
    let is_own = envelope.request & DETACHED == 0 && envelope.request < job.config().slots;
    // SAFETY: inside the array; only an address.
    is_own.then(|| unsafe { &raw mut (*job.parts(rank).slots.cast::<Slot>().add(envelope.request as usize)).posted_at })
}

/// What a message that comes with its data brings; its block is free again.
fn data_of(envelope: &Envelope, slab: &Slab<'_>) -> Box<[u8]> {
    if envelope.kind == kind::INLINE {
        return envelope.body[..envelope.body_len()].into();
    }
    let len = envelope.len as usize;
    let mut data = vec![0; len].into_boxed_slice();
    if let Some(block) = slab.block(envelope.addr(), envelope.len) {
        // SAFETY: a payload of so many bytes lies there, written by this rank, which alone knows of it.
        unsafe { std::ptr::copy_nonoverlapping(block, data.as_mut_ptr(), len) };
        slab.give(envelope.addr(), envelope.len);
    }
    data
}
