//! A rank that is about to end badly says so, and waits a moment for its call stack to be taken.
//!
//! It writes its last words into the node segment and calls the daemon, who asks the launcher; that one looks at the waiting process (its memory is read
//! from outside, the registers are among the words) and says that it has been heard; the daemon lets the rank go on to its end, as if nothing had been
//! asked. Only plain stores and system calls on the rank's side: it may be in a signal handler, anywhere, with any lock held.
//!
//! Death stories: nobody hears (daemon or launcher gone, stopped or late): the rank goes on by itself after [`PATIENCE`]. It is killed meanwhile: the words
//! of a process that has gone are heard in vain.

use super::NodeSegment;
use crate::crash::{Dying, Registers, Way};
use crate::mem::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering::SeqCst, futex_wait, futex_wake};
use std::time::{Duration, Instant};

/// For so long a rank waits to be heard.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// For so long a thread leaves the process to another one that is ending it, which may be held for a debugger.
const BEHIND: Duration = Duration::from_secs(1);

/// Where a rank's last words lie in the node segment. Written by the rank; `state` by the daemon, too. All-zero: none.
#[repr(C, align(64))]
#[derive(Default)]
pub struct LastWords {
    state: AtomicU32,
    kind: AtomicU32,
    number: AtomicI32,
    code: AtomicI32,
    thread: AtomicI32,
    reserved: AtomicU32,
    address: AtomicU64,
    ip: AtomicU64,
    sp: AtomicU64,
    bp: AtomicU64,
}

const _: () = assert!(cfg!(feature = "model") || size_of::<LastWords>() == 64);

const NONE: u32 = 0;
/// A thread writes.
const BEGUN: u32 = 1;
/// All is said, and nobody has listened yet.
const SAID: u32 = 2;
/// The daemon has listened.
const ASKED: u32 = 3;
/// Stay, however long it takes.
const HELD: u32 = 4;
const HEARD: u32 = 5;

impl LastWords {
    fn say(&self, way: Way, thread: Option<i32>, address: u64, registers: Registers) {
        let (kind, number, code) = match way {
            Way::Signal { signal, code } => (0, signal, code),
            Way::Exit { code } => (1, code, 0),
            Way::Abort { code } => (2, code, 0),
        };
        self.kind.store(kind, SeqCst);
        self.number.store(number, SeqCst);
        self.code.store(code, SeqCst);
        self.thread.store(thread.unwrap_or(0), SeqCst);
        self.address.store(address, SeqCst);
        self.ip.store(registers.ip, SeqCst);
        self.sp.store(registers.sp, SeqCst);
        self.bp.store(registers.bp, SeqCst);
        self.state.store(SAID, SeqCst);
    }

    fn hear(&self, rank: u32, pid: i32) -> Dying {
        let number = self.number.load(SeqCst);
        Dying {
            rank,
            pid,
            thread: Some(self.thread.load(SeqCst)).filter(|thread| *thread != 0),
            way: match self.kind.load(SeqCst) {
                0 => Way::Signal { signal: number, code: self.code.load(SeqCst) },
                1 => Way::Exit { code: number },
                _ => Way::Abort { code: number },
            },
            address: self.address.load(SeqCst),
            registers: Registers { ip: self.ip.load(SeqCst), sp: self.sp.load(SeqCst), bp: self.bp.load(SeqCst) },
        }
    }
}

/// A rank's part: say what is about to happen, and wait until that has been heard. Async-signal-safe.
pub fn tell(node: &NodeSegment, rank: u32, way: Way, thread: Option<i32>, address: u64, registers: Registers) {
    let words = node.last_words(rank);
    if words.state.compare_exchange(NONE, BEGUN, SeqCst, SeqCst).is_err() {
        // Said before (an exit after an abort), or by another thread, which ends the process.
        let until = Instant::now() + BEHIND;
        loop {
            let state = words.state.load(SeqCst);
            if state == HEARD || state != HELD && Instant::now() >= until {
                return;
            }
            futex_wait(&words.state, state, Some(BEHIND / 50));
        }
    }
    words.say(way, thread, address, registers);
    node.post().last_words.store(1, SeqCst);
    node.ring();
    let until = Instant::now() + PATIENCE;
    loop {
        let state = words.state.load(SeqCst);
        let left = until.saturating_duration_since(Instant::now());
        if state == HEARD || state != HELD && left.is_zero() {
            return;
        }
        futex_wait(&words.state, state, (state != HELD).then_some(left));
    }
}

