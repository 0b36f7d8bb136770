//! Attributes as Fortran sees them: INTEGER values (MPI-1) or ADDRESS_KIND values, and callbacks that take everything by
//! reference. How values set in one language look in another: MPI 4.1, section 19.3.7.

use crate::abi::{Abi, C, Codec, dec};
use crate::c::attr::{Carrier, get_value};
use crate::entry::{self, Target};
use crate::f_through;
use crate::fortran::through::{Procedures, Through};
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use vmpi_core::attr::{self, Value};
use vmpi_core::consts::{TAG_UB, UNIVERSE_SIZE, WIN_BASE, WIN_MODEL};
use vmpi_core::errors::{Error, Result};
use vmpi_core::handle::{Comm, Datatype, Win};

/// An integer kind in which Fortran callbacks take attribute values and extra state.
trait Word: Copy + Default + 'static {
    fn from_value(value: Value) -> Self;
    fn to_value(self) -> Value;
}

impl Word for c_int {
    fn from_value(value: Value) -> c_int {
        value.as_integer()
    }
    fn to_value(self) -> Value {
        Value::Integer(self)
    }
}

impl Word for isize {
    fn from_value(value: Value) -> isize {
        value.as_address()
    }
    fn to_value(self) -> Value {
        Value::Address(self)
    }
}

/// SUBROUTINE COPY_FN(OLD, KEYVAL, EXTRA_STATE, VALUE_IN, VALUE_OUT, FLAG, IERROR)
type CopyFunction<W> = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut W, *mut W, *mut W, *mut c_int, *mut c_int);
/// SUBROUTINE DELETE_FN(OBJECT, KEYVAL, VALUE, EXTRA_STATE, IERROR)
type DeleteFunction<W> = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut W, *mut W, *mut c_int);

/// A callback's IERROR as a result.
fn callback_result<A: Abi>(ierror: c_int) -> Result<()> {
    if ierror == 0 { Ok(()) } else { Err(Error::user(A::err_in(ierror))) }
}

/// Core keyval of a Fortran one. MPICH gives each predefined attribute a second key for Fortran, one above C's.
fn keyval_in<A: Abi>(keyval: c_int) -> i32 {
    let core = A::keyval_in(keyval);
    if core != keyval {
        return core;
    }
    let c_key = keyval.wrapping_sub(1);
    let below = A::keyval_in(c_key);
    if below != c_key && is_predefined(below) { below } else { core }
}

fn is_predefined(keyval: i32) -> bool {
    (TAG_UB..=UNIVERSE_SIZE).contains(&keyval) || (WIN_BASE..=WIN_MODEL).contains(&keyval)
}

/// Make a key from the program's procedures, which take INTEGERs (MPI-1) or address-sized integers.
///
/// # Safety
/// The addresses must be 0 or those of Fortran procedures that take such words, for as long as the key or an attribute with it exists.
pub unsafe fn create<A: Abi + Codec<H>, H: Carrier>(copy: usize, delete: usize, extra: isize, integers: bool) -> i32 {
    // SAFETY: promised by the caller.
    unsafe {
        if integers {
            create_of_words::<A, H, c_int>(copy, delete, extra as c_int)
        } else {
            create_of_words::<A, H, isize>(copy, delete, extra)
        }
    }
}

/// # Safety
/// The addresses must be 0 or those of Fortran procedures that take `W` words.
unsafe fn create_of_words<A: Abi + Codec<H>, H: Carrier, W: Word>(copy_fn: usize, delete_fn: usize, extra: W) -> i32 {
    // SAFETY: addresses of procedures or null; promised by the caller.
    let (copy_fn, delete_fn) = unsafe {
        (
            std::mem::transmute::<usize, Option<CopyFunction<W>>>(copy_fn),
            std::mem::transmute::<usize, Option<DeleteFunction<W>>>(delete_fn),
        )
    };
    let copy = move |object: u32, keyval: i32, value: Value| -> Result<Option<Value>> {
        let Some(copy_fn) = copy_fn else { return Ok(None) };
        let mut object = A::fenc(H::from_raw(object));
        let mut keyval = A::keyval_out(keyval);
        let mut extra_state = extra;
        let (mut value_in, mut value_out) = (W::from_value(value), W::default());
        let (mut flag, mut ierror) = (0, 0);
        // SAFETY: the program's procedure, called as MPI 4.1 section 7.7.2 says.
        unsafe {
            copy_fn(
                &raw mut object,
                &raw mut keyval,
                &raw mut extra_state,
                &raw mut value_in,
                &raw mut value_out,
                &raw mut flag,
                &raw mut ierror,
            );
        }
        callback_result::<A>(ierror)?;
        Ok((flag != 0).then(|| value_out.to_value()))
    };
    let delete = move |object: u32, keyval: i32, value: Value| -> Result<()> {
        let Some(delete_fn) = delete_fn else { return Ok(()) };
        let mut object = A::fenc(H::from_raw(object));
        let mut keyval = A::keyval_out(keyval);
        let (mut value, mut extra_state) = (W::from_value(value), extra);
        let mut ierror = 0;
        // SAFETY: the program's procedure, called as MPI 4.1 section 7.7.2 says.
        unsafe {
            delete_fn(&raw mut object, &raw mut keyval, &raw mut value, &raw mut extra_state, &raw mut ierror);
        }
        callback_result::<A>(ierror)
    };
    attr::create_keyval(H::KIND, Rc::new(copy), Rc::new(delete))
}

