//! What the daemon and its ranks share; no I/O beyond futex, mmap and the control socket's frames.
//!
//! Reading order: `mem` (sync, segment, slab), `node` (the segment about time: cores, ranks, clocks), `sched` (run
//! state, run queues, hand-over), `job` (the segment about messages), `matching` (envelope, inbox, queues), `endpoint` (a rank's end of both segments), `cell`
//! (collectives in shared memory), `window` (one-sided communication), `ask` and `arith` (the same, over nodes), `control` (messages over the
//! socket), `dynamic` (those for dynamic processes), `spawn_protocol` (spawning over several nodes), `ports` (where groups meet), `agreement` (of those who survive a death), `roster` and `waits` (who waits for whom, seen from outside), `monitor` (what went from whom to whom), `trace` (what happened when),
//! `meter` and `perf_event` (performance counters), `simulate` (virtual time), `check` (where checked calls are compared), `guarding` (what the kernel offers for guards), `faults` (signals of them), `runtime_dir` and `leftovers` (what lies in the file system).
//!
//! `unsafe` lives in `arith`, `mem`, `node`, `job`, `matching::queues`, `cell`, `window`, `trace`, `perf_event`, `guarding`, `faults`, `check` and `simulate::segment`, where shared memory, or the kernel, is reached.

pub mod agreement;
pub mod arith;
pub mod ask;
pub mod cell;
pub mod check;
pub mod clock;
pub mod control;
pub mod cpu_cache;
pub mod crash;
pub mod decisions;
pub mod dynamic;
pub mod endpoint;
pub mod escape;
pub mod faults;
pub mod guarding;
pub mod job;
pub mod leftovers;
pub mod matching;
pub mod mem;
pub mod meter;
pub mod monitor;
pub mod node;
pub mod perf_event;
pub mod ports;
pub mod proc;
pub mod roster;
pub mod runtime_dir;
pub mod sched;
pub mod simulate;
pub mod spawn_protocol;
pub mod stand_in;
pub mod trace;
pub mod waits;
pub mod window;
