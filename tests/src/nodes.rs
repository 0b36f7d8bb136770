//! Two nodes (or three) on one machine: network namespaces with a cable between them (or a switch), each with a host name, a runtime directory and a CPU of its own.

use crate::case::first_difference;
use crate::compile::{Mpi, made};
use crate::job::{Outcome, Vmpirun, path_with};
use crate::leftovers::{Process, eventually, processes_of};
use crate::oracle;
use crate::place::{Turn, bin_dir, top};
use crate::scratch::Scratch;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

const PREFIX: &str = "vmpit";

/// Enter a node: network namespace, host name, runtime directory, CPU. `$BASE/hide` names a directory that the second node does not have.
const ENTER: &str = r#"#!/bin/sh
node=$1; shift
BASE=${VMPI_TEST_BASE:-$VMPI_RUNTIME_DIR}
export VMPI_TEST_BASE="$BASE" VMPI_RUNTIME_DIR="$BASE/$node"
# An RDMA device for each node, where there are (`verbs_vm.rs`).
case $node in *b) end=1; named=$BASE/device-b;; *) end=0; named=$BASE/device-a;; esac
if [ -e /sys/class/infiniband/rxe$end ]; then VMPI_VERBS_DEVICE=rxe$end; [ ! -f "$named" ] || VMPI_VERBS_DEVICE=$(cat "$named"); export VMPI_VERBS_DEVICE; fi
# Of all CPUs: who starts the second node is bound to that of the first.
case $node in *b) [ "$(nproc --all)" -eq 1 ] && cpu=0 || cpu=1;; *) cpu=0;; esac
# A mount namespace only where something is hidden: in a chroot whose / is no mount point there is none to be had.
case $node in *b) [ ! -f "$BASE/hide" ] || mounts=--mount;; esac
exec nsenter --net="/run/netns/$node" unshare --uts $mounts sh -c '
    node=$1; cpu=$2; mounts=$3; shift 3
    hostname "$node"
    if [ -n "$mounts" ]; then mount -t tmpfs none "$(cat "$VMPI_TEST_BASE/hide")"; fi
    exec taskset -c $cpu "$@"' sh "$node" "$cpu" "$mounts" "$@"
"#;

/// Removed when dropped.
pub struct Nodes {
    scratch: Scratch,
    pub a: String,
    pub b: String,
    /// The third one, and where their cables meet.
    more: Vec<String>,
}

/// sshd wants a user of its own, which is there only where it is installed: what precedes its command so that it sees one.
fn with_user_sshd(dir: &Path) -> Vec<OsString> {
    const SEE: &str = r#"mount --make-rprivate / 2>/dev/null; mount --bind "$1" /etc/passwd; shift; exec "$@""#;
    let users = fs::read_to_string("/etc/passwd").expect("users are listed");
    if users.lines().any(|line| line.starts_with("sshd:")) {
        return Vec::new();
    }
    let more = dir.join("passwd");
    fs::write(&more, format!("{}\nsshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n", users.trim_end()))
        .expect("the scratch directory is writable");
    ["unshare", "--mount", "sh", "-c", SEE, "sh"].map(OsString::from).into_iter().chain([more.into()]).collect()
}

fn ip(args: &str) {
    run(Command::new("ip").args(args.split_whitespace()));
}

/// `ip` in a node. (Its own `-n` wants a mount namespace, which a chroot whose / is no mount point does not have.)
fn ip_in(node: &str, args: &str) {
    run(Command::new("nsenter").arg(format!("--net=/run/netns/{node}")).arg("ip").args(args.split_whitespace()));
}

