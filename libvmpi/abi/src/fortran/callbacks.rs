//! Operations, error handlers and generalized requests made of the program's Fortran procedures.

use crate::abi::{Abi, CErrhandler, COp, CRequest, Codec};
use crate::entry::{self, Target};
use crate::f_through;
use crate::fortran::c;
use crate::fortran::through::{Procedures, Through};
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use vmpi_core::errors::{Class, fail};
use vmpi_core::handle::{Comm, Datatype, File, Session, Win};
use vmpi_core::{datatype, errhandler, op};

/// SUBROUTINE USER_FUNCTION(INVEC, INOUTVEC, LEN, DATATYPE)
type Reduction = unsafe extern "C" fn(*const c_void, *mut c_void, *const c_int, *const c_int);
/// SUBROUTINE COMM_ERRHANDLER_FUNCTION(COMM, ERROR_CODE)
type ErrorHandler = unsafe extern "C" fn(*mut c_int, *mut c_int);
/// SUBROUTINE GREQUEST_QUERY_FUNCTION(EXTRA_STATE, STATUS, IERROR)
type Query = unsafe extern "C" fn(*mut isize, *mut c_void, *mut c_int);
/// SUBROUTINE GREQUEST_FREE_FUNCTION(EXTRA_STATE, IERROR)
type Free = unsafe extern "C" fn(*mut isize, *mut c_int);
/// SUBROUTINE GREQUEST_CANCEL_FUNCTION(EXTRA_STATE, COMPLETE, IERROR)
type Cancel = unsafe extern "C" fn(*mut isize, *mut c_int, *mut c_int);

/// The longest vector that one call of a Fortran reduction can be told of.
const LONGEST: u64 = c_int::MAX as u64;

/// MPI_OP_CREATE.
///
/// # Safety
/// `function` must be null or the Fortran procedure that MPI asks for; `op` must be valid for writes.
pub unsafe fn op_create<A: Abi>(through: Through, function: *mut c_void, commute: c_int, op: *mut COp<A>) -> c_int {
    Procedures::new([function]).announced(|| {
        // SAFETY: promised by the caller.
        unsafe {
            f_through!(through, own::op_create::<A>(function: *mut c_void, commute: c_int, op: *mut COp<A>) -> c_int)
        }
    })
}

/// MPI_COMM_CREATE_ERRHANDLER and the same for other objects, and MPI_ERRHANDLER_CREATE.
///
/// # Safety
/// `function` must be null or the Fortran procedure that MPI asks for; `errhandler` must be valid for writes.
pub unsafe fn comm_create_errhandler<A: Abi>(
    through: Through,
    function: *mut c_void,
    errhandler: *mut CErrhandler<A>,
) -> c_int {
    Procedures::new([function]).announced(|| {
        // SAFETY: promised by the caller.
        unsafe {
            f_through!(through, own::create_errhandler::<A>(
                function: *mut c_void, errhandler: *mut CErrhandler<A>
            ) -> c_int)
        }
    })
}

/// The same without a detour.
mod own {
    use super::{Abi, CErrhandler, COp, Class, Target, c_int, c_void, entry, fail, handler, op, reduction};

    pub unsafe fn op_create<A: Abi>(function: *mut c_void, commute: c_int, created: *mut COp<A>) -> c_int {
        entry::run::<A>("MPI_Op_create", Target::Process, || {
            if function.is_null() {
                return fail(Class::Arg, "the user function is a null pointer");
            }
            // SAFETY: promised by the caller.
            unsafe { created.write(A::enc(op::create(reduction::<A>(function as usize), commute != 0))) };
            Ok(())
        })
    }

    pub unsafe fn create_errhandler<A: Abi>(function: *mut c_void, errhandler: *mut CErrhandler<A>) -> c_int {
        entry::run::<A>("MPI_Comm_create_errhandler", Target::Process, || {
            if function.is_null() {
                return fail(Class::Arg, "the error handler function is a null pointer");
            }
            // SAFETY: promised by the caller.
            unsafe { errhandler.write(A::enc(super::errhandler::create(handler::<A>(function as usize)))) };
            Ok(())
        })
    }
}

/// A reduction by the program's procedure at this address, which is not 0.
///
/// # Safety
/// It must be a procedure as MPI_OP_CREATE asks for, as long as the operation is there.
pub unsafe fn reduction<A: Abi>(function: usize) -> op::UserFunction {
    // SAFETY: promised by the caller.
    let function = unsafe { std::mem::transmute::<usize, Reduction>(function) };
    Rc::new(move |input: *const c_void, inout: *mut c_void, count: u64, handle: Datatype| {
        let fortran_type = <A as Codec<Datatype>>::fenc(handle);
        let extent = datatype::get(handle).map_or(0, |ty| ty.extent());
        let mut done = 0;
        while done < count {
            let len = (count - done).min(LONGEST) as c_int;
            let offset = (done as i64).wrapping_mul(extent) as isize;
            let (input, inout) = (input.wrapping_byte_offset(offset), inout.wrapping_byte_offset(offset));
            // SAFETY: the program's procedure, called as MPI 4.1 section 6.9.5 says.
            unsafe { function(input, inout, &raw const len, &raw const fortran_type) };
            done += len as u64;
        }
    })
}

