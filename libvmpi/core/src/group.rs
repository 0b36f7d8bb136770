//! Groups: ordered sets of the job's ranks (MPI 4.1 section 7.3).
//!
//! [`Members`] is immutable and compact: a run of consecutive ranks costs two words however long it is, anything else
//! is a list, with a sorted index made the first time that a long list is searched.

use crate::consts;
use crate::errors::{Class, Result, fail};
use crate::guarded::EntryGuarded;
use crate::handle::{Group, Handle, Session};
use crate::table::Table;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::rc::Rc;

/// Lists up to this length are searched one by one; longer ones through a sorted index (a hash table that is never freed would be lost to memcheck).
const LINEAR_SEARCH_MAX: usize = 16;

/// An ordered set of processes; immutable. It remembers the session that it comes from.
#[derive(Debug)]
pub struct Members {
    repr: Repr,
    /// Beside what differs: each message asks for it.
    size: u32,
    session: Session,
}

#[derive(Debug)]
enum Repr {
    Range { first: u32 },
    List { ranks: Box<[u32]>, index: OnceCell<Box<[(u32, u32)]>> },
}

impl Members {
    /// Ranks `first .. first + len` of the job.
    pub fn range(first: u32, len: u32) -> Members {
        Members { repr: Repr::Range { first }, size: len, session: Session::NULL }
    }

    /// The given job-wide ranks in this order; they must be distinct.
    pub fn list(world_ranks: Vec<u32>) -> Members {
        let first = world_ranks.first().copied().unwrap_or(0);
        let consecutive =
            world_ranks.iter().zip(u64::from(first)..).all(|(&rank, expected)| u64::from(rank) == expected);
        if consecutive {
            return Members::range(first, world_ranks.len() as u32);
        }
        let size = world_ranks.len() as u32;
        let repr = Repr::List { ranks: world_ranks.into_boxed_slice(), index: OnceCell::new() };
        Members { repr, size, session: Session::NULL }
    }

    /// The same members, as coming from `session` (`Session::NULL`: the world model).
    pub fn of_session(self, session: Session) -> Members {
        Members { session, ..self }
    }

    /// The session that this group comes from.
    pub fn session(&self) -> Session {
        self.session
    }

    /// Number of members.
    #[inline]
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Job-wide rank of member `rank`, which must be below `size()`.
    #[inline]
    pub fn world_rank(&self, rank: u32) -> u32 {
        match &self.repr {
            Repr::Range { first } => {
                assert!(rank < self.size, "vmpi: member {rank} of a group of {}", self.size);
                first + rank
            }
            Repr::List { ranks, .. } => ranks[rank as usize],
        }
    }

    /// Rank in this group of job-wide rank `world`.
    #[inline]
    pub fn rank_of(&self, world: u32) -> Option<u32> {
        match &self.repr {
            Repr::Range { first } => world.checked_sub(*first).filter(|rank| *rank < self.size),
            Repr::List { ranks, .. } if ranks.len() <= LINEAR_SEARCH_MAX => {
                ranks.iter().position(|&member| member == world).map(|rank| rank as u32)
            }
            Repr::List { ranks, index } => {
                let sorted = || {
                    let mut index: Box<[(u32, u32)]> = ranks.iter().copied().zip(0..).collect();
                    index.sort_unstable();
                    index
                };
                let index = index.get_or_init(sorted);
                let place = index.binary_search_by_key(&world, |(world, _)| *world).ok()?;
                Some(index[place].1)
            }
        }
    }

