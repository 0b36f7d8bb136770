//! What other launchers offer: standard input for any rank, the size of the universe, a debugger's table, what ranks leave running;
//! and what must be said before a run rather than after it.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::{Outcome, Vmpirun};
use vmpi_tests::leftovers::eventually;
use vmpi_tests::place::{bin_dir, room, top};
use vmpi_tests::scratch::Scratch;

fn sorted(outcome: &Outcome) -> Vec<&str> {
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn standard_input_goes_to_who_is_to_have_it() {
    let input = room("launcher").join("input");
    fs::write(&input, "one\ntwo\n").expect("target/ is writable");
    let script = "while read line; do echo $VMPI_RANK $line; done";
    for (flags, expected) in [
        (&[][..], &["0 one", "0 two"][..]),
        (&["--stdin", "1"], &["1 one", "1 two"]),
        (&["-s", "0,2"], &["0 one", "0 two", "2 one", "2 two"]),
        (&["-i", "all"], &["0 one", "0 two", "1 one", "1 two", "2 one", "2 two"]),
        (&["--stdin", "all", "--output", "raw"], &["0 one", "0 two", "1 one", "1 two", "2 one", "2 two"]),
        (&["-stdin", "none"], &[]),
    ] {
        let run = Vmpirun::new("stdin").args(["-n", "3", "-q"]).args(flags).args(["sh", "-c", script]);
        let outcome = run.stdin(File::open(&input).expect("just written")).run();
        assert_eq!((outcome.code, sorted(&outcome)), (0, expected.to_vec()), "{flags:?} {outcome:?}");
    }
    let outcome = Vmpirun::new("stdin-none").args(["-n", "3", "--stdin", "3", "true"]).run();
    assert!(outcome.code == 2 && outcome.stderr.contains("no rank 3 of 3"), "{outcome:?}");
}

#[test]
fn the_universe_is_what_the_user_says() {
    let binary = program("universe.c", Mpi::Openmpi).display().to_string();
    let size = |flags: &[&str]| {
        let outcome = Vmpirun::new("universe").args(["-q", "--cores", "0"]).args(flags).arg(&binary).run();
        assert_eq!(outcome.code, 0, "{flags:?} {outcome:?}");
        outcome.stdout.lines().next().unwrap_or("").to_owned()
    };
    for (flags, expected) in [
        (&["-n", "1"][..], "1"),
        (&["-n", "1", "-usize", "6"], "6"),
        (&["-n", "1", "-usize", "SYSTEM"], "1"),
        (&["-n", "1", "-usize", "INFINITE"], "unset"),
        (&["-n", "1", "--host", "localhost:6"], "6"),
        (&["-n", "1", "-V", "3"], "3"),
        (&["-n", "2", "-V", "3"], "3"),
        (&["-n", "4", "--host", "localhost:2"], "4"),
    ] {
        assert_eq!(size(flags), expected, "{flags:?}");
    }
    let outcome = Vmpirun::new("usize").args(["-usize", "many", "true"]).run();
    assert!(outcome.code == 2 && outcome.stderr.contains("INFINITE"), "{outcome:?}");
}

#[test]
fn forty_descriptors_are_enough_for_three_ranks() {
    let binary = program("ring.c", Mpi::Mpich).display().to_string();
    let limited = "ulimit -n 40; exec \"$@\"";
    let run = Vmpirun::wrapped("ulimit", "sh", &["-c", limited, "sh"]);
    let outcome = run.args(["-n", "3", &binary, "10", "8"]).run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
}

#[test]
fn output_files_are_tried_before_anything_starts() {
    let dir = room("launcher");
    for (flag, file, why) in [
        ("--trace", "/nonexist/x.svg", "No such file"),
        ("--trace", "x.jpeg", ".pftrace"),
        ("--trace", "x", ".svg"),
        ("--matrix", "/nonexist/x.csv", "No such file"),
        ("--matrix", "x.txt", ".csv, .json, .svg or .png"),
        ("--report-html", "/nonexist/x.html", "No such file"),
        ("--report-html", "x.pdf", ".html"),
        ("--profile", "/proc/x", "No such file"),
    ] {
        let started = dir.join("started");
        let outcome = Vmpirun::new("outputs").args(["-n", "1", flag, file, "touch"]).arg(&started).run();
        assert_eq!(outcome.code, 2, "{flag} {file}: {outcome:?}");
        assert!(outcome.stderr.contains(why) && !started.exists(), "{flag} {file}: {outcome:?}");
    }
}

#[test]
fn what_ranks_leave_running_is_left_after_a_good_end_and_heard() {
    let dir = room("launcher");
    let script = format!("(sleep 1; echo late; touch {}/$VMPI_RANK.left) & echo done", dir.display());
    let outcome = Vmpirun::new("left").args(["-n", "2", "sh", "-c", &script]).run();
    assert_eq!((outcome.code, sorted(&outcome)), (0, vec!["done", "done", "late", "late"]), "{outcome:?}");
    assert!(["0.left", "1.left"].iter().all(|file| fs::remove_file(dir.join(file)).is_ok()), "{outcome:?}");
    // Whoever does not hold the output is not waited for.
    let script =
        format!("(setsid sh -c 'sleep 2; touch {}/$VMPI_RANK.alone') >/dev/null 2>&1 & sleep 0.3", dir.display());
    let mut job = Vmpirun::new("left-alone").args(["-n", "2", "sh", "-c", &script]).start();
    assert!(eventually(Duration::from_secs(20), || job.has_ended()));
    assert!(!dir.join("0.alone").exists());
    let both = || ["0.alone", "1.alone"].iter().all(|file| dir.join(file).exists());
    assert!(eventually(Duration::from_secs(20), both), "killed");
    ["0.alone", "1.alone"].iter().for_each(|file| fs::remove_file(dir.join(file)).expect("it is there"));
    assert_eq!(job.finish().code, 0);
    // Where there is much to do, one of them is still a shell.
    let script = "sleep 1000 & sleep 0.3; exit 3";
    let outcome = Vmpirun::new("left-bad").args(["-n", "2", "sh", "-c", script]).run();
    let (_, ended) = outcome.stderr.split_once("was ended, too: ").unwrap_or_default();
    assert!(outcome.code == 3 && ended.contains("sleep (pid "), "{outcome:?}");
}

#[test]
fn a_library_opened_by_its_path_is_vmpis() {
    let script = "import ctypes, sys
L = ctypes.CDLL(sys.argv[1]); L.MPI_Init(None, None); r, n = ctypes.c_int(), ctypes.c_int()
w = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(L, 'ompi_mpi_comm_world'))) if 'h.so' not in sys.argv[1] else 0x44000000
L.MPI_Comm_rank(w, ctypes.byref(r)); L.MPI_Comm_size(w, ctypes.byref(n)); print(r.value, 'of', n.value, flush=True); L.MPI_Finalize()";
    for library in ["libmpi.so.40", "libmpi.so", "libmpich.so.12", "libmpich.so"] {
        let path = format!("/usr/lib/x86_64-linux-gnu/{library}");
        let outcome = Vmpirun::new("by-path").args(["-n", "2", "python3", "-c", script, &path]).run();
        assert_eq!((outcome.code, sorted(&outcome)), (0, vec!["0 of 2", "1 of 2"]), "{path}: {outcome:?}");
    }
    // Who closes it ends well, too: what is to be done at the end lies in it.
    let closing = format!("{script}; import _ctypes; _ctypes.dlclose(L._handle)");
    for library in ["libmpi.so.40", "libmpich.so.12"] {
        let path = format!("/usr/lib/x86_64-linux-gnu/{library}");
        let outcome = Vmpirun::new("by-path").args(["-n", "2", "python3", "-c", &closing, &path]).run();
        assert_eq!((outcome.code, sorted(&outcome)), (0, vec!["0 of 2", "1 of 2"]), "{path}: {outcome:?}");
    }
    // An interpreter that a shell, a script or a tool starts.
    let (dir, path) = (Scratch::new("by-path-dir"), "/usr/lib/x86_64-linux-gnu/libmpi.so.40");
    let (program, inner) = (dir.path().join("open.py"), dir.path().join("inner"));
    fs::write(&program, script).expect("it is this test's directory");
    let line = format!("python3 {} {path}", program.display());
    fs::write(&inner, format!("#!/bin/sh\nexec {line}\n")).expect("it is this test's directory");
    fs::set_permissions(&inner, PermissionsExt::from_mode(0o755)).expect("it is this test's file");
    let (inner, program) = (inner.display().to_string(), program.display().to_string());
    let commands: [&[&str]; 4] =
        [&[&inner], &["sh", "-c", &line], &["sh", &inner], &["nice", "env", "A=b", "python3", &program, path]];
    for command in commands {
        let outcome = Vmpirun::new("by-path").args(["-n", "2"]).args(command).run();
        assert_eq!((outcome.code, sorted(&outcome)), (0, vec!["0 of 2", "1 of 2"]), "{command:?}: {outcome:?}");
    }
    // Not where no interpreter is named, nor below memcheck.
    for command in ["echo \"[$LD_AUDIT]\"", "echo \"[$LD_AUDIT]\"; : valgrind python3"] {
        let outcome = Vmpirun::new("by-path").args(["-n", "1", "sh", "-c", command]).run();
        assert_eq!(outcome.stdout, "[]\n", "{outcome:?}");
    }
}

