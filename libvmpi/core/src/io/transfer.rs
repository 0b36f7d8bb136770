//! Moving bytes between memory and the kernel's file: whole blocks, and a stream through a view.
//!
//! What the page cache has is copied with the core held. A read that would sleep gives the core away first
//! (RWF_NOWAIT tells), and so does whatever waits for the disk itself (`process::aside` around sync and allocation); a
//! write that the kernel throttles is noticed by the watchdog.

#![allow(unsafe_code)]

use super::memory::Memory;
use super::view::View;
use crate::process;
use crate::simulate;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Read until `out` is full or the file ends; returns the bytes read.
pub fn read_block(file: &File, out: &mut [u8], position: i64) -> Result<usize> {
    simulate::storage(out.len() as u64);
    let mut done = 0;
    let mut wait = false;
    while done < out.len() {
        let part = &mut out[done..];
        let at = position as u64 + done as u64;
        let got = if wait { process::aside(|| file.read_at(part, at)) } else { read_cached(file, part, at) };
        match got {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            // EAGAIN: not in the cache. EOPNOTSUPP: this file system cannot tell.
            Err(e) if !wait && matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EOPNOTSUPP)) => wait = true,
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Read what is in the page cache.
fn read_cached(file: &File, out: &mut [u8], at: u64) -> Result<usize> {
    let part = libc::iovec { iov_base: out.as_mut_ptr().cast(), iov_len: out.len() };
    // SAFETY: one vector of memory that is ours to write.
    let got = unsafe { libc::preadv2(file.as_raw_fd(), &raw const part, 1, at as libc::off_t, libc::RWF_NOWAIT) };
    usize::try_from(got).map_err(|_| Error::last_os_error())
}

/// Write all of `data`.
pub fn write_block(file: &File, data: &[u8], position: i64) -> Result<()> {
    simulate::storage(data.len() as u64);
    file.write_all_at(data, position as u64)
}

/// Bytes of memory used at a time where data have to be packed.
const CHUNK_BYTES: u64 = 4 << 20;
/// Holes up to this size are read with the data around them, in reads of at most `SIEVE_BYTES`.
const SIEVE_HOLE_BYTES: i64 = 8 << 10;
const SIEVE_BYTES: i64 = 1 << 20;

/// Write bytes `[from, from + memory.bytes())` of the view's data stream. Nothing but those bytes is touched.
pub fn write_stream(file: &File, view: &View, from: u64, memory: &Memory) -> Result<()> {
    let mut chunk = Vec::new();
    let mut done = 0;
    while done < memory.bytes() {
        let data = match memory.block(done) {
            // SAFETY: the block has all bytes from `done` on; the program leaves them alone during the call.
            Some(block) => unsafe { std::slice::from_raw_parts(block, (memory.bytes() - done) as usize) },
            None => {
                chunk.resize((memory.bytes() - done).min(CHUNK_BYTES) as usize, 0);
                memory.gather(done, &mut chunk);
                chunk.as_slice()
            }
        };
        write_extents(file, view, from + done, data)?;
        done += data.len() as u64;
    }
    Ok(())
}

fn write_extents(file: &File, view: &View, from: u64, data: &[u8]) -> Result<()> {
    let mut rest = data;
    let mut result = Ok(());
    view.extents(from, from + data.len() as u64, &mut |position, len| {
        let (now, later) = rest.split_at(len as usize);
        rest = later;
        result = write_block(file, now, position);
        result.is_ok()
    });
    result
}

/// Read bytes `[from, from + memory.bytes())` of the view's data stream; returns how many there are before the file ends.
pub fn read_stream(file: &File, view: &View, from: u64, memory: &Memory) -> Result<u64> {
    let mut chunk = Vec::new();
    let mut done = 0;
    while done < memory.bytes() {
        let (room, got) = match memory.block(done) {
            Some(block) => {
                // SAFETY: the block has room for all bytes from `done` on, which the program leaves to this call.
                let out = unsafe { std::slice::from_raw_parts_mut(block, (memory.bytes() - done) as usize) };
                (out.len(), read_extents(file, view, from + done, out)?)
            }
            None => {
                chunk.resize((memory.bytes() - done).min(CHUNK_BYTES) as usize, 0);
                let got = read_extents(file, view, from + done, &mut chunk)?;
                memory.scatter(done, &chunk[..got]);
                (chunk.len(), got)
            }
        };
        done += got as u64;
        if got < room {
            break;
        }
    }
    Ok(done)
}

/// Blocks of the file that one read brings.
struct Sieve {
    /// Position in the file, place in the output, length.
    blocks: Vec<(i64, usize, usize)>,
    buffer: Vec<u8>,
}

impl Sieve {
    fn end(&self) -> Option<i64> {
        self.blocks.last().map(|(position, _, len)| position + *len as i64)
    }

    fn takes(&self, position: i64, len: u64) -> bool {
        let (Some((first, ..)), Some(end)) = (self.blocks.first(), self.end()) else { return true };
        position >= end
            && position - end <= SIEVE_HOLE_BYTES
            && (position - first).saturating_add_unsigned(len) <= SIEVE_BYTES
    }

    /// Read the blocks; returns the bytes up to the end of the file.
    fn read(&mut self, file: &File, out: &mut [u8]) -> Result<usize> {
        let (Some(&(first, ..)), Some(end)) = (self.blocks.first(), self.end()) else { return Ok(0) };
        if let [(position, at, len)] = self.blocks[..] {
            self.blocks.clear();
            return read_block(file, &mut out[at..at + len], position);
        }
        self.buffer.resize((end - first) as usize, 0);
        let available = read_block(file, &mut self.buffer, first)?;
        let mut got = 0;
        for (position, at, len) in self.blocks.drain(..) {
            let here = (position - first) as usize;
            let part = len.min(available.saturating_sub(here));
            out[at..at + part].copy_from_slice(&self.buffer[here..here + part]);
            got += part;
            if part < len {
                break;
            }
        }
        self.blocks.clear();
        Ok(got)
    }
}

fn read_extents(file: &File, view: &View, from: u64, out: &mut [u8]) -> Result<usize> {
    let mut sieve = Sieve { blocks: Vec::new(), buffer: Vec::new() };
    let (mut place, mut planned, mut got) = (0, 0, 0);
    let mut result = Ok(());
    view.extents(from, from + out.len() as u64, &mut |position, len| {
        if !sieve.takes(position, len) {
            match sieve.read(file, out) {
                Ok(n) => got += n,
                Err(e) => result = Err(e),
            }
            if result.is_err() || got < planned {
                return false; // the file has ended
            }
        }
        sieve.blocks.push((position, place, len as usize));
        place += len as usize;
        planned = place;
        true
    });
    result?;
    if !sieve.blocks.is_empty() {
        got += sieve.read(file, out)?;
    }
    Ok(got)
}
