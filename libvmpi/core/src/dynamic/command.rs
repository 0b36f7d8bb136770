//! What MPI_Comm_spawn is to start: the command, found as a launcher would, and the reserved info keys (MPI 4.1 section 11.8.4).
//!
//! `wdir`, `path`, `host`, `soft`, `file`, `mpi_initial_errhandler`, and `env` (as Open MPI has it: NAME=VALUE lines). `file` names
//! a file with lines `key = value`; a key of the info object itself wins. Other keys are hints that nobody here needs.

use crate::errors::{Class, Error, Result, fail};
use crate::info::Entries;
use crate::nodes;
use crate::process;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use vmpi_shared::dynamic::SpawnApp;

/// One command of MPI_Comm_spawn(_multiple), as the program gave it.
pub struct Command {
    pub command: Vec<u8>,
    /// The arguments, without the command.
    pub arguments: Vec<Vec<u8>>,
    pub maxprocs: i32,
    pub info: Rc<Entries>,
}

fn utf8(bytes: &[u8], what: &str) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_string()),
        Err(_) => fail(Class::Arg, format!("{what} {:?} is not UTF-8", String::from_utf8_lossy(bytes))),
    }
}

impl Command {
    /// Find the program and read the info keys.
    ///
    /// # Errors
    /// `Class::Arg` for a number of processes that is not positive, `Class::Spawn` for a program, directory or host that is not
    /// there, `Class::InfoValue` for a key that cannot be understood.
    pub(super) fn prepare(&self) -> Result<SpawnApp> {
        let command = utf8(&self.command, "the command")?;
        let most = match u32::try_from(self.maxprocs) {
            Ok(most) if most > 0 => most,
            _ => return fail(Class::Arg, format!("{} processes of {command} cannot be started", self.maxprocs)),
        };
        let file = self.info.get(b"file").map(read_info_file).transpose()?;
        let key = |name: &str| -> Result<Option<String>> {
            let value = self.info.get(name.as_bytes()).or_else(|| file.as_ref()?.get(name.as_bytes()));
            value.map(|value| utf8(value, name)).transpose()
        };
        let hosts = key("host")?;
        let nodes = match hosts {
            Some(hosts) if nodes::is_spread() => nodes_of(&hosts, nodes::node_names(), own_node())?,
            Some(hosts) => check_hosts(&hosts).map(|()| Vec::new())?,
            None => Vec::new(),
        };
        let here = std::env::current_dir()
            .map_err(|e| Error::new(Class::Spawn, format!("the working directory cannot be found: {e}")))?;
        let wdir = key("wdir")?.map_or(here.clone(), |dir| here.join(dir));
        let candidates = candidates(&command, key("path")?.as_deref(), &wdir)?;
        let counts = match key("soft")? {
            Some(soft) => soft_counts(&soft, most)?,
            None => vec![most],
        };
        let mut argv = vec![command];
        for argument in &self.arguments {
            argv.push(utf8(argument, "the argument")?);
        }
        let env = key("env")?.map_or_else(Vec::new, |lines| variables(&lines));
        let app = SpawnApp { candidates, argv, cwd: path_text(&wdir)?, nodes, env, counts };
        // On several nodes it is looked for where it is to start.
        if !nodes::is_spread() {
            app.program().map_err(|why| Error::new(Class::Spawn, why))?;
        }
        Ok(app)
    }

    /// The key `mpi_initial_errhandler`; empty if it is not set.
    pub(super) fn errhandler(&self) -> Result<String> {
        match self.info.get(b"mpi_initial_errhandler") {
            None => Ok(String::new()),
            Some(name @ (b"mpi_errors_are_fatal" | b"mpi_errors_abort" | b"mpi_errors_return")) => {
                utf8(name, "the key")
            }
            Some(other) => fail(
                Class::InfoValue,
                format!("mpi_initial_errhandler is {:?}, no predefined error handler", String::from_utf8_lossy(other)),
            ),
        }
    }
}

/// NAME=VALUE, one a line.
fn variables(lines: &str) -> Vec<(String, String)> {
    let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.trim().to_string(), value.to_string()));
    lines.lines().filter_map(pair).filter(|(name, _)| !name.is_empty()).collect()
}