/// The daemon's part: the ranks that have said something since the last call.
pub fn listen(node: &NodeSegment, pid_of: impl Fn(u32) -> i32) -> Vec<Dying> {
    if node.post().last_words.load(SeqCst) == 0 {
        return Vec::new();
    }
    // Before the words: who speaks from now on sets it again.
    node.post().last_words.store(0, SeqCst);
    let ranks = 0..node.header().ranks;
    let speaks = |rank: &u32| node.last_words(*rank).state.compare_exchange(SAID, ASKED, SeqCst, SeqCst).is_ok();
    ranks.filter(speaks).map(|rank| node.last_words(rank).hear(rank, pid_of(rank))).collect()
}

/// Let a rank that has been heard go on to its end, or keep it for a debugger.
pub fn heard(node: &NodeSegment, rank: u32, hold: bool) {
    let words = node.last_words(rank);
    let next = if hold { HELD } else { HEARD };
    if words.state.compare_exchange(ASKED, next, SeqCst, SeqCst).is_ok() {
        futex_wake(&words.state, i32::MAX);
    }
}

/// Another process is this rank from now on.
pub fn begin(node: &NodeSegment, rank: u32) {
    node.last_words(rank).state.store(NONE, SeqCst);
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::crash::OnCrash;
    use crate::node::NodeConfig;

    const WHERE: Registers = Registers { ip: 1, sp: 2, bp: 3 };

    fn node() -> NodeSegment {
        NodeSegment::create(&NodeConfig::on_one_core(0, 3)).unwrap()
    }

    #[test]
    fn words_arrive_as_they_were_said_and_only_once() {
        let node = node();
        let ways = [Way::Signal { signal: 11, code: 1 }, Way::Exit { code: -3 }, Way::Abort { code: 7 }];
        for (rank, way) in (0..3).zip(ways) {
            node.last_words(rank).say(way, (rank == 1).then_some(9), 5, WHERE);
        }
        node.post().last_words.store(1, SeqCst);
        let said = listen(&node, |rank| 100 + rank as i32);
        for (rank, (dying, way)) in (0..3).zip(said.iter().zip(ways)) {
            let thread = (rank == 1).then_some(9);
            let right = Dying { rank, pid: 100 + rank as i32, thread, way, address: 5, registers: WHERE };
            assert_eq!(*dying, right);
        }
        node.post().last_words.store(1, SeqCst);
        assert_eq!(listen(&node, |_| 0), []);
    }

    #[test]
    fn who_is_heard_goes_on_and_who_is_held_stays() {
        let node = node();
        for hold in [false, true] {
            begin(&node, 0);
            std::thread::scope(|scope| {
                let rank = scope.spawn(|| tell(&node, 0, Way::Exit { code: 1 }, None, 0, WHERE));
                while listen(&node, |_| 1).is_empty() {
                    std::thread::yield_now();
                }
                heard(&node, 0, hold);
                if hold {
                    std::thread::sleep(Duration::from_millis(50));
                    assert!(!rank.is_finished());
                    node.last_words(0).state.store(HEARD, SeqCst);
                    futex_wake(&node.last_words(0).state, 1);
                }
                rank.join().unwrap();
            });
        }
    }

    #[test]
    fn choices_have_words() {
        for (_, choice) in OnCrash::NAMES {
            assert_eq!(OnCrash::of_word(choice.word()), choice);
        }
    }
}
