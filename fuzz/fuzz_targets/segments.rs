//! A rank has written over the segments of its job: what the daemon of all jobs does with them. The bytes are a seed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmpi_fuzz::scribble;

fuzz_target!(|data: &[u8]| {
    let seed = data.iter().fold(0u64, |seed, byte| seed.wrapping_mul(257).wrapping_add(u64::from(*byte) + 1));
    scribble::round(seed);
});
