//! Making and freeing windows (MPI 4.1 section 12.2).
//!
//! All members tell each other what they bring. The first one of each node makes the segment with the control block (and
//! the memory that MPI allocates there), and the others open its descriptor (`passing`). If there are several nodes, their
//! carriers map it, too.

use super::epoch::{Access, Epoch};
use super::remote_node::Far;
use super::{Part, Reach, Window, checked, remote, simulated, with_windows};
use crate::coll;
use crate::comm::Communicator;
use crate::construct;
use crate::consts;
use crate::errors::{Class, Error, Result, fail};
use crate::failure;
use crate::handle::{Handle, Win};
use crate::info;
use crate::nodes;
use crate::passing::{TOLD_BYTES, Told};
use crate::process::endpoint;
use crate::simulate;
use crate::{attr, errhandler};
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use vmpi_shared::ask::Opening;
use vmpi_shared::window::{Shape, Window as Control};

/// Where the memory of a new window comes from.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Memory {
    /// The program's own (MPI_Win_create).
    Own { base: usize, bytes: u64 },
    /// MPI allocates (MPI_Win_allocate).
    Allocate { bytes: u64 },
    /// MPI allocates memory that all may load from and store to (MPI_Win_allocate_shared); `apart`: it need not be in
    /// one piece.
    Share { bytes: u64, apart: bool },
    /// Attached later (MPI_Win_create_dynamic).
    Dynamic,
}

impl Memory {
    fn flavor(self) -> i32 {
        match self {
            Memory::Own { .. } => consts::WIN_FLAVOR_CREATE,
            Memory::Allocate { .. } => consts::WIN_FLAVOR_ALLOCATE,
            Memory::Share { .. } => consts::WIN_FLAVOR_SHARED,
            Memory::Dynamic => consts::WIN_FLAVOR_DYNAMIC,
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Memory::Own { bytes, .. } | Memory::Allocate { bytes } | Memory::Share { bytes, .. } => bytes,
            Memory::Dynamic => 0,
        }
    }

    /// Where the part of a member begins if the memory of those before it ends at `end`.
    fn place(self, end: u64) -> u64 {
        match self {
            Memory::Share { apart: false, .. } => end,
            // A page of its own, for the memory of the core that touches it first.
            _ => end.checked_next_multiple_of(4096).unwrap_or(u64::MAX),
        }
    }
}

/// What one member asks for.
#[derive(Clone, Debug)]
pub struct Ask {
    pub memory: Memory,
    /// Displacement unit, bytes.
    pub unit: i64,
    pub hints: Rc<info::Entries>,
}

/// What members tell each other.
#[derive(Copy, Clone)]
struct Offer {
    base: u64,
    bytes: u64,
    unit: i64,
    /// Address of a byte that a carrier may read, to see whether single copy works.
    probe: u64,
    /// See [`next_serial`].
    serial: u32,
}

const OFFER_BYTES: usize = 40;
static SERIAL: AtomicU32 = AtomicU32::new(0);

