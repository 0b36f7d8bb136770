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

/// Is `rank` there?
#[inline]
pub fn contains(set: &[AtomicU64], rank: u32) -> bool {
    set.get((rank / 64) as usize).is_some_and(|word| word.load(Ordering::SeqCst) & 1 << (rank % 64) != 0)
}

#[inline]
pub fn is_empty(set: &[AtomicU64]) -> bool {
    set.iter().all(|word| word.load(Ordering::SeqCst) == 0)
}

/// Is there a member besides `rank`?
#[inline]
pub fn has_others(set: &[AtomicU64], rank: u32) -> bool {
    let (at, own) = ((rank / 64) as usize, 1 << (rank % 64));
    let others = |(index, word): (usize, &AtomicU64)| word.load(Ordering::SeqCst) & if index == at { !own } else { !0 };
    set.iter().enumerate().map(others).any(|others| others != 0)
}

/// The first member at or after `from`, going round. Without a division: this is part of every hand-over and of each turn of a
/// rank that watches an idle core.
#[inline]
pub fn next_from(set: &[AtomicU64], from: u32) -> Option<u32> {
    let (start, bit) = match (from / 64) as usize {
        word if word < set.len() => (word, from % 64),
        _ => (0, 0),
    };
    let first = set[start].load(Ordering::SeqCst);
    let later = u64::MAX << bit;
    let earlier = !later;
    let member = |index: usize, word: u64| index as u32 * 64 + word.trailing_zeros();
    if first & later != 0 {
        return Some(member(start, first & later));
    }
    let rest = (start + 1..set.len()).chain(0..start);
    for index in rest {
        let word = set[index].load(Ordering::SeqCst);
        if word != 0 {
            return Some(member(index, word));
        }
    }
    (first & earlier != 0).then(|| member(start, first & earlier))
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
        assert!(has_others(&set, 3) && has_others(&set, 4));
        assert_eq!(next_from(&set, 3), Some(3));
        assert_eq!(next_from(&set, 4), Some(130));
        assert_eq!(next_from(&set, 131), Some(3));
        assert_eq!(next_from(&set, 192), Some(3), "past the end is the beginning");
        insert(&set, 2);
        insert(&set, 128);
        assert_eq!((next_from(&set, 3), next_from(&set, 129), next_from(&set, 131)), (Some(3), Some(130), Some(2)));
        assert!(remove(&set, 2) && remove(&set, 128));
        assert!(remove(&set, 3) && !remove(&set, 3));
        assert_eq!(next_from(&set, 131), Some(130));
        assert_eq!(members(&set).collect::<Vec<_>>(), [130]);
        assert!(!has_others(&set, 130) && has_others(&set, 2));
    }
}
