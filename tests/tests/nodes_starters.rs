//! Batch systems' own ways to start vmpid on a node of the job, by stand-ins that do what the real commands are documented (and seen) to do with their
//! arguments and streams; the environments are those of `tools/src/nodes/batch/tests.rs`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun, path_with};
use vmpi_tests::nodes::Nodes;

/// LSF's: `blaunch HOST COMMAND ...` in a job.
const BLAUNCH: &str = "#!/bin/sh\n[ -n \"$LSB_JOBID\" ] || exit 255\nexec ENTER \"$@\"\n";
/// Grid Engine's, in a job with a parallel environment.
const QRSH: &str =
    "#!/bin/sh\n[ \"$1 $2\" = '-inherit -V' ] && [ -n \"$JOB_ID\" ] || exit 1\nshift 2; exec ENTER \"$@\"\n";
/// ssh's and OAR's: what follows the host is for a shell there.
const SSH: &str =
    "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nnode=$2; shift 2; exec ENTER \"$node\" sh -c \"$*\"\n";
/// Flux's prints what it is sent until the first zero byte, line by line; what it prints on standard output is kept until a block is full.
const FLUX: &str = r#"#!/usr/bin/python3
import subprocess, sys, threading
hosts = "HOSTS".split(",")
if sys.argv[1] == "getattr":
    print({"hostlist": ",".join(hosts), "jobid": "f2Ab"}[sys.argv[2]])
    sys.exit()
assert sys.argv[1:3] == ["exec", "--rank"], sys.argv
remote = subprocess.Popen(["ENTER", hosts[int(sys.argv[3])]] + sys.argv[4:], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
def passed(of, to, at_once):
    for line in of:
        to.write(line.split(b"\0")[0])
        if at_once: to.flush()
both = [threading.Thread(target=passed, args=end) for end in
        ((remote.stdout, sys.stdout.buffer, False), (remote.stderr, sys.stderr.buffer, True))]
for end in both: end.start()
for end in both: end.join()
sys.exit(remote.wait())
"#;

struct Site {
    nodes: Nodes,
    bin: PathBuf,
}

impl Site {
    /// Two nodes, the batch systems' commands, and `nodefile`: a line for each slot.
    fn new() -> Site {
        let nodes = Nodes::beside_others("starters");
        let bin = nodes.enter().with_file_name("bin");
        fs::create_dir(&bin).expect("the scratch directory is writable");
        let (enter, hosts) = (nodes.enter().display().to_string(), format!("{},{}", nodes.a, nodes.b));
        for (name, text) in [("blaunch", BLAUNCH), ("qrsh", QRSH), ("ssh", SSH), ("oarsh", SSH), ("flux", FLUX)] {
            let path = bin.join(name);
            fs::write(&path, text.replace("ENTER", &enter).replace("HOSTS", &hosts)).expect("it is writable");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is ours");
        }
        let site = Site { nodes, bin };
        let (a, b) = (&site.nodes.a, &site.nodes.b);
        fs::write(site.file("nodefile"), format!("{a}\n{b}\n")).expect("it is writable");
        fs::write(site.file("hostfile"), format!("{a} 1 all.q@{a} UNDEFINED\n{b} 1 all.q@{b} UNDEFINED\n"))
            .expect("it is writable");
        site
    }

    fn file(&self, name: &str) -> String {
        self.bin.join(name).display().to_string()
    }

    /// What a job of each system finds in its environment.
    fn systems(&self) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
        let slots = format!("{} 1 {} 1", self.nodes.a, self.nodes.b);
        let text = |text: &str| text.to_string();
        vec![
            ("blaunch", vec![("LSB_JOBID", text("99")), ("LSB_MCPU_HOSTS", slots)]),
            ("qrsh", vec![("JOB_ID", text("3")), ("NSLOTS", text("2")), ("PE_HOSTFILE", self.file("hostfile"))]),
            ("oarsh", vec![("OAR_JOB_ID", text("12")), ("OAR_NODEFILE", self.file("nodefile"))]),
            ("ssh", vec![("PBS_JOBID", text("1234.head")), ("PBS_NODEFILE", self.file("nodefile"))]),
            ("flux exec", vec![("FLUX_URI", text("local:///tmp/flux-x/local-0"))]),
        ]
    }

    fn run(&self, variables: &[(&str, String)], arguments: &[&str]) -> Outcome {
        let run = Vmpirun::on_node("starters", &self.nodes.enter(), &self.nodes.a).args(arguments);
        let run = run.env("PATH", path_with(&self.bin)).deadline(Duration::from_secs(120));
        variables.iter().fold(run, |run, (name, value)| run.env(name, value)).run()
    }
}

#[test]
fn batch_systems_reach_their_nodes_by_their_own_commands() {
    let site = Site::new();
    let binary = program("p2p.c", Mpi::Openmpi).display().to_string();
    for (starter, variables) in site.systems() {
        let got = site.run(&variables, &["--dry-run", "true"]);
        let told = got.stdout.clone() + &got.stderr;
        assert!(told.contains(&format!("vmpid is started by {starter}")), "{starter}: {got:?}");
        // Bytes of all kinds come from the other node, and what it says of itself.
        let script = "echo $VMPI_RANK $(uname -n); [ $VMPI_RANK = 0 ] || head -c 5000 /dev/zero; echo warned >&2";
        let got = site.run(&variables, &["sh", "-c", script]);
        let mut lines: Vec<&str> = got.stdout.lines().map(|line| line.trim_matches('\0')).collect();
        lines.retain(|line| !line.is_empty());
        lines.sort_unstable();
        let wanted = [format!("0 {}", site.nodes.a), format!("1 {}", site.nodes.b)];
        assert!(got.code == 0 && lines == wanted, "{starter}: {got:?}");
        assert_eq!(got.stdout.matches('\0').count(), 5000, "{starter}");
        assert_eq!(got.stderr, "warned\nwarned\n", "{starter}");
        let got = site.run(&variables, &["-V", "2", &binary]);
        assert!(got.code == 0 && got.stdout.contains("all checks hold"), "{starter}: {got:?}");
    }
}

/// The command that starts vmpid fails: by its name, with the node's.
#[test]
fn starters_that_fail_are_named_with_their_nodes() {
    let site = Site::new();
    for (starter, variables) in site.systems() {
        let command = site.bin.join(starter.split(' ').next().expect("a word"));
        // Flux is asked for its nodes first.
        let text = fs::read_to_string(&command).expect("it is there");
        let broken = match starter {
            "flux exec" => text.replace("assert sys.argv", "sys.exit('flux-exec: no such broker')\nassert sys.argv"),
            _ => "#!/bin/sh\necho not permitted >&2; exit 3\n".into(),
        };
        fs::write(&command, broken).expect("it is ours");
        let got = site.run(&variables, &["true"]);
        let told = [starter, &site.nodes.b, "did not start"].iter().all(|part| got.stderr.contains(part));
        assert!(got.code == 125 && told, "{starter}: {got:?}");
        let why = if starter == "flux exec" { "no such broker" } else { "not permitted" };
        assert!(got.stderr.contains(why), "{starter}: {got:?}");
    }
}
