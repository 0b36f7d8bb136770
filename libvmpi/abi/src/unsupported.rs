//! Functions that vmpi exports but does not offer yet: each says so when it is called.
//!
//! A chapter that comes to be offered takes its names off these lists; `tests/tests/symbols.rs` finds what is missing.
//! The large-count functions (`_c`) are deliberately not here: mpi4py's wheels import them weakly and fall back to the
//! others where they are absent, so an exported one that refuses would break programs that run without it.

use crate::abi::Abi;
use crate::entry;
use std::ffi::c_int;
use vmpi_core::errors::{Class, Error};

/// `MPIX_Query_X_support`: does the library move data of accelerator X itself? No.
///
/// # Safety
/// None beyond MPI's contract.
pub unsafe fn query_accelerator<A: Abi>() -> c_int {
    0
}

/// `MPIX_GPU_query_support(kind, flag)`: the same for MPICH's kinds of accelerators. No.
///
/// # Safety
/// MPI's contract: `supported` has room for an int.
pub unsafe fn gpu_query_support<A: Abi>(_kind: c_int, supported: *mut c_int) -> c_int {
    entry::run_any_time::<A>("MPIX_GPU_query_support", || {
        if supported.is_null() {
            return Err(Error::new(Class::Arg, "the pointer to the flag is null"));
        }
        // SAFETY: the caller vouches for it; it is not null.
        unsafe { *supported = 0 };
        Ok(())
    })
}

/// What can be answered without offering the chapter that it belongs to.
#[macro_export]
macro_rules! c_table_absent {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::unsupported];
            fn MPIX_Query_cuda_support = query_accelerator() -> c_int;
        }
    };
}

/// Export functions of the tool interface (MPI 4.1 chapter 15) that vmpi does not offer: each returns the face's number of
/// `$code`, and none invokes an error handler, as that chapter demands.
#[macro_export]
macro_rules! export_unsupported_t {
    ($A:ty, $code:ident; $($name:ident)*) => {
        const _: () = {
            $(
                #[unsafe(export_name = stringify!($name))]
                pub extern "C" fn $name() -> std::ffi::c_int {
                    <$A as $crate::abi::Abi>::NUMBERS.tool_errors.to_face($crate::numbers::$code)
                }
                const _: () = {
                    #[unsafe(export_name = concat!("P", stringify!($name)))]
                    pub extern "C" fn profiled() -> std::ffi::c_int {
                        <$A as $crate::abi::Abi>::NUMBERS.tool_errors.to_face($crate::numbers::$code)
                    }
                };
            )*
        };
    };
}

/// What no face offers.
#[macro_export]
macro_rules! c_unsupported_common {
    ($A:ty) => {
        $crate::export_unsupported! { $A;
            // dynamic processes
            MPI_Close_port
            MPI_Comm_accept
            MPI_Comm_connect
            MPI_Comm_join
            MPI_Comm_spawn
            MPI_Comm_spawn_multiple
            MPI_Lookup_name
            MPI_Open_port
            MPI_Publish_name
            MPI_Unpublish_name
            // sessions
            MPI_Comm_create_from_group
            MPI_Group_from_session_pset
            MPI_Intercomm_create_from_groups
            MPI_Session_call_errhandler
            MPI_Session_create_errhandler
            MPI_Session_finalize
            MPI_Session_get_errhandler
            MPI_Session_get_info
            MPI_Session_get_nth_pset
            MPI_Session_get_num_psets
            MPI_Session_get_pset_info
            MPI_Session_init
            MPI_Session_set_errhandler
            // partitioned communication
            MPI_Parrived
            MPI_Pready
            MPI_Pready_list
            MPI_Pready_range
            MPI_Precv_init
            MPI_Psend_init
            // extensions
            MPIX_Comm_agree
            MPIX_Comm_failure_ack
            MPIX_Comm_failure_get_acked
            MPIX_Comm_get_failed
            MPIX_Comm_revoke
            MPIX_Comm_shrink
            // others
            MPI_Isendrecv
            MPI_Isendrecv_replace
        }
    };
}

/// The tool interface, which no face offers.
#[macro_export]
macro_rules! c_unsupported_t_common {
    ($A:ty) => {
        $crate::export_unsupported_t! { $A, T_ERR_CANNOT_INIT; MPI_T_init_thread }
        $crate::export_unsupported_t! { $A, T_ERR_NOT_INITIALIZED;
            MPI_T_category_changed
            MPI_T_category_get_categories
            MPI_T_category_get_cvars
            MPI_T_category_get_index
            MPI_T_category_get_info
            MPI_T_category_get_num
            MPI_T_category_get_pvars
            MPI_T_cvar_get_index
            MPI_T_cvar_get_info
            MPI_T_cvar_get_num
            MPI_T_cvar_handle_alloc
            MPI_T_cvar_handle_free
            MPI_T_cvar_read
            MPI_T_cvar_write
            MPI_T_enum_get_info
            MPI_T_enum_get_item
            MPI_T_finalize
            MPI_T_pvar_get_index
            MPI_T_pvar_get_info
            MPI_T_pvar_get_num
            MPI_T_pvar_handle_alloc
            MPI_T_pvar_handle_free
            MPI_T_pvar_read
            MPI_T_pvar_readreset
            MPI_T_pvar_reset
            MPI_T_pvar_session_create
            MPI_T_pvar_session_free
            MPI_T_pvar_start
            MPI_T_pvar_stop
            MPI_T_pvar_write
        }
    };
}

/// What MPI 4 and 5 add and no face offers; Open MPI does not have it.
#[macro_export]
macro_rules! c_unsupported_mpi5 {
    ($A:ty) => {
        $crate::export_unsupported_t! { $A, T_ERR_NOT_INITIALIZED;
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
        $crate::export_unsupported! { $A;
            // sessions
            MPI_Session_attach_buffer
            MPI_Session_detach_buffer
            MPI_Session_flush_buffer
            MPI_Session_iflush_buffer
            // buffers of MPI 4.1
            MPI_Buffer_flush
            MPI_Buffer_iflush
            MPI_Comm_attach_buffer
            MPI_Comm_detach_buffer
            MPI_Comm_flush_buffer
            MPI_Comm_iflush_buffer
            // others
            MPI_Get_hw_resource_info
            MPI_Remove_error_class
            MPI_Remove_error_code
            MPI_Remove_error_string
            MPI_Request_get_status_all
            MPI_Request_get_status_any
            MPI_Request_get_status_some
            MPI_Type_get_value_index
        }
    };
}