/// The pairs of an info file: lines `key = value`, `#` begins a comment line.
fn read_info_file(name: &[u8]) -> Result<Entries> {
    let name = utf8(name, "file")?;
    let text = std::fs::read_to_string(&name)
        .map_err(|e| Error::new(Class::InfoValue, format!("the info file {name} cannot be read: {e}")))?;
    let mut entries = Entries::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some((key, value)) = line.split_once('=') else {
            return fail(
                Class::InfoValue,
                format!("the info file {name} has the line {line:?}, which is not `key = value`"),
            );
        };
        entries.set(key.trim().as_bytes(), value.trim().as_bytes());
    }
    Ok(entries)
}

/// The names of a list of hosts, without the numbers of slots that it may have.
fn names(hosts: &str) -> impl Iterator<Item = &str> {
    let bare = |host| match str::rsplit_once(host, ':') {
        Some((name, slots))
            if !slots.is_empty() && slots.bytes().all(|c| c.is_ascii_digit()) && !name.contains(':') =>
        {
            name
        }
        _ => host,
    };
    hosts.split(',').map(str::trim).filter(|host| !host.is_empty()).map(bare)
}

/// A host's name without its domain.
fn short(name: &str) -> &str {
    if name.parse::<std::net::IpAddr>().is_ok() { name } else { name.split('.').next().unwrap_or(name) }
}

/// Is this a name of the node that calls itself `own`?
fn is_own(host: &str, own: &str) -> bool {
    ["localhost", "127.0.0.1", "::1"].contains(&host) || short(host) == short(own)
}

/// All hosts must be this node.
fn check_hosts(hosts: &str) -> Result<()> {
    let own = process::processor_name();
    match names(hosts).find(|host| !is_own(host, &own)) {
        None => Ok(()),
        Some(host) => fail(Class::Spawn, format!("the host {host} is not this node ({own}), the only one of this job")),
    }
}

/// The name that this node has for itself, and its number.
fn own_node() -> (String, u32) {
    (process::processor_name(), nodes::node_of(process::endpoint_rank()))
}

/// The nodes of the job (`known`) that these hosts are, by the names that vmpirun has for them; `own` is this one.
fn nodes_of(hosts: &str, known: &[String], own: (String, u32)) -> Result<Vec<u32>> {
    let mut nodes = Vec::new();
    for host in names(hosts) {
        let exact = known.iter().position(|name| name == host).map(|number| number as u32);
        let own = || is_own(host, &own.0).then_some(own.1);
        let short = || known.iter().position(|name| short(name) == short(host)).map(|number| number as u32);
        let Some(number) = exact.or_else(own).or_else(short) else {
            return fail(Class::Spawn, format!("the host {host} is none of this job's nodes ({})", known.join(", ")));
        };
        if !nodes.contains(&number) {
            nodes.push(number);
        }
    }
    Ok(nodes)
}

fn path_text(path: &Path) -> Result<String> {
    match path.to_str() {
        Some(text) => Ok(text.to_string()),
        None => fail(Class::Spawn, format!("the path {} is not UTF-8", path.display())),
    }
}

/// The files that may be behind a command: one with a slash is a path from `wdir`; another one is looked for in the directories of `path`,
/// then of PATH, then in `wdir`.
fn candidates(command: &str, path: Option<&str>, wdir: &Path) -> Result<Vec<String>> {
    let system = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
    let files: Vec<PathBuf> = match command.contains('/') {
        true => vec![wdir.join(command)],
        false => {
            let directories = path.into_iter().flat_map(|path| path.split(':')).chain(system.split(':'));
            directories.chain([""]).map(|dir| wdir.join(dir).join(command)).collect()
        }
    };
    files.iter().map(|file| path_text(file)).collect()
}

