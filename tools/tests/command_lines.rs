//! Command lines as other launchers' users type them, and what they mean.

use vmpi_tools::cli::{
    Action, Command, CpusPerRank, EnvMode, EnvSetting, FLAGS, Label, MapBy, OutputMode, RunOptions, VChoice, help_text,
    parse, split_words, vmpictl_command, vmpirun_command,
};

fn words(line: &str) -> Vec<String> {
    split_words(line).unwrap()
}

fn run(line: &str) -> RunOptions {
    match parse(&words(line)) {
        Ok(Command::Run(options)) => *options,
        other => panic!("{line}: {other:?}"),
    }
}

fn set(name: &str, value: &str) -> EnvSetting {
    EnvSetting::Set(name.into(), value.into())
}

/// Options that other launchers document, and that mean nothing here or what is so anyway.
#[test]
fn what_has_no_meaning_here_is_named() {
    for (line, ignored) in [
        ("-n 4 --cpu-freq=high --resv-ports --mpi=pmi2 -Q a", &["--cpu-freq", "--resv-ports", "--mpi"][..]),
        ("--het-group=0,1 -n 2 a", &["--het-group"]),
        ("--immediate=10 --nice --mincpus=8 -n 1 a", &["--immediate", "--nice", "--mincpus"]),
        ("-psm2 -aps -n 4 a", &["-psm2", "-aps"]),
        ("-comm pmi -n 4 a", &["-comm"]),
        ("-b -n 4 a", &["-b"]),
        ("--map-by dist:span -n 4 a", &["--map-by dist:span"]),
        ("-noconf -ordered-output -kill -n 4 a", &[]),
    ] {
        let options = run(line);
        assert_eq!(
            (options.ignored.as_slice(), options.apps[0].program.as_str()),
            (&owned(ignored)[..], "a"),
            "{line}"
        );
    }
    assert!(run("--test-only -n 1 a").dry_run && run("-vv -n 1 a").verbose);
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| word.to_string()).collect()
}

#[test]
fn what_users_type() {
    type Check = fn(&RunOptions) -> bool;
    let table: &[(&str, Check)] = &[
        ("-V 3 ./app", |o| {
            o.v == Some(VChoice::Exactly(3)) && o.apps[0].ranks.is_none() && o.apps[0].program == "./app"
        }),
        ("-V3 -n4 app", |o| o.v == Some(VChoice::Exactly(3)) && o.apps[0].ranks == Some(4)),
        ("-V auto -np 4 app", |o| o.v == Some(VChoice::Auto) && o.apps[0].ranks == Some(4)),
        ("--np=4 app -n 7 -V 2", |o| {
            o.apps[0].ranks == Some(4) && o.v.is_none() && o.apps[0].args == ["-n", "7", "-V", "2"]
        }),
        ("-n 2 -- -odd", |o| o.apps[0].program == "-odd"),
        ("-n 2 a 1 : -n 3 b 2", |o| {
            o.apps.len() == 2 && o.apps[1].ranks == Some(3) && o.apps[1].args == ["2"] && o.apps[0].args == ["1"]
        }),
        ("-genv A 1 -genv B=2 -env C 3 a : -env C=4 b", |o| {
            o.env == [set("A", "1"), set("B", "2")]
                && o.apps[0].env == [set("C", "3")]
                && o.apps[1].env == [set("C", "4")]
        }),
        ("-genvnone -envlist X,Y a", |o| {
            o.env_mode == EnvMode::Nothing && o.apps[0].env_mode == Some(EnvMode::Only(vec!["X".into(), "Y".into()]))
        }),
        ("-x PATH -x A=b=c --allow-run-as-root --oversubscribe a", |o| {
            o.env == [EnvSetting::Copy("PATH".into()), set("A", "b=c")] && o.notes.is_empty()
        }),
        ("--mca btl self,vader -mca pml ob1 a", |o| o.notes.len() == 1 && o.notes[0].contains("btl self,vader")),
        ("--map-by core:OVERSUBSCRIBE --bind-to none a", |o| o.map_by == MapBy::RoundRobin && o.bind == Some(false)),
        ("-map-by rr -bind-to core a", |o| o.map_by == MapBy::RoundRobin && o.bind == Some(true)),
        ("--map-by slot:PE=2 a", |o| o.map_by == MapBy::Block && o.cpus_per_rank == Some(CpusPerRank::Exactly(2))),
        ("--map-by ppr:2:core a", |o| o.v == Some(VChoice::Exactly(2))),
        ("--map-by ppr:2:node a", |o| o.ranks_per_node == Some(2)),
        ("-ppn 4 a", |o| o.ranks_per_node == Some(4)),
        ("--cores 0,2-3 a", |o| o.cores == Some(vec![0, 2, 3])),
        ("-l a", |o| o.label == Some(Label::Srun)),
        ("--label a", |o| o.label == Some(Label::Srun)),
        ("-prepend-rank a", |o| o.label == Some(Label::Hydra)),
        ("--tag-output --timestamp-output a", |o| o.label == Some(Label::OpenMpi) && o.timestamp),
        ("--output raw a", |o| o.output == OutputMode::Raw),
        ("--output dir=/tmp/x,tag a", |o| o.output == OutputMode::Directory("/tmp/x".into()) && o.label.is_some()),
        ("-outfile-pattern o.%r -errfile-pattern e.%r a", |o| {
            o.outfile_pattern.as_deref() == Some("o.%r") && o.errfile_pattern.as_deref() == Some("e.%r")
        }),
        ("-K a", |o| o.kill_on_failure),
        ("--kill-on-bad-exit=0 a", |o| !o.kill_on_failure),
        ("--timeout 30 -print-all-exitcodes a", |o| o.timeout_s == Some(30) && o.print_exit_codes),
        ("-host localhost:2,127.0.0.1 a", |o| o.hosts.len() == 2 && o.hosts[0].slots == Some(2)),
        ("-f hosts --machinefile more a", |o| o.hostfiles == ["hosts", "more"]),
        ("-wdir /tmp -path /opt/bin a", |o| {
            o.apps[0].wdir.as_deref() == Some("/tmp") && o.apps[0].path.as_deref() == Some("/opt/bin")
        }),
        ("--policy fifo --quantum 0 --on-block keep --wtime rank --progress rank a", |o| {
            use vmpi_shared::control::{OnBlock, Policy, Wtime};
            (o.policy, o.quantum_ms, o.on_block, o.wtime) == (Policy::Fifo, 0, OnBlock::Keep, Wtime::Rank)
        }),
        ("a --help --version", |o| o.apps[0].args == ["--help", "--version"]),
    ];
    for (line, check) in table {
        let options = run(line);
        assert!(check(&options), "{line}: {options:?}");
    }
    assert_eq!(run("a").quantum_ms, 5000);
    assert_eq!(parse(&words("--help")), Ok(Command::Do(Action::Help)));
    assert_eq!(parse(&words("-n 2 --version")), Ok(Command::Do(Action::Version)));
}

