//! One connection of the control socket, without blocking: frames in, frames out, descriptors both ways.
//!
//! The framing is `vmpi_shared::control`'s. A peer costs what it may cost and no more: a turn reads once, a frame is as long as its sender may send one, and what the
//! socket does not take waits in `output` up to a limit. Received descriptors wait in arrival order; `Request::Fds` says how many it brought. `clients` deals the turns.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
use vmpi_shared::control::{Control, Reply, Request, receive_some};

/// Bytes read at once; one buffer serves all connections.
const READ_BYTES: usize = 256 << 10;
/// A buffer for input that was longer is given back.
const KEPT_BYTES: usize = 1 << 20;
/// Who leaves so much unread, or so many messages, is not asked what else it wants until it has read...
const PAUSE_BYTES: usize = 1 << 20;
const PAUSE_FRAMES: usize = 256;
/// ...and who leaves so much unread of what it is told all the same has its connection closed.
const MOST_UNREAD_BYTES: usize = 64 << 20;

/// The buffers that reading needs, shared by all connections.
pub struct Scratch {
    bytes: Vec<u8>,
    control: Control,
}

impl Scratch {
    pub fn new() -> Scratch {
        Scratch { bytes: vec![0; READ_BYTES], control: Control::default() }
    }
}

/// Who is at the other end, by SO_PEERCRED.
#[derive(Copy, Clone, Debug)]
pub struct Peer {
    pub pid: i32,
    pub uid: u32,
}

/// What a peer sent that is no message.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a frame of {length} bytes is longer than {most} allowed here")]
    TooLong { length: u32, most: u32 },
    #[error("a frame is not a message of this protocol: {0}")]
    NoMessage(#[from] serde_json::Error),
}

/// Why nothing can be read any more.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Socket(#[from] io::Error),
    #[error("not all descriptors that came could be taken: this vmpid has too many files open (ulimit -n)")]
    Cut,
}

/// Why something cannot be said any more.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error(transparent)]
    Socket(#[from] io::Error),
    #[error("it does not read what it is told, of which {} MiB wait", .0 >> 20)]
    Unread(usize),
}

/// Did the peer close its end?
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    Open,
    Closed,
}

/// A framed, non-blocking connection.
pub struct Channel {
    stream: UnixStream,
    peer: Peer,
    /// What has been read and not served yet: from `at` on.
    input: Vec<u8>,
    at: usize,
    fds: VecDeque<OwnedFd>,
    output: VecDeque<Frame>,
    /// Bytes in `output`.
    unread: usize,
}

struct Frame {
    bytes: Vec<u8>,
    sent: usize,
    fds: Vec<OwnedFd>,
}

impl Channel {
    /// # Errors
    /// The peer's credentials cannot be read.
    pub fn new(stream: UnixStream) -> io::Result<Channel> {
        stream.set_nonblocking(true)?;
        let credentials = nix::sys::socket::getsockopt(&stream, nix::sys::socket::sockopt::PeerCredentials)?;
        let peer = Peer { pid: credentials.pid(), uid: credentials.uid() };
        let (fds, output) = (VecDeque::new(), VecDeque::new());
        Ok(Channel { stream, peer, input: Vec::new(), at: 0, fds, output, unread: 0 })
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Read once; what comes beyond that is read at the next turn.
    ///
    /// # Errors
    /// The connection is of no more use.
    pub fn read(&mut self, scratch: &mut Scratch) -> Result<Incoming, ReadError> {
        let received = match receive_some(&self.stream, &mut scratch.bytes, &mut scratch.control, libc::MSG_DONTWAIT) {
            Ok(received) => received,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Incoming::Open),
            Err(e) => return Err(e.into()),
        };
        self.fds.extend(received.fds);
        if received.cut {
            return Err(ReadError::Cut);
        }
        if received.bytes == 0 {
            return Ok(Incoming::Closed);
        }
        // What is left is less than a frame.
        self.input.drain(..std::mem::take(&mut self.at));
        self.input.extend_from_slice(&scratch.bytes[..received.bytes]);
        Ok(Incoming::Open)
    }

    /// The length of the next frame's body, and where it ends if it has arrived whole.
    fn head(&self) -> Option<(u32, Option<usize>)> {
        let length = u32::from_le_bytes(*self.input.get(self.at..)?.first_chunk::<4>()?);
        let end = (self.at + 4).checked_add(length as usize);
        Some((length, end.filter(|end| *end <= self.input.len())))
    }

    /// Can `next` say something?
    pub fn has_next(&self, most: u32) -> bool {
        self.head().is_some_and(|(length, end)| end.is_some() || length > most)
    }

