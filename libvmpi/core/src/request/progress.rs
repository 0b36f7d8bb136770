//! Going on with what is under way: collectives, and messages whose request was freed.

use crate::errors::{Class, Result, fail};
use crate::fast_path::{self, collectives_under_way};
use crate::guarded::EntryGuarded;
use crate::handle::Request;
use crate::lock;
use crate::p2p::take_in::take_in_as;
use crate::p2p::{self, Slot};
use crate::process::endpoint;
use crate::request::copied;
use crate::request::table::{
    Active, Entry, Kind, Progress, REQUESTS, StartCollective, StartMessage, insert_entry, remove, unknown,
};
use crate::status::Status;
use std::rc::Rc;
use vmpi_shared::matching::request::FLAG_WAKE;

/// Collectives under way, and messages whose request was freed.
static COLLECTIVES: EntryGuarded<Vec<Request>> = EntryGuarded::new(Vec::new());
pub(super) static ORPHANS: EntryGuarded<Vec<Request>> = EntryGuarded::new(Vec::new());

/// Make a request of an operation that has been started (its first `advance` was called by the caller or not).
pub fn insert(operation: Box<dyn Progress>) -> Request {
    let request = insert_entry(Kind::Once, Active::Collective(operation), false);
    with_collectives(|list| list.push(request));
    advance(request);
    request
}

/// Let the program look after those of its own requests that have a function for that. Were there any?
///
/// # Errors
/// What the function returns.
pub(super) fn poll_generalized(requests: &[Request]) -> Result<bool> {
    let mut any = false;
    for &request in requests {
        let asked = REQUESTS.with(|requests| match &requests.get(request)?.active {
            Active::Generalized { request, complete: false } => request.poll.is_some().then(|| request.clone()),
            _ => None,
        });
        // The function may call MPI.
        if let Some(poll) = asked.as_ref().and_then(|generalized| generalized.poll.as_ref()) {
            poll()?;
            any = true;
        }
    }
    Ok(any)
}

/// MPI_Start.
///
/// # Errors
/// `Class::Request` if it is not an inactive persistent request.
pub fn start(request: Request) -> Result<()> {
    enum Starter {
        Message(StartMessage),
        Collective(Rc<std::cell::RefCell<StartCollective>>),
    }
    let starter = REQUESTS.with(|requests| match requests.get(request) {
        None => Err(unknown(request)),
        Some(Entry { kind: Kind::Once, .. }) => fail(Class::Request, "the request is not persistent"),
        Some(Entry { active, .. }) if !matches!(active, Active::Inactive) => {
            fail(Class::Request, "the persistent request is active already")
        }
        Some(Entry { kind: Kind::PersistentMessage(start), .. }) => Ok(Starter::Message(start.clone())),
        Some(Entry { kind: Kind::PersistentCollective(start) | Kind::Partitioned(start, _), .. }) => {
            Ok(Starter::Collective(start.clone()))
        }
    })?;
    copied::take(request);
    let active = match starter {
        Starter::Message(start) => start()?.map_or(Active::Done(Status::EMPTY), Active::Message),
        Starter::Collective(start) => Active::Collective((start.borrow_mut())()?),
    };
    let collective = matches!(active, Active::Collective(_));
    REQUESTS.with(|requests| requests.get_mut(request).map(|entry| entry.active = active));
    if collective {
        with_collectives(|list| list.push(request));
        advance(request);
    }
    Ok(())
}

/// Advance one collective; true if it has ended.
fn advance(request: Request) -> bool {
    // Taken out while it runs: it may call the program (a user operation), which may call MPI.
    let taken = REQUESTS.with(|requests| {
        let entry = requests.get_mut(request)?;
        match std::mem::replace(&mut entry.active, Active::Running) {
            Active::Collective(operation) => Some(Some(operation)),
            Active::Running => Some(None),
            other => {
                entry.active = other;
                None
            }
        }
    });
    let mut operation = match taken {
        Some(Some(operation)) => operation,
        // Further up on the stack: it goes on there.
        Some(None) => return false,
        None => return true,
    };
    let (ended, active) = match operation.advance() {
        Ok(None) => {
            wake_on(&*operation);
            (false, Active::Collective(operation))
        }
        Ok(Some(status)) => (true, Active::Ended(Box::new(Ok(status)))),
        Err(error) => (true, Active::Ended(Box::new(Err(error)))),
    };
    let orphan = REQUESTS.with(|requests| {
        requests.get_mut(request).is_some_and(|entry| {
            entry.active = active;
            ended && entry.freed
        })
    });
    if orphan {
        remove(request);
    }
    ended
}

/// Whatever this rank waits for, a completion among these must wake it: the collective goes on from there.
fn wake_on(operation: &dyn Progress) {
    let mut slots = Vec::new();
    operation.pending(&mut slots);
    set_flag(&slots, FLAG_WAKE);
}

/// Take in what has arrived and go on with every collective under way. Returns the change counter to wait from.
#[inline]
pub fn progress() -> u64 {
    progress_as::<false>()
}

/// As `progress`, of a call whose answer depends on what has come by now.
#[inline]
pub fn progress_now() -> u64 {
    progress_as::<true>()
}

#[inline]
pub(super) fn progress_as<const LOOKS: bool>() -> u64 {
    take_in_as::<LOOKS>();
    go_on()
}

/// As `progress_now`, for who knows that there is no news (`failure::is_news`).
#[inline]
pub(super) fn progress_without_news() -> u64 {
    endpoint().progress();
    go_on()
}

#[inline]
fn go_on() -> u64 {
    if collectives_under_way() {
        advance_all();
    }
    if ORPHANS.with(|list| !list.is_empty()) {
        reap_orphans();
    }
    lock::changes()
}

/// Change the list of the collectives under way, which are counted for who only asks whether there are any.
fn with_collectives(change: impl FnOnce(&mut Vec<Request>)) {
    COLLECTIVES.with(|list| {
        change(list);
        fast_path::set_collectives(list.len());
    });
}

/// Go on with every collective under way.
#[cold]
fn advance_all() {
    for request in COLLECTIVES.with(|list| list.clone()) {
        if advance(request) {
            lock::note_change();
            with_collectives(|list| list.retain(|r| *r != request));
        }
    }
}

/// Finish messages whose request was freed.
#[cold]
fn reap_orphans() {
    for request in ORPHANS.with(|list| list.clone()) {
        let over = REQUESTS.with(|requests| match requests.get(request) {
            Some(Entry { active: Active::Message(slot), .. }) => Some(*slot),
            _ => None,
        });
        if over.is_none_or(|slot| p2p::poll(slot).is_some()) {
            remove(request);
            ORPHANS.with(|list| list.retain(|r| *r != request));
        }
    }
}

pub(super) fn set_flag(slots: &[Slot], flag: u32) {
    let queues = endpoint().queues();
    for slot in slots {
        queues.slots[slot.0 as usize].flags |= flag;
    }
}
