//! Reads and writes as MPI has them: where (explicit offset, individual or shared pointer), and how (blocking,
//! nonblocking, collective, split).

#![allow(unsafe_code)]

use super::file::{File, Split};
use super::memory::{Buffer, Memory};
use super::two_phase::Collective;
use super::view::View;
use super::{amode, file};
use crate::coll;
use crate::consts::MODE_SEQUENTIAL;
use crate::errors::{Class, Result, fail};
use crate::handle::Request;
use crate::request;
use crate::status::Status;
use std::rc::Rc;

/// Reading or writing.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Way {
    Read,
    Write,
}

/// Where an access begins.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// So many etypes after the start of the view.
    At(i64),
    /// At the individual file pointer, which moves on.
    Individual,
    /// At the shared file pointer, which moves on.
    Shared,
    /// At the shared file pointer, in rank order: collective.
    Ordered,
}

/// An access that has been checked.
struct Prepared {
    file: Rc<File>,
    view: Rc<View>,
    write: bool,
    place: Place,
    memory: Memory,
    /// What the buffer is in etypes.
    etypes: u64,
}

/// Check an access.
///
/// # Safety
/// The buffer must stay valid until the access is over.
unsafe fn prepare(file: &Rc<File>, way: Way, place: Place, buffer: Buffer) -> Result<Prepared> {
    let write = way == Way::Write;
    if let Place::At(offset) = place
        && offset < 0
    {
        return fail(Class::Arg, format!("the offset is {offset}, it must not be negative"));
    }
    if write && !amode::writes(file.amode) {
        return fail(Class::ReadOnly, format!("the file {} is open for reading only", file.name));
    }
    if !write && !amode::reads(file.amode) {
        return fail(Class::Access, format!("the file {} is open for writing only", file.name));
    }
    let shared = matches!(place, Place::Shared | Place::Ordered);
    if file.amode & MODE_SEQUENTIAL != 0 && !shared {
        return fail(
            Class::UnsupportedOperation,
            "a file that was opened with MPI_MODE_SEQUENTIAL is accessed through the shared file pointer only",
        );
    }
    if shared {
        file.shared.check()?;
    }
    let view = file.view();
    // SAFETY: the caller's promise.
    let memory = unsafe { Memory::new(&view, buffer, write)? };
    let (bytes, unit) = (memory.bytes(), view.unit());
    if bytes.checked_rem(unit).unwrap_or(0) != 0 {
        return fail(Class::Io, format!("{bytes} bytes are not a whole number of etypes, which have {unit}"));
    }
    let etypes = bytes.checked_div(unit).unwrap_or(0);
    Ok(Prepared { file: file.clone(), view, write, place, memory, etypes })
}

impl Prepared {
    /// The place in the data stream, after the pointers have moved on.
    fn from(&self) -> Result<u64> {
        let file = &self.file;
        let etypes = self.etypes as i64;
        let start = match self.place {
            Place::At(offset) => offset,
            Place::Individual => file.position.get(),
            Place::Shared => file.shared.advance(&file.comm, self.etypes)? as i64,
            Place::Ordered => self.ordered()?,
        };
        let from = self.view.stream(start)?;
        self.view.check_reach(from.saturating_add(self.memory.bytes()))?;
        if self.place == Place::Individual {
            file.position.set(start.saturating_add(etypes));
        }
        Ok(from)
    }

    /// Where this rank's turn begins: every rank tells how much it wants, rank 0 moves the pointer for all.
    fn ordered(&self) -> Result<i64> {
        let comm = &self.file.comm;
        let mut all = vec![0; 8 * comm.size() as usize];
        coll::allgather_bytes(comm, &self.etypes.to_ne_bytes(), &mut all)?;
        let wants: Vec<u64> = all.chunks_exact(8).map(|b| u64::from_ne_bytes(std::array::from_fn(|i| b[i]))).collect();
        let sum = |wants: &[u64]| wants.iter().fold(0u64, |sum, n| sum.wrapping_add(*n));
        let mut start = [0; 8];
        if comm.rank == 0 {
            start = self.file.shared.advance(comm, sum(&wants))?.to_ne_bytes();
        }
        coll::bcast_bytes(comm, &mut start, 0)?;
        Ok(u64::from_ne_bytes(start).wrapping_add(sum(&wants[..comm.rank as usize])) as i64)
    }

