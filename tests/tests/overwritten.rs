//! Words of the scheduler that a rank writes over with values that could be there: the job ends with a sentence or with its answers, never in silence.

use std::fs::{self, File};
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use vmpi_shared::job::JobSegment;
use vmpi_shared::node::{CORES_AT, CoreDescriptor, RankDescriptor, ranks_at};
use vmpi_shared::sched::{CLAIMED, IDLE, OPEN, RunState, SPINNING, WITHHELD};
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Job, Vmpirun};
use vmpi_tests::place::Turn;

/// The sentence with which it ended, or "done".
fn ends(name: &str, flags: &[&str], offset: usize, values: &[u32]) -> String {
    Turn::beside_others();
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

/// The segment about messages of a job that runs, to be written to.
fn messages_of(job: &Job) -> (JobSegment, File) {
    let (daemon, _) = job.daemon_pids();
    let links = fs::read_dir(format!("/proc/{daemon}/fd")).expect("the daemon lives").flatten().map(|link| link.path());
    let is_it =
        |path: &std::path::PathBuf| fs::read_link(path).is_ok_and(|to| to.to_string_lossy().contains("memfd:vmpi-job"));
    let path = links.into_iter().find(is_it).expect("vmpid has the segment");
    let open = || File::options().read(true).write(true).open(&path).expect("of the same user");
    (JobSegment::map(open().into()).expect("it is one"), open())
}

/// Starts four ranks of which 2 has unexpected messages and goes on when `write` has written; the sentence with which the job ends.
fn ends_when(name: &str, flags: &[&str], write: impl Fn(&JobSegment, &File)) -> String {
    Turn::beside_others();
    let turn = Turn::take();
    let binary = program("written_to.c", Mpi::Openmpi);
    drop(turn);
    let run = Vmpirun::new(name).args(["-n", "4", "--on-deadlock", "abort"]).args(flags).arg(binary);
    let go_on = run.runtime_dir().join("go-on");
    let mut job = run.arg(&go_on).deadline(Duration::from_secs(60)).start();
    job.ready(4);
    let (segment, file) = messages_of(&job);
    write(&segment, &file);
    fs::write(&go_on, "").expect("it is this test's directory");
    let outcome = job.finish();
    assert_eq!(outcome.code, 125, "{outcome:?}");
    assert!(outcome.stderr.contains("has been overwritten"), "{outcome:?}");
    outcome.stderr
}

/// Where senders would go round for ever: each place of rank 2's inbox is neither empty nor full.
#[test]
fn places_of_an_inbox() {
    for (flags, turn) in [
        (&["-V", "4"][..], 1 << 30),
        (&["-V", "2"], 1 << 30),
        (&["-V", "2", "--enable-recovery"], 1 << 30),
        (&["-V", "2"], 0u64),
    ] {
        let told = ends_when(&format!("inbox{turn}{}", flags.concat()), flags, |segment, file| {
            let (inbox, _) = segment.places(2);
            let cell = size_of_val(&segment.inbox(2).cells[0]) as u64;
            for number in 0..segment.inbox(2).cells.len() as u64 {
                file.write_all_at(&turn.to_le_bytes(), inbox + number * cell).expect("inside the segment");
            }
        });
        // Or who waits for what was in there is found first.
        let found = told.contains("the inbox of rank 2") || told.contains("rank 2 has been SUSPENDED there");
        assert!(found, "{told}");
    }
}

/// The list of a receiver's unexpected messages ends nowhere: who looks through it goes round in the library.
#[test]
fn a_list_that_has_become_a_ring() {
    for flags in [["-V", "4"], ["-V", "2"]] {
        let told = ends_when(&format!("ring{}", flags.concat()), &flags, |segment, file| {
            let (_, messages) = segment.places(2);
            // Behind the envelope: next and previous of four lists, by number + 1.
            for number in 0..64u32 {
                for list in 0..4 {
                    let at = messages + u64::from(number) * 192 + 160 + 8 * list;
                    file.write_all_at(&(number + 1).to_le_bytes(), at).expect("inside the segment");
                }
            }
        });
        assert!(told.contains("rank 2 has gone round a few instructions"), "{told}");
    }
}
