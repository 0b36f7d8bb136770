//! Error handlers: MPI 4.1 chapter 9, and the MPI-1 names of the same.

use super::args::{handle_at, not_null};
use super::cxx;
use crate::abi::{Abi, C, CComm, CErrhandler, CFile, CSession, CWin, Codec, dec, enc};
use crate::entry::Target;
use crate::fortran::callbacks;
use crate::fortran::through::Procedures;
use std::ffi::c_int;
use std::rc::Rc;
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Comm, Errhandler, File, Handle, Session, Win};
use vmpi_core::{comm, handle, io, rma, session};
use vmpi_core::{errhandler as core_errhandler, raise};

/// An error handler of the program; it may read more arguments (there are none), so it is variadic.
pub type HandlerFunction<T> = Option<unsafe extern "C" fn(*mut T, *mut c_int, ...)>;
pub type CommHandler<A> = HandlerFunction<CComm<A>>;
pub type WinHandler<A> = HandlerFunction<CWin<A>>;
pub type FileHandler<A> = HandlerFunction<CFile<A>>;
pub type SessionHandler<A> = HandlerFunction<CSession<A>>;

/// What differs between objects that have an error handler.
pub trait Guarded: Handle {
    fn target(self) -> Target;
    /// The object that a handler is called with for an error of `target`.
    fn of(target: Target) -> Self;
    /// The object must exist.
    ///
    /// # Errors
    /// The class of errors about this kind of handle.
    fn check(self) -> Result<()>;
}

impl Guarded for Comm {
    fn target(self) -> Target {
        Target::Comm(self)
    }
    fn of(target: Target) -> Comm {
        match target {
            Target::Comm(handle) if comm::get(handle).is_ok() => handle,
            _ => Comm::WORLD,
        }
    }
    fn check(self) -> Result<()> {
        comm::exists(self)
    }
}

impl Guarded for Win {
    fn target(self) -> Target {
        Target::Win(self)
    }
    fn of(target: Target) -> Win {
        if let Target::Win(win) = target { win } else { Win::NULL }
    }
    fn check(self) -> Result<()> {
        rma::get_window(self).map(drop)
    }
}

impl Guarded for File {
    fn target(self) -> Target {
        Target::File(self)
    }
    fn of(target: Target) -> File {
        if let Target::File(file) = target { file } else { File::NULL }
    }
    /// MPI_FILE_NULL carries the handler that new files get.
    fn check(self) -> Result<()> {
        if self.is_null() {
            return Ok(());
        }
        io::get(self).map(drop)
    }
}

impl Guarded for Session {
    fn target(self) -> Target {
        Target::Session(self)
    }
    fn of(target: Target) -> Session {
        if let Target::Session(session) = target { session } else { Session::NULL }
    }
    fn check(self) -> Result<()> {
        session::get(self).map(drop)
    }
}

/// Make an error handler from the program's C function.
///
/// # Errors
/// `Class::Arg` for a null function.
///
/// # Safety
/// `function` must be what its type says as long as the handler is in use.
unsafe fn create<A: Abi + Codec<H>, H: Guarded>(function: HandlerFunction<C<A, H>>) -> Result<Errhandler> {
    let Some(function) = function else {
        return fail(Class::Arg, "the error handler function is a null pointer");
    };
    if Procedures::from_fortran([function as usize]).is_some() {
        // SAFETY: the address of a Fortran procedure, which a profiling tool handed on.
        return Ok(core_errhandler::create(unsafe { callbacks::handler::<A>(function as usize) }));
    }
    let made = core_errhandler::create(Rc::new(move |target, code| {
        let mut object = enc::<A, H>(H::of(target));
        let mut code = A::err_out(code);
        // SAFETY: the program gave this function for this purpose; both arguments live here.
        unsafe { function(&raw mut object, &raw mut code) };
        A::err_in(code)
    }));
    cxx::made_errhandler(made, function as usize);
    Ok(made)
}

