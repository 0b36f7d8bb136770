//! README and guide: each command of the guide that can run here runs, and says what stands there; each link leads somewhere; each flag and variable is in a table.
//!
//! A block marked `console` is a session: `$ command`, and below it lines that its output must have, in any order; `...` stands for
//! anything. The exit code must be 0, unless `$ echo $?` follows with another. `console,norun`: not here. `console,needs=lmp`: only
//! where that program is. A page's blocks follow each other in one directory, a copy of examples/.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vmpi_tests::job::{Vmpirun, kill_all, remaining};
use vmpi_tests::leftovers::shared_memory_files;
use vmpi_tests::place::{Turn, bin_dir, top, venv};
use vmpi_tests::scratch::Scratch;

/// When a block is given up as hanging.
const DEADLINE: Duration = Duration::from_secs(120);

fn guide() -> PathBuf {
    top().join("docs/guide/src")
}

/// A fenced block: its info string, the line that it begins in, its lines.
struct Block<'a> {
    info: &'a str,
    line: usize,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    for (number, line) in (1..).zip(text.lines()) {
        let bare = line.trim_start();
        match (&mut open, bare.strip_prefix("```")) {
            (None, Some(info)) => {
                open = Some((line.len() - bare.len(), Block { info, line: number, lines: Vec::new() }));
            }
            (Some(_), Some(_)) => blocks.extend(open.take().map(|(_, block)| block)),
            (Some((indent, block)), None) => block.lines.push(line.get(*indent..).unwrap_or(bare)),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// A command of a block with what it shall say and its exit code.
#[derive(Debug, PartialEq, Eq)]
struct Step<'a> {
    command: &'a str,
    says: Vec<&'a str>,
    code: i32,
}

fn steps<'a>(block: &Block<'a>) -> Vec<Step<'a>> {
    let mut steps: Vec<Step> = Vec::new();
    let mut asks_code = false;
    for line in &block.lines {
        match line.strip_prefix("$ ") {
            Some("echo $?") => asks_code = true,
            Some(command) => {
                let command = command.split(" #").next().unwrap_or(command).trim();
                steps.push(Step { command, says: Vec::new(), code: 0 });
                asks_code = false;
            }
            None => {
                let step = steps.last_mut().unwrap_or_else(|| panic!("line {}: output of no command", block.line));
                match asks_code {
                    true => step.code = line.trim().parse().expect("an exit code"),
                    false => step.says.push(line),
                }
            }
        }
    }
    steps
}

