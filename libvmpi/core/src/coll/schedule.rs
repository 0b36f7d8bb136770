//! The engine: executes a [`Plan`], step by step, as a request's [`Progress`] or to its end.

use super::last_round::{self, Rest};
use super::plan::{Data, Elem, Plan, Step, Via};
use crate::errors::{Error, Result};
use crate::failure;
use crate::p2p::Slot;
use crate::request::Progress;
use crate::status::Status;
use smallvec::SmallVec;
use std::rc::Rc;

/// What a plan is executed on: messages and local data. (The wire in real life, a simulator in tests.)
pub trait Machine {
    /// Start a send; `None`: already complete.
    ///
    /// # Safety
    /// `data` must be readable until the slot completes.
    unsafe fn send(&mut self, data: &Data, to: i32, via: Via) -> Result<Option<Slot>>;
    /// Start a receive.
    ///
    /// # Safety
    /// `data` must be writable until the slot completes.
    unsafe fn recv(&mut self, data: &Data, from: i32, via: Via) -> Result<Slot>;
    /// As [`crate::p2p::poll`].
    fn poll(&mut self, slot: Slot) -> Option<Result<Status>>;
    /// Copy `from` to `to`; truncation is an error.
    ///
    /// # Safety
    /// Both must be valid and not overlap.
    unsafe fn copy(&mut self, from: &Data, to: &Data) -> Result<()>;
    /// `inout = input op inout`.
    ///
    /// # Safety
    /// Both must hold `inout.count` elements.
    unsafe fn reduce(&mut self, input: *const u8, inout: &Data) -> Result<()>;
    /// May messages go on after the operation has returned?
    fn may_leave(&self) -> bool {
        false
    }
    /// Start all messages of the last round, in their order; those that the operation must wait for. `None`: nothing has been done.
    ///
    /// # Safety
    /// As of `send` and `recv`, and what is not waited for stays valid beyond the operation.
    unsafe fn leave(&mut self, _steps: &[Step]) -> Option<Result<Rest>> {
        None
    }
    /// The packed bytes of `data`.
    ///
    /// # Safety
    /// `data` must be readable.
    unsafe fn pack(&self, data: &Data) -> Vec<u8>;
}

/// A plan in execution.
///
/// The first error is what the operation reports at its end. A failed message (truncation) does not stop the plan, so
/// that this rank's peers are not left waiting; a message that cannot even be started does, once those under way are done. What is sent after a failure
/// may pass on what did not come, so it is a byte too long: whoever receives it has MPI_ERR_TRUNCATE as well, however many ranks are between.
pub struct Schedule<M: Machine> {
    plan: Rc<Plan>,
    machine: M,
    next: usize,
    under_way: SmallVec<[Slot; 8]>,
    error: Option<Error>,
    /// What is sent after the failure, a byte too long.
    too_long: Vec<Vec<u8>>,
}

impl<M: Machine> Schedule<M> {
    /// Nothing is started before the first `advance`.
    ///
    /// # Safety
    /// The buffers in `plan` must stay valid until the schedule is done, and no other execution of `plan` may be under way.
    pub unsafe fn new(plan: Rc<Plan>, machine: M) -> Schedule<M> {
        Schedule { plan, machine, next: 0, under_way: SmallVec::new(), error: None, too_long: Vec::new() }
    }

    /// What was done of the operation before this: an error of that is as one of this schedule's.
    pub fn comes_after(&mut self, before: Result<()>) {
        self.error = self.error.take().or(before.err());
    }

    /// Forget the messages that have completed.
    fn reap(&mut self) {
        let (machine, error, next, end) = (&mut self.machine, &mut self.error, &mut self.next, self.plan.steps.len());
        self.under_way.retain(|slot| match machine.poll(*slot) {
            None => true,
            Some(Ok(_)) => false,
            Some(Err(e)) => {
                if failure::is_failure(&e) {
                    // Nothing more is sent, so that nobody takes for a result what is none; the others learn of the failure as well.
                    *next = end;
                }
                error.get_or_insert(e);
                false
            }
        });
    }

    /// Do steps up to the next fence that has something to wait for.
    fn run_round(&mut self) -> Result<()> {
        if self.under_way.is_empty() && self.error.is_none() && self.machine.may_leave() && self.leave_last_round()? {
            return Ok(());
        }
        while let Some(step) = self.plan.steps.get(self.next) {
            if *step == Step::Fence && !self.under_way.is_empty() {
                return Ok(());
            }
            self.next += 1;
            // SAFETY: `new`'s caller vouches for the buffers; a plan's steps stay inside them and its own temporaries.
            unsafe {
                match step {
                    Step::Send { .. } | Step::Recv { .. } => {
                        let step = *step;
                        self.start(&step)?;
                    }
                    Step::Copy { from, to } => {
                        if let Err(e) = self.machine.copy(from, to) {
                            self.error.get_or_insert(e);
                        }
                    }
                    Step::Reduce { input, inout } => self.machine.reduce(*input, inout)?,
                    Step::Fence => {}
                }
            }
        }
        Ok(())
    }

