//! Virtual time: a job that is executed for real, and whose times are those of another machine.
//!
//! Reading order: `network` (what a message costs), `layout` (what lies in the segment), `heap`, `engine` (what happens next, and who may run), `taking` (what a rank takes of that), `known` (what arrives later, taken now), `play` (collectives without their ranks), `operations` (one-sided communication),
//! `segment` (the engine in shared memory, and its lock), `rank` (what a rank sends). A rank's end of it is `endpoint::simulated`. `recording` has what
//! ranks have computed, in a file.
//!
//! `unsafe` lives in `segment`.

pub mod engine;
mod heap;
pub mod known;
pub mod layout;
pub mod network;
mod operations;
pub mod play;
mod rank;
pub mod recording;
mod segment;
mod taking;
#[cfg(all(test, not(feature = "model")))]
mod tests;

pub use engine::Exhausted;
pub use network::{Cost, Flow, Network};
pub use operations::Grant;
pub use rank::{Does, Fault, Simulated};
pub use segment::{Compute, SimulationConfig, SimulationSegment};
