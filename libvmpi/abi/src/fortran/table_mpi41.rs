//! What MPI 4.1 and 5.0 add, as Fortran calls it, where the face has MPICH's Fortran side.

/// Buffers of communicators and sessions, completion without freeing, removal of error codes, the ABI.
#[macro_export]
macro_rules! f_table_mpi41 {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn abi_get_fortran_booleans ABI_GET_FORTRAN_BOOLEANS = c::abi_get_fortran_booleans(logical_size: Int,
                logical_true: Buf, logical_false: Buf, is_set: LogicalOut);
            fn abi_get_fortran_info ABI_GET_FORTRAN_INFO = c::abi_get_fortran_info(info: Out<h::Info>);
            fn abi_get_info ABI_GET_INFO = c::abi_get_info(info: Out<h::Info>);
            fn abi_get_version ABI_GET_VERSION = c::abi_get_version(abi_major: Ints, abi_minor: Ints);
            fn abi_set_fortran_booleans ABI_SET_FORTRAN_BOOLEANS = c::abi_set_fortran_booleans(logical_size: Int,
                logical_true: Buf, logical_false: Buf);
            fn abi_set_fortran_info ABI_SET_FORTRAN_INFO = c::abi_set_fortran_info(info: In<h::Info>);
            fn buffer_flush BUFFER_FLUSH = c::buffer_flush();
            fn buffer_iflush BUFFER_IFLUSH = c::buffer_iflush(request: Out<h::Request>);
            #[counts]
            fn comm_attach_buffer COMM_ATTACH_BUFFER = c::comm_attach_buffer(comm: In<h::Comm>, buffer: Buf, size: Num);
            fn comm_flush_buffer COMM_FLUSH_BUFFER = c::comm_flush_buffer(comm: In<h::Comm>);
            fn comm_iflush_buffer COMM_IFLUSH_BUFFER = c::comm_iflush_buffer(comm: In<h::Comm>,
                request: Out<h::Request>);
            fn get_hw_resource_info GET_HW_RESOURCE_INFO = c::get_hw_resource_info(hw_info: Out<h::Info>);
            fn remove_error_class REMOVE_ERROR_CLASS = c::remove_error_class(errorclass: Int);
            fn remove_error_code REMOVE_ERROR_CODE = c::remove_error_code(errorcode: Int);
            fn remove_error_string REMOVE_ERROR_STRING = c::remove_error_string(errorcode: Int);
            fn request_get_status_all REQUEST_GET_STATUS_ALL = c::request_get_status_all(count: Int,
                requests: Ins<h::Request>[n(count)], flag: LogicalOut, statuses: Statuses[n(count)]);
            fn request_get_status_any REQUEST_GET_STATUS_ANY = c::request_get_status_any(count: Int,
                requests: Ins<h::Request>[n(count)], indx: IndexOut, flag: LogicalOut, status: Status);
            fn request_get_status_some REQUEST_GET_STATUS_SOME = f::request_get_status_some(incount: Int,
                requests: Ins<h::Request>[n(incount)], outcount: Ints, indices: Ints, statuses: Statuses[n(incount)]);
            #[counts]
            fn session_attach_buffer SESSION_ATTACH_BUFFER = c::session_attach_buffer(session: In<h::Session>, buffer: Buf,
                size: Num);
            fn session_flush_buffer SESSION_FLUSH_BUFFER = c::session_flush_buffer(session: In<h::Session>);
            fn session_iflush_buffer SESSION_IFLUSH_BUFFER = c::session_iflush_buffer(session: In<h::Session>,
                request: Out<h::Request>);
            fn status_get_error STATUS_GET_ERROR = c::status_get_error(status: Status, error: Ints);
            fn status_get_source STATUS_GET_SOURCE = c::status_get_source(status: Status, source: Ints);
            fn status_get_tag STATUS_GET_TAG = c::status_get_tag(status: Status, tag: Ints);
            fn status_set_error STATUS_SET_ERROR = c::status_set_error(status: Status, error: Int);
            fn status_set_source STATUS_SET_SOURCE = c::status_set_source(status: Status, source: Int);
            fn status_set_tag STATUS_SET_TAG = c::status_set_tag(status: Status, tag: Int);
            fn type_get_value_index TYPE_GET_VALUE_INDEX = c::type_get_value_index(value_type: In<h::Datatype>,
                index_type: In<h::Datatype>, pair_type: Out<h::Datatype>);
        }
        $crate::export_f! { $A, mpifh, [mpi MPI];
            fn comm_detach_buffer COMM_DETACH_BUFFER = f::comm_detach_buffer(comm: In<h::Comm>, buffer: Buf, size: Ints);
            fn session_detach_buffer SESSION_DETACH_BUFFER = f::session_detach_buffer(session: In<h::Session>, buffer: Buf,
                size: Ints);
        }
        $crate::export_f! { $A, f08, [mpi MPI];
            #[counts]
            fn comm_detach_buffer COMM_DETACH_BUFFER = c::comm_detach_buffer(comm: In<h::Comm>, buffer_addr: Buf,
                size: Nums);
            #[counts]
            fn session_detach_buffer SESSION_DETACH_BUFFER = c::session_detach_buffer(session: In<h::Session>,
                buffer_addr: Buf, size: Nums);
        }
    };
}
