//! Communicators (MPI 4.1 chapter 7). (Floor 3.)
//!
//! Reading order: this file (what a communicator is, and the table of them), `layout` (how its members are spread over nodes), `cell` (the
//! collective cell that they share), `topology`, `hints`. `construct` makes them.

pub(crate) mod cell;
mod hints;
pub mod layout;
pub mod topology;

use crate::errhandler::{self, Target};
use crate::errors::{Class, Result, fail};
use crate::failure::Health;
use crate::group::Members;
use crate::guarded::EntryGuarded;
use crate::handle::{Comm, Errhandler, Handle, Session};
use crate::info;
use crate::nodes;
use crate::plane::USER_TAG_BIT;
use crate::process;
use crate::table::Table;
use cell::CellShare;
use layout::Layout;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use topology::Topology;
use vmpi_shared::dynamic::{Ranks, World};

/// Tags of collectives count from 0 below this; user tags of communicator construction have the next bit set.
const COLLECTIVE_TAG_MASK: u32 = 0x0FFF_FFFF;
/// Set in the tags of nonblocking collectives, which have a counter of their own.
const TAG_NONBLOCKING: i32 = 1 << 28;

/// A communicator.
pub struct Communicator {
    pub handle: Comm,
    /// Matching context of point-to-point messages (even); collectives use `context + 1`.
    pub context: u32,
    /// My rank in the local group.
    pub rank: u32,
    pub local: Rc<Members>,
    /// The remote group of an intercommunicator.
    pub remote: Option<Rc<Members>>,
    /// For an intercommunicator: a private intracommunicator over the local group, for the local phases.
    pub local_comm: Option<Rc<Communicator>>,
    /// Blocking collectives started so far on this communicator (their tag).
    collectives: Cell<u32>,
    /// Nonblocking and persistent ones.
    nonblocking: Cell<u32>,
    pub(crate) cell: CellShare,
    /// How the members are spread over nodes, once somebody has asked.
    layout: OnceCell<Layout>,
    /// What deaths and revocations mean for it.
    pub(crate) health: Rc<Health>,
    /// Only a view of another one, which its context belongs to.
    pub(crate) borrowed: bool,
    name: RefCell<Vec<u8>>,
    hints: RefCell<hints::Hints>,
    topology: RefCell<Option<Rc<Topology>>>,
}

impl Drop for Communicator {
    /// The last member to let go of a communicator gives its collective cell back.
    fn drop(&mut self) {
        if process::is_active() && !self.borrowed {
            let members = self.size() + self.remote.as_ref().map_or(0, |remote| remote.size());
            process::endpoint().job.release_context(self.context, members);
            cell::give_back(self);
        }
    }
}

impl Communicator {
    /// An intracommunicator without a handle, name, hints or topology.
    pub fn intra(context: u32, rank: u32, local: Rc<Members>) -> Communicator {
        let health = Health::new(vec![context], vec![local.clone()], false);
        enroll(context, rank, &local);
        Communicator::with_health(context, rank, local, health)
    }

    pub(crate) fn with_health(context: u32, rank: u32, local: Rc<Members>, health: Rc<Health>) -> Communicator {
        Communicator {
            handle: Comm::NULL,
            context,
            rank,
            local,
            remote: None,
            local_comm: None,
            collectives: Cell::new(0),
            nonblocking: Cell::new(0),
            cell: CellShare::default(),
            layout: OnceCell::new(),
            health,
            borrowed: false,
            name: RefCell::new(Vec::new()),
            hints: RefCell::default(),
            topology: RefCell::new(None),
        }
    }

    /// An intercommunicator with its private local communicator.
    pub(crate) fn inter(contexts: Contexts, rank: u32, local: Rc<Members>, remote: Rc<Members>) -> Communicator {
        let leads = local.world_rank(0) < remote.world_rank(0);
        let local_context = if leads { contexts[1] } else { contexts[2] };
        // One health for both: a phase inside one group fails with the whole operation.
        let health = Health::new(vec![contexts[0], local_context], vec![local.clone(), remote.clone()], false);
        enroll(local_context, rank, &local);
        let local_comm = Rc::new(Communicator::with_health(local_context, rank, local.clone(), health.clone()));
        let mut inter = Communicator::with_health(contexts[0], rank, local, health);
        inter.remote = Some(remote);
        inter.local_comm = Some(local_comm);
        inter
    }

