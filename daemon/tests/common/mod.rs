//! A vmpid of one's own, a launcher, and ranks that speak the protocol.
//!
//! The ranks' program is the test executable itself (`rank_program` below), told what to do by a script in the environment.
#![allow(dead_code)]

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio as Std};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use vmpi_shared::control::{
    App, Cause, Connection, JobReport, JobSpec, PROTOCOL, RankEnd, Reply, Request, SOCKET_NAME,
};

/// No wait in a test is longer; nothing is asserted to be shorter.
pub const DEADLINE: Duration = Duration::from_secs(60);
/// What a rank of `script` does, step by step.
pub const SCRIPT: &str = "VMPI_TEST_SCRIPT";

/// A running daemon with its own runtime directory.
pub struct Vmpid {
    pub dir: PathBuf,
    /// The supervisor, whose child the daemon is.
    pub supervisor: Child,
}

impl Vmpid {
    pub fn start(arguments: &[&str]) -> Vmpid {
        let vmpid = Vmpid::start_in(fresh_dir(), arguments);
        wait_for("the socket", || UnixStream::connect(vmpid.socket()).is_ok());
        vmpid
    }

    pub fn start_in(dir: PathBuf, arguments: &[&str]) -> Vmpid {
        let supervisor = Command::new(env!("CARGO_BIN_EXE_vmpid"))
            .arg("--foreground")
            .arg("--runtime-dir")
            .arg(&dir)
            .args(arguments)
            .stdin(Std::null())
            .spawn()
            .unwrap();
        Vmpid { dir, supervisor }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.join(SOCKET_NAME)
    }

    pub fn connect(&self) -> Connection {
        let stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Connection::new(stream)
    }

    /// A connection that has said hello, and the daemon's pid.
    pub fn greet(&self) -> (Connection, i32) {
        let mut connection = self.connect();
        connection.send(&hello(PROTOCOL), &[]).unwrap();
        match expect_reply(&mut connection) {
            Reply::Hello { pid, protocol: PROTOCOL, .. } => (connection, pid),
            other => panic!("{other:?}"),
        }
    }

    /// Submit a job with its standard streams at /dev/null; returns once it is started.
    pub fn launch(&self, spec: &JobSpec) -> Launcher {
        let mut launcher = self.submit(spec);
        match expect_reply(&mut launcher.connection) {
            Reply::Started { pids } => launcher.pids = pids,
            other => panic!("{other:?}"),
        }
        launcher
    }

    pub fn submit(&self, spec: &JobSpec) -> Launcher {
        let null = fs::File::options().read(true).write(true).open("/dev/null").unwrap();
        let fds = vec![null.as_raw_fd(); spec.fds as usize];
        let (mut connection, _) = self.greet();
        connection.send(&Request::Submit { spec: Box::new(spec.clone()) }, &[]).unwrap();
        let job = match expect_reply(&mut connection) {
            Reply::Submitted { job } => job,
            other => panic!("{other:?}"),
        };
        for part in fds.chunks(250) {
            connection.send(&Request::Fds { count: part.len() as u32 }, part).unwrap();
        }
        Launcher { connection, job, pids: Vec::new(), ends: Vec::new() }
    }

    /// Run a job to its end.
    pub fn run(&self, spec: &JobSpec) -> Finished {
        self.launch(spec).finish()
    }

    /// TERM; the daemon must end with 0 and leave nothing.
    pub fn stop(mut self) {
        let page = self.status_page();
        signal(self.supervisor.id() as i32, libc::SIGTERM);
        assert_eq!(self.supervisor.wait().unwrap().code(), Some(0));
        self.assert_nothing_left(page);
    }

    /// The file of the status page.
    pub fn status_page(&self) -> PathBuf {
        let name = fs::read_to_string(self.dir.join("status")).unwrap_or_default();
        PathBuf::from(format!("/dev/shm{name}"))
    }

