//! Kinds of Fortran arguments: how each comes in, what the C-level function gets, and what goes back.
//!
//! Every Fortran argument arrives as an address; a CHARACTER argument also has a hidden length (a `size_t` by value at
//! the end of the argument list, in order). The kinds here are names used in the tables; none is ever constructed.

mod handles;
mod strings;

pub use handles::{In, InOut, InOuts, Ins, Out, Outs};
pub use strings::{StrIn, StrOut, blank_padded, trimmed};

use crate::abi::{self, Abi};
use std::ffi::{c_int, c_void};
use vmpi_core::consts;
use vmpi_core::handle::Request;

/// A kind of argument in face `A`.
pub trait Arg<A: Abi> {
    /// What lives from before the C-level function is called until after it has returned.
    type Held;
    /// What the C-level function is given; a `*mut` serves for a `*const` parameter.
    type Passed;

    /// Read the Fortran argument at `arg`; `len` is the element count or hidden length given in the table (else 0).
    ///
    /// # Safety
    /// `arg` must be what Fortran passes for this kind, with room for `len` elements.
    unsafe fn take(arg: *mut c_void, len: usize) -> Self::Held;

    fn pass(held: &mut Self::Held) -> Self::Passed;

    /// The same for a C function that may be a tool's: addresses with a meaning are C's (MPI_IN_PLACE, not the common block's member).
    #[inline]
    fn pass_to_tool(held: &mut Self::Held) -> Self::Passed {
        Self::pass(held)
    }

    /// Write results back to Fortran; `code` is what the C-level function returned.
    ///
    /// # Safety
    /// The argument that `take` read must still be valid.
    unsafe fn give(held: Self::Held, code: c_int) {
        let _ = (held, code);
    }

    /// Is it a copy of what the program gave?
    #[inline]
    fn is_copy(_held: &Self::Held) -> bool {
        false
    }

    /// The request of what the call, which has succeeded, has started.
    #[inline]
    fn started(_held: &Self::Held) -> Option<Request> {
        None
    }

    /// As `give` after a success, but a copy only when `request` has ended.
    ///
    /// # Safety
    /// As `give`, then.
    #[inline]
    unsafe fn give_after(held: Self::Held, request: Request) {
        let _ = request;
        // SAFETY: as promised.
        unsafe { Self::give(held, 0) };
    }
}

/// Counts, which mpi_f08 also has as INTEGERs of MPI_COUNT_KIND (`large`).
pub type Num = Int;
pub type Nums = Ints;
pub type ConstNums = ConstInts;

/// MPI_Aint as the C functions take it.
pub type CAint = isize;

