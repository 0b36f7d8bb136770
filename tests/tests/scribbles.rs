//! A rank that writes all over the memory that it shares, by seeds: its job ends, with its answers or with a sentence; the daemon and the job beside it go on.
//! (`promises.rs` has a few rounds of it in the first tier.)

use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::daemon::Daemon;
use vmpi_tests::leftovers::eventually;
use vmpi_tests::place::Turn;

const HOW: [&str; 12] =
    ["noise", "zeros", "ones", "node", "job", "rare", "taken", "bits", "moved", "holes", "files", "pids"];
const TRAFFIC: [&str; 6] = ["small", "large", "collective", "onesided", "unexpected", "idle"];
const POLICIES: [&str; 5] = ["rr", "fifo", "lifo", "priority", "follow"];

#[test]
#[ignore = "second tier"]
fn five_hundred_rounds() {
    let rounds: u64 = std::env::var("VMPI_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    let first: u64 = std::env::var("VMPI_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let turn = Turn::take();
    let (scribbler, traffic) = (program("scribble.c", Mpi::Openmpi), program("traffic.c", Mpi::Openmpi));
    drop(turn);
    let daemon = Daemon::start("scribbles");
    let pid = daemon.pid();
    let (mut silent, mut told, mut well) = (Vec::new(), 0, 0);
    for seed in first..first + rounds {
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut of = |names: &[&'static str]| names[chance.usize(..names.len())];
        let (how, kind, policy) = (of(&HOW), of(&TRAFFIC), of(&POLICIES));
        let recovery: &[&str] = if seed % 5 == 4 { &["--enable-recovery"] } else { &[] };
        let name = format!("seed {seed}: {how} in {kind}, {policy} {recovery:?}");
        let beside = daemon.vmpirun("beside").args(["-n", "4", "-V", "2"]).arg(&traffic);
        let beside = beside.args(["20", &seed.to_string()]).start();
        let bad = daemon.vmpirun("bad").args(["-n", "6", "-V", "3", "--policy", policy, "--on-deadlock", "abort"]);
        let bad = bad.args(recovery).arg(&scribbler).args([how, &seed.to_string(), kind, "600"]);
        let mut bad = bad.deadline(Duration::from_secs(120)).start();
        let ended = eventually(Duration::from_secs(40), || bad.has_ended());
        if !ended {
            let stacks = bad.vmpictl(&["ps", "--ranks"]);
            println!("{name}: silent\n{}{}", stacks.stdout, stacks.stderr);
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(bad.pid()), nix::sys::signal::Signal::SIGTERM);
            silent.push(seed);
        }
        let outcome = bad.finish();
        assert!(outcome.code == 0 || !outcome.stderr.is_empty(), "{name}: {outcome:?}");
        well += u32::from(outcome.code == 0);
        told += u32::from(ended && outcome.code != 0);
        let beside = beside.finish();
        assert!(beside.code == 0 && beside.stdout.ends_with("all checks hold\n"), "{name}: {beside:?}");
        assert_eq!(daemon.pid(), pid, "{name}: the daemon goes on");
    }
    println!("{rounds} rounds: {told} ended with a sentence, {well} well, {} in silence: {silent:?}", silent.len());
    assert!(silent.is_empty(), "rounds that ended in silence: {silent:?}");
    daemon.stop();
}
