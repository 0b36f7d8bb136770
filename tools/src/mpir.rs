//! What parallel debuggers and tools (TotalView, DDT, STAT) find in a launcher: the MPIR Process Acquisition Interface, version 1.0.
//!
//! A debugger that starts vmpirun sets `MPIR_being_debugged` before main. All ranks are then started stopped, the table is filled, and
//! `MPIR_Breakpoint` is called, where the debugger has its breakpoint: it reads the table and attaches. When that call returns the ranks
//! go on. A debugger that comes later finds the table in the running vmpirun. The names are exported from the executable (`build.rs`).
#![allow(unsafe_code, non_upper_case_globals, non_snake_case, non_camel_case_types)]

use std::ffi::{CString, c_char, c_int};
use std::ptr;

/// A process of the table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct MPIR_PROCDESC {
    pub host_name: *const c_char,
    pub executable_name: *const c_char,
    pub pid: c_int,
}

/// Ranks exist.
const MPIR_DEBUG_SPAWNED: c_int = 1;
/// The job ends before its time.
const MPIR_DEBUG_ABORTING: c_int = 2;

/// Set by the debugger.
#[unsafe(no_mangle)]
pub static mut MPIR_being_debugged: c_int = 0;
/// Read by the debugger at each `MPIR_Breakpoint`.
#[unsafe(no_mangle)]
pub static mut MPIR_debug_state: c_int = 0;
/// Why the job ends, with `MPIR_DEBUG_ABORTING`.
#[unsafe(no_mangle)]
pub static mut MPIR_debug_abort_string: *const c_char = ptr::null();
#[unsafe(no_mangle)]
pub static mut MPIR_proctable: *const MPIR_PROCDESC = ptr::null();
#[unsafe(no_mangle)]
pub static mut MPIR_proctable_size: c_int = 0;
/// That it exists says: this process is no rank.
#[unsafe(no_mangle)]
pub static mut MPIR_i_am_starter: c_int = 1;
/// That it exists says: the debugger may attach to some ranks only; the others go on without it.
#[unsafe(no_mangle)]
pub static mut MPIR_partial_attach_ok: c_int = 1;
/// That it exists says: ranks are before their main when they are first told of.
#[unsafe(no_mangle)]
pub static mut MPIR_acquired_pre_main: c_int = 1;

/// Where the debugger stops this process.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn MPIR_Breakpoint() {
    // Neither merged with another empty function nor left out.
    // SAFETY: it does nothing.
    unsafe { std::arch::asm!("nop", options(nostack, preserves_flags)) };
}

/// Does a debugger ask for the ranks?
pub fn is_debugged() -> bool {
    // SAFETY: an aligned int that another process may change at any time.
    unsafe { ptr::read_volatile(&raw const MPIR_being_debugged) != 0 }
}

/// A rank as the debugger is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub host: String,
    pub executable: String,
    pub pid: i32,
}

/// Tell of all ranks that have been started so far, and wait for the debugger if there is one. Called by the main thread only.
pub fn tell(processes: &[Process]) {
    let string = |text: &str| CString::new(text).unwrap_or_default().into_raw().cast_const();
    let table: Vec<MPIR_PROCDESC> = processes
        .iter()
        .map(|process| MPIR_PROCDESC {
            host_name: string(&process.host),
            executable_name: string(&process.executable),
            pid: process.pid,
        })
        .collect();
    // A debugger may read an older table: none is ever given back.
    let table: &'static [MPIR_PROCDESC] = table.leak();
    // SAFETY: only this thread writes, and no Rust code reads; a debugger reads while this process is stopped.
    unsafe {
        ptr::write_volatile(&raw mut MPIR_proctable_size, 0);
        ptr::write_volatile(&raw mut MPIR_proctable, table.as_ptr());
        ptr::write_volatile(&raw mut MPIR_proctable_size, table.len() as c_int);
        ptr::write_volatile(&raw mut MPIR_debug_state, MPIR_DEBUG_SPAWNED);
    }
    MPIR_Breakpoint();
}

/// Tell that the job has failed, and why.
pub fn tell_failure(why: &str) {
    let why = CString::new(why).unwrap_or_default().into_raw().cast_const();
    // SAFETY: as in `tell`.
    unsafe {
        ptr::write_volatile(&raw mut MPIR_debug_abort_string, why);
        ptr::write_volatile(&raw mut MPIR_debug_state, MPIR_DEBUG_ABORTING);
    }
    MPIR_Breakpoint();
}
