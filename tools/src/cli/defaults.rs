//! Values of flags for all runs: from a file of the user's and from the environment. What the command line says wins over the environment,
//! that over the file, and that over what is built in.

use super::flags::{self, Flag, Takes};
use super::parse::{self, Line};
use crate::failure::Failure;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use toml::{Spanned, Value};

/// Names the file; empty: none.
const FILE_VARIABLE: &str = "VMPI_CONFIG";
/// `VMPIRUN_ON_DEADLOCK=abort` is `--on-deadlock abort`.
const PREFIX: &str = "VMPIRUN_";

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    CommandLine,
    Variable(String),
    File(PathBuf, usize),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::CommandLine => f.write_str("the command line"),
            Origin::Variable(name) => write!(f, "{name} in the environment"),
            Origin::File(path, line) => write!(f, "{}, line {line}", path.display()),
        }
    }
}

/// A flag with its words, said elsewhere than on the command line.
#[derive(Clone, Debug)]
pub struct Setting {
    pub flag: &'static Flag,
    pub words: Vec<String>,
    pub origin: Origin,
}

/// What the environment and the file say, the file first.
#[derive(Clone, Debug, Default)]
pub struct Defaults(Vec<Setting>);

impl Defaults {
    /// Look into the environment, and into the file if there is one.
    ///
    /// # Errors
    /// Exit code 2: the file cannot be read, or says something that is not understood; a variable names no flag.
    pub fn find(variables: &[(String, String)]) -> Result<Defaults, Failure> {
        let of = |wanted: &str| variables.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
        let set = |name: &str| of(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let usual = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")));
        let (path, named) = match of(FILE_VARIABLE) {
            Some("") => (None, false),
            Some(path) => (Some(PathBuf::from(path)), true),
            None => (usual.map(|dir| dir.join("vmpi/config.toml")), false),
        };
        let mut all = match path {
            Some(path) => match std::fs::read_to_string(&path) {
                Ok(text) => file(&path, &text)?,
                // Not there, or in a home that is not this user's (su, setpriv) or is none (/dev/null).
                Err(_) if !named && std::fs::metadata(&path).is_err() => Vec::new(),
                Err(e) => return Err(Failure::usage(format!("cannot read the defaults in {}: {e}", path.display()))),
            },
            None => Vec::new(),
        };
        for (name, value) in variables {
            if let Some(key) = name.strip_prefix(PREFIX) {
                all.extend(variable(name, key, value)?);
            }
        }
        Ok(Defaults(all))
    }

    /// Apply what is not said in a place that wins: by `used` flags of the command line, and the environment over the file.
    ///
    /// # Errors
    /// Exit code 2: a value that the flag does not take.
    pub fn apply(&self, line: &mut Line, used: &BTreeSet<&'static str>) -> Result<(), Failure> {
        let by_variable = |setting: &&Setting| matches!(setting.origin, Origin::Variable(_));
        let variables: BTreeSet<&str> =
            self.0.iter().filter(by_variable).map(|setting| subject(setting.flag)).collect();
        for setting in &self.0 {
            let subject = subject(setting.flag);
            if used.contains(subject) || (variables.contains(subject) && !by_variable(&setting)) {
                continue;
            }
            let wrong = |why: String| Failure::usage(format!("{}: {}: {why}", setting.origin, setting.flag.names[0]));
            (setting.flag.apply)(line, &setting.words).map_err(wrong)?;
            // Hosts for all programs, not of the first one.
            line.app.hosts.clear();
            if line.app != super::AppOptions::default() || line.action.is_some() || !line.job.configfiles.is_empty() {
                return Err(wrong("it is for one run or one program; say it on the command line".into()));
            }
            line.origins.push((setting.flag.names[0], setting.words.join(" "), setting.origin.clone()));
        }
        Ok(())
    }
}

/// What a flag is about: flags about the same replace each other.
pub fn subject(flag: &Flag) -> &'static str {
    match flag.names[0] {
        "f" => "host",
        name => name,
    }
}

