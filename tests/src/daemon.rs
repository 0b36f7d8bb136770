//! A `vmpid` of one's own that serves several jobs.

use crate::job::{Vmpirun, kill_all, remaining};
use crate::leftovers::{eventually, processes_of};
use crate::place::{Turn, bin_dir};
use crate::scratch::Scratch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running daemon; its jobs take no turns, they are this test's.
pub struct Daemon {
    keeper: Child,
    scratch: Scratch,
    shared_memory_before: BTreeSet<String>,
    _turn: Turn,
}

impl Daemon {
    /// Waits for its turn. `name` names the runtime directory.
    ///
    /// # Panics
    /// If it does not listen in time.
    pub fn start(name: &str) -> Daemon {
        let turn = Turn::take();
        let program = bin_dir().join("vmpid");
        let scratch = Scratch::new(name);
        let shared_memory_before = crate::leftovers::shared_memory_files();
        let keeper = Command::new(program)
            .arg("--foreground")
            .env("VMPI_RUNTIME_DIR", scratch.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("vmpid does not start: {e}"));
        let daemon = Daemon { keeper, scratch, shared_memory_before, _turn: turn };
        let socket = daemon.dir().join("vmpid.sock");
        let listens = eventually(Duration::from_secs(20), || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        assert!(listens, "vmpid does not listen at {}", socket.display());
        daemon
    }

    pub fn dir(&self) -> &Path {
        self.scratch.path()
    }

    /// The process that serves (the keeper's child).
    ///
    /// # Panics
    /// If it is gone.
    pub fn pid(&self) -> i32 {
        let keeper = self.keeper.id() as i32;
        let found = processes_of(self.dir()).into_iter().find(|p| p.parent == keeper && p.name.starts_with("vmpid"));
        found.unwrap_or_else(|| panic!("the vmpid of keeper {keeper} is gone")).pid
    }

    /// A job of this daemon. What it leaves behind is looked for when the daemon ends.
    pub fn vmpirun(&self, name: &str) -> Vmpirun {
        Vmpirun::under(self.dir(), name)
    }

    /// TERM: it must end with 0, and nothing of it or its jobs may be left.
    ///
    /// # Panics
    /// If not.
    pub fn stop(mut self) {
        let keeper = Pid::from_raw(self.keeper.id() as i32);
        kill(keeper, Signal::SIGTERM).expect("the keeper is alive");
        let mut status = None;
        let ended = eventually(Duration::from_secs(20), || {
            status = self.keeper.try_wait().expect("it is our child");
            status.is_some()
        });
        assert!(ended, "vmpid does not end: {:?}", processes_of(self.dir()));
        assert!(status.is_some_and(|s| s.success()), "vmpid ended with {status:?}");
        if let Some(why) = remaining(self.dir(), &self.shared_memory_before) {
            panic!("{why}");
        }
        let left: Vec<_> = std::fs::read_dir(self.dir()).into_iter().flatten().flatten().map(|e| e.path()).collect();
        assert!(left.is_empty(), "files were left: {left:?}");
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.keeper.try_wait().ok().flatten().is_none() {
            kill_all(self.scratch.path());
            let _ = self.keeper.kill();
            let _ = self.keeper.wait();
        }
    }
}
