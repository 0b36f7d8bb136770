//! What the carrier does when nothing is to be done: look on for a while, then sleep.
//!
//! Waking up takes several times as long as a message between two nodes, so it looks as long as a watching rank does before it sleeps; but only on a
//! CPU whose core waits (`sched::watch::is_idle`), and by sched_yield, as the ranks that watch there do meanwhile: so they take turns. Where a rank
//! computes the carrier sleeps at once: the kernel lets who wakes up go first, and who has yielded last.
use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use vmpi_shared::control::Reply;
use vmpi_shared::mem::bell::Chime;
use vmpi_shared::mem::sync::yield_cpu;

use super::{Peer, Post, QUIT_PATIENCE, RETRY};

/// How many times as long as a rank it looks at most: a piece of a large message takes that long.
const MOST_PATIENCE: u32 = 8;
/// Looks at the fabric and the outbox between two at everything else.
const LOOKS: u32 = 256;

/// How to wait.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Sleep {
    Not,
    /// Until a core waits, too.
    Dozing,
    Sound,
}

/// What to ask of the fabric.
#[derive(Copy, Clone, PartialEq, Eq)]
pub enum Moves {
    /// Nothing, as far as is known.
    None,
    /// What has come, perhaps nothing.
    Perhaps,
    /// It has something to do.
    Yes,
}

/// How long nothing has been done, and how long that is borne.
///
/// The kernel's halt polling for virtual machines has the same rule: who slept although looking on a little longer would have done looks longer the next
/// time, who looked in vain looks as long as a rank does.
pub struct Rest {
    /// As long as a rank watches.
    least: Duration,
    patience: Duration,
    /// When there was something to do the last time.
    since: Instant,
    looks: u32,
}

impl Rest {
    pub fn new(least: Duration) -> Rest {
        Rest { least, patience: least, since: Instant::now(), looks: 0 }
    }

    /// Something is to be done: what follows from it may be near.
    pub fn stirred(&mut self) {
        let now = Instant::now();
        self.patience = next_patience(self.least, self.patience, now.duration_since(self.since));
        self.since = now;
    }

    /// Look once more? `next`: when something is due.
    fn looks_on(&self, next: Option<Instant>) -> bool {
        let now = Instant::now();
        let near = next.is_some_and(|at| at.saturating_duration_since(now) < self.least);
        near || now.duration_since(self.since) < self.patience
    }
}

/// How long to look the next time, if nothing was to be done for as long as `idle` this time.
fn next_patience(least: Duration, now: Duration, idle: Duration) -> Duration {
    let most = least * MOST_PATIENCE;
    match () {
        () if idle < now => now,
        () if idle < most => (now * 2).min(most),
        () => least,
    }
}

/// Sleeps end when they are to, as far as that goes: the kernel adds 50 us otherwise.
///
/// Asking for short slices as well (sched_setattr, 100 us, Linux 6.12), so that the kernel let this process go first, made no overlap better, and half the
/// round trip of 8 bytes 19 us instead of 8: by then the carrier had several turns for each one of the rank that watched beside it.
pub fn be_exact() {
    let _ = nix::sys::prctl::set_timerslack(1);
}

/// The CPU on which this process is.
fn cpu() -> Option<u32> {
    nix::sched::sched_getcpu().ok().map(|cpu| cpu as u32)
}

impl Post {
    /// Wait for something to do. `None`: the daemon wants no more.
    pub(super) fn rest(&mut self) -> io::Result<Option<Moves>> {
        let next = self.next();
        let how = match self.rest.looks_on(next) {
            false => Sleep::Sound,
            true if !cpu().is_some_and(|cpu| self.courier.may_look(cpu)) => Sleep::Dozing,
            true => {
                self.urgency.be(false);
                yield_cpu();
                self.rest.looks += 1;
                if !self.rest.looks.is_multiple_of(LOOKS) {
                    return Ok(Some(Moves::Perhaps));
                }
                Sleep::Not
            }
        };
        self.sleep(how, next)
    }

    /// When something is due without anybody saying so.
    fn next(&self) -> Option<Instant> {
        let retry = (!self.pending.is_empty()).then(|| Instant::now() + RETRY);
        let quit = self.peers.iter().filter_map(|peer| match peer {
            Peer::Quit(since) => Some(*since + QUIT_PATIENCE),
            _ => None,
        });
        [self.fabric.deadline(), retry].into_iter().flatten().chain(quit).min()
    }

    /// Sleep until there is something to do, or only ask for what `rest` does not look at.
    fn sleep(&mut self, how: Sleep, next: Option<Instant>) -> io::Result<Option<Moves>> {
        let may_send = self.outgoing.iter().any(|out| self.fabric.has_room(out.node));
        let lying = how != Sleep::Not && !may_send && self.courier.lie_down(how == Sleep::Dozing);
        let timeout = if lying {
            next.map(|at| TimeSpec::from(at.saturating_duration_since(Instant::now())))
        } else {
            Some(TimeSpec::from(Duration::ZERO))
        };
        if how != Sleep::Not {
            self.urgency.be(lying);
        }
        let bell = self.courier.node.carrier_bell();
        let mut fds = vec![PollFd::new(self.daemon.stream().as_fd(), PollFlags::POLLIN)];
        fds.push(PollFd::new(self.fabric.readable(), PollFlags::POLLIN));
        fds.extend(bell.into_iter().flat_map(Chime::fds).map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let _ = ppoll(&mut fds, timeout, None);
        let [told, moves, rang, chimed] = std::array::from_fn(|at| fds.get(at).and_then(PollFd::any).unwrap_or(false));
        let rung = rang || chimed;
        if lying {
            self.courier.get_up(rung);
        }
        if rung {
            self.rest.stirred();
        }
        if told {
            match self.daemon.receive::<Reply>()? {
                Some((Reply::Drain, _)) => self.draining = true,
                Some((Reply::Enrol { world, births }, _)) => self.enrol(world, &births)?,
                Some((Reply::Quit, _)) | None => return Ok(None),
                Some(_) => {}
            }
        }
        Ok(Some(if moves { Moves::Yes } else { Moves::None }))
    }

    /// Take from the ranks here what is new, and what was left for want of credits or room on the way.
    pub(super) fn collect_all(&mut self) {
        let called = self.courier.called();
        if !called.is_empty() {
            self.rest.stirred();
            self.look_at_windows();
        }
        let again: BTreeSet<u32> = std::mem::take(&mut self.stalled).into_iter().chain(called).collect();
        for rank in again {
            self.collect(rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_where_that_is_of_use() {
        let us = Duration::from_micros;
        let next = |now, idle| next_patience(us(60), us(now), us(idle));
        assert_eq!(next(60, 10), us(60), "it was enough");
        assert_eq!(next(60, 100), us(120));
        assert_eq!(next(120, 100), us(120));
        assert_eq!(next(240, 400), us(480));
        assert_eq!(next(400, 450), us(480), "the most");
        assert_eq!(next(480, 500), us(60), "in vain");
    }
}
