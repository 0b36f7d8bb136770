//! Sessions, and handles of performance variables: what one tool has counted.

use super::{Pvar, get};
use crate::lock;
use crate::tool::types::{Failure, Result, Value};
use crate::{comm, consts, handle};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// A variable as one tool sees it.
struct Handle {
    session: usize,
    index: i32,
    started: bool,
    /// Job ranks of the communicator that it is bound to.
    peers: Vec<u32>,
    /// Raw values when it was started, and what was counted before: one, or one for each peer.
    base: Vec<Value>,
    counted: Vec<Value>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let (true, Ok(variable)) = (self.started, self.variable()) {
            variable.set_counted(false);
        }
    }
}

impl Handle {
    fn variable(&self) -> Result<&'static Pvar> {
        get(self.index)
    }

    fn value(&self) -> Result<Vec<Value>> {
        let variable = self.variable()?;
        if variable.is_continuous() {
            return Ok(variable.read_all(&self.peers));
        }
        if !self.started {
            return Ok(self.counted.clone());
        }
        let now = variable.read_all(&self.peers);
        let since = self.counted.iter().zip(now).zip(&self.base);
        Ok(since
            .map(|((counted, now), base)| match variable.is_watermark() {
                true => higher(*counted, now),
                false => sum(*counted, difference(now, *base)),
            })
            .collect())
    }

    /// The watermark is about to begin anew: keep what it is now.
    fn take_note(&mut self) -> Result<()> {
        self.counted = self.value()?;
        Ok(())
    }

    fn set(&mut self, values: Vec<Value>) -> Result<()> {
        let variable = self.variable()?;
        if variable.is_continuous() {
            return Err(Failure(consts::T_ERR_PVAR_NO_WRITE));
        }
        (self.counted, self.base) = (values, variable.read_all(&self.peers));
        Ok(())
    }

    /// Back to nothing, a watermark to the present level.
    fn reset(&mut self) -> Result<()> {
        let variable = self.variable()?;
        self.set(match variable.is_watermark() {
            true => variable.read_all(&self.peers),
            false => vec![variable.kind.zero(); self.counted.len()],
        })
    }

    fn set_started(&mut self, started: bool) -> Result<()> {
        let variable = self.variable()?;
        if variable.is_continuous() {
            return Err(Failure(consts::T_ERR_PVAR_NO_STARTSTOP));
        }
        if started && !self.started {
            variable.set_counted(true);
            self.base = variable.read_all(&self.peers);
        } else if !started {
            self.counted = self.value()?;
            if self.started {
                variable.set_counted(false);
            }
        }
        self.started = started;
        Ok(())
    }
}

fn higher(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Count(a), Value::Count(b)) => Value::Count(a.max(b)),
        _ => a,
    }
}

fn sum(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Count(a), Value::Count(b)) => Value::Count(a.wrapping_add(b)),
        (Value::Seconds(a), Value::Seconds(b)) => Value::Seconds(a + b),
        _ => a,
    }
}

fn difference(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Count(a), Value::Count(b)) => Value::Count(a.wrapping_sub(b)),
        (Value::Seconds(a), Value::Seconds(b)) => Value::Seconds(a - b),
        _ => a,
    }
}

struct State {
    /// Numbers of sessions and handles, from 1; not used again.
    last: usize,
    sessions: Vec<usize>,
    handles: BTreeMap<usize, Handle>,
}

static STATE: Mutex<State> = Mutex::new(State { last: 0, sessions: Vec::new(), handles: BTreeMap::new() });

impl State {
    fn check(&self, session: usize) -> Result<()> {
        if self.sessions.contains(&session) { Ok(()) } else { Err(Failure(consts::T_ERR_INVALID_SESSION)) }
    }

    fn handle(&mut self, session: usize, handle: usize) -> Result<&mut Handle> {
        self.check(session)?;
        let found = self.handles.get_mut(&handle).filter(|found| found.session == session);
        found.ok_or(Failure(consts::T_ERR_INVALID_HANDLE))
    }

    /// The variable of a handle is about to be started, reset or written: if it is a watermark, it begins anew.
    fn begin_anew(&mut self, index: i32) -> Result<()> {
        let variable = get(index)?;
        if variable.is_watermark() {
            for handle in self.handles.values_mut().filter(|handle| handle.index == index) {
                handle.take_note()?;
            }
            variable.rewind();
        }
        Ok(())
    }

    /// `begin_anew`, then `f`.
    fn change(&mut self, session: usize, handle: usize, f: impl Fn(&mut Handle) -> Result<()>) -> Result<()> {
        let index = self.handle(session, handle)?.index;
        self.begin_anew(index)?;
        f(self.handle(session, handle)?)
    }

    /// Do `f` to all handles of a session that it can be done to.
    fn for_all(&mut self, session: usize, f: impl Fn(&mut Handle) -> Result<()>) -> Result<()> {
        self.check(session)?;
        let of_session = self.handles.iter().filter(|(_, handle)| handle.session == session);
        let numbers: Vec<usize> = of_session.map(|(&number, _)| number).collect();
        for number in numbers {
            if !self.handle(session, number)?.variable()?.is_continuous() {
                self.change(session, number, &f)?;
            }
        }
        Ok(())
    }
}

pub(in crate::tool) fn forget_all() {
    let state = &mut *STATE.lock().unwrap();
    state.sessions.clear();
    state.handles.clear();
}

