//! Synchronisation: fence, post-start-complete-wait, locks, flush (MPI 4.1 section 12.5).
//!
//! Within a node every operation is complete at origin and target when its call returns, so these calls only order members against
//! each other. Operations on members of other nodes are completed here (`far`).

use super::checked::{self, Extent};
use super::epoch::{Access, Exposure, Held};
use super::wait::For;
use super::{Window, polled};
use crate::coll;
use crate::consts;
use crate::errors::{Class, Result, fail};
use crate::group::Members;
use crate::p2p::take_in;
use crate::{lock as entry_lock, request};
use std::collections::BTreeMap;
use vmpi_shared::mem::sync::{Ordering, fence as memory_fence};

const SEQ: Ordering = Ordering::SeqCst;

fn check_assert(assert: i32, allowed: i32) -> Result<()> {
    if assert & !allowed != 0 {
        return fail(Class::Assert, format!("{assert:#x} is not an assertion that this call knows"));
    }
    Ok(())
}

/// MPI_Win_fence: all members arrive.
///
/// # Errors
/// `Class::RmaSync` while another epoch is open, `Class::Assert`.
pub fn fence(window: &Window, assert: i32) -> Result<()> {
    check_assert(assert, consts::MODE_NOSTORE | consts::MODE_NOPUT | consts::MODE_NOPRECEDE | consts::MODE_NOSUCCEED)?;
    {
        let epoch = window.epoch.borrow();
        if !matches!(epoch.access, Access::None | Access::Fence { .. }) {
            return fail(Class::RmaSync, format!("MPI_Win_fence while {} is open", epoch.access.describe()));
        }
        if epoch.exposure.is_some() {
            return fail(Class::RmaSync, "MPI_Win_fence between MPI_Win_post and MPI_Win_wait");
        }
    }
    let used = matches!(window.epoch.borrow().access, Access::Fence { used: true });
    checked::fence_begins(window, assert, used);
    memory_fence(SEQ);
    let settled = window.settle(None);
    coll::barrier(&window.comm)?;
    let next = if assert & consts::MODE_NOSUCCEED != 0 { Access::None } else { Access::Fence { used: false } };
    window.epoch.borrow_mut().access = next;
    checked::fenced(window);
    window.note_written();
    settled
}

/// The members of `group` by their ranks in the window.
fn ranks_of(window: &Window, group: &Members) -> Result<Vec<u32>> {
    group
        .iter()
        .map(|world| match window.comm.local.rank_of(world) {
            Some(rank) => Ok(rank),
            None => fail(Class::Group, format!("rank {world} of MPI_COMM_WORLD is in the group but not in the window")),
        })
        .collect()
}

/// MPI_Win_post: open this member's memory to the group. Does not wait.
///
/// # Errors
/// `Class::RmaSync` if it is open already, `Class::Group` for a group that is not part of the window's, `Class::Assert`.
pub fn post(window: &Window, group: &Members, assert: i32) -> Result<()> {
    check_assert(assert, consts::MODE_NOCHECK | consts::MODE_NOSTORE | consts::MODE_NOPUT)?;
    let origins = ranks_of(window, group)?;
    {
        let mut epoch = window.epoch.borrow_mut();
        if epoch.exposure.is_some() {
            return fail(Class::RmaSync, "MPI_Win_post while an exposure epoch is open");
        }
        let until = epoch.completed + origins.len() as u64;
        epoch.exposure = Some(Exposure { until });
    }
    if let Some(simulated) = &window.simulated {
        return simulated.post(window, &origins, assert);
    }
    let me = window.rank();
    let (far, near) = window.split_far(origins);
    for &origin in &near {
        window.control.posts(origin, me).fetch_add(1, SEQ);
    }
    memory_fence(SEQ); // SYNC W
    far.into_iter().for_each(|origin| window.far_post(origin));
    for &origin in &near {
        if window.control.member(origin).waiting.load(SEQ) != 0 {
            window.wake(origin);
        }
    }
    entry_lock::note_change();
    Ok(())
}

/// MPI_Win_start: wait until all of the group have posted.
///
/// # Errors
/// `Class::RmaSync` if an access epoch is open, `Class::Group`, `Class::Assert`.
pub fn start(window: &Window, group: &Members, assert: i32) -> Result<()> {
    check_assert(assert, consts::MODE_NOCHECK)?;
    let targets = ranks_of(window, group)?;
    window.epoch.borrow().check_closed("MPI_Win_start")?;
    if let Some(simulated) = &window.simulated {
        simulated.start(window, &targets, assert)?;
        window.epoch.borrow_mut().access = Access::Started { targets };
        return Ok(());
    }
    let me = window.rank();
    for &target in &targets {
        let before = window.epoch.borrow().posts[target as usize];
        if assert & consts::MODE_NOCHECK == 0 {
            let posts = window.control.posts(me, target);
            window.wait_until(For::Itself, || posts.load(SEQ) != before)?;
        }
        window.epoch.borrow_mut().posts[target as usize] = before.wrapping_add(1);
    }
    window.epoch.borrow_mut().access = Access::Started { targets };
    Ok(())
}

