//! Requests: what MPI_Wait and MPI_Test work on, and how a rank waits. (Floor 6.)
//!
//! A request is a message (a slot), a collective (a [`Progress`]), a generalized request, or a persistent form of the
//! first two. All blocking in MPI ends up in [`block`] (`wait`).
//!
//! Reading order: `table` (the entries), `progress` (going on with them), `wait`, this file (their end), `poll_again` (polls), `copied`; then what is made of
//! messages: `probe`, `exchange`, `partitioned`, `flush`.

mod by_chance;
pub mod copied;
pub mod exchange;
pub mod flush;
mod left;
pub mod partitioned;
mod poll_again;
pub mod probe;
mod progress;
mod table;
mod wait;

pub use by_chance::{chosen, test_for_all, test_for_one, wait_for_one};
pub use flush::{finish_buffered, finish_on};
pub(crate) use left::{forget_message, plain_message};
pub(crate) use poll_again::note_message;
pub use poll_again::{Sought, message_misses_again, requests_miss_again};
pub use progress::{insert, progress, progress_now, start};
pub use table::{
    Generalized, Need, Progress, StartCollective, StartMessage, insert_done, insert_generalized, insert_partitioned,
    insert_persistent, insert_persistent_message, insert_receive, insert_send, is_casualty, is_complete, is_inactive,
};
pub(crate) use table::{Left, left, set_up};
pub use wait::*;

use crate::errors::{Class, Result, fail};
use crate::failure;
use crate::handle::Request;
use crate::lock;
use crate::p2p::{self, Slot};
use crate::request::progress::ORPHANS;
use crate::request::table::{Active, Entry, Kind, NULL, REQUESTS, is_in_doubt, remove, unknown};
use crate::status::Status;
use std::rc::Rc;

/// MPI_Grequest_complete.
pub fn complete_generalized(request: Request) -> Result<()> {
    let freed = REQUESTS.with(|requests| match requests.get_mut(request) {
        Some(Entry { active: Active::Generalized { request: generalized, complete }, freed, .. }) => {
            *complete = true;
            Ok(freed.then(|| generalized.clone()))
        }
        Some(_) => fail(Class::Request, "the request is not a generalized one"),
        None => Err(unknown(request)),
    })?;
    lock::note_change();
    if let Some(generalized) = freed {
        remove(request);
        (generalized.free)()?;
    }
    Ok(())
}

/// How a complete request ended, and whether its handle lives on (persistent).
pub struct Completion {
    pub result: Result<Status>,
    pub handle: Request,
}

/// Finish a request of one message, and nothing else, that is complete and has ended well, as most do. `None`: see `finish`.
#[inline(always)]
pub fn finish_plain(request: Request) -> Option<Status> {
    if !failure::is_quiet() || copied::any() {
        return None;
    }
    if request == Request::SENT { Some(Status::EMPTY) } else { finish_message(request) }
}

/// As `finish_plain`, of one that has an entry of its own.
#[inline(never)]
fn finish_message(request: Request) -> Option<Status> {
    REQUESTS.with(|requests| {
        let status = match requests.get(request)? {
            Entry { kind: Kind::Once, active: Active::Message(slot), .. } => p2p::poll_eager(*slot)?,
            Entry { kind: Kind::Once, active: Active::Done(status), .. } => *status,
            _ => return None,
        };
        // Such a one holds nothing that would have to be dropped.
        std::mem::forget(requests.remove(request));
        Some(status)
    })
}

/// Finish a complete request: free it, or make it inactive if it is persistent. `None`: it is not complete.
pub fn finish(request: Request) -> Result<Option<Completion>> {
    if request == NULL || request == Request::SENT {
        return Ok(Some(Completion { result: Ok(Status::EMPTY), handle: NULL }));
    }
    if !is_complete(request)? {
        return Ok(None);
    }
    if is_in_doubt(request) {
        return Ok(Some(Completion { result: Err(failure::pending_source()), handle: request }));
    }
    let active = REQUESTS.with(|requests| {
        let entry = requests.get_mut(request).expect("looked up before");
        let active = std::mem::replace(&mut entry.active, Active::Inactive);
        let keep = !matches!(entry.kind, Kind::Once);
        (active, if keep { request } else { NULL })
    });
    let (active, handle) = active;
    let result = match active {
        Active::Inactive => Ok(Status::EMPTY),
        Active::Done(status) => Ok(status),
        Active::Ended(result) => *result,
        Active::Message(slot) => p2p::poll(slot).unwrap_or(Ok(Status::EMPTY)),
        Active::Generalized { request: generalized, .. } => {
            let status = (generalized.query)();
            (generalized.free)().and(status)
        }
        Active::Collective(_) | Active::Running => Ok(Status::EMPTY),
    };
    if handle == NULL {
        remove(request);
    } else {
        copied::put_back(request);
    }
    Ok(Some(Completion { result, handle }))
}

