//! MPI_SIZEOF: one specific procedure per type and rank, `x(variable, size, ierror)`, under the names that each
//! distribution's module or header resolves the generic name to.

/// Write the size in bytes that the specific procedure stands for.
///
/// # Safety
/// `size` and `ierror` must be valid for writes.
pub unsafe fn give(bytes: i32, size: *mut i32, ierror: *mut i32) {
    // SAFETY: promised by the caller.
    unsafe {
        size.write_unaligned(bytes);
        if !ierror.is_null() {
            ierror.write_unaligned(0);
        }
    }
}

/// One body per size, and a jump to it for each name.
#[macro_export]
macro_rules! f_sizeof {
    ($($bytes:literal: $($name:expr),*;)*) => {$(
        const _: () = {
            unsafe extern "C" fn body(_variable: *const std::ffi::c_void, size: *mut i32, ierror: *mut i32) {
                // SAFETY: the caller passes SIZE and IERROR.
                unsafe { $crate::fortran::sizeof::give($bytes, size, ierror) }
            }
            $($crate::f_alias! { body, $name })*
        };
    )*};
}

/// Open MPI: mpi_sizeof_TYPE_SHAPE_ and pmpi_sizeof_TYPE_SHAPE_; the number in a type is bits of one component.
#[macro_export]
macro_rules! f_sizeof_openmpi {
    () => {
        $crate::f_sizeof_shapes! {
            "character" 1; "logical" 4; "int8" 1; "int16" 2; "int32" 4; "int64" 8; "real32" 4; "real64" 8;
            "real128" 16; "complex32" 8; "complex64" 16; "complex128" 32;
        }
    };
}

/// Each type in all shapes.
#[macro_export]
macro_rules! f_sizeof_shapes {
    ($($ty:literal $bytes:literal;)*) => {
        $crate::f_sizeof! {$(
            $bytes: concat!("mpi_sizeof_", $ty, "_scalar_"), concat!("mpi_sizeof_", $ty, "_r1_"),
            concat!("mpi_sizeof_", $ty, "_r2_"), concat!("mpi_sizeof_", $ty, "_r3_"),
            concat!("mpi_sizeof_", $ty, "_r4_"), concat!("mpi_sizeof_", $ty, "_r5_"),
            concat!("mpi_sizeof_", $ty, "_r6_"), concat!("mpi_sizeof_", $ty, "_r7_"),
            concat!("mpi_sizeof_", $ty, "_r8_"), concat!("mpi_sizeof_", $ty, "_r9_"),
            concat!("mpi_sizeof_", $ty, "_r10_"), concat!("mpi_sizeof_", $ty, "_r11_"),
            concat!("mpi_sizeof_", $ty, "_r12_"), concat!("mpi_sizeof_", $ty, "_r13_"),
            concat!("mpi_sizeof_", $ty, "_r14_"), concat!("mpi_sizeof_", $ty, "_r15_"),
            concat!("pmpi_sizeof_", $ty, "_scalar_"), concat!("pmpi_sizeof_", $ty, "_r1_"),
            concat!("pmpi_sizeof_", $ty, "_r2_"), concat!("pmpi_sizeof_", $ty, "_r3_"),
            concat!("pmpi_sizeof_", $ty, "_r4_"), concat!("pmpi_sizeof_", $ty, "_r5_"),
            concat!("pmpi_sizeof_", $ty, "_r6_"), concat!("pmpi_sizeof_", $ty, "_r7_"),
            concat!("pmpi_sizeof_", $ty, "_r8_"), concat!("pmpi_sizeof_", $ty, "_r9_"),
            concat!("pmpi_sizeof_", $ty, "_r10_"), concat!("pmpi_sizeof_", $ty, "_r11_"),
            concat!("pmpi_sizeof_", $ty, "_r12_"), concat!("pmpi_sizeof_", $ty, "_r13_"),
            concat!("pmpi_sizeof_", $ty, "_r14_"), concat!("pmpi_sizeof_", $ty, "_r15_");
        )*}
    };
}

/// MPICH: procedures of the module mpi_sizeofs, scalar and array (`v`).
#[macro_export]
macro_rules! f_sizeof_mpich {
    () => {
        $crate::f_sizeof! {
            1: "__mpi_sizeofs_MOD_mpi_sizeof_ch", "__mpi_sizeofs_MOD_mpi_sizeof_chv",
                "__mpi_sizeofs_MOD_mpi_sizeof_i1", "__mpi_sizeofs_MOD_mpi_sizeof_i1v";
            2: "__mpi_sizeofs_MOD_mpi_sizeof_i2", "__mpi_sizeofs_MOD_mpi_sizeof_i2v";
            4: "__mpi_sizeofs_MOD_mpi_sizeof_i", "__mpi_sizeofs_MOD_mpi_sizeof_iv",
                "__mpi_sizeofs_MOD_mpi_sizeof_l", "__mpi_sizeofs_MOD_mpi_sizeof_lv",
                "__mpi_sizeofs_MOD_mpi_sizeof_r", "__mpi_sizeofs_MOD_mpi_sizeof_rv";
            8: "__mpi_sizeofs_MOD_mpi_sizeof_i8", "__mpi_sizeofs_MOD_mpi_sizeof_i8v",
                "__mpi_sizeofs_MOD_mpi_sizeof_d", "__mpi_sizeofs_MOD_mpi_sizeof_dv",
                "__mpi_sizeofs_MOD_mpi_sizeof_cx", "__mpi_sizeofs_MOD_mpi_sizeof_cxv";
        }
    };
}
