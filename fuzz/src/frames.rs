//! Frames of the control protocol that no client of vmpi sends: well-formed ones with extreme values, and others that are none. The same for the same seed.

use serde_json::{Value, json};

/// splitmix64: good enough for choices, and alike everywhere.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// One of `count`.
    pub fn one_of(&mut self, count: usize) -> usize {
        (self.roll() % count.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, count: u64) -> bool {
        self.roll().is_multiple_of(count)
    }
}

/// A message of each type, as a client of vmpi may send it.
pub fn messages() -> Vec<Value> {
    let ranks = json!([[0, 2]]);
    let app = json!({"candidates": ["/bin/true"], "argv": ["/bin/true"], "cwd": "/", "nodes": [0], "env": [["A", "b"]], "counts": [1]});
    let world = json!({"number": 2, "ranks": [[2, 1]], "context": 9,
        "parent": {"ranks": [[0, 2]], "contexts": [1, 2, 3]}, "errhandler": ""});
    let births = json!([{"rank": 2, "node": 0, "app": 0, "again": false}]);
    let growth = json!({"world": world, "apps": [app], "variables": [["A", "b"]], "births": births, "first_stream": 2});
    let program = json!({"program": "/bin/true", "argv": ["/bin/true"], "env": [["A", "b"]], "cwd": "/", "ranks": 2});
    let nodes = json!({"here": 0, "names": ["here"], "of_rank": [0, 0], "key": "ab", "identity": 7, "fabric": "tcp",
        "progress_by_rank": false, "universe": 2, "parts": [{"cpus": [0], "v": 2, "bind": false}]});
    let spec = json!({"apps": [program], "ranks": 2, "v": 2, "cpus": [0], "spare_cpus": [], "beside": [], "placement": [0, 0], "bind": false,
        "policy": "rr", "balance": "none", "quantum_ms": 5000, "on_block": "release", "wtime": "wall", "stdio": "shared", "stdin": [0],
        "fds": 3, "stop": [], "kill_on_failure": true, "recovery": true, "on_crash": "none", "hang_s": 1, "universe": 4, "nodes": nodes});
    let asks = [
        json!({"ask": "spawn", "apps": [app], "parent": ranks, "errhandler": "", "variables": [["A", "b"]]}),
        json!({"ask": "open_port"}),
        json!({"ask": "close_port", "port": "vmpi-port:1"}),
        json!({"ask": "publish", "service": "s", "port": "p"}),
        json!({"ask": "unpublish", "service": "s", "port": "p"}),
        json!({"ask": "lookup", "service": "s"}),
        json!({"ask": "pass", "takers": 1}),
        json!({"ask": "take", "from": 1, "number": 1}),
        json!({"ask": "agree", "context": 1, "number": 1, "groups": [[[0, 2]], []], "shrink": true, "flag": 1, "acknowledged": 0, "known": []}),
        json!({"ask": "meet", "port": "p", "accept": true, "ranks": [[0, 1]]}),
    ];
    let answers = [
        json!({"answer": "spawned", "ranks": [[2, 1]], "contexts": [1, 2, 3], "counts": [1]}),
        json!({"answer": "port", "port": "p"}),
        json!({"answer": "done"}),
        json!({"answer": "met", "ranks": [[1, 1]], "contexts": [1, 2, 3]}),
        json!({"answer": "agreed", "flags": [1, 1], "failed": [[1, 1]], "news": true, "contexts": [1, 0, 0]}),
        json!({"answer": "denied", "why": "port", "reason": "so"}),
    ];
    let cause = json!({"cause": "rank_failed", "rank": 1, "pid": 1, "ended": {"exited": 1}, "finalized": false, "initialized": true});
    let mut all = vec![
        json!({"type": "hello", "version": "0", "protocol": 1}),
        json!({"type": "submit", "spec": spec}),
        json!({"type": "fds", "count": 3}),
        json!({"type": "cancel", "reason": "so", "code": 1, "signal": 15, "grace_ms": 100}),
        json!({"type": "forward", "signal": 10}),
        json!({"type": "attach", "job": 1, "rank": 0, "word": "ab", "face": "f"}),
        json!({"type": "finalized"}),
        json!({"type": "check_board"}),
        json!({"type": "found", "finding": {"kind": "root_mismatch", "text": "x",
            "parties": [{"ranks": [0, 1], "call": "MPI_Bcast with root 1", "site": {"module": "/bin/x", "offset": 64}}]}}),
        json!({"type": "logs", "job": 1}),
        json!({"type": "abort", "code": 1, "reason": "so", "group": ranks}),
        json!({"type": "end_group", "group": ranks, "cause": cause, "code": 1}),
        json!({"type": "wire", "table": [["127.0.0.1:1"]]}),
        json!({"type": "heard", "ranks": [0, 1]}),
        json!({"type": "grow", "world": 2, "step": {"step": "prepare", "growth": growth}}),
        json!({"type": "grow", "world": 2, "step": {"step": "begin"}}),
        json!({"type": "grow", "world": 2, "step": {"step": "commit"}}),
        json!({"type": "grow", "world": 2, "step": {"step": "abandon"}}),
        json!({"type": "conclude"}),
        json!({"type": "carry", "job": 1}),
        json!({"type": "listening", "port": 1}),
        json!({"type": "wired", "by": "tcp"}),
        json!({"type": "enrolled", "world": 2, "error": null}),
        json!({"type": "lost", "reason": "so"}),
        json!({"type": "drained"}),
        json!({"type": "jobs"}),
        json!({"type": "show", "job": 1}),
        json!({"type": "why", "job": 1, "here": true}),
        json!({"type": "waits_part", "number": 1}),
        json!({"type": "matrix", "job": 1, "on": true}),
        json!({"type": "trace", "job": 1, "ask": "export", "path": "/x.json"}),
        json!({"type": "trace_part", "number": 1, "ask": "start"}),
        json!({"type": "tool_told", "tool": 1, "reply": {"type": "done"}, "files": 0}),
        json!({"type": "signal", "job": 1, "rank": 1, "signal": 10}),
        json!({"type": "kill", "job": 1}),
        json!({"type": "shutdown"}),
    ];
    all.extend(asks.into_iter().map(|ask| json!({"type": "ask", "number": 1, "ask": ask})));
    all.extend(answers.into_iter().map(|answer| json!({"type": "answered", "rank": 0, "number": 1, "answer": answer})));
    all
}