/// Status of a request without finishing it (MPI_Request_get_status); `None` if it is not complete.
pub fn peek(request: Request) -> Result<Option<Status>> {
    match test_for_one(&[request])? {
        None => Ok(None),
        Some(_) => outcome_of(request).map(Some),
    }
}

/// Status of a request that is complete, without finishing it.
///
/// # Errors
/// The request's.
pub fn outcome_of(request: Request) -> Result<Status> {
    if request == NULL {
        return Ok(Status::EMPTY);
    }
    if is_in_doubt(request) {
        return Err(failure::pending_source());
    }
    // Finish what is under way and keep the outcome for MPI_Wait.
    let slot = REQUESTS.with(|requests| match &requests.get(request).expect("complete").active {
        Active::Message(slot) => Some(*slot),
        _ => None,
    });
    if let Some(slot) = slot
        && let Some(result) = p2p::poll(slot)
    {
        REQUESTS.with(|requests| requests.get_mut(request).expect("complete").active = Active::Ended(Box::new(result)));
    }
    copied::put_back(request);
    let generalized = REQUESTS.with(|requests| match &requests.get(request).expect("complete").active {
        Active::Generalized { request, .. } => Some(request.clone()),
        _ => None,
    });
    if let Some(generalized) = generalized {
        return (generalized.query)();
    }
    REQUESTS.with(|requests| {
        let active = &mut requests.get_mut(request).expect("complete").active;
        if let Active::Done(status) = *active {
            // Told from now on: no test says otherwise any more (`by_chance`).
            *active = Active::Ended(Box::new(Ok(status)));
        }
        match active {
            Active::Ended(result) => Result::clone(result),
            _ => Ok(Status::EMPTY),
        }
    })
}

/// MPI_Cancel: a receive that has not matched is taken back; a send has left already.
pub fn cancel(request: Request) -> Result<()> {
    enum What {
        Message(Slot),
        Generalized(Rc<Generalized>, bool),
        Nothing,
    }
    let what = REQUESTS.with(|requests| match requests.get(request) {
        None => Err(unknown(request)),
        Some(Entry { active: Active::Message(slot), receive: true, .. }) => Ok(What::Message(*slot)),
        Some(Entry { active: Active::Generalized { request, complete }, .. }) => {
            Ok(What::Generalized(request.clone(), *complete))
        }
        Some(Entry {
            active: Active::Collective(_) | Active::Ended(_), kind: Kind::PersistentCollective(_), ..
        }) => fail(Class::Request, "a collective operation cannot be cancelled"),
        Some(Entry { active: Active::Collective(_), .. }) => {
            fail(Class::Request, "a collective operation cannot be cancelled")
        }
        Some(_) => Ok(What::Nothing),
    })?;
    match what {
        What::Message(slot) => p2p::cancel(slot),
        What::Generalized(generalized, complete) => (generalized.cancel)(complete)?,
        What::Nothing => {}
    }
    Ok(())
}

/// MPI_Request_free: the operation goes on, nobody will ask for it.
pub fn free(request: Request) -> Result<()> {
    enum Then {
        Remove,
        Orphan,
        Wait,
        Call(Rc<Generalized>),
    }
    let then = REQUESTS.with(|requests| match requests.get_mut(request) {
        None => Err(unknown(request)),
        Some(entry) => {
            entry.freed = request != Request::SENT;
            Ok(match &entry.active {
                Active::Inactive | Active::Done(_) | Active::Ended(_) => Then::Remove,
                Active::Message(slot) => {
                    p2p::checked::freed(*slot);
                    entry.kind = Kind::Once;
                    Then::Orphan
                }
                Active::Collective(_) | Active::Running => Then::Wait,
                Active::Generalized { request, complete: true } => Then::Call(request.clone()),
                Active::Generalized { .. } => Then::Wait,
            })
        }
    })?;
    match then {
        Then::Remove => {
            remove(request);
        }
        Then::Orphan => ORPHANS.with(|list| list.push(request)),
        Then::Wait => {}
        Then::Call(generalized) => {
            remove(request);
            (generalized.free)()?;
        }
    }
    Ok(())
}
