//! A node's connections: the handshake of each over the TCP link below, completions, and what a failure means.
//!
//! Handshake: when the TCP link is up both ends make one end of a connection and tell it (Offer), connect to the other's (Ready), and send a greeting
//! through the device; when the device says that it has arrived, they tell that (Works). Frames go when both have. An end that cannot says
//! so (Without), and then, unless verbs were demanded, frames of these two nodes go over TCP. So a job on nodes with devices that do not reach each
//! other runs all the same.
//!
//! Death story: a process's end shows as the end of the TCP link; a device's or a cable's as a work that cannot be done (the device tries for some seconds).

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};

use super::abi::{Done, Keys};
use super::hello::{KIND, Offer, Step};
use super::nic::{Nic, NicError};
use super::queue_pair::{self, Fault, QueuePair};
use crate::fabric::{Event, FIRST_KIND, Fabric, LinkError};
use crate::staging::Staging;

/// The greetings have arrived in this time, or the devices do not reach each other; longer than the device tries.
const GREETING: Duration = Duration::from_secs(12);
/// After something has come, the device is polled for so long before anybody sleeps.
const BUSY: Duration = Duration::from_micros(20);
/// Completions taken at a time.
const BATCH: usize = 32;
/// Batches between two looks at the TCP links.
const BATCHES: usize = 16;

/// What if it cannot be done with some node?
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Then the job ends, saying why.
    Must,
    /// Then those two nodes talk over TCP.
    May,
}

enum State {
    /// This node, or one whose TCP link is not up yet.
    Down,
    /// Offered; the other's offer is awaited.
    Offered(QueuePair, Instant),
    /// Connected; the other end is not ready.
    Joined(QueuePair, Instant),
    /// Greeted; and has the greeting arrived, and the other's?
    Greeted {
        pair: QueuePair,
        until: Instant,
        mine: bool,
        theirs: bool,
    },
    Open(QueuePair),
    /// Frames go over TCP.
    Plain,
    Gone,
}

impl State {
    fn pair(&mut self) -> Option<&mut QueuePair> {
        match self {
            State::Offered(pair, _) | State::Joined(pair, _) | State::Greeted { pair, .. } | State::Open(pair) => {
                Some(pair)
            }
            State::Down | State::Plain | State::Gone => None,
        }
    }
}

/// What a completion or a word of the other end has come to.
enum Fate {
    Up(u32),
    Lost(u32, LinkError),
}

type Acted<R> = Result<R, NicError>;

/// The device and the registered memory, in the order in which they must go.
struct Hardware {
    nic: Box<dyn Nic>,
    staging: Staging,
    keys: Keys,
    slots: u32,
}

/// Verbs where they work, over the links of `below`.
pub struct Verbs<F> {
    below: F,
    /// Or why there is none.
    hardware: Result<Hardware, String>,
    demand: Demand,
    me: u32,
    names: Vec<String>,
    states: Vec<State>,
    /// Nodes with which TCP is used, and why.
    plain: Vec<(u32, String)>,
    epoll: Epoll,
    armed: bool,
    /// Found when arming: to be acted on at once.
    early: Vec<Done>,
    busy_until: Option<Instant>,
    last_turn: Instant,
    /// Found while sending, to be told at the next turn.
    fates: Vec<Fate>,
}

