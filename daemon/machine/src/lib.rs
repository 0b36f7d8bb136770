//! The machine that a simulation runs on: its hosts and cores, its network, and what a message costs on it.
//!
//! Reading order: `machine` (what is described) -> `schema` (our TOML) and `platform` (SimGrid's XML) make one, `builtin` has
//! some, `change` makes others of them -> `image` (the same as flat data that all ranks map: places, paths, costs) -> `smpi` (the model of SimGrid's SMPI) ->
//! `flows` (messages that share links, as time goes on).
//!
//! Times are picoseconds. The same machine and the same messages give the same times bit for bit: integers, and floating point
//! only in a fixed order of the basic operations. Nothing here does I/O but [`Machine::load`]; `image` and `flows` allocate
//! nothing.
#![forbid(unsafe_code)]

mod builtin;
mod change;
mod flows;
mod image;
mod machine;
mod platform;
mod problem;
mod schema;
mod smpi;
mod units;

pub use builtin::{BUILT_IN, BuiltIn, list};
pub use change::CHANGES;
pub use flows::{Flows, FlowsProblem};
pub use image::{BadImage, Cost, Image, LinkUse, MOST_USES, Path, Rules, Way};
pub use machine::{Class, HostRun, LEVELS, Level, LevelCost, Machine, Model, Piece, Policy, Route, Storage, Topology};
pub use problem::Problem;
pub use smpi::RENDEZVOUS_FROM;
pub use units::{Ps, show_bandwidth, show_time};
