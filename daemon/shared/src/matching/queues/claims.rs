//! In virtual time: which of the messages that are known to come end a wait, whatever else may still come.

use super::Queues;
use crate::matching::envelope::{Envelope, kind};
use crate::matching::request::{ANY_SOURCE, FLAG_AWAITED, FLAG_CLAIMED, NOBODY, Slot, state};

/// What would end a wait for all that is awaited.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct Hope {
    /// So many arrivals at least; 0: nobody waits so.
    pub arrivals: u32,
    /// Whose messages the receives take: a bit for each rank of the job, by its number modulo 64.
    pub from: u64,
}

impl Hope {
    pub(crate) fn bit_of(rank: u32) -> u64 {
        1 << (rank % 64)
    }
}

/// What its owner has chosen so far, in one look at what comes.
#[derive(Default)]
pub struct Claims {
    slots: Vec<u32>,
    /// Senders whose next message may be for a receive that must wait: those behind it are left, too.
    held: Vec<u32>,
}

fn is_named(slot: &Slot) -> bool {
    slot.source != ANY_SOURCE && slot.from != NOBODY
}

impl Queues<'_> {
    /// What must come to the rank, which waits until all that is awaited is over. `None`: one of its receives may take what anybody sends, and which message
    /// that is can be known only when nobody can send one that comes earlier.
    pub fn hope(&self, missing: u32) -> Option<Hope> {
        let mut hope = Hope { arrivals: missing, from: 0 };
        let used = (self.head.slots_used as usize).min(self.slots.len());
        for slot in self.slots[..used].iter().filter(|slot| slot.flags & FLAG_AWAITED != 0) {
            if slot.state == state::POSTED {
                if !is_named(slot) {
                    return None;
                }
                hope.from |= Hope::bit_of(slot.from);
            }
        }
        Some(hope)
    }

    /// May the rank take this, which arrives at any time, for what it waits for?
    pub fn claim(&mut self, claims: &mut Claims, envelope: &Envelope) -> bool {
        let awaited =
            |slot: Option<&Slot>, at: u32| slot.is_some_and(|slot| slot.state == at && slot.flags & FLAG_AWAITED != 0);
        match envelope.kind {
            kind::INLINE | kind::SLAB | kind::RTS => {}
            kind::FIN => return awaited(self.slots.get(envelope.request as usize), state::SENT),
            kind::PLACED => return awaited(self.slots.get(envelope.request as usize), state::PULLING),
            _ => return false,
        }
        let Some((_, index)) = self.first_posted(envelope, FLAG_CLAIMED) else { return false };
        let slot = &mut self.slots[index as usize];
        let takes = is_named(slot) && slot.flags & FLAG_AWAITED != 0 && envelope.is_eager();
        if !takes || claims.held.contains(&envelope.from) {
            claims.held.push(envelope.from);
            return false;
        }
        slot.flags |= FLAG_CLAIMED;
        claims.slots.push(index);
        true
    }

    /// What has been chosen is matched next.
    pub fn let_claims_go(&mut self, claims: &Claims) {
        for index in &claims.slots {
            self.slots[*index as usize].flags &= !FLAG_CLAIMED;
        }
    }
}
