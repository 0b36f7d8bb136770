//! An open file: what belongs to it, how it comes and goes.

use super::agree::{agree, at_root, digest};
use super::hints::Hints;
use super::memory::Memory;
use super::shared_pointer::SharedPointer;
use super::view::View;
use super::{amode, errno, lock, transfer};
use crate::coll;
use crate::comm::Communicator;
use crate::construct;
use crate::consts::{MODE_APPEND, MODE_CREATE, MODE_DELETE_ON_CLOSE, MODE_EXCL};
use crate::errhandler;
use crate::errors::{Class, Result, fail};
use crate::failure;
use crate::guarded::EntryGuarded;
use crate::handle::{self, Handle, Request};
use crate::info;
use crate::nodes;
use crate::process;
use crate::simulate;
use crate::table::Table;
use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A split collective access that has begun.
pub struct Split {
    pub request: Request,
    /// The name of the call that ends it, such as "read_all".
    pub kind: &'static str,
}

/// An open file.
pub struct File {
    pub handle: Cell<handle::File>,
    /// The file's own communicator over the group that opened it.
    pub comm: Rc<Communicator>,
    /// For messages.
    pub name: String,
    path: PathBuf,
    pub amode: i32,
    pub(super) os: std::fs::File,
    pub(super) view: RefCell<Rc<View>>,
    /// The individual file pointer, in etypes.
    pub(super) position: Cell<i64>,
    pub(super) shared: SharedPointer,
    pub(super) atomic: Cell<bool>,
    pub(super) hints: RefCell<Hints>,
    pub(super) split: RefCell<Option<Split>>,
    /// Ranks of the group that may be aggregators, best first.
    pub(super) aggregators: Vec<u32>,
    /// An aggregator's buffer, kept for the next collective access.
    buffer: RefCell<Vec<u8>>,
}

static FILES: EntryGuarded<Table<handle::File, Rc<File>>> = EntryGuarded::new(Table::new());

/// The file behind a handle.
///
/// # Errors
/// `Class::File` if there is none.
pub fn get(handle: handle::File) -> Result<Rc<File>> {
    match FILES.with(|files| files.get(handle).cloned()) {
        Some(file) => Ok(file),
        None if handle.is_null() => fail(Class::File, "the file is MPI_FILE_NULL"),
        None => fail(Class::File, format!("{:#x} is not the handle of an open file", handle.raw())),
    }
}

/// Prefixes by which ROMIO lets programs name the kind of file system; here they all mean the kernel's.
const PREFIXES: &[&[u8]] =
    &[b"ufs:", b"nfs:", b"xfs:", b"panfs:", b"pvfs2:", b"gpfs:", b"lustre:", b"daos:", b"testfs:"];

fn path_of(name: &[u8]) -> &Path {
    let prefix = PREFIXES.iter().find(|prefix| name.starts_with(prefix)).map_or(0, |prefix| prefix.len());
    Path::new(OsStr::from_bytes(&name[prefix..]))
}

/// Ranks of `comm` in the order in which they become aggregators: the first of each core, then the others. Also the
/// number of cores. By placement: it must be the same for all ranks, and they may move.
fn aggregators(comm: &Communicator) -> (Vec<u32>, u32) {
    let node = process::node();
    let mut cores = Vec::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for rank in 0..comm.size() {
        let rank_in_job = comm.local.world_rank(rank);
        // Of other nodes' cores nothing is known here, and all ranks must choose alike; in virtual time by the machine that is simulated.
        let core = match simulate::host_of(rank_in_job) {
            Some(host) => host,
            None if nodes::is_spread() => nodes::node_of(rank_in_job),
            None => node.home_of(rank_in_job),
        };
        if cores.contains(&core) {
            others.push(rank);
        } else {
            cores.push(core);
            first.push(rank);
        }
    }
    first.extend(others);
    (first, cores.len() as u32)
}

