//! Communicators of groups alone, with no parent: of sessions' process sets (MPI 4.1 section 7.4.2).
//!
//! The members meet on a context that every process of the job knows. A message there names what it is for (the string
//! tag and the group), so that several constructions under way at once, by threads, take only their own; one that is
//! for another construction is kept for that.

use super::agree::tree;
use crate::calls;
use crate::comm::{Communicator, construction_tag, install_with};
use crate::construct::choices::take_contexts;
use crate::construct::intercomm_create;
use crate::consts::dt;
use crate::datatype;
use crate::errors::{Class, Result, fail};
use crate::failure::Health;
use crate::group::Members;
use crate::guarded::EntryGuarded;
use crate::handle::Errhandler;
use crate::info;
use crate::p2p::{self, Mode};
use crate::plane::Plane;
use crate::{process, request};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

/// Serial number 0, as MPI_COMM_WORLD's, and a cell that no job has: no communicator gets this context.
const MEETING_CONTEXT: u32 = 0x7ff << 1;

/// What a construction is called; the same on all its members.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Name {
    tag: Vec<u8>,
    group: u64,
}

impl Name {
    fn new(tag: &[u8], group: &Members) -> Name {
        let mut hasher = DefaultHasher::new();
        group.iter().collect::<Vec<u32>>().hash(&mut hasher);
        Name { tag: tag.to_vec(), group: hasher.finish() }
    }

    /// Where its messages meet.
    fn tag(&self) -> i32 {
        let mut hasher = DefaultHasher::new();
        (&self.tag, self.group).hash(&mut hasher);
        (hasher.finish() & 0x3fff_ffff) as i32
    }

    fn message(&self, context: u32) -> Vec<u8> {
        let mut bytes = context.to_ne_bytes().to_vec();
        bytes.extend(self.group.to_ne_bytes());
        bytes.extend(&self.tag);
        bytes
    }
}

/// A message for a construction that has not come to ask for it.
struct Stray {
    from: u32,
    name: Name,
    context: u32,
}

static STRAYS: EntryGuarded<Vec<Stray>> = EntryGuarded::new(Vec::new());

/// All processes of the job, on the meeting context, where `those` meet.
fn meeting_place(those: Rc<Members>) -> Rc<Communicator> {
    let all = Rc::new(Members::range(0, process::node().header().ranks));
    let health = Health::new(vec![MEETING_CONTEXT], vec![those], true);
    let mut place = Communicator::with_health(MEETING_CONTEXT, process::endpoint_rank(), all, health);
    place.borrowed = true;
    Rc::new(place)
}

/// The context for a construction called `name`, from the process `parent`.
fn hear(place: &Communicator, parent: u32, name: &Name) -> Result<u32> {
    let kept = STRAYS.with(|strays| {
        let index = strays.iter().position(|stray| stray.from == parent && stray.name == *name)?;
        Some(strays.remove(index).context)
    });
    if let Some(context) = kept {
        return Ok(context);
    }
    let byte = datatype::get(dt::BYTE)?;
    loop {
        let mut buffer = vec![0u8; 12 + MAX_TAG_BYTES];
        let (buf, room) = (buffer.as_mut_ptr().cast(), buffer.len() as u64);
        // SAFETY: the buffer lives until the slot is over.
        let slot = unsafe { p2p::start_recv(place, Plane::Collective, buf, room, &byte, parent as i32, name.tag())? };
        let status = request::wait_slot(slot, calls::CALL_COLLECTIVE)?;
        buffer.truncate(status.bytes as usize);
        let (Some((head, rest)), true) = (buffer.split_first_chunk::<4>(), buffer.len() >= 12) else {
            return fail(Class::Intern, "a message about a new communicator makes no sense");
        };
        let (group, tag) = rest.split_first_chunk::<8>().expect("12 bytes at least");
        let heard = Name { tag: tag.to_vec(), group: u64::from_ne_bytes(*group) };
        let context = u32::from_ne_bytes(*head);
        if heard == *name {
            return Ok(context);
        }
        STRAYS.with(|strays| strays.push(Stray { from: parent, name: heard, context }));
    }
}

