//! One authenticated connection: frames in, frames out, signs of life.

use std::io::{self, IoSlice, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use nix::sys::socket::sockopt;
use nix::{libc, setsockopt_impl, sockopt_impl};

use crate::fabric::{LinkError, PULSE, SILENCE};
use crate::frame::{self, Decoder};
use crate::seal::{Opener, Sealer};

/// A sign of life, without a body.
pub const PULSE_KIND: u8 = 1;
/// A link is looked at each `PULSE`. Who does not come to it for so long was not running.
const AWAY: Duration = Duration::from_secs(3);
/// Fills of the decoder between two looks at other links.
const FILLS: usize = 4;
/// What is sent is taken together up to this, larger bodies are written where they lie.
const TOGETHER_BYTES: usize = 16 << 10;

/// What a hushed link takes before it tells of it: its buffers must not fill up.
const MUCH_BYTES: usize = 32 << 10;
sockopt_impl!(ReceiveLowWater, SetOnly, libc::SOL_SOCKET, libc::SO_RCVLOWAT, usize);

/// Congestion control that spreads what it sends over time, by an estimate of the bandwidth; and what takes its place, which every user may choose.
const PACED: &str = "bbr";
const UNPACED: &str = "reno";

/// Let messages go as fast as the other side takes them. BBR's estimate is one of flows that always have something to send: of messages of
/// 128 KiB, back and forth between two network namespaces, it let the second half wait for up to 400 us, and one direction got 13 Gbit/s where
/// reno got 27 (iperf3, medians).
fn unpace(stream: &TcpStream) {
    if nix::sys::socket::getsockopt(stream, sockopt::TcpCongestion).is_ok_and(|name| name == PACED) {
        let _ = nix::sys::socket::setsockopt(stream, sockopt::TcpCongestion, &UNPACED.into());
    }
}

pub struct Link {
    pub stream: TcpStream,
    node: String,
    decoder: Decoder,
    /// Of a link whose frames are sealed.
    seals: Option<Box<(Sealer, Opener)>>,
    out: Vec<u8>,
    sent: usize,
    last_heard: Instant,
    last_check: Instant,
    last_sent: Instant,
    /// The event loop watches for room to write.
    pub watches_room: bool,
    /// The event loop is not told of what comes until it is much.
    pub hushed: bool,
    broken: Option<io::Error>,
}

impl Link {
    pub fn new(stream: TcpStream, node: String, seals: Option<(Sealer, Opener)>, now: Instant) -> Link {
        // It only costs time if these fail.
        let _ = stream.set_nodelay(true);
        unpace(&stream);
        Link {
            stream,
            node,
            decoder: Decoder::default(),
            seals: seals.map(Box::new),
            out: Vec::new(),
            sent: 0,
            last_heard: now,
            last_check: now,
            last_sent: now,
            watches_room: false,
            hushed: false,
            broken: None,
        }
    }

    /// The kernel is to tell of what comes only when it is much, or the end.
    pub fn quiet_notifications(&mut self) -> bool {
        self.hushed = nix::sys::socket::setsockopt(&self.stream, ReceiveLowWater, &MUCH_BYTES).is_ok();
        self.hushed
    }

    pub fn backlog_bytes(&self) -> usize {
        self.out.len() - self.sent
    }

    pub fn send(&mut self, kind: u8, parts: &[&[u8]]) {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        let head = frame::head(kind, bytes);
        self.out.extend_from_slice(&head);
        if let Some(seals) = &mut self.seals {
            let at = self.out.len();
            parts.iter().for_each(|part| self.out.extend_from_slice(part));
            match seals.0.seal(&head, &mut self.out[at..]) {
                Some(tag) => self.out.extend_from_slice(&tag),
                None => self.broken = Some(io::Error::other("it has carried as many frames as its key may seal")),
            }
            if bytes >= TOGETHER_BYTES {
                self.write();
            }
            return;
        }
        // What the socket takes of a large body need not be copied.
        let mut taken = if bytes >= TOGETHER_BYTES { self.write_with(parts) } else { 0 };
        for part in parts {
            let skip = taken.min(part.len());
            taken -= skip;
            self.out.extend_from_slice(&part[skip..]);
        }
    }

    /// Write what is queued and, behind it in the same system call, `parts`: how many bytes of those the socket has taken.
    fn write_with(&mut self, parts: &[&[u8]]) -> usize {
        if self.broken.is_some() {
            return 0;
        }
        let queued = self.backlog_bytes();
        let all: Vec<IoSlice<'_>> =
            std::iter::once(&self.out[self.sent..]).chain(parts.iter().copied()).map(IoSlice::new).collect();
        let count = match (&self.stream).write_vectored(&all) {
            Ok(count) => count,
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => return 0,
            Err(e) => {
                self.broken = Some(e);
                return 0;
            }
        };
        self.last_sent = Instant::now();
        if count < queued {
            self.sent += count;
            return 0;
        }
        self.out.clear();
        self.sent = 0;
        count - queued
    }

    /// Write what the socket takes now; an error shows in `check`.
    pub fn write(&mut self) {
        while self.sent < self.out.len() {
            let from = self.sent;
            let out = std::mem::take(&mut self.out);
            let count = self.write_some(&out[from..]);
            self.out = out;
            if count == 0 {
                return;
            }
            self.sent += count;
        }
        self.out.clear();
        self.sent = 0;
        if self.out.capacity() > 4 * frame::MAX_BODY_BYTES {
            self.out = Vec::new();
        }
    }

    fn write_some(&mut self, bytes: &[u8]) -> usize {
        if bytes.is_empty() || self.broken.is_some() {
            return 0;
        }
        loop {
            match (&self.stream).write(bytes) {
                Ok(count) => {
                    self.last_sent = Instant::now();
                    return count;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return 0,
                Err(e) => {
                    self.broken = Some(e);
                    return 0;
                }
            }
        }
    }

    /// Read what has come and tell its frames.
    ///
    /// # Errors
    /// The link is of no more use.
    pub fn read(&mut self, now: Instant, tell: &mut dyn FnMut(u8, &[u8])) -> Result<(), LinkError> {
        for _ in 0..FILLS {
            let room = self.decoder.room();
            let wanted = room.len();
            match (&self.stream).read(room) {
                Ok(0) => return Err(LinkError::Closed { node: self.node.clone() }),
                Ok(count) => {
                    self.last_heard = now;
                    self.decoder.filled(count);
                    loop {
                        let next = match &mut self.seals {
                            None => self.decoder.next_frame(),
                            Some(seals) => self.decoder.next_sealed(&mut seals.1),
                        };
                        match next {
                            Ok(None) => break,
                            Ok(Some((PULSE_KIND, _))) => {}
                            Ok(Some((kind, body))) => tell(kind, body),
                            Err(why) => return Err(LinkError::Nonsense { node: self.node.clone(), why }),
                        }
                    }
                    if count < wanted {
                        return Ok(());
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(why) => return Err(LinkError::Broken { node: self.node.clone(), why }),
            }
        }
        Ok(())
    }

    /// Signs of life, both ways.
    ///
    /// # Errors
    /// The other side has been silent for too long, or writing has failed.
    pub fn check(&mut self, now: Instant) -> Result<(), LinkError> {
        if let Some(why) = self.broken.take() {
            return Err(match why.kind() {
                io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                    LinkError::Closed { node: self.node.clone() }
                }
                _ => LinkError::Broken { node: self.node.clone(), why },
            });
        }
        let since = now.saturating_duration_since(self.last_check);
        self.last_check = now;
        if since > AWAY {
            // Who has been stopped, or whose machine has, has heard nobody: that time says nothing of the other side, which may have been stopped as well.
            self.last_heard += since;
        }
        if now.saturating_duration_since(self.last_heard) >= SILENCE {
            return Err(LinkError::Silent { node: self.node.clone(), seconds: SILENCE.as_secs() });
        }
        if now.saturating_duration_since(self.last_sent) >= PULSE && self.backlog_bytes() == 0 {
            self.last_sent = now;
            self.send(PULSE_KIND, &[]);
            self.write();
        }
        Ok(())
    }

    pub fn deadline(&self) -> Instant {
        let pulse = if self.backlog_bytes() == 0 { self.last_sent } else { self.last_check };
        (pulse + PULSE).min(self.last_check + PULSE).min(self.last_heard + SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;

    #[test]
    fn silence_is_judged_by_the_time_in_which_this_end_was_there() {
        let (here, there) = std::os::unix::net::UnixStream::pair().map(|(a, b)| (OwnedFd::from(a), b)).unwrap();
        let start = Instant::now();
        let mut link = Link::new(TcpStream::from(here), "b".into(), None, start);
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        for second in 1..8 {
            assert!(link.check(at(second)).is_ok() && link.deadline() <= at(second + 1));
        }
        assert!(link.check(at(100)).is_ok(), "stopped for 93 s");
        assert!((101..103).all(|second| link.check(at(second)).is_ok()));
        let why = link.check(at(103));
        assert!(matches!(why, Err(LinkError::Silent { .. })), "{why:?}");
        drop(there);
    }
}
