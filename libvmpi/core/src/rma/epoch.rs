//! Epochs: what a member may do with a window when (MPI 4.1 section 12.5).

use super::Window;
use crate::errors::{Class, Result, fail};
use std::collections::BTreeMap;

/// What this member has opened to access others' memory.
#[derive(Clone, Debug)]
pub(super) enum Access {
    None,
    /// MPI_Win_fence; `used`: something was accessed since. Unused it counts as closed: a program may lock next.
    Fence {
        used: bool,
    },
    /// MPI_Win_start.
    Started {
        targets: Vec<u32>,
    },
    /// MPI_Win_lock; a lock on MPI_PROC_NULL is not among them ([`Epoch::null_lock`]).
    Locks(BTreeMap<u32, Held>),
    /// MPI_Win_lock_all.
    All {
        checked: bool,
    },
}

/// A lock that this member holds; `None`: MPI_MODE_NOCHECK, nothing was taken.
#[derive(Copy, Clone, Debug)]
pub(super) struct Held {
    pub exclusive: Option<bool>,
}

/// What this member has opened of its own memory (MPI_Win_post).
#[derive(Clone, Debug)]
pub(super) struct Exposure {
    /// It is over when the member's `completed` has come to this.
    pub until: u64,
}

/// The state of one member.
#[derive(Debug)]
pub(super) struct Epoch {
    pub access: Access,
    pub exposure: Option<Exposure>,
    /// Access epochs on this member that ended in exposure epochs that are over.
    pub completed: u64,
    /// For each member how many of its posts this one has started.
    pub posts: Vec<u32>,
    /// Its open locks include one on MPI_PROC_NULL.
    pub null_lock: bool,
}

impl Epoch {
    pub fn new(members: u32) -> Epoch {
        Epoch { access: Access::None, exposure: None, completed: 0, posts: vec![0; members as usize], null_lock: false }
    }

    /// May an access epoch be opened (by anything but a fence)?
    pub fn check_closed(&self, what: &str) -> Result<()> {
        match &self.access {
            Access::None | Access::Fence { used: false } => Ok(()),
            other => fail(Class::RmaSync, format!("{what} while {} is open", other.describe())),
        }
    }

    /// A lock has been given back: with the last one the epoch is over.
    pub fn close_locks(&mut self) {
        if matches!(&self.access, Access::Locks(held) if held.is_empty() && !self.null_lock) {
            self.access = Access::None;
        }
    }
}

impl Access {
    pub fn describe(&self) -> &'static str {
        match self {
            Access::None => "no epoch",
            Access::Fence { .. } => "an epoch of MPI_Win_fence",
            Access::Started { .. } => "an epoch of MPI_Win_start",
            Access::Locks(_) => "an epoch of MPI_Win_lock",
            Access::All { .. } => "an epoch of MPI_Win_lock_all",
        }
    }
}

impl Window {
    /// May `target` (`None`: MPI_PROC_NULL) be accessed now?
    ///
    /// # Errors
    /// `Class::RmaSync` if no epoch is open for it.
    #[inline]
    pub(super) fn check_access(&self, target: Option<u32>) -> Result<()> {
        let mut epoch = self.epoch.borrow_mut();
        let open = match &mut epoch.access {
            Access::All { .. } => true,
            Access::Fence { used } => {
                *used = true;
                true
            }
            Access::Locks(held) => target.is_none_or(|target| held.contains_key(&target)),
            Access::Started { targets } => target.is_none_or(|target| targets.contains(&target)),
            Access::None => false,
        };
        if open { Ok(()) } else { no_epoch(&epoch.access, target) }
    }

    /// Is what is accessed now complete at the next fence?
    pub(super) fn is_between_fences(&self) -> bool {
        matches!(self.epoch.borrow().access, Access::Fence { .. })
    }

    /// Is `target` (`None`: any) open by a lock, as flushing needs?
    ///
    /// # Errors
    /// `Class::RmaSync` if not.
    pub(super) fn check_passive(&self, target: Option<u32>) -> Result<()> {
        let epoch = self.epoch.borrow();
        let open = match &epoch.access {
            Access::All { .. } => true,
            Access::Locks(held) => target.is_none_or(|target| held.contains_key(&target)),
            _ => false,
        };
        if open { Ok(()) } else { no_epoch(&epoch.access, target) }
    }
}

#[cold]
fn no_epoch(access: &Access, target: Option<u32>) -> Result<()> {
    let who = target.map_or("MPI_PROC_NULL".to_string(), |target| format!("rank {target}"));
    fail(Class::RmaSync, format!("no epoch is open in which {who} can be accessed so ({} is)", access.describe()))
}
