//! Messages between ranks of one node.
//!
//! Reading order: `envelope`, `inbox` (how an envelope gets to a rank), `queues` (posted and unexpected, requests),
//! `peers` (whose memory may be touched), `transfer` (large payloads; `cooperative_copy`: by both ranks at once; `pieces`: through the slab; `elements`: of what lies scattered), `endpoint` (a rank's end, and matching for a suspended rank; `deliver`: how a message gets there; `strong_progress`: for one that computes; `poll`: for one that polls), `carrier_endpoint` (to and from other nodes), `simulated` (all of it in virtual time), `holding` (messages that their receiver holds back).

pub mod carrier_endpoint;
pub mod cooperative_copy;
mod deliver;
pub mod elements;
pub mod endpoint;
pub mod envelope;
pub mod holding;
pub mod inbox;
pub mod inspect;
pub mod mover;
mod pieces;
mod poll;
mod polls;
mod proxy;
mod queue_loan;
pub mod queues;
pub mod request;
pub mod simulated;
pub mod strong_progress;
pub mod transfer;
