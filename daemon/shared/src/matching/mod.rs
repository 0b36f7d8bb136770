//! Matching of messages: what lies in shared memory and needs neither processes nor the scheduler.
//!
//! Reading order: `envelope`, `inbox` (how an envelope gets to a rank), `queues` (posted and unexpected, requests), `mover` (who copies what was matched),
//! `cooperative_copy` (a large message copied by both ranks at once), `elements` (what lies scattered), `polls`. A rank's end of it all is [`crate::endpoint`].

pub mod cooperative_copy;
pub mod elements;
pub mod envelope;
pub mod inbox;
pub mod mover;
pub mod polls;
pub mod queues;
pub mod request;
