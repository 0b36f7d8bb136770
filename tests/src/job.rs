//! One `vmpirun` with a runtime directory of its own, a deadline, and a look at what it left behind.

use crate::leftovers::{Process, eventually, orphaned_shared_memory, processes_of, shared_memory_files};
use crate::place::{Turn, bin_dir, room};
use crate::scratch::Scratch;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// What came out of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The shell's number: the code, or 128 + signal.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// What a process that has ended has left.
    pub fn of(output: &Output) -> Outcome {
        Outcome { code: code(output.status), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

/// A `vmpirun` to be started.
pub struct Vmpirun {
    name: String,
    command: Command,
    runtime_dir: PathBuf,
    deadline: Duration,
    own: Option<Own>,
}

/// What a job without others beside it has for itself.
struct Own {
    scratch: Scratch,
    shared_memory_before: BTreeSet<String>,
    _turn: Turn,
}

impl Vmpirun {
    /// Waits for its turn. `name` names the runtime directory.
    pub fn new(name: &str) -> Vmpirun {
        let turn = Turn::take();
        let scratch = Scratch::new(name);
        let mut run = Vmpirun::under(scratch.path(), name);
        run.own = Some(Own { scratch, shared_memory_before: shared_memory_files(), _turn: turn });
        run
    }

    /// As `new`, entering a node first: `enter NODE vmpirun ...`.
    pub fn on_node(name: &str, enter: &Path, node: &str) -> Vmpirun {
        let mut run = Vmpirun::new(name);
        let mut command = Command::new(enter);
        command.arg(node).arg(bin_dir().join("vmpirun"));
        command.env("VMPI_RUNTIME_DIR", &run.runtime_dir).stdin(Stdio::null());
        run.command = command;
        run
    }

    /// As `new`, started by another program: `WRAPPER OPTIONS vmpirun ...`.
    pub fn wrapped(name: &str, wrapper: &str, options: &[&str]) -> Vmpirun {
        let mut run = Vmpirun::new(name);
        let mut command = Command::new(wrapper);
        command.args(options).arg(bin_dir().join("vmpirun"));
        command.env("VMPI_RUNTIME_DIR", &run.runtime_dir).stdin(Stdio::null());
        run.command = command;
        run
    }

    /// As `new`, but another program in the place of vmpirun: a launcher of another MPI.
    pub fn by(name: &str, launcher: &str) -> Vmpirun {
        let mut run = Vmpirun::new(name);
        let mut command = Command::new(launcher);
        command.env("VMPI_RUNTIME_DIR", &run.runtime_dir).stdin(Stdio::null());
        run.command = command;
        run
    }

    /// The same on a node: its first arguments are the launcher and its own.
    pub fn by_on_node(name: &str, enter: &Path, node: &str) -> Vmpirun {
        let mut run = Vmpirun::by(name, &enter.display().to_string());
        run.command.arg(node);
        run
    }

    /// A job of the daemon in `runtime_dir`; nobody looks for what it leaves behind.
    pub fn under(runtime_dir: &Path, name: &str) -> Vmpirun {
        let mut command = Command::new(bin_dir().join("vmpirun"));
        command.env("VMPI_RUNTIME_DIR", runtime_dir).stdin(Stdio::null());
        let (runtime_dir, name) = (runtime_dir.to_owned(), name.to_owned());
        Vmpirun { name, command, runtime_dir, deadline: Duration::from_secs(60), own: None }
    }

    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Vmpirun {
        self.command.arg(arg);
        self
    }

    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Vmpirun {
        self.command.args(args);
        self
    }

    pub fn env(mut self, key: &str, value: impl AsRef<OsStr>) -> Vmpirun {
        self.command.env(key, value);
        self
    }

    /// Without this variable of the tests' own environment.
    pub fn without(mut self, key: &str) -> Vmpirun {
        self.command.env_remove(key);
        self
    }

    pub fn runtime_dir(&self) -> &Path {
        &self.runtime_dir
    }

    /// A file in the runtime directory.
    pub fn with_file(self, name: &str, content: &str) -> Vmpirun {
        fs::write(self.runtime_dir.join(name), content).expect("the scratch directory is writable");
        self
    }

    pub fn cwd(mut self, dir: impl AsRef<std::path::Path>) -> Vmpirun {
        self.command.current_dir(dir);
        self
    }

    pub fn stdin(mut self, file: File) -> Vmpirun {
        self.command.stdin(file);
        self
    }

    /// Not a measure of speed: when a run is given up as hanging.
    pub fn deadline(mut self, deadline: Duration) -> Vmpirun {
        self.deadline = deadline;
        self
    }

    /// Run to the end, then demand that nothing is left.
    ///
    /// # Panics
    /// At the deadline, and if processes or files were left behind; the message holds all that is known.
    pub fn run(self) -> Outcome {
        self.start().finish()
    }

    /// Start, to watch and to kill.
    pub fn start(mut self) -> Job {
        let shown = format!("{:?}", self.command);
        let stderr_path = room("stderr").join(format!("{}-{}.txt", std::process::id(), self.name));
        let stderr = File::create(&stderr_path).expect("target/ is writable");
        self.command.stdout(Stdio::piped()).stderr(stderr);
        let mut child = self.command.spawn().unwrap_or_else(|e| panic!("{shown}: {e}"));
        let (sender, lines) = channel();
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        std::thread::spawn(move || {
            let mut line = Vec::new();
            while matches!(stdout.read_until(b'\n', &mut line), Ok(1..)) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
                line.clear();
            }
        });
        let end = Instant::now() + self.deadline;
        Job {
            child,
            shown,
            end,
            lines,
            stdout: String::new(),
            stderr_path,
            runtime_dir: self.runtime_dir,
            own: self.own,
        }
    }
}

/// A running `vmpirun`.
pub struct Job {
    child: Child,
    shown: String,
    end: Instant,
    lines: Receiver<String>,
    stdout: String,
    stderr_path: PathBuf,
    pub runtime_dir: PathBuf,
    own: Option<Own>,
}

impl Job {
    /// The pid of vmpirun.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn processes(&self) -> Vec<Process> {
        processes_of(&self.runtime_dir)
    }

    /// The pids of this job's daemon and of the keeper that watches it (its parent, also called vmpid).
    ///
    /// # Panics
    /// If there is no daemon.
    pub fn daemon_pids(&self) -> (i32, Option<i32>) {
        let all: Vec<Process> = self.processes().into_iter().filter(|p| p.name.starts_with("vmpid")).collect();
        let child = all.iter().find(|p| all.iter().any(|other| other.pid == p.parent));
        let Some(daemon) = child.or(all.first()) else { self.fail("no vmpid found") };
        (daemon.pid, child.map(|p| p.parent))
    }

    /// Read standard output until `wanted` says that the lines so far are enough.
    ///
    /// # Panics
    /// At the deadline, or if the job ends before.
    pub fn read_until(&mut self, mut wanted: impl FnMut(&str) -> bool) {
        while !wanted(&self.stdout) {
            let left = self.end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.stdout.push_str(&line),
                Err(e) => self.fail(&format!("the expected output did not come ({e})")),
            }
        }
    }

    /// Lines `ready RANK PID` of tests/programs/deaths.c, from all `ranks`: the pids by rank.
    pub fn ready(&mut self, ranks: usize) -> Vec<i32> {
        // The last line may not be all there yet.
        let whole = |text: &str| text.rfind('\n').map_or(0, |end| end + 1);
        self.read_until(|text| text[..whole(text)].lines().filter(|l| l.starts_with("ready ")).count() >= ranks);
        let mut pids = vec![0; ranks];
        for line in self.stdout.lines().filter(|l| l.starts_with("ready ")) {
            let mut words = line.split_whitespace().skip(1).filter_map(|w| w.parse::<i32>().ok());
            if let (Some(rank), Some(pid)) = (words.next(), words.next()) {
                pids[rank as usize] = pid;
            }
        }
        pids
    }

    /// `vmpictl ARGS` for this job's daemon.
    pub fn vmpictl(&self, args: &[&str]) -> Outcome {
        let output =
            Command::new(bin_dir().join("vmpictl")).args(args).env("VMPI_RUNTIME_DIR", &self.runtime_dir).output();
        match output {
            Ok(output) => Outcome::of(&output),
            Err(e) => Outcome { code: 127, stdout: String::new(), stderr: e.to_string() },
        }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("it is our child").is_some()
    }

    /// Wait for the end and demand that nothing is left.
    ///
    /// # Panics
    /// As [`Vmpirun::run`].
    pub fn finish(mut self) -> Outcome {
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                break status;
            }
            if Instant::now() > self.end {
                self.fail("still running at its deadline");
            }
            while let Ok(line) = self.lines.try_recv() {
                self.stdout.push_str(&line);
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        // The reader ends when the last holder of the pipe has closed it: a process left behind would hold it open.
        self.demand_nothing_left();
        while let Ok(line) = self.lines.recv_timeout(Duration::from_secs(5)) {
            self.stdout.push_str(&line);
        }
        Outcome { code: code(status), stdout: std::mem::take(&mut self.stdout), stderr: self.stderr() }
    }

    fn demand_nothing_left(&mut self) {
        if let Some(own) = &self.own
            && let Some(why) = remaining(own.scratch.path(), &own.shared_memory_before)
        {
            self.fail(&why);
        }
    }

    fn stderr(&self) -> String {
        let mut bytes = Vec::new();
        let _ = File::open(&self.stderr_path).and_then(|mut f| f.read_to_end(&mut bytes));
        text(&bytes)
    }

    /// End everything that this job started, by pid, and panic with all that is known.
    fn fail(&self, why: &str) -> ! {
        let listing = self.vmpictl(&["ps", "--ranks", "--json"]);
        let processes = self.processes();
        let _ = kill(Pid::from_raw(self.pid()), Signal::SIGKILL);
        kill_all(&self.runtime_dir);
        panic!(
            "{}\n{why}\n--- processes\n{}\n--- vmpictl ps --ranks --json ({})\n{}{}\n--- stdout\n{}\n--- stderr\n{}",
            self.shown,
            processes.iter().map(|p| format!("{p:?}\n")).collect::<String>(),
            listing.code,
            listing.stdout,
            listing.stderr,
            self.stdout,
            self.stderr(),
        )
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // A test that panics on its own must not leave a job running.
        if self.child.try_wait().ok().flatten().is_none() {
            let _ = self.child.kill();
            if self.own.is_some() {
                kill_all(&self.runtime_dir);
            }
            let _ = self.child.wait();
        }
        let _ = fs::remove_file(&self.stderr_path);
    }
}

/// What is left of the jobs of a runtime directory, in words, after some time to end.
pub fn remaining(runtime_dir: &Path, shared_memory_before: &BTreeSet<String>) -> Option<String> {
    if !eventually(Duration::from_secs(10), || processes_of(runtime_dir).is_empty()) {
        return Some(format!("processes were left behind: {:?}", processes_of(runtime_dir)));
    }
    let new = || orphaned_shared_memory().difference(shared_memory_before).cloned().collect::<Vec<String>>();
    // As long as for processes: the keeper of a daemon that was killed, maybe of a test beside this one, may have to wait for a CPU before it removes the page.
    let gone = eventually(Duration::from_secs(10), || new().is_empty());
    (!gone).then(|| format!("files were left in /dev/shm: {:?}", new()))
}

/// End all processes of a runtime directory, by pid.
pub fn kill_all(runtime_dir: &Path) {
    // Twice: ranks that a dying daemon was just spawning.
    for _ in 0..2 {
        for process in processes_of(runtime_dir) {
            let _ = kill(Pid::from_raw(process.pid), Signal::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `PATH` with `dir` in front.
pub fn path_with(dir: &std::path::Path) -> OsString {
    let mut path = dir.as_os_str().to_os_string();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}
