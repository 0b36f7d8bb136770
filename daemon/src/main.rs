//! vmpid, the daemon of one user on one node: spawns ranks, watches them, reaps them.
//!
//! Reading order: `main` (arguments) -> `supervisor` (who cleans up after the daemon) -> `runtime_dir`, `status_page` (how it is
//! found), `sweep` -> `daemon` (the event loop) -> `clients` (whose turn it is), `connection`, `control` (who asks what) -> `job` (one job's life), `integrity` -> `limits`,
//! `spawn`, `reap` -> `carrier` (messages between nodes) -> `job::spawn_here`, `dynamic` (what ranks ask for: spawn, accept, connect) -> `watchdog`, `sampler`, `kick` (cores that must go on), `job::preempted`
//! (ranks that compute without one).
//! One thread, but for those of `kick`; nothing blocks but epoll.
//!
//! `unsafe` lives in `carrier::post::windows::combine`, `supervisor`, `reap`, `sampler`, `time_slice` and `spawn`, and in single functions of `watchdog`.
#![deny(unsafe_code)]

mod arbiter;
mod carrier;
mod client;
mod clients;
mod connection;
mod control;
mod daemon;
mod dynamic;
mod eager_limits;
mod integrity;
mod job;
mod kick;
mod limits;
mod log;
mod looks;
mod numbers;
mod oom;
mod passed;
mod rank;
mod reap;
mod runtime_dir;
mod sampler;
mod simulation;
mod spawn;
mod status_page;
mod supervisor;
mod sweep;
mod switch_cost;
mod time_slice;
mod watchdog;

use std::path::PathBuf;

use clap::Parser;

use crate::supervisor::Start;

/// The vmpi daemon: starts the ranks of vmpirun's jobs on this node, hands cores on, cleans up.
///
/// One daemon serves one user through the socket vmpid.sock in its runtime directory. vmpirun starts one by itself if
/// none runs.
#[derive(Parser, Debug)]
#[command(name = "vmpid", version = version())]
struct Arguments {
    /// Directory of the socket and the status page, private to the user [default: $VMPI_RUNTIME_DIR, else
    /// $XDG_RUNTIME_DIR/vmpi, else /tmp/vmpi-UID]
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Stay in the foreground
    #[arg(long)]
    foreground: bool,
    /// Serve one job, then end (implies --foreground); end also if its launcher dies, or none comes within 10 s
    #[arg(long)]
    one_job: bool,
    /// Carry one job's messages between nodes (started by vmpid itself)
    #[arg(long, hide = true)]
    carry: bool,
    /// Be the daemon of one job for a vmpirun on another node, which speaks on standard input and output
    #[arg(long)]
    bootstrap: bool,
}

/// With the commit, where `cargo xtask install` or `dist` has told it.
fn version() -> &'static str {
    let version = env!("CARGO_PKG_VERSION");
    option_env!("VMPI_COMMIT").map_or(version, |commit| format!("{version} (commit {commit})").leak())
}

fn main() {
    vmpi_shared::faults::end_the_process();
    let arguments = Arguments::parse();
    if arguments.carry {
        std::process::exit(carrier::main());
    }
    if arguments.bootstrap {
        std::process::exit(bootstrap());
    }
    // The daemon leaves the directory that it was started in.
    let absolute = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let default = absolute(vmpi_shared::runtime_dir::default_path());
    let path = arguments.runtime_dir.map_or_else(|| default.clone(), absolute);
    supervisor::secure_standard_streams();
    let start = match (arguments.one_job, arguments.foreground) {
        (true, _) => Start::ByLauncher,
        (false, true) => Start::Foreground,
        (false, false) => Start::Background,
    };
    let mut readiness = supervisor::split(&path, start);
    let options = daemon::Options { runtime_dir: path, base: default.clone(), one_job: arguments.one_job };
    let code = match daemon::Daemon::start(&options) {
        Ok(daemon) => {
            readiness.tell();
            sweep::sweep(&options.runtime_dir, &default);
            let code = daemon.run();
            if options.one_job {
                runtime_dir::remove_launched(&options.runtime_dir);
            }
            code
        }
        Err(error) => {
            log::line(&error.to_string());
            125
        }
    };
    std::process::exit(code);
}

/// Become the agent of a vmpirun on another node: its code is vmpirun's, which lies beside this file.
fn bootstrap() -> i32 {
    use std::os::unix::process::CommandExt;
    let vmpirun = std::env::current_exe().map(|exe| exe.with_file_name("vmpirun"));
    let error = match vmpirun {
        Ok(vmpirun) => std::process::Command::new(vmpirun).arg("--bootstrap").exec(),
        Err(error) => error,
    };
    log::line(&format!("cannot start vmpirun from beside vmpid: {error}; install both"));
    125
}
