//! The plugin: libibverbs behind `vmpi_fabric::verbs::abi`. Loaded by the carrier when verbs are wanted, so that vmpid itself
//! runs where there is no libibverbs. [`sys`] is libibverbs, [`device`] what is done with it.
//!
//! All of this crate is foreign functions, so unsafe code is allowed.

mod device;
mod sys;

use vmpi_fabric::verbs::abi::Table;

/// The table; never null.
#[unsafe(no_mangle)]
pub extern "C" fn vmpi_verbs_table() -> *const Table {
    &device::TABLE
}
