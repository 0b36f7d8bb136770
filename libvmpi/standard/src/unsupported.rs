//! Extensions that Intel's libmpi_abi.so.1 exports beside the standard's functions.

use crate::Standard;

vmpi_abi::export_c! { Standard, [vmpi_abi::unsupported];
    fn MPIX_Query_ze_support = query_accelerator() -> c_int;
    fn MPIX_GPU_query_support = gpu_query_support(kind: c_int, supported: *mut c_int) -> c_int;
}
vmpi_abi::f_table_unsupported_intel! { Standard }
vmpi_abi::export_unsupported! { Standard, "an extension of MPICH 4.3 and later";
    MPIX_Win_create_notify
    MPIX_Win_free_notify
    MPIX_Win_get_notify
    MPIX_Win_set_notify
}
