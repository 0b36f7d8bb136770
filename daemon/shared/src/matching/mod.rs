//! Messages between ranks of one node.
//!
//! Reading order: `envelope`, `inbox` (how an envelope gets to a rank), `queues` (posted and unexpected, requests),
//! `peers` (whose memory may be touched), `transfer` (large payloads; `duet`: by both ranks at once; `pieces`: through the slab; `elements`: of what lies scattered), `tend` (a rank's end, and matching for a suspended rank; `deliver`: how a message gets there; `lend`: for one that computes; `poll`: for one that polls), `courier` (to and from other nodes), `simulated` (all of it in virtual time), `holding` (messages that their receiver holds back).

pub mod courier;
mod deliver;
pub mod duet;
pub mod elements;
pub mod envelope;
pub mod holding;
pub mod inbox;
pub mod lend;
pub mod look;
pub mod mover;
mod pieces;
mod poll;
mod polls;
mod proxy;
mod queue_loan;
pub mod queues;
pub mod request;
pub mod simulated;
pub mod tend;
pub mod transfer;
