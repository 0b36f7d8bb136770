//! How a rank waits: look, arm, suspend, look again.

use super::poll_again::note_requests;
use crate::calls::{self, CALL_COLLECTIVE, CALL_WAIT};
use crate::check;
use crate::errors::Result;
use crate::failure;
use crate::fast_path::collectives_under_way;
use crate::guarded::EntryGuarded;
use crate::handle::Request;
use crate::lock;
use crate::overlap::guard::held;
use crate::p2p::slot::poll;
use crate::p2p::{self, Slot, failed};
use crate::process::endpoint;
use crate::request;
use crate::request::progress::{poll_generalized, progress, progress_as};
use crate::request::table::{Need, Progress, REQUESTS, Stands, is_casualty, stands};
use crate::simulate;
use crate::status::Status;
use crate::tool::event;
use vmpi_shared::endpoint::inspect;
use vmpi_shared::matching::request::{FLAG_AWAITED, FLAG_WAKE, state};

/// A test found nothing: let another rank of this core run, if one is READY. True if one ran.
pub fn poll_missed() -> bool {
    if event::is_wanted() && simulate::is_on() {
        return simulate::wait::missed();
    }
    let ran = endpoint().yield_core();
    if ran {
        progress();
    }
    ran
}

/// The same of a test or probe for a message, which ends by what comes, and by nothing else: another rank runs if it has a reason.
pub fn message_missed() -> bool {
    if collectives_under_way() || (event::is_wanted() && simulate::is_on()) {
        return poll_missed();
    }
    let ran = endpoint().poll_missed();
    if ran {
        progress();
    }
    ran
}

/// Suspend until something has happened since `seen`. The caller has armed what it waits for and looks again afterwards.
pub fn block(seen: u64, call: u32, peer: i32, tag: i32) {
    lock::wait_outside(seen, || {
        // Who holds none of it itself waits for others to give some back; the daemon tells if nobody can.
        if endpoint().is_stuck() && endpoint().holds_memory() {
            drowned();
        }
        if event::is_wanted() {
            return block_noted(call, peer, tag);
        }
        endpoint().suspend(call, peer, tag);
    });
}

/// The same where somebody wants to know that this rank waits.
#[cold]
fn block_noted(call: u32, peer: i32, tag: i32) {
    if check::is_on() {
        check::far::look();
    }
    event::around(peer, tag, || {
        if simulate::is_on() {
            simulate::wait::wait(call, peer, tag, collectives_under_way());
        } else {
            endpoint().suspend(call, peer, tag);
        }
    });
}

/// What would end the wait can only come behind a message for which there is no room.
#[cold]
fn drowned() -> ! {
    let job = &endpoint().job;
    let why = inspect::largest_crowd(job).map_or_else(String::new, |crowd| format!(": {}", crowd.sentence()));
    crate::process::abort(
        125,
        &format!("no memory is left for the messages that this rank must take before the one that it waits for{why}"),
    )
}

/// Suspend until all `slots` are over. They stay taken.
pub fn wait_slots(slots: &[Slot], call: u32) {
    loop {
        let seen = progress();
        let open: Vec<Slot> = slots.iter().copied().filter(|slot| !p2p::is_over(*slot)).collect();
        if open.is_empty() {
            return;
        }
        await_slots(seen, &open, open.len() as u32, call);
    }
}

/// One suspension until `open` are over, or something else needs this rank; the caller looks again, and knows then which are.
pub(crate) fn wait_more(seen: u64, open: &[Slot], call: u32) {
    await_slots(seen, open, open.len() as u32, call);
}

/// As `wait_slots` for one message, without allocation: the hot path of MPI_Send and MPI_Recv.
#[inline]
pub fn wait_slot(slot: Slot, call: u32) -> Result<Status> {
    loop {
        let seen = progress();
        if let Some(result) = p2p::poll(slot) {
            return result;
        }
        if failed::in_doubt(slot) {
            p2p::abandon(slot);
            return Err(failure::failed_source());
        }
        await_slots(seen, &[slot], 1, call);
    }
}