/// MPI_Win_complete: end what MPI_Win_start began.
///
/// # Errors
/// `Class::RmaSync` without MPI_Win_start.
pub fn complete(window: &Window) -> Result<()> {
    let targets = {
        let mut epoch = window.epoch.borrow_mut();
        match std::mem::replace(&mut epoch.access, Access::None) {
            Access::Started { targets } => targets,
            other => {
                let open = other.describe();
                epoch.access = other;
                return fail(Class::RmaSync, format!("MPI_Win_complete without MPI_Win_start ({open} is open)"));
            }
        }
    };
    memory_fence(SEQ);
    targets.iter().for_each(|target| checked::completed(window, Some(*target), Extent::Target));
    if let Some(simulated) = &window.simulated {
        return simulated.complete(window, &targets);
    }
    let (far, near) = window.split_far(targets);
    // Of a dynamic window only the carrier knows whether something was wrong, and nobody asks it later.
    let settle = |target: &u32| match window.is_dynamic() {
        true => window.settle(Some(*target)),
        false => window.settle_here(Some(*target)),
    };
    // All of them, whatever is wrong with one.
    let settled: Vec<Result<()>> = far.iter().map(settle).collect();
    far.into_iter().for_each(|target| window.far_complete(target));
    for &target in &near {
        window.control.member(target).completed.fetch_add(1, SEQ);
    }
    memory_fence(SEQ); // SYNC W
    for &target in &near {
        if window.control.member(target).waiting.load(SEQ) != 0 {
            window.wake(target);
        }
    }
    entry_lock::note_change();
    settled.into_iter().collect()
}

/// How far the exposure epoch has to come.
fn exposed_until(window: &Window, what: &str) -> Result<u64> {
    match &window.epoch.borrow().exposure {
        Some(exposure) => Ok(exposure.until),
        None => fail(Class::RmaSync, format!("{what} without MPI_Win_post")),
    }
}

fn end_exposure(window: &Window, until: u64) {
    window.note_written();
    let mut epoch = window.epoch.borrow_mut();
    epoch.completed = until;
    epoch.exposure = None;
}

/// MPI_Win_wait: wait until all to whom MPI_Win_post opened the memory have completed.
///
/// # Errors
/// `Class::RmaSync` without MPI_Win_post.
pub fn wait(window: &Window) -> Result<()> {
    let until = exposed_until(window, "MPI_Win_wait")?;
    match &window.simulated {
        Some(simulated) => simulated.wait()?,
        None => {
            let completed = &window.control.member(window.rank()).completed;
            window.wait_until(For::Itself, || completed.load(SEQ) >= until)?;
        }
    }
    end_exposure(window, until);
    Ok(())
}

/// MPI_Win_test: as [`wait`] if that would not wait. A miss is a scheduling point.
///
/// # Errors
/// As [`wait`].
pub fn test(window: &Window) -> Result<bool> {
    let until = exposed_until(window, "MPI_Win_test")?;
    let completed = &window.control.member(window.rank()).completed;
    let is_over = || match &window.simulated {
        Some(simulated) => simulated.is_completed(),
        None => completed.load(SEQ) >= until,
    };
    request::progress();
    let over = is_over() || {
        request::poll_missed();
        is_over()
    };
    if over {
        if let Some(simulated) = &window.simulated {
            simulated.wait()?;
        }
        end_exposure(window, until);
    }
    Ok(over)
}

/// Whether others may hold it too.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LockKind {
    Shared,
    Exclusive,
}

/// Wait for the lock on `target`. Who gives the wait up has still its place in the line, where nobody is let past it: those behind
/// give up as well, since they know of the same failure.
fn take_lock(window: &Window, target: u32, exclusive: bool) -> Result<()> {
    take_in::look();
    window.check_member(target)?;
    if let Some(simulated) = &window.simulated {
        return simulated.lock(window, target, exclusive);
    }
    if window.is_far(target) {
        let lock = window.begin_far_lock(target, exclusive)?;
        return window.await_far(&[lock]);
    }
    let lock = &window.control.member(target).lock;
    let ticket = lock.draw(exclusive);
    if !lock.is_called(ticket) {
        lock.queue();
        let called = window.wait_until(For::Turn { target, ticket: ticket.number }, || lock.is_called(ticket));
        lock.unqueue();
        called?;
    }
    if lock.come_in(ticket) {
        call_next(window, target);
    }
    Ok(())
}