    /// The next whole message of at most `most` bytes, if one has arrived.
    ///
    /// # Errors
    /// Bytes that are no message; the connection is of no more use.
    pub fn next(&mut self, most: u32) -> Result<Option<Request>, FrameError> {
        let Some((length, end)) = self.head() else { return Ok(None) };
        if length > most {
            return Err(FrameError::TooLong { length, most });
        }
        let Some(end) = end else { return Ok(None) };
        let message = serde_json::from_slice(&self.input[self.at + 4..end]);
        self.at = end;
        if self.at == self.input.len() {
            self.input.clear();
            self.at = 0;
            self.input.shrink_to(KEPT_BYTES);
        }
        Ok(Some(message?))
    }

    /// What it holds of this process's: bytes, and descriptors that no message has taken.
    pub fn holds(&self) -> (usize, usize) {
        (self.input.len(), self.fds.len())
    }

    /// Has a frame begun to arrive? Descriptors come with its first byte.
    pub fn is_in_frame(&self) -> bool {
        self.at < self.input.len()
    }

    /// Nothing more is wanted of this peer.
    pub fn forget_input(&mut self) {
        (self.input, self.at) = (Vec::new(), 0);
        self.fds.clear();
    }

    /// Take the `count` descriptors that came first; `None` if so many have not come.
    pub fn take_fds(&mut self, count: usize) -> Option<Vec<OwnedFd>> {
        (count <= self.fds.len()).then(|| self.fds.drain(..count).collect())
    }

