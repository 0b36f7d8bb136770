//! Command lines as they stand in batch scripts, README files and CI of public repositories (names of people and machines replaced):
//! each is accepted with the plan that stands below it in data/lines.txt, or refused with the sentence there.
//!
//! `VMPI_WRITE=1` writes what is understood now; read the difference before it is committed.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use vmpi_tools::cli::{
    AppOptions, BindTo, Command, CpusPerRank, EnvMode, EnvSetting, MapBy, OutputMode, RunOptions, VChoice, parse,
    split_words,
};

/// Files that the lines name as `{hosts}` and so on.
const FILES: &[(&str, &str)] = &[
    ("hosts", "n1 slots=2\nn2:2\n"),
    ("ranks", "rank 0=a slot=0\nrank 1=b slot=0\n"),
    ("config", "-n 1 ./ocean\n-n 2 ./atmos\n"),
    ("programs", "0-1 ./ocean %t\n* ./atmos\n"),
];

fn list<T: std::fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(",")
}

fn settings(settings: &[EnvSetting]) -> impl Iterator<Item = String> + '_ {
    settings.iter().map(|setting| match setting {
        EnvSetting::Set(name, value) => format!("{name}={value}"),
        EnvSetting::Copy(name) => name.clone(),
    })
}

fn mode(mode: &EnvMode) -> String {
    match mode {
        EnvMode::All => "all".into(),
        EnvMode::Nothing => "none".into(),
        EnvMode::Only(names) => list(names),
        EnvMode::Except(names) => format!("all-but:{}", list(names)),
    }
}

fn hosts(hosts: &[vmpi_tools::hosts::Host]) -> String {
    list(hosts.iter().map(|host| match host.slots {
        Some(slots) => format!("{}:{slots}", host.name),
        None => host.name.clone(),
    }))
}

/// All that is not as without the option, in a fixed order.
fn shown(o: &RunOptions) -> String {
    let d = RunOptions::default();
    let mut t = String::new();
    let mut say = |name: &str, said: Option<String>| {
        if let Some(said) = said {
            let _ = write!(t, "{name}={said} ");
        }
    };
    say(
        "V",
        o.v.map(|v| match v {
            VChoice::Auto => "auto".into(),
            VChoice::Exactly(n) => n.to_string(),
        }),
    );
    say("ppn", o.ranks_per_node.map(|n| n.to_string()));
    say("per", o.ranks_per.map(|(n, of)| format!("{n}:{}", of.name())));
    say("nodes", o.nodes.map(|n| n.to_string()));
    say(
        "cpus",
        o.cpus_per_rank.map(|cpus| match cpus {
            CpusPerRank::Exactly(k) => k.to_string(),
            CpusPerRank::Threads => "threads".into(),
        }),
    );
    say("threads", o.threads_per_core.map(|n| n.to_string()));
    say("cores", o.cores.as_ref().map(list));
    say(
        "map",
        (o.map_by != d.map_by).then(|| match &o.map_by {
            MapBy::Each(resource) => resource.name().into(),
            other => format!("{other:?}").to_ascii_lowercase(),
        }),
    );
    say(
        "bind",
        o.bind_to.as_ref().map(|to| match to {
            BindTo::None => "none".into(),
            BindTo::To(resource, n) => {
                format!("{}{}", resource.name(), if *n > 1 { format!(":{n}") } else { String::new() })
            }
            BindTo::Lists(lists) => lists.iter().map(list).collect::<Vec<_>>().join("|"),
        }),
    );
    say("ranks", (!o.rank_places.is_empty()).then(|| format!("{:?}", o.rank_places)));
    say("report", o.report_bindings.then(|| "bindings".into()));
    say("display", o.display_allocation.then(|| "allocation".into()));
    say("hosts", (!o.hosts.is_empty()).then(|| hosts(&o.hosts)));
    say("hostfile", (!o.hostfiles.is_empty()).then(|| list(&o.hostfiles)));
    say("exclude", (!o.exclude.is_empty()).then(|| list(&o.exclude)));
    say("local", o.no_local.then(|| "no".into()));
    say("launcher", o.launcher.clone());
    say("arguments", o.launcher_arguments.clone());
    say("starter", o.starter.map(|starter| format!("{starter:?}")));
    say("debugger", o.debugger.clone());
    say("env", (o.env_mode != d.env_mode).then(|| mode(&o.env_mode)));
    say("set", (!o.env.is_empty()).then(|| list(settings(&o.env))));
    say("label", o.label.map(|label| format!("{label:?}")));
    say("time", o.timestamp.then(|| "stamps".into()));
    say("merge", o.merge_stderr.then(|| "stderr".into()));
    say(
        "output",
        (o.output != d.output).then(|| match &o.output {
            OutputMode::Directory(dir) => format!("dir:{dir}"),
            other => format!("{other:?}").to_ascii_lowercase(),
        }),
    );
    say("out", o.outfile_pattern.clone());
    say("err", o.errfile_pattern.clone());
    say("stdin", (o.stdin != d.stdin).then(|| format!("{:?}", o.stdin)));
    say("timeout", o.timeout_s.map(|s| s.to_string()));
    say("codes", o.print_exit_codes.then(|| "all".into()));
    say("run", o.dry_run.then(|| "dry".into()));
    say("verbose", o.verbose.then(|| "yes".into()));
    say("trace", o.trace.clone());
    say("ignored", (!o.ignored.is_empty()).then(|| list(&o.ignored)));
    let other_notes = o.notes.iter().filter(|note| !note.starts_with("without effect here"));
    say("notes", other_notes.map(|note| format!("[{note}]")).reduce(|a, b| a + &b));
    let apps = o.apps.iter().map(|app| shown_app(app, o.apps.len() > 1)).collect::<Vec<_>>();
    t.push_str(&apps.join(" : "));
    t
}

