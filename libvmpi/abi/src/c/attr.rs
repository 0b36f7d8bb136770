//! Attributes: MPI 4.1 section 7.7, and the MPI-1 names of the same.
//!
//! A callback is kept as a closure that calls the program's function with this face's handles.

use super::args::not_null;
use super::cxx;
use crate::abi::{Abi, C, CComm, CDatatype, CWin, Codec, dec, enc};
use crate::entry::Target;
use crate::fortran::attributes;
use crate::fortran::through::Procedures;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::sync::atomic::{AtomicI32, Ordering};
use vmpi_core::attr::{self, Kind, Value};
use vmpi_core::errors::{Error, Result};
use vmpi_core::handle::{Comm, Datatype, Handle, Win};
use vmpi_core::{comm, consts, datatype, rma};

/// A copy callback: object, keyval, extra state, value in, where the new value goes, where the flag goes.
pub type CopyFunction<T> =
    Option<unsafe extern "C" fn(T, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int>;
/// A delete callback: object, keyval, value, extra state.
pub type DeleteFunction<T> = Option<unsafe extern "C" fn(T, c_int, *mut c_void, *mut c_void) -> c_int>;
pub type CommCopy<A> = CopyFunction<CComm<A>>;
pub type CommDelete<A> = DeleteFunction<CComm<A>>;
pub type TypeCopy<A> = CopyFunction<CDatatype<A>>;
pub type TypeDelete<A> = DeleteFunction<CDatatype<A>>;
pub type WinCopy<A> = CopyFunction<CWin<A>>;
pub type WinDelete<A> = DeleteFunction<CWin<A>>;

/// `MPI_COMM_DUP_FN` and its kin in the standard ABI: an address where no function is, in any ABI.
const STANDARD_DUP_FN: usize = 1;

/// What differs between objects that carry attributes.
pub trait Carrier: Handle {
    const KIND: Kind;
    /// The object must exist.
    ///
    /// # Errors
    /// The class of errors about this kind of handle.
    fn check(self) -> Result<()>;
    fn target(self) -> Target;
}

impl Carrier for Comm {
    const KIND: Kind = Kind::Comm;
    fn check(self) -> Result<()> {
        comm::get(self).map(drop)
    }
    fn target(self) -> Target {
        Target::Comm(self)
    }
}

impl Carrier for Datatype {
    const KIND: Kind = Kind::Type;
    fn check(self) -> Result<()> {
        datatype::get(self).map(drop)
    }
    fn target(self) -> Target {
        Target::Process
    }
}

impl Carrier for Win {
    const KIND: Kind = Kind::Win;
    fn check(self) -> Result<()> {
        rma::get_window(self).map(drop)
    }
    fn target(self) -> Target {
        Target::Win(self)
    }
}

/// Make a key from the program's C functions; null functions are the null functions.
///
/// # Safety
/// The functions must be what their types say for as long as the key or an attribute with it exists.
unsafe fn create<A: Abi + Codec<H>, H: Carrier>(
    copy: CopyFunction<C<A, H>>,
    delete: DeleteFunction<C<A, H>>,
    extra: *mut c_void,
) -> i32 {
    // SAFETY: the addresses of Fortran procedures, promised by the caller.
    if let Some(created) = unsafe { create_from_fortran::<A, H>(copy, delete, extra) } {
        return created;
    }
    let extra = extra as usize;
    let callbacks = cxx::Callbacks {
        copy: copy.map_or(0, |copy| copy as usize),
        delete: delete.map_or(0, |delete| delete as usize),
        extra,
        integer: |raw| <A as Codec<H>>::fenc(H::from_raw(raw)),
    };
    let copy: attr::CopyFn = match copy {
        None => attr::null_copy(),
        Some(copy) if copy as usize == STANDARD_DUP_FN => attr::dup_copy(),
        Some(copy) => Rc::new(move |object, keyval, value| {
            let object = enc::<A, H>(H::from_raw(object));
            let mut cell = 0;
            let given = value.as_pointer(&mut cell);
            let mut new_value: *mut c_void = std::ptr::null_mut();
            let mut flag: c_int = 0;
            // SAFETY: the program gave this function for this purpose; the outputs live here.
            let code = unsafe {
                let out = (&raw mut new_value).cast();
                copy(object, A::keyval_out(keyval), extra as *mut c_void, given as *mut c_void, out, &raw mut flag)
            };
            match (code, flag) {
                (0, 0) => Ok(None),
                // Handed through: it stays what it was, also if it was set from Fortran and `given` is a local cell.
                (0, _) if new_value as usize == given => Ok(Some(value)),
                (0, _) => Ok(Some(Value::Pointer(new_value as usize))),
                _ => Err(Error::user(A::err_in(code))),
            }
        }),
    };
    let delete: attr::DeleteFn = match delete {
        None => attr::null_delete(),
        Some(delete) => Rc::new(move |object, keyval, value| {
            let object = enc::<A, H>(H::from_raw(object));
            let mut cell = 0;
            let given = value.as_pointer(&mut cell) as *mut c_void;
            // SAFETY: the program gave this function for this purpose.
            match unsafe { delete(object, A::keyval_out(keyval), given, extra as *mut c_void) } {
                0 => Ok(()),
                code => Err(Error::user(A::err_in(code))),
            }
        }),
    };
    let made = attr::create_keyval(H::KIND, copy, delete);
    cxx::made_keyval(made, callbacks);
    made
}

/// The same, if a profiling tool hands on Fortran procedures.
///
/// # Safety
/// As `create`.
unsafe fn create_from_fortran<A: Abi + Codec<H>, H: Carrier>(
    copy: CopyFunction<C<A, H>>,
    delete: DeleteFunction<C<A, H>>,
    extra: *mut c_void,
) -> Option<i32> {
    let (copy, delete) = (copy.map_or(0, |copy| copy as usize), delete.map_or(0, |delete| delete as usize));
    let procedures = Procedures::from_fortran([copy, delete])?;
    // SAFETY: promised by the caller.
    Some(unsafe { attributes::create::<A, H>(copy, delete, extra as isize, procedures.integers) })
}

/// The value of an attribute for Fortran: predefined ones in this face's numbers.
///
/// # Errors
/// `Class::Keyval`, and the class of a handle that names nothing.
pub fn get_value<A: Abi, H: Carrier>(object: H, keyval: i32) -> Result<Option<Value>> {
    object.check()?;
    let value = attr::get(H::KIND, object.raw(), keyval)?;
    Ok(match (keyval, value) {
        (consts::IO | consts::HOST, Some(Value::Integer(rank))) => Some(Value::Integer(A::rank_out(rank))),
        // The last code in the face's numbers, where the first that may be added follows its MPI_ERR_LASTCODE.
        (consts::LASTUSEDCODE, Some(Value::Integer(code))) => Some(Value::Integer(A::err_out(code + 1) - 1)),
        (_, value) => value,
    })
}

/// The value of an attribute for C.
fn get_pointer<A: Abi, H: Carrier>(object: H, keyval: i32) -> Result<Option<usize>> {
    const CELLS: usize = (consts::UNIVERSE_SIZE - consts::TAG_UB + 1) as usize;
    // C gets a pointer to an int that lives for ever.
    static PREDEFINED: [AtomicI32; CELLS] = [const { AtomicI32::new(0) }; CELLS];
    let index = keyval.checked_sub(consts::TAG_UB).and_then(|index| usize::try_from(index).ok());
    match index.and_then(|index| PREDEFINED.get(index)) {
        Some(cell) if H::KIND == Kind::Comm => Ok(get_value::<A, H>(object, keyval)?.map(|value| {
            cell.store(value.as_integer(), Ordering::Relaxed);
            cell.as_ptr() as usize
        })),
        _ => {
            object.check()?;
            attr::get_pointer(H::KIND, object.raw(), keyval)
        }
    }
}

/// The five functions of one kind of object.
macro_rules! attribute_functions {
    ($H:ty; $(
        $create:ident = $create_name:literal, $free:ident = $free_name:literal, $set:ident = $set_name:literal,
        $get:ident = $get_name:literal, $delete:ident = $delete_name:literal;
    )*) => {$(
        crate::entry_points! {
            #[doc = concat!("`", $create_name, "`.")]
            active fn $create = $create_name(
                copy: CopyFunction<C<A, $H>>, delete: DeleteFunction<C<A, $H>>, keyval: *mut c_int, extra: *mut c_void,
            ) for Target::Process => {
                not_null(keyval, "keyval")?;
                *keyval = A::keyval_out(create::<A, $H>(copy, delete, extra));
            }

            #[doc = concat!("`", $free_name, "`.")]
            active fn $free = $free_name(keyval: *mut c_int) for Target::Process => {
                not_null(keyval, "keyval")?;
                attr::free_keyval(<$H>::KIND, A::keyval_in(*keyval))?;
                *keyval = A::keyval_out(consts::KEYVAL_INVALID);
            }

            #[doc = concat!("`", $set_name, "`.")]
            active fn $set = $set_name(object: C<A, $H>, keyval: c_int, value: *mut c_void)
                for dec::<A, $H>(object).target() =>
            {
                let object = dec::<A, $H>(object);
                object.check()?;
                attr::set(<$H>::KIND, object.raw(), A::keyval_in(keyval), Value::Pointer(value as usize))?;
            }

            #[doc = concat!("`", $get_name, "`; `value` points to where the attribute's pointer goes.")]
            active fn $get = $get_name(object: C<A, $H>, keyval: c_int, value: *mut c_void, flag: *mut c_int)
                for dec::<A, $H>(object).target() =>
            {
                let object = dec::<A, $H>(object);
                object.check()?;
                not_null(value, "attribute_val")?;
                not_null(flag, "flag")?;
                let found = get_pointer::<A, $H>(object, A::keyval_in(keyval))?;
                if let Some(pointer) = found {
                    value.cast::<usize>().write(pointer);
                }
                *flag = c_int::from(found.is_some());
            }

            #[doc = concat!("`", $delete_name, "`.")]
            active fn $delete = $delete_name(object: C<A, $H>, keyval: c_int)
                for dec::<A, $H>(object).target() =>
            {
                let object = dec::<A, $H>(object);
                object.check()?;
                attr::delete(<$H>::KIND, object.raw(), A::keyval_in(keyval))?;
            }
        }
    )*};
}

attribute_functions! { Comm;
    comm_create_keyval = "MPI_Comm_create_keyval", comm_free_keyval = "MPI_Comm_free_keyval",
    comm_set_attr = "MPI_Comm_set_attr", comm_get_attr = "MPI_Comm_get_attr", comm_delete_attr = "MPI_Comm_delete_attr";
    keyval_create = "MPI_Keyval_create", keyval_free = "MPI_Keyval_free",
    attr_put = "MPI_Attr_put", attr_get = "MPI_Attr_get", attr_delete = "MPI_Attr_delete";
}
attribute_functions! { Datatype;
    type_create_keyval = "MPI_Type_create_keyval", type_free_keyval = "MPI_Type_free_keyval",
    type_set_attr = "MPI_Type_set_attr", type_get_attr = "MPI_Type_get_attr", type_delete_attr = "MPI_Type_delete_attr";
}
attribute_functions! { Win;
    win_create_keyval = "MPI_Win_create_keyval", win_free_keyval = "MPI_Win_free_keyval",
    win_set_attr = "MPI_Win_set_attr", win_get_attr = "MPI_Win_get_attr", win_delete_attr = "MPI_Win_delete_attr";
}

/// The predefined callbacks of one kind of object, as functions that the program may also call.
macro_rules! predefined_callbacks {
    ($($ty:ident: $null_copy:ident, $dup:ident, $null_delete:ident;)*) => {$(
        /// The copy callback that copies nothing.
        ///
        /// # Safety
        /// `flag` must be writable.
        pub unsafe fn $null_copy<A: Abi>(
            _object: $ty<A>, _keyval: c_int, _extra: *mut c_void, _in: *mut c_void, _out: *mut c_void, flag: *mut c_int,
        ) -> c_int {
            // SAFETY: as the caller says.
            unsafe { *flag = 0 };
            0
        }

        /// The copy callback that copies the pointer.
        ///
        /// # Safety
        /// `value_out` (a pointer to a pointer) and `flag` must be writable.
        pub unsafe fn $dup<A: Abi>(
            _object: $ty<A>, _keyval: c_int, _extra: *mut c_void, value_in: *mut c_void, value_out: *mut c_void,
            flag: *mut c_int,
        ) -> c_int {
            // SAFETY: as the caller says.
            unsafe {
                value_out.cast::<*mut c_void>().write(value_in);
                *flag = 1;
            }
            0
        }

        /// The delete callback that does nothing.
        ///
        /// # Safety
        /// None is needed; callbacks have this type.
        pub unsafe fn $null_delete<A: Abi>(
            _object: $ty<A>, _keyval: c_int, _value: *mut c_void, _extra: *mut c_void,
        ) -> c_int {
            0
        }
    )*};
}

predefined_callbacks! {
    CComm: comm_null_copy_fn, comm_dup_fn, comm_null_delete_fn;
    CDatatype: type_null_copy_fn, type_dup_fn, type_null_delete_fn;
    CWin: win_null_copy_fn, win_dup_fn, win_null_delete_fn;
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_attr {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::attr];
            fn MPI_Comm_create_keyval = comm_create_keyval(copy: $crate::c::attr::CommCopy<$A>, delete: $crate::c::attr::CommDelete<$A>, keyval: *mut c_int, extra: *mut c_void) -> c_int;
            fn MPI_Comm_free_keyval = comm_free_keyval(keyval: *mut c_int) -> c_int;
            fn MPI_Comm_set_attr = comm_set_attr(object: $crate::abi::CComm<$A>, keyval: c_int, value: *mut c_void) -> c_int;
            fn MPI_Comm_get_attr = comm_get_attr(object: $crate::abi::CComm<$A>, keyval: c_int, value: *mut c_void, flag: *mut c_int) -> c_int;
            fn MPI_Comm_delete_attr = comm_delete_attr(object: $crate::abi::CComm<$A>, keyval: c_int) -> c_int;
            fn MPI_Keyval_create = keyval_create(copy: $crate::c::attr::CommCopy<$A>, delete: $crate::c::attr::CommDelete<$A>, keyval: *mut c_int, extra: *mut c_void) -> c_int;
            fn MPI_Keyval_free = keyval_free(keyval: *mut c_int) -> c_int;
            fn MPI_Attr_put = attr_put(object: $crate::abi::CComm<$A>, keyval: c_int, value: *mut c_void) -> c_int;
            fn MPI_Attr_get = attr_get(object: $crate::abi::CComm<$A>, keyval: c_int, value: *mut c_void, flag: *mut c_int) -> c_int;
            fn MPI_Attr_delete = attr_delete(object: $crate::abi::CComm<$A>, keyval: c_int) -> c_int;
            fn MPI_Type_create_keyval = type_create_keyval(copy: $crate::c::attr::TypeCopy<$A>, delete: $crate::c::attr::TypeDelete<$A>, keyval: *mut c_int, extra: *mut c_void) -> c_int;
            fn MPI_Type_free_keyval = type_free_keyval(keyval: *mut c_int) -> c_int;
            fn MPI_Type_set_attr = type_set_attr(object: $crate::abi::CDatatype<$A>, keyval: c_int, value: *mut c_void) -> c_int;
            fn MPI_Type_get_attr = type_get_attr(object: $crate::abi::CDatatype<$A>, keyval: c_int, value: *mut c_void, flag: *mut c_int) -> c_int;
            fn MPI_Type_delete_attr = type_delete_attr(object: $crate::abi::CDatatype<$A>, keyval: c_int) -> c_int;
            fn MPI_Win_create_keyval = win_create_keyval(copy: $crate::c::attr::WinCopy<$A>, delete: $crate::c::attr::WinDelete<$A>, keyval: *mut c_int, extra: *mut c_void) -> c_int;
            fn MPI_Win_free_keyval = win_free_keyval(keyval: *mut c_int) -> c_int;
            fn MPI_Win_set_attr = win_set_attr(object: $crate::abi::CWin<$A>, keyval: c_int, value: *mut c_void) -> c_int;
            fn MPI_Win_get_attr = win_get_attr(object: $crate::abi::CWin<$A>, keyval: c_int, value: *mut c_void, flag: *mut c_int) -> c_int;
            fn MPI_Win_delete_attr = win_delete_attr(object: $crate::abi::CWin<$A>, keyval: c_int) -> c_int;
        }
    };
}