/// On another node everything that was begun there is complete then.
fn give_lock(window: &Window, target: u32, exclusive: bool) -> Result<()> {
    if let Some(simulated) = &window.simulated {
        return simulated.unlock(window, target, exclusive);
    }
    if window.is_far(target) {
        let settled = window.settle_here(Some(target));
        let unlock = window.begin_far_unlock(target, exclusive)?;
        return settled.and(window.await_far(&[unlock]));
    }
    if window.control.member(target).lock.leave(exclusive) {
        call_next(window, target);
    }
    Ok(())
}

#[cold]
fn call_next(window: &Window, target: u32) {
    for member in window.control.called(target) {
        window.wake(member);
    }
    entry_lock::note_change();
}

/// MPI_Win_lock.
///
/// # Errors
/// `Class::RmaSync` if the target is locked already or another epoch is open, `Class::Rank`, `Class::Assert`.
pub fn lock(window: &Window, kind: LockKind, rank: i32, assert: i32) -> Result<()> {
    check_assert(assert, consts::MODE_NOCHECK)?;
    let target = if rank == consts::PROC_NULL { None } else { Some(window.check_rank(rank)?) };
    {
        let epoch = window.epoch.borrow();
        match (&epoch.access, target) {
            (Access::Locks(held), Some(target)) if held.contains_key(&target) => {
                return fail(Class::RmaSync, format!("rank {target} is locked already"));
            }
            (Access::Locks(_), _) => {}
            _ => epoch.check_closed("MPI_Win_lock")?,
        }
        if target.is_none() && epoch.null_lock {
            return fail(Class::RmaSync, "MPI_PROC_NULL is locked already");
        }
    }
    let exclusive = (assert & consts::MODE_NOCHECK == 0).then_some(kind == LockKind::Exclusive);
    if let (Some(target), Some(exclusive)) = (target, exclusive) {
        take_lock(window, target, exclusive)?;
    }
    let mut epoch = window.epoch.borrow_mut();
    if !matches!(epoch.access, Access::Locks(_)) {
        epoch.access = Access::Locks(BTreeMap::new());
    }
    match (target, &mut epoch.access) {
        (Some(target), Access::Locks(held)) => drop(held.insert(target, Held { exclusive })),
        _ => epoch.null_lock = true,
    }
    window.note_written();
    Ok(())
}

/// MPI_Win_unlock.
///
/// # Errors
/// `Class::RmaSync` if the target is not locked, `Class::Rank`.
pub fn unlock(window: &Window, rank: i32) -> Result<()> {
    if rank == consts::PROC_NULL {
        let mut epoch = window.epoch.borrow_mut();
        if !std::mem::replace(&mut epoch.null_lock, false) {
            return fail(Class::RmaSync, "MPI_Win_unlock of MPI_PROC_NULL, which is not locked");
        }
        epoch.close_locks();
        return Ok(());
    }
    let target = window.check_rank(rank)?;
    let held = {
        let mut epoch = window.epoch.borrow_mut();
        let Access::Locks(held) = &mut epoch.access else {
            let open = epoch.access.describe();
            return fail(Class::RmaSync, format!("MPI_Win_unlock without MPI_Win_lock ({open} is open)"));
        };
        let Some(lock) = held.remove(&target) else {
            return fail(Class::RmaSync, format!("rank {target} is not locked"));
        };
        epoch.close_locks();
        lock
    };
    memory_fence(SEQ);
    checked::completed(window, Some(target), Extent::Target);
    let given = match held.exclusive {
        Some(exclusive) => give_lock(window, target, exclusive),
        None => window.settle(Some(target)),
    };
    request::progress();
    given
}

/// MPI_Win_lock_all: share the memory of every member.
///
/// # Errors
/// `Class::RmaSync` if another epoch is open, `Class::Assert`.
pub fn lock_all(window: &Window, assert: i32) -> Result<()> {
    check_assert(assert, consts::MODE_NOCHECK)?;
    window.epoch.borrow().check_closed("MPI_Win_lock_all")?;
    let checked = assert & consts::MODE_NOCHECK == 0;
    if checked {
        take_all(window)?;
    }
    window.epoch.borrow_mut().access = Access::All { checked };
    window.note_written();
    Ok(())
}

/// Share the memory of all members, or of none.
fn take_all(window: &Window) -> Result<()> {
    if let Some(simulated) = &window.simulated {
        take_in::look();
        return simulated.lock_all(window);
    }
    let mut taken = Vec::with_capacity(window.comm.size() as usize);
    let all = take_each(window, &mut taken);
    if all.is_err() {
        // Why it is given back is what the program is told.
        taken.into_iter().for_each(|target| drop(give_lock(window, target, false)));
    }
    all
}