    /// This communicator as a construction among some of its members (or peers) uses it: job ranks `members`, all of which it needs.
    pub(crate) fn among(&self, members: Rc<Members>) -> Rc<Communicator> {
        let health = Health::new(vec![self.context], vec![members], true);
        health.follow(&self.health);
        let mut view = Communicator::with_health(self.context, self.rank, self.local.clone(), health);
        view.remote = self.remote.clone();
        view.borrowed = true;
        Rc::new(view)
    }

    pub fn size(&self) -> u32 {
        self.local.size()
    }
    /// The session that this communicator was derived from (`Session::NULL`: the world model).
    pub fn session(&self) -> Session {
        self.local.session()
    }
    /// The job's ranks in it, both groups' of an intercommunicator.
    pub fn job_ranks(&self) -> Ranks {
        self.health.members().collect()
    }
    pub fn is_inter(&self) -> bool {
        self.remote.is_some()
    }
    /// The group that ranks in point-to-point calls refer to: the remote one of an intercommunicator.
    pub fn peers(&self) -> &Rc<Members> {
        self.remote.as_ref().unwrap_or(&self.local)
    }
    /// Tag of the next blocking collective call on this communicator; every rank takes one per call, in the same order.
    pub fn next_collective_tag(&self) -> i32 {
        next(&self.collectives)
    }
    /// Tag of the next nonblocking one. MPI demands one order of both kinds; Open MPI and MPICH keep them apart, and mpi4py
    /// starts MPI_Iallreduce before a barrier on one rank and after it on the others.
    pub fn next_nonblocking_tag(&self) -> i32 {
        next(&self.nonblocking) | TAG_NONBLOCKING
    }
    /// So many blocking collectives, and so many others, have begun on it.
    pub(crate) fn calls_so_far(&self) -> [u32; 2] {
        [self.collectives.get(), self.nonblocking.get()]
    }
    /// The name that the program gave (or the predefined one); not NUL-terminated.
    pub fn name(&self) -> Vec<u8> {
        self.name.borrow().clone()
    }
    pub fn set_name(&self, name: &[u8]) {
        *self.name.borrow_mut() = name.to_vec();
        if !self.is_inter()
            && let Some(endpoint) = process::endpoint_if_any()
        {
            let drawn = self.cell.drawn.get().copied().flatten();
            let roster = match drawn {
                Some(number) => endpoint.job.roster_at(number, self.context),
                None => endpoint.job.roster(self.context),
            };
            if let Some(roster) = roster {
                roster.rename(name);
            }
        }
    }
    /// All hints that there are, as they are set here.
    pub fn hints(&self) -> info::Entries {
        self.hints.borrow().entries()
    }
    /// Set those of `hints` that are known; the others are ignored.
    pub fn add_hints(&self, hints: &info::Entries) {
        self.hints.borrow_mut().set(hints);
    }
    /// The virtual topology, if any.
    pub fn topology(&self) -> Option<Rc<Topology>> {
        self.topology.borrow().clone()
    }
    pub(crate) fn set_topology(&self, topology: Option<Rc<Topology>>) {
        *self.topology.borrow_mut() = topology;
    }
    /// The intracommunicator over the local group: this one, or the private one of an intercommunicator.
    pub(crate) fn local_phase(self: &Rc<Self>) -> &Rc<Communicator> {
        self.local_comm.as_ref().unwrap_or(self)
    }
    /// How the members of an intracommunicator are spread over nodes; `None` in a job of one node.
    pub fn layout(&self) -> Option<&Layout> {
        let make = || Layout::new(self.rank, self.local.iter().map(nodes::node_of));
        nodes::is_spread().then(|| self.layout.get_or_init(make))
    }
    /// How its members on this node share the node's cores: a layout of cores in the place of nodes, of places among these members.
    pub fn cores(&self, layout: Option<&Layout>) -> Layout {
        let home = |rank: u32| process::node().home_of(rank);
        match layout {
            None => Layout::new(self.rank, self.local.iter().map(home)),
            Some(layout) => {
                let here = layout.local().iter().map(|member| self.local.world_rank(*member));
                Layout::new(layout.place(), here.map(home))
            }
        }
    }
    /// What the program would call this communicator, for messages.
    pub fn describe(&self) -> String {
        let name = self.name.borrow();
        let name = if name.is_empty() { "a communicator" } else { &String::from_utf8_lossy(&name) };
        match &self.remote {
            None => format!("{name} ({} ranks)", self.size()),
            Some(remote) => format!("{name} (local {} and remote {} ranks)", self.size(), remote.size()),
        }
    }
}

