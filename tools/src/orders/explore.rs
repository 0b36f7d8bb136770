//! `--explore`: a program is run again and again, each time with another message taken by one of its receives or probes from anybody, depth first.
//!
//! A run follows a record up to one decision, which is another one there, and is free after that. What it decides then is gone through in the same way, so each
//! order is come to by one way only. What was decided earlier in time cannot depend on the decision that is changed; so it can be kept. A run in which the changed
//! decision does not come about (the message is sent because of what was taken instead, or goes to another receive) says nothing, however it ends.

use super::series::difference;
use super::tree::{Decision, altered, answers_among, decisions, has, is_answer, record_of};
use super::trial::{Ended, Place, Trial, shell};
use crate::cli::RunOptions;
use crate::failure::{Failure, code};
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use vmpi_shared::decisions::{Entry, Record};

/// Where the record of what was found goes.
const FILE: &str = "vmpi-explored.record";
/// A run may take so many times what the first one took, and no less than this: one that is to take a message that never comes may poll for it.
const PATIENCE: u32 = 20;
const LEAST_SECONDS: u64 = 10;

/// Decisions to follow, the last of which is another one than in the run before.
#[derive(Clone)]
struct Branch {
    forced: Vec<(usize, Entry)>,
    /// Those of them that were changed on the way here.
    changed: Vec<(usize, Entry)>,
    /// Before the last one: answers of its rank.
    place: usize,
}

impl Branch {
    fn record(&self, like: &Record) -> Record {
        record_of(like, self.forced.iter().map(|(rank, entry)| (*rank, entry)))
    }

    /// Is this decision, behind these, one that is followed?
    fn has(&self, before: &[Decision], decision: &Decision) -> bool {
        let mut own = self.forced.iter().filter(|(rank, _)| *rank == decision.rank);
        match &decision.entry {
            entry @ Entry::Receive { .. } => own.any(|(_, forced)| forced == entry),
            _ => answers_among(before, decision.rank) < own.filter(|(_, entry)| is_answer(entry)).count(),
        }
    }

    fn came_about(&self, record: &Record) -> bool {
        self.forced.last().is_none_or(|(rank, entry)| has(record, *rank, entry, self.place))
    }
}

struct Explorer<'a> {
    options: &'a RunOptions,
    args: &'a [String],
    place: Place,
    timeout_s: Option<u64>,
    first: Option<Ended>,
    /// Orders that have been seen, and ways that have been tried, by numbers that follow from them.
    orders: BTreeSet<u64>,
    tried: BTreeSet<u64>,
    runs: u32,
    impossible: u32,
}

/// A number that follows from what each rank decides, in its order.
fn number_of<'d>(decisions: impl Iterator<Item = (usize, &'d Entry)>) -> u64 {
    let mut of_ranks: Vec<(usize, DefaultHasher)> = Vec::new();
    for (rank, entry) in decisions.filter(|(_, entry)| !matches!(entry, Entry::No(_))) {
        let at = of_ranks.iter().position(|(known, _)| *known == rank).unwrap_or_else(|| {
            of_ranks.push((rank, DefaultHasher::new()));
            of_ranks.len() - 1
        });
        format!("{entry:?}").hash(&mut of_ranks[at].1);
    }
    of_ranks.sort_by_key(|(rank, _)| *rank);
    let mut whole = DefaultHasher::new();
    of_ranks.iter().for_each(|(rank, hasher)| (rank, hasher.finish()).hash(&mut whole));
    whole.finish()
}

