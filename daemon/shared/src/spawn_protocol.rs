//! A job of several nodes grows: what its launcher, which deals new ranks out over the nodes, and their vmpids say to each other.
//!
//! Two steps, each at all nodes before the next one: Prepare (all know the new ranks and look whether theirs can start), Begin (they are started).
//! Then Commit, or Abandon, which leaves nothing behind; until then what has been started can neither reach MPI nor be heard of.
//! A number keeps its node for good: so what any node knows of a rank's place is never wrong.
//!
//! Death story: a node that ends, or is silent, ends the job, and with it this.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dynamic::{SpawnApp, World};
use crate::escape::Names;

/// A rank that is to be started.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Birth {
    pub rank: u32,
    pub node: u32,
    /// Index of its program among those of the call.
    pub app: u32,
    /// The number was another rank's before, which has ended.
    pub again: bool,
}

/// A spawn, as it has been dealt out.
#[derive(Clone, Serialize, Deserialize)]
pub struct Growth {
    pub world: World,
    pub apps: Vec<SpawnApp>,
    /// The environment on top of which the programs' is.
    pub variables: Vec<(String, String)>,
    /// In the order of their ranks in the new MPI_COMM_WORLD.
    pub births: Vec<Birth>,
    /// `NewRank::stream` of the first.
    pub first_stream: u32,
}

impl fmt::Debug for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Growth { world, apps, variables, births, first_stream } = self;
        let mut told = f.debug_struct("Growth");
        told.field("world", world).field("apps", apps).field("variables", &Names(variables));
        told.field("births", births).field("first_stream", first_stream).finish()
    }
}

/// What makes a spawn, as it has been told, one that this node's part of the job cannot be of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    #[error("its world is number {told}, not {expected}")]
    Number { told: u32, expected: u32 },
    #[error("world {0} is there already")]
    Known(u32),
    #[error("{births} new ranks do not fit into a job of at most {capacity}")]
    TooMany { births: usize, capacity: u32 },
    #[error("its world is not made of its new ranks")]
    OtherRanks,
    #[error("those who spawn are no ranks of the job")]
    Parent,
    #[error("rank {0} cannot be one: there is no room for it, or no such node or program")]
    NoPlace(u32),
    #[error("rank {0} is another one's that runs, or is named twice")]
    Taken(u32),
}

