//! What is in a file, read by need: of a library with its debug information a thousandth is looked at.

#![allow(unsafe_code)]

use memmap2::Mmap;
use std::fs::File;
use std::path::Path;

/// The file's bytes, mapped.
pub fn of(path: &Path) -> Option<Mmap> {
    let file = File::open(path).ok()?;
    // SAFETY: nothing here writes to it. It is code that a rank has mapped (`Modules::of` takes no other files): who overwrites or
    // cuts short such a file in place ends the rank as well, and so the job.
    unsafe { Mmap::map(&file) }.ok()
}
