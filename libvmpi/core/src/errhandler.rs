//! Error handlers of communicators, windows, files and sessions (MPI 4.1 chapter 9).
//!
//! [`invoke`] is where every error of the core ends up: it adds who, where and what to do to the message, and does
//! what the program asked for: end the job, return the code, or call the program's function.

pub mod codes;

use crate::comm;
use crate::errors::{Class, Error, Result, fail};
use crate::face::face;
use crate::giant::Giant;
use crate::handle::{Comm, Errhandler, File, Handle, Session, Win};
use crate::io;
use crate::process;
use crate::rma;
use crate::session;
use crate::table::Table;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;
use vmpi_shared::dynamic::Ranks;

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
enum Handler {
    Fatal,
    Abort,
    Return,
    /// As `Return`: the language binding above throws.
    Throw,
    User(UserHandler),
}

impl Handler {
    fn is(&self, other: &Handler) -> bool {
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

static STATE: Giant<State> = Giant::new(State { created: Table::new(), of: BTreeMap::new() });

/// Make a handler for communicators, windows or files from the program's function.
pub fn create(handler: UserHandler) -> Errhandler {
    STATE.with(|state| state.created.insert(Created { handler, references: 1 }))
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
        }
    });
    Ok(())
}

fn resolve(handle: Errhandler) -> Result<Handler> {
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
    let handler = find(Target::Comm(from));
    STATE.with(|state| state.of.insert(Target::Comm(to).key(), handler));
}

/// The new file has the handler that MPI_FILE_NULL has now (MPI 4.1 section 14.7).
pub fn inherit_default(file: File) {
    let handler = find(Target::File(File::NULL));
    STATE.with(|state| state.of.insert(Target::File(file).key(), handler));
}

/// `target` is gone.
pub fn forget(target: Target) {
    let forgotten = STATE.with(|state| state.of.remove(&target.key()));
    drop(forgotten);
}

fn own(target: Target) -> Option<Handler> {
    STATE.with(|state| state.of.get(&target.key()).cloned())
}

fn find(target: Target) -> Handler {
    match target {
        // A program made for MPI 3 sets MPI_COMM_WORLD's handler, one for MPI 4 that of MPI_COMM_SELF; one that sets
        // neither has the same default for both.
        Target::Process => match own(Target::Comm(Comm::WORLD)) {
            Some(handler) if !handler.is(&Handler::Fatal) => handler,
            _ => own(Target::Process).unwrap_or(Handler::Fatal),
        },
        Target::Comm(handle) if comm::exists(handle).is_err() => find(Target::Process),
        Target::Win(handle) if rma::get_window(handle).is_err() => find(Target::Process),
        Target::Session(handle) if session::get(handle).is_err() => find(Target::Process),
        Target::File(_) => {
            own(target).or_else(|| own(Target::File(File::NULL))).unwrap_or_else(|| target.default_handler())
        }
        _ => own(target).unwrap_or_else(|| target.default_handler()),
    }
}

/// The handler of `target`: a new reference, which MPI_Errhandler_free gives back.
///
/// # Errors
/// `Class::Comm` for a communicator that does not exist.
pub fn handler_of(target: Target) -> Result<Errhandler> {
    if let Target::Comm(handle) = target {
        comm::exists(handle)?;
    }
    if let Target::Session(handle) = target {
        session::get(handle)?;
    }
    Ok(match find(target) {
        Handler::Fatal => Errhandler::ARE_FATAL,
        Handler::Abort => Errhandler::ABORT,
        Handler::Return => Errhandler::RETURN,
        Handler::Throw => Errhandler::THROW,
        Handler::User(handler) => STATE.with(|state| {
            let known = state.created.iter().find(|(_, created)| Rc::ptr_eq(&created.handler, &handler));
            match known.map(|(handle, _)| handle) {
                Some(handle) => {
                    state.created.get_mut(handle).expect("found above").references += 1;
                    handle
                }
                // Freed by the program while this object still uses it.
                None => state.created.insert(Created { handler, references: 1 }),
            }
        }),
    })
}

/// Does every error of `target` end the job?
pub fn is_fatal(target: Target) -> bool {
    matches!(find(target), Handler::Fatal | Handler::Abort)
}

/// Invoke the handler of `target` for `error` raised by `function`; returns the code for the caller.
/// A fatal handler prints function, message, communicator and rank, and ends the job.
#[cold]
pub fn invoke(function: &str, target: Target, error: Error) -> i32 {
    let target = error.file.map_or(target, Target::File);
    match find(target) {
        Handler::Return | Handler::Throw => error.code,
        Handler::User(handler) => {
            let made = handler(target, error.code);
            if face().handlers_choose { made } else { error.code }
        }
        Handler::Fatal => process::abort(error.code, &report(function, target, &error, FATAL)),
        Handler::Abort => {
            let why = if process::survives_deaths() { ABORT } else { FATAL };
            process::abort_group(error.code, &report(function, target, &error, why), group_of(target))
        }
    }
}

