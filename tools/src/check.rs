//! What `vmpirun --check` has found, in words, as JSON and as SARIF.

mod sarif;

use crate::cli::RunOptions;
use crate::cpus::format_list;
use crate::failure::{Failure, code};
use crate::stack::Names;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use vmpi_shared::control::{CallSite, Check, Finding, Findings, JobReport, JobSpec, Party, env};
use vmpi_shared::escape;

/// Lines are broken before they are longer.
const WIDTH: usize = 100;

/// The exit code of a job that would end with `code`.
pub fn code(code: i32, report: Option<&JobReport>) -> i32 {
    if code == 0 && report.is_some_and(|report| report.findings.has_errors()) { code::CHECK } else { code }
}

/// Was the job checked?
fn was_checked(options: &RunOptions, spec: &JobSpec) -> bool {
    let in_environment = |(name, word): &(String, String)| name == env::CHECK && word != "off";
    let by_flag = options.check.is_some_and(|check| check != Check::Off);
    by_flag || spec.apps.iter().any(|app| app.env.iter().any(in_environment))
}

/// Before a job starts: does what is asked for go together?
///
/// # Errors
/// A sentence, if it does not.
pub fn refuse(options: &RunOptions, spec: &JobSpec) -> Result<(), Failure> {
    if options.check_json.is_some() && !was_checked(options, spec) {
        return Err(Failure::usage("--check-json needs --check (or VMPI_CHECK): nothing would be looked at"));
    }
    Ok(())
}

/// Tell of the findings of a job that has ended.
///
/// # Errors
/// The file for JSON cannot be written.
pub fn conclude(options: &RunOptions, findings: &Findings) -> Result<(), Failure> {
    let mut names = Names::default();
    if !findings.is_empty() && !options.quiet {
        let _ = write!(std::io::stderr(), "{}", escape::lines(&text(findings, &mut names)));
    }
    match &options.check_json {
        Some(path) => {
            let document = if sarif::is_wanted(path) {
                let top = std::env::current_dir().unwrap_or_default();
                sarif::document(findings, &top, &mut names)
            } else {
                as_json(findings, &mut names)
            };
            std::fs::write(path, format!("{document:#}\n"))
                .map_err(|error| Failure::own(format!("cannot write {path}: {error}")))
        }
        None => Ok(()),
    }
}

/// `solve.c:12 (main)`.
fn place(site: &CallSite, names: &mut Names) -> (String, Option<String>, Option<u32>, Option<String>) {
    let frames = names.frames_of_call(Path::new(&site.module), site.offset);
    let frame = frames.first().cloned().unwrap_or_default();
    let words = match &frame.function {
        Some(function) => format!("{} ({function})", frame.place()),
        None => frame.place(),
    };
    (words, frame.file, frame.line, frame.function)
}

fn ranks(party: &Party) -> String {
    let list: Vec<u32> = party.ranks.iter().copied().collect();
    match &list[..] {
        [] => "a rank".into(),
        [one] => format!("rank {one}"),
        _ => format!("ranks {}", format_list(&list)),
    }
}

/// `line` in pieces that fit, the second and later ones indented.
fn wrapped(line: &str, indent: &str) -> String {
    let start = line.len() - line.trim_start_matches(' ').len();
    let (mut text, mut column) = (line[..start].to_owned(), start);
    for (index, word) in line[start..].split(' ').enumerate() {
        if index > 0 && column + 1 + word.chars().count() > WIDTH {
            text.push('\n');
            text.push_str(indent);
            column = indent.len();
        } else if index > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.chars().count();
    }
    text.push('\n');
    text
}

fn paragraph(number: usize, finding: &Finding, names: &mut Names) -> String {
    let about = finding.kind.about();
    let weight = if finding.kind.is_error() { "" } else { "note: " };
    let more = if finding.text.is_empty() { String::new() } else { format!(": {}", finding.text) };
    let mut text = wrapped(&format!("{number:>3}. {weight}{}{more}", about.headline), "     ");
    for party in &finding.parties {
        let at = party.site.as_ref().map_or(String::new(), |site| format!(" at {}", place(site, names).0));
        text.push_str(&wrapped(&format!("     {}: {}{at}", ranks(party), party.call), "       "));
    }
    text.push_str(&wrapped(&format!("     MPI 4.1, chapter {}: {}.", about.chapter, about.rule), "       "));
    text.push_str(&wrapped(&format!("     What to do: {}.", about.advice), "       "));
    text
}