/// Does `line` look like `pattern`, in which `...` stands for anything?
fn fits(pattern: &str, line: &str) -> bool {
    let parts: Vec<&str> = pattern.split("...").map(str::trim).collect();
    let (first, last) = (parts[0], parts[parts.len() - 1]);
    let line = line.trim();
    if parts.len() == 1 {
        return line == first;
    }
    if !line.starts_with(first) || !line[first.len()..].ends_with(last) {
        return false;
    }
    let mut rest = &line[first.len()..line.len() - last.len()];
    parts[1..parts.len() - 1].iter().all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

fn is_there(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

/// One shell for a block, so that `cd`, `export` and `&` mean what they do at a terminal; each step between marks.
fn script(steps: &[Step]) -> String {
    let mut script = String::new();
    for (i, step) in steps.iter().enumerate() {
        script.push_str(&format!("echo '<<step {i}'\n{}\necho \"<<code $?\"\n", step.command));
    }
    script + "wait\n"
}

/// What is wrong with a block's run, in words.
fn mistakes(block: &Block, dir: &Path, runtime_dir: &Path) -> Vec<String> {
    let steps = steps(block);
    let output = dir.join("output-of-the-block");
    let file = fs::File::create(&output).expect("the scratch directory is writable");
    // The wrappers of the virtual environment's MPIs are others than those that the guide means.
    let own = [bin_dir(), dir.join("names"), venv().join("bin")];
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&usual))).expect("no colon in it");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script(&steps)).current_dir(dir).env("PATH", path).env("PREFIX", dir.join("prefix"));
    shell.env("VMPI_RUNTIME_DIR", runtime_dir).env("HOME", dir).env("XDG_CACHE_HOME", dir.join("cache"));
    shell.stdin(Stdio::null()).stdout(file.try_clone().expect("a descriptor")).stderr(file);
    let mut child = shell.spawn().expect("there is a shell");
    let end = Instant::now() + DEADLINE;
    let ended = loop {
        if child.try_wait().expect("it is our child").is_some() {
            break true;
        }
        if Instant::now() > end {
            kill_all(runtime_dir);
            let _ = child.kill();
            let _ = child.wait();
            break false;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let said = String::from_utf8_lossy(&fs::read(&output).expect("it was written")).into_owned();
    let mut wrong = Vec::new();
    if !ended {
        wrong.push("it is still running at its deadline".to_string());
    }
    for (i, step) in steps.iter().enumerate() {
        let begin = said.split_once(&format!("<<step {i}\n")).map_or("", |(_, rest)| rest);
        // What a command in the background says may come later.
        let (own, code) = begin.split_once("<<code ").unwrap_or((begin, ""));
        let own = if step.command.ends_with('&') { &said } else { own };
        let code = code.lines().next().unwrap_or("none");
        if code != step.code.to_string() {
            wrong.push(format!("`{}` ended with {code}, not {}", step.command, step.code));
        }
        for line in step.says.iter().filter(|line| !line.trim().is_empty() && **line != "...") {
            if !own.lines().any(|said| fits(line, said)) {
                wrong.push(format!("`{}` did not say: {line}", step.command));
            }
        }
    }
    if !wrong.is_empty() {
        wrong.push(format!("it said:\n{said}"));
    }
    wrong
}

/// Links to programs by other names; in `PREFIX/lib/vmpi/bin` as an installation has them.
fn usual_names(dir: &Path, names: &[(&str, PathBuf)]) {
    fs::create_dir_all(dir).expect("the scratch directory is writable");
    names
        .iter()
        .for_each(|(name, program)| symlink(program, dir.join(name)).expect("the scratch directory is writable"));
}

fn page(name: &str) {
    Turn::beside_others();
    let _turn = Turn::take();
    let text = fs::read_to_string(guide().join(name)).expect("the page is there");
    let stem = name.trim_end_matches(".md");
    let (scratch, runtime_dir) = (Scratch::new(stem), Scratch::new(&format!("{stem}-run")));
    let copy = |from: &Path, name: &OsStr| {
        fs::copy(from, scratch.path().join(name)).expect("the scratch directory is writable");
    };
    let examples = fs::read_dir(top().join("examples")).expect("they are there").flatten();
    examples.for_each(|file| copy(&file.path(), &file.file_name()));
    copy(&top().join("tests/data/in.melt"), OsStr::new("in.melt"));
    let names = [("mpicc", "vmpicc"), ("mpirun", "vmpirun"), ("mpiexec", "vmpirun")];
    usual_names(
        &scratch.path().join("prefix/lib/vmpi/bin"),
        &names.map(|(name, program)| (name, bin_dir().join(program))),
    );
    usual_names(&scratch.path().join("names"), &[("mpicc", "/usr/bin/mpicc.openmpi".into())]);
    let shared_memory = shared_memory_files();
    let mut wrong = Vec::new();
    for block in blocks(&text) {
        let marks: Vec<&str> = block.info.split(',').map(str::trim).collect();
        let missing = marks.iter().filter_map(|mark| mark.strip_prefix("needs=")).find(|program| !is_there(program));
        if marks[0] != "console" || marks.contains(&"norun") {
            continue;
        }
        if let Some(program) = missing {
            eprintln!("{name}, line {}: left out: there is no {program} here", block.line);
            continue;
        }
        let found = mistakes(&block, scratch.path(), runtime_dir.path());
        wrong.extend(found.into_iter().map(|why| format!("{name}, line {}: {why}", block.line)));
        wrong.extend(remaining(runtime_dir.path(), &shared_memory).map(|why| format!("{name}: {why}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

macro_rules! pages {
    ($($test:ident $page:literal)*) => {
        /// Pages whose commands run, each in a test of its own.
        const RUN: &[&str] = &[$($page),*];
        $(#[test] fn $test() { page($page); })*
    };
}

pages! {
    getting_started "getting-started.md"
    choosing_v "choosing-v.md"
    hybrids "hybrids.md"
    containers "containers.md"
    ci "ci.md"
    tracing "tracing.md"
    vmpictl "vmpictl.md"
    simulation "simulation.md"
    simulation_machines "simulation-machines.md"
    deadlocks "deadlocks.md"
    clocks "clocks.md"
    flags "flags.md"
    lammps "lammps.md"
    mpi4py "mpi4py.md"
    cmake "cmake.md"
    fault_tolerance "fault-tolerance.md"
    faq "faq.md"
}

fn markdown_below(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            markdown_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
}

/// All that readers are given, the top directory's files and those below docs, examples and findings.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    ["docs", "examples", "findings"].iter().for_each(|dir| markdown_below(&top().join(dir), &mut found));
    let files = fs::read_dir(top()).expect("it is there").flatten().map(|entry| entry.path());
    found.extend(files.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    found.sort();
    found
}

/// The text without fenced blocks and code between backticks, which are no links.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced && !line.starts_with("    ") {
            line.split('`').step_by(2).for_each(|part| prose.push_str(part));
            prose.push('\n');
        }
    }
    prose
}

fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    targets.map(|(target, _)| target.split(' ').next().unwrap_or("").to_string()).collect()
}

/// The anchor that GitHub and mdBook make of a heading.
fn anchor(heading: &str) -> String {
    let word = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == ' ';
    heading.trim().to_lowercase().chars().filter(|c| word(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let mut fenced = false;
    let headings = text.lines().filter(|line| {
        fenced ^= line.trim_start().starts_with("```");
        !fenced && line.starts_with('#')
    });
    headings.map(|line| anchor(line.trim_start_matches('#'))).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut missing = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("it was just listed");
        for link in links(&text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { document.clone() } else { document.with_file_name(file) };
            let told =
                |why: &str| format!("{}: {link}: {why}", document.strip_prefix(top()).unwrap_or(&document).display());
            if !target.exists() {
                missing.push(told("there is no such file"));
            } else if !fragment.is_empty() && target.extension().is_some_and(|ending| ending == "md") {
                let there = fs::read_to_string(&target).expect("it exists");
                if !anchors(&there).contains(fragment) {
                    missing.push(told("there is no such heading"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{} links lead nowhere:\n{}", missing.len(), missing.join("\n"));
}

#[test]
fn the_guide_has_all_of_its_pages() {
    let summary = fs::read_to_string(guide().join("SUMMARY.md")).expect("it is there");
    let listed: BTreeSet<String> = links(&summary).into_iter().filter(|link| !link.contains('/')).collect();
    let files = fs::read_dir(guide()).expect("it is there").flatten();
    let pages: BTreeSet<String> = files.map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    let pages: BTreeSet<String> = pages.into_iter().filter(|name| name != "SUMMARY.md").collect();
    assert_eq!(listed, pages, "SUMMARY.md, and the files");
    for name in pages.iter().filter(|name| !RUN.contains(&name.as_str())) {
        let text = fs::read_to_string(guide().join(name)).expect("it was just listed");
        let runs = blocks(&text).iter().any(|block| block.info == "console" || block.info.starts_with("console,needs"));
        assert!(!runs, "{name} has commands to run, and no test in this file runs them");
    }
}

/// Every flag and every variable that `vmpirun --help` names stands in the guide's tables; and README is one screen to decide.
#[test]
fn the_tables_have_every_flag_and_variable() {
    let help = Command::new(bin_dir().join("vmpirun")).arg("--help").output().expect("vmpirun starts").stdout;
    let help = String::from_utf8_lossy(&help).into_owned();
    let tables: String = ["tuning.md", "flags.md"]
        .iter()
        .map(|name| fs::read_to_string(guide().join(name)).expect("it is there"))
        .collect();
    let words: BTreeSet<&str> = tables.split(|c: char| !(c.is_alphanumeric() || "-_".contains(c))).collect();
    let is_flag = |line: &&str| line.starts_with("  -");
    let names = help.lines().filter(is_flag).flat_map(|line| {
        let left = line.trim().split("  ").next().unwrap_or("");
        left.split(", ")
            .map(|word| word.split([' ', '[', '=', ',']).next().unwrap_or("").to_string())
            .collect::<Vec<_>>()
    });
    let is_variable = |word: &&str| word.starts_with("VMPI_") || word.starts_with("MPIEXEC_");
    let variables = help.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(is_variable).map(str::to_owned);
    let known = |name: &str| {
        let bare = name.trim_start_matches('-');
        [bare.to_string(), format!("-{bare}"), format!("--{bare}")].iter().any(|form| words.contains(form.as_str()))
    };
    let missing: BTreeSet<String> = names.chain(variables).filter(|name| !name.is_empty() && !known(name)).collect();
    assert!(missing.is_empty(), "docs/guide/src/tuning.md and flags.md lack {missing:?}");
    let readme = fs::read_to_string(top().join("README.md")).expect("it is there");
    assert!(readme.lines().count() <= 120, "README.md has {} lines", readme.lines().count());
}

/// Every column that vmpictl and the report print stands in the glossary.
#[test]
fn the_glossary_has_every_column() {
    Turn::beside_others();
    let run = Vmpirun::new("columns").args(["-n", "2", "-V", "2", "--report=full", "sleep", "0"]);
    let runtime_dir = run.runtime_dir().to_owned();
    let mut said = run.run().stderr;
    for command in [&["ps"][..], &["ps", "--ranks"], &["top", "--once"]] {
        let vmpictl =
            Command::new(bin_dir().join("vmpictl")).args(command).env("VMPI_RUNTIME_DIR", &runtime_dir).output();
        said.push_str(&String::from_utf8_lossy(&vmpictl.expect("vmpictl starts").stdout));
    }
    let is_column = |word: &str| word.chars().all(|c| c.is_ascii_uppercase() || "-%/".contains(c));
    let heads =
        said.lines().filter(|line| line.split_whitespace().count() > 2 && line.split_whitespace().all(is_column));
    let columns: BTreeSet<&str> = heads.flat_map(str::split_whitespace).collect();
    assert!(
        ["HAND-OFFS/S", "UNEXP", "FACE", "VIOLATIONS", "AWAY"].iter().all(|known| columns.contains(known)),
        "{said}"
    );
    let glossary = fs::read_to_string(guide().join("glossary.md")).expect("it is there");
    let words: BTreeSet<&str> = glossary.split(|c: char| !(c.is_alphanumeric() || "-%/".contains(c))).collect();
    let missing = columns.iter().filter(|name| !words.contains(**name) && !words.contains(name.trim_end_matches('%')));
    let missing: Vec<&&str> = missing.collect();
    assert!(missing.is_empty(), "docs/guide/src/glossary.md lacks {missing:?}");
}

#[test]
fn patterns_fit() {
    assert!(fits("a ... c", "a b c") && fits("...c", "abc") && fits("a...", "a") && fits("a", " a "));
    assert!(!fits("a ... c", "a b") && !fits("a", "ab") && !fits("aa...aa", "aaa") && !fits("a...x...c", "abc"));
    let block = Block { info: "console", line: 1, lines: vec!["$ false  # fails", "$ echo $?", "1", "$ true", "yes"] };
    let first = Step { command: "false", says: vec![], code: 1 };
    assert_eq!(steps(&block), [first, Step { command: "true", says: vec!["yes"], code: 0 }]);
    assert_eq!(anchor(" Every rank says \"rank 0 of 1\""), "every-rank-says-rank-0-of-1");
    assert_eq!(links("see [a](b.md#c) and `[x](y)`"), ["b.md#c"]);
}