impl Growth {
    /// Can it be a spawn of world `expected` in a job with room for `capacity` ranks on `nodes` nodes, of which those run that `is_taken` says? All numbers in it are
    /// good then.
    ///
    /// # Errors
    /// The first thing that does not fit.
    pub fn check(
        &self,
        expected: u32,
        (capacity, nodes): (u32, usize),
        is_taken: impl Fn(u32) -> bool,
    ) -> Result<(), Misfit> {
        let births = self.births.len();
        if self.world.number != expected || expected <= 1 {
            return Err(Misfit::Number { told: self.world.number, expected });
        }
        if births > capacity as usize {
            return Err(Misfit::TooMany { births, capacity });
        }
        // The lengths first: a few bytes can name four thousand million ranks.
        let same = || self.world.ranks.iter().eq(self.births.iter().map(|birth| birth.rank));
        if self.world.ranks.len() != births || !same() {
            return Err(Misfit::OtherRanks);
        }
        if self.world.parent.as_ref().is_some_and(|parent| !parent.ranks.fit(capacity)) {
            return Err(Misfit::Parent);
        }
        let mut seen = BTreeSet::new();
        for birth in &self.births {
            let has_place = birth.rank < capacity && (birth.node as usize) < nodes;
            if !has_place || (birth.app as usize) >= self.apps.len() {
                return Err(Misfit::NoPlace(birth.rank));
            }
            if !seen.insert(birth.rank) || is_taken(birth.rank) {
                return Err(Misfit::Taken(birth.rank));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "step")]
pub enum Step {
    Prepare {
        growth: Box<Growth>,
    },
    Begin,
    Commit,
    /// It has failed somewhere.
    Abandon,
}

/// How far a node is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Prepared,
    Begun,
}

/// How many processes of each program: the best numbers that fit `left`. `None`: even the least do not.
pub fn choose_counts(apps: &[SpawnApp], left: u32) -> Option<Vec<u32>> {
    let least: Vec<u64> =
        apps.iter().map(|app| app.counts.iter().copied().min().map(u64::from)).collect::<Option<_>>()?;
    let mut left = u64::from(left);
    let mut reserved: u64 = least.iter().sum();
    let mut counts = Vec::with_capacity(apps.len());
    for (app, least) in apps.iter().zip(least) {
        reserved -= least;
        let room = left.checked_sub(reserved)?;
        let count = app.counts.iter().copied().find(|count| u64::from(*count) <= room)?;
        left -= u64::from(count);
        counts.push(count);
    }
    Some(counts)
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::dynamic::{Parent, Ranks};

    fn app(counts: &[u32]) -> SpawnApp {
        SpawnApp {
            candidates: vec!["/x".into()],
            argv: vec![],
            cwd: "/".into(),
            nodes: vec![],
            env: vec![],
            counts: counts.to_vec(),
        }
    }

    #[test]
    fn a_spawn_is_checked_before_any_number_of_it_is_used() {
        let birth = |rank: u32| Birth { rank, node: 0, app: 0, again: false };
        let good = || Growth {
            world: World { number: 2, ranks: (4..6).collect(), ..World::default() },
            apps: vec![app(&[2])],
            variables: vec![],
            births: vec![birth(4), birth(5)],
            first_stream: 0,
        };
        let check = |growth: &Growth| growth.check(2, (8, 2), |rank| rank < 4);
        assert_eq!(check(&good()), Ok(()));
        let ranks = |text: &str| serde_json::from_str::<Ranks>(text).unwrap();
        let parent = |ranks: Ranks| Some(Parent { ranks, contexts: [0; 3] });
        type Spoil<'a> = &'a dyn Fn(&mut Growth);
        let table: &[(Spoil, Misfit)] = &[
            (&|g| g.world.number = 3, Misfit::Number { told: 3, expected: 2 }),
            (&|g| g.world.ranks = ranks("[[1000000,1]]"), Misfit::OtherRanks),
            (&|g| g.world.ranks = ranks("[[0,4294967295],[0,4294967295]]"), Misfit::OtherRanks),
            (&|g| g.world.ranks = ranks("[[5,1],[4,1]]"), Misfit::OtherRanks),
            (&|g| g.world.parent = parent(ranks("[[0,4294967295]]")), Misfit::Parent),
            (&|g| g.births[1].node = 2, Misfit::NoPlace(5)),
            (&|g| g.births[0].app = 1, Misfit::NoPlace(4)),
            (&|g| g.births = vec![birth(4); 9], Misfit::TooMany { births: 9, capacity: 8 }),
            (&|g| (g.births, g.world.ranks) = (vec![birth(8)], ranks("[[8,1]]")), Misfit::NoPlace(8)),
            (
                &|g| (g.births, g.world.ranks) = (vec![birth(u32::MAX)], ranks("[[4294967295,1]]")),
                Misfit::NoPlace(u32::MAX),
            ),
            (&|g| (g.births, g.world.ranks) = (vec![birth(3)], ranks("[[3,1]]")), Misfit::Taken(3)),
            (&|g| (g.births, g.world.ranks) = (vec![birth(4), birth(4)], ranks("[[4,1],[4,1]]")), Misfit::Taken(4)),
        ];
        for (spoil, misfit) in table {
            let mut growth = good();
            spoil(&mut growth);
            assert_eq!(check(&growth), Err(*misfit));
        }
        assert_eq!(good().check(1, (8, 2), |_| false), Err(Misfit::Number { told: 2, expected: 1 }));
    }

    #[test]
    fn soft_counts_give_way_to_what_must_be() {
        assert_eq!(choose_counts(&[app(&[4])], 4), Some(vec![4]));
        assert_eq!(choose_counts(&[app(&[5])], 4), None);
        assert_eq!(choose_counts(&[app(&[8, 4, 2]), app(&[3])], 6), Some(vec![2, 3]));
        assert_eq!(choose_counts(&[app(&[8, 4, 2]), app(&[3])], 7), Some(vec![4, 3]));
        assert_eq!(choose_counts(&[app(&[2, 1, 0]), app(&[2, 0])], 1), Some(vec![1, 0]));
        assert_eq!(choose_counts(&[app(&[])], 9), None);
        assert_eq!(choose_counts(&[app(&[u32::MAX]), app(&[u32::MAX])], u32::MAX), None);
    }
}
