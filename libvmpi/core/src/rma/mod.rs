//! One-sided communication (MPI 4.1 chapter 12). (Floor 9.)
//!
//! Reading order: this file (what a window is, and the table of them), `create`, `epoch` (what may be done when),
//! `sync` (fence, post-start-complete-wait, locks), `wait` (how a member waits for another), `place` (where a target's
//! memory is), `local` (the origin's buffer), `transfer` (put and get), `step` and `accumulate` (read, compute and write back as one step), `operation` (what is under way), `request` (MPI_Rput and its
//! kin), `remote_node` (members on other nodes), `simulated` (in virtual time), `remote` and `remote_accumulate` (where the kernel refuses single copy: by messages), `counter` (a number that ranks of several nodes step), `checked` (`vmpirun --check`).
//!
//! Memory that MPI allocates lies in a segment that all members of a node map. Memory of the program's own is reached by single
//! copy. Either way the origin does all the work inside its call: the target takes no part, and what is left for the
//! synchronisation calls is to tell others.

mod accumulate;
mod checked;
mod counter;
mod create;
mod epoch;
mod local;
mod operation;
mod place;
mod remote;
mod remote_accumulate;
mod remote_node;
mod request;
mod simulated;
mod step;
mod sync;
mod transfer;
mod wait;

pub(crate) use checked::note_error;

pub use accumulate::{accumulate, compare_and_swap, fetch_and_op, get_accumulate};
pub use counter::Counter;
pub use create::{Ask, Memory, create, free};
pub use local::Local;
pub use place::Place;
pub use request::Starting;
pub use step::Operand;
pub use sync::{
    LockKind, complete, fence, flush, flush_all, flush_local, flush_local_all, lock, lock_all, post, start, sync, test,
    unlock, unlock_all, wait,
};
pub use transfer::{get, put};

use crate::comm::Communicator;
use crate::consts;
use crate::errors::{Class, Result, fail};
use crate::guarded::EntryGuarded;
use crate::handle::{Handle, Win};
use crate::info;
use crate::memory;
use crate::nodes;
use crate::process::endpoint;
use crate::simulate;
use crate::table::Table;
use crate::tool::event;
use epoch::Epoch;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use vmpi_shared::mem::checker;
use vmpi_shared::window::Window as Control;

/// How a member's memory is reached from this process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Reach {
    /// It is mapped here: what to add to an address of its owner's.
    Here { shift: u64 },
    /// By single copy from and to this process.
    Copy { pid: i32 },
    /// On another node: by its carrier.
    Far,
    /// By messages.
    Ask,
}

/// One member's memory.
#[derive(Copy, Clone, Debug)]
struct Part {
    /// Address in the owner's process.
    base: u64,
    bytes: u64,
    /// Displacement unit, bytes.
    unit: i64,
    reach: Reach,
}

/// A window.
pub struct Window {
    handle: Cell<Win>,
    /// Private: a duplicate of the one that the program gave.
    pub comm: Rc<Communicator>,
    /// `consts::WIN_FLAVOR_*`.
    pub flavor: i32,
    control: Control,
    parts: Vec<Part>,
    epoch: RefCell<Epoch>,
    /// If it has members on other nodes.
    far: Option<remote_node::Far>,
    /// In a simulated job.
    simulated: Option<simulated::Simulated>,
    /// Those that will be answered.
    operations: RefCell<Vec<Rc<operation::Operation>>>,
    helper: OnceCell<remote::Helper>,
    name: RefCell<Vec<u8>>,
    hints: RefCell<Rc<info::Entries>>,
    checks: checked::State,
}

impl Window {
    pub fn handle(&self) -> Win {
        self.handle.get()
    }
    /// This process's rank in the window.
    pub fn rank(&self) -> u32 {
        self.comm.rank
    }
    /// Base address, bytes and displacement unit of this process's own memory.
    pub fn own(&self) -> (usize, u64, i64) {
        let part = &self.parts[self.rank() as usize];
        (part.base as usize, part.bytes, part.unit)
    }
    /// The name that the program gave.
    pub fn name(&self) -> Vec<u8> {
        self.name.borrow().clone()
    }
    pub fn set_name(&self, name: &[u8]) {
        *self.name.borrow_mut() = name.to_vec();
    }
    /// The hints of this window.
    pub fn hints(&self) -> Rc<info::Entries> {
        self.hints.borrow().clone()
    }
    /// Add those of `hints` that a window knows to this window's, replacing those with the same keys.
    pub fn add_hints(&self, hints: &info::Entries) {
        let mut merged = info::Entries::clone(&self.hints());
        create::add_hints(&mut merged, hints);
        *self.hints.borrow_mut() = Rc::new(merged);
    }

    /// Others may have written to this member's memory, and to what is mapped here of theirs: that is so from the beginning, and again at each synchronisation, because the
    /// program may have left bytes without a value there.
    #[inline]
    fn note_written(&self) {
        if checker::is_watched() {
            for part in &self.parts {
                if let Reach::Here { shift } = part.reach {
                    checker::exposed(part.base.wrapping_add(shift), part.bytes);
                }
            }
            for (base, bytes) in self.control.attachments(self.rank()) {
                checker::exposed(base, bytes);
            }
        }
    }

    fn is_dynamic(&self) -> bool {
        self.flavor == consts::WIN_FLAVOR_DYNAMIC
    }

    /// Let `member` look whether what it waits for has come about. The caller has fenced (SYNC W).
    fn wake(&self, member: u32) {
        endpoint().wake_rank(self.comm.local.world_rank(member));
    }

