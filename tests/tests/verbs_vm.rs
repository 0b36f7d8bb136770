//! Verbs on a real device: two soft-RoCE devices on the ends of a cable, in a guest with a kernel of its own. One boot, many tests.
//!
//! Soft-RoCE works only in the first network namespace, so both devices and the cable between them are there; the nodes' processes are in
//! namespaces of their own, with TCP on another cable, and each node's vmpid is told its device by `VMPI_VERBS_DEVICE`.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::guest;
use vmpi_tests::job::{Job, Outcome, Vmpirun};
use vmpi_tests::leftovers::eventually;
use vmpi_tests::nodes::{Nodes, find};
use vmpi_tests::place::{Turn, bin_dir, room, venv};

/// Everything in there is some ten times slower.
const PATIENCE: Duration = Duration::from_secs(240);
const LIMIT: Duration = Duration::from_secs(1500);

/// The cable of the devices: addresses and routes such that packets between the two do leave by one end and come in by the other. (The guest has one
/// CPU: with several, packets overtake each other, and soft-RoCE takes that for loss.)
const CABLE: &str = "
link add roce0 mtu 4200 type veth peer name roce1 mtu 4200
addr add 10.98.0.1/24 dev roce0 noprefixroute
addr add 10.98.0.2/24 dev roce1 noprefixroute
link set roce0 up
link set roce1 up
route add 10.98.0.2/32 dev roce0 src 10.98.0.1 table 200
route add 10.98.0.1/32 dev roce1 src 10.98.0.2 table 201
rule add pref 1 iif roce0 lookup local
rule add pref 2 iif roce1 lookup local
rule add pref 3 from 10.98.0.1 to 10.98.0.2 lookup 200
rule add pref 4 from 10.98.0.2 to 10.98.0.1 lookup 201
rule add pref 5 oif roce0 to 10.98.0.2 lookup 200
rule add pref 6 oif roce1 to 10.98.0.1 lookup 201
rule add pref 100 lookup local
rule del pref 0
";

fn run(program: &str, args: &str) {
    let output = Command::new(program).args(args.split_whitespace()).output();
    let output = output.unwrap_or_else(|e| panic!("{program} {args}: {e}"));
    assert!(output.status.success(), "{program} {args}: {}", String::from_utf8_lossy(&output.stderr));
}

fn lay_cable() {
    for line in CABLE.lines().filter(|line| !line.is_empty()) {
        run("ip", line);
    }
    let set = |path: String, value: &str| fs::write(&path, value).unwrap_or_else(|e| panic!("{path}: {e}"));
    set("/proc/sys/net/ipv4/conf/all/rp_filter".into(), "0");
    for end in 0..2 {
        set(format!("/proc/sys/net/ipv4/conf/roce{end}/accept_local"), "1");
        set(format!("/proc/sys/net/ipv4/conf/roce{end}/rp_filter"), "0");
        run("rdma", &format!("link add rxe{end} type rxe netdev roce{end}"));
    }
    introduce();
    for end in 0..2 {
        // The address comes a moment after the device.
        let gid = format!("/sys/class/infiniband/rxe{end}/ports/1/gids/1");
        let there = || fs::read_to_string(&gid).is_ok_and(|gid| gid.contains("ffff:0a62"));
        assert!(eventually(Duration::from_secs(30), there), "rxe{end} has no address");
    }
}

/// Each end of the cable knows the other's address.
fn introduce() {
    for end in 0..2 {
        let address = fs::read_to_string(format!("/sys/class/net/roce{}/address", 1 - end)).expect("it exists");
        run_ip_neighbour(end, address.trim());
    }
}

fn run_ip_neighbour(end: usize, address: &str) {
    run("ip", &format!("neigh replace 10.98.0.{} lladdr {address} dev roce{end} nud permanent", 2 - end));
}

/// A job on both nodes.
fn job(nodes: &Nodes, name: &str, fabric: &str) -> Vmpirun {
    nodes.vmpirun(name).args(["--fabric", fabric]).cwd(room("cwd")).deadline(PATIENCE)
}

fn good(got: &Outcome, parts: &[&str]) {
    assert!(got.code == 0 && parts.iter().all(|part| got.stdout.contains(part)), "{parts:?}\n{got:?}");
}

fn says(got: &Outcome, code: i32, parts: &[&str]) {
    assert!(got.code == code && parts.iter().all(|part| got.stderr.contains(part)), "{code} {parts:?}\n{got:?}");
}

