//! A job on two nodes: the right answers, and ends that name the node and leave nothing behind.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Job, Outcome};
use vmpi_tests::nodes::{Nodes, find, same, sorted};
use vmpi_tests::place::{Turn, room, top};

const PROGRAMS: &[&str] = &["p2p.c", "coll.c", "far_comms.c", "types.c", "probe.c"];

/// What all tests of two nodes go by: these run at the same time.
#[test]
fn each_node_has_a_cpu_of_its_own() {
    let nodes = Nodes::beside_others("cpus");
    let seen = ["grep", "Cpus_allowed_list", "/proc/self/status"];
    let got = nodes.vmpirun("cpus").args(["-n", "2", "--map-by", "node"]).args(seen).run();
    let mut cpus: Vec<&str> = got.stdout.lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    cpus.sort_unstable();
    let all = std::fs::read_dir("/sys/bus/cpu/devices").map_or(1, Iterator::count);
    assert_eq!(cpus, if all == 1 { ["0", "0"] } else { ["0", "1"] }, "{got:?}");
}

#[test]
fn programs_answer_as_under_openmpi() {
    let nodes = Nodes::beside_others("openmpi");
    for name in PROGRAMS {
        same(&nodes, name, Mpi::Openmpi, 5, &[], &[]);
    }
}

#[test]
fn programs_answer_as_under_mpich() {
    let nodes = Nodes::beside_others("mpich");
    for name in ["p2p.c", "coll.c", "waits.c"] {
        same(&nodes, name, Mpi::Mpich, 2, &[], &[]);
    }
    for name in ["tool.c", "partitioned.c", "large_counts.c"] {
        same(&nodes, name, Mpi::Mpich, 4, &[], &[]);
    }
}

#[test]
fn rings_and_floods_arrive() {
    let nodes = Nodes::beside_others("floods");
    for (name, ranks, args) in [
        ("ring.c", 6, &["100", "8"][..]),
        ("ring.c", 6, &["20", "300000"]),
        ("nbc.c", 2, &[]),
        ("topo.c", 4, &[]),
        ("ops.c", 5, &[]),
        ("traffic.c", 6, &["20", "7"]),
        ("polls.c", 6, &["300", "4"]),
        ("backlog.c", 4, &[]),
        ("scattered.c", 5, &[]),
        ("pressure.c", 2, &["flood"]),
        ("pressure.c", 2, &["isend"]),
        ("pressure.c", 4, &["all", "1000"]),
    ] {
        same(&nodes, name, Mpi::Openmpi, ranks, &[], args);
    }
}

/// Far more messages than anybody has asked for. (No oracle: under Open MPI 4.1.4 floods.c has failed once, and which of the two is wrong is open.)
#[test]
fn very_many_unexpected_messages_arrive() {
    let nodes = Nodes::beside_others("unexpected");
    let turn = Turn::take();
    let binary = program("floods.c", Mpi::Openmpi);
    drop(turn);
    let run = nodes.vmpirun("unexpected").args(["-n", "4", "-V", "2"]).arg(binary).args(["tswpb", "8000"]);
    let got = run.deadline(Duration::from_secs(100)).run();
    assert!(got.code == 0 && got.stdout.ends_with("all checks hold\n"), "{got:?}");
}

/// Each program of a script has an MPI_COMM_WORLD that all nodes know by the same context.
#[test]
fn a_script_runs_one_program_after_another() {
    let nodes = Nodes::beside_others("script");
    let turn = Turn::take();
    let binary = program("coll.c", Mpi::Openmpi);
    drop(turn);
    let run = |script: &str| {
        let run = nodes.vmpirun("script").args(["-n", "4", "-V", "2", "sh", "-c", script]).arg(&binary);
        let got = run.cwd(room("cwd")).deadline(Duration::from_secs(60)).run();
        assert!(got.code == 0, "{script}: exit code {}\n{}\n{}", got.code, got.stdout, got.stderr);
        got.stdout
    };
    let once = run("\"$0\"");
    let thrice = run("\"$0\" && \"$0\" && \"$0\"");
    assert!(!once.is_empty() && sorted(&thrice) == sorted(&once.repeat(3)), "{once}\n---\n{thrice}");
}