    /// What the program would call this window, for messages.
    pub fn describe(&self) -> String {
        let name = self.name.borrow();
        let name = if name.is_empty() { "a window" } else { &String::from_utf8_lossy(&name) };
        format!("{name} of {} ranks", self.comm.size())
    }

    /// Size, displacement unit and local address of a member's memory (MPI_Win_shared_query); `PROC_NULL`: of the first
    /// member that has any which this process can reach. What is not mapped here, of another node's rank or of memory that
    /// another has brought (MPI_Win_create), is nothing: all three are 0 (MPI 4.1 section 12.2.3; MPICH 5 gives the same).
    ///
    /// # Errors
    /// `Class::RmaFlavor` for a dynamic window, `Class::Rank` for a rank that does not exist.
    pub fn shared_query(&self, rank: i32) -> Result<(u64, i64, usize)> {
        let (brought, me) = (self.flavor == consts::WIN_FLAVOR_CREATE, endpoint().me);
        let here = |member: usize| {
            let part = &self.parts[member];
            match part.reach {
                _ if brought => (member == self.rank() as usize).then_some(part.base as usize),
                Reach::Here { shift } if nodes::share_node(me, self.comm.local.world_rank(member as u32)) => {
                    Some(part.base.wrapping_add(shift) as usize)
                }
                _ => None,
            }
        };
        let member = match rank {
            _ if self.is_dynamic() => {
                return fail(Class::RmaFlavor, "the window is dynamic: it has no memory of its own");
            }
            consts::PROC_NULL if brought => None,
            consts::PROC_NULL => {
                (0..self.parts.len()).find(|&member| self.parts[member].bytes > 0 && here(member).is_some())
            }
            rank => Some(self.check_rank(rank)? as usize),
        };
        let found = member.and_then(|member| Some((&self.parts[member], here(member)?)));
        Ok(found.map_or((0, 0, 0), |(part, address)| (part.bytes, part.unit, address)))
    }

    /// Attach memory of this process to a dynamic window.
    ///
    /// # Errors
    /// `Class::RmaFlavor` if the window is not dynamic.
    pub fn attach(&self, base: usize, bytes: u64) -> Result<()> {
        self.check_dynamic()?;
        if bytes > 0 {
            checker::exposed(base as u64, bytes);
            self.control.attach(self.rank(), base as u64, bytes);
        }
        Ok(())
    }

    /// Detach the memory at `base`.
    ///
    /// # Errors
    /// `Class::RmaFlavor` if the window is not dynamic, `Class::RmaAttach` if nothing is attached there.
    pub fn detach(&self, base: usize) -> Result<()> {
        self.check_dynamic()?;
        if !self.control.detach(self.rank(), base as u64) {
            return fail(Class::RmaAttach, format!("no memory is attached at address {base:#x}"));
        }
        Ok(())
    }

    fn check_dynamic(&self) -> Result<()> {
        if self.is_dynamic() {
            return Ok(());
        }
        fail(Class::RmaFlavor, "memory can be attached to windows of MPI_Win_create_dynamic only")
    }

    fn check_rank(&self, rank: i32) -> Result<u32> {
        let size = self.comm.size();
        match u32::try_from(rank) {
            Ok(valid) if valid < size => Ok(valid),
            _ => fail(Class::Rank, format!("rank {rank} is not in the window, whose ranks are 0 to {}", size - 1)),
        }
    }
}

static WINDOWS: EntryGuarded<Table<Win, Rc<Window>>> = EntryGuarded::new(Table::new());

/// Change the table of windows; memory that is laid open is moved only while there are none.
fn with_windows<R>(change: impl FnOnce(&mut Table<Win, Rc<Window>>) -> R) -> R {
    WINDOWS.with(|windows| {
        let result = change(windows);
        memory::set_windows(!windows.is_empty());
        result
    })
}

/// The window behind a handle.
///
/// # Errors
/// `Class::Win` if there is none.
#[inline]
pub fn get_window(handle: Win) -> Result<Rc<Window>> {
    match WINDOWS.with(|windows| windows.get(handle).cloned()) {
        Some(window) => Ok(window),
        None if handle.is_null() => fail(Class::Win, "the window is MPI_WIN_NULL"),
        None => fail(Class::Win, format!("{:#x} is not the handle of a window (freed already?)", handle.raw())),
    }
}

/// This rank is about to leave MPI: in virtual time it does what it has begun before, also in windows that the program does not free.
///
/// # Errors
/// What was wrong with that.
pub fn finish_operations() -> Result<()> {
    if !simulate::is_on() {
        return Ok(());
    }
    let windows: Vec<Rc<Window>> = WINDOWS.with(|windows| windows.iter().map(|(_, window)| window.clone()).collect());
    windows.iter().try_for_each(|window| window.finish(None, checked::Extent::Target))
}

/// Calls that a rank may make in a row, waiting for another's doing, before it lets the others of its core run.
const PATIENCE: u32 = 32;
static IMPATIENCE: EntryGuarded<u32> = EntryGuarded::new(0);

/// A call that programs repeat until another rank has done something: every so often let the others of this core run.
#[inline]
fn polled(weight: u32) {
    let tired = IMPATIENCE.with(|count| {
        *count += weight;
        let tired = *count >= PATIENCE;
        if tired {
            *count = 0;
        }
        tired
    });
    // In virtual time each of them takes its time.
    if tired || (event::is_wanted() && simulate::is_on()) {
        crate::request::progress();
        crate::request::poll_missed();
    }
}
