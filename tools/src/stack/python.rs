//! Python's own frames: which script, function and line its interpreter is at. On the native stack there is one function of the interpreter for many of them.
//!
//! Read in the process's memory (py-spy's library knows the layouts of each version). What cannot be read is shown as native code.

use super::modules::Modules;
use py_spy::PythonSpy;
use py_spy::config::{Config, LockingStrategy};
use std::collections::HashMap;
use std::path::Path;
use vmpi_shared::crash::Place;

/// The frames of each thread of a process, the innermost first.
#[derive(Default)]
pub struct Python {
    threads: HashMap<i32, Vec<Place>>,
    /// Is there an interpreter at all?
    pub is_there: bool,
}

impl Python {
    /// Those of a process that waits or is stopped now and then; none if it runs no Python.
    pub fn of(pid: i32, modules: &Modules) -> Python {
        if !modules.any(is_interpreter) {
            return Python::default();
        }
        let config =
            Config { blocking: LockingStrategy::NonBlocking, collect_thread_names: false, ..Config::default() };
        let traces = PythonSpy::new(pid, &config).and_then(|mut spy| spy.get_stack_traces()).unwrap_or_default();
        let single = traces.len() == 1;
        let thread = |tid: Option<u64>| tid.and_then(|tid| i32::try_from(tid).ok()).or(single.then_some(pid));
        let threads = traces
            .iter()
            .filter_map(|trace| Some((thread(trace.os_thread_id)?, trace.frames.iter().map(place).collect())));
        Python { threads: threads.collect(), is_there: true }
    }

    /// Those of a thread.
    pub fn frames(&self, tid: i32) -> &[Place] {
        self.threads.get(&tid).map_or(&[], Vec::as_slice)
    }
}

/// Where a script is that has ended, and whose interpreter calls what was left for that.
pub fn at_end() -> Place {
    Place { function: FINALIZE.into(), at: "the script's end".into(), in_vmpi: false, in_source: true }
}

/// The interpreter's function that ends it.
pub const FINALIZE: &str = "Py_FinalizeEx";

/// Is this file the interpreter, or its library?
pub fn is_interpreter(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    ["python3", "libpython3"].iter().any(|of| name.starts_with(of))
}

fn place(frame: &py_spy::Frame) -> Place {
    let file =
        Path::new(&frame.filename).file_name().map_or(frame.filename.clone().into(), |name| name.to_string_lossy());
    Place { function: frame.name.clone(), at: format!("{file}:{}", frame.line), in_vmpi: false, in_source: true }
}

/// `mpi4py.MPI.Comm.Abort` of `__pyx_pw_6mpi4py_3MPI_4Comm_239Abort`: what Cython has made of a method's name.
pub fn cython_name(symbol: &str) -> Option<String> {
    let mut rest = ["__pyx_pw_", "__pyx_pf_", "__pyx_f_"].iter().find_map(|prefix| symbol.strip_prefix(prefix))?;
    let mut parts = Vec::new();
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (count, name) = rest.split_at(digits);
        // A module's or a class's name comes behind its length; the last one behind a number that counts the functions, if any.
        let whole =
            count.parse().ok().and_then(|count| Some((name.get(..count)?, name.get(count..)?.strip_prefix('_')?)));
        match whole {
            Some((part, others)) => {
                parts.push(part);
                rest = others;
            }
            None => {
                parts.push(name);
                break;
            }
        }
    }
    (parts.len() > 1 && parts.iter().all(|part| !part.is_empty())).then(|| parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cython_has_made() {
        let name = |symbol: &str| cython_name(symbol).unwrap_or_default();
        assert_eq!(name("__pyx_pw_6mpi4py_3MPI_4Comm_239Abort"), "mpi4py.MPI.Comm.Abort");
        assert_eq!(name("__pyx_f_6mpi4py_3MPI_PyMPI_recv"), "mpi4py.MPI.PyMPI_recv");
        assert_eq!(name("__pyx_pf_6mpi4py_3MPI_4Comm_18Send_init"), "mpi4py.MPI.Comm.Send_init");
        assert_eq!((name("MPI_Send"), name("__pyx_pw_"), name("__pyx_f_x")), Default::default());
    }

    #[test]
    fn an_interpreter_is_known_by_its_name() {
        let is = |path: &str| is_interpreter(Path::new(path));
        assert!(is("/usr/bin/python3.11") && is("/opt/lib/libpython3.12.so.1.0"));
        assert!(!is("/usr/bin/perl") && !is("/venv/lib/MPI.cpython-311-x86_64-linux-gnu.so"));
    }
}
