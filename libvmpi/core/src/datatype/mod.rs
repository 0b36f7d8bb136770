//! Datatypes. (Owner: types helper; the signatures here are the contract.)

use crate::errors::Result;
use crate::handle::Datatype;
use std::rc::Rc;

/// A datatype; immutable once made (commit state and attributes live beside it).
pub struct Type(/* private */);

impl Type {
    /// Bytes of data in one element.
    pub fn size(&self) -> u64 {
        todo!()
    }
    pub fn lb(&self) -> i64 {
        todo!()
    }
    pub fn extent(&self) -> i64 {
        todo!()
    }
    pub fn true_lb(&self) -> i64 {
        todo!()
    }
    pub fn true_extent(&self) -> i64 {
        todo!()
    }
    /// `count` elements are one block of memory, `count * size` bytes, starting at `buf + true_lb`, in typemap order.
    pub fn is_dense(&self) -> bool {
        todo!()
    }
    /// Call `f(offset_from_buf, len)` for each block of memory of `count` elements in typemap order, neighbours merged,
    /// until it returns false.
    pub fn blocks(&self, count: u64, f: &mut dyn FnMut(i64, u64) -> bool) {
        let _ = (count, f);
        todo!()
    }
    /// Number of basic elements in `bytes` packed bytes; `None` if they end inside an element (MPI_Get_elements).
    pub fn elements_in(&self, bytes: u64) -> Option<u64> {
        todo!("{bytes}")
    }
}

/// The datatype behind a handle; `Class::Type` if there is none.
pub fn get(handle: Datatype) -> Result<Rc<Type>> {
    todo!("{handle:?}")
}

/// As `get`, and it must be committed.
pub fn get_committed(handle: Datatype) -> Result<Rc<Type>> {
    todo!("{handle:?}")
}

/// Copy packed bytes `[skip, skip + out.len())` of `count` elements at `buf` to `out`; returns the bytes copied (less at the end of the data).
///
/// # Safety
/// `buf` must hold `count` elements.
pub unsafe fn pack(ty: &Type, count: u64, buf: *const u8, skip: u64, out: &mut [u8]) -> usize {
    let _ = (ty, count, buf, skip, out);
    todo!()
}

/// The reverse: copy `data` to where packed bytes `[skip, ..)` of `count` elements at `buf` lie; returns the bytes copied.
///
/// # Safety
/// `buf` must have room for `count` elements.
pub unsafe fn unpack(ty: &Type, count: u64, buf: *mut u8, skip: u64, data: &[u8]) -> usize {
    let _ = (ty, count, buf, skip, data);
    todo!()
}
