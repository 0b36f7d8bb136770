//! Reduction operations. (Owner: types helper; the signatures here are the contract.)

use crate::datatype::Type;
use crate::errors::Result;
use crate::handle::{Datatype, Op};
use std::ffi::c_void;
use std::rc::Rc;

/// A user-defined operation: `f(invec, inoutvec, len, datatype)`, made by the ABI layer from the program's function pointer.
pub type UserFunction = Rc<dyn Fn(*const c_void, *mut c_void, u64, Datatype)>;

/// An operation.
pub struct Operation(/* private */);

impl Operation {
    pub fn is_commutative(&self) -> bool {
        todo!()
    }
    /// Is the operation defined on this datatype (built-in ones: MPI 4.1 section 6.9.2)? `Class::Op` if not.
    pub fn check(&self, datatype: Datatype, ty: &Type) -> Result<()> {
        let _ = (datatype, ty);
        todo!()
    }
    /// `inout[i] = input[i] op inout[i]` for `count` elements.
    ///
    /// # Safety
    /// Both must hold `count` elements of `ty`.
    pub unsafe fn apply(&self, input: *const c_void, inout: *mut c_void, count: u64, datatype: Datatype, ty: &Type) {
        let _ = (input, inout, count, datatype, ty);
        todo!()
    }
}

/// The operation behind a handle; `Class::Op` if there is none.
pub fn get(handle: Op) -> Result<Rc<Operation>> {
    todo!("{handle:?}")
}