    /// Start a message.
    ///
    /// # Safety
    /// Its data is valid until it is over.
    unsafe fn start(&mut self, step: &Step) -> Result<()> {
        // SAFETY: as promised.
        unsafe {
            match step {
                Step::Send { data, to, via } => {
                    let data =
                        if self.error.is_none() { *data } else { spoil(&self.machine, &mut self.too_long, data) };
                    self.under_way.extend(self.machine.send(&data, *to, *via)?);
                }
                Step::Recv { data, from, via } => self.under_way.push(self.machine.recv(data, *from, *via)?),
                Step::Copy { .. } | Step::Reduce { .. } | Step::Fence => {}
            }
        }
        Ok(())
    }

    /// If what comes next is the last round, and messages in the program's own memory only: do its local steps, start its messages, and wait only for those that
    /// cannot be left behind. False: nothing has been done.
    fn leave_last_round(&mut self) -> Result<bool> {
        let plan = self.plan.clone();
        let mut round = &plan.steps[self.next..];
        while let [Step::Fence, rest @ ..] | [rest @ .., Step::Fence] = round {
            round = rest;
        }
        let is_message = |step: &Step| matches!(step, Step::Send { .. } | Step::Recv { .. });
        let is_fit = round.iter().all(|step| match step {
            // What others still fetch or bring must not be temporary.
            Step::Send { data, .. } | Step::Recv { data, .. } => !plan.is_temp(data),
            Step::Copy { .. } => true,
            Step::Reduce { .. } | Step::Fence => false,
        });
        let is_large = |step: &Step| match step {
            Step::Send { data, .. } | Step::Recv { data, .. } => last_round::is_large(data),
            Step::Copy { .. } | Step::Reduce { .. } | Step::Fence => false,
        };
        if !is_fit || !round.iter().any(is_large) {
            return Ok(false);
        }
        for step in round {
            if let Step::Copy { from, to } = step {
                // SAFETY: `new`'s caller vouches for the buffers. Nothing that has been listed before it in its round is over, so it depends on none of that.
                if let Err(error) = unsafe { self.machine.copy(from, to) } {
                    self.error.get_or_insert(error);
                }
            }
        }
        self.next = plan.steps.len();
        // SAFETY: as above; and what is not temporary is the program's, which keeps it until it is over.
        match self.error.is_none().then(|| unsafe { self.machine.leave(round) }).flatten() {
            Some(rest) => self.under_way.extend(rest?),
            None => {
                for step in round.iter().filter(|step| is_message(step)) {
                    // SAFETY: as above.
                    unsafe { self.start(step)? };
                }
            }
        }
        Ok(true)
    }
}

/// What to send instead of `data` after a failure; it lies in `too_long`.
///
/// # Safety
/// `data` must be readable.
#[cold]
unsafe fn spoil(machine: &impl Machine, too_long: &mut Vec<Vec<u8>>, data: &Data) -> Data {
    // SAFETY: as promised.
    let mut bytes = unsafe { machine.pack(data) };
    bytes.push(0);
    let spoilt = Data { at: bytes.as_mut_ptr(), count: bytes.len() as u64, elem: Elem::BYTE };
    too_long.push(bytes);
    spoilt
}

impl<M: Machine> Progress for Schedule<M> {
    fn advance(&mut self) -> Result<Option<Status>> {
        loop {
            self.reap();
            if !self.under_way.is_empty() && matches!(self.plan.steps.get(self.next), None | Some(Step::Fence)) {
                return Ok(None);
            }
            if self.next == self.plan.steps.len() {
                return match self.error.take() {
                    Some(error) => Err(error),
                    None => Ok(Some(Status::EMPTY)),
                };
            }
            if let Err(error) = self.run_round() {
                self.error.get_or_insert(error);
                self.next = self.plan.steps.len();
            }
        }
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        slots.extend_from_slice(&self.under_way);
    }
}

impl<M: Machine> Drop for Schedule<M> {
    fn drop(&mut self) {
        if !self.under_way.is_empty() {
            // Given up in mid-flight (the job is ending, or a request was freed): peers may still read or write the
            // temporaries, so they are left to the end of the process.
            if self.plan.has_temps() {
                std::mem::forget(self.plan.clone());
            }
            std::mem::forget(std::mem::take(&mut self.too_long));
        }
    }
}

#[cfg(test)]
mod tests;
