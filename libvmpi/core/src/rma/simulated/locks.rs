//! Who has locked whose memory in virtual time, and who waits for that: in the window's segment.
//!
//! All of it is changed by operations only (`simulate::operations` of `vmpi_shared`), of which no two are done at once, and in the order of virtual time. So
//! whoever comes first is first in line, and nobody is let past: a lock is granted unless one that it cannot be beside is held, or was asked for before.

use std::sync::atomic::{AtomicU32, Ordering};

const RELAXED: Ordering = Ordering::Relaxed;

/// Of `Wish::target`: all members (MPI_Win_lock_all).
pub const ALL: u32 = u32::MAX;

/// What a member asks for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Wish {
    pub member: u32,
    pub target: u32,
    pub exclusive: bool,
    /// The member's request, which is over when it has the lock.
    pub request: u32,
}

impl Wish {
    /// Can both be held?
    fn goes_with(&self, other: &Wish) -> bool {
        let meets = self.target == other.target || self.target == ALL || other.target == ALL;
        !meets || !(self.exclusive || other.exclusive)
    }
}

/// A member's lock is held by nobody, or by so many who share it, or by one alone.
const ALONE: u32 = 1 << 31;

/// Words before those of members: how many wait, locks that are held alone, and those who share all.
const HEAD: usize = 4;
const WAITING: usize = 0;
const HELD_ALONE: usize = 1;
const SHARE_ALL: usize = 2;
/// Words of one that waits.
const WISH: usize = 4;

/// The table; a member waits for one lock at most.
#[derive(Copy, Clone)]
pub struct Locks<'a> {
    words: &'a [AtomicU32],
    members: usize,
}

impl<'a> Locks<'a> {
    /// Words of a window of so many members.
    pub fn words(members: u32) -> usize {
        HEAD + (1 + WISH) * members as usize
    }

