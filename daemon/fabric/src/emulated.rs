//! A slower network on top of a faster one, for experiments on one machine: what is sent arrives after a stated latency, and no more bytes
//! per second than stated.
//!
//! Each frame carries the sender's monotonic clock, which all processes of a machine share, so the delay counts from the send call and
//! the carrying network's own time is part of it, not added. Never to be used between machines.
//!
//! A link has two ways, as TCP has two connections. Small frames go between the packets of large messages, as fair queueing of connections
//! has it, and take their part of the rate from those.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::fabric::{Event, Fabric, LinkError};

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
    node: u32,
    kind: u8,
    body: Vec<u8>,
}

/// What comes from a node.
#[derive(Default)]
struct Arriving {
    /// In the order of arrival, which within a way is that of `due`.
    ways: [VecDeque<Late>; 2],
    /// When the link has carried all that came.
    free: [Option<Instant>; 2],
}

/// The ways of `send` and `send_bulk`.
const SMALL: usize = 0;
const BULK: usize = 1;

/// A fabric that delays what another one brings.
pub struct Emulated<F> {
    below: F,
    model: Model,
    /// By node.
    late: Vec<Arriving>,
    lost: Vec<(u32, LinkError)>,
    /// When the link to each node will have carried all that was sent, by either way.
    carried: Vec<[Option<Instant>; 2]>,
    /// Bodies told already, to be used again: fresh memory for each large one would cost more than its copy.
    spare: Vec<Vec<u8>>,
}

/// So many bodies are kept to be used again.
const SPARE_BODIES: usize = 16;
/// So much may be under way before `backlog_bytes` counts it: what a link's buffers hold.
const UNDER_WAY_BYTES: f64 = 64e3;

impl<F: Fabric> Emulated<F> {
    pub fn new(below: F, model: Model) -> Emulated<F> {
        Emulated { below, model, late: Vec::new(), lost: Vec::new(), carried: Vec::new(), spare: Vec::new() }
    }

    /// Time until the link to `node` has carried all but what its buffers hold.
    fn behind(&self, node: u32, way: usize) -> Duration {
        let left = self.carried.get(node as usize).and_then(|carried| carried[way]);
        let left = left.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        left.saturating_sub(Duration::from_secs_f64(UNDER_WAY_BYTES / self.model.bytes_per_second))
    }

    fn modelled_backlog(&self, node: u32, way: usize) -> usize {
        (self.behind(node, way).as_secs_f64() * self.model.bytes_per_second) as usize
    }

    fn next_due(&self) -> Option<Instant> {
        let ways = self.late.iter().flat_map(|late| &late.ways);
        ways.filter_map(|late| Some(late.front()?.due)).min()
    }

    /// Count what goes, and stamp it.
    fn sent(&mut self, node: u32, way: usize, bytes: usize) -> [u8; STAMP_BYTES] {
        let (at, now) = (node as usize, Instant::now());
        if self.carried.len() <= at {
            self.carried.resize(at + 1, [None; 2]);
        }
        carry(&mut self.carried[at], way, now, self.model.time_of(bytes));
        let mut stamp = [way as u8; STAMP_BYTES];
        stamp[..8].copy_from_slice(&clock_ns().to_le_bytes());
        stamp
    }
}

/// What each frame carries: the clock, and its way.
const STAMP_BYTES: usize = 9;

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

fn stamped<'a>(stamp: &'a [u8], parts: &[&'a [u8]]) -> Vec<&'a [u8]> {
    std::iter::once(stamp).chain(parts.iter().copied()).collect()
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
        self.below.readable()
    }

    fn send(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        let stamp = self.sent(node, SMALL, parts.iter().map(|part| part.len()).sum());
        self.below.send(node, kind, &stamped(&stamp, parts));
    }

    fn send_bulk(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        let stamp = self.sent(node, BULK, parts.iter().map(|part| part.len()).sum());
        self.below.send_bulk(node, kind, &stamped(&stamp, parts));
    }

    fn backlog_bytes(&self, node: u32) -> usize {
        self.below.backlog_bytes(node).max(self.modelled_backlog(node, SMALL))
    }

    fn has_room(&self, node: u32) -> bool {
        self.below.has_room(node) && self.behind(node, BULK).is_zero()
    }

    fn is_flushed(&self) -> bool {
        self.below.is_flushed()
    }

    fn flush(&mut self) {
        self.below.flush();
    }

    fn turn(&mut self, now: Instant, tell: &mut dyn FnMut(Event<'_>)) {
        self.bring(now, F::turn, tell);
    }

    fn look(&mut self, now: Instant, tell: &mut dyn FnMut(Event<'_>)) {
        self.bring(now, F::look, tell);
    }

    fn deadline(&self) -> Option<Instant> {
        // Who waits to send more looks when the buffers are all that is left.
        let ways = (0..self.carried.len() as u32).flat_map(|node| [(node, SMALL), (node, BULK)]);
        let room = ways.map(|(node, way)| self.behind(node, way)).filter(|behind| !behind.is_zero()).min();
        let room = room.map(|behind| Instant::now() + behind);
        [self.below.deadline(), self.next_due(), room].into_iter().flatten().min()
    }
}

impl<F: Fabric> Emulated<F> {
    /// Take what the carrying network brings by `fetch`, and tell what is due.
    fn bring(
        &mut self,
        now: Instant,
        fetch: fn(&mut F, Instant, &mut dyn FnMut(Event<'_>)),
        tell: &mut dyn FnMut(Event<'_>),
    ) {
        let Emulated { below, model, late, lost, spare, .. } = self;
        let (now_ns, mut up) = (clock_ns(), Vec::new());
        fetch(below, now, &mut |event| match event {
            Event::Up(node) => up.push(node),
            Event::Lost(node, why) => lost.push((node, why)),
            Event::Frame { node, kind, body } => {
                let at = node as usize;
                if late.len() <= at {
                    late.resize_with(at + 1, Arriving::default);
                }
                let Some((stamp, body)) = body.split_first_chunk::<STAMP_BYTES>() else { return };
                let (clock, way) = stamp.split_first_chunk::<8>().expect("a stamp is longer");
                let way = usize::from(way[0]).min(BULK);
                let age = Duration::from_nanos(now_ns.saturating_sub(u64::from_le_bytes(*clock)));
                let sent = now.checked_sub(age).unwrap_or(now);
                let end = carry(&mut late[at].free, way, sent, model.time_of(body.len()));
                let mut kept = spare.pop().unwrap_or_default();
                kept.clear();
                kept.extend_from_slice(body);
                late[at].ways[way].push_back(Late { due: end + model.latency, node, kind, body: kept });
            }
        });
        up.into_iter().for_each(|node| tell(Event::Up(node)));
        for late in late.iter_mut().flat_map(|late| &mut late.ways) {
            while late.front().is_some_and(|late| late.due <= now) {
                if let Some(Late { node, kind, body, .. }) = late.pop_front() {
                    tell(Event::Frame { node, kind, body: &body });
                    if spare.len() < SPARE_BODIES {
                        spare.push(body);
                    }
                }
            }
        }
        // What was sent before a link was lost comes first.
        for (node, why) in std::mem::take(lost) {
            if late.get(node as usize).is_some_and(|late| late.ways.iter().any(|way| !way.is_empty())) {
                lost.push((node, why));
            } else {
                tell(Event::Lost(node, why));
            }
        }
    }
}
