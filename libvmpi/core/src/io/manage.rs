//! Everything about an open file but its data: view, pointers, size, hints, atomicity, sync.

#![allow(unsafe_code)]

use super::agree::{agree, at_root, digest};
use super::file::File;
use super::representation::Representation;
use super::view::View;
use super::{amode, errno};
use crate::coll;
use crate::consts::{DISPLACEMENT_CURRENT, MODE_SEQUENTIAL, SEEK_CUR, SEEK_END, SEEK_SET};
use crate::datatype::{Rules, Type};
use crate::errors::{Class, Error, Result, fail};
use crate::info::Entries;
use crate::nodes;
use crate::process;
use crate::simulate;
use std::os::fd::AsRawFd;
use std::rc::Rc;

fn refuse_sequential(file: &File, what: &str) -> Result<()> {
    if file.amode & MODE_SEQUENTIAL != 0 {
        return fail(
            Class::UnsupportedOperation,
            format!("a file that was opened with MPI_MODE_SEQUENTIAL has no {what}"),
        );
    }
    Ok(())
}

fn refuse_read_only(file: &File) -> Result<()> {
    if !amode::writes(file.amode) {
        return fail(Class::ReadOnly, format!("the file {} is open for reading only", file.name));
    }
    Ok(())
}

/// MPI_File_set_view. Both file pointers go to the start of the new view.
///
/// # Errors
/// `Class::Arg`, `Class::Io` for bad types or displacements, `Class::UnsupportedDatarep`; `Class::NotSame` if the etypes'
/// extents or the representations differ between ranks. All ranks fail if one does.
pub fn set_view(
    file: &File,
    displacement: i64,
    etype: Rc<Type>,
    filetype: Rc<Type>,
    name: &str,
    rules: Rules,
    given: &Entries,
) -> Result<()> {
    let made = new_view(file, displacement, etype, filetype, name, rules);
    // A filetype's displacement may differ between ranks, the unit of the pointers and the representation may not.
    let same = made.as_ref().map_or(0, |view| digest((view.unit(), view.representation.name())));
    let outcome = made.as_ref().map(drop).map_err(Clone::clone);
    agree(&file.comm, outcome, same)?;
    *file.view.borrow_mut() = Rc::new(made?);
    file.position.set(0);
    file.hints.borrow_mut().add(given);
    at_root(&file.comm, || {
        file.shared.set(0);
        Ok(())
    })
}

fn new_view(
    file: &File,
    displacement: i64,
    etype: Rc<Type>,
    filetype: Rc<Type>,
    name: &str,
    rules: Rules,
) -> Result<View> {
    let sequential = file.amode & MODE_SEQUENTIAL != 0;
    let displacement = match (displacement, sequential) {
        (DISPLACEMENT_CURRENT, true) => {
            let old = file.view();
            old.position(old.stream(file.shared.get(&file.comm)? as i64)?)
        }
        (DISPLACEMENT_CURRENT, false) => {
            return fail(Class::Arg, "MPI_DISPLACEMENT_CURRENT needs a file opened with MPI_MODE_SEQUENTIAL");
        }
        (_, true) => {
            return fail(Class::Arg, "a file opened with MPI_MODE_SEQUENTIAL needs MPI_DISPLACEMENT_CURRENT");
        }
        (displacement, false) => displacement,
    };
    let representation = Representation::find(name, rules)?;
    View::new(displacement, etype, filetype, representation, amode::writes(file.amode))
}

/// The offset, in etypes, that a seek goes to.
fn target(file: &File, offset: i64, whence: i32, current: i64) -> Result<i64> {
    let base = match whence {
        SEEK_SET => 0,
        SEEK_CUR => current,
        SEEK_END => file.view().etypes_before(file.size()?),
        _ => return fail(Class::Arg, "whence is not MPI_SEEK_SET, MPI_SEEK_CUR or MPI_SEEK_END"),
    };
    match base.checked_add(offset) {
        Some(target) if target >= 0 => Ok(target),
        _ => fail(Class::Arg, format!("the seek by {offset} from {base} does not lead into the view")),
    }
}

/// MPI_File_seek.
///
/// # Errors
/// `Class::Arg`, `Class::UnsupportedOperation`.
pub fn seek(file: &File, offset: i64, whence: i32) -> Result<()> {
    refuse_sequential(file, "individual file pointer")?;
    file.position.set(target(file, offset, whence, file.position.get())?);
    Ok(())
}

/// MPI_File_get_position.
///
/// As with both real MPIs, a sequential file tells where its (unused) pointer is.
pub fn position(file: &File) -> i64 {
    file.position.get()
}

