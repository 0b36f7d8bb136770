//! The call stacks of a process: stop it for a moment, read its registers and stack, find names for the addresses.
//!
//! [`capture`] stops and reads (ptrace), [`modules`] knows the files that are mapped ([`bytes`]: what is in them), [`names`] finds function, file and line ([`debug`]: in which file),
//! [`fold`] leaves out what is not the program's, [`group`] puts equal ones together; [`python`] has the frames of scripts.
//! A stopped rank is stopped for about a millisecond; a rank that waits goes on waiting afterwards.

mod bytes;
mod capture;
mod debug;
mod fold;
mod group;
mod modules;
mod names;
mod python;

pub use capture::{At, MOST_FRAMES, StackError};
pub use group::{Group, group, lines};
pub use names::{Frame, Names};

use modules::Modules;
use python::Python;
use vmpi_shared::crash::{Place, Registers};
use vmpi_shared::waits::Site;

/// One thread and its frames, the innermost first.
#[derive(Clone, Debug)]
pub struct Thread {
    pub tid: i32,
    pub name: String,
    pub frames: Vec<Frame>,
    /// The program's own, and what it has called.
    pub folded: Vec<Place>,
}

/// The stacks of all threads of a process (or of its first one).
///
/// # Errors
/// The process is gone, or the kernel does not let this one look at it.
pub fn stacks(pid: i32, names: &mut Names, all_threads: bool) -> Result<Vec<Thread>, StackError> {
    let modules = Modules::of(pid)?;
    let python = Python::of(pid, &modules);
    let mut threads = Vec::new();
    for tid in capture::threads(pid, all_threads)? {
        match capture::addresses(tid, &modules) {
            Ok(addresses) => threads.push(Thread {
                tid,
                name: std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm"))
                    .map(|name| name.trim_end().to_owned())
                    .unwrap_or_default(),
                folded: fold::places(&addresses, &modules, names, (&python, tid)),
                frames: addresses.iter().flat_map(|at| names.frames(&modules, *at)).collect(),
            }),
            // It has ended meanwhile.
            Err(_) if tid != pid => {}
            Err(error) => return Err(error),
        }
    }
    Ok(threads)
}

/// A stack that has been taken of a process which may be gone by now.
pub struct Taken {
    modules: Modules,
    addresses: Vec<At>,
    python: Python,
    tid: i32,
}

impl Taken {
    /// Of the thread `tid` with these registers, in a process that waits.
    ///
    /// # Errors
    /// The process is gone, or the kernel does not let this one look at it.
    pub fn at(pid: i32, tid: i32, registers: Registers) -> Result<Taken, StackError> {
        let modules = Modules::of(pid)?;
        let addresses = capture::addresses_at(pid, registers, &modules);
        let python = Python::of(pid, &modules);
        Ok(Taken { modules, addresses, python, tid })
    }

    /// Its frames: the program's own, and what it has called.
    pub fn places(&self, names: &mut Names) -> Vec<Place> {
        fold::places(&self.addresses, &self.modules, names, (&self.python, self.tid))
    }
}

/// Where a process's first thread has called MPI, or touched what a call of MPI's guards (then no function is named); `None`: it is not in MPI. And the place behind the
/// call at address `deferred` of it.
///
/// # Errors
/// The process is gone, or the kernel does not let this one look at it.
pub fn site(pid: i32, names: &mut Names, deferred: Option<u64>) -> Result<(Option<Site>, Option<Site>), StackError> {
    let modules = Modules::of(pid)?;
    let addresses = capture::addresses(pid, &modules)?;
    let deferred = deferred.map(|address| place(names, &modules, At { address, returns: true }, String::new()));
    let mut in_vmpi = |at: usize| names.in_vmpi(&modules, *addresses.get(at)?).map(str::to_owned);
    // The outermost of the first frames in MPI, and who has called it.
    let Some(first) = (0..addresses.len()).find(|at| in_vmpi(*at).is_some()) else { return Ok((None, deferred)) };
    let Some(caller) = (first..addresses.len()).find(|at| in_vmpi(*at).is_none()) else { return Ok((None, deferred)) };
    // What a signal has interrupted has called nothing. It may be libc's memcpy, or its write: who has called that is of interest.
    let touches = !addresses[caller].returns;
    let function = in_vmpi(caller - 1).filter(|_| !touches).unwrap_or_default();
    if touches && is_of_a_crash(names, &modules, addresses[caller - 1]) {
        return Ok((None, deferred));
    }
    let file = |at: &At| modules.find(at.address).and_then(|mapped| mapped.path.file_name());
    let is_libcs = |at: &At| file(at).is_some_and(|name| fold::is_libcs_file(&name.to_string_lossy()));
    let passes_on = |at: &At| (touches && is_libcs(at)) || fold::is_binding(*at, &modules);
    let own = addresses[caller..].iter().find(|at| !passes_on(at)).unwrap_or(&addresses[caller]);
    let mut found = place(names, &modules, *own, function);
    // A script's line says more than the extension through which it has called; but that may be the user's own, with lines.
    let in_python = modules.find(own.address).is_some_and(|mapped| python::is_interpreter(&mapped.path));
    if in_python || names.frames(&modules, *own).iter().all(|frame| frame.line.is_none()) {
        let python = Python::of(pid, &modules);
        if let Some(script) = fold::script(&addresses[caller..], &modules, names, (&python, pid)).first() {
            (found.caller, found.place) = (script.function.clone(), script.at.clone());
        }
    }
    Ok((Some(found), deferred))
}

/// Is this vmpi's handler of a signal that ends the program, which waits until its end has been told of?
fn is_of_a_crash(names: &mut Names, modules: &Modules, at: At) -> bool {
    names
        .frames(modules, at)
        .iter()
        .any(|frame| frame.function.as_deref().is_some_and(|name| name.contains("::crash::")))
}

fn place(names: &mut Names, modules: &Modules, at: At, function: String) -> Site {
    let frame = names.frames(modules, at).into_iter().next().unwrap_or_default();
    Site { function, caller: frame.function.clone().unwrap_or_default(), place: frame.place() }
}