impl Offer {
    fn encode(self) -> [u8; OFFER_BYTES] {
        let mut bytes = [0; OFFER_BYTES];
        for (at, word) in
            [self.base, self.bytes, self.unit as u64, self.probe, self.serial.into()].into_iter().enumerate()
        {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Offer {
        let word = |at: usize| u64::from_ne_bytes(bytes[at * 8..at * 8 + 8].try_into().expect("eight bytes"));
        Offer { base: word(0), bytes: word(1), unit: word(2) as i64, probe: word(3), serial: word(4) as u32 }
    }
}

/// A number that no other window or counter of this process has.
pub(super) fn next_serial() -> u32 {
    SERIAL.fetch_add(1, Ordering::Relaxed)
}

/// A byte that a carrier may try to read.
static PROBE: u8 = 0;

/// How a member got on with the segment, as all are told.
const READY: u8 = 0;
/// Ready, but the kernel refuses it single copy from or to another member.
const READY_REFUSED: u8 = 1;
const FAILED: u8 = 2;
/// The memory cannot be had on a node.
const NO_MEMORY: u8 = 3;

/// Make a window; collective over `comm`, an intracommunicator.
///
/// # Errors
/// `Class::NoMem` if the memory cannot be had, `Class::RmaShared` if a member cannot map it; all members get an error
/// then.
pub fn create(comm: &Rc<Communicator>, ask: &Ask) -> Result<Rc<Window>> {
    let me = endpoint().me;
    let is_apart = |member: &u32| !nodes::share_node(me, *member);
    if let (Memory::Share { .. }, Some(far)) = (ask.memory, comm.local.iter().find(is_apart)) {
        let apart = if simulate::is_on() { "another host of the simulated machine" } else { "another node" };
        return fail(Class::RmaShared, format!("rank {far} of MPI_COMM_WORLD is on {apart}"));
    }
    let own = construct::derive(comm, comm.local.clone())?.expect("I am a member of my communicator");
    let made = build(&own, ask);
    if made.is_err() {
        construct::free(own.handle)?;
    }
    made
}

fn build(comm: &Rc<Communicator>, ask: &Ask) -> Result<Rc<Window>> {
    let memory = ask.memory;
    let base = if let Memory::Own { base, .. } = memory { base as u64 } else { 0 };
    let serial = next_serial();
    let mine = Offer { base, bytes: memory.bytes(), unit: ask.unit, probe: &raw const PROBE as u64, serial };
    let mut all = vec![0; OFFER_BYTES * comm.size() as usize];
    coll::allgather_bytes(comm, &mine.encode(), &mut all)?;
    let offers: Vec<Offer> = all.chunks_exact(OFFER_BYTES).map(Offer::decode).collect();

    let me = endpoint().me;
    let members: Vec<bool> = comm.local.iter().map(|member| !nodes::same_node(me, member)).collect();
    let far = members.contains(&true).then(|| Far::new((comm.local.world_rank(0) as i32, offers[0].serial), members));
    let is_far = |member: usize| far.as_ref().is_some_and(|far| far.members[member]);

    let allocates = matches!(memory, Memory::Allocate { .. } | Memory::Share { .. });
    let mut starts = Vec::with_capacity(offers.len());
    let mut end = 0u64;
    for (member, offer) in offers.iter().enumerate() {
        let start = memory.place(end);
        starts.push(start);
        // The memory of a member of another node lies there.
        end = if is_far(member) { end } else { start.saturating_add(offer.bytes) };
    }
    let data = if allocates { end } else { 0 };
    let data_bytes = if simulate::is_on() { simulated::segment_bytes(comm.size(), data) } else { data };
    let shape = Shape { members: comm.size(), dynamic: memory == Memory::Dynamic, data_bytes };
    let control = share(comm, shape, far.as_ref())?;

    // Each looks whether it can copy from and to all others, and all learn whether anybody cannot.
    let mapped = control.is_ok();
    let mut parts = parts(comm, memory, control.as_ref().ok(), far.as_ref(), &offers, &starts);
    let refused = parts.iter().any(|part| part.reach == Reach::Ask);
    let own = parts[comm.rank as usize].base;
    let by_carrier = match (&control, &far) {
        (Ok(control), Some(far)) => meet_carrier(comm, control, shape, far, (own, memory.bytes()), mine.probe),
        _ => Ok(true),
    };
    let mapped = mapped && by_carrier.is_ok();
    let by_carrier = by_carrier.unwrap_or(false);
    let without_memory = control.as_ref().is_err_and(|error| error.class == Class::NoMem);
    let outcome = match (mapped, refused || !by_carrier) {
        (false, _) if without_memory => NO_MEMORY,
        (false, _) => FAILED,
        (true, true) => READY_REFUSED,
        (true, false) => READY,
    };
    let mut outcomes = vec![0; OUTCOME_BYTES * comm.size() as usize];
    coll::allgather_bytes(comm, &encode_outcome(outcome, by_carrier, own), &mut outcomes)?;
    let outcomes: Vec<_> = outcomes.chunks_exact(OUTCOME_BYTES).map(decode_outcome).collect();
    let mut control = control?;
    if let Err(error) = all_have_it(&outcomes) {
        close_far(comm, &far);
        return Err(error);
    }
    control.close_fd();
    let carried = outcomes.iter().all(|(_, by_carrier, _)| *by_carrier);
    for (member, (part, (.., base))) in parts.iter_mut().zip(&outcomes).enumerate() {
        if is_far(member) {
            (part.base, part.reach) = (*base, if carried { Reach::Far } else { Reach::Ask });
        }
    }
    let helped = outcomes.iter().any(|(outcome, ..)| *outcome == READY_REFUSED);
    if helped {
        simulate::refuse(
            "a window of memory that is not MPI's own",
            "ranks cannot copy from and to each other here (process_vm_readv: ptrace scope, ranks in namespaces of their own, or seccomp); \
             MPI_Win_allocate needs no such copies",
        )?;
    }
    let window = Rc::new(Window {
        handle: Cell::new(Win::NULL),
        comm: comm.clone(),
        flavor: memory.flavor(),
        simulated: simulate::is_on().then(|| simulated::Simulated::new(&control, comm.size(), data)),
        operations: RefCell::default(),
        control,
        parts,
        epoch: RefCell::new(Epoch::new(comm.size())),
        far,
        helper: OnceCell::new(),
        name: RefCell::default(),
        hints: RefCell::new(Rc::new(hints(ask))),
        checks: checked::State::default(),
    });
    if helped {
        let _ = window.helper.set(remote::Helper::start(&window));
    }
    let handle = with_windows(|windows| windows.insert(window.clone()));
    window.handle.set(handle);
    window.note_written();
    Ok(window)
}

/// Where the memory of each member lies, and how it is reached from here.
fn parts(
    comm: &Communicator,
    memory: Memory,
    control: Option<&Control>,
    far: Option<&Far>,
    offers: &[Offer],
    starts: &[u64],
) -> Vec<Part> {
    let allocates = matches!(memory, Memory::Allocate { .. } | Memory::Share { .. });
    let part = |((offer, start), member): ((&Offer, &u64), u32)| {
        let (base, reach) = match control {
            _ if far.is_some_and(|far| far.members[member as usize]) => (offer.base, Reach::Far),
            // Without memory no address; where all lies in one piece it is that of the member's place.
            Some(_) if offer.bytes == 0 && matches!(memory, Memory::Share { apart: true, .. }) => {
                (0, Reach::Here { shift: 0 })
            }
            Some(control) if allocates => (control.data(*start) as u64, Reach::Here { shift: 0 }),
            _ => (offer.base, reach(comm, member)),
        };
        Part { base, bytes: offer.bytes, unit: offer.unit, reach }
    };
    offers.iter().zip(starts).zip(0..).map(part).collect()
}

/// An error where a member has no segment.
fn all_have_it(outcomes: &[(u8, bool, u64)]) -> Result<()> {
    let failed = |how: u8| outcomes.iter().position(|(outcome, ..)| *outcome == how);
    if let Some(other) = failed(NO_MEMORY) {
        return fail(
            Class::NoMem,
            format!("the window's memory cannot be had on the node of rank {other} of its group"),
        );
    }
    if let Some(other) = failed(FAILED) {
        return fail(
            Class::RmaShared,
            format!("rank {other} of the window's group could not map the window's segment"),
        );
    }
    Ok(())
}

/// The hints that a window knows; others are ignored. None of them changes what is done here: they allow, they do not ask.
const KNOWN_HINTS: &[&[u8]] = &[
    b"no_locks",
    b"accumulate_ordering",
    b"accumulate_ops",
    b"same_size",
    b"same_disp_unit",
    b"alloc_shared_noncontig",
    b"mpi_accumulate_granularity",
];

/// The hints that a window has where the program gave no other value.
const DEFAULT_HINTS: &[(&[u8], &[u8])] = &[
    (b"no_locks", b"false"),
    (b"accumulate_ordering", b"rar,raw,war,waw"),
    (b"accumulate_ops", b"same_op_no_op"),
    (b"same_size", b"false"),
    (b"same_disp_unit", b"false"),
];

fn hints(ask: &Ask) -> info::Entries {
    let mut entries = info::Entries::default();
    for (key, value) in DEFAULT_HINTS {
        entries.set(key, value);
    }
    if let Memory::Share { apart, .. } = ask.memory {
        entries.set(b"alloc_shared_noncontig", if apart { b"true" } else { b"false" });
    }
    add_hints(&mut entries, &ask.hints);
    entries.set(info::ALLOC_KINDS.0, info::ALLOC_KINDS.1);
    entries
}

/// Take those of the `given` hints that a window knows.
pub(super) fn add_hints(entries: &mut info::Entries, given: &info::Entries) {
    for (key, value) in given.iter().filter(|(key, _)| KNOWN_HINTS.contains(key)) {
        entries.set(key, value);
    }
}

/// The segment of this node's members: made by the first of them, mapped by the others. The outer result is the communicator's, the inner one this
/// member's own.
fn share(comm: &Rc<Communicator>, shape: Shape, far: Option<&Far>) -> Result<Result<Control>> {
    let no_memory = |why: &dyn std::fmt::Display| {
        Error::new(Class::NoMem, format!("the window's segment of {} bytes cannot be made: {why}", shape.data_bytes))
    };
    let maker = far.map_or(0, leader);
    let made = (comm.rank == maker).then(|| Control::create(shape));
    // It cannot be passed on: the others hear so, and this member fails.
    let known = match &made {
        Some(Ok(control)) => Told::of(comm, control.fd()),
        _ => Ok(Told::NOTHING),
    };
    let told = tell(comm, *known.as_ref().unwrap_or(&Told::NOTHING), maker, far.is_some())?;
    if let Some(made) = made {
        return Ok(made.map_err(|error| no_memory(&error)).and_then(|control| known.map(|_| control)));
    }
    if told.is_nothing() {
        return Ok(Err(no_memory(&format!("rank {maker} of its group, which makes it, has failed"))));
    }
    Ok(open_segment(comm, shape, maker, told))
}

/// What `maker` tells of its descriptor. `apart`: the members have several makers, one for each node.
fn tell(comm: &Communicator, told: Told, maker: u32, apart: bool) -> Result<Told> {
    let mut told = told.encode();
    if apart {
        let mut all = vec![0; told.len() * comm.size() as usize];
        coll::allgather_bytes(comm, &told, &mut all)?;
        told = *all.as_chunks::<TOLD_BYTES>().0.get(maker as usize).expect("it is a member");
    } else {
        coll::bcast_bytes(comm, &mut told, maker)?;
    }
    Ok(Told::decode(told))
}

/// Map the segment that member `maker` has made.
pub(super) fn open_segment(comm: &Communicator, shape: Shape, maker: u32, told: Told) -> Result<Control> {
    told.open(comm.local.world_rank(maker))
        .and_then(|file| Control::map(shape, file).map_err(|error| error.to_string()))
        .map_err(|why| Error::new(Class::RmaShared, format!("the window's segment cannot be mapped: {why}")))
}

/// The first member on this node.
fn leader(far: &Far) -> u32 {
    far.members.iter().position(|far| !far).map_or(0, |member| member as u32)
}

/// Make the segment known to this node's carrier, and find out whether that can copy from and to this process.
///
/// # Errors
/// `Class::RmaShared` if the carrier cannot map it.
fn meet_carrier(
    comm: &Communicator,
    control: &Control,
    shape: Shape,
    far: &Far,
    memory: (u64, u64),
    probe: u64,
) -> Result<bool> {
    control.member(comm.rank).set_memory(memory.0, memory.1);
    if comm.rank == leader(far) {
        (0..).zip(comm.local.iter()).for_each(|(member, rank)| control.member(member).set_rank(rank));
        let Shape { members, dynamic, data_bytes } = shape;
        far.open(comm, Opening { fd: control.raw_fd(), members, dynamic, data_bytes })?;
    }
    if endpoint().job.config().single_copy == 0 {
        return Ok(false);
    }
    far.attend(comm, probe)
}

/// This node's carrier need not know the window any more.
fn close_far(comm: &Communicator, far: &Option<Far>) {
    if let Some(far) = far.as_ref().filter(|far| comm.rank == leader(far)) {
        far.close(comm);
    }
}

/// How it went, whether the carrier can copy, and where the member's memory lies.
const OUTCOME_BYTES: usize = 16;

fn encode_outcome(outcome: u8, by_carrier: bool, base: u64) -> [u8; OUTCOME_BYTES] {
    let mut bytes = [0; OUTCOME_BYTES];
    (bytes[0], bytes[1]) = (outcome, u8::from(by_carrier));
    bytes[8..].copy_from_slice(&base.to_ne_bytes());
    bytes
}

fn decode_outcome(bytes: &[u8]) -> (u8, bool, u64) {
    (bytes[0], bytes[1] != 0, u64::from_ne_bytes(bytes[8..16].try_into().expect("eight bytes")))
}

/// How the own memory of a member is reached.
fn reach(comm: &Communicator, member: u32) -> Reach {
    let world = comm.local.world_rank(member);
    let endpoint = endpoint();
    if world == endpoint.me {
        return Reach::Here { shift: 0 };
    }
    if endpoint.job.config().single_copy == 0 {
        return Reach::Ask;
    }
    endpoint.node.copy_pid(world).map_or(Reach::Ask, |pid| Reach::Copy { pid })
}

/// Free a window; collective. The delete callbacks of its attributes are called first.
///
/// # Errors
/// `Class::RmaSync` inside an epoch; what a delete callback returned, and the window stays then.
pub fn free(handle: Win) -> Result<()> {
    let window = super::get_window(handle)?;
    {
        let epoch = window.epoch.borrow();
        let open = match &epoch.access {
            Access::None | Access::Fence { used: false } => None,
            other => Some(other.describe()),
        };
        let open = open.or(epoch.exposure.is_some().then_some("an exposure epoch"));
        if let Some(open) = open {
            return fail(Class::RmaSync, format!("MPI_Win_free while {open} is open"));
        }
    }
    attr::delete_all(attr::Kind::Win, handle.raw())?;
    checked::freed(&window);
    if let Some(simulated) = &window.simulated {
        simulated.close(&window)?;
    }
    match coll::barrier(&window.comm) {
        // Those who are left need not wait for each other.
        Err(error) if failure::is_failure(&error) => {}
        arrived => arrived?,
    }
    close_far(&window.comm, &window.far);
    if let Some(helper) = window.helper.get() {
        helper.stop();
    }
    errhandler::forget(errhandler::Target::Win(handle));
    let removed = with_windows(|windows| windows.remove(handle));
    drop(removed);
    construct::free(window.comm.handle)
}
