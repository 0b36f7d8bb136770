//! `--chaos`, `--record`, `--replay` and `--explore`: what MPI leaves open is decided by a seed, written down, decided as it was, or tried in turn.
//!
//! Reading order: this file (what is asked for, what goes to the ranks, the record of one run), `trial` (one run of several, a vmpirun of its own),
//! `series` (seeds), `tree` (which decisions of a record could have been others), `explore`.

mod explore;
mod series;
mod tree;
mod trial;

use crate::cli::{OnDeadlock, RunOptions};
use crate::failure::Failure;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use trial::Trial;
use vmpi_shared::control::{Balance, JobSpec, Policy, env};
use vmpi_shared::decisions::{Head, Record, row_of_rank};

/// What may be left to a seed.
const WORDS: [&str; 5] = ["sched", "match", "delay", "sends", "tests"];

/// The value of `--chaos`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chaos {
    pub first: u64,
    /// Of a series.
    pub last: Option<u64>,
    /// Empty: all.
    pub what: Vec<String>,
}

impl Chaos {
    /// # Errors
    /// What may be said.
    pub fn parse(value: &str) -> Result<Chaos, String> {
        let mut words = value.split(',');
        let seeds = words.next().unwrap_or_default();
        let number = |word: &str| {
            word.parse::<u64>().map_err(|_| {
                format!("`{word}` is no seed: a whole number, or A..B for several; `--chaos 7`, `--chaos 1..200`, `--chaos 7,sends,match`")
            })
        };
        let (first, last) = match seeds.split_once("..") {
            None => (number(seeds)?, None),
            Some((first, last)) => (number(first)?, Some(number(last)?)),
        };
        if last.is_some_and(|last| last < first) {
            return Err(format!("`{seeds}`: the last seed is smaller than the first one"));
        }
        let what: Vec<String> = words.map(String::from).collect();
        match what.iter().find(|word| !WORDS.contains(&word.as_str())) {
            Some(word) => Err(format!("`{word}` is not one of {}", WORDS.join(", "))),
            None => Ok(Chaos { first, last, what }),
        }
    }

    /// The value for one seed.
    fn of_seed(&self, seed: u64) -> String {
        std::iter::once(seed.to_string()).chain(self.what.iter().cloned()).collect::<Vec<_>>().join(",")
    }

    fn leaves(&self, what: &str) -> bool {
        self.what.is_empty() || self.what.iter().any(|word| word == what)
    }
}

/// The value of `--compare`.
///
/// # Errors
/// What may be said.
pub fn compared(word: &str) -> Result<bool, String> {
    if word == "stdout" { Ok(true) } else { Err(format!("`{word}` is not stdout")) }
}

/// What this vmpirun is told as one of several runs, and what does not go together.
///
/// # Errors
/// A sentence.
pub fn check(options: &mut RunOptions) -> Result<(), Failure> {
    let series = options.chaos.as_ref().is_some_and(|chaos| chaos.last.is_some());
    let asked = [
        ("--chaos", options.chaos.is_some()),
        ("--record", options.record.is_some()),
        ("--replay", options.replay.is_some()),
        ("--explore", options.explore.is_some()),
    ];
    let Some((flag, _)) = asked.iter().find(|(_, asked)| *asked) else {
        if options.compare_stdout {
            return Err(Failure::usage("--compare is for several runs: --chaos A..B or --explore"));
        }
        return Ok(());
    };
    let not_with = |other: &str, why: &str| Err(Failure::usage(format!("{flag} does not go with {other}: {why}")));
    if options.recovery {
        return not_with("--enable-recovery", "when a rank learns of a death is no choice that is drawn or recorded");
    }
    if options.simulate.is_some() {
        return not_with("--simulate", "virtual time decides there what comes first");
    }
    if options.compare_stdout && !series && options.explore.is_none() {
        return Err(Failure::usage("--compare is for several runs: --chaos A..B or --explore"));
    }
    if options.explore.is_some() && (options.chaos.is_some() || options.record.is_some() || options.replay.is_some()) {
        return not_with("--chaos, --record and --replay", "--explore makes and follows records of its own");
    }
    if options.replay.is_some() && options.chaos.is_some() {
        return not_with("--replay", "one decides by a seed, the other one by a record");
    }
    if series && options.record.is_some() {
        return not_with("--record", "which of the runs is meant? Record the one with the seed that fails");
    }
    if (series || options.explore.is_some()) && (options.json || !options.gdb.is_empty()) {
        return not_with("--json and --gdb", "it is several runs; what they say is of one");
    }
    if let Some(trial) = Trial::own()? {
        trial.end_with_parent()?;
        trial.apply(options);
    }
    Ok(())
}

/// Several runs are asked for: their exit code.
///
/// # Errors
/// They cannot be made.
pub fn several(options: &RunOptions, args: &[String]) -> Result<Option<i32>, Failure> {
    if options.dry_run {
        return Ok(None);
    }
    if let Some(chaos) = &options.chaos
        && let Some(last) = chaos.last
    {
        return series::run(options, chaos, last, args).map(Some);
    }
    match options.explore {
        Some(most) => explore::run(options, most, args).map(Some),
        None => Ok(None),
    }
}

/// The record that a run makes: a directory with a file per rank, until the end.
#[derive(Default)]
pub struct Recording {
    directory: Option<PathBuf>,
    ranks: u32,
    programs: Vec<(String, u64)>,
    command: String,
}

impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(directory) = self.directory.take() {
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

impl Recording {
    /// The job as it will be: with a seed nothing else decides who runs, and the ranks are told what is asked for.
    ///
    /// # Errors
    /// The record is of another job; a directory for one cannot be made.
    pub fn begin(options: &RunOptions, spec: &mut JobSpec) -> Result<Recording, Failure> {
        let mut recording = Recording::default();
        recording.ranks = spec.ranks;
        recording.check(options, spec)?;
        if let Some(file) = options.record.as_ref().filter(|_| !options.dry_run) {
            let path = PathBuf::from(format!("{file}.{}", std::process::id()));
            recording.directory = Some(make_directory(&path).map_err(|e| {
                let path = path.display();
                Failure::own(format!(
                    "--record {file}: cannot make the directory {path}, into which the ranks write: {e}"
                ))
            })?);
        }
        spec.apps.iter_mut().for_each(|app| recording.tell(options, &mut app.env));
        Ok(recording)
    }

    /// What the ranks of a program are told.
    fn tell(&self, options: &RunOptions, variables: &mut Vec<(String, String)>) {
        let own = [env::CHAOS, env::RECORD, env::RECORD_ALL, env::REPLAY, trial::VARIABLE];
        variables.retain(|(name, _)| !own.contains(&name.as_str()));
        let mut set = |name: &str, value: String| variables.push((name.into(), value));
        if let Some(chaos) = &options.chaos {
            set(env::CHAOS, chaos.of_seed(chaos.first));
        }
        if let Some(directory) = &self.directory {
            set(env::RECORD, directory.to_string_lossy().into_owned());
            if trial::is_full() {
                set(env::RECORD_ALL, "1".into());
            }
        }
        if let Some(file) = &options.replay {
            let path = Path::new(file).canonicalize().unwrap_or_else(|_| file.into());
            set(env::REPLAY, path.to_string_lossy().into_owned());
        }
    }

    /// # Errors
    /// The record is of another job.
    fn check(&mut self, options: &RunOptions, spec: &mut JobSpec) -> Result<(), Failure> {
        if let Some(chaos) = &options.chaos {
            spec.balance = Balance::None;
            if chaos.leaves("sched") {
                spec.policy = Policy::Drawn;
            }
        }
        if options.record.is_some() || options.replay.is_some() {
            self.programs =
                spec.apps.iter().map(|app| (app.program.clone(), number_of(Path::new(&app.program)))).collect();
        }
        if spec.nodes.is_some() && trial::is_full() {
            return Err(Failure::usage(
                "--explore is for one node: what was decided first is told by its clock; name no hosts, or one",
            ));
        }
        self.command = std::env::args().collect::<Vec<_>>().join(" ");
        let Some(file) = &options.replay else { return Ok(()) };
        let record = Record::read(Path::new(file)).map_err(|why| Failure::usage(format!("--replay: {why}")))?;
        if record.rows.len() != spec.ranks as usize {
            return Err(Failure::usage(format!(
                "--replay: {file} is a record of {} ranks, and this job has {}",
                record.rows.len(),
                spec.ranks
            )));
        }
        // A debugger, or valgrind, may stand before the program.
        let words = spec.apps.iter().flat_map(|app| app.argv.iter().chain([&app.program]));
        let known: Vec<u64> = words.map(|word| number_of(Path::new(word))).filter(|number| *number != 0).collect();
        match record.head.programs.iter().find(|(_, number)| !known.contains(number)) {
            None => Ok(()),
            Some((program, _)) => Err(Failure::usage(format!(
                "--replay: {file} is a record of another program, or of another build of it: {program} ({})",
                record.head.command
            ))),
        }
    }

    /// The ranks have ended: make one file of what they have written. A note: what is not in it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(&mut self, options: &RunOptions) -> Result<Option<String>, Failure> {
        let (Some(directory), Some(file)) = (&self.directory, &options.record) else { return Ok(None) };
        let mut missing = 0;
        let rows = (0..self.ranks)
            .map(|rank| {
                let content = std::fs::read(directory.join(format!("rank-{rank}"))).unwrap_or_else(|_| {
                    missing += 1;
                    Vec::new()
                });
                row_of_rank(&content).to_vec()
            })
            .collect();
        let head = Head {
            programs: std::mem::take(&mut self.programs),
            command: std::mem::take(&mut self.command),
            full: trial::is_full(),
            ..Head::default()
        };
        Record { head, rows }.write(Path::new(file)).map_err(|why| Failure::own(format!("--record: {why}")))?;
        Ok((missing > 0).then(|| {
            format!(
                "{missing} of {} ranks have written nothing for the record {file}: they have not called MPI_Init, or run where {} is another directory",
                self.ranks,
                directory.display()
            )
        }))
    }
}

fn make_directory(path: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir(path)?;
    path.canonicalize()
}

/// A number that follows from a file's content; 0: there is no such file.
fn number_of(path: &Path) -> u64 {
    let Ok(content) = std::fs::read(path) else { return 0 };
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(&content);
    hasher.finish().max(1)
}

/// A run of several that waits for ever is to end.
fn end_deadlocks(options: &mut RunOptions) {
    if options.on_deadlock == OnDeadlock::Report {
        options.on_deadlock = OnDeadlock::Abort;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_and_what_is_left_to_them() {
        let parse = |value| Chaos::parse(value);
        assert_eq!(parse("7"), Ok(Chaos { first: 7, last: None, what: Vec::new() }));
        let series = parse("1..200,sends,match").unwrap();
        assert_eq!((series.first, series.last), (1, Some(200)));
        assert!(series.leaves("sends") && !series.leaves("sched"));
        assert_eq!(series.of_seed(17), "17,sends,match");
        for (wrong, word) in
            [("", "no seed"), ("x", "`x`"), ("-1", "`-1`"), ("5..3", "smaller"), ("1,now", "`now`"), ("1..", "``")]
        {
            let sentence = parse(wrong).unwrap_err();
            assert!(sentence.contains(word), "{wrong}: {sentence}");
        }
    }
}
