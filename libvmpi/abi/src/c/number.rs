//! The integer types of counts and displacements: one generic function serves `MPI_X`, `MPI_X_c` and `MPI_X_x`.

#![allow(unsafe_code)]

use std::ffi::c_int;
use vmpi_core::consts::UNDEFINED;
use vmpi_core::errors::{Class, Result, fail};

/// The `MPI_Count` of an `_x` function, told from that of a `_c` function so that errors name the right one.
#[derive(Copy, Clone, Debug)]
#[repr(transparent)]
pub struct X(i64);

/// `int`, `MPI_Aint` or `MPI_Count` in an argument list.
pub trait Number: Copy + 'static {
    /// Index of the function's name in [`names!`]: plain, `_c`, `_x`.
    const VARIANT: usize;
    fn get(self) -> i64;
    /// `MPI_UNDEFINED` if the value does not fit.
    fn from_i64(value: i64) -> Self;
    /// The same for a number of bytes or elements.
    fn from_u64(value: u64) -> Self {
        Self::from_i64(i64::try_from(value).unwrap_or(UNDEFINED.into()))
    }
}

impl Number for c_int {
    const VARIANT: usize = 0;
    fn get(self) -> i64 {
        self.into()
    }
    fn from_i64(value: i64) -> c_int {
        c_int::try_from(value).unwrap_or(UNDEFINED)
    }
}

impl Number for isize {
    const VARIANT: usize = 0;
    fn get(self) -> i64 {
        self as i64
    }
    fn from_i64(value: i64) -> isize {
        value as isize
    }
}

impl Number for i64 {
    const VARIANT: usize = 1;
    fn get(self) -> i64 {
        self
    }
    fn from_i64(value: i64) -> i64 {
        value
    }
}

impl Number for X {
    const VARIANT: usize = 2;
    fn get(self) -> i64 {
        self.0
    }
    fn from_i64(value: i64) -> X {
        X(value)
    }
}

/// A function's name and those of its large-count variants.
#[macro_export]
#[doc(hidden)]
macro_rules! names {
    ($name:literal) => {
        &[$name, concat!($name, "_c"), concat!($name, "_x")]
    };
}
pub use names;

/// The variant's name, by the type of an argument or of what it points to.
pub fn named<N: Number>(_: N, names: &'static [&'static str; 3]) -> &'static str {
    names[N::VARIANT]
}
/// As [`named`], for an output argument.
pub fn named_by<N: Number>(_: *const N, names: &'static [&'static str; 3]) -> &'static str {
    names[N::VARIANT]
}

/// Was the large-count variant called?
pub fn is_large<N: Number>(_: N) -> bool {
    N::VARIANT != 0
}

/// A count argument: not negative.
pub fn count(value: impl Number) -> Result<u64> {
    match u64::try_from(value.get()) {
        Ok(value) => Ok(value),
        Err(_) => fail(Class::Count, format!("the count is negative ({})", value.get())),
    }
}

/// Store a result through a pointer argument.
///
/// # Errors
/// `Class::Arg` for a null pointer.
///
/// # Safety
/// `pointer` is null or valid for writes.
pub unsafe fn put<T>(pointer: *mut T, value: T, what: &str) -> Result<()> {
    if pointer.is_null() {
        return fail(Class::Arg, format!("{what} is a null pointer"));
    }
    // SAFETY: the caller's promise, and it is not null.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Read a pointer argument.
///
/// # Errors
/// `Class::Arg` for a null pointer.
///
/// # Safety
/// `pointer` is null or valid for reads.
pub unsafe fn take<T: Copy>(pointer: *const T, what: &str) -> Result<T> {
    if pointer.is_null() {
        return fail(Class::Arg, format!("{what} is a null pointer"));
    }
    // SAFETY: the caller's promise, and it is not null.
    Ok(unsafe { pointer.read() })
}

/// An array argument of `count` numbers.
///
/// # Errors
/// `Class::Count` for a negative count, `Class::Arg` for a null pointer to more than nothing.
///
/// # Safety
/// `pointer` is null or holds `count` values.
pub unsafe fn array<T: Copy>(pointer: *const T, length: i64, what: &str) -> Result<&'static [T]> {
    let Ok(length) = usize::try_from(length) else {
        return fail(Class::Count, format!("the count is negative ({length})"));
    };
    if length == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return fail(Class::Arg, format!("{what} is a null pointer"));
    }
    // SAFETY: the caller's promise; callers use the slice up before they return to the program.
    Ok(unsafe { std::slice::from_raw_parts(pointer, length) })
}

/// As [`array`], widened.
///
/// # Errors
/// As [`array`].
///
/// # Safety
/// As [`array`].
pub unsafe fn numbers(pointer: *const impl Number, length: i64, what: &str) -> Result<Vec<i64>> {
    // SAFETY: the caller's promise.
    Ok(unsafe { array(pointer, length, what) }?.iter().map(|n| n.get()).collect())
}
