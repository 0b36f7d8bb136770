//! A slower network on top of a faster one, for experiments on one machine: what is sent arrives after a stated latency, and no more bytes
//! per second than stated.
//!
//! Each frame carries the sender's monotonic clock, which all processes of a machine share, so the delay counts from the send call and
//! the carrying network's own time is part of it, not added. Never to be used between machines.
//!
//! A link has two ways, as TCP has two connections. Small frames go between the packets of large messages, as fair queueing of connections
//! has it, and take their part of the rate from those.
//!
//! What it costs the processor is what it costs with an RDMA device: staged bodies are not copied again (`slots`), frames are posted without a system
//! call (`ring`), and who sleeps wakes when a frame is due (`wake_timer`). Where ends cannot open each other's memory it is what TCP costs, which
//! otherwise carries signs of life only, and tells of an end.

mod ring;
mod slots;
mod stamp;
mod wake_timer;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::time::{ClockId, clock_gettime};

use crate::fabric::{Event, FIRST_KIND, Fabric, LinkError};
use crate::frame::FrameError;
use crate::staging::Span;
use slots::{Inbox, Outbox};
use stamp::{STAMP_BYTES, Stamp, form, stamped};

/// What is emulated.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Model {
    pub latency: Duration,
    pub bytes_per_second: f64,
}

impl Model {
    /// `LATENCY_US:MBYTES_PER_S`, as in `--fabric emulated:20:1000`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub fn parse(text: &str) -> Result<Model, String> {
        let wrong = || format!("`{text}` is not LATENCY_US:MB_PER_S, like 20:1000");
        let (latency, rate) = text.split_once(':').ok_or_else(wrong)?;
        let (latency, rate): (f64, f64) = latency.parse().ok().zip(rate.parse().ok()).ok_or_else(wrong)?;
        if !(0.0..=1e7).contains(&latency) || !(1e-3..=1e6).contains(&rate) {
            return Err(wrong());
        }
        Ok(Model { latency: Duration::from_secs_f64(latency * 1e-6), bytes_per_second: rate * 1e6 })
    }

    fn time_of(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.bytes_per_second)
    }
}

struct Late {
    due: Instant,
    kind: u8,
    body: Body,
}

enum Body {
    /// Behind the stamp.
    Here(Vec<u8>),
    Staged(Span),
}

/// A frame that has come.
enum Frame<'a> {
    Carried(&'a [u8]),
    /// Copied out of the ring: it need not be copied again.
    Ringed(&'a mut Vec<u8>),
}

impl Frame<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Frame::Carried(bytes) => bytes,
            Frame::Ringed(bytes) => bytes,
        }
    }

    /// To be kept until it is due.
    fn keep(self, mut fresh: Vec<u8>) -> Vec<u8> {
        match self {
            Frame::Carried(bytes) => {
                fresh.clear();
                fresh.extend_from_slice(bytes);
                fresh
            }
            Frame::Ringed(bytes) => std::mem::replace(bytes, fresh),
        }
    }
}

/// What comes from a node.
#[derive(Default)]
struct Arriving {
    /// In the order of arrival, which within a way is that of `due`.
    ways: [VecDeque<Late>; 2],
    /// When the link has carried all that came.
    free: [Option<Instant>; 2],
    /// The other end's memory, if it could be opened.
    inbox: Option<Inbox>,
    /// Frames that have come.
    come: u64,
}

/// What goes to a node.
#[derive(Default)]
struct Going {
    /// When the link will have carried all that was sent, by either way.
    carried: [Option<Instant>; 2],
    /// From the moment the link is up.
    outbox: Option<Outbox>,
}

/// The ways of `send` and `send_bulk`.
const SMALL: usize = 0;
const BULK: usize = 1;

