//! The machine of real life: p2p messages, user datatypes and operations.

use super::last_round::{self, Message, Rest};
use super::plan::{Data, Plan, Step, Via};
use super::schedule::{Machine, Schedule};
use crate::comm::Communicator;
use crate::consts;
use crate::datatype::{self, Type};
use crate::errors::{Class, Error, Result, fail};
use crate::handle::{Comm, Datatype};
use crate::op::Operation;
use crate::p2p::{self, Mode, Slot};
use crate::plane::Plane;
use crate::request::{self, Progress};
use crate::status::Status;
use smallvec::{SmallVec, smallvec};
use std::borrow::Borrow;
use std::rc::Rc;

/// The operation of a reduction and the datatype handle that a user's function is to see.
pub struct Reduction {
    pub op: Rc<Operation>,
    pub datatype: Datatype,
}

/// What the numbers in a plan stand for; shared by all executions of a persistent collective.
pub struct Kit {
    /// By `Elem::id`; the first is MPI_BYTE. Most calls name one more, and those allocate nothing.
    pub types: SmallVec<[Rc<Type>; 2]>,
    pub reduction: Option<Reduction>,
}

impl Kit {
    /// For what moves bytes only.
    ///
    /// # Errors
    /// None: MPI_BYTE is there.
    pub fn bytes() -> Result<Kit> {
        Ok(Kit { types: smallvec![datatype::get(consts::dt::BYTE)?], reduction: None })
    }
}

/// Execute a plan of a blocking call to its end.
///
/// # Safety
/// The buffers in it must be valid.
pub unsafe fn execute(comm: &Communicator, plan: Plan, kit: Rc<Kit>, tags: Tags) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { execute_after(Ok(()), None, comm, plan, kit, tags) }
}

/// As [`execute`], for the rest of an operation of which another part is `before`: an error of that is this one's, too, and is passed on. With a `caller` it may
/// return before its last messages are over.
///
/// # Safety
/// As [`execute`].
pub unsafe fn execute_after(
    before: Result<()>,
    caller: Option<Comm>,
    comm: &Communicator,
    plan: Plan,
    kit: Rc<Kit>,
    tags: Tags,
) -> Result<()> {
    // SAFETY: the caller's buffers stay valid while this call lasts, and the plan is executed once.
    let mut schedule = unsafe { Schedule::new(Rc::new(plan), Wire { comm, kit, tags, caller }) };
    schedule.comes_after(before);
    let done = match schedule.advance()? {
        Some(_) => Ok(()),
        None => request::run(&mut schedule).map(drop),
    };
    if let (Some(_), Some(leaver)) = (caller, last_round::leaver()) {
        (leaver.waited)();
    }
    done
}

/// The tags of one collective call: on its communicator, and on an intercommunicator's local one.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Tags {
    pub main: i32,
    pub local: i32,
}

/// Persistent collectives keep their tag for life: theirs have this bit set, above those of the communicator's counters
/// and below those of communicator construction, so that the counter may wrap around past them.
const TAG_PERSISTENT: i32 = 1 << 29;

impl Tags {
    /// The next blocking collective call's on `comm`. All its ranks must call this for the same calls in the same order.
    pub fn next(comm: &Communicator) -> Tags {
        let local = comm.local_comm.as_deref().map_or(0, Communicator::next_collective_tag);
        Tags { main: comm.next_collective_tag(), local }
    }

    /// As `next`, for a nonblocking call.
    pub fn nonblocking(comm: &Communicator) -> Tags {
        let local = comm.local_comm.as_deref().map_or(0, Communicator::next_nonblocking_tag);
        Tags { main: comm.next_nonblocking_tag(), local }
    }

    /// As `next`, for a persistent collective: all its starts use the same tags, whatever order they come in (messages
    /// of one start and the next keep their order between each pair of ranks).
    pub fn persistent(comm: &Communicator) -> Tags {
        let tags = Tags::nonblocking(comm);
        Tags { main: tags.main | TAG_PERSISTENT, local: tags.local | TAG_PERSISTENT }
    }
}

/// Executes a plan on a communicator. `C`: `&Communicator` in blocking calls, `Rc<Communicator>` in requests.
pub struct Wire<C> {
    pub comm: C,
    pub kit: Rc<Kit>,
    pub tags: Tags,
    /// The communicator's handle in a blocking call of the program's.
    pub caller: Option<Comm>,
}

impl<C: Borrow<Communicator>> Wire<C> {
    fn channel(&self, via: Via) -> Result<(&Communicator, i32)> {
        let comm: &Communicator = self.comm.borrow();
        match (via, &comm.local_comm) {
            (Via::Main, _) => Ok((comm, self.tags.main)),
            (Via::Local, Some(local)) => Ok((local, self.tags.local)),
            (Via::Local, None) => fail(Class::Intern, "an intercommunicator has no local communicator"),
        }
    }

