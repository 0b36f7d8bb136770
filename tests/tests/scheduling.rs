//! Which rank gets a core, as programs notice it.

use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::Turn;

fn told(flags: &[&str], how: &[&str]) -> String {
    let binary = {
        let _turn = Turn::take();
        program("starved.c", Mpi::Openmpi)
    };
    let outcome = Vmpirun::new("starved").args(["-n", "4", "-V", "2"]).args(flags).arg(&binary).args(how).run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    outcome.stdout
}

/// A rank whose core another one computes on for a second, without MPI, runs on the other core, whose ranks wait, or only poll or sleep: unless it is told to stay,
/// or bound.
#[test]
fn a_rank_that_starves_goes_where_others_have_nothing_to_do() {
    for how in [&[][..], &["poll"], &["nap"]] {
        for flags in [&[][..], &["--balance", "rescue"], &["--balance", "steal"]] {
            assert_eq!(told(flags, how), "told in time\n", "{flags:?} {how:?}");
        }
        for flags in [&["--balance", "none"][..], &["--bind-to", "core"]] {
            assert_eq!(told(flags, how), "told late\n", "{flags:?} {how:?}");
        }
    }
}

/// A rank that lost its core while it computed, since it had it for long, gets one that has nothing to do before it calls MPI again: its own, or another one if
/// ranks may move.
#[test]
fn who_computes_without_a_core_gets_an_idle_one() {
    let binary = {
        let _turn = Turn::take();
        program("strays.c", Mpi::Openmpi)
    };
    let cases: [(&[&str], &str); 4] = [
        (&["-n", "3", "-V", "2"], "alone, clock ran, threads together\n"),
        (&["-n", "3", "-V", "2", "--balance", "steal"], "alone, clock ran, threads together\n"),
        (&["-n", "3", "-V", "2", "--balance", "none"], "beside others, clock stood, threads together\n"),
        // The CPU is its own again after a while.
        (&["-n", "2", "-V", "2", "--balance", "none"], "alone, clock ran, threads together\n"),
    ];
    for (flags, told) in cases {
        let outcome = Vmpirun::new("strays").args(["--quantum", "50"]).args(flags).arg(&binary).run();
        assert_eq!((outcome.code, &*outcome.stdout), (0, told), "{flags:?}: {}", outcome.stderr);
    }
}

/// Ranks of one core that poll keep it while nothing comes for the others, and pass it on as soon as something has.
#[test]
fn who_polls_passes_the_core_on_when_that_is_of_use() {
    let binary = {
        let _turn = Turn::take();
        program("turns.c", Mpi::Openmpi)
    };
    for policy in ["rr", "fifo", "lifo", "priority", "follow"] {
        let outcome = Vmpirun::new("turns").args(["-n", "2", "-V", "2", "--policy", policy]).arg(&binary).run();
        let told = "turns while nothing comes: few\npolls for a message that comes: few\n";
        assert_eq!((outcome.code, &*outcome.stdout), (0, told), "{policy}: {}", outcome.stderr);
    }
}
