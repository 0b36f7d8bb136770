//! Point-to-point messages. (Floor 5.)
//!
//! `protocol` and `send` choose the way (in the envelope, through the slab, or announced for single copy) and publish the envelope;
//! `recv` posts a receive; `slot` keeps what only this process needs to know about a message under way and finishes it;
//! `ask` has the requests of one-sided communication over nodes; `buffered` is MPI_Bsend's buffer; `checked` looks at what the program does (`vmpirun --check`); `take_in` takes in what has come, `failed` ends what can no longer complete.
//! What waits, and what is made of several messages, is in `request`.

pub(crate) mod ask;
pub mod buffered;
pub(crate) mod checked;
pub(crate) mod failed;
mod protocol;
pub(crate) mod recv;
mod send;
pub(crate) mod slot;
pub(crate) mod take_in;

pub use protocol::is_eager;
pub(crate) use recv::abandon;
pub use recv::{cancel, start_null_recv, start_recv, take};
pub use send::start_send;
pub(crate) use slot::REACH;
pub use slot::{Slot, is_over, poll, poll_eager};
pub(crate) use slot::{Source, health_of, is_dense_receive, source_of};

/// Send modes.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mode {
    Standard,
    Buffered,
    Ready,
    /// From here on a send has a request whatever becomes of it.
    Synchronous,
    /// As `Standard`, of a program that is checked.
    Noted,
}
