//! Data representations made of the program's Fortran procedures.

use crate::abi::{Abi, Codec};
use crate::entry;
use crate::f_through;
use crate::fortran::through::{Procedures, Through};
use std::ffi::{CStr, c_char, c_int, c_void};
use vmpi_core::errhandler::Target;
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Datatype, File, Handle};
use vmpi_core::io::manage;
use vmpi_core::io::representation::{self, Convert, Registered};

use crate::c::io::conversion_outcome;

/// SUBROUTINE DATAREP_CONVERSION_FUNCTION(USERBUF, DATATYPE, COUNT, FILEBUF, POSITION, EXTRA_STATE, IERROR)
type Conversion =
    unsafe extern "C" fn(*mut c_void, *const c_int, *const c_int, *mut c_void, *const i64, *mut isize, *mut c_int);
/// SUBROUTINE DATAREP_EXTENT_FUNCTION(DATATYPE, EXTENT, EXTRA_STATE, IERROR)
type Extent = unsafe extern "C" fn(*const c_int, *mut isize, *mut isize, *mut c_int);

unsafe extern "C" {
    /// MPI_CONVERSION_FN_NULL, as the face exports it: known by its address, never called.
    fn mpi_conversion_fn_null_();
}

/// Export MPI_CONVERSION_FN_NULL. A program only names it.
#[macro_export]
macro_rules! export_f_conversion_null {
    ($face:ident) => {
        const _: () = {
            unsafe extern "C" fn body() {}
            $crate::f_manglings! { $face, [mpi MPI], conversion_fn_null CONVERSION_FN_NULL, body }
        };
    };
}

fn converter<A: Abi>(name: &str, function: *mut c_void, extra_state: isize) -> Option<Convert> {
    if function.is_null() || std::ptr::eq(function, mpi_conversion_fn_null_ as *const c_void) {
        return None;
    }
    // SAFETY: the address of the program's procedure.
    let function = unsafe { std::mem::transmute::<*mut c_void, Conversion>(function) };
    let name = name.to_owned();
    Some(Box::new(move |user, handle: Datatype, count, data, position| {
        let Ok(count) = c_int::try_from(count) else {
            let why = format!("{count} elements are too many for the functions of the data representation {name:?}");
            return fail(Class::Count, why);
        };
        let (ty, mut state, mut ierror) = (<A as Codec<Datatype>>::fenc(handle), extra_state, 0);
        // SAFETY: the program's procedure, called as MPI 4.1 section 14.5.3 says.
        unsafe {
            function(user, &raw const ty, &raw const count, data, &raw const position, &raw mut state, &raw mut ierror);
        }
        conversion_outcome(&name, A::err_in(ierror))
    }))
}

/// MPI_REGISTER_DATAREP.
///
/// # Safety
/// `datarep` must be a string with a NUL, the functions null or the Fortran procedures that MPI asks for.
pub unsafe fn register_datarep<A: Abi>(
    through: Through,
    datarep: *mut c_char,
    read: *mut c_void,
    write: *mut c_void,
    extent: *mut c_void,
    extra_state: isize,
) -> c_int {
    Procedures::new([read, write, extent]).announced(|| {
        // SAFETY: promised by the caller.
        unsafe {
            f_through!(through, own::register::<A>(
                datarep: *mut c_char, read: *mut c_void, write: *mut c_void, extent: *mut c_void, extra_state: isize
            ) -> c_int)
        }
    })
}

/// The same without a detour.
mod own {
    use super::*;

    pub unsafe fn register<A: Abi>(
        datarep: *mut c_char,
        read: *mut c_void,
        write: *mut c_void,
        extent: *mut c_void,
        extra_state: isize,
    ) -> c_int {
        entry::run::<A>("MPI_Register_datarep", Target::File(File::NULL), || {
            // SAFETY: promised by the caller.
            let name = manage::representation_name(unsafe { CStr::from_ptr(datarep) }.to_bytes())?.to_owned();
            // SAFETY: promised by the caller.
            unsafe { registered::<A>(name, read, write, extent, extra_state) }
        })
    }
}

/// Register the data representation of these procedures.
///
/// # Errors
/// A null pointer for the last, or a name that is taken.
///
/// # Safety
/// The functions must be null or the Fortran procedures that MPI_REGISTER_DATAREP asks for.
pub unsafe fn registered<A: Abi>(
    name: String,
    read: *mut c_void,
    write: *mut c_void,
    extent: *mut c_void,
    extra_state: isize,
) -> Result<()> {
    // SAFETY: the address of the program's procedure, or null.
    let Some(function) = (unsafe { std::mem::transmute::<*mut c_void, Option<Extent>>(extent) }) else {
        return fail(Class::Arg, "the extent function is a null pointer");
    };
    let whose = name.clone();
    let extent = Box::new(move |handle: Datatype| {
        let (ty, mut value, mut ierror, mut state) = (<A as Codec<Datatype>>::fenc(handle), 0, 0, extra_state);
        // SAFETY: as in `converter`.
        unsafe { function(&raw const ty, &raw mut value, &raw mut state, &raw mut ierror) };
        conversion_outcome(&whose, A::err_in(ierror))?;
        Ok(value as i64)
    });
    let (read, write) = (converter::<A>(&name, read, extra_state), converter::<A>(&name, write, extra_state));
    representation::register(Registered { name, read, write, extent })
}
