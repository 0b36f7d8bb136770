//! Process-wide state of this rank, guarded by the entry lock.
//!
//! Every MPI entry point holds the entry lock ([`crate::lock::enter`]) while it runs, so at any time at most one
//! thread touches core objects. [`EntryGuarded`] is a cell for such an object. It is not re-entrant: `with` must be left
//! before a callback of the program is called, because the callback may call MPI again; a nested `with` on the same
//! cell panics (and so ends the job with a message) instead of aliasing.

use std::cell::{Cell, UnsafeCell};

/// A value that only the thread holding the entry lock may reach.
pub struct EntryGuarded<T> {
    value: UnsafeCell<T>,
    busy: Cell<bool>,
}

// SAFETY: all access goes through `with`, which is only reached with the entry lock held (one thread at a time).
unsafe impl<T> Sync for EntryGuarded<T> {}

impl<T> EntryGuarded<T> {
    pub const fn new(value: T) -> EntryGuarded<T> {
        EntryGuarded { value: UnsafeCell::new(value), busy: Cell::new(false) }
    }

    /// Run `f` on the value. Do not call back into the program from inside `f`.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        assert!(!self.busy.replace(true), "vmpi: core object entered twice");
        // SAFETY: the entry lock excludes other threads, `busy` excludes this one.
        let result = f(unsafe { &mut *self.value.get() });
        self.busy.set(false);
        result
    }
}