/// The four functions of one kind of object.
macro_rules! handler_functions {
    ($H:ty; $call:ident = $call_name:literal; $(
        $create:ident = $create_name:literal, $set:ident = $set_name:literal, $get:ident = $get_name:literal;
    )*) => {
        $(crate::entry_points! {
            #[doc = concat!("`", $create_name, "`.")]
            anytime fn $create = $create_name(
                function: HandlerFunction<C<A, $H>>, errhandler: *mut CErrhandler<A>,
            ) => {
                not_null(errhandler, "errhandler")?;
                *errhandler = enc::<A, _>(create::<A, $H>(function)?);
            }

            #[doc = concat!("`", $set_name, "`.")]
            active fn $set = $set_name(object: C<A, $H>, errhandler: CErrhandler<A>)
                for dec::<A, $H>(object).target() =>
            {
                let object = dec::<A, $H>(object);
                object.check()?;
                core_errhandler::set(object.target(), dec::<A, _>(errhandler))?;
            }

            #[doc = concat!("`", $get_name, "`; the program frees what it gets.")]
            active fn $get = $get_name(object: C<A, $H>, errhandler: *mut CErrhandler<A>)
                for dec::<A, $H>(object).target() =>
            {
                let object = dec::<A, $H>(object);
                object.check()?;
                not_null(errhandler, "errhandler")?;
                *errhandler = enc::<A, _>(raise::handler_of(object.target())?);
            }
        })*
        crate::entry_points! {
            #[doc = concat!("`", $call_name, "`.")]
            active fn $call = $call_name(object: C<A, $H>, errorcode: c_int)
                for dec::<A, $H>(object).target() =>
            {
                let object = dec::<A, $H>(object);
                object.check()?;
                raise::call($call_name, object.target(), A::err_in(errorcode));
            }
        }
    };
}

handler_functions! { handle::Comm;
    comm_call_errhandler = "MPI_Comm_call_errhandler";
    comm_create_errhandler = "MPI_Comm_create_errhandler", comm_set_errhandler = "MPI_Comm_set_errhandler",
    comm_get_errhandler = "MPI_Comm_get_errhandler";
    errhandler_create = "MPI_Errhandler_create", errhandler_set = "MPI_Errhandler_set",
    errhandler_get = "MPI_Errhandler_get";
}
handler_functions! { handle::Win;
    win_call_errhandler = "MPI_Win_call_errhandler";
    win_create_errhandler = "MPI_Win_create_errhandler", win_set_errhandler = "MPI_Win_set_errhandler",
    win_get_errhandler = "MPI_Win_get_errhandler";
}
handler_functions! { handle::File;
    file_call_errhandler = "MPI_File_call_errhandler";
    file_create_errhandler = "MPI_File_create_errhandler", file_set_errhandler = "MPI_File_set_errhandler",
    file_get_errhandler = "MPI_File_get_errhandler";
}
handler_functions! { handle::Session;
    session_call_errhandler = "MPI_Session_call_errhandler";
    session_create_errhandler = "MPI_Session_create_errhandler", session_set_errhandler = "MPI_Session_set_errhandler",
    session_get_errhandler = "MPI_Session_get_errhandler";
}

crate::entry_points! {
    /// `MPI_Errhandler_free`.
    anytime fn errhandler_free = "MPI_Errhandler_free"(errhandler: *mut CErrhandler<A>) => {
        core_errhandler::free(handle_at::<A, _>(errhandler, "errhandler")?)?;
        *errhandler = enc::<A, _>(Errhandler::NULL);
    }
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_errhandler {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::errhandler];
            fn MPI_Comm_create_errhandler = comm_create_errhandler(function: $crate::c::errhandler::CommHandler<$A>, errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Comm_set_errhandler = comm_set_errhandler(object: $crate::abi::CComm<$A>, errhandler: $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Comm_get_errhandler = comm_get_errhandler(object: $crate::abi::CComm<$A>, errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Comm_call_errhandler = comm_call_errhandler(object: $crate::abi::CComm<$A>, errorcode: c_int) -> c_int;
            fn MPI_Errhandler_create = errhandler_create(function: $crate::c::errhandler::CommHandler<$A>, errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Errhandler_set = errhandler_set(object: $crate::abi::CComm<$A>, errhandler: $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Errhandler_get = errhandler_get(object: $crate::abi::CComm<$A>, errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Errhandler_free = errhandler_free(errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Win_create_errhandler = win_create_errhandler(function: $crate::c::errhandler::WinHandler<$A>, errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Win_set_errhandler = win_set_errhandler(object: $crate::abi::CWin<$A>, errhandler: $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Win_get_errhandler = win_get_errhandler(object: $crate::abi::CWin<$A>, errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Win_call_errhandler = win_call_errhandler(object: $crate::abi::CWin<$A>, errorcode: c_int) -> c_int;
            fn MPI_File_create_errhandler = file_create_errhandler(function: $crate::c::errhandler::FileHandler<$A>, errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_File_set_errhandler = file_set_errhandler(object: $crate::abi::CFile<$A>, errhandler: $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_File_get_errhandler = file_get_errhandler(object: $crate::abi::CFile<$A>, errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_File_call_errhandler = file_call_errhandler(object: $crate::abi::CFile<$A>, errorcode: c_int) -> c_int;
        }
    };
}
