//! The tool information interface (MPI 4.1 chapter 15): what the runtime is set to and what it does, as variables. (Floor 4.)
//!
//! `cvar`: what the runtime is set to; `pvar`: what it does, with sessions and handles; `category`: both, ordered;
//! `enumeration`: names for values; `event`: what happens, told to callbacks. None of it needs MPI to be up, but before that there is no runtime to ask: variables are then 0.
//! Errors are codes of their own, never handed to an error handler.

pub mod category;
pub mod cvar;
pub mod enumeration;
pub mod event;
pub mod pvar;
mod types;

pub use types::{Failure, Kind, Result, Value, Verbosity};

use crate::consts;
use std::sync::Mutex;

/// How many times MPI_T_init_thread was called without MPI_T_finalize.
static USERS: Mutex<u32> = Mutex::new(0);

/// MPI_T_init_thread.
pub fn init() {
    *USERS.lock().unwrap() += 1;
}

/// MPI_T_finalize: the last one forgets all handles and sessions.
///
/// # Errors
/// `T_ERR_NOT_INITIALIZED`.
pub fn finalize() -> Result<()> {
    let mut users = USERS.lock().unwrap();
    if *users == 0 {
        return Err(Failure(consts::T_ERR_NOT_INITIALIZED));
    }
    *users -= 1;
    if *users == 0 {
        cvar::forget_all();
        pvar::forget_all();
        event::forget_all();
    }
    Ok(())
}

/// The interface must be initialized.
///
/// # Errors
/// `T_ERR_NOT_INITIALIZED`.
pub fn check() -> Result<()> {
    if *USERS.lock().unwrap() == 0 { Err(Failure(consts::T_ERR_NOT_INITIALIZED)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    // One test: the state belongs to the process, and tests run on several threads.
    #[test]
    fn the_interface_by_itself() {
        event::tests::told_afterwards_with_bounds();
        assert_eq!(finalize(), Err(Failure(consts::T_ERR_NOT_INITIALIZED)));
        init();
        init();
        finalize().unwrap();
        check().unwrap();

        let names: Vec<&str> = cvar::ALL.iter().map(|v| v.name).chain(pvar::ALL.iter().map(|v| v.name)).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} twice");
        }
        for variable in cvar::ALL {
            assert_eq!(std::mem::discriminant(&variable.read()), std::mem::discriminant(&variable.kind.zero()));
        }
        for variable in pvar::ALL {
            assert_eq!(std::mem::discriminant(&variable.read()), std::mem::discriminant(&variable.kind.zero()));
        }
        let of_categories = |list: fn(&category::Category) -> Vec<usize>| {
            let mut all: Vec<usize> = category::ALL.iter().flat_map(list).collect();
            all.sort_unstable();
            all
        };
        assert_eq!(of_categories(category::Category::cvars), (0..cvar::ALL.len()).collect::<Vec<_>>());
        assert_eq!(of_categories(category::Category::pvars), (0..pvar::ALL.len()).collect::<Vec<_>>());

        let session = pvar::create_session();
        let switches = pvar::index_of(b"vmpi_switches", consts::T_PVAR_CLASS_COUNTER).unwrap();
        assert_eq!(
            pvar::index_of(b"vmpi_switches", consts::T_PVAR_CLASS_LEVEL),
            Err(Failure(consts::T_ERR_INVALID_NAME))
        );
        let (handle, 1) = pvar::allocate(session, switches as i32, None).unwrap() else { panic!("one value") };
        assert_eq!(pvar::read(session, handle).unwrap(), [Value::Count(0)]);
        pvar::start(session, handle).unwrap();
        pvar::write(session, handle, &[Value::Count(7)]).unwrap();
        assert_eq!(pvar::read(session, handle).unwrap(), [Value::Count(7)]);
        pvar::reset(session, handle).unwrap();
        pvar::stop(session, handle).unwrap();
        assert_eq!(pvar::read(session, handle).unwrap(), [Value::Count(0)]);
        let level = pvar::index_of(b"vmpi_unexpected_messages", consts::T_PVAR_CLASS_LEVEL).unwrap();
        let (level, _) = pvar::allocate(session, level as i32, None).unwrap();
        let flow = pvar::index_of(b"vmpi_bytes_to", consts::T_PVAR_CLASS_AGGREGATE).unwrap();
        let unbound = pvar::allocate(session, flow as i32, None);
        assert_eq!(unbound, Err(Failure(consts::T_ERR_INVALID_HANDLE)));
        assert_eq!(pvar::start(session, level), Err(Failure(consts::T_ERR_PVAR_NO_STARTSTOP)));
        assert_eq!(pvar::reset(session, level), Err(Failure(consts::T_ERR_PVAR_NO_WRITE)));
        let other = pvar::create_session();
        assert_eq!(pvar::read(other, handle), Err(Failure(consts::T_ERR_INVALID_HANDLE)));
        pvar::free_session(session).unwrap();
        assert_eq!(pvar::read(session, handle), Err(Failure(consts::T_ERR_INVALID_SESSION)));
        finalize().unwrap();
        assert_eq!(check(), Err(Failure(consts::T_ERR_NOT_INITIALIZED)));
    }
}
