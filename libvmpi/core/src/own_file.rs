//! The file that this library was loaded from.

use std::ffi::{CStr, OsString, c_void};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// As the loader names it: it may be a link.
pub fn own_file() -> Option<PathBuf> {
    // SAFETY: all fields may be zero.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for, and `found` is ours.
    let known = unsafe { libc::dladdr(own_file as *const c_void, &raw mut found) };
    if known == 0 || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name of a loaded library, which ends with zero and stays while it is loaded.
    let name = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsString::from_vec(name.to_bytes().to_vec())))
}
