//! The ranks' output on its way to terminals and files.
//!
//! A rank writes into its pipes; [`Lines`] cuts what is read into whole lines; [`Label`] marks them; [`Sink`] writes
//! them, never more than the other side takes without blocking, so that signals are seen while a pager waits.

mod label;
mod lines;
mod sink;
mod streams;

pub use label::{Labels, local_time};
pub use lines::Lines;
pub use sink::{Sink, SinkError, Target};
pub use streams::{Routes, Streams};
