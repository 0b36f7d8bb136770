//! Requests: the wait and test families, start, cancel, free, generalized requests.

use super::requests::{Failed, element, finish_all, handles, requests_miss_again};
use super::status::{write_outcome, write_status};
use crate::abi::{Abi, CRequest, dec, enc};
use crate::entry::{self, Target};
use crate::fortran::callbacks::generalized as fortran_generalized;
use crate::fortran::through::Procedures;
use std::ffi::{c_int, c_void};
use vmpi_core::consts;
use vmpi_core::errors::{Class, Error, Result, fail};
use vmpi_core::handle::{Handle, Request};
use vmpi_core::overlap;
use vmpi_core::request::{self, Completion, Generalized, Need};
use vmpi_core::status::Status;

/// Finish a request that is complete, write handle and status back; the operation's own error is returned.
///
/// # Safety
/// `req` and `status` are valid.
#[inline]
unsafe fn finish<A: Abi>(request: Request, req: *mut CRequest<A>, status: *mut A::Status) -> Result<()> {
    if let Some(value) = request::finish_plain(request) {
        // SAFETY: as promised.
        unsafe {
            *req = enc::<A, Request>(Request::NULL);
            write_status::<A>(status, &value);
        }
        return Ok(());
    }
    // SAFETY: passed on.
    unsafe { finish_any::<A>(request, req, status) }
}

/// As `finish`, for all others.
///
/// # Safety
/// As `finish`.
#[inline(never)]
unsafe fn finish_any<A: Abi>(request: Request, req: *mut CRequest<A>, status: *mut A::Status) -> Result<()> {
    let Some(Completion { result, handle }) = request::finish(request)? else {
        return fail(Class::Intern, "the request is not complete");
    };
    // SAFETY: as promised.
    unsafe {
        *req = enc::<A, Request>(handle);
        write_outcome::<A>(status, &result);
    }
    result.map(|_| ())
}

/// Before a wait for requests where calls have been left behind, or large requests been started: those that can be are left behind, and are null or inactive then, which such a wait takes for complete.
///
/// # Safety
/// As of MPI_Waitall.
#[cold]
unsafe fn leave_requests<A: Abi>(
    count: c_int,
    array: *mut CRequest<A>,
    statuses: *mut A::Status,
    function: &'static str,
) {
    let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0 && !array.is_null()) else { return };
    overlap::make_way(array as u64, (count * size_of::<CRequest<A>>()) as u64, true);
    let asks = !A::status_ignored(statuses);
    if asks {
        overlap::make_way(statuses as u64, (count * size_of::<A::Status>()) as u64, true);
    }
    for index in 0..count {
        // SAFETY: as promised.
        unsafe {
            let place = array.add(index);
            if let Some(handle) = overlap::leave_request(dec::<A, Request>(*place), asks, function) {
                *place = enc::<A, Request>(handle);
            }
        }
    }
    overlap::note_waited();
}

/// MPI 4.1, section 3.7.3.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn wait<A: Abi>(req: *mut CRequest<A>, status: *mut A::Status) -> c_int {
    // SAFETY: the C function's contract.
    let leaves = || unsafe { leave_requests::<A>(1, req, status, "MPI_Wait") };
    entry::run_beside::<A>("MPI_Wait", Target::Process, leaves, || {
        if req.is_null() {
            return fail(Class::Request, "the request argument is a null pointer");
        }
        // SAFETY: the C function's contract.
        unsafe {
            let request = dec::<A, Request>(*req);
            request::wait_for_all(&[request])?;
            finish::<A>(request, req, status)
        }
    })
}

/// MPI 4.1, section 3.7.3.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn test<A: Abi>(req: *mut CRequest<A>, flag: *mut c_int, status: *mut A::Status) -> c_int {
    // SAFETY: the C function's contract.
    unsafe {
        if requests_miss_again::<A>(Need::All, 1, req) {
            *flag = 0;
            return 0;
        }
    }
    entry::run::<A>("MPI_Test", Target::Process, || {
        if req.is_null() {
            return fail(Class::Request, "the request argument is a null pointer");
        }
        // SAFETY: the C function's contract.
        unsafe {
            let request = dec::<A, Request>(*req);
            *flag = 0;
            if request::test_for_all(&[request])? {
                *flag = 1;
                finish::<A>(request, req, status)?;
            }
        }
        Ok(())
    })
}

/// The index of a complete request among `requests` that is neither null nor inactive.
fn complete_one(requests: &[Request], from: usize) -> Result<Option<usize>> {
    for (index, request) in requests.iter().enumerate().skip(from) {
        if !request::is_inactive(*request)? && request::is_complete(*request)? {
            return Ok(Some(index));
        }
    }
    Ok(None)
}