    /// Queue a message and send what the socket takes now.
    ///
    /// # Errors
    /// The peer is gone, or does not read; or a descriptor cannot be duplicated.
    pub fn send(&mut self, reply: &Reply, fds: &[BorrowedFd]) -> Result<(), SendError> {
        if self.unread > MOST_UNREAD_BYTES {
            return Err(SendError::Unread(self.unread));
        }
        let body = serde_json::to_vec(reply).map_err(io::Error::from)?;
        let mut bytes = Vec::with_capacity(4 + body.len());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&body);
        let fds = fds.iter().map(|fd| fd.try_clone_to_owned()).collect::<io::Result<Vec<_>>>()?;
        self.unread += bytes.len();
        self.output.push_back(Frame { bytes, sent: 0, fds });
        Ok(self.flush()?)
    }

    /// Send what the socket takes now.
    ///
    /// # Errors
    /// Those of sendmsg.
    pub fn flush(&mut self) -> io::Result<()> {
        while let Some(frame) = self.output.front_mut() {
            let raw: Vec<RawFd> = frame.fds.iter().map(AsRawFd::as_raw_fd).collect();
            let rights = [ControlMessage::ScmRights(&raw)];
            let control: &[ControlMessage] = if raw.is_empty() { &[] } else { &rights };
            let flags = MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
            let bytes = [IoSlice::new(&frame.bytes[frame.sent..])];
            match sendmsg::<()>(self.stream.as_raw_fd(), &bytes, control, flags, None) {
                Ok(count) => {
                    frame.sent += count;
                    self.unread -= count;
                    // Descriptors go with the first byte.
                    frame.fds.clear();
                    if frame.sent == frame.bytes.len() {
                        self.output.pop_front();
                    }
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Is something still to be sent?
    pub fn is_backed_up(&self) -> bool {
        !self.output.is_empty()
    }

    /// Does so much wait to be read there that nothing more is to be answered?
    pub fn is_paused(&self) -> bool {
        self.unread > PAUSE_BYTES || self.output.len() > PAUSE_FRAMES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use vmpi_shared::control::Connection;

    const MOST: u32 = vmpi_shared::control::MAX_FRAME_BYTES;

    fn pair() -> (Channel, Connection) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Channel::new(ours).unwrap(), Connection::new(theirs))
    }

    #[test]
    fn frames_may_arrive_byte_by_byte() {
        let (mut channel, peer) = pair();
        let body = serde_json::to_vec(&Request::Forward { signal: 10 }).unwrap();
        let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
        bytes.extend_from_slice(&body);
        let mut scratch = Scratch::new();
        for (at, byte) in bytes.iter().enumerate() {
            assert!(channel.next(MOST).unwrap().is_none() && !channel.has_next(MOST), "nothing whole at byte {at}");
            peer.stream().write_all(&[*byte]).unwrap();
            assert_eq!(channel.read(&mut scratch).unwrap(), Incoming::Open);
        }
        assert!(matches!(channel.next(MOST), Ok(Some(Request::Forward { signal: 10 }))));
        drop(peer);
        assert_eq!(channel.read(&mut scratch).unwrap(), Incoming::Closed);
    }

    #[test]
    fn descriptors_come_in_order_behind_plain_frames() {
        let (mut channel, mut peer) = pair();
        let (a, b) = (tempfile(b"a"), tempfile(b"b"));
        peer.send(&Request::Jobs, &[]).unwrap();
        peer.send(&Request::Fds { count: 1 }, &[a.as_raw_fd()]).unwrap();
        peer.send(&Request::Fds { count: 1 }, &[b.as_raw_fd()]).unwrap();
        let mut scratch = Scratch::new();
        for _ in 0..3 {
            channel.read(&mut scratch).unwrap();
        }
        assert!(matches!(channel.next(MOST), Ok(Some(Request::Jobs))));
        for expected in [b"a", b"b"] {
            assert!(matches!(channel.next(MOST), Ok(Some(Request::Fds { count: 1 }))));
            let fds = channel.take_fds(1).unwrap();
            let mut byte = [0];
            nix::sys::uio::pread(&fds[0], &mut byte, 0).unwrap();
            assert_eq!(&byte, expected);
        }
        assert!(channel.take_fds(1).is_none());
    }

    #[test]
    fn nonsense_is_an_error() {
        let (mut channel, peer) = pair();
        peer.stream().write_all(&u32::MAX.to_le_bytes()).unwrap();
        channel.read(&mut Scratch::new()).unwrap();
        assert!(matches!(channel.next(MOST), Err(FrameError::TooLong { length: u32::MAX, most: MOST })));
        let (mut channel, peer) = pair();
        peer.stream().write_all(b"\x02\0\0\0{]").unwrap();
        channel.read(&mut Scratch::new()).unwrap();
        assert!(matches!(channel.next(MOST), Err(FrameError::NoMessage(_))));
    }

    #[test]
    fn a_frame_is_as_long_as_its_sender_may_send_one() {
        let (mut channel, mut peer) = pair();
        peer.send(&Request::Jobs, &[]).unwrap();
        channel.read(&mut Scratch::new()).unwrap();
        assert!(channel.has_next(4), "to be refused");
        assert!(matches!(channel.next(4), Err(FrameError::TooLong { most: 4, .. })));
        assert!(matches!(channel.next(MOST), Ok(Some(Request::Jobs))));
        assert!(!channel.is_in_frame() && channel.holds() == (0, 0));
    }

    #[test]
    fn small_frames_are_served_without_moving_the_rest_each_time() {
        let (mut channel, peer) = pair();
        let body = serde_json::to_vec(&Request::Jobs).unwrap();
        let frame = [&(body.len() as u32).to_le_bytes()[..], &body].concat();
        let frames = READ_BYTES / frame.len() * 4;
        let all = frame.repeat(frames);
        let writer = std::thread::spawn(move || peer.stream().write_all(&all));
        let (mut served, mut scratch) = (0, Scratch::new());
        while served < frames {
            channel.read(&mut scratch).unwrap();
            while channel.next(MOST).unwrap().is_some() {
                served += 1;
                assert!(channel.input.len() < 2 * READ_BYTES, "one turn's bytes at most");
            }
            assert!(channel.holds().0 < 2 * READ_BYTES);
        }
        writer.join().unwrap().unwrap();
        assert_eq!(channel.holds(), (0, 0));
    }

    #[test]
    fn who_does_not_read_is_asked_no_more_and_told_no_more() {
        let (mut channel, peer) = pair();
        let long = Reply::Refused { reason: "x".repeat(8 << 20), code: 2 };
        channel.send(&Reply::Done, &[]).unwrap();
        assert!(!channel.is_paused());
        let told = (0..100).position(|_| matches!(channel.send(&long, &[]), Err(SendError::Unread(_))));
        assert!(channel.is_paused());
        assert_eq!(told, Some(9), "{} bytes wait", channel.unread);
        drop(peer);
        assert!(channel.flush().is_err());
    }

    #[test]
    fn a_full_socket_delays_but_loses_nothing() {
        let (mut channel, mut peer) = pair();
        let file = tempfile(b"z");
        let long = Reply::Refused { reason: "x".repeat(1 << 20), code: 2 };
        channel.send(&long, &[]).unwrap();
        channel.send(&Reply::ShuttingDown, &[file.as_fd()]).unwrap();
        assert!(channel.is_backed_up());
        let reader = std::thread::spawn(move || {
            let first = peer.receive::<Reply>().unwrap().unwrap();
            let second = peer.receive::<Reply>().unwrap().unwrap();
            (first.0, second.0, second.1.len())
        });
        while channel.is_backed_up() {
            channel.flush().unwrap();
            std::thread::yield_now();
        }
        let (first, second, fds) = reader.join().unwrap();
        assert!(matches!(first, Reply::Refused { reason, .. } if reason.len() == 1 << 20));
        assert!(matches!(second, Reply::ShuttingDown));
        assert_eq!(fds, 1);
    }

    fn tempfile(content: &[u8]) -> OwnedFd {
        let fd = nix::sys::memfd::memfd_create("test", nix::sys::memfd::MFdFlags::MFD_CLOEXEC).unwrap();
        nix::unistd::write(&fd, content).unwrap();
        fd
    }
}