/// One suspension: until `missing` of the open slots are over, or something else needs this rank. True if all were to be over, and are, and
/// nothing else needs this rank; otherwise the caller looks.
pub(super) fn await_slots(seen: u64, open: &[Slot], missing: u32, call: u32) -> bool {
    let (mut peer, mut tag) = (-1, -1);
    let mut flag = FLAG_AWAITED;
    if lock::is_threaded() {
        // Several threads wait for different things: any completion makes them look.
        flag = FLAG_WAKE;
    } else {
        endpoint().arm(missing.min(open.len() as u32));
    }
    let queues = endpoint().queues();
    for (place, slot) in open.iter().enumerate() {
        let shared = &mut queues.slots[slot.0 as usize];
        shared.flags |= flag;
        let sent = shared.state == state::SENT;
        if place == 0 {
            // A send has no source; its receiver is told by its number in the job.
            peer = if sent { shared.from as i32 } else { shared.source };
            tag = shared.tag;
        }
        if sent {
            endpoint().await_receiver(shared.from);
        }
    }
    block(seen, call, peer, tag);
    let queues = endpoint().queues();
    for slot in open {
        queues.slots[slot.0 as usize].flags &= !FLAG_AWAITED;
    }
    if held::is_held() && let_held_signals_come() {
        return false;
    }
    let all = flag == FLAG_AWAITED && !open.is_empty() && missing as usize >= open.len();
    all && queues.head.wait_count == 0 && queues.head.wake == 0
}

/// True: some have come, and their handlers may have called MPI.
#[cold]
fn let_held_signals_come() -> bool {
    let pending = held::is_pending();
    if pending {
        lock::let_signals_come();
    }
    pending
}

/// Run an operation to its end: the blocking form of a collective.
pub fn run(operation: &mut dyn Progress) -> Result<Status> {
    let mut slots = Vec::new();
    loop {
        let seen = progress();
        if let Some(status) = operation.advance()? {
            return Ok(status);
        }
        slots.clear();
        operation.pending(&mut slots);
        slots.retain(|slot| !p2p::is_over(*slot));
        if !slots.is_empty() {
            let missing = if operation.needs_all() { slots.len() as u32 } else { 1 };
            await_slots(seen, &slots, missing, CALL_COLLECTIVE);
        }
    }
}

/// How a set of requests stands; the messages under way are told apart.
#[derive(Default)]
struct Tally {
    complete: usize,
    /// Collectives under way: their slots are flagged WAKE already, by `advance`.
    advancing: usize,
    foreign: usize,
    first: First,
}

/// The complete request that a call takes which takes one.
///
/// Of receives it is the one that was posted first, for that took the message that came first, if both would have taken it. A program with several receives
/// alike then sees what one sender has sent in the order in which it was sent. The standard lets the call choose; HPCC's MPIRandomAccess ends when the last sender's
/// last word has been seen, and cancels the others, whatever they hold: with the lowest index it lost messages in half of its runs.
#[derive(Default)]
struct First {
    index: Option<usize>,
    /// If that is a receive: when it was posted.
    posted: Option<u64>,
}

impl First {
    #[inline]
    fn note(&mut self, index: usize, posted: Option<u64>) {
        let before = |first| posted.is_some_and(|posted| posted < first);
        if self.index.is_none() || self.posted.is_some_and(before) {
            *self = First { index: Some(index), posted };
        }
    }
}

impl Tally {
    /// `ONE`: note the first one, too.
    #[inline(always)]
    fn of<const ONE: bool>(requests: &[Request], open: &mut Vec<Slot>) -> Result<Tally> {
        let mut tally = Tally::default();
        let queues = endpoint().queues();
        REQUESTS.with(|table| {
            for (index, request) in requests.iter().enumerate() {
                let over = match stands(table, &queues, *request)? {
                    Stands::Inactive => continue,
                    Stands::Complete => None,
                    Stands::Over(slot) => Some(slot),
                    Stands::Open(slot) => {
                        open.push(slot);
                        continue;
                    }
                    Stands::Advancing => {
                        tally.advancing += 1;
                        continue;
                    }
                    Stands::Foreign => {
                        tally.foreign += 1;
                        continue;
                    }
                };
                tally.complete += 1;
                if ONE {
                    let received = over.filter(|_| table.get(*request).is_some_and(|entry| entry.receive));
                    tally.first.note(index, received.map(|slot| queues.slots[slot.0 as usize].order));
                }
            }
            Ok(tally)
        })
    }

