//! Where a rank's part of the segment lies in this process.

use crate::matching::inbox::Inbox;
use crate::matching::queues::{BINS, Bin, QueueHead, Queues, Reserve, Store, Unexpected};
use crate::matching::request::Slot;

/// Where a rank's inbox and queues lie: for their owner, who needs that often, and for one who does not own them and only looks (`endpoint::inspect`). Valid while
/// the `JobSegment` is that it comes from.
#[derive(Copy, Clone)]
pub(crate) struct Parts {
    pub(super) inbox: Inbox<'static>,
    pub(crate) head: *mut QueueHead,
    pub(super) bins: *mut [Bin; BINS],
    pub(crate) slots: *mut [Slot],
    pub(super) unexpected: *mut Unexpected,
    pub(super) reserve: *const Reserve,
}

// SAFETY: addresses of shared memory, which is the same for all threads; who may use what lies there is said by `queues`.
unsafe impl Send for Parts {}

impl Parts {
    /// # Safety
    /// The segment outlives the result.
    #[inline(always)]
    pub(crate) unsafe fn inbox<'a>(&self) -> Inbox<'a> {
        self.inbox
    }

    /// # Safety
    /// As `JobSegment::queues`, and as `inbox`.
    #[inline(always)]
    pub(crate) unsafe fn queues<'a>(&self) -> Queues<'a> {
        // SAFETY: exclusive access is the caller's promise.
        unsafe {
            Queues {
                inbox: self.inbox,
                head: &mut *self.head,
                bins: &mut *self.bins,
                slots: &mut *self.slots,
                unexpected: self.store(),
            }
        }
    }

    /// # Safety
    /// As `queues`; who only looks reads volatile.
    #[inline(always)]
    pub(crate) unsafe fn store<'a>(&self) -> Store<'a> {
        // SAFETY: the array is as long as the reserve says; the caller's promises.
        unsafe { Store::new(self.unexpected, &*self.reserve) }
    }
}
