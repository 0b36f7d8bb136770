//! Collectives. (Floor 7.)
//!
//! Reading order: `call` (what the program asked for), `resolve` (checked, handles looked up: `work`), `choose`,
//! `by_node` (several nodes, see `layout`), `by_core` (shared cores) and `inter` (which algorithm), `algo/` (the algorithms: pure functions that list steps), `plan` (the steps), `schedule`
//! (the engine that executes them, the same for blocking, nonblocking and persistent calls), `last_round` (what blocking calls may return before), `p2p_machine` (the messages
//! and datatypes it executes them with), `cell_operation`, `cells` and `cell_blocks` (fast paths that need no messages within a node), `played` (in virtual time: without the ranks) and `far_cells` (few between nodes),
//! `neighbor`. `checked`: is what the program calls the same at all ranks (`vmpirun --check`)?
//!
//! All messages of a collective travel on `Plane::Collective` with a tag that counts the collectives of the
//! communicator (blocking and others apart), so any number of them may be under way at once.

pub mod algo;
mod by_core;
mod by_node;
pub mod call;
mod cell_blocks;
mod cell_lists;
mod cell_operation;
mod cell_reduce;
mod cell_slots;
pub mod cells;
pub(crate) mod checked;
mod choose;
mod far_cells;
mod inter;
pub(crate) mod last_round;
mod neighbor;
pub mod p2p_machine;
pub mod plan;
mod played;
mod resolve;
pub mod schedule;
#[cfg(test)]
mod sim;
#[cfg(test)]
mod tests;
pub mod work;

pub use call::{Block, Call, Counts, Many, Operands, Parts, Types};
pub use neighbor::neighbours;

use crate::comm::Communicator;
use crate::consts;
use crate::errors::Result;
use crate::handle::{Comm, Request};
use crate::monitor;
use crate::p2p::take_in;
use crate::process;
use crate::request::{self, Progress};
use crate::simulate;
use crate::tool::event;
use algo::barrier_linear;
use checked::How;
use p2p_machine::{Kit, Tags, Wire};
use plan::{Plan, Ranks, Via};
use schedule::Schedule;
use std::rc::Rc;
use work::Work;

/// This rank's plan of `work` on `comm`.
fn plan(comm: &Communicator, work: &Work) -> Result<Plan> {
    let mut plan = Plan::default();
    let main = Ranks { rank: comm.rank, size: comm.peers().size(), via: Via::Main };
    if comm.is_inter() {
        let local = Ranks { rank: comm.rank, size: comm.size(), via: Via::Local };
        inter::build(&mut plan, local, main, work)?;
    } else if simulate::is_on() {
        // What suits the cores and nodes here says nothing of the machine that is simulated.
        choose::build(&mut plan, main, work);
    } else {
        let layout = comm.layout();
        // Made anew each time, where it pays: kept, it would be memory for every rank in every communicator.
        let cores = by_core::wants(work).then(|| comm.cores(layout));
        let by_node = layout.is_some_and(|layout| by_node::build(&mut plan, layout, cores.as_ref(), work));
        let on_one = layout.is_none_or(|layout| layout.nodes() == 1);
        let by_core = || cores.is_some_and(|cores| on_one && by_core::build(&mut plan, &cores, work));
        if !by_node && !by_core() {
            match work {
                // V is the same at all members only on one node.
                Work::Barrier if on_one && process::node().header().v > 1 => barrier_linear::build(&mut plan, main),
                _ => choose::build(&mut plan, main, work),
            }
        }
    }
    Ok(plan)
}

/// As [`run`], of the program itself, which a trace tells of, and with its communicator's handle: it may return before its last messages are over.
///
/// # Errors
/// As [`run`].
///
/// # Safety
/// As [`run`].
#[inline]
pub unsafe fn program_call(handle: Comm, comm: &Communicator, call: &Call) -> Result<()> {
    match monitor::collective_begins() {
        // SAFETY: the caller's contract.
        None => unsafe { run_for(Some(handle), comm, call) },
        // SAFETY: as above.
        Some(from) => unsafe { recorded_call(from, handle, comm, call) },
    }
}

