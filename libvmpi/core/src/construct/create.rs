//! New communicators out of one: dup, split, create, create_group; and their end.

use super::agree::Agreement;
use crate::attr::{self, Kind};
use crate::comm::{Communicator, Contexts, construction_tag, install, remove, reserve, settle};
use crate::construct::choices::{gather_choices, share_contexts, take_contexts};
use crate::consts;
use crate::errhandler::{self, Target};
use crate::errors::{Class, Result, fail};
use crate::group::Members;
use crate::handle::{Comm, Handle, Request};
use crate::info;
use crate::p2p::{self, buffered::Owner};
use crate::request;
use std::cell::Cell;
use std::rc::Rc;

/// A communicator with the same groups, topology and attributes (MPI_Comm_dup); the hints stay behind (MPI 4.1 section 7.4.2).
///
/// # Errors
/// What an attribute's copy callback returned; there is no new communicator then.
pub fn dup(comm: &Rc<Communicator>) -> Result<Comm> {
    dup_with_info(comm, Rc::default())
}

/// As [`dup`], with the given hints (MPI_Comm_dup_with_info).
///
/// # Errors
/// As [`dup`].
pub fn dup_with_info(comm: &Rc<Communicator>, hints: Rc<info::Entries>) -> Result<Comm> {
    let handle = reserve();
    let outcome = request::run(&mut duplication(comm, hints, handle))
        .and_then(|_| attr::copy_all(Kind::Comm, comm.handle.raw(), handle.raw()));
    if let Err(error) = outcome {
        discard(handle);
        return Err(error);
    }
    Ok(handle)
}

/// Start a [`dup`]; the communicator may be used when the request has completed (MPI_Comm_idup).
///
/// # Errors
/// As [`dup`]; the copy callbacks are called here.
pub fn idup(comm: &Rc<Communicator>, hints: Rc<info::Entries>) -> Result<(Comm, Request)> {
    let handle = reserve();
    let mut agreement = Box::new(duplication(comm, hints, handle));
    if let Err(error) = attr::copy_all(Kind::Comm, comm.handle.raw(), handle.raw()) {
        discard(handle);
        // The others' callbacks may have succeeded: what they wait for is passed on in the background.
        agreement.withdraw();
        request::free(request::insert(agreement))?;
        return Err(error);
    }
    if let Err(error) = request::Progress::advance(&mut *agreement) {
        discard(handle);
        return Err(error);
    }
    Ok((handle, request::insert(agreement)))
}

fn duplication(comm: &Rc<Communicator>, hints: Rc<info::Entries>, handle: Comm) -> Agreement {
    errhandler::inherit(comm.handle, handle);
    let original = comm.clone();
    let finish = Box::new(move |contexts: Contexts| {
        let (rank, local) = (original.rank, original.local.clone());
        let duplicate = match &original.remote {
            None => Communicator::intra(contexts[0], rank, local),
            Some(remote) => Communicator::inter(contexts, rank, local, remote.clone()),
        };
        duplicate.add_hints(&hints);
        duplicate.set_topology(original.topology());
        settle(handle, duplicate);
    });
    if comm.is_inter() { Agreement::over_inter(comm, finish) } else { Agreement::over_intra(comm, finish) }
}

pub(crate) fn discard(handle: Comm) {
    errhandler::forget(Target::Comm(handle));
    attr::drop_all(Kind::Comm, handle.raw());
    remove(handle);
}

/// A new intracommunicator over `members`, without attributes: collective over `parent`, an intracommunicator;
/// `None` for a rank that is not a member.
///
/// # Errors
/// Those of the messages that the agreement needs.
pub fn derive(parent: &Rc<Communicator>, members: Rc<Members>) -> Result<Option<Rc<Communicator>>> {
    let contexts = agree(|finish| Agreement::over_intra(parent, finish))?;
    let my_rank = members.rank_of(parent.local.world_rank(parent.rank));
    Ok(my_rank.map(|rank| install(parent, Communicator::intra(contexts[0], rank, members))))
}

/// A communicator of the library's own over the group of `parent`, an intracommunicator: without handle, attributes and
/// error handler.
///
/// # Errors
/// Those of the messages that the agreement needs.
pub fn private(parent: &Rc<Communicator>) -> Result<Rc<Communicator>> {
    let contexts = agree(|finish| Agreement::over_intra(parent, finish))?;
    Ok(Rc::new(Communicator::intra(contexts[0], parent.rank, parent.local.clone())))
}

/// Run an agreement to its end.
fn agree(make: impl FnOnce(Box<dyn FnOnce(Contexts)>) -> Agreement) -> Result<Contexts> {
    let agreed = Rc::new(Cell::new(Contexts::default()));
    let result = agreed.clone();
    request::run(&mut make(Box::new(move |contexts| result.set(contexts))))?;
    Ok(agreed.get())
}