/// Collectives go node by node, whatever ranks live where: in blocks, round the nodes, four here and one there.
#[test]
fn collectives_answer_wherever_ranks_live() {
    let nodes = Nodes::beside_others("placed");
    // Three slots more than the one that it has anyway.
    let uneven = format!("{}:3", nodes.a);
    for (name, ranks, flags, args) in [
        ("far_coll.c", 6, &["-V", "2"][..], &[][..]),
        ("far_coll.c", 7, &["--map-by", "node"], &[]),
        ("far_coll.c", 5, &["--host", &uneven], &[]),
        ("far_coll.c", 9, &[], &[]),
        ("far_coll.c", 4, &["--progress", "rank", "-x", "VMPI_SINGLE_COPY=0"], &[]),
        ("far_threads.c", 5, &["--map-by", "node"], &[]),
        ("coll.c", 7, &["--map-by", "node"], &[]),
        ("coll.c", 5, &["--host", &uneven], &["nb"]),
        ("coll_order.c", 4, &[], &[]),
        ("coll_random.c", 7, &["--map-by", "node"], &["3", "150"]),
        ("coll_random.c", 4, &["-V", "2", "--fabric", "emulated:50:500"], &["4", "150"]),
        ("nbc.c", 5, &["--map-by", "node"], &[]),
    ] {
        same(&nodes, name, Mpi::Openmpi, ranks, flags, args);
    }
    same(&nodes, "coll.c", Mpi::Mpich, 3, &["--map-by", "node"], &["nb"]);
}

/// Blocks pass through a member of each node: who is given more than it has room for hears of it all the same, and nobody waits for ever.
#[test]
fn ranks_that_disagree_about_sizes_hear_of_it() {
    let nodes = Nodes::beside_others("differ");
    for (mpi, ranks) in [(Mpi::Openmpi, "12"), (Mpi::Mpich, "13")] {
        let run = nodes.vmpirun("differ").args(["-n", ranks]).arg(program("blocks.c", mpi)).arg("far");
        let got = run.deadline(Duration::from_secs(120)).run();
        assert!(
            got.code == 0 && got.stdout == "all checks hold\n",
            "exit code {}\n{}\n{}",
            got.code,
            got.stdout,
            got.stderr
        );
    }
}

#[test]
fn the_same_with_progress_by_ranks_and_without_single_copy() {
    let nodes = Nodes::beside_others("progress");
    for name in ["p2p.c", "types.c"] {
        same(&nodes, name, Mpi::Openmpi, 5, &["--progress", "rank"], &[]);
    }
    same(&nodes, "coll.c", Mpi::Openmpi, 5, &["-x", "VMPI_SINGLE_COPY=0"], &[]);
    same(&nodes, "p2p.c", Mpi::Openmpi, 5, &["--fabric", "emulated:200:100"], &[]);
}

/// Messages that are sent without being asked for, and somewhat longer ones, whatever comes first: receive, announcement, data.
#[test]
fn what_comes_unasked_is_received_once_whole_and_in_order() {
    let nodes = Nodes::beside_others("unasked");
    for (ranks, flags) in [
        (4, &["-V", "2"][..]),
        (8, &["-V", "4"]),
        (4, &["--fabric", "emulated:200:1000"]),
        (4, &["--progress", "rank"]),
        (4, &["-x", "VMPI_SINGLE_COPY=0"]),
        (4, &["--enable-recovery"]),
    ] {
        same(&nodes, "unasked.c", Mpi::Openmpi, ranks, flags, &["2"]);
    }
    same(&nodes, "unasked.c", Mpi::Mpich, 4, &["-V", "2"], &["2"]);
    for flags in [&["-V", "2"][..], &["--fabric", "emulated:200:1000"], &["--progress", "rank"]] {
        let run = nodes.vmpirun("unreadable").args(["-n", "4"]).args(flags);
        let got = run.arg(program("unasked.c", Mpi::Openmpi)).args(["1", "unreadable"]).run();
        assert!(
            got.code == 0 && got.stdout == "all checks hold\n",
            "{flags:?}: exit code {}\n{}\n{}",
            got.code,
            got.stdout,
            got.stderr
        );
    }
}

