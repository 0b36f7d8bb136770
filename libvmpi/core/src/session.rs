//! Sessions (MPI 4.1 section 11.3): ways into MPI that need no MPI_COMM_WORLD.
//!
//! A session is one user of the process's connection to its job, as the world model is another (`init`). Groups come
//! from process sets, and remember their session; `construct::create_from_group` makes communicators of them.

use crate::consts;
use crate::errhandler::{self, Target};
use crate::errors::{Class, Result, fail};
use crate::group::Members;
use crate::guarded::EntryGuarded;
use crate::handle::{Errhandler, Handle, Session};
use crate::info::{self, Entries};
use crate::lock;
use crate::p2p::buffered::{self, Owner};
use crate::process;
use crate::process_sets::pset;
use crate::request::flush;
use crate::table::Table;
use std::rc::Rc;

static SESSIONS: EntryGuarded<Table<Session, Rc<Entries>>> = EntryGuarded::new(Table::new());

/// The names of thread levels in info objects.
const LEVELS: [(i32, &str); 4] = [
    (consts::THREAD_SINGLE, "MPI_THREAD_SINGLE"),
    (consts::THREAD_FUNNELED, "MPI_THREAD_FUNNELED"),
    (consts::THREAD_SERIALIZED, "MPI_THREAD_SERIALIZED"),
    (consts::THREAD_MULTIPLE, "MPI_THREAD_MULTIPLE"),
];

/// MPI_Session_init. `hints` may ask for a `thread_level`; all are granted, an unknown one counts as not given. Who does not ask gets what the process
/// has by now.
///
/// # Errors
/// As [`crate::init::open_for_session`]; `Class::Errhandler` if there is no such handler.
pub fn init(face: &'static str, hints: &Entries, handler: Errhandler) -> Result<Session> {
    let asked = hints.get(b"thread_level");
    let [single, .., multiple] = &LEVELS;
    let now = if process::is_active() && lock::is_threaded() { multiple } else { single };
    let (level, name) = *LEVELS.iter().find(|(_, name)| asked == Some(name.as_bytes())).unwrap_or(now);
    crate::init::open_for_session(face, level)?;
    let mut entries = Entries::default();
    entries.set(b"thread_level", name.as_bytes());
    entries.set(info::ALLOC_KINDS.0, info::ALLOC_KINDS.1);
    let session = SESSIONS.with(|sessions| sessions.insert(Rc::new(entries)));
    if !handler.is_null()
        && let Err(error) = errhandler::set(Target::Session(session), handler)
    {
        finalize(session)?;
        return Err(error);
    }
    Ok(session)
}

/// The info of a session.
///
/// # Errors
/// `Class::Session` if there is no such session.
pub fn get(session: Session) -> Result<Rc<Entries>> {
    match SESSIONS.with(|sessions| sessions.get(session).cloned()) {
        Some(entries) => Ok(entries),
        None if session.is_null() => fail(Class::Session, "the session is MPI_SESSION_NULL"),
        None => fail(Class::Session, format!("{:#x} is not the handle of a session (finalized?)", session.raw())),
    }
}

/// Add hints to a session's (Open MPI's MPI_Session_set_info).
///
/// # Errors
/// As [`get`].
pub fn add_hints(session: Session, hints: &Entries) -> Result<()> {
    let mut merged = Entries::clone(&*get(session)?);
    for (key, value) in hints.iter() {
        merged.set(key, value);
    }
    SESSIONS.with(|sessions| sessions.get_mut(session).map(|entries| *entries = Rc::new(merged)));
    Ok(())
}

/// MPI_Session_finalize: waits until what was sent has left.
///
/// # Errors
/// As [`get`].
pub fn finalize(session: Session) -> Result<()> {
    get(session)?;
    if buffered::is_attached(Owner::Session(session)) {
        flush::flush(Owner::Session(session))?;
    }
    buffered::forget(Owner::Session(session));
    errhandler::forget(Target::Session(session));
    SESSIONS.with(|sessions| sessions.remove(session));
    crate::init::close();
    Ok(())
}

/// MPI_Session_get_pset_info.
///
/// # Errors
/// As [`get`] and [`pset`].
pub fn pset_info(session: Session, name: &[u8]) -> Result<Entries> {
    get(session)?;
    let mut entries = Entries::default();
    entries.set(b"mpi_size", pset(name)?.size().to_string().as_bytes());
    Ok(entries)
}

/// MPI_Group_from_session_pset.
///
/// # Errors
/// As [`get`] and [`pset`].
pub fn group_from_pset(session: Session, name: &[u8]) -> Result<Members> {
    get(session)?;
    Ok(pset(name)?.of_session(session))
}
