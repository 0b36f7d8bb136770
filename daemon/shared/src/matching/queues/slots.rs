//! The slots of a rank's requests: taken, given back, kept.

use super::Queues;
use crate::matching::request::{ANY_SOURCE, FLAG_KEPT, NOBODY, outcome, state};

impl Queues<'_> {
    /// A fresh request slot; `None` if all are in use.
    #[inline]
    pub fn take_slot(&mut self) -> Option<u32> {
        let index = match self.head.slots_free {
            0 => {
                let index = self.head.slots_used;
                if index >= self.spare() {
                    return None;
                }
                self.head.slots_used += 1;
                index
            }
            free => {
                self.head.slots_free = self.slots[free as usize - 1].next;
                free - 1
            }
        };
        self.begin_slot(index);
        Some(index)
    }

    /// The last slot is for what must go although there is no room: [`Queues::take_slot`] never gives it.
    #[inline]
    fn spare(&self) -> u32 {
        self.slots.len() as u32 - 1
    }

    /// The slot for what must go, unless it is in use. Its state must be set at once.
    pub fn take_spare(&mut self) -> Option<u32> {
        let index = self.spare();
        if self.slots[index as usize].state != state::FREE {
            return None;
        }
        self.begin_slot(index);
        Some(index)
    }

    #[inline]
    fn begin_slot(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        slot.state = state::FREE;
        slot.flags = 0;
        slot.next = 0;
        slot.prev = 0;
        slot.next_service = 0;
        slot.outcome = outcome::GOOD;
        slot.blocks = 0;
        slot.progress = 0;
        slot.remote = 0;
        slot.len = 0;
        slot.matched_source = ANY_SOURCE;
        slot.from = NOBODY;
        self.head.slots_live += 1;
        self.head.slots_most = self.head.slots_most.max(self.head.slots_live);
    }

    #[inline]
    pub fn free_slot(&mut self, index: u32) {
        let spare = self.spare();
        let slot = &mut self.slots[index as usize];
        slot.state = state::FREE;
        if index != spare {
            slot.next = self.head.slots_free;
            self.head.slots_free = index + 1;
        }
        self.head.slots_live -= 1;
    }

    /// The request in slot `index` is finished with.
    #[inline]
    pub fn release_slot(&mut self, index: u32) {
        if self.slots[index as usize].flags & FLAG_KEPT != 0 {
            self.slots[index as usize].state = state::KEPT;
        } else {
            self.free_slot(index);
        }
    }
}
