//! Walks a command line by the table of flags.

use super::defaults::{self, Defaults, Origin};
use super::dialect::Dialect;
use super::flags::{self, Flag, Group, Takes};
use super::{AppOptions, RunOptions, configfile, finish};
use crate::failure::Failure;
use std::collections::BTreeSet;

/// A command line under construction: the job's options and the section being read.
#[derive(Debug, Default)]
pub struct Line {
    pub job: RunOptions,
    pub app: AppOptions,
    pub action: Option<Action>,
    /// Each flag that was given, its words, and where.
    pub origins: Vec<(&'static str, String, Origin)>,
    /// In whose words it is.
    dialect: Dialect,
}

impl Line {
    /// An option, as it was typed, has no effect; it is named once.
    pub fn ignore(&mut self, option: &str) {
        if !self.job.ignored.iter().any(|known| known == option) {
            self.job.ignored.push(option.into());
        }
    }
}

/// Things that a flag may ask for instead of a job.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Action {
    Help,
    Version,
    /// Say where each value comes from.
    ShowConfig,
    /// What `--simulate` knows by name.
    Machines,
}

/// What a command line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Run(Box<RunOptions>),
    Do(Action),
    /// What is asked for, in text.
    Show(String),
}

/// Parse a command line without the program's own name.
///
/// # Errors
/// Exit code 2 and a sentence that names the flag and the value.
pub fn parse(args: &[String]) -> Result<Command, Failure> {
    parse_with(args, &Defaults::default())
}

/// As `parse`, on top of what is said elsewhere.
///
/// # Errors
/// As `parse`, and those of the defaults.
pub fn parse_with(args: &[String], defaults: &Defaults) -> Result<Command, Failure> {
    // Once to see which flags are there: the others' defaults come before all of them.
    let used = match read(args, Line::default()) {
        Ok((_, line)) => {
            line.origins.iter().filter_map(|(name, ..)| flags::named(name)).map(defaults::subject).collect()
        }
        Err(why) => return Err(why),
    };
    let mut line = Line::default();
    defaults.apply(&mut line, &used)?;
    read(args, line).map(|(command, _)| command)
}

fn read(args: &[String], mut line: Line) -> Result<(Command, Line), Failure> {
    if args == ["-V"] {
        // Open MPI's and Intel's.
        return Ok((Command::Do(Action::Version), line));
    }
    line.dialect = Dialect::of(&names(args));
    let mut sections: Vec<Vec<String>> = args.split(|word| word == ":").map(<[String]>::to_vec).collect();
    let mut read_files = 0;
    let mut next = 0;
    let typed = sections.len();
    while next < sections.len() {
        let found = section(&mut line, &sections[next])?;
        match line.action {
            Some(Action::ShowConfig) => return Ok((Command::Show(defaults::show(&line)), line)),
            Some(action) => return Ok((Command::Do(action), line)),
            None => {}
        }
        while read_files < line.job.configfiles.len() {
            let file = line.job.configfiles[read_files].clone();
            read_files += 1;
            if read_files > 16 {
                return Err(Failure::usage(format!(
                    "-configfile {file}: more than 16 files; do they name each other?"
                )));
            }
            sections.extend(configfile::read(&file)?);
        }
        if !found && (next >= typed || typed > 1 || line.job.configfiles.is_empty()) {
            return Err(Failure::usage(if typed > 1 {
                format!("no program in section {} of the command line (the sections are separated by `:`)", next + 1)
            } else {
                "no program given; say `vmpirun [options] PROGRAM [arguments]`, `vmpirun --help` lists the options"
                    .into()
            }));
        }
        next += 1;
    }
    if line.job.apps.is_empty() {
        return Err(Failure::usage(format!("no program in {}", line.job.configfiles.join(", "))));
    }
    finish::finish(&mut line.job)?;
    Ok((Command::Run(Box::new(line.job.clone())), line))
}

/// The options that a line names, as far as it can be walked without knowing whose words they are.
fn names(args: &[String]) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for words in args.split(|word| word == ":") {
        let mut at = 0;
        while let Some(word) = words.get(at).filter(|word| word.starts_with('-') && word.len() > 1 && *word != "--") {
            let next = words.get(at + 1).map(String::as_str);
            let Some((flag, glued)) = find(word, next, Dialect::Mpiexec) else { break };
            let bare = word.trim_start_matches('-');
            let bare = bare.split('=').next().unwrap_or(bare);
            // The name as it was typed, dashes for `_` (`--cpu_bind`), and without what is glued to a letter.
            let named =
                flag.names.iter().find(|name| same(name, bare) || (name.len() == 1 && bare.starts_with(**name)));
            // With a value it is vmpi's own.
            let is_own = |name: &str| name == "overlap" && flag.takes != Takes::Nothing;
            names.extend(named.copied().filter(|name| !is_own(name)));
            let (glued, next) = (glued.as_ref(), next.unwrap_or(""));
            at += 1 + wanted(flag, glued.map_or(next, String::as_str)).saturating_sub(usize::from(glued.is_some()));
        }
    }
    names
}

