//! This rank as a process: start, end, entry lock, scheduling points. (Owner: lead.)

use crate::errors::Result;

/// Held by every entry point while it runs.
pub struct Entered(());

/// Take the entry lock (free unless the program asked for MPI_THREAD_MULTIPLE). Re-entrant.
pub fn enter() -> Entered {
    todo!()
}
/// MPI_Init has returned or is running, MPI_Finalize has not been called.
pub fn is_active() -> bool {
    todo!()
}
pub fn is_initialized() -> bool {
    todo!()
}
pub fn is_finalized() -> bool {
    todo!()
}
/// Called at every entry: a rank whose core was given away while it was outside MPI waits here for its turn.
pub fn scheduling_point() {
    todo!()
}
/// Give the core to the next READY rank, if any (MPIX_Yield).
pub fn yield_core() {
    todo!()
}
/// A call came before MPI_Init or after MPI_Finalize: say so and end the process.
pub fn fatal_outside_mpi(function: &str) -> ! {
    todo!("{function}")
}
/// Start MPI; returns the granted thread level (`consts::THREAD_*`). `face`: Abi::NAME.
pub fn init(face: &'static str, required_thread_level: i32) -> Result<i32> {
    todo!("{face}{required_thread_level}")
}
pub fn finalize() -> Result<()> {
    todo!()
}
/// End the whole job with `code` (made non-zero) after printing `reason` on stderr.
pub fn abort(code: i32, reason: &str) -> ! {
    todo!("{code}{reason}")
}
/// Rank and size of MPI_COMM_WORLD.
pub fn world() -> (u32, u32) {
    todo!()
}
pub fn thread_level() -> i32 {
    todo!()
}
pub fn is_thread_main() -> bool {
    todo!()
}
/// Host name.
pub fn processor_name() -> String {
    todo!()
}
/// Index of this program in an MPMD command line.
pub fn appnum() -> i32 {
    todo!()
}
pub fn universe_size() -> i32 {
    todo!()
}
/// Wall clock (or the process-POV clock under `--wtime rank`), seconds.
pub fn wtime() -> f64 {
    todo!()
}
pub fn wtick() -> f64 {
    todo!()
}
/// Process-POV clock, seconds (MPIX_Rtime).
pub fn rtime() -> f64 {
    todo!()
}
/// Core-POV timer, seconds (MPIX_Ptime).
pub fn ptime() -> f64 {
    todo!()
}
pub fn start_processor_timer() {
    todo!()
}
pub fn stop_processor_timer() {
    todo!()
}
/// A number that no other communicator of the job has (contexts come in pairs: this one and the next).
pub fn new_context() -> u32 {
    todo!()
}
/// Do the job's ranks `a` and `b` share a node?
pub fn same_node(a: u32, b: u32) -> bool {
    todo!("{a}{b}")
}
