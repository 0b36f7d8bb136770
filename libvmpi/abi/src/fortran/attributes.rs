//! Attributes as Fortran sees them: INTEGER values (MPI-1) or ADDRESS_KIND values, and callbacks that take everything by
//! reference. How values set in one language look in another: MPI 4.1, section 19.3.7.

use crate::abi::{Abi, CComm, CDatatype, Codec};
use crate::entry::{self, Target};
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use vmpi_core::attr::{self, Kind, Value};
use vmpi_core::consts::{HOST, IO, LASTUSEDCODE, TAG_UB, UNIVERSE_SIZE, WIN_BASE, WIN_MODEL};
use vmpi_core::errors::{Error, Result};
use vmpi_core::handle::{Comm, Datatype, Handle, Win};
use vmpi_core::{comm, datatype};

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

/// The Fortran INTEGER for an object of `kind`.
fn fobject<A: Abi>(kind: Kind, object: u32) -> c_int {
    match kind {
        Kind::Comm => <A as Codec<Comm>>::fenc(Comm::from_raw(object)),
        Kind::Type => <A as Codec<Datatype>>::fenc(Datatype::from_raw(object)),
        Kind::Win => <A as Codec<Win>>::fenc(Win::from_raw(object)),
    }
}

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

/// # Safety
/// The functions must be null or Fortran procedures that take `W` words; `keyval` must be valid for writes.
unsafe fn create_keyval<A: Abi, W: Word>(
    function: &'static str,
    kind: Kind,
    copy_fn: *mut c_void,
    delete_fn: *mut c_void,
    keyval: *mut c_int,
    extra_state: W,
) -> c_int {
    // SAFETY: addresses of procedures or null; promised by the caller.
    let (copy_fn, delete_fn) = unsafe {
        (
            std::mem::transmute::<*mut c_void, Option<CopyFunction<W>>>(copy_fn),
            std::mem::transmute::<*mut c_void, Option<DeleteFunction<W>>>(delete_fn),
        )
    };
    entry::run::<A>(function, Target::Process, || {
        let copy = move |object: u32, keyval: i32, value: Value| -> Result<Option<Value>> {
            let Some(copy_fn) = copy_fn else { return Ok(None) };
            let mut object = fobject::<A>(kind, object);
            let mut keyval = A::keyval_out(keyval);
            let mut extra_state = extra_state;
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
            let mut object = fobject::<A>(kind, object);
            let mut keyval = A::keyval_out(keyval);
            let mut extra_state = extra_state;
            let mut value = W::from_value(value);
            let mut ierror = 0;
            // SAFETY: the program's procedure, called as MPI 4.1 section 7.7.2 says.
            unsafe {
                delete_fn(
                    &raw mut object,
                    &raw mut keyval,
                    &raw mut value,
                    &raw mut extra_state,
                    &raw mut ierror,
                );
            }
            callback_result::<A>(ierror)
        };
        let created = attr::create_keyval(kind, Rc::new(copy), Rc::new(delete));
        // SAFETY: promised by the caller.
        unsafe { keyval.write_unaligned(A::keyval_out(created)) };
        Ok(())
    })
}

