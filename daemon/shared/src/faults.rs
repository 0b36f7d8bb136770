//! Signals of faults, whoever sends them.
#![allow(unsafe_code)]

use nix::sys::signal::{SigHandler, Signal, signal};

/// From now on SIGSEGV and SIGBUS end this process as any other's.
///
/// Rust's start takes them, to tell where a stack overflows. At any other address its handler only puts the default back, so that the instruction faults once more: where
/// `kill` has sent the signal there is no such instruction, and the first one is lost. Nothing here runs on a stack that may end.
///
/// Call it before other threads are there.
pub fn end_the_process() {
    for fault in [Signal::SIGSEGV, Signal::SIGBUS] {
        // SAFETY: reads the disposition into a zeroed sigaction, then sets the default, which runs no code.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            // What was ignored at the start is the user's wish.
            if libc::sigaction(fault as i32, std::ptr::null(), &mut action) == 0 && action.sa_sigaction != libc::SIG_IGN
            {
                let _ = signal(fault, SigHandler::SigDfl);
            }
        }
    }
}
