//! One connection of the control socket, without blocking: frames in, frames out, descriptors both ways.
//!
//! The framing is `vmpi_shared::control`'s. A slow peer costs memory, never the event loop's time: what does not fit in
//! the socket waits in `output`. Received descriptors wait in arrival order; `Request::Fds` says how many it brought.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use vmpi_shared::control::{MAX_FDS, MAX_FRAME_BYTES, Reply, Request};

/// Bytes read at once; one buffer serves all connections.
const READ_BYTES: usize = 256 << 10;

/// The buffers that reading needs, shared by all connections.
pub struct Scratch {
    bytes: Vec<u8>,
    control: Vec<u8>,
}

impl Scratch {
    pub fn new() -> Scratch {
        Scratch { bytes: vec![0; READ_BYTES], control: nix::cmsg_space!([RawFd; MAX_FDS]) }
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
    #[error("a frame of {0} bytes is longer than {MAX_FRAME_BYTES} allowed")]
    TooLong(u32),
    #[error("a frame is not a message of this protocol: {0}")]
    NoMessage(#[from] serde_json::Error),
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
    input: Vec<u8>,
    fds: VecDeque<OwnedFd>,
    output: VecDeque<Frame>,
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
        Ok(Channel { stream, peer, input: Vec::new(), fds: VecDeque::new(), output: VecDeque::new() })
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Read what has come so far.
    ///
    /// # Errors
    /// Those of recvmsg; the connection is of no more use.
    pub fn read(&mut self, scratch: &mut Scratch) -> io::Result<Incoming> {
        loop {
            let mut buffers = [IoSliceMut::new(&mut scratch.bytes)];
            let flags = MsgFlags::MSG_CMSG_CLOEXEC | MsgFlags::MSG_DONTWAIT;
            let message = match recvmsg::<()>(self.stream.as_raw_fd(), &mut buffers, Some(&mut scratch.control), flags)
            {
                Ok(message) => message,
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return Ok(Incoming::Open),
                Err(e) => return Err(e.into()),
            };
            let count = message.bytes;
            for control in message.cmsgs()? {
                if let ControlMessageOwned::ScmRights(fds) = control {
                    self.fds.extend(fds.into_iter().map(own));
                }
            }
            if count == 0 {
                return Ok(Incoming::Closed);
            }
            self.input.extend_from_slice(&scratch.bytes[..count]);
        }
    }

    /// The next whole message, if one has arrived.
    ///
    /// # Errors
    /// Bytes that are no message; the connection is of no more use.
    pub fn next(&mut self) -> Result<Option<Request>, FrameError> {
        let Some(head) = self.input.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head);
        if length > MAX_FRAME_BYTES {
            return Err(FrameError::TooLong(length));
        }
        let end = 4 + length as usize;
        if self.input.len() < end {
            return Ok(None);
        }
        let message = serde_json::from_slice(&self.input[4..end]);
        self.input.drain(..end);
        if self.input.is_empty() {
            self.input = Vec::new();
        }
        Ok(Some(message?))
    }

    /// Take the `count` descriptors that came first; `None` if so many have not come.
    pub fn take_fds(&mut self, count: usize) -> Option<Vec<OwnedFd>> {
        (count <= self.fds.len()).then(|| self.fds.drain(..count).collect())
    }

    /// Queue a message and send what the socket takes now.
    ///
    /// # Errors
    /// Those of sendmsg (the peer is gone), or of duplicating a descriptor.
    pub fn send(&mut self, reply: &Reply, fds: &[BorrowedFd]) -> io::Result<()> {
        let body = serde_json::to_vec(reply)?;
        let mut bytes = Vec::with_capacity(4 + body.len());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&body);
        let fds = fds.iter().map(|fd| fd.try_clone_to_owned()).collect::<io::Result<Vec<_>>>()?;
        self.output.push_back(Frame { bytes, sent: 0, fds });
        self.flush()
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
}

#[allow(unsafe_code)]
fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: recvmsg has just given this descriptor to this process; nobody else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use vmpi_shared::control::Connection;

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
            assert!(channel.next().unwrap().is_none(), "nothing whole at byte {at}");
            peer.stream().write_all(&[*byte]).unwrap();
            assert_eq!(channel.read(&mut scratch).unwrap(), Incoming::Open);
        }
        assert!(matches!(channel.next(), Ok(Some(Request::Forward { signal: 10 }))));
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
        channel.read(&mut Scratch::new()).unwrap();
        assert!(matches!(channel.next(), Ok(Some(Request::Jobs))));
        for expected in [b"a", b"b"] {
            assert!(matches!(channel.next(), Ok(Some(Request::Fds { count: 1 }))));
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
        assert!(matches!(channel.next(), Err(FrameError::TooLong(u32::MAX))));
        let (mut channel, peer) = pair();
        peer.stream().write_all(b"\x02\0\0\0{]").unwrap();
        channel.read(&mut Scratch::new()).unwrap();
        assert!(matches!(channel.next(), Err(FrameError::NoMessage(_))));
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
