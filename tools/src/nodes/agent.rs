//! `vmpid --bootstrap`: the launcher's part on a node. It starts a vmpid (or finds the user's), submits this node's part of the job to it,
//! and passes words and output between the two.

use super::frames::{self, Facts, Frame, FromNode, ToNode};
use super::text::{self, Lines};
use super::trace_transfer::{self, Arrivals};
use super::{LAUNCHER_PULSES, PULSE, rdma};
use crate::daemon::{self, Loss, Orphans, VERSION};
use crate::failure::Failure;
use crate::stack::Names;
use crate::topology::Topology;
use crate::{cpus, crash, hosts, stdin, threads, why};
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use vmpi_shared::clock::boottime_ns;
use vmpi_shared::control::{Cause, Connection, JobSpec, MAX_FDS, PROTOCOL, Reply, Request};

/// How long ranks' output may keep the end of a job waiting: a process that they left may hold a pipe.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
const CHUNK_BYTES: usize = 64 << 10;

/// The way to the launcher, for all threads.
#[derive(Clone)]
struct Out(Arc<Mutex<Box<dyn Write + Send>>>);

impl Out {
    fn say(&self, message: &FromNode) -> io::Result<()> {
        frames::say(&mut *self.0.lock().expect("no thread panics with it"), message)
    }

    fn recorded(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        frames::recorded(&mut *self.0.lock().expect("no thread panics with it"), at, bytes)
    }

    fn pass(&self, stream: u32, bytes: &[u8]) -> io::Result<()> {
        frames::pass(&mut *self.0.lock().expect("no thread panics with it"), stream, bytes)
    }
}

/// Serve one job; the exit code.
pub fn main(exe_dir: &Path) -> i32 {
    match serve(exe_dir) {
        Ok(()) => 0,
        // The launcher is gone: nobody listens.
        Err(_) => 125,
    }
}

fn serve(exe_dir: &Path) -> io::Result<()> {
    let mut from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut to: Box<dyn Write + Send> = Box::new(File::from(io::stdout().as_fd().try_clone_to_owned()?));
    to.write_all(frames::PREAMBLE)?;
    let mut first = [0; 4];
    from.read_exact(&mut first)?;
    let hello = if first == text::ASKED {
        to = Box::new(Lines(File::from(io::stderr().as_fd().try_clone_to_owned()?)));
        to.write_all(frames::PREAMBLE)?;
        frames::hear(&mut from)?
    } else {
        frames::hear(&mut first.chain(&from))?
    };
    let out = Out(Arc::new(Mutex::new(to)));
    let Some(Frame::Said(ToNode::Hello { version, protocol })) = hello else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    if version != VERSION || protocol != PROTOCOL {
        let reason = format!(
            "its vmpi is version {VERSION} (protocol {PROTOCOL}), vmpirun's is {version} (protocol {protocol}): install the same on all nodes"
        );
        return out.say(&FromNode::Failed { reason, code: 125 });
    }
    let facts = match facts() {
        Ok(facts) => facts,
        Err(why) => return out.say(&FromNode::Failed { reason: why.sentence, code: why.code }),
    };
    out.say(&FromNode::Hello { facts })?;
    let news = Arc::new(AtomicU32::new(0));
    let stopped = Arc::new(AtomicBool::new(false));
    let pulse = out.clone();
    threads::spawn(move || {
        while pulse.say(&FromNode::Alive).is_ok() {
            std::thread::sleep(PULSE);
        }
    });
    let spec = loop {
        match listen(&mut from, &news, &stopped)? {
            Some(Frame::Said(ToNode::Submit { spec })) => break spec,
            Some(_) => {}
            None => return Ok(()),
        }
    };
    let mut daemon = match daemon::connect(exe_dir) {
        Ok(daemon) => daemon,
        Err(why) => {
            out.say(&FromNode::Failed { reason: why.sentence, code: why.code })?;
            return Ok(());
        }
    };
    let (socket, pid) = (daemon.socket.clone(), daemon.pid);
    let here: Vec<u32> = spec.local_ranks().collect();
    let asking = daemon.connection.stream().try_clone()?;
    let (stdin, outputs) = submit(&mut daemon.connection, &spec)?;
    let (end, ended) = mpsc::channel();
    let (more, call) = UnixStream::pair()?;
    let (add, added) = mpsc::channel();
    let passing = out.clone();
    threads::spawn(move || {
        pass_output(outputs, &call, &added, &passing);
        let _ = end.send(());
    });
    let mut feed = feeder(stdin, out.clone());
    let asks = Arc::new(Mutex::new(Connection::new(asking.try_clone()?)));
    let replies = Replies {
        connection: Connection::new(daemon.connection.stream().try_clone()?),
        asks: asks.clone(),
        out: out.clone(),
        here,
        add,
        more,
        ended,
        socket,
        pid,
    };
    let replies = threads::spawn(move || replies.pass());
    // All nodes' trace, on its way to a tool of this node.
    let mut written = Arrivals::default();
    while let Ok(Some(frame)) = listen(&mut from, &news, &stopped) {
        match frame {
            Frame::Said(ToNode::Ask { request }) => ask(request, &asks, &stopped, &mut written),
            Frame::Bytes(_, bytes) => {
                if let Some(feed) = &feed {
                    let _ = feed.send(bytes);
                }
            }
            Frame::Said(ToNode::StdinEnd) => feed = None,
            Frame::Said(ToNode::Time { number }) => {
                let _ = out.say(&FromNode::Time { number, there: boottime_ns() });
            }
            Frame::Recorded(at, bytes) => written.take(at, &bytes),
            Frame::Said(_) => {}
        }
    }
    // The launcher wants no more, or is gone: then the daemon ends what is left of the job.
    let _ = asking.shutdown(Shutdown::Both);
    let _ = replies.join();
    drop(daemon);
    Ok(())
}

