//! Host names on the command line and in host files.

use crate::failure::Failure;
use crate::hostlist::{expand, split_outside};

/// A host and its number of slots, if given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub slots: Option<u32>,
}

/// `a,b:4,n[01-03]:2` as after `-host`.
pub fn parse_list(text: &str) -> Result<Vec<Host>, String> {
    let mut hosts = Vec::new();
    for part in split_outside(text)? {
        hosts.extend(parse_hosts(part.trim())?);
    }
    Ok(hosts)
}

/// One name, or those that its brackets stand for.
fn parse_hosts(word: &str) -> Result<Vec<Host>, String> {
    // `[::1]` is an address.
    let is_range = |inside: &str| inside.bytes().all(|b| b.is_ascii_digit() || b",-".contains(&b));
    match word.split_once('[').and_then(|(_, rest)| rest.split_once(']')) {
        Some((inside, behind)) if is_range(inside) => {
            let (list, slots) = match behind.rfind(':') {
                Some(_) => word.rsplit_once(':').unwrap_or((word, "")),
                None => (word, ""),
            };
            let slots = if slots.is_empty() { None } else { Some(number_of_slots(slots, word)?) };
            let names = expand(list).map_err(|why| format!("`{word}`: {why}"))?;
            Ok(names.into_iter().map(|name| Host { name, slots }).collect())
        }
        None if word.contains('[') => Err(format!("`{word}`: a bracket is not closed")),
        _ => parse_host(word).map(|host| vec![host]),
    }
}

fn number_of_slots(text: &str, word: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("`{text}` in `{word}` is not a number of slots"))
}

fn parse_host(word: &str) -> Result<Host, String> {
    let (name, slots) = match word.rsplit_once(':') {
        Some((name, slots)) if !name.contains(':') => (name, Some(number_of_slots(slots, word)?)),
        _ => (word, None),
    };
    if name.is_empty() {
        return Err("a host needs a name".into());
    }
    Ok(Host { name: name.into(), slots })
}

/// A host file: `name`, `name:4` (Hydra), `name slots=4 max_slots=8` (Open MPI); `#` comments.
///
/// # Errors
/// The first line that makes no sense, by its number.
pub fn parse_file(text: &str) -> Result<Vec<Host>, String> {
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        hosts.extend(parse_line(line).map_err(|why| format!("line {number}: {why}"))?);
    }
    Ok(hosts)
}

fn parse_line(line: &str) -> Result<Vec<Host>, String> {
    let line = line.split('#').next().unwrap_or("");
    let mut words = line.split_whitespace();
    let Some(name) = words.next() else { return Ok(Vec::new()) };
    let mut hosts = parse_hosts(name)?;
    let number = |word: &str, text: &str| {
        text.parse::<u32>().map_err(|_| format!("`{word}`: `{text}` is not a number of slots"))
    };
    for word in words {
        match word.split_once('=') {
            Some(("slots", text)) => {
                let slots = number(word, text)?;
                hosts.iter_mut().for_each(|host| host.slots = Some(slots));
            }
            Some(("max_slots" | "max-slots", text)) => drop(number(word, text)?),
            // Hydra's network interface, Open MPI's login name and the like: ssh's own configuration has those.
            Some(("user" | "username" | "port" | "binding" | "maxprocs" | "ifhn" | "sockets" | "cores", _)) => {}
            _ => return Err(format!("`{word}` is not understood; a line is `name`, `name:4` or `name slots=4`")),
        }
    }
    Ok(hosts)
}

/// All hosts that the files and the list name, each once: the slots of one that is named several times add up (where they are not given, each
/// mention is one, as with Open MPI's `--host a,a`).
///
/// # Errors
/// Exit code 2: a file cannot be read, or one of its lines makes no sense.
pub fn all(files: &[String], given: &[Host]) -> Result<Vec<Host>, Failure> {
    let mut named = given.to_vec();
    for file in files {
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("cannot read the host file {file}: {e}")))?;
        named.extend(parse_file(&text).map_err(|why| Failure::usage(format!("{file}, {why}")))?);
    }
    if let Some(bad) = named.iter().find(|host| host.name.starts_with('-') || host.name.contains(['/', '\'', '"'])) {
        return Err(Failure::usage(format!("`{}` is not the name of a host", bad.name)));
    }
    let mut hosts: Vec<Host> = Vec::new();
    for host in named {
        let same = |known: &&mut Host| known.name == host.name || (is_here(&known.name) && is_here(&host.name));
        match hosts.iter_mut().find(same) {
            Some(known) => known.slots = Some(known.slots.unwrap_or(1).saturating_add(host.slots.unwrap_or(1))),
            None => hosts.push(host),
        }
    }
    Ok(hosts)
}

/// Does this name mean this node?
pub fn is_here(name: &str) -> bool {
    is_this_node(name, &own_name())
}

/// This node's name.
pub fn own_name() -> String {
    nix::unistd::gethostname().map_or_else(|_| "localhost".into(), |name| name.to_string_lossy().into_owned())
}

fn is_this_node(name: &str, own: &str) -> bool {
    let short = |name: &str| name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    name.starts_with("127.")
        || ["::1", "+n0", "node0"].contains(&name)
        || short(name) == "localhost"
        || name.eq_ignore_ascii_case(own)
        || (short(name) == short(own) && (!name.contains('.') || !own.contains('.')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_files_of_both_families() {
        let hosts = parse_file("# nodes\nlocalhost slots=4 max_slots=8\nnode7:2 # two\n\n127.0.0.1\n").unwrap();
        let slots: Vec<_> = hosts.iter().map(|h| (h.name.as_str(), h.slots)).collect();
        assert_eq!(slots, [("localhost", Some(4)), ("node7", Some(2)), ("127.0.0.1", None)]);
        assert!(parse_list("a:x").is_err());
        let names = |text: &str| -> Vec<(String, Option<u32>)> {
            parse_list(text).unwrap().into_iter().map(|host| (host.name, host.slots)).collect()
        };
        let slots = |names: &[&str], slots| names.iter().map(|name| (name.to_string(), slots)).collect::<Vec<_>>();
        assert_eq!(names("n[01-03,7]:4"), slots(&["n01", "n02", "n03", "n7"], Some(4)));
        assert_eq!(names("n[1-2].ib,[::1]"), slots(&["n1.ib", "n2.ib", "[::1]"], None));
        assert_eq!(parse_file("n[8-10] slots=2\n").unwrap().len(), 3);
        for wrong in ["n[1-", "n[3-1]", "n[1-2]:x"] {
            assert!(parse_list(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_are_named_once() {
        let all = |list: &str| super::all(&[], &parse_list(list).unwrap()).unwrap();
        let names = |hosts: Vec<Host>| hosts.into_iter().map(|host| (host.name, host.slots)).collect::<Vec<_>>();
        assert_eq!(names(all("localhost,127.0.0.1:3")), [("localhost".to_string(), Some(4))]);
        assert_eq!(names(all("a,b,a")), [("a".to_string(), Some(2)), ("b".to_string(), None)]);
        assert!(is_here(&own_name()) && is_here("localhost") && !is_here("elsewhere"));
        assert!(is_this_node("n1.cluster", "n1") && !is_this_node("n1.a", "n1.b"));
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, line) in [("a\n\nb slots=x\n", "line 3"), ("a:y", "line 1"), ("# c\na two", "line 2")] {
            let why = parse_file(text).unwrap_err();
            assert!(why.starts_with(line), "{why}");
        }
        let option = parse_list("-oProxyCommand=x").unwrap();
        assert!(super::all(&[], &option).is_err());
    }
}
