//! Threads that this program cannot do without.

use crate::failure::code;
use std::thread::{Builder, JoinHandle};

/// Start a thread. Where none can be had, this process ends with a sentence, and as when it is killed whoever depends on it ends, too: daemons end
/// the job of a launcher that is gone, and agents the launcher's part on their node.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn(body).unwrap_or_else(|error| {
        let name = std::env::args_os().next().unwrap_or_default();
        let name = std::path::Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
        eprintln!(
            "{name}: cannot start a thread: {error}; are the limits on processes (`ulimit -u`) or memory (`ulimit -v`) too low here?"
        );
        std::process::exit(code::OWN)
    })
}
