//! A number that ranks of several nodes step: the shared pointer of a file.
//!
//! It lies in a segment on the node of the group's first rank. The ranks there have mapped it, and so has their carrier, who steps it for all others
//! (`ask::What::Step`). So a step is one atomic addition wherever it comes from, nobody waits for another's step, no rank has to be in MPI, and none of
//! it needs single copy. Death story: that of a window over nodes.

use super::create::{next_serial, open_segment};
use super::remote_node::Far;
use crate::calls::CALL_WINDOW;
use crate::coll;
use crate::comm::Communicator;
use crate::errors::{Class, Error, Result, fail};
use crate::failure;
use crate::nodes;
use crate::p2p;
use crate::passing::{TOLD_BYTES, Told};
use crate::process::endpoint;
use crate::request::{progress, wait_more};
use vmpi_shared::ask::{Ask, Opening, What};
use vmpi_shared::matching::request::outcome;
use vmpi_shared::mem::sync::{AtomicU64, Ordering};
use vmpi_shared::window::{Shape, Window as Control};

/// A number of a group whose ranks live on several nodes.
pub struct Counter {
    far: Far,
    /// On the node of the group's first rank.
    control: Option<Control>,
}

impl Counter {
    /// Collective over `comm`. The outer result is the communicator's, the inner one this rank's own; once all have theirs it may be
    /// [settled](Counter::settled).
    ///
    /// # Errors
    /// `Class::NoMem` or `Class::RmaShared` if the segment cannot be made or mapped.
    pub fn open(comm: &Communicator) -> Result<Result<Counter>> {
        let first = comm.local.world_rank(0);
        let members: Vec<bool> = comm.local.iter().map(|rank| !nodes::same_node(endpoint().me, rank)).collect();
        let shape = Shape { members: comm.size(), dynamic: false, data_bytes: size_of::<u64>() as u64 };
        let is_here = !members[0];
        let (mut serial, mut told) = (0, Told::NOTHING);
        let mut made = Ok(None);
        let mut far = Far::new((first as i32, 0), members);
        if comm.rank == 0 {
            serial = next_serial();
            far.name.1 = serial;
            made = make(comm, shape, &far).and_then(|control| {
                told = Told::of(comm, control.fd())?;
                Ok(Some(control))
            });
        }
        let mut said = [0; 4 + TOLD_BYTES];
        said[..4].copy_from_slice(&serial.to_ne_bytes());
        said[4..].copy_from_slice(&told.encode());
        coll::bcast_bytes(comm, &mut said, 0)?;
        let (number, told) = said.split_first_chunk().expect("four bytes");
        far.name.1 = u32::from_ne_bytes(*number);
        let told = Told::decode(told.try_into().expect("what is left"));
        let control = match made {
            Ok(None) if told.is_nothing() => {
                let why = "rank 0 of its group, which makes it, has failed";
                fail(Class::RmaShared, format!("the counter's segment cannot be made: {why}"))
            }
            Ok(None) if is_here => open_segment(comm, shape, 0, told).map(Some),
            made => made,
        };
        Ok(control.map(|control| Counter { far, control }))
    }

    /// All have opened it, or know that somebody could not.
    pub fn settled(&mut self) {
        if let Some(control) = &mut self.control {
            control.close_fd();
        }
    }

    /// Nobody will step it any more.
    pub fn close(&self, comm: &Communicator) {
        if comm.rank == 0 {
            self.far.close(comm);
        }
    }

    /// The number itself, on the node of the group's first rank.
    pub fn here(&self) -> Option<&AtomicU64> {
        self.control.as_ref().and_then(Control::counter)
    }

    /// Add to it; what it was before.
    ///
    /// # Errors
    /// `Class::NoMem` if too much is under way.
    pub fn add(&self, comm: &Communicator, amount: u64) -> Result<u64> {
        if let Some(counter) = self.here() {
            return Ok(counter.fetch_add(amount, Ordering::SeqCst));
        }
        let first = comm.local.world_rank(0);
        let slot = p2p::ask::open(first, false)?;
        let endpoint = endpoint();
        let ask = Ask { offset: amount, ..Ask::new(What::Step, self.far.name, comm.rank, 0) };
        endpoint.deliver(first, &ask.envelope(endpoint.me, slot.0, 0));
        loop {
            let seen = progress();
            match p2p::ask::close_with_number(slot) {
                Some((outcome::GOOD, number)) => return Ok(number),
                Some((outcome, _)) => {
                    return Err(failure::error_of(outcome, first).unwrap_or_else(|| refused(first, outcome)));
                }
                None => wait_more(seen, &[slot], CALL_WINDOW),
            }
        }
    }
}

#[cold]
fn refused(first: u32, outcome: u32) -> Error {
    let why = std::io::Error::from_raw_os_error(failure::errno_of(outcome));
    let node = nodes::node_name_of(first);
    Error::new(Class::Other, format!("the carrier of node {node} cannot step a counter: {why}"))
}

/// Make the segment and tell this node's carrier of it.
fn make(comm: &Communicator, shape: Shape, far: &Far) -> Result<Control> {
    let control = Control::create(shape)
        .map_err(|error| Error::new(Class::NoMem, format!("the counter's segment cannot be made: {error}")))?;
    (0..).zip(comm.local.iter()).for_each(|(member, rank)| control.member(member).set_rank(rank));
    let Shape { members, dynamic, data_bytes } = shape;
    far.open(comm, Opening { fd: control.raw_fd(), members, dynamic, data_bytes })?;
    Ok(control)
}