fn messages_arrive(nodes: &Nodes) {
    let got = job(nodes, "p2p", "verbs").args(["--report=full", "-n", "2"]).arg(program("p2p.c", Mpi::Openmpi)).run();
    good(&got, &["all checks hold"]);
    for (node, device) in [(&nodes.a, "rxe0"), (&nodes.b, "rxe1")] {
        let told = format!("node {node}: messages to other nodes go by verbs ({device} port 1)");
        assert!(got.stderr.contains(&told), "{}", got.stderr);
    }
}

fn collectives_and_types(nodes: &Nodes) {
    for (name, ranks) in [("coll.c", "3"), ("types.c", "2")] {
        let got = job(nodes, name, "verbs").args(["-n", ranks]).arg(program(name, Mpi::Openmpi)).run();
        assert_eq!(got.code, 0, "{got:?}");
    }
}

fn floods_are_held_back(nodes: &Nodes) {
    let binary = program("pressure.c", Mpi::Openmpi);
    let got = job(nodes, "flood", "verbs").args(["-n", "2"]).arg(binary).arg("flood").run();
    assert_eq!(got.code, 0, "{got:?}");
}

fn large_messages_are_whole(nodes: &Nodes) {
    let binary = program("both_ways.c", Mpi::Openmpi);
    for progress in ["daemon", "rank"] {
        let run = job(nodes, progress, "verbs").args(["--progress", progress, "-n", "2"]);
        good(&run.arg(&binary).arg("24").run(), &["24 MiB both ways are right"]);
    }
}

fn imb(nodes: &Nodes) {
    let run = job(nodes, "imb", "verbs").args(["-n", "2"]).arg(venv().join("bin/IMB-MPI1"));
    let got = run.args(["-iter", "10", "-msglog", "0:18", "PingPong", "Sendrecv", "Allreduce", "Bcast"]).run();
    let tables = ["Benchmarking PingPong", "Benchmarking Sendrecv", "Benchmarking Allreduce", "Benchmarking Bcast"];
    good(&got, &tables);
    let at = got.stdout.find("Benchmarking PingPong").unwrap_or_default();
    println!("{}", got.stdout[at..].lines().take(26).collect::<Vec<&str>>().join("\n"));
}

/// Ranks that wait for messages, all of them ready.
fn waiting(nodes: &Nodes, name: &str) -> (Job, Vec<i32>) {
    let run = job(nodes, name, "verbs").args(["-n", "2"]).arg(program("deaths.c", Mpi::Openmpi)).arg("recv");
    let mut job = run.start();
    let pids = job.ready(2);
    (job, pids)
}

fn kill_now(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it lives");
}

/// `finish` demands that nothing is left on either node.
fn killed_peers_are_named(nodes: &Nodes) {
    let (job, pids) = waiting(nodes, "rank");
    kill_now(pids[1]);
    says(&job.finish(), 137, &["rank 1", &nodes.b, "killed by signal 9"]);
    let (job, _) = waiting(nodes, "carrier");
    let begin = Instant::now();
    kill_now(find(&job.runtime_dir, &nodes.b, "--carry")[0].pid);
    says(&job.finish(), 125, &[&nodes.b]);
    println!("a job whose carrier was killed ended after {:.1} s", begin.elapsed().as_secs_f64());
    let (job, _) = waiting(nodes, "daemon");
    let daemons = find(&job.runtime_dir, &nodes.b, "--one-job");
    let child = daemons.iter().find(|d| daemons.iter().any(|other| other.pid == d.parent)).expect("daemon and keeper");
    kill_now(child.pid);
    let got = job.finish();
    assert!(got.code != 0 && got.stderr.contains(&nodes.b), "{got:?}");
}

/// Nothing that the devices send arrives any more; TCP goes on.
fn a_silent_network_is_seen(nodes: &Nodes) {
    let large = job(nodes, "cut", "verbs").args(["-n", "2"]).arg(program("both_ways.c", Mpi::Openmpi));
    let mut job = large.args(["1", "100000"]).start();
    job.read_until(|text| text.contains("round"));
    let begin = Instant::now();
    // To an address that nobody has.
    for end in 0..2 {
        run_ip_neighbour(end, "02:00:00:00:00:99");
    }
    let got = job.finish();
    let seconds = begin.elapsed().as_secs_f64();
    introduce();
    says(&got, 125, &["the RDMA connection to node vmpit", "transport retry counter exceeded"]);
    println!("a job whose network fell silent ended after {seconds:.1} s");
}

