//! Numbers of ranks that others change, who take no part in it.

use super::networks::{Even, Narrow, Uneven};
use super::{CHANGES, Rank, Step, run_all};
use crate::simulate::engine::Engine;
use crate::simulate::{Grant, Network};
use std::cell::RefCell;
use std::rc::Rc;

/// All ranks look, and change each other's numbers.
fn program_of_changes(ranks: u32, random: &mut fastrand::Rng) -> Vec<Step> {
    (0..40)
        .map(|at| match random.u32(..10) {
            _ if at % 13 == 0 || at == 39 => Step::Flush,
            0..=4 => Step::Change { at: random.u32(..ranks), bytes: random.u64(..3) * 700 },
            5..=6 => Step::Look,
            7 => Step::Send { to: random.u32(..ranks), bytes: random.u64(..3) * 700, asks: random.u32(..3) == 0 },
            _ => Step::Compute { time: random.u64(..4) * 500 },
        })
        .collect()
}

impl Rank {
    /// It is there: which of two comes first is seen by what the number becomes.
    pub(super) fn change(&mut self, engine: &mut Engine<'_>, me: u32, at: u64, request: u32) {
        let whose = self.changes[(request - CHANGES) as usize];
        let number = &mut self.numbers.borrow_mut()[whose as usize];
        self.seen.push(format!("{number:x} of {whose} at {at}"));
        *number = (*number).wrapping_mul(31).wrapping_add(u64::from(me) + 1);
        // Every third is answered only now.
        let grants = [Grant { target: whose, to: me, request }];
        let grants = if request.is_multiple_of(3) { &grants[..] } else { &[] };
        engine.has_done(me, at, grants, &Even, &mut Vec::new()).unwrap();
    }
}

/// One-sided: who changes a number first, and what its owner sees by when, is the same in any order of running.
#[test]
fn what_ranks_do_in_the_memory_of_others_follows_from_their_programs_alone() {
    let changed = |network: &dyn Network, ranks: u32, programs: u64, order: u64| {
        let mut random = fastrand::Rng::with_seed(programs);
        let numbers = Rc::new(RefCell::new(vec![0; ranks as usize]));
        let rank =
            |_| Rank { numbers: numbers.clone(), ..Rank::new(program_of_changes(ranks, &mut random), ranks, false) };
        let (seen, _) = run_all(network, (0..ranks).map(rank).collect(), order);
        (seen, numbers.take())
    };
    for programs in 0..90 {
        let ranks = [2, 3, 5, 9][programs as usize % 4];
        let network: &dyn Network = [&Uneven as &dyn Network, &Even, &Narrow][programs as usize % 3];
        let first = changed(network, ranks, programs, 0);
        assert!(first.1.iter().all(|number| *number != 0), "all have been changed");
        for order in 1..12 {
            assert_eq!(changed(network, ranks, programs, order), first, "programs {programs}, order {order}");
        }
    }
}