/// The carriers take large messages to a rank that computes; with progress by ranks, or where no process is to reach into another, nobody does.
#[test]
fn large_messages_reach_a_rank_that_computes() {
    let nodes = Nodes::new("strong");
    let run = |flags: [&str; 2], rounds: &str, limit_ms: &str| {
        let run = nodes.vmpirun("strong").args(["-n", "4"]).args(flags);
        run.arg(program("strong.c", Mpi::Openmpi)).args([rounds, limit_ms]).run()
    };
    let said = |got: &Outcome, wanted: &str| {
        let wanted = format!("in {wanted} rounds all were sent while rank 0 computed");
        assert!(got.code == 0 && got.stdout.trim() == wanted, "{wanted}: {} {} {}", got.code, got.stdout, got.stderr);
    };
    said(&run(["--progress", "daemon"], "10", "20000"), "10 of 10");
    said(&run(["--progress", "rank"], "2", "300"), "0 of 2");
    said(&run(["-x", "VMPI_SINGLE_COPY=0"], "2", "300"), "0 of 2");
}

/// A rank for each function of a program (FG-MPI's benchmark): many more ranks than cores, all messages large.
#[test]
fn a_rank_for_each_function() {
    let nodes = Nodes::beside_others("functions");
    let binary = program("functions.c", Mpi::Openmpi);
    for (kind, ranks) in [("coarse", 9), ("fine", 90)] {
        let run = nodes.vmpirun("functions").args(["-n", &ranks.to_string()]).arg(&binary);
        let got = run.args([kind, "9", "20000", "3"]).deadline(Duration::from_secs(120)).run();
        let told = got.code == 0 && got.stdout.starts_with(&format!("@ functions_{kind} 9 "));
        assert!(told, "{kind}: exit code {}\n{}\n{}", got.code, got.stdout, got.stderr);
    }
}

#[test]
fn hosts_slots_and_names_are_kept() {
    let nodes = Nodes::beside_others("hosts");
    let file = room("cwd").join(format!("hosts-{}", std::process::id()));
    fs::write(&file, format!("# two nodes\n{} slots=1\n{}:2\n", nodes.a, nodes.b)).expect("target/ is writable");
    let run = |name: &str| {
        let run = vmpi_tests::job::Vmpirun::on_node(name, &nodes.enter(), &nodes.a);
        run.arg("--hostfile").arg(&file).arg("--launcher-exec").arg(nodes.enter())
    };
    let got = run("slots")
        .args(["-l", "sh", "-c", "echo $(hostname) $OMPI_COMM_WORLD_LOCAL_RANK of $OMPI_COMM_WORLD_LOCAL_SIZE"])
        .run();
    let want = format!("0: {} 0 of 1\n1: {b} 0 of 2\n2: {b} 1 of 2", nodes.a, b = nodes.b);
    assert_eq!((got.code, sorted(&got.stdout)), (0, want), "{}", got.stderr);
    // Standard input is rank 0's, whole.
    let input = top().join("docs/functions.md");
    let text = fs::read_to_string(&input).expect("it is there");
    let got = run("stdin").stdin(fs::File::open(&input).expect("it is there")).args(["-n", "2", "cat"]).run();
    assert!(got.code == 0 && got.stdout == text, "{}", got.stderr);
    fs::write(&file, format!("{}\n\n{} slots=two\n", nodes.a, nodes.b)).expect("target/ is writable");
    let got = run("bad").args(["-n", "2", "true"]).run();
    assert!(got.code == 2 && got.stderr.contains("line 3"), "{got:?}");
    let _ = fs::remove_file(&file);
}

