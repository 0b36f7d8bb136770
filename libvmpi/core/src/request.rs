//! Requests: what MPI_Wait and MPI_Test work on, and how a rank waits.
//!
//! A request is a message (a slot), a collective (a [`Progress`]), a generalized request, or a persistent form of the
//! first two. All blocking in MPI ends up in [`block`] (`wait`).

pub mod copied;
mod missed;
mod wait;

pub use missed::{Sought, message_misses_again, requests_miss_again};
pub(crate) use missed::{forget, note_message};
pub use wait::*;

use crate::errors::{Class, Error, Result, fail};
use crate::ft;
use crate::giant::Giant;
use crate::handle::{FIRST_DYNAMIC, Handle, Request};
use crate::lock;
use crate::p2p::partitioned::Channel;
use crate::p2p::{self, Slot};
use crate::process::endpoint;
use crate::status::Status;
use crate::table::Table;
use std::rc::Rc;
use vmpi_shared::matching::queues::Queues;
use vmpi_shared::matching::request::FLAG_WAKE;

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
enum Active {
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

enum Kind {
    Once,
    PersistentMessage(StartMessage),
    PersistentCollective(Rc<std::cell::RefCell<StartCollective>>),
    /// Started as a persistent collective is; its channel knows the partitions.
    Partitioned(Rc<std::cell::RefCell<StartCollective>>, Box<Channel>),
}

struct Entry {
    kind: Kind,
    active: Active,
    /// MPI_Request_free was called while it was under way.
    freed: bool,
    /// A receive, which MPI_Cancel can take back; a send has left.
    receive: bool,
}

const _: () = assert!(size_of::<Option<Entry>>() <= 64);

static REQUESTS: Giant<Table<Request, Entry>> = Giant::new(Table::new());
/// Collectives under way, and messages whose request was freed.
static COLLECTIVES: Giant<Vec<Request>> = Giant::new(Vec::new());
static ORPHANS: Giant<Vec<Request>> = Giant::new(Vec::new());

/// The request of every send that was complete when it was started: most are, and have nothing to remember. (Open MPI and MPICH do so as well.)
/// The first one of the table, for as long as the process lives.
const SENT: Request = Request(FIRST_DYNAMIC);

/// Before any other request is made.
pub(crate) fn set_up() {
    let first = insert_entry(Kind::Once, Active::Done(Status::EMPTY), false);
    assert!(first == SENT, "a request was made before MPI was up");
}

/// A request is no more.
fn remove(request: Request) {
    if request == SENT {
        return;
    }
    copied::put_back(request);
    copied::forget(request);
    REQUESTS.with(|requests| requests.remove(request));
}

#[cold]
fn unknown(request: Request) -> Error {
    Error::new(
        Class::Request,
        format!("{:#x} is not a request of this process (completed, freed, or never one)", request.0),
    )
}

#[inline]
fn insert_entry(kind: Kind, active: Active, receive: bool) -> Request {
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
    slot.map_or(SENT, |slot| insert_entry(Kind::Once, Active::Message(slot), false))
}

/// A request that is complete with this status.
pub fn insert_done(status: Status) -> Request {
    insert_entry(Kind::Once, Active::Done(status), true)
}

/// Make a request of an operation that has been started (its first `advance` was called by the caller or not).
pub fn insert(operation: Box<dyn Progress>) -> Request {
    let request = insert_entry(Kind::Once, Active::Collective(operation), false);
    COLLECTIVES.with(|list| list.push(request));
    advance(request);
    request
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
pub fn insert_partitioned(start: StartCollective, channel: Channel) -> Request {
    insert_entry(Kind::Partitioned(Rc::new(std::cell::RefCell::new(start)), Box::new(channel)), Active::Inactive, false)
}

/// The channel of a partitioned request.
///
/// # Errors
/// `Class::Request` for any other.
pub fn channel(request: Request) -> Result<Channel> {
    REQUESTS.with(|requests| match requests.get(request) {
        None => Err(unknown(request)),
        Some(Entry { kind: Kind::Partitioned(_, channel), .. }) => Ok(Channel::clone(channel)),
        Some(_) => fail(Class::Request, "the request is not a partitioned one"),
    })
}

/// MPI_Grequest_start.
pub fn insert_generalized(request: Generalized) -> Request {
    insert_entry(Kind::Once, Active::Generalized { request: Rc::new(request), complete: false }, false)
}

/// Let the program look after those of its own requests that have a function for that. Were there any?
///
/// # Errors
/// What the function returns.
fn poll_generalized(requests: &[Request]) -> Result<bool> {
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

/// MPI_Grequest_complete.
pub fn complete_generalized(request: Request) -> Result<()> {
    let freed = REQUESTS.with(|requests| match requests.get_mut(request) {
        Some(Entry { active: Active::Generalized { request: generalized, complete }, freed, .. }) => {
            *complete = true;
            Ok(freed.then(|| generalized.clone()))
        }
        Some(_) => fail(Class::Request, "the request is not a generalized one"),
        None => Err(unknown(request)),
    })?;
    lock::note_change();
    if let Some(generalized) = freed {
        remove(request);
        (generalized.free)()?;
    }
    Ok(())
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
        COLLECTIVES.with(|list| list.push(request));
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
fn progress_as<const LOOKS: bool>() -> u64 {
    // Before the inbox is emptied: what the dead have sent is there by then.
    let changes = endpoint().job.changes();
    if ft::is_news(changes) {
        ft::catch_up(changes, LOOKS);
    } else {
        endpoint().progress();
    }
    if collectives_under_way() {
        advance_all();
    }
    if ORPHANS.with(|list| !list.is_empty()) {
        reap_orphans();
    }
    lock::changes()
}

/// Is there a nonblocking collective that this rank must go on with while it waits?
#[inline]
pub(crate) fn collectives_under_way() -> bool {
    COLLECTIVES.with(|list| !list.is_empty())
}

/// Go on with every collective under way.
#[cold]
fn advance_all() {
    for request in COLLECTIVES.with(|list| list.clone()) {
        if advance(request) {
            lock::note_change();
            COLLECTIVES.with(|list| list.retain(|r| *r != request));
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

const NULL: Request = <Request as Handle>::NULL;

/// How a request stands.
enum Stands {
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
fn stands(requests: &Table<Request, Entry>, queues: &Queues<'_>, request: Request) -> Result<Stands> {
    if request == SENT {
        return Ok(Stands::Complete);
    }
    let Some(entry) = requests.get(request) else {
        return if request == NULL { Ok(Stands::Inactive) } else { Err(unknown(request)) };
    };
    Ok(match &entry.active {
        // One that may wait in vain says so each time that it is asked, until the program knows.
        Active::Message(slot) if queues.is_over(slot.0) || ft::in_doubt(*slot) => Stands::Over(*slot),
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

/// How a complete request ended, and whether its handle lives on (persistent).
pub struct Completion {
    pub result: Result<Status>,
    pub handle: Request,
}

/// Finish a request of one message, and nothing else, that is complete and has ended well, as most do. `None`: see `finish`.
#[inline(always)]
pub fn finish_plain(request: Request) -> Option<Status> {
    if !ft::is_quiet() || copied::any() {
        return None;
    }
    if request == SENT { Some(Status::EMPTY) } else { finish_message(request) }
}

/// As `finish_plain`, of one that has an entry of its own.
#[inline(never)]
fn finish_message(request: Request) -> Option<Status> {
    REQUESTS.with(|requests| {
        let status = match requests.get(request)? {
            Entry { kind: Kind::Once, active: Active::Message(slot), .. } => p2p::poll_eager(*slot)?,
            Entry { kind: Kind::Once, active: Active::Done(status), .. } => *status,
            _ => return None,
        };
        // Such a one holds nothing that would have to be dropped.
        std::mem::forget(requests.remove(request));
        Some(status)
    })
}

/// Finish a complete request: free it, or make it inactive if it is persistent. `None`: it is not complete.
pub fn finish(request: Request) -> Result<Option<Completion>> {
    if request == NULL || request == SENT {
        return Ok(Some(Completion { result: Ok(Status::EMPTY), handle: NULL }));
    }
    if !is_complete(request)? {
        return Ok(None);
    }
    if is_in_doubt(request) {
        return Ok(Some(Completion { result: Err(ft::pending_source()), handle: request }));
    }
    let active = REQUESTS.with(|requests| {
        let entry = requests.get_mut(request).expect("looked up before");
        let active = std::mem::replace(&mut entry.active, Active::Inactive);
        let keep = !matches!(entry.kind, Kind::Once);
        (active, if keep { request } else { NULL })
    });
    let (active, handle) = active;
    let result = match active {
        Active::Inactive => Ok(Status::EMPTY),
        Active::Done(status) => Ok(status),
        Active::Ended(result) => *result,
        Active::Message(slot) => p2p::poll(slot).unwrap_or(Ok(Status::EMPTY)),
        Active::Generalized { request: generalized, .. } => {
            let status = (generalized.query)();
            (generalized.free)().and(status)
        }
        Active::Collective(_) | Active::Running => Ok(Status::EMPTY),
    };
    if handle == NULL {
        remove(request);
    } else {
        copied::put_back(request);
    }
    Ok(Some(Completion { result, handle }))
}

/// Is it a receive that may wait in vain?
fn is_in_doubt(request: Request) -> bool {
    !ft::is_quiet()
        && REQUESTS.with(|requests| match requests.get(request) {
            Some(Entry { active: Active::Message(slot), .. }) => ft::in_doubt(*slot),
            _ => false,
        })
}

/// Has it been ended by a failure or a revocation, or may it wait in vain? Then a wait for all is over: the others may depend on what the
/// program does about that.
pub fn is_casualty(request: Request) -> bool {
    !ft::is_quiet()
        && REQUESTS.with(|requests| match requests.get(request).map(|entry| &entry.active) {
            Some(Active::Message(slot)) => ft::is_casualty(*slot),
            Some(Active::Ended(result)) => result.as_ref().as_ref().is_err_and(ft::is_failure),
            _ => false,
        })
}

/// Status of a request without finishing it (MPI_Request_get_status); `None` if it is not complete.
pub fn peek(request: Request) -> Result<Option<Status>> {
    if test_for_one(&[request])?.is_none() {
        return Ok(None);
    }
    if request == NULL {
        return Ok(Some(Status::EMPTY));
    }
    if is_in_doubt(request) {
        return Err(ft::pending_source());
    }
    // Finish what is under way and keep the outcome for MPI_Wait.
    let slot = REQUESTS.with(|requests| match &requests.get(request).expect("complete").active {
        Active::Message(slot) => Some(*slot),
        _ => None,
    });
    if let Some(slot) = slot
        && let Some(result) = p2p::poll(slot)
    {
        REQUESTS.with(|requests| requests.get_mut(request).expect("complete").active = Active::Ended(Box::new(result)));
    }
    copied::put_back(request);
    let generalized = REQUESTS.with(|requests| match &requests.get(request).expect("complete").active {
        Active::Generalized { request, .. } => Some(request.clone()),
        _ => None,
    });
    if let Some(generalized) = generalized {
        return (generalized.query)().map(Some);
    }
    REQUESTS.with(|requests| match &requests.get(request).expect("complete").active {
        Active::Done(status) => Ok(Some(*status)),
        Active::Ended(result) => Result::clone(result).map(Some),
        _ => Ok(Some(Status::EMPTY)),
    })
}

/// MPI_Cancel: a receive that has not matched is taken back; a send has left already.
pub fn cancel(request: Request) -> Result<()> {
    enum What {
        Message(Slot),
        Generalized(Rc<Generalized>, bool),
        Nothing,
    }
    let what = REQUESTS.with(|requests| match requests.get(request) {
        None => Err(unknown(request)),
        Some(Entry { active: Active::Message(slot), receive: true, .. }) => Ok(What::Message(*slot)),
        Some(Entry { active: Active::Generalized { request, complete }, .. }) => {
            Ok(What::Generalized(request.clone(), *complete))
        }
        Some(Entry {
            active: Active::Collective(_) | Active::Ended(_), kind: Kind::PersistentCollective(_), ..
        }) => fail(Class::Request, "a collective operation cannot be cancelled"),
        Some(Entry { active: Active::Collective(_), .. }) => {
            fail(Class::Request, "a collective operation cannot be cancelled")
        }
        Some(_) => Ok(What::Nothing),
    })?;
    match what {
        What::Message(slot) => p2p::cancel(slot),
        What::Generalized(generalized, complete) => (generalized.cancel)(complete)?,
        What::Nothing => {}
    }
    Ok(())
}

/// MPI_Request_free: the operation goes on, nobody will ask for it.
pub fn free(request: Request) -> Result<()> {
    enum Then {
        Remove,
        Orphan,
        Wait,
        Call(Rc<Generalized>),
    }
    let then = REQUESTS.with(|requests| match requests.get_mut(request) {
        None => Err(unknown(request)),
        Some(entry) => {
            entry.freed = request != SENT;
            Ok(match &entry.active {
                Active::Inactive | Active::Done(_) | Active::Ended(_) => Then::Remove,
                Active::Message(_) => {
                    entry.kind = Kind::Once;
                    Then::Orphan
                }
                Active::Collective(_) | Active::Running => Then::Wait,
                Active::Generalized { request, complete: true } => Then::Call(request.clone()),
                Active::Generalized { .. } => Then::Wait,
            })
        }
    })?;
    match then {
        Then::Remove => {
            remove(request);
        }
        Then::Orphan => ORPHANS.with(|list| list.push(request)),
        Then::Wait => {}
        Then::Call(generalized) => {
            remove(request);
            (generalized.free)()?;
        }
    }
    Ok(())
}
