//! What the daemon of all jobs does with a job's segments when a rank has written anything at all over it: it gets wrong numbers, and comes back with them.

#![cfg(not(feature = "model"))]

#[path = "../../../fuzz/src/scribble.rs"]
mod scribble;

use std::sync::mpsc;
use std::time::Duration;

#[test]
fn a_daemon_comes_back_from_memory_that_a_rank_has_written_over() {
    let first = std::env::var("VMPI_TEST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(40u64);
    let rounds = std::env::var("VMPI_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(60u64);
    let (say, hear) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let comes_back = |seed: &u64| {
            let _ = say.send(*seed);
            std::panic::catch_unwind(|| scribble::round(*seed)).is_ok()
        };
        (first..first + rounds).filter(|seed| !comes_back(seed)).collect::<Vec<u64>>()
    });
    let mut at = first;
    loop {
        match hear.recv_timeout(Duration::from_secs(60)) {
            Ok(seed) => at = seed,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("it does not come back: seed {at}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let ended = worker.join().unwrap();
    assert!(ended.is_empty(), "it ended with these seeds: {ended:?}");
}
