//! Revoking a communicator.

use crate::comm::Communicator;
use crate::errors::{Class, Result, fail};
use crate::failure::health;
use crate::p2p::take_in;
use crate::process::endpoint;
use crate::request;
use crate::simulate;

/// Operations on `comm`, under way and to come, end with `Class::Revoked` on all its members (MPIX_Comm_revoke). Does not wait.
///
/// # Errors
/// `Class::NoMem` after a million revocations in one job.
pub fn revoke(comm: &Communicator) -> Result<()> {
    simulate::refuse("MPIX_Comm_revoke", "when others would learn of it in virtual time is not defined")?;
    take_in::look();
    if comm.health.revoked.get() {
        return Ok(());
    }
    if !endpoint().job.revoke(comm.context, health::revocations_read()) {
        let most = vmpi_shared::job::REVOCATIONS;
        return fail(Class::NoMem, format!("{most} communicators have been revoked in this job, which is the limit"));
    }
    // SYNC A: the list and the count before the looks at the states. Should this process die here, the daemon wakes everybody. Members of other nodes
    // are woken by the carriers, which this calls.
    vmpi_shared::mem::sync::fence(vmpi_shared::mem::sync::Ordering::SeqCst);
    let me = endpoint().me;
    for member in comm.health.members().filter(|member| *member != me) {
        if endpoint().node.failure(member).is_none() {
            endpoint().wake_rank(member);
        }
    }
    request::progress();
    Ok(())
}

/// Has `comm` been revoked, as far as this process knows (MPIX_Comm_is_revoked)?
pub fn is_revoked(comm: &Communicator) -> bool {
    take_in::look();
    comm.health.revoked.get()
}
