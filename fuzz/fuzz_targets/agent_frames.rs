//! Any bytes as what a launcher and an agent on another node say to each other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmpi_tools::nodes::frames::{FromNode, ToNode, await_preamble, hear};

fuzz_target!(|data: &[u8]| {
    let mut from = data;
    while let Ok(Some(_)) = hear::<FromNode>(&mut from) {}
    let mut from = data;
    while let Ok(Some(_)) = hear::<ToNode>(&mut from) {}
    let _ = await_preamble(&mut &data[..]);
});
