//! Which members have failed, and which of these failures the program has acknowledged.
//!
//! Failures are numbered in the job, so what a program acknowledges is all up to a number, and groups of failed members list them in
//! that order.

use crate::comm::Communicator;
use crate::failure::health::Health;
use crate::group::Members;
use crate::p2p::{failed, take_in};
use crate::process::endpoint;

/// Failed members with the numbers of their failures, the first first.
fn failures(health: &Health) -> Vec<(u32, u32)> {
    let node = &endpoint().node;
    let mut failures: Vec<(u32, u32)> = health.members().filter_map(|rank| Some((node.failure(rank)?, rank))).collect();
    failures.sort_unstable();
    failures
}

fn group(failures: impl Iterator<Item = (u32, u32)>) -> Members {
    Members::list(failures.map(|(_, rank)| rank).collect())
}

fn acknowledge(comm: &Communicator, upto: u32) {
    comm.health.acked.set(comm.health.acked.get().max(upto));
    // Wildcard receives go on.
    failed::sweep();
}

/// The members that have failed (MPIX_Comm_get_failed).
pub fn get_failed(comm: &Communicator) -> Members {
    take_in::look();
    group(failures(&comm.health).into_iter()).of_session(comm.session())
}

/// Acknowledge all failures known by now (MPIX_Comm_failure_ack).
pub fn failure_ack(comm: &Communicator) {
    take_in::look();
    acknowledge(comm, comm.health.newest.get());
}

/// The members whose failure has been acknowledged (MPIX_Comm_failure_get_acked).
pub fn failure_get_acked(comm: &Communicator) -> Members {
    let acked = comm.health.acked.get();
    group(failures(&comm.health).into_iter().filter(|(number, _)| *number <= acked)).of_session(comm.session())
}

/// Acknowledge the first `count` failures of [`get_failed`]; how many are acknowledged now (MPIX_Comm_ack_failed).
pub fn ack_failed(comm: &Communicator, count: usize) -> usize {
    take_in::look();
    let failures = failures(&comm.health);
    if let Some((number, _)) = failures.iter().take(count).next_back() {
        acknowledge(comm, *number);
    }
    let acked = comm.health.acked.get();
    failures.iter().filter(|(number, _)| *number <= acked).count()
}
