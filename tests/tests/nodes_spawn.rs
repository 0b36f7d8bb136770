//! MPI_Comm_spawn in jobs of several nodes: children wherever they go, failures that are told and leave nothing, deaths.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::Path;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Job, Outcome, Vmpirun};
use vmpi_tests::nodes::{Nodes, find, sorted};
use vmpi_tests::place::{Turn, room};

const PATIENCE: Duration = Duration::from_secs(120);

fn run(nodes: &Nodes, flags: &[&str], source: &str, mpi: Mpi, args: &[&str]) -> Vmpirun {
    let turn = Turn::take();
    let binary = program(source, mpi);
    drop(turn);
    nodes.vmpirun(source).args(flags).arg(binary).args(args).cwd(room("cwd")).deadline(PATIENCE)
}

/// The program checks itself.
fn holds(nodes: &Nodes, flags: &[&str], source: &str, mpi: Mpi, args: &[&str]) {
    let got = run(nodes, flags, source, mpi, args).run();
    let right = got.code == 0 && got.stdout.ends_with("all checks hold\n");
    assert!(right, "{source} {args:?} {flags:?}, built for {}: {got:?}", mpi.name());
}

#[test]
fn parents_and_children_talk_over_two_nodes() {
    let nodes = Nodes::beside_others("spawn");
    for (mpi, flags) in [
        (Mpi::Openmpi, &["-n", "2", "-V", "2"][..]),
        (Mpi::Mpich, &["-n", "3"]),
        (Mpi::Standard, &["-n", "4", "-V", "3", "--map-by", "node"]),
        (Mpi::Openmpi, &["-n", "2", "-x", "VMPI_SINGLE_COPY=0", "--progress", "rank"]),
    ] {
        holds(&nodes, flags, "spawn_far.c", mpi, &["2"]);
    }
}

#[test]
fn parents_and_children_talk_over_three_nodes() {
    Turn::beside_others();
    let nodes = Nodes::three("spawn-three");
    for (mpi, flags) in [(Mpi::Openmpi, &["-n", "3"][..]), (Mpi::Mpich, &["-n", "5", "-V", "2", "--map-by", "node"])] {
        holds(&nodes, flags, "spawn_far.c", mpi, &["3"]);
    }
}

/// The programs of one node, which print the same there. What children's directories and arguments are does not depend on where they live.
#[test]
fn programs_answer_as_on_one_node() {
    let nodes = Nodes::beside_others("spawn-same");
    for (source, mpi) in [
        ("spawn_basic.c", Mpi::Openmpi),
        ("spawn_basic.c", Mpi::Mpich),
        ("spawn_leave.c", Mpi::Openmpi),
        ("spawn_leave.c", Mpi::Mpich),
        ("spawn_fortran.f90", Mpi::Openmpi),
        ("spawn_fortran.f90", Mpi::Mpich),
    ] {
        let turn = Turn::take();
        let binary = program(source, mpi);
        drop(turn);
        for ranks in ["2", "3"] {
            let wanted = Vmpirun::new("one").args(["-n", ranks]).arg(&binary).cwd(room("cwd")).run();
            assert_eq!(wanted.code, 0, "{wanted:?}");
            let got = run(&nodes, &["-n", ranks], source, mpi, &[]).run();
            let same = (got.code, sorted(&got.stdout)) == (0, sorted(&wanted.stdout));
            assert!(same, "{source} on {ranks} ranks, {}: {got:?}\n--- one node\n{}", mpi.name(), wanted.stdout);
        }
    }
}

#[test]
fn failed_spawns_leave_the_parents_alive_and_numbers_are_used_again() {
    let nodes = Nodes::beside_others("spawn-errors");
    holds(&nodes, &["-n", "2"], "spawn_errors.c", Mpi::Openmpi, &[]);
    holds(&nodes, &["-n", "3", "--map-by", "node"], "spawn_errors.c", Mpi::Mpich, &[]);
    holds(&nodes, &["-n", "2"], "spawn_where.c", Mpi::Openmpi, &["again", "30", "30"]);
}

/// Lines `child RANK on NODE`, with the nodes' letters for their names.
fn places(nodes: &Nodes, got: &Outcome) -> String {
    let lines = got.stdout.lines().filter(|line| line.starts_with("child "));
    let letters = lines.filter_map(|line| line.rsplit(' ').next()).map(|name| match name {
        name if name == nodes.a => 'a',
        name if name == nodes.b => 'b',
        _ => '?',
    });
    letters.collect()
}

