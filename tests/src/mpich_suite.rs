//! MPICH's own test suite (test/mpi of its sources), built against Debian's MPICH by `cargo xtask setup` for the second tier:
//! its lists of tests, and what it calls a success.

use crate::job::{Outcome, Vmpirun, kill_all, remaining};
use crate::leftovers::shared_memory_files;
use crate::place::{Turn, top};
use crate::scratch::Scratch;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// For a test that says nothing; the suite itself has half of it, and not two tests at a time (threads/pt2pt/multisend4 spins in threads of five ranks).
const TIME_LIMIT: Duration = Duration::from_secs(360);
/// Jobs at a time, unless the list has tests of files.
const WORKERS: usize = 2;
/// Lists some of whose tests write files, under the same names, where they run.
const ONE_BY_ONE: &[&str] = &["cxx", "errors", "f08", "f77", "f90", "impls", "io"];
/// How long vmpirun may take to end a job whose time is over.
const GRACE: Duration = Duration::from_secs(60);

/// Where the suite was built: `VMPI_TEST_MPICH_SUITE`, else target/mpich-suite/build.
///
/// # Panics
/// If it was not.
pub fn directory() -> PathBuf {
    let own = top().join("target/mpich-suite/build");
    let dir = std::env::var_os("VMPI_TEST_MPICH_SUITE").map_or(own, PathBuf::from);
    assert!(dir.join("runtests").is_file(), "no suite in {}: run `cargo xtask test --tier 2`", dir.display());
    dir
}

/// How a test tells its result.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Judge {
    /// Nothing but ` No Errors`, and success.
    NoErrors,
    /// ` No Errors`, but vmpirun's exit code is not 0.
    NoErrorsButFailure,
    /// An exit code other than 0.
    Failure,
}

/// A line of a list.
#[derive(Clone, Debug)]
pub struct Test {
    /// Below the suite's top; the program is run there.
    directory: PathBuf,
    program: String,
    ranks: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    flags: Vec<String>,
    judge: Judge,
    time_limit: Duration,
    /// Memory it takes, GiB.
    memory: f64,
    /// MPICH fails it, too; the list says so.
    xfail: bool,
}

impl Test {
    /// The program without its ranks and arguments: `attr/fkeyval`.
    pub fn path(&self) -> String {
        self.directory.join(&self.program).display().to_string()
    }

    /// As in the list: `comm/dup 4 -x`.
    pub fn name(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!(" {name}={value}"));
        let args = self.args.iter().map(|arg| format!(" {arg}"));
        format!("{} {}{}{}", self.path(), self.ranks, args.collect::<String>(), env.collect::<String>())
    }

    /// Run it and say what is wrong.
    fn run(&self, suite: &Path, runtime_dir: &Path, label: &str) -> Result<(), String> {
        let mut job = Vmpirun::under(runtime_dir, label)
            .args(["-n", &self.ranks])
            .args(&self.flags)
            .arg(format!("./{}", self.program))
            .args(&self.args)
            .env("MPIEXEC_TIMEOUT", self.time_limit.as_secs().to_string())
            .cwd(suite.join(&self.directory))
            .deadline(self.time_limit + GRACE);
        for (name, value) in &self.env {
            job = job.env(name, value);
        }
        match catch_unwind(AssertUnwindSafe(|| job.run())) {
            Ok(outcome) => self.judge.verdict(&outcome),
            Err(why) => {
                kill_all(runtime_dir);
                Err(why.downcast_ref::<String>().cloned().unwrap_or_else(|| "the test's driver panicked".into()))
            }
        }
    }
}

impl Judge {
    fn verdict(self, outcome: &Outcome) -> Result<(), String> {
        let wrong = |what: &str| {
            Err(format!("{what} (code {})\n{}{}", outcome.code, outcome.stdout, outcome.stderr).trim_end().to_owned())
        };
        if (outcome.code == 0) != (self == Judge::NoErrors) {
            return wrong("unexpected exit code");
        }
        if self == Judge::Failure {
            return Ok(());
        }
        let lines = outcome.stdout.lines().chain(outcome.stderr.lines()).filter(|line| !line.contains("FORTRAN STOP"));
        let (good, other): (Vec<&str>, Vec<&str>) =
            lines.partition(|line| matches!(line.trim(), "No Errors" | "No errors"));
        match (good.len(), other.iter().find(|line| line.trim() != "Test Passed")) {
            (0, _) => wrong("it did not say No Errors"),
            (1, None) => Ok(()),
            _ if self == Judge::NoErrorsButFailure => Ok(()), // vmpirun says why it fails.
            _ => wrong("unexpected output"),
        }
    }
}

