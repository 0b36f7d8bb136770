//! A send and a receive under one request (MPI_Isendrecv and MPI_Isendrecv_replace).

use crate::errors::Result;
use crate::p2p::{Slot, poll};
use crate::request::table::Progress;
use crate::status::Status;

/// Both messages have been started; the receive's status is the operation's.
pub struct Exchange {
    incoming: Option<Slot>,
    outgoing: Option<Slot>,
    received: Result<Status>,
    sent: Result<()>,
    /// What leaves, packed, where the receive is to overwrite the buffer.
    packed: Option<Vec<u8>>,
}

impl Exchange {
    /// `outgoing`: none if the send is complete already. `packed` is kept until the send is over.
    pub fn new(incoming: Slot, outgoing: Option<Slot>, packed: Option<Vec<u8>>) -> Exchange {
        Exchange { incoming: Some(incoming), outgoing, received: Ok(Status::EMPTY), sent: Ok(()), packed }
    }
}

impl Progress for Exchange {
    fn advance(&mut self) -> Result<Option<Status>> {
        if let Some(result) = self.incoming.and_then(poll) {
            self.incoming = None;
            self.received = result;
        }
        if let Some(result) = self.outgoing.and_then(poll) {
            self.outgoing = None;
            self.packed = None;
            self.sent = result.map(drop);
        }
        if self.incoming.is_some() || self.outgoing.is_some() {
            return Ok(None);
        }
        let received = self.received.clone()?;
        self.sent.clone()?;
        Ok(Some(received))
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        slots.extend(self.incoming);
        slots.extend(self.outgoing);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.outgoing.is_some() {
            // The job is ending in mid-flight: the receiver may still read it.
            std::mem::forget(self.packed.take());
        }
    }
}
