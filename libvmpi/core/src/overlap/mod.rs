//! Blocking calls that return before their message is over (`vmpirun --overlap`): what would be wrong to touch is guarded, and the first touch waits.
//!
//! Reading order: this file (who may, and the table of what has been left), `receive` and `send` (how a call leaves its message behind), `collective` (and the last round of a collective), `settle` (how
//! that ends: by a touch, by the rank's next MPI call, at MPI_Finalize), `sites` (`auto`: where it pays), `guard` (how memory is guarded; it knows nothing of MPI).
//!
//! - A call that is left behind has posted its receive, or announced its send, as it always does: order is MPI's, and peers, carriers and strong progress go on with it.
//! - The rank's next MPI call ends what is over, and waits for all that is not, unless it is one of the few that say what they touch ([`make_way`]). A blocking
//!   call would have waited before that anyway, so waiting is never wrong.
//! - Nothing is left behind where something else than the program's own instructions could reach the buffer, or could need the answer: other threads, windows,
//!   collectives under way, error handlers that return, jobs that survive deaths, requests whose buffers share a page with this one.

mod collective;
pub mod guard;
mod own_memory;
mod receive;
mod send;
mod settle;
mod sites;

pub use receive::{Posted, Wish, conclude, post, withdraw};
pub use send::{leave_request, leave_send, note_waited};
pub use settle::{make_way, settle_all};
pub use sites::{Watch, watch};

use crate::calls::DEFERRED;
use crate::coll::last_round::{self, Leaver};
use crate::datatype::Type;
use crate::errhandler::Target;
use crate::fast_path::collectives_under_way;
use crate::guarded::EntryGuarded;
use crate::lock;
use crate::memory;
use crate::p2p::{self, Slot};
use crate::process::endpoint;
use crate::raise;
use crate::simulate;
use crate::tool::event;
use guard::{Access, held};
use std::sync::atomic::{AtomicU32, Ordering};
use vmpi_shared::control::Overlap;
use vmpi_shared::matching::request::{FLAG_ELEMENTS, state};
use vmpi_shared::mem::checker;
use vmpi_shared::sched::{self, LookUp};

/// A message of fewer bytes is never left behind: guarding its buffer costs as much as waiting for it.
pub const LEAST_BYTES: u64 = 32 << 10;
/// Calls that are left behind at a time; one more waits as it would without all this.
const MOST: usize = u32::BITS as usize;
/// Where more requests than this have been under way, it is not looked through them for one that shares a page.
const MOST_REQUESTS: u32 = 256;
const PAGE_BYTES: u64 = 4 << 10;

/// Of [`MODE`]: nobody has asked yet.
const UNKNOWN: u32 = u32::MAX;
static MODE: AtomicU32 = AtomicU32::new(UNKNOWN);

/// A call that has returned before its message is over.
#[derive(Copy, Clone)]
struct Left {
    slot: Slot,
    receives: bool,
    is_guarded: bool,
    /// What the program has called, and whose error handler hears of it.
    function: &'static str,
    target: Target,
    site: Option<sites::Place>,
    /// Where it has returned to.
    at: usize,
}

/// By ticket.
static TABLE: EntryGuarded<[Option<Left>; MOST]> = EntryGuarded::new([None; MOST]);
/// Places that are kept for calls that have not returned yet, as bits.
static KEPT: AtomicU32 = AtomicU32::new(0);
/// How many there are.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// MPI is up: where something is wanted, collectives tell of their last rounds.
pub fn begin() {
    if Overlap::of_environment() != Ok(Overlap::Off) {
        last_round::tell(Leaver { leave: collective::leave, waited: sites::waited });
    }
}

/// What the job wants (`vmpirun --overlap`), if this process can do it.
pub fn mode() -> Overlap {
    match MODE.load(Ordering::Relaxed) {
        UNKNOWN => prepare(),
        word => Overlap::of_word(word),
    }
}

/// May any call be left behind?
pub fn is_on() -> bool {
    mode() != Overlap::Off
}

/// The first large message: what is wanted, and is it possible here?
#[cold]
fn prepare() -> Overlap {
    let wanted = Overlap::of_environment();
    let mode = match wanted {
        Ok(Overlap::Off) => Ok(Overlap::Off),
        Ok(wanted) => possible().map(|()| wanted),
        Err(why) => Err(why),
    };
    let mode = mode.unwrap_or_else(|why| {
        let endpoint = endpoint();
        // One rank of a node speaks for all.
        if (0..endpoint.me).all(|rank| endpoint.node.is_remote(rank)) {
            eprintln!("vmpi: {why}. Blocking calls wait for their messages, as with --overlap off.");
        }
        Overlap::Off
    });
    if mode != Overlap::Off {
        guard::set_callback(settle::touched, lock::is_at_work);
        held::set_note(event::note_held_signals);
        sched::look_up_with(LookUp { wanted: held::is_held, wakes: held::is_pending });
        lock::on_return(settle::settle_all);
        // Looks functions up by name, for which the loader calls malloc: not for the first time in a touch, which may happen inside malloc.
        let byte = 0u8;
        checker::written(&raw const byte as u64, 1);
    }
    MODE.store(mode as u32, Ordering::Relaxed);
    mode
}