/// Numbers at which sizes, signs and indices break.
const NUMBERS: [i128; 18] = [
    0,
    1,
    2,
    3,
    -1,
    255,
    65_535,
    65_536,
    1_000_000,
    16_777_216,
    i32::MAX as i128,
    i32::MIN as i128,
    u32::MAX as i128 - 1,
    u32::MAX as i128,
    u32::MAX as i128 + 1,
    i64::MAX as i128,
    i64::MIN as i128,
    u64::MAX as i128,
];

fn number(dice: &mut Dice) -> Value {
    let number = NUMBERS[dice.one_of(NUMBERS.len())];
    u64::try_from(number).map_or_else(|_| json!(number as i64), |number| json!(number))
}

/// Change a value here and there; what it means stays, mostly.
fn spoil(value: &mut Value, dice: &mut Dice, tag: bool) {
    match value {
        Value::Number(_) if dice.one_in(3) => *value = number(dice),
        Value::Bool(it) if dice.one_in(3) => *it = !*it,
        Value::String(text) if !tag && dice.one_in(4) => {
            *text = match dice.one_of(5) {
                0 => String::new(),
                1 => "\0".into(),
                2 => "x".repeat(1 + dice.one_of(5000)),
                3 => "../../\u{10ffff}\n{}%s".into(),
                _ => "ab".repeat(32),
            };
        }
        Value::Array(list) => {
            if dice.one_in(5) {
                match (dice.one_of(3), list.first().cloned()) {
                    (0, _) => list.clear(),
                    (1, Some(first)) => list.extend(vec![first; dice.one_of(100)]),
                    _ => drop(list.pop()),
                }
            }
            list.iter_mut().for_each(|each| spoil(each, dice, false));
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let tag = matches!(name.as_str(), "type" | "ask" | "answer" | "step" | "cause" | "why");
                spoil(field, dice, tag);
            }
            if dice.one_in(60)
                && let Some(name) = fields.keys().nth(dice.one_of(fields.len())).cloned()
            {
                fields.remove(&name);
            }
        }
        Value::Null if dice.one_in(2) => *value = number(dice),
        _ => {}
    }
}

/// The body of a frame: a message with some extreme values.
pub fn body(dice: &mut Dice, messages: &[Value]) -> Vec<u8> {
    let mut message = messages[dice.one_of(messages.len())].clone();
    spoil(&mut message, dice, true);
    serde_json::to_vec(&message).unwrap_or_default()
}

/// A frame: mostly one whose body is a message, now and then bytes that are none.
pub fn frame(dice: &mut Dice, messages: &[Value]) -> Vec<u8> {
    let mut body = body(dice, messages);
    let mut length = body.len() as u32;
    match dice.one_of(16) {
        // Some bits have changed on the way.
        0 => {
            for _ in 0..1 + dice.one_of(4) {
                let at = dice.one_of(body.len());
                if let Some(byte) = body.get_mut(at) {
                    *byte ^= 1 << dice.one_of(8);
                }
            }
        }
        1 => body.truncate(dice.one_of(body.len())),
        2 => length = NUMBERS[dice.one_of(NUMBERS.len())] as u32,
        3 => body = (0..dice.one_of(200)).map(|_| dice.roll() as u8).collect(),
        // Deeper than anybody nests.
        4 if dice.one_in(4) => body = [b'['].repeat(1 + dice.one_of(100_000)),
        _ => {}
    }
    if length as usize != body.len() && !dice.one_in(4) {
        length = body.len() as u32;
    }
    [&length.to_le_bytes()[..], &body].concat()
}
