//! Events: what happens in the runtime, told to callbacks (MPI 4.1 section 15.3.8).
//!
//! What happens inside a call is noted with its time, and the callbacks are called when the call is over and the entry lock is
//! given back: so they may call all of MPI, and a callback for any safety level can serve. What a rank notes before it gets so
//! far has bounds; what is beyond them is dropped and counted for the dropped-event handlers.

use super::types::{Failure, Kind, Result, Value, Verbosity};
use crate::chance;
use crate::consts;
use crate::overlap::guard::held;
use crate::tool::types;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use vmpi_shared::clock;

/// An element of an event's data.
pub struct Element {
    pub name: &'static str,
    pub kind: Kind,
}

/// A type of event.
pub struct Type {
    pub name: &'static str,
    pub description: &'static str,
    pub category: &'static str,
    pub verbosity: Verbosity,
    pub elements: &'static [Element],
}

impl Type {
    /// Bytes from the start of an event's data to element `index`.
    pub fn displacement(&self, index: usize) -> usize {
        index * BYTES
    }
}

/// Room of each element in an event's data.
const BYTES: usize = 8;
/// An event's data has at most so many elements.
const MOST_ELEMENTS: usize = 3;
/// Events that wait for the end of a call.
const MOST_PENDING: usize = 1024;

const fn int(name: &'static str) -> Element {
    Element { name, kind: Kind::Int }
}

const fn count(name: &'static str) -> Element {
    Element { name, kind: Kind::Count }
}

pub const SUSPENDED: usize = 0;
pub const RESUMED: usize = 1;
pub const SENT: usize = 2;
pub const RECEIVED: usize = 3;
pub const UNEXPECTED: usize = 4;

const fn event(
    category: &'static str,
    name: &'static str,
    elements: &'static [Element],
    description: &'static str,
) -> Type {
    Type { name, description, category, verbosity: Verbosity::User, elements }
}

/// All of them; the index is MPI's.
pub static ALL: &[Type] = &[
    event(
        "vmpi_scheduling",
        "vmpi_suspended",
        &[int("peer"), int("tag")],
        "This rank waits and lets others have its core. Elements: whom for and for which tag (MPI_INT, -1 if for none or several).",
    ),
    event(
        "vmpi_scheduling",
        "vmpi_resumed",
        &[count("waited_ns")],
        "This rank goes on. Element: nanoseconds since it was suspended (MPI_UNSIGNED_LONG_LONG).",
    ),
    event(
        "vmpi_messages",
        "vmpi_message_sent",
        &[int("destination"), int("tag"), count("bytes")],
        "A message was sent, by a collective too. Elements: rank in the communicator, tag (MPI_INT), bytes (MPI_UNSIGNED_LONG_LONG).",
    ),
    event(
        "vmpi_messages",
        "vmpi_message_received",
        &[int("source"), int("tag"), count("bytes")],
        "A receive is complete. Elements: rank in the communicator, tag (MPI_INT), bytes (MPI_UNSIGNED_LONG_LONG).",
    ),
    event(
        "vmpi_messages",
        "vmpi_message_unexpected",
        &[int("source"), int("tag"), count("bytes")],
        "A receive was posted later than its message came. Elements as of vmpi_message_received.",
    ),
];

/// The only source: this process, in the order of its clock.
pub const SOURCE_NAME: &str = "vmpi_rank";
pub const SOURCE_DESCRIPTION: &str = "This rank, by CLOCK_MONOTONIC.";
pub const TICKS_PER_SECOND: i64 = 1_000_000_000;

/// MPI_T_source_get_timestamp.
///
/// # Errors
/// `T_ERR_INVALID_INDEX`.
pub fn source_time(index: i32) -> Result<i64> {
    if index == 0 { Ok(clock::monotonic_ns() as i64) } else { Err(Failure(consts::T_ERR_INVALID_INDEX)) }
}

/// The type with this index.
///
/// # Errors
/// `T_ERR_INVALID_INDEX`.
pub fn get(index: i32) -> Result<&'static Type> {
    usize::try_from(index).ok().and_then(|index| ALL.get(index)).ok_or(Failure(consts::T_ERR_INVALID_INDEX))
}

/// MPI_T_event_get_index.
///
/// # Errors
/// `T_ERR_INVALID_NAME`.
pub fn index_of(name: &[u8]) -> Result<usize> {
    types::index_of(ALL.iter().map(|event| event.name), name)
}

