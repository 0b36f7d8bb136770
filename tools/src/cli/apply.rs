//! From a flag's words to its value: what each flag of the table accepts.

use super::options::{EnvMode, EnvSetting, Label, OnDeadlock, OutputMode, ReportForm, StdinTo, Universe, VChoice};
use super::parse::{Action, Line};
use crate::{cpus, hosts, matrix, trace};
use vmpi_shared::control::{Balance, Check, MOST_RANKS, OnBlock, Overlap, Policy, Wtime};
use vmpi_shared::crash::OnCrash;

type Done = Result<(), String>;

pub fn put<T>(place: &mut T, value: T) -> Done {
    *place = value;
    Ok(())
}

pub fn set<T>(place: &mut Option<T>, value: T) -> Done {
    put(place, Some(value))
}

pub fn push<T>(list: &mut Vec<T>, value: T) -> Done {
    list.push(value);
    Ok(())
}

pub fn number(word: &str, what: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("`{word}` is not a number of {what}"))
}

/// A number of ranks, from 1 on.
pub fn count(word: &str, what: &str) -> Result<u32, String> {
    match word.parse::<u32>() {
        Ok(0) => Err(format!("0 {what} cannot run anything; give 1 or more")),
        Ok(n) if n > MOST_RANKS => Err(format!("{n} {what} are more than the {MOST_RANKS} that a job may have")),
        Ok(n) => Ok(n),
        Err(_) => Err(format!("`{word}` is not a number of {what}")),
    }
}

pub fn v_choice(word: &str) -> Result<VChoice, String> {
    if word == "auto" {
        return Ok(VChoice::Auto);
    }
    count(word, "ranks per core").map(VChoice::Exactly).map_err(|why| {
        if word.parse::<u32>().is_ok() { why } else { format!("{why}, nor `auto` (--version prints the version)") }
    })
}

/// One of the words of a small table.
fn one_of<T: Copy>(word: &str, table: &[(&str, T)]) -> Result<T, String> {
    table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
        format!("`{word}` is not one of {}", names.join(", "))
    })
}

pub fn policy(word: &str) -> Result<Policy, String> {
    one_of(word, &Policy::NAMES)
}

pub fn balance(word: &str) -> Result<Balance, String> {
    one_of(word, &Balance::NAMES)
}

pub fn on_block(word: &str) -> Result<OnBlock, String> {
    one_of(word, &[("release", OnBlock::Release), ("keep", OnBlock::Keep)])
}

pub fn on_deadlock(word: &str) -> Result<OnDeadlock, String> {
    one_of(word, &[("report", OnDeadlock::Report), ("abort", OnDeadlock::Abort), ("ignore", OnDeadlock::Ignore)])
}

pub fn on_crash(word: &str) -> Result<OnCrash, String> {
    one_of(word, &OnCrash::NAMES)
}

/// Seconds without progress, from 1 on.
pub fn on_hang(word: &str) -> Result<u64, String> {
    match number(word, "seconds")? {
        0 => Err("0 seconds without progress are no hang; give 1 or more".into()),
        seconds => Ok(seconds),
    }
}

/// `--report` alone is the summary.
pub fn report_form(word: Option<&String>) -> Result<ReportForm, String> {
    word.map_or(Ok(ReportForm::Summary), |word| {
        one_of(word, &[("summary", ReportForm::Summary), ("full", ReportForm::Full)])
    })
}

/// Does MPI_Pcontrol get names behind its level?
pub fn pcontrol(word: &str) -> Result<bool, String> {
    one_of(word, &[("levels", false), ("regions", true)])
}

pub fn wtime(word: &str) -> Result<Wtime, String> {
    one_of(word, &[("wall", Wtime::Wall), ("rank", Wtime::Rank)])
}

pub fn overlap(word: &str) -> Result<Overlap, String> {
    one_of(word, &Overlap::NAMES)
        .map_err(|why| format!("{why}; before a program it needs one of them, too: --overlap=on ./app"))
}

pub fn check(word: Option<&String>) -> Result<Check, String> {
    word.map_or(Ok(Check::Cheap), |word| one_of(word, &Check::NAMES))
}

pub fn progress(word: &str) -> Result<bool, String> {
    one_of(word, &[("daemon", false), ("rank", true)])
}

/// `auto`, `tcp`, `tcp,seal`, `verbs`, `verbs:DEVICE` or `emulated:LATENCY_US:MB_PER_S`; the numbers are checked by who uses them.
pub fn fabric(word: &str) -> Result<String, String> {
    match word.split_once(':') {
        None if ["auto", "tcp", "tcp,seal", "verbs"].contains(&word) => Ok(word.into()),
        Some(("verbs", device)) if !device.is_empty() && !device.contains('/') => Ok(word.into()),
        Some(("emulated", model)) if model.split(':').filter(|part| part.parse::<f64>().is_ok()).count() == 2 => {
            Ok(word.into())
        }
        _ => Err(format!(
            "`{word}` is not one of auto, tcp, tcp,seal, verbs, verbs:DEVICE, emulated:LATENCY_US:MB_PER_S"
        )),
    }
}

