//! The carrier, as its job knows it.

use super::Job;
use vmpi_shared::control::{Cause, Reply};

/// What a job knows of its carrier.
#[derive(Default)]
pub struct Carrier {
    /// Its process, a child of this one; 0: it could not be started.
    pub pid: i32,
    pub connection: Option<u64>,
    /// Replies to it, in order.
    pub outbox: Vec<Reply>,
    /// It is connected to those of all nodes.
    pub(super) wired: bool,
    /// By what.
    by: String,
    pub(super) asked_to_drain: bool,
    pub(super) drained: bool,
}

impl Job {
    pub fn carrier_started(&mut self, started: std::io::Result<i32>) {
        match (started, &mut self.carrier) {
            (Ok(pid), Some(carrier)) => carrier.pid = pid,
            (Ok(_), None) => {}
            (Err(error), _) => {
                self.carrier_lost(Some(format!("cannot start the process that carries messages: {error}")));
            }
        }
    }

    /// Is this process the carrier?
    pub fn is_carried_by(&self, pid: i32) -> bool {
        self.carrier.as_ref().is_some_and(|carrier| carrier.pid == pid && pid > 0)
    }

    /// The carrier is connected to those of the other nodes.
    pub fn carrier_wired(&mut self, by: String) {
        if let Some(carrier) = &mut self.carrier {
            carrier.wired = true;
            carrier.by = by;
        }
        self.begin();
    }

    /// How messages go to the other nodes, if there are any.
    pub fn carried_by(&self) -> Option<&str> {
        self.carrier.as_ref().filter(|carrier| carrier.wired).map(|carrier| carrier.by.as_str())
    }

    /// The carrier has taken everything to the other nodes.
    pub fn carrier_drained(&mut self) {
        if let Some(carrier) = &mut self.carrier {
            carrier.drained = true;
        }
        self.end_if_all_over();
    }

    /// The carrier cannot go on, or is gone (`reason`: none).
    pub fn carrier_lost(&mut self, reason: Option<String>) {
        let Some(carrier) = &mut self.carrier else { return };
        if reason.is_none() {
            carrier.connection = None;
        }
        if carrier.drained || self.ending.is_some() {
            return;
        }
        let reason = reason.unwrap_or_else(|| "the process that carries its messages to other nodes has died".into());
        self.end_by_failure(Cause::Internal { reason }, 125);
    }

    /// Tell the carrier.
    pub fn tell_carrier(&mut self, reply: Reply) {
        if let Some(carrier) = &mut self.carrier {
            carrier.outbox.push(reply);
        }
    }
}
