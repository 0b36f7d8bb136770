//! A rank whose process is a script that runs one MPI program after another.

use super::Job;
use vmpi_shared::dynamic::World;
use vmpi_shared::sched;

/// A number for program `count` of a world's ranks, which each node of a job counts for itself: no other one's that is running.
fn program_number(world: u32, count: u32) -> u32 {
    const PROGRAMS: u32 = 64;
    world.wrapping_mul(PROGRAMS).wrapping_add(count % PROGRAMS)
}

impl Job {
    /// The MPI process of a rank is over, and another program of the same script starts MPI (`sh -c "./a; ./b"`): the rank runs on in
    /// a world of its own.
    ///
    /// All ranks of the old world have come to its MPI_Finalize, so nobody sends to this one there any more; whoever has not left that
    /// barrier yet only looks at its cell and wakes this rank for nothing.
    pub(super) fn begin_again(&mut self, rank: u32) {
        let entry = &mut self.ranks[rank as usize];
        if let Some(old) = entry.attachment.take() {
            self.live -= u32::from(old.alive && old.pid != entry.pid);
        }
        if !entry.died {
            sched::rank_died(&self.node, rank);
        }
        (entry.died, entry.finalized) = (false, false);
        entry.wrapper_deadline = None;
        entry.program_count += 1;
        let (world, count) = (entry.world, entry.program_count);
        // Its queues stay as they are: others of the new world may have sent to it already. What the old program has left there is of
        // contexts that nobody asks for any more.
        self.node.renew(rank, self.placement[rank as usize]);
        self.again.entry((world, count)).or_insert_with(|| {
            let first = &self.worlds[world];
            let context = match self.spec.nodes {
                Some(_) => self.segment.agreed_context(program_number(first.number, count)),
                None => self.segment.new_context(),
            };
            World { context, parent: None, ..first.clone() }
        });
        // All have left the world before the last one.
        if count > 2
            && let Some(old) = self.again.remove(&(world, count - 2))
        {
            self.segment.reclaim_context(old.context);
        }
    }

    /// The MPI_COMM_WORLD of the process that is `rank` now.
    pub fn world_of(&self, rank: u32) -> World {
        let entry = &self.ranks[rank as usize];
        let again = self.again.get(&(entry.world, entry.program_count));
        again.unwrap_or(&self.worlds[entry.world]).clone()
    }
}
