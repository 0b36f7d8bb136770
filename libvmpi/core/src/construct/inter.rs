//! Intercommunicators: made of two groups by their leaders, split, merged (MPI 4.1 section 7.6).
//!
//! Everything between the groups goes through their first members (or the leaders that the program named), and from
//! there to each group by a broadcast over its local communicator.

use crate::comm::{CONTEXTS, Communicator, Contexts, check_peer, construction_tag, install, leads};
use crate::construct::choices::{decode_choices, gather_choices, share_contexts, take_contexts};
use crate::consts::dt;
use crate::errors::{Class, Result, fail};
use crate::group::Members;
use crate::p2p::{self, Mode};
use crate::plane::Plane;
use crate::request;
use crate::{coll, datatype};
use std::rc::Rc;

/// Exchange words with `peer`, which sends as many as `theirs` has room for.
fn exchange(comm: &Communicator, peer: u32, tag: i32, mine: &[u32], theirs: &mut [u32]) -> Result<()> {
    let byte = datatype::get(dt::BYTE)?;
    let (peer, plane) = (peer as i32, Plane::Collective);
    let mut slots = Vec::with_capacity(2);
    let (room, length) = (size_of_val(theirs) as u64, size_of_val(mine) as u64);
    // SAFETY: `theirs` is borrowed until `wait_all` has returned.
    slots.push(unsafe { p2p::start_recv(comm, plane, theirs.as_mut_ptr().cast(), room, &byte, peer, tag)? });
    // SAFETY: `mine` is borrowed until `wait_all` has returned.
    let send = unsafe { p2p::start_send(comm, plane, mine.as_ptr().cast(), length, &byte, peer, tag, Mode::Standard) };
    match send {
        Ok(slot) => slots.extend(slot),
        // The receive was started and would write into `theirs` later: nothing sound is left but to wait for it.
        Err(error) => return request::wait_all(&slots).and(Err(error)),
    }
    request::wait_all(&slots)
}

/// Exchange words between the groups of an intercommunicator; all ranks of both call it. The other side's words.
fn swap(comm: &Rc<Communicator>, mine: &[u32], their_count: usize) -> Result<Vec<u32>> {
    let tag = comm.next_collective_tag();
    let mut theirs = vec![0; their_count];
    if comm.rank == 0 {
        exchange(comm, 0, tag, mine, &mut theirs)?;
    }
    share_contexts(comm.local_phase(), theirs)
}

/// `count` contexts taken by the leading group and known to all of both.
fn contexts_for_both(comm: &Rc<Communicator>, count: usize) -> Result<Vec<u32>> {
    if !leads(comm) {
        return swap(comm, &[], count);
    }
    let taken = if comm.rank == 0 { take_contexts(count) } else { vec![0; count] };
    swap(comm, &taken, 0)?;
    share_contexts(comm.local_phase(), taken)
}

/// MPI_Comm_split of an intercommunicator: `None` where one side has no rank of that color.
pub(super) fn split(comm: &Rc<Communicator>, color: i32, key: i32) -> Result<Option<Rc<Communicator>>> {
    let mine = gather_choices(comm.local_phase(), color, key)?;
    let words: Vec<u32> = mine.iter().flat_map(|&(color, key)| [color as u32, key as u32]).collect();
    let theirs = swap(comm, &words, 2 * comm.peers().size() as usize)?;
    let theirs = decode_choices(&theirs.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>());

    let mut common = crate::construct::choices::colors(&mine);
    let on_their_side = crate::construct::choices::colors(&theirs);
    common.retain(|color| on_their_side.binary_search(color).is_ok());
    let contexts = contexts_for_both(comm, CONTEXTS * common.len())?;
    let Ok(index) = common.binary_search(&color) else {
        return Ok(None);
    };
    let members = |all: &Members, choices: &[(i32, i32)]| {
        let ranks = crate::construct::choices::ranks_of_color(choices, color);
        Rc::new(Members::list(ranks.into_iter().map(|rank| all.world_rank(rank)).collect()).of_session(comm.session()))
    };
    let (local, remote) = (members(&comm.local, &mine), members(comm.peers(), &theirs));
    let my_rank = local.rank_of(comm.local.world_rank(comm.rank)).expect("I gave this color");
    let contexts: Contexts = std::array::from_fn(|i| contexts[CONTEXTS * index + i]);
    Ok(Some(install(comm, Communicator::inter(contexts, my_rank, local, remote))))
}

