//! Extensions of MPICH: generalized requests that the library polls (ROMIO's), and the memory of a datatype piece by piece.

use super::args::not_null;
use super::request::{CancelFunction, FreeFunction, QueryFunction, generalized, outcome};
use crate::abi::{Abi, CDatatype, CRequest, dec, enc};
use crate::entry::Target;
use std::ffi::{c_double, c_int, c_void};
use std::mem::{MaybeUninit, transmute};
use vmpi_core::datatype;
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::guarded::EntryGuarded;
use vmpi_core::handle::{Datatype, Request};
use vmpi_core::request;

/// `MPIX_Grequest_poll_function`.
pub type PollFunction<A> = unsafe extern "C" fn(*mut c_void, *mut <A as Abi>::Status) -> c_int;
/// `MPIX_Grequest_wait_function`: of several requests, at most so many seconds.
pub type WaitFunction<A> = unsafe extern "C" fn(c_int, *mut *mut c_void, c_double, *mut <A as Abi>::Status) -> c_int;

/// The functions of a class of generalized requests, by their addresses.
#[derive(Copy, Clone)]
struct GrequestClass {
    query: usize,
    free: usize,
    cancel: usize,
    poll: usize,
    wait: usize,
}

/// Classes are numbered in the order in which they were made, and are never freed.
static CLASSES: EntryGuarded<Vec<GrequestClass>> = EntryGuarded::new(Vec::new());

impl GrequestClass {
    fn new<A: Abi>(
        query: Option<QueryFunction<A>>,
        free: Option<FreeFunction>,
        cancel: Option<CancelFunction>,
        poll: Option<PollFunction<A>>,
        wait: Option<WaitFunction<A>>,
    ) -> GrequestClass {
        GrequestClass {
            query: query.map_or(0, |function| function as usize),
            free: free.map_or(0, |function| function as usize),
            cancel: cancel.map_or(0, |function| function as usize),
            poll: poll.map_or(0, |function| function as usize),
            wait: wait.map_or(0, |function| function as usize),
        }
    }

    /// A request of this class. It is polled; where it can only be waited for, it is waited for when it is tested, too.
    ///
    /// # Safety
    /// The functions must be such as their types say, for `extra`.
    unsafe fn start<A: Abi>(self, extra: *mut c_void) -> Request {
        // SAFETY: the addresses come from `new`.
        let (query, free, cancel, poll, wait) = unsafe {
            (
                transmute::<usize, Option<QueryFunction<A>>>(self.query),
                transmute::<usize, Option<FreeFunction>>(self.free),
                transmute::<usize, Option<CancelFunction>>(self.cancel),
                transmute::<usize, Option<PollFunction<A>>>(self.poll),
                transmute::<usize, Option<WaitFunction<A>>>(self.wait),
            )
        };
        let ask = move || -> Result<()> {
            let (mut status, mut extra) = (MaybeUninit::<A::Status>::zeroed(), extra);
            // SAFETY: the program's function, with what it was registered with.
            let code = unsafe {
                match (poll, wait) {
                    (Some(poll), _) => poll(extra, status.as_mut_ptr()),
                    (None, Some(wait)) => wait(1, &raw mut extra, 0.0, status.as_mut_ptr()),
                    (None, None) => 0,
                }
            };
            outcome::<A>(code)
        };
        // SAFETY: promised by the caller.
        let mut request = unsafe { generalized::<A>(query, free, cancel, extra) };
        if poll.is_some() || wait.is_some() {
            request.poll = Some(Box::new(ask));
        }
        request::insert_generalized(request)
    }
}

/// A number that must not be negative.
fn size_in(number: i64, what: &str) -> Result<i64> {
    if number < 0 { fail(Class::Arg, format!("{what} is {number}")) } else { Ok(number) }
}