/// A fabric that delays what another one brings.
pub struct Emulated<F> {
    below: F,
    /// The carrying network, and timers that other ends set.
    epoll: Epoll,
    model: Model,
    /// Of all nodes.
    names: Vec<String>,
    /// By node.
    late: Vec<Arriving>,
    /// By node.
    going: Vec<Going>,
    lost: Vec<(u32, LinkError)>,
    /// Bodies told already, to be used again: fresh memory for each large one would cost more than its copy.
    spare: Vec<Vec<u8>>,
    /// The frame of a ring that is being read.
    frame: Vec<u8>,
    /// Nobody here could make use of large bodies yet.
    calm: bool,
}

/// Frames that are due together are told late by at most this part of the latency.
const MODERATION: u32 = 4;
/// Large bodies by at most this, and so many together, while nobody could make use of them ([`Fabric::moderate`]): to wake up for one takes some 30 us
/// (on a virtual machine) from a rank that computes meanwhile, as long as two copies of 26 kB.
const CALM_MODERATION: Duration = Duration::from_millis(4);
const CALM_BODIES: usize = slots::SLOTS as usize / 2;

/// How long after the first one frames may be due that are told together with it, and how many.
fn moderation(way: usize, latency: Duration, calm: bool) -> (Duration, usize) {
    let together = latency / MODERATION;
    if calm && way == BULK { (together.max(CALM_MODERATION), CALM_BODIES) } else { (together, usize::MAX) }
}

/// When to look again for what has been sent and has not come, or whether a full ring has room.
const DOUBT: Duration = Duration::from_micros(200);
/// What is ready: the carrying network, or a timer, whichever.
const BELOW: u64 = 0;
const TIMER: u64 = 1;
const EVENTS: usize = 16;
/// So many bodies are kept to be used again.
const SPARE_BODIES: usize = 16;
/// So much may be under way before `backlog_bytes` counts it: what a link's buffers hold.
const UNDER_WAY_BYTES: f64 = 64e3;

