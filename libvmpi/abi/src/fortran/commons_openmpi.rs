//! Open MPI's common blocks: the addresses that Fortran passes for MPI_BOTTOM, MPI_STATUS_IGNORE and the like.
//!
//! A Fortran program defines these common blocks itself, and its definitions preempt the library's, so what counts is
//! the address that the dynamic linker finds for the name. The accesses below go through the global offset table,
//! because rustc takes an exported symbol of a cdylib to be preemptible.

/// Make module `$name` with Open MPI's common blocks (sizes as mpif-sentinels.h declares them) and what tells them.
#[macro_export]
macro_rules! f_commons_openmpi {
    ($name:ident) => {
        /// The named constants that Fortran passes by address.
        #[allow(non_upper_case_globals, missing_docs)]
        pub mod $name {
            $crate::f_common_blocks! {
                mpi_fortran_bottom_: [i32; 1];
                mpi_fortran_in_place_: [i32; 1];
                mpi_fortran_argv_null_: [u8; 1];
                mpi_fortran_argvs_null_: [u8; 1];
                mpi_fortran_errcodes_ignore_: [i32; 1];
                mpi_fortran_status_ignore_: [i32; 6];
                mpi_fortran_statuses_ignore_: [i32; 6];
                mpi_fortran_unweighted_: [i32; 1];
                mpi_fortran_weights_empty_: [i32; 1];
            }
            $crate::f_common_tests! {
                is_bottom: &raw const mpi_fortran_bottom_;
                is_in_place: &raw const mpi_fortran_in_place_;
                is_argv_null: &raw const mpi_fortran_argv_null_;
                is_argvs_null: &raw const mpi_fortran_argvs_null_;
                is_errcodes_ignore: &raw const mpi_fortran_errcodes_ignore_;
                is_status_ignore: &raw const mpi_fortran_status_ignore_;
                is_statuses_ignore: &raw const mpi_fortran_statuses_ignore_;
                is_unweighted: &raw const mpi_fortran_unweighted_;
                is_weights_empty: &raw const mpi_fortran_weights_empty_;
            }
        }
    };
}

/// Exported, zeroed storage of common blocks.
#[macro_export]
macro_rules! f_common_blocks {
    ($($name:ident: [$ty:ty; $n:expr];)*) => {$(
        #[unsafe(no_mangle)]
        pub static mut $name: [$ty; $n] = [0; $n];
    )*};
}

/// `fn is_x(address) -> bool`: is this the address of one of the given parts of common blocks?
#[macro_export]
macro_rules! f_common_tests {
    ($($test:ident: $($address:expr),+;)*) => {$(
        #[inline]
        pub fn $test<T: ?Sized>(address: *const T) -> bool {
            $(std::ptr::addr_eq(address, $address))||+
        }
    )*};
}