/// The tests of a list and of the directories that it names.
///
/// # Panics
/// If a list cannot be read, or says what is not known.
pub fn tests_below(suite: &Path, directory: &Path) -> Vec<Test> {
    let list = suite.join(directory).join("testlist");
    let text =
        fs::read_to_string(&list).or_else(|_| fs::read_to_string(sources(suite).join(directory).join("testlist")));
    let text = text.unwrap_or_else(|e| panic!("{}: {e}", list.display()));
    let mut tests = Vec::new();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or("").trim()) {
        // `!dir:target` is something to build first: the setup has built all.
        let Some(first) = line.split_whitespace().next().filter(|first| !first.starts_with('!')) else { continue };
        if suite.join(directory).join(first).is_dir() {
            tests.extend(tests_below(suite, &directory.join(first)));
        } else {
            tests.push(parse(directory, line).unwrap_or_else(|why| panic!("{}: {line:?}: {why}", list.display())));
        }
    }
    tests
}

/// Where the build finds what it has not copied.
fn sources(suite: &Path) -> PathBuf {
    let makefile = fs::read_to_string(suite.join("Makefile")).unwrap_or_default();
    let line = makefile.lines().find_map(|line| line.strip_prefix("srcdir = "));
    suite.join(line.unwrap_or("."))
}

fn parse(directory: &Path, line: &str) -> Result<Test, String> {
    let mut words = line.split_whitespace();
    let program = Path::new(words.next().unwrap_or_default());
    let (below, file) = (program.parent().unwrap_or(Path::new("")), program.file_name().unwrap_or_default());
    let mut test = Test {
        directory: directory.join(below),
        program: file.to_string_lossy().into_owned(),
        ranks: words.next().unwrap_or("2").into(),
        args: Vec::new(),
        env: Vec::new(),
        flags: Vec::new(),
        judge: Judge::NoErrors,
        time_limit: TIME_LIMIT,
        memory: 0.0,
        xfail: false,
    };
    for word in words {
        // pt2pt/sendself has its own path among its arguments; the suite's driver takes no notice either.
        let Some((key, value)) = word.split_once('=') else { continue };
        match key {
            "arg" => test.args.push(value.into()),
            "env" => {
                let (name, value) = value.split_once('=').ok_or_else(|| format!("{value} is no name=value"))?;
                test.env.push((name.into(), value.into()));
            }
            "mpiexecarg" => test.flags.push(value.into()),
            "timeLimit" => {
                test.time_limit = Duration::from_secs(value.parse().map_err(|_| format!("{value} is no number"))?);
            }
            "mem" => test.memory = value.parse().map_err(|_| format!("{value} is no number"))?,
            "xfail" => test.xfail = true,
            "resultTest" => {
                test.judge = match value {
                    "TestStatus" | "TestErrFatal" => Judge::Failure,
                    "TestStatusNoErrors" => Judge::NoErrorsButFailure,
                    _ => return Err(format!("{value} is no way to judge")),
                };
            }
            // For suites of other MPIs, or older ones; this one was built for MPICH 4.
            "strict" | "mpix" | "mpiversion" => {}
            _ => return Err(format!("{key} is not known")),
        }
    }
    Ok(test)
}

/// Tests that must fail, and why: `PATH` or a test's whole name, a tab, the reason.
struct Expected {
    test: String,
    reason: String,
}

impl Expected {
    fn is_for(&self, test: &Test) -> bool {
        self.test == test.path() || self.test == test.name()
    }
}

fn expected_failures() -> Vec<Expected> {
    let path = top().join("tests/data/mpich-suite-expected.tsv");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.map(|line| match line.split_once('\t') {
        Some((test, reason)) if !reason.trim().is_empty() => Expected { test: test.into(), reason: reason.into() },
        _ => panic!("{}: not a test, a tab and a reason: {line:?}", path.display()),
    })
    .collect()
}

/// Memory that is free now, GiB.
fn free_memory() -> f64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kibibytes: f64 = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0.0);
    kibibytes / 1024.0 / 1024.0
}