/// Let those who look from outside know who is in the communicator with this context.
fn enroll(context: u32, rank: u32, local: &Members) {
    if let Some(endpoint) = process::endpoint_if_any()
        && let Some(roster) = endpoint.job.roster(context)
    {
        roster.enroll(rank, local.size(), endpoint.me);
    }
}

struct Comms {
    world: Option<Rc<Communicator>>,
    own: Option<Rc<Communicator>>,
    parent: Comm,
    /// Those two after MPI_Finalize: out of reach, and kept, because their contexts are never given back.
    retired: Vec<Rc<Communicator>>,
    /// `None`: a handle that was given out (MPI_Comm_idup) before its context is agreed upon.
    created: Table<Comm, Option<Rc<Communicator>>>,
}

impl Comms {
    /// Not in line: most messages go through MPI_COMM_WORLD.
    #[inline(never)]
    fn of_program(&self, handle: Comm) -> Option<Rc<Communicator>> {
        self.created.get(handle).cloned().flatten()
    }
}

static COMMS: EntryGuarded<Comms> =
    EntryGuarded::new(Comms { world: None, own: None, parent: Comm::NULL, retired: Vec::new(), created: Table::new() });

/// The communicator behind a handle; `Class::Comm` if there is none.
#[inline(always)]
pub fn get(handle: Comm) -> Result<Rc<Communicator>> {
    let found = COMMS.with(|comms| match handle {
        Comm::WORLD => comms.world.clone(),
        Comm::SELF => comms.own.clone(),
        _ => comms.of_program(handle),
    });
    match found {
        Some(comm) => Ok(comm),
        None => no_such(handle),
    }
}

/// As [`get`], for what needs only the handle: one that MPI_Comm_idup gave out counts before its request has completed,
/// since programs (mpi4py) set its error handler at once, as Open MPI and MPICH let them.
///
/// # Errors
/// `Class::Comm` if there is no such communicator.
pub fn exists(handle: Comm) -> Result<()> {
    match COMMS.with(|comms| comms.created.get(handle).is_some()) {
        true => Ok(()),
        false => get(handle).map(drop),
    }
}

#[cold]
fn no_such(handle: Comm) -> Result<Rc<Communicator>> {
    let pending = COMMS.with(|comms| comms.created.get(handle).is_some());
    fail(
        Class::Comm,
        match handle {
            Comm::NULL => "the communicator is MPI_COMM_NULL".into(),
            Comm::WORLD | Comm::SELF => {
                "MPI_COMM_WORLD and MPI_COMM_SELF exist from MPI_Init to MPI_Finalize only".into()
            }
            _ if pending => "the communicator's MPI_Comm_idup has not completed".into(),
            _ => format!("{:#x} is not the handle of a communicator (freed already?)", handle.raw()),
        },
    )
}

/// As [`get`], and it must be an intracommunicator.
pub fn get_intra(handle: Comm) -> Result<Rc<Communicator>> {
    match get(handle)? {
        comm if comm.is_inter() => fail(Class::Comm, "an intracommunicator is needed, this is an intercommunicator"),
        comm => Ok(comm),
    }
}

