//! Where every error of the core ends up: [`invoke`] adds who, where and what to do to the message, and does
//! what the program asked for: end the job, return the code, or call the program's function.

use crate::comm;
use crate::errhandler::{self, Handler, Target, codes, own, own_or_default};
use crate::errors::{Error, Result};
use crate::face::face;
use crate::handle::{Comm, Errhandler, File, Handle};
use crate::io;
use crate::process;
use crate::rma;
use crate::session;
use std::fmt::Write;
use vmpi_shared::dynamic::Ranks;

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
        Target::File(_) => own(target).unwrap_or_else(|| own_or_default(Target::File(File::NULL))),
        _ => own_or_default(target),
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
        Handler::User(handler) => errhandler::new_reference(handler),
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
    rma::note_error(function, &error);
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
    use crate::errhandler::create;
    use crate::errhandler::forget;
    use crate::errhandler::free;
    use crate::errhandler::resolve;
    use crate::errhandler::set;
    use crate::errors::Class;
    use crate::handle::Win;
    use std::rc::Rc;

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