/// The procedures that make keys, as the tables call them, and what they are without a detour.
macro_rules! create_procedures {
    ($($H:ty, $word:ty, $integers:literal: $create:ident $name:literal;)*) => {
        $(
            #[doc = concat!("`", $name, "`.")]
            ///
            /// # Safety
            /// The functions must be null or the Fortran procedures that MPI asks for; `keyval` must be valid for writes.
            pub unsafe fn $create<A: Abi>(
                through: Through, copy: *mut c_void, delete: *mut c_void, keyval: *mut c_int, extra: $word,
            ) -> c_int {
                // C's extra state is a pointer.
                let extra = extra as isize;
                Procedures::of_words([copy, delete], $integers).announced(|| {
                    // SAFETY: promised by the caller.
                    unsafe {
                        f_through!(through, own::$create::<A>(
                            copy: *mut c_void, delete: *mut c_void, keyval: *mut c_int, extra: isize
                        ) -> c_int)
                    }
                })
            }
        )*
        mod own {
            use super::*;
            $(pub unsafe fn $create<A: Abi>(
                copy: *mut c_void, delete: *mut c_void, keyval: *mut c_int, extra: isize,
            ) -> c_int {
                entry::run::<A>($name, Target::Process, || {
                    // SAFETY: promised by the caller.
                    unsafe {
                        let created = create::<A, $H>(copy as usize, delete as usize, extra, $integers);
                        keyval.write_unaligned(A::keyval_out(created));
                    }
                    Ok(())
                })
            })*
        }
    };
}
create_procedures! {
    Comm, isize, false: comm_create_keyval "MPI_Comm_create_keyval";
    Datatype, isize, false: type_create_keyval "MPI_Type_create_keyval";
    Win, isize, false: win_create_keyval "MPI_Win_create_keyval";
    Comm, c_int, true: keyval_create "MPI_Keyval_create";
}

/// # Safety
/// `value` and `flag` must be valid for writes.
unsafe fn get<A: Abi, H: Carrier, W: Word>(
    function: &'static str,
    object: H,
    keyval: c_int,
    value: *mut W,
    flag: *mut c_int,
) -> c_int {
    entry::run::<A>(function, object.target(), || {
        let found = get_value::<A, H>(object, keyval_in::<A>(keyval))?;
        // SAFETY: promised by the caller.
        unsafe {
            flag.write_unaligned(c_int::from(found.is_some()));
            if let Some(found) = found {
                value.write_unaligned(W::from_value(found));
            }
        }
        Ok(())
    })
}

fn set<A: Abi, H: Carrier>(function: &'static str, object: H, keyval: c_int, value: impl Word) -> c_int {
    entry::run::<A>(function, object.target(), || {
        object.check()?;
        attr::set(H::KIND, object.raw(), keyval_in::<A>(keyval), value.to_value())
    })
}

macro_rules! attribute_procedures {
    ($($H:ty, $word:ty:
        $get:ident $get_name:literal, $set:ident $set_name:literal;
    )*) => {$(
        #[doc = concat!("`", $get_name, "`.")]
        ///
        /// # Safety
        /// `value` and `flag` must be valid for writes.
        pub unsafe fn $get<A: Abi>(object: C<A, $H>, keyval: c_int, value: *mut $word, flag: *mut c_int) -> c_int {
            // SAFETY: promised by the caller.
            unsafe { get::<A, $H, $word>($get_name, dec::<A, $H>(object), keyval, value, flag) }
        }

        #[doc = concat!("`", $set_name, "`.")]
        ///
        /// # Safety
        /// MPI's contract.
        pub unsafe fn $set<A: Abi>(object: C<A, $H>, keyval: c_int, value: $word) -> c_int {
            set::<A, $H>($set_name, dec::<A, $H>(object), keyval, value)
        }
    )*};
}
attribute_procedures! {
    Comm, isize: comm_get_attr "MPI_Comm_get_attr",
        comm_set_attr "MPI_Comm_set_attr";
    Datatype, isize: type_get_attr "MPI_Type_get_attr",
        type_set_attr "MPI_Type_set_attr";
    Win, isize: win_get_attr "MPI_Win_get_attr",
        win_set_attr "MPI_Win_set_attr";
    Comm, c_int: attr_get "MPI_Attr_get", attr_put "MPI_Attr_put";
}