/// # Safety
/// As [`run`].
#[cold]
unsafe fn recorded_call(from: u64, handle: Comm, comm: &Communicator, call: &Call) -> Result<()> {
    if !monitor::records() {
        // SAFETY: the caller's contract.
        return unsafe { checked_call(handle, comm, call) };
    }
    // SAFETY: the caller's contract; looked up before anything is changed.
    let (root, bytes) = unsafe { resolve::resolve(comm, call) }.map_or((None, (0, 0)), |(work, _)| {
        let root = work.root().and_then(|root| u32::try_from(root).ok()).filter(|root| *root < comm.peers().size());
        (root, work.bytes(comm.rank))
    });
    // SAFETY: the caller's contract.
    let done = unsafe { checked_call(handle, comm, call) };
    monitor::collective_ended(from, comm, root, bytes);
    done
}

/// A call that others compare with theirs, unless its arguments are refused: then they never see it.
///
/// # Safety
/// As [`run`].
unsafe fn checked_call(handle: Comm, comm: &Communicator, call: &Call) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        if matches!(call, Call::Barrier) {
            checked::begins(comm, call, How::Blocking);
            return run_for(Some(handle), comm, call);
        }
        let (work, kit) = resolve::resolve(comm, call)?;
        checked::begins(comm, call, How::Blocking);
        run_resolved(Some(handle), comm, work, kit)
    }
}

/// Do a collective and wait for it. Suspends this rank while it waits; may call the program's reduction function.
///
/// # Errors
/// The class of the first wrong argument, or what became of a message (truncation).
///
/// # Safety
/// The buffers and arrays in `call` must be as MPI demands of the program (MPI 4.1 chapter 6).
pub unsafe fn run(comm: &Communicator, call: &Call) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { run_for(None, comm, call) }
}

/// As [`run`]; `caller`: the communicator's handle in a call of the program's.
///
/// # Safety
/// As [`run`].
#[inline]
unsafe fn run_for(caller: Option<Comm>, comm: &Communicator, call: &Call) -> Result<()> {
    if matches!(call, Call::Barrier) && cells::serve(comm) {
        // Nothing to look up.
        let tags = begin(comm)?;
        return match cells::barrier(comm, tags) {
            Some(done) => done,
            // SAFETY: a barrier has no buffers.
            None => unsafe { by_plan(None, comm, &Work::Barrier, Rc::new(Kit::bytes()?), tags) },
        };
    }
    // SAFETY: the caller's contract.
    unsafe {
        let (work, kit) = resolve::resolve(comm, call)?;
        run_resolved(caller, comm, work, kit)
    }
}

/// The rest of [`run_for`], whose arguments are good.
///
/// # Safety
/// The buffers in `work` must be valid.
#[inline(always)]
unsafe fn run_resolved(caller: Option<Comm>, comm: &Communicator, work: Work, kit: Kit) -> Result<()> {
    let tags = begin(comm)?;
    // SAFETY: the caller's contract.
    if let Some((done, rest)) = unsafe { cells::try_run(comm, &work, &kit, tags) } {
        if rest.steps.is_empty() {
            return done;
        }
        // SAFETY: the caller's contract.
        return unsafe { p2p_machine::execute_after(done, caller, comm, rest, Rc::new(kit), tags) };
    }
    let kit = Rc::new(kit);
    // SAFETY: the caller's contract.
    unsafe {
        match far_cells::try_run(comm, &work, &kit, tags) {
            Some(done) => done,
            None => by_plan(caller, comm, &work, kit, tags),
        }
    }
}

/// Do `work` of a blocking call by messages.
///
/// # Safety
/// The buffers in `work` must be valid.
unsafe fn by_plan(caller: Option<Comm>, comm: &Communicator, work: &Work, kit: Rc<Kit>, tags: Tags) -> Result<()> {
    if simulate::is_on() {
        // SAFETY: the caller's contract.
        if let Some(done) = unsafe { played::run(comm, work, &kit) } {
            return done;
        }
    }
    let plan = plan(comm, work)?;
    // SAFETY: the caller's contract.
    unsafe { p2p_machine::execute_after(Ok(()), caller, comm, plan, kit, tags) }
}

/// The arguments are good. The tags are drawn even when no message is sent: all ranks must count alike.
#[inline]
fn begin(comm: &Communicator) -> Result<Tags> {
    take_in::look();
    comm.health.check_all()?;
    Ok(Tags::next(comm))
}

