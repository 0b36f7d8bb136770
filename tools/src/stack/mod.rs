//! The call stacks of a process: stop it for a moment, read its registers and stack, find names for the addresses.
//!
//! [`capture`] stops and reads (ptrace), [`modules`] knows the files that are mapped, [`names`] finds function, file and line.
//! A stopped rank is stopped for about a millisecond; a rank that waits goes on waiting afterwards.

mod capture;
mod modules;
mod names;

pub use capture::StackError;
pub use names::{Frame, Names};

use modules::Modules;
use vmpi_shared::waits::Site;

/// One thread and its frames, the innermost first.
#[derive(Clone, Debug)]
pub struct Thread {
    pub tid: i32,
    pub name: String,
    pub frames: Vec<Frame>,
}

/// The stacks of all threads of a process (or of its first one).
///
/// # Errors
/// The process is gone, or the kernel does not let this one look at it.
pub fn stacks(pid: i32, names: &mut Names, all_threads: bool) -> Result<Vec<Thread>, StackError> {
    let mut modules = Modules::of(pid)?;
    let mut threads = Vec::new();
    for tid in capture::threads(pid, all_threads)? {
        match capture::addresses(tid, &mut modules) {
            Ok(addresses) => threads.push(Thread {
                tid,
                name: std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"))
                    .map(|name| name.trim_end().to_owned())
                    .unwrap_or_default(),
                frames: addresses.iter().enumerate().flat_map(|(at, ip)| names.frames(&modules, *ip, at > 0)).collect(),
            }),
            // It has ended meanwhile.
            Err(_) if tid != pid => {}
            Err(error) => return Err(error),
        }
    }
    Ok(threads)
}

/// Where MPI was called, from a stack that ends in MPI; `None` if it does not.
pub fn site(frames: &[Frame]) -> Option<Site> {
    let first = frames.iter().position(|frame| frame.in_vmpi)?;
    let inside = frames[first..].iter().take_while(|frame| frame.in_vmpi).count();
    let entry = &frames[first + inside - 1];
    let caller = frames.get(first + inside)?;
    Some(Site {
        function: entry.exported.clone().unwrap_or_default(),
        caller: caller.function.clone().unwrap_or_default(),
        place: caller.place(),
    })
}