    fn ty(&self, data: &Data) -> &Rc<Type> {
        &self.kit.types[data.elem.id as usize]
    }
}

/// Bytes moved at a time between two layouts neither of which is dense.
const REPACK_BYTES: usize = 32 * 1024;

impl<C: Borrow<Communicator>> Machine for Wire<C> {
    unsafe fn send(&mut self, data: &Data, to: i32, via: Via) -> Result<Option<Slot>> {
        let (comm, tag) = self.channel(via)?;
        // SAFETY: the caller's contract is p2p's.
        unsafe {
            p2p::start_send(
                comm,
                Plane::Collective,
                data.at.cast_const().cast(),
                data.count,
                self.ty(data),
                to,
                tag,
                Mode::Standard,
            )
        }
    }

    unsafe fn recv(&mut self, data: &Data, from: i32, via: Via) -> Result<Slot> {
        let (comm, tag) = self.channel(via)?;
        // SAFETY: the caller's contract is p2p's.
        unsafe { p2p::start_recv(comm, Plane::Collective, data.at.cast(), data.count, self.ty(data), from, tag) }
    }

    fn poll(&mut self, slot: Slot) -> Option<Result<Status>> {
        p2p::poll(slot)
    }

    unsafe fn copy(&mut self, from: &Data, to: &Data) -> Result<()> {
        let bytes = from.bytes().min(to.bytes()) as usize;
        // SAFETY: the caller gives two valid regions; `bytes` are in both.
        unsafe {
            match (from.packed(), to.packed()) {
                (Some(from), Some(to)) => std::ptr::copy(from.at, to.at, bytes),
                (None, Some(packed)) => {
                    let out = std::slice::from_raw_parts_mut(packed.at, bytes);
                    datatype::pack(self.ty(from), from.count, from.at, 0, out);
                }
                (Some(packed), None) => {
                    let data = std::slice::from_raw_parts(packed.at, bytes);
                    datatype::unpack(self.ty(to), to.count, to.at, 0, data);
                }
                (None, None) => {
                    let mut buffer = vec![0u8; bytes.min(REPACK_BYTES)];
                    let mut done = 0;
                    while done < bytes {
                        let part = &mut buffer[..(bytes - done).min(REPACK_BYTES)];
                        let n = datatype::pack(self.ty(from), from.count, from.at, done as u64, part);
                        if n == 0 {
                            break;
                        }
                        datatype::unpack(self.ty(to), to.count, to.at, done as u64, &part[..n]);
                        done += n;
                    }
                }
            }
        }
        if from.bytes() > to.bytes() {
            let (has, room) = (from.bytes(), to.bytes());
            return fail(
                Class::Truncate,
                format!("this rank's own block has {has} bytes, but its receive buffer only has room for {room}"),
            );
        }
        Ok(())
    }

    unsafe fn reduce(&mut self, input: *const u8, inout: &Data) -> Result<()> {
        let Some(Reduction { op, datatype }) = &self.kit.reduction else {
            return Err(Error::new(Class::Intern, "a reduction without an operation"));
        };
        // SAFETY: the caller's contract.
        unsafe { op.apply(input.cast(), inout.at.cast(), inout.count, *datatype, self.ty(inout)) };
        Ok(())
    }

    fn may_leave(&self) -> bool {
        self.caller.is_some() && last_round::leaver().is_some()
    }

    unsafe fn leave(&mut self, steps: &[Step]) -> Option<Result<Rest>> {
        let (caller, leaver) = (self.caller?, last_round::leaver()?);
        let mut messages = SmallVec::<[Message<'_>; 8]>::new();
        for step in steps {
            let (data, peer, via, receives) = match *step {
                Step::Send { data, to, via } => (data, to, via, false),
                Step::Recv { data, from, via } => (data, from, via, true),
                Step::Copy { .. } | Step::Reduce { .. } | Step::Fence => continue,
            };
            let (comm, tag) = self.channel(via).ok()?;
            messages.push(Message { comm, data, ty: self.ty(&data), peer, tag, receives });
        }
        // SAFETY: the caller's contract.
        unsafe { (leaver.leave)(caller, &messages) }
    }

    unsafe fn pack(&self, data: &Data) -> Vec<u8> {
        let mut bytes = vec![0; data.bytes() as usize];
        // SAFETY: as promised.
        unsafe { datatype::pack(self.ty(data), data.count, data.at, 0, &mut bytes) };
        bytes
    }
}