/// What the daemon replies, on its way to the launcher.
struct Replies {
    connection: Connection,
    asks: Arc<Mutex<Connection>>,
    out: Out,
    /// The ranks of this node.
    here: Vec<u32>,
    /// Streams of ranks that were spawned, for the thread that passes output on, and its call; that it has ended.
    add: mpsc::Sender<Vec<(u32, OwnedFd)>>,
    more: UnixStream,
    ended: mpsc::Receiver<()>,
    socket: PathBuf,
    pid: i32,
}

impl Replies {
    fn pass(mut self) {
        let mut names = Names::default();
        let (mut job, mut ranks) = (0, Vec::new());
        let loss = loop {
            let (mut reply, files) = match self.connection.receive::<Reply>() {
                Ok(Some(heard)) => heard,
                Ok(None) => break Loss::Closed,
                Err(error) => break Loss::of(error),
            };
            let mut files = files.into_iter();
            let mut streams = Vec::new();
            match &reply {
                Reply::Submitted { job: id } => job = *id,
                Reply::Started { pids } => ranks.extend(self.here.iter().copied().zip(pids.iter().copied())),
                Reply::Grown { ranks: new } => {
                    ranks.extend(new.iter().map(|rank| (rank.rank, rank.pid)));
                    let numbers = new.iter().flat_map(|rank| [2 * rank.stream, 2 * rank.stream + 1]);
                    streams = numbers.zip(&mut files).collect();
                }
                _ => {}
            }
            if let Reply::Dying { dying } = reply {
                let (ranks, seen) = (vec![dying.rank], crash::look(dying));
                // Names can be found when it is gone, too.
                let _ = self.asks.lock().expect("no thread panics with it").send(&Request::Heard { ranks }, &[]);
                reply = Reply::Crashed { crash: Box::new(seen.crash(&mut names)) };
            }
            if let Reply::WaitsPart { waits, .. } = &mut reply {
                why::find_sites(waits);
            }
            let last = matches!(reply, Reply::Finished { .. } | Reply::Refused { .. });
            if last {
                // No stream comes any more.
                let _ = self.more.shutdown(Shutdown::Both);
                // What ranks have left running after a good end is heard as long as the launcher listens.
                let goes_on = matches!(&reply, Reply::Finished { cause: Cause::Success, report, .. } if !report.helpers.is_empty());
                if !goes_on {
                    let _ = self.ended.recv_timeout(LAST_OUTPUT);
                }
            }
            if let Reply::Finished { trace: Some(map), .. } | Reply::TracePart { map: Some(map), .. } = &reply
                && let Some(segment) = files.next()
            {
                // What cannot be passed on is missed there.
                let _ = trace_transfer::pass(&File::from(segment), map, |at, bytes| self.out.recorded(at, bytes));
            }
            let said = self.out.say(&FromNode::Said { reply: Box::new(reply) });
            if last || said.is_err() {
                return;
            }
            // Whose they are has been said before what they bring.
            if !streams.is_empty() && self.add.send(streams).is_ok() {
                let _ = self.more.write_all(&[0]);
            }
        };
        let reason = daemon::end_job(&self.socket, self.pid, &loss, &Orphans { job, ranks: &ranks });
        let _ = self.out.say(&FromNode::Failed { reason, code: 125 });
    }
}

