//! Clients of the socket that say what no client of vmpi says: the daemon, and the jobs of others, go on.

mod common;
use common::*;

use std::io::Write;

use serde_json::{Value, json};
use vmpi_shared::control::{JobSpec, Nodes, Reply, Request};

#[test]
#[ignore = "the program of ranks, not a test"]
fn rank_program() {
    common::rank_program();
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
        let role = dice.one_of(4);
        let mut frames: Vec<u8> = (0..50).flat_map(|_| frames::frame(&mut dice, &messages)).collect();
        let connection = match role {
            0 => vmpid.connect(),
            1 => vmpid.greet().0,
            2 => vmpid.launch(&job("/bin/sleep", &["1000"], 2)).connection,
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
        connection.stream().set_write_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
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
