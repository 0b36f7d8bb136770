//! What the messages that a rank has received keep it busy for: its clock gets it when the call is over.

use super::is_on;
use crate::process::endpoint_if_any;

/// The call is over, or does something before.
pub(super) fn pay() {
    if is_on()
        && let Some(endpoint) = endpoint_if_any()
    {
        endpoint.pay_in_virtual_time();
    }
}
