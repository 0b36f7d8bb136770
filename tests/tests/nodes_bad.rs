//! Nodes that cannot be part of a job: each has a sentence with its name, and nothing is left anywhere.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
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

fn tampered(nodes: &Nodes, name: &str, change: &str) -> Outcome {
    let path: PathBuf = room("").join(format!("tamper-{name}-{}", std::process::id()));
    let script = TAMPER.replace("ENTER", &nodes.enter().display().to_string()).replace("CHANGE", change);
    fs::write(&path, script).expect("target/ is writable");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is ours");
    let run = Vmpirun::on_node(name, &nodes.enter(), &nodes.a).args(["--host", &format!("{},{}", nodes.a, nodes.b)]);
    let got = run.arg("--launcher-exec").arg(&path).args(["-n", "2", "true"]).deadline(Duration::from_secs(60)).run();
    let _ = fs::remove_file(&path);
    got
}

fn says(got: &Outcome, parts: &[&str]) {
    assert!(got.code == 125 && parts.iter().all(|part| got.stderr.contains(part)), "{parts:?}\n{got:?}");
}

#[test]
fn an_unknown_host_is_named() {
    let nodes = Nodes::new("unknown");
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
    let nodes = Nodes::new("version");
    let version = env!("CARGO_PKG_VERSION");
    let other = "9".repeat(version.len());
    let change = format!(r#"data.replace(b'"version":"{version}"', b'"version":"{other}"')"#);
    let got = tampered(&nodes, "version", &change);
    says(&got, &[&format!("node {}: its vmpi is version {version}", nodes.b), &format!("vmpirun's is {other}")]);
}

#[test]
fn a_wrong_key_is_named() {
    let nodes = Nodes::new("key");
    let change = r#"re.sub(rb'"key":"([0-9a-f]{64})"', lambda m: b'"key":"' + m[1][::-1] + b'"', data)"#;
    let got = tampered(&nodes, "key", change);
    says(&got, &["it does not have this job's key", "node vmpit"]);
}

#[test]
fn demanded_verbs_without_a_device_name_the_node() {
    let nodes = Nodes::new("noverbs");
    let got = nodes.vmpirun("noverbs").args(["--fabric", "verbs:none7", "-n", "2", "true"]).run();
    says(&got, &["on node vmpit", "--fabric verbs:none7: "]);
    let got = nodes.vmpirun("badfabric").args(["--fabric", "carrier-pigeon", "-n", "2", "true"]).run();
    assert!(got.code == 2 && got.stderr.contains("`carrier-pigeon` is not one of auto, tcp, verbs"), "{got:?}");
}

/// The Kubernetes MPI operator tells Open MPI's launcher by variables where the workers are and how they are reached.
#[test]
fn the_operators_variables_lead_to_the_workers() {
    let nodes = Nodes::new("operator");
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
