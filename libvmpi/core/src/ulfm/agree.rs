//! Agreement and shrinking: each member tells the daemon, which decides once and tells all, or has the launcher do so (`vmpi_shared::agreement` says why
//! that is uniform).

use crate::calls;
use crate::comm::{self, Communicator};
use crate::construct;
use crate::dynamic::Question;
use crate::errors::{Class, Result, fail};
use crate::failure::health::error;
use crate::group::Members;
use crate::handle::{Comm, Request};
use crate::p2p::{Slot, take_in};
use crate::process::{self, endpoint};
use crate::request::{self, Progress};
use crate::simulate;
use crate::status::Status;
use std::rc::Rc;
use vmpi_shared::dynamic::{Answer, Ask, InterContexts, Ranks};

/// What was decided.
#[derive(Clone, Debug, Default)]
struct Decision {
    /// Over the own group, and over the other one of an intercommunicator.
    own: u32,
    other: u32,
    failed: Vec<u32>,
    news: bool,
    contexts: InterContexts,
}

/// The AND of what counts: an intercommunicator's members learn what the other group gave.
fn flag_of(comm: &Communicator, decision: &Decision) -> i32 {
    (if comm.is_inter() { decision.other } else { decision.own }) as i32
}

/// Does the group of this process come first in what both groups call the agreement?
fn is_first(comm: &Communicator) -> bool {
    !comm.is_inter() || comm.local.world_rank(0) < comm.peers().world_rank(0)
}

/// Asked, or decided without asking.
enum State {
    Waiting(Question),
    Decided(Decision),
    Done,
}

type Finish = Box<dyn FnMut(&Rc<Communicator>, Decision) -> Result<()>>;

/// An agreement under way; `finish` gets the decision.
struct Agreeing {
    comm: Rc<Communicator>,
    state: State,
    finish: Finish,
}

impl Agreeing {
    fn start(comm: &Rc<Communicator>, shrink: bool, flag: i32, finish: Finish) -> Result<Agreeing> {
        simulate::refuse("an agreement of survivors", "it goes by the daemon, which knows no virtual time")?;
        take_in::look();
        let health = &comm.health;
        let number = health.agreements.get();
        health.agreements.set(number + 1);
        let me = endpoint().me;
        let state = if health.members().all(|member| member == me) {
            // Alone: no other can say anything else.
            let contexts = if shrink { [process::new_context(), 0, 0] } else { [0; 3] };
            State::Decided(Decision { own: flag as u32, contexts, ..Decision::default() })
        } else {
            let (own, other): (Ranks, Ranks) = (
                comm.local.iter().collect(),
                comm.remote.as_ref().map_or_else(Ranks::default, |remote| remote.iter().collect()),
            );
            State::Waiting(Question::put(
                Ask::Agree {
                    context: comm.context,
                    number,
                    groups: if is_first(comm) { [own, other] } else { [other, own] },
                    shrink,
                    flag: flag as u32,
                    acknowledged: health.acked.get(),
                    known: Ranks::default(),
                },
                Class::Intern,
            )?)
        };
        Ok(Agreeing { comm: comm.clone(), state, finish })
    }

    /// Wait for the decision, suspended. The daemon wakes this rank when it has answered.
    fn run(&mut self) -> Result<()> {
        loop {
            let seen = request::progress();
            if self.advance()?.is_some() {
                return Ok(());
            }
            request::block(seen, calls::CALL_AGREE, -1, -1);
        }
    }
}