/// `VMPIRUN_KEY=value`.
fn variable(name: &str, key: &str, value: &str) -> Result<Option<Setting>, Failure> {
    let key = if key.len() == 1 { key.to_string() } else { key.to_ascii_lowercase().replace('_', "-") };
    let flag =
        flags::named(&key).ok_or_else(|| Failure::usage(format!("{name} in the environment: {}", unknown(&key))))?;
    let words = match (flag.takes, value) {
        (Takes::Nothing, "1" | "true" | "yes") => Vec::new(),
        (Takes::Nothing, "" | "0" | "false" | "no") => return Ok(None),
        (Takes::Nothing, _) => {
            return Err(Failure::usage(format!("{name} in the environment: `{value}` is neither true nor false")));
        }
        (Takes::Two(..), _) => {
            let (first, second) = value.split_once('=').unwrap_or((value, ""));
            vec![first.into(), second.into()]
        }
        _ => vec![value.to_string()],
    };
    Ok(Some(Setting { flag, words, origin: Origin::Variable(name.into()) }))
}

/// What a file says, in its order.
fn file(path: &Path, text: &str) -> Result<Vec<Setting>, Failure> {
    let line_of = |at: usize| text[..at.min(text.len())].matches('\n').count() + 1;
    let failed = |at: usize, why: String| Failure::usage(format!("{}, line {}: {why}", path.display(), line_of(at)));
    let table: HashMap<Spanned<String>, Spanned<Value>> = toml::from_str(text)
        .map_err(|e| failed(e.span().map_or(0, |span| span.start), e.message().replace('\n', " ")))?;
    let mut entries: Vec<_> = table.into_iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut settings = Vec::new();
    for (key, value) in entries {
        let at = key.span().start;
        let name = key.into_inner();
        let flag = flags::named(&name).ok_or_else(|| failed(at, unknown(&name)))?;
        for words in words(flag, value.into_inner()).map_err(|why| failed(at, format!("{name}: {why}")))? {
            settings.push(Setting { flag, words, origin: Origin::File(path.into(), line_of(at)) });
        }
    }
    Ok(settings)
}

/// The words of a flag for each time that it is given.
fn words(flag: &Flag, value: Value) -> Result<Vec<Vec<String>>, String> {
    let one = |value: &Value| match value {
        Value::String(text) => Ok(text.clone()),
        Value::Integer(number) => Ok(number.to_string()),
        Value::Float(number) => Ok(number.to_string()),
        other => Err(format!("{} is not what it takes: {}", other.type_str(), flag.takes.wanted())),
    };
    match (flag.takes, &value) {
        (Takes::Nothing | Takes::Maybe(_), Value::Boolean(true)) => Ok(vec![Vec::new()]),
        (Takes::Nothing, Value::Boolean(false)) => Ok(Vec::new()),
        (Takes::Nothing, _) => Err("say true or false".into()),
        (Takes::Two(..) | Takes::NameValue, Value::Table(pairs)) => {
            pairs.iter().map(|(name, value)| Ok(vec![name.clone(), one(value)?])).collect()
        }
        (Takes::Two(..) | Takes::NameValue, _) => Err("say { NAME = \"VALUE\" }".into()),
        (_, Value::Array(list)) => list.iter().map(|value| Ok(vec![one(value)?])).collect(),
        (_, value) => Ok(vec![vec![one(value)?]]),
    }
}

fn unknown(name: &str) -> String {
    let near = parse::nearest(name).map_or(String::new(), |near| format!("; did you mean {near}?"));
    format!("vmpirun has no option {name}{near}")
}

/// What `--show-config` prints: what is set and by whom, then what is built in.
pub fn show(line: &Line) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str, origin: &str| {
        let value = if value.is_empty() { "true" } else { value };
        text.push_str(&format!("{:<38} # {origin}\n", format!("{name} = {value}")));
    };
    let mut said = BTreeSet::new();
    for (name, value, origin) in &line.origins {
        if *name != "show-config" {
            row(name, value, &origin.to_string());
            said.insert(*name);
        }
    }
    for (name, value) in BUILT_IN.iter().filter(|(name, _)| !said.contains(name)) {
        row(name, value, "built in");
    }
    text
}

