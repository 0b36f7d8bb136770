//! Nodes that cannot be part of a job: each has a sentence with its name, and nothing is left anywhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vmpi_fabric::frame::{MAX_BODY_BYTES, VERSION, head};
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::nodes::Nodes;
use vmpi_tests::place::room;

/// A launcher that enters nodes, and on the second one changes what the launcher says to it.
const TAMPER: &str = r#"#!/usr/bin/env python3
import re, subprocess, sys, threading
enter, node = "ENTER", sys.argv[1]
child = subprocess.Popen([enter, *sys.argv[1:]], stdin=subprocess.PIPE)
while True:
    data = sys.stdin.buffer.read1(1 << 20)
    if not data:
        break
    if node.endswith("b"):
        data = CHANGE
    try:
        child.stdin.write(data)
        child.stdin.flush()
    except BrokenPipeError:
        break
child.stdin.close()
sys.exit(child.wait())
"#;

/// A launcher that has the job's key and stands between the two carriers.
const IMPOSTOR: &str = include_str!("../data/impostor.py");

/// A launcher that lets a crowd of strangers connect to the first node before the second one does.
const STRANGERS: &str = include_str!("../data/strangers.py");

/// This process's own launcher, removed when dropped.
struct Launcher(PathBuf);

impl Launcher {
    fn new(name: &str, script: &str) -> Launcher {
        let path = room("").join(format!("launcher-{name}-{}", std::process::id()));
        fs::write(&path, script).expect("target/ is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is ours");
        Launcher(path)
    }