    /// All members' job-wide ranks in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.size()).map(|rank| self.world_rank(rank))
    }

    fn contains(&self, world: u32) -> bool {
        self.rank_of(world).is_some()
    }

    /// Members of `self` in order, then those of `other` that are not in `self`.
    pub fn union(&self, other: &Members) -> Members {
        Members::list(self.iter().chain(other.iter().filter(|&rank| !self.contains(rank))).collect())
            .of_session(self.session)
    }

    /// Members of `self` that are in `other`, in the order of `self`.
    pub fn intersection(&self, other: &Members) -> Members {
        Members::list(self.iter().filter(|&rank| other.contains(rank)).collect()).of_session(self.session)
    }

    /// Members of `self` that are not in `other`, in the order of `self`.
    pub fn difference(&self, other: &Members) -> Members {
        Members::list(self.iter().filter(|&rank| !other.contains(rank)).collect()).of_session(self.session)
    }

    /// The members with the given ranks, in the given order.
    ///
    /// # Errors
    /// `Class::Rank` for a rank out of range or given twice.
    pub fn incl(&self, ranks: &[i32]) -> Result<Members> {
        let ranks = self.distinct(ranks)?;
        Ok(Members::list(ranks.into_iter().map(|rank| self.world_rank(rank)).collect()).of_session(self.session))
    }

    /// All members but those with the given ranks, in the order of `self`.
    ///
    /// # Errors
    /// As [`Members::incl`].
    pub fn excl(&self, ranks: &[i32]) -> Result<Members> {
        let out: HashSet<u32> = self.distinct(ranks)?.into_iter().collect();
        Ok(Members::list(
            (0..self.size()).filter(|rank| !out.contains(rank)).map(|rank| self.world_rank(rank)).collect(),
        )
        .of_session(self.session))
    }

    /// `incl` of the ranks that (first, last, stride) triplets name.
    ///
    /// # Errors
    /// `Class::Arg` for a triplet that names nothing, otherwise as [`Members::incl`].
    pub fn range_incl(&self, triplets: &[[i32; 3]]) -> Result<Members> {
        self.incl(&self.expand(triplets)?)
    }

    /// `excl` of the ranks that (first, last, stride) triplets name.
    ///
    /// # Errors
    /// As [`Members::range_incl`].
    pub fn range_excl(&self, triplets: &[[i32; 3]]) -> Result<Members> {
        self.excl(&self.expand(triplets)?)
    }

    /// The ranks in `other` of members of this group; `PROC_NULL` stays, `UNDEFINED` for a process not in `other`.
    ///
    /// # Errors
    /// `Class::Rank` for a rank that is not in this group.
    pub fn translate(&self, ranks: &[i32], other: &Members) -> Result<Vec<i32>> {
        ranks
            .iter()
            .map(|&rank| match rank {
                consts::PROC_NULL => Ok(rank),
                _ => Ok(other.rank_of(self.world_rank(self.check(rank)?)).map_or(consts::UNDEFINED, |r| r as i32)),
            })
            .collect()
    }

    /// `consts::IDENT`, `SIMILAR` or `UNEQUAL`.
    pub fn compare(&self, other: &Members) -> i32 {
        if self.size() != other.size() {
            consts::UNEQUAL
        } else if self.iter().eq(other.iter()) {
            consts::IDENT
        } else if self.iter().all(|rank| other.contains(rank)) {
            consts::SIMILAR
        } else {
            consts::UNEQUAL
        }
    }

    fn check(&self, rank: i32) -> Result<u32> {
        match u32::try_from(rank) {
            Ok(valid) if valid < self.size() => Ok(valid),
            _ => fail(Class::Rank, format!("rank {rank} is not in the group, which has {} members", self.size())),
        }
    }

    fn distinct(&self, ranks: &[i32]) -> Result<Vec<u32>> {
        let mut seen = HashSet::with_capacity(ranks.len());
        ranks
            .iter()
            .map(|&rank| {
                let rank = self.check(rank)?;
                if !seen.insert(rank) {
                    return fail(Class::Rank, format!("rank {rank} is given more than once"));
                }
                Ok(rank)
            })
            .collect()
    }

    /// The ranks that triplets name; refuses them early, so that no triplet can make a list longer than the group.
    fn expand(&self, triplets: &[[i32; 3]]) -> Result<Vec<i32>> {
        let mut ranks = Vec::new();
        for &[first, last, stride] in triplets {
            if stride == 0 {
                return fail(Class::Arg, format!("the range ({first}, {last}, {stride}) has stride 0"));
            }
            if (stride > 0 && first > last) || (stride < 0 && first < last) {
                return fail(Class::Arg, format!("the range ({first}, {last}, {stride}) runs away from its end"));
            }
            self.check(first)?;
            self.check(last)?;
            let count = (i64::from(last) - i64::from(first)) / i64::from(stride) + 1;
            ranks.extend((0..count).map(|i| (i64::from(first) + i * i64::from(stride)) as i32));
            if ranks.len() > self.size() as usize {
                return fail(Class::Rank, "the ranges name a rank more than once");
            }
        }
        Ok(ranks)
    }
}

static GROUPS: EntryGuarded<Table<Group, Rc<Members>>> = EntryGuarded::new(Table::new());

