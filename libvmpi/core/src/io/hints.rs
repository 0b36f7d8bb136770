//! Hints: what MPI_File_get_info reports, and the ones that change what collective accesses do.
//!
//! A hint that vmpi knows is kept and reported; an unknown one is ignored, as MPI says (4.1 section 14.2.8). The names
//! are those of the standard and of ROMIO, which programs set.

use crate::info::{self, Entries};

/// Names of the standard and of ROMIO that mean something to an MPI-IO library.
const KNOWN: &[&str] = &[
    "access_style",
    "cb_block_size",
    "cb_buffer_size",
    "cb_config_list",
    "cb_nodes",
    "chunked",
    "chunked_item",
    "chunked_size",
    "collective_buffering",
    "file_perm",
    "filename",
    "ind_rd_buffer_size",
    "ind_wr_buffer_size",
    "io_node_list",
    "nb_proc",
    "num_io_nodes",
    "romio_cb_alltoall",
    "romio_cb_ds_threshold",
    "romio_cb_fr_alignment",
    "romio_cb_fr_types",
    "romio_cb_pfr",
    "romio_cb_read",
    "romio_cb_write",
    "romio_ds_read",
    "romio_ds_write",
    "romio_filesystem_type",
    "romio_no_indep_rw",
    "striping_factor",
    "striping_unit",
];

/// Whether collective accesses exchange data between ranks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Exchange {
    Automatic = 0,
    Enable = 1,
    Disable = 2,
}

/// Bytes of file that an aggregator handles at a time.
pub const CB_BUFFER_BYTES: u64 = 4 << 20;
/// Smallest and largest that a program may ask for.
const CB_BUFFER_RANGE: std::ops::RangeInclusive<u64> = 4096..=1 << 30;

/// The hints of one file.
#[derive(Clone, Debug)]
pub struct Hints {
    entries: Entries,
}

impl Hints {
    /// The defaults with `given` on top; `cb_nodes` is the number of aggregators unless a hint says otherwise.
    pub fn new(cb_nodes: u32, given: &Entries) -> Hints {
        let mut entries = Entries::default();
        entries.set(b"cb_buffer_size", CB_BUFFER_BYTES.to_string().as_bytes());
        entries.set(b"cb_nodes", cb_nodes.to_string().as_bytes());
        entries.set(b"romio_cb_read", b"automatic");
        entries.set(b"romio_cb_write", b"automatic");
        entries.set(b"romio_ds_read", b"automatic");
        entries.set(b"romio_ds_write", b"disable");
        entries.set(info::ALLOC_KINDS.0, info::ALLOC_KINDS.1);
        let mut hints = Hints { entries };
        hints.add(given);
        hints
    }

    /// Take the known hints of `given`; a value that makes no sense for a hint that is used is ignored.
    pub fn add(&mut self, given: &Entries) {
        for (key, value) in given.iter().filter(|(key, _)| KNOWN.iter().any(|known| known.as_bytes() == *key)) {
            let sensible = match key {
                b"cb_buffer_size" => number(value).is_some_and(|n| CB_BUFFER_RANGE.contains(&n)),
                b"cb_nodes" => number(value).is_some_and(|n| n > 0 && n <= u32::MAX.into()),
                b"romio_cb_read" | b"romio_cb_write" => exchange(value).is_some(),
                // Writes never read and write back, so there is nothing to switch on.
                b"romio_ds_write" => value == b"disable",
                _ => true,
            };
            if sensible {
                self.entries.set(key, value);
            }
        }
    }

    /// What MPI_File_get_info reports.
    pub fn entries(&self) -> &Entries {
        &self.entries
    }

    pub fn cb_buffer_bytes(&self) -> u64 {
        self.number("cb_buffer_size").unwrap_or(CB_BUFFER_BYTES)
    }

    pub fn cb_nodes(&self) -> u32 {
        self.number("cb_nodes").map_or(1, |n| n.clamp(1, u32::MAX.into()) as u32)
    }

    pub fn exchange(&self, write: bool) -> Exchange {
        let key = if write { "romio_cb_write" } else { "romio_cb_read" };
        self.entries.get(key.as_bytes()).and_then(exchange).unwrap_or(Exchange::Automatic)
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.entries.get(key.as_bytes()).and_then(number)
    }
}

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

fn exchange(value: &[u8]) -> Option<Exchange> {
    match value.trim_ascii() {
        b"automatic" => Some(Exchange::Automatic),
        b"enable" => Some(Exchange::Enable),
        b"disable" => Some(Exchange::Disable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ones_are_kept_and_unknown_ones_ignored() {
        let mut given = Entries::default();
        given.set(b"cb_buffer_size", b"65536");
        given.set(b"no_such_hint", b"1");
        given.set(b"access_style", b"read_once,sequential");
        given.set(b"cb_nodes", b"many");
        given.set(b"romio_cb_write", b"enable");
        let hints = Hints::new(2, &given);
        assert_eq!(hints.cb_buffer_bytes(), 65536);
        assert_eq!(hints.cb_nodes(), 2);
        assert_eq!(hints.exchange(true), Exchange::Enable);
        assert_eq!(hints.exchange(false), Exchange::Automatic);
        assert_eq!(hints.entries().get(b"no_such_hint"), None);
        assert_eq!(hints.entries().get(b"access_style"), Some(&b"read_once,sequential"[..]));
    }
}
