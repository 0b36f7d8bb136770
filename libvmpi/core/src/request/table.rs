//! The table of requests: what is under way for each, and how it stands.

use crate::check::{self, made};
use crate::errors::{Class, Error, Result, fail};
use crate::failure;
use crate::guarded::EntryGuarded;
use crate::handle::{Handle, Request};
use crate::p2p::{Slot, failed};
use crate::process::endpoint;
use crate::request::copied;
use crate::status::Status;
use crate::table::Table;
use std::any::Any;
use std::rc::Rc;
use vmpi_shared::matching::queues::Queues;

/// A nonblocking operation made of several messages (a collective).
pub trait Progress {
    /// Poll the messages under way, do what follows from them, start the next. `Some`: all done.
    /// An error ends the operation; messages still under way are the implementor's to finish or cancel.
    fn advance(&mut self) -> Result<Option<Status>>;
    /// The slots that must complete before `advance` can do more.
    fn pending(&self, slots: &mut Vec<Slot>);
    /// Must all of them complete, or is any one enough?
    fn needs_all(&self) -> bool {
        true
    }
}

/// Starts a message of a persistent request.
pub type StartMessage = Rc<dyn Fn() -> Result<Option<Slot>>>;

/// Starts a collective of a persistent request.
pub type StartCollective = Box<dyn FnMut() -> Result<Box<dyn Progress>>>;

/// A generalized request's callbacks, made by the ABI layer.
pub struct Generalized {
    pub query: Box<dyn Fn() -> Result<Status>>,
    pub free: Box<dyn Fn() -> Result<()>>,
    pub cancel: Box<dyn Fn(bool) -> Result<()>>,
    /// What the library calls whenever it waits for the request or tests it, to have it completed (MPICH's MPIX_Grequest_start).
    pub poll: Option<Box<dyn Fn() -> Result<()>>>,
}

/// What is under way for a request.
pub(super) enum Active {
    /// Persistent and not started.
    Inactive,
    /// Done when it was started.
    Done(Status),
    Message(Slot),
    Collective(Box<dyn Progress>),
    /// A collective that is being advanced right now.
    Running,
    /// A collective that has ended. Boxed, as partitions are, so that an entry is no larger than a cache line.
    Ended(Box<Result<Status>>),
    Generalized {
        request: Rc<Generalized>,
        complete: bool,
    },
}

pub(super) enum Kind {
    Once,
    PersistentMessage(StartMessage),
    PersistentCollective(Rc<std::cell::RefCell<StartCollective>>),
    /// Started as a persistent collective is; its channel knows the partitions.
    Partitioned(Rc<std::cell::RefCell<StartCollective>>, Box<Rc<dyn Any>>),
}

pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) active: Active,
    /// MPI_Request_free was called while it was under way.
    pub(super) freed: bool,
    /// A receive, which MPI_Cancel can take back; a send has left.
    pub(super) receive: bool,
}

const _: () = assert!(size_of::<Option<Entry>>() <= 64);

pub(super) static REQUESTS: EntryGuarded<Table<Request, Entry>> = EntryGuarded::new(Table::new());

/// Before any other request is made.
pub(crate) fn set_up() {
    let first = insert_entry(Kind::Once, Active::Done(Status::EMPTY), false);
    assert!(first == Request::SENT, "a request was made before MPI was up");
}

/// A request is no more.
pub(super) fn remove(request: Request) {
    if request == Request::SENT {
        return;
    }
    copied::put_back(request);
    copied::forget(request);
    if check::is_on() {
        made::ended(request.raw());
    }
    REQUESTS.with(|requests| requests.remove(request));
}

#[cold]
pub(super) fn unknown(request: Request) -> Error {
    Error::new(
        Class::Request,
        format!("{:#x} is not a request of this process (completed, freed, or never one)", request.0),
    )
}

#[inline]
pub(super) fn insert_entry(kind: Kind, active: Active, receive: bool) -> Request {
    REQUESTS.with(|requests| requests.insert(Entry { kind, active, freed: false, receive }))
}

/// A request of a receive that has been started.
#[inline]
pub fn insert_receive(slot: Slot) -> Request {
    insert_entry(Kind::Once, Active::Message(slot), true)
}

/// A request of a send that has been started (`None`: it is complete).
#[inline]
pub fn insert_send(slot: Option<Slot>) -> Request {
    slot.map_or(Request::SENT, |slot| insert_entry(Kind::Once, Active::Message(slot), false))
}

/// A request that is complete with this status.
pub fn insert_done(status: Status) -> Request {
    insert_entry(Kind::Once, Active::Done(status), true)
}

/// A persistent message: each MPI_Start calls `start`.
pub fn insert_persistent_message(start: StartMessage, receive: bool) -> Request {
    insert_entry(Kind::PersistentMessage(start), Active::Inactive, receive)
}

/// A persistent operation: each MPI_Start calls `start`.
pub fn insert_persistent(start: StartCollective) -> Request {
    insert_entry(Kind::PersistentCollective(Rc::new(std::cell::RefCell::new(start))), Active::Inactive, false)
}

