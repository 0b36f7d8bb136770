//! vmpirun as a real process against a small daemon that speaks the protocol from a thread of the test.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use vmpi_shared::control::{
    Cause, Connection, Ended, JobReport, JobSpec, PROTOCOL, RankEnd, Reply, Request, SOCKET_NAME, Stdio as Streams,
};

/// What the daemon does once the ranks run.
#[derive(Clone, Copy)]
enum Then {
    /// Wait for them and report.
    Wait,
    /// Close the connection.
    Die,
    Refuse,
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("vmpi-session-{}-{name}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Serve one job from `dir`.
fn serve(dir: &Path, then: Then) -> std::thread::JoinHandle<()> {
    let listener = UnixListener::bind(dir.join(SOCKET_NAME)).unwrap();
    let socket = dir.join(SOCKET_NAME);
    std::thread::spawn(move || {
        let mut connection = Connection::new(listener.accept().unwrap().0);
        let version = env!("CARGO_PKG_VERSION").to_string();
        let hello: Option<(Request, _)> = connection.receive().unwrap();
        assert!(matches!(hello, Some((Request::Hello { .. }, _))));
        connection.send(&Reply::Hello { version, protocol: PROTOCOL, pid: 4711 }, &[]).unwrap();
        let Some((Request::Submit { spec }, _)) = connection.receive().unwrap() else { panic!("no job") };
        let mut fds: Vec<OwnedFd> = Vec::new();
        while fds.len() < spec.fds as usize {
            let Some((Request::Fds { count }, more)) = connection.receive().unwrap() else { panic!("no descriptors") };
            assert_eq!(count as usize, more.len());
            fds.extend(more);
        }
        if let Then::Refuse = then {
            let reason = "5000 ranks need more processes than allowed".into();
            connection.send(&Reply::Refused { reason, code: 125 }, &[]).unwrap();
            return;
        }
        connection.send(&Reply::Submitted { job: 1 }, &[]).unwrap();
        let children = spawn(&spec, fds, &socket);
        let pids = children.iter().map(|child| child.id() as i32).collect();
        connection.send(&Reply::Started { pids }, &[]).unwrap();
        match then {
            Then::Die => drop(connection),
            _ => finish(&mut connection, &spec, children),
        }
    })
}

fn spawn(spec: &JobSpec, fds: Vec<OwnedFd>, socket: &Path) -> Vec<Child> {
    let mut fds = fds.into_iter();
    let mut stdin = fds.next();
    let rest: Vec<OwnedFd> = fds.collect();
    let mut children = Vec::new();
    let apps = spec.apps.iter().flat_map(|app| std::iter::repeat_n(app, app.ranks as usize));
    for (rank, app) in apps.enumerate() {
        let pair = if spec.stdio == Streams::PerRank { 2 * rank } else { 0 };
        let mut command = Command::new(&app.program);
        command.args(&app.argv[1..]).env_clear().envs(app.env.iter().cloned()).current_dir(&app.cwd);
        command.env("VMPI_RANK", rank.to_string()).env("VMPI_JOBID", "1").env("VMPI_SOCKET", socket);
        command.stdin(stdin.take().map_or(Stdio::null(), Stdio::from));
        command.stdout(rest[pair].try_clone().unwrap()).stderr(rest[pair + 1].try_clone().unwrap());
        children.push(command.spawn().unwrap());
    }
    children
}

fn finish(connection: &mut Connection, spec: &JobSpec, mut children: Vec<Child>) {
    use std::os::unix::process::ExitStatusExt;
    connection.stream().set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let mut ended = vec![None; children.len()];
    let mut cancelled = None;
    while ended.iter().any(Option::is_none) {
        match connection.receive::<Request>() {
            Ok(Some((Request::Cancel { reason, code, .. }, _))) => {
                cancelled = Some(Cause::Cancelled { reason, code });
                children.iter_mut().for_each(|child| drop(child.kill()));
            }
            Ok(None) => panic!("the launcher went"),
            _ => {}
        }
        for (rank, child) in children.iter_mut().enumerate() {
            if let (None, Ok(Some(status))) = (ended[rank], child.try_wait()) {
                let how = status.signal().map_or_else(|| Ended::Exited(status.code().unwrap()), Ended::Signaled);
                ended[rank] = Some(how);
                let pid = child.id() as i32;
                let rank = rank as u32;
                let end = RankEnd {
                    rank,
                    pid,
                    ended: how,
                    initialized: false,
                    finalized: false,
                    rtime_s: 0.0,
                    switches: 0,
                    why_killed: String::new(),
                };
                connection.send(&Reply::Ended { rank: end }, &[]).unwrap();
            }
        }
    }
    let failed = ended.iter().flatten().enumerate().find(|(_, end)| end.code() != 0);
    let cause = cancelled.unwrap_or(match failed {
        None => Cause::Success,
        Some((rank, ended)) => {
            let pid = children[rank].id() as i32;
            Cause::RankFailed { rank: rank as u32, pid, ended: *ended, finalized: false, initialized: false }
        }
    });
    let code = 0;
    let report = JobReport { job: 1, ranks: spec.ranks, v: spec.v, ..JobReport::default() };
    connection
        .send(&Reply::Finished { cause, code, report: Box::new(report), matrix: None, trace: None }, &[])
        .unwrap();
}

fn vmpirun(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmpirun"));
    command.env("VMPI_RUNTIME_DIR", dir).args(args).stdin(Stdio::null());
    command
}

fn run(name: &str, then: Then, args: &[&str]) -> Output {
    let scratch = Scratch::new(name);
    let daemon = serve(&scratch.0, then);
    let output = vmpirun(&scratch.0, args).output().unwrap();
    daemon.join().unwrap();
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn lines_of_ranks_stay_whole_and_none_is_lost() {
    let script = "i=0; while [ $i -lt 500 ]; do printf 'rank %s ' $VMPI_RANK; printf 'line %s\\n' $i; i=$((i+1)); done; printf end";
    let output = run("lines", Then::Wait, &["-n", "6", "-l", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    for rank in 0..6 {
        let lines: Vec<&str> =
            stdout.lines().filter(|line| line.starts_with(&format!("{rank}: rank {rank} line "))).collect();
        assert_eq!(lines.len(), 500);
        assert!(lines.iter().enumerate().all(|(i, line)| line.ends_with(&format!("line {i}"))));
        assert!(stdout.lines().any(|line| line == format!("{rank}: end")));
    }
}

#[test]
fn large_output_does_not_deadlock_and_streams_stay_apart() {
    let script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo oops >&2";
    let output = run("large", Then::Wait, &["-n", "3", "sh", "-c", script]);
    assert_eq!(output.stdout.len(), 3 * 3_000_001);
    assert_eq!(text(&output.stderr), "oops\noops\noops\n");
}

#[test]
fn exit_codes_and_sentences() {
    for (name, script, code, part) in [
        ("code", "exit $((VMPI_RANK * 7))", 7, "exited with code 7"),
        ("signal", "if [ $VMPI_RANK = 1 ]; then kill -SEGV $$; fi", 139, "SIGSEGV"),
    ] {
        let output = run(name, Then::Wait, &["-n", "2", "-print-all-exitcodes", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        let stderr = text(&output.stderr);
        assert!(stderr.contains(part) && stderr.contains("rank 1 (pid") && stderr.contains("RANK"), "{stderr}");
    }
}

#[test]
fn standard_input_goes_to_rank_zero_only() {
    let scratch = Scratch::new("stdin");
    let daemon = serve(&scratch.0, Then::Wait);
    let mut child = vmpirun(&scratch.0, &["-n", "3", "-l", "sh", "-c", "cat; echo done"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let mut lines: Vec<String> = text(&output.stdout).lines().map(str::to_string).collect();
    lines.sort();
    assert_eq!(lines, ["0: done", "0: hello", "1: done", "2: done"]);
    daemon.join().unwrap();
}

#[test]
fn the_daemons_death_ends_the_ranks() {
    let start = Instant::now();
    let output = run("death", Then::Die, &["-n", "2", "sh", "-c", "echo started; exec sleep 1000"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("vmpid (pid 4711) died"), "{}", text(&output.stderr));
    assert!(start.elapsed() < Duration::from_secs(500), "the ranks were not killed");
}

#[test]
fn a_refusal_is_passed_on() {
    let output = run("refuse", Then::Refuse, &["-n", "2", "true"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("5000 ranks"));
}

#[test]
fn interrupt_timeout_full_disk_and_closed_pipe() {
    let output = run("timeout", Then::Wait, &["-n", "2", "--timeout", "1", "sleep", "1000"]);
    assert_eq!(output.status.code(), Some(124));
    assert!(text(&output.stderr).contains("--timeout of 1 s"));

    let output =
        run("full", Then::Wait, &["-n", "2", "-outfile-pattern", "/dev/full", "sh", "-c", "echo x; exec sleep 1000"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(text(&output.stderr).contains("/dev/full: No space left"), "{}", text(&output.stderr));

    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let scratch = Scratch::new(signal);
        let daemon = serve(&scratch.0, Then::Wait);
        let mut child =
            vmpirun(&scratch.0, &["sh", "-c", "echo up; exec sleep 1000"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut up = [0u8; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
        Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(code));
        daemon.join().unwrap();
    }

    let scratch = Scratch::new("pipe");
    let daemon = serve(&scratch.0, Then::Wait);
    let mut child = vmpirun(&scratch.0, &["yes"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut some = [0u8; 10];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(141), String::new()));
    daemon.join().unwrap();
}

#[test]
fn files_per_rank_and_programs_with_their_own_environment() {
    let scratch = Scratch::new("mpmd");
    let daemon = serve(&scratch.0, Then::Wait);
    let dir = scratch.0.join("out");
    let output = vmpirun(
        &scratch.0,
        &[
            "--output",
            &format!("dir={}", dir.display()),
            "-n",
            "1",
            "-env",
            "A",
            "x",
            "sh",
            "-c",
            "echo $A",
            ":",
            "-n",
            "2",
            "-wdir",
            "/usr",
            "sh",
            "-c",
            "echo $A $PWD >&2",
        ],
    )
    .output()
    .unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(dir.join("rank.0/stdout")).unwrap(), "x\n");
    assert_eq!(fs::read_to_string(dir.join("rank.2/stderr")).unwrap(), "/usr\n");
    daemon.join().unwrap();
}

#[test]
fn raw_output_and_many_ranks() {
    let output = run("raw", Then::Wait, &["-n", "2", "--output", "raw", "echo", "hi"]);
    assert_eq!(text(&output.stdout), "hi\nhi\n");
    let output = run("many", Then::Wait, &["-n", "200", "sh", "-c", "echo $VMPI_RANK"]);
    let mut ranks: Vec<u32> = text(&output.stdout).lines().map(|line| line.parse().unwrap()).collect();
    ranks.sort_unstable();
    assert_eq!(ranks, (0..200).collect::<Vec<_>>());
}

#[test]
fn programs_without_mpi_are_explained_and_json_is_whole() {
    let output = run("copies", Then::Wait, &["-n", "2", "--json", "true"]);
    assert!(text(&output.stderr).contains("rank 0 of 1"), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema_version"], 1);
    assert_eq!(document["rank_ends"].as_array().unwrap().len(), 2);
    let output = run("script", Then::Wait, &["-n", "2", "sh", "-c", "true"]);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn errors_before_any_daemon() {
    let scratch = Scratch::new("early");
    // A copy has no vmpid beside it, whatever else was built. Made by cp: a file that this process has open for writing
    // could be inherited by another test's child and be busy (ETXTBSY).
    let copy = scratch.0.join("vmpirun");
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_vmpirun")).arg(&copy).status().unwrap().success());
    for (args, code, part) in [
        (&["-n", "2", "/no/such/program"][..], 127, "no such program"),
        (&["-n", "2", "/etc/passwd"], 126, "chmod +x"),
        (&["-n", "2", "/tmp"], 126, "directory"),
        (&["--cores", "4000", "true"], 2, "affinity mask"),
        (&["-host", "elsewhere", "--launcher-exec", "false", "true"], 125, "node elsewhere: its vmpid did not start"),
        (&["-host", "elsewhere:x", "true"], 2, "not a number of slots"),
        (&["-n", "2"], 2, "no program"),
        (&["true"], 125, "vmpid"),
    ] {
        let output = Command::new(&copy).env("VMPI_RUNTIME_DIR", &scratch.0).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{args:?} {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(part), "{args:?} {}", text(&output.stderr));
    }
}