/// As [`get`], and it must be an intercommunicator.
pub fn get_inter(handle: Comm) -> Result<Rc<Communicator>> {
    match get(handle)? {
        comm if comm.is_inter() => Ok(comm),
        _ => fail(Class::Comm, "an intercommunicator is needed, this is an intracommunicator"),
    }
}

/// Called once by MPI_Init, by job-wide rank `me`: make MPI_COMM_WORLD (context 0 for the ranks that vmpirun started),
/// MPI_COMM_SELF (context 2) and the intercommunicator with the group that spawned this world.
pub fn init_world(me: u32, start: &World) {
    let members = Rc::new(Members::list(start.ranks.iter().collect()));
    let mut world = Communicator::intra(start.context, members.rank_of(me).unwrap_or(0), members.clone());
    let rank = world.rank;
    world.handle = Comm::WORLD;
    world.set_name(b"MPI_COMM_WORLD");
    let mut own = Communicator::intra(2, 0, Rc::new(Members::range(me, 1)));
    own.handle = Comm::SELF;
    own.set_name(b"MPI_COMM_SELF");
    COMMS.with(|comms| {
        comms.world = Some(Rc::new(world));
        comms.own = Some(Rc::new(own));
    });
    let initial = match start.errhandler.as_str() {
        "mpi_errors_return" => Some(Errhandler::RETURN),
        "mpi_errors_abort" => Some(Errhandler::ABORT),
        "mpi_errors_are_fatal" => Some(Errhandler::ARE_FATAL),
        _ => None,
    };
    for comm in [Comm::WORLD, Comm::SELF] {
        // Setting a predefined handler cannot fail.
        let _ = initial.map(|handler| errhandler::set(errhandler::Target::Comm(comm), handler));
    }
    if let Some(parent) = &start.parent {
        let remote = Members::list(parent.ranks.iter().collect());
        let comm = Communicator::inter(parent.contexts, rank, members, Rc::new(remote));
        comm.set_name(b"MPI_COMM_PARENT");
        let comm = settle(reserve(), comm);
        errhandler::inherit(Comm::WORLD, comm.handle);
        COMMS.with(|comms| comms.parent = comm.handle);
    }
}

/// The intercommunicator with the group that spawned this world; null if vmpirun started it, or once it was freed.
pub fn parent() -> Comm {
    COMMS.with(|comms| comms.parent)
}

/// MPI_Finalize: MPI_COMM_WORLD and MPI_COMM_SELF are gone, though sessions may go on.
pub fn end_world() {
    COMMS.with(|comms| {
        let ended = comms.world.take().into_iter().chain(comms.own.take());
        comms.retired.extend(ended);
    });
}

/// All that the program has made and not freed.
pub(crate) fn created() -> Vec<Rc<Communicator>> {
    COMMS.with(|comms| comms.created.iter().filter_map(|(_, comm)| comm.clone()).collect())
}

/// Give out a handle whose communicator comes later.
pub(crate) fn reserve() -> Comm {
    COMMS.with(|comms| comms.created.insert(None))
}

/// As `reserve`, for one that inherits the error handler of `parent`.
pub(crate) fn reserve_like(parent: &Communicator) -> Comm {
    let handle = reserve();
    errhandler::inherit(parent.handle, handle);
    handle
}

/// Put `comm` behind a reserved handle.
pub(crate) fn settle(handle: Comm, mut comm: Communicator) -> Rc<Communicator> {
    comm.handle = handle;
    let comm = Rc::new(comm);
    COMMS.with(|comms| {
        if let Some(slot) = comms.created.get_mut(handle) {
            *slot = Some(comm.clone());
        }
    });
    comm
}

/// Put the communicator of those who are left of `parent` behind a reserved handle.
pub(crate) fn settle_shrunk(
    handle: Comm,
    parent: &Communicator,
    contexts: [u32; 3],
    local: Rc<Members>,
    remote: Option<Rc<Members>>,
) {
    let rank = local.rank_of(parent.local.world_rank(parent.rank)).unwrap_or(0);
    let shrunk = match remote {
        None => Communicator::intra(contexts[0], rank, local),
        Some(remote) => Communicator::inter(contexts, rank, local, remote),
    };
    settle(handle, shrunk);
}