#[test]
fn children_go_where_there_is_room_and_where_they_are_sent() {
    let nodes = Nodes::beside_others("spawn-where");
    let where_to = |flags: &[&str], args: &[&str]| {
        let got = run(&nodes, flags, "spawn_where.c", Mpi::Openmpi, args).run();
        assert_eq!(got.code, 0, "{got:?}");
        (places(&nodes, &got), got)
    };
    assert_eq!(where_to(&["-n", "2"], &["spread", "4"]).0, "aabb");
    // The root is on the second node, which goes first where both have as many.
    assert_eq!(where_to(&["-n", "2"], &["spread", "1"]).0, "b");
    // Two and one before.
    assert_eq!(where_to(&["-n", "3"], &["spread", "4"]).0, "abbb");
    assert_eq!(where_to(&["-n", "2"], &["host", &nodes.b, "3"]).0, "bbb");
    assert_eq!(where_to(&["-n", "2"], &["host", &format!("{}:2", nodes.a), "2"]).0, "aa");
    assert_eq!(where_to(&["-n", "2"], &["host", "localhost", "2"]).0, "bb");
    let (_, got) = where_to(&["-n", "2"], &["host", "elsewhere", "2"]);
    assert!(got.stdout.contains("class spawn"), "{got:?}");
    let got = run(&nodes, &["-n", "2"], "spawn_where.c", Mpi::Openmpi, &["fatal", "sh", "elsewhere"]).run();
    let told = format!("the host elsewhere is none of this job's nodes ({}, {})", nodes.a, nodes.b);
    assert!(got.code != 0 && got.stderr.contains(&told), "{told}: {got:?}");
    // What they print comes through, each line whose it is.
    let (_, got) = where_to(&["-n", "2", "-l"], &["output", "5"]);
    for child in 0..5 {
        assert!(got.stdout.contains(&format!("2.{child}: line of child {child}\n")), "{got:?}");
        assert!(got.stderr.contains(&format!("2.{child}: error of child {child}\n")), "{got:?}");
    }
    let raw = run(&nodes, &["-n", "2", "--output", "raw"], "spawn_where.c", Mpi::Mpich, &["output", "5"]).run();
    assert!(raw.code == 0 && raw.stdout.matches("line of child").count() == 5, "{raw:?}");
}

/// One rank starts workers on a node that had none.
#[test]
fn spare_nodes_are_for_those_who_are_spawned() {
    let nodes = Nodes::beside_others("spawn-spare");
    let got = run(&nodes, &["-n", "1", "--spare-nodes"], "spawn_where.c", Mpi::Mpich, &["spread", "4"]).run();
    assert!(got.code == 0 && places(&nodes, &got) == "aabb", "{got:?}");
    holds(&nodes, &["-n", "1", "--spare-nodes"], "spawn_far.c", Mpi::Openmpi, &["2"]);
    let got = run(&nodes, &["-n", "1"], "spawn_where.c", Mpi::Mpich, &["spread", "3"]).run();
    assert!(got.code == 0 && places(&nodes, &got) == "aaa", "{got:?}");
    // None is spawned at all.
    holds(&nodes, &["-n", "1", "--spare-nodes"], "ring.c", Mpi::Openmpi, &[]);
}

