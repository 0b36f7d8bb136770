//! What the carrier does when nothing is to be done: look on for a while, then sleep.
//!
//! Waking up takes several times as long as a message between two nodes, so it looks as long as a watching rank does before it sleeps; but only on a
//! CPU whose core waits (`sched::is_idle`), and by sched_yield, as the ranks that watch there do meanwhile: so they take turns. Where a rank
//! computes the carrier sleeps at once: the kernel lets who wakes up go first, and who has yielded last. Unless the ranks of that core have always been back
//! soon lately (`Turns`): then it takes turns with them all the same, since to ring it and to wake up cost both several times as much.
use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use vmpi_shared::control::Reply;
use vmpi_shared::mem::bell::Chime;
use vmpi_shared::mem::sync::yield_cpu;
use vmpi_shared::sched::carrier_bell::Stand;

use super::{CarrierLoop, Peer, QUIT_PATIENCE, RETRY};

/// How many times as long as a rank it looks at most: a piece of a large message takes that long.
const MOST_PATIENCE: u32 = 8;
/// Looks at the fabric and the outbox between two at everything else.
const LOOKS: u32 = 256;
/// A core that somebody runs on is back within this time, if they only pass messages on.
const SOON: Duration = Duration::from_micros(150);
/// After how many such times in a row to count on it: the fewest, the most.
const TURNS: (u32, u32) = (32, 1 << 16);

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
pub struct Idle {
    /// As long as a rank watches.
    least: Duration,
    patience: Duration,
    /// When there was something to do the last time.
    since: Instant,
    looks: u32,
    turns: Turns,
    /// Rung awake: what answers that for which it was may be there before this process can lie down again.
    rung: bool,
}

impl Idle {
    pub fn new(least: Duration) -> Idle {
        Idle { least, patience: least, since: Instant::now(), looks: 0, turns: Turns::default(), rung: false }
    }

    /// Something is to be done: what follows from it may be near.
    pub fn stirred(&mut self) {
        let now = Instant::now();
        self.patience = next_patience(self.least, self.patience, now.duration_since(self.since));
        self.since = now;
    }

    /// Ranks have something for the carrier, so they are not computing.
    fn called(&mut self) {
        self.stirred();
        self.turns.saw(true, self.since);
    }

    /// Look once more? `next`: when something is due.
    fn looks_on(&self, now: Instant, next: Option<Instant>) -> bool {
        let near = next.is_some_and(|at| at.saturating_duration_since(now) < self.least);
        near || now.duration_since(self.since) < self.patience
    }
}

/// Whether who runs on this CPU's core comes back soon, as it did the last times.
///
/// If not, a carrier that takes turns gets its next one at the kernel's tick (up to 4 ms), whatever comes meanwhile. So it takes many times in a row to count
/// on it, and each time that it was wrong twice as many.
struct Turns {
    /// When the core was first seen taken since it was last seen waiting.
    taken: Option<Instant>,
    soon: u32,
    wanted: u32,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { taken: None, soon: 0, wanted: TURNS.0 }
    }
}

impl Turns {
    fn are_short(&self) -> bool {
        self.soon >= self.wanted
    }