crate::entry_points! {
    /// `MPIX_Grequest_start`.
    active fn grequest_start_polled = "MPIX_Grequest_start"(
        query: Option<QueryFunction<A>>, free: Option<FreeFunction>, cancel: Option<CancelFunction>,
        poll: Option<PollFunction<A>>, wait: Option<WaitFunction<A>>, extra: *mut c_void, req: *mut CRequest<A>,
    ) for Target::Process => {
        not_null(req, "request")?;
        *req = enc::<A, Request>(GrequestClass::new::<A>(query, free, cancel, poll, wait).start::<A>(extra));
    }

    /// `MPIX_Grequest_class_create`.
    active fn grequest_class_create = "MPIX_Grequest_class_create"(
        query: Option<QueryFunction<A>>, free: Option<FreeFunction>, cancel: Option<CancelFunction>,
        poll: Option<PollFunction<A>>, wait: Option<WaitFunction<A>>, class: *mut c_int,
    ) for Target::Process => {
        not_null(class, "greq_class")?;
        *class = CLASSES.with(|classes| {
            classes.push(GrequestClass::new::<A>(query, free, cancel, poll, wait));
            classes.len() as c_int
        });
    }

    /// `MPIX_Grequest_class_allocate`.
    active fn grequest_class_allocate = "MPIX_Grequest_class_allocate"(
        class: c_int, extra: *mut c_void, req: *mut CRequest<A>,
    ) for Target::Process => {
        not_null(req, "request")?;
        let index = usize::try_from(class).ok().and_then(|class| class.checked_sub(1));
        let Some(functions) = index.and_then(|index| CLASSES.with(|classes| classes.get(index).copied())) else {
            return fail(Class::Arg, format!("{class} is not a class that MPIX_Grequest_class_create has made"));
        };
        *req = enc::<A, Request>(functions.start::<A>(extra));
    }

    /// `MPIX_Type_iov_len`: how many pieces of memory the first `max_bytes` bytes of an element are, whole ones only.
    active fn type_iov_len = "MPIX_Type_iov_len"(
        datatype: CDatatype<A>, max_bytes: i64, pieces: *mut i64, bytes: *mut i64,
    ) for Target::Process => {
        let ty = datatype::get(dec::<A, Datatype>(datatype))?;
        let most = size_in(max_bytes, "max_iov_bytes")? as u64;
        let (mut count, mut total) = (0, 0);
        ty.blocks(1, &mut |_, len| {
            if total + len > most {
                return false;
            }
            (count, total) = (count + 1, total + len);
            true
        });
        not_null(pieces, "iov_len")?;
        *pieces = count;
        if !bytes.is_null() {
            *bytes = total as i64;
        }
    }

    /// `MPIX_Type_iov`: the pieces from number `first` on, at most `most`, by their distances from the buffer's start.
    active fn type_iov = "MPIX_Type_iov"(
        datatype: CDatatype<A>, first: i64, iov: *mut Piece, most: i64, filled: *mut i64,
    ) for Target::Process => {
        not_null(iov, "iov")?;
        not_null(filled, "actual_iov_len")?;
        let (first, most) = (size_in(first, "iov_offset")?, size_in(most, "max_iov_len")?);
        let ty = datatype::get(dec::<A, Datatype>(datatype))?;
        let (mut at, mut done) = (0, 0);
        ty.blocks(1, &mut |offset, len| {
            if at >= first && done < most {
                // SAFETY: the program has room for `most` pieces.
                unsafe { iov.add(done as usize).write(Piece { base: offset as *mut c_void, bytes: len as isize }) };
                done += 1;
            }
            at += 1;
            done < most
        });
        *filled = done;
    }
}

/// `MPIX_Iov`: a piece of memory.
#[derive(Copy, Clone, Debug)]
#[repr(C)]
pub struct Piece {
    base: *mut c_void,
    bytes: isize,
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_mpich {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::mpich];
            fn MPIX_Grequest_start = grequest_start_polled(query: Option<$crate::c::request::QueryFunction<$A>>, free: Option<$crate::c::request::FreeFunction>, cancel: Option<$crate::c::request::CancelFunction>, poll: Option<$crate::c::mpich::PollFunction<$A>>, wait: Option<$crate::c::mpich::WaitFunction<$A>>, extra: *mut c_void, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPIX_Grequest_class_create = grequest_class_create(query: Option<$crate::c::request::QueryFunction<$A>>, free: Option<$crate::c::request::FreeFunction>, cancel: Option<$crate::c::request::CancelFunction>, poll: Option<$crate::c::mpich::PollFunction<$A>>, wait: Option<$crate::c::mpich::WaitFunction<$A>>, class: *mut c_int) -> c_int;
            fn MPIX_Grequest_class_allocate = grequest_class_allocate(class: c_int, extra: *mut c_void, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPIX_Type_iov_len = type_iov_len(datatype: $crate::abi::CDatatype<$A>, max_bytes: i64, pieces: *mut i64, bytes: *mut i64) -> c_int;
            fn MPIX_Type_iov = type_iov(datatype: $crate::abi::CDatatype<$A>, first: i64, iov: *mut $crate::c::mpich::Piece, most: i64, filled: *mut i64) -> c_int;
        }
    };
}