fn same(name: &str, typed: &str) -> bool {
    name == typed || (typed.contains('_') && name == typed.replace('_', "-"))
}

/// How many values a flag takes; `first`: what may be the first.
fn wanted(flag: &Flag, first: &str) -> usize {
    match flag.takes {
        Takes::Nothing | Takes::Maybe(_) => 0,
        Takes::One(_) => 1,
        Takes::Two(..) => 2,
        Takes::NameValue => {
            if first.contains('=') {
                1
            } else {
                2
            }
        }
    }
}

/// Read one section; `false`: it held options only.
fn section(line: &mut Line, words: &[String]) -> Result<bool, Failure> {
    let mut at = 0;
    while at < words.len() {
        let word = &words[at];
        if word == "--" {
            at += 1;
            break;
        }
        if !word.starts_with('-') || word.len() == 1 {
            break;
        }
        at = flag(line, words, at)?;
        if line.action.is_some_and(|action| action != Action::ShowConfig) {
            return Ok(true);
        }
    }
    let mut app = std::mem::take(&mut line.app);
    let Some(program) = words.get(at) else {
        // Options of a section without a program hold for the whole job (`-configfile` lines follow).
        line.app = app;
        return Ok(false);
    };
    app.program = program.clone();
    app.args = words[at + 1..].to_vec();
    line.job.apps.push(app);
    Ok(true)
}

/// Apply the flag at `at`; returns the index after its values.
fn flag(line: &mut Line, words: &[String], at: usize) -> Result<usize, Failure> {
    let word = &words[at];
    let next = words.get(at + 1).map(String::as_str);
    let (flag, glued) = find(word, next, line.dialect).ok_or_else(|| unknown(word))?;
    let mut next = at + 1;
    let mut values: Vec<String> = glued.into_iter().collect();
    if flag.takes == Takes::Nothing && !values.is_empty() {
        return Err(Failure::usage(format!("{word}: this option takes no value")));
    }
    let wanted = wanted(flag, values.first().or(words.get(next)).map_or("", String::as_str));
    while values.len() < wanted {
        match words.get(next) {
            Some(value) => values.push(value.clone()),
            None => return Err(Failure::usage(format!("{word} needs {}", flag.takes.wanted()))),
        }
        next += 1;
    }
    (flag.apply)(line, &values).map_err(|why| Failure::usage(format!("{word}: {why}")))?;
    if flag.group == Group::NoEffect {
        let name = word.split('=').next().unwrap_or(word);
        line.ignore(name);
    }
    line.origins.push((flag.names[0], values.join(" "), Origin::CommandLine));
    Ok(next)
}

/// The flag that a word names and the value glued to it (`--np=4`, `-n4`). `_` in a name is as good as `-`.
fn find(word: &str, next: Option<&str>, dialect: Dialect) -> Option<(&'static Flag, Option<String>)> {
    let dashes = if word.starts_with("--") { 2 } else { 1 };
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-'))?;
    let named = |name: &str, next: Option<&str>| {
        dialect.named(name, dashes, next).or_else(|| dialect.named(&name.replace('_', "-"), dashes, next))
    };
    if let Some(flag) = named(name, next) {
        return Some((flag, None));
    }
    if let Some((name, value)) = name.split_once('=')
        && let Some(flag) = named(name, Some(value))
    {
        return Some((flag, Some(value.to_string())));
    }
    let (letter, rest) = name.split_at_checked(1)?;
    let flag = named(letter, Some(rest))?;
    let number = rest.starts_with(|c: char| c.is_ascii_digit());
    (dashes == 1 && number && !matches!(flag.takes, Takes::Nothing)).then(|| (flag, Some(rest.to_string())))
}

fn unknown(word: &str) -> Failure {
    let name = word.trim_start_matches('-');
    let name = name.split('=').next().unwrap_or(name);
    let hint = nearest(name).map_or(String::new(), |known| format!(" Did you mean {known}?"));
    Failure::usage(format!(
        "unknown option {word}.{hint} `vmpirun --help` lists all options; a program's own options follow its name"
    ))
}

/// The flag whose name is most like this one, as it is best typed.
pub fn nearest(name: &str) -> Option<String> {
    let near = flags::FLAGS
        .iter()
        .flat_map(|flag| flag.names)
        .map(|known| (distance(name, known), known))
        .filter(|(far, known)| *far <= 2 && *far < known.len())
        .min();
    near.map(|(_, known)| flags::dashed(known))
}

/// Levenshtein's distance.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let kept = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = kept.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
