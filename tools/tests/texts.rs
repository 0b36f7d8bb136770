//! Texts from outside, spoilt: the same checks as the fuzz target `texts`, by seeds.

#[path = "../../fuzz/src/texts.rs"]
mod texts;

use vmpi_shared::decisions::{Encoder, Entry};

/// What is right, and with which number `texts::text` reads it.
const RIGHT: [(u8, &str); 15] = [
    (0, "node1 slots=4 max_slots=8\n# spare\nnode[02-04]:2\n10.0.0.1 slots=1\n[::1]\n"),
    (1, "a:2,b[1-3],c"),
    (2, "n[001-003,7],login,r[1-2]n[1-4]"),
    (3, "0-3,8,10-11"),
    (4, "PBS_JOBID=7.server\nPBS_NODEFILE=/tmp/hosts\nPBS_NUM_PPN=4\u{c}node1\nnode1\nnode2\n"),
    (4, "LSB_JOBID=7\nLSB_MCPU_HOSTS=node1 4 node2 8\u{c}"),
    (4, "LSB_JOBID=7\nLSB_DJOB_HOSTFILE=/tmp/hosts\u{c}node1\nnode2\n"),
    (4, "JOB_ID=7\nPE_HOSTFILE=/tmp/hosts\u{c}node1 4 all.q@node1 <NULL>\nnode1 2 other.q@node1 UNDEFINED\n"),
    (4, "FLUX_URI=local\nFLUX_JOB_ID=f2xQ\u{c}n[1-2],n4\n"),
    (4, "OAR_JOB_ID=7\nOAR_NODEFILE=/tmp/hosts\u{c}node1\nnode1\nnode2\n"),
    (4, "COBALT_JOBID=7\nCOBALT_NODEFILE=/tmp/hosts\u{c}node1\nnode2\n"),
    (
        4,
        "SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=n[1-3],m7\nSLURM_TASKS_PER_NODE=2(x3),1\nSLURM_JOB_CPUS_PER_NODE=8(x4)\nSLURM_NTASKS=7\u{c}",
    ),
    (6, include_str!("../../daemon/machine/src/builtin/ethernet.toml")),
    (6, include_str!("../../daemon/machine/src/builtin/dragonfly.toml")),
    (
        7,
        "<?xml version='1.0'?>\n<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"><cluster id=\"c\" prefix=\"n-\" suffix=\"\" radical=\"0-3\" \
         speed=\"1Gf\" bw=\"125MBps\" lat=\"50us\"/></zone></platform>",
    ),
];

const PIECES: [&str; 21] = [
    "",
    "\0",
    "[",
    "]",
    ",",
    ":",
    "-",
    "=",
    "\n",
    "0",
    "-1",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "99999999999999999999",
    "(x",
    "1e308",
    "0us",
    "/",
    "\u{10ffff}",
    "<",
];

fn spoilt(right: &str, dice: &mut fastrand::Rng) -> String {
    let mut letters: Vec<char> = right.chars().collect();
    for _ in 0..1 + dice.usize(..4) {
        let at = dice.usize(..=letters.len());
        match dice.usize(..4) {
            0 => drop(letters.splice(at..(at + dice.usize(..6)).min(letters.len()), [])),
            1 => drop(letters.splice(at..at, PIECES[dice.usize(..PIECES.len())].chars())),
            2 => {
                let again: Vec<char> = letters[at..(at + dice.usize(..40)).min(letters.len())].to_vec();
                drop(letters.splice(at..at, again));
            }
            _ => drop(letters.splice(at..(at + 1).min(letters.len()), PIECES[dice.usize(..PIECES.len())].chars())),
        }
    }
    letters.into_iter().collect()
}

#[test]
fn spoilt_texts_get_an_answer() {
    let rounds = std::env::var("VMPI_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1_000u64);
    for (of, right) in RIGHT {
        assert!(texts::text(of, right), "{of}: {right:?}");
        for seed in 0..rounds {
            let text = spoilt(right, &mut fastrand::Rng::with_seed(seed));
            let answered = std::panic::catch_unwind(|| texts::text(of, &text)).is_ok();
            assert!(answered, "{of}, seed {seed}: {text:?}");
        }
    }
}

#[test]
fn spoilt_records_are_read_to_where_they_are_whole() {
    let entries = [
        Entry::Receive { number: 3, source: 1, tag: Some(7) },
        Entry::Set(vec![1, 2, 300]),
        Entry::No(9),
        Entry::Time(1 << 60),
    ];
    let (mut encoder, mut right) = (Encoder::default(), Vec::new());
    entries.iter().for_each(|entry| encoder.encode(entry, &mut right));
    for seed in 0..20_000 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut bytes = right.repeat(1 + dice.usize(..3));
        for _ in 0..1 + dice.usize(..4) {
            let at = dice.usize(..bytes.len());
            bytes[at] = [0, 0xff, 0x80, dice.u8(..)][dice.usize(..4)];
        }
        bytes.truncate(dice.usize(..=bytes.len()));
        texts::bytes(&bytes);
    }
}
