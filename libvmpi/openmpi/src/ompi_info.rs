//! What `ompi_info` calls in Open MPI's own library. It is no MPI program, but it is linked with libmpi.so.40, and ranks start it
//! (Heat asks it whether there is CUDA): a child inherits the LD_LIBRARY_PATH that puts this face in that library's place. Only Open MPI's own library
//! can answer, so the process begins once more without this face.

use std::ffi::{OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use vmpi_core::own_file::own_file;

/// The first of them that `ompi_info` calls; it has written nothing by then.
#[unsafe(no_mangle)]
pub extern "C" fn ompi_info_register_types(_types: *mut c_void) {
    start_again();
}

#[unsafe(no_mangle)]
pub extern "C" fn ompi_info_register_framework_params(_components: *mut c_void) -> c_int {
    start_again();
}

#[unsafe(no_mangle)]
pub extern "C" fn ompi_info_show_ompi_version(_scope: *const c_char) {
    start_again();
}

#[unsafe(no_mangle)]
pub extern "C" fn ompi_info_close_components() {
    start_again();
}

/// Execute this process's program with the same arguments, and without this library in what the dynamic linker looks at.
fn start_again() -> ! {
    let own = own_directory();
    let mut changed = false;
    let mut again = Command::new("/proc/self/exe");
    for name in ["LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT"] {
        let Some(old) = std::env::var_os(name) else { continue };
        let rest: Vec<PathBuf> = std::env::split_paths(&old)
            .filter(|entry| !(is_auditor(entry) || own.as_deref().is_some_and(|own| lies_in(entry, own))))
            .collect();
        let rest = std::env::join_paths(rest).unwrap_or_default();
        changed |= rest != old;
        if rest.is_empty() {
            again.env_remove(name)
        } else {
            again.env(name, rest)
        };
    }
    let failure = if changed {
        let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let mut words =
            line.split_inclusive(|&byte| byte == 0).map(|word| OsString::from_vec(word[..word.len() - 1].to_vec()));
        again.arg0(words.next().unwrap_or_default()).args(words).exec().to_string()
    } else {
        "neither LD_LIBRARY_PATH, LD_PRELOAD nor LD_AUDIT says how it came to have vmpi's".to_owned()
    };
    eprintln!("vmpi: this program of Open MPI needs Open MPI's own libmpi.so.40: {failure}");
    exit(127)
}

/// vmpi's, which leads whoever asks for an MPI library to this one (`libvmpi/audit`).
fn is_auditor(entry: &Path) -> bool {
    entry.file_name().is_some_and(|name| name == "libvmpi_audit.so")
}

/// `entry` is the directory `own`, or a file in it.
fn lies_in(entry: &Path, own: &Path) -> bool {
    std::fs::canonicalize(entry).is_ok_and(|entry| entry.starts_with(own))
}

/// Where this library was loaded from.
fn own_directory() -> Option<PathBuf> {
    std::fs::canonicalize(own_file()?.parent()?).ok()
}
