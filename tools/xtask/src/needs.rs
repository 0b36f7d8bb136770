//! What some tests need of the machine, and who is left out, by name, where it cannot be had.

use crate::shell::{command, output};

/// Something that not every machine has.
struct Need {
    /// Which tests, for nextest.
    tests: &'static str,
    /// In words.
    called: &'static str,
    /// Try it; the error is the reason.
    missing: fn() -> Option<String>,
}

const NEEDS: &[Need] = &[Need {
    // `tests/src/nodes.rs` sees to it that these are all.
    tests: "binary(/^nodes/) | test(/nodes/)",
    called: "tests of several nodes (nodes*, *nodes*)",
    missing: || network_namespaces().err(),
}];

/// What the tests' network namespaces are made with.
fn network_namespaces() -> Result<(), String> {
    let name = format!("vmpiprobe{}", std::process::id());
    let ip = |args: &[&str]| output(command("ip").args(args));
    ip(&["netns", "add", &name])?;
    let cable = ip(&["link", "add", "cable", "netns", &name, "type", "veth", "peer", "name", "cable2", "netns", &name]);
    let entered = output(command("nsenter").args([&format!("--net=/run/netns/{name}"), "unshare", "--uts", "true"]));
    ip(&["netns", "del", &name])?;
    cable.and(entered).map(drop)
}

/// nextest's filter for what can run here, and a sentence for each thing that cannot.
pub fn possible() -> (Option<String>, Vec<String>) {
    select(NEEDS.iter().filter_map(|need| Some((need, (need.missing)()?))))
}

fn select(missing: impl Iterator<Item = (&'static Need, String)>) -> (Option<String>, Vec<String>) {
    let (mut filter, mut sentences) = (Vec::new(), Vec::new());
    for (need, reason) in missing {
        filter.push(format!("not ({})", need.tests));
        sentences.push(format!("left out: {}; this machine does not allow them: {}", need.called, reason.trim()));
    }
    ((!filter.is_empty()).then(|| filter.join(" & ")), sentences)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_run_is_named_with_the_reason() {
        let (filter, sentences) = select([(&NEEDS[0], "ip: Operation not permitted\n".to_string())].into_iter());
        assert_eq!(filter.unwrap(), "not (binary(/^nodes/) | test(/nodes/))");
        assert!(sentences[0].contains("nodes*") && sentences[0].ends_with("ip: Operation not permitted"));
        assert_eq!(select(std::iter::empty()), (None, Vec::new()));
    }
}