pub fn cores(word: &str) -> Result<Vec<u32>, String> {
    cpus::parse_list(word)
}

/// Ranks as a list of CPUs is written: `0,2-4`.
pub fn ranks(word: &str) -> Result<Vec<u32>, String> {
    cpus::parse_list(word)
}

/// `--output`: vmpi's own words and Open MPI 5's, which come with commas between them and what modifies them behind `:`.
pub fn output(line: &mut Line, word: &str) -> Done {
    for part in word.split(',') {
        let (part, modifiers) = match part.split_once(':') {
            Some((part, modifiers)) if !part.contains('=') || modifiers.split(':').all(is_output_modifier) => {
                (part, modifiers)
            }
            _ => (part, ""),
        };
        let lower = part.to_ascii_lowercase();
        match lower.as_str() {
            "lines" => line.job.output = OutputMode::Lines,
            "raw" => line.job.output = OutputMode::Raw,
            "label" => line.job.label = Some(Label::Srun),
            "tag" | "tag-detailed" | "tag-fullname" | "rank" => line.job.label = Some(Label::OpenMpi),
            "timestamp" => line.job.timestamp = true,
            "merge" | "merge-stderr-to-stdout" => line.job.merge_stderr = true,
            "xml" => line.ignore("--output xml"),
            _ => match lower.split_once('=').zip(part.split_once('=')) {
                Some((("dir" | "directory", _), (_, dir))) if !dir.is_empty() => {
                    line.job.output = OutputMode::Directory(dir.to_string());
                }
                Some((("dir" | "directory", _), _)) => return Err("dir= needs a directory".into()),
                Some((("file" | "filename", _), (_, file))) if !file.is_empty() => {
                    let pattern = format!("{}.%r", file.replace('%', "%%"));
                    line.job.outfile_pattern = Some(pattern.clone());
                    line.job.errfile_pattern = Some(pattern);
                }
                _ => {
                    return Err(format!(
                        "`{part}` is not one of lines, raw, tag, timestamp, merge, dir=DIR, file=FILE"
                    ));
                }
            },
        }
        if modifiers.split(':').any(|word| word.eq_ignore_ascii_case("raw")) {
            line.job.output = OutputMode::Raw;
        }
    }
    Ok(())
}

/// `nojobid` is so anyway; what is in files is not shown, too (`nocopy`).
fn is_output_modifier(word: &str) -> bool {
    ["nojobid", "nocopy", "raw", "pattern", ""].iter().any(|known| word.eq_ignore_ascii_case(known))
}

/// `--output-filename DIR[:nojobid,nocopy]`.
pub fn output_directory(line: &mut Line, word: &str) -> Done {
    let dir = match word.rsplit_once(':') {
        Some((dir, modifiers)) if modifiers.split(',').all(is_output_modifier) => dir,
        _ => word,
    };
    if dir.is_empty() {
        return Err("it needs a directory".into());
    }
    put(&mut line.job.output, OutputMode::Directory(dir.into()))
}

/// srun's `-o`: without `-e` also for stderr.
pub fn srun_output(line: &mut Line, word: &str) -> Done {
    match word {
        "all" => return Ok(()),
        "none" => return put(&mut line.job.outfile_pattern, Some("/dev/null".into())),
        _ => {}
    }
    let pattern = srun_pattern(word);
    line.job.errfile_pattern.get_or_insert_with(|| pattern.clone());
    put(&mut line.job.outfile_pattern, Some(pattern))
}

pub fn srun_error(line: &mut Line, word: &str) -> Done {
    if !word.starts_with(['/', '.']) && word.contains('=') {
        // aprun's.
        return env(&mut line.app.env, &[word.to_string()]);
    }
    put(&mut line.job.errfile_pattern, Some(srun_pattern(word)))
}

/// srun's `%t`, `%N` and `%n` as Hydra's; a width (`%3t`) is left out.
fn srun_pattern(word: &str) -> String {
    let mut text = String::new();
    let mut chars = word.chars().peekable();
    while let Some(c) = chars.next() {
        text.push(c);
        if c == '%' {
            while chars.next_if(char::is_ascii_digit).is_some() {}
            text.extend(chars.next().map(|c| match c {
                't' => 'r',
                'N' => 'h',
                'n' => 'p',
                'J' | 'A' => 'j',
                other => other,
            }));
        }
    }
    text
}