/// Start a collective; the request completes it.
///
/// # Errors
/// As [`run`], where they show at once.
///
/// # Safety
/// As [`run`], with the buffers valid until the request is complete (arrays only until this returns).
pub unsafe fn start(comm: &Rc<Communicator>, call: &Call) -> Result<Request> {
    let begins = || {
        if event::is_wanted() {
            // SAFETY: the caller's contract.
            unsafe { checked::begins(comm, call, How::Nonblocking) };
        }
    };
    // SAFETY: as above.
    let mut schedule = unsafe { prepare_after(comm, call, begins)? };
    schedule.advance()?;
    let request = request::insert(schedule);
    if event::is_wanted() {
        checked::started(request);
    }
    Ok(request)
}

/// A collective as a step of a larger operation, which advances it; the first `advance` starts it.
///
/// # Errors
/// As [`run`], where they show at once.
///
/// # Safety
/// As [`start`], with the operation in the request's place.
pub(crate) unsafe fn prepare(comm: &Rc<Communicator>, call: &Call) -> Result<Box<dyn Progress>> {
    // SAFETY: the caller's contract.
    unsafe { prepare_after(comm, call, || ()) }
}

/// The same; `begins` is called when its arguments are known to be good.
///
/// # Safety
/// As [`prepare`].
#[inline(always)]
unsafe fn prepare_after(comm: &Rc<Communicator>, call: &Call, begins: impl FnOnce()) -> Result<Box<dyn Progress>> {
    // SAFETY: the caller's contract.
    let (work, kit) = unsafe { resolve::resolve(comm, call)? };
    begins();
    take_in::look();
    comm.health.check_all()?;
    let tags = Tags::nonblocking(comm);
    let plan = Rc::new(plan(comm, &work)?);
    // SAFETY: the caller's buffers stay valid until the operation is over, and the plan is executed once.
    Ok(Box::new(unsafe { Schedule::new(plan, Wire { comm: comm.clone(), kit: Rc::new(kit), tags, caller: None }) }))
}

/// Make a persistent request of a collective: planned once, executed at each start.
///
/// # Errors
/// As [`run`], where they show before anything is sent.
///
/// # Safety
/// As [`run`], with the buffers valid as long as the request lives (arrays only until this returns).
pub unsafe fn init(comm: &Rc<Communicator>, call: &Call) -> Result<Request> {
    // SAFETY: the caller's contract.
    let (work, kit) = unsafe { resolve::resolve(comm, call)? };
    if event::is_wanted() {
        // SAFETY: as above.
        unsafe { checked::begins(comm, call, How::Persistent) };
    }
    let tags = Tags::persistent(comm);
    let plan = Rc::new(plan(comm, &work)?);
    let (comm, kit) = (comm.clone(), Rc::new(kit));
    Ok(request::insert_persistent(Box::new(move || {
        take_in::look();
        comm.health.check_all()?;
        let wire = Wire { comm: comm.clone(), kit: kit.clone(), tags, caller: None };
        // SAFETY: the buffers live as long as the request, which is started again only when it is complete.
        let mut schedule = unsafe { Schedule::new(plan.clone(), wire) };
        schedule.advance()?;
        Ok(Box::new(schedule))
    })))
}

/// `bytes` as a block of MPI_BYTE.
fn bytes_block(bytes: *const u8, len: usize) -> Block {
    Block { addr: bytes.cast_mut().cast(), count: len as i64, ty: consts::dt::BYTE }
}

/// Broadcast raw bytes from `root` (for communicator construction and the like).
pub fn bcast_bytes(comm: &Communicator, bytes: &mut [u8], root: u32) -> Result<()> {
    let data = bytes_block(bytes.as_mut_ptr(), bytes.len());
    // SAFETY: the block is the borrowed slice.
    unsafe { run(comm, &Call::Bcast { data, root: root as i32 }) }
}

/// Gather `mine` of every rank, in rank order, into `all` (`size * mine.len()` bytes).
pub fn allgather_bytes(comm: &Communicator, mine: &[u8], all: &mut [u8]) -> Result<()> {
    assert_eq!(all.len(), mine.len() * comm.size() as usize, "room for every rank's bytes");
    let send = bytes_block(mine.as_ptr(), mine.len());
    let recv = Many::Even(bytes_block(all.as_mut_ptr(), mine.len()));
    // SAFETY: the blocks are the borrowed slices, whose length is checked above.
    unsafe { run(comm, &Call::Allgather { send, recv }) }
}

/// All ranks of the communicator (both groups of an intercommunicator) have arrived.
pub fn barrier(comm: &Communicator) -> Result<()> {
    // SAFETY: a barrier has no buffers.
    unsafe { run(comm, &Call::Barrier) }
}