impl<F: Fabric> Verbs<F> {
    /// Over `below`, as node `me` of these names. Without a device (`nic` says why), frames go over `below` and the others are told why.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(
        below: F,
        nic: Result<Box<dyn Nic>, String>,
        demand: Demand,
        me: u32,
        names: Vec<String>,
        now: Instant,
    ) -> std::io::Result<Verbs<F>> {
        let hardware = nic.and_then(|nic| prepare(nic, names.len()).map_err(|e| e.to_string()));
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(below.readable(), EpollEvent::new(EpollFlags::EPOLLIN, 0))?;
        if let Ok(hardware) = &hardware {
            epoll.add(hardware.nic.channel(), EpollEvent::new(EpollFlags::EPOLLIN, 1))?;
        }
        Ok(Verbs {
            below,
            hardware,
            demand,
            me,
            states: names.iter().map(|_| State::Down).collect(),
            names,
            plain: Vec::new(),
            epoll,
            armed: false,
            early: Vec::new(),
            busy_until: None,
            last_turn: now,
            fates: Vec::new(),
        })
    }

    /// Why there is no device here, if there is none.
    pub fn refusal(&self) -> Option<&str> {
        self.hardware.as_ref().err().map(String::as_str)
    }

    fn say(&mut self, node: u32, step: &Step) {
        self.below.send(node, KIND, &[&step.encode()]);
    }

    /// Verbs cannot be used with this node: end, or go on over TCP.
    fn without(&mut self, node: u32, why: String, told: bool) {
        if !told {
            self.say(node, &Step::Without(why.clone()));
        }
        self.end(node, State::Plain);
        if self.demand == Demand::Must {
            let name = self.names[node as usize].clone();
            self.states[node as usize] = State::Gone;
            // What was said goes before this end does.
            self.below.flush();
            return self.fates.push(Fate::Lost(node, LinkError::NoVerbs { node: name, why }));
        }
        self.plain.push((node, why));
        self.fates.push(Fate::Up(node));
    }

    /// Let go of a connection.
    fn end(&mut self, node: u32, next: State) {
        let mut was = std::mem::replace(&mut self.states[node as usize], next);
        if let (Some(pair), Ok(hardware)) = (was.pair(), &mut self.hardware) {
            hardware.nic.part(pair.pair);
        }
    }

    fn linked(&mut self, node: u32, now: Instant) {
        let made = match &mut self.hardware {
            Err(why) => Err(why.clone()),
            Ok(hardware) => hardware.pair(self.me, node, self.names.len()).map_err(|e| e.to_string()),
        };
        match made {
            Ok((pair, offer)) => {
                self.states[node as usize] = State::Offered(pair, now + GREETING);
                self.say(node, &Step::Offer(offer));
            }
            Err(why) => {
                let here = self.names[self.me as usize].clone();
                self.without(node, format!("on node {here}: {why}"), false);
            }
        }
    }

    fn heard(&mut self, node: u32, body: &[u8], now: Instant) {
        let state = std::mem::replace(&mut self.states[node as usize], State::Down);
        let (next, trouble) = match (Step::decode(body), state) {
            (Some(Step::Offer(offer)), State::Offered(mut pair, until)) => {
                let joined = match &mut self.hardware {
                    Ok(hardware) => pair.join(&mut *hardware.nic, offer),
                    Err(why) => Err(NicError(why.clone())),
                };
                match joined {
                    Ok(()) => {
                        self.say(node, &Step::Ready);
                        (State::Joined(pair, until), None)
                    }
                    Err(e) => (State::Offered(pair, until), Some(e.to_string())),
                }
            }
            (Some(Step::Ready), State::Joined(mut pair, _)) => {
                let greeted = match &mut self.hardware {
                    Ok(hardware) => pair.greet(&mut *hardware.nic, &mut hardware.staging),
                    Err(why) => Err(NicError(why.clone())),
                };
                let next = State::Greeted { pair, until: now + GREETING, mine: false, theirs: false };
                (next, greeted.err().map(|e| e.to_string()))
            }
            (Some(Step::Works), State::Greeted { pair, mine: true, .. }) => {
                self.fates.push(Fate::Up(node));
                (State::Open(pair), None)
            }
            (Some(Step::Works), State::Greeted { pair, until, .. }) => {
                (State::Greeted { pair, until, mine: false, theirs: true }, None)
            }
            // Frames have come already, which says as much.
            (Some(Step::Works), state @ State::Open(_)) => (state, None),
            // This end said so first.
            (Some(_), state @ (State::Plain | State::Gone)) => (state, None),
            (Some(Step::Without(why)), State::Open(pair)) => {
                self.states[node as usize] = State::Open(pair);
                self.end(node, State::Gone);
                let name = self.names[node as usize].clone();
                let why = format!("its end says: {why}");
                return self.fates.push(Fate::Lost(node, LinkError::Rdma { node: name, why }));
            }
            (Some(Step::Without(why)), state) => {
                self.states[node as usize] = state;
                return self.without(node, why, true);
            }
            (_, state) => (state, Some("it does not keep to the handshake".into())),
        };
        self.states[node as usize] = next;
        if let Some(why) = trouble {
            self.without(node, why, false);
        }
    }

    /// A work or a message of a node's connection.
    fn completed(&mut self, done: &Done, on_event: &mut dyn FnMut(Event<'_>)) {
        let node = QueuePair::node_of(done);
        let Ok(hardware) = &mut self.hardware else { return };
        let Some(state) = self.states.get_mut(node as usize) else { return };
        // The other end sends frames only when it has heard that both greetings have arrived.
        let mut opens = matches!(state, State::Greeted { mine: true, .. });
        let greeting = matches!(state, State::Greeted { mine: false, .. });
        let Some(pair) = state.pair() else { return };
        let heard = pair.done(&mut *hardware.nic, &hardware.staging, done, &mut |kind, body| {
            if std::mem::take(&mut opens) {
                on_event(Event::Up(node));
            }
            on_event(Event::Frame { node, kind, body });
        });
        match heard {
            Ok(true) if !opens => {
                if let State::Greeted { mine: true, .. } = state
                    && let State::Greeted { pair, .. } = std::mem::replace(state, State::Gone)
                {
                    *state = State::Open(pair);
                }
            }
            Ok(true) => {}
            Ok(false) if greeting => {
                self.say(node, &Step::Works);
                if let State::Greeted { pair, until, theirs, .. } =
                    std::mem::replace(&mut self.states[node as usize], State::Down)
                {
                    self.states[node as usize] = match theirs {
                        true => State::Open(pair),
                        false => State::Greeted { pair, until, mine: true, theirs },
                    };
                    if theirs {
                        self.fates.push(Fate::Up(node));
                    }
                }
            }
            Ok(false) => {}
            Err(fault) => self.broke(node, fault),
        }
    }

    fn broke(&mut self, node: u32, fault: Fault) {
        let name = self.names[node as usize].clone();
        if !matches!(self.states[node as usize], State::Open(_)) {
            let why = match fault {
                Fault::Nic(e) => {
                    format!("a greeting between {} and {name} did not arrive: {e}", self.names[self.me as usize])
                }
                Fault::Nonsense(e) => e.to_string(),
            };
            return self.without(node, why, false);
        }
        // So that both ends say the same, whoever is heard first.
        let told = match &fault {
            Fault::Nic(e) => e.to_string(),
            Fault::Nonsense(e) => e.to_string(),
        };
        self.say(node, &Step::Without(told));
        self.below.flush();
        self.end(node, State::Gone);
        let why = match fault {
            Fault::Nic(e) => LinkError::Rdma { node: name, why: e.to_string() },
            Fault::Nonsense(why) => LinkError::Nonsense { node: name, why },
        };
        self.fates.push(Fate::Lost(node, why));
    }

    /// Take what the device has done. Was there anything?
    fn drain(&mut self, on_event: &mut dyn FnMut(Event<'_>)) -> bool {
        let mut found = !self.early.is_empty();
        for done in std::mem::take(&mut self.early) {
            self.completed(&done, on_event);
        }
        let mut batch = [Done::default(); BATCH];
        for _ in 0..BATCHES {
            let Ok(hardware) = &mut self.hardware else { return found };
            let count = match hardware.nic.poll(&mut batch) {
                Ok(count) => count.min(BATCH),
                Err(e) => {
                    self.fail_all(&e.to_string());
                    return true;
                }
            };
            for done in &batch[..count] {
                self.completed(done, on_event);
            }
            found |= count > 0;
            if count < BATCH {
                break;
            }
        }
        found
    }

    /// The device itself has failed.
    fn fail_all(&mut self, why: &str) {
        for node in 0..self.states.len() as u32 {
            if self.states[node as usize].pair().is_some() {
                self.broke(node, Fault::Nic(NicError(why.into())));
            }
        }
    }

    fn check_deadlines(&mut self, now: Instant) {
        for node in 0..self.states.len() as u32 {
            let late = match &self.states[node as usize] {
                State::Offered(_, until) | State::Joined(_, until) | State::Greeted { until, .. } => *until <= now,
                _ => false,
            };
            if late {
                let name = &self.names[node as usize];
                self.without(
                    node,
                    format!("the handshake with {name} took longer than {} s", GREETING.as_secs()),
                    false,
                );
            }
        }
    }

    fn tell_fates(&mut self, on_event: &mut dyn FnMut(Event<'_>)) {
        for fate in std::mem::take(&mut self.fates) {
            match fate {
                Fate::Up(node) => on_event(Event::Up(node)),
                Fate::Lost(node, why) => on_event(Event::Lost(node, why)),
            }
        }
    }

    /// With the open connection to a node, if there is one: an error of the device ends it.
    fn with<R>(&mut self, node: u32, act: impl FnOnce(&mut QueuePair, &mut Hardware) -> Acted<R>) -> Option<R> {
        let Ok(hardware) = &mut self.hardware else { return None };
        let Some(State::Open(pair)) = self.states.get_mut(node as usize) else { return None };
        match act(pair, hardware) {
            Ok(result) => Some(result),
            Err(e) => {
                self.broke(node, Fault::Nic(e));
                None
            }
        }
    }

    fn flush_pairs(&mut self) {
        for node in 0..self.states.len() as u32 {
            self.with(node, |pair, hardware| pair.flush(&mut *hardware.nic, &mut hardware.staging));
        }
    }
}

impl Hardware {
    /// A connection's end for `node`, in its part of the staging.
    fn pair(&mut self, me: u32, node: u32, nodes: usize) -> Result<(QueuePair, Offer), NicError> {
        let number = if node > me { node - 1 } else { node } as usize;
        debug_assert!(number + 1 < nodes);
        let base = number * queue_pair::staging_bytes(self.slots);
        let pair = QueuePair::new(&mut *self.nic, &self.staging, self.keys, base, self.slots, node)?;
        let offer = pair.offer(&self.staging);
        Ok((pair, offer))
    }
}

fn prepare(mut nic: Box<dyn Nic>, nodes: usize) -> Result<Hardware, NicError> {
    let (slots, others) = (queue_pair::slots_among(nodes), nodes.saturating_sub(1));
    nic.prepare(queue_pair::completions(slots) * others.max(1) as u32)?;
    let staging = Staging::new(queue_pair::staging_bytes(slots) * others)
        .map_err(|e| NicError(format!("no memory for the messages' staging: {e}")))?;
    let keys = nic.register(staging.address(), staging.bytes() as u64)?;
    Ok(Hardware { nic, staging, keys, slots })
}

impl<F: Fabric> Fabric for Verbs<F> {
    fn describe(&self) -> String {
        let name = |(node, why): &(u32, String)| {
            format!("{} with node {} ({why})", self.below.describe(), self.names[*node as usize])
        };
        match &self.hardware {
            Err(why) => format!("{}, not verbs: {why}", self.below.describe()),
            Ok(hardware) => {
                let all: Vec<String> = std::iter::once(format!("verbs ({})", hardware.nic.name()))
                    .chain(self.plain.iter().map(name))
                    .collect();
                all.join(", ")
            }
        }
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    fn send(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        match self.states.get(node as usize) {
            Some(State::Plain) => self.below.send(node, kind, parts),
            _ => _ = self.with(node, |pair, Hardware { nic, staging, .. }| pair.send(&mut **nic, staging, kind, parts)),
        }
    }

    fn stage(&mut self, node: u32, bytes: usize) -> Option<&mut [u8]> {
        let Ok(hardware) = &mut self.hardware else { return None };
        match self.states.get_mut(node as usize) {
            Some(State::Open(pair)) => pair.stage(&mut hardware.staging, bytes),
            _ => None,
        }
    }

    fn send_staged(&mut self, node: u32, kind: u8) {
        self.with(node, |pair, hardware| pair.send_staged(&mut *hardware.nic, &mut hardware.staging, kind));
    }

    fn send_bulk(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        match self.states.get(node as usize) {
            Some(State::Plain) => self.below.send_bulk(node, kind, parts),
            _ => self.send(node, kind, parts),
        }
    }

    fn backlog_bytes(&self, node: u32) -> usize {
        match self.states.get(node as usize) {
            Some(State::Open(pair)) => pair.backlog_bytes(),
            Some(State::Plain) => self.below.backlog_bytes(node),
            _ => 0,
        }
    }

    fn has_room(&self, node: u32) -> bool {
        match self.states.get(node as usize) {
            // As long as there are slots, nothing is copied twice.
            Some(State::Open(pair)) => pair.has_room(),
            Some(State::Plain) => self.below.has_room(node),
            // Where nothing goes any more nothing need wait.
            _ => true,
        }
    }

    fn is_flushed(&self) -> bool {
        let done = self.states.iter().all(|state| match state {
            State::Open(pair) => pair.is_flushed(),
            _ => true,
        });
        done && self.below.is_flushed()
    }

    fn flush(&mut self) {
        self.flush_pairs();
        self.below.flush();
        let Ok(hardware) = &mut self.hardware else { return };
        if self.armed || !self.early.is_empty() || self.busy_until.is_some() {
            return;
        }
        // A completion that came before the device was armed makes nothing readable: look once more.
        let mut batch = [Done::default(); BATCH];
        let found = hardware.nic.arm().and_then(|()| hardware.nic.poll(&mut batch));
        match found {
            Ok(count) => {
                self.armed = true;
                self.early.extend_from_slice(&batch[..count.min(BATCH)]);
            }
            Err(e) => self.fail_all(&e.to_string()),
        }
    }

    fn progress(&mut self, now: Instant, on_event: &mut dyn FnMut(Event<'_>)) {
        self.last_turn = now;
        if let Ok(hardware) = &mut self.hardware
            && self.armed
            && hardware.nic.heed()
        {
            self.armed = false;
        }
        let (mut words, mut links) = (Vec::new(), Vec::new());
        let Verbs { below, states, .. } = self;
        below.progress(now, &mut |event| match event {
            Event::Up(node) => links.push((node, None)),
            Event::Lost(node, why) => links.push((node, Some(why))),
            Event::Frame { node, kind: KIND, body } => words.push((node, KIND, body.to_vec())),
            Event::Frame { node, kind, body } => match &states[node as usize] {
                State::Plain => on_event(Event::Frame { node, kind, body }),
                // The word that they are, comes first.
                _ => words.push((node, kind, body.to_vec())),
            },
        });
        // A link is up before anything comes, and what came before it was lost counts.
        let (lost, up): (Vec<_>, Vec<_>) = links.into_iter().partition(|(_, why)| why.is_some());
        for (node, _) in up {
            self.linked(node, now);
        }
        for (node, kind, body) in words {
            match kind {
                KIND => self.heard(node, &body, now),
                kind if kind >= FIRST_KIND && matches!(self.states[node as usize], State::Plain) => {
                    self.tell_fates(on_event);
                    on_event(Event::Frame { node, kind, body: &body });
                }
                _ => self.broke(node, Fault::Nic(NicError("frames came over TCP".into()))),
            }
        }
        let found = self.drain(on_event);
        self.busy_until = match self.busy_until {
            _ if found => Some(now + BUSY),
            Some(until) if until > now => Some(until),
            _ => None,
        };
        self.flush_pairs();
        self.check_deadlines(now);
        for (node, why) in lost {
            if !matches!(self.states[node as usize], State::Gone) {
                // Goes only where it was this end that gave the link up.
                why.iter().for_each(|why| self.say(node, &Step::Without(why.to_string())));
                self.end(node, State::Gone);
                self.fates.extend(why.map(|why| Fate::Lost(node, why)));
            }
        }
        self.tell_fates(on_event);
        self.below.flush();
    }

    fn linger(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        for node in 0..self.states.len() as u32 {
            // A last one that is told when it is done, and all before it with it.
            self.with(node, |pair, hardware| {
                pair.flush(&mut *hardware.nic, &mut hardware.staging)?;
                pair.greet(&mut *hardware.nic, &mut hardware.staging)
            });
        }
        loop {
            self.progress(Instant::now(), &mut |_| {});
            let quiet = self.states.iter().all(|state| match state {
                State::Open(pair) => pair.is_quiet(),
                _ => true,
            });
            if quiet || Instant::now() >= until {
                return;
            }
            std::thread::yield_now();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.early.is_empty() || !self.fates.is_empty() || self.busy_until.is_some() {
            return Some(self.last_turn);
        }
        let states = self.states.iter().filter_map(|state| match state {
            State::Offered(_, until) | State::Joined(_, until) | State::Greeted { until, .. } => Some(*until),
            _ => None,
        });
        states.chain(self.below.deadline()).min()
    }
}
