//! What the library says of its ABI: MPI 5.0 section 20.3. All of it works before MPI_Init and after MPI_Finalize.

use super::args::not_null;
use crate::abi::{CInfo, enc};
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::info::{self, Entries};

/// Sizes of C types, in bytes.
const C_SIZES: &[(&str, &str)] = &[("mpi_aint_size", "8"), ("mpi_count_size", "8"), ("mpi_offset_size", "8")];

/// Sizes and optional types of gfortran without options that change its default kinds, which the Fortran side here is for.
const FORTRAN: &[(&str, &str)] = &[
    ("mpi_logical_size", "4"),
    ("mpi_integer_size", "4"),
    ("mpi_real_size", "4"),
    ("mpi_double_precision_size", "8"),
    ("mpi_logical1_supported", "true"),
    ("mpi_logical2_supported", "true"),
    ("mpi_logical4_supported", "true"),
    ("mpi_logical8_supported", "true"),
    ("mpi_logical16_supported", "true"),
    ("mpi_integer1_supported", "true"),
    ("mpi_integer2_supported", "true"),
    ("mpi_integer4_supported", "true"),
    ("mpi_integer8_supported", "true"),
    ("mpi_integer16_supported", "true"),
    ("mpi_real2_supported", "true"),
    ("mpi_real4_supported", "true"),
    ("mpi_real8_supported", "true"),
    ("mpi_real16_supported", "true"),
    ("mpi_complex4_supported", "true"),
    ("mpi_complex8_supported", "true"),
    ("mpi_complex16_supported", "true"),
    ("mpi_complex32_supported", "true"),
    ("mpi_double_complex_supported", "true"),
];

/// A new info object.
fn object(pairs: &[(&str, &str)]) -> vmpi_core::handle::Info {
    let mut entries = Entries::default();
    for (key, value) in pairs {
        entries.set(key.as_bytes(), value.as_bytes());
    }
    info::insert(Rc::new(entries))
}

/// Bytes of a Fortran LOGICAL kind.
fn logical_bytes(size: c_int) -> Result<usize> {
    match size {
        1 | 2 | 4 | 8 | 16 => Ok(size as usize),
        _ => fail(Class::Abi, format!("logical_size is {size}; gfortran has LOGICALs of 1, 2, 4, 8 and 16 bytes")),
    }
}

/// The Fortran side is part of this library, so nobody can tell it otherwise.
fn already_set<T>() -> Result<T> {
    fail(
        Class::Abi,
        "the Fortran ABI is known already: it is that of the Fortran bindings in this library (gfortran's)",
    )
}

crate::entry_points! {
    /// `MPI_Abi_get_version`.
    anytime fn abi_get_version = "MPI_Abi_get_version"(major: *mut c_int, minor: *mut c_int) => {
        not_null(major, "abi_major")?;
        not_null(minor, "abi_minor")?;
        (*major, *minor) = A::ABI_VERSION;
    }

    /// `MPI_Abi_get_info`.
    anytime fn abi_get_info = "MPI_Abi_get_info"(info: *mut CInfo<A>) => {
        not_null(info, "info")?;
        *info = enc::<A, _>(object(C_SIZES));
    }

    /// `MPI_Abi_get_fortran_info`.
    anytime fn abi_get_fortran_info = "MPI_Abi_get_fortran_info"(info: *mut CInfo<A>) => {
        not_null(info, "info")?;
        *info = enc::<A, _>(object(FORTRAN));
    }

    /// `MPI_Abi_set_fortran_info`: MPI_ERR_ABI, as it is set.
    anytime fn abi_set_fortran_info = "MPI_Abi_set_fortran_info"(_info: CInfo<A>) => {
        already_set::<()>()?;
    }

    /// `MPI_Abi_get_fortran_booleans`: 1 and 0 in the asked width.
    anytime fn abi_get_fortran_booleans = "MPI_Abi_get_fortran_booleans"(
        size: c_int, when_true: *mut c_void, when_false: *mut c_void, is_set: *mut c_int,
    ) => {
        let bytes = logical_bytes(size)?;
        not_null(when_true, "logical_true")?;
        not_null(when_false, "logical_false")?;
        not_null(is_set, "is_set")?;
        let one = 1u128.to_le_bytes();
        std::ptr::copy_nonoverlapping(one.as_ptr(), when_true.cast::<u8>(), bytes);
        when_false.cast::<u8>().write_bytes(0, bytes);
        *is_set = 1;
    }

    /// `MPI_Abi_set_fortran_booleans`: MPI_ERR_ABI, as they are set.
    anytime fn abi_set_fortran_booleans = "MPI_Abi_set_fortran_booleans"(
        size: c_int, _when_true: *mut c_void, _when_false: *mut c_void,
    ) => {
        logical_bytes(size)?;
        already_set::<()>()?;
    }
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_abi_info {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::abi_info];
            fn MPI_Abi_get_version = abi_get_version(major: *mut c_int, minor: *mut c_int) -> c_int;
            fn MPI_Abi_get_info = abi_get_info(info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Abi_get_fortran_info = abi_get_fortran_info(info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Abi_set_fortran_info = abi_set_fortran_info(info: $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Abi_get_fortran_booleans = abi_get_fortran_booleans(size: c_int, when_true: *mut c_void, when_false: *mut c_void, is_set: *mut c_int) -> c_int;
            fn MPI_Abi_set_fortran_booleans = abi_set_fortran_booleans(size: c_int, when_true: *mut c_void, when_false: *mut c_void) -> c_int;
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths_of_a_logical() {
        assert_eq!(logical_bytes(16).unwrap(), 16);
        for wrong in [0, 3, -4, 32] {
            assert_eq!(logical_bytes(wrong).unwrap_err().class, Class::Abi);
        }
    }
}
