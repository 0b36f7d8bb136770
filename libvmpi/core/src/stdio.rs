//! What a rank prints.

unsafe extern "C" {
    static mut stdout: *mut libc::FILE;
    fn __fbufsize(stream: *mut libc::FILE) -> usize;
}

/// From now on each line of C's stdout goes when it is complete, as it does under MPIs that give their ranks terminals. A pipe or a file gets it a
/// buffer at a time otherwise, and the lines in which a rank that crashes or aborts says why would be lost with it. A buffer that the program has chosen
/// itself (setvbuf) stays as it is.
pub fn by_lines() {
    // SAFETY: nobody but the program changes which stream this is, and it is in MPI_Init.
    let stream = unsafe { (&raw const stdout).read() };
    if stream.is_null() {
        return;
    }
    // SAFETY: an open stream, or a closed one that has no descriptor; fstat writes all that is looked at, if it succeeds.
    let (size, usual) = unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        let known = libc::fstat(libc::fileno(stream), &raw mut stat) == 0;
        (__fbufsize(stream), if known { stat.st_blksize as usize } else { 0 })
    };
    // No buffer yet, or the one that the C library takes of itself: as large as the file wants it. An unbuffered stream has a byte.
    if size == 0 || size == usual {
        // SAFETY: as above; no buffer is given, so only the mode changes, under the stream's lock.
        unsafe { libc::setvbuf(stream, std::ptr::null_mut(), libc::_IOLBF, 0) };
    }
}
