//! Requests of operations that are under way when their call returns (MPI_Rput, ...).

use super::operation::{Operation, STARTED};
use crate::errors::Result;
use crate::p2p::Slot;
use crate::request::{self, Progress};
use crate::status::Status;
use std::rc::Rc;

/// While it lives, what this thread begins counts for a request.
pub struct Starting(());

impl Starting {
    pub fn begin() -> Starting {
        STARTED.set(Some(Vec::new()));
        Starting(())
    }

    /// The request of what has been begun: complete at once, unless it will be answered.
    pub fn request(self) -> crate::handle::Request {
        let mut operations = STARTED.take().unwrap_or_default();
        operations.retain(|operation| !operation.left);
        if operations.is_empty() {
            return request::insert_done(Status::EMPTY);
        }
        request::insert(Box::new(Requested { operations }))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        STARTED.set(None);
    }
}

/// Operations that a request waits for.
struct Requested {
    operations: Vec<Rc<Operation>>,
}

impl Progress for Requested {
    fn advance(&mut self) -> Result<Option<Status>> {
        if !self.operations.iter().all(|operation| operation.is_over()) {
            return Ok(None);
        }
        self.operations.iter().try_for_each(|operation| operation.check())?;
        Ok(Some(Status::EMPTY))
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        slots.extend(self.operations.iter().filter(|o| o.outcome.get().is_none()).map(|o| o.slot));
    }
}