/// The predefined callbacks under the names that Open MPI's header has for them; MPI_COMM_DUP_FN and the like are the
/// symbols of the Fortran ones.
#[macro_export]
macro_rules! c_table_attr_openmpi {
    ($A:ty) => {
        $crate::c_table_attr_openmpi! { @copy $A, CComm;
            OMPI_C_MPI_NULL_COPY_FN = comm_null_copy_fn, OMPI_C_MPI_DUP_FN = comm_dup_fn,
            OMPI_C_MPI_COMM_NULL_COPY_FN = comm_null_copy_fn, OMPI_C_MPI_COMM_DUP_FN = comm_dup_fn,
        }
        $crate::c_table_attr_openmpi! { @copy $A, CDatatype;
            OMPI_C_MPI_TYPE_NULL_COPY_FN = type_null_copy_fn, OMPI_C_MPI_TYPE_DUP_FN = type_dup_fn,
        }
        $crate::c_table_attr_openmpi! { @copy $A, CWin;
            OMPI_C_MPI_WIN_NULL_COPY_FN = win_null_copy_fn, OMPI_C_MPI_WIN_DUP_FN = win_dup_fn,
        }
        $crate::c_table_attr_openmpi! { @delete $A, CComm;
            OMPI_C_MPI_NULL_DELETE_FN = comm_null_delete_fn, OMPI_C_MPI_COMM_NULL_DELETE_FN = comm_null_delete_fn,
        }
        $crate::c_table_attr_openmpi! { @delete $A, CDatatype; OMPI_C_MPI_TYPE_NULL_DELETE_FN = type_null_delete_fn, }
        $crate::c_table_attr_openmpi! { @delete $A, CWin; OMPI_C_MPI_WIN_NULL_DELETE_FN = win_null_delete_fn, }
    };
    (@copy $A:ty, $object:ident; $($name:ident = $func:ident,)*) => {
        $crate::export_c! { $A, [$crate::c::attr]; $(
            fn $name = $func(object: $crate::abi::$object<$A>, keyval: c_int, extra: *mut c_void, value_in: *mut c_void, value_out: *mut c_void, flag: *mut c_int) -> c_int;
        )* }
    };
    (@delete $A:ty, $object:ident; $($name:ident = $func:ident,)*) => {
        $crate::export_c! { $A, [$crate::c::attr]; $(
            fn $name = $func(object: $crate::abi::$object<$A>, keyval: c_int, value: *mut c_void, extra: *mut c_void) -> c_int;
        )* }
    };
}

/// The one predefined callback that MPICH exports: its header gives it for every MPI_{COMM,TYPE,WIN}_DUP_FN, the rest are null.
#[macro_export]
macro_rules! c_table_attr_mpich {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::attr];
            fn MPIR_Dup_fn = comm_dup_fn(object: $crate::abi::CComm<$A>, keyval: c_int, extra: *mut c_void, value_in: *mut c_void, value_out: *mut c_void, flag: *mut c_int) -> c_int;
        }
    };
}
