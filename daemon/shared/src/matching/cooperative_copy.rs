//! A large message copied by both of its ranks at once: each takes pieces until none is left.
//!
//! The receiver offers it (HELP) to a sender that runs on another core and would only wait. Both claim pieces from one word; it holds
//! the offer's number, too, so that an offer read late claims nothing. The receiver ends a message only when every piece that was claimed
//! is done: a piece still under way would be written into a buffer that the program has again. SYNC L: the helper counts a piece after it
//! has written it, the receiver reads the count before it believes the bytes. Death story: a receiver that waits for a piece of a sender
//! that has died stops waiting, for a process that is gone writes nothing more; the copy fails then, and the death ends the job.

use crate::mem::sync::{AtomicU32, AtomicU64, Ordering, spin_loop, yield_cpu};

/// Messages from this size on are offered: below, the offer costs as much as it saves.
pub const LEAST_BYTES: u64 = 64 << 10;
/// A piece costs a system call (1 us here), so few pieces; and the last ones should end together, so several.
const PIECE_LEAST_BYTES: u64 = 32 << 10;
const PIECES: u64 = 16;
/// Looks at the other's progress before the CPU is yielded between two looks.
const SPINS: u32 = 4096;

/// One rank's offers, as a receiver.
#[repr(C, align(64))]
#[derive(Default)]
pub struct CooperativeCopy {
    /// Number of the offer << 32 | next piece; claimed by compare-and-swap.
    ticket: AtomicU64,
    /// Pieces that the helper has claimed and copied, or given up.
    helped: AtomicU32,
    /// The helper could not copy one.
    failed: AtomicU32,
    reserved: [u64; 6],
}

/// The pieces of a message of `bytes`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Pieces {
    pub bytes: u64,
    size: u64,
}

impl Pieces {
    pub fn of(bytes: u64) -> Pieces {
        Pieces { bytes, size: bytes.div_ceil(PIECES).next_multiple_of(4096).max(PIECE_LEAST_BYTES) }
    }

    pub fn count(&self) -> u32 {
        self.bytes.div_ceil(self.size) as u32
    }

    /// Start and length of piece `index`.
    pub fn range(&self, index: u32) -> (u64, u64) {
        let start = u64::from(index) * self.size;
        (start, self.size.min(self.bytes - start))
    }
}

impl CooperativeCopy {
    /// The receiver has a message to offer: the number of the offer.
    pub fn offer(&self) -> u32 {
        let number = ((self.ticket.load(Ordering::Relaxed) >> 32) as u32).wrapping_add(1);
        self.helped.store(0, Ordering::Relaxed);
        self.failed.store(0, Ordering::Relaxed);
        self.ticket.store(u64::from(number) << 32, Ordering::SeqCst);
        number
    }

    /// Claim the next piece of offer `number`; `None` if there is none left.
    pub fn claim(&self, number: u32, pieces: u32) -> Option<u32> {
        let mut ticket = self.ticket.load(Ordering::SeqCst);
        loop {
            let next = ticket as u32;
            if (ticket >> 32) as u32 != number || next >= pieces {
                return None;
            }
            match self.ticket.compare_exchange(ticket, ticket + 1, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Some(next),
                Err(now) => ticket = now,
            }
        }
    }

    /// The helper is done with a piece that it has claimed.
    pub fn note(&self, copied: bool) {
        if !copied {
            self.failed.store(1, Ordering::Relaxed);
        }
        self.helped.fetch_add(1, Ordering::Release); // SYNC L
    }

    /// The receiver has found no more pieces; the helper has claimed `claimed`: wait until they are done. False if one could not be
    /// copied, or if the helper has died.
    pub fn await_helper(&self, claimed: u32, mut died: impl FnMut() -> bool) -> bool {
        let mut looks = 0u32;
        // SYNC L
        while self.helped.load(Ordering::Acquire) < claimed {
            looks += 1;
            if looks < SPINS {
                spin_loop();
            } else if died() {
                return false;
            } else {
                yield_cpu();
            }
        }
        self.failed.load(Ordering::Relaxed) == 0
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn pieces_cover_the_message() {
        for bytes in [LEAST_BYTES, 100_001, 1 << 20, (16 << 20) + 13] {
            let pieces = Pieces::of(bytes);
            let mut at = 0;
            for index in 0..pieces.count() {
                let (start, len) = pieces.range(index);
                assert_eq!(start, at);
                assert!(len > 0);
                at += len;
            }
            assert_eq!(at, bytes);
            assert!((2..=16).contains(&pieces.count()), "{} pieces of {bytes}", pieces.count());
        }
    }

    #[test]
    fn an_old_offer_claims_nothing() {
        let cooperative_copy = CooperativeCopy::default();
        let first = cooperative_copy.offer();
        assert_eq!(cooperative_copy.claim(first, 2), Some(0));
        let second = cooperative_copy.offer();
        assert_eq!(cooperative_copy.claim(first, 2), None);
        assert_eq!((cooperative_copy.claim(second, 1), cooperative_copy.claim(second, 1)), (Some(0), None));
    }

    #[test]
    fn a_failure_and_a_death_are_told() {
        let cooperative_copy = CooperativeCopy::default();
        cooperative_copy.offer();
        cooperative_copy.note(false);
        assert!(!cooperative_copy.await_helper(1, || false));
        cooperative_copy.offer();
        assert!(!cooperative_copy.await_helper(1, || true), "claimed by one that has died");
    }

    /// Two threads copy many messages together; each byte is written once and in time.
    #[test]
    fn two_copy_together() {
        const PARTS: usize = 64;
        static WRITTEN: [AtomicU32; PARTS] = [const { AtomicU32::new(0) }; PARTS];
        /// Ends the helper, whatever becomes of the receiver.
        struct Over<'a>(&'a AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::SeqCst);
            }
        }
        let (cooperative_copy, offered, over) = (CooperativeCopy::default(), AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    let number = offered.load(Ordering::SeqCst) as u32;
                    // 0: nothing has been offered yet.
                    while number != 0
                        && let Some(piece) = cooperative_copy.claim(number, PARTS as u32)
                    {
                        WRITTEN[piece as usize].fetch_add(1, Ordering::Relaxed);
                        cooperative_copy.note(true);
                    }
                }
            });
            let _over = Over(&over);
            for round in 1..2000 {
                let number = cooperative_copy.offer();
                offered.store(u64::from(number), Ordering::SeqCst);
                let mut mine = 0;
                while let Some(piece) = cooperative_copy.claim(number, PARTS as u32) {
                    WRITTEN[piece as usize].fetch_add(1, Ordering::Relaxed);
                    mine += 1;
                }
                assert!(cooperative_copy.await_helper(PARTS as u32 - mine, || false));
                assert!(WRITTEN.iter().all(|written| written.load(Ordering::Relaxed) == round));
            }
        });
    }
}