/// `taken`: the members whose memory is shared now, whatever is wrong with another one.
fn take_each(window: &Window, taken: &mut Vec<u32>) -> Result<()> {
    let (far, near) = window.split_far((0..window.comm.size()).collect());
    // Those of other nodes are asked for together.
    let mut asked = Vec::with_capacity(far.len());
    let mut outcome: Result<()> = far.iter().try_for_each(|&target| {
        asked.push(window.begin_far_lock(target, false)?);
        Ok(())
    });
    if outcome.is_ok() {
        outcome = near.into_iter().try_for_each(|target| {
            take_lock(window, target, false)?;
            taken.push(target);
            Ok(())
        });
    }
    // What has been asked for comes in the end, wanted or not. Death story: `answers` gives up what a failed member may keep it from.
    if !asked.is_empty() {
        for (target, answer) in far.into_iter().zip(window.answers(&asked)) {
            match answer {
                Ok(()) => taken.push(target),
                Err(error) => outcome = outcome.and(Err(error)),
            }
        }
    }
    outcome
}

/// All of them, whatever is wrong with one.
fn give_all(window: &Window) -> Result<()> {
    if let Some(simulated) = &window.simulated {
        return simulated.unlock_all(window);
    }
    let (far, near) = window.split_far((0..window.comm.size()).collect());
    let mut outcome = window.settle_here(None);
    let mut asked = Vec::with_capacity(far.len());
    for target in far {
        match window.begin_far_unlock(target, false) {
            Ok(unlock) => asked.push(unlock),
            Err(error) => outcome = outcome.and(Err(error)),
        }
    }
    for target in near {
        outcome = outcome.and(give_lock(window, target, false));
    }
    if asked.is_empty() { outcome } else { outcome.and(window.await_far(&asked)) }
}

/// MPI_Win_unlock_all.
///
/// # Errors
/// `Class::RmaSync` without MPI_Win_lock_all.
pub fn unlock_all(window: &Window) -> Result<()> {
    let was_checked = {
        let mut epoch = window.epoch.borrow_mut();
        let Access::All { checked } = epoch.access else {
            let open = epoch.access.describe();
            return fail(Class::RmaSync, format!("MPI_Win_unlock_all without MPI_Win_lock_all ({open} is open)"));
        };
        epoch.access = Access::None;
        checked
    };
    memory_fence(SEQ);
    checked::completed(window, None, Extent::Target);
    let given = if was_checked { give_all(window) } else { window.settle(None) };
    request::progress();
    given
}

/// MPI_Win_flush: within a node everything is complete already.
///
/// # Errors
/// `Class::RmaSync` if the target is not locked, `Class::Rank`; what was wrong with operations on another node.
pub fn flush(window: &Window, rank: i32) -> Result<()> {
    let Some(target) = flushing(window, Some(rank))? else { return Ok(()) };
    checked::completed(window, Some(target), Extent::Target);
    window.settle(Some(target))
}

/// MPI_Win_flush_local.
///
/// # Errors
/// As [`flush`].
pub fn flush_local(window: &Window, rank: i32) -> Result<()> {
    let Some(target) = flushing(window, Some(rank))? else { return Ok(()) };
    checked::completed(window, Some(target), Extent::Origin);
    window.settle_here(Some(target))
}

/// MPI_Win_flush_all.
///
/// # Errors
/// `Class::RmaSync` if nothing is locked; as [`flush`].
pub fn flush_all(window: &Window) -> Result<()> {
    flushing(window, None)?;
    checked::completed(window, None, Extent::Target);
    window.settle(None)
}

/// MPI_Win_flush_local_all.
///
/// # Errors
/// As [`flush_all`].
pub fn flush_local_all(window: &Window) -> Result<()> {
    flushing(window, None)?;
    checked::completed(window, None, Extent::Origin);
    window.settle_here(None)
}

/// What all of them do; the target, if there is one.
#[inline]
fn flushing(window: &Window, rank: Option<i32>) -> Result<Option<u32>> {
    let target = match rank {
        None | Some(consts::PROC_NULL) => None,
        Some(rank) => Some(window.check_rank(rank)?),
    };
    window.check_passive(target)?;
    memory_fence(SEQ);
    window.note_written();
    // In virtual time one that waits for something is no poll.
    if !window.is_simulated() || window.operations.borrow().is_empty() {
        polled(1);
    }
    Ok(target)
}

/// MPI_Win_sync: the public and the private copy are the same memory.
pub fn sync(window: &Window) {
    memory_fence(SEQ);
    window.note_written();
    polled(4);
}
