//! The ranks' pipes and where each one's output goes.

use super::{Labels, Lines, Sink, SinkError, Target};
use crate::cli::{OutputMode, RunOptions};
use crate::failure::Failure;
use crate::hosts;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;
use vmpi_shared::control::NewRank;

/// Read at once from one pipe (a pipe holds as much by default).
const CHUNK_BYTES: usize = 64 << 10;
/// Pipes looked at between two looks at signals and sinks.
const EVENTS: usize = 64;

/// One rank's stdout or stderr.
#[derive(Debug)]
struct Stream {
    pipe: Option<File>,
    /// Whose: world, rank there, stderr.
    of: (u32, u32, bool),
    lines: Lines,
    sink: usize,
}

/// All ranks' streams: number `2 * rank` is stdout, `2 * rank + 1` stderr; then those of spawned ranks.
#[derive(Debug)]
pub struct Streams {
    /// File sinks by their names.
    known: HashMap<PathBuf, usize>,
    streams: Vec<Stream>,
    sinks: Vec<Sink>,
    labels: Labels,
    epoll: Epoll,
    chunk: Vec<u8>,
}

/// Which sink each stream has, before any pipe exists.
#[derive(Debug)]
pub struct Routes {
    known: HashMap<PathBuf, usize>,
    sinks: Vec<Sink>,
    of_stream: Vec<usize>,
    labels: Labels,
}

impl Routes {
    /// Open the files that the options ask for.
    ///
    /// # Errors
    /// 125: a file or directory cannot be made.
    pub fn open(options: &RunOptions, ranks: u32) -> Result<Routes, Failure> {
        let mut routes = Routes {
            known: HashMap::new(),
            sinks: vec![Sink::new(Target::Stdout), Sink::new(Target::Stderr)],
            of_stream: Vec::with_capacity(2 * ranks as usize),
            labels: Labels::new(options.label, options.timestamp, ranks),
        };
        let host = hosts::own_name();
        let digits = ranks.saturating_sub(1).to_string().len();
        for rank in 0..ranks {
            for error in [false, true] {
                let name = format!("rank.{rank:0digits$}");
                let sink = sink_of(&mut routes.sinks, &mut routes.known, options, (1, rank, error), &name, &host)?;
                routes.of_stream.push(sink);
            }
        }
        Ok(routes)
    }

    /// Make all pipes; the write ends are handed to `give` in the order of `Stdio::PerRank`, in groups of `group`.
    ///
    /// # Errors
    /// No more descriptors, or `give` failed.
    pub fn connect(self, group: usize, mut give: impl FnMut(Vec<OwnedFd>) -> io::Result<()>) -> io::Result<Streams> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut streams = Vec::with_capacity(self.of_stream.len());
        let mut ends = Vec::new();
        for (number, sink) in self.of_stream.into_iter().enumerate() {
            let shown = number % 2 == 0 && self.sinks[sink].terminal;
            let (read, write) = match shown.then(terminal) {
                Some(Ok(ends)) => ends,
                _ => nix::unistd::pipe2(OFlag::O_CLOEXEC)?,
            };
            fcntl(&read, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            epoll.add(&read, EpollEvent::new(EpollFlags::EPOLLIN, number as u64))?;
            let of = (1, (number / 2) as u32, number % 2 == 1);
            streams.push(Stream { pipe: Some(File::from(read)), of, lines: Lines::default(), sink });
            ends.push(write);
            if ends.len() == group {
                give(std::mem::take(&mut ends))?;
            }
        }
        if !ends.is_empty() {
            give(ends)?;
        }
        let Routes { known, sinks, labels, .. } = self;
        Ok(Streams { known, streams, sinks, labels, epoll, chunk: vec![0; CHUNK_BYTES] })
    }

    /// Files among the sinks, for the count of descriptors.
    pub fn files(&self) -> usize {
        self.sinks.len() - 2
    }
}