fn shown_app(app: &AppOptions, several: bool) -> String {
    let mut t = String::new();
    let _ = app.ranks.map(|n| write!(t, "n={n} "));
    let _ = app.wdir.as_ref().map(|dir| write!(t, "wdir={dir} "));
    let _ = app.env_mode.as_ref().map(|of| write!(t, "env={} ", mode(of)));
    if several && !app.hosts.is_empty() {
        let _ = write!(t, "on={} ", hosts(&app.hosts));
    }
    let set: Vec<String> = settings(&app.env).collect();
    if !set.is_empty() {
        let _ = write!(t, "set={} ", list(set));
    }
    let words: Vec<&str> = std::iter::once(&app.program).chain(&app.args).map(String::as_str).collect();
    t + "-> " + &words.join(" ")
}

fn understood(line: &str, dir: &Path) -> String {
    let mut line = line.to_string();
    for (name, _) in FILES {
        line = line.replace(&format!("{{{name}}}"), &dir.join(name).display().to_string());
    }
    let words = split_words(&line).unwrap();
    let text = match parse(&words[1..]) {
        Ok(Command::Run(options)) => shown(&options),
        Ok(other) => format!("{other:?}"),
        Err(why) => {
            assert_eq!(why.code, 2, "{line}");
            format!("refused: {}", why.sentence)
        }
    };
    text.replace(&format!("{}/", dir.display()), "")
}

#[test]
fn real_command_lines_are_understood() {
    let dir = std::env::temp_dir().join(format!("vmpi-lines-{}", std::process::id()));
    fs::create_dir(&dir).unwrap();
    FILES.iter().for_each(|(name, text)| fs::write(dir.join(name), text).unwrap());
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/lines.txt");
    let text = fs::read_to_string(&path).unwrap();
    let (mut lines, mut refused, mut wrong, mut now) = (0, 0, Vec::new(), String::new());
    let mut rest = text.lines().peekable();
    while let Some(line) = rest.next() {
        let _ = writeln!(now, "{line}");
        let Some(command) = line.strip_prefix("$ ") else { continue };
        let wanted = rest.next_if(|line| !line.starts_with("$ ") && !line.is_empty()).unwrap_or("");
        let got = understood(command, &dir);
        lines += 1;
        refused += usize::from(got.starts_with("refused"));
        let _ = writeln!(now, "{got}");
        if got != wanted {
            wrong.push(format!("{command}\n  wanted {wanted}\n  got    {got}"));
        }
    }
    fs::remove_dir_all(&dir).unwrap();
    if std::env::var_os("VMPI_WRITE").is_some() {
        fs::write(&path, now).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines >= 100 && refused < 3, "{lines} lines, {refused} refused");
}
