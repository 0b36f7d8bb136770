//! Who runs: run state, run queue, policy, baton; who watches an idle core (`watch`), which job has it (`lease`); what all that took (`clocks`, `progress`, `outside`, `report`).
//!
//! A rank holds its core while `CoreDescriptor::holder` is its number + 1 and it is RUNNING. It passes the core on when
//! it suspends (`baton`). Whoever completes what a rank waits for makes it READY; a READY rank of an idle core is
//! given the core at once. What must stay true is model-checked in `tests/model/`.

pub mod adopt;
mod affinity;
pub mod balance;
pub mod baton;
mod clocks;
pub(crate) mod course;
pub mod damage;
pub mod failure;
pub mod lease;
#[cfg(feature = "measure")]
pub mod measure;
pub mod outside;
mod permit;
pub mod policy;
pub mod progress;
mod refine;
pub mod report;
pub mod run_queue;
mod run_state;
pub mod steps;
pub mod watch;

pub use baton::{
    enter, finish, make_ready, pass_turn, rank_died, ready_untended, scheduling_point, suspend, suspend_for_message,
    suspend_tending, take_core, try_tend, wake, yield_core,
};
pub use clocks::own_time;
pub use permit::rouse;
pub use report::{copies_refused, core_report, core_report_at, core_report_of, rank_report, rank_report_at};
pub use run_state::{CLAIMED, IDLE, OPEN, RunState, SPINNING, WITHHELD, Wait, holder_rank, holder_word};
