//! Has a rank scribbled over the node segment? For the daemon, which then ends the job with a sentence.
//!
//! Finding nothing proves nothing; what is found is certain, because vmpi never writes such words.

use super::run_state::{RunState, holder_rank};
use crate::mem::sync::Ordering::Relaxed;
use crate::node::NodeSegment;

/// A word that cannot be there, in words; `placement` is the core of each rank as the job began.
pub fn find(node: &NodeSegment, placement: &[u32]) -> Option<String> {
    for (rank, core) in placement.iter().enumerate() {
        let descriptor = node.rank(rank as u32);
        let state = descriptor.state.load(Relaxed);
        if RunState::from_word(state) == RunState::Damaged {
            return Some(format!("the state of rank {rank} is {state:#x}"));
        }
        let found = descriptor.core.load(Relaxed);
        if found != *core {
            return Some(format!("the core of rank {rank} is {found:#x}, not {core}"));
        }
    }
    (0..node.header().cores).find_map(|core| {
        let holder = holder_rank(node.core(core).holder.load(Relaxed))?;
        (placement.get(holder as usize) != Some(&core)).then(|| format!("core {core} is held by rank {holder:#x}"))
    })
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::control::{OnBlock, Policy, Wtime};
    use crate::node::NodeConfig;

    #[test]
    fn only_what_cannot_be_is_damage() {
        let placement = [0, 1, 0];
        let node = NodeSegment::create(&NodeConfig {
            job: 1,
            ranks: 3,
            v: 2,
            cpus: vec![0, 1],
            placement: placement.to_vec(),
            policy: Policy::Rr,
            on_block: OnBlock::Release,
            wtime: Wtime::Wall,
            quantum_ms: 0,
        })
        .unwrap();
        assert_eq!(find(&node, &placement), None);
        for holder in [super::super::IDLE, super::super::SPINNING, super::super::CLAIMED, 1, 3] {
            node.core(0).holder.store(holder, Relaxed);
            assert_eq!(find(&node, &placement), None);
        }
        node.core(0).holder.store(2, Relaxed);
        assert!(find(&node, &placement).is_some_and(|text| text.contains("held by rank 0x1")), "rank 1 is on core 1");
        node.core(0).holder.store(0, Relaxed);
        node.rank(2).state.store(9, Relaxed);
        assert!(find(&node, &placement).is_some_and(|text| text.contains("the state of rank 2 is 0x9")));
        node.rank(2).state.store(0, Relaxed);
        node.rank(1).core.store(0, Relaxed);
        assert!(find(&node, &placement).is_some());
    }
}