/// The numbers of processes that the info key `soft` allows, largest first: `a`, `a:b` and `a:b:step`, separated by commas.
fn soft_counts(soft: &str, most: u32) -> Result<Vec<u32>> {
    let bad =
        || Error::new(Class::InfoValue, format!("soft is {soft:?}, not a list of numbers and ranges a:b or a:b:step"));
    let mut counts = std::collections::BTreeSet::new();
    for range in soft.split(',') {
        let numbers: Vec<i64> =
            range.split(':').map(|n| n.trim().parse()).collect::<Result<_, _>>().map_err(|_| bad())?;
        let (first, last, step) = match numbers[..] {
            [only] => (only, only, 1),
            [first, last] => (first, last, 1),
            [first, last, step] if step != 0 => (first, last, step),
            _ => return Err(bad()),
        };
        // Only numbers from 1 to `most` matter; the walk starts at the first of them.
        let (low, high) = (first.min(last).max(1), first.max(last).min(i64::from(most)));
        for count in (low..=high).filter(|count| (count - first) % step == 0) {
            counts.insert(count as u32);
        }
    }
    if counts.is_empty() {
        return fail(
            Class::InfoValue,
            format!("soft is {soft:?}, which allows no number of processes from 1 to {most}"),
        );
    }
    Ok(counts.into_iter().rev().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soft_lists() {
        let counts = |soft, most| soft_counts(soft, most).unwrap();
        assert_eq!(counts("4", 9), [4]);
        assert_eq!(counts("2:5", 4), [4, 3, 2]);
        assert_eq!(counts("1:9:3,8", 8), [8, 7, 4, 1]);
        assert_eq!(counts("9:1:-4", 20), [9, 5, 1]);
        assert_eq!(counts("0:1000000000000:2", 5), [4, 2]);
        for bad in ["", "x", "1:2:3:4", "1:5:0", "7"] {
            assert_eq!(soft_counts(bad, 5).unwrap_err().class, Class::InfoValue, "{bad}");
        }
    }

    fn find(command: &str, path: Option<&str>, wdir: &str) -> std::result::Result<String, String> {
        let candidates = candidates(command, path, Path::new(wdir)).unwrap();
        let (argv, cwd) = (vec![command.to_string()], wdir.to_string());
        let app = SpawnApp { candidates, argv, cwd, nodes: vec![], env: vec![], counts: vec![1] };
        app.program().map(str::to_string)
    }

    #[test]
    fn programs_are_found_as_a_launcher_does() {
        assert!(find("sh", None, "/").unwrap().ends_with("sh"));
        assert_eq!(find("./sh", None, "/bin").unwrap(), "/bin/./sh");
        assert_eq!(find("sh", Some("/nowhere:/bin"), "/").unwrap(), "/bin/sh");
        for (bad, why) in [
            ("/nonexistent/prog", "there is no file /nonexistent/prog"),
            ("no-such-program-anywhere", "there is no program \"no-such-program-anywhere\""),
            ("", "there is no program"),
            ("/etc/passwd", "cannot be executed"),
            ("/etc", "cannot be executed"),
        ] {
            let told = find(bad, None, "/").unwrap_err();
            assert!(told.contains(why), "{bad}: {told}");
        }
        assert!(find("sh", None, "/nonexistent").unwrap_err().contains("wdir"));
    }

    #[test]
    fn other_hosts_are_refused() {
        check_hosts("localhost").unwrap();
        check_hosts(&format!("{0}, {0}:4,localhost:2", process::processor_name())).unwrap();
        assert!(check_hosts("localhost,elsewhere.example").unwrap_err().message.contains("elsewhere.example"));
    }

    #[test]
    fn hosts_are_nodes_of_the_job() {
        let known = ["a.cluster".to_string(), "b.cluster".into(), "10.0.0.3".into()];
        let nodes = |hosts| nodes_of(hosts, &known, ("me".into(), 1));
        assert_eq!(nodes("b.cluster,a").unwrap(), [1, 0]);
        assert_eq!(nodes(" 10.0.0.3:4 , a:2,a").unwrap(), [2, 0]);
        assert_eq!(nodes("localhost,me.elsewhere").unwrap(), [1]);
        assert!(nodes("10.0.0.4").is_err());
        let told = nodes("a,elsewhere").unwrap_err();
        assert!(
            told.class == Class::Spawn && told.message.contains("elsewhere is none of this job's nodes (a.cluster")
        );
    }

    #[test]
    fn variables_are_lines() {
        assert_eq!(variables("A=1\nB=x=y\n=z\nnone\n"), [("A".into(), "1".into()), ("B".into(), "x=y".into())]);
    }
}