    pub fn assert_nothing_left(&self, page: PathBuf) {
        let left: Vec<_> = fs::read_dir(&self.dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(*page == *"/dev/shm" || !page.exists(), "{page:?}");
        let socket = self.socket().into_os_string().into_string().unwrap();
        wait_for("all ranks to be gone", || processes_with(&format!("VMPI_SOCKET={socket}")).is_empty());
    }
}

impl Drop for Vmpid {
    fn drop(&mut self) {
        if self.supervisor.try_wait().ok().flatten().is_none() {
            signal(self.supervisor.id() as i32, libc::SIGTERM);
            let _ = self.supervisor.wait();
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// A launcher's connection after `Submit`.
pub struct Launcher {
    pub connection: Connection,
    pub job: u32,
    pub pids: Vec<i32>,
    pub ends: Vec<RankEnd>,
}

/// What a launcher learned at the end.
#[derive(Debug)]
pub struct Finished {
    pub cause: Cause,
    pub code: i32,
    pub ends: Vec<RankEnd>,
    pub report: JobReport,
    pub pids: Vec<i32>,
}

impl Launcher {
    pub fn finish(mut self) -> Finished {
        loop {
            match expect_reply(&mut self.connection) {
                Reply::Ended { rank } => self.ends.push(rank),
                Reply::Finished { cause, code, report, .. } => {
                    return Finished { cause, code, ends: self.ends, report: *report, pids: self.pids };
                }
                Reply::Started { pids } => self.pids = pids,
                other => panic!("{other:?}"),
            }
        }
    }
}

pub fn hello(protocol: u32) -> Request {
    Request::Hello { version: "test".into(), protocol }
}

pub fn expect_reply(connection: &mut Connection) -> Reply {
    connection.receive::<Reply>().expect("a reply in time").expect("an open connection").0
}

/// A job of one program on one core.
pub fn job(program: &str, argv: &[&str], ranks: u32) -> JobSpec {
    let argv = std::iter::once(program).chain(argv.iter().copied()).map(str::to_owned).collect();
    let env = std::env::vars().filter(|(name, _)| name != SCRIPT).collect();
    JobSpec::plain(vec![App { program: program.into(), argv, env, cwd: "/".into(), ranks }])
}

pub fn shell(command: &str, ranks: u32) -> JobSpec {
    job("/bin/sh", &["-c", command], ranks)
}

/// A job whose ranks are this executable and do `script`.
pub fn script(script: &str, ranks: u32) -> JobSpec {
    let exe = std::env::current_exe().unwrap();
    let mut spec = job(exe.to_str().unwrap(), &RANK_ARGUMENTS, ranks);
    spec.apps[0].env.push((SCRIPT.into(), script.into()));
    spec
}

/// How the test executable becomes a rank.
pub const RANK_ARGUMENTS: [&str; 5] = ["--ignored", "--exact", "rank_program", "--nocapture", "--test-threads=1"];

/// The body of the ignored test `rank_program`: attach, finalize, abort=CODE, exit=CODE, kill=SIGNAL, sleep,
/// enter and leave (the core), await=FILE (asleep) and spin=FILE (busy), forget (close the socket), touch=FILE, word=WORD and rank=N (for the next attach).
pub fn rank_program() {
    let Ok(steps) = std::env::var(SCRIPT) else { return };
    let variable = |name: &str| std::env::var(name).unwrap();
    let mut connection = None;
    let mut segment = None;
    let mut word = variable("VMPI_JOB");
    let mut rank = variable("VMPI_RANK").parse().unwrap();
    for step in steps.split_whitespace() {
        let (verb, argument) = step.split_once('=').unwrap_or((step, ""));
        match verb {
            "word" => word = argument.into(),
            "rank" => rank = argument.parse().unwrap(),
            "attach" => {
                let mut c = Connection::new(UnixStream::connect(variable("VMPI_SOCKET")).unwrap());
                c.send(&hello(PROTOCOL), &[]).unwrap();
                assert!(matches!(expect_reply(&mut c), Reply::Hello { .. }));
                let job = std::env::var("VMPI_TEST_JOB").unwrap_or_else(|_| variable("VMPI_JOBID")).parse().unwrap();
                let attach = Request::Attach { job, rank, word: word.clone(), face: "test".into() };
                c.send(&attach, &[]).unwrap();
                let (reply, fds) = c.receive::<Reply>().unwrap().unwrap();
                match reply {
                    Reply::Attached { ranks, .. } => {
                        assert_eq!(ranks.to_string(), variable("VMPI_SIZE"));
                        let [node, job, bell, _pids] = <[OwnedFd; 4]>::try_from(fds).unwrap();
                        let mut node = vmpi_shared::node::NodeSegment::map(node).unwrap();
                        node.set_bell(vmpi_shared::mem::bell::Bell::from_fd(bell));
                        segment = Some(node);
                        vmpi_shared::job::JobSegment::map(job).unwrap();
                    }
                    Reply::Refused { .. } => std::process::exit(99),
                    other => panic!("{other:?}"),
                }
                connection = Some(c);
            }
            "finalize" => connection.as_mut().unwrap().send(&Request::Finalized, &[]).unwrap(),
            "abort" => {
                let code = argument.parse().unwrap();
                connection
                    .as_mut()
                    .unwrap()
                    .send(&Request::Abort { code, reason: "asked to".into(), group: None }, &[])
                    .unwrap();
            }
            "enter" => vmpi_shared::sched::enter(segment.as_ref().unwrap(), rank),
            "leave" => vmpi_shared::sched::finish(segment.as_ref().unwrap(), rank),
            "await" => wait_for(argument, || fs::exists(argument).unwrap()),
            "spin" => {
                let end = Instant::now() + DEADLINE;
                while !fs::exists(argument).unwrap() && Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
            "forget" => connection = None,
            "touch" => fs::write(argument, "").unwrap(),
            "kill" => signal(std::process::id() as i32, argument.parse().unwrap()),
            "exit" => std::process::exit(argument.parse().unwrap()),
            "sleep" => std::thread::sleep(Duration::from_secs(1000)),
            _ => panic!("unknown step {step}"),
        }
    }
}

pub fn signal(pid: i32, signal: i32) {
    assert!(pid > 0);
    // SAFETY: kill on plain values.
    unsafe { libc::kill(pid, signal) };
}

/// Wait until `condition` holds; fail after the deadline.
pub fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {DEADLINE:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Processes that have not ended whose environment holds `variable` ("NAME=VALUE").
pub fn processes_with(variable: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            fs::read(format!("/proc/{pid}/environ"))
                .is_ok_and(|environ| environ.split(|byte| *byte == 0).any(|v| v == variable.as_bytes()))
        })
        .collect()
}

/// A runtime directory of one's own: short, private, fresh.
pub fn fresh_dir() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    PathBuf::from(format!("/tmp/vmpid-it-{}-{n}", std::process::id()))
}
