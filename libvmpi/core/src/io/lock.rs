//! Byte-range locks that make accesses in atomic mode atomic, also between files opened by different groups.
//!
//! Locks of the open file description: each rank has its own, so they exclude ranks from each other, and the kernel
//! drops them when a rank dies.

#![allow(unsafe_code)]

use crate::process;
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::AsRawFd;

/// How often the other ranks of the core are let run before this rank sleeps in the kernel.
const YIELDS: u32 = 64;

/// A locked range of a file; unlocked on drop.
pub struct Range<'f> {
    file: &'f File,
    low: i64,
    high: i64,
}

fn ask(file: &File, command: libc::c_int, kind: libc::c_int, low: i64, high: i64) -> Result<()> {
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: low,
        l_len: high - low,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open and the argument is what these commands take.
    match unsafe { libc::fcntl(file.as_raw_fd(), command, &raw const lock) } {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lock `[low, high)`, which is not empty. The holder is inside one access and waits for nobody but the kernel.
pub fn range(file: &File, low: i64, high: i64, write: bool) -> Result<Range<'_>> {
    let kind = if write { libc::F_WRLCK } else { libc::F_RDLCK };
    let mut command = libc::F_OFD_SETLK;
    let mut yields = 0;
    loop {
        match ask(file, command, kind, low, high) {
            Ok(()) => return Ok(Range { file, low, high }),
            Err(e) => match e.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN | libc::EACCES) if command == libc::F_OFD_SETLK => {
                    yields += 1;
                    if yields > YIELDS || !process::endpoint().yield_core() {
                        command = libc::F_OFD_SETLKW;
                    }
                }
                _ => return Err(e),
            },
        }
    }
}

impl Drop for Range<'_> {
    fn drop(&mut self) {
        // Unlocking one's own range cannot fail in a way that could be answered.
        let _ = ask(self.file, libc::F_OFD_SETLK, libc::F_UNLCK, self.low, self.high);
    }
}