/// MPI_T_pvar_session_create.
pub fn create_session() -> usize {
    let state = &mut *STATE.lock().unwrap();
    state.last += 1;
    state.sessions.push(state.last);
    state.last
}

/// MPI_T_pvar_session_free, with the session's handles.
///
/// # Errors
/// `T_ERR_INVALID_SESSION`.
pub fn free_session(session: usize) -> Result<()> {
    let state = &mut *STATE.lock().unwrap();
    state.check(session)?;
    state.sessions.retain(|known| *known != session);
    state.handles.retain(|_, handle| handle.session != session);
    Ok(())
}

/// MPI_T_pvar_handle_alloc; `comm` is what the handle is bound to if the variable is of a communicator. Returns the handle and the number of
/// its values.
///
/// # Errors
/// `T_ERR_INVALID_SESSION`, `T_ERR_INVALID_INDEX`; `T_ERR_INVALID_HANDLE` if the communicator is none.
pub fn allocate(session: usize, index: i32, comm: Option<handle::Comm>) -> Result<(usize, usize)> {
    let variable = get(index)?;
    let peers = match comm.filter(|_| variable.is_of_comm()) {
        Some(comm) => {
            let _entered = lock::enter();
            let comm = comm::get(comm).map_err(|_| Failure(consts::T_ERR_INVALID_HANDLE))?;
            comm.peers().iter().collect()
        }
        None if variable.is_of_comm() => return Err(Failure(consts::T_ERR_INVALID_HANDLE)),
        None => Vec::new(),
    };
    let count = if variable.is_of_comm() { peers.len() } else { 1 };
    let zero = vec![variable.kind.zero(); count];
    let state = &mut *STATE.lock().unwrap();
    state.check(session)?;
    state.last += 1;
    let handle = Handle { session, index, started: false, peers, base: zero.clone(), counted: zero };
    state.handles.insert(state.last, handle);
    Ok((state.last, count))
}

/// MPI_T_pvar_handle_free.
///
/// # Errors
/// `T_ERR_INVALID_SESSION`, `T_ERR_INVALID_HANDLE`.
pub fn free(session: usize, handle: usize) -> Result<()> {
    let state = &mut *STATE.lock().unwrap();
    state.handle(session, handle)?;
    state.handles.remove(&handle);
    Ok(())
}

/// The variable of a handle.
///
/// # Errors
/// As [`free`].
pub fn of_handle(session: usize, handle: usize) -> Result<&'static Pvar> {
    STATE.lock().unwrap().handle(session, handle)?.variable()
}

/// MPI_T_pvar_read.
///
/// # Errors
/// As [`free`].
pub fn read(session: usize, handle: usize) -> Result<Vec<Value>> {
    STATE.lock().unwrap().handle(session, handle)?.value()
}

/// MPI_T_pvar_start.
///
/// # Errors
/// As [`free`]; `T_ERR_PVAR_NO_STARTSTOP`.
pub fn start(session: usize, handle: usize) -> Result<()> {
    STATE.lock().unwrap().change(session, handle, |handle| handle.set_started(true))
}

/// MPI_T_pvar_stop.
///
/// # Errors
/// As [`start`].
pub fn stop(session: usize, handle: usize) -> Result<()> {
    STATE.lock().unwrap().change(session, handle, |handle| handle.set_started(false))
}

/// MPI_T_pvar_start and MPI_T_pvar_stop of MPI_T_PVAR_ALL_HANDLES.
///
/// # Errors
/// `T_ERR_INVALID_SESSION`.
pub fn set_all_started(session: usize, started: bool) -> Result<()> {
    STATE.lock().unwrap().for_all(session, |handle| handle.set_started(started))
}

/// MPI_T_pvar_write.
///
/// # Errors
/// As [`free`]; `T_ERR_PVAR_NO_WRITE`.
pub fn write(session: usize, handle: usize, values: &[Value]) -> Result<()> {
    STATE.lock().unwrap().change(session, handle, |handle| handle.set(values.to_vec()))
}

/// How many values a handle has.
///
/// # Errors
/// As [`free`].
pub fn count(session: usize, handle: usize) -> Result<usize> {
    STATE.lock().unwrap().handle(session, handle).map(|handle| handle.counted.len())
}

/// MPI_T_pvar_reset.
///
/// # Errors
/// As [`write`].
pub fn reset(session: usize, handle: usize) -> Result<()> {
    STATE.lock().unwrap().change(session, handle, Handle::reset)
}

/// MPI_T_pvar_reset of MPI_T_PVAR_ALL_HANDLES.
///
/// # Errors
/// `T_ERR_INVALID_SESSION`.
pub fn reset_all(session: usize) -> Result<()> {
    STATE.lock().unwrap().for_all(session, Handle::reset)
}

/// MPI_T_pvar_readreset, in one step.
///
/// # Errors
/// As [`write`].
pub fn read_and_reset(session: usize, handle: usize) -> Result<Vec<Value>> {
    let state = &mut *STATE.lock().unwrap();
    let found = state.handle(session, handle)?;
    if found.variable()?.is_continuous() {
        return Err(Failure(consts::T_ERR_PVAR_NO_WRITE));
    }
    let value = found.value()?;
    state.change(session, handle, Handle::reset)?;
    Ok(value)
}
