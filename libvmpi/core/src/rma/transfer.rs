//! MPI_Put and MPI_Get.

#![allow(unsafe_code)]

use super::place::{Place, Spot};
use super::{Window, checked, polled, remote_node, simulated};
use crate::datatype;
use crate::errors::Result;
use crate::monitor;
use crate::rma::local::{Local, check_fits};
use vmpi_shared::monitor::Flow;

/// Packed bytes that are moved at once where they do not go straight from one place to the other.
pub(super) const CHUNK: u64 = 128 << 10;

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
    let noted = checked::begins(&spot, bytes, checked::PUT, Some(origin));
    if window.is_simulated() {
        if !window.is_alone_at(spot.target) {
            // SAFETY: the caller's promise.
            return unsafe { simulated::put(&spot, origin, bytes) };
        }
        window.take_time(spot.target, bytes, false)?;
    }
    // SAFETY: the caller's promise. The two may overlap where a program puts to itself.
    unsafe {
        match (origin.dense(), spot.dense_here()) {
            (Some(from), Some(to)) => std::ptr::copy(from, to, bytes as usize),
            _ if spot.is_far() => remote_node::put(&spot, origin, bytes)?,
            (Some(from), None) => spot.write(0, std::slice::from_raw_parts(from, bytes as usize))?,
            (None, Some(to)) => {
                let to = std::slice::from_raw_parts_mut(to, bytes as usize);
                datatype::pack(&origin.ty, origin.count, origin.buf.cast(), 0, to);
            }
            (None, None) => in_chunks(bytes, |from, len, room| spot.write(from, origin.packed(from, len, room)))?,
        }
    }
    checked::written(noted);
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
        checked::begins(&spot, bytes, checked::GET, None);
        if window.is_simulated() {
            if !window.is_alone_at(spot.target) {
                // SAFETY: the caller's promise.
                return unsafe { simulated::get(&spot, origin, bytes) };
            }
            window.take_time(spot.target, bytes, true)?;
        }
        // SAFETY: the caller's promise.
        unsafe { fetch(&spot, origin, bytes)? };
    }
    if !window.is_simulated() {
        polled(1);
    }
    Ok(())
}

/// # Safety
/// As [`get`].
unsafe fn fetch(spot: &Spot, origin: &Local, bytes: u64) -> Result<()> {
    // SAFETY: the caller's promise. The two may overlap where a program gets from itself.
    unsafe {
        match (spot.dense_here(), origin.dense()) {
            (Some(from), Some(to)) => std::ptr::copy(from, to, bytes as usize),
            _ if spot.is_far() => remote_node::get(spot, origin, bytes)?,
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
