//! A job of several nodes grows: what its launcher, which deals new ranks out over the nodes, and their vmpids say to each other.
//!
//! Two steps, each at all nodes before the next one: Prepare (all know the new ranks and look whether theirs can start), Begin (they are started).
//! Then Commit, or Abandon, which leaves nothing behind; until then what has been started can neither reach MPI nor be heard of.
//! A number keeps its node for good: so what any node knows of a rank's place is never wrong.
//!
//! Death story: a node that ends, or is silent, ends the job, and with it this.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::control::Names;
use crate::dynamic::{SpawnApp, World};

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