/// Run the list of a directory and of those that it names, two tests at a time. Those that MPICH itself fails are left out, and those that
/// need more memory than there is.
///
/// # Panics
/// If a test fails and is not expected to, if one passes that is expected to fail, if an expectation names no test, and if anything is left behind.
pub fn run(group: &str) {
    let suite = directory();
    let tests: Vec<Test> = tests_below(&suite, Path::new(group)).into_iter().filter(|test| !test.xfail).collect();
    let expected = expected_failures();
    let of_this_group = |row: &&Expected| row.test.split('/').next() == Some(group);
    let mut wrong: Vec<String> = (expected.iter().filter(of_this_group))
        .filter(|row| !tests.iter().any(|test| row.is_for(test)))
        .map(|row| format!("{}: expected to fail ({}), but there is no such test", row.test, row.reason))
        .collect();
    assert!(!tests.is_empty(), "{group}: its list is empty");

    let _turn = Turn::take();
    let before: BTreeSet<String> = shared_memory_files();
    let workers = if ONE_BY_ONE.contains(&group) { 1 } else { WORKERS };
    let scratches: Vec<Scratch> = (0..workers).map(|worker| Scratch::new(&format!("suite-{worker}"))).collect();
    let (next, failed) = (Mutex::new(tests.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for (worker, scratch) in scratches.iter().enumerate() {
            let (next, failed, suite, expected) = (&next, &failed, &suite, &expected);
            scope.spawn(move || {
                loop {
                    let Some(test) = next.lock().unwrap().next() else { break };
                    if test.memory > free_memory() {
                        println!("skip {}: it needs {} GiB", test.name(), test.memory);
                        continue;
                    }
                    let result = test.run(suite, scratch.path(), &format!("suite-{worker}"));
                    let row = expected.iter().find(|row| row.is_for(test));
                    println!("{} {}", if result.is_ok() { "ok" } else { "not ok" }, test.name());
                    match (result, row) {
                        (Err(why), None) => failed.lock().unwrap().push(format!("{}: {why}", test.name())),
                        (Ok(()), Some(row)) => {
                            let passed = format!("{}: passes, expected to fail: {}", test.name(), row.reason);
                            failed.lock().unwrap().push(passed);
                        }
                        _ => {}
                    }
                }
            });
        }
    });
    wrong.extend(failed.into_inner().unwrap());
    wrong.extend(scratches.iter().filter_map(|scratch| remaining(scratch.path(), &before)));
    assert!(wrong.is_empty(), "{group}: {} of {} tests\n{}", wrong.len(), tests.len(), wrong.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(code: i32, stdout: &str, stderr: &str) -> Outcome {
        Outcome { code, stdout: stdout.into(), stderr: stderr.into() }
    }

    #[test]
    fn a_line_of_a_list() {
        let test = parse(Path::new("coll"), "sub/red 4 arg=-n arg=3 env=A=b=c timeLimit=30 mem=6.5").unwrap();
        assert_eq!(test.path(), "coll/sub/red");
        assert_eq!(test.name(), "coll/sub/red 4 -n 3 A=b=c");
        assert_eq!((test.time_limit, test.memory, test.judge), (Duration::from_secs(30), 6.5, Judge::NoErrors));
        assert_eq!(parse(Path::new("init"), "exit 2 resultTest=TestStatus").unwrap().judge, Judge::Failure);
        assert!(parse(Path::new("init"), "exit 2 resultTest=TestNothing").is_err());
        assert!(parse(Path::new("init"), "exit 2 nonsense=1").is_err());
    }

    #[test]
    fn what_counts_as_success() {
        assert!(Judge::NoErrors.verdict(&outcome(0, " No Errors\n", "")).is_ok());
        assert!(Judge::NoErrors.verdict(&outcome(1, " No Errors\n", "")).is_err());
        assert!(Judge::NoErrors.verdict(&outcome(0, "", "")).is_err());
        assert!(Judge::NoErrors.verdict(&outcome(0, " No Errors\n No Errors\n", "")).is_err());
        assert!(Judge::NoErrors.verdict(&outcome(0, " No Errors\n", "vmpirun: something\n")).is_err());
        assert!(Judge::Failure.verdict(&outcome(3, "", "vmpirun: rank 0 exited\n")).is_ok());
        assert!(Judge::Failure.verdict(&outcome(0, " No Errors\n", "")).is_err());
        assert!(Judge::NoErrorsButFailure.verdict(&outcome(1, " No Errors\n", "vmpirun: rank 1 died\n")).is_ok());
        assert!(Judge::NoErrorsButFailure.verdict(&outcome(1, "", "vmpirun: rank 1 died\n")).is_err());
    }
}