    /// `vmpirun` on the first node, for a job on both that this starts.
    fn vmpirun(&self, nodes: &Nodes, name: &str) -> Vmpirun {
        let run = Vmpirun::on_node(name, &nodes.enter(), &nodes.a);
        run.args(["--host", &format!("{},{}", nodes.a, nodes.b), "--launcher-exec"]).arg(&self.0)
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn tampered(nodes: &Nodes, name: &str, change: &str) -> Outcome {
    let script = TAMPER.replace("ENTER", &nodes.enter().display().to_string()).replace("CHANGE", change);
    let launcher = Launcher::new(name, &script);
    launcher.vmpirun(nodes, name).args(["-n", "2", "true"]).deadline(Duration::from_secs(60)).run()
}

/// A running job, one of whose carriers gets `bytes` from its authenticated peer: how it ends.
fn intruded(nodes: &Nodes, name: &str, to: usize, bytes: &[u8]) -> Outcome {
    let go = room("cwd").join(format!("go-{name}-{}", std::process::id()));
    let enter = nodes.enter().display().to_string();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts =
        [("@ENTER@", &enter), ("@GO@", &go.display().to_string()), ("@TO@", &to.to_string()), ("@BYTES@", &hex)];
    let script = parts.iter().fold(IMPOSTOR.to_string(), |script, (mark, part)| script.replace(mark, part));
    let launcher = Launcher::new(name, &script);
    let run = launcher.vmpirun(nodes, name).args(["--fabric", "tcp", "-n", "4"]);
    let mut job = run.arg(program("deaths.c", Mpi::Openmpi)).arg("recv").deadline(Duration::from_secs(60)).start();
    job.ready(4);
    let since = Instant::now();
    fs::write(&go, "").expect("target/ is writable");
    let got = job.finish();
    let took = since.elapsed();
    let _ = fs::remove_file(&go);
    // Longer than the silence after which a node is lost: then its bytes were not what ended the job.
    assert!(took < vmpi_fabric::fabric::SILENCE, "{name}: after {took:?}\n{got:?}");
    got
}

fn says(got: &Outcome, parts: &[&str]) {
    assert!(got.code == 125 && parts.iter().all(|part| got.stderr.contains(part)), "{parts:?}\n{got:?}");
}

#[test]
fn an_unknown_host_is_named() {
    let nodes = Nodes::beside_others("unknown");
    let hosts = format!("{},nowhere.invalid", nodes.a);
    for launcher in [None, Some(nodes.enter())] {
        let mut run = Vmpirun::on_node("unknown", &nodes.enter(), &nodes.a).args(["--host", &hosts]);
        if let Some(enter) = launcher {
            run = run.arg("--launcher-exec").arg(enter);
        }
        let got = run.args(["-n", "2", "true"]).run();
        says(&got, &["node nowhere.invalid: its vmpid did not start"]);
    }
}

#[test]
fn another_version_is_named() {
    let nodes = Nodes::beside_others("version");
    let version = env!("CARGO_PKG_VERSION");
    let other = "9".repeat(version.len());
    let change = format!(r#"data.replace(b'"version":"{version}"', b'"version":"{other}"')"#);
    let got = tampered(&nodes, "version", &change);
    says(&got, &[&format!("node {}: its vmpi is version {version}", nodes.b), &format!("vmpirun's is {other}")]);
}

#[test]
fn a_wrong_key_is_named() {
    let nodes = Nodes::beside_others("key");
    let change = r#"re.sub(rb'"key":"([0-9a-f]{64})"', lambda m: b'"key":"' + m[1][::-1] + b'"', data)"#;
    let got = tampered(&nodes, "key", change);
    says(&got, &["it does not have this job's key", "node vmpit"]);
}

/// Who holds the key can still not say what it likes.
#[test]
fn frames_that_cannot_be_end_the_job_with_their_nodes_name() {
    let nodes = Nodes::beside_others("frames");
    let of = |kind: u8, body: &[u8]| [&head(kind, body.len()), body].concat::<u8>();
    let long = (MAX_BODY_BYTES as u32 + 1).to_le_bytes();
    let nowhere = [&[255; 4][..], &[1, 0], &[0; 30]].concat();
    let cases = [
        ("unknown", of(99, b"?"), "sent a frame of kind 99, which does not exist"),
        ("fabrics", of(7, &[]), "sent a frame of kind 7, which does not exist"),
        ("long", [&long[..], &[16, VERSION, 0, 0]].concat(), "a frame of 262145 bytes is longer than 262144 allowed"),
        ("huge", vec![255, 255, 255, 255, 16, VERSION, 0, 0], "a frame of 4294967295 bytes is longer than"),
        ("version", vec![0, 0, 0, 0, 16, VERSION + 1, 0, 0], "a frame of version"),
        ("short", of(16, &[1, 2, 3]), "sent a frame of kind 16 with 3 bytes"),
        ("nowhere", of(16, &nowhere), "sent a message for rank 4294967295, which is not here"),
        ("data", of(19, &[9, 9, 9, 9, 1]), "sent data for a transfer that does not exist"),
        ("quit", of(23, &[]), "the job has ended on node"),
    ];
    for (at, (name, bytes, sentence)) in cases.into_iter().enumerate() {
        // By turns to each of them, from the other.
        let to = at % 2;
        let from = [&nodes.b, &nodes.a][to];
        says(&intruded(&nodes, name, to, &bytes), &[sentence, &format!("node {from}")]);
    }
}

/// Far more connections that say nothing than there is room for, before the nodes of a job find each other.
#[test]
fn strangers_keep_no_node_out() {
    let nodes = Nodes::beside_others("strangers");
    let script = STRANGERS.replace("@ENTER@", &nodes.enter().display().to_string()).replace("@COUNT@", "600");
    let launcher = Launcher::new("strangers", &script);
    let run = launcher.vmpirun(&nodes, "strangers").args(["--fabric", "tcp", "-n", "4"]);
    let got = run.arg(program("ring.c", Mpi::Openmpi)).args(["20", "8"]).deadline(Duration::from_secs(60)).run();
    assert!(got.code == 0, "{got:?}");
}

#[test]
fn demanded_verbs_without_a_device_name_the_node() {
    let nodes = Nodes::beside_others("noverbs");
    let got = nodes.vmpirun("noverbs").args(["--fabric", "verbs:none7", "-n", "2", "true"]).run();
    says(&got, &["on node vmpit", "--fabric verbs:none7: "]);
    let got = nodes.vmpirun("badfabric").args(["--fabric", "carrier-pigeon", "-n", "2", "true"]).run();
    assert!(
        got.code == 2 && got.stderr.contains("`carrier-pigeon` is not one of auto, tcp, tcp,seal, verbs"),
        "{got:?}"
    );
}

/// The Kubernetes MPI operator tells Open MPI's launcher by variables where the workers are and how they are reached.
#[test]
fn the_operators_variables_lead_to_the_workers() {
    let nodes = Nodes::beside_others("operator");
    let file = room("cwd").join(format!("operator-{}", std::process::id()));
    fs::write(&file, format!("{} slots=1\n{} slots=2\n", nodes.a, nodes.b)).expect("target/ is writable");
    for (hosts, agent) in [
        ("OMPI_MCA_orte_default_hostfile", "OMPI_MCA_plm_rsh_agent"),
        ("HYDRA_HOST_FILE", "HYDRA_LAUNCHER_EXEC"),
        ("I_MPI_HYDRA_HOST_FILE", "I_MPI_HYDRA_BOOTSTRAP_EXEC"),
    ] {
        let run = || {
            let run = Vmpirun::on_node("operator", &nodes.enter(), &nodes.a);
            run.env(hosts, &file).env(agent, nodes.enter())
        };
        let got = run().args(["sh", "-c", "hostname"]).run();
        let mut lines: Vec<&str> = got.stdout.lines().collect();
        lines.sort_unstable();
        assert!(got.code == 0 && lines == [&nodes.a, &nodes.b, &nodes.b], "{got:?}");
        let got = run().args(["--dry-run", "true"]).run();
        let told = got.stdout.clone() + &got.stderr;
        assert!(
            got.code == 0 && told.contains(&format!("({hosts})")) && told.contains(&format!("({agent})")),
            "{got:?}"
        );
    }
    let _ = fs::remove_file(&file);
}
