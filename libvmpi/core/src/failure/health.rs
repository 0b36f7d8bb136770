//! What deaths and revocations mean for a communicator.

use crate::errors::{Class, Error, Result};
use crate::group::Members;
use crate::guarded::EntryGuarded;
use crate::plane::Plane;
use crate::process::{endpoint, endpoint_if_any};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::{Rc, Weak};

/// The state of a communicator: shared by an intercommunicator and its private local one.
#[derive(Debug)]
pub struct Health {
    pub(crate) contexts: Vec<u32>,
    pub(crate) groups: Vec<Rc<Members>>,
    /// All messages are of one collective step, construction tags included.
    strict: bool,
    pub(crate) revoked: Cell<bool>,
    /// Number of the newest failure among the members; 0: none has failed.
    pub(crate) newest: Cell<u32>,
    /// Failures up to this number are acknowledged.
    pub(crate) acked: Cell<u32>,
    /// Agreements so far.
    pub(crate) agreements: Cell<u64>,
}

struct Known {
    healths: Vec<Weak<Health>>,
    /// Entries of the list of revocations that have been read.
    revocations: usize,
    /// Contexts revoked before this process had the communicator.
    early: BTreeSet<u32>,
    /// Live healths at which the list is cleaned up.
    clean_at: usize,
}

static KNOWN: EntryGuarded<Known> =
    EntryGuarded::new(Known { healths: Vec::new(), revocations: 0, early: BTreeSet::new(), clean_at: 64 });

impl Health {
    pub(crate) fn new(contexts: Vec<u32>, groups: Vec<Rc<Members>>, strict: bool) -> Rc<Health> {
        let health = Rc::new(Health {
            contexts,
            groups,
            strict,
            revoked: Cell::new(false),
            newest: Cell::new(0),
            acked: Cell::new(0),
            agreements: Cell::new(0),
        });
        KNOWN.with(|known| {
            health.revoked.set(health.contexts.iter().any(|context| known.early.remove(context)));
            if known.healths.len() >= known.clean_at {
                known.healths.retain(|health| health.strong_count() > 0);
                known.clean_at = 2 * known.healths.len().max(32);
            }
            known.healths.push(Rc::downgrade(&health));
        });
        health.examine();
        health
    }

    /// A view of the communicator of `other`: revoked with it.
    pub(crate) fn follow(&self, other: &Health) {
        self.revoked.set(other.revoked.get());
    }

    /// Job ranks of all members.
    pub(crate) fn members(&self) -> impl Iterator<Item = u32> + '_ {
        self.groups.iter().flat_map(|group| group.iter())
    }

    /// Look for failed members.
    fn examine(&self) {
        let Some(endpoint) = endpoint_if_any() else { return };
        if endpoint.job.failures() > 0 {
            let newest = self.members().filter_map(|rank| endpoint.node.failure(rank)).max();
            self.newest.set(newest.unwrap_or(0));
        }
    }

    /// May an operation that needs no other process in particular be started?
    ///
    /// # Errors
    /// `Class::Revoked`.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.revoked.get() { Err(error(Class::Revoked, None)) } else { Ok(()) }
    }

    /// May one that needs all members be started, or go on?
    ///
    /// # Errors
    /// `Class::Revoked`, `Class::ProcFailed`.
    #[inline]
    pub(crate) fn check_all(&self) -> Result<()> {
        if self.revoked.get() || self.newest.get() != 0 { Err(self.error_all()) } else { Ok(()) }
    }

    #[cold]
    fn error_all(&self) -> Error {
        if self.revoked.get() {
            return error(Class::Revoked, None);
        }
        let failed = self.members().find(|rank| endpoint().node.failure(*rank).is_some());
        error(Class::ProcFailed, failed)
    }

    /// May a message still come from job rank `source` (`None`: from anybody)?
    ///
    /// # Errors
    /// `Class::Revoked`, `Class::ProcFailed`.
    #[inline]
    pub(crate) fn check_source(&self, source: Option<u32>) -> Result<()> {
        if super::is_quiet() { Ok(()) } else { self.check_source_now(source, Class::ProcFailed) }
    }

    /// As `check_source`, for a call that does not wait.
    ///
    /// # Errors
    /// `Class::ProcFailedPending` if a message may still come from others.
    #[inline]
    pub(crate) fn check_source_now_or_later(&self, source: Option<u32>) -> Result<()> {
        if super::is_quiet() { Ok(()) } else { self.check_source_now(source, Class::ProcFailedPending) }
    }

    #[cold]
    fn check_source_now(&self, source: Option<u32>, from_anybody: Class) -> Result<()> {
        self.check()?;
        match source {
            Some(rank) if super::is_silent(rank) => Err(error(Class::ProcFailed, source)),
            None if self.has_unacknowledged() => Err(error(from_anybody, None)),
            _ => Ok(()),
        }
    }

    /// What is to become of a message in this plane, with this tag, from or to job rank `peer` (`None`: from anybody)?
    pub(crate) fn verdict(&self, plane: Plane, tag: i32, peer: Option<u32>) -> Option<Class> {
        if self.revoked.get() {
            return Some(Class::Revoked);
        }
        (peer.is_some_and(super::is_silent) || (self.newest.get() != 0 && self.needs_all(plane, tag)))
            .then_some(Class::ProcFailed)
    }

    /// Is such a message a part of an operation of all members?
    pub(crate) fn needs_all(&self, plane: Plane, tag: i32) -> bool {
        self.strict || (plane == Plane::Collective && tag & crate::plane::USER_TAG_BIT == 0)
    }

    /// Has a member failed that the program has not acknowledged?
    pub(crate) fn has_unacknowledged(&self) -> bool {
        self.newest.get() > self.acked.get()
    }
}

/// An error about the failed job rank, or about the communicator.
pub(crate) fn error(class: Class, failed: Option<u32>) -> Error {
    let text = match (class, failed) {
        (Class::Revoked, _) => "the communicator has been revoked".into(),
        (Class::ProcFailedPending, _) => {
            "a process that the message may come from has failed; acknowledge that (MPIX_Comm_failure_ack) to wait for the others".into()
        }
        (_, Some(rank)) => format!("rank {rank} of the job, which takes part, has failed"),
        (_, None) => "a process that takes part has failed".into(),
    };
    Error::new(class, text)
}

/// Read what has been revoked, and which members have failed.
pub(crate) fn learn() {
    let job = &endpoint().job;
    KNOWN.with(|known| {
        let healths: Vec<Rc<Health>> = known.healths.iter().filter_map(Weak::upgrade).collect();
        while let Some(context) = job.revocation(known.revocations) {
            known.revocations += 1;
            let mut mine = healths.iter().filter(|health| health.contexts.contains(&context)).peekable();
            if mine.peek().is_none() {
                known.early.insert(context);
            }
            mine.for_each(|health| health.revoked.set(true));
        }
        healths.iter().for_each(|health| health.examine());
    });
}

/// Entries of the list of revocations that this process has read.
pub(crate) fn revocations_read() -> usize {
    KNOWN.with(|known| known.revocations)
}