/// All of them, errors first.
pub fn text(findings: &Findings, names: &mut Names) -> String {
    let (errors, notes): (Vec<&Finding>, Vec<&Finding>) =
        findings.list.iter().partition(|finding| finding.kind.is_error());
    let count = |list: &[&Finding], what: &str| match list.len() {
        0 => None,
        1 => Some(format!("1 {what}")),
        more => Some(format!("{more} {what}s")),
    };
    let counts: Vec<String> = [count(&errors, "error"), count(&notes, "note")].into_iter().flatten().collect();
    let mut text = format!("vmpirun: --check has found {}:\n", counts.join(" and "));
    for (index, finding) in errors.into_iter().chain(notes).enumerate() {
        text.push_str(&paragraph(index + 1, finding, names));
    }
    if findings.left_out > 0 {
        text.push_str(&format!("     ... and {} more that there was no room for\n", findings.left_out));
    }
    text
}

/// For programs (docs/check.schema.json).
pub fn as_json(findings: &Findings, names: &mut Names) -> Value {
    let party = |party: &Party, names: &mut Names| {
        let site = party.site.as_ref().map(|site| {
            let (_, file, line, function) = place(site, names);
            json!({ "file": file, "line": line, "function": function, "module": site.module, "offset": site.offset })
        });
        json!({ "ranks": party.ranks, "call": party.call, "site": site })
    };
    let mut list = Vec::new();
    for finding in &findings.list {
        let about = finding.kind.about();
        let calls: Vec<Value> = finding.parties.iter().map(|one| party(one, names)).collect();
        list.push(json!({
            "kind": finding.kind,
            "severity": if finding.kind.is_error() { "error" } else { "note" },
            "what": about.headline,
            "details": finding.text,
            "calls": calls,
            "chapter": about.chapter,
            "rule": about.rule,
            "advice": about.advice,
        }));
    }
    json!({ "schema_version": 1, "findings": list, "left_out": findings.left_out })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_shared::control::FindingKind;

    fn findings() -> Findings {
        let party =
            |ranks: &[u32], call: &str| Party { ranks: ranks.iter().copied().collect(), call: call.into(), site: None };
        let finding = |kind, parties| Finding { kind, parties, text: "more".into() };
        let mut findings = Findings::default();
        findings.add(finding(FindingKind::NotFreed, vec![party(&[0], "MPI_Comm_dup")]));
        let roots = vec![party(&[0], "MPI_Bcast with root 0"), party(&[1, 2, 3], "MPI_Bcast with root 1")];
        findings.add(finding(FindingKind::RootMismatch, roots));
        findings
    }

    #[test]
    fn errors_come_first_with_ranks_rule_and_advice() {
        let text = text(&findings(), &mut Names::default());
        assert!(
            text.starts_with("vmpirun: --check has found 1 error and 1 note:\n  1. ranks name different roots: more\n"),
            "{text}"
        );
        assert!(text.contains("     ranks 1-3: MPI_Bcast with root 1\n"), "{text}");
        assert!(
            text.contains("     MPI 4.1, chapter 6 (Collective Communication): ") && text.contains("     What to do: "),
            "{text}"
        );
        assert!(text.contains("  2. note: objects were never freed"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn only_errors_change_the_exit_code() {
        let report = |findings: Findings| JobReport { findings, ..JobReport::default() };
        let notes = Findings { list: findings().list[..1].to_vec(), left_out: 0 };
        assert_eq!(code(0, Some(&report(findings()))), code::CHECK);
        assert_eq!(code(7, Some(&report(findings()))), 7);
        assert_eq!((code(0, Some(&report(notes))), code(0, None)), (0, 0));
    }
}
