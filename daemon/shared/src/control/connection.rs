//! Frames on a stream socket, and descriptors with them.

use super::{MAX_FDS, MAX_FRAME_BYTES};
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// A framed connection.
pub struct Connection {
    stream: UnixStream,
    fds: Vec<OwnedFd>,
}

impl Connection {
    pub fn new(stream: UnixStream) -> Connection {
        Connection { stream, fds: Vec::new() }
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Write one frame with descriptors; blocks.
    pub fn send<T: Serialize>(&mut self, message: &T, fds: &[RawFd]) -> io::Result<()> {
        use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};
        let body = serde_json::to_vec(message)?;
        let mut frame = Vec::with_capacity(4 + body.len());
        frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
        frame.extend_from_slice(&body);
        let rights = [ControlMessage::ScmRights(fds)];
        let control: &[ControlMessage] = if fds.is_empty() { &[] } else { &rights };
        let sent = loop {
            match sendmsg::<()>(self.stream.as_raw_fd(), &[IoSlice::new(&frame)], control, MsgFlags::MSG_NOSIGNAL, None)
            {
                Ok(n) => break n,
                Err(nix::errno::Errno::EINTR) => continue,
                Err(e) => return Err(e.into()),
            }
        };
        (&self.stream).write_all(&frame[sent..])
    }

    /// Read one frame; blocks. `Ok(None)`: the other side closed the connection.
    pub fn receive<T: for<'de> Deserialize<'de>>(&mut self) -> io::Result<Option<(T, Vec<OwnedFd>)>> {
        let mut head = [0u8; 4];
        let mut got = 0;
        while got < 4 {
            let n = self.read_some(&mut head[got..])?;
            if n == 0 {
                return if got == 0 { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
            got += n;
        }
        let len = u32::from_le_bytes(head);
        if len > MAX_FRAME_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("frame of {len} bytes is too long")));
        }
        let mut body = vec![0u8; len as usize];
        (&self.stream).read_exact(&mut body)?;
        let message = serde_json::from_slice(&body)?;
        Ok(Some((message, std::mem::take(&mut self.fds))))
    }

    fn read_some(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg};
        let mut space = nix::cmsg_space!([RawFd; MAX_FDS]);
        loop {
            let mut iov = [IoSliceMut::new(buf)];
            let message =
                match recvmsg::<()>(self.stream.as_raw_fd(), &mut iov, Some(&mut space), MsgFlags::MSG_CMSG_CLOEXEC) {
                    Ok(message) => message,
                    Err(nix::errno::Errno::EINTR) => continue,
                    Err(e) => return Err(e.into()),
                };
            for control in message.cmsgs()? {
                if let ControlMessageOwned::ScmRights(fds) = control {
                    // SAFETY: the kernel has just given these descriptors to this process; nobody else owns them.
                    self.fds.extend(fds.into_iter().map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }));
                }
            }
            return Ok(message.bytes);
        }
    }
}
