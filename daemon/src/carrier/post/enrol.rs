//! New ranks of a job that grows. They are enrolled at all nodes' carriers before the first of them runs, so no frame comes from one that is not known.

use std::io;

use vmpi_shared::control::Request;
use vmpi_shared::spawn_protocol::Birth;

use super::CarrierLoop;
use super::deliver::Held;
use crate::carrier::wire::{self, CREDITS};

impl CarrierLoop {
    /// # Errors
    /// The daemon cannot be told.
    pub(super) fn enrol(&mut self, world: u32, births: &[Birth]) -> io::Result<()> {
        let mut error = None;
        for birth in births {
            let rank = birth.rank as usize;
            let count = self.nodes.of_rank.len().max(rank + 1);
            self.nodes.of_rank.resize(count, birth.node);
            self.nodes.of_rank[rank] = birth.node;
            self.credits.resize(count, CREDITS);
            if birth.again
                && let Err(errno) = self.forget(birth.rank)
            {
                error = Some(format!("the memory of rank {rank}, which has ended, cannot be used again: {errno}"));
            }
        }
        self.daemon.send(&Request::Enrolled { world, error }, &[])
    }

    /// Another process gets the number of a rank that has ended: what was left for that one is nobody's.
    fn forget(&mut self, rank: u32) -> Result<(), nix::errno::Errno> {
        self.credits[rank as usize] = CREDITS;
        self.stalled.remove(&rank);
        for Held { envelope, payload, .. } in self.pending.remove(&rank).into_iter().flatten() {
            if wire::has_payload(&envelope) && payload.is_empty() {
                self.endpoint.give_back(&envelope);
            }
        }
        self.owed.retain(|(_, to), _| *to != rank);
        self.reborn.insert(rank);
        self.announced.retain(|(from, _), _| *from != rank);
        self.kept.forget(rank);
        if self.endpoint.is_local(rank) {
            self.endpoint.node.heaps().forget(rank);
            return self.endpoint.renew(rank);
        }
        let endpoint = &self.endpoint;
        endpoint.collect(rank, |envelope| {
            if wire::has_payload(envelope) && endpoint.payload(envelope).is_some() {
                endpoint.give_back(envelope);
            }
            true
        });
        Ok(())
    }
}