/// The sink of a stream (world, rank there, stderr), which is opened if need be; `name`: its rank's directory.
fn sink_of(
    sinks: &mut Vec<Sink>,
    known: &mut HashMap<PathBuf, usize>,
    options: &RunOptions,
    (world, rank, error): (u32, u32, bool),
    name: &str,
    host: &str,
) -> Result<usize, Failure> {
    let pattern = if error && !options.merge_stderr { &options.errfile_pattern } else { &options.outfile_pattern };
    let path = match (pattern, &options.output) {
        (Some(pattern), _) => PathBuf::from(fill(pattern, world, rank, host)),
        (None, OutputMode::Directory(dir)) => {
            let dir = Path::new(dir).join(name);
            std::fs::create_dir_all(&dir).map_err(|e| cannot("make the directory", &dir, &e))?;
            dir.join(if error && !options.merge_stderr { "stderr" } else { "stdout" })
        }
        (None, _) => return Ok(usize::from(error && !options.merge_stderr)),
    };
    if let Some(sink) = known.get(&path) {
        return Ok(*sink);
    }
    let file = File::create(&path).map_err(|e| cannot("write the output file", &path, &e))?;
    sinks.push(Sink::new(Target::File(path.clone(), file)));
    known.insert(path, sinks.len() - 1);
    Ok(sinks.len() - 1)
}

/// A terminal for a rank's standard output that goes to this process's terminal: C and Fortran programs then write each line when
/// it is complete, instead of 4 KiB at a time. Nothing is changed in what they write.
fn terminal() -> nix::Result<(OwnedFd, OwnedFd)> {
    use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};
    let ends = nix::pty::openpty(None, None)?;
    let mut settings = tcgetattr(&ends.slave)?;
    cfmakeraw(&mut settings);
    tcsetattr(&ends.slave, SetArg::TCSANOW, &settings)?;
    for end in [&ends.master, &ends.slave] {
        fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    Ok((ends.master, ends.slave))
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::own(format!("cannot {what} {} for the ranks' output: {error}", path.display()))
}

/// Hydra's patterns: `%r` rank, `%h` host, `%g` group (0: what vmpirun started, 1: what was spawned first ...), `%p` (proxy) 0,
/// `%%` a percent sign; and srun's `%j`, the batch job.
fn fill(pattern: &str, world: u32, rank: u32, host: &str) -> String {
    let mut text = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match (c, c == '%') {
            (_, false) => text.push(c),
            _ => match chars.next() {
                Some('r') => text.push_str(&rank.to_string()),
                Some('h') => text.push_str(host),
                Some('g') => text.push_str(&(world - 1).to_string()),
                Some('p') => text.push('0'),
                Some('j') => text.push_str(&batch_job()),
                Some('%') | None => text.push('%'),
                Some(other) => text.extend(['%', other]),
            },
        }
    }
    text
}

/// The number of the batch job in which vmpirun runs; its own if there is none.
fn batch_job() -> String {
    const VARIABLES: [&str; 6] = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID", "FLUX_JOB_ID", "OAR_JOB_ID"];
    let named = VARIABLES.iter().find_map(|name| std::env::var(name).ok().filter(|id| !id.is_empty()));
    named.unwrap_or_else(|| std::process::id().to_string()).replace('/', "_")
}

impl Streams {
    /// No pipes at all: the ranks write by themselves.
    pub fn none() -> io::Result<Streams> {
        let routes =
            Routes { known: HashMap::new(), sinks: Vec::new(), of_stream: Vec::new(), labels: Labels::default() };
        routes.connect(1, |_| Ok(()))
    }