    fn alone(mut self) -> Result<Status> {
        let from = self.from()?;
        let done = self.file.access_alone(&self.view, self.write, from, &self.memory)?;
        if self.place == Place::Individual && done < self.memory.bytes() {
            // A read that met the end of the file leaves the pointer there (as POSIX, and as ROMIO's contiguous reads).
            let missing = (self.memory.bytes() - done).checked_div(self.view.unit()).unwrap_or(0);
            self.file.position.set(self.file.position.get() - missing as i64);
        }
        let bytes = if self.write { self.memory.finish_write(done) } else { self.memory.finish_read(done)? };
        Ok(Status { bytes, ..Status::EMPTY })
    }

    /// # Safety
    /// The buffer must stay valid until the operation is over.
    unsafe fn together(self) -> Result<Collective> {
        let from = self.from()?;
        // SAFETY: the caller's promise.
        unsafe { Collective::new(self.file, self.view, self.write, from, self.memory) }
    }
}

/// An independent access (MPI_File_read, MPI_File_write_at, ...).
///
/// # Errors
/// `Class::Arg`, `Class::Access`, `Class::ReadOnly`, `Class::UnsupportedOperation`, `Class::Io`; what the kernel says.
///
/// # Safety
/// The buffer must be valid during the call.
pub unsafe fn alone(file: &Rc<File>, way: Way, place: Place, buffer: Buffer) -> Result<Status> {
    // SAFETY: the caller's promise.
    unsafe { prepare(file, way, place, buffer)? }.alone()
}

/// A collective access (MPI_File_read_all, MPI_File_write_ordered, ...).
///
/// # Errors
/// As [`alone`]; what an aggregator's kernel says.
///
/// # Safety
/// As [`alone`].
pub unsafe fn together(file: &Rc<File>, way: Way, place: Place, buffer: Buffer) -> Result<Status> {
    // SAFETY: the caller's promise.
    let mut operation = unsafe { prepare(file, way, place, buffer)?.together()? };
    request::run(&mut operation)
}

/// Start a collective access (MPI_File_iread_all, ...).
///
/// # Errors
/// As [`alone`], where they show at once.
///
/// # Safety
/// The buffer must be valid until the request is complete.
pub unsafe fn start(file: &Rc<File>, way: Way, place: Place, buffer: Buffer) -> Result<Request> {
    // SAFETY: the caller's promise.
    Ok(request::insert(Box::new(unsafe { prepare(file, way, place, buffer)?.together()? })))
}

/// Begin a split collective access of `kind` (MPI_File_read_all_begin, ...).
///
/// # Errors
/// As [`start`], and `Class::Io` while another one is active.
///
/// # Safety
/// The buffer must be valid until the access is ended.
pub unsafe fn begin(file: &Rc<File>, kind: &'static str, way: Way, place: Place, buffer: Buffer) -> Result<()> {
    file.check_no_split()?;
    // SAFETY: the caller's promise.
    let request = unsafe { start(file, way, place, buffer)? };
    *file.split.borrow_mut() = Some(Split { request, kind });
    Ok(())
}

/// End a split collective access.
///
/// # Errors
/// `Class::Io` if none of this kind is active; those of the access.
pub fn end(file: &Rc<file::File>, kind: &'static str) -> Result<Status> {
    let split = match &*file.split.borrow() {
        Some(split) if split.kind == kind => split.request,
        Some(split) => {
            let begun = split.kind;
            return fail(
                Class::Io,
                format!("MPI_File_{begun}_begin is active, which MPI_File_{kind}_end does not end"),
            );
        }
        None => return fail(Class::Io, format!("no MPI_File_{kind}_begin is active")),
    };
    request::wait_for_all(&[split])?;
    *file.split.borrow_mut() = None;
    match request::finish(split)? {
        Some(completion) => completion.result,
        None => fail(Class::Intern, "a split collective access that was waited for is not complete"),
    }
}
