//! Any bytes as a message to vmpid, and the checks that stand between a message and the tables of a job.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmpi_fuzz::frames::{Dice, body, messages};
use vmpi_shared::control::Request;
use vmpi_shared::dynamic::Ask;
use vmpi_shared::spawn_protocol::Step;

/// Room of the job that is told of.
const CAPACITY: u32 = 260;

fn look(request: &Request) {
    match request {
        Request::Grow { world, step: Step::Prepare { growth } } => {
            if growth.check(*world, (CAPACITY, 2), |rank| rank < 2).is_ok() {
                assert!(growth.world.ranks.iter().all(|rank| rank < CAPACITY));
                assert!(growth.births.iter().all(|birth| (birth.app as usize) < growth.apps.len() && birth.node < 2));
            }
        }
        Request::Answered { answer, .. } => {
            let _ = answer.fits(CAPACITY);
        }
        Request::Abort { group: Some(group), .. } | Request::EndGroup { group, .. } if group.fit(CAPACITY) => {
            assert!(group.iter().count() <= CAPACITY as usize);
        }
        Request::Ask { ask: Ask::Spawn { apps, .. }, .. } => {
            let _ = vmpi_shared::spawn_protocol::choose_counts(apps, CAPACITY);
        }
        Request::Submit { spec } => {
            let _ = (spec.universe_size(), spec.stdin_count(), spec.is_local(u32::MAX), spec.node_of(u32::MAX).is_some());
        }
        _ => {}
    }
}

fuzz_target!(|data: &[u8]| {
    if let Ok(request) = serde_json::from_slice::<Request>(data) {
        look(&request);
        // What is passed on is understood there.
        let again = serde_json::to_vec(&request).expect("what has been read can be written");
        serde_json::from_slice::<Request>(&again).expect("and read again");
    }
    // And as a seed: well-formed messages are found sooner.
    let seed = data.iter().fold(0u64, |seed, byte| seed.wrapping_mul(257).wrapping_add(u64::from(*byte) + 1));
    if let Ok(request) = serde_json::from_slice::<Request>(&body(&mut Dice(seed), &messages())) {
        look(&request);
    }
});
