//! A daemon's status page: a small shared memory object found by its flink in the runtime directory.
//!
//! Written by vmpid (its `status_page.rs` has the layout), read here for the quick list of daemons: as a file, since whoever
//! truncates what is mapped kills who looks.

use std::path::Path;
use vmpi_shared::leftovers;

const LAYOUT_VERSION: u32 = 1;
const PAGE_BYTES: usize = 64;

/// What a daemon says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusPage {
    pub pid: i32,
    /// Jobs alive now.
    pub jobs: u32,
    /// Unix time, seconds.
    pub start_s: u64,
    /// Jobs ever started.
    pub started_jobs: u64,
    pub version: String,
}

/// Read the page that `flink` names; `None`: no page of this user's, or not one of this layout.
pub fn read(flink: &Path) -> Option<StatusPage> {
    let page = Path::new(leftovers::SHM_DIR).join(leftovers::page_of(flink)?);
    parse(leftovers::head_of(&page, PAGE_BYTES)?.first_chunk()?)
}

fn parse(bytes: &[u8; PAGE_BYTES]) -> Option<StatusPage> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    if bytes[..8] != leftovers::PAGE_MAGIC.to_le_bytes() || word(8) != LAYOUT_VERSION {
        return None;
    }
    let version = bytes[40..].split(|byte| *byte == 0).next().unwrap_or_default();
    Some(StatusPage {
        pid: word(12) as i32,
        jobs: word(16),
        start_s: long(24),
        started_jobs: long(32),
        version: String::from_utf8_lossy(version).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let mut bytes = [0u8; PAGE_BYTES];
        assert_eq!(parse(&bytes), None);
        bytes[..8].copy_from_slice(b"VMPISTAT");
        bytes[8] = 1;
        bytes[12..16].copy_from_slice(&4711i32.to_le_bytes());
        (bytes[16], bytes[24], bytes[32]) = (2, 9, 5);
        bytes[40..45].copy_from_slice(b"0.1.0");
        let page = parse(&bytes).unwrap();
        assert_eq!(
            (page.pid, page.jobs, page.start_s, page.started_jobs, page.version.as_str()),
            (4711, 2, 9, 5, "0.1.0")
        );
    }
}
