//! MPICH's common blocks: the addresses that Fortran passes for MPI_BOTTOM, MPI_STATUS_IGNORE and the like.
//!
//! See `commons_openmpi` for why the addresses are taken as they are.

/// Make module `$name` with MPICH's common blocks (layout as mpif.h declares them, with statuses of
/// the given length; MPICH's own is 5) and what tells their members.
#[macro_export]
macro_rules! f_commons_mpich {
    ($name:ident) => {
        $crate::f_commons_mpich!($name, 5);
    };
    ($name:ident, $status_size:literal) => {
        /// The named constants that Fortran passes by address.
        #[allow(non_upper_case_globals, missing_docs)]
        pub mod $name {
            $crate::f_common_blocks! {
                // MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE(MPI_STATUS_SIZE)
                mpipriv1_: [i32; 2 + $status_size];
                // MPI_STATUSES_IGNORE(MPI_STATUS_SIZE, 1), MPI_ERRCODES_IGNORE(1)
                mpipriv2_: [i32; $status_size + 1];
                // MPI_ARGVS_NULL(1, 1), MPI_ARGV_NULL(1)
                mpiprivc_: [u8; 2];
                // MPI_UNWEIGHTED
                mpifcmb5_: [i32; 1];
                // MPI_WEIGHTS_EMPTY
                mpifcmb9_: [i32; 1];
            }
            $crate::f_common_tests! {
                is_bottom: &raw const mpipriv1_;
                is_in_place: (&raw const mpipriv1_).cast::<i32>().wrapping_add(1);
                is_status_ignore: (&raw const mpipriv1_).cast::<i32>().wrapping_add(2);
                is_statuses_ignore: &raw const mpipriv2_;
                is_errcodes_ignore: (&raw const mpipriv2_).cast::<i32>().wrapping_add($status_size);
                is_argvs_null: &raw const mpiprivc_;
                is_argv_null: (&raw const mpiprivc_).cast::<u8>().wrapping_add(1);
                is_unweighted: &raw const mpifcmb5_;
                is_weights_empty: &raw const mpifcmb9_;
            }
        }
    };
}