/// srun's `--export`.
pub fn srun_export(line: &mut Line, word: &str) -> Done {
    let mut only = Vec::new();
    let mut all = false;
    for part in word.split(',').filter(|part| !part.is_empty()) {
        match part.split_once('=') {
            Some((name, value)) => line.job.env.push(EnvSetting::Set(name.into(), value.into())),
            None if part.eq_ignore_ascii_case("all") => all = true,
            None if part.eq_ignore_ascii_case("none") || part.eq_ignore_ascii_case("nil") => {}
            None => only.push(part.to_string()),
        }
    }
    line.job.env_mode = match (all, only.is_empty()) {
        (true, _) => EnvMode::All,
        (false, true) => EnvMode::Nothing,
        (false, false) => EnvMode::Only(only),
    };
    Ok(())
}

/// `2`, or srun's least and most: `2-4`.
pub fn nodes(line: &mut Line, word: &str) -> Done {
    let most = word.rsplit('-').next().unwrap_or(word);
    set(&mut line.job.nodes, count(most, "nodes")?)
}

/// Open MPI 5's `--display`.
pub fn display(line: &mut Line, word: &str) -> Done {
    for part in word.split(',') {
        let kind = part.split(':').next().unwrap_or(part).to_ascii_lowercase();
        match kind.as_str() {
            "map" | "map-devel" | "bind" | "bindings" | "binding" => line.job.report_bindings = true,
            "alloc" | "allocation" => line.job.display_allocation = true,
            "topo" | "topology" | "cpus" | "proctable" | "map-diffable" => line.ignore(&format!("--display {part}")),
            _ => return Err(format!("`{part}` is not one of map, bind, alloc")),
        }
    }
    Ok(())
}

/// PRRTE's `--rtos`.
pub fn runtime_options(line: &mut Line, word: &str) -> Done {
    for part in word.split(',') {
        match part.to_ascii_lowercase().as_str() {
            "donotlaunch" => line.job.dry_run = true,
            _ => line.ignore(&format!("--runtime-options {part}")),
        }
    }
    Ok(())
}

/// Intel's `-gtool`: `CMD:RANKS=mode`, several with `;` between them.
pub fn gtool(line: &mut Line, word: &str) -> Done {
    for part in word.split(';').filter(|part| !part.trim().is_empty()) {
        let (command, ranks) = match part.rsplit_once(':') {
            Some((command, ranks)) => match cpus::parse_list(ranks.split(['=', '@']).next().unwrap_or(ranks)) {
                Ok(list) => (command, Some(list)),
                Err(_) if ranks.starts_with("all") => (command, None),
                Err(_) => (part, None),
            },
            None => (part, None),
        };
        if part.ends_with("=attach") {
            return Err("a tool that attaches is not offered: --gdb RANKS stops ranks at their start, and prints what attaches gdb".into());
        }
        let words = super::split_words(command)?;
        line.job.tools.push(super::Tool { words, ranks });
    }
    Ok(())
}

pub fn ilp64() -> Done {
    Err("8-byte integers in MPI's Fortran interface are not offered: build the program with 4-byte ones (no -i8)"
        .into())
}

pub fn exclude(line: &mut Line, word: &str) -> Done {
    line.job.exclude.extend(hosts::parse_list(word)?.into_iter().map(|host| host.name));
    Ok(())
}

pub fn gdb_of_all() -> Done {
    Err("say which ranks: --gdb 0 or --gdb 0,2-3 stops them at their start, and prints what attaches gdb".into())
}

/// srun's `--time`: minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S, in seconds.
pub fn slurm_time(word: &str) -> Result<u64, String> {
    let bad = || format!("`{word}` is not a time as MINUTES, M:S, H:M:S or D-H:M:S");
    let (days, rest) = match word.split_once('-') {
        Some((days, rest)) => (Some(days.parse::<u64>().map_err(|_| bad())?), rest),
        None => (None, word),
    };
    let parts: Vec<u64> = rest.split(':').map(|n| n.parse().map_err(|_| bad())).collect::<Result<_, _>>()?;
    let seconds = match (days, &parts[..]) {
        (None, [minutes]) => minutes.checked_mul(60),
        (None, [minutes, seconds]) => minutes.checked_mul(60).and_then(|s| s.checked_add(*seconds)),
        (_, [hours, rest @ ..]) if rest.len() <= 2 => {
            let small = rest.first().unwrap_or(&0).saturating_mul(60).saturating_add(*rest.get(1).unwrap_or(&0));
            hours
                .checked_mul(3600)
                .and_then(|s| s.checked_add(small))
                .and_then(|s| s.checked_add(days.unwrap_or(0).checked_mul(86400)?))
        }
        _ => None,
    };
    seconds.ok_or_else(bad)
}

