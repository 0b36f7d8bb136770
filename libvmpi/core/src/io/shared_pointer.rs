//! The shared file pointer: one number that all ranks of the opening communicator reach.
//!
//! On one node it lies in a memory file: rank 0 makes it; the others open it (`passing`). Nothing has a name, so nothing is left behind
//! whoever dies when; and a step of the pointer is one fetch_add, which nobody waits for. Over several nodes it is an [`rma::Counter`], which lies
//! on rank 0's node and which that node's carrier steps for the ranks of other nodes.

#![allow(unsafe_code)]

use super::agree::agree;
use crate::calls::CALL_WINDOW;
use crate::coll;
use crate::comm::Communicator;
use crate::errors::{Class, Error, Result, fail};
use crate::nodes;
use crate::p2p;
use crate::passing::Told;
use crate::request;
use crate::rma::Counter;
use crate::simulate;
use crate::simulate::operations::operate;
use std::cell::Cell;
use std::rc::Rc;
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
    Spread(Counter),
    /// Why there is none: calls that need it say so.
    Missing(String),
}

impl SharedPointer {
    /// Collective over `comm`. Where the ranks cannot reach each other's memory files, the file works without it.
    ///
    /// # Errors
    /// Those of the messages this needs.
    pub fn open(comm: &Communicator) -> Result<SharedPointer> {
        let first = comm.local.world_rank(0);
        match comm.local.iter().find(|rank| !nodes::same_node(first, *rank)) {
            _ if comm.size() == 1 => Ok(SharedPointer(Kind::Own(Cell::new(0)))),
            None => Self::open_on_node(comm),
            Some(_) => Self::open_spread(comm),
        }
    }

    fn open_on_node(comm: &Communicator) -> Result<SharedPointer> {
        let made = if comm.rank == 0 { Some(Segment::create("filepointer", LAYOUT, BYTES)) } else { None };
        let made = made.map(|made| {
            let segment = made.map_err(|error| error.to_string())?;
            let told = Told::of(comm, segment.fd()).map_err(|error| error.message)?;
            Ok((segment, told))
        });
        let mut told = match &made {
            Some(Ok((_, told))) => told.encode(),
            _ => Told::NOTHING.encode(),
        };
        coll::bcast_bytes(comm, &mut told, 0)?;
        let told = Told::decode(told);
        let mapped = match made {
            Some(made) => made.map(|(segment, _)| segment),
            None if told.is_nothing() => Err("rank 0 could not make it".into()),
            None => told
                .open(comm.local.world_rank(0))
                .and_then(|file| Segment::map("filepointer", LAYOUT, file).map_err(|error| error.to_string())),
        };
        // All have opened it, or know that somebody could not, before rank 0 may close its descriptor.
        let agreed = agree_on(comm, &mapped);
        Ok(SharedPointer(match (mapped, agreed) {
            (Ok(segment), Ok(())) => Kind::Mapped(segment),
            (Err(why), _) => Kind::Missing(why),
            (_, Err(error)) => Kind::Missing(error.message),
        }))
    }

    fn open_spread(comm: &Communicator) -> Result<SharedPointer> {
        let opened = Counter::open(comm)?.map_err(|error| error.message);
        let agreed = agree_on(comm, &opened);
        Ok(SharedPointer(match (opened, agreed) {
            (Ok(mut counter), Ok(())) => {
                counter.settled();
                Kind::Spread(counter)
            }
            (Ok(counter), Err(error)) => {
                counter.close(comm);
                Kind::Missing(error.message)
            }
            (Err(why), _) => Kind::Missing(why),
        }))
    }

    /// The file is closed by all ranks.
    pub fn close(&self, comm: &Communicator) {
        if let Kind::Spread(counter) = &self.0 {
            counter.close(comm);
        }
    }

    fn word(&self) -> Option<&AtomicU64> {
        match &self.0 {
            // SAFETY: the segment is a page, `AT` is a multiple of eight in it, and all ranks use the word as an atomic.
            Kind::Mapped(segment) => Some(unsafe { segment.at(AT, 8).cast::<AtomicU64>().as_ref() }),
            Kind::Spread(counter) => counter.here(),
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

    /// Where it is.
    ///
    /// # Errors
    /// As [`SharedPointer::advance`].
    pub fn get(&self, comm: &Communicator) -> Result<u64> {
        self.advance(comm, 0)
    }

    /// Put it somewhere; by rank 0, for all, who meet around this.
    pub fn set(&self, etypes: u64) {
        match (&self.0, self.word()) {
            (Kind::Own(own), _) => own.set(etypes),
            (_, Some(word)) => word.store(etypes, Ordering::SeqCst),
            _ => {}
        }
    }

    /// Move it on; the place before the move is the caller's.
    ///
    /// # Errors
    /// `Class::NoMem` if this rank has too much under way, where others of the group are on other nodes.
    pub fn advance(&self, comm: &Communicator, etypes: u64) -> Result<u64> {
        match &self.0 {
            Kind::Own(own) => Ok(own.replace(own.get().wrapping_add(etypes))),
            Kind::Spread(counter) => counter.add(comm, etypes),
            Kind::Mapped(_) if simulate::is_on() => self.advance_in_virtual_time(comm, etypes),
            _ => Ok(self.word().map_or(0, |word| word.fetch_add(etypes, Ordering::SeqCst))),
        }
    }
}

impl SharedPointer {
    /// By an operation at the group's first rank, which takes no part: who comes first is first in virtual time.
    fn advance_in_virtual_time(&self, comm: &Communicator, etypes: u64) -> Result<u64> {
        let Kind::Mapped(segment) = &self.0 else { return Ok(0) };
        let (at, before) = (segment.at(AT, 8).cast::<AtomicU64>(), Rc::new(Cell::new(0)));
        let (first, slot) = (comm.local.world_rank(0), p2p::ask::open(comm.local.world_rank(0), false)?);
        let found = before.clone();
        let deed = move || {
            // SAFETY: as in `word`; this rank waits until it is done, with the segment in hand.
            found.set(unsafe { at.as_ref() }.fetch_add(etypes, Ordering::SeqCst));
            Vec::new()
        };
        operate(first, slot.0, (8, 8), 0, Some(Box::new(deed)));
        request::wait_slots(&[slot], CALL_WINDOW);
        p2p::ask::close(slot);
        Ok(before.get())
    }
}

/// All have it, or know that somebody has not.
fn agree_on<T>(comm: &Communicator, mine: &std::result::Result<T, String>) -> Result<()> {
    let outcome = mine.as_ref().map(drop).map_err(|why| Error::new(Class::UnsupportedOperation, why.clone()));
    agree(comm, outcome, 0)
}
