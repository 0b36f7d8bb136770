//! Procedures that are exported but not offered: what later issues bring. The letters stand for the arguments before IERROR.

/// Not offered, and only in MPICH.
#[macro_export]
macro_rules! f_table_unsupported_mpich {
    ($A:ty, $face:ident) => {
        $crate::export_f_unsupported! { $A, $face, [mpix MPIX];
            (): query_cuda_support QUERY_CUDA_SUPPORT
                query_hip_support QUERY_HIP_SUPPORT
                query_ze_support QUERY_ZE_SUPPORT;
            (a b): gpu_query_support GPU_QUERY_SUPPORT;
        }
    };
}

/// Not offered, and only in Intel's mpi_f08.
#[macro_export]
macro_rules! f_table_unsupported_intel {
    ($A:ty) => {
        const _: () = {
            $crate::f_unsupported_body! { $A, intel, "MPI_OP_CREATE_C", (function commute op) }
            $crate::f08_names! { f_alias, [mpi MPI], op_create, "_c_f08_", body }
        };
        const _: () = {
            $crate::f_unsupported_body! { $A, intel, "MPI_REGISTER_DATAREP_C", (datarep read write extent extra) }
            $crate::f08_names! { f_alias, [mpi MPI], register_datarep, "_c_f08_", body }
        };
    };
}
