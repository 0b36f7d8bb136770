//! Host names on the command line and in host files: for now they may only name this node.

use crate::failure::Failure;

/// A host and its number of slots, if given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    pub name: String,
    pub slots: Option<u32>,
}

/// `a,b:4` as after `-host`.
pub fn parse_list(text: &str) -> Result<Vec<Host>, String> {
    text.split(',').map(|part| parse_host(part.trim())).collect()
}

fn parse_host(word: &str) -> Result<Host, String> {
    let (name, slots) = match word.rsplit_once(':') {
        Some((name, slots)) if !name.contains(':') => {
            (name, Some(slots.parse::<u32>().map_err(|_| format!("`{slots}` in `{word}` is not a number of slots"))?))
        }
        _ => (word, None),
    };
    if name.is_empty() {
        return Err("a host needs a name".into());
    }
    Ok(Host { name: name.into(), slots })
}

/// A host file: `name`, `name:4` (Hydra), `name slots=4 max_slots=8` (Open MPI); `#` comments.
pub fn parse_file(text: &str) -> Result<Vec<Host>, String> {
    let mut hosts = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let mut host = parse_host(name)?;
        for word in words {
            if let Some(slots) = word.strip_prefix("slots=") {
                host.slots = Some(slots.parse().map_err(|_| format!("`{word}`: not a number of slots"))?);
            }
        }
        hosts.push(host);
    }
    Ok(hosts)
}

/// Read the host files and check that every host is this node.
///
/// # Errors
/// Exit code 2: a file cannot be read, or a host is another node.
pub fn check(files: &[String], given: &[Host]) -> Result<Vec<Host>, Failure> {
    let mut hosts = given.to_vec();
    for file in files {
        let text = std::fs::read_to_string(file)
            .map_err(|e| Failure::usage(format!("cannot read the host file {file}: {e}")))?;
        hosts.extend(parse_file(&text).map_err(|why| Failure::usage(format!("{file}: {why}")))?);
    }
    let own = own_name();
    if let Some(other) = hosts.iter().find(|host| !is_this_node(&host.name, &own)) {
        return Err(Failure::usage(format!(
            "host {}: several nodes are not offered yet; this node is {own}, and also answers to localhost",
            other.name
        )));
    }
    Ok(hosts)
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
    }

    #[test]
    fn only_this_node() {
        assert!(check(&[], &parse_list("localhost,127.0.0.1:3").unwrap()).is_ok());
        assert!(check(&[], &parse_list(&own_name()).unwrap()).is_ok());
        let refused = check(&[], &parse_list("elsewhere").unwrap()).unwrap_err();
        assert_eq!(refused.code, 2);
        assert!(refused.sentence.contains("several nodes are not offered yet"));
        assert!(is_this_node("n1.cluster", "n1") && !is_this_node("n1.a", "n1.b"));
    }
}
