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
                // MPI_BUFFER_AUTOMATIC, from MPICH 4.2 on
                mpifcmba_: [i32; 1];
                // mpi_f08's variables of these names
                MPIR_F08_MPI_BOTTOM: [i32; 1];
                MPIR_F08_MPI_IN_PLACE: [i32; 1];
                MPIR_F08_MPI_STATUS_IGNORE_OBJ: [i32; $status_size];
                MPIR_F08_MPI_STATUSES_IGNORE_OBJ: [i32; $status_size];
                __mpi_f08_link_constants_MOD_mpi_argv_null: [u8; 1];
                __mpi_f08_link_constants_MOD_mpi_argvs_null: [u8; 1];
                __mpi_f08_link_constants_MOD_mpi_errcodes_ignore: [i32; 1];
                __mpi_f08_link_constants_MOD_mpi_unweighted: [i32; 1];
                __mpi_f08_link_constants_MOD_mpi_weights_empty: [i32; 1];
                // the same of a module that ifx has compiled
                mpi_f08_link_constants_mp_mpi_argv_null_: [u8; 1];
                mpi_f08_link_constants_mp_mpi_argvs_null_: [u8; 1];
                mpi_f08_link_constants_mp_mpi_errcodes_ignore_: [i32; 1];
                mpi_f08_link_constants_mp_mpi_unweighted_: [i32; 1];
                mpi_f08_link_constants_mp_mpi_weights_empty_: [i32; 1];
            }
            $crate::f_common_tests! {
                is_bottom: &raw const mpipriv1_, &raw const MPIR_F08_MPI_BOTTOM;
                is_buffer_automatic: &raw const mpifcmba_;
                is_in_place: (&raw const mpipriv1_).cast::<i32>().wrapping_add(1), &raw const MPIR_F08_MPI_IN_PLACE;
                is_status_ignore: (&raw const mpipriv1_).cast::<i32>().wrapping_add(2),
                    &raw const MPIR_F08_MPI_STATUS_IGNORE_OBJ;
                is_statuses_ignore: &raw const mpipriv2_, &raw const MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
                is_errcodes_ignore: (&raw const mpipriv2_).cast::<i32>().wrapping_add($status_size),
                    &raw const __mpi_f08_link_constants_MOD_mpi_errcodes_ignore,
                    &raw const mpi_f08_link_constants_mp_mpi_errcodes_ignore_;
                is_argvs_null: &raw const mpiprivc_, &raw const __mpi_f08_link_constants_MOD_mpi_argvs_null,
                    &raw const mpi_f08_link_constants_mp_mpi_argvs_null_;
                is_argv_null: (&raw const mpiprivc_).cast::<u8>().wrapping_add(1),
                    &raw const __mpi_f08_link_constants_MOD_mpi_argv_null,
                    &raw const mpi_f08_link_constants_mp_mpi_argv_null_;
                is_unweighted: &raw const mpifcmb5_, &raw const __mpi_f08_link_constants_MOD_mpi_unweighted,
                    &raw const mpi_f08_link_constants_mp_mpi_unweighted_;
                is_weights_empty: &raw const mpifcmb9_, &raw const __mpi_f08_link_constants_MOD_mpi_weights_empty,
                    &raw const mpi_f08_link_constants_mp_mpi_weights_empty_;
            }
        }
    };
}