#[test]
fn ranks_sit_where_they_are_mapped() {
    let nodes = Nodes::beside_others("mapped");
    let file = room("cwd").join(format!("mapped-{}.csv", std::process::id()));
    let pairs = "point_to_point,0,3,9,900\npoint_to_point,2,1,9,900\npoint_to_point,0,1,1,5\n";
    fs::write(&file, format!("kind,from,to,messages,bytes\n{pairs}")).expect("target/ is writable");
    let run = |name: &str, how: &str| {
        let got = nodes.vmpirun(name).args(["-n", "4", "-V", "2", "--map-by", how, "-l", "hostname"]).run();
        assert_eq!(got.code, 0, "{how}: {}", got.stderr);
        sorted(&got.stdout).lines().map(|line| line.replace(nodes.a.as_str(), "a")).collect::<Vec<_>>()
    };
    let b = &nodes.b;
    assert_eq!(run("slot", "slot"), ["0: a".to_string(), "1: a".into(), format!("2: {b}"), format!("3: {b}")]);
    assert_eq!(run("node", "node"), ["0: a".to_string(), format!("1: {b}"), "2: a".into(), format!("3: {b}")]);
    let affinity = run("affinity", &format!("affinity:{}", file.display()));
    let at = |rank: usize| affinity[rank].split(' ').nth(1);
    assert!(at(0) == at(3) && at(1) == at(2) && at(0) != at(1), "{affinity:?}");
    let got = nodes.vmpirun("bad").args(["-n", "2", "--map-by", &format!("affinity:{}", file.display()), "true"]).run();
    assert!(got.code == 2 && got.stderr.contains("rank 3"), "{got:?}");
    let _ = fs::remove_file(&file);
}

#[test]
fn a_real_sshd_starts_the_other_node() {
    let nodes = Nodes::beside_others("ssh");
    let hosts = format!("{},{}", nodes.a, nodes.b);
    let run = || vmpi_tests::job::Vmpirun::on_node("ssh", &nodes.enter(), &nodes.a).args(["--host", &hosts]);
    let first = run();
    let (sshd, path) = nodes.sshd(first.runtime_dir());
    let binary = program("p2p.c", Mpi::Openmpi);
    let got = first.env("PATH", &path).args(["-n", "5"]).arg(&binary).run();
    assert!(got.code == 0 && got.stdout.contains("all checks hold"), "{got:?}");
    let binary = program("deaths.c", Mpi::Openmpi);
    let mut job = run().env("PATH", &path).args(["-n", "4"]).arg(&binary).arg("recv").start();
    job.ready(4);
    // The sessions' process on the second node: the agent, whose parent is sshd.
    kill_now(find(&job.runtime_dir, &nodes.b, "--bootstrap")[0].pid);
    says(&job.finish(), 125, &[&nodes.b]);
    drop(sshd);
    let got = run().env("PATH", &path).args(["-n", "4"]).arg(&binary).arg("recv").run();
    says(&got, 125, &[&format!("node {}: its vmpid did not start", nodes.b)]);
}

/// Ranks that wait for messages, all of them ready.
fn waiting(nodes: &Nodes, name: &str, how: &str) -> (Job, Vec<i32>) {
    let binary = program("deaths.c", Mpi::Openmpi);
    let run = nodes.vmpirun(name).args(["-n", "4"]).arg(&binary).arg(how);
    let mut job = run.deadline(Duration::from_secs(60)).start();
    let pids = job.ready(4);
    (job, pids)
}

fn says(got: &Outcome, code: i32, parts: &[&str]) {
    assert!(got.code == code && parts.iter().all(|part| got.stderr.contains(part)), "{code} {parts:?}\n{got:?}");
}

fn kill_now(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it lives");
}

#[test]
fn a_killed_rank_ends_the_job_with_its_nodes_name() {
    let nodes = Nodes::beside_others("rank");
    for how in ["recv", "compute"] {
        let (job, pids) = waiting(&nodes, "rank", how);
        kill_now(pids[3]);
        says(&job.finish(), 137, &["rank 3", &nodes.b, "killed by signal 9"]);
    }
}

#[test]
fn an_abort_and_an_exit_code_come_from_the_other_node() {
    let nodes = Nodes::beside_others("abort");
    let binary = program("deaths.c", Mpi::Openmpi);
    for (how, code) in [("abort7", 7), ("exit3", 3)] {
        let got = nodes.vmpirun(how).args(["-n", "4"]).arg(&binary).args([how, "2"]).run();
        says(&got, code, &["rank 2", &nodes.b]);
    }
}

/// A rank that leaves with 0 and without MPI_Finalize fails the job, and takes along nothing of what the others still have to say, wherever they are.
#[test]
fn who_leaves_early_takes_nobodys_output_along() {
    let nodes = Nodes::beside_others("leave");
    let binary = program("said.c", Mpi::Openmpi);
    for (how, code, rounds) in [("abort", 7, 2), ("leave", 1, 5), ("busy", 1, 1), ("wait", 1, 1)] {
        for _ in 0..rounds {
            let got = nodes.vmpirun("leave").args(["-n", "4"]).arg(&binary).arg(how).run();
            let said = got.stdout.lines().filter(|line| line.ends_with("has come to the end")).count();
            assert_eq!((got.code, said), (code, 4), "{how}: {got:?}");
            assert!(how == "abort" || got.stderr.contains("without calling MPI_Finalize"), "{how}: {got:?}");
        }
    }
}

