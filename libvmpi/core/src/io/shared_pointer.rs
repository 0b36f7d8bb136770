//! The shared file pointer: one number in a memory file that all ranks of the opening communicator map.
//!
//! Rank 0 makes the memory file; the others open it through /proc/PID/fd. Nothing has a name, so nothing is left behind
//! whoever dies when; and a step of the pointer is one fetch_add, which nobody waits for.

#![allow(unsafe_code)]

use super::agree::agree;
use crate::coll;
use crate::comm::Communicator;
use crate::errors::{Class, Error, Result, fail};
use crate::process::{self, endpoint};
use std::cell::Cell;
use std::fs::OpenOptions;
use std::os::fd::OwnedFd;
use vmpi_shared::mem::segment::Segment;
use vmpi_shared::mem::sync::{AtomicU64, Ordering};

const LAYOUT: u64 = 0x696f_7074_7200_0001;
const BYTES: u64 = 4096;
/// Where the number lies: in etypes, written by every rank.
const AT: u64 = 64;

/// A file's shared pointer, in etypes of the view.
pub struct SharedPointer(Kind);

enum Kind {
    /// The only rank of the group keeps it itself.
    Own(Cell<u64>),
    Mapped(Segment),
    /// Why there is none: calls that need it say so.
    Missing(String),
}

impl SharedPointer {
    /// Collective over `comm`. Where the ranks cannot reach each other's memory files, the file works without it.
    ///
    /// # Errors
    /// Those of the messages this needs.
    pub fn open(comm: &Communicator) -> Result<SharedPointer> {
        if comm.size() == 1 {
            return Ok(SharedPointer(Kind::Own(Cell::new(0))));
        }
        let made = if comm.rank == 0 { Some(Segment::create("filepointer", LAYOUT, BYTES)) } else { None };
        let mut fd = (-1i32).to_ne_bytes();
        if let Some(Ok(segment)) = &made {
            fd = segment.raw_fd().to_ne_bytes();
        }
        coll::bcast_bytes(comm, &mut fd, 0)?;
        let fd = i32::from_ne_bytes(fd);
        let mapped = match made {
            Some(made) => made.map_err(|e| e.to_string()),
            None if fd < 0 => Err("rank 0 could not make it".into()),
            None if process::node_of(comm.local.world_rank(0)) != process::node_of(endpoint().me) => {
                Err("it lies in the memory of rank 0's node, and this rank is on another one".into())
            }
            None => match endpoint().node.peer_pid(comm.local.world_rank(0)) {
                Some(pid) => map(&format!("/proc/{pid}/fd/{fd}")),
                None => Err("the process of rank 0 is not known".into()),
            },
        };
        let outcome = mapped.as_ref().map(drop).map_err(|why| Error::new(Class::UnsupportedOperation, why.clone()));
        // All have opened it, or know that somebody could not, before rank 0 may close its descriptor.
        let agreed = agree(comm, outcome, 0);
        Ok(SharedPointer(match (mapped, agreed) {
            (Ok(segment), Ok(())) => Kind::Mapped(segment),
            (Err(why), _) => Kind::Missing(why),
            (_, Err(error)) => Kind::Missing(error.message),
        }))
    }

    fn word(&self) -> Option<&AtomicU64> {
        match &self.0 {
            // SAFETY: the segment is a page, `AT` is a multiple of eight in it, and all ranks use the word as an atomic.
            Kind::Mapped(segment) => Some(unsafe { segment.at(AT, 8).cast::<AtomicU64>().as_ref() }),
            _ => None,
        }
    }

    /// # Errors
    /// `Class::UnsupportedOperation` if the ranks could not set it up.
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            Kind::Missing(why) => {
                fail(Class::UnsupportedOperation, format!("this file has no shared file pointer: {why}"))
            }
            _ => Ok(()),
        }
    }

    pub fn get(&self) -> u64 {
        match (&self.0, self.word()) {
            (Kind::Own(own), _) => own.get(),
            (_, Some(word)) => word.load(Ordering::SeqCst),
            _ => 0,
        }
    }

    pub fn set(&self, etypes: u64) {
        match (&self.0, self.word()) {
            (Kind::Own(own), _) => own.set(etypes),
            (_, Some(word)) => word.store(etypes, Ordering::SeqCst),
            _ => {}
        }
    }

    /// Move it on; the place before the move is the caller's.
    pub fn advance(&self, etypes: u64) -> u64 {
        match (&self.0, self.word()) {
            (Kind::Own(own), _) => own.replace(own.get().wrapping_add(etypes)),
            (_, Some(word)) => word.fetch_add(etypes, Ordering::SeqCst),
            _ => 0,
        }
    }
}

fn map(path: &str) -> Result<Segment, String> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|e| format!("cannot open {path}: {e}"))?;
    Segment::map("filepointer", LAYOUT, OwnedFd::from(file)).map_err(|e| e.to_string())
}
