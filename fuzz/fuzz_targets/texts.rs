//! Hostfiles, lists of nodes, environments of batch systems, machine files, SimGrid's platforms, records.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmpi_fuzz::texts;

fuzz_target!(|data: &[u8]| {
    let Some((of, rest)) = data.split_first() else { return };
    match std::str::from_utf8(rest) {
        Ok(text) => _ = texts::text(*of, text),
        Err(_) => texts::bytes(rest),
    }
});