#[test]
fn a_killed_vmpid_ends_the_job_with_its_nodes_name() {
    let nodes = Nodes::beside_others("daemon");
    for keeper in [false, true] {
        let (job, _) = waiting(&nodes, "daemon", "recv");
        let daemons = find(&job.runtime_dir, &nodes.b, "--one-job");
        let child =
            daemons.iter().find(|d| daemons.iter().any(|other| other.pid == d.parent)).expect("daemon and keeper");
        kill_now(if keeper { child.parent } else { child.pid });
        let got = job.finish();
        assert!(got.code != 0 && got.stderr.contains(&nodes.b), "{got:?}");
    }
}

#[test]
fn a_killed_carrier_or_agent_ends_the_job_with_its_nodes_name() {
    let nodes = Nodes::beside_others("carrier");
    for what in ["--carry", "--bootstrap"] {
        let (job, _) = waiting(&nodes, "carrier", "recv");
        kill_now(find(&job.runtime_dir, &nodes.b, what)[0].pid);
        says(&job.finish(), 125, &[&nodes.b]);
    }
}

#[test]
fn a_killed_launcher_leaves_nothing_on_any_node() {
    let nodes = Nodes::beside_others("launcher");
    let (job, _) = waiting(&nodes, "launcher", "recv");
    kill_now(job.pid());
    assert_eq!(job.finish().code, 137);
}

#[test]
fn a_cut_cable_ends_the_job_in_bounded_time() {
    let nodes = Nodes::new("cable");
    let (job, _) = waiting(&nodes, "cable", "recv");
    nodes.cut();
    says(&job.finish(), 125, &["nothing has been heard of node"]);
}

#[test]
fn a_node_without_the_program_is_named() {
    let nodes = Nodes::beside_others("missing");
    let dir = room("cwd").join(format!("only-a-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("target/ is writable");
    fs::copy(program("ring.c", Mpi::Openmpi), dir.join("ring")).expect("target/ is writable");
    let hide = dir.display().to_string();
    let run = nodes.vmpirun("missing").args(["-n", "4"]).arg(dir.join("ring")).args(["5", "5"]);
    // The scratch directory of the run is the base of both nodes' directories.
    let got = run.with_file("hide", &hide).run();
    says(&got, 127, &[&format!("node {}", nodes.b), "ring"]);
    let _ = fs::remove_dir_all(&dir);
}

/// Open MPI hangs in this now and then: its answer for two ranks is recorded, others are those of one node.
#[test]
fn groups_meet_at_ports_whatever_their_nodes() {
    let nodes = Nodes::beside_others("ports");
    for mpi in [Mpi::Openmpi, Mpi::Mpich] {
        let binary = program("spawn_ports.c", mpi);
        for ranks in ["2", "4", "5"] {
            let wanted = match ranks {
                // Behind a line with the exit code.
                "2" => {
                    include_str!("../data/answers/spawn_ports.c-2.txt").split_once('\n').expect("two parts").1.into()
                }
                _ => vmpi_tests::job::Vmpirun::new("one").args(["-n", ranks]).arg(&binary).run().stdout,
            };
            assert!(wanted.contains("all checks hold"), "{wanted}");
            for how in [&[][..], &["--map-by", "node"]] {
                let got = nodes.vmpirun("ports").args(["-n", ranks]).args(how).arg(&binary).run();
                assert!(got.code == 0 && got.stdout == wanted, "{ranks} {how:?}: {got:?}\n--- wanted\n{wanted}");
            }
        }
    }
}

#[test]
fn what_needs_one_node_says_so() {
    let nodes = Nodes::beside_others("refused");
    let binary = program("far.c", Mpi::Openmpi);
    let got = nodes.vmpirun("refused").args(["-n", "4"]).arg(&binary).run();
    assert_eq!((got.code, got.stdout.as_str()), (0, "all refused\n"), "{}", got.stderr);
}