/// Forget a handle; the object lives until the last operation on it has ended.
pub(crate) fn remove(handle: Comm) {
    let removed = COMMS.with(|comms| {
        if comms.parent == handle {
            comms.parent = Comm::NULL;
        }
        comms.created.remove(handle)
    });
    drop(removed);
}

/// Name a new communicator, which inherits the error handler of `parent`.
pub(crate) fn install(parent: &Communicator, comm: Communicator) -> Rc<Communicator> {
    let comm = settle(reserve(), comm);
    crate::errhandler::inherit(parent.handle, comm.handle);
    comm
}

/// Name a new communicator that has no parent: `handler` is its error handler, if it is not null.
pub(crate) fn install_with(comm: Communicator, handler: Errhandler) -> Result<Rc<Communicator>> {
    let comm = settle(reserve(), comm);
    set_handler(&comm, handler)?;
    Ok(comm)
}

/// The error handler that the program gave for a new communicator, if it is not null.
pub(crate) fn set_handler(comm: &Communicator, handler: Errhandler) -> Result<()> {
    if handler.is_null() {
        return Ok(());
    }
    let set = errhandler::set(Target::Comm(comm.handle), handler);
    if set.is_err() {
        remove(comm.handle);
    }
    set
}

/// Is `rank` a valid destination or source on `comm`: a member of the group that ranks refer to?
pub fn check_peer(comm: &Communicator, rank: i32) -> Result<u32> {
    let size = comm.peers().size();
    match u32::try_from(rank) {
        Ok(valid) if valid < size => Ok(valid),
        _ => fail(Class::Rank, format!("rank {rank} is not in the communicator, whose ranks are 0 to {}", size - 1)),
    }
}

fn next(counter: &Cell<u32>) -> i32 {
    let count = counter.get();
    counter.set(count.wrapping_add(1));
    (count & COLLECTIVE_TAG_MASK) as i32
}

/// A tag that the program gave for communicator construction, moved out of the way of collectives' tags.
pub(crate) fn construction_tag(tag: i32) -> Result<i32> {
    if !(0..=crate::consts::TAG_UB_VALUE).contains(&tag) {
        return fail(Class::Tag, format!("tag {tag} is not between 0 and {}", crate::consts::TAG_UB_VALUE));
    }
    Ok(tag | USER_TAG_BIT)
}

/// Contexts of a new communicator: its own, and those of the local communicators of an intercommunicator: the leading
/// group's, the other's. (They are told apart although the groups are disjoint, because shared memory is found by context.)
pub(crate) type Contexts = [u32; CONTEXTS];

/// Contexts that an intercommunicator needs.
pub(crate) const CONTEXTS: usize = 3;

/// Does my group take the decisions for both? The one whose first member has the lower job-wide rank does.
pub(crate) fn leads(comm: &Communicator) -> bool {
    comm.local.world_rank(0) < comm.peers().world_rank(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn construction_tags_never_meet_collective_tags() {
        assert!(construction_tag(0).unwrap() as u32 > COLLECTIVE_TAG_MASK);
        assert!(construction_tag(crate::consts::TAG_UB_VALUE).unwrap() > 0);
        assert_eq!(construction_tag(-1).unwrap_err().class, Class::Tag);
        let comm = Communicator::intra(8, 0, Rc::new(Members::range(0, 1)));
        comm.collectives.set(u32::MAX);
        assert!(comm.next_collective_tag() < TAG_NONBLOCKING);
        assert_eq!(comm.next_collective_tag(), 0);
        comm.nonblocking.set(u32::MAX);
        assert!(comm.next_nonblocking_tag() < USER_TAG_BIT);
        assert_eq!(comm.next_nonblocking_tag(), TAG_NONBLOCKING);
    }
}
