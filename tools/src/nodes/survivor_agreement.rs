//! Agreements of those who survive deaths in a job of several nodes: decided here, where all deaths are heard of.

use std::collections::BTreeSet;
use vmpi_shared::agreement::{Agreements, Contribution, Key};
use vmpi_shared::control::RankEnd;
use vmpi_shared::dynamic::{Ask, InterContexts};
use vmpi_shared::ports::Told;

/// What is known of deaths and agreements.
#[derive(Default)]
pub struct SurvivorAgreement {
    agreements: Agreements,
    /// Ranks that are over.
    gone: BTreeSet<u32>,
    /// Those of them that have failed, in the order in which that was heard.
    failed: Vec<u32>,
}

impl SurvivorAgreement {
    /// A rank asks; what follows from that.
    pub fn serve(&mut self, (rank, number): (u32, u64), ask: Ask, contexts: InterContexts) -> Vec<Told> {
        let Ask::Agree { context, number: agreement, groups, shrink, flag, known, .. } = ask else { return Vec::new() };
        let key = Key { context, number: agreement, shrink };
        self.agreements.add(key, groups, rank, Contribution { number, flag, known, contexts });
        self.conclude()
    }

    /// A rank begins, perhaps with the number of one that is over.
    pub fn begins(&mut self, rank: u32) {
        self.gone.remove(&rank);
    }

    /// A rank is over; what follows from that.
    pub fn ended(&mut self, end: &RankEnd) -> Vec<Told> {
        self.gone.insert(end.rank);
        if !end.finalized {
            self.failed.push(end.rank);
        }
        self.conclude()
    }

    fn conclude(&mut self) -> Vec<Told> {
        let gone = &self.gone;
        self.agreements.conclude(|rank| gone.contains(&rank), &self.failed, |_, brought| brought)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_shared::control::Ended;
    use vmpi_shared::dynamic::{Answer, Ranks};

    #[test]
    fn survivors_agree_when_the_dead_are_known_to_be() {
        let mut agreement = SurvivorAgreement::default();
        let end = |rank: u32, finalized: bool| RankEnd {
            rank,
            pid: 1,
            ended: Ended::Signaled(9),
            initialized: true,
            finalized,
            rtime_s: 0.0,
            switches: 0,
            why_killed: String::new(),
        };
        let ask = |shrink: bool| Ask::Agree {
            context: 4,
            number: 0,
            groups: [(0..3).collect(), Ranks::default()],
            shrink,
            flag: 6,
            acknowledged: 0,
            known: Ranks::default(),
        };
        assert!(agreement.serve((0, 5), ask(true), [1, 2, 3]).is_empty());
        assert!(agreement.ended(&end(1, true)).is_empty());
        let told = agreement.serve((2, 7), ask(true), [4, 5, 6]);
        let Answer::Agreed { failed, news, contexts, .. } = &told[1].answer else { panic!("{told:?}") };
        assert_eq!((told[0].rank, told[0].number, told[1].rank, told[1].number), (0, 5, 2, 7));
        assert!(failed.is_empty() && !news && *contexts == [1, 2, 3], "{told:?}");
        assert!(agreement.serve((0, 6), ask(false), [1, 2, 3]).is_empty());
        let told = agreement.ended(&end(2, false));
        let Answer::Agreed { failed, news: true, .. } = &told[0].answer else { panic!("{told:?}") };
        assert_eq!((told.len(), failed.iter().collect::<Vec<_>>()), (1, vec![2]));
    }
}