    /// Are enough of the requests complete?
    fn is_enough<const ONE: bool>(&self, open: &[Slot]) -> bool {
        (ONE && self.complete > 0) || (open.is_empty() && self.advancing == 0 && self.foreign == 0)
    }
}

/// A list for the messages that a call waits for; it goes from call to call.
static OPEN: EntryGuarded<Vec<Slot>> = EntryGuarded::new(Vec::new());

/// Suspend until all of `requests` are complete; finishes none of them.
///
/// # Errors
/// `Class::Request` for a handle that names no request.
pub fn wait_for_all(requests: &[Request]) -> Result<()> {
    with_list(|open| wait_with::<false>(requests, open)).map(drop)
}

/// As `wait_for_one`, where nobody else has a word in it.
pub(super) fn wait_for_first(requests: &[Request]) -> Result<Option<usize>> {
    with_list(|open| wait_with::<true>(requests, open))
}

/// Not one list for all: other threads may wait meanwhile.
#[inline(always)]
fn with_list<R>(work: impl FnOnce(&mut Vec<Slot>) -> R) -> R {
    let mut open = OPEN.with(std::mem::take);
    let result = work(&mut open);
    OPEN.with(|list| *list = open);
    result
}

fn wait_with<const ONE: bool>(requests: &[Request], open: &mut Vec<Slot>) -> Result<Option<usize>> {
    loop {
        let seen = progress_as::<ONE>();
        open.clear();
        let tally = Tally::of::<ONE>(requests, open)?;
        let casualty = || requests.iter().any(|request| is_casualty(*request));
        if tally.is_enough::<ONE>(open) || (!ONE && !failure::is_quiet() && casualty()) {
            return Ok(tally.first.index);
        }
        let polled = tally.foreign > 0 && poll_generalized(requests)?;
        if polled || (tally.foreign > 0 && !lock::is_threaded()) {
            // What the program has just been asked to do may be done.
            if polled {
                open.clear();
                let now = Tally::of::<ONE>(requests, open)?;
                if now.is_enough::<ONE>(open) {
                    return Ok(now.first.index);
                }
            }
            // A generalized request is completed by the program itself, from a thread that may not call MPI at the same
            // time: nothing here can be woken by it, so look again in a moment.
            if !poll_missed() {
                std::thread::sleep(std::time::Duration::from_micros(50));
            }
            continue;
        }
        let missing = if ONE { 1 } else { open.len() as u32 };
        // What has come besides may lie in the inbox: often messages that no receive has been posted for yet.
        if await_slots(seen, open, missing, CALL_WAIT) && tally.advancing == 0 && tally.foreign == 0 {
            return if ONE { Ok(Tally::of::<ONE>(requests, open)?.first.index) } else { Ok(None) };
        }
    }
}

/// Look whether enough of `requests` are complete. Something that has come has been taken in.
#[inline]
pub(super) fn look_with<const ONE: bool>(requests: &[Request]) -> Result<Option<Option<usize>>> {
    with_list(|open| test_with::<ONE>(requests, open))
}

fn test_with<const ONE: bool>(requests: &[Request], open: &mut Vec<Slot>) -> Result<Option<Option<usize>>> {
    for attempt in 0..2 {
        open.clear();
        let casualty = || requests.iter().any(|request| is_casualty(*request));
        let mut tally = Tally::of::<ONE>(requests, open)?;
        if tally.foreign > 0 && poll_generalized(requests)? {
            open.clear();
            tally = Tally::of::<ONE>(requests, open)?;
        }
        if (!ONE && !failure::is_quiet() && casualty()) || tally.is_enough::<ONE>(open) {
            return Ok(Some(tally.first.index));
        }
        let messages = tally.advancing == 0 && tally.foreign == 0;
        let missed = if messages { message_missed } else { poll_missed };
        if attempt == 0 && missed() {
            continue;
        }
        if messages {
            note_requests(if ONE { Need::One } else { Need::All }, requests);
        }
        break;
    }
    Ok(None)
}

/// Suspend until every slot is complete (for blocking code that is not a schedule); frees them; first error.
pub fn wait_all(slots: &[Slot]) -> Result<()> {
    request::wait_slots(slots, calls::CALL_COLLECTIVE);
    let mut result = Ok(());
    for slot in slots {
        if let Some(Err(error)) = poll(*slot)
            && result.is_ok()
        {
            result = Err(error);
        }
    }
    result
}