macro_rules! by_pointer {
    ($($(#[$doc:meta])* $kind:ident: $ty:ty;)*) => {$(
        $(#[$doc])*
        pub enum $kind {}
        impl<A: Abi> Arg<A> for $kind {
            type Held = *mut c_void;
            type Passed = *mut $ty;
            #[inline]
            unsafe fn take(arg: *mut c_void, _len: usize) -> *mut c_void {
                arg
            }
            #[inline]
            fn pass(held: &mut *mut c_void) -> *mut $ty {
                held.cast()
            }
        }
    )*};
}
by_pointer! {
    /// INTEGER by reference, scalar or array, in or out, when C takes a pointer too. LOGICAL arrays that only go in
    /// are INTEGERs as well: C takes any nonzero value as true.
    Ints: c_int;
    /// An INTEGER(3, *) array: C's `int [][3]`.
    Triples: [c_int; 3];
    /// INTEGER(KIND=MPI_ADDRESS_KIND) by reference, scalar or array.
    Aints: CAint;
    /// INTEGER(KIND=MPI_COUNT_KIND) of a function with `_x` in its name, by reference.
    Counts: i64;
}

macro_rules! const_arrays {
    ($($(#[$doc:meta])* $kind:ident: $ty:ty;)*) => {$(
        $(#[$doc])*
        pub enum $kind {}
        impl<A: Abi> Arg<A> for $kind {
            type Held = *const $ty;
            type Passed = *const $ty;
            #[inline]
            unsafe fn take(arg: *mut c_void, _len: usize) -> *const $ty {
                arg.cast()
            }
            #[inline]
            fn pass(held: &mut *const $ty) -> *const $ty {
                *held
            }
        }
    )*};
}
const_arrays! {
    /// An INTEGER array going in.
    ConstInts: c_int;
    /// An INTEGER(KIND=MPI_ADDRESS_KIND) array going in.
    ConstAints: i64;
}

macro_rules! by_value {
    ($($(#[$doc:meta])* $kind:ident: $from:ty => $to:ty, $convert:expr;)*) => {$(
        $(#[$doc])*
        pub enum $kind {}
        impl<A: Abi> Arg<A> for $kind {
            type Held = $to;
            type Passed = $to;
            #[inline]
            unsafe fn take(arg: *mut c_void, _len: usize) -> $to {
                // SAFETY: the caller passes the address of such a Fortran variable; it may be under-aligned.
                $convert(unsafe { arg.cast::<$from>().read_unaligned() })
            }
            #[inline]
            fn pass(held: &mut $to) -> $to {
                *held
            }
        }
    )*};
}
by_value! {
    /// An INTEGER that C takes by value.
    Int: c_int => c_int, |v| v;
    /// A LOGICAL that C takes by value.
    LogicalIn: c_int => c_int, |v| c_int::from(v != 0);
    /// An INTEGER(KIND=MPI_ADDRESS_KIND) that C takes by value.
    Aint: CAint => CAint, |v| v;
    /// An INTEGER(KIND=MPI_COUNT_KIND) that a function with `_x` in its name takes by value.
    Count: i64 => i64, |v| v;
    /// A default INTEGER where C takes an MPI_Aint by value (MPI-1 procedures).
    IntAsAint: c_int => CAint, |v| v as CAint;
}

/// A choice buffer; the face's `buf_in` knows the addresses of Fortran's MPI_BOTTOM and MPI_IN_PLACE.
pub enum Buf {}
impl<A: Abi> Arg<A> for Buf {
    type Held = *mut c_void;
    type Passed = *mut c_void;
    #[inline]
    unsafe fn take(arg: *mut c_void, _len: usize) -> *mut c_void {
        arg
    }
    #[inline]
    fn pass(held: &mut *mut c_void) -> *mut c_void {
        *held
    }
    fn pass_to_tool(held: &mut *mut c_void) -> *mut c_void {
        match A::buf_in(*held) as usize {
            consts::BOTTOM => std::ptr::null_mut(),
            consts::IN_PLACE => A::IN_PLACE as *mut c_void,
            _ if A::is_buffer_automatic(*held) => A::BUFFER_AUTOMATIC as *mut c_void,
            _ => *held,
        }
    }
}

/// The weights of edges: an INTEGER array, MPI_UNWEIGHTED or MPI_WEIGHTS_EMPTY.
pub enum Weights {}
impl<A: Abi> Arg<A> for Weights {
    type Held = *mut c_int;
    type Passed = *mut c_int;
    unsafe fn take(arg: *mut c_void, _len: usize) -> *mut c_int {
        arg.cast()
    }
    fn pass(held: &mut *mut c_int) -> *mut c_int {
        *held
    }
    fn pass_to_tool(held: &mut *mut c_int) -> *mut c_int {
        match A::weights_in(*held) {
            abi::Weights::Unweighted => A::unweighted().cast_mut(),
            abi::Weights::Empty => A::weights_empty().cast_mut(),
            abi::Weights::Array(_) => *held,
        }
    }
}

/// MPI_Get_address's location: MPI_BOTTOM's address is 0, not that of the common block.
pub enum Location {}
impl<A: Abi> Arg<A> for Location {
    type Held = *mut c_void;
    type Passed = *mut c_void;
    unsafe fn take(arg: *mut c_void, _len: usize) -> *mut c_void {
        if A::buf_in(arg) as usize == consts::BOTTOM { std::ptr::null_mut() } else { arg }
    }
    fn pass(held: &mut *mut c_void) -> *mut c_void {
        *held
    }
}

/// Default INTEGERs where C takes an array of MPI_Aint (MPI-1 procedures).
pub enum IntsAsAints {}
impl<A: Abi> Arg<A> for IntsAsAints {
    type Held = Vec<CAint>;
    type Passed = *mut CAint;
    unsafe fn take(arg: *mut c_void, len: usize) -> Vec<CAint> {
        // SAFETY: the array has `len` INTEGERs.
        (0..len).map(|i| unsafe { arg.cast::<c_int>().add(i).read_unaligned() } as CAint).collect()
    }
    fn pass(held: &mut Vec<CAint>) -> *mut CAint {
        held.as_mut_ptr()
    }
}

/// A result that C writes to a variable of its own before Fortran gets it.
pub struct Local<T> {
    arg: *mut c_void,
    value: T,
}

/// A default INTEGER that gets an MPI_Aint (MPI-1 procedures); a value that does not fit is cut off, as Open MPI does.
pub enum AintAsInt {}
impl<A: Abi> Arg<A> for AintAsInt {
    type Held = Local<CAint>;
    type Passed = *mut CAint;
    unsafe fn take(arg: *mut c_void, _len: usize) -> Local<CAint> {
        Local { arg, value: 0 }
    }
    fn pass(held: &mut Local<CAint>) -> *mut CAint {
        &raw mut held.value
    }
    unsafe fn give(held: Local<CAint>, code: c_int) {
        if code == 0 {
            // SAFETY: `arg` is an INTEGER.
            unsafe { held.arg.cast::<c_int>().write_unaligned(held.value as c_int) };
        }
    }
}

/// No function writes this to an INTEGER result: it tells that nothing was written.
const UNTOUCHED: c_int = c_int::MIN;

/// A LOGICAL result.
pub enum LogicalOut {}
impl<A: Abi> Arg<A> for LogicalOut {
    type Held = Local<c_int>;
    type Passed = *mut c_int;
    #[inline]
    unsafe fn take(arg: *mut c_void, _len: usize) -> Local<c_int> {
        Local { arg, value: UNTOUCHED }
    }
    #[inline]
    fn pass(held: &mut Local<c_int>) -> *mut c_int {
        &raw mut held.value
    }
    #[inline]
    unsafe fn give(held: Local<c_int>, _code: c_int) {
        if held.value != UNTOUCHED {
            // SAFETY: `arg` is a LOGICAL.
            unsafe { held.arg.cast::<c_int>().write_unaligned(if held.value != 0 { A::F_TRUE } else { 0 }) };
        }
    }
}

/// An array of LOGICAL results, at most `len`.
pub enum LogicalsOut {}
impl<A: Abi> Arg<A> for LogicalsOut {
    type Held = (*mut c_void, Vec<c_int>);
    type Passed = *mut c_int;
    unsafe fn take(arg: *mut c_void, len: usize) -> (*mut c_void, Vec<c_int>) {
        (arg, vec![UNTOUCHED; len])
    }
    fn pass(held: &mut (*mut c_void, Vec<c_int>)) -> *mut c_int {
        held.1.as_mut_ptr()
    }
    unsafe fn give((arg, values): (*mut c_void, Vec<c_int>), _code: c_int) {
        for (i, value) in values.into_iter().enumerate().filter(|(_, value)| *value != UNTOUCHED) {
            // SAFETY: the array has `len` LOGICALs.
            unsafe { arg.cast::<c_int>().add(i).write_unaligned(if value != 0 { A::F_TRUE } else { 0 }) };
        }
    }
}

/// An index into an array: counted from 0 in C, from 1 in Fortran; MPI_UNDEFINED stays.
pub enum IndexOut {}
impl<A: Abi> Arg<A> for IndexOut {
    type Held = Local<c_int>;
    type Passed = *mut c_int;
    unsafe fn take(arg: *mut c_void, _len: usize) -> Local<c_int> {
        Local { arg, value: UNTOUCHED }
    }
    fn pass(held: &mut Local<c_int>) -> *mut c_int {
        &raw mut held.value
    }
    unsafe fn give(held: Local<c_int>, _code: c_int) {
        if held.value != UNTOUCHED {
            // SAFETY: `arg` is an INTEGER.
            unsafe { held.arg.cast::<c_int>().write_unaligned(index_out::<A>(held.value)) };
        }
    }
}

/// A C index as Fortran counts.
pub fn index_out<A: Abi>(index: c_int) -> c_int {
    if A::rank_in(index) == consts::UNDEFINED { index } else { index + 1 }
}

/// Statuses that C gets in place, or in aligned copies: a Fortran status has the same bytes as a C one, but only the
/// alignment of an INTEGER.
pub struct HeldStatuses<S> {
    arg: *mut S,
    copies: Vec<S>,
}

/// An array of `len` statuses (MPI_STATUSES_IGNORE is recognised by the face, by its address).
pub enum Statuses {}
impl<A: Abi> Arg<A> for Statuses {
    type Held = HeldStatuses<A::Status>;
    type Passed = *mut A::Status;
    #[inline]
    unsafe fn take(arg: *mut c_void, len: usize) -> Self::Held {
        let arg: *mut A::Status = arg.cast();
        let copies = if A::status_ignored(arg) || arg.is_aligned() {
            Vec::new()
        } else {
            // SAFETY: `arg` has `len` statuses.
            (0..len).map(|i| unsafe { arg.add(i).read_unaligned() }).collect()
        };
        HeldStatuses { arg, copies }
    }
    #[inline]
    fn pass(held: &mut Self::Held) -> Self::Passed {
        if held.copies.is_empty() { held.arg } else { held.copies.as_mut_ptr() }
    }
    fn pass_to_tool(held: &mut Self::Held) -> Self::Passed {
        if A::status_ignored(held.arg) { A::STATUS_IGNORE as *mut A::Status } else { <Self as Arg<A>>::pass(held) }
    }
    #[inline]
    unsafe fn give(held: Self::Held, _code: c_int) {
        for (i, copy) in held.copies.into_iter().enumerate() {
            // SAFETY: as in `take`.
            unsafe { held.arg.add(i).write_unaligned(copy) };
        }
    }
}

/// One status (MPI_STATUS_IGNORE is recognised by the face, by its address).
pub enum Status {}
impl<A: Abi> Arg<A> for Status {
    type Held = HeldStatuses<A::Status>;
    type Passed = *mut A::Status;
    #[inline]
    unsafe fn take(arg: *mut c_void, _len: usize) -> Self::Held {
        // SAFETY: `arg` is one status, or ignored.
        unsafe { <Statuses as Arg<A>>::take(arg, 1) }
    }
    #[inline]
    fn pass(held: &mut Self::Held) -> Self::Passed {
        <Statuses as Arg<A>>::pass(held)
    }
    fn pass_to_tool(held: &mut Self::Held) -> Self::Passed {
        <Statuses as Arg<A>>::pass_to_tool(held)
    }
    #[inline]
    unsafe fn give(held: Self::Held, code: c_int) {
        // SAFETY: as in `take`.
        unsafe { <Statuses as Arg<A>>::give(held, code) }
    }
}

#[cfg(test)]
mod tests;
