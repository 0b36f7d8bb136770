//! How a member waits for what another does to the control block.

use super::Window;
use crate::calls;
use crate::errors::Result;
use crate::failure;
use crate::{lock, process, request};
use vmpi_shared::mem::sync::Ordering;

const SEQ: Ordering = Ordering::SeqCst;

/// What it waits for, so that only those are woken who may go on.
#[derive(Copy, Clone, Debug)]
pub(super) enum For {
    /// Its turn with the lock on a member's memory.
    Turn { target: u32, ticket: u32 },
    /// The moment's lock of a member.
    Moment { target: u32 },
    /// Something that is told to it alone.
    Itself,
}

impl For {
    fn words(self) -> (u32, u32) {
        match self {
            For::Turn { target, ticket } => (target + 1, ticket),
            For::Moment { target } => (target + 1, 0),
            For::Itself => (0, 0),
        }
    }
}

impl Window {
    /// Can the wait end? Who else stands in the line for a lock, or is to open or complete an epoch, is not known here: any failure may be
    /// of one of them. The lock of a moment says who holds it.
    fn check_wait(&self, what: For) -> Result<()> {
        if let For::Moment { target } = what {
            return match self.control.member(target).moment.holder() {
                Some(holder) => self.check_member(holder),
                None => Ok(()),
            };
        }
        self.comm.health.check_all()
    }

    /// # Errors
    /// `Class::ProcFailed` if the member has failed.
    pub(super) fn check_member(&self, member: u32) -> Result<()> {
        if failure::is_quiet() || member >= self.comm.size() {
            return Ok(());
        }
        self.comm.health.check_source(Some(self.comm.local.world_rank(member)))
    }

    /// Suspend until `over`. Whoever makes it true fences, sees that this member waits, and wakes it.
    ///
    /// # Errors
    /// `Class::ProcFailed` if a member that this may depend on has failed.
    pub(super) fn wait_until(&self, what: For, mut over: impl FnMut() -> bool) -> Result<()> {
        let me = self.control.member(self.rank());
        let threads = &process::node().rank(process::endpoint_rank()).cell_threads;
        loop {
            if over() {
                return Ok(());
            }
            let seen = request::progress();
            if over() {
                return Ok(());
            }
            self.check_wait(what)?;
            if lock::is_threaded() {
                threads.fetch_add(1, SEQ);
            }
            let (wants, ticket) = what.words();
            me.begin_wait(wants, ticket); // SYNC W
            if !over() {
                request::block(seen, calls::CALL_WINDOW, -1, -1);
            }
            me.end_wait();
            if lock::is_threaded() {
                threads.fetch_sub(1, SEQ);
            }
        }
    }
}