impl<F: Fabric> Emulated<F> {
    /// # Errors
    /// Those of epoll.
    pub fn new(below: F, model: Model, names: Vec<String>) -> io::Result<Emulated<F>> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(below.readable(), EpollEvent::new(EpollFlags::EPOLLIN, BELOW))?;
        let (late, going, lost, spare, frame) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Ok(Emulated { below, epoll, model, names, late, going, lost, spare, frame, calm: false })
    }

    /// Watch the timer of a node whose memory has been opened, instead of the carrying network.
    fn watch_timer(&mut self, node: u32) {
        let Some(inbox) = &mut at(&mut self.late, node).inbox else { return };
        let event = EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, TIMER);
        let watched = inbox.timer().is_some_and(|timer| self.epoll.add(timer, event).is_ok());
        if !watched || !self.below.quiet_notifications(node) {
            inbox.forget_timer();
        }
    }

    /// May there be something on the carrying network? Of nodes that count what they send it takes no call to know.
    fn may_have_news(&self) -> bool {
        let inboxes = || self.late.iter().filter_map(|late| late.inbox.as_ref());
        inboxes().count() + 1 < self.names.len() || inboxes().any(Inbox::may_have_news)
    }

    fn inboxes(&mut self) -> impl Iterator<Item = &mut Inbox> {
        self.late.iter_mut().filter_map(|late| late.inbox.as_mut())
    }

    /// Time until the link to `node` has carried all but what its buffers hold.
    fn behind(&self, node: u32, way: usize) -> Duration {
        let left = self.going.get(node as usize).and_then(|going| going.carried[way]);
        let left = left.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        left.saturating_sub(Duration::from_secs_f64(UNDER_WAY_BYTES / self.model.bytes_per_second))
    }

    /// The slots for a node that has mapped them. A device takes as many bodies as there are, and carries one after the other.
    fn slots(&self, node: u32) -> Option<&Outbox> {
        self.going.get(node as usize)?.outbox.as_ref().filter(|outbox| outbox.is_mapped())
    }

    fn modelled_backlog(&self, node: u32, way: usize) -> usize {
        (self.behind(node, way).as_secs_f64() * self.model.bytes_per_second) as usize
    }

    /// When the next frame is due, or the last of some that are due shortly after each other: who sleeps wakes once for all of them, as adapters
    /// moderate their interrupts.
    fn next_due(&self) -> Option<Instant> {
        let last_of = |way: usize| {
            let (together, most) = moderation(way, self.model.latency, self.calm);
            let ways = || self.late.iter().map(move |late| &late.ways[way]);
            let until = ways().filter_map(|late| Some(late.front()?.due)).min()? + together;
            ways()
                .filter_map(|late| late.iter().take(most).map(|late| late.due).take_while(|due| *due <= until).last())
                .max()
        };
        [SMALL, BULK].into_iter().filter_map(last_of).min()
    }

    /// Count what goes, and stamp it.
    fn sent(&mut self, node: u32, way: usize, form: u8, bytes: usize) -> [u8; STAMP_BYTES] {
        let (now, clock) = (Instant::now(), clock_ns());
        let going = at(&mut self.going, node);
        let end = carry(&mut going.carried, way, now, self.model.time_of(bytes));
        if let Some(outbox) = &mut going.outbox {
            let due = clock + (end - now + self.model.latency).as_nanos() as u64;
            outbox.queued(way, due, self.model.latency);
        }
        let told = at(&mut self.late, node).inbox.as_mut().map_or(0, Inbox::say);
        Stamp { clock, way, form, told }.encode()
    }

    /// Something between the two ends of this emulation.
    fn say(&mut self, node: u32, form: u8, body: &[u8]) {
        self.pass(node, SMALL, FIRST_KIND, (form, 0), &[body]);
    }

    /// Send what follows a stamp, by the ring if there is one. `bytes`: what the link is to carry.
    fn pass(&mut self, node: u32, way: usize, kind: u8, (form, bytes): (u8, usize), parts: &[&[u8]]) {
        let stamp = self.sent(node, way, form, bytes);
        let parts = &stamped(&stamp, parts);
        match at(&mut self.going, node).outbox.as_mut().filter(|outbox| outbox.has_ring()) {
            Some(outbox) => outbox.push(kind, parts),
            None if way == BULK => self.below.send_bulk(node, kind, parts),
            None => self.below.send(node, kind, parts),
        }
    }

    /// The other end has mapped this one's memory: by both ways it hears that nothing more comes there.
    fn begin_ring(&mut self, node: u32) {
        for way in [SMALL, BULK] {
            self.pass(node, way, FIRST_KIND, (form::RING, 0), &[]);
        }
        if let Some(outbox) = &mut at(&mut self.going, node).outbox {
            outbox.begin_ring();
        }
    }

    fn waiting_bytes(&self, node: u32) -> usize {
        self.slots(node).map_or(0, Outbox::waiting_bytes)
    }
}

/// The one of this node, made if it is the first time.
fn at<T: Default>(nodes: &mut Vec<T>, node: u32) -> &mut T {
    let at = node as usize;
    if nodes.len() <= at {
        nodes.resize_with(at + 1, T::default);
    }
    &mut nodes[at]
}

/// When the link has carried what is sent now; `free`: when it has carried what was sent before.
fn carry(free: &mut [Option<Instant>; 2], way: usize, now: Instant, time: Duration) -> Instant {
    let end = free[way].map_or(now, |free| free.max(now)) + time;
    free[way] = Some(end);
    if way == SMALL
        && let Some(bulk) = &mut free[BULK]
    {
        *bulk += time;
    }
    end
}

