//! Tests, and waits for one of several; how they end where a record says it, or a generator does, or it is written down (`chance`).

use super::progress::{progress_now, progress_without_news};
use super::table::{Active, REQUESTS, is_complete, is_inactive};
use super::wait::{look_with, poll_missed, wait_for_all, wait_for_first};
use crate::chance::{self, Answer};
use crate::errors::Result;
use crate::failure;
use crate::handle::Request;
use crate::process::endpoint;
use crate::tool::event;
use std::sync::atomic::{AtomicBool, Ordering};
use vmpi_shared::decisions::Entry;

/// Suspend until one of `requests` is complete, and say which to take; `None`: all are null or inactive. Finishes none of them.
///
/// # Errors
/// As [`wait_for_all`].
pub fn wait_for_one(requests: &[Request]) -> Result<Option<usize>> {
    if event::is_wanted() && chance::is_on() { one_by_chance(requests) } else { wait_for_first(requests) }
}

/// Look once whether all of `requests` are complete; a miss is a scheduling point.
///
/// # Errors
/// As [`wait_for_all`].
pub fn test_for_all(requests: &[Request]) -> Result<bool> {
    // As `progress_now`, in which this is asked otherwise.
    if failure::is_news(endpoint().job.changes()) {
        return after_news::<false>(requests).map(|found| found.is_some());
    }
    progress_without_news();
    look_with::<false>(requests).map(|found| found.is_some())
}

/// Look once whether one of `requests` is complete, and which to take; `Some(None)`: all are null or inactive. A miss is a scheduling point.
///
/// # Errors
/// As [`wait_for_all`].
pub fn test_for_one(requests: &[Request]) -> Result<Option<Option<usize>>> {
    if failure::is_news(endpoint().job.changes()) {
        return after_news::<true>(requests);
    }
    progress_without_news();
    look_with::<true>(requests)
}

/// The same where there is something to be done first, or others have a word in what is found.
#[cold]
fn after_news<const ONE: bool>(requests: &[Request]) -> Result<Option<Option<usize>>> {
    if chance::is_on() {
        return test::<ONE>(requests);
    }
    look_now::<ONE>(requests)
}

/// The last test has said no, so its call takes nothing.
static SAID_NO: AtomicBool = AtomicBool::new(false);

/// Those that are complete and neither null nor inactive.
fn complete(requests: &[Request]) -> Result<Vec<usize>> {
    let mut found = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        if !is_inactive(*request)? && is_complete(*request)? {
            found.push(index);
        }
    }
    Ok(found)
}

/// The request that the record names: wait for it.
fn named(requests: &[Request], index: Option<usize>) -> Result<Option<usize>> {
    let Some(index) = index else { return Ok(None) };
    let Some(request) = requests.get(index) else {
        chance::left_the_record(&format!("one of {} requests", requests.len()), &Answer::One(Some(index)).told());
    };
    wait_for_all(&[*request])?;
    Ok(Some(index))
}

fn index_entry(found: Option<usize>) -> Entry {
    Entry::Index(found.map_or(0, |index| index as u64 + 1))
}

/// Of those that are complete, perhaps another one than the first.
fn another(requests: &[Request], first: Option<usize>) -> Result<Option<usize>> {
    if first.is_none() || !chance::is_chaotic() {
        return Ok(first);
    }
    let complete = complete(requests)?;
    Ok(complete.get(chance::take_one(complete.len())).copied().or(first))
}

/// As `wait_for_one`.
#[cold]
fn one_by_chance(requests: &[Request]) -> Result<Option<usize>> {
    let found = match chance::answer() {
        Some(Answer::One(index)) => named(requests, index)?,
        Some(other) => chance::left_the_record("which of several requests is complete", &other.told()),
        None => another(requests, wait_for_first(requests)?)?,
    };
    SAID_NO.store(false, Ordering::Relaxed);
    chance::note(&index_entry(found));
    Ok(found)
}

/// As `test_for_all` and `test_for_one`.
#[cold]
fn test<const ONE: bool>(requests: &[Request]) -> Result<Option<Option<usize>>> {
    let found = match chance::answer() {
        Some(Answer::No) => missed(),
        Some(Answer::Yes) if !ONE => {
            wait_for_all(requests)?;
            Some(None)
        }
        Some(Answer::One(index)) if ONE => Some(named(requests, index)?),
        Some(other) => chance::left_the_record("the answer of a test", &other.told()),
        None if may_say_not_yet::<ONE>(requests)? && chance::says_not_yet() => missed(),
        None => match look_now::<ONE>(requests)? {
            Some(first) if ONE => Some(another(requests, first)?),
            found => found,
        },
    };
    SAID_NO.store(found.is_none(), Ordering::Relaxed);
    chance::note(&match found {
        None => Entry::No(1),
        Some(_) if !ONE => Entry::Yes(1),
        Some(found) => index_entry(found),
    });
    Ok(found)
}

/// Is it left open whether they are complete? Not of what is null or inactive, nor of what has been told of (MPI_Request_get_status) or what the program itself
/// completes.
fn may_say_not_yet<const ONE: bool>(requests: &[Request]) -> Result<bool> {
    let (mut open, mut told) = (false, false);
    for request in requests {
        if !is_inactive(*request)? {
            let is_told = REQUESTS.with(|table| {
                let active = table.get(*request).map(|entry| &entry.active);
                matches!(active, Some(Active::Ended(_) | Active::Generalized { .. }))
            });
            (open, told) = (open || !is_told, told || is_told);
        }
    }
    Ok(open && !(ONE && told))
}

fn look_now<const ONE: bool>(requests: &[Request]) -> Result<Option<Option<usize>>> {
    progress_now();
    look_with::<ONE>(requests)
}

/// Others run, as after any test that finds nothing.
fn missed() -> Option<Option<usize>> {
    poll_missed();
    None
}

/// Which of the complete requests MPI_Waitsome and its like take; `None`: all.
///
/// # Errors
/// As `wait_for_all`.
#[inline]
pub fn chosen(requests: &[Request]) -> Result<Option<Vec<usize>>> {
    if event::is_wanted() && chance::is_on() { choose(requests).map(Some) } else { Ok(None) }
}

#[cold]
fn choose(requests: &[Request]) -> Result<Vec<usize>> {
    let complete = complete(requests)?;
    if complete.is_empty() || SAID_NO.load(Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    let chosen: Vec<usize> = match chance::answer() {
        Some(Answer::Some(indices)) => {
            for index in &indices {
                named(requests, Some(*index))?;
            }
            indices
        }
        Some(other) => chance::left_the_record("which of several requests are complete", &other.told()),
        None => chance::some_of(complete.len()).into_iter().map(|at| complete[at]).collect(),
    };
    chance::note(&Entry::Set(chosen.iter().map(|index| *index as u64).collect()));
    Ok(chosen)
}
