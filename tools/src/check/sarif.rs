//! Findings as SARIF 2.1.0 (OASIS): what code hosts show at the lines of a change.

use super::ranks;
use crate::stack::Names;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;
use vmpi_shared::control::{CallSite, Finding, FindingKind, Findings};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Is this file to be SARIF, by its ending?
pub(super) fn is_wanted(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sarif"))
}

/// All of them. Files below `top` are told relative to it, as code hosts want them.
pub(super) fn document(findings: &Findings, top: &Path, names: &mut Names) -> Value {
    let mut kinds: Vec<FindingKind> = findings.list.iter().map(|finding| finding.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let results: Vec<Value> = findings.list.iter().map(|finding| result(finding, &kinds, top, names)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "vmpirun --check",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": kinds.iter().map(|kind| rule(*kind)).collect::<Vec<Value>>(),
            } },
            "results": results,
        }],
    })
}

fn level(kind: FindingKind) -> &'static str {
    if kind.is_error() { "error" } else { "note" }
}

fn rule(kind: FindingKind) -> Value {
    let about = kind.about();
    json!({
        "id": kind,
        "shortDescription": { "text": about.headline },
        "fullDescription": { "text": format!("MPI 4.1, chapter {}: {}.", about.chapter, about.rule) },
        "help": { "text": format!("{}.", about.advice) },
        "defaultConfiguration": { "level": level(kind) },
    })
}

fn result(finding: &Finding, kinds: &[FindingKind], top: &Path, names: &mut Names) -> Value {
    let about = finding.kind.about();
    let more = if finding.text.is_empty() { String::new() } else { format!(": {}", finding.text) };
    let mut text = format!("{}{more}.", about.headline);
    let mut locations = Vec::new();
    for party in &finding.parties {
        let words = format!("{}: {}", ranks(party), party.call);
        let _ = write!(text, " {words}.");
        if let Some(place) = party.site.as_ref().and_then(|site| place(site, top, names)) {
            locations.push(json!({ "physicalLocation": place, "message": { "text": words } }));
        }
    }
    let _ = write!(text, " What to do: {}.", about.advice);
    let related = locations.split_off(locations.len().min(1));
    json!({
        "ruleId": finding.kind,
        "ruleIndex": kinds.iter().position(|kind| *kind == finding.kind),
        "level": level(finding.kind),
        "message": { "text": text },
        "locations": locations,
        "relatedLocations": related,
    })
}

/// `None`: the program has no line for it.
fn place(site: &CallSite, top: &Path, names: &mut Names) -> Option<Value> {
    let frames = names.frames_of_call(Path::new(&site.module), site.offset);
    let frame = frames.first()?;
    let (file, line) = (frame.file.as_ref()?, frame.line.filter(|line| *line > 0)?);
    Some(json!({ "artifactLocation": { "uri": uri(file, top) }, "region": { "startLine": line } }))
}

fn uri(file: &str, top: &Path) -> String {
    let path = Path::new(file);
    let (scheme, path) = match path.strip_prefix(top) {
        Ok(below) => ("", below),
        Err(_) if path.is_absolute() => ("file://", path),
        Err(_) => ("", path),
    };
    let mut uri = scheme.to_owned();
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => uri.push(byte.into()),
            _ => _ = write!(uri, "%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_shared::control::Party;

    #[test]
    fn files_are_told_from_the_top() {
        let top = Path::new("/home/me/code");
        assert_eq!(uri("/home/me/code/src/a b.c", top), "src/a%20b.c");
        assert_eq!(uri("/usr/include/x.h", top), "file:///usr/include/x.h");
        assert_eq!(uri("main.f90", top), "main.f90");
        assert!(is_wanted("out/found.sarif") && !is_wanted("found.json") && !is_wanted("sarif"));
    }

    #[test]
    fn each_kind_is_a_rule_and_names_its_calls() {
        let party = Party { ranks: [1, 2].into(), call: "MPI_Bcast with root 1".into(), site: None };
        let finding = |kind| Finding { kind, parties: vec![party.clone()], text: String::new() };
        let list = vec![finding(FindingKind::NotFreed), finding(FindingKind::RootMismatch)];
        let document = document(&Findings { list, left_out: 0 }, Path::new("/"), &mut Names::default());
        let run = &document["runs"][0];
        let result = &run["results"][1];
        assert_eq!((&result["ruleId"], &result["level"]), (&json!("root_mismatch"), &json!("error")));
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(run["tool"]["driver"]["rules"][index]["id"], "root_mismatch");
        assert!(result["message"]["text"].as_str().unwrap().contains("ranks 1-2: MPI_Bcast with root 1."));
        assert_eq!(run["results"][0]["level"], "note");
    }
}
