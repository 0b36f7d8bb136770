//! What the entry points of several chapters do with their arguments: check pointers, read and write strings.

use crate::abi::{Abi, CComm, Codec, dec};
use std::ffi::{CStr, c_char, c_int};
use vmpi_core::errhandler::Target;
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::Handle;

/// Write entry points: each becomes `pub unsafe fn NAME<A: Abi>(...) -> c_int` that runs its body behind the entry
/// gate, with the error handler of the given target; `anytime` ones work before MPI_Init and after MPI_Finalize.
///
/// The body may be unsafe: the one thing that makes it sound is that the caller keeps MPI's contract about pointers.
#[macro_export]
macro_rules! entry_points {
    ($(
        $(#[$doc:meta])*
        $when:ident fn $func:ident = $name:literal ( $($arg:ident : $ty:ty),* $(,)? ) $(for $target:expr)? => $body:block
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers must be what MPI says of this function's arguments, or null where it refuses null.
        #[allow(clippy::too_many_arguments)] // As many as MPI says.
        pub unsafe fn $func<A: $crate::abi::Abi>($($arg: $ty),*) -> std::ffi::c_int {
            $crate::entry_points!(@run $when, A, $name, $($target)?, || {
                // SAFETY: the caller keeps MPI's contract for the arguments, as said above.
                #[allow(unused_unsafe, clippy::macro_metavars_in_unsafe)]
                unsafe { $body }
                Ok(())
            })
        }
    )*};
    (@run active, $A:ty, $name:literal, $target:expr, $body:expr) => {
        $crate::entry::run::<$A>($name, $target, $body)
    };
    (@run at_once, $A:ty, $name:literal, , $body:expr) => {
        $crate::entry::run_at_once::<$A>($name, $body)
    };
    (@run anytime, $A:ty, $name:literal, , $body:expr) => {
        $crate::entry::run_any_time::<$A>($name, $body)
    };
}

/// The error handler of a communicator argument.
pub fn on_comm<A: Abi>(comm: CComm<A>) -> Target {
    Target::Comm(dec::<A, _>(comm))
}

/// An output argument must not be null.
///
/// # Errors
/// `Class::Arg`.
pub fn not_null<T>(pointer: *const T, what: &str) -> Result<()> {
    if pointer.is_null() {
        return fail(Class::Arg, format!("the argument {what} is a null pointer"));
    }
    Ok(())
}

/// A count must not be negative.
///
/// # Errors
/// `class`.
pub fn not_negative(count: c_int, class: Class, what: &str) -> Result<usize> {
    match usize::try_from(count) {
        Ok(count) => Ok(count),
        Err(_) => fail(class, format!("the argument {what} is {count}, it must not be negative")),
    }
}

/// An array argument of `count` elements; null is allowed for none.
///
/// # Errors
/// `Class::Arg` for null.
///
/// # Safety
/// `pointer` must be null or point to `count` elements that nobody changes meanwhile.
pub unsafe fn array<'a, T>(pointer: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    not_null(pointer, what)?;
    // SAFETY: not null, so the caller's promise is that it holds `count` elements.
    Ok(unsafe { std::slice::from_raw_parts(pointer, count) })
}

/// Copy values to an output array of the program.
///
/// # Safety
/// `pointer` must have room for all of `values`.
pub unsafe fn fill<T>(pointer: *mut T, values: impl IntoIterator<Item = T>) {
    for (index, value) in values.into_iter().enumerate() {
        // SAFETY: the caller has room for all values.
        unsafe { pointer.add(index).write(value) };
    }
}

/// A string argument without its NUL.
///
/// # Errors
/// `Class::Arg` for null.
///
/// # Safety
/// `pointer` must be null or a string with a NUL.
pub unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a [u8]> {
    not_null(pointer, what)?;
    // SAFETY: not null, so the caller's promise is that it is a C string.
    Ok(unsafe { CStr::from_ptr(pointer) }.to_bytes())
}

/// Write a string of the library, cut to `room` bytes with its NUL; returns its length without.
///
/// # Safety
/// `pointer` must have room for `room` bytes (or the whole string and NUL, if that is less).
pub unsafe fn put_text(pointer: *mut c_char, room: usize, text: &[u8]) -> c_int {
    let length = text.len().min(room.saturating_sub(1));
    if room > 0 {
        // SAFETY: `length + 1 <= room`.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), pointer, length);
            pointer.add(length).write(0);
        }
    }
    length as c_int
}

/// A handle in an inout argument.
///
/// # Errors
/// `Class::Arg` for null.
///
/// # Safety
/// `pointer` must be null or readable.
pub unsafe fn handle_at<A: Abi + Codec<H>, H: Handle>(pointer: *const <A as Codec<H>>::C, what: &str) -> Result<H> {
    not_null(pointer, what)?;
    // SAFETY: not null, so the caller's promise is that it is readable.
    Ok(dec::<A, H>(unsafe { pointer.read() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_cut_and_terminated() {
        let mut buffer = [1 as c_char; 8];
        for (room, length) in [(8, 5), (6, 5), (4, 3), (1, 0), (0, 0)] {
            buffer.fill(1);
            // SAFETY: the buffer has at least `room` bytes.
            assert_eq!(unsafe { put_text(buffer.as_mut_ptr(), room, b"hello") }, length);
            assert_eq!(buffer[length as usize], if room == 0 { 1 } else { 0 });
        }
    }
}
