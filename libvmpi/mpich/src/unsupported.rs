//! What this face exports but does not offer, beyond what no face offers (`vmpi_abi::unsupported`).

use crate::Mpich;

vmpi_abi::export_c! { Mpich, [vmpi_abi::unsupported];
    fn MPIX_Query_hip_support = query_accelerator() -> c_int;
    fn MPIX_Query_ze_support = query_accelerator() -> c_int;
    fn MPIX_GPU_query_support = gpu_query_support(kind: c_int, supported: *mut c_int) -> c_int;
}
vmpi_abi::export_c! { Mpich, [vmpi_abi::c::mpi41];
    fn MPIX_Delete_error_class = remove_error_class(errorclass: c_int) -> c_int;
    fn MPIX_Delete_error_code = remove_error_code(errorcode: c_int) -> c_int;
    fn MPIX_Delete_error_string = remove_error_string(errorcode: c_int) -> c_int;
}
vmpi_abi::export_unsupported! { Mpich, "an extension of MPICH 4.3 and later";
    MPIX_Comm_test_threadcomm
    MPIX_Get_notify
    MPIX_Get_notify_c
    MPIX_Put_notify
    MPIX_Put_notify_c
    MPIX_Win_create_notify
    MPIX_Win_free_notify
    MPIX_Win_get_notify
    MPIX_Win_get_notify_request
    MPIX_Win_set_notify
}
vmpi_abi::export_unsupported! { Mpich, "an extension of MPICH for ROMIO, which vmpi does not use";
    MPIX_Grequest_class_allocate
    MPIX_Grequest_class_create
    MPIX_Grequest_start
}