/// The auditor has no library to have it from.
#[test]
fn vmpirun_and_the_auditor_know_the_same_interpreters() {
    let list = |file: &str| {
        let text = fs::read_to_string(top().join(file)).expect("it is in the repository");
        let (_, rest) = text.split_once("const INTERPRETERS: [&str; ").expect("it has the list");
        rest.split(';').take(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(list("tools/src/program.rs"), list("libvmpi/audit/src/lib.rs"));
}

#[test]
fn a_debugger_finds_the_ranks_in_vmpirun() {
    let names = Command::new("nm").args(["-D", "--defined-only"]).arg(bin_dir().join("vmpirun")).output().expect("nm");
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    for name in [
        "MPIR_being_debugged",
        "MPIR_debug_state",
        "MPIR_debug_abort_string",
        "MPIR_proctable",
        "MPIR_proctable_size",
        "MPIR_i_am_starter",
        "MPIR_partial_attach_ok",
        "MPIR_acquired_pre_main",
        "MPIR_Breakpoint",
    ] {
        assert!(names.lines().any(|line| line.ends_with(&format!(" {name}"))), "{name}: {names}");
    }
    // The table's entries: host, executable (pointers), pid.
    let commands = [
        "set breakpoint pending on",
        "break MPIR_Breakpoint",
        "starti",
        "set {int}&MPIR_being_debugged = 1",
        "continue",
        "set language c",
        "printf \"state %d, %d ranks\\n\", {int}&MPIR_debug_state, {int}&MPIR_proctable_size",
        "set $table = *(char**)&MPIR_proctable",
        "printf \"second: %s\\n\", *(char**)($table + 24 + 8)",
        "eval \"shell cat /proc/%d/status\", *(int*)($table + 40)",
        "continue",
    ];
    let options: Vec<&str> =
        ["-q", "-batch"].into_iter().chain(commands.iter().flat_map(|c| ["-ex", *c])).chain(["--args"]).collect();
    let outcome = Vmpirun::wrapped("mpir", "gdb", &options).args(["-n", "2", "/bin/echo", "it ran"]).run();
    for expected in ["state 1, 2 ranks", "second: /bin/echo", "(stopped)", "it ran"] {
        assert!(outcome.stdout.contains(expected), "{expected}: {outcome:?}");
    }
}

#[test]
fn a_call_before_mpi_init_is_told_of_once_and_whole() {
    let binary = program("before_init.c", Mpi::Mpich).display().to_string();
    let outcome = Vmpirun::new("before-init").args(["-n", "1", &binary]).run();
    let lines: Vec<&str> = outcome.stderr.lines().filter(|line| line.starts_with("vmpi: ")).collect();
    assert_eq!(lines, ["vmpi: MPI_Comm_rank was called before MPI_Init, where MPI does not allow it"], "{outcome:?}");
    let outcome = Vmpirun::new("before-init").args(["-n", "8", &binary]).run();
    assert!(
        outcome.stderr.lines().filter(|line| line.starts_with("vmpi: ")).all(|line| line == lines[0]),
        "{outcome:?}"
    );
}

#[test]
fn tags_of_leaders_that_differ_are_named_as_the_program_gave_them() {
    let binary = program("leaders_tags.c", Mpi::Mpich).display().to_string();
    let outcome = Vmpirun::new("leaders").args(["-n", "2", "--on-deadlock", "abort", &binary]).run();
    assert_eq!(outcome.code, 123, "{outcome:?}");
    let hint = "MPI_Intercomm_create the tag 8 on MPI_COMM_WORLD, and rank 1 the tag 7";
    assert!(outcome.stderr.contains(hint) && !outcome.stderr.contains("10737418"), "{outcome:?}");
}