/// Longest string tag of any face.
const MAX_TAG_BYTES: usize = 1024;

/// Agree on a context for `name` with the members of `group`, among which this process is number `position`.
fn agree(group: &Rc<Members>, position: u32, name: &Name) -> Result<u32> {
    let place = meeting_place(group.clone());
    place.health.check_all()?;
    let (parent, children) = tree(position, group.size());
    let context = match parent {
        Some(parent) => hear(&place, group.world_rank(parent), name)?,
        None => take_contexts(1)[0],
    };
    let message = name.message(context);
    let byte = datatype::get(dt::BYTE)?;
    let mut slots = Vec::with_capacity(children.len());
    for child in children {
        let (buf, bytes, to) = (message.as_ptr().cast(), message.len() as u64, group.world_rank(child) as i32);
        // SAFETY: the message is not changed, and lives until all slots are over.
        slots.extend(unsafe {
            p2p::start_send(&place, Plane::Collective, buf, bytes, &byte, to, name.tag(), Mode::Standard)?
        });
    }
    request::wait_all(&slots)?;
    Ok(context)
}

/// This process's place in the group.
fn place_in(group: &Members) -> Result<u32> {
    let me = process::endpoint_rank();
    match group.rank_of(me) {
        Some(position) => Ok(position),
        None => fail(Class::Group, "the calling process is not in the group"),
    }
}

/// A communicator of the members of `group`, all of which call this with the same `tag` (MPI_Comm_create_from_group);
/// `None` for the empty group.
///
/// # Errors
/// `Class::Group` if this process is not a member; `Class::Errhandler`.
pub fn create_from_group(
    group: &Rc<Members>,
    tag: &[u8],
    hints: &info::Entries,
    handler: Errhandler,
) -> Result<Option<Rc<Communicator>>> {
    if group.size() == 0 {
        return Ok(None);
    }
    let position = place_in(group)?;
    let context = agree(group, position, &Name::new(tag, group))?;
    let comm = Communicator::intra(context, position, group.clone());
    comm.add_hints(hints);
    install_with(comm, handler).map(Some)
}

/// An intercommunicator of two groups; each leader knows the other's group and its leader's rank there
/// (MPI_Intercomm_create_from_groups).
///
/// # Errors
/// As [`create_from_group`] and [`intercomm_create`].
pub fn intercomm_create_from_groups(
    local: &Rc<Members>,
    local_leader: i32,
    remote: impl FnOnce() -> Result<Rc<Members>>,
    remote_leader: i32,
    tag: &[u8],
    hints: &info::Entries,
    handler: Errhandler,
) -> Result<Rc<Communicator>> {
    let position = place_in(local)?;
    let name = Name::new(tag, local);
    let private = Rc::new(Communicator::intra(agree(local, position, &name)?, position, local.clone()));
    // Both sides' leaders must come to the same number, so it is the string tag's alone.
    let meeting_tag = Name { tag: tag.to_vec(), group: 0 }.tag();
    construction_tag(meeting_tag)?;
    let mut leader = remote_leader;
    let peer = || {
        let remote = remote()?;
        let valid = u32::try_from(remote_leader).ok().filter(|&leader| leader < remote.size());
        let Some(valid) = valid else {
            return fail(Class::Rank, format!("remote leader {remote_leader} is not in the remote group"));
        };
        leader = remote.world_rank(valid) as i32;
        // The leaders exchange what they know even if others have failed.
        Ok(meeting_place(Rc::new(Members::list(vec![leader as u32]))))
    };
    // The peer is looked at first: it is what finds the leader's rank at the meeting place.
    let peer = if local_leader == position as i32 { Some(peer()) } else { None };
    let made = intercomm_create(
        &private,
        local_leader,
        || peer.unwrap_or_else(|| fail(Class::Rank, "only the local leader asks for the peer")),
        leader,
        meeting_tag,
    )?;
    made.add_hints(hints);
    crate::comm::set_handler(&made, handler)?;
    Ok(made)
}
