//! Making communicators, and their end (MPI 4.1 section 7.4). (Floor 8.)
//!
//! Reading order: `agree` (how ranks agree on a new matching context), `choices` (what all ranks chose, and contexts for it), `create` (dup, split, create,
//! create_group), `inter` (intercommunicators), `from_group` (those of sessions), `split_type` and `directory`, `disconnect`.
//!
//! A context is a number that no other communicator of the job has; it comes from a counter in the job segment, so
//! agreeing on one means that one rank takes it and tells the others.

mod agree;
mod choices;
mod create;
mod directory;
mod disconnect;
mod from_group;
mod inter;
mod split_type;

pub(crate) use create::discard;
pub use create::{compare, create, create_group, derive, dup, dup_with_info, free, idup, private, split};
pub use disconnect::{disconnect, say_all};
pub use from_group::{create_from_group, intercomm_create_from_groups};
pub(crate) use inter::bcast;
pub use inter::{connect, intercomm_create, intercomm_merge};
pub use split_type::split_type;