/// Finish the request with this index; index MPI_UNDEFINED and the empty status if there is none.
///
/// # Safety
/// As MPI_Waitany's contract.
unsafe fn finish_one_of<A: Abi>(
    requests: &[Request],
    found: Option<usize>,
    array: *mut CRequest<A>,
    index: *mut c_int,
    status: *mut A::Status,
) -> Result<()> {
    // SAFETY: as promised.
    unsafe {
        match found {
            Some(i) => {
                *index = i as c_int;
                finish::<A>(requests[i], array.add(i), status)
            }
            None => {
                *index = A::rank_out(consts::UNDEFINED);
                write_status::<A>(status, &Status::EMPTY);
                Ok(())
            }
        }
    }
}

/// MPI 4.1, section 3.7.5.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn waitany<A: Abi>(
    count: c_int,
    array: *mut CRequest<A>,
    index: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    entry::run::<A>("MPI_Waitany", Target::Process, || {
        // SAFETY: the C function's contract.
        unsafe {
            let requests = handles::<A>(count, array)?;
            let found = request::wait_for_one(&requests)?;
            finish_one_of::<A>(&requests, found, array, index, status)
        }
    })
}

/// MPI 4.1, section 3.7.5.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn testany<A: Abi>(
    count: c_int,
    array: *mut CRequest<A>,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut A::Status,
) -> c_int {
    // SAFETY: the C function's contract.
    unsafe {
        if requests_miss_again::<A>(Need::One, count, array) {
            *flag = 0;
            *index = A::rank_out(consts::UNDEFINED);
            return 0;
        }
    }
    entry::run::<A>("MPI_Testany", Target::Process, || {
        // SAFETY: the C function's contract.
        unsafe {
            let requests = handles::<A>(count, array)?;
            let found = request::test_for_one(&requests)?;
            *flag = c_int::from(found.is_some());
            let Some(found) = found else {
                *index = A::rank_out(consts::UNDEFINED);
                return Ok(());
            };
            finish_one_of::<A>(&requests, found, array, index, status)
        }
    })
}

/// MPI 4.1, section 3.7.5.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn waitall<A: Abi>(count: c_int, array: *mut CRequest<A>, statuses: *mut A::Status) -> c_int {
    // SAFETY: the C function's contract.
    let leaves = || unsafe { leave_requests::<A>(count, array, statuses, "MPI_Waitall") };
    entry::run_beside::<A>("MPI_Waitall", Target::Process, leaves, || {
        // SAFETY: the C function's contract.
        unsafe {
            let requests = handles::<A>(count, array)?;
            request::wait_for_all(&requests)?;
            finish_all::<A>(&requests, array, statuses)
        }
    })
}

/// MPI 4.1, section 3.7.5.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn testall<A: Abi>(
    count: c_int,
    array: *mut CRequest<A>,
    flag: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    // SAFETY: the C function's contract.
    unsafe {
        if requests_miss_again::<A>(Need::All, count, array) {
            *flag = 0;
            return 0;
        }
    }
    entry::run::<A>("MPI_Testall", Target::Process, || {
        // SAFETY: the C function's contract.
        unsafe {
            let requests = handles::<A>(count, array)?;
            let all = request::test_for_all(&requests)?;
            *flag = c_int::from(all);
            if all { finish_all::<A>(&requests, array, statuses) } else { Ok(()) }
        }
    })
}

/// Finish every complete request, in the order of the list, as the other libraries do; `outcount` MPI_UNDEFINED if none is active.
///
/// # Safety
/// As MPI_Waitsome's contract.
unsafe fn finish_some<A: Abi>(
    requests: &[Request],
    array: *mut CRequest<A>,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut A::Status,
) -> Result<()> {
    let mut active = false;
    for request in requests {
        active |= !request::is_inactive(*request)?;
    }
    // SAFETY: as promised.
    unsafe {
        if !active {
            *outcount = A::rank_out(consts::UNDEFINED);
            return Ok(());
        }
        let (mut done, mut from, mut failed) = (0usize, 0, Failed::default());
        let chosen = request::chosen(requests)?;
        while let Some(index) = complete_one(requests, from)? {
            if chosen.as_ref().is_some_and(|chosen| !chosen.contains(&index)) {
                from = index + 1;
                continue;
            }
            let Some(Completion { result, handle }) = request::finish(requests[index])? else { break };
            *array.add(index) = enc::<A, Request>(handle);
            *indices.add(done) = index as c_int;
            let status = element::<A>(statuses, done);
            match result {
                Ok(value) => write_status::<A>(status, &value),
                error => failed.note::<A>(done, status, error),
            }
            done += 1;
            from = index + 1;
        }
        *outcount = done as c_int;
        if failed.is_empty() { Ok(()) } else { failed.tell::<A>(done, statuses) }
    }
}