fn a_device_that_is_down_is_seen(nodes: &Nodes) {
    let large = job(nodes, "down", "verbs").args(["-n", "2"]).arg(program("both_ways.c", Mpi::Openmpi));
    let mut job = large.args(["1", "100000"]).start();
    job.read_until(|text| text.contains("round"));
    run("ip", "link set roce1 down");
    says(&job.finish(), 125, &["the RDMA connection to node vmpit"]);
}

fn devices_are_chosen(nodes: &Nodes) {
    let binary = program("ring.c", Mpi::Openmpi);
    let ring = |name: &str, fabric: &str| {
        job(nodes, name, fabric).args(["--report=full", "-n", "2"]).arg(&binary).args(["3", "9"])
    };
    let got = ring("auto", "auto").run();
    good(&got, &["all checks hold"]);
    assert!(got.stderr.contains("by verbs (rxe0 port 1) (all nodes have an active RDMA device)"), "{}", got.stderr);
    let got = ring("tcp", "tcp").run();
    assert!(got.code == 0 && got.stderr.contains("messages to other nodes go by tcp (--fabric tcp)"), "{got:?}");
    says(&ring("none", "verbs:mlx5_7").run(), 125, &["node vmpit", "there is no RDMA device mlx5_7, only rxe0, rxe1"]);
    // One node has none that works: TCP for all of its messages, and the report says why.
    let got = ring("half", "auto").with_file("device-b", "mlx5_7").run();
    good(&got, &["all checks hold"]);
    let why = format!("(on node {}: there is no RDMA device mlx5_7, only rxe0, rxe1)", nodes.b);
    assert!(got.stderr.contains(&format!("tcp with node {} {why}", nodes.b)), "{}", got.stderr);
}

fn the_doctor_sees_the_devices(_: &Nodes) {
    let output = Command::new(bin_dir().join("vmpictl")).arg("doctor").output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    for end in 0..2 {
        let told = text.lines().find(|line| line.contains(&format!("rxe{end} (made of software")));
        let good = told.is_some_and(|line| {
            line.contains("port 1 is ACTIVE (Ethernet") && line.ends_with(&format!("usable: rxe{end} port 1"))
        });
        assert!(good, "{text}");
    }
    assert!(text.contains("--fabric verbs takes rxe0 port 1"), "{text}");
}

const TESTS: &[(&str, fn(&Nodes))] = &[
    ("messages arrive", messages_arrive),
    ("collectives and types", collectives_and_types),
    ("large messages are whole", large_messages_are_whole),
    ("floods are held back", floods_are_held_back),
    ("IMB-MPI1", imb),
    ("devices are chosen", devices_are_chosen),
    ("the doctor sees the devices", the_doctor_sees_the_devices),
    ("killed peers are named", killed_peers_are_named),
    ("a silent network is seen", a_silent_network_is_seen),
    // Last: the cable stays down.
    ("a device that is down is seen", a_device_that_is_down_is_seen),
];

const PROGRAMS: &[&str] = &["p2p.c", "coll.c", "types.c", "both_ways.c", "pressure.c", "deaths.c", "ring.c"];

#[test]
#[ignore = "second tier"]
fn verbs_on_soft_roce() {
    if !guest::is_here() {
        let turn = Turn::take();
        PROGRAMS.iter().for_each(|name| drop(program(name, Mpi::Openmpi)));
        drop(turn);
        let only = std::env::var("VMPI_TEST_ONLY").unwrap_or_default();
        let variables =
            [("VMPI_BIN_DIR", bin_dir()), ("VMPI_TEST_VENV", venv()), ("VMPI_TEST_ONLY", PathBuf::from(only))];
        print!("{}", guest::run("verbs_on_soft_roce", &variables, LIMIT));
        return;
    }
    lay_cable();
    let nodes = Nodes::new("verbs");
    let only = std::env::var("VMPI_TEST_ONLY").unwrap_or_default();
    let mut failed = Vec::new();
    for (name, test) in TESTS.iter().filter(|(name, _)| name.contains(&only)) {
        let begin = Instant::now();
        let good = catch_unwind(AssertUnwindSafe(|| test(&nodes))).is_ok();
        println!("{} {name} ({:.0} s)", if good { "ok" } else { "FAILED" }, begin.elapsed().as_secs_f64());
        if !good {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "failed: {failed:?}");
}
