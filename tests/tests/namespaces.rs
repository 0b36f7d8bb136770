//! Ranks in namespaces of their own, as in a container for each: the same answers as outside.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use vmpi_tests::compile::{Mpi, made};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::Turn;
use vmpi_tests::scratch::Scratch;

/// What of MPI ranks need each other for: messages of all sizes and types, collective calls, windows, shared file pointers, other ranks of their own, memory that is
/// laid open.
const PROGRAMS: [(&str, &[&str]); 10] = [
    ("p2p.c", &[]),
    ("large.c", &[]),
    ("scattered.c", &[]),
    ("coll.c", &[]),
    ("rma_win.c", &[]),
    ("rma_sync.c", &[]),
    ("rma_accumulate.c", &[]),
    ("io_shared.c", &[]),
    ("spawn_basic.c", &[]),
    ("open_memory.c", &["plain"]),
];

/// Those that need each other's files and memory most.
const FEW: [(&str, &[&str]); 3] = [("large.c", &[]), ("rma_win.c", &[]), ("io_shared.c", &[])];

/// Run by a shell for each rank: `$0` is the program. `OUTSIDE` leaves rank 0 where it is.
const INSIDE: &str = r#"exec $WRAPPER "$0" "$@""#;
const OUTSIDE: &str = r#"[ "$VMPI_RANK" != 0 ] || exec "$0" "$@"; exec $WRAPPER "$0" "$@""#;

fn binary(name: &str) -> PathBuf {
    Turn::beside_others();
    made(name, Mpi::Openmpi)
}

/// Are such namespaces allowed here? If not, the test says so, and why.
fn allowed(wrapper: &str) -> bool {
    let mut words = wrapper.split_whitespace();
    let tried = Command::new(words.next().expect("a command")).args(words).arg("true").stdin(Stdio::null()).output();
    let why = match &tried {
        Ok(output) if output.status.success() => return true,
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_string(),
        Err(error) => error.to_string(),
    };
    eprintln!("skipped: {wrapper} is not allowed here: {why}");
    false
}

fn run(wrapper: &str, shell: &str, (name, args): (&str, &[&str]), variables: &[(&str, &str)]) -> String {
    let binary = binary(name);
    let scratch = Scratch::new("apart-cwd");
    let mut run = Vmpirun::new("apart").args(["-n", "3", "-V", "2", "sh", "-c", shell]).arg(binary).args(args);
    for (key, value) in variables {
        run = run.env(key, value);
    }
    let got = run.env("WRAPPER", wrapper).cwd(scratch.path()).deadline(Duration::from_secs(300)).run();
    assert_eq!(got.code, 0, "{wrapper} {name} {variables:?}: {} {}", got.stdout, got.stderr);
    got.stdout
}

fn alike(wrapper: &str, programs: &[(&str, &[&str])]) {
    if !allowed(wrapper) {
        return;
    }
    for program in programs {
        let wanted = run("", INSIDE, *program, &[]);
        for (shell, variables) in [(INSIDE, &[][..]), (OUTSIDE, &[("VMPI_MAP_MEMORY", "1")])] {
            let got = run(wrapper, shell, *program, variables);
            // How much of it is laid open is theirs.
            let is_theirs = |line: &&str| line.ends_with(" memory lies in files");
            let said = |text: &str| text.lines().filter(|l| !is_theirs(l)).collect::<Vec<_>>().join("\n");
            assert_eq!(said(&got), said(&wanted), "{wrapper} {program:?} {variables:?}");
        }
    }
}

#[test]
fn user_namespaces() {
    alike("unshare -U -r", &FEW);
}

#[test]
fn pid_namespaces() {
    alike("unshare -p -f --mount-proc", &FEW);
}

#[test]
fn pid_namespaces_with_the_proc_of_the_host() {
    alike("unshare -p -f", &PROGRAMS);
}

#[test]
fn all_namespaces_of_a_rootless_container() {
    alike("unshare -U -r -p -f --mount-proc -n -i -u -C", &PROGRAMS);
}

#[test]
fn network_mount_and_ipc_namespaces() {
    alike("unshare -n -m -i", &FEW);
}

