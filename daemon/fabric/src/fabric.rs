//! The trait, and what can happen to a link.

use std::fmt;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::auth::Refusal;
use crate::frame::FrameError;

/// Kinds of frames from here on are the caller's; those below are the fabric's own.
pub const FIRST_KIND: u8 = 16;
/// A link on which nothing else has gone for so long carries a sign of life.
pub const PULSE: Duration = Duration::from_secs(1);
/// A node of which nothing has been heard for so long is lost.
pub const SILENCE: Duration = Duration::from_secs(10);
/// All links of a job are up in this time, or it does not start.
pub const WIRE_UP: Duration = Duration::from_secs(20);

/// A link that is so far behind gets no more large frames for now.
pub const BACKLOG_BYTES: usize = 1 << 20;
/// Nor more of large messages, beyond this: memory.
pub const BULK_BYTES: usize = 256 << 10;

/// Who else has come to a node's port.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    pub count: u64,
    /// The last of them.
    pub from: Option<IpAddr>,
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Others { count, from: Some(from) } = self else {
            return f.write_str(": is there a firewall between the nodes?");
        };
        let connections = if *count == 1 { "connection that was" } else { "connections that were" };
        write!(
            f,
            ", while {count} {connections} not of this job came to this node's port, the last from {from}: is it being scanned?"
        )
    }
}

/// Why a link is of no use any more; the sentence names the other node.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    #[error("node {node} cannot be reached at {tried}: {why}")]
    Unreachable { node: String, tried: String, why: String },
    #[error("node {node} has not connected within {} s{others}", WIRE_UP.as_secs())]
    NeverCame { node: String, others: Others },
    #[error("node {node}: {why}")]
    Refused { node: String, why: Refusal },
    #[error("node {node} has closed its connection: its vmpid has died or was killed")]
    Closed { node: String },
    #[error("the connection to node {node} broke: {why}")]
    Broken { node: String, why: std::io::Error },
    #[error("nothing has been heard of node {node} for {seconds} s: it is down, or the network is cut")]
    Silent { node: String, seconds: u64 },
    #[error("node {node} sent what is no frame: {why}")]
    Nonsense { node: String, why: FrameError },
    #[error("node {node} cannot be reached by verbs: {why}")]
    NoVerbs { node: String, why: String },
    #[error("the RDMA connection to node {node} broke: {why}")]
    Rdma { node: String, why: String },
}

/// What a turn has found.
#[derive(Debug)]
pub enum Event<'a> {
    /// The link to this node has been authenticated; frames may go.
    Up(u32),
    /// A frame has come; frames of one node and one way come in the order in which they were sent.
    Frame { node: u32, kind: u8, body: &'a [u8] },
    /// The link to this node is gone. Told once.
    Lost(u32, LinkError),
}

/// A node's links to all other nodes of a job.
pub trait Fabric {
    /// In words, for reports: an emulated network says so.
    fn describe(&self) -> String;
    /// Becomes readable when `turn` has something to do (deadlines apart).
    fn readable(&self) -> BorrowedFd<'_>;
    /// From now on `readable` need not tell of small frames of this node; `turn` and `look` find them all the same. False: it goes on telling.
    fn quiet_notifications(&mut self, _node: u32) -> bool {
        false
    }
    /// About to sleep until `readable` or `deadline`. False: something has come that `readable` does not tell of.
    fn prepare_to_sleep(&mut self) -> bool {
        true
    }
    /// From now on: who waits for frames of `send_bulk` could make no use of them yet (`idle_hands`), or could. Those that come one shortly after the other
    /// need not each wake this process then.
    fn moderate(&mut self, _idle_hands: bool) {}
    /// Queue a frame (its body in parts, of at most `frame::MAX_BODY_BYTES` together) for a node. Lost with the link, if that is gone.
    fn send(&mut self, node: u32, kind: u8, parts: &[&[u8]]);
    /// The same on a way of its own, as far as the network has one, so that nothing else waits behind it: for the bytes of large messages. Frames of
    /// the two ways come in no order.
    fn send_bulk(&mut self, node: u32, kind: u8, parts: &[&[u8]]) {
        self.send(node, kind, parts);
    }
    /// Memory for the body of a frame to a node, which `send_staged` sends from where it lies: for bodies of at least a few KiB. `None`: there is
    /// none now, or this fabric has none; `send` always works. What is not sent is forgotten by the next call.
    fn stage(&mut self, _node: u32, _bytes: usize) -> Option<&mut [u8]> {
        None
    }
    /// Send what `stage` gave for this node, filled.
    fn send_staged(&mut self, _node: u32, _kind: u8) {}
    /// Bytes queued for a node by `send` that its link has not taken yet.
    fn backlog_bytes(&self, node: u32) -> usize;
    /// May a large frame go to a node now, without being kept here first?
    fn has_room(&self, node: u32) -> bool {
        self.backlog_bytes(node) < BULK_BYTES
    }
    /// Everything queued has left this process.
    fn is_flushed(&self) -> bool;
    /// Write what is queued as far as the links take it; `readable` tells when they take more. Before sleeping.
    fn flush(&mut self);
    /// Move bytes both ways as far as that goes without waiting, and tell what came.
    fn progress(&mut self, now: Instant, on_event: &mut dyn FnMut(Event<'_>));
    /// As `turn`, for who looks again and again: what comes on the links that are up, as cheaply as that goes. `turn` finds the rest.
    fn poll(&mut self, now: Instant, on_event: &mut dyn FnMut(Event<'_>)) {
        self.progress(now, on_event);
    }
    /// Send what is queued before this process ends, as far as the other ends take it in this time. The last call.
    fn linger(&mut self, _patience: Duration) {
        self.progress(Instant::now(), &mut |_| {});
    }
    /// Something is about to come by the way of `send_bulk`: `look` is to look there.
    fn expect_bulk(&mut self) {}
    /// When `turn` wants to be called at the latest.
    fn deadline(&self) -> Option<Instant>;
}
