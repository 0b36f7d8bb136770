//! The status page: 64 bytes of shared memory, written by the daemon, read by anyone of the same user who finds its flink.
//!
//! The flink `status` in the runtime directory holds the name of a POSIX shared memory object (crate shared_memory).
//! Layout, little-endian: magic u64, layout version u32, daemon pid i32, jobs u32, zero u32, start time u64 (Unix
//! seconds), number of jobs ever started u64, vmpi version as NUL-padded ASCII in 24 bytes. The file's name outlives a killed daemon; its keeper,
//! or the next daemon, unlinks it (measured: shared_memory has no other way).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::resource::{Resource, getrlimit};
use shared_memory::{Shmem, ShmemConf, ShmemError};

use crate::runtime_dir::is_still_named;

/// "VMPISTAT" in ASCII.
pub const MAGIC: u64 = u64::from_le_bytes(*b"VMPISTAT");
/// Changes with the layout.
pub const VERSION: u32 = 1;
/// Every page's name starts so; nothing else is ever unlinked.
const OS_ID_PREFIX: &str = "/vmpi-status-";

/// Size of its file.
const PAGE_BYTES: usize = 4096;

/// Where the fields lie; written by the daemon only.
const JOBS_AT: usize = 16;
const START_AT: usize = 24;
const STARTED_JOBS_AT: usize = 32;
const VMPI_VERSION_AT: usize = 40;
const FIELDS_BYTES: usize = 64;

/// Why there is no status page; the daemon goes on without.
#[derive(Debug, thiserror::Error)]
pub enum StatusPageError {
    #[error("/dev/shm is full or missing")]
    Full,
    #[error("files may have {0} bytes at most (ulimit -f)")]
    FileSize(u64),
    #[error("other daemons remove it again and again")]
    Swept,
    #[error("cannot lock it: {0}")]
    Lock(io::Error),
    #[error("cannot write it: {0}")]
    Write(io::Error),
    #[error(transparent)]
    Shmem(#[from] ShmemError),
}

/// The daemon's end of the page; dropping it removes page and flink.
///
/// It is written as a file: any process of the user can cut it, and whoever touches a mapping of what is no more gets a SIGBUS.
pub struct StatusPage {
    /// Its file and flink go with it; what it maps is not looked at.
    _memory: Shmem,
    start_s: u64,
    /// Tells sweepers that the owner lives (`sweep`).
    file: Flock<File>,
}

impl StatusPage {
    /// Make the page and its flink; stale ones are gone by then.
    ///
    /// # Errors
    /// No room in /dev/shm, or no right to write the flink.
    pub fn create(flink: &Path) -> Result<StatusPage, StatusPageError> {
        // A write to a page that /dev/shm has no room for is a SIGBUS.
        let room = nix::sys::statvfs::statvfs("/dev/shm").map_or(0, |fs| fs.blocks_available());
        if room < 16 {
            return Err(StatusPageError::Full);
        }
        // And a file beyond the limit a SIGXFSZ.
        if let Ok((limit, _)) = getrlimit(Resource::RLIMIT_FSIZE)
            && limit < PAGE_BYTES as u64
        {
            return Err(StatusPageError::FileSize(limit));
        }
        // A sweeper may find the page before it is locked, and remove it: then another one is made.
        let mut made = None;
        for _ in 0..3 {
            let nonce = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
            let name = format!("{}{}-{nonce:x}", name_prefix(nix::unistd::geteuid().as_raw()), std::process::id());
            let memory = ShmemConf::new()
                .os_id(format!("/{name}"))
                .size(PAGE_BYTES)
                .flink(flink)
                .force_create_flink()
                .create()?;
            let start_s = nonce / 1_000_000_000;
            made = lock(&Path::new("/dev/shm").join(name))?.map(|file| StatusPage { _memory: memory, start_s, file });
            if made.is_some() {
                break;
            }
        }
        let page = made.ok_or(StatusPageError::Swept)?;
        page.write(0, 0).map_err(StatusPageError::Write)?;
        Ok(page)
    }

    /// Tell how many jobs live now, and how many ever started.
    pub fn set_jobs(&self, jobs: u32, started_jobs: u64) {
        if let Err(error) = self.write(jobs, started_jobs) {
            crate::debug!("the status page cannot be written: {error}");
        }
    }