    /// The core was seen: does it wait, or does somebody run there?
    fn saw(&mut self, waits: bool, now: Instant) {
        let long = self.taken.is_some_and(|taken| now.duration_since(taken) > SOON);
        if long {
            if self.are_short() {
                self.wanted = (self.wanted * 2).min(TURNS.1);
            }
            self.soon = 0;
        } else if waits && self.taken.is_some() {
            self.soon += 1;
            if self.soon >= self.wanted.saturating_mul(4) && self.wanted > TURNS.0 {
                (self.soon, self.wanted) = (self.wanted, self.wanted / 2);
            }
        }
        if waits {
            self.taken = None;
        } else {
            self.taken.get_or_insert(now);
        }
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

impl CarrierLoop {
    /// Wait for something to do. `None`: the daemon wants no more.
    pub(super) fn rest(&mut self) -> io::Result<Option<Moves>> {
        let now = Instant::now();
        let waits = cpu().is_some_and(|cpu| self.endpoint.may_look(cpu));
        let calm = !waits && self.is_data_for_later();
        self.fabric.moderate(calm);
        let next = self.next();
        self.rest.turns.saw(waits, now);
        let how = match self.rest.looks_on(now, next) {
            _ if std::mem::take(&mut self.rest.rung) => return Ok(Some(Moves::Perhaps)),
            // A core that waits could do with it now.
            false if calm => Sleep::Dozing,
            false => Sleep::Sound,
            true if !waits && !self.rest.turns.are_short() => Sleep::Dozing,
            true => {
                self.realtime.be(false);
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

    /// What this node has to do with others, as long as nothing comes and nobody calls.
    fn stand(&self) -> Stand {
        // What is stalled waits for credits, which come in a frame; a message that is asked for, for its data.
        let holds = self.may_deliver_soon() || !self.outgoing.is_empty() || !self.deaths.are_done();
        Stand { holds, sent: self.fabric.sent(), received: self.received }
    }

    /// Large messages are coming, and all that they are for have to wait for a core.
    fn is_data_for_later(&self) -> bool {
        let asked = self.incoming.values().map(|entry| entry.rank);
        self.endpoint.must_wait(asked.chain(self.kept.receivers()))
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
        let unseen = how != Sleep::Not && !self.fabric.prepare_to_sleep();
        if how != Sleep::Not {
            self.endpoint.note(self.stand());
        }
        let lying = how != Sleep::Not && !may_send && !unseen && self.endpoint.prepare_to_sleep(how == Sleep::Dozing);
        let timeout = if lying {
            next.map(|at| TimeSpec::from(at.saturating_duration_since(Instant::now())))
        } else {
            Some(TimeSpec::from(Duration::ZERO))
        };
        if how != Sleep::Not {
            self.realtime.be(lying);
        }
        let bell = self.endpoint.node.carrier_bell();
        let mut fds = vec![PollFd::new(self.daemon.stream().as_fd(), PollFlags::POLLIN)];
        fds.push(PollFd::new(self.fabric.readable(), PollFlags::POLLIN));
        fds.extend(bell.into_iter().flat_map(Chime::fds).map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        fds.extend(bell.and_then(Chime::own_fd).map(|fd| PollFd::new(fd, PollFlags::POLLIN)));
        let _ = ppoll(&mut fds, timeout, None);
        let [told, moves, rang, chimed, called] =
            std::array::from_fn(|at| fds.get(at).and_then(PollFd::any).unwrap_or(false));
        if called && let Some(bell) = bell {
            bell.quiet_own();
        }
        if lying {
            self.endpoint.get_up(rang, chimed);
            self.rest.rung = rang || chimed || called;
        }
        if rang || chimed || called {
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
        Ok(Some(if moves || unseen { Moves::Yes } else { Moves::None }))
    }

    /// Take from the ranks here what is new, and what was left for want of credits or room on the way.
    pub(super) fn collect_all(&mut self) {
        let called = self.endpoint.called();
        if !called.is_empty() {
            self.rest.called();
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

    /// `times` times: taken, and back after `us`.
    fn take(turns: &mut Turns, now: &mut Instant, times: u32, us: u64) {
        for _ in 0..times {
            turns.saw(false, *now);
            *now += Duration::from_micros(us);
            turns.saw(true, *now);
        }
    }

    #[test]
    fn turns_are_counted_on_after_many_that_were_short() {
        let (mut turns, mut now) = (Turns::default(), Instant::now());
        take(&mut turns, &mut now, TURNS.0 - 1, 20);
        assert!(!turns.are_short());
        take(&mut turns, &mut now, 1, 20);
        assert!(turns.are_short());
        take(&mut turns, &mut now, 1, 3000);
        assert!(!turns.are_short(), "somebody computed");
        take(&mut turns, &mut now, TURNS.0, 20);
        assert!(!turns.are_short(), "twice as many after that");
        take(&mut turns, &mut now, TURNS.0, 20);
        assert!(turns.are_short());
        take(&mut turns, &mut now, 1, 3000);
        take(&mut turns, &mut now, 1000, 20);
        take(&mut turns, &mut now, 1, 3000);
        take(&mut turns, &mut now, TURNS.0 * 2, 20);
        assert!(turns.are_short(), "forgiven after many");
    }

    #[test]
    fn a_core_that_is_seen_taken_for_long_is_so_before_it_waits() {
        let (mut turns, start) = (Turns::default(), Instant::now());
        let mut now = start;
        take(&mut turns, &mut now, TURNS.0, 20);
        turns.saw(false, now);
        turns.saw(false, now + SOON / 2);
        assert!(turns.are_short());
        turns.saw(false, now + SOON * 2);
        assert!(!turns.are_short());
    }
}
