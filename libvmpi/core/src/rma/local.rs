//! A buffer of the origin.

#![allow(unsafe_code)]

use crate::datatype::{self, Type};
use crate::errors::{Class, Result, fail};
use std::ffi::c_void;
use std::rc::Rc;

/// A buffer of the origin.
#[derive(Clone)]
pub struct Local {
    pub buf: *mut c_void,
    pub count: u64,
    pub ty: Rc<Type>,
}

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