/// An error handler by the program's procedure at this address, which is not 0.
///
/// # Safety
/// It must be a procedure as MPI_COMM_CREATE_ERRHANDLER asks for, as long as the error handler is there.
pub unsafe fn handler<A: Abi>(function: usize) -> errhandler::UserHandler {
    // SAFETY: promised by the caller.
    let function = unsafe { std::mem::transmute::<usize, ErrorHandler>(function) };
    Rc::new(move |target: Target, code: i32| {
        let mut object = match target {
            Target::Process => <A as Codec<Comm>>::fenc(Comm::SELF),
            Target::Comm(comm) => <A as Codec<Comm>>::fenc(comm),
            Target::Win(win) => <A as Codec<Win>>::fenc(win),
            Target::File(file) => <A as Codec<File>>::fenc(file),
            Target::Session(session) => <A as Codec<Session>>::fenc(session),
        };
        let mut code = A::err_out(code);
        // SAFETY: the program's procedure, called as MPI 4.1 section 9.3.1 says.
        unsafe { function(&raw mut object, &raw mut code) };
        A::err_in(code)
    })
}

/// The Fortran procedures of one generalized request: C's extra state.
struct Grequest {
    query: Query,
    free: Free,
    cancel: Cancel,
    /// The program's variable itself, as in Open MPI and MPICH: programs look there for what the procedures have left.
    extra_state: *mut isize,
}

/// MPI_GREQUEST_START.
///
/// # Safety
/// The functions must be null or the Fortran procedures that MPI asks for; `extra_state` must be there until the request has ended;
/// `request` must be valid for writes.
pub unsafe fn grequest_start<A: Abi>(
    through: Through,
    query: *mut c_void,
    free: *mut c_void,
    cancel: *mut c_void,
    extra_state: *mut isize,
    request: *mut CRequest<A>,
) -> c_int {
    Procedures::new([query, free, cancel]).announced(|| {
        // SAFETY: promised by the caller.
        unsafe {
            f_through!(through, generalized::start::<A>(
                query: *mut c_void, free: *mut c_void, cancel: *mut c_void, extra_state: *mut isize,
                request: *mut CRequest<A>
            ) -> c_int)
        }
    })
}

/// Generalized requests of Fortran procedures.
pub mod generalized {
    use super::*;

    /// MPI_GREQUEST_START itself.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn start<A: Abi>(
        query: *mut c_void,
        free: *mut c_void,
        cancel: *mut c_void,
        extra_state: *mut isize,
        request: *mut CRequest<A>,
    ) -> c_int {
        // SAFETY: addresses of procedures or null; promised by the caller.
        let functions = unsafe {
            (
                std::mem::transmute::<*mut c_void, Option<Query>>(query),
                std::mem::transmute::<*mut c_void, Option<Free>>(free),
                std::mem::transmute::<*mut c_void, Option<Cancel>>(cancel),
            )
        };
        let (Some(query), Some(free), Some(cancel)) = functions else {
            return entry::run::<A>("MPI_Grequest_start", Target::Process, || {
                fail(Class::Arg, "one of the three functions is a null pointer")
            });
        };
        let state = Box::into_raw(Box::new(Grequest { query, free, cancel, extra_state }));
        // SAFETY: the functions fit the state, which lives until `grequest_free` is called, or not at all if the call fails.
        unsafe {
            let (query, free, cancel) =
                (Some(grequest_query::<A> as _), Some(grequest_free as _), Some(grequest_cancel as _));
            let code = c::grequest_start::<A>(query, free, cancel, state.cast(), request);
            if code != 0 {
                drop(Box::from_raw(state));
            }
            code
        }
    }
}

/// # Safety
/// `state` must be a live `Grequest`.
unsafe extern "C" fn grequest_query<A: Abi>(state: *mut c_void, status: *mut A::Status) -> c_int {
    let mut ierror = 0;
    // SAFETY: promised by the caller; the program's procedure, called as MPI 4.1 section 13.2 says.
    unsafe {
        let state = &*state.cast::<Grequest>();
        (state.query)(state.extra_state, status.cast(), &raw mut ierror);
    }
    ierror
}

/// # Safety
/// `state` must be a live `Grequest`, which ends here.
unsafe extern "C" fn grequest_free(state: *mut c_void) -> c_int {
    let mut ierror = 0;
    // SAFETY: promised by the caller; the program's procedure, called as MPI 4.1 section 13.2 says.
    unsafe {
        let state = Box::from_raw(state.cast::<Grequest>());
        (state.free)(state.extra_state, &raw mut ierror);
    }
    ierror
}

/// # Safety
/// `state` must be a live `Grequest`.
unsafe extern "C" fn grequest_cancel(state: *mut c_void, complete: c_int) -> c_int {
    let mut ierror = 0;
    let mut complete = c_int::from(complete != 0);
    // SAFETY: promised by the caller; the program's procedure, called as MPI 4.1 section 13.2 says.
    unsafe {
        let state = &*state.cast::<Grequest>();
        (state.cancel)(state.extra_state, &raw mut complete, &raw mut ierror);
    }
    ierror
}