/// MPI 4.1, section 3.7.5.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn waitsome<A: Abi>(
    count: c_int,
    array: *mut CRequest<A>,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    entry::run::<A>("MPI_Waitsome", Target::Process, || {
        // SAFETY: the C function's contract.
        unsafe {
            let requests = handles::<A>(count, array)?;
            request::wait_for_one(&requests)?;
            finish_some::<A>(&requests, array, outcount, indices, statuses)
        }
    })
}

/// MPI 4.1, section 3.7.5.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn testsome<A: Abi>(
    count: c_int,
    array: *mut CRequest<A>,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut A::Status,
) -> c_int {
    // SAFETY: the C function's contract.
    unsafe {
        if requests_miss_again::<A>(Need::One, count, array) {
            *outcount = 0;
            return 0;
        }
    }
    entry::run::<A>("MPI_Testsome", Target::Process, || {
        // SAFETY: the C function's contract.
        unsafe {
            let requests = handles::<A>(count, array)?;
            request::test_for_one(&requests)?;
            finish_some::<A>(&requests, array, outcount, indices, statuses)
        }
    })
}

/// MPI 4.1, section 3.7.6.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn request_get_status<A: Abi>(req: CRequest<A>, flag: *mut c_int, status: *mut A::Status) -> c_int {
    // SAFETY: one handle; `flag` is the program's to write.
    unsafe {
        if requests_miss_again::<A>(Need::One, 1, &raw const req) {
            *flag = 0;
            return 0;
        }
    }
    entry::run::<A>("MPI_Request_get_status", Target::Process, || {
        let found = request::peek(dec::<A, Request>(req))?;
        // SAFETY: `flag` and `status` are the program's to write.
        unsafe {
            *flag = c_int::from(found.is_some());
            if let Some(found) = found {
                write_status::<A>(status, &found);
            }
        }
        Ok(())
    })
}

/// MPI 4.1, section 3.7.3.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn request_free<A: Abi>(req: *mut CRequest<A>) -> c_int {
    entry::run::<A>("MPI_Request_free", Target::Process, || {
        if req.is_null() {
            return fail(Class::Request, "the request argument is a null pointer");
        }
        // SAFETY: `req` is valid.
        unsafe {
            request::free(dec::<A, Request>(*req))?;
            *req = enc::<A, Request>(Request::NULL);
        }
        Ok(())
    })
}

/// MPI 4.1, section 3.8.4.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn cancel<A: Abi>(req: *mut CRequest<A>) -> c_int {
    entry::run::<A>("MPI_Cancel", Target::Process, || {
        if req.is_null() {
            return fail(Class::Request, "the request argument is a null pointer");
        }
        // SAFETY: `req` is valid.
        request::cancel(dec::<A, Request>(unsafe { *req }))
    })
}

/// MPI 4.1, section 3.8.4.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn test_cancelled<A: Abi>(status: *const A::Status, flag: *mut c_int) -> c_int {
    entry::run::<A>("MPI_Test_cancelled", Target::Process, || {
        // SAFETY: both are valid.
        unsafe { *flag = c_int::from(A::status_raw(status).cancelled) };
        Ok(())
    })
}

/// MPI 4.1, section 3.9.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn start<A: Abi>(req: *mut CRequest<A>) -> c_int {
    entry::run::<A>("MPI_Start", Target::Process, || {
        if req.is_null() {
            return fail(Class::Request, "the request argument is a null pointer");
        }
        // SAFETY: `req` is valid.
        request::start(dec::<A, Request>(unsafe { *req }))?;
        overlap::note_started();
        Ok(())
    })
}

/// MPI 4.1, section 3.9.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn startall<A: Abi>(count: c_int, array: *mut CRequest<A>) -> c_int {
    entry::run::<A>("MPI_Startall", Target::Process, || {
        // SAFETY: the array has `count` elements.
        for request in unsafe { handles::<A>(count, array) }?.iter() {
            request::start(*request)?;
        }
        overlap::note_started();
        Ok(())
    })
}

/// `MPI_Grequest_query_function` and its companions.
pub type QueryFunction<A> = unsafe extern "C" fn(*mut c_void, *mut <A as Abi>::Status) -> c_int;
pub type FreeFunction = unsafe extern "C" fn(*mut c_void) -> c_int;
pub type CancelFunction = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;