/// Ask the daemon what the launcher wants to know or done. A daemon that is gone shows to the thread that listens to it.
/// `written`: all nodes' trace, if it has come for a tool of this node.
fn ask(request: Request, asks: &Mutex<Connection>, stopped: &AtomicBool, written: &mut Arrivals) {
    if let Request::Forward { signal } = request {
        let now = match signal {
            libc::SIGSTOP => true,
            libc::SIGCONT => false,
            _ => stopped.load(Ordering::Relaxed),
        };
        stopped.store(now, Ordering::Relaxed);
    }
    let written = match &request {
        Request::ToolTold { files: 1, .. } => written.end().and_then(Result::ok),
        _ => None,
    };
    let request = match (request, &written) {
        (Request::ToolTold { tool, files: 1, .. }, None) => {
            let reason = "the trace cannot be kept on this node: it is out of memory".into();
            let reply = Box::new(Reply::Refused { reason, code: 1 });
            Request::ToolTold { tool, reply, files: 0 }
        }
        (request, _) => request,
    };
    let files: Vec<i32> = written.iter().map(AsRawFd::as_raw_fd).collect();
    let _ = asks.lock().expect("no thread panics with it").send(&request, &files);
}

/// The launcher's next word; `None`: it is gone, or has been silent for too long.
fn listen(from: &mut File, silent: &AtomicU32, stopped: &AtomicBool) -> io::Result<Option<Frame<ToNode>>> {
    loop {
        let mut fds = [PollFd::new(from.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::try_from(PULSE).unwrap_or(PollTimeout::MAX)) {
            Ok(0) => {
                let pulses = silent.fetch_add(1, Ordering::Relaxed);
                if pulses >= LAUNCHER_PULSES && !stopped.load(Ordering::Relaxed) {
                    return Ok(None);
                }
            }
            Ok(_) => break,
            Err(nix::errno::Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
    silent.store(0, Ordering::Relaxed);
    frames::hear(from)
}

fn facts() -> Result<Facts, Failure> {
    Ok(Facts {
        name: hosts::own_name(),
        version: VERSION.into(),
        cpus: cpus::allowed()?,
        topology: Topology::here(),
        quota: cpus::cgroup_quota(),
        addresses: addresses(),
        rdma: rdma::device(),
    })
}

/// This node's addresses: those that others may reach first, the loopback last (for nodes that are one machine).
fn addresses() -> Vec<IpAddr> {
    let mut found: Vec<IpAddr> = nix::ifaddrs::getifaddrs()
        .into_iter()
        .flatten()
        .filter(|interface| interface.flags.contains(nix::net::if_::InterfaceFlags::IFF_UP))
        .filter_map(|interface| {
            let address = interface.address?;
            let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
        })
        // Addresses of a link alone mean nothing without the name of the interface.
        .filter(|address| !matches!(address, IpAddr::V6(v6) if v6.is_unicast_link_local()))
        .collect();
    found.sort_by_key(|address| (address.is_loopback(), address.is_ipv6()));
    found.dedup();
    found
}

type Submitted = (Option<OwnedFd>, Vec<(u32, OwnedFd)>);

/// Hand the job over to the daemon; returns the write end of what this node's ranks have as standard input, and the read ends of the ranks' streams.
fn submit(connection: &mut Connection, spec: &JobSpec) -> io::Result<Submitted> {
    connection.send(&Request::Submit { spec: Box::new(spec.clone()) }, &[])?;
    let mut ends = Vec::new();
    let mut stdin = None;
    match spec.local_readers().count() {
        0 => ends.push(File::open("/dev/null")?.into()),
        readers => {
            let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
            match readers {
                1 => ends.push(read),
                _ => ends = stdin::distribute(read, false, readers)?,
            }
            stdin = Some(write);
        }
    }
    let mut outputs = Vec::new();
    for rank in spec.local_ranks() {
        for error in 0..2 {
            let (read, write) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
            outputs.push((2 * rank + error, read));
            ends.push(write);
        }
    }
    for ends in ends.chunks(MAX_FDS) {
        let raw: Vec<i32> = ends.iter().map(AsRawFd::as_raw_fd).collect();
        loop {
            match connection.send(&Request::Fds { count: raw.len() as u32 }, &raw) {
                // Too many descriptors in flight (unix(7)): the daemon is about to take them.
                Err(e) if e.raw_os_error() == Some(libc::ETOOMANYREFS) => std::thread::sleep(Duration::from_millis(1)),
                // The daemon refuses the job; its reason comes.
                Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => break,
                done => break done?,
            }
        }
    }
    Ok((stdin, outputs))
}

/// Pass on what the ranks write, until no more streams come (`news` is closed) and the last of them has ended.
fn pass_output(
    outputs: Vec<(u32, OwnedFd)>,
    mut news: &UnixStream,
    added: &mpsc::Receiver<Vec<(u32, OwnedFd)>>,
    out: &Out,
) {
    let as_file = |(stream, end): (u32, OwnedFd)| (stream, File::from(end));
    let mut open: Vec<(u32, File)> = outputs.into_iter().map(as_file).collect();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut more = true;
    while more || !open.is_empty() {
        let mut fds: Vec<PollFd> = open.iter().map(|(_, pipe)| PollFd::new(pipe.as_fd(), PollFlags::POLLIN)).collect();
        fds.extend(more.then(|| PollFd::new(news.as_fd(), PollFlags::POLLIN)));
        if poll(&mut fds, PollTimeout::NONE).unwrap_or(0) <= 0 {
            continue;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        let told = more && ready.last().copied().unwrap_or(false);
        let mut ready = ready.into_iter();
        open.retain_mut(|(stream, pipe)| {
            if !ready.next().unwrap_or(false) {
                return true;
            }
            match pipe.read(&mut chunk) {
                Ok(count) => out.pass(*stream, &chunk[..count]).is_ok() && count > 0,
                Err(e) => e.kind() == io::ErrorKind::Interrupted,
            }
        });
        if told {
            let mut calls = [0; 64];
            more = matches!(news.read(&mut calls), Ok(1..));
            open.extend(added.try_iter().flatten().map(as_file));
        }
    }
}

/// A thread that writes to the standard input of this node's ranks, and says how much it has written.
fn feeder(stdin: Option<OwnedFd>, out: Out) -> Option<mpsc::Sender<Vec<u8>>> {
    let mut pipe = File::from(stdin?);
    let (send, receive) = mpsc::channel::<Vec<u8>>();
    threads::spawn(move || {
        for bytes in receive {
            // Ranks that have closed their standard input miss nothing.
            let _ = pipe.write_all(&bytes);
            if out.say(&FromNode::StdinTaken { bytes: bytes.len() as u64 }).is_err() {
                return;
            }
        }
    });
    Some(send)
}
