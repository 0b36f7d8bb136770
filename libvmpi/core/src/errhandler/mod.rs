//! Error handlers of communicators, windows, files and sessions (MPI 4.1 chapter 9): which there are, and which object has which. `raise` hands errors to them. (Floor 2.)

pub mod codes;

use crate::check::made::{self, What};
use crate::errors::{Class, Result, fail};
use crate::guarded::EntryGuarded;
use crate::handle::{Comm, Errhandler, File, Handle, Session, Win};
use crate::table::Table;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The object whose error handler an error goes to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// No object at hand: MPI_COMM_SELF's handler (MPI 4.1 section 9.3), MPI_COMM_WORLD's in older ABIs.
    Process,
    Comm(Comm),
    Win(Win),
    File(File),
    Session(Session),
}

impl Target {
    /// Kind and handle, the key of the table of handlers.
    fn key(self) -> (u8, u32) {
        match self {
            Target::Process => (0, Comm::SELF.raw()),
            Target::Comm(comm) => (0, comm.raw()),
            Target::Win(win) => (1, win.raw()),
            Target::File(file) => (2, file.raw()),
            Target::Session(session) => (3, session.raw()),
        }
    }

    /// The handler where the program has set none: errors of files return, all others end the job.
    fn default_handler(self) -> Handler {
        if matches!(self, Target::File(_)) { Handler::Return } else { Handler::Fatal }
    }
}

/// A user's handler: gets the object and the code of the error, and returns what it makes of the code, both in the core's numbers. Whether the call
/// returns that the standard leaves open ([`Face::handlers_choose`](crate::face::Face)).
pub type UserHandler = Rc<dyn Fn(Target, i32) -> i32>;

#[derive(Clone)]
pub(crate) enum Handler {
    Fatal,
    Abort,
    Return,
    /// As `Return`: the language binding above throws.
    Throw,
    User(UserHandler),
}

impl Handler {
    pub(crate) fn is(&self, other: &Handler) -> bool {
        match (self, other) {
            (Handler::User(a), Handler::User(b)) => Rc::ptr_eq(a, b),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

/// A handler that the program created, and how many times it holds the handle.
struct Created {
    handler: UserHandler,
    references: u32,
}

struct State {
    created: Table<Errhandler, Created>,
    /// Handlers that differ from the default, by `Target::key`.
    of: BTreeMap<(u8, u32), Handler>,
}

static STATE: EntryGuarded<State> = EntryGuarded::new(State { created: Table::new(), of: BTreeMap::new() });

/// Make a handler for communicators, windows or files from the program's function.
pub fn create(handler: UserHandler) -> Errhandler {
    let handle = STATE.with(|state| state.created.insert(Created { handler, references: 1 }));
    made::made(What::Errhandler, handle.raw());
    handle
}

/// Give a handler of the program another function: a language binding says how its function is to be called.
///
/// # Errors
/// `Class::Errhandler` if the program made no such handler.
pub fn replace(handle: Errhandler, handler: UserHandler) -> Result<()> {
    resolve(handle)?;
    STATE.with(|state| match state.created.get_mut(handle) {
        Some(created) => {
            created.handler = handler;
            Ok(())
        }
        None => fail(Class::Errhandler, "a predefined error handler has no function of the program"),
    })
}

/// Give back one reference to a handler; objects that use it keep it (MPI_Errhandler_free).
///
/// # Errors
/// `Class::Errhandler` if there is no such handler.
pub fn free(handle: Errhandler) -> Result<()> {
    resolve(handle)?;
    STATE.with(|state| {
        let Some(created) = state.created.get_mut(handle) else {
            return; // Predefined handlers are never freed; MPI_Errhandler_get followed by free is correct for them.
        };
        created.references -= 1;
        if created.references == 0 {
            state.created.remove(handle);
            made::freed(What::Errhandler, handle.raw());
        }
    });
    Ok(())
}

pub(crate) fn resolve(handle: Errhandler) -> Result<Handler> {
    match handle {
        Errhandler::ARE_FATAL => Ok(Handler::Fatal),
        Errhandler::ABORT => Ok(Handler::Abort),
        Errhandler::RETURN => Ok(Handler::Return),
        Errhandler::THROW => Ok(Handler::Throw),
        Errhandler::NULL => fail(Class::Errhandler, "the error handler is MPI_ERRHANDLER_NULL"),
        _ => match STATE.with(|state| state.created.get(handle).map(|created| created.handler.clone())) {
            Some(handler) => Ok(Handler::User(handler)),
            None => fail(Class::Errhandler, format!("{:#x} is not the handle of an error handler", handle.raw())),
        },
    }
}

/// Set the handler of `target` (which must exist); `Target::File(File::NULL)` is the default of files.
///
/// # Errors
/// `Class::Errhandler` if there is no such handler.
pub fn set(target: Target, handle: Errhandler) -> Result<()> {
    let handler = resolve(handle)?;
    let replaced = STATE.with(|state| state.of.insert(target.key(), handler));
    drop(replaced);
    Ok(())
}

/// The new communicator `to` has the handler of `from` (MPI 4.1 section 9.3).
pub fn inherit(from: Comm, to: Comm) {
    let handler = own_or_default(Target::Comm(from));
    STATE.with(|state| state.of.insert(Target::Comm(to).key(), handler));
}

/// The new file has the handler that MPI_FILE_NULL has now (MPI 4.1 section 14.7).
pub fn inherit_default(file: File) {
    let handler = own_or_default(Target::File(File::NULL));
    STATE.with(|state| state.of.insert(Target::File(file).key(), handler));
}

/// A new reference to a handler of the program.
pub(crate) fn new_reference(handler: UserHandler) -> Errhandler {
    STATE.with(|state| {
        let known = state.created.iter().find(|(_, created)| Rc::ptr_eq(&created.handler, &handler));
        match known.map(|(handle, _)| handle) {
            Some(handle) => {
                state.created.get_mut(handle).expect("found above").references += 1;
                handle
            }
            // Freed by the program while this object still uses it.
            None => state.created.insert(Created { handler, references: 1 }),
        }
    })
}

/// `target` is gone.
pub fn forget(target: Target) {
    let forgotten = STATE.with(|state| state.of.remove(&target.key()));
    drop(forgotten);
}

/// The handler that the program has set for `target`.
pub(crate) fn own(target: Target) -> Option<Handler> {
    STATE.with(|state| state.of.get(&target.key()).cloned())
}

/// The handler of `target`, which exists.
pub(crate) fn own_or_default(target: Target) -> Handler {
    own(target).unwrap_or_else(|| target.default_handler())
}
