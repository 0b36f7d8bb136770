//! The process sets that every job has, by name (MPI 4.1 section 11.3.2).

use crate::errors::{Class, Result, fail};
use crate::group::Members;
use crate::nodes;
use crate::process;

/// The process sets that every job has, with `psets` saying which ones a face lists.
const WORLD: &str = "mpi://WORLD";
const SELF: &str = "mpi://SELF";
/// The ranks of this rank's node, by Open MPI's name.
const SHARED: &str = "mpix://SHARED";

/// The job-wide ranks of a process set.
///
/// # Errors
/// `Class::Arg` for a name that is none.
pub fn pset(name: &[u8]) -> Result<Members> {
    let me = process::endpoint_rank();
    let world = process::world_members();
    // In upper or lower case (MPI 4.1 section 11.3.2).
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if is(WORLD) {
        Ok(Members::list(world))
    } else if is(SELF) {
        Ok(Members::range(me, 1))
    } else if is(SHARED) {
        Ok(Members::list(world.into_iter().filter(|&rank| nodes::share_node(me, rank)).collect()))
    } else {
        fail(Class::Arg, format!("there is no process set \"{}\"", String::from_utf8_lossy(name)))
    }
}
