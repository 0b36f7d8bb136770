//! Reduction operations and local reduction (MPI 4.1 sections 6.9.5-6.9.7).

#![allow(unsafe_code)]

use super::cxx;
use super::number::{self, Number, named, names, put, take};
use crate::abi::{Abi, CDatatype, COp, dec, enc};
use crate::entry::{self, Target};
use crate::fortran::callbacks;
use crate::fortran::through::Procedures;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use vmpi_core::consts::IN_PLACE;
use vmpi_core::errors::{Class, fail};
use vmpi_core::handle::{Datatype, Handle, Op};
use vmpi_core::{datatype, op};

/// `MPI_User_function` with its count type.
pub type CUserFunction<A, N> = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut N, *mut CDatatype<A>);

/// Most elements that one call of a user's function gets.
trait Most {
    const MOST: u64;
}
impl Most for c_int {
    const MOST: u64 = c_int::MAX as u64;
}
impl Most for i64 {
    const MOST: u64 = i64::MAX as u64;
}

/// Make an operation that calls the program's function with this face's datatype handles.
fn create<A: Abi, N: Number + Most>(function: CUserFunction<A, N>, commute: c_int) -> Op {
    if Procedures::from_fortran([function as usize]).is_some() {
        // SAFETY: the address of a Fortran procedure, which a profiling tool handed on.
        return op::create(unsafe { callbacks::reduction::<A>(function as usize) }, commute != 0);
    }
    let call = move |input: *const c_void, inout: *mut c_void, len: u64, handle: Datatype| {
        let extent = datatype::get(handle).map_or(0, |ty| ty.extent());
        let mut done = 0u64;
        while done < len {
            let part = (len - done).min(N::MOST);
            let at = (done as i64).wrapping_mul(extent) as isize;
            let (mut count, mut datatype) = (N::from_u64(part), enc::<A, Datatype>(handle));
            let input = input.cast_mut().wrapping_byte_offset(at);
            // SAFETY: the program's function keeps the contract of MPI_User_function; the vectors hold `part` elements.
            unsafe { function(input, inout.wrapping_byte_offset(at), &mut count, &mut datatype) };
            done += part;
        }
    };
    let made = op::create(Rc::new(call), commute != 0);
    cxx::made_op(made, function as usize);
    made
}

macro_rules! op_create {
    ($($(#[$doc:meta])* $function:ident $name:literal $number:ty;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C function.
        pub unsafe fn $function<A: Abi>(
            user: Option<CUserFunction<A, $number>>,
            commute: c_int,
            handle: *mut COp<A>,
        ) -> c_int {
            entry::run::<A>($name, Target::Process, || {
                let Some(user) = user else { return fail(Class::Arg, "user_fn is a null pointer") };
                if handle.is_null() {
                    return fail(Class::Arg, "op is a null pointer");
                }
                // SAFETY: the caller's promise.
                unsafe { put(handle, enc::<A, Op>(create::<A, $number>(user, commute)), "op") }
            })
        }
    )*};
}
op_create! {
    /// MPI_Op_create.
    op_create "MPI_Op_create" c_int;
    /// MPI_Op_create_c.
    op_create_c "MPI_Op_create_c" i64;
}

/// MPI_Op_free.
///
/// # Safety
/// As the C function.
pub unsafe fn op_free<A: Abi>(handle: *mut COp<A>) -> c_int {
    entry::run::<A>("MPI_Op_free", Target::Process, || {
        // SAFETY: the caller's promise.
        op::free(dec::<A, Op>(unsafe { take(handle, "op") }?))?;
        // SAFETY: the caller's promise.
        unsafe { put(handle, enc::<A, Op>(Op::NULL), "op") }
    })
}

/// MPI_Op_commutative.
///
/// # Safety
/// As the C function.
pub unsafe fn op_commutative<A: Abi>(handle: COp<A>, commute: *mut c_int) -> c_int {
    entry::run::<A>("MPI_Op_commutative", Target::Process, || {
        let operation = op::get(dec::<A, Op>(handle))?;
        // SAFETY: the caller's promise.
        unsafe { put(commute, operation.is_commutative().into(), "commute") }
    })
}

/// MPI_Reduce_local.
///
/// # Safety
/// As the C function.
pub unsafe fn reduce_local<A: Abi>(
    inbuf: *const c_void,
    inoutbuf: *mut c_void,
    count: impl Number,
    datatype: CDatatype<A>,
    operation: COp<A>,
) -> c_int {
    entry::run::<A>(named(count, names!("MPI_Reduce_local")), Target::Process, || {
        let operation = op::get(dec::<A, Op>(operation))?;
        let handle = dec::<A, Datatype>(datatype);
        let ty = datatype::get_committed(handle)?;
        let count = number::count(count)?;
        operation.check(handle, &ty)?;
        let (inbuf, inoutbuf) = (A::buf_in(inbuf), A::buf_in(inoutbuf).cast_mut());
        for (buffer, what) in [(inbuf, "inbuf"), (inoutbuf.cast_const(), "inoutbuf")] {
            if buffer.addr() == IN_PLACE {
                return fail(Class::Buffer, format!("{what} is MPI_IN_PLACE, which MPI_Reduce_local does not take"));
            }
            if buffer.is_null() && count > 0 && ty.named().is_some() {
                return fail(Class::Buffer, format!("{what} is a null pointer"));
            }
        }
        if A::FACE.refuses_aliases && count > 0 && !inbuf.is_null() && inbuf == inoutbuf.cast_const() {
            return fail(Class::Buffer, "inbuf and inoutbuf are the same");
        }
        if count > 0 {
            // SAFETY: the caller's promise: both hold `count` elements.
            unsafe { operation.apply(inbuf, inoutbuf, count, handle, &ty) };
        }
        Ok(())
    })
}

/// The chapter's functions.
#[macro_export]
macro_rules! c_table_op {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::op];
            fn MPI_Op_create = op_create(user: Option<$crate::c::op::CUserFunction<$A, c_int>>, commute: c_int, op: *mut $crate::abi::COp<$A>) -> c_int;
            fn MPI_Op_free = op_free(op: *mut $crate::abi::COp<$A>) -> c_int;
            fn MPI_Op_commutative = op_commutative(op: $crate::abi::COp<$A>, commute: *mut c_int) -> c_int;
            fn MPI_Reduce_local = reduce_local(inbuf: *const c_void, inoutbuf: *mut c_void, count: c_int, datatype: $crate::abi::CDatatype<$A>, op: $crate::abi::COp<$A>) -> c_int;
        }
    };
}

/// The chapter's large-count (`_c`) functions, for faces that have them.
#[macro_export]
macro_rules! c_table_op_c {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::op];
            fn MPI_Op_create_c = op_create_c(user: Option<$crate::c::op::CUserFunction<$A, i64>>, commute: c_int, op: *mut $crate::abi::COp<$A>) -> c_int;
            fn MPI_Reduce_local_c = reduce_local(inbuf: *const c_void, inoutbuf: *mut c_void, count: i64, datatype: $crate::abi::CDatatype<$A>, op: $crate::abi::COp<$A>) -> c_int;
        }
    };
}
