//! From a flag's words to its value: what each flag of the table accepts.

use super::options::{
    EnvMode, EnvSetting, Label, MapBy, OnDeadlock, OutputMode, ReportForm, StdinTo, Universe, VChoice,
};
use super::parse::{Action, Line};
use crate::{cpus, hosts, matrix, trace};
use vmpi_shared::control::{Balance, MOST_RANKS, OnBlock, Overlap, Policy, Wtime};
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

pub fn output(line: &mut Line, word: &str) -> Done {
    line.job.output = match word {
        "lines" => OutputMode::Lines,
        "raw" => OutputMode::Raw,
        "label" | "tag" => {
            line.job.label = Some(if word == "tag" { Label::OpenMpi } else { Label::Srun });
            return Ok(());
        }
        "timestamp" => return put(&mut line.job.timestamp, true),
        _ => match word.strip_prefix("dir=").or_else(|| word.strip_prefix("directory=")) {
            Some(rest) => {
                let (dir, tagged) = match rest.strip_suffix(",tag") {
                    Some(dir) => (dir, true),
                    None => (rest, false),
                };
                if dir.is_empty() {
                    return Err("dir= needs a directory".into());
                }
                if tagged {
                    line.job.label = Some(Label::OpenMpi);
                }
                OutputMode::Directory(dir.to_string())
            }
            None => return Err(format!("`{word}` is not one of lines, raw, tag, dir=DIR[,tag]")),
        },
    };
    Ok(())
}

pub fn hosts(line: &mut Line, word: &str) -> Done {
    let named = hosts::parse_list(word)?;
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
    EnvMode::Only(word.split(',').filter(|name| !name.is_empty()).map(str::to_string).collect())
}

/// Open MPI's `-x NAME`, `-x NAME=VALUE`.
pub fn export(line: &mut Line, word: &str) -> Done {
    match word.split_once('=') {
        Some(("", _)) => Err("a variable needs a name".into()),
        Some((name, value)) => push(&mut line.job.env, EnvSetting::Set(name.into(), value.into())),
        None => push(&mut line.job.env, EnvSetting::Copy(word.into())),
    }
}

pub fn bind_to(line: &mut Line, word: &str) -> Done {
    let policy = word.split(':').next().unwrap_or(word);
    let bind = match policy {
        "none" | "no" => false,
        "core" | "cores" | "hwthread" | "threads" | "rank" | "user" => true,
        "socket" | "sockets" | "numa" | "board" | "package" | "l1cache" | "l2cache" | "l3cache" | "machine" => {
            line.job.notes.push(format!("binding to a {policy} is not offered; ranks are not bound"));
            false
        }
        _ => return Err(format!("`{word}` is not one of none, core")),
    };
    set(&mut line.job.bind, bind)
}

pub fn map_by(line: &mut Line, word: &str) -> Done {
    if let Some(rest) = word.strip_prefix("ppr:") {
        let (n, unit) = rest.split_once(':').ok_or("say ppr:N:node or ppr:N:core")?;
        let n = count(n, "ranks per resource")?;
        return match unit.split(':').next() {
            Some("core" | "hwthread") => set(&mut line.job.v, VChoice::Exactly(n)),
            Some("node" | "board") => set(&mut line.job.ranks_per_node, n),
            _ => Err(format!("`{unit}` is not one of node, core")),
        };
    }
    if let Some(path) = word.strip_prefix("affinity:") {
        line.job.map_by = MapBy::Affinity(path.into());
        return Ok(());
    }
    if let Some(seed) = word.strip_prefix("random:") {
        line.job.map_by = MapBy::Random(seed.parse().map_err(|_| format!("`{seed}` is not a number to begin with"))?);
        return Ok(());
    }
    let policy = word.split([':', ',']).next().unwrap_or("").to_ascii_lowercase();
    line.job.map_by = match policy.as_str() {
        "node" => MapBy::Node,
        "" | "slot" | "block" | "socket" | "numa" | "board" | "package" | "machine" | "user" => MapBy::Block,
        "core" | "hwthread" | "rr" | "cyclic" | "seq" => MapBy::RoundRobin,
        cache if cache.starts_with('l') && cache.contains("cache") => MapBy::Block,
        _ => {
            return Err(format!(
                "`{word}` is not one of slot, node, core, rr, ppr:N:node, ppr:N:core, affinity:FILE, random:SEED"
            ));
        }
    };
    if word.to_ascii_uppercase().contains("PE=") {
        line.job.notes.push("--map-by ...:PE=n has no meaning here: every rank has one core at a time".into());
    }
    Ok(())
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
    if !line.job.notes.iter().any(|note| note.starts_with("--mca")) {
        let note =
            format!("--mca {} {} (and other --mca settings) has no meaning here and is ignored", words[0], words[1]);
        line.job.notes.push(note);
    }
    Ok(())
}

pub fn no_meaning(line: &mut Line, _word: &str) -> Done {
    let note = "some options tune another launcher and have no meaning here (`vmpirun --help` lists them)";
    if !line.job.notes.iter().any(|known| known == note) {
        line.job.notes.push(note.into());
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

pub fn not_offered(what: &str) -> Done {
    Err(format!("{what} is not offered yet"))
}