    /// All zero: nothing is locked.
    pub fn new(words: &'a [AtomicU32]) -> Locks<'a> {
        Locks { words, members: (words.len() - HEAD) / (1 + WISH) }
    }

    fn get(&self, at: usize) -> u32 {
        self.words.get(at).map_or(0, |word| word.load(RELAXED))
    }

    fn set(&self, at: usize, value: u32) {
        if let Some(word) = self.words.get(at) {
            word.store(value, RELAXED);
        }
    }

    fn holders(&self, target: u32) -> usize {
        HEAD + (target as usize).min(self.members.saturating_sub(1))
    }

    fn waiting(&self) -> usize {
        (self.get(WAITING) as usize).min(self.members)
    }

    fn wish(&self, place: usize) -> Wish {
        let word = |index: usize| self.get(HEAD + self.members + WISH * place + index);
        Wish { member: word(0), target: word(1), exclusive: word(2) != 0, request: word(3) }
    }

    fn put(&self, place: usize, wish: Wish) {
        let words = [wish.member, wish.target, wish.exclusive.into(), wish.request];
        for (index, word) in words.into_iter().enumerate() {
            self.set(HEAD + self.members + WISH * place + index, word);
        }
    }

    fn may_be_held(&self, wish: &Wish) -> bool {
        if wish.target == ALL {
            return self.get(HELD_ALONE) == 0;
        }
        let holders = self.get(self.holders(wish.target));
        if wish.exclusive { holders == 0 && self.get(SHARE_ALL) == 0 } else { holders & ALONE == 0 }
    }

    fn hold(&self, wish: &Wish) {
        let at = self.holders(wish.target);
        match (wish.target, wish.exclusive) {
            (ALL, _) => self.set(SHARE_ALL, self.get(SHARE_ALL) + 1),
            (_, true) => {
                self.set(at, ALONE);
                self.set(HELD_ALONE, self.get(HELD_ALONE) + 1);
            }
            (_, false) => self.set(at, self.get(at) + 1),
        }
    }

    /// Ask for a lock. True: it is held now; else it is granted by another one's `release`.
    pub fn acquire(&self, wish: Wish) -> bool {
        let waiting = self.waiting();
        let is_next = (0..waiting).all(|place| self.wish(place).goes_with(&wish));
        if is_next && self.may_be_held(&wish) {
            self.hold(&wish);
            return true;
        }
        self.put(waiting, wish);
        self.set(WAITING, waiting as u32 + 1);
        false
    }

    /// Give a lock back; those who have one now, in the order in which they asked.
    pub fn release(&self, target: u32, exclusive: bool) -> Vec<Wish> {
        let at = self.holders(target);
        match (target, exclusive) {
            (ALL, _) => self.set(SHARE_ALL, self.get(SHARE_ALL).saturating_sub(1)),
            (_, true) => {
                self.set(at, 0);
                self.set(HELD_ALONE, self.get(HELD_ALONE).saturating_sub(1));
            }
            (_, false) => self.set(at, self.get(at).saturating_sub(1)),
        }
        let (mut granted, mut left) = (Vec::new(), Vec::new());
        for place in 0..self.waiting() {
            let wish = self.wish(place);
            if self.may_be_held(&wish) && left.iter().all(|other: &Wish| other.goes_with(&wish)) {
                self.hold(&wish);
                granted.push(wish);
            } else {
                left.push(wish);
            }
        }
        for (place, wish) in left.iter().enumerate() {
            self.put(place, *wish);
        }
        self.set(WAITING, left.len() as u32);
        granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(members: u32) -> Vec<AtomicU32> {
        (0..Locks::words(members)).map(|_| AtomicU32::new(0)).collect()
    }

    fn wish(member: u32, target: u32, exclusive: bool) -> Wish {
        Wish { member, target, exclusive, request: 100 + member }
    }

    fn members(granted: &[Wish]) -> Vec<u32> {
        granted.iter().map(|wish| wish.member).collect()
    }

    #[test]
    fn who_comes_first_is_first_and_readers_share() {
        let words = table(6);
        let locks = Locks::new(&words);
        assert!(locks.acquire(wish(0, 3, false)) && locks.acquire(wish(1, 3, false)));
        assert!(!locks.acquire(wish(2, 3, true)));
        assert!(!locks.acquire(wish(3, 3, false)), "not past the one who waits to be alone");
        assert!(locks.acquire(wish(4, 2, true)), "another member's");
        assert!(locks.release(3, false).is_empty());
        assert_eq!(locks.release(3, false), [wish(2, 3, true)]);
        assert!(!locks.acquire(wish(0, 3, false)));
        assert_eq!(members(&locks.release(3, true)), [3, 0]);
    }

    #[test]
    fn all_are_shared_unless_one_is_held_alone() {
        let words = table(4);
        let locks = Locks::new(&words);
        assert!(locks.acquire(wish(0, 2, true)));
        assert!(!locks.acquire(wish(1, ALL, false)));
        assert!(!locks.acquire(wish(2, 1, true)), "behind the one who waits for all");
        assert!(!locks.acquire(wish(3, ALL, false)), "behind that one");
        assert_eq!(members(&locks.release(2, true)), [1]);
        assert!(locks.acquire(wish(0, 0, false)), "readers share with who shares all");
        assert_eq!(members(&locks.release(ALL, false)), [2]);
        assert_eq!(members(&locks.release(1, true)), [3]);
    }

    /// Whatever is asked for in whatever order, what is held can be held together, and everybody gets what he waits for.
    #[test]
    fn nobody_is_forgotten_and_nobody_is_beside_whom_he_cannot_be() {
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let count = random.u32(1..7);
            let words = table(count);
            let locks = Locks::new(&words);
            let mut held: Vec<Wish> = Vec::new();
            let mut waiting: Vec<u32> = Vec::new();
            for _ in 0..300 {
                let member = random.u32(..count);
                if waiting.contains(&member) {
                    continue;
                }
                if let Some(at) = held.iter().position(|wish| wish.member == member) {
                    let had = held.remove(at);
                    let granted = locks.release(had.target, had.exclusive);
                    waiting.retain(|member| !granted.iter().any(|wish| wish.member == *member));
                    held.extend(granted);
                } else {
                    let target = if random.u32(..4) == 0 { ALL } else { random.u32(..count) };
                    let new = wish(member, target, target != ALL && random.bool());
                    if locks.acquire(new) { held.push(new) } else { waiting.push(member) }
                }
                for (at, one) in held.iter().enumerate() {
                    assert!(held[at + 1..].iter().all(|other| one.goes_with(other)), "seed {seed}: {held:?}");
                }
            }
            while let Some(had) = held.pop() {
                let granted = locks.release(had.target, had.exclusive);
                waiting.retain(|member| !granted.iter().any(|wish| wish.member == *member));
                held.extend(granted);
            }
            assert!(waiting.is_empty(), "seed {seed}: {waiting:?}");
        }
    }
}