#[test]
fn what_is_refused_and_how() {
    for (line, part) in [
        ("", "no program"),
        ("-n 2", "no program"),
        ("-n 0 a", "-n: 0 ranks"),
        ("-V 0 a", "-V: 0 ranks per core"),
        ("-V a", "-V: `a`"),
        ("-n x a", "`x` is not a number"),
        ("-n -1 a", "`-1` is not a number"),
        ("-n", "-n needs a value"),
        ("--mca btl", "--mca needs two values"),
        ("-n 2 a : -n 3", "no program in section 2"),
        ("-n 2 a :", "no program in section 2"),
        ("--fooo a", "unknown option --fooo"),
        ("--tag-outptu a", "--tag-output"),
        ("--oversubscribe=3 a", "takes no value"),
        ("--policy lottery a", "one of rr, fifo"),
        ("--matrix f a", "does not end in .csv, .json, .svg or .png"),
        ("--cores 3-1 a", "3-1"),
        ("--output bogus a", "bogus"),
        ("--map-by moon a", "moon"),
        ("-configfile /no/such/file", "/no/such/file"),
    ] {
        let why = parse(&words(line)).expect_err(line);
        assert_eq!(why.code, 2, "{line}");
        assert!(why.sentence.contains(part), "{line}: {why}");
    }
}

/// srun's `--overlap` stands alone, vmpi's has a mode.
#[test]
fn two_options_are_called_overlap() {
    use vmpi_shared::control::Overlap;
    let of = |line: &str| {
        let options = run(line);
        (options.overlap, options.apps[0].ranks, options.apps[0].program.clone(), options.nodes)
    };
    let app = || "./app".to_string();
    assert_eq!(of("--overlap on -n 2 ./app"), (Some(Overlap::On), Some(2), app(), None));
    assert_eq!(of("--overlap=auto -n 2 ./app"), (Some(Overlap::Auto), Some(2), app(), None));
    assert_eq!(of("--overlap -n 2 ./app"), (None, Some(2), app(), None));
    assert_eq!(of("--exact --overlap --ntasks=2 ./app"), (None, Some(2), app(), None));
    assert_eq!(of("--ntasks=2 --overlap ./app"), (None, Some(2), app(), None));
    assert_eq!(run("--overlap -N 2 -n 4 ./app").nodes, run("--exact -N 2 -n 4 ./app").nodes);
    assert_eq!(run("--overlap on -N 2 -n 4 ./app").nodes, run("-N 2 -n 4 ./app").nodes);
    let why = parse(&words("--overlap ./app")).unwrap_err().to_string();
    assert!(why.contains("`./app` is not one of auto, on, off") && why.contains("--overlap=on ./app"), "{why}");
}

#[test]
fn configuration_files() {
    let file = std::env::temp_dir().join(format!("vmpi-config-{}", std::process::id()));
    std::fs::write(&file, "# two programs\n-n 1 ./master 'one word'\n-n 2 \\\n  ./worker : -n 3 ./other\n").unwrap();
    let options = run(&format!("-V 2 -configfile {}", file.display()));
    let ranks: Vec<_> = options.apps.iter().map(|app| (app.program.as_str(), app.ranks)).collect();
    assert_eq!(ranks, [("./master", Some(1)), ("./worker", Some(2)), ("./other", Some(3))]);
    assert_eq!(options.apps[0].args, ["one word"]);
    assert_eq!(options.v, Some(VChoice::Exactly(2)));
    std::fs::write(&file, "# nothing\n").unwrap();
    assert!(parse(&words(&format!("-configfile {}", file.display()))).is_err());
    std::fs::remove_file(file).unwrap();
}

#[test]
fn every_flag_has_one_meaning_and_a_line_of_help() {
    let mut seen = std::collections::HashSet::new();
    let help = help_text();
    for flag in FLAGS {
        assert!(!flag.help.is_empty());
        for name in flag.names {
            assert!(seen.insert(*name), "{name} twice");
            assert!(help.contains(&format!("-{name}")), "{name}");
        }
    }
    // clap checks the whole definition here: names, aliases, values.
    vmpirun_command().debug_assert();
    vmpictl_command().debug_assert();
}