/// What a callback requires of itself; the core's numbers are the standard's `MPI_T_CB_REQUIRE_*`.
pub const LEVELS: [i32; 4] = [
    consts::T_CB_REQUIRE_NONE,
    consts::T_CB_REQUIRE_MPI_RESTRICTED,
    consts::T_CB_REQUIRE_THREAD_SAFE,
    consts::T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
];

fn level(safety: i32) -> Result<usize> {
    LEVELS.iter().position(|known| *known == safety).ok_or(Failure(consts::T_ERR_INVALID))
}

/// A program's function: event instance, registration.
pub type Callback = Arc<dyn Fn(usize, usize) + Send + Sync>;
/// Number of dropped events, registration, the user data of its callback.
pub type Dropped = Arc<dyn Fn(i64, usize, usize) + Send + Sync>;
/// What follows the last callback of a registration.
pub type Last = Box<dyn FnOnce()>;

struct Registration {
    index: usize,
    /// With the program's user data.
    callbacks: [Option<(Callback, usize)>; LEVELS.len()],
    when_dropped: Option<Dropped>,
    dropped: i64,
}

impl Registration {
    /// That of the lowest level: nothing is required of it here.
    fn callback(&self) -> Option<&(Callback, usize)> {
        self.callbacks.iter().flatten().next()
    }
}

/// Something that happened.
#[derive(Copy, Clone)]
struct Instance {
    registration: usize,
    index: usize,
    time: i64,
    data: [u64; MOST_ELEMENTS],
}

struct State {
    /// Registrations' numbers, from 1; not used again.
    last: usize,
    registrations: BTreeMap<usize, Registration>,
    pending: VecDeque<Instance>,
}

static STATE: Mutex<State> = Mutex::new(State { last: 0, registrations: BTreeMap::new(), pending: VecDeque::new() });
/// Who wants to know of messages and waits: `LISTENERS`, or `SIMULATION`.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// Somebody listens.
const LISTENERS: u32 = 1;
/// This rank lives in virtual time.
const SIMULATION: u32 = 2;
/// This rank's choices are not its own, or are written down.
const CHOICES: u32 = 4;
/// What the program does is checked.
const CHECK: u32 = 8;
/// There is something to tell.
static PENDING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// What this thread tells at the moment.
    static CURRENT: Cell<Option<Instance>> = const { Cell::new(None) };
    /// What is to follow the callback that runs.
    static AFTERWARDS: RefCell<Vec<Last>> = const { RefCell::new(Vec::new()) };
}

impl State {
    fn get(&mut self, registration: usize) -> Result<&mut Registration> {
        self.registrations.get_mut(&registration).ok_or(Failure(consts::T_ERR_INVALID_HANDLE))
    }

    fn look(&self) {
        let wanted = self.registrations.values().any(|registration| registration.callback().is_some());
        let others = WANTED.load(Ordering::Relaxed) & !LISTENERS;
        WANTED.store(others | if wanted { LISTENERS } else { 0 }, Ordering::Relaxed);
    }
}

pub(super) fn forget_all() {
    let state = &mut *STATE.lock().unwrap();
    state.registrations.clear();
    state.pending.clear();
    state.look();
}

/// MPI_T_event_handle_alloc.
///
/// # Errors
/// `T_ERR_INVALID_INDEX`.
pub fn allocate(index: i32) -> Result<usize> {
    get(index)?;
    let state = &mut *STATE.lock().unwrap();
    state.last += 1;
    let none = [const { None }; LEVELS.len()];
    let registration = Registration { index: index as usize, callbacks: none, when_dropped: None, dropped: 0 };
    state.registrations.insert(state.last, registration);
    Ok(state.last)
}

/// MPI_T_event_handle_free: `last` is called when no callback of the registration will be.
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`.
pub fn free(registration: usize, last: Option<Last>) -> Result<()> {
    {
        let state = &mut *STATE.lock().unwrap();
        state.get(registration)?;
        state.registrations.remove(&registration);
        state.pending.retain(|instance| instance.registration != registration);
        state.look();
    }
    let Some(last) = last else { return Ok(()) };
    if CURRENT.get().is_some_and(|instance| instance.registration == registration) {
        AFTERWARDS.with(|list| list.borrow_mut().push(last));
    } else {
        last();
    }
    Ok(())
}

/// Is there such a registration?
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`.
pub fn check(registration: usize) -> Result<()> {
    STATE.lock().unwrap().get(registration).map(|_| ())
}

