//! Programs that misuse what vmpid gives its ranks: it goes on, and so do the jobs of others. (What clients of its socket may say: `daemon/tests/hostile.rs`.)

use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::daemon::Daemon;
use vmpi_tests::nodes::Nodes;

/// O_NONBLOCK is the open file's, which daemon and ranks share: the daemon of all jobs waited for ever in a read.
#[test]
fn a_rank_that_makes_its_bell_wait_stops_no_other_job() {
    let daemon = Daemon::start("bells");
    let (waits_on, ring) = (program("waits_on.c", Mpi::Openmpi), program("ring.c", Mpi::Openmpi));
    for args in [&[][..], &["fill"]] {
        let hostile = daemon.vmpirun("hostile").args(["-n", "2"]).arg(&waits_on).args(args).start();
        for _ in 0..3 {
            let got = daemon.vmpirun("canary").args(["-n", "2"]).arg(&ring).args(["20", "8"]).run();
            assert_eq!(got.code, 0, "{args:?}: {got:?}");
        }
        let got = hostile.finish();
        assert_eq!(got.code, 0, "{args:?}: {got:?}");
    }
    let pid = daemon.pid();
    let got =
        daemon.vmpirun("after").args(["-n", "2"]).arg(&ring).args(["20", "8"]).deadline(Duration::from_secs(30)).run();
    assert_eq!((got.code, daemon.pid()), (0, pid), "{got:?}");
    daemon.stop();
}

/// What programs print, and logs keep, holds no secret.
#[test]
fn the_environment_of_a_rank_holds_no_key() {
    let daemon = Daemon::start("printed");
    let got = daemon.vmpirun("env").args(["-n", "1", "/usr/bin/env"]).run();
    assert_eq!(got.code, 0, "{got:?}");
    let named: Vec<&str> = got.stdout.lines().filter(|line| line.starts_with("VMPI_")).collect();
    assert!(named.iter().any(|line| line.starts_with("VMPI_JOBID=")), "{named:?}");
    assert!(named.iter().all(|line| !line.contains("KEY")), "{named:?}");
    daemon.stop();
}

/// A carrier copies into the memory of the process that a rank is, by the daemon's word: not of one that the rank names, which may be vmpid, root's, itself.
#[test]
fn a_rank_that_names_another_process_on_two_nodes_gets_nothing_written_there() {
    let nodes = Nodes::new("forged");
    let forged = program("forged.c", Mpi::Openmpi);
    for args in [&["pids"][..], &["pids", "drop"], &["all"], &["all", "drop"]] {
        let got = nodes.vmpirun("forged").args(["-n", "4", "--map-by", "node"]).arg(&forged).args(args).run();
        let wanted = if args[0] == "all" { 77 } else { 0 };
        assert_eq!(got.code, wanted, "{args:?}: {got:?}");
        assert!(!got.stderr.contains("FAILED") && !got.stderr.contains("died"), "{args:?}: {got:?}");
    }
}
