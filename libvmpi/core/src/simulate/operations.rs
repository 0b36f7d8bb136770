//! What a rank does in the memory of others by one-sided communication: when virtual time has got there, by itself.

use crate::guarded::EntryGuarded;
use crate::process::endpoint;
use std::collections::BTreeMap;
use vmpi_shared::simulate::Grant;

/// What is to be done, and what is granted by that. Called within MPI, wherever this rank waits: it must not call MPI, nor wait.
pub(crate) type Deed = Box<dyn FnOnce() -> Vec<Grant>>;

/// By the requests that they end.
static TO_DO: EntryGuarded<BTreeMap<u32, Deed>> = EntryGuarded::new(BTreeMap::new());

/// `bytes` go to rank `to` of the job, `back` come back, and then `request` is over; `deed`: when it is there. `flags` as in an envelope.
pub(crate) fn operate(to: u32, request: u32, bytes: (u64, u64), flags: u8, deed: Option<Deed>) {
    super::compute::pay();
    if let Some(deed) = deed {
        TO_DO.with(|to_do| to_do.insert(request, deed));
    }
    endpoint().operate_in_virtual_time(to, request, bytes, flags);
    super::wait::check();
}

/// For the engine.
pub(super) fn perform(request: u32) -> Vec<Grant> {
    match TO_DO.with(|to_do| to_do.remove(&request)) {
        Some(deed) => deed(),
        None => Vec::new(),
    }
}
