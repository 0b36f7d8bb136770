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
vmpi_abi::export_unsupported! { Mpich, "an extension of MPICH 4.1 and later";
    MPIX_Allreduce_enqueue
    MPIX_Allreduce_enqueue_c
    MPIX_Async_get_state
    MPIX_Async_spawn
    MPIX_Async_start
    MPIX_Comm_create_errhandler_x
    MPIX_Comm_get_stream
    MPIX_File_create_errhandler_x
    MPIX_Info_set_hex
    MPIX_Irecv_enqueue
    MPIX_Irecv_enqueue_c
    MPIX_Isend_enqueue
    MPIX_Isend_enqueue_c
    MPIX_Op_create_x
    MPIX_Recv_enqueue
    MPIX_Recv_enqueue_c
    MPIX_Request_is_complete
    MPIX_Send_enqueue
    MPIX_Send_enqueue_c
    MPIX_Session_create_errhandler_x
    MPIX_Start_progress_thread
    MPIX_Stop_progress_thread
    MPIX_Stream_comm_create
    MPIX_Stream_comm_create_multiplex
    MPIX_Stream_create
    MPIX_Stream_free
    MPIX_Stream_irecv
    MPIX_Stream_irecv_c
    MPIX_Stream_isend
    MPIX_Stream_isend_c
    MPIX_Stream_progress
    MPIX_Stream_recv
    MPIX_Stream_recv_c
    MPIX_Stream_send
    MPIX_Stream_send_c
    MPIX_Threadcomm_finish
    MPIX_Threadcomm_free
    MPIX_Threadcomm_init
    MPIX_Threadcomm_start
    MPIX_Wait_enqueue
    MPIX_Waitall_enqueue
    MPIX_Win_create_errhandler_x
}