/// Is there such a registration, and such a safety level?
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`, `T_ERR_INVALID`.
pub fn check_level(registration: usize, safety: i32) -> Result<()> {
    check(registration)?;
    level(safety).map(|_| ())
}

/// MPI_T_event_register_callback; `None` takes it away.
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`, `T_ERR_INVALID`.
pub fn set_callback(registration: usize, safety: i32, callback: Option<Callback>, user_data: usize) -> Result<()> {
    let state = &mut *STATE.lock().unwrap();
    state.get(registration)?.callbacks[level(safety)?] = callback.map(|callback| (callback, user_data));
    state.look();
    Ok(())
}

/// MPI_T_event_set_dropped_handler.
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`.
pub fn set_dropped(registration: usize, handler: Option<Dropped>) -> Result<()> {
    STATE.lock().unwrap().get(registration)?.when_dropped = handler;
    Ok(())
}

/// Does anybody listen, or does this rank live in virtual time? Asked before an event's data are put together.
#[inline]
pub fn is_wanted() -> bool {
    WANTED.load(Ordering::Relaxed) != 0
}

/// From now on this rank lives in virtual time.
pub(crate) fn simulate() {
    WANTED.fetch_or(SIMULATION, Ordering::Relaxed);
}

/// From now on choices are made otherwise, or written down (`chance`).
pub(crate) fn choose() {
    WANTED.fetch_or(CHOICES, Ordering::Relaxed);
}

/// From now on this rank's use of MPI is checked: it is asked at the same places.
pub(crate) fn note_checked() {
    WANTED.fetch_or(CHECK, Ordering::Relaxed);
}

/// Does a tool listen?
pub(crate) fn has_listeners() -> bool {
    WANTED.load(Ordering::Relaxed) & LISTENERS != 0
}

/// It happened now.
#[cold]
pub fn raise(index: usize, data: [u64; MOST_ELEMENTS]) {
    if WANTED.load(Ordering::Relaxed) & LISTENERS == 0 {
        return;
    }
    let time = clock::monotonic_ns() as i64;
    let state = &mut *STATE.lock().unwrap();
    for (&number, registration) in &mut state.registrations {
        if registration.index != index || registration.callback().is_none() {
            continue;
        }
        if state.pending.len() < MOST_PENDING {
            state.pending.push_back(Instance { registration: number, index, time, data });
        } else {
            registration.dropped += 1;
        }
        PENDING.store(true, Ordering::Relaxed);
    }
}

/// Let this rank wait, for a message of `peer` with `tag` if it is for one.
#[inline]
pub fn around(peer: i32, tag: i32, wait: impl FnOnce()) {
    if !is_wanted() {
        return wait();
    }
    if chance::is_on() && chance::before_waiting() {
        return;
    }
    if !has_listeners() {
        return wait();
    }
    raise(SUSPENDED, [peer as u32 as u64, tag as u32 as u64, 0]);
    let from = clock::monotonic_ns();
    wait();
    raise(RESUMED, [clock::monotonic_ns() - from, 0, 0]);
}

/// A message was sent or received.
#[inline]
pub fn message(index: usize, peer: i32, tag: i32, bytes: u64) {
    if is_wanted() {
        raise(index, [peer as u32 as u64, tag as u32 as u64, bytes]);
    }
}

/// Tell what has happened. Called at the end of every call of MPI, without the entry lock.
#[inline]
pub fn deliver() {
    if PENDING.load(Ordering::Relaxed) {
        deliver_pending();
    }
}

/// Signals are held back until the end of this call.
pub fn note_held_signals() {
    PENDING.store(true, Ordering::Relaxed);
}

#[cold]
fn deliver_pending() {
    held::release();
    // What happens in a callback is told after it.
    if CURRENT.get().is_some() {
        return;
    }
    let most = {
        let state = &mut *STATE.lock().unwrap();
        PENDING.store(false, Ordering::Relaxed);
        state.pending.len()
    };
    for _ in 0..most {
        let (instance, callback) = {
            let state = &mut *STATE.lock().unwrap();
            let Some(instance) = state.pending.pop_front() else { break };
            let found = state.registrations.get(&instance.registration);
            (instance, found.and_then(|registration| registration.callback().map(|(function, _)| function.clone())))
        };
        if let Some(callback) = callback {
            during(instance, || callback(INSTANCE, instance.registration));
        }
    }
    let dropped: Vec<_> = {
        let state = &mut *STATE.lock().unwrap();
        let told = state.registrations.iter_mut().filter(|(_, one)| one.dropped > 0);
        let parts = told.filter_map(|(&number, one)| {
            let many = std::mem::take(&mut one.dropped);
            Some((number, many, one.when_dropped.clone()?, one.callback().map_or(0, |callback| callback.1)))
        });
        parts.collect()
    };
    for (registration, many, handler, user_data) in dropped {
        let nothing = Instance { registration, index: 0, time: 0, data: [0; MOST_ELEMENTS] };
        during(nothing, || handler(many, registration, user_data));
    }
}

/// The number of the only instance that there is in a thread at a time.
const INSTANCE: usize = 1;

fn during(instance: Instance, callback: impl FnOnce()) {
    CURRENT.set(Some(instance));
    callback();
    CURRENT.set(None);
    for last in AFTERWARDS.with(|list| list.take()) {
        last();
    }
}

fn current(instance: usize) -> Result<Instance> {
    CURRENT.get().filter(|_| instance == INSTANCE).ok_or(Failure(consts::T_ERR_INVALID_HANDLE))
}

/// MPI_T_event_read.
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`, `T_ERR_INVALID_INDEX`.
pub fn read(instance: usize, element: i32) -> Result<Value> {
    let instance = current(instance)?;
    let elements = ALL[instance.index].elements;
    let index = usize::try_from(element).ok().filter(|index| *index < elements.len());
    let index = index.ok_or(Failure(consts::T_ERR_INVALID_INDEX))?;
    Ok(match elements[index].kind {
        Kind::Int => Value::Int(instance.data[index] as i32),
        _ => Value::Count(instance.data[index]),
    })
}

