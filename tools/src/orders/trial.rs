//! One run of several: a vmpirun with the same command line, which learns from a variable what is special about it.

use super::{Chaos, end_deadlocks};
use crate::cli::RunOptions;
use crate::failure::{Failure, code};
use crate::signals::{Early, Signals};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

/// The variable.
pub(super) const VARIABLE: &str = "VMPI_TRIAL";

/// What is special about a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Trial {
    pub chaos: Option<u64>,
    pub record: Option<String>,
    pub replay: Option<String>,
    /// The record says also what else could have been decided.
    pub full: bool,
    pub timeout_s: Option<u64>,
    /// Who runs it: the process's number.
    #[serde(default)]
    pub parent: i32,
}

/// Does this run record what else could have been decided?
pub(super) fn is_full() -> bool {
    Trial::own().is_ok_and(|trial| trial.is_some_and(|trial| trial.full))
}

/// How a run has ended.
pub(super) struct Ended {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Ended {
    /// In words.
    pub fn how(&self) -> String {
        match self.code {
            0 => "it ends well".into(),
            code::DEADLOCK => "all ranks wait for each other (exit code 123)".into(),
            code::TIMEOUT => "it takes longer than it may (exit code 124)".into(),
            signal @ 129..=192 => format!("a rank dies of signal {} (exit code {signal})", signal - 128),
            code => format!("exit code {code}"),
        }
    }

    /// Let the user see what it has said.
    pub fn show(&self) {
        let _ = std::io::stdout().write_all(&self.stdout);
        let _ = std::io::stdout().flush();
        let _ = std::io::stderr().write_all(&self.stderr);
    }
}

impl Trial {
    /// What this process is told.
    pub fn own() -> Result<Option<Trial>, Failure> {
        let Some(value) = std::env::var(VARIABLE).ok().filter(|value| !value.is_empty()) else { return Ok(None) };
        serde_json::from_str(&value).map(Some).map_err(|_| {
            Failure::usage(format!("the variable {VARIABLE} is vmpirun's own, and it is {value:?}; unset it"))
        })
    }

    /// This run ends as by SIGTERM once nobody waits for it any more, however that has come about.
    ///
    /// # Errors
    /// Nobody does now.
    pub fn end_with_parent(&self) -> Result<(), Failure> {
        let set = nix::sys::prctl::set_pdeathsig(Signal::SIGTERM).is_ok();
        if set && nix::unistd::getppid().as_raw() == self.parent {
            return Ok(());
        }
        Err(Failure::own("the vmpirun that runs this one of several is gone"))
    }

    /// As if it stood on the command line.
    pub fn apply(&self, options: &mut RunOptions) {
        options.explore = None;
        options.compare_stdout = false;
        if let Some(seed) = self.chaos {
            let what = options.chaos.take().map(|chaos| chaos.what).unwrap_or_default();
            options.chaos = Some(Chaos { first: seed, last: None, what });
        }
        options.record.clone_from(&self.record);
        options.replay.clone_from(&self.replay);
        options.timeout_s = self.timeout_s.or(options.timeout_s);
        end_deadlocks(options);
    }

    /// Run it, with its output kept in `place`.
    ///
    /// # Errors
    /// It cannot be run, or a signal has ended it and all that were to come.
    pub fn run(&self, args: &[String], place: &mut Place) -> Result<Ended, Failure> {
        let failed = |what: &str, e: std::io::Error| Failure::own(format!("cannot {what} one of several runs: {e}"));
        let exe = std::env::current_exe().map_err(|e| failed("find vmpirun for", e))?;
        let directory = place.directory.clone();
        let file = |name: &str| File::create(directory.join(name)).map_err(|e| failed("keep the output of", e));
        let own = Trial { parent: nix::unistd::getpid().as_raw(), ..self.clone() };
        let variable = serde_json::to_string(&own).unwrap_or_default();
        let mut command = Command::new(exe);
        command.args(args).env(VARIABLE, variable).stdin(input()).stdout(file("stdout")?).stderr(file("stderr")?);
        // What a terminal sends comes to this process, which passes it on once.
        command.process_group(0);
        let mut child = command.spawn().map_err(|e| failed("start", e))?;
        let (status, signal) = place.wait(&mut child).map_err(|e| failed("wait for", e))?;
        if let Some(signal) = signal {
            return Err(Failure::new(128 + signal as i32, format!("got {}: no more runs", signal.as_str())));
        }
        let read = |name: &str| std::fs::read(directory.join(name)).unwrap_or_default();
        let code = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
        let code = code.or(status.code()).unwrap_or(code::OWN);
        Ok(Ended { code, stdout: read("stdout"), stderr: read("stderr") })
    }
}

/// Each run reads a file from its begin; what comes from elsewhere comes once, so none does.
fn input() -> Stdio {
    let own = Path::new("/proc/self/fd/0");
    let is_file = std::fs::metadata(own).is_ok_and(|about| about.is_file());
    File::open(own).ok().filter(|_| is_file).map_or_else(Stdio::null, Stdio::from)
}

/// Where runs say what they say, a directory that goes with this; and the signals that come meanwhile.
pub(super) struct Place {
    pub directory: PathBuf,
    signals: Signals,
}

impl Place {
    pub fn new() -> Result<Place, Failure> {
        let signals = Early::heed_interrupts().and_then(Signals::register).map_err(|e| {
            Failure::own(format!("cannot be told of signals, which would have to end several runs: {e}"))
        })?;
        let directory = std::env::temp_dir().join(format!("vmpirun-{}", std::process::id()));
        std::fs::create_dir(&directory)
            .map(|()| Place { directory: directory.clone(), signals })
            .map_err(|e| Failure::own(format!("cannot make {}, for what several runs say: {e}", directory.display())))
    }

    /// Until the run is over; signals are passed on. One that has ended it: the first.
    fn wait(&mut self, child: &mut Child) -> std::io::Result<(ExitStatus, Option<Signal>)> {
        let run = vmpi_shared::proc::open_pid(child.id() as i32)?;
        let mut ends = None;
        loop {
            let mut fds: Vec<PollFd<'_>> =
                self.signals.sockets().map(|socket| PollFd::new(socket, PollFlags::POLLIN)).collect();
            fds.push(PollFd::new(run.as_fd(), PollFlags::POLLIN));
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            let is_over = fds.last().is_some_and(|fd| fd.any().unwrap_or(false));
            for signal in self.signals.take() {
                if matches!(signal, Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP | Signal::SIGQUIT) {
                    ends = ends.or(Some(signal));
                }
                // Not waited for yet, so its number is still its own.
                let _ = kill(Pid::from_raw(child.id() as i32), signal);
                if signal == Signal::SIGTSTP {
                    let _ = raise(Signal::SIGSTOP);
                }
            }
            if is_over {
                return Ok((child.wait()?, ends));
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// A command line as a shell would take it.
pub(super) fn shell(args: &[String]) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_=+:,./@%^".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    args.iter().map(quoted).collect::<Vec<_>>().join(" ")
}
