//! Agreements of ranks in a job that survives deaths (MPIX_Comm_agree, MPIX_Comm_shrink).
//!
//! One process decides, and it is the one that outlives all ranks and sees every death: an agreement is decided once, when each member has
//! contributed or is gone, and all who contributed get the same answer. So it is uniform whoever dies, and when: there is no leader to
//! lose and no round to repeat. What it costs is a message over a socket each way.

use std::collections::BTreeMap;

use vmpi_shared::dynamic::{Answer, Ranks};

use crate::job::Job;

/// What an agreement is called by all its members.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub context: u32,
    pub number: u64,
    pub shrink: bool,
}

/// What one member gave, and where its answer goes.
#[derive(Copy, Clone, Debug)]
pub struct Contribution {
    pub token: u64,
    /// Of its question.
    pub number: u64,
    pub flag: u32,
    pub acknowledged: u32,
}

struct Agreement {
    groups: [Ranks; 2],
    given: BTreeMap<u32, Contribution>,
}

impl Agreement {
    fn members(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups.iter().flat_map(Ranks::iter)
    }

    /// The AND over the contributions of a group; all ones if there are none.
    fn flag(&self, group: &Ranks) -> u32 {
        group.iter().filter_map(|rank| self.given.get(&rank)).fold(u32::MAX, |all, given| all & given.flag)
    }
}

/// Those under way in a job.
#[derive(Default)]
pub struct Agreements(BTreeMap<Key, Agreement>);

impl Agreements {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `rank` contributes; the first to come says who the members are.
    pub fn add(&mut self, key: Key, groups: [Ranks; 2], rank: u32, contribution: Contribution) {
        let agreement = self.0.entry(key).or_insert_with(|| Agreement { groups, given: BTreeMap::new() });
        agreement.given.insert(rank, contribution);
    }

    /// Take out those to which nobody has to come any more.
    fn take_decided(&mut self, is_gone: impl Fn(u32) -> bool) -> Vec<(Key, Agreement)> {
        let waits = |agreement: &Agreement| {
            agreement.members().any(|member| !agreement.given.contains_key(&member) && !is_gone(member))
        };
        let decided: Vec<Key> = self.0.iter().filter(|(_, agreement)| !waits(agreement)).map(|(key, _)| *key).collect();
        decided.into_iter().filter_map(|key| Some((key, self.0.remove(&key)?))).collect()
    }
}

impl Job {
    /// Decide what can be decided: who gets which answer.
    pub fn conclude(&mut self) -> Vec<(u32, Contribution, Answer)> {
        let mut agreements = std::mem::take(&mut self.agreements);
        let decided = agreements.take_decided(|rank| self.is_gone(rank));
        self.agreements = agreements;
        let mut answers = Vec::new();
        for (key, agreement) in decided {
            let failures = agreement.members().filter_map(|rank| Some((self.node.failure(rank)?, rank)));
            let mut failures: Vec<(u32, u32)> = failures.collect();
            failures.sort_unstable();
            let known = agreement.given.values().map(|given| given.acknowledged).min().unwrap_or(0);
            let inter = !agreement.groups[1].is_empty();
            let answer = Answer::Agreed {
                flags: agreement.groups.each_ref().map(|group| agreement.flag(group)),
                failed: failures.iter().map(|(_, rank)| *rank).collect(),
                news: failures.last().is_some_and(|(number, _)| *number > known),
                contexts: match (key.shrink, inter) {
                    (false, _) => [0; 3],
                    (true, false) => [self.segment.new_context(), 0, 0],
                    (true, true) => std::array::from_fn(|_| self.segment.new_context()),
                },
            };
            answers.extend(agreement.given.into_iter().map(|(rank, given)| (rank, given, answer.clone())));
        }
        answers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { context: 6, number: 0, shrink: false };

    fn give(flag: u32) -> Contribution {
        Contribution { token: 1, number: 1, flag, acknowledged: 0 }
    }

    #[test]
    fn it_is_decided_when_all_have_come_or_are_gone() {
        let mut agreements = Agreements::default();
        let groups = || [(0..3).collect(), (7..8).collect()];
        agreements.add(KEY, groups(), 0, give(0b111));
        agreements.add(KEY, groups(), 7, give(0b1011));
        assert!(agreements.take_decided(|_| false).is_empty());
        assert!(agreements.take_decided(|rank| rank == 1).is_empty());
        agreements.add(KEY, groups(), 2, give(0b110));
        let decided = agreements.take_decided(|rank| rank == 1);
        let [(_, agreement)] = &decided[..] else { panic!("one agreement") };
        assert_eq!([agreement.flag(&agreement.groups[0]), agreement.flag(&agreement.groups[1])], [0b110, 0b1011]);
        assert!(agreements.0.is_empty(), "decided once");
    }

    #[test]
    fn one_who_has_given_and_died_has_given() {
        let mut agreements = Agreements::default();
        agreements.add(KEY, [(0..2).collect(), Ranks::default()], 0, give(1));
        agreements.add(KEY, [(0..2).collect(), Ranks::default()], 1, give(3));
        let decided = agreements.take_decided(|rank| rank == 0);
        assert_eq!(decided[0].1.flag(&decided[0].1.groups[0]), 1);
        assert_eq!(decided[0].1.flag(&Ranks::default()), u32::MAX, "the empty AND");
    }
}
