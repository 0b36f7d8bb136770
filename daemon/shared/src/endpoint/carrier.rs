//! A job of several nodes: how messages for remote ranks leave a node's segments, and how those from there get in.
//!
//! Each node's segments have a place for every rank of the job. A remote rank's inbox holds what is on its way to it, and its slab what
//! came from it; both are the carrier's, a process of the daemon's that takes the one to the rank's node and fills the other. So a sender
//! does the same for all ranks, and an answer to a remote one finds its way by itself.
//!
//! SYNC N: who pushes for a remote rank marks it in the outbox and then looks whether the carrier sleeps; the carrier says that it sleeps and
//! then looks at the outbox.
//!
//! A carrier that is woken takes the CPU from the rank that woke it, so it is not woken for each of the large messages that a rank starts one after
//! the other: the first announcement, or receive of one, asks its bell to ring in a moment, and who leaves a core before that rings (as an adapter
//! moderates its interrupts). For small ones the system calls for the timer would cost more than they save.
//!
//! Death story: the daemon sees the carrier's end and ends the job. A rank that dies before it rings, or between saying that the carrier is called and
//! asking its bell to ring, ends the job, and then nothing is to be carried any more; in a job that survives deaths the daemon rings for it.

use std::time::Duration;

use super::{proxy, queue_loan};
use crate::job::JobSegment;
use crate::matching::envelope::{Envelope, kind};
use crate::matching::inbox::Full;
use crate::matching::queues::Outgoing;
use crate::matching::request::NOBODY;
use crate::mem::slab::PART_BYTES;
use crate::mem::sync::{Ordering, fence};
use crate::node::{CarrierWords, NodeSegment};
use crate::sched::{self, RunState, carrier_bell::Stand, run_queue};

/// Does a rank that starts or receives a message like this one often start another at once? Model tests try both answers.
pub(super) fn more_may_follow(envelope: &Envelope) -> bool {
    #[cfg(feature = "model")]
    if shuttle::rand::Rng::r#gen(&mut shuttle::rand::thread_rng()) {
        return true;
    }
    match envelope.kind {
        kind::SLAB => envelope.len > MEDIUM_BYTES,
        kind => matches!(kind, kind::RTS | kind::PULL | kind::GO),
    }
}

/// Messages from here on take longer than a timer and a bell.
const MEDIUM_BYTES: u64 = 16 << 10;
/// The carrier's end of the segments. Used by one thread.
pub struct CarrierEndpoint {
    pub node: NodeSegment,
    pub job: JobSegment,
    answers: Outgoing,
    /// Of a job that survives deaths, a rank of another node, in whose name this process acts here: nobody else does (`sched::intent`, `Inbox::push_signed`).
    actor: Option<u32>,
}

impl CarrierEndpoint {
    pub fn new(mut node: NodeSegment, job: JobSegment) -> CarrierEndpoint {
        node.find_by_told_pids();
        let survives = node.header().recovery != 0;
        let actor = (0..node.header().ranks).find(|rank| survives && node.is_remote(*rank));
        if let Some(actor) = actor {
            node.set_actor(actor);
        }
        CarrierEndpoint { node, job, answers: Outgoing::new(), actor }
    }

    /// A rank of this node?
    pub fn is_local(&self, rank: u32) -> bool {
        rank < self.node.header().ranks && !self.node.is_remote(rank)
    }

    /// Remote ranks for which something has been pushed since the last call.
    pub fn called(&self) -> Vec<u32> {
        let set = self.node.outbox();
        let marked = run_queue::members(set).filter(|rank| *rank < self.node.header().ranks);
        marked.filter(|rank| run_queue::remove(set, *rank)).collect()
    }

    /// Take what lies in the inbox of a remote rank, while `take` wants more. False: `take` has left something.
    pub fn collect(&self, rank: u32, mut take: impl FnMut(&Envelope) -> bool) -> bool {
        let inbox = self.job.inbox(rank);
        let mut declined = false;
        let mut any = false;
        while inbox.pop_if(|envelope| {
            declined = !take(envelope);
            !declined
        }) {
            any = true;
        }
        if any {
            fence(Ordering::SeqCst);
        }
        proxy::wake_space_waiters(&self.node, &self.job, rank);
        !declined
    }

