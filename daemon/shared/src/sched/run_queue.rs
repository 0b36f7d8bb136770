//! A core's READY ranks: a set of bits, one per rank.
//!
//! A set instead of a list: adding, taking and revoking are single atomic steps that leave nothing half-done when a
//! process dies in the middle, and scanning from the last rank on is round robin.

use crate::mem::sync::{AtomicU64, Ordering};

/// Add `rank`.
#[inline]
pub fn insert(set: &[AtomicU64], rank: u32) {
    set[(rank / 64) as usize].fetch_or(1 << (rank % 64), Ordering::SeqCst);
}

/// Take `rank` out; was it there?
#[inline]
pub fn remove(set: &[AtomicU64], rank: u32) -> bool {
    let bit = 1 << (rank % 64);
    set[(rank / 64) as usize].fetch_and(!bit, Ordering::SeqCst) & bit != 0
}

#[inline]
pub fn is_empty(set: &[AtomicU64]) -> bool {
    set.iter().all(|word| word.load(Ordering::SeqCst) == 0)
}

/// The first member at or after `from`, going round.
#[inline]
pub fn next_from(set: &[AtomicU64], from: u32) -> Option<u32> {
    let words = set.len();
    let start = (from / 64) as usize % words;
    for step in 0..=words {
        let index = (start + step) % words;
        let mut word = set[index].load(Ordering::SeqCst);
        if step == 0 {
            word &= u64::MAX << (from % 64);
        } else if step == words {
            word &= !(u64::MAX << (from % 64));
        }
        if word != 0 {
            return Some(index as u32 * 64 + word.trailing_zeros());
        }
    }
    None
}

/// All members, in order.
pub fn members(set: &[AtomicU64]) -> impl Iterator<Item = u32> + '_ {
    set.iter().enumerate().flat_map(|(index, word)| {
        let mut word = word.load(Ordering::SeqCst);
        std::iter::from_fn(move || {
            (word != 0).then(|| {
                let bit = word.trailing_zeros();
                word &= word - 1;
                index as u32 * 64 + bit
            })
        })
    })
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn next_goes_round() {
        let set: Vec<AtomicU64> = (0..3).map(|_| AtomicU64::new(0)).collect();
        assert_eq!(next_from(&set, 5), None);
        insert(&set, 3);
        insert(&set, 130);
        assert_eq!(next_from(&set, 3), Some(3));
        assert_eq!(next_from(&set, 4), Some(130));
        assert_eq!(next_from(&set, 131), Some(3));
        assert!(remove(&set, 3) && !remove(&set, 3));
        assert_eq!(next_from(&set, 131), Some(130));
        assert_eq!(members(&set).collect::<Vec<_>>(), [130]);
    }
}