/// The communicator of the ranks that gave the same `color` (>= 0), ordered by key; `None` for `UNDEFINED`.
///
/// # Errors
/// `Class::Arg` for a negative color.
pub fn split(comm: &Rc<Communicator>, color: i32, key: i32) -> Result<Option<Rc<Communicator>>> {
    if color < 0 && color != consts::UNDEFINED {
        return fail(Class::Arg, format!("color {color} is negative and not MPI_UNDEFINED"));
    }
    if comm.is_inter() {
        return super::inter::split(comm, color, key);
    }
    let choices = gather_choices(comm, color, key)?;
    let colors = crate::construct::choices::colors(&choices);
    let contexts =
        share_contexts(comm, if comm.rank == 0 { take_contexts(colors.len()) } else { vec![0; colors.len()] })?;
    let Ok(index) = colors.binary_search(&color) else {
        return Ok(None);
    };
    let ranks = crate::construct::choices::ranks_of_color(&choices, color);
    let members =
        Members::list(ranks.into_iter().map(|rank| comm.local.world_rank(rank)).collect()).of_session(comm.session());
    let my_rank = members.rank_of(comm.local.world_rank(comm.rank)).expect("I gave this color");
    Ok(Some(install(comm, Communicator::intra(contexts[index], my_rank, Rc::new(members)))))
}

/// The communicator of the ranks of `group`; collective over `comm` (MPI_Comm_create). `None` outside the group.
///
/// # Errors
/// `Class::Group` for a group that is not a subset of the (local) group of `comm`.
pub fn create(comm: &Rc<Communicator>, group: &Members) -> Result<Option<Rc<Communicator>>> {
    let ranks = ranks_in(comm, group)?;
    let me = comm.local.world_rank(comm.rank);
    // Intracommunicators: disjoint groups may be made at once, told apart by their first member. Across an
    // intercommunicator both sides' members belong together.
    let color = if comm.is_inter() { 0 } else { ranks.first().map_or(consts::UNDEFINED, |&first| first as i32) };
    match group.rank_of(me) {
        Some(key) => split(comm, color, key as i32),
        None => split(comm, consts::UNDEFINED, 0),
    }
}

fn ranks_in(comm: &Communicator, group: &Members) -> Result<Vec<u32>> {
    group
        .iter()
        .map(|world| match comm.local.rank_of(world) {
            Some(rank) => Ok(rank),
            None => fail(
                Class::Group,
                format!("rank {world} of MPI_COMM_WORLD is in the group but not in the communicator"),
            ),
        })
        .collect()
}

/// The communicator of the ranks of `group`, which alone call this (MPI_Comm_create_group).
///
/// # Errors
/// As [`create`]; `Class::Tag` for a tag out of range.
pub fn create_group(comm: &Rc<Communicator>, group: Rc<Members>, tag: i32) -> Result<Option<Rc<Communicator>>> {
    let tag = construction_tag(tag)?;
    let ranks = ranks_in(comm, &group)?;
    let Some(position) = group.rank_of(comm.local.world_rank(comm.rank)) else {
        return Ok(None);
    };
    let contexts = agree(|finish| Agreement::over_ranks(comm, &ranks, position, tag, finish))?;
    Ok(Some(install(comm, Communicator::intra(contexts[0], position, group))))
}

/// `consts::IDENT`, `CONGRUENT`, `SIMILAR` or `UNEQUAL` (MPI_Comm_compare).
pub fn compare(a: &Communicator, b: &Communicator) -> i32 {
    if a.context == b.context {
        return consts::IDENT;
    }
    let local = a.local.compare(&b.local);
    let result = match (&a.remote, &b.remote) {
        (None, None) => local,
        // Ordered from IDENT to UNEQUAL.
        (Some(a), Some(b)) => local.max(a.compare(b)),
        _ => consts::UNEQUAL,
    };
    if result == consts::IDENT { consts::CONGRUENT } else { result }
}

/// Call the delete callbacks of the attributes and forget the handle (MPI_Comm_free).
///
/// # Errors
/// `Class::Comm` for a predefined communicator; what a delete callback returned, and the communicator stays then.
pub fn free(handle: Comm) -> Result<()> {
    let comm = crate::comm::get(handle)?;
    if handle.dynamic_index().is_none() {
        return fail(Class::Comm, format!("{} cannot be freed", comm.describe()));
    }
    attr::delete_all(Kind::Comm, handle.raw())?;
    errhandler::forget(Target::Comm(handle));
    p2p::buffered::forget(Owner::Comm(handle));
    remove(handle);
    Ok(())
}
