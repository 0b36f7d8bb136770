//! vmpirun, vmpictl and the compiler wrappers.
//!
//! Reading order, the road of one `vmpirun -V 3 ./app`: [`cli`] (the table of flags, what was asked) -> [`program`]
//! (which file) -> [`elf`] (which MPI) -> [`environ`] (what the ranks see) -> [`plan`] (V, cores, placement; [`auto`] for `-V auto`, [`place`] for `--map-by`) ->
//! [`daemon`] (a connection to vmpid) -> [`session`] (the job runs; [`output`] carries its lines) -> [`outcome`] (exit
//! code and sentence). [`multicall`] decides by the name of the program; [`launch`] calls the rest in this order; with several nodes [`nodes`] stands between session and daemons. vmpictl is [`ctl`] ([`why`]: who waits for whom, [`stack`]: where), vmpicc and its kin are [`wrapper`].
//!
//! Unsafe code lives in `daemon` (setsid between fork and exec), `ctl::doctor::twin` (fork), `mpir` (what a debugger reads), `output::label` (localtime_r), `stack::bytes` (a mapped file), `trace::otf2` (libotf2) and `status_page`
//! (reading a shared page) only.
#![deny(unsafe_code)]

pub mod auto;
pub mod check;
pub mod cli;
pub mod compare;
pub mod cpus;
pub mod crash;
pub mod ctl;
pub mod daemon;
mod debugger;
pub mod elf;
pub mod environ;
pub mod failure;
mod font;
mod grace;
pub mod hostlist;
pub mod hosts;
pub mod launch;
pub mod matrix;
mod measure;
pub mod mpir;
pub mod multicall;
pub mod nodes;
pub mod occupied;
pub mod orders;
pub mod outcome;
mod output;
mod outputs;
pub mod pins;
pub mod place;
pub mod plan;
pub mod program;
pub mod r_project;
pub mod rdma;
pub mod report;
pub mod session;
pub mod signals;
mod simulate;
pub mod sites;
pub mod stack;
mod stand_in;
pub mod status_page;
mod stdin;
pub mod sweep;
pub mod table;
mod threads;
pub mod topology;
pub mod trace;
pub mod version;
pub mod why;
pub mod wrapper;
