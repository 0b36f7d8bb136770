//! Words of the scheduler that a rank writes over with values that could be there: the job ends with a sentence or with its answers, never in silence.

use std::mem::offset_of;
use std::time::Duration;

use vmpi_shared::node::{CORES_AT, CoreDescriptor, RankDescriptor, ranks_at};
use vmpi_shared::sched::{CLAIMED, IDLE, OPEN, RunState, SPINNING, WITHHELD};
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::Turn;

/// The sentence with which it ended, or "done".
fn ends(name: &str, flags: &[&str], offset: usize, values: &[u32]) -> String {
    let turn = Turn::take();
    let binary = program("overwritten.c", Mpi::Openmpi);
    drop(turn);
    let run = Vmpirun::new(name).args(["-n", "4", "--on-deadlock", "abort"]).args(flags).arg(binary);
    let run = run.args([offset.to_string(), "400".into()]).args(values.iter().map(u32::to_string));
    let outcome = run.deadline(Duration::from_secs(40)).run();
    assert!(outcome.stdout.contains("found\n") && !outcome.stdout.contains("not found"), "{outcome:?}");
    assert!(!outcome.stdout.contains("wrong"), "{outcome:?}");
    if outcome.code == 0 {
        assert!(outcome.stdout.ends_with("done\n"), "{outcome:?}");
        return "done".into();
    }
    // A wake-up that is written over leaves ranks that wait for each other.
    let is_deadlock = outcome.stderr.contains("deadlock");
    assert!(is_deadlock || outcome.stderr.contains("has been overwritten"), "{outcome:?}");
    assert!(is_deadlock || outcome.code == 125, "{outcome:?}");
    outcome.stderr
}

/// Every word of the first core that says who runs: on one core, on two (where ranks watch), and in a job that survives deaths (where steps are marked).
#[test]
fn a_word_of_the_scheduler_that_could_be_there() {
    let at = |field: usize| CORES_AT as usize + field;
    let (holder, spinner) = (at(offset_of!(CoreDescriptor, holder)), at(offset_of!(CoreDescriptor, spinner)));
    let words: [(&str, usize, &[u32]); 9] = [
        ("spinner", spinner, &[0, 1, 2, 3]),
        ("spinner-one", spinner, &[1]),
        ("claimed", holder, &[CLAIMED]),
        ("spinning", holder, &[SPINNING]),
        ("open", holder, &[OPEN]),
        ("withheld", holder, &[WITHHELD]),
        ("idle", holder, &[IDLE]),
        ("mixed", holder, &[CLAIMED, SPINNING, OPEN, IDLE]),
        ("mending", at(offset_of!(CoreDescriptor, mending)), &[1]),
    ];
    let mut stalled = 0;
    for flags in [&["-V", "4"][..], &["-V", "2"], &["-V", "2", "--enable-recovery"]] {
        for (word, offset, values) in words {
            let name = format!("{word}{}", flags.concat());
            let told = ends(&name, flags, offset, values);
            println!("{name}: {told}");
            stalled += u32::from(told.contains("goes to nobody"));
        }
    }
    assert!(stalled > 0, "no case has left a core to nobody: the test has lost its aim");
}

/// Every word of a rank that says whether it runs, waits or is gone.
#[test]
fn a_word_of_a_rank_that_could_be_there() {
    let states = |names: &[RunState]| names.iter().map(|state| state.word()).collect::<Vec<_>>();
    // The third of four, on two cores; a job that needs one describes the other, too, since its ranks may have it.
    let at = |field: usize| ranks_at(2, 4) as usize + 2 * size_of::<RankDescriptor>() + field;
    for v in ["4", "2"] {
        let (state, permit) = (at(offset_of!(RankDescriptor, state)), at(offset_of!(RankDescriptor, permit)));
        let words: [(&str, usize, Vec<u32>); 8] = [
            ("init", state, states(&[RunState::Init])),
            ("dead", state, states(&[RunState::Dead])),
            ("remote", state, states(&[RunState::Remote])),
            ("away", state, states(&[RunState::Away])),
            ("ready", state, states(&[RunState::Ready])),
            ("suspended", state, states(&[RunState::Suspended])),
            ("permits", permit, vec![0, 1, 2, 3]),
            ("no-permit", permit, vec![0x51]),
        ];
        for (word, offset, values) in words {
            println!("{word} -V {v}: {}", ends(&format!("rank-{word}-{v}"), &["-V", v], offset, &values));
        }
    }
}
