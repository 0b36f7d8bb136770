//! What this face exports but does not offer, beyond what no face offers (`vmpi_abi::unsupported`).

use crate::Mpich;

vmpi_abi::c_table_absent!(Mpich);
vmpi_abi::export_c! { Mpich, [vmpi_abi::unsupported];
    fn MPIX_Query_hip_support = query_accelerator() -> c_int;
    fn MPIX_Query_ze_support = query_accelerator() -> c_int;
    fn MPIX_GPU_query_support = gpu_query_support(kind: c_int, supported: *mut c_int) -> c_int;
}
vmpi_abi::c_unsupported_common!(Mpich);
vmpi_abi::c_unsupported_t_common!(Mpich);
vmpi_abi::export_unsupported_t! { Mpich, T_ERR_NOT_INITIALIZED;
    MPI_T_category_get_events
    MPI_T_category_get_num_events
    MPI_T_event_callback_get_info
    MPI_T_event_callback_set_info
    MPI_T_event_copy
    MPI_T_event_get_index
    MPI_T_event_get_info
    MPI_T_event_get_num
    MPI_T_event_get_source
    MPI_T_event_get_timestamp
    MPI_T_event_handle_alloc
    MPI_T_event_handle_free
    MPI_T_event_handle_get_info
    MPI_T_event_handle_set_info
    MPI_T_event_read
    MPI_T_event_register_callback
    MPI_T_event_set_dropped_handler
    MPI_T_source_get_info
    MPI_T_source_get_num
    MPI_T_source_get_timestamp
}
vmpi_abi::export_unsupported! { Mpich;
    // extensions
    MPIX_Comm_test_threadcomm
    MPIX_Delete_error_class
    MPIX_Delete_error_code
    MPIX_Delete_error_string
    MPIX_Get_notify
    MPIX_Grequest_class_allocate
    MPIX_Grequest_class_create
    MPIX_Grequest_start
    MPIX_Put_notify
    MPIX_Win_create_notify
    MPIX_Win_free_notify
    MPIX_Win_get_notify
    MPIX_Win_get_notify_request
    MPIX_Win_set_notify
    // others
    MPI_Abi_get_fortran_booleans
    MPI_Abi_get_fortran_info
    MPI_Abi_get_info
    MPI_Abi_set_fortran_booleans
    MPI_Abi_set_fortran_info
}
