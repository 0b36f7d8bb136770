//! What all ranks of a file's group must be at one about before a collective call has any effect.

use crate::coll;
use crate::comm::Communicator;
use crate::errhandler::codes;
use crate::errors::{Class, Result, fail};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Every rank brings the outcome of its own part and a digest of the arguments that must be the same everywhere. All
/// succeed, or all fail: a rank that did well itself gets the class of the first one that did not.
///
/// # Errors
/// This rank's own error, another's, or `Class::NotSame` if the digests differ.
pub fn agree(comm: &Communicator, mine: Result<()>, digest: u64) -> Result<()> {
    if comm.size() == 1 {
        return mine;
    }
    let mut record = [0; 16];
    let code = mine.as_ref().map_or_else(|e| e.code, |()| 0);
    record[..4].copy_from_slice(&code.to_ne_bytes());
    record[8..].copy_from_slice(&digest.to_ne_bytes());
    let mut all = vec![0; 16 * comm.size() as usize];
    coll::allgather_bytes(comm, &record, &mut all)?;
    mine?;
    let code_of = |r: &[u8]| i32::from_ne_bytes([r[0], r[1], r[2], r[3]]);
    if let Some((rank, code)) = all.chunks_exact(16).map(code_of).enumerate().find(|(_, code)| *code != 0) {
        let text = codes::error_string(code);
        return fail(
            codes::error_class(code),
            format!("rank {rank} of the file's group could not do its part: {text}"),
        );
    }
    if let Some(rank) = all.chunks_exact(16).position(|r| r[8..] != record[8..]) {
        return fail(
            Class::NotSame,
            format!("rank {rank} of the file's group called with other arguments than this one; they must be the same"),
        );
    }
    Ok(())
}

/// A digest for [`agree`].
pub fn digest(arguments: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    arguments.hash(&mut hasher);
    hasher.finish()
}

/// Rank 0 does something for all; all have its outcome.
///
/// # Errors
/// What `work` returned at rank 0.
pub fn at_root(comm: &Communicator, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let mine = if comm.rank == 0 { work() } else { Ok(()) };
    if comm.size() == 1 {
        return mine;
    }
    let mut code = mine.as_ref().map_or_else(|e| e.code, |()| 0).to_ne_bytes();
    coll::bcast_bytes(comm, &mut code, 0)?;
    mine?;
    match i32::from_ne_bytes(code) {
        0 => Ok(()),
        code => fail(
            codes::error_class(code),
            format!("rank 0 of the file's group, which does this for all, failed: {}", codes::error_string(code)),
        ),
    }
}
