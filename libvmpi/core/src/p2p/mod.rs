//! Point-to-point messages.
//!
//! `send` chooses the way (in the envelope, through the slab, or announced for single copy) and publishes the envelope;
//! `recv` posts a receive; `slot` keeps what only this process needs to know about a message under way and finishes it;
//! `ask` has the requests of one-sided communication over nodes; `probe` looks at unexpected messages; `buffered` is MPI_Bsend's buffer; `exchange` and `partitioned` are made of several
//! messages.

pub(crate) mod ask;
pub mod buffered;
pub mod exchange;
mod heap;
mod huge;
pub mod partitioned;
pub mod probe;
mod recv;
mod send;
mod slot;

pub(crate) use huge::prepare;
pub(crate) use recv::abandon;
pub use recv::{cancel, start_null_recv, start_recv, take};
pub use send::{is_eager, start_send};
pub(crate) use slot::REACH;
pub use slot::{Slot, is_over, poll, poll_eager, wait_all};
pub(crate) use slot::{Source, health_of, is_dense_receive, source_of};

/// Which matching context of a communicator a message travels in.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Plane {
    User,
    Collective,
}

/// Send modes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mode {
    Standard,
    Buffered,
    Synchronous,
    Ready,
}

pub use crate::attr::TAG_UB_VALUE as TAG_UB;
