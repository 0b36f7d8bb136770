//! Who runs.
//!
//! A rank holds its core while `CoreDescriptor::holder` is its number + 1 and it is RUNNING. It passes the core on when it suspends (`suspend`). Whoever completes what a
//! rank waits for makes it READY (`wake`); a READY rank of an idle core is given the core at once (`dispatch`). What must stay true is model-checked in `tests/model/`.
//!
//! Floors, from the top; a file imports from lower ones only (`tests/tests/layers.rs`): `supervise`, `recover`, `regrant`, `failure`, `report`, `corruption` (the daemon's side) > `suspend`
//! (a rank's) > `migrate` > `release` > `park`, `watch` > `wake` > `dispatch` > all others.

mod affinity;
pub mod balance;
pub mod carrier_bell;
mod clocks;
pub mod corruption;
mod dispatch;
pub mod failure;
mod idle_time;
mod intent;
pub mod lease;
#[cfg(feature = "measure")]
pub mod measure;
mod migrate;
pub mod outside;
mod park;
mod permit;
pub mod policy;
pub mod progress;
pub mod recover;
mod refine;
pub mod regrant;
mod release;
pub mod report;
pub mod run_queue;
pub mod supervise;
pub mod suspend;
pub mod wake;
pub mod watch;

pub use crate::node::run_state::{CLAIMED, IDLE, OPEN, RunState, SPINNING, WITHHELD, Wait, holder_rank, holder_word};
pub use clocks::own_time;
pub use idle_time::{all_run, is_idle};
pub use park::{LookUp, look_up_with};
pub use permit::rouse;
pub use report::{copies_refused, core_report, core_report_at, core_report_of, rank_report, rank_report_at};
pub use supervise::{rank_died, take_core};
pub use suspend::{
    enter, finish, pass_turn, scheduling_point, suspend, suspend_for_message, suspend_tending, yield_core,
};
pub use wake::{make_ready, ready_untended, try_tend, wake};
