//! Functions that vmpi exports but does not offer yet: each says so when it is called.
//!
//! A chapter that comes to be offered takes its names off these lists; `tests/tests/symbols.rs` finds what is missing.
//! MPI's own large-count functions (`_c`) never stand here: mpi4py's wheels import them weakly and fall back to the
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
