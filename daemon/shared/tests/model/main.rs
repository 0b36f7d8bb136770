//! Model tests of what ranks share: who runs, who tends, who wakes whom, and what a death leaves behind.
//!
//! `cargo test -p vmpi-shared --features model --test model`. Shuttle explores interleavings of the real code; its
//! futexes sleep until woken, so a lost wake-up shows as a deadlock. Every test ends by asserting that no core ever had
//! two ranks RUNNING. Shuttle explores sequentially consistent executions only, where a fence is nothing: what the
//! fences are for is tested on real processors, in `tests/threads.rs`.

#![cfg(feature = "model")]

mod balance;
mod baton;
mod carrier_endpoint;
mod cells;
mod chunks;
mod expected_next;
mod kill;
mod lease;
mod mourning;
mod policies;
mod recovery;
mod space;
mod strong_progress;
mod untended;
mod world;
