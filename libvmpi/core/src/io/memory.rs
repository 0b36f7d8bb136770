//! The program's buffer as a stream of the bytes that the file is to hold.

#![allow(unsafe_code)]

use super::representation::Representation;
use super::view::View;
use crate::datatype::{self, Type};
use crate::errors::Result;
use crate::handle::Datatype;
use std::ffi::c_void;
use std::rc::Rc;

/// The buffer argument of an access.
#[derive(Clone)]
pub struct Buffer {
    pub addr: *mut c_void,
    pub count: u64,
    pub ty: Rc<Type>,
    /// The handle of `ty`, for conversion functions of the program.
    pub handle: Datatype,
}

/// A buffer with its data in the file's representation.
pub struct Memory {
    buffer: Buffer,
    /// The bytes of the stream, if they are one block of memory: the program's, or `converted`.
    dense: Option<*mut u8>,
    /// Holds the data in the file's representation, if that is not the one of memory.
    converted: Option<(Representation, Vec<u8>)>,
    bytes: u64,
}

impl Memory {
    /// # Errors
    /// Those of conversion.
    ///
    /// # Safety
    /// The buffer must be valid (for writes, if the access is a read) as long as the result lives.
    pub unsafe fn new(view: &View, buffer: Buffer, write: bool) -> Result<Memory> {
        let Buffer { addr, count, ref ty, handle } = buffer;
        let representation = &view.representation;
        if representation.is_native() {
            let dense = ty.is_dense().then(|| addr.cast::<u8>().wrapping_offset(ty.true_lb() as isize));
            let bytes = count.saturating_mul(ty.size());
            return Ok(Memory { dense, bytes, converted: None, buffer });
        }
        let mut data = if write {
            // SAFETY: the caller's promise.
            unsafe { representation.encode(ty, handle, count, addr)? }
        } else {
            vec![0; representation.size(ty)?.saturating_mul(count) as usize]
        };
        let (dense, bytes) = (Some(data.as_mut_ptr()), data.len() as u64);
        Ok(Memory { dense, bytes, converted: Some((representation.clone(), data)), buffer })
    }

    /// Bytes of the stream.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The address of bytes from `from` on, if they are one block.
    pub fn block(&self, from: u64) -> Option<*mut u8> {
        self.dense.map(|start| start.wrapping_add(from as usize))
    }

    /// Copy bytes from `from` on to `out`.
    pub fn gather(&self, from: u64, out: &mut [u8]) {
        debug_assert!(from + out.len() as u64 <= self.bytes);
        let Buffer { addr, count, ty, .. } = &self.buffer;
        // SAFETY: `new`'s caller vouches for the buffer; the part is inside it.
        unsafe {
            match self.block(from) {
                Some(block) => std::ptr::copy_nonoverlapping(block, out.as_mut_ptr(), out.len()),
                None => {
                    datatype::pack(ty, *count, addr.cast(), from, out);
                }
            }
        }
    }

    /// Copy `data` to bytes from `from` on.
    pub fn scatter(&self, from: u64, data: &[u8]) {
        debug_assert!(from + data.len() as u64 <= self.bytes);
        let Buffer { addr, count, ty, .. } = &self.buffer;
        // SAFETY: as in `gather`.
        unsafe {
            match self.block(from) {
                Some(block) => std::ptr::copy_nonoverlapping(data.as_ptr(), block, data.len()),
                None => {
                    datatype::unpack(ty, *count, addr.cast(), from, data);
                }
            }
        }
    }

    /// The first `bytes` bytes of the stream have been read: convert them. Returns how much that is in memory.
    ///
    /// # Errors
    /// Those of conversion.
    pub fn finish_read(&mut self, bytes: u64) -> Result<u64> {
        let Some((representation, data)) = &mut self.converted else { return Ok(bytes) };
        let Buffer { addr, count, ty, handle } = &self.buffer;
        // SAFETY: as in `gather`.
        unsafe { representation.decode(ty, *handle, *count, *addr, &mut data[..bytes as usize]) }
    }

    /// `bytes` of the stream have been written: how much that is in memory.
    pub fn finish_write(&self, bytes: u64) -> u64 {
        if self.converted.is_none() {
            return bytes;
        }
        if bytes == self.bytes { self.buffer.count.saturating_mul(self.buffer.ty.size()) } else { 0 }
    }
}
