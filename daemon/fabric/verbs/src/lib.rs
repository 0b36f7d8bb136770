//! The plugin: libibverbs, through rdma-sys, behind `vmpi_fabric::verbs::abi`. Loaded by the carrier when verbs are wanted, so that vmpid itself
//! runs where there is no libibverbs.
//!
//! Built without the feature `verbs` it opens nothing and says why. All of this crate is foreign functions, so unsafe code is allowed.

#[cfg(feature = "verbs")]
mod device;

use vmpi_fabric::verbs::abi::Table;

/// The table; never null.
#[unsafe(no_mangle)]
pub extern "C" fn vmpi_verbs_table() -> *const Table {
    #[cfg(feature = "verbs")]
    return &device::TABLE;
    #[cfg(not(feature = "verbs"))]
    return &absent::TABLE;
}

#[cfg(not(feature = "verbs"))]
mod absent {
    //! A table of refusals.

    use std::ffi::{c_char, c_void};
    use vmpi_fabric::verbs::abi::{Address, Done, Facts, Keys, SHAPES, Table, Text, VERSION, Work};

    const ENOSYS: i32 = 38;

    pub static TABLE: Table = Table {
        version: VERSION,
        bytes: size_of::<Table>() as u32,
        shapes: SHAPES,
        open,
        close,
        prepare,
        register,
        pair,
        join,
        part,
        receive,
        send,
        poll,
        arm,
        heed: arm,
        status,
    };

    unsafe extern "C" fn open(_: *const u8, _: usize, _: *mut *mut c_void, _: *mut Facts, why: *mut Text) -> i32 {
        let text = "this vmpi was built without the cargo feature `verbs` (where libibverbs-dev was missing)";
        // SAFETY: the caller's own.
        unsafe { *why = Text::of(text) };
        ENOSYS
    }

    // Nothing has been opened, so nothing of the following is ever called.
    unsafe extern "C" fn close(_: *mut c_void) {}
    unsafe extern "C" fn prepare(_: *mut c_void, _: u32, _: *mut Text) -> i32 {
        ENOSYS
    }
    unsafe extern "C" fn register(_: *mut c_void, _: u64, _: u64, _: *mut Keys, _: *mut Text) -> i32 {
        ENOSYS
    }
    unsafe extern "C" fn pair(
        _: *mut c_void,
        _: u32,
        _: u32,
        _: *mut *mut c_void,
        _: *mut Address,
        _: *mut Text,
    ) -> i32 {
        ENOSYS
    }
    unsafe extern "C" fn join(_: *mut c_void, _: *const Address, _: *const Address, _: *mut Text) -> i32 {
        ENOSYS
    }
    unsafe extern "C" fn part(_: *mut c_void) {}
    unsafe extern "C" fn receive(_: *mut c_void, _: u64, _: u64, _: u32, _: u32) -> i32 {
        ENOSYS
    }
    unsafe extern "C" fn send(_: *mut c_void, _: *const Work) -> i32 {
        ENOSYS
    }
    unsafe extern "C" fn poll(_: *mut c_void, _: *mut Done, _: u32) -> i32 {
        -ENOSYS
    }
    unsafe extern "C" fn arm(_: *mut c_void) -> i32 {
        ENOSYS
    }
    unsafe extern "C" fn status(_: u32) -> *const c_char {
        std::ptr::null()
    }
}