/// A partitioned operation: each MPI_Start calls `start`.
pub fn insert_partitioned(start: StartCollective, channel: Rc<dyn Any>) -> Request {
    insert_entry(Kind::Partitioned(Rc::new(std::cell::RefCell::new(start)), Box::new(channel)), Active::Inactive, false)
}

/// What a partitioned request was made with.
///
/// # Errors
/// `Class::Request` for any other.
pub(super) fn channel(request: Request) -> Result<Rc<dyn Any>> {
    REQUESTS.with(|requests| match requests.get(request) {
        None => Err(unknown(request)),
        Some(Entry { kind: Kind::Partitioned(_, channel), .. }) => Ok(Rc::clone(channel)),
        Some(_) => fail(Class::Request, "the request is not a partitioned one"),
    })
}

/// MPI_Grequest_start.
pub fn insert_generalized(request: Generalized) -> Request {
    insert_entry(Kind::Once, Active::Generalized { request: Rc::new(request), complete: false }, false)
}

pub(super) const NULL: Request = <Request as Handle>::NULL;

/// How a request stands.
pub(super) enum Stands {
    /// Null, or an inactive persistent one: it does not count in MPI_Waitany and friends.
    Inactive,
    Complete,
    /// Its message is over.
    Over(Slot),
    /// Its message is under way.
    Open(Slot),
    /// A collective that is under way.
    Advancing,
    /// A generalized one that the program has not completed, or a collective that is being advanced right now: nothing that comes ends it.
    Foreign,
}

/// How does `request` stand?
#[inline]
pub(super) fn stands(requests: &Table<Request, Entry>, queues: &Queues<'_>, request: Request) -> Result<Stands> {
    if request == Request::SENT {
        return Ok(Stands::Complete);
    }
    let Some(entry) = requests.get(request) else {
        return if request == NULL { Ok(Stands::Inactive) } else { Err(unknown(request)) };
    };
    Ok(match &entry.active {
        // One that may wait in vain says so each time that it is asked, until the program knows.
        Active::Message(slot) if queues.is_over(slot.0) || failed::in_doubt(*slot) => Stands::Over(*slot),
        Active::Message(slot) => Stands::Open(*slot),
        Active::Done(_) | Active::Ended(_) => Stands::Complete,
        Active::Inactive => Stands::Inactive,
        Active::Collective(_) => Stands::Advancing,
        Active::Generalized { complete: true, .. } => Stands::Complete,
        Active::Generalized { .. } | Active::Running => Stands::Foreign,
    })
}

/// How does `request` stand, by itself?
fn stands_alone(request: Request) -> Result<Stands> {
    let queues = endpoint().queues();
    REQUESTS.with(|requests| stands(requests, &queues, request))
}

/// Is the request complete (or null, or inactive)?
pub fn is_complete(request: Request) -> Result<bool> {
    stands_alone(request).map(|stands| matches!(stands, Stands::Inactive | Stands::Complete | Stands::Over(_)))
}

/// Is it null or an inactive persistent request? Such ones do not count in MPI_Waitany and friends.
pub fn is_inactive(request: Request) -> Result<bool> {
    stands_alone(request).map(|stands| matches!(stands, Stands::Inactive))
}

/// Is it a receive that may wait in vain?
pub(super) fn is_in_doubt(request: Request) -> bool {
    !failure::is_quiet()
        && REQUESTS.with(|requests| match requests.get(request) {
            Some(Entry { active: Active::Message(slot), .. }) => failed::in_doubt(*slot),
            _ => false,
        })
}

/// Has it been ended by a failure or a revocation, or may it wait in vain? Then a wait for all is over: the others may depend on what the
/// program does about that.
pub fn is_casualty(request: Request) -> bool {
    !failure::is_quiet()
        && REQUESTS.with(|requests| match requests.get(request).map(|entry| &entry.active) {
            Some(Active::Message(slot)) => failed::is_casualty(*slot),
            Some(Active::Ended(result)) => result.as_ref().as_ref().is_err_and(failure::is_failure),
            _ => false,
        })
}

/// A request that the program has not completed or freed.
pub(crate) enum Left {
    Message(Slot),
    Collective(Request),
    Generalized,
    /// A persistent one that is not active.
    Inactive,
}

/// All of them.
pub(crate) fn left() -> Vec<Left> {
    let of = |request: Request, entry: &Entry| {
        if entry.freed || request == Request::SENT {
            return None;
        }
        match &entry.active {
            Active::Message(slot) => Some(Left::Message(*slot)),
            Active::Collective(_) | Active::Running | Active::Ended(_) => Some(Left::Collective(request)),
            Active::Generalized { .. } => Some(Left::Generalized),
            Active::Inactive => Some(Left::Inactive),
            Active::Done(_) => None,
        }
    };
    REQUESTS.with(|requests| requests.iter().filter_map(|(request, entry)| of(request, entry)).collect())
}

/// How many of a set must be complete.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Need {
    All,
    /// At least one (of those that are neither null nor inactive).
    One,
}