/// The job of an ordinary user, who owns the namespaces and nothing else.
#[test]
fn containers_of_an_ordinary_user() {
    let wrapper = "setpriv --reuid 65534 --regid 65534 --clear-groups";
    let inside = "unshare -U -r -p -f --mount-proc";
    if !allowed(wrapper) || !allowed(&format!("{wrapper} {inside}")) {
        return;
    }
    for name in ["large.c", "rma_win.c", "io_shared.c"] {
        let (binary, scratch) = (binary(name), Scratch::new("apart-user-home"));
        std::os::unix::fs::chown(scratch.path(), Some(65534), Some(65534)).expect("root may");
        let words: Vec<&str> = wrapper.split_whitespace().skip(1).collect();
        let run = Vmpirun::wrapped("apart-user", "setpriv", &words).env("VMPI_RUNTIME_DIR", scratch.path());
        let run = run.args(["-n", "3", "-V", "2", "sh", "-c", OUTSIDE]).arg(binary).env("WRAPPER", inside);
        let got = run.cwd(scratch.path()).deadline(Duration::from_secs(120)).run();
        assert_eq!(got.code, 0, "{name}: {} {}", got.stdout, got.stderr);
    }
}

/// The whole job in a PID namespace, under the /proc of the host: pids are right, and mean other processes there.
#[test]
fn a_job_in_a_pid_namespace_with_the_proc_of_the_host() {
    if !allowed("unshare -p -f") {
        return;
    }
    for (name, args) in FEW {
        let wanted = run("", INSIDE, (name, args), &[]);
        let (binary, scratch) = (binary(name), Scratch::new("apart-cwd"));
        let run = Vmpirun::wrapped("apart-job", "unshare", &["-p", "-f"]).args(["-n", "3", "-V", "2"]);
        let got = run.arg(binary).args(args).cwd(scratch.path()).deadline(Duration::from_secs(120)).run();
        assert_eq!((got.code, got.stdout), (0, wanted), "{name}: {}", got.stderr);
    }
}

/// Before, messages and windows reached any process that had a rank's number, and was of its group or had its environment.
#[test]
fn another_process_with_the_number_of_a_rank_is_left_alone() {
    for wrapper in ["unshare -p -f", "unshare -p -f --mount-proc", "unshare -U -r -p -f --mount-proc"] {
        if !allowed(wrapper) {
            continue;
        }
        for variables in [&[][..], &[("VMPI_MAP_MEMORY", "1")], &[("VMPI_SINGLE_COPY", "0")]] {
            let binary = binary("decoy.c");
            let mut run = Vmpirun::new("decoy").args(["-n", "2", "sh", "-c", OUTSIDE]).arg(binary);
            for (key, value) in variables {
                run = run.env(key, value);
            }
            let got = run.env("WRAPPER", wrapper).run();
            let told = format!("{wrapper} {variables:?}: {}", got.stderr);
            assert_eq!((got.code, &*got.stdout), (0, "[0] decoy\n[1] decoy\nall checks hold\n"), "{told}");
        }
    }
}

/// Ring after ring through pieces, each byte looked at, with ranks that are all process 1.
#[test]
fn rings_of_ranks_that_all_are_process_1() {
    if !allowed("unshare -p -f") {
        return;
    }
    let binary = binary("ring.c");
    for (ranks, bytes) in [("2", "70000"), ("5", "300000"), ("8", "5000"), ("3", "1500000")] {
        for pieces in ["0", "1"] {
            let run = Vmpirun::new("rings").args(["-n", ranks, "-V", "3", "unshare", "-p", "-f"]).arg(&binary);
            let got = run.args(["30", bytes]).env("VMPI_SINGLE_COPY", pieces).run();
            let last = got.stdout.lines().last();
            assert_eq!((got.code, last), (0, Some("all checks hold")), "{ranks} ranks, {bytes} bytes: {}", got.stderr);
        }
    }
}

/// A rank that does not see its daemon's socket is told what must be seen.
#[test]
fn a_private_tmp_gets_a_sentence() {
    if !allowed("unshare -m") {
        return;
    }
    let binary = binary("ring.c");
    let run = Vmpirun::new("private-tmp");
    let shell = format!("mount -t tmpfs none {} && exec \"$0\"", run.runtime_dir().display());
    let got = run.args(["-n", "2", "unshare", "-m", "sh", "-c", &shell]).arg(binary).run();
    assert_ne!(got.code, 0);
    assert!(got.stderr.contains("it must see the runtime directory"), "{}", got.stderr);
    assert!(got.stderr.contains("VMPI_RUNTIME_DIR"), "{}", got.stderr);
}