fn run(command: &mut Command) {
    let output = command.output();
    let output = output.unwrap_or_else(|e| panic!("{command:?} does not start: {e}; run `cargo xtask setup` first"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Where network namespaces cannot be had `cargo xtask test` leaves these tests out by their names.
fn assert_named() {
    let test = std::thread::current().name().map(str::to_owned).unwrap_or_default();
    let binary = std::env::current_exe().ok();
    let binary = binary.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())).unwrap_or_default();
    let named = binary.starts_with("nodes") || binary.starts_with("verbs") || test.contains("nodes");
    assert!(named, "{test} needs two nodes: its name must contain `nodes`, or it belongs into a file nodes*.rs");
}

impl Nodes {
    /// # Panics
    /// If this machine does not allow it.
    pub fn new(name: &str) -> Nodes {
        assert_named();
        sweep();
        let scratch = Scratch::new(&format!("nodes-{name}"));
        let pid = std::process::id();
        let nodes = Nodes { scratch, a: format!("{PREFIX}{pid}a"), b: format!("{PREFIX}{pid}b"), more: Vec::new() };
        fs::write(nodes.enter(), ENTER).expect("the scratch directory is writable");
        fs::set_permissions(nodes.enter(), fs::Permissions::from_mode(0o700)).expect("it is ours");
        let (a, b) = (&nodes.a, &nodes.b);
        ip(&format!("netns add {a}"));
        ip(&format!("netns add {b}"));
        ip(&format!("link add cable netns {a} type veth peer name cable netns {b}"));
        for (node, address) in [(a, 1), (b, 2)] {
            ip_in(node, &format!("addr add 10.99.0.{address}/24 dev cable"));
            ip_in(node, "link set lo up");
            ip_in(node, "link set cable up");
        }
        nodes
    }

    /// As `new`, for tests whose turn may be shared ([`Turn::beside_others`]).
    ///
    /// # Panics
    /// If this machine does not allow it.
    pub fn beside_others(name: &str) -> Nodes {
        Turn::beside_others();
        Nodes::new(name)
    }

    /// As `new`, with a third node: all are connected to a switch.
    ///
    /// # Panics
    /// If this machine does not allow it.
    pub fn three(name: &str) -> Nodes {
        let mut nodes = Nodes::new(name);
        let pid = std::process::id();
        let (c, switch) = (format!("{PREFIX}{pid}c"), format!("{PREFIX}{pid}s"));
        nodes.more = vec![c.clone(), switch.clone()];
        ip(&format!("netns add {c}"));
        ip(&format!("netns add {switch}"));
        ip_in(&switch, "link add switch type bridge");
        ip_in(&switch, "link set switch up");
        // Instead of the cable that the two have.
        ip_in(&nodes.a, "link del cable");
        for (node, address) in [(&nodes.a, 1), (&nodes.b, 2), (&c, 3)] {
            ip(&format!("link add cable netns {node} type veth peer name port{address} netns {switch}"));
            ip_in(&switch, &format!("link set port{address} master switch up"));
            ip_in(node, &format!("addr add 10.99.0.{address}/24 dev cable"));
            ip_in(node, "link set lo up");
            ip_in(node, "link set cable up");
        }
        nodes
    }

    /// The command that enters a node, also for `--launcher-exec`.
    pub fn enter(&self) -> PathBuf {
        self.scratch.path().join("enter")
    }

    /// `vmpirun` on the first node, for a job on both.
    pub fn vmpirun(&self, name: &str) -> Vmpirun {
        let run = Vmpirun::on_node(name, &self.enter(), &self.a);
        let third = self.more.first().map_or_else(String::new, |c| format!(",{c}"));
        let hosts = format!("{},{}{third}", self.a, self.b);
        run.args(["--host", &hosts, "--launcher-exec"]).arg(self.enter())
    }

    /// A real sshd on the second node, whose sessions find the runtime directory below `base`; and the `PATH` with an ssh that knows it.
    ///
    /// # Panics
    /// If openssh is not installed or sshd does not come up.
    pub fn sshd(&self, base: &Path) -> (Sshd, OsString) {
        let dir = self.scratch.path();
        let unpacked = top().join("target/packages/openssh-server");
        let sshd = unpacked.join("usr/sbin/sshd");
        assert!(sshd.is_file(), "no {}: run `cargo xtask setup` first", sshd.display());
        let at = |name: &str| dir.join(name).display().to_string();
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]).status();
            assert!(
                made.is_ok_and(|status| status.success()),
                "ssh-keygen does not work; run `cargo xtask setup` first"
            );
        }
        let base = base.display();
        let server = format!(
            "ListenAddress 10.99.0.2\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n\
             SetEnv VMPI_TEST_BASE={base} VMPI_RUNTIME_DIR={base}/{}\n{}",
            at("host"),
            at("user.pub"),
            self.b,
            its_parts(&unpacked)
        );
        let client = format!(
            "Host {}\n HostName 10.99.0.2\n IdentityFile {}\n StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n",
            self.b,
            at("user")
        );
        let ssh = format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", at("ssh_config"));
        fs::create_dir_all(dir.join("bin")).expect("the scratch directory is writable");
        for (name, text) in [("sshd_config", &server), ("ssh_config", &client), ("bin/ssh", &ssh)] {
            fs::write(dir.join(name), text).expect("the scratch directory is writable");
        }
        fs::set_permissions(dir.join("bin/ssh"), fs::Permissions::from_mode(0o700)).expect("it is ours");
        let _ = fs::create_dir_all("/run/sshd");
        let child = Command::new(self.enter())
            .arg(&self.b)
            .args(with_user_sshd(dir))
            .arg(&sshd)
            .args(["-D", "-f", &at("sshd_config")])
            .env("VMPI_RUNTIME_DIR", dir)
            .spawn()
            .expect("sshd starts");
        let up = || {
            Command::new(self.enter())
                .args([&self.a, &at("bin/ssh"), &self.b, "true"])
                .env("VMPI_RUNTIME_DIR", dir)
                .output()
        };
        assert!(
            eventually(Duration::from_secs(20), || up().is_ok_and(|o| o.status.success())),
            "sshd does not answer: {:?}",
            up()
        );
        (Sshd(child), path_with(&dir.join("bin")))
    }

    /// `vmpictl` on a node, where `runtime_dir` is the job's.
    ///
    /// # Panics
    /// If it does not start.
    pub fn vmpictl(&self, runtime_dir: &Path, node: &str, args: &[&str]) -> Outcome {
        let mut command = Command::new(self.enter());
        command.arg(node).arg(bin_dir().join("vmpictl")).args(args).env("VMPI_RUNTIME_DIR", runtime_dir);
        Outcome::of(&command.output().expect("vmpictl starts"))
    }

    /// Pull the cable.
    pub fn cut(&self) {
        ip_in(&self.b, "link set cable down");
    }
}

