//! Agreements of ranks in a job that survives deaths (MPIX_Comm_agree, MPIX_Comm_shrink).
//!
//! One process decides, and it is one that outlives all ranks and hears of every death: the daemon, and for a job on several nodes the launcher. An
//! agreement is decided once, when each member has contributed or is gone, and all who contributed get the same answer. So it is uniform whoever
//! dies, and when: there is no leader to lose and no round to repeat. What it costs is a message over a socket each way.

use std::collections::{BTreeMap, BTreeSet};

use crate::dynamic::{Answer, InterContexts, Ranks};
use crate::ports::Told;

/// What an agreement is called by all its members.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub context: u32,
    pub number: u64,
    pub shrink: bool,
}

/// What one member gave.
#[derive(Clone, Debug)]
pub struct Contribution {
    /// Of its question.
    pub number: u64,
    pub flag: u32,
    /// The failed ranks that its program has acknowledged.
    pub known: Ranks,
    /// For a communicator of those who are left, if whoever decides cannot make them.
    pub contexts: InterContexts,
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

    /// Has everybody who contributed acknowledged the failure of `rank`?
    fn is_known(&self, rank: u32) -> bool {
        self.given.values().all(|given| given.known.iter().any(|known| known == rank))
    }
}

/// Those under way in a job.
#[derive(Default)]
pub struct Agreements(BTreeMap<Key, Agreement>);

impl Agreements {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
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

    /// Decide what can be decided: who gets which answer. `failed`: in the order in which they did; `contexts` makes those of a new communicator (of an
    /// intercommunicator, if true) from what a member brought.
    pub fn conclude(
        &mut self,
        is_gone: impl Fn(u32) -> bool,
        failed: &[u32],
        mut contexts: impl FnMut(bool, InterContexts) -> InterContexts,
    ) -> Vec<Told> {
        let mut answers = Vec::new();
        for (key, agreement) in self.take_decided(is_gone) {
            let members: BTreeSet<u32> = agreement.members().collect();
            let lost: Vec<u32> = failed.iter().copied().filter(|rank| members.contains(rank)).collect();
            let inter = !agreement.groups[1].is_empty();
            let brought = agreement.given.values().next().map_or([0; 3], |given| given.contexts);
            let answer = Answer::Agreed {
                flags: agreement.groups.each_ref().map(|group| agreement.flag(group)),
                news: lost.iter().any(|rank| !agreement.is_known(*rank)),
                failed: lost.into_iter().collect(),
                contexts: if key.shrink { contexts(inter, brought) } else { [0; 3] },
            };
            let told = |(rank, given): (u32, Contribution)| Told { rank, number: given.number, answer: answer.clone() };
            answers.extend(agreement.given.into_iter().map(told));
        }
        answers
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    const KEY: Key = Key { context: 6, number: 0, shrink: false };

    fn give(flag: u32, known: &[u32]) -> Contribution {
        Contribution { number: 1, flag, known: known.iter().copied().collect(), contexts: [8, 9, 10] }
    }

    #[test]
    fn it_is_decided_when_all_have_come_or_are_gone() {
        let mut agreements = Agreements::default();
        let groups = || [(0..3).collect(), (7..8).collect()];
        agreements.add(KEY, groups(), 0, give(0b111, &[]));
        agreements.add(KEY, groups(), 7, give(0b1011, &[]));
        assert!(agreements.take_decided(|_| false).is_empty());
        assert!(agreements.take_decided(|rank| rank == 1).is_empty());
        agreements.add(KEY, groups(), 2, give(0b110, &[]));
        let decided = agreements.take_decided(|rank| rank == 1);
        let [(_, agreement)] = &decided[..] else { panic!("one agreement") };
        assert_eq!([agreement.flag(&agreement.groups[0]), agreement.flag(&agreement.groups[1])], [0b110, 0b1011]);
        assert!(agreements.0.is_empty(), "decided once");
    }

    #[test]
    fn one_who_has_given_and_died_has_given() {
        let mut agreements = Agreements::default();
        agreements.add(KEY, [(0..2).collect(), Ranks::default()], 0, give(1, &[]));
        agreements.add(KEY, [(0..2).collect(), Ranks::default()], 1, give(3, &[]));
        let decided = agreements.take_decided(|rank| rank == 0);
        assert_eq!(decided[0].1.flag(&decided[0].1.groups[0]), 1);
        assert_eq!(decided[0].1.flag(&Ranks::default()), u32::MAX, "the empty AND");
    }

    #[test]
    fn what_one_member_does_not_know_is_news_to_all() {
        let said = |known: [&[u32]; 2], failed: &[u32]| {
            let mut agreements = Agreements::default();
            let key = Key { shrink: true, ..KEY };
            for (rank, known) in (0..).zip(known) {
                agreements.add(key, [(0..4).collect(), Ranks::default()], rank, give(1, known));
            }
            let told = agreements.conclude(
                |rank| rank > 1,
                failed,
                |inter, brought| {
                    assert!(!inter && brought == [8, 9, 10]);
                    [4, 0, 0]
                },
            );
            let [first, second] = &told[..] else { panic!("two who gave") };
            assert_eq!(format!("{:?}", first.answer), format!("{:?}", second.answer), "all hear the same");
            let Answer::Agreed { failed, news, contexts, .. } = &first.answer else { panic!("they agree") };
            assert_eq!(contexts, &[4, 0, 0]);
            (failed.iter().collect::<Vec<u32>>(), *news)
        };
        assert_eq!(said([&[3, 2], &[3]], &[9, 3, 2]), (vec![3, 2], true));
        assert_eq!(said([&[3, 2], &[2, 3]], &[3, 2]), (vec![3, 2], false));
        assert_eq!(said([&[], &[]], &[9]), (vec![], false), "no member has failed");
    }
}