pub(super) fn outcome<A: Abi>(code: c_int) -> Result<()> {
    if code == 0 { Ok(()) } else { Err(Error::user(A::err_in(code))) }
}

/// MPI 4.1, section 13.2.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn grequest_start<A: Abi>(
    query: Option<QueryFunction<A>>,
    free: Option<FreeFunction>,
    cancel: Option<CancelFunction>,
    extra: *mut c_void,
    req: *mut CRequest<A>,
) -> c_int {
    let addresses = [
        query.map_or(0, |query| query as usize),
        free.map_or(0, |free| free as usize),
        cancel.map_or(0, |cancel| cancel as usize),
    ];
    if Procedures::from_fortran(addresses).is_some() {
        let [query, free, cancel] = addresses.map(|address| address as *mut c_void);
        // SAFETY: the addresses of Fortran procedures, which a profiling tool handed on; the rest is the caller's promise.
        return unsafe { fortran_generalized::start::<A>(query, free, cancel, extra.cast(), req) };
    }
    entry::run::<A>("MPI_Grequest_start", Target::Process, || {
        // SAFETY: the caller's promise.
        let request = unsafe { generalized::<A>(query, free, cancel, extra) };
        // SAFETY: `req` is the program's to write.
        unsafe { *req = enc::<A, Request>(request::insert_generalized(request)) };
        Ok(())
    })
}

/// A generalized request of the program's functions; null ones do nothing.
///
/// # Safety
/// The functions must be such as their types say, for `extra`, until the request has ended.
pub(super) unsafe fn generalized<A: Abi>(
    query: Option<QueryFunction<A>>,
    free: Option<FreeFunction>,
    cancel: Option<CancelFunction>,
    extra: *mut c_void,
) -> Generalized {
    let query_status = move || {
        let mut status = std::mem::MaybeUninit::<A::Status>::zeroed();
        // SAFETY: the callback is the program's, called with what it was registered with.
        unsafe {
            A::status_write(status.as_mut_ptr(), &Status::EMPTY);
            if let Some(query) = query {
                outcome::<A>(query(extra, status.as_mut_ptr()))?;
            }
            Ok(A::status_read(status.as_ptr()))
        }
    };
    Generalized {
        query: Box::new(query_status),
        // SAFETY: as above.
        free: Box::new(move || free.map_or(Ok(()), |free| outcome::<A>(unsafe { free(extra) }))),
        cancel: Box::new(move |complete| {
            // SAFETY: as above.
            cancel.map_or(Ok(()), |cancel| outcome::<A>(unsafe { cancel(extra, c_int::from(complete)) }))
        }),
        poll: None,
    }
}

/// MPI 4.1, section 13.2.
///
/// # Safety
/// As the C function's contract.
pub unsafe fn grequest_complete<A: Abi>(req: CRequest<A>) -> c_int {
    entry::run::<A>("MPI_Grequest_complete", Target::Process, || request::complete_generalized(dec::<A, Request>(req)))
}

#[macro_export]
macro_rules! c_table_request {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::request];
            fn MPI_Wait = wait(req: *mut $crate::abi::CRequest<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Test = test(req: *mut $crate::abi::CRequest<$A>, flag: *mut c_int, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Waitany = waitany(count: c_int, array: *mut $crate::abi::CRequest<$A>, index: *mut c_int, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Testany = testany(count: c_int, array: *mut $crate::abi::CRequest<$A>, index: *mut c_int, flag: *mut c_int, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Waitall = waitall(count: c_int, array: *mut $crate::abi::CRequest<$A>, statuses: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Testall = testall(count: c_int, array: *mut $crate::abi::CRequest<$A>, flag: *mut c_int, statuses: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Waitsome = waitsome(count: c_int, array: *mut $crate::abi::CRequest<$A>, outcount: *mut c_int, indices: *mut c_int, statuses: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Testsome = testsome(count: c_int, array: *mut $crate::abi::CRequest<$A>, outcount: *mut c_int, indices: *mut c_int, statuses: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Request_get_status = request_get_status(req: $crate::abi::CRequest<$A>, flag: *mut c_int, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Request_free = request_free(req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Cancel = cancel(req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Test_cancelled = test_cancelled(status: *const <$A as $crate::abi::Abi>::Status, flag: *mut c_int) -> c_int;
            fn MPI_Start = start(req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Startall = startall(count: c_int, array: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Grequest_start = grequest_start(query: Option<$crate::c::request::QueryFunction<$A>>, free: Option<$crate::c::request::FreeFunction>, cancel: Option<$crate::c::request::CancelFunction>, extra: *mut c_void, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Grequest_complete = grequest_complete(req: $crate::abi::CRequest<$A>) -> c_int;
        }
    };
}
