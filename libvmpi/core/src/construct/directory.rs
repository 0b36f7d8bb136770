//! Which ranks see the same directory: MPICH's split type MPIX_COMM_TYPE_NEIGHBORHOOD with the hint `nbhd_common_dirname`. Rank 0 leaves a file
//! there, and the others look for it.

use crate::coll;
use crate::comm::Communicator;
use crate::construct::choices::{gather_choices, share_contexts};
use crate::errors::Result;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// What MPICH calls the directory.
pub const HINT: &[u8] = b"nbhd_common_dirname";

/// Files left by this process.
static FILES: AtomicU32 = AtomicU32::new(0);

/// Have all ranks of the intracommunicator named the same directory, and does this rank see there what rank 0 sees? Collective, whatever
/// each rank's `name` is.
///
/// # Errors
/// Those of collective communication.
pub fn shared(comm: &Communicator, name: Option<&[u8]>) -> Result<bool> {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    let hash = hasher.finish();
    let all = gather_choices(comm, hash as i32, (hash >> 32) as i32)?;
    let (Some(name), true) = (name, all.iter().all(|other| *other == all[0])) else { return Ok(false) };
    let directory = Path::new(OsStr::from_bytes(name));
    let file = |nonce: u32, number: u32| directory.join(format!(".vmpi-{nonce:08x}-{number}"));
    let mut mine: Option<PathBuf> = None;
    let mut sign = vec![0; 3];
    if comm.rank == 0 {
        // Not the pid, which processes of several PID namespaces may share.
        let (nonce, number) = (RandomState::new().hash_one(directory) as u32, FILES.fetch_add(1, Ordering::Relaxed));
        mine = Some(file(nonce, number)).filter(|path| File::create_new(path).is_ok());
        sign = vec![u32::from(mine.is_some()), nonce, number];
    }
    let sign = share_contexts(comm, sign)?;
    let seen = sign[0] == 1 && file(sign[1], sign[2]).exists();
    let all_looked = coll::barrier(comm);
    if let Some(path) = mine {
        let _ = fs::remove_file(path); // It was made for this, and nobody else's work depends on it.
    }
    all_looked.map(|()| seen)
}