/// MPI_File_seek_shared: collective.
///
/// # Errors
/// `Class::Arg`, `Class::UnsupportedOperation`, `Class::NotSame`; all ranks fail if one does.
pub fn seek_shared(file: &File, offset: i64, whence: i32) -> Result<()> {
    let check = refuse_sequential(file, "shared file pointer that can be moved")
        .and_then(|()| file.shared.check())
        .and_then(|()| target(file, offset, whence, file.shared.get(&file.comm)? as i64))
        .map(drop);
    agree(&file.comm, check, digest((offset, whence)))?;
    at_root(&file.comm, || {
        file.shared.set(target(file, offset, whence, file.shared.get(&file.comm)? as i64)? as u64);
        Ok(())
    })
}

/// MPI_File_get_position_shared.
///
/// # Errors
/// `Class::UnsupportedOperation`.
pub fn position_shared(file: &File) -> Result<i64> {
    refuse_sequential(file, "shared file pointer that can be asked for")?;
    file.shared.check()?;
    Ok(file.shared.get(&file.comm)? as i64)
}

/// MPI_File_get_byte_offset.
///
/// # Errors
/// `Class::Arg`.
pub fn byte_offset(file: &File, offset: i64) -> Result<i64> {
    let view = file.view();
    let stream = view.stream(offset)?;
    view.check_reach(stream)?;
    Ok(view.position(stream))
}

/// MPI_File_get_type_extent.
///
/// # Errors
/// What the program's extent function returned.
pub fn type_extent(file: &File, ty: &Rc<Type>) -> Result<i64> {
    Ok(file.view().representation.in_file(ty)?.extent())
}

/// MPI_File_set_size: collective.
///
/// # Errors
/// `Class::Arg`, `Class::ReadOnly`, `Class::UnsupportedOperation`, `Class::NotSame`; what the kernel says.
pub fn set_size(file: &File, size: i64) -> Result<()> {
    resize(file, size, "set the size of", |file, size| file.os.set_len(size as u64))
}

/// MPI_File_preallocate: collective.
///
/// # Errors
/// As [`set_size`]; `Class::NoSpace`.
pub fn preallocate(file: &File, size: i64) -> Result<()> {
    resize(file, size, "preallocate", |file, size| {
        if size == 0 {
            return Ok(());
        }
        // SAFETY: the descriptor is open.
        match unsafe { libc::posix_fallocate(file.os.as_raw_fd(), 0, size) } {
            0 => Ok(()),
            errno => Err(std::io::Error::from_raw_os_error(errno)),
        }
    })
}

fn resize(file: &File, size: i64, what: &str, work: impl FnOnce(&File, i64) -> std::io::Result<()>) -> Result<()> {
    file.check_no_split()?;
    let check = if size < 0 {
        fail(Class::Arg, format!("the size is {size}, it must not be negative"))
    } else {
        refuse_read_only(file).and_then(|()| refuse_sequential(file, "size that can be changed"))
    };
    agree(&file.comm, check, digest(size))?;
    at_root(&file.comm, || process::aside(|| work(file, size)).map_err(|e| errno::error(what, &file.name, &e)))
}

/// MPI_File_sync: all data that any rank has written are on the disk. Collective.
///
/// # Errors
/// `Class::ReadOnly` as MPICH; what the kernel says.
pub fn sync(file: &File) -> Result<()> {
    agree(&file.comm, refuse_read_only(file), 0)?;
    simulate::storage(0);
    // One page cache holds what all ranks of a node have written.
    let comm = &file.comm;
    let me = comm.local.world_rank(comm.rank);
    let synced = match comm.local.iter().find(|rank| nodes::same_node(*rank, me)) {
        Some(first) if first == me => process::aside(|| file.os.sync_all()),
        _ => Ok(()),
    };
    agree(comm, synced.map_err(|e| errno::error("sync", &file.name, &e)), 0)
}

/// MPI_File_set_atomicity: collective.
///
/// # Errors
/// `Class::NotSame`.
pub fn set_atomicity(file: &File, atomic: bool) -> Result<()> {
    agree(&file.comm, Ok(()), digest(atomic))?;
    file.atomic.set(atomic);
    // Nobody goes on before all are in the new mode.
    coll::barrier(&file.comm)
}

pub fn is_atomic(file: &File) -> bool {
    file.atomic.get()
}

/// MPI_File_set_info: collective.
///
/// # Errors
/// Those of messages.
pub fn set_hints(file: &File, given: &Entries) -> Result<()> {
    file.hints.borrow_mut().add(given);
    coll::barrier(&file.comm)
}

/// The hints in use.
pub fn hints(file: &File) -> Entries {
    file.hints.borrow().entries().clone()
}

/// Checks of `MPI_File_set_view` that need no file.
///
/// # Errors
/// `Class::Arg` for a name that is not text.
pub fn representation_name(name: &[u8]) -> Result<&str> {
    std::str::from_utf8(name)
        .map_err(|_| Error::new(Class::UnsupportedDatarep, "the name of the data representation is not text"))
}
