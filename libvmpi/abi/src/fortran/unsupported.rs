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
