//! Texts that come from a user, a batch system or a file: an answer or a sentence, in bounded time and memory.

use vmpi_machine::{Image, Machine};
use vmpi_shared::decisions::Decoder;
use vmpi_tools::nodes::batch::{Surroundings, allocation};
use vmpi_tools::{cpus, hostlist, hosts};

/// More hosts than this are told to be too many.
const MOST_HOSTS: usize = 1 << 18;

/// Where a process runs: lines `NAME=value`, and a file that has any name and that all commands print.
struct Told<'a> {
    variables: &'a str,
    file: &'a str,
}

impl Surroundings for Told<'_> {
    fn variable(&self, name: &str) -> Option<String> {
        let value = self.variables.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        (!value.trim().is_empty()).then(|| value.to_owned())
    }

    fn file(&self, _: &str) -> Result<String, String> {
        Ok(self.file.to_owned())
    }

    fn output(&self, _: &[&str]) -> Result<String, String> {
        Ok(self.file.to_owned())
    }
}

/// A number that says what the text is, and the text. Was it taken?
pub fn text(of: u8, text: &str) -> bool {
    let half = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let (one, other) = text.split_once('\u{c}').unwrap_or_else(|| text.split_at(half));
    match of % 8 {
        0 | 1 => {
            let hosts = if of.is_multiple_of(8) { hosts::parse_file(text) } else { hosts::parse_list(text) };
            assert!(hosts.as_ref().map_or(0, Vec::len) <= MOST_HOSTS);
            hosts.is_ok()
        }
        2 => {
            let names = hostlist::expand(text);
            let are_possible =
                |names: &Vec<String>| names.len() <= MOST_HOSTS && names.iter().all(|name| !name.is_empty());
            assert!(names.as_ref().map_or(true, are_possible));
            names.is_ok()
        }
        3 => {
            let cpus = cpus::parse_list(text);
            if let Ok(cpus) = &cpus {
                let again = cpus::parse_list(&cpus::format_list(cpus));
                assert_eq!(again.as_ref(), Ok(cpus), "it is read as it was written");
            }
            cpus.is_ok()
        }
        4 | 5 => {
            let told = Told { variables: one, file: other };
            let mut untold = Vec::new();
            let found = allocation(&told, &mut untold);
            assert!(untold.iter().all(|sentence| !sentence.is_empty()));
            found.is_ok_and(|found| found.is_some())
        }
        6 => machine(Machine::from_toml(text, "a.toml").ok()),
        _ => machine(Machine::from_platform(text, "a.xml").ok()),
    }
}

/// What a description makes: its image can be read, and every pair of places has a path.
fn machine(machine: Option<Machine>) -> bool {
    let Some(machine) = machine else { return false };
    // A fat tree of a million hosts is right, and takes long.
    if machine.place_count() > 4096 || machine.link_count() > 1 << 16 {
        return true;
    }
    let words = machine.image_words();
    let image = Image::from_words(&words).expect("what is written can be read");
    let last = image.place_count().saturating_sub(1);
    for (from, to) in [(0, last), (last, 0), (last / 2, last)] {
        let _ = (image.level(from, to), image.host_of(from), image.links_between(from, to));
    }
    true
}

/// Bytes as a record of `--record`, and as a machine that other processes map.
pub fn bytes(bytes: &[u8]) {
    let mut decoder = Decoder::new(bytes);
    assert!(decoder.by_ref().count() <= bytes.len());
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight"))).collect();
    if let Ok(image) = Image::from_words(&words) {
        let _ = (image.place_count(), image.host_count(), image.rules());
    }
}
