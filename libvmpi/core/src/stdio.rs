//! What a rank prints.

use std::io;
use std::os::fd::AsFd;

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    fn __fbufsize(stream: *mut libc::FILE) -> usize;
}

/// From now on each line of C's stdout goes when it is complete, as it does under MPIs that give their ranks terminals. A pipe or a file gets it a
/// buffer at a time otherwise, and the lines in which a rank that crashes or aborts says why would be lost with it. A buffer that the program has chosen
/// itself (setvbuf) stays as it is.
pub fn by_lines() {
    // None yet, or the one that the C library takes of itself: as large as the file wants it. An unbuffered stream has a byte.
    let usual = nix::sys::stat::fstat(io::stdout().as_fd()).map_or(0, |stat| stat.st_blksize as usize);
    // SAFETY: the stream is the C library's own, or what the program has put in its place; without a buffer given only the mode changes.
    unsafe {
        if !stdout.is_null() && [0, usual].contains(&__fbufsize(stdout)) {
            libc::setvbuf(stdout, std::ptr::null_mut(), libc::_IOLBF, 0);
        }
    }
}