    /// Ranks have been spawned: `ends` are the read ends of stdout and stderr of each; none if the ranks write by themselves.
    ///
    /// # Errors
    /// 125: a pipe cannot be watched, or an output file not be made.
    pub fn add(&mut self, ranks: &[NewRank], ends: Vec<OwnedFd>, options: &RunOptions) -> Result<(), Failure> {
        let host = hosts::own_name();
        let of = ranks.iter().flat_map(|new| [false, true].map(|error| (new.world.max(1), new.world_rank, error)));
        for (end, of) in ends.into_iter().zip(of) {
            let name = format!("world.{}.rank.{}", of.0, of.1);
            let sink = sink_of(&mut self.sinks, &mut self.known, options, of, &name, &host)?;
            let watched = fcntl(&end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))
                .and_then(|_| self.epoll.add(&end, EpollEvent::new(EpollFlags::EPOLLIN, self.streams.len() as u64)));
            watched.map_err(|e| Failure::own(format!("cannot read the output of a spawned rank: {e}")))?;
            self.streams.push(Stream { pipe: Some(File::from(end)), of, lines: Lines::default(), sink });
        }
        Ok(())
    }

    /// Does anybody hold a rank's output open?
    pub fn are_open(&self) -> bool {
        self.streams.iter().any(|stream| stream.pipe.is_some())
    }

    /// Polls as readable when some rank has written.
    pub fn readable(&self) -> BorrowedFd<'_> {
        self.epoll.0.as_fd()
    }

    /// Some sink is behind: do not read the ranks.
    pub fn full(&self) -> bool {
        self.sinks.iter().any(Sink::full)
    }

    /// The sinks that wait to be written.
    pub fn waiting(&self) -> impl Iterator<Item = &Sink> {
        self.sinks.iter().filter(|sink| sink.waiting())
    }

    /// Read what some pipes hold; `false`: none held anything.
    pub fn read_some(&mut self, now: Instant) -> bool {
        let mut events = [EpollEvent::empty(); EVENTS];
        let ready = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        for event in &events[..ready] {
            self.read_stream(event.data() as usize, now);
        }
        ready > 0
    }

    fn read_stream(&mut self, number: usize, now: Instant) {
        let stream = &mut self.streams[number];
        let Some(pipe) = &mut stream.pipe else { return };
        let sink = &mut self.sinks[stream.sink];
        let labels = self.labels;
        let (world, rank, error) = stream.of;
        let mut prefix = None;
        let out = |(begins, piece): super::lines::Piece<'_>| {
            let prefix = prefix.get_or_insert_with(|| labels.prefix(world, rank, error));
            sink.put(number, prefix, begins, piece);
        };
        match pipe.read(&mut self.chunk) {
            // EIO: the other end of a terminal is closed.
            ended if matches!(&ended, Ok(0)) || matches!(&ended, Err(e) if e.raw_os_error() == Some(libc::EIO)) => {
                stream.lines.flush(out);
                let _ = self.epoll.delete(pipe);
                stream.pipe = None;
            }
            Ok(n) => stream.lines.push(&self.chunk[..n], now, out),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => stream.pipe = None,
        }
    }

    /// When the next unfinished line should be shown on a terminal.
    pub fn next_prompt(&self) -> Option<Instant> {
        if !self.sinks.iter().any(|sink| sink.terminal) {
            return None;
        }
        self.streams.iter().filter(|s| self.sinks[s.sink].terminal).filter_map(|s| s.lines.prompt_at()).min()
    }

    /// Show unfinished lines that have waited long enough; with `None` all of them, everywhere.
    pub fn flush_partial(&mut self, now: Option<Instant>) {
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let sink = &mut self.sinks[stream.sink];
            let due = match now {
                None => true,
                Some(now) => sink.terminal && stream.lines.prompt_at().is_some_and(|at| at <= now),
            };
            if due {
                let labels = self.labels;
                stream.lines.flush(|(begins, piece)| {
                    let (world, rank, error) = stream.of;
                    sink.put(number, &labels.prefix(world, rank, error), begins, piece);
                });
            }
        }
    }

    /// Write what the sinks take without blocking.
    ///
    /// # Errors
    /// The first sink that failed; what waited for it is thrown away.
    pub fn write_some(&mut self) -> Result<(), SinkError> {
        let mut first = Ok(());
        for sink in &mut self.sinks {
            let written = sink.write_some();
            if first.is_ok() {
                first = written;
            }
        }
        first
    }

    /// Throw away everything that waits.
    pub fn discard(&mut self) {
        self.sinks.iter_mut().for_each(Sink::discard);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Label;
    use std::io::Write;

    #[test]
    fn patterns() {
        assert_eq!(fill("out.%r.%h.%g%%%z%", 2, 12, "n1"), "out.12.n1.1%%z%");
    }

    #[test]
    fn a_file_per_rank_holds_all_of_its_lines() {
        let dir = std::env::temp_dir().join(format!("vmpi-streams-{}", std::process::id()));
        let options = RunOptions {
            output: OutputMode::Directory(dir.display().to_string()),
            label: Some(Label::Hydra),
            ..RunOptions::default()
        };
        let routes = Routes::open(&options, 11).unwrap();
        assert_eq!(routes.files(), 22);
        let mut ends = Vec::new();
        let mut streams = routes
            .connect(5, |group| {
                ends.extend(group);
                Ok(())
            })
            .unwrap();
        for (number, end) in ends.into_iter().enumerate() {
            writeln!(File::from(end), "line {number}\nlast {number}").unwrap();
        }
        while streams.read_some(Instant::now()) {}
        streams.flush_partial(None);
        streams.write_some().unwrap();
        assert_eq!(std::fs::read_to_string(dir.join("rank.10/stderr")).unwrap(), "[10] line 21\n[10] last 21\n");
        assert_eq!(std::fs::read_to_string(dir.join("rank.03/stdout")).unwrap(), "[3] line 6\n[3] last 6\n");
        std::fs::remove_dir_all(dir).unwrap();
    }
}