/// Join the groups of two intracommunicators (MPI_Intercomm_create).
///
/// `peer` is looked at by the local leader only: the communicator that reaches the other leader, and its rank there.
///
/// # Errors
/// `Class::Rank` for a leader out of range, `Class::Tag`, `Class::Comm` for groups that overlap; if the leader fails,
/// all ranks of the local group fail.
pub fn intercomm_create(
    local: &Rc<Communicator>,
    local_leader: i32,
    peer: impl FnOnce() -> Result<Rc<Communicator>>,
    remote_leader: i32,
    tag: i32,
) -> Result<Rc<Communicator>> {
    let local_leader = match u32::try_from(local_leader) {
        Ok(leader) if leader < local.size() => leader,
        _ => return fail(Class::Rank, format!("local leader {local_leader} is not in the local communicator")),
    };
    let meeting = if local.rank == local_leader {
        Some(peer().and_then(|peer| meet(local, &peer, remote_leader, construction_tag(tag)?)))
    } else {
        None
    };
    // Header: size of the remote group (0: the leader failed), contexts; then the remote group.
    let mut header = match &meeting {
        Some(Ok((remote, contexts))) => [remote.len() as u32, contexts[0], contexts[1], contexts[2]],
        _ => [0; 1 + CONTEXTS],
    };
    bcast(local, &mut header, local_leader)?;
    let mut remote = match meeting {
        Some(Err(error)) => return Err(error),
        Some(Ok((remote, _))) => remote,
        None if header[0] == 0 => {
            return fail(Class::Other, format!("local leader {local_leader} could not reach the remote group"));
        }
        None => vec![0; header[0] as usize],
    };
    bcast(local, &mut remote, local_leader)?;
    let remote = Members::list(remote);
    if let Some(shared) = remote.iter().find(|&world| local.local.rank_of(world).is_some()) {
        return fail(Class::Comm, format!("rank {shared} of MPI_COMM_WORLD is in both groups"));
    }
    let contexts = [header[1], header[2], header[3]];
    Ok(install(local, Communicator::inter(contexts, local.rank, local.local.clone(), Rc::new(remote))))
}

/// The leaders' part of [`intercomm_create`]: the other group's job-wide ranks, and the contexts.
fn meet(local: &Communicator, peer: &Communicator, leader: i32, tag: i32) -> Result<(Vec<u32>, Contexts)> {
    let leader = check_peer(peer, leader)?;
    let (me, other) = (peer.local.world_rank(peer.rank), peer.peers().world_rank(leader));
    if me == other {
        return fail(Class::Rank, format!("remote leader {leader} is the local leader itself"));
    }
    let contexts = if me < other { take_contexts(CONTEXTS) } else { vec![0; CONTEXTS] };
    let mine = [local.size(), contexts[0], contexts[1], contexts[2]];
    let mut theirs = [0; 1 + CONTEXTS];
    exchange(peer, leader, tag, &mine, &mut theirs)?;
    let members: Vec<u32> = local.local.iter().collect();
    let mut remote = vec![0; theirs[0] as usize];
    exchange(peer, leader, tag, &members, &mut remote)?;
    let agreed = if me < other { &mine } else { &theirs };
    Ok((remote, [agreed[1], agreed[2], agreed[3]]))
}

/// Broadcast words from `root` of an intracommunicator.
pub(crate) fn bcast(comm: &Communicator, words: &mut [u32], root: u32) -> Result<()> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    coll::bcast_bytes(comm, &mut bytes, root)?;
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    Ok(())
}

/// The intercommunicator of the group of `local` and the job's ranks `remote`, whose contexts both groups know; local.
///
/// # Errors
/// `Class::Comm` for groups that make no intercommunicator.
pub fn connect(local: &Rc<Communicator>, contexts: [u32; CONTEXTS], remote: Vec<u32>) -> Result<Rc<Communicator>> {
    let limit = crate::process::node().header().ranks;
    if let Some(bad) = remote.iter().find(|&&rank| rank >= limit || local.local.rank_of(rank).is_some()) {
        return fail(Class::Comm, format!("rank {bad} of the job cannot be in the remote group"));
    }
    if remote.is_empty() {
        return fail(Class::Comm, "the remote group is empty");
    }
    let remote = Rc::new(Members::list(remote));
    Ok(install(local, Communicator::inter(contexts, local.rank, local.local.clone(), remote)))
}

/// One intracommunicator of both groups (MPI_Intercomm_merge): the group that says `high` comes last; if both say the
/// same, the leading group comes first.
///
/// # Errors
/// Those of the messages needed.
pub fn intercomm_merge(comm: &Rc<Communicator>, high: bool) -> Result<Rc<Communicator>> {
    // Rank 0 speaks for its group; MPI requires that all of a group say the same.
    let high = share_contexts(comm.local_phase(), vec![u32::from(high)])?[0];
    let their_high = swap(comm, &[high], 1)?[0];
    let contexts = contexts_for_both(comm, 1)?;
    let we_first = if high != their_high { high < their_high } else { leads(comm) };
    let (first, last) = if we_first { (&comm.local, comm.peers()) } else { (comm.peers(), &comm.local) };
    let members = Members::list(first.iter().chain(last.iter()).collect()).of_session(comm.session());
    let my_rank = comm.rank + if we_first { 0 } else { comm.peers().size() };
    Ok(install(comm, Communicator::intra(contexts[0], my_rank, Rc::new(members))))
}