/// The type of an instance, for MPI_T_event_copy.
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`.
pub fn type_of(instance: usize) -> Result<&'static Type> {
    Ok(&ALL[current(instance)?.index])
}

/// MPI_T_event_get_timestamp.
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`.
pub fn time(instance: usize) -> Result<i64> {
    Ok(current(instance)?.time)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    // Called by the test of the whole interface: the state belongs to the process.
    pub(in super::super) fn told_afterwards_with_bounds() {
        static SEEN: Mutex<Vec<(i32, u64)>> = Mutex::new(Vec::new());
        static LOST: Mutex<i64> = Mutex::new(0);
        assert!(get(ALL.len() as i32).is_err() && allocate(-1).is_err());
        assert!(ALL.iter().all(|event| event.elements.len() <= MOST_ELEMENTS));
        let one = allocate(SENT as i32).unwrap();
        raise(SENT, [1, 2, 3]);
        let seen: Callback = Arc::new(|instance, _| {
            let (Ok(Value::Int(tag)), Ok(Value::Count(bytes))) = (read(instance, 1), read(instance, 2)) else { return };
            SEEN.lock().unwrap().push((tag, bytes));
            raise(SENT, [0; 3]);
            deliver();
        });
        assert!(set_callback(one, 99, None, 0).is_err());
        set_callback(one, consts::T_CB_REQUIRE_NONE, Some(seen), 0).unwrap();
        set_dropped(one, Some(Arc::new(|many, _, _| *LOST.lock().unwrap() += many))).unwrap();
        raise(RECEIVED, [9, 9, 9]);
        raise(SENT, [1, 7, 1 << 40]);
        assert!(SEEN.lock().unwrap().is_empty());
        deliver();
        assert_eq!(*SEEN.lock().unwrap(), [(7, 1 << 40)], "only what came after the callback, and once");
        deliver();
        assert_eq!(SEEN.lock().unwrap().len(), 2, "what happened in the callback");
        for _ in 0..MOST_PENDING + 5 {
            raise(SENT, [0; 3]);
        }
        deliver();
        assert_eq!(*LOST.lock().unwrap(), 6, "one was there already, from the callback before");
        assert!(read(INSTANCE, 0).is_err(), "outside a callback");
        let freed = Arc::new(AtomicBool::new(false));
        let note = freed.clone();
        free(one, Some(Box::new(move || note.store(true, Ordering::Relaxed)))).unwrap();
        assert!(freed.load(Ordering::Relaxed) && !is_wanted());
        assert!(free(one, None).is_err());
    }
}
