//! Clients of the socket that say what no client of vmpi says: the daemon, and the jobs of others, go on.

mod common;
use common::*;

use std::io::{IoSlice, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use serde_json::{Value, json};
use vmpi_shared::control::{Connection, JobSpec, Nodes, PROTOCOL, Reply, Request};

#[test]
#[ignore = "the program of ranks, not a test"]
fn rank_program() {
    match std::env::var(SCRIPT).ok().and_then(|script| script.strip_prefix(FRAMES)?.parse().ok()) {
        Some(seed) => speak_as_rank(seed),
        None => common::rank_program(),
    }
}

/// The script of a rank that attaches and then sends frames by this seed.
const FRAMES: &str = "frames=";

fn speak_as_rank(seed: u64) {
    let variable = |name: &str| std::env::var(name).unwrap();
    let mut connection = Connection::new(UnixStream::connect(variable("VMPI_SOCKET")).unwrap());
    connection.send(&hello(PROTOCOL), &[]).unwrap();
    assert!(matches!(expect_reply(&mut connection), Reply::Hello { .. }));
    let (job, rank) = (variable("VMPI_JOBID").parse().unwrap(), variable("VMPI_RANK").parse().unwrap());
    connection.send(&Request::Attach { job, rank, word: variable("VMPI_JOB"), face: "test".into() }, &[]).unwrap();
    assert!(matches!(expect_reply(&mut connection), Reply::Attached { .. }));
    let mut dice = frames::Dice(seed);
    let mut messages = frames::messages();
    messages
        .retain(|message| matches!(message["type"].as_str(), Some("ask" | "finalized" | "abort" | "show" | "jobs")));
    // Most end the job: after the others.
    messages.sort_by_key(|message| message["type"] == "abort");
    for round in 0..200 {
        let some = if round < 190 { &messages[..messages.len() - 1] } else { &messages[..] };
        let body = frames::body(&mut dice, some);
        let frame = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
        if connection.stream().write_all(&frame).is_err() {
            break;
        }
    }
}

/// A job of several nodes, all of whose ranks are on this one of them.
fn spread(program: &str, argv: &[&str]) -> JobSpec {
    let mut spec = job(program, argv, 2);
    spec.nodes = Some(Box::new(Nodes {
        here: 0,
        names: vec!["here".into()],
        of_rank: vec![0, 0],
        key: "ab".repeat(32),
        identity: 7,
        fabric: "tcp".into(),
        ..Nodes::default()
    }));
    spec
}

/// A frame with this JSON, whatever it is.
fn frame(value: &Value) -> Vec<u8> {
    let body = serde_json::to_vec(value).unwrap();
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// Start a job of several nodes that sleeps: its launcher, after `Started`.
fn launch_spread(vmpid: &Vmpid, spec: &JobSpec) -> Launcher {
    let mut launcher = vmpid.submit(spec);
    loop {
        match expect_reply(&mut launcher.connection) {
            Reply::Listening { port, .. } => {
                let table = vec![vec![format!("127.0.0.1:{port}").parse().unwrap()]];
                launcher.connection.send(&Request::Wire { table }, &[]).unwrap();
            }
            Reply::Started { pids } => {
                launcher.pids = pids;
                return launcher;
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The daemon answers others.
fn is_well(vmpid: &Vmpid) {
    let (mut tool, _) = vmpid.greet();
    tool.send(&Request::Jobs, &[]).unwrap();
    assert!(matches!(expect_reply(&mut tool), Reply::Jobs { .. }));
}

/// Memory of the daemon, in kB.
fn resident_kb(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn growth(spoil: impl FnOnce(&mut Value)) -> Value {
    let birth = |rank: u32| json!({"rank": rank, "node": 0, "app": 0, "again": false});
    let app = json!({"candidates": ["/bin/true"], "argv": ["/bin/true"], "cwd": "/", "env": [], "counts": [1]});
    let world = json!({"number": 2, "ranks": [[2, 2]], "context": 9, "parent": null, "errhandler": ""});
    let mut growth =
        json!({"world": world, "apps": [app], "variables": [], "births": [birth(2), birth(3)], "first_stream": 0});
    spoil(&mut growth);
    growth
}

#[test]
fn a_launcher_that_names_ranks_that_no_job_has_harms_its_own_job_only() {
    let vmpid = Vmpid::start(&[]);
    let (_, daemon) = vmpid.greet();
    let canary = vmpid.launch(&job("/bin/sleep", &["6"], 2));
    let step = |step: Value| json!({"type": "grow", "world": 2, "step": step});
    let prepare = |spoil: fn(&mut Value)| {
        vec![
            step(json!({"step": "prepare", "growth": growth(spoil)})),
            step(json!({"step": "begin"})),
            step(json!({"step": "commit"})),
        ]
    };
    let answer =
        |rank: u32, answer: Value| vec![json!({"type": "answered", "rank": rank, "number": 1, "answer": answer})];
    let agreed = |failed: Value| json!({"answer": "agreed", "flags": [0, 0], "failed": failed, "news": true, "contexts": [0, 0, 0]});
    let group =
        |group: Value| vec![json!({"type": "end_group", "group": group, "cause": {"cause": "shutdown"}, "code": 1})];
    let whole = u32::MAX;
    let table = [
        prepare(|g| g["world"]["ranks"] = json!([[1_000_000, 1]])),
        // A few bytes, four thousand million numbers.
        prepare(|g| g["world"]["ranks"] = json!([[0, u32::MAX], [0, u32::MAX]])),
        prepare(|g| g["world"]["parent"] = json!({"ranks": [[0, u32::MAX]], "contexts": [0, 0, 0]})),
        prepare(|g| g["births"][0]["rank"] = json!(u32::MAX)),
        prepare(|g| g["births"][0]["rank"] = json!(0)),
        prepare(|g| g["births"][0]["node"] = json!(7)),
        prepare(|g| g["births"][1]["app"] = json!(1)),
        prepare(|g| g["first_stream"] = json!(u32::MAX)),
        answer(0, agreed(json!([[1_000_000, 1]]))),
        answer(0, agreed(json!([[0, whole], [0, whole]]))),
        answer(whole, json!({"answer": "done"})),
        answer(0, json!({"answer": "met", "ranks": [[5, whole]], "contexts": [0, 0, 0]})),
        group(json!([[1_000_000, 1]])),
        group(json!([[0, whole], [0, whole], [0, whole]])),
        vec![json!({"type": "heard", "ranks": [whole, 2, 1, 0, 0]})],
        vec![json!({"type": "forward", "signal": i32::MIN}), json!({"type": "forward", "signal": whole >> 1})],
        vec![json!({"type": "cancel", "reason": "", "code": i32::MIN, "signal": -1, "grace_ms": u64::MAX})],
        vec![json!({"type": "waits_part", "number": u64::MAX})],
        vec![json!({"type": "tool_told", "tool": u64::MAX, "reply": {"type": "done"}, "files": whole})],
    ];
    for recovery in [false, true] {
        for messages in &table {
            let mut spec = spread("/bin/sleep", &["100"]);
            spec.recovery = recovery;
            let launcher = launch_spread(&vmpid, &spec);
            for message in messages {
                // It may be refused already.
                let _ = launcher.connection.stream().write_all(&frame(message));
            }
            is_well(&vmpid);
            drop(launcher);
            is_well(&vmpid);
        }
    }
    assert!(resident_kb(daemon) < 500_000, "{} kB", resident_kb(daemon));
    assert_eq!(canary.finish().code, 0);
    vmpid.stop();
}

#[path = "../../fuzz/src/frames.rs"]
mod frames;

/// Of each type of message that the protocol has there is one to begin with, and it is understood as it is.
#[test]
fn the_frames_that_are_spoilt_are_of_all_types() {
    let source = include_str!("../shared/src/control.rs");
    let requests = source.split_once("pub enum Request {").unwrap().1.split_once("\n}\n").unwrap().0;
    let names = requests
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(char::is_uppercase));
    let mut wanted: Vec<String> = names
        .map(|line| {
            let name = line.trim_end_matches([' ', '{', ',']);
            let mut snake = String::new();
            for (at, letter) in name.chars().enumerate() {
                if letter.is_uppercase() && at > 0 {
                    snake.push('_');
                }
                snake.extend(letter.to_lowercase());
            }
            snake
        })
        .collect();
    wanted.sort();
    let messages = frames::messages();
    let mut found: Vec<String> = messages.iter().map(|message| message["type"].as_str().unwrap().into()).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, wanted);
    for message in messages {
        serde_json::from_value::<Request>(message.clone()).unwrap_or_else(|error| panic!("{message}: {error}"));
    }
}

/// How many frames, and from which seed; for longer runs than a test's.
fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn thousands_of_frames_that_nobody_sends_harm_no_other_job() {
    let seed = from_environment("VMPI_TEST_SEED", 40);
    let rounds = from_environment("VMPI_TEST_ROUNDS", 400);
    let vmpid = Vmpid::start(&[]);
    let (_, daemon) = vmpid.greet();
    let mut canary = vmpid.launch(&job("/bin/sleep", &["1000"], 2));
    let mut messages = frames::messages();
    // What a tool may do to the canary is not what this is about.
    messages.retain(|message| !matches!(message["type"].as_str(), Some("kill" | "shutdown" | "signal")));
    for round in 0..rounds {
        let mut dice = frames::Dice(seed.wrapping_add(round << 32));
        // As a stranger, a tool, or the launcher of a job of one node or several.
        let role = dice.one_of(5);
        let mut frames: Vec<u8> = (0..50).flat_map(|_| frames::frame(&mut dice, &messages)).collect();
        let connection = match role {
            0 => vmpid.connect(),
            1 => vmpid.greet().0,
            2 => vmpid.launch(&job("/bin/sleep", &["1000"], 2)).connection,
            3 => vmpid.launch(&script(&format!("{FRAMES}{}", dice.roll()), 2)).connection,
            _ => {
                let mut spec = spread("/bin/sleep", &["1000"]);
                spec.recovery = dice.one_in(2);
                launch_spread(&vmpid, &spec).connection
            }
        };
        if role > 1 {
            // A frame that is none ends the connection: then what comes behind it is never looked at.
            frames = (0..50)
                .flat_map(|_| {
                    let body = frames::body(&mut dice, &messages);
                    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
                })
                .collect();
        }
        connection.stream().set_write_timeout(Some(Duration::from_secs(2))).unwrap();
        // It may have been refused, or not be read because it does not read.
        let _ = connection.stream().write_all(&frames);
        if round % 8 == 0 {
            is_well(&vmpid);
        }
    }
    is_well(&vmpid);
    canary
        .connection
        .send(&Request::Cancel { reason: "it is enough".into(), code: 3, signal: 15, grace_ms: 10 }, &[])
        .unwrap();
    assert_eq!(canary.finish().code, 3, "seed {seed}");
    let rss = resident_kb(daemon);
    assert!(rss < 800_000, "{rss} kB; seed {seed}");
    vmpid.stop();
}

/// What one client may cost: each of these went on for seconds, or for ever, and took gigabytes.
#[test]
fn one_client_does_not_keep_the_others_waiting() {
    let vmpid = Vmpid::start(&[]);
    let (_, daemon) = vmpid.greet();
    let jobs = frame(&json!({"type": "jobs"}));
    let open_files = || std::fs::read_dir(format!("/proc/{daemon}/fd")).unwrap().count();
    let before = open_files();
    let null = std::fs::File::open("/dev/null").unwrap();

    // Small frames without end, whose answers nobody reads.
    let (flood, _) = vmpid.greet();
    let stream = flood.stream().try_clone().unwrap();
    let writer = std::thread::spawn(move || {
        stream.set_write_timeout(Some(Duration::from_secs(3))).unwrap();
        let many = jobs.repeat(200_000);
        let _ = (&stream).write_all(&many);
    });
    for _ in 0..20 {
        let since = Instant::now();
        is_well(&vmpid);
        assert!(since.elapsed() < Duration::from_secs(5), "another client waited {:?}", since.elapsed());
    }
    writer.join().unwrap();
    drop(flood);

    // A frame that never ends, from somebody who has not said hello; and one from each of many tools.
    let stranger = vmpid.connect();
    let long = [&(64u32 << 20).to_le_bytes()[..], &vec![b'x'; 1 << 20]].concat();
    assert!((0..4).any(|_| stranger.stream().write_all(&long).is_err()), "it is not read for ever");
    let tools: Vec<Connection> = (0..12).map(|_| vmpid.greet().0).collect();
    for tool in &tools {
        tool.stream().set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        let _ = tool.stream().write_all(&long);
    }
    let part = vec![b'x'; 1 << 20];
    for _ in 0..40 {
        tools.iter().for_each(|tool| drop(tool.stream().write_all(&part)));
    }
    is_well(&vmpid);
    drop(tools);

    // Descriptors that no message takes: more than one message brings, and again and again.
    for count in [253, 250, 1] {
        for _ in 0..40 {
            let connection = if count == 1 { vmpid.greet().0 } else { vmpid.connect() };
            let fds = vec![null.as_raw_fd(); count];
            let rights = [ControlMessage::ScmRights(&fds)];
            let raw = connection.stream().as_raw_fd();
            let _ = sendmsg::<()>(raw, &[IoSlice::new(b"x")], &rights, MsgFlags::MSG_NOSIGNAL, None);
        }
    }
    wait_for("what was sent along to be closed", || open_files() <= before + 2);

    // Connections that say nothing.
    let idle: Vec<UnixStream> = (0..1500).filter_map(|_| UnixStream::connect(vmpid.socket()).ok()).collect();
    is_well(&vmpid);
    assert!(open_files() < 1200, "{}", open_files());
    drop(idle);
    assert!(resident_kb(daemon) < 700_000, "{} kB", resident_kb(daemon));
    assert_eq!(vmpid.run(&job("/bin/true", &[], 2)).code, 0);
    vmpid.stop();
}

/// A launcher that does not read what it is told, and descriptors beyond those that its job has announced.
#[test]
fn a_launcher_gives_no_more_descriptors_than_it_has_announced() {
    let vmpid = Vmpid::start(&[]);
    let null = std::fs::File::open("/dev/null").unwrap();
    let mut spec = spread("/bin/true", &[]);
    // It is not wired, and so waits.
    spec.fds = 3;
    let mut launcher = vmpid.submit(&spec);
    launcher.connection.send(&Request::Fds { count: 1 }, &[null.as_raw_fd()]).unwrap();
    let refused = loop {
        match expect_reply(&mut launcher.connection) {
            Reply::Refused { reason, .. } => break reason,
            Reply::Listening { .. } => {}
            other => panic!("{other:?}"),
        }
    };
    assert!(refused.contains("4 descriptors came for a job that has announced 3"), "{refused}");
    is_well(&vmpid);
    vmpid.stop();
}

/// By a cleaner that is too eager, or a rank.
#[test]
fn who_cuts_the_status_page_does_not_end_the_daemon() {
    let vmpid = Vmpid::start(&[]);
    let canary = vmpid.launch(&job("/bin/sleep", &["3"], 2));
    std::fs::File::options().write(true).open(vmpid.status_page()).unwrap().set_len(0).unwrap();
    assert_eq!(vmpid.run(&job("/bin/true", &[], 2)).code, 0);
    assert_eq!(std::fs::metadata(vmpid.status_page()).unwrap().len(), 4096, "it is whole again");
    assert_eq!(canary.finish().code, 0);
    vmpid.stop();
}

/// A job's own word is in its environment, and nothing that is a secret.
#[test]
fn who_was_started_for_another_job_or_by_another_rank_is_no_rank_of_this_one() {
    let vmpid = Vmpid::start(&[]);
    let first = vmpid.launch(&job("/bin/sleep", &["1000"], 2));
    let environ = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
    let of_first = environ(first.pids[0]);
    assert!(!of_first.contains("KEY="), "{of_first}");
    let word = of_first.split('\0').find_map(|entry| entry.strip_prefix("VMPI_JOB=")).unwrap().to_owned();
    let second = script(&format!("word={word} attach exit=0"), 1);
    assert_eq!(vmpid.run(&second).code, 99, "of another job");
    let mut third = script(&format!("word={word} attach exit=0"), 1);
    third.apps[0].env.push(("VMPI_TEST_JOB".into(), first.job.to_string()));
    assert_eq!(vmpid.run(&third).code, 99, "by another job's rank");
    vmpid.stop();
}

/// What it is told waits for it, up to a limit; its job ends as if it had died.
#[test]
fn a_launcher_that_does_not_read_is_closed_with_a_sentence() {
    let vmpid = Vmpid::start(&[]);
    let (_, daemon) = vmpid.greet();
    let launcher = vmpid.launch(&job("/bin/sleep", &["1000"], 50));
    let stream = launcher.connection.stream();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    let many = frame(&json!({"type": "jobs"})).repeat(1000);
    let refused = (0..1000).any(|_| (&*stream).write_all(&many).is_err());
    assert!(refused, "it was served for ever");
    let (mut tool, _) = vmpid.greet();
    tool.send(&Request::Logs { job: None }, &[]).unwrap();
    let Reply::Logs { lines } = expect_reply(&mut tool) else { panic!("no log") };
    let told = |line: &vmpi_shared::control::LogLine| {
        line.text.contains(&format!("the launcher of job {}", launcher.job))
            && line.text.contains("does not read what it is told")
    };
    assert!(lines.iter().any(told), "{lines:?}");
    assert!(resident_kb(daemon) < 200_000, "{} kB", resident_kb(daemon));
    vmpid.stop();
}