impl Explorer<'_> {
    /// One run that follows `branch`: how it ends, and what it decided.
    fn run(&mut self, branch: Option<(&Branch, &Record)>) -> Result<(Ended, Record), Failure> {
        let file = |name: &str| self.place.directory.join(name).to_string_lossy().into_owned();
        let (made, followed) = (file("made"), file("followed"));
        let mut trial = Trial { record: Some(made.clone()), full: true, timeout_s: self.timeout_s, ..Trial::default() };
        if let Some((branch, like)) = branch {
            branch.record(like).write(Path::new(&followed)).map_err(Failure::own)?;
            trial.replay = Some(followed);
        }
        let _ = std::fs::remove_file(&made);
        let ended = trial.run(self.args, &mut self.place)?;
        self.runs += 1;
        let record = Record::read(Path::new(&made)).unwrap_or_default();
        Ok((ended, record))
    }

    /// How the run fails, if it does.
    fn fault(&self, ended: &Ended) -> Option<String> {
        match &self.first {
            _ if ended.code != 0 => Some(ended.how()),
            Some(first) if self.options.compare_stdout && first.stdout != ended.stdout => {
                Some(format!("other output than in the first run: {}", difference(&first.stdout, &ended.stdout)))
            }
            _ => None,
        }
    }

    /// The ways that go off a run, which followed `branch`; the one that goes off last is last.
    fn ways(&mut self, branch: &Branch, record: &Record) -> Vec<Branch> {
        let all: Vec<Decision> = decisions(record);
        if !self.orders.insert(number_of(all.iter().map(|decision| (decision.rank, &decision.entry)))) {
            return Vec::new();
        }
        let mut ways = Vec::new();
        for (at, decision) in all.iter().enumerate() {
            if branch.has(&all[..at], decision) {
                continue;
            }
            for (source, tag) in &decision.others {
                let mut forced: Vec<(usize, Entry)> =
                    all[..at].iter().map(|before| (before.rank, before.entry.clone())).collect();
                let other = (decision.rank, altered(&decision.entry, *source, *tag));
                forced.push(other.clone());
                if !self.tried.insert(number_of(forced.iter().map(|(rank, entry)| (*rank, entry)))) {
                    continue;
                }
                let changed = branch.changed.iter().cloned().chain([other]).collect();
                ways.push(Branch { forced, changed, place: answers_among(&all[..at], decision.rank) });
            }
        }
        ways
    }

    fn seen(&self) -> String {
        let impossible = match self.impossible {
            0 => String::new(),
            count => format!(", {count} of which could not take what they were to take"),
        };
        format!("{} runs{impossible}, {} different orders", self.runs, self.orders.len())
    }

    fn report(&self, branch: Branch, like: &Record, ended: &Ended, fault: &str, left: usize) -> Result<i32, Failure> {
        ended.show();
        branch.record(like).write(Path::new(FILE)).map_err(Failure::own)?;
        let again = ["vmpirun", "--on-deadlock", "abort", "--replay", FILE].map(String::from);
        let rest =
            self.args.iter().filter(|word| !word.starts_with("--explore") && !word.starts_with("--compare=")).cloned();
        let mut words: Vec<String> = again.into_iter().chain(rest).collect();
        if let Some(at) = words.iter().position(|word| word == "--compare") {
            words.drain(at..(at + 2).min(words.len()));
        }
        let changed: Vec<String> = branch.changed.iter().map(|(rank, entry)| in_words(*rank, entry)).collect();
        let because = match changed.is_empty() {
            true => String::new(),
            false => format!(" if {}", changed.join(", and ")),
        };
        say(&format!(
            "--explore: found{because}: {fault}. {}; {left} more ways were known. The record {FILE} has the {} decisions that lead there. Again: {}",
            self.seen(),
            branch.forced.len(),
            shell(&words)
        ));
        Ok(if ended.code == 0 { 1 } else { ended.code })
    }
}

fn in_words(rank: usize, entry: &Entry) -> String {
    match entry {
        Entry::Receive { number, source, .. } => {
            format!("rank {rank}'s receive {} with a wildcard takes rank {source}'s message", number + 1)
        }
        Entry::Found { source, tag } => format!("a probe of rank {rank} finds rank {source}'s message with tag {tag}"),
        _ => format!("rank {rank} decides {entry:?}"),
    }
}

fn say(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "vmpirun: {sentence}");
}

/// All that was decided in a run which followed `branch`: what is left open there may end otherwise the next time.
fn whole(branch: &Branch, record: &Record) -> Branch {
    let forced = decisions(record).into_iter().map(|decision| (decision.rank, decision.entry)).collect();
    Branch { forced, ..branch.clone() }
}

pub(super) fn run(options: &RunOptions, most: u32, args: &[String]) -> Result<i32, Failure> {
    let mut explorer = Explorer {
        options,
        args,
        place: Place::new()?,
        timeout_s: options.timeout_s,
        first: None,
        orders: BTreeSet::new(),
        tried: BTreeSet::new(),
        runs: 0,
        impossible: 0,
    };
    let began = Instant::now();
    let (ended, record) = explorer.run(None)?;
    let none = Branch { forced: Vec::new(), changed: Vec::new(), place: 0 };
    if record.rows.is_empty() {
        // It did not come to a job.
        ended.show();
        return Ok(if ended.code == 0 { code::OWN } else { ended.code });
    }
    let like = record.clone();
    if let Some(fault) = explorer.fault(&ended) {
        explorer.orders.insert(0);
        return explorer.report(whole(&none, &record), &like, &ended, &format!("the first run fails: {fault}"), 0);
    }
    let patience = (began.elapsed() * PATIENCE).max(Duration::from_secs(LEAST_SECONDS)).as_secs();
    explorer.timeout_s = Some(options.timeout_s.unwrap_or(patience));
    explorer.first = Some(ended);
    let mut ways = explorer.ways(&none, &record);
    while let Some(way) = ways.pop() {
        if explorer.runs >= most {
            ways.push(way);
            break;
        }
        let (ended, record) = explorer.run(Some((&way, &like)))?;
        if record.rows.is_empty() {
            ended.show();
            return Ok(if ended.code == 0 { code::OWN } else { ended.code });
        }
        if !way.came_about(&record) {
            explorer.impossible += 1;
            continue;
        }
        let more = explorer.ways(&way, &record);
        if let Some(fault) = explorer.fault(&ended) {
            let left = ways.len();
            return explorer.report(whole(&way, &record), &like, &ended, &fault, left);
        }
        if options.verbose {
            say(&format!("--explore: run {}: {}; {} ways to go", explorer.runs, ended.how(), ways.len() + more.len()));
        }
        ways.extend(more);
    }
    if let Some(first) = &explorer.first {
        first.show();
    }
    let left = match ways.len() {
        0 => "all that these runs show to be possible".into(),
        left => format!("{left} more ways are known (--explore=N for more than {most} runs)"),
    };
    if !options.quiet {
        say(&format!("--explore: {}, {left}: none fails; the output above is the first run's", explorer.seen()));
    }
    Ok(0)
}