/// Open a file on all ranks of `group`, an intracommunicator (MPI_File_open).
///
/// # Errors
/// `Class::Amode`; `Class::NotSame` for different modes; what the kernel says, on all ranks if on one.
pub fn open(group: &Rc<Communicator>, name: &[u8], mode: i32, given: &info::Entries) -> Result<handle::File> {
    simulate::storage(0);
    agree(group, amode::check(mode), digest(mode))?;
    let comm = construct::private(group)?;
    let path = path_of(name);
    let shown = path.display().to_string();
    let failed = |e: &std::io::Error| errno::error("open", &shown, e);
    let root = comm.rank == 0;
    // One rank makes the file, before all others look for it; with MPI_MODE_EXCL it alone asks whether it exists.
    let mut os = None;
    if mode & MODE_CREATE != 0 {
        at_root(&comm, || {
            os = Some(amode::options(mode, true).open(path).map_err(|e| failed(&e))?);
            Ok(())
        })?;
    }
    let opened = match os {
        Some(os) => Ok(os),
        None => amode::options(mode & !(MODE_CREATE | MODE_EXCL), root).open(path).map_err(|e| failed(&e)),
    };
    agree(&comm, opened.as_ref().map(drop).map_err(Clone::clone), 0)?;
    let (aggregators, cores) = aggregators(&comm);
    let file = Rc::new(File {
        handle: Cell::new(handle::File::NULL),
        shared: SharedPointer::open(&comm)?,
        comm,
        name: shown.clone(),
        path: path.to_owned(),
        amode: mode,
        os: opened?,
        view: RefCell::new(Rc::new(View::bytes()?)),
        position: Cell::new(0),
        atomic: Cell::new(false),
        hints: RefCell::new(Hints::new(cores, given)),
        split: RefCell::new(None),
        aggregators,
        buffer: RefCell::new(Vec::new()),
    });
    if mode & MODE_APPEND != 0 {
        // As one rank finds it: who has opened the file may write behind its end before another has looked where that is.
        let mut end = 0;
        at_root(&file.comm, || {
            end = file.size()?;
            file.shared.set(end as u64);
            Ok(())
        })?;
        let mut bytes = end.to_ne_bytes();
        coll::bcast_bytes(&file.comm, &mut bytes, 0)?;
        file.position.set(i64::from_ne_bytes(bytes));
    }
    let handle = FILES.with(|files| files.insert(file.clone()));
    file.handle.set(handle);
    errhandler::inherit_default(handle);
    Ok(handle)
}

/// Close a file, and delete it if it was opened so (MPI_File_close). The handle is gone also if that fails.
///
/// # Errors
/// `Class::Io` while a split collective access is active; what the kernel says about deleting.
pub fn close(handle: handle::File) -> Result<()> {
    let file = get(handle)?;
    file.check_no_split()?;
    // All have ended their accesses before the file disappears.
    let outcome = agree(&file.comm, Ok(()), 0).and_then(|()| {
        if file.amode & MODE_DELETE_ON_CLOSE == 0 {
            return Ok(());
        }
        at_root(&file.comm, || std::fs::remove_file(&file.path).map_err(|e| errno::error("delete", &file.name, &e)))
    });
    file.shared.close(&file.comm);
    // MPI_File_close raises its error by the file's handler, which the caller still needs.
    FILES.with(|files| files.remove(handle));
    match outcome {
        // Those who are left need not wait for each other.
        Err(error) if failure::is_failure(&error) => Ok(()),
        outcome => outcome,
    }
}

/// Delete a file (MPI_File_delete).
///
/// # Errors
/// What the kernel says.
pub fn delete(name: &[u8]) -> Result<()> {
    let path = path_of(name);
    std::fs::remove_file(path).map_err(|e| errno::error("delete", &path.display().to_string(), &e))
}

impl File {
    /// Bytes in the file now.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn size(&self) -> Result<i64> {
        match self.os.metadata() {
            Ok(metadata) => Ok(metadata.len() as i64),
            Err(e) => Err(errno::error("get the size of", &self.name, &e)),
        }
    }

    pub fn view(&self) -> Rc<View> {
        self.view.borrow().clone()
    }

    /// No split collective access has begun.
    ///
    /// # Errors
    /// `Class::Io`, as ROMIO.
    pub fn check_no_split(&self) -> Result<()> {
        match &*self.split.borrow() {
            None => Ok(()),
            Some(split) => fail(
                Class::Io,
                format!("a split collective access is active: MPI_File_{}_begin without its end", split.kind),
            ),
        }
    }

    /// Read or write without the other ranks: bytes of the view's data stream from `from` on. Returns how many.
    pub(super) fn access_alone(&self, view: &View, write: bool, from: u64, memory: &Memory) -> Result<u64> {
        if memory.bytes() == 0 || view.is_empty() {
            return Ok(0);
        }
        let failed = |e: std::io::Error| errno::error(if write { "write" } else { "read" }, &self.name, &e);
        let _locked = if self.atomic.get() {
            let (low, high) = view.bounds(from, from + memory.bytes());
            Some(lock::range(&self.os, low, high, write).map_err(|e| errno::error("lock", &self.name, &e))?)
        } else {
            None
        };
        if write {
            transfer::write_stream(&self.os, view, from, memory).map_err(failed)?;
            Ok(memory.bytes())
        } else {
            transfer::read_stream(&self.os, view, from, memory).map_err(failed)
        }
    }

    /// A buffer for an aggregator.
    pub(super) fn take_buffer(&self, bytes: usize) -> Vec<u8> {
        let mut buffer = std::mem::take(&mut *self.buffer.borrow_mut());
        if buffer.len() < bytes {
            buffer = vec![0; bytes];
        }
        buffer
    }

    /// Keep it for the next one.
    pub(super) fn give_buffer(&self, buffer: Vec<u8>) {
        *self.buffer.borrow_mut() = buffer;
    }
}
