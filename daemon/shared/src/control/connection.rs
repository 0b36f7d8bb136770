//! Frames on a stream socket, and descriptors with them.

use super::MAX_FRAME_BYTES;
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// A framed connection.
pub struct Connection {
    stream: UnixStream,
    fds: Vec<OwnedFd>,
    control: Control,
}

impl Connection {
    pub fn new(stream: UnixStream) -> Connection {
        Connection { stream, fds: Vec::new(), control: Control::default() }
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
        let received = receive_some(&self.stream, buf, &mut self.control, 0)?;
        if received.cut {
            return Err(io::Error::other("not all descriptors could be taken: too many files are open (ulimit -n)"));
        }
        self.fds.extend(received.fds);
        Ok(received.bytes)
    }
}

/// Descriptors that the kernel sends with one message at most (SCM_MAX_FD).
const SCM_MAX_FD: usize = 253;

/// Room for what comes beside the bytes of one message: as much as the kernel sends, so that nothing is ever cut off for want of it.
pub struct Control(Vec<libc::cmsghdr>);

impl Default for Control {
    fn default() -> Control {
        // SAFETY: arithmetic on a small number.
        let bytes = unsafe { libc::CMSG_SPACE((SCM_MAX_FD * size_of::<RawFd>()) as u32) } as usize;
        // SAFETY: a header of plain integers, for which zeros are good.
        Control(vec![unsafe { std::mem::zeroed() }; bytes.div_ceil(size_of::<libc::cmsghdr>())])
    }
}

/// What has been received at once.
pub struct Received {
    pub bytes: usize,
    pub fds: Vec<OwnedFd>,
    /// There were more descriptors, which this process could not take: too many are open.
    pub cut: bool,
}

/// Receive bytes, and the descriptors that come with them: each has its owner when this returns, whatever else is wrong.
///
/// # Errors
/// Those of recvmsg.
pub fn receive_some(
    stream: &UnixStream,
    buffer: &mut [u8],
    control: &mut Control,
    flags: libc::c_int,
) -> io::Result<Received> {
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let room = size_of_val(&control.0[..]);
    let flags = flags | libc::MSG_CMSG_CLOEXEC;
    // SAFETY: plain data, for which zeros are good.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    let bytes = loop {
        (header.msg_iov, header.msg_iovlen) = (&mut part, 1);
        (header.msg_control, header.msg_controllen) = (control.0.as_mut_ptr().cast(), room as _);
        // SAFETY: the header describes two buffers of this function's callers, exclusively borrowed.
        let bytes = unsafe { libc::recvmsg(stream.as_raw_fd(), &mut header, flags) };
        match (bytes, io::Error::last_os_error()) {
            (0.., _) => break bytes as usize,
            (_, error) if error.kind() == io::ErrorKind::Interrupted => {}
            (_, error) => return Err(error),
        }
    };
    let mut fds = Vec::new();
    // SAFETY: the kernel has filled the buffer with whole messages and said how long it is.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(&header) };
    while !message.is_null() {
        // SAFETY: as above: a whole message, whose length is that of its head and its data; each descriptor in it has just been given to this process.
        unsafe {
            if (*message).cmsg_level == libc::SOL_SOCKET && (*message).cmsg_type == libc::SCM_RIGHTS {
                let length = ((*message).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize);
                let data = libc::CMSG_DATA(message).cast::<RawFd>();
                fds.extend(
                    (0..length / size_of::<RawFd>()).map(|at| OwnedFd::from_raw_fd(data.add(at).read_unaligned())),
                );
            }
            message = libc::CMSG_NXTHDR(&header, message);
        }
    }
    Ok(Received { bytes, fds, cut: header.msg_flags & libc::MSG_CTRUNC != 0 })
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::super::MAX_FDS;
    use super::*;
    use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

    #[test]
    fn as_many_descriptors_as_the_kernel_sends_are_taken() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let null = std::fs::File::open("/dev/null").unwrap();
        let mut control = Control::default();
        for count in [1, 2, MAX_FDS, MAX_FDS + 1, SCM_MAX_FD] {
            let fds = vec![null.as_raw_fd(); count];
            let rights = [ControlMessage::ScmRights(&fds)];
            sendmsg::<()>(theirs.as_raw_fd(), &[IoSlice::new(b"x")], &rights, MsgFlags::empty(), None).unwrap();
            let received = receive_some(&ours, &mut [0; 8], &mut control, 0).unwrap();
            assert_eq!((received.bytes, received.fds.len(), received.cut), (1, count, false));
        }
        drop(theirs);
        assert_eq!(receive_some(&ours, &mut [0; 8], &mut control, 0).unwrap().bytes, 0);
    }
}