/// The group behind a handle.
///
/// # Errors
/// `Class::Group` if the handle names no group.
pub fn get(handle: Group) -> Result<Rc<Members>> {
    if handle == Group::EMPTY {
        return Ok(Rc::new(Members::range(0, 0)));
    }
    match GROUPS.with(|groups| groups.get(handle).cloned()) {
        Some(members) => Ok(members),
        None if handle.is_null() => fail(Class::Group, "the group is MPI_GROUP_NULL"),
        None => fail(Class::Group, format!("{:#x} is not the handle of a group", handle.raw())),
    }
}

/// Name a group; an empty one is `Group::EMPTY`.
pub fn insert(members: Rc<Members>) -> Group {
    if members.size() == 0 { Group::EMPTY } else { GROUPS.with(|groups| groups.insert(members)) }
}

/// Forget a handle; `Group::EMPTY` may be freed any number of times.
///
/// # Errors
/// As [`get`].
pub fn free(handle: Group) -> Result<()> {
    if handle == Group::EMPTY {
        return Ok(());
    }
    get(handle)?;
    GROUPS.with(|groups| groups.remove(handle));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(members: &Members) -> Vec<u32> {
        members.iter().collect()
    }

    #[test]
    fn consecutive_lists_become_ranges() {
        let consecutive = Members::list(vec![4, 5, 6]);
        assert!(matches!(consecutive, Members { repr: Repr::Range { first: 4 }, size: 3, .. }));
        assert!(matches!(Members::list(vec![]), Members { repr: Repr::Range { .. }, size: 0, .. }));
        assert!(matches!(Members::list(vec![4, 6]).repr, Repr::List { .. }));
    }

    #[test]
    fn rank_of_is_the_inverse_of_world_rank() {
        for members in [
            Members::range(3, 40),
            Members::list((0..8).rev().collect()),
            Members::list((0..100).map(|i| i * 37 % 101).collect()),
        ] {
            for rank in 0..members.size() {
                assert_eq!(members.rank_of(members.world_rank(rank)), Some(rank));
            }
            assert_eq!(members.rank_of(1000), None);
        }
    }

    #[test]
    fn set_operations_keep_the_first_groups_order() {
        let a = Members::list(vec![5, 1, 3]);
        let b = Members::list(vec![3, 2, 5]);
        assert_eq!(ranks(&a.union(&b)), [5, 1, 3, 2]);
        assert_eq!(ranks(&a.intersection(&b)), [5, 3]);
        assert_eq!(ranks(&a.difference(&b)), [1]);
    }

    #[test]
    fn inclusion_and_exclusion() {
        let world = Members::range(10, 8);
        assert_eq!(ranks(&world.incl(&[3, 0]).unwrap()), [13, 10]);
        assert_eq!(ranks(&world.excl(&[3, 0]).unwrap()), [11, 12, 14, 15, 16, 17]);
        assert_eq!(ranks(&world.range_incl(&[[6, 0, -3], [1, 2, 4]]).unwrap()), [16, 13, 10, 11]);
        assert_eq!(ranks(&world.range_excl(&[[0, 7, 2]]).unwrap()), [11, 13, 15, 17]);
        assert_eq!(world.incl(&[1, 1]).unwrap_err().class, Class::Rank);
        assert_eq!(world.incl(&[8]).unwrap_err().class, Class::Rank);
        assert_eq!(world.range_incl(&[[0, 7, 0]]).unwrap_err().class, Class::Arg);
        assert_eq!(world.range_incl(&[[7, 0, 1]]).unwrap_err().class, Class::Arg);
        assert_eq!(world.range_incl(&[[0, 7, 1], [0, 7, 1]]).unwrap_err().class, Class::Rank);
    }

    #[test]
    fn translation_and_comparison() {
        let a = Members::list(vec![5, 1, 3]);
        let b = Members::list(vec![1, 3, 7]);
        let translated = a.translate(&[0, 1, consts::PROC_NULL, 2], &b).unwrap();
        assert_eq!(translated, [consts::UNDEFINED, 0, consts::PROC_NULL, 1]);
        assert_eq!(a.translate(&[3], &b).unwrap_err().class, Class::Rank);
        assert_eq!(a.compare(&Members::list(vec![5, 1, 3])), consts::IDENT);
        assert_eq!(a.compare(&Members::list(vec![1, 3, 5])), consts::SIMILAR);
        assert_eq!(a.compare(&b), consts::UNEQUAL);
    }
}