/// Where an sshd that is not installed finds what it executes: from OpenSSH 9.8 on it is several programs.
fn its_parts(unpacked: &Path) -> String {
    let parts = [("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth")];
    let there = |(option, name): (&str, &str)| {
        let path = unpacked.join("usr/lib/openssh").join(name);
        path.is_file().then(|| format!("{option} {}\n", path.display()))
    };
    parts.into_iter().filter_map(there).collect()
}

/// Ended when dropped.
pub struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in [&self.a, &self.b].into_iter().chain(&self.more) {
            let _ = Command::new("ip").args(["netns", "del", node]).output();
        }
    }
}

/// Remove the namespaces of test processes that are dead.
fn sweep() {
    for entry in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let owner =
            name.strip_prefix(PREFIX).and_then(|rest| rest.trim_end_matches(['a', 'b', 'c', 's']).parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = Command::new("ip").args(["netns", "del", &name]).output();
        }
    }
}

/// The processes of a job that run on `node`, by their runtime directory: those whose command line contains `what`.
///
/// # Panics
/// If there is none after a while.
pub fn find(runtime_dir: &Path, node: &str, what: &str) -> Vec<Process> {
    let below = runtime_dir.join(node);
    let found = || processes_of(&below).into_iter().filter(|p| p.command.contains(what)).collect::<Vec<Process>>();
    assert!(
        eventually(Duration::from_secs(10), || !found().is_empty()),
        "no process {what} on {node}: {:?}",
        processes_of(runtime_dir)
    );
    found()
}

/// The lines of a text, sorted.
pub fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// On `ranks` ranks of two nodes a program prints what it does under the real MPI, in whatever order.
///
/// # Panics
/// If it does not.
pub fn same(nodes: &Nodes, name: &str, mpi: Mpi, ranks: u32, flags: &[&str], args: &[&str]) {
    // Of its own: others may write files of the same names.
    let cwd = Scratch::new("same");
    let binary = made(name, mpi);
    let wanted = oracle::ask(mpi, &binary, ranks, args, &[], cwd.path());
    let run = nodes.vmpirun(name).args(["-n", &ranks.to_string(), "-V", "3"]).args(flags).arg(&binary).args(args);
    let got = run.cwd(cwd.path()).deadline(Duration::from_secs(120)).run();
    let told = format!("{name} {args:?} on {ranks} ranks of two nodes {flags:?}, built for {}", mpi.name());
    let (have, want) = (sorted(&got.stdout), sorted(&wanted.stdout));
    assert!(
        got.code == wanted.code && have == want,
        "{told}: exit code {} (the real MPI: {})\n{}\n--- stderr\n{}",
        got.code,
        wanted.code,
        first_difference(&have, &want),
        got.stderr
    );
}
