//! What happens next, and who may run.
//!
//! A rank that runs has a lower bound on the time of whatever it may still do. Ranks that wait do nothing before an event makes them run.
//! So nothing will ever happen before the least of the bounds, the horizon, and nothing will arrive before the horizon, or the first message that
//! is yet to leave, and the network's least latency. What lies before these is settled: nobody can come in between any more. Whoever holds the lock goes through
//! settled events in the order of their keys. That order follows from the program and the machine alone, not from which rank got how far when:
//! an event is gone through only when every one that could come before it exists.
//!
//! What arrives at a rank is hung in its list. A rank takes from there what its clock has reached, and nothing else.

use super::heap::{self, Entry, Key};
use super::layout::{Counts, DETACHED, Event, Flowing, Part, SimRank, status, what};
use super::network::{Cost, Flow, Network};
use crate::matching::envelope::{Envelope, FLAG_SYNC, kind};
use crate::matching::queues::answer;
use crate::mem::sync::Ordering;

const RELAXED: Ordering = Ordering::Relaxed;

/// There is no room for more events: what is under way or has not been taken is too much.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Exhausted;

/// How it stands with a rank that looks what has come by its clock.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Look {
    /// It is to take what is in its list, and to answer it, and to ask again.
    Take,
    /// All that arrives until then is there, and has been taken; it runs.
    Reached,
    /// It waits for that.
    Waits,
}

/// No arrival ends the wait.
pub const NONE: u32 = 0;

/// Ties: a sender has numbers for a million years, and what has arrived comes before who has got so far.
const SENDER_SHIFT: u32 = 40;
const REACHED_TIE: u64 = 1 << 63;

/// Answers are told apart by the number of what they answer, not by one of who answers, nor by the sender's request: when in real time it comes to that, and which
/// request is free by then, may differ.
const ANSWERS: u64 = 1 << 62;
/// Above all numbers: what stands for one where there is none, the request of a message that has left its sender's buffer, or of one that is granted something.
pub(crate) const OF_DETACHED: u64 = 1 << 38;
pub(super) const OF_GRANTED: u64 = 1 << 37;

pub(super) fn answer_tie(to: u32, number: u64) -> u64 {
    ANSWERS | u64::from(to) << SENDER_SHIFT | number << 1
}

/// The sender's number of what has this tie.
pub(crate) fn number_of(tie: u64) -> u64 {
    tie & (OF_GRANTED - 1)
}

/// A message that is to leave.
pub struct Departure<'a> {
    pub at: u64,
    /// The sender's number for it: larger than that of the one before.
    pub number: u64,
    pub from: u32,
    pub to: u32,
    /// The one before it to the same rank: its event + 1, and its tie.
    pub before: (u32, u64),
    pub envelope: &'a Envelope,
}

/// All of the segment that changes, in the hands of who has the lock.
pub struct Engine<'a> {
    pub counts: &'a mut Counts,
    pub ranks: &'a mut [SimRank],
    /// Their parts in collectives that are played here (`play`).
    pub parts: &'a mut [Part],
    pub events: &'a mut [Event],
    pub leaving: &'a mut [Entry],
    pub arriving: &'a mut [Entry],
    /// Those that run.
    pub running: &'a mut [u32],
    /// Flows under way, in the order of their keys, and what the network remembers of them.
    pub flowing: &'a mut [Flowing],
    pub flows: &'a mut [u8],
    pub lookahead: u64,
}

/// Does the receiver have to answer, at a time that follows from that of the arrival?
pub(crate) fn asks(envelope: &Envelope) -> bool {
    matches!(envelope.kind, kind::RTS | kind::OPERATION) || (envelope.is_message() && envelope.flags & FLAG_SYNC != 0)
}

/// The answer to a message that had left its sender's buffer ends no request.
pub(super) fn ends_nothing(envelope: &Envelope) -> bool {
    envelope.kind == kind::FIN && envelope.request & DETACHED != 0
}

