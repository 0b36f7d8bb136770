//! Virtual time: a job that is executed for real, and whose times are those of another machine.
//!
//! Reading order: `network` (what a message costs), `layout` (what lies in the segment), `heap`, `engine` (what happens next, and who may run), `known` (what arrives later, taken now), `play` (collectives without their ranks),
//! `segment` (the engine in shared memory, and its lock), `rank` (what a rank sends). A rank's end of it is `endpoint::simulated`. `recording` has what
//! ranks have computed, in a file.
//!
//! `unsafe` lives in `segment`.

pub mod engine;
mod heap;
pub mod known;
pub mod layout;
pub mod network;
pub mod play;
mod rank;
pub mod recording;
mod segment;
#[cfg(all(test, not(feature = "model")))]
mod tests;

pub use engine::Exhausted;
pub use network::{Cost, Flow, Network};
pub use rank::{Fault, Simulated};
pub use segment::{Compute, SimulationConfig, SimulationSegment};