    /// Another process will be `rank`, which was one of this node's: its queues are as new. The last one is gone, so what lies there is nobody's.
    ///
    /// # Errors
    /// Those of fallocate.
    #[cfg(not(feature = "model"))]
    pub fn renew(&self, rank: u32) -> Result<(), nix::errno::Errno> {
        self.job.renew_rank(rank)
    }

    /// Before sleeping: how things stand, for who looks from outside (`stand`).
    pub fn note(&self, stand: Stand) {
        let post = self.node.post();
        post.holds.store(stand.holds.into(), Ordering::SeqCst);
        post.sent.store(stand.sent, Ordering::SeqCst);
        post.received.store(stand.received, Ordering::SeqCst);
    }

    /// About to sleep until the bell rings; `dozing`: also when a core begins to wait. False: there is something to take.
    pub fn prepare_to_sleep(&self, dozing: bool) -> bool {
        let asleep = &self.node.post().asleep;
        asleep.store(if dozing { CarrierWords::DOZING } else { CarrierWords::ASLEEP }, Ordering::SeqCst); // SYNC N
        if run_queue::is_empty(self.node.outbox()) {
            return true;
        }
        asleep.store(CarrierWords::AWAKE, Ordering::SeqCst);
        false
    }

    /// For how long a rank watches for what it waits for, and so may the carrier.
    pub fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.node.seconds(self.node.header().spin_ticks))
    }

    /// May the carrier look for something to do on `cpu`, without taking time from a rank that has work?
    pub fn may_look(&self, cpu: u32) -> bool {
        sched::is_idle(&self.node, cpu)
    }

    /// Are there ranks of this node, and would each of them have to go on waiting for a core, whatever came for it? No core must wait: some take ranks over.
    pub fn must_wait(&self, ranks: impl IntoIterator<Item = u32>) -> bool {
        let mut ranks = ranks.into_iter().peekable();
        ranks.peek().is_some()
            && sched::all_run(&self.node)
            && ranks.all(|rank| self.node.state(rank) != RunState::Running)
    }

    /// Awake: nobody need ring. `rang`: somebody has; `chimed`: or has asked for that a moment ago.
    pub fn get_up(&self, rang: bool, chimed: bool) {
        let post = self.node.post();
        post.asleep.store(CarrierWords::AWAKE, Ordering::SeqCst);
        // Who is only about to ask the bell to ring in a moment wakes for nothing then.
        let chiming = post.chiming.swap(0, Ordering::Relaxed) != 0;
        #[cfg(not(feature = "model"))]
        if let Some(bell) = self.node.carrier_bell() {
            bell.quiet(rang, chimed || chiming);
        }
        #[cfg(feature = "model")]
        let _ = (rang, chimed, chiming);
    }

    /// Bring `envelope` to a rank of this node, and match for that if it is suspended.
    ///
    /// # Errors
    /// No room: again later.
    pub fn deliver(&mut self, to: u32, envelope: &Envelope) -> Result<(), Full> {
        let pushed = self.push(to, envelope);
        if pushed.is_ok() || self.node.state(to) == RunState::Suspended {
            self.progress_for(to, envelope.kind);
        }
        if pushed.is_err() {
            return self.push(to, envelope).inspect(|()| self.progress_for(to, envelope.kind));
        }
        pushed
    }

    fn push(&self, to: u32, envelope: &Envelope) -> Result<(), Full> {
        let inbox = self.job.inbox(to);
        match self.actor {
            Some(actor) => inbox.push_signed(envelope, actor),
            None => inbox.push(envelope),
        }
    }

    /// `to` has mail: match for it if it is suspended, or computes and its payload can move now.
    fn progress_for(&mut self, to: u32, kind: u8) {
        proxy::progress_for(&self.node, &self.job, NOBODY, to, &mut self.answers);
        if kind == kind::RTS {
            queue_loan::progress_for_offerer(&self.node, &self.job, NOBODY, to, &mut self.answers);
        }
    }

    /// What matching has made necessary: to whom, and what. Local and remote ranks.
    pub fn answers(&mut self) -> Outgoing {
        std::mem::take(&mut self.answers)
    }

    /// Let a rank of this node look whether what it waits for in a window has come about. The caller has fenced.
    pub fn wake(&mut self, rank: u32) {
        sched::wake(&self.node, rank);
    }

    /// Do several threads of that rank wait for different things, so that it takes a message to wake them all?
    pub fn has_threads(&self, rank: u32) -> bool {
        self.node.rank(rank).cell_threads.load(Ordering::SeqCst) != 0
    }

    /// The payload of a SLAB, PIECE or ASK envelope that a rank of this node has pushed; `None` if it makes no sense.
    pub fn payload(&self, envelope: &Envelope) -> Option<&[u8]> {
        let len = envelope.len;
        if len > PART_BYTES {
            return None;
        }
        let at = self.job.block(envelope.from, envelope.addr(), len)?;
        // SAFETY: inside the sender's slab. The block is the message's until it is given back; a rank that writes there all the same
        // changes what arrives, and nothing else.
        Some(unsafe { std::slice::from_raw_parts(at, len as usize) })
    }

    /// The payload of this envelope has been taken: its block is the sender's again.
    pub fn give_back(&self, envelope: &Envelope) {
        self.job.slab(envelope.from).give(envelope.addr(), envelope.len);
    }

    /// Put the payload of a message from remote rank `envelope.from` into that one's slab here, and name it in the envelope. False: no block.
    pub fn store(&self, envelope: &mut Envelope, payload: &[u8]) -> bool {
        let from = envelope.from;
        let Some(block) = self.job.slab(from).take_or_put(from, payload.len() as u64) else { return false };
        let Some(at) = self.job.block(from, block, payload.len() as u64) else { return false };
        // SAFETY: a fresh block of this length, nobody else's yet.
        unsafe { std::ptr::copy_nonoverlapping(payload.as_ptr(), at, payload.len()) };
        envelope.set_addr(block);
        true
    }

    /// How many unexpected messages a rank of this node holds.
    pub fn unexpected(&self, rank: u32) -> u32 {
        self.job.inbox(rank).ends.unexpected.load(Ordering::Relaxed)
    }

    /// A remote rank holds so many unexpected messages: its senders here look at that.
    pub fn note_unexpected(&self, rank: u32, count: u32) {
        self.job.inbox(rank).ends.unexpected.store(count, Ordering::Relaxed);
    }

    /// The process of a rank of this node, to copy from and to.
    pub fn pid(&self, rank: u32) -> Option<i32> {
        self.node.peer_pid(rank)
    }
}

/// May an envelope of this kind go from node to node?
pub fn travels(kind: u8) -> bool {
    matches!(kind, kind::INLINE | kind::SLAB | kind::RTS | kind::FIN | kind::PULL | kind::PIECE | kind::ASK)
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::job::JobConfig;
    use crate::node::NodeConfig;

    #[test]
    fn ranks_wait_for_a_core_while_others_have_them_all() {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 3)).unwrap();
        let courier = CarrierEndpoint::new(node, JobSegment::create(&JobConfig::for_ranks(3)).unwrap());
        let idle = |ranks: &[u32]| courier.must_wait(ranks.iter().copied());
        assert!(!idle(&[1]), "its core is free");
        sched::enter(&courier.node, 0);
        assert!(idle(&[1]) && idle(&[2, 1]), "rank 0 runs there");
        assert!(!idle(&[]), "nobody waits");
        assert!(!idle(&[0]) && !idle(&[1, 0]), "who runs can look for what has come");
        sched::finish(&courier.node, 0);
        assert!(!idle(&[1]), "it is free again");
    }
}
