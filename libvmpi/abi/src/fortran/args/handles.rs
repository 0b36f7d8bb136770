//! Handles, which are INTEGERs in Fortran: one or an array, going in, coming out, or both.

use super::{Arg, Local};
use crate::abi::{Abi, C, Codec};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use vmpi_core::handle::{Handle, Request};

/// # Safety
/// `arg` must be an INTEGER array of more than `i` elements.
#[inline]
unsafe fn handle_in<A: Codec<H>, H: Handle>(arg: *mut c_void, i: usize) -> C<A, H> {
    // SAFETY: promised by the caller.
    A::enc(A::fdec(unsafe { arg.cast::<c_int>().add(i).read_unaligned() }))
}

/// # Safety
/// As `handle_in`.
#[inline]
unsafe fn handle_out<A: Codec<H>, H: Handle>(arg: *mut c_void, i: usize, handle: C<A, H>) {
    // SAFETY: promised by the caller.
    unsafe { arg.cast::<c_int>().add(i).write_unaligned(A::fenc(A::dec(handle))) }
}

/// A handle going in.
pub struct In<H>(PhantomData<H>);
impl<A: Abi + Codec<H>, H: Handle> Arg<A> for In<H> {
    type Held = C<A, H>;
    type Passed = C<A, H>;
    #[inline]
    unsafe fn take(arg: *mut c_void, _len: usize) -> C<A, H> {
        // SAFETY: `arg` is an INTEGER handle.
        unsafe { handle_in::<A, H>(arg, 0) }
    }
    #[inline]
    fn pass(held: &mut C<A, H>) -> C<A, H> {
        *held
    }
}

/// A handle coming out of a call that succeeds.
pub struct Out<H>(PhantomData<H>);
impl<A: Abi + Codec<H>, H: Handle> Arg<A> for Out<H> {
    type Held = Local<C<A, H>>;
    type Passed = *mut C<A, H>;
    #[inline]
    unsafe fn take(arg: *mut c_void, _len: usize) -> Self::Held {
        Local { arg, value: A::enc(H::NULL) }
    }
    #[inline]
    fn pass(held: &mut Self::Held) -> Self::Passed {
        &raw mut held.value
    }
    #[inline]
    unsafe fn give(held: Self::Held, code: c_int) {
        if code == 0 {
            // SAFETY: `arg` is an INTEGER handle.
            unsafe { handle_out::<A, H>(held.arg, 0, held.value) };
        }
    }
    #[inline]
    fn started(held: &Self::Held) -> Option<Request> {
        let is_request = std::any::TypeId::of::<H>() == std::any::TypeId::of::<Request>();
        is_request.then(|| Request::from_raw(<A as Codec<H>>::dec(held.value).raw()))
    }
}

/// A handle that the call uses and may change.
pub struct InOut<H>(PhantomData<H>);
impl<A: Abi + Codec<H>, H: Handle> Arg<A> for InOut<H> {
    type Held = Local<C<A, H>>;
    type Passed = *mut C<A, H>;
    #[inline]
    unsafe fn take(arg: *mut c_void, _len: usize) -> Self::Held {
        // SAFETY: `arg` is an INTEGER handle.
        Local { arg, value: unsafe { handle_in::<A, H>(arg, 0) } }
    }
    #[inline]
    fn pass(held: &mut Self::Held) -> Self::Passed {
        &raw mut held.value
    }
    #[inline]
    unsafe fn give(held: Self::Held, _code: c_int) {
        // SAFETY: as in `take`. A handle that did not change decodes to the number it came from.
        unsafe { handle_out::<A, H>(held.arg, 0, held.value) };
    }
}

/// An array of `len` handles going in; null if there are none (nothing to read beside MPI_IN_PLACE).
pub struct Ins<H>(PhantomData<H>);
impl<A: Abi + Codec<H>, H: Handle> Arg<A> for Ins<H> {
    type Held = Vec<C<A, H>>;
    type Passed = *mut C<A, H>;
    unsafe fn take(arg: *mut c_void, len: usize) -> Self::Held {
        // SAFETY: `arg` has `len` INTEGER handles.
        (0..len).map(|i| unsafe { handle_in::<A, H>(arg, i) }).collect()
    }
    fn pass(held: &mut Self::Held) -> Self::Passed {
        if held.is_empty() { std::ptr::null_mut() } else { held.as_mut_ptr() }
    }
}

/// An array of handles with the Fortran array it came from.
pub struct LocalHandles<T> {
    arg: *mut c_void,
    values: Vec<T>,
}

/// An array of `len` handles coming out; those that the call leaves null are not written.
pub struct Outs<H>(PhantomData<H>);
impl<A: Abi + Codec<H>, H: Handle> Arg<A> for Outs<H> {
    type Held = LocalHandles<C<A, H>>;
    type Passed = *mut C<A, H>;
    unsafe fn take(arg: *mut c_void, len: usize) -> Self::Held {
        LocalHandles { arg, values: vec![A::enc(H::NULL); len] }
    }
    fn pass(held: &mut Self::Held) -> Self::Passed {
        held.values.as_mut_ptr()
    }
    unsafe fn give(held: Self::Held, code: c_int) {
        if code != 0 {
            return;
        }
        for (i, value) in held.values.into_iter().enumerate().filter(|(_, value)| *value != A::enc(H::NULL)) {
            // SAFETY: `arg` has `len` INTEGER handles.
            unsafe { handle_out::<A, H>(held.arg, i, value) };
        }
    }
}

/// An array of `len` handles that the call uses and may change.
pub struct InOuts<H>(PhantomData<H>);
impl<A: Abi + Codec<H>, H: Handle> Arg<A> for InOuts<H> {
    type Held = LocalHandles<C<A, H>>;
    type Passed = *mut C<A, H>;
    unsafe fn take(arg: *mut c_void, len: usize) -> Self::Held {
        // SAFETY: `arg` has `len` INTEGER handles.
        LocalHandles { arg, values: (0..len).map(|i| unsafe { handle_in::<A, H>(arg, i) }).collect() }
    }
    fn pass(held: &mut Self::Held) -> Self::Passed {
        held.values.as_mut_ptr()
    }
    unsafe fn give(held: Self::Held, _code: c_int) {
        for (i, value) in held.values.into_iter().enumerate() {
            // SAFETY: as in `take`.
            unsafe { handle_out::<A, H>(held.arg, i, value) };
        }
    }
}