impl Engine<'_> {
    /// All ranks run, and have done nothing.
    pub fn begin(&mut self) {
        for rank in 0..self.ranks.len() as u32 {
            heap::insert(self.running, &mut self.counts.running, &mut &mut *self.ranks, rank);
        }
    }

    /// Nothing will happen before this, but for what is known.
    pub(super) fn horizon(&self) -> u64 {
        match self.counts.running {
            0 => u64::MAX,
            _ => self.ranks[self.running[0] as usize].bound,
        }
    }

    /// Nothing more will arrive before this.
    fn arrivals_horizon(&self) -> u64 {
        let leaving = heap::first(self.leaving, self.counts.leaving).map_or(u64::MAX, |entry| entry.key.time);
        self.horizon().min(leaving).saturating_add(self.lookahead)
    }

    /// Nobody runs, and nothing is under way.
    pub fn is_stalled(&self) -> bool {
        let Counts { running, leaving, arriving, flowing, .. } = *self.counts;
        running == 0 && leaving == 0 && arriving == 0 && flowing == 0
    }

    fn take_event(&mut self) -> Result<u32, Exhausted> {
        let index = match self.counts.free.checked_sub(1) {
            Some(index) => {
                self.counts.free = self.events[index as usize].next;
                index
            }
            None if (self.counts.used as usize) < self.events.len() => {
                self.counts.used += 1;
                self.counts.used - 1
            }
            None => return Err(Exhausted),
        };
        self.counts.live += 1;
        let event = &mut self.events[index as usize];
        (event.next, event.before, event.behind, event.request, event.arrival, event.played) = (0, 0, 0, 0, 0, 0);
        Ok(index)
    }

    pub(super) fn free_event(&mut self, index: u32) {
        self.events[index as usize].next = self.counts.free;
        self.counts.free = index + 1;
        self.counts.live -= 1;
    }

    /// As many entries as there are events: there is always room.
    fn schedule(&mut self, index: u32, time: u64, woken: &mut Vec<u32>) {
        let event = &mut self.events[index as usize];
        event.time = time;
        if event.what == what::ARRIVES && event.played == 0 {
            self.becomes_known(index, woken);
        }
        let event = &self.events[index as usize];
        let tie = if event.what == what::REACHED { event.tie | REACHED_TIE } else { event.tie };
        let entry = Entry { key: Key { time, tie }, event: index, reserved: 0 };
        let pushed = match event.what {
            what::LEAVES | what::DATA_LEAVES => heap::push(self.leaving, &mut self.counts.leaving, entry),
            _ => heap::push(self.arriving, &mut self.counts.arriving, entry),
        };
        debug_assert!(pushed);
    }

    pub(super) fn make(
        &mut self,
        what: u32,
        (from, number): (u32, u64),
        to: u32,
        envelope: &Envelope,
    ) -> Result<u32, Exhausted> {
        let index = self.take_event()?;
        let event = &mut self.events[index as usize];
        (event.what, event.from, event.to) = (what, from, to);
        event.tie = u64::from(from) << SENDER_SHIFT | number;
        envelope.copy_to(&mut event.envelope);
        Ok(index)
    }

    /// A message is sent. Returns its event and tie, by which the next one of the same pair knows it.
    pub fn send(
        &mut self,
        departure: &Departure<'_>,
        network: &dyn Network,
        woken: &mut Vec<u32>,
    ) -> Result<(u32, u64), Exhausted> {
        let Departure { at, number, from, to, before, envelope } = *departure;
        let index = self.make(what::LEAVES, (from, number), to, envelope)?;
        let event = &mut self.events[index as usize];
        (event.before, event.before_tie) = before;
        let tie = event.tie;
        self.depart(index, at, network, woken)?;
        if envelope.kind == kind::RTS {
            // Until its data leave: they ask for the interface between what is sent later.
            self.ranks[from as usize].to_leave += 1;
        }
        Ok((index, tie))
    }

    /// A message of a rank that is at `at` asks for its interface then. Where nothing of the rank's can come before it there, it has it at once: one event less.
    pub(super) fn depart(
        &mut self,
        index: u32,
        at: u64,
        network: &dyn Network,
        woken: &mut Vec<u32>,
    ) -> Result<(), Exhausted> {
        let Event { from, to, .. } = self.events[index as usize];
        let envelope = &self.events[index as usize].envelope;
        self.counts.messages += 1;
        // Flows begin in the order of virtual time: so few are listed at once.
        let flows = envelope.kind != kind::RTS && network.shares(from, to, envelope.len);
        let sender = &mut self.ranks[from as usize];
        if sender.to_leave == 0 && !flows {
            return self.leave(index, at, network, woken);
        }
        sender.to_leave += 1;
        self.schedule(index, at, woken);
        Ok(())
    }

    /// Receive `request` of `me` has taken the announced message of `to` with this number, whose data leave at `at`; `fin`: what ends the send, with the message's
    /// bytes.
    pub fn send_data(
        &mut self,
        at: u64,
        (me, request): (u32, u32),
        (to, number): (u32, u64),
        fin: &Envelope,
    ) -> Result<(), Exhausted> {
        let index = self.make(what::DATA_LEAVES, (me, 0), to, fin)?;
        let event = &mut self.events[index as usize];
        (event.request, event.tie) = (request, answer_tie(to, number));
        // It leaves, so that nobody hears of it yet.
        self.schedule(index, at, &mut Vec::new());
        Ok(())
    }

    /// The answer of `me` to the message of `to` with this number, which waited for one, arrives then.
    pub fn arrive(
        &mut self,
        at: u64,
        me: u32,
        (to, number): (u32, u64),
        fin: &Envelope,
        woken: &mut Vec<u32>,
    ) -> Result<(), Exhausted> {
        let index = self.make(what::ARRIVES, (me, 0), to, fin)?;
        self.events[index as usize].tie = answer_tie(to, number);
        self.schedule(index, at, woken);
        Ok(())
    }

    pub(super) fn set_running(&mut self, rank: u32, bound: u64) {
        let descriptor = &mut self.ranks[rank as usize];
        descriptor.bound = bound;
        descriptor.status.store(status::RUNS, Ordering::SeqCst);
        heap::insert(self.running, &mut self.counts.running, &mut &mut *self.ranks, rank);
    }

    /// `rank`, which runs, does nothing before an event makes it run: one of `need` arrivals, if it is not `NONE`.
    pub fn wait(&mut self, rank: u32, need: u32) {
        heap::remove(self.running, &mut self.counts.running, &mut &mut *self.ranks, rank);
        let descriptor = &mut self.ranks[rank as usize];
        (descriptor.need, descriptor.hopes, descriptor.hoped, descriptor.bound) = (need, 0, 0, u64::MAX);
        descriptor.status.store(status::WAITS, Ordering::SeqCst);
    }

    /// It does nothing any more.
    pub fn finish(&mut self, rank: u32) {
        self.wait(rank, NONE);
        self.ranks[rank as usize].status.store(status::OVER, Ordering::SeqCst);
        self.counts.over += 1;
    }

    /// `rank`, which runs, has got to `clock`, and will do nothing before.
    pub fn advance(&mut self, rank: u32, clock: u64) {
        self.ranks[rank as usize].bound = clock;
        heap::moved(self.running, self.counts.running, &mut &mut *self.ranks, rank);
    }

    /// Is something in the list of `rank` that it is to take first? While it waits nobody waits for the answers that it owes.
    fn owes(&self, rank: u32, clock: u64) -> bool {
        let first = self.ranks[rank as usize].first.checked_sub(1);
        first.is_some_and(|index| self.events[index as usize].time <= clock)
    }

    /// `rank`, which waits for nothing else, is to run when all that arrives until `clock` is there.
    pub fn wait_until(&mut self, rank: u32, clock: u64, number: u64) -> Result<Look, Exhausted> {
        if self.owes(rank, clock) {
            return Ok(Look::Take);
        }
        let index = self.make(what::REACHED, (rank, number), rank, &Envelope::EMPTY)?;
        self.wait(rank, NONE);
        let next = heap::first(self.arriving, self.counts.arriving).map_or(u64::MAX, |entry| entry.key.time);
        // A flow may end by then: who settles knows. And another rank may be at work in this one's memory.
        let is_quiet = self.counts.flowing == 0 && self.counts.doing == 0;
        if next > clock && is_quiet && self.arrivals_horizon() > clock {
            self.free_event(index);
            self.set_running(rank, clock);
            return Ok(Look::Reached);
        }
        self.ranks[rank as usize].reached = 0;
        self.schedule(index, clock, &mut Vec::new());
        Ok(Look::Waits)
    }

    /// It has been made to run before that, to answer something: it waits on, if virtual time has not got there meanwhile.
    pub fn wait_on(&mut self, rank: u32, clock: u64) -> Look {
        if self.owes(rank, clock) {
            return Look::Take;
        }
        if self.ranks[rank as usize].reached != 0 {
            self.advance(rank, clock);
            return Look::Reached;
        }
        self.wait(rank, NONE);
        Look::Waits
    }

    /// Has all that has arrived at `rank` been taken?
    pub fn has_nothing(&self, rank: u32) -> bool {
        self.ranks[rank as usize].first == 0
    }

    /// Go through all that is settled. `woken`: those who run now.
    pub fn settle(&mut self, network: &dyn Network, woken: &mut Vec<u32>) -> Result<(), Exhausted> {
        let before = self.counts.events;
        let done = self.go_through_events(network, woken);
        self.counts.rounds += u64::from(self.counts.events != before);
        done
    }

    fn go_through_events(&mut self, network: &dyn Network, woken: &mut Vec<u32>) -> Result<(), Exhausted> {
        while self.counts.doing == 0 {
            let leaving = heap::first(self.leaving, self.counts.leaving);
            let arriving = heap::first(self.arriving, self.counts.arriving);
            let flowing = (self.counts.flowing != 0).then_some(self.counts.next_flow);
            let first = arriving.map_or(u64::MAX, |entry| entry.key.time).min(flowing.unwrap_or(u64::MAX));
            let next = match (leaving, arriving, flowing) {
                // Not before what arrives at that time: who waits for that may send at once, and whose message leaves first says its sender, not whether it
                // has been made to run already.
                (Some(l), _, _) if l.key.time < self.horizon() && l.key.time < first => l,
                // What ends then arrives then.
                (_, _, Some(at)) if at == first && at < self.arrivals_horizon() => {
                    self.flow_on(at, network, woken)?;
                    continue;
                }
                (_, Some(a), _) if a.key.time == first && first < self.arrivals_horizon() && self.may_happen(a) => a,
                _ => return Ok(()),
            };
            self.counts.events += 1;
            match self.events[next.event as usize].what {
                what::TAKEN => {
                    heap::pop(self.arriving, &mut self.counts.arriving);
                    self.free_event(next.event);
                }
                what::LEAVES => {
                    heap::pop(self.leaving, &mut self.counts.leaving);
                    self.has_left(self.events[next.event as usize].from);
                    self.leave(next.event, next.key.time, network, woken)?;
                }
                what::DATA_LEAVES => {
                    heap::pop(self.leaving, &mut self.counts.leaving);
                    self.has_left(self.events[next.event as usize].to);
                    self.data_leave(next.event, next.key.time, network, woken)?;
                }
                _ => {
                    heap::pop(self.arriving, &mut self.counts.arriving);
                    let Event { what, played, envelope, .. } = &self.events[next.event as usize];
                    match (*played, envelope.kind) {
                        (0, kind::OPERATION) if *what == what::ARRIVES => {
                            self.operate(next.event, next.key.time, network, woken)?;
                        }
                        (0, _) => self.happen(next.event, next.key.time, woken),
                        _ => self.meet(next.event, network, woken)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn has_left(&mut self, sender: u32) {
        let to_leave = &mut self.ranks[sender as usize].to_leave;
        *to_leave = to_leave.saturating_sub(1);
    }

    /// A message of this cost asks for its sender's interface at `at`: when it leaves, and when its last byte is there if it is alone.
    fn way(&mut self, at: u64, from: u32, cost: &Cost) -> (u64, u64) {
        let interface = &mut self.ranks[from as usize].interface_free;
        let departs = at.saturating_add(cost.send_overhead).max(*interface);
        *interface = departs.saturating_add(cost.gap);
        let arrival = departs.saturating_add(cost.wire);
        debug_assert!(
            arrival >= at.saturating_add(self.lookahead),
            "the look-ahead promises more than the machine keeps"
        );
        (departs, arrival)
    }

    fn leave(&mut self, index: u32, at: u64, network: &dyn Network, woken: &mut Vec<u32>) -> Result<(), Exhausted> {
        let Event { from, to, .. } = self.events[index as usize];
        let envelope = &self.events[index as usize].envelope;
        let (is_word, bytes) = (envelope.kind == kind::RTS, envelope.len);
        let bytes = if is_word { 0 } else { bytes };
        let cost = if is_word { network.word(from, to) } else { network.cost(from, to, bytes) };
        let (departs, arrival) = self.way(at, from, &cost);
        if !is_word && network.shares(from, to, bytes) {
            return self.flow(index, what::FLOWS, Flow { at: departs, key: 0, from, to, bytes }, network);
        }
        self.there(index, arrival, woken);
        Ok(())
    }

    /// The data of an announced message: the receive and the send end when they are there.
    fn data_leave(
        &mut self,
        index: u32,
        at: u64,
        network: &dyn Network,
        woken: &mut Vec<u32>,
    ) -> Result<(), Exhausted> {
        let Event { from: receiver, to: sender, .. } = self.events[index as usize];
        let bytes = self.events[index as usize].envelope.len;
        let (departs, arrival) = self.way(at, sender, &network.cost(sender, receiver, bytes));
        if network.shares(sender, receiver, bytes) {
            let flow = Flow { at: departs, key: 0, from: sender, to: receiver, bytes };
            return self.flow(index, what::DATA_FLOWS, flow, network);
        }
        self.data_there(index, arrival, woken)
    }

    /// From now on event `index` is a flow.
    pub(super) fn flow(&mut self, index: u32, what: u32, flow: Flow, network: &dyn Network) -> Result<(), Exhausted> {
        let key = self.events[index as usize].tie;
        self.events[index as usize].what = what;
        let count = self.counts.flowing as usize;
        let at = self.flowing[..count].partition_point(|known| known.key < key);
        if count >= self.flowing.len() || !network.start(self.flows, &Flow { key, ..flow }) {
            return Err(Exhausted);
        }
        self.flowing.copy_within(at..count, at + 1);
        self.flowing[at] = Flowing { key, event: index, reserved: 0 };
        self.counts.flowing += 1;
        self.counts.next_flow = network.next(self.flows).unwrap_or(u64::MAX);
        Ok(())
    }

    /// Flows go on to `at`.
    fn flow_on(&mut self, at: u64, network: &dyn Network, woken: &mut Vec<u32>) -> Result<(), Exhausted> {
        self.counts.events += 1;
        let mut ended = Vec::new();
        if !network.advance(self.flows, at, &mut ended) {
            return Err(Exhausted);
        }
        self.counts.next_flow = network.next(self.flows).unwrap_or(u64::MAX);
        for (key, at) in ended {
            let count = self.counts.flowing as usize;
            let Ok(place) = self.flowing[..count].binary_search_by_key(&key, |known| known.key) else { continue };
            let index = self.flowing[place].event;
            self.flowing.copy_within(place + 1..count, place);
            self.counts.flowing -= 1;
            match self.events[index as usize].what {
                what::DATA_FLOWS => self.data_there(index, at, woken)?,
                _ => self.there(index, at, woken),
            }
        }
        Ok(())
    }

    /// The last byte of a message is there at `arrival`. MPI keeps the order of a pair's messages, whatever the network does.
    pub(super) fn there(&mut self, index: u32, mut arrival: u64, woken: &mut Vec<u32>) {
        let Event { before, before_tie, .. } = self.events[index as usize];
        if let Some(before) = before.checked_sub(1).and_then(|index| self.events.get_mut(index as usize))
            && before.tie == before_tie
        {
            if matches!(before.what, what::FLOWS | what::HELD) {
                before.behind = index + 1;
                let event = &mut self.events[index as usize];
                (event.what, event.arrival) = (what::HELD, arrival);
                return;
            }
            arrival = arrival.max(before.arrival);
        }
        let mut next = index;
        loop {
            let event = &mut self.events[next as usize];
            (event.what, event.arrival) = (what::ARRIVES, arrival);
            event.turn_to_who_does_it();
            let behind = event.behind;
            self.schedule(next, arrival, woken);
            let Some(held) = behind.checked_sub(1) else { return };
            next = held;
            arrival = arrival.max(self.events[next as usize].arrival);
        }
    }

    fn data_there(&mut self, index: u32, arrival: u64, woken: &mut Vec<u32>) -> Result<(), Exhausted> {
        let Event { from: receiver, tie, request, .. } = self.events[index as usize];
        let mut placed = answer(kind::PLACED, request);
        placed.set_peer_request(self.events[index as usize].envelope.peer_request());
        self.events[index as usize].what = what::ARRIVES;
        self.schedule(index, arrival, woken);
        let other = self.take_event()?;
        let event = &mut self.events[other as usize];
        // The one after the other's is its own (`answer_tie`).
        (event.what, event.from, event.to, event.tie) = (what::ARRIVES, receiver, receiver, tie + 1);
        placed.copy_to(&mut event.envelope);
        self.schedule(other, arrival, woken);
        Ok(())
    }

    /// It is there.
    pub(super) fn happen(&mut self, index: u32, at: u64, woken: &mut Vec<u32>) {
        let event = &self.events[index as usize];
        let (rank, reached) = (event.to, event.what == what::REACHED);
        let asks = !reached && asks(&event.envelope);
        let ends_nothing = !reached && ends_nothing(&event.envelope);
        if !reached {
            self.forget(index);
        }
        let descriptor = &mut self.ranks[rank as usize];
        let now = descriptor.status.load(RELAXED);
        if reached {
            // It may run, to answer what has come before.
            descriptor.reached = 1;
            self.free_event(index);
            if now == status::WAITS {
                self.wake(rank, at, (0, at), woken);
            }
            return;
        }
        if now == status::OVER {
            self.free_event(index);
            return;
        }
        self.hang(index, rank);
        let descriptor = &mut self.ranks[rank as usize];
        if now == status::RUNS {
            // Until it has taken this, its answer may come as early as this asks for it.
            if asks && at < descriptor.bound {
                self.advance(rank, at);
            }
            return;
        }
        if asks {
            return self.wake(rank, at, (index + 1, at), woken);
        }
        if descriptor.need != NONE && !ends_nothing {
            descriptor.need -= 1;
            if descriptor.need == 0 {
                let clock = descriptor.clock.load(RELAXED);
                self.wake(rank, at, (index + 1, at.max(clock)), woken);
            }
        }
    }

    /// Put event `index` at the end of what has arrived at `rank`.
    fn hang(&mut self, index: u32, rank: u32) {
        self.events[index as usize].next = 0;
        match std::mem::replace(&mut self.ranks[rank as usize].last, index + 1) {
            0 => self.ranks[rank as usize].first = index + 1,
            last => self.events[last as usize - 1].next = index + 1,
        }
    }

    pub(super) fn wake(&mut self, rank: u32, at: u64, (by, bound): (u32, u64), woken: &mut Vec<u32>) {
        let descriptor = &mut self.ranks[rank as usize];
        (descriptor.woken, descriptor.woken_by) = (at, by);
        self.set_running(rank, bound);
        woken.push(rank);
    }
}