/// What holds where nothing is said.
const BUILT_IN: &[(&str, &str)] = &[
    ("V", "what fits the cores"),
    ("policy", "rr"),
    ("balance", "rescue on one node, none on several or with bind-to"),
    ("quantum", "5000"),
    ("on-block", "release"),
    ("on-deadlock", "report"),
    ("wtime", "wall"),
    ("pcontrol", "levels"),
    ("progress", "daemon"),
    ("overlap", "off"),
    ("check", "off"),
    ("fabric", "auto"),
    ("output", "lines"),
    ("stdin", "0"),
    ("map-by", "slot"),
    ("kill-on-bad-exit", "1"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Command, OnDeadlock, OutputMode, RunOptions};

    fn run(text: &str, variables: &[(&str, &str)], args: &[&str]) -> Result<RunOptions, Failure> {
        let mut all = file(Path::new("c.toml"), text)?;
        for (name, value) in variables {
            all.extend(variable(name, &name[PREFIX.len()..], value)?);
        }
        let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
        match parse::parse_with(&args, &Defaults(all))? {
            Command::Run(options) => Ok(*options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
        let text = "on-deadlock = \"abort\"\nquantum = 7\nquiet = true\nhost = \"a:2\"\ngenv = { A = \"1\" }\noutput = \"raw\"\n";
        let options = run(
            text,
            &[("VMPIRUN_QUANTUM", "8"), ("VMPIRUN_ON_DEADLOCK", "ignore")],
            &["--on-deadlock", "report", "x"],
        );
        let options = options.unwrap();
        assert_eq!((options.on_deadlock, options.quantum_ms, options.quiet), (OnDeadlock::Report, 8, true));
        assert_eq!((options.hosts.len(), options.env.len(), options.output), (1, 1, OutputMode::Raw));
        let options = run(text, &[], &["--host", "b", "x"]).unwrap();
        assert_eq!((options.hosts.len(), options.hosts[0].name.as_str(), options.quantum_ms), (1, "b", 7));
        assert!(run(text, &[], &["-f", "/nonexist", "x"]).unwrap().hosts.is_empty(), "a host file is about hosts, too");
    }

    #[test]
    fn a_home_that_cannot_be_entered_has_no_defaults_and_a_named_file_that_cannot_is_an_error() {
        let at = |name: &str, value: &str| Defaults::find(&[(name.to_owned(), value.to_owned())]);
        for home in ["/dev/null", "/nonexist"] {
            assert!(at("HOME", home).unwrap().0.is_empty(), "{home}");
        }
        let why = at(FILE_VARIABLE, "/dev/null/c.toml").unwrap_err();
        assert!(why.code == 2 && why.sentence.contains("/dev/null/c.toml"), "{why}");
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (text, part) in [
            (
                "quantum = 1\n\nonn-deadlock = 3\n",
                "c.toml, line 3: vmpirun has no option onn-deadlock; did you mean --on-deadlock?",
            ),
            ("policy = \"new\"\n", "c.toml, line 1: policy: `new` is not one of rr"),
            ("quiet = 3\n", "line 1: quiet: say true or false"),
            ("\nn = 3\n", "line 2: n: it is for one run or one program"),
            ("a =\n", "c.toml, line 1:"),
            ("quiet = true\nquiet = true\n", "line 2:"),
        ] {
            let why = run(text, &[], &["x"]).unwrap_err();
            assert!(why.code == 2 && why.sentence.contains(part), "{why}");
        }
        let why = run("", &[("VMPIRUN_QUANTUMM", "3")], &["x"]).unwrap_err();
        assert!(why.sentence.contains("VMPIRUN_QUANTUMM") && why.sentence.contains("--quantum"), "{why}");
    }
}