pub fn hosts(line: &mut Line, word: &str) -> Done {
    let named = hosts::parse_list(word)?;
    line.app.hosts.extend(named.iter().cloned());
    line.job.hosts.extend(named);
    Ok(())
}

pub fn env(list: &mut Vec<EnvSetting>, words: &[String]) -> Done {
    let (name, value) = match words {
        [name, value] => (name.as_str(), value.as_str()),
        _ => words[0].split_once('=').unwrap_or((&words[0], "")),
    };
    if name.is_empty() {
        return Err("a variable needs a name".into());
    }
    push(list, EnvSetting::Set(name.into(), value.into()))
}

pub fn env_list(word: &str) -> EnvMode {
    EnvMode::Only(names(word))
}

pub fn names(word: &str) -> Vec<String> {
    word.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect()
}

/// Open MPI's `-x NAME`, `-x NAME=VALUE`.
pub fn export(line: &mut Line, word: &str) -> Done {
    match word.split_once('=') {
        Some(("", _)) => Err("a variable needs a name".into()),
        Some((name, value)) => push(&mut line.job.env, EnvSetting::Set(name.into(), value.into())),
        None => push(&mut line.job.env, EnvSetting::Copy(word.into())),
    }
}

pub fn stdin(line: &mut Line, word: &str) -> Done {
    line.job.stdin = match word {
        "all" => StdinTo::All,
        "none" => StdinTo::Ranks(Vec::new()),
        list => {
            let mut readers = ranks(list).map_err(|why| format!("{why}; say all, none, or ranks as 1 or 0,2-4"))?;
            readers.sort_unstable();
            readers.dedup();
            StdinTo::Ranks(readers)
        }
    };
    Ok(())
}

/// Hydra's `-usize`: `SYSTEM` is what vmpirun finds out itself.
pub fn universe(line: &mut Line, word: &str) -> Done {
    line.job.universe = match word {
        "SYSTEM" => None,
        "INFINITE" => Some(Universe::Unbounded),
        _ => match count(word, "ranks") {
            Ok(size) => Some(Universe::Exactly(size)),
            Err(why) => return Err(format!("{why}; say a number, SYSTEM or INFINITE")),
        },
    };
    Ok(())
}

pub fn mca(line: &mut Line, words: &[String]) -> Done {
    match words[0].as_str() {
        "plm_rsh_agent" | "plm_ssh_agent" | "orte_rsh_agent" => {
            // Several with `:` between them: the first that there is, says Open MPI.
            let agent = words[1].split(':').next().unwrap_or(&words[1]);
            return set(&mut line.job.launcher, agent.trim().into());
        }
        "plm_rsh_args" | "plm_ssh_args" => return set(&mut line.job.launcher_arguments, words[1].clone()),
        "orte_default_hostfile" | "prte_default_hostfile" => return push(&mut line.job.hostfiles, words[1].clone()),
        _ => {}
    }
    if !line.job.notes.iter().any(|note| note.starts_with("--mca")) {
        let note =
            format!("--mca {} {} (and other --mca settings) has no meaning here and is ignored", words[0], words[1]);
        line.job.notes.push(note);
    }
    Ok(())
}

pub fn kill_on_failure(line: &mut Line, words: &[String]) -> Done {
    let kill = match words.first().map(String::as_str) {
        None | Some("1") => true,
        Some("0") => false,
        Some(other) => return Err(format!("`{other}` is neither 0 nor 1")),
    };
    put(&mut line.job.kill_on_failure, kill)
}

pub fn with_ft(line: &mut Line, word: &str) -> Done {
    let recovery = match word {
        "ulfm" | "mpi" | "1" | "true" | "yes" => true,
        "none" | "no" | "0" | "false" => false,
        other => return Err(format!("`{other}` is no kind of fault tolerance: ulfm, mpi, none")),
    };
    put(&mut line.job.recovery, recovery)
}

/// A file whose ending says in which form a matrix is written.
pub fn matrix_file(word: &str) -> Result<String, String> {
    match matrix::Form::of(word) {
        Some(_) => Ok(word.into()),
        None => Err(format!("`{word}` does not end in .csv, .json, .svg or .png")),
    }
}

/// The machine to simulate, or what there is.
pub fn simulate(line: &mut Line, word: &str) -> Done {
    match word {
        "list" => set(&mut line.action, Action::Machines),
        machine => set(&mut line.job.simulate, machine.into()),
    }
}

/// A file whose ending says in which form a trace is written.
pub fn trace_file(word: &str) -> Result<String, String> {
    trace::Form::of(word).map(|_| word.into())
}

/// A file that is a page.
pub fn page_file(word: &str) -> Result<String, String> {
    let known = [".html", ".htm"].iter().any(|ending| word.ends_with(ending));
    if known { Ok(word.into()) } else { Err(format!("`{word}` does not end in .html or .htm: it would be a page")) }
}
