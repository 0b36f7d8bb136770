//! A daemon's status page: a small shared memory object found by its flink in the runtime directory.
//!
//! Written by vmpid (its `status_page.rs` has the layout), read here for the quick list of daemons, and unlinked here
//! when a daemon died without doing so.
#![allow(unsafe_code)]

use shared_memory::ShmemConf;
use std::path::Path;

const MAGIC: &[u8; 8] = b"VMPISTAT";
const LAYOUT_VERSION: u32 = 1;
const PAGE_BYTES: usize = 64;
/// Every page's name begins so; nothing else is ever unlinked.
const OS_ID_PREFIX: &str = "/vmpi-status-";

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

/// Read the page that `flink` names; `None`: no page, or not one of this layout.
pub fn read(flink: &Path) -> Option<StatusPage> {
    let name = std::fs::read_to_string(flink).ok()?;
    if !is_ours(&name) {
        return None;
    }
    let memory = ShmemConf::new().os_id(name).open().ok()?;
    if memory.len() < PAGE_BYTES {
        return None;
    }
    let mut bytes = [0u8; PAGE_BYTES];
    for (at, byte) in bytes.iter_mut().enumerate() {
        // SAFETY: the mapping is at least PAGE_BYTES long and lives until the end of this function; the daemon may
        // write meanwhile, so each byte is read once, volatile, into a local.
        *byte = unsafe { memory.as_ptr().add(at).read_volatile() };
    }
    parse(&bytes)
}

fn parse(bytes: &[u8; PAGE_BYTES]) -> Option<StatusPage> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    if &bytes[..8] != MAGIC || word(8) != LAYOUT_VERSION {
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

/// Unlink the page of a daemon that died, and its flink.
pub fn unlink_stale(flink: &Path) {
    if let Ok(name) = std::fs::read_to_string(flink) {
        if is_ours(&name) {
            // An error means that it is gone already.
            let _ = nix::sys::mman::shm_unlink(name.as_str());
        }
        let _ = std::fs::remove_file(flink);
    }
}

fn is_ours(name: &str) -> bool {
    name.starts_with(OS_ID_PREFIX) && !name[1..].contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layout() {
        let mut bytes = [0u8; PAGE_BYTES];
        assert_eq!(parse(&bytes), None);
        bytes[..8].copy_from_slice(MAGIC);
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

    #[test]
    fn only_our_names_are_unlinked() {
        assert!(is_ours("/vmpi-status-0-12-ab"));
        assert!(!is_ours("/other") && !is_ours("/vmpi-status-/../x"));
        assert_eq!(read(Path::new("/nowhere/status")), None);
    }
}