/// A directory that the second node does not see, with a program that spawn_where starts.
fn only_on_a(nodes: &Nodes, test: impl FnOnce(&Path, &dyn Fn(&[&str]) -> Outcome)) {
    let dir = room("cwd").join(format!("spawn-only-a-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("target/ is writable");
    let turn = Turn::take();
    fs::copy(program("spawn_where.c", Mpi::Openmpi), dir.join("child")).expect("target/ is writable");
    drop(turn);
    let hide = dir.display().to_string();
    let go =
        |args: &[&str]| run(nodes, &["-n", "2"], "spawn_where.c", Mpi::Openmpi, args).with_file("hide", &hide).run();
    test(&dir.join("child"), &go);
    let _ = fs::remove_dir_all(&dir);
}

#[test]
fn a_program_that_a_node_does_not_have_is_an_error_that_names_it() {
    let nodes = Nodes::beside_others("spawn-missing");
    let got = run(&nodes, &["-n", "2"], "spawn_where.c", Mpi::Mpich, &["here", "no-such-program", "3"]).run();
    let told = got.stdout.matches("class spawn").count() == 3;
    assert!(got.code == 0 && told && got.stdout.contains("all checks hold"), "{got:?}");
    let got = run(&nodes, &["-n", "2"], "spawn_where.c", Mpi::Mpich, &["fatal", "no-such-program", "-"]).run();
    let told = format!("node {}: there is no program \"no-such-program\" in the info key path, PATH or ", nodes.a);
    assert!(got.code != 0 && got.stderr.contains(&told), "{told}: {got:?}");
    only_on_a(&nodes, |child, go| {
        let child = child.display().to_string();
        let got = go(&["here", &child, "4"]);
        let told = got.stdout.matches("class spawn").count() == 3 && got.stdout.contains("all checks hold");
        assert!(got.code == 0 && told, "{got:?}");
        let named = format!("node {}: there is no file {child}", nodes.b);
        for host in ["-", &nodes.b] {
            let got = go(&["fatal", &child, host]);
            assert!(got.code != 0 && got.stderr.contains(&named), "{named}: {got:?}");
        }
        // The root, on the second node, does not see it; where it is to start it is there.
        let got = go(&["on", &nodes.a, &child]);
        assert!(got.code == 0 && places(&nodes, &got) == "aaaaaa", "{got:?}");
        let got = go(&["on", &nodes.b, &child]);
        assert!(got.code == 0 && got.stdout.matches("class spawn").count() == 3, "{got:?}");
    });
}

/// Two ranks have spawned three; all of them wait as told.
fn grown(nodes: &Nodes, how: &str) -> (Job, Vec<i32>) {
    // Where all compute, the last one begins after a turn.
    let mut job = run(nodes, &["-n", "2", "--quantum", "100"], "spawn_deaths.c", Mpi::Openmpi, &[how]).start();
    let pids = job.ready(if how == "loop" { 2 } else { 5 });
    std::thread::sleep(Duration::from_millis(100));
    (job, pids)
}

fn kill_now(pid: i32) {
    assert!(pid > 1, "pid {pid}");
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it lives");
}

#[test]
fn deaths_in_a_grown_job_end_it_by_name() {
    let nodes = Nodes::beside_others("spawn-deaths");
    for how in ["recv", "compute", "accept"] {
        // The ranks of world 2 are 2, 3 and 4, on the nodes a, a and b, because the root is on a.
        for victim in [1, 2, 4] {
            let (job, pids) = grown(&nodes, how);
            kill_now(pids[victim]);
            let got = job.finish();
            let node = if victim == 2 { &nodes.a } else { &nodes.b };
            let named =
                got.stderr.contains(&format!("rank {victim} (")) && got.stderr.contains(&format!("node {node}"));
            assert!(got.code == 137 && named, "{how} {victim}: {got:?}");
        }
    }
    for (how, code) in [("exit3", 3), ("abort7", 7), ("nofinalize", 1)] {
        let got = run(&nodes, &["-n", "2"], "spawn_deaths.c", Mpi::Mpich, &[how]).run();
        assert!(got.code == code && got.stderr.contains("(rank 1 of world 2"), "{how}: {got:?}");
    }
    let got = run(&nodes, &["-n", "2"], "spawn_deaths.c", Mpi::Mpich, &["outlive"]).run();
    assert!(got.code == 0 && got.stdout.matches("says goodbye").count() == 3, "{got:?}");
}

/// Whatever the step at which a node, its vmpid or its carrier goes: an end within bounded time, with its name, and nothing left.
#[test]
fn deaths_while_a_job_grows_end_it_by_name() {
    let nodes = Nodes::beside_others("spawn-dying");
    for round in 0..6u64 {
        for what in ["--carry", "--bootstrap", "--one-job"] {
            let (job, _) = grown(&nodes, "loop");
            std::thread::sleep(Duration::from_millis(7 * round));
            kill_now(find(&job.runtime_dir, &nodes.b, what)[0].pid);
            let got = job.finish();
            assert!(got.code != 0 && got.stderr.contains(&nodes.b), "{what} {round}: {got:?}");
        }
    }
    // The other node's ranks are not told by an error, which would look like the cause.
    for round in 0..6 {
        let (job, pids) = grown(&nodes, "loop");
        std::thread::sleep(Duration::from_millis(29 * round));
        kill_now(pids[1]);
        let got = job.finish();
        assert!(got.code == 137 && got.stderr.contains(&nodes.b), "{round}: {got:?}");
    }
    let (job, _) = grown(&nodes, "loop");
    kill_now(job.pid());
    assert_eq!(job.finish().code, 137);
}
