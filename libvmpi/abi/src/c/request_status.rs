//! Looking at several requests without finishing them: MPI 4.1 section 3.7.6.

use super::args::not_null;
use super::requests::{element, handles, in_status};
use super::status::{write_outcome, write_status};
use crate::abi::{Abi, CRequest};
use crate::entry::Target;
use std::ffi::c_int;
use vmpi_core::consts;
use vmpi_core::errors::{Error, Result};
use vmpi_core::handle::Request;
use vmpi_core::request;
use vmpi_core::status::Status;

/// The outcomes of complete requests, which stay as they are.
fn outcomes(requests: &[Request]) -> Vec<Result<Status>> {
    requests.iter().map(|request| request::outcome_of(*request)).collect()
}

/// Write the statuses of several operations, with their errors if any failed.
///
/// # Safety
/// `statuses` has room for all outcomes or is the sentinel.
unsafe fn write_all<A: Abi>(outcomes: &[Result<Status>], statuses: *mut A::Status) -> Result<()> {
    let first: Option<&Error> = outcomes.iter().find_map(|outcome| outcome.as_ref().err());
    for (index, outcome) in outcomes.iter().enumerate() {
        // SAFETY: as promised.
        unsafe {
            let status = element::<A>(statuses, index);
            write_status::<A>(status, &Status::EMPTY);
            write_outcome::<A>(status, outcome);
            if first.is_some() && !A::status_ignored(status) {
                A::status_set_error(status, A::err_out(outcome.as_ref().err().map_or(0, |error| error.code)));
            }
        }
    }
    first.map_or(Ok(()), |error| Err(in_status(error)))
}

/// Those that are complete and neither null nor inactive.
fn complete(requests: &[Request]) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        if !request::is_inactive(*request)? && request::is_complete(*request)? {
            found.push(index);
        }
    }
    Ok(found)
}

fn none_active(requests: &[Request]) -> Result<bool> {
    requests.iter().try_fold(true, |none, request| Ok(none && request::is_inactive(*request)?))
}

crate::entry_points! {
    /// `MPI_Request_get_status_any`.
    active fn request_get_status_any = "MPI_Request_get_status_any"(
        count: c_int, array: *const CRequest<A>, index: *mut c_int, flag: *mut c_int, status: *mut A::Status,
    ) for Target::Process => {
        let requests = handles::<A>(count, array)?;
        not_null(index, "index")?;
        not_null(flag, "flag")?;
        let any = request::test_for_one(&requests)?;
        *flag = c_int::from(any.is_some());
        *index = A::rank_out(consts::UNDEFINED);
        if let Some(first) = any {
            match first {
                None => {
                    write_status::<A>(status, &Status::EMPTY);
                    if !A::status_ignored(status) {
                        A::status_set_error(status, 0); // as the empty status has it
                    }
                }
                Some(found) => {
                    *index = found as c_int;
                    write_status::<A>(status, &request::outcome_of(requests[found])?);
                }
            }
        }
    }

    /// `MPI_Request_get_status_all`.
    active fn request_get_status_all = "MPI_Request_get_status_all"(
        count: c_int, array: *const CRequest<A>, flag: *mut c_int, statuses: *mut A::Status,
    ) for Target::Process => {
        let requests = handles::<A>(count, array)?;
        not_null(flag, "flag")?;
        let all = request::test_for_all(&requests)?;
        *flag = c_int::from(all);
        if all {
            write_all::<A>(&outcomes(&requests), statuses)?;
        }
    }

    /// `MPI_Request_get_status_some`.
    active fn request_get_status_some = "MPI_Request_get_status_some"(
        incount: c_int, array: *const CRequest<A>, outcount: *mut c_int, indices: *mut c_int, statuses: *mut A::Status,
    ) for Target::Process => {
        let requests = handles::<A>(incount, array)?;
        not_null(outcount, "outcount")?;
        request::test_for_one(&requests)?;
        if none_active(&requests)? {
            *outcount = A::rank_out(consts::UNDEFINED);
            return Ok(());
        }
        let found = complete(&requests)?;
        if !found.is_empty() {
            not_null(indices, "indices")?;
        }
        for (place, index) in found.iter().enumerate() {
            indices.add(place).write(*index as c_int);
        }
        *outcount = found.len() as c_int;
        let done: Vec<Request> = found.iter().map(|&index| requests[index]).collect();
        write_all::<A>(&outcomes(&done), statuses)?;
    }
}

/// The table of what MPI 4.1 adds to requests.
#[macro_export]
macro_rules! c_table_request_status {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::request_status];
            fn MPI_Request_get_status_any = request_get_status_any(count: c_int, array: *const $crate::abi::CRequest<$A>, index: *mut c_int, flag: *mut c_int, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Request_get_status_all = request_get_status_all(count: c_int, array: *const $crate::abi::CRequest<$A>, flag: *mut c_int, statuses: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_Request_get_status_some = request_get_status_some(incount: c_int, array: *const $crate::abi::CRequest<$A>, outcount: *mut c_int, indices: *mut c_int, statuses: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
        }
    };
}
