//! MPI_Put and MPI_Get.

#![allow(unsafe_code)]

use super::place::{Place, Spot};
use super::{Window, far, polled};
use crate::datatype::{self, Type};
use crate::errors::{Class, Result, fail};
use crate::monitor;
use std::ffi::c_void;
use std::rc::Rc;
use vmpi_shared::monitor::Flow;

/// A buffer of the origin.
#[derive(Clone)]
pub struct Local {
    pub buf: *mut c_void,
    pub count: u64,
    pub ty: Rc<Type>,
}

/// Packed bytes that are moved at once where they do not go straight from one place to the other.
pub(super) const CHUNK: u64 = 128 << 10;

impl Local {
    /// Packed bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.ty.size().saturating_mul(self.count)
    }

    /// The first byte, if the elements are one block of memory.
    #[inline]
    pub(super) fn dense(&self) -> Option<*mut u8> {
        self.ty.is_dense().then(|| self.buf.cast::<u8>().wrapping_offset(self.ty.true_lb() as isize))
    }

    /// Packed bytes `[from, from + len)`: in place, or copied to `room`.
    ///
    /// # Safety
    /// The buffer holds its elements.
    pub(super) unsafe fn packed<'a>(&self, from: u64, len: u64, room: &'a mut Vec<u8>) -> &'a [u8] {
        // SAFETY: the caller's promise; `from + len` is no more than the packed bytes.
        unsafe {
            if let Some(start) = self.dense() {
                return std::slice::from_raw_parts(start.add(from as usize), len as usize);
            }
            room.resize(len as usize, 0);
            datatype::pack(&self.ty, self.count, self.buf.cast(), from, room);
        }
        room
    }

    /// Put packed bytes `[from, ..)` where they belong.
    ///
    /// # Safety
    /// The buffer has room for its elements.
    pub(super) unsafe fn unpack(&self, from: u64, data: &[u8]) {
        // SAFETY: the caller's promise.
        unsafe { datatype::unpack(&self.ty, self.count, self.buf.cast(), from, data) };
    }
}

/// What is moved must fit where it goes.
pub(super) fn check_fits(data: u64, room: u64) -> Result<()> {
    if data > room {
        return fail(Class::Truncate, format!("{data} bytes are to go where there is room for {room}"));
    }
    Ok(())
}

/// Copy from the origin to the target's memory (MPI_Put). Complete on return, but for a target on another node.
///
/// # Errors
/// Those of the target ([`Window::locate`]), `Class::Truncate` if the data does not fit there.
///
/// # Safety
/// `origin` holds its elements, for a target on another node until the next synchronisation; the target's memory is there as its owner promised.
pub unsafe fn put(window: &Window, origin: &Local, place: &Place) -> Result<()> {
    let Some(spot) = window.locate(place)? else { return Ok(()) };
    let bytes = origin.bytes();
    check_fits(bytes, spot.bytes())?;
    monitor::one_sided(Flow::Put, &window.comm, spot.target, bytes);
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise. The two may overlap where a program puts to itself.
    unsafe {
        match (origin.dense(), spot.dense_here()) {
            (Some(from), Some(to)) => std::ptr::copy(from, to, bytes as usize),
            _ if spot.is_far() => far::put(&spot, origin, bytes)?,
            (Some(from), None) => spot.write(0, std::slice::from_raw_parts(from, bytes as usize))?,
            (None, Some(to)) => {
                let to = std::slice::from_raw_parts_mut(to, bytes as usize);
                datatype::pack(&origin.ty, origin.count, origin.buf.cast(), 0, to);
            }
            (None, None) => in_chunks(bytes, |from, len, room| spot.write(from, origin.packed(from, len, room)))?,
        }
    }
    Ok(())
}

/// Copy from the target's memory to the origin (MPI_Get). Complete on return, but for a target on another node.
///
/// # Errors
/// As [`put`].
///
/// # Safety
/// `origin` has room for its elements, for a target on another node until the next synchronisation; the target's memory is there as its owner promised.
pub unsafe fn get(window: &Window, origin: &Local, place: &Place) -> Result<()> {
    let Some(spot) = window.locate(place)? else { return Ok(()) };
    let bytes = spot.bytes();
    check_fits(bytes, origin.bytes())?;
    monitor::one_sided(Flow::Got, &window.comm, spot.target, bytes);
    if bytes > 0 {
        // SAFETY: the caller's promise.
        unsafe { fetch(&spot, origin, bytes)? };
    }
    polled(1);
    Ok(())
}

/// # Safety
/// As [`get`].
unsafe fn fetch(spot: &Spot, origin: &Local, bytes: u64) -> Result<()> {
    // SAFETY: the caller's promise. The two may overlap where a program gets from itself.
    unsafe {
        match (spot.dense_here(), origin.dense()) {
            (Some(from), Some(to)) => std::ptr::copy(from, to, bytes as usize),
            _ if spot.is_far() => far::get(spot, origin, bytes)?,
            (None, Some(to)) => spot.read(0, std::slice::from_raw_parts_mut(to, bytes as usize))?,
            (Some(from), None) => origin.unpack(0, std::slice::from_raw_parts(from, bytes as usize)),
            (None, None) => in_chunks(bytes, |from, len, room| {
                room.resize(len as usize, 0);
                spot.read(from, room)?;
                origin.unpack(from, room);
                Ok(())
            })?,
        }
    }
    Ok(())
}

/// Do `f(from, len, room)` for each chunk of `bytes` packed bytes.
fn in_chunks(bytes: u64, mut f: impl FnMut(u64, u64, &mut Vec<u8>) -> Result<()>) -> Result<()> {
    let mut room = Vec::new();
    let mut from = 0;
    while from < bytes {
        let len = (bytes - from).min(CHUNK);
        f(from, len, &mut room)?;
        from += len;
    }
    Ok(())
}