/// Invoke the handler of `target` for an error of the program's own (MPI_Comm_call_errhandler).
pub fn call(function: &str, target: Target, code: i32) {
    let message = format!("the program called the error handler with code {code} ({})", codes::error_string(code));
    invoke(function, target, Error { class: codes::error_class(code), code, message, file: None, received: None });
}

/// Why an error ends the job.
const FATAL: &str = "The job ends, because the error handler in force is MPI_ERRORS_ARE_FATAL or MPI_ERRORS_ABORT.";
/// Why it ends some of its ranks.
const ABORT: &str = "The ranks that this concerns end, because the error handler in force is MPI_ERRORS_ABORT.";

/// The job's ranks that MPI_ERRORS_ABORT ends: those of the communicator, window or file, else this one (MPI 4.1 section 9.3).
fn group_of(target: Target) -> Ranks {
    let members = match target {
        Target::Comm(handle) => comm::get(handle).ok().map(|comm| comm.job_ranks()),
        Target::Win(handle) => rma::get_window(handle).ok().map(|window| window.comm.job_ranks()),
        Target::File(handle) => io::get(handle).ok().map(|file| file.comm.job_ranks()),
        Target::Process | Target::Session(_) => None,
    };
    members.unwrap_or_else(|| process::endpoint_if_any().map(|endpoint| endpoint.me).into_iter().collect())
}

/// The block that a fatal error prints; `why` it is one.
fn report(function: &str, target: Target, error: &Error, why: &str) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write!(text, "{function} failed");
    if process::is_active() {
        let (rank, size) = process::world();
        let _ = write!(text, " on rank {rank} of {size}");
    }
    let _ = writeln!(text, " (process {}): {}", std::process::id(), error.message);
    let _ = writeln!(text, "  error:        {}", codes::error_string(error.code));
    if let Target::Comm(handle) = target
        && let Ok(comm) = comm::get(handle)
    {
        let _ = writeln!(text, "  communicator: {}, where this process is rank {}", comm.describe(), comm.rank);
    }
    if let Target::Win(handle) = target
        && let Ok(window) = rma::get_window(handle)
    {
        let _ = writeln!(text, "  window:       {}, where this process is rank {}", window.describe(), window.rank());
    }
    let setter = match target {
        Target::Win(_) => "MPI_Win_set_errhandler",
        Target::File(_) => "MPI_File_set_errhandler",
        Target::Session(_) => "MPI_Session_set_errhandler",
        Target::Comm(_) | Target::Process => "MPI_Comm_set_errhandler",
    };
    let _ = write!(
        text,
        "  {why} Correct the call, or let the program handle the error itself ({setter} with MPI_ERRORS_RETURN)."
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test: the state belongs to the process, and tests run on several threads.
    #[test]
    fn handlers_outlive_their_handles() {
        let one = Target::File(File(FIRST + 1));
        assert_eq!(handler_of(one).unwrap(), Errhandler::RETURN);
        let seen = Rc::new(std::cell::Cell::new(0));
        let counter = seen.clone();
        let handle = create(Rc::new(move |_, code| counter.replace(code) + 1));
        set(one, handle).unwrap();
        free(handle).unwrap();
        assert_eq!(free(handle).unwrap_err().class, Class::Errhandler);
        assert_eq!(invoke("MPI_File_read", one, Error::new(Class::Rank, "x")), Class::Rank.0);
        assert_eq!(seen.get(), Class::Rank.0);

        let again = handler_of(one).unwrap();
        assert_eq!(handler_of(one).unwrap(), again);
        free(again).unwrap();
        free(again).unwrap();
        assert!(resolve(again).is_err());
        set(one, Errhandler::THROW).unwrap();
        assert_eq!(handler_of(one).unwrap(), Errhandler::THROW);
        assert_eq!(invoke("MPI_File_read", one, Error::new(Class::Rank, "x")), Class::Rank.0);
        forget(one);
        assert_eq!(handler_of(one).unwrap(), Errhandler::RETURN);
        assert_eq!(handler_of(Target::Win(Win(FIRST))).unwrap(), Errhandler::ARE_FATAL, "there is no such window");

        let file = Target::File(File(FIRST));
        assert_eq!(handler_of(file).unwrap(), Errhandler::RETURN);
        set(Target::File(File::NULL), Errhandler::ARE_FATAL).unwrap();
        assert_eq!(handler_of(file).unwrap(), Errhandler::ARE_FATAL);
        assert_eq!(set(file, Errhandler::NULL).unwrap_err().class, Class::Errhandler);
    }

    const FIRST: u32 = crate::handle::FIRST_DYNAMIC;
}
