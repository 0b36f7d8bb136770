//! Arrays of requests: their handles, and how the operations of a call that completes several have ended.

use super::status::{write_outcome, write_status};
use crate::abi::{Abi, CRequest, dec, enc};
use std::ffi::c_int;
use std::ops::Deref;
use vmpi_core::errors::{Class, Error, Result, fail};
use vmpi_core::handle::{Handle, Request};
use vmpi_core::request::{self, Completion, Need};
use vmpi_core::status::Status;

/// One element of a status array, or the sentinel for all.
///
/// # Safety
/// `statuses` has at least `index + 1` elements or is the sentinel.
pub(super) unsafe fn element<A: Abi>(statuses: *mut A::Status, index: usize) -> *mut A::Status {
    // SAFETY: as promised.
    if A::status_ignored(statuses) { statuses } else { unsafe { statuses.add(index) } }
}

/// Requests whose handles are kept without an allocation.
const FEW: usize = 32;

/// The handles of an array argument.
pub(super) struct Handles {
    few: [Request; FEW],
    count: usize,
    /// All of them, if they are more than a few.
    many: Vec<Request>,
}

impl Deref for Handles {
    type Target = [Request];

    #[inline]
    fn deref(&self) -> &[Request] {
        if self.count <= FEW { &self.few[..self.count] } else { &self.many }
    }
}

/// Has a test of these requests missed a moment ago, and does it certainly again?
///
/// # Safety
/// `array` has `count` elements, or is null.
#[inline]
pub(super) unsafe fn requests_miss_again<A: Abi>(need: Need, count: c_int, array: *const CRequest<A>) -> bool {
    // SAFETY: as promised.
    let handle = |i: usize| dec::<A, Request>(unsafe { *array.add(i) });
    count > 0 && !array.is_null() && request::requests_miss_again(need, count as usize, handle)
}

/// The handles of an array argument.
///
/// # Safety
/// `array` has `count` elements.
#[inline]
pub(super) unsafe fn handles<A: Abi>(count: c_int, array: *const CRequest<A>) -> Result<Handles> {
    if count < 0 {
        return fail(Class::Count, format!("the number of requests is {count}, which is negative"));
    }
    if count > 0 && array.is_null() {
        return fail(Class::Arg, "the array of requests is a null pointer");
    }
    let mut handles = Handles { few: [Request::NULL; FEW], count: count as usize, many: Vec::new() };
    // SAFETY: as promised.
    let handle = |i: usize| dec::<A, Request>(unsafe { *array.add(i) });
    if handles.count <= FEW {
        for (i, place) in handles.few[..count as usize].iter_mut().enumerate() {
            *place = handle(i);
        }
    } else {
        handles.many = (0..handles.count).map(handle).collect();
    }
    Ok(handles)
}

/// Finish every request; statuses carry their errors if any operation failed.
///
/// # Safety
/// As MPI_Waitall's contract.
#[inline]
pub(super) unsafe fn finish_all<A: Abi>(
    requests: &[Request],
    array: *mut CRequest<A>,
    statuses: *mut A::Status,
) -> Result<()> {
    let mut failed = Failed::default();
    for (index, request) in requests.iter().enumerate() {
        // SAFETY: as promised.
        unsafe {
            let status = element::<A>(statuses, index);
            match request::finish_plain(*request) {
                Some(value) => {
                    *array.add(index) = enc::<A, Request>(Request::NULL);
                    write_status::<A>(status, &value);
                }
                None => failed.finish::<A>(*request, array, index, status)?,
            }
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    // SAFETY: as promised.
    unsafe { failed.tell::<A>(requests.len(), statuses) }
}

/// The operations of a multiple-completion call that have not ended well, by their statuses' indices.
#[derive(Default)]
pub(super) struct Failed {
    errors: Vec<(usize, Error)>,
}

impl Failed {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Finish request `index` of `array`, which may fail.
    ///
    /// # Safety
    /// As MPI_Waitall's contract.
    #[inline(never)]
    unsafe fn finish<A: Abi>(
        &mut self,
        request: Request,
        array: *mut CRequest<A>,
        index: usize,
        status: *mut A::Status,
    ) -> Result<()> {
        // After a failure or a revocation the wait is over although some requests are under way.
        let goes_on = || Error::new(Class::Pending, "the operation goes on");
        let done = request::finish(request)?;
        let Completion { result, handle } =
            done.unwrap_or_else(|| Completion { result: Err(goes_on()), handle: request });
        // SAFETY: as promised.
        unsafe {
            *array.add(index) = enc::<A, Request>(handle);
            match result {
                Ok(value) => write_status::<A>(status, &value),
                failed => self.note::<A>(index, status, failed),
            }
        }
        Ok(())
    }

    /// # Safety
    /// As [`write_status`].
    #[cold]
    pub(super) unsafe fn note<A: Abi>(&mut self, index: usize, status: *mut A::Status, result: Result<Status>) {
        // SAFETY: as promised.
        unsafe {
            write_status::<A>(status, &Status::EMPTY);
            write_outcome::<A>(status, &result);
        }
        self.errors.extend(result.err().map(|error| (index, error)));
    }

    /// If one has failed, all statuses tell how theirs has ended.
    ///
    /// # Safety
    /// `statuses` has `count` elements or is the sentinel.
    #[cold]
    pub(super) unsafe fn tell<A: Abi>(&self, count: usize, statuses: *mut A::Status) -> Result<()> {
        let Some((_, first)) = self.errors.iter().find(|(_, error)| error.class != Class::Pending) else {
            return Ok(());
        };
        let mut errors = self.errors.iter().peekable();
        for index in 0..count {
            let code = errors.next_if(|(failed, _)| *failed == index).map_or(0, |(_, error)| error.code);
            // SAFETY: as promised.
            unsafe {
                let status = element::<A>(statuses, index);
                if !A::status_ignored(status) {
                    A::status_set_error(status, A::err_out(code));
                }
            }
        }
        Err(in_status(first))
    }
}

/// The error of a multiple-completion call: the statuses tell which operation failed and how.
pub(super) fn in_status(error: &Error) -> Error {
    Error::new(Class::InStatus, format!("at least one operation failed; the first failure: {error}"))
}
