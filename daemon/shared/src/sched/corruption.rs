//! Has a rank scribbled over the node segment? For the daemon, which then ends the job with a sentence.
//!
//! Finding nothing proves nothing; what is found is certain, because vmpi never writes such words.

use crate::mem::sync::Ordering::Relaxed;
use crate::node::NodeSegment;
use crate::node::run_state::{RunState, holder_rank};
use crate::sched::lease::REVOKED;
use crate::sched::permit::SPIN;

/// A word that cannot be there, in words; `placement` is the core of each rank as the job began.
pub fn find(node: &NodeSegment, placement: &[u32]) -> Option<String> {
    for (rank, core) in placement.iter().enumerate() {
        let descriptor = node.rank(rank as u32);
        let state = descriptor.state.load(Relaxed);
        // Only the daemon makes a rank ADOPTED, and not while it is here.
        if matches!(RunState::from_word(state), RunState::Damaged | RunState::Adopted) {
            return Some(format!("the state of rank {rank} is {state:#x}"));
        }
        let permit = descriptor.permit.load(Relaxed);
        if permit > SPIN {
            return Some(format!("the permit of rank {rank} is {permit:#x}"));
        }
        let found = descriptor.home.load(Relaxed);
        if found != *core {
            return Some(format!("the first core of rank {rank} is {found:#x}, not {core}"));
        }
        let found = descriptor.core.load(Relaxed);
        let may_move = node.header().balance != 0 && found < node.header().own_cores && *core < node.header().own_cores;
        if found != *core && !may_move {
            return Some(format!("the core of rank {rank} is {found:#x}, not {core}"));
        }
    }
    // The daemon sets this and takes it back before it looks here.
    if let Some(core) = (0..node.header().cores).find(|core| node.core(*core).mending.load(Relaxed) != 0) {
        return Some(format!("core {core} is said to be mended"));
    }
    let mut leases = (0..node.header().cores).map(|core| (core, node.core(core).lease.load(Relaxed)));
    if let Some((core, lease)) = leases.find(|(_, lease)| *lease > REVOKED) {
        return Some(format!("the lease of core {core} is {lease:#x}"));
    }
    (0..node.header().cores).find_map(|core| {
        let holder = holder_rank(node.core(core).holder.load(Relaxed))?;
        let home = placement.get(holder as usize);
        // A rank may be moving right now.
        let may_move = node.header().balance != 0 && core < node.header().own_cores && home.is_some();
        (home != Some(&core) && !may_move).then(|| format!("core {core} is held by rank {holder:#x}"))
    })
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::control::{Balance, OnBlock, Policy, Wtime};
    use crate::node::{NodeConfig, Patience};

    fn node(placement: &[u32], policy: Policy) -> NodeSegment {
        NodeSegment::create(&config(placement, policy)).unwrap()
    }

    fn config(placement: &[u32], policy: Policy) -> NodeConfig {
        NodeConfig {
            job: 1,
            ranks: placement.len() as u32,
            v: 2,
            cpus: vec![0, 1],
            placement: placement.to_vec(),
            policy,
            balance: Balance::None,
            own_cores: 2,
            bind: false,
            on_block: OnBlock::Release,
            wtime: Wtime::Wall,
            quantum_ms: 0,
            recovery: false,
            answers_first: false,
            patience: Patience::default(),
        }
    }

    /// What the daemon does to a segment must come to an end, whatever is in it.
    #[test]
    fn the_daemons_part_of_the_baton_bears_any_words() {
        use super::super::{CLAIMED, IDLE, OPEN, SPINNING, core_report, rank_died, rank_report, supervise, take_core};
        use crate::mem::sync::Ordering::SeqCst;
        let placement = [0, 1, 0, 1, 0];
        let words = [0, 1, 2, 3, 4, 5, 6, 7, 8, 64, 511, u32::MAX - 1, u32::MAX];
        let mut chance = fastrand::Rng::with_seed(1);
        let mut draw = move || *chance.choice(&words).expect("there are some");
        for (_, policy) in Policy::NAMES {
            let balance = if policy == Policy::Rr { Balance::Steal } else { Balance::None };
            let answers_first = policy == Policy::Fifo;
            let config = NodeConfig { balance, answers_first, ..config(&placement, policy) };
            let node = NodeSegment::create(&config).unwrap();
            for _ in 0..20_000 {
                for core in 0..2 {
                    let descriptor = node.core(core);
                    descriptor.holder.store([IDLE, SPINNING, OPEN, CLAIMED, draw()][draw() as usize % 5], SeqCst);
                    descriptor.last.store(draw(), SeqCst);
                    descriptor.spinner.store(draw(), SeqCst);
                    descriptor.running.store(draw(), SeqCst);
                    descriptor.running_ticks.store(u64::MAX - u64::from(draw()), SeqCst);
                    for word in node.ready(core) {
                        word.store(u64::from(draw()) << (draw() % 64), SeqCst);
                    }
                }
                for rank in 0..placement.len() as u32 {
                    let descriptor = node.rank(rank);
                    descriptor.state.store([1, 1, 7, draw()][draw() as usize % 4], SeqCst);
                    descriptor.core.store(draw(), SeqCst);
                    descriptor.permit.store(draw(), SeqCst);
                    descriptor.r.store(u64::MAX - u64::from(draw()), SeqCst);
                    descriptor.m.store(u64::from(draw()), SeqCst);
                    descriptor.call.store(draw(), SeqCst);
                }
                let victim = draw() % placement.len() as u32;
                if draw() % 2 == 0 {
                    take_core(&node, victim);
                } else {
                    rank_died(&node, victim);
                }
                supervise::assist(&node);
                core_report(&node, draw() % 2);
                rank_report(&node, victim);
                find(&node, &placement);
            }
        }
    }

    #[test]
    fn only_what_cannot_be_is_damage() {
        let placement = [0, 1, 0];
        let node = node(&placement, Policy::Rr);
        assert_eq!(find(&node, &placement), None);
        use super::super::{CLAIMED, IDLE, OPEN, SPINNING};
        for holder in [IDLE, SPINNING, OPEN, CLAIMED, 1, 3] {
            node.core(0).holder.store(holder, Relaxed);
            assert_eq!(find(&node, &placement), None);
        }
        node.core(0).holder.store(2, Relaxed);
        assert!(find(&node, &placement).is_some_and(|text| text.contains("held by rank 0x1")), "rank 1 is on core 1");
        node.core(0).holder.store(0, Relaxed);
        node.rank(2).state.store(9, Relaxed);
        assert!(find(&node, &placement).is_some_and(|text| text.contains("the state of rank 2 is 0x9")));
        node.rank(2).state.store(0, Relaxed);
        for permit in 0..=SPIN {
            node.rank(1).permit.store(permit, Relaxed);
            assert_eq!(find(&node, &placement), None);
        }
        // A rank that waits for this to become a permit would not even sleep.
        node.rank(1).permit.store(0x51, Relaxed);
        assert!(find(&node, &placement).is_some_and(|text| text.contains("the permit of rank 1 is 0x51")));
        node.rank(1).permit.store(0, Relaxed);
        node.core(1).lease.store(REVOKED, Relaxed);
        assert_eq!(find(&node, &placement), None);
        node.core(1).lease.store(0x51, Relaxed);
        assert!(find(&node, &placement).is_some_and(|text| text.contains("the lease of core 1 is 0x51")));
        node.core(1).lease.store(0, Relaxed);
        node.rank(1).core.store(0, Relaxed);
        assert!(find(&node, &placement).is_some());
        let balanced = NodeConfig { balance: Balance::Steal, ..config(&placement, Policy::Rr) };
        let node = NodeSegment::create(&balanced).unwrap();
        node.rank(1).core.store(0, Relaxed);
        node.core(0).holder.store(2, Relaxed);
        assert_eq!(find(&node, &placement), None, "it has moved");
        node.rank(1).core.store(2, Relaxed);
        assert!(find(&node, &placement).is_some(), "there is no such core");
        node.rank(1).core.store(0, Relaxed);
        node.rank(1).home.store(0, Relaxed);
        assert!(find(&node, &placement).is_some(), "placements stay");
    }
}