impl Progress for Agreeing {
    fn advance(&mut self) -> Result<Option<Status>> {
        let decision = match std::mem::replace(&mut self.state, State::Done) {
            State::Done => return Ok(Some(Status::EMPTY)),
            State::Decided(decision) => decision,
            State::Waiting(question) => match question.answer()? {
                None => {
                    self.state = State::Waiting(question);
                    return Ok(None);
                }
                Some(Answer::Agreed { flags: [first, second], failed, news, contexts }) => {
                    // The failures that were decided upon are known here from now on.
                    take_in::look();
                    let (own, other) = if is_first(&self.comm) { (first, second) } else { (second, first) };
                    Decision { own, other, failed: failed.iter().collect(), news, contexts }
                }
                Some(_) => return fail(Class::Intern, "the vmpi daemon gave an answer to another question"),
            },
        };
        (self.finish)(&self.comm, decision)?;
        Ok(Some(Status::EMPTY))
    }

    /// What it waits for is no message; the daemon wakes the rank.
    fn pending(&self, _slots: &mut Vec<Slot>) {}
}

/// All living members get the AND of their flags (MPIX_Comm_agree), and the same error, if any.
///
/// # Errors
/// `Class::ProcFailed` on all if a member has failed and not all had acknowledged that; the flag is agreed upon nevertheless.
///
/// # Safety
/// `flag` is valid until this returns.
pub unsafe fn agree(comm: &Rc<Communicator>, flag: *mut i32) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { agreeing(comm, flag)? }.run()
}

/// Start an [`agree`] (MPIX_Comm_iagree).
///
/// # Errors
/// If the daemon cannot be asked.
///
/// # Safety
/// `flag` is valid until the request is complete.
pub unsafe fn iagree(comm: &Rc<Communicator>, flag: *mut i32) -> Result<Request> {
    // SAFETY: the caller's promise.
    Ok(request::insert(Box::new(unsafe { agreeing(comm, flag)? })))
}

/// # Safety
/// `flag` is valid until the operation is over.
unsafe fn agreeing(comm: &Rc<Communicator>, flag: *mut i32) -> Result<Agreeing> {
    // SAFETY: the caller's promise.
    let mine = unsafe { flag.read() };
    Agreeing::start(
        comm,
        false,
        mine,
        Box::new(move |comm, decision| {
            // SAFETY: the operation is not over before this.
            unsafe { flag.write(flag_of(comm, &decision)) };
            if decision.news { Err(error(Class::ProcFailed, decision.failed.last().copied())) } else { Ok(()) }
        }),
    )
}

/// The communicator of the members that live (MPIX_Comm_shrink).
///
/// # Errors
/// `Class::ProcFailed` if nobody is left in one group of an intercommunicator.
pub fn shrink(comm: &Rc<Communicator>) -> Result<Comm> {
    let handle = comm::reserve_like(comm);
    let done = Agreeing::start(comm, true, 0, shrinking(handle)).and_then(|mut agreeing| agreeing.run());
    done.map(|()| handle).inspect_err(|_| construct::discard(handle))
}

/// Start a [`shrink`]; the communicator may be used when the request is complete (MPIX_Comm_ishrink).
///
/// # Errors
/// If the daemon cannot be asked.
pub fn ishrink(comm: &Rc<Communicator>) -> Result<(Comm, Request)> {
    let handle = comm::reserve_like(comm);
    match Agreeing::start(comm, true, 0, shrinking(handle)) {
        Ok(agreeing) => Ok((handle, request::insert(Box::new(agreeing)))),
        Err(error) => {
            construct::discard(handle);
            Err(error)
        }
    }
}

fn shrinking(handle: Comm) -> Finish {
    Box::new(move |comm, decision| {
        let left = |group: &Members| -> Rc<Members> {
            let ranks = group.iter().filter(|rank| !decision.failed.contains(rank)).collect();
            Rc::new(Members::list(ranks).of_session(comm.session()))
        };
        let remote = comm.remote.as_ref().map(|remote| left(remote));
        if remote.as_ref().is_some_and(|remote| remote.size() == 0) {
            return fail(Class::ProcFailed, "all processes of the remote group have failed");
        }
        comm::settle_shrunk(handle, comm, decision.contexts, left(&comm.local), remote);
        Ok(())
    })
}
