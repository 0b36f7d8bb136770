//! vmpirun's standard input on its way to the ranks that read it: descriptor 0 itself where one rank does, else a pipe for each.
//!
//! A terminal is read here in any case: the ranks are in another session, where job control could not stop them from
//! reading in the background.

use crate::threads;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

const CHUNK_BYTES: usize = 32 << 10;
/// A rank that does not read holds the others up when so much waits for it.
const MOST_WAITING_BYTES: usize = 64 << 20;
/// Between two looks whether this process is in the terminal's foreground.
const GLANCE: Duration = Duration::from_millis(300);

/// What `readers` ranks get as their standard inputs; none: one that is empty.
///
/// # Errors
/// No more descriptors.
pub fn connect(readers: usize) -> io::Result<Vec<OwnedFd>> {
    let stdin = io::stdin();
    if readers == 0 {
        return Ok(vec![File::open("/dev/null")?.into()]);
    }
    let terminal = nix::unistd::isatty(stdin.as_fd()).unwrap_or(false);
    if readers == 1 && !terminal {
        return Ok(vec![stdin.as_fd().try_clone_to_owned()?]);
    }
    distribute(stdin.as_fd().try_clone_to_owned()?, terminal, readers)
}

/// Pipes of which each brings all that comes from `source`.
///
/// # Errors
/// No more descriptors.
pub fn distribute(source: OwnedFd, terminal: bool, readers: usize) -> io::Result<Vec<OwnedFd>> {
    let mut ends = Vec::with_capacity(readers);
    let mut pipes = Vec::with_capacity(readers);
    for _ in 0..readers {
        let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        fcntl(&write, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        ends.push(read);
        pipes.push(Pipe { write: File::from(write), waiting: VecDeque::new(), bytes: 0 });
    }
    threads::spawn(move || feed(&source, terminal, pipes));
    Ok(ends)
}

/// The way to one reader.
struct Pipe {
    write: File,
    /// Chunks, and how much of each has been written.
    waiting: VecDeque<(Arc<[u8]>, usize)>,
    bytes: usize,
}

impl Pipe {
    /// Write what the pipe takes; false: nobody reads any more.
    fn write_some(&mut self) -> bool {
        while let Some((chunk, done)) = self.waiting.front_mut() {
            match self.write.write(&chunk[*done..]) {
                Ok(count) => {
                    *done += count;
                    self.bytes -= count;
                    if *done == chunk.len() {
                        self.waiting.pop_front();
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }
}

/// Copy `source` into all pipes until it ends, or nobody reads; a terminal only while this process is in its foreground.
fn feed(source: &OwnedFd, terminal: bool, mut pipes: Vec<Pipe>) {
    let mut bytes = vec![0; CHUNK_BYTES];
    let mut open = true;
    while !pipes.is_empty() && (open || pipes.iter().any(|pipe| pipe.bytes > 0)) {
        let behind = terminal && nix::unistd::tcgetpgrp(source).is_ok_and(|group| group != nix::unistd::getpgrp());
        let full = pipes.iter().any(|pipe| pipe.bytes > MOST_WAITING_BYTES);
        let reads = open && !behind && !full;
        // Without an event that is asked for poll still tells of a reader that has gone.
        let wanted = |pipe: &Pipe| if pipe.bytes > 0 { PollFlags::POLLOUT } else { PollFlags::empty() };
        let mut fds: Vec<PollFd> = pipes.iter().map(|pipe| PollFd::new(pipe.write.as_fd(), wanted(pipe))).collect();
        fds.extend(reads.then(|| PollFd::new(source.as_fd(), PollFlags::POLLIN)));
        let patience =
            if terminal { PollTimeout::try_from(GLANCE).unwrap_or(PollTimeout::MAX) } else { PollTimeout::NONE };
        if poll(&mut fds, patience).unwrap_or(0) <= 0 {
            continue;
        }
        let came = reads && fds.last().is_some_and(|fd| fd.any().unwrap_or(false));
        let gone: Vec<bool> =
            fds[..pipes.len()].iter().map(|fd| fd.revents().is_some_and(|e| e.contains(PollFlags::POLLERR))).collect();
        let mut gone = gone.into_iter();
        pipes.retain(|_| !gone.next().unwrap_or(false));
        if came {
            match nix::unistd::read(source, &mut bytes) {
                Ok(0) => open = false,
                Ok(count) => {
                    let chunk: Arc<[u8]> = bytes[..count].into();
                    for pipe in &mut pipes {
                        pipe.waiting.push_back((chunk.clone(), 0));
                        pipe.bytes += count;
                    }
                }
                Err(Errno::EINTR | Errno::EAGAIN) => {}
                Err(_) => open = false,
            }
        }
        // Who has got all sees the end, however far behind the others are.
        pipes.retain_mut(|pipe| pipe.write_some() && (open || pipe.bytes > 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn every_reader_gets_all_though_one_is_slow_and_one_has_gone() {
        let (source, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC).unwrap();
        let mut ends = distribute(source, false, 3).unwrap();
        drop(ends.remove(1));
        // More than a pipe holds: the reader that comes last has not hindered the first.
        let sent: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
        let copy = sent.clone();
        let writer = std::thread::spawn(move || File::from(write).write_all(&copy).unwrap());
        for end in ends {
            let mut got = Vec::new();
            File::from(end).read_to_end(&mut got).unwrap();
            assert!(got == sent);
        }
        writer.join().unwrap();
    }
}
