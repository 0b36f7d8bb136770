//! MPI_Comm_split_type: communicators of the ranks that share something (MPI 4.1 section 7.4.2).

use crate::comm::Communicator;
use crate::construct::{directory, free, split};
use crate::consts;
use crate::errors::{Class, Result, fail};
use crate::hardware::{self, Kind};
use crate::info;
use crate::nodes;
use crate::process_sets;
use std::rc::Rc;

/// A new communicator, and the `mpi_hw_resource_type` that the library chose (for `COMM_TYPE_HW_UNGUIDED`).
pub type Part = (Option<Rc<Communicator>>, Option<String>);

/// Split by what ranks share. `None` for `UNDEFINED`, for a resource that is not known or not asked for, and for
/// `COMM_TYPE_HW_UNGUIDED` where nothing divides the communicator.
///
/// # Errors
/// `Class::Arg` for a split type that does not exist.
pub fn split_type(comm: &Rc<Communicator>, kind: i32, key: i32, hints: &info::Entries) -> Result<Part> {
    if kind == consts::COMM_TYPE_RESOURCE_GUIDED && !comm.is_inter() {
        return Ok((resource_guided(comm, key, hints)?, None));
    }
    let resource = || hints.get(b"mpi_hw_resource_type").and_then(Kind::named);
    let (color, chosen) = match kind {
        consts::UNDEFINED => (None, None),
        consts::COMM_TYPE_SHARED => (share(comm, Kind::Node), None),
        consts::COMM_TYPE_HW_GUIDED => (resource().and_then(|kind| share(comm, kind)), None),
        consts::COMM_TYPE_RESOURCE_GUIDED => (resource_color(comm, hints), None),
        consts::COMM_TYPE_HW_UNGUIDED => match dividing(comm) {
            Some(kind) => (share(comm, kind), Some(kind.name())),
            None => (None, None),
        },
        _ => return fail(Class::Arg, format!("{kind} is not a split type")),
    };
    let part = split(comm, color.map_or(consts::UNDEFINED, |color| color as i32), key)?;
    Ok((part, chosen))
}

/// As the hints say, none for a resource that is not known. In MPICH up to 4.0 the number is that of MPIX_COMM_TYPE_NEIGHBORHOOD, so a
/// directory may be named, too; whether all have done so they must ask each other, and those who gave MPI_UNDEFINED do not take part in that.
fn resource_guided(comm: &Rc<Communicator>, key: i32, hints: &info::Entries) -> Result<Option<Rc<Communicator>>> {
    let all = split(comm, 0, key)?.expect("the color is not UNDEFINED");
    let color = match directory::shared(&all, hints.get(directory::HINT)) {
        Ok(true) => Ok(Some(0)),
        Ok(false) => Ok(resource_color(comm, hints)),
        Err(error) => Err(error),
    };
    let part = color.and_then(|color| split(&all, color.map_or(consts::UNDEFINED, |color| color as i32), key));
    free(all.handle)?;
    part
}

/// The first rank of those that share the process set or the resource that the hints name.
fn resource_color(comm: &Communicator, hints: &info::Entries) -> Option<u32> {
    match hints.get(b"mpi_pset_name") {
        None => hints.get(b"mpi_hw_resource_type").and_then(Kind::named).and_then(|kind| share(comm, kind)),
        Some(name) => {
            let me = comm.local.world_rank(comm.rank);
            let members = process_sets::pset(name).ok().filter(|members| members.rank_of(me).is_some());
            members.and_then(|members| members.iter().min())
        }
    }
}

/// All ranks of the communicator, of both groups, in an order that is the same on all of them.
fn everyone(comm: &Communicator) -> Vec<u32> {
    let mut all: Vec<u32> = comm.local.iter().chain(comm.remote.iter().flat_map(|remote| remote.iter())).collect();
    all.sort_unstable();
    all
}

/// The first rank of those that share my resource of this kind.
fn share(comm: &Communicator, kind: Kind) -> Option<u32> {
    let all = everyone(comm);
    let me = comm.local.world_rank(comm.rank);
    if kind == Kind::Node {
        return all.into_iter().find(|&other| nodes::share_node(me, other));
    }
    let place = all.iter().position(|&rank| rank == me)?;
    hardware::groups(kind, &all)[place]
}

/// The outermost kind of resource that not all ranks of the communicator share one of.
fn dividing(comm: &Communicator) -> Option<Kind> {
    let all = everyone(comm);
    if !all.iter().all(|&rank| nodes::share_node(all[0], rank)) {
        return Some(Kind::Node);
    }
    Kind::parts_of_node().find(|&kind| {
        let groups = hardware::groups(kind, &all);
        groups.iter().all(Option::is_some) && groups.iter().any(|group| *group != groups[0])
    })
}