/// # Safety
/// `value` must be valid for writes; `flag` too.
unsafe fn get<A: Abi, W: Word>(
    function: &'static str,
    (target, kind, object): (Target, Kind, u32),
    keyval: c_int,
    value: *mut W,
    flag: *mut c_int,
) -> c_int {
    entry::run::<A>(function, target, || {
        check(kind, object)?;
        let keyval = keyval_in::<A>(keyval);
        let found = attr::get(kind, object, keyval)?.map(|value| match keyval {
            IO | HOST => Value::Integer(A::rank_out(value.as_integer())),
            LASTUSEDCODE => Value::Integer(A::err_out(value.as_integer())),
            _ => value,
        });
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

/// Is there such an object?
fn check(kind: Kind, object: u32) -> Result<()> {
    match kind {
        Kind::Comm => comm::get(Comm::from_raw(object)).map(drop),
        Kind::Type => datatype::get(Datatype::from_raw(object)).map(drop),
        Kind::Win => Ok(()),
    }
}

fn set<A: Abi>(function: &'static str, of: (Target, Kind, u32), keyval: c_int, value: impl Word) -> c_int {
    let (target, kind, object) = of;
    entry::run::<A>(function, target, || {
        check(kind, object)?;
        attr::set(kind, object, keyval_in::<A>(keyval), value.to_value())
    })
}

fn delete<A: Abi>(function: &'static str, of: (Target, Kind, u32), keyval: c_int) -> c_int {
    let (target, kind, object) = of;
    entry::run::<A>(function, target, || {
        check(kind, object)?;
        attr::delete(kind, object, keyval_in::<A>(keyval))
    })
}

fn of_comm<A: Abi>(handle: CComm<A>) -> (Target, Kind, u32) {
    let handle = <A as Codec<Comm>>::dec(handle);
    (Target::Comm(handle), Kind::Comm, handle.raw())
}

fn of_type<A: Abi>(handle: CDatatype<A>) -> (Target, Kind, u32) {
    (Target::Process, Kind::Type, <A as Codec<Datatype>>::dec(handle).raw())
}

macro_rules! keyval_creators {
    ($($name:ident: $mpi:literal, $kind:expr, $word:ty;)*) => {$(
        #[doc = concat!($mpi, ".")]
        ///
        /// # Safety
        /// The functions must be null or the Fortran procedures that MPI asks for; `keyval` must be valid for writes.
        pub unsafe fn $name<A: Abi>(
            copy_fn: *mut c_void,
            delete_fn: *mut c_void,
            keyval: *mut c_int,
            extra_state: $word,
        ) -> c_int {
            // SAFETY: promised by the caller.
            unsafe { create_keyval::<A, $word>($mpi, $kind, copy_fn, delete_fn, keyval, extra_state) }
        }
    )*};
}
keyval_creators! {
    comm_create_keyval: "MPI_Comm_create_keyval", Kind::Comm, isize;
    type_create_keyval: "MPI_Type_create_keyval", Kind::Type, isize;
    keyval_create: "MPI_Keyval_create", Kind::Comm, c_int;
}

macro_rules! accessors {
    ($($get:ident $get_mpi:literal, $set:ident $set_mpi:literal: $handle:ty, $of:ident, $word:ty;)*) => {$(
        #[doc = concat!($get_mpi, ".")]
        ///
        /// # Safety
        /// `value` and `flag` must be valid for writes.
        pub unsafe fn $get<A: Abi>(object: $handle, keyval: c_int, value: *mut $word, flag: *mut c_int) -> c_int {
            // SAFETY: promised by the caller.
            unsafe { get::<A, $word>($get_mpi, $of::<A>(object), keyval, value, flag) }
        }
        #[doc = concat!($set_mpi, ".")]
        ///
        /// # Safety
        /// MPI's contract.
        pub unsafe fn $set<A: Abi>(object: $handle, keyval: c_int, value: $word) -> c_int {
            set::<A>($set_mpi, $of::<A>(object), keyval, value)
        }
    )*};
}
accessors! {
    comm_get_attr "MPI_Comm_get_attr", comm_set_attr "MPI_Comm_set_attr": CComm<A>, of_comm, isize;
    type_get_attr "MPI_Type_get_attr", type_set_attr "MPI_Type_set_attr": CDatatype<A>, of_type, isize;
    attr_get "MPI_Attr_get", attr_put "MPI_Attr_put": CComm<A>, of_comm, c_int;
}

/// MPI_COMM_DELETE_ATTR and MPI_ATTR_DELETE.
///
/// # Safety
/// MPI's contract.
pub unsafe fn comm_delete_attr<A: Abi>(object: CComm<A>, keyval: c_int) -> c_int {
    delete::<A>("MPI_Comm_delete_attr", of_comm::<A>(object), keyval)
}

/// MPI_TYPE_DELETE_ATTR.
///
/// # Safety
/// MPI's contract.
pub unsafe fn type_delete_attr<A: Abi>(object: CDatatype<A>, keyval: c_int) -> c_int {
    delete::<A>("MPI_Type_delete_attr", of_type::<A>(object), keyval)
}
