//! What carries frames between the nodes of one job.
//!
//! Reading order: `fabric` (the trait, and what can happen to a link) -> `frame` (bytes to frames and back) -> `key`, `auth` (who may talk at
//! all) -> `seal` -> `link` (one connection) -> `tcp` (all of a node's links) -> `staging` (memory for slots) ->
//! `emulated` (a slower network on top of a faster one) -> `verbs` (RDMA devices, where there are).
//!
//! Nothing here blocks, and nothing knows of MPI: a frame is a kind and bytes. Unsafe code only in `verbs::plugin` and `staging`.
#![deny(unsafe_code)]

pub mod auth;
pub mod emulated;
pub mod fabric;
pub mod frame;
pub mod key;
mod link;
pub mod seal;
mod staging;
pub mod tcp;
pub mod verbs;

pub use emulated::{Emulated, Model};
pub use fabric::{Event, Fabric, LinkError};
pub use key::Key;
pub use tcp::{Node, Tcp};
pub use verbs::Verbs;
