//! The calls of MPI's proposal for user-level failure mitigation (ULFM): `revoke`, `agree` (agreement and shrinking, which the daemon decides), `known` (which
//! failures the program has acknowledged). What they stand on is in `failure`. (Floor 9.)

mod agree;
mod known;
mod revoke;

pub use agree::{agree, iagree, ishrink, shrink};
pub use known::{ack_failed, failure_ack, failure_get_acked, get_failed};
pub use revoke::{is_revoked, revoke};