fn length(parts: &[&[u8]]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

fn clock_ns() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

impl<F: Fabric> Fabric for Emulated<F> {
    fn describe(&self) -> String {
        let (us, mb) = (self.model.latency.as_secs_f64() * 1e6, self.model.bytes_per_second * 1e-6);
        format!("emulated ({us} us, {mb} MB/s) over {}", self.below.describe())
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    fn prepare_to_sleep(&mut self) -> bool {
        let below = self.below.prepare_to_sleep();
        let now = Instant::now();
        let until = self.next_due().map(|due| clock_ns() + due.saturating_duration_since(now).as_nanos() as u64);
        // All of them lie down, whatever one finds.
        let calm = self.calm;
        self.inboxes().fold(below, |quiet, inbox| inbox.prepare_to_sleep(until, calm) && quiet)
    }

    fn moderate(&mut self, idle_hands: bool) {
        self.calm = idle_hands;
    }

    fn send(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        self.pass(node, SMALL, kind, (form::BODY, length(parts)), parts);
    }

    fn send_bulk(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        self.pass(node, BULK, kind, (form::BODY, length(parts)), parts);
    }

    fn stage(&mut self, node: u32, bytes: usize) -> Option<&mut [u8]> {
        self.going.get_mut(node as usize)?.outbox.as_mut()?.stage(bytes)
    }

    fn send_staged(&mut self, node: u32, kind: u8) {
        let Some(outbox) = at(&mut self.going, node).outbox.as_mut() else { return };
        let (bytes, word) = outbox.send();
        self.pass(node, BULK, kind, (form::STAGED, bytes), &[&word]);
    }

    fn backlog_bytes(&self, node: u32) -> usize {
        self.below.backlog_bytes(node).max(self.modelled_backlog(node, SMALL)).max(self.waiting_bytes(node))
    }

    fn has_room(&self, node: u32) -> bool {
        self.below.has_room(node)
            && self.waiting_bytes(node) == 0
            && self.slots(node).map_or_else(|| self.behind(node, BULK).is_zero(), Outbox::has_room)
    }

    fn is_flushed(&self) -> bool {
        self.below.is_flushed() && (0..self.going.len() as u32).all(|node| self.waiting_bytes(node) == 0)
    }

    fn flush(&mut self) {
        self.below.flush();
        self.going.iter_mut().filter_map(|going| going.outbox.as_mut()).for_each(Outbox::flush);
        if self.below.is_flushed() {
            self.going.iter_mut().filter_map(|going| going.outbox.as_mut()).for_each(Outbox::ring);
        }
    }

    fn progress(&mut self, now: Instant, on_event: &mut dyn FnMut(Event<'_>)) {
        // Timers that have gone off count once.
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(EVENTS);
        let below = events[..count].iter().any(|event| event.data() == BELOW);
        if below || count == EVENTS || self.below.deadline().is_some_and(|at| at <= now) || self.may_have_news() {
            self.bring(now, F::progress, on_event);
        } else {
            self.bring(now, |_, _, _| {}, on_event);
        }
    }

    fn expect_bulk(&mut self) {
        self.below.expect_bulk();
    }

    fn poll(&mut self, now: Instant, on_event: &mut dyn FnMut(Event<'_>)) {
        if self.may_have_news() {
            self.bring(now, F::poll, on_event);
        } else {
            self.bring(now, |_, _, _| {}, on_event);
        }
    }

    fn linger(&mut self, patience: Duration) {
        self.flush();
        self.below.linger(patience);
    }

    fn deadline(&self) -> Option<Instant> {
        // Who waits to send more looks when the buffers are all that is left. Of slots that are free again the other end tells.
        let ways = (0..self.going.len() as u32).flat_map(|node| [(node, SMALL), (node, BULK)]);
        let ways = ways.filter(|(node, way)| *way == SMALL || self.slots(*node).is_none());
        let room = ways.map(|(node, way)| self.behind(node, way)).filter(|behind| !behind.is_zero()).min();
        let room = room.map(|behind| Instant::now() + behind);
        let doubts = self.late.iter().filter_map(|late| late.inbox.as_ref()).any(Inbox::doubts);
        let full = (0..self.going.len() as u32).any(|node| self.waiting_bytes(node) > 0);
        let again = (doubts || full).then(|| Instant::now() + DOUBT);
        [self.below.deadline(), self.next_due(), room, again].into_iter().flatten().min()
    }
}

impl<F: Fabric> Emulated<F> {
    /// Take what the carrying network brings by `fetch`, and tell what is due.
    fn bring(
        &mut self,
        now: Instant,
        fetch: fn(&mut F, Instant, &mut dyn FnMut(Event<'_>)),
        on_event: &mut dyn FnMut(Event<'_>),
    ) {
        self.inboxes().for_each(|inbox| inbox.get_up());
        let News { up, opened, mapped } = self.take_in(now, fetch);
        for node in opened {
            self.watch_timer(node);
            self.say(node, form::OPENED, &[]);
        }
        mapped.into_iter().for_each(|node| self.begin_ring(node));
        for node in up {
            // Without memory bodies go over the carrying network.
            if let Ok(outbox) = Outbox::new() {
                let offer = outbox.offer();
                at(&mut self.going, node).outbox = Some(outbox);
                self.say(node, form::OFFER, &offer);
            }
            on_event(Event::Up(node));
        }
        let owed = self.tell_due(now, on_event);
        self.tell_lost(on_event);
        for node in owed {
            self.say(node, form::TOLD, &[]);
        }
    }

    /// Take what the carrying network and the rings hold.
    fn take_in(&mut self, now: Instant, fetch: fn(&mut F, Instant, &mut dyn FnMut(Event<'_>))) -> News {
        let Emulated { below, model, names, late, going, lost, spare, frame: ringed, .. } = self;
        let (now_ns, mut news) = (clock_ns(), News::default());
        let mut came = |arriving: &mut Arriving,
                        going: &mut Going,
                        lost: &mut Vec<_>,
                        (node, kind): (u32, u8),
                        frame: Frame<'_>| {
            match arriving.take(going, frame.bytes()) {
                Ok(Taken::Body(stamp, bytes, staged)) => {
                    let here = || Body::Here(frame.keep(spare.pop().unwrap_or_default()));
                    let body = staged.map_or_else(here, Body::Staged);
                    let age = Duration::from_nanos(now_ns.saturating_sub(stamp.clock));
                    let sent = now.checked_sub(age).unwrap_or(now);
                    let end = carry(&mut arriving.free, stamp.way, sent, model.time_of(bytes));
                    arriving.ways[stamp.way].push_back(Late { due: end + model.latency, kind, body });
                }
                Ok(Taken::Offer) => news.opened.push(node),
                Ok(Taken::Opened) => news.mapped.push(node),
                Ok(Taken::Nothing) => {}
                Err(why) => lost.push((node, nonsense(names, node, why))),
            }
        };
        let mut up = Vec::new();
        fetch(below, now, &mut |event| match event {
            Event::Up(node) => up.push(node),
            Event::Lost(node, why) => lost.push((node, why)),
            Event::Frame { node, kind, body } => {
                came(at(late, node), at(going, node), lost, (node, kind), Frame::Carried(body));
            }
        });
        // What an end has put there before it went is there still.
        for (node, arriving) in (0..).zip(late.iter_mut()) {
            loop {
                match arriving.inbox.as_mut().map_or(Ok(None), |inbox| inbox.next(ringed)) {
                    Ok(Some(kind)) => {
                        came(arriving, at(going, node), lost, (node, kind), Frame::Ringed(ringed));
                    }
                    Ok(None) => break,
                    Err(why) => {
                        lost.push((node, nonsense(names, node, why)));
                        break;
                    }
                }
            }
        }
        News { up, ..news }
    }

    /// Tell what is due. Returns the nodes that must hear what has been told.
    fn tell_due(&mut self, now: Instant, on_event: &mut dyn FnMut(Event<'_>)) -> Vec<u32> {
        let Emulated { late, spare, .. } = self;
        let mut owed = Vec::new();
        for (node, late) in (0..).zip(late.iter_mut()) {
            let Arriving { ways, inbox, .. } = late;
            for late in ways {
                while let Some(Late { kind, body, .. }) = late.pop_front_if(|late| late.due <= now) {
                    match (body, &mut *inbox) {
                        (Body::Here(body), _) => {
                            on_event(Event::Frame { node, kind, body: body.get(STAMP_BYTES..).unwrap_or_default() });
                            if spare.len() < SPARE_BODIES {
                                spare.push(body);
                            }
                        }
                        (Body::Staged(span), Some(inbox)) => {
                            on_event(Event::Frame { node, kind, body: inbox.body(span) });
                            inbox.told();
                        }
                        // A memory that has been opened stays.
                        (Body::Staged(_), None) => {}
                    }
                }
            }
            if inbox.as_ref().is_some_and(Inbox::must_say) {
                owed.push(node);
            }
        }
        owed
    }

    /// Tell of lost links; what was sent before comes first.
    fn tell_lost(&mut self, on_event: &mut dyn FnMut(Event<'_>)) {
        let Emulated { late, lost, .. } = self;
        for (node, why) in std::mem::take(lost) {
            if late.get(node as usize).is_some_and(|late| late.ways.iter().any(|way| !way.is_empty())) {
                lost.push((node, why));
            } else {
                // What it has counted may never come.
                if let Some(inbox) = late.get_mut(node as usize).and_then(|late| late.inbox.as_mut()) {
                    inbox.forget_timer();
                }
                on_event(Event::Lost(node, why));
            }
        }
    }
}

/// Nodes of which something has come that is to be answered.
#[derive(Default)]
struct News {
    /// The link is up.
    up: Vec<u32>,
    /// Their memory has been opened here.
    opened: Vec<u32>,
    /// They have opened this node's.
    mapped: Vec<u32>,
}

fn nonsense(names: &[String], node: u32, why: FrameError) -> LinkError {
    LinkError::Nonsense { node: names.get(node as usize).cloned().unwrap_or_default(), why }
}

/// What a frame was.
enum Taken {
    /// One to be told when it is due, how long its body is, and where that lies, if staged.
    Body(Stamp, usize, Option<Span>),
    /// The other end's memory, which this end has opened.
    Offer,
    /// Word that the other end has opened this one's.
    Opened,
    Nothing,
}

impl Arriving {
    fn take(&mut self, going: &mut Going, body: &[u8]) -> Result<Taken, FrameError> {
        let (stamp, rest) = Stamp::decode(body).ok_or(FrameError::Cut(body.len()))?;
        self.come += 1;
        if let Some(inbox) = &mut self.inbox {
            inbox.saw(self.come);
        }
        if let Some(outbox) = &mut going.outbox {
            outbox.returned(stamp.told);
            if stamp.form == form::OPENED && !outbox.is_mapped() {
                outbox.mapped();
                return Ok(Taken::Opened);
            }
        }
        match (stamp.form, &mut self.inbox) {
            (form::BODY, _) => Ok(Taken::Body(stamp, rest.len(), None)),
            (form::STAGED, Some(inbox)) => {
                let span = inbox.word(rest)?;
                Ok(Taken::Body(stamp, span.bytes, Some(span)))
            }
            (form::OFFER, inbox @ None) => {
                *inbox = Inbox::open(rest).ok();
                if let Some(inbox) = inbox {
                    inbox.saw(self.come);
                }
                Ok(if inbox.is_some() { Taken::Offer } else { Taken::Nothing })
            }
            (form::RING, Some(inbox)) => {
                inbox.ringed();
                Ok(Taken::Nothing)
            }
            (form::OPENED | form::TOLD, _) => Ok(Taken::Nothing),
            _ => Err(FrameError::Cut(body.len())),
        }
    }
}
