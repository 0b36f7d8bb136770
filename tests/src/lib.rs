//! Harness of the suites of real processes.
//!
//! Reading order: [`case`] (one row of a suite: program, ranks, V, arguments, and what must come out), [`job`] (one
//! `vmpirun` in a runtime directory of its own, with a deadline, and the search for whatever it left behind), [`oracle`] (the
//! same program under the MPI that it was compiled for), [`daemon`] (one that serves several jobs), [`nodes`] (two of them on this machine), [`compile`], [`place`].
//!
//! All runs take turns (a lock file), whatever the test runner does in parallel: the machine's cores are what is tested.

pub mod aborts;
pub mod bare;
pub mod case;
pub mod compile;
pub mod daemon;
pub mod functions;
pub mod guest;
pub mod installation;
pub mod job;
pub mod leftovers;
pub mod mpich_suite;
pub mod nodes;
pub mod oracle;
pub mod place;
pub mod prometheus;
pub mod report;
pub mod scratch;
pub mod slurm;
pub mod traces;