    fn write(&self, jobs: u32, started_jobs: u64) -> io::Result<()> {
        if self.file.metadata()?.len() < PAGE_BYTES as u64 {
            // Somebody has cut it.
            self.file.set_len(PAGE_BYTES as u64)?;
        }
        let version = env!("CARGO_PKG_VERSION").as_bytes();
        let length = version.len().min(23);
        let mut fields = [0; FIELDS_BYTES];
        fields[8..12].copy_from_slice(&VERSION.to_le_bytes());
        fields[12..16].copy_from_slice(&std::process::id().to_le_bytes());
        fields[JOBS_AT..JOBS_AT + 4].copy_from_slice(&jobs.to_le_bytes());
        fields[START_AT..START_AT + 8].copy_from_slice(&self.start_s.to_le_bytes());
        fields[STARTED_JOBS_AT..STARTED_JOBS_AT + 8].copy_from_slice(&started_jobs.to_le_bytes());
        fields[VMPI_VERSION_AT..VMPI_VERSION_AT + length].copy_from_slice(&version[..length]);
        self.file.write_all_at(&fields[8..], 8)?;
        // Last: who reads looks at it first.
        self.file.write_all_at(&MAGIC.to_le_bytes(), 0)
    }
}

/// Lock a page; `None`: it has been removed meanwhile.
fn lock(path: &Path) -> Result<Option<Flock<File>>, StatusPageError> {
    let file = match File::options().read(true).write(true).open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(StatusPageError::Lock)?,
    };
    let opened = file.metadata().map_err(StatusPageError::Lock)?;
    // Sweepers hold it for a moment only.
    let lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, e)| StatusPageError::Lock(e.into()))?;
    Ok(is_still_named(&opened, path).then_some(lock))
}

/// What the names of a user's pages in /dev/shm begin with; the daemon's pid follows.
pub fn name_prefix(user: u32) -> String {
    format!("{}{user}-", &OS_ID_PREFIX[1..])
}

/// The pid in a page's name.
pub fn owner_in_name(name: &str) -> Option<i32> {
    name.strip_prefix(&OS_ID_PREFIX[1..])?.split('-').nth(1)?.parse().ok()
}

/// Unlink the page that `flink` names, and the flink; a flink with a name that is not ours is only removed.
pub fn unlink_stale(flink: &Path) {
    if let Ok(name) = fs::read_to_string(flink) {
        if name.starts_with(OS_ID_PREFIX) && !name[1..].contains('/') {
            let _ = nix::sys::mman::shm_unlink(name.as_str());
        }
        let _ = fs::remove_file(flink);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_found_by_its_flink_and_goes_with_its_owner() {
        let flink = std::env::temp_dir().join(format!("vmpid-status-{}", std::process::id()));
        let page = StatusPage::create(&flink).unwrap();
        page.set_jobs(3, 7);
        let seen = ShmemConf::new().flink(&flink).open().unwrap();
        let mut bytes = [0; FIELDS_BYTES];
        File::open(format!("/dev/shm{}", seen.get_os_id())).unwrap().read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes[..8], b"VMPISTAT");
        assert_eq!(bytes[12..16], std::process::id().to_le_bytes());
        assert_eq!((bytes[16], bytes[32]), (3, 7));
        assert!(bytes[40..].starts_with(env!("CARGO_PKG_VERSION").as_bytes()));
        let file = format!("/dev/shm{}", seen.get_os_id());
        drop(page);
        assert!(!Path::new(&file).exists() && !flink.exists());
    }

    /// By a careless cleaner, or a rank.
    #[test]
    fn who_cuts_the_page_ends_nobody_and_it_is_whole_again_with_the_next_job() {
        let flink = std::env::temp_dir().join(format!("vmpid-cut-{}", std::process::id()));
        let page = StatusPage::create(&flink).unwrap();
        let file = File::options().write(true).open(format!("/dev/shm{}", page._memory.get_os_id())).unwrap();
        for bytes in [0, 20] {
            file.set_len(bytes).unwrap();
            page.set_jobs(2, 9);
            assert_eq!(file.metadata().unwrap().len(), PAGE_BYTES as u64);
            let mut fields = [0; FIELDS_BYTES];
            File::open(format!("/dev/shm{}", page._memory.get_os_id())).unwrap().read_exact_at(&mut fields, 0).unwrap();
            assert_eq!((&fields[..8], fields[JOBS_AT], fields[STARTED_JOBS_AT]), (&b"VMPISTAT"[..], 2, 9));
            assert_eq!(fields[12..16], std::process::id().to_le_bytes());
        }
    }

    #[test]
    fn a_dead_daemons_page_is_unlinked() {
        let flink = std::env::temp_dir().join(format!("vmpid-stale-{}", std::process::id()));
        let page = StatusPage::create(&flink).unwrap();
        let file = format!("/dev/shm{}", page._memory.get_os_id());
        std::mem::forget(page);
        unlink_stale(&flink);
        assert!(!Path::new(&file).exists() && !flink.exists());
    }
}
