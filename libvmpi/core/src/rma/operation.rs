//! What a window has under way that will be answered: on members of other nodes, and in virtual time.

use super::Window;
use super::checked::Extent;
use crate::calls::CALL_WINDOW;
use crate::errors::{Class, Error, Result};
use crate::failure;
use crate::p2p::{self, Slot};
use crate::process::endpoint;
use crate::request::{progress, wait_more};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use vmpi_shared::matching::request::{NOBODY, outcome};

/// Operations under way that are borne.
const MOST_OPERATIONS: usize = 512;

thread_local! {
    /// What the request of an operation waits for (MPI_Rput, ...), while this thread starts one.
    pub(super) static STARTED: RefCell<Option<Vec<Rc<Operation>>>> = const { RefCell::new(None) };
}

/// Something under way that will be answered.
pub(super) struct Operation {
    pub target: u32,
    pub slot: Slot,
    /// For others of the window: it may be answered never, if one of them has failed.
    pub waits: bool,
    /// The origin's buffers are free, and nothing is to come back: only the target's side is under way.
    pub left: bool,
    /// Its answer, once it has been looked at.
    pub outcome: Cell<Option<u32>>,
    /// What went wrong where this process has done it itself: an error number of the system's.
    pub errno: Rc<Cell<i32>>,
    /// Memory that the carrier reads.
    #[expect(dead_code, reason = "held for its address, which the ask names")]
    pub keep: Option<Rc<Vec<u8>>>,
}

impl Operation {
    pub fn new(target: u32, slot: Slot, waits: bool) -> Operation {
        Operation { target, slot, waits, left: false, outcome: Cell::new(None), errno: Rc::default(), keep: None }
    }

    pub fn is_over(&self) -> bool {
        if self.outcome.get().is_none() {
            self.outcome.set(p2p::ask::close(self.slot));
        }
        self.outcome.get().is_some()
    }

    /// It is waited for no more.
    fn abandon(&self) {
        p2p::ask::abandon(self.slot);
        self.outcome.set(Some(outcome::GOOD));
    }

    /// Its error, once.
    pub fn check(&self) -> Result<()> {
        if let errno @ 1.. = self.errno.take() {
            return Err(inaccessible(self.target, errno));
        }
        match self.outcome.get() {
            Some(outcome) => {
                self.outcome.set(Some(outcome::GOOD));
                check(self.target, outcome)
            }
            None => Ok(()),
        }
    }
}

/// What an answer says.
fn check(target: u32, outcome: u32) -> Result<()> {
    if outcome == outcome::GOOD {
        return Ok(());
    }
    match failure::error_of(outcome, NOBODY) {
        Some(error) => Err(error),
        None => Err(inaccessible(target, failure::errno_of(outcome))),
    }
}

fn inaccessible(target: u32, errno: i32) -> Error {
    let (class, why) = match errno {
        libc::ESRCH if endpoint().node.header().recovery != 0 => {
            (Class::ProcFailed, "its process has failed, or has given the window up since another one has".to_string())
        }
        libc::EFAULT => (Class::RmaRange, "bytes outside of its window, or not attached, are accessed".to_string()),
        errno => (Class::Other, std::io::Error::from_raw_os_error(errno).to_string()),
    };
    Error::new(class, format!("the memory of rank {target} cannot be accessed: {why}"))
}

impl Window {
    /// Remember an operation that will be answered, and bear only so many.
    pub(super) fn under_way(&self, operation: Operation) -> Result<Rc<Operation>> {
        let operation = Rc::new(operation);
        let many = {
            let mut operations = self.operations.borrow_mut();
            operations.push(operation.clone());
            operations.len() > MOST_OPERATIONS
        };
        STARTED.with(|started| {
            if let Some(started) = &mut *started.borrow_mut() {
                started.push(operation.clone());
            }
        });
        if many {
            self.finish(None, Extent::Target)?;
        }
        Ok(operation)
    }

    /// Wait for operations; the first error.
    pub(super) fn await_far(&self, operations: &[Rc<Operation>]) -> Result<()> {
        self.answers(operations).collect()
    }

    /// Wait for operations; what came of each. Those that may be answered never, since a member has failed, are waited for no more.
    pub(super) fn answers(&self, operations: &[Rc<Operation>]) -> impl Iterator<Item = Result<()>> {
        let mut abandoned: Vec<Rc<Operation>> = Vec::new();
        loop {
            let seen = progress();
            let open: Vec<Slot> = operations.iter().filter(|o| !o.is_over()).map(|o| o.slot).collect();
            if open.is_empty() {
                break;
            }
            let waiting: Vec<&Rc<Operation>> = operations.iter().filter(|o| o.waits && !o.is_over()).collect();
            if !waiting.is_empty() && self.comm.health.check_all().is_err() {
                waiting.iter().for_each(|operation| operation.abandon());
                abandoned.extend(waiting.into_iter().cloned());
                continue;
            }
            wait_more(seen, &open, CALL_WINDOW);
        }
        self.operations.borrow_mut().retain(|operation| operation.outcome.get().is_none());
        operations.iter().map(move |operation| match abandoned.iter().any(|other| Rc::ptr_eq(other, operation)) {
            true => self.comm.health.check_all(),
            false => operation.check(),
        })
    }

    /// Everything that has been begun for `target` (`None`: for all) and will be answered has been, or, at the origin alone, need not be.
    pub(super) fn finish(&self, target: Option<u32>, extent: Extent) -> Result<()> {
        if self.operations.borrow().is_empty() {
            return Ok(());
        }
        let awaited = |operation: &&Rc<Operation>| {
            target.is_none_or(|target| operation.target == target) && (extent == Extent::Target || !operation.left)
        };
        let operations: Vec<_> = self.operations.borrow().iter().filter(awaited).cloned().collect();
        if operations.is_empty() { Ok(()) } else { self.await_far(&operations) }
    }
}
