//! The last round of a collective: receives that are posted where their bytes land while the program's buffer is guarded, and sends, as of MPI_Sendrecv. What comes before the last
//! round waits: the rank has to forward or combine what comes, which nobody else can.
//!
//! Either all receives of the round are guarded or none is: blocks of one buffer share pages, and a message that is not left behind must not come to a page that is not there.

use super::guard::{self, Access};
use super::receive::{Here, Posted, conclude, here};
use super::{
    LEAST_BYTES, arm, free_place, give_place, is_on, is_shared, keep_place, may_be_left, send, share_a_page, sites,
    span,
};
use crate::coll::last_round::{Message, Rest};
use crate::errhandler::Target;
use crate::errors::Result;
use crate::handle::Comm;
use crate::p2p::{self, Mode, Slot};
use crate::plane::Plane;
use crate::process;
use crate::request;
use smallvec::SmallVec;
use std::ffi::c_void;

/// Where a receive of the round is guarded: its place in the table, and its buffer.
struct Guarded {
    place: usize,
    addr: u64,
}

type Guards = SmallVec<[Guarded; 8]>;

/// See `Leaver::leave`.
///
/// # Safety
/// As there.
pub(super) unsafe fn leave(comm: Comm, messages: &[Message<'_>]) -> Option<Result<Rest>> {
    let target = Target::Comm(comm);
    let total: u64 = messages.iter().map(|message| message.data.bytes()).sum();
    let largest = messages.iter().map(|message| message.data.bytes()).max().unwrap_or(0);
    if !is_on() || !may_be_left(largest, target) || messages.iter().any(|message| message.comm.health.check().is_err())
    {
        return None;
    }
    request::progress();
    let site = sites::here(total)?;
    // SAFETY: the caller's contract.
    Some(unsafe { start(Target::Comm(comm), messages, site) })
}

/// # Safety
/// As of `leave`.
unsafe fn start(target: Target, messages: &[Message<'_>], mut site: Option<sites::Place>) -> Result<Rest> {
    let function = process::called();
    let guards = sites::timed(site, || guard_receives(messages));
    let (mut rest, mut posted, mut sent) = (Rest::new(), SmallVec::<[Posted; 8]>::new(), SmallVec::<[Slot; 8]>::new());
    let mut next = guards.iter();
    for message in messages {
        let Message { comm, data, ty, peer, tag, receives } = message;
        // SAFETY: the caller's contract; the pages of a guarded buffer lie at its landing until the receive is over.
        unsafe {
            match (*receives, next.as_slice()) {
                (false, _) => {
                    let buf = data.at.cast_const().cast();
                    sent.extend(p2p::start_send(
                        comm,
                        Plane::Collective,
                        buf,
                        data.count,
                        ty,
                        *peer,
                        *tag,
                        Mode::Standard,
                    )?);
                }
                (true, []) => {
                    rest.push(p2p::start_recv(comm, Plane::Collective, data.at.cast(), data.count, ty, *peer, *tag)?);
                }
                (true, [Guarded { place, addr }, ..]) => {
                    next.next();
                    let landing = (guard::landing(*addr as usize) as u64).wrapping_add_signed(-data.elem.true_lb);
                    let landing = landing as *mut c_void;
                    let slot = p2p::start_recv(comm, Plane::Collective, landing, data.count, ty, *peer, *tag)?;
                    let site = site.take();
                    posted.push(Posted { slot, place: *place, function, target, site, asks: false });
                }
            }
        }
    }
    for slot in sent {
        if !send::leave_started(slot, target, function, site) {
            rest.push(slot);
        } else {
            site = None;
        }
    }
    posted.into_iter().try_for_each(|posted| conclude(posted).map(drop))?;
    Ok(rest)
}

/// Guard the buffers of all receives, if all can be and one is worth it; else nothing.
fn guard_receives(messages: &[Message<'_>]) -> Guards {
    let mut guards = Guards::new();
    let is_done = can_be_guarded(messages)
        && messages.iter().filter(|message| message.receives).all(|message| {
            let (addr, len) = span_of(message);
            let Some(place) = free_place() else { return false };
            if !arm(place, addr, len, Access::Away) {
                return false;
            }
            keep_place(place);
            guards.push(Guarded { place, addr });
            true
        });
    if !is_done {
        for Guarded { place, .. } in guards.drain(..) {
            guard::disarm(place as u32);
            give_place(place);
        }
    }
    guards
}

fn can_be_guarded(messages: &[Message<'_>]) -> bool {
    let receives = || messages.iter().filter(|message| message.receives);
    let is_fit = |message: &Message<'_>| {
        let (data, (addr, len)) = (&message.data, span_of(message));
        let sends = || messages.iter().filter(|other| !other.receives && other.data.bytes() > 0);
        data.elem.dense
            && len >= LEAST_BYTES
            && !sends().any(|other| share_a_page((addr, len), span_of(other)))
            && !is_shared(addr, len, None, true)
    };
    let is_worth = |message: &Message<'_>| {
        let context = message.comm.context + Plane::Collective as u32;
        !matches!(here(context, message.peer, message.tag, message.data.bytes()), Here::Yes)
    };
    receives().all(is_fit) && receives().any(is_worth)
}

fn span_of(message: &Message<'_>) -> (u64, u64) {
    span(message.data.at.addr() as u64, message.data.count, message.ty)
}
