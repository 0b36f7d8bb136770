//! Where output ends: a terminal, a pipe or a file, with what could not be written yet.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

/// A pipe that polls as writable takes this much without blocking (PIPE_BUF).
const SURE_BYTES: usize = 4096;
/// Ranks are not read while more than this waits to be written.
const ENOUGH_BYTES: usize = 256 << 10;

/// Where a [`Sink`] writes.
#[derive(Debug)]
pub enum Target {
    Stdout,
    Stderr,
    File(PathBuf, File),
}

/// A target's name for messages.
pub type Where = String;

/// Why output could not be written.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// The reader of stdout or stderr has gone.
    #[error("{0} was closed by its reader")]
    Closed(Where),
    #[error("cannot write the ranks' output to {to}: {error}")]
    Failed { to: Where, error: io::Error },
}

/// One target and its queue.
#[derive(Debug)]
pub struct Sink {
    target: Target,
    queue: VecDeque<u8>,
    /// The stream whose unfinished line stands at the end of what was written.
    open_line: Option<usize>,
    regular: bool,
    pub terminal: bool,
}

impl Sink {
    pub fn new(target: Target) -> Sink {
        let mut sink = Sink { target, queue: VecDeque::new(), open_line: None, regular: false, terminal: false };
        let fd = sink.fd();
        let kind = nix::sys::stat::fstat(fd).map_or(0, |stat| stat.st_mode & libc::S_IFMT);
        let terminal = kind == libc::S_IFCHR && nix::unistd::isatty(fd).unwrap_or(false);
        sink.regular = kind == libc::S_IFREG || (kind == libc::S_IFCHR && !terminal);
        sink.terminal = terminal;
        sink
    }

    /// Queue a piece of `stream`'s output; `prefix` stands before it if it begins a line. Another stream's unfinished
    /// line is ended first.
    pub fn put(&mut self, stream: usize, prefix: &str, begins: bool, piece: &[u8]) {
        if self.open_line.is_some_and(|open| open != stream) {
            self.queue.push_back(b'\n');
        }
        if begins {
            self.queue.extend(prefix.as_bytes());
        }
        self.queue.extend(piece);
        self.open_line = if piece.last() == Some(&b'\n') { None } else { Some(stream) };
    }

    pub fn waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// So much waits here that the ranks should wait too.
    pub fn full(&self) -> bool {
        self.queue.len() > ENOUGH_BYTES
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        match &self.target {
            Target::Stdout => borrowed_stdout(),
            Target::Stderr => borrowed_stderr(),
            Target::File(_, file) => file.as_fd(),
        }
    }

    fn place(&self) -> Where {
        match &self.target {
            Target::Stdout => "standard output".into(),
            Target::Stderr => "standard error".into(),
            Target::File(path, _) => path.display().to_string(),
        }
    }

    /// Write what can be written without blocking.
    pub fn write_some(&mut self) -> Result<(), SinkError> {
        while self.waiting() {
            if !self.regular && !self.ready() {
                return Ok(());
            }
            let limit = if self.regular { usize::MAX } else { SURE_BYTES };
            let (front, _) = self.queue.as_slices();
            let chunk = &front[..front.len().min(limit)];
            let written = match &mut self.target {
                Target::Stdout => raw_write(borrowed_stdout(), chunk),
                Target::Stderr => raw_write(borrowed_stderr(), chunk),
                Target::File(_, file) => file.write(chunk),
            };
            match written {
                Ok(n) => drop(self.queue.drain(..n)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(self.failed(e)),
            }
        }
        Ok(())
    }

    fn failed(&mut self, error: io::Error) -> SinkError {
        self.queue.clear();
        let to = self.place();
        match error.kind() {
            io::ErrorKind::BrokenPipe => SinkError::Closed(to),
            _ => SinkError::Failed { to, error },
        }
    }

    fn ready(&self) -> bool {
        let mut fds = [PollFd::new(self.fd(), PollFlags::POLLOUT)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
    }

    /// Throw away what waits (after an error elsewhere has ended the job).
    pub fn discard(&mut self) {
        self.queue.clear();
    }
}

/// Descriptor 1, past the buffer and lock of std::io::stdout.
fn borrowed_stdout() -> BorrowedFd<'static> {
    static STDOUT: std::sync::LazyLock<io::Stdout> = std::sync::LazyLock::new(io::stdout);
    STDOUT.as_fd()
}

fn borrowed_stderr() -> BorrowedFd<'static> {
    static STDERR: std::sync::LazyLock<io::Stderr> = std::sync::LazyLock::new(io::stderr);
    STDERR.as_fd()
}

fn raw_write(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    nix::unistd::write(fd, bytes).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_do_not_share_a_line() {
        let path = std::env::temp_dir().join(format!("vmpi-sink-{}", std::process::id()));
        let mut sink = Sink::new(Target::File(path.clone(), File::create(&path).unwrap()));
        sink.put(0, "0: ", true, b"prompt? ");
        sink.put(1, "1: ", true, b"line\n");
        sink.put(0, "0: ", false, b"rest\n");
        sink.write_some().unwrap();
        assert!(!sink.waiting());
        assert_eq!(std::fs::read(&path).unwrap(), b"0: prompt? \n1: line\nrest\n");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_file_system_is_named() {
        let mut sink =
            Sink::new(Target::File("/dev/full".into(), File::options().write(true).open("/dev/full").unwrap()));
        sink.put(0, "", true, b"x\n");
        let why = sink.write_some().unwrap_err().to_string();
        assert!(why.contains("/dev/full") && why.contains("No space left"), "{why}");
    }
}
