//! Receives: posted where their bytes land while the buffer is guarded.

use super::guard::{self, Access, held};
use super::{Left, arm, free_place, give_place, is_shared, keep_place, leave, may_be_left, share_a_page, sites, span};
use crate::calls::CALL_RECV;
use crate::comm::Communicator;
use crate::consts;
use crate::datatype::Type;
use crate::errhandler::Target;
use crate::errors::Result;
use crate::p2p::{self, Slot};
use crate::plane::Plane;
use crate::process::endpoint;
use crate::request;
use crate::status::Status;
use std::ffi::c_void;
use std::rc::Rc;
use vmpi_shared::matching::envelope::kind;
use vmpi_shared::matching::request::{FLAG_MATCH, NOBODY, state};

/// A blocking receive.
pub struct Wish<'a> {
    pub comm: &'a Communicator,
    pub target: Target,
    pub buf: *mut c_void,
    pub count: u64,
    pub ty: &'a Rc<Type>,
    pub source: i32,
    pub tag: i32,
    pub function: &'static str,
    /// The program wants to know source, tag and length.
    pub asks: bool,
    /// What the same call sends: the buffer, how many, of what.
    pub beside: Option<(*const c_void, u64, &'a Type)>,
}

/// A receive that has been posted, with its buffer guarded.
pub struct Posted {
    pub(super) slot: Slot,
    pub(super) place: usize,
    pub(super) function: &'static str,
    pub(super) target: Target,
    pub(super) site: Option<sites::Place>,
    pub(super) asks: bool,
}

impl Wish<'_> {
    /// Might a handler of the program's run while the buffer is guarded and the call has not returned? It could touch what lies beside it, and nobody could wait for that.
    fn may_be_interrupted(&self) -> bool {
        (self.asks || self.beside.is_some()) && held::may_come()
    }

    fn bytes(&self) -> u64 {
        self.count * self.ty.size()
    }

    /// Could it be left behind, as far as is known before anything is done for it? A message that is here already is fetched, unless carriers have to bring it.
    fn is_good(&self) -> bool {
        let peers = self.comm.peers();
        let from = match self.source {
            consts::ANY_SOURCE => NOBODY,
            source if (source as u32) < peers.size() => peers.world_rank(source as u32),
            _ => return false,
        };
        if self.may_be_interrupted()
            || !self.ty.is_dense()
            || !may_be_left(self.bytes(), self.target)
            || self.comm.health.check().is_err()
        {
            return false;
        }
        request::progress();
        let endpoint = endpoint();
        match here(self.comm.context + Plane::User as u32, self.source, self.tag, self.bytes()) {
            Here::Yes => false,
            Here::Announced => true,
            // Of a node's own messages those that match are over soon after.
            Here::No => !self.asks || is_far(from) || (from == NOBODY && endpoint.node.header().spread != 0),
        }
    }
}

/// How far has the message come that a receive would match?
pub(super) enum Here {
    No,
    /// Carriers have to bring it.
    Announced,
    Yes,
}

fn is_far(rank: u32) -> bool {
    rank != NOBODY && endpoint().node.is_remote(rank)
}

pub(super) fn here(context: u32, source: i32, tag: i32, room: u64) -> Here {
    let queues = endpoint().queues();
    let Some(entry) = queues.find_unexpected(context, source, tag) else { return Here::No };
    let envelope = &queues.unexpected[entry as usize].envelope;
    match envelope.kind == kind::RTS && is_far(envelope.from) && envelope.len <= room {
        true => Here::Announced,
        false => Here::Yes,
    }
}

/// Post the receive with its buffer guarded. `None`: it is to be received as without all this, and nothing has been done for it.
///
/// # Safety
/// As of `p2p::start_recv`.
pub unsafe fn post(wish: &Wish<'_>) -> Option<Result<Posted>> {
    if !wish.is_good() {
        return None;
    }
    let (lb, len) = (wish.ty.true_lb(), wish.bytes());
    let addr = (wish.buf as u64).wrapping_add_signed(lb);
    let site = sites::here(len)?;
    let place = free_place()?;
    // What is sent must not lie in a page that is not there.
    let meets = |(buf, count, ty): (*const c_void, u64, &Type)| share_a_page((addr, len), span(buf as u64, count, ty));
    if is_shared(addr, len, None, true) || wish.beside.is_some_and(meets) {
        return None;
    }
    let armed = sites::timed(site, || arm(place, addr, len, Access::Away));
    if armed && wish.may_be_interrupted() {
        // The first guard is what tells.
        guard::disarm(place as u32);
        return None;
    }
    if !armed {
        sites::refused(site);
        return None;
    }
    let landing = (guard::landing(addr as usize) as u64).wrapping_add_signed(-lb) as *mut c_void;
    // SAFETY: passed on; the pages of the buffer lie there until the guard is lifted, which is when the receive is over.
    let slot = unsafe { p2p::start_recv(wish.comm, Plane::User, landing, wish.count, wish.ty, wish.source, wish.tag) };
    let slot = match slot {
        Ok(slot) => slot,
        Err(error) => {
            guard::disarm(place as u32);
            return Some(Err(error));
        }
    };
    keep_place(place);
    Some(Ok(Posted { slot, place, function: wish.function, target: wish.target, site, asks: wish.asks }))
}

/// Take a receive back that cannot be waited for; if it has matched, its bytes are wanted in the buffer anyway.
pub fn withdraw(posted: Posted) {
    p2p::cancel(posted.slot);
    while !p2p::is_over(posted.slot) {
        let seen = request::progress();
        if !p2p::is_over(posted.slot) {
            request::wait_more(seen, &[posted.slot], CALL_RECV);
        }
    }
    // What is still to be copied goes where the pages are.
    let _ = p2p::poll(posted.slot);
    guard::disarm(posted.place as u32);
    give_place(posted.place);
}

/// Return as soon as what the program asks for is known: `None` if it asks for nothing, and the message is not over.
///
/// # Errors
/// Of the receive, if it is over.
pub fn conclude(posted: Posted) -> Result<Option<Status>> {
    let Posted { slot, place, function, target, site, asks } = posted;
    loop {
        let seen = request::progress();
        if p2p::is_over(slot) {
            // What is still to be copied goes to the landing: its first and last page may be another guard's, too.
            let outcome = p2p::poll(slot).unwrap_or(Ok(Status::EMPTY));
            guard::disarm(place as u32);
            give_place(place);
            sites::was_over(site);
            return outcome.map(Some);
        }
        let shared = &mut endpoint().queues().slots[slot.0 as usize];
        let is_known = shared.state != state::POSTED;
        let is_truncated = is_known && shared.len > shared.capacity;
        if !is_truncated && (is_known || !asks) {
            let (source, tag, bytes) = (shared.matched_source, shared.matched_tag, shared.len);
            let status = is_known.then_some(Status { source, tag, error: 0, bytes, cancelled: false });
            let site = sites::leaves(site);
            give_place(place);
            let at = sites::caller();
            leave(place, Left { slot, receives: true, is_guarded: true, function, target, site, at });
            return Ok(status);
        }
        shared.flags |= FLAG_MATCH;
        request::wait_more(seen, &[slot], CALL_RECV);
    }
}
