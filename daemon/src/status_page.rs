//! The status page: 64 bytes of shared memory, written by the daemon, read by anyone of the same user who finds its flink.
//!
//! The flink `status` in the runtime directory holds the name of a POSIX shared memory object (crate shared_memory).
//! Layout, little-endian: magic u64, layout version u32, daemon pid i32, jobs u32, zero u32, start time u64 (Unix
//! seconds), number of jobs ever started u64, vmpi version as NUL-padded ASCII in 24 bytes. The file's name outlives a killed daemon; its supervisor,
//! or the next daemon, unlinks it (measured: shared_memory has no other way).

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::fcntl::{Flock, FlockArg};
use nix::sys::resource::{Resource, getrlimit};
use shared_memory::{Shmem, ShmemConf, ShmemError};

use vmpi_shared::control::NEW_FLINK_NAME;
use vmpi_shared::leftovers::{self, is_still_named};

/// Changes with the layout.
pub const VERSION: u32 = 1;
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
    #[error("{0} is in the way: it is nothing that vmpid has left; move it")]
    InTheWay(PathBuf),
    #[error("cannot write {path}: {source}")]
    Flink { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Shmem(#[from] ShmemError),
}

/// The daemon's end of the page; dropping it removes page and flink.
///
/// It is written as a file: any process of the user can cut it, and whoever touches a mapping of what is no more gets a SIGBUS.
pub struct StatusPage {
    /// Its file goes with it; what it maps is not looked at.
    memory: Shmem,
    _flink: Option<Flink>,
    start_s: u64,
    /// Tells sweepers that the owner lives (`sweep`).
    file: Flock<File>,
}

/// The file that names the page; removed when dropped, unless another has taken its place.
struct Flink {
    path: PathBuf,
    made: Metadata,
}

impl Flink {
    /// Written under another name, so that nobody ever finds it empty; never in the place of anything else.
    fn make(path: &Path, name: &str) -> Result<Flink, StatusPageError> {
        let error = |source| StatusPageError::Flink { path: path.to_owned(), source };
        let new = path.with_file_name(NEW_FLINK_NAME);
        let made = File::create_new(&new).and_then(|mut file| file.write_all(name.as_bytes()).and(file.metadata()));
        let linked = made.and_then(|made| match fs::hard_link(&new, path) {
            Ok(()) => Ok(made),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(e),
            // A file system without hard links.
            Err(_) => File::create_new(path).and_then(|mut file| file.write_all(name.as_bytes()).and(file.metadata())),
        });
        let _ = fs::remove_file(&new);
        match linked {
            Ok(made) => Ok(Flink { path: path.to_owned(), made }),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Err(StatusPageError::InTheWay(path.to_owned())),
            Err(e) => Err(error(e)),
        }
    }
}

impl Drop for Flink {
    fn drop(&mut self) {
        if leftovers::is_still_named(&self.made, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
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
            let name =
                format!("{}{}-{nonce:x}", leftovers::page_prefix(nix::unistd::geteuid().as_raw()), std::process::id());
            let memory = ShmemConf::new().os_id(format!("/{name}")).size(PAGE_BYTES).create()?;
            let start_s = nonce / 1_000_000_000;
            let file = lock(&Path::new(leftovers::SHM_DIR).join(name))?;
            made = file.map(|file| StatusPage { memory, _flink: None, start_s, file });
            if made.is_some() {
                break;
            }
        }
        let mut page = made.ok_or(StatusPageError::Swept)?;
        page.write(0, 0).map_err(StatusPageError::Write)?;
        page._flink = Some(Flink::make(flink, page.memory.get_os_id())?);
        Ok(page)
    }

    /// Tell how many jobs live now, and how many ever started.
    pub fn set_jobs(&self, jobs: u32, started_jobs: u64) {
        if let Err(error) = self.write(jobs, started_jobs) {
            crate::log::debug!("the status page cannot be written: {error}");
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
        self.file.write_all_at(&leftovers::PAGE_MAGIC.to_le_bytes(), 0)
    }
}

/// Lock a page; `None`: it has been removed meanwhile.
fn lock(path: &Path) -> Result<Option<Flock<File>>, StatusPageError> {
    let file = match File::options().read(true).write(true).open(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        file => file.map_err(StatusPageError::Lock)?,
    };
    let opened = file.metadata().map_err(StatusPageError::Lock)?;
    // Sweepers hold it for a moment only.
    let lock = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, e)| StatusPageError::Lock(e.into()))?;
    Ok(is_still_named(&opened, path).then_some(lock))
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
        let file = File::options().write(true).open(format!("/dev/shm{}", page.memory.get_os_id())).unwrap();
        for bytes in [0, 20] {
            file.set_len(bytes).unwrap();
            page.set_jobs(2, 9);
            assert_eq!(file.metadata().unwrap().len(), PAGE_BYTES as u64);
            let mut fields = [0; FIELDS_BYTES];
            File::open(format!("/dev/shm{}", page.memory.get_os_id())).unwrap().read_exact_at(&mut fields, 0).unwrap();
            assert_eq!((&fields[..8], fields[JOBS_AT], fields[STARTED_JOBS_AT]), (&b"VMPISTAT"[..], 2, 9));
            assert_eq!(fields[12..16], std::process::id().to_le_bytes());
        }
    }

    /// A room with a runtime directory's lock.
    fn room(name: &str) -> (PathBuf, Flock<File>) {
        let room = std::env::temp_dir().join(format!("vmpid-{name}-{}", std::process::id()));
        fs::create_dir(&room).unwrap();
        let lock = leftovers::lock_of_dead(&room).unwrap();
        (room, lock)
    }

    #[test]
    fn a_dead_daemons_page_is_unlinked() {
        let (room, lock) = room("stale");
        let flink = room.join("status");
        let StatusPage { memory, _flink, file: page, .. } = StatusPage::create(&flink).unwrap();
        let file = format!("/dev/shm{}", memory.get_os_id());
        std::mem::forget((memory, _flink));
        drop(page);
        leftovers::remove_daemon(&room, &lock);
        assert!(!Path::new(&file).exists() && !flink.exists());
        fs::remove_dir(room).unwrap();
    }

    #[test]
    fn a_file_of_the_users_is_in_the_way_and_stays() {
        let (room, lock) = room("mine");
        let (flink, other) = (room.join("status"), room.join("other"));
        fs::write(&flink, "my results").unwrap();
        leftovers::remove_daemon(&room, &lock);
        assert!(matches!(StatusPage::create(&flink), Err(StatusPageError::InTheWay(_))));
        assert_eq!(fs::read_to_string(&flink).unwrap(), "my results");
        // Also one that takes the place of the flink later, though it holds a living daemon's page.
        let page = StatusPage::create(&other).unwrap();
        fs::copy(&other, &flink).unwrap();
        fs::rename(&flink, &other).unwrap();
        let file = format!("/dev/shm{}", page.memory.get_os_id());
        drop(leftovers::page_of(&other).unwrap());
        leftovers::remove_daemon(&room, &lock);
        assert!(Path::new(&file).exists(), "its daemon lives");
        drop(page);
        assert!(!Path::new(&file).exists() && other.exists(), "another file by then");
        assert_eq!(fs::read_dir(&room).unwrap().count(), 1);
        fs::remove_dir_all(room).unwrap();
    }
}