fn possible() -> Result<(), String> {
    let endpoint = endpoint();
    if endpoint.node.header().recovery != 0 {
        return Err(
            "--overlap has no effect with --enable-recovery: a call that has returned could not tell of a failure"
                .into(),
        );
    }
    if simulate::is_on() {
        return Err("--overlap has no effect with --simulate: what a touch waits for would take no virtual time".into());
    }
    if endpoint.job.config().single_copy == 0 {
        return Err(
            "--overlap has no effect with VMPI_SINGLE_COPY=0: only the rank itself could move its messages".into()
        );
    }
    guard::is_possible().map_err(|why| format!("--overlap has no effect: {why}"))
}

/// May a message of so many bytes, in whose name errors go to `target`, be left behind now?
fn may_be_left(bytes: u64, target: Target) -> bool {
    bytes >= LEAST_BYTES
        && !lock::is_threaded()
        && !event::is_wanted()
        && !collectives_under_way()
        && !memory::is_in_windows()
        && raise::is_fatal(target)
}

/// The pages of a span: the first byte, and the one behind the last.
fn pages(addr: u64, len: u64) -> (u64, u64) {
    (addr / PAGE_BYTES * PAGE_BYTES, addr.saturating_add(len).next_multiple_of(PAGE_BYTES))
}

/// The memory that `count` elements at `buf` lie in: the first byte, and how many.
fn span(buf: u64, count: u64, ty: &Type) -> (u64, u64) {
    let reach = (count.saturating_sub(1) as i64).saturating_mul(ty.extent());
    let len = if count == 0 { 0 } else { reach.unsigned_abs().saturating_add(ty.true_extent().max(0) as u64) };
    (buf.wrapping_add_signed(ty.true_lb().saturating_add(reach.min(0))), len)
}

/// Do two spans have a page in common?
fn share_a_page((one, one_len): (u64, u64), (other, other_len): (u64, u64)) -> bool {
    let ((start, end), (first, last)) = (pages(one, one_len), pages(other, other_len));
    one_len != 0 && other_len != 0 && start < last && first < end
}

/// Has a request that is not left behind a buffer in a page of this span, or one of which that is not known? Its bytes might come to a guarded page, or, with `sends`, be fetched from one.
fn is_shared(addr: u64, len: u64, but: Option<Slot>, sends: bool) -> bool {
    let queues = endpoint().queues();
    let used = queues.head.slots_used;
    if used > MOST_REQUESTS {
        return true;
    }
    let (start, end) = pages(addr, len);
    let left = |index: u32| TABLE.with(|table| table.iter().flatten().any(|left| left.slot.0 == index));
    queues.slots.iter().zip(0u32..).take(used as usize).any(|(slot, index)| {
        let receives = matches!(slot.state, state::POSTED | state::TO_PULL | state::PULLING | state::ARRIVED);
        let counts = receives || (sends && matches!(slot.state, state::SENT | state::TO_PUSH));
        if !counts || but == Some(Slot(index)) || left(index) {
            return false;
        }
        let (first, last) = pages(slot.addr, slot.capacity);
        slot.blocks != 0
            || slot.flags & FLAG_ELEMENTS != 0
            || (receives && !p2p::is_dense_receive(Slot(index)))
            || (first < end && start < last)
    })
}

/// A place of the table that is free and not kept.
fn free_place() -> Option<usize> {
    let kept = KEPT.load(Ordering::Relaxed);
    TABLE.with(|table| (0..MOST).find(|place| table[*place].is_none() && kept & 1 << place == 0))
}

/// Keep a place for a call that may be left behind, while it does something else.
fn keep_place(place: usize) {
    KEPT.fetch_or(1 << place, Ordering::Relaxed);
}

fn give_place(place: usize) {
    KEPT.fetch_and(!(1 << place), Ordering::Relaxed);
}

/// Guard this span; false: it cannot be.
fn arm(place: usize, addr: u64, len: u64, access: Access) -> bool {
    guard::arm(addr as usize, len as usize, access, place as u32).is_ok()
}

/// The call returns now; its message goes on.
fn leave(place: usize, left: Left) {
    TABLE.with(|table| table[place] = Some(left));
    COUNT.fetch_add(1, Ordering::Relaxed);
    DEFERRED.fetch_add(1, Ordering::Relaxed);
    lock::note_due(lock::LEFT);
}

/// A request of a large message has been started: a wait for it is to be looked at before it waits.
pub fn note_large_request() {
    lock::note_due(lock::LARGE);
}

/// Persistent requests have been started, maybe of large messages.
pub fn note_started() {
    if is_on() {
        note_large_request();
    }
}
