//! What an adapter spares a processor that sleeps or computes: it is told of a frame when that is there, not when it sets out.
//!
//! Words of frames go over the carrying network at once. Who sleeps would wake for that, and again when the frame is due. So the sender's memory has
//! a timer with it, which the receiver watches instead of the network, and which the sender sets. (Ends that cannot take each other's
//! descriptors, by pidfd_getfd, wake twice.)
//!
//! SYNC: who lies down says so and then looks how many frames have been sent; who has sent counts them and then looks whether the other end lies. So one of
//! the two sees the other. Death story: a timer that nobody sets any more wakes nobody, but the end of a connection does.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::moderation;
use crate::staging::Staging;

/// Where in the memory that both ends map: when the receiver is to wake, and how many frames have been sent.
const WAKES_AT: usize = 64;
const SENT_AT: usize = 128;
/// And whether the receiver, when it lay down, could make no use of large bodies. A hint, which orders nothing: who has queued some by an old one wakes a
/// receiver that has changed its mind late by the moderation, and no later.
const CALM_AT: usize = 192;

/// The receiver is awake, and looks at `SENT_AT` before it sleeps.
const AWAKE: u64 = 0;
/// It sleeps, and nothing is to wake it. (Any other value: until then.)
const ASLEEP: u64 = u64::MAX;

fn wakes(memory: &Staging) -> &AtomicU64 {
    memory.word(WAKES_AT)
}

/// The sender's end.
pub struct WakeTimer {
    timer: TimerFd,
    sent: u64,
    /// By way, of those sent since the last `ring`.
    due: [Option<Due>; 2],
}

/// Frames that may wait for each other.
struct Due {
    /// When the first is due, and the last one that is so shortly after it.
    first: u64,
    last: u64,
    count: usize,
}

impl WakeTimer {
    /// # Errors
    /// Those of timerfd_create.
    pub fn new() -> io::Result<WakeTimer> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        Ok(WakeTimer { timer, sent: 0, due: [None, None] })
    }

    pub fn fd(&self) -> i32 {
        self.timer.as_fd().as_raw_fd()
    }

    /// A frame has been queued that is due at `due`, by the monotonic clock; those due shortly after it may wait for each other ([`moderation`]).
    pub fn queued(&mut self, memory: &Staging, way: usize, due: u64, latency: Duration) {
        self.sent += 1;
        let calm = memory.word(CALM_AT).load(Ordering::Relaxed) != 0;
        let (together, most) = moderation(way, latency, calm);
        // Within a way they are due in the order in which they go.
        let all = self.due[way].get_or_insert(Due { first: due, last: due, count: 0 });
        if all.count < most && due <= all.first + together.as_nanos() as u64 {
            (all.last, all.count) = (all.last.max(due), all.count + 1);
        }
    }

    /// What was queued has gone: have the other end woken when it is due, if it sleeps longer.
    pub fn ring(&mut self, memory: &Staging) {
        let Some(due) = self.due.iter_mut().filter_map(|due| Some(due.take()?.last)).min() else { return };
        memory.word(SENT_AT).store(self.sent, Ordering::SeqCst);
        fence(Ordering::SeqCst); // SYNC
        let set = wakes(memory).fetch_update(Ordering::SeqCst, Ordering::SeqCst, |wakes| (due < wakes).then_some(due));
        if set.is_ok() {
            let at = Expiration::OneShot(TimeSpec::new((due / 1_000_000_000) as i64, (due % 1_000_000_000) as i64));
            let _ = self.timer.set(at, TimerSetTimeFlags::TFD_TIMER_ABSTIME);
        }
    }
}

/// The receiver's end.
pub struct Watch {
    timer: OwnedFd,
    /// Frames that have come.
    come: u64,
    /// More have been sent than a look has found.
    doubts: bool,
}

impl Watch {
    /// Take the timer of process `pid`.
    ///
    /// # Errors
    /// It cannot be taken.
    pub fn of(pid: u32, fd: i32) -> io::Result<Watch> {
        let pid = Pid::from_raw(pid as i32).ok_or(io::ErrorKind::InvalidData)?;
        let process = pidfd_open(pid, PidfdFlags::empty())?;
        let timer = pidfd_getfd(process, fd, PidfdGetfdFlags::empty())?;
        Ok(Watch { timer, come: 0, doubts: false })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }

    /// Have more been sent than have come?
    pub fn has_news(&self, memory: &Staging) -> bool {
        memory.word(SENT_AT).load(Ordering::SeqCst) != self.come
    }

    /// So many frames have come by now.
    pub fn saw(&mut self, come: u64) {
        self.come = come;
    }

    /// From now on this end looks by itself.
    pub fn get_up(&self, memory: &Staging) {
        if wakes(memory).load(Ordering::Relaxed) != AWAKE {
            wakes(memory).store(AWAKE, Ordering::SeqCst);
        }
    }

    /// Until `until`, by the monotonic clock, when this end wakes by itself: what is due later need not wake it, which saves an interrupt on the
    /// sender's CPU and one on this one's. `calm`: large bodies that come meanwhile may wait for each other. False: something has been sent that has not
    /// been looked for.
    pub fn prepare_to_sleep(&mut self, memory: &Staging, until: Option<u64>, calm: bool) -> bool {
        memory.word(CALM_AT).store(calm.into(), Ordering::Relaxed);
        wakes(memory).store(until.map_or(ASLEEP, |until| until.max(AWAKE + 1)), Ordering::SeqCst);
        fence(Ordering::SeqCst); // SYNC
        let missing = self.has_news(memory);
        let looked = std::mem::replace(&mut self.doubts, missing);
        !missing || looked
    }

    /// What is missing has been looked for in vain: the network has it still, so look again in a while.
    pub fn doubts(&self) -> bool {
        self.doubts
    }
}
