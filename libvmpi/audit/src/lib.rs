//! An auditor of ld.so (rtld-audit(7)): where a program asks for an MPI library, by its name or by a path (`dlopen` of a Python, Julia or
//! Rust binding, DT_RPATH of what a script starts), vmpi's library of that ABI is opened instead. Anything else would be a second MPI in the rank,
//! which knows nothing of the job.
//!
//! vmpirun names this file in LD_AUDIT of interpreters, and of what may start one; the libraries lie beside it. ld.so asks before it searches. In any other
//! program it is no auditor.
//! There is no C library here and no allocation: a few system calls, and those only for names that begin with `libmpi`.
#![no_std]
// `builtins` must not be made of calls of itself.
#![no_builtins]
#![allow(unsafe_code)]

mod builtins;
mod system;

use core::ffi::{CStr, c_char, c_uint};
use system::{Text, is_there, own_program, real_path};

/// The name as the program gave it (link.h).
const LA_SER_ORIG: c_uint = 1;
/// The end of this file's name in LD_AUDIT.
const OWN_NAME: &[u8] = b"/libvmpi_audit.so";

/// Sonames, without what may follow of a version, and the files that stand for them. Others of these MPIs (C++ bindings, `mpi_f08`) are
/// the system's, on top of these.
const LIBRARIES: &[(&[u8], &[u8])] = &[
    (b"libmpi.so.40", b"/openmpi/libmpi.so.40"),
    (b"libmpi_mpifh.so.40", b"/openmpi/libmpi_mpifh.so.40"),
    (b"libmpi_usempi_ignore_tkr.so.40", b"/openmpi/libmpi_usempi_ignore_tkr.so.40"),
    (b"libmpi.so.12", b"/mpich/libmpi.so.12"),
    (b"libmpich.so.12", b"/mpich/libmpich.so.12"),
    (b"libmpifort.so.12", b"/mpich/libmpifort.so.12"),
    (b"libmpichfort.so.12", b"/mpich/libmpichfort.so.12"),
    (b"libmpi_abi.so.0", b"/standard/libmpi_abi.so.0"),
    (b"libmpi_abi.so.1", b"/standard/libmpi_abi.so.1"),
    (b"libmpifort_abi.so.0", b"/standard/libmpifort_abi.so.0"),
    (b"libmpifort_abi.so.1", b"/standard/libmpifort_abi.so.1"),
];

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    system::exit(125)
}

/// Interpreters of languages whose programs open libraries by a path, as vmpirun knows them (`tools/src/program.rs`); `launcher.rs` compares the two lists.
const INTERPRETERS: [&str; 11] =
    ["python", "pypy", "perl", "ruby", "julia", "R", "node", "lua", "java", "octave", "tclsh"];

/// ld.so's first question: the version of its interface, which is used in its oldest form; 0: there is nothing to be asked here.
#[unsafe(no_mangle)]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    let mut file = Text::EMPTY;
    let is_other = own_program(&mut file).is_some_and(|file| !is_interpreter(last_part(file)));
    if is_other { 0 } else { version }
}

/// By its name without what may follow of a version.
fn is_interpreter(name: &[u8]) -> bool {
    let is_version = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
    let end = name.iter().rposition(|byte| !is_version(byte)).map_or(0, |last| last + 1);
    INTERPRETERS.iter().any(|known| known.as_bytes() == &name[..end])
}

/// What is to be opened for `name`.
///
/// # Safety
/// ld.so calls it, holding its lock, with a string; what is returned must stay until the next call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn la_objsearch(name: *const c_char, _cookie: *mut usize, flag: c_uint) -> *const c_char {
    if flag != LA_SER_ORIG || name.is_null() {
        return name;
    }
    // SAFETY: ld.so gives a string.
    let asked = unsafe { CStr::from_ptr(name) }.to_bytes();
    match ours(asked) {
        Some(path) => path,
        None => name,
    }
}

/// The path of vmpi's library for what is asked for, if there is one.
fn ours(asked: &[u8]) -> Option<*const c_char> {
    let base = last_part(asked);
    if !base.starts_with(b"libmpi") {
        return None;
    }
    static mut REAL: Text = Text::EMPTY;
    static mut PATH: Text = Text::EMPTY;
    let (real, path) = (&raw mut REAL, &raw mut PATH);
    // SAFETY: ld.so's lock: no two calls at a time, and what the last one returned has been used.
    let (real, path) = unsafe { (&mut *real, &mut *path) };
    let file = match of_soname(base) {
        Some(file) => file,
        // `libmpi.so` is a link to the library whose ABI it is.
        None if asked.len() > base.len() => of_soname(last_part(real_path(asked, real)?))?,
        None => return None,
    };
    let dir = own_dir(path)?;
    if asked.starts_with(dir) {
        return None;
    }
    path.push(file)?;
    is_there(path).then(|| path.as_ptr())
}

fn last_part(path: &[u8]) -> &[u8] {
    let slash = path.iter().rposition(|byte| *byte == b'/');
    slash.map_or(path, |at| &path[at + 1..])
}

/// `libmpi.so.40.30.4` is `libmpi.so.40`.
fn of_soname(name: &[u8]) -> Option<&'static [u8]> {
    let is = |soname: &[u8]| name.starts_with(soname) && matches!(name.get(soname.len()), None | Some(b'.'));
    LIBRARIES.iter().find(|(soname, _)| is(soname)).map(|(_, file)| *file)
}

/// The directory of this file, as LD_AUDIT names it, into `path`.
fn own_dir(path: &mut Text) -> Option<&[u8]> {
    system::variable(b"LD_AUDIT=", path)?;
    let list = path.bytes();
    let end = list.windows(OWN_NAME.len()).position(|part| part == OWN_NAME)?;
    let begin = list[..end].iter().rposition(|byte| *byte == b':').map_or(0, |at| at + 1);
    path.keep(begin, end);
    Some(path.bytes())
}
