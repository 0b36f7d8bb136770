//! What a run's clocks say, for people: two lines in words (`verdict`), then columns (`tables`).

mod tables;
mod verdict;

pub use tables::{full, sites, summary, unbalanced};
pub use verdict::{Setup, Try, Verdict};
