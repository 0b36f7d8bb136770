//! One-sided communication: what ranks of other nodes ask about the memory of this node's ranks, done without those ranks.
//!
//! Asks of one origin about one target are done in the order in which they come. What waits for a lock waits here, in the name of its origin, whose
//! place in the window's segment on this node is this carrier's to write: whoever gives the lock back finds it there, and calls the carrier as it would
//! wake a rank (SYNC W). Everything that an ask says is checked against the segment, where each member has said what its memory is.
//!
//! Reading order: this file (what the carrier does with asks), `open` (a window's state here), `combine` (accumulations).

mod answer;
mod combine;
mod open;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;

use vmpi_cma::Block;
use vmpi_shared::ask::{Ask, Nonsense, Opening, What};
use vmpi_shared::matching::envelope::{Envelope, kind};
use vmpi_shared::matching::queues::answer;
use vmpi_shared::matching::request::outcome;
use vmpi_shared::proc;
use vmpi_shared::window::{Shape, Window};

use super::CarrierLoop;
use crate::carrier::transfer::{Cursor, Fin, Incoming, Memory, Outgoing};
use crate::carrier::wire::{self, BodyError};
use crate::log::debug;
use answer::Answer;
pub use open::Open;
use open::{Asked, failure, is_ordered, refusal};

impl CarrierLoop {
    /// What a rank of this node asks of its own carrier.
    pub(super) fn asked_here(&mut self, envelope: &Envelope) {
        let (rank, request) = (envelope.from, envelope.request);
        let Ok(ask) = Ask::of(envelope) else { return };
        if !self.endpoint.is_local(rank) {
            return;
        }
        let outcome = match ask.what {
            What::Open => self.open(rank, &ask, envelope),
            What::Attend => {
                let first = Block { addr: ask.offset, len: 1 };
                let reachable = Memory::of(&self.endpoint, rank, false)
                    .is_some_and(|memory| Cursor::over(memory, vec![first]).is_reached(&self.endpoint.node));
                if reachable { Ok(()) } else { Err(libc::EPERM) }
            }
            _ => {
                let waiting = self.windows.remove(&ask.window).into_iter().flat_map(Open::into_waiting);
                for asked in waiting.collect::<Vec<_>>() {
                    self.delivered(Some(asked.node), asked.to);
                }
                return;
            }
        };
        let mut fin = answer(kind::FIN, request);
        fin.set_peer_request(outcome.map_or_else(failure, |()| outcome::GOOD));
        self.deliver(None, rank, fin, Vec::new());
    }

    /// Map the segment of a new window.
    fn open(&mut self, rank: u32, ask: &Ask, envelope: &Envelope) -> Result<(), i32> {
        let opening = Opening::decode(envelope.ask_payload()).ok_or(libc::EINVAL)?;
        let pid = self.endpoint.pid(rank).ok_or(libc::ESRCH)?;
        if opening.members > self.endpoint.node.header().ranks {
            return Err(libc::EINVAL);
        }
        let path = proc::directory(pid).ok_or(libc::ESRCH)?.join(format!("fd/{}", opening.fd));
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(&path);
        let file = file.map_err(|e| e.raw_os_error().unwrap_or(libc::EIO))?;
        let shape = Shape { members: opening.members, dynamic: opening.dynamic, data_bytes: opening.data_bytes };
        let mut control = Window::map(shape, file.into()).map_err(|error| {
            debug!("carrier: the segment of a window of rank {rank}: {error}");
            libc::EINVAL
        })?;
        control.close_fd();
        self.windows.insert(ask.window, Open::new(control));
        Ok(())
    }

    /// A rank of another node asks about the memory of rank `to` of this one.
    pub(super) fn asked(&mut self, node: u32, to: u32, envelope: &Envelope, payload: &[u8]) -> Result<(), BodyError> {
        let ask = Ask::of(envelope)?;
        if ask.what.is_local() {
            return Err(Nonsense.into());
        }
        let (from, request, transfer) = (envelope.from, envelope.request, envelope.peer_request());
        let asked = Asked { ask, node, from, to, request, transfer };
        let Some(open) = self.windows.get_mut(&ask.window).filter(|open| open.fits(&asked)) else {
            self.delivered(Some(node), to);
            // Without a failure nobody is through with a window before all are.
            let given_up = self.survives() && self.endpoint.job.failures() > 0;
            let errno = if given_up { libc::ESRCH } else { libc::EINVAL };
            self.reply(&asked, refusal(ask.what, errno));
            return Ok(());
        };
        let key = (ask.target, ask.origin);
        if is_ordered(ask.what)
            && let Some(line) = open.lines.get_mut(&key)
        {
            line.push_back((asked, payload.to_vec()));
            return Ok(());
        }
        let done = if ask.what == What::Lock {
            open.queue_up(asked)
        } else {
            let mut waits = false;
            match open.run_or_wait(&asked, payload, &self.endpoint, &mut waits) {
                Some(answer) => Some((asked, answer)),
                None => {
                    open.lines.entry(key).or_default().push_back((asked, payload.to_vec()));
                    // It holds its credit until it is done.
                    return Ok(());
                }
            }
        };
        if !done.as_ref().is_some_and(|(_, answer)| answer.goes_on()) {
            self.delivered(Some(node), to);
        }
        if let Some((asked, answer)) = done {
            self.reply(&asked, answer);
        }
        self.stir(ask.window);
        Ok(())
    }

    /// Let those go on who may since something has changed in a window, here and on other nodes.
    fn stir(&mut self, window: (i32, u32)) {
        while let Some(open) = self.windows.get_mut(&window) {
            let (stirred, mut again) = (std::mem::take(&mut open.stirred), std::mem::take(&mut open.again));
            if stirred.is_empty() && !again {
                return;
            }
            let ranks: Vec<u32> = stirred.into_iter().filter_map(|member| open.control.member(member).rank()).collect();
            for rank in ranks {
                if !self.endpoint.is_local(rank) {
                    again = true;
                    continue;
                }
                self.endpoint.wake(rank);
                if self.endpoint.has_threads(rank) {
                    self.deliver(None, rank, answer(kind::WAKE, 0), Vec::new());
                }
            }
            if again {
                self.advance(window);
            }
        }
    }

    fn advance(&mut self, window: (i32, u32)) {
        let Some(open) = self.windows.get_mut(&window) else { return };
        for (asked, answer, credit) in open.advance(&self.endpoint) {
            if credit && !answer.goes_on() {
                self.delivered(Some(asked.node), asked.to);
            }
            self.reply(&asked, answer);
        }
    }

    /// A rank here may have given back what somebody waits for.
    pub(super) fn look_at_windows(&mut self) {
        let waiting: Vec<(i32, u32)> =
            self.windows.iter().filter(|(_, open)| open.waits()).map(|(window, _)| *window).collect();
        for window in waiting {
            self.advance(window);
            self.stir(window);
        }
    }

    fn reply(&mut self, asked: &Asked, reply: Answer) {
        let Asked { node, from, to, request, transfer, .. } = *asked;
        match reply {
            Answer::Nothing => {}
            Answer::Word(outcome) => self.finish_far(node, from, request, outcome),
            Answer::Number(number) => {
                let mut fin = answer(kind::FIN, request);
                fin.set_addr(number);
                self.answer_far(node, from, &fin);
            }
            Answer::Refused(errno) => self.refuse(node, transfer, errno),
            Answer::Data(bytes) => self.fabric.send(node, wire::DATA, &[&transfer.to_le_bytes(), &bytes]),
            Answer::Stream(cursor) => {
                self.outgoing.push_back(Outgoing {
                    node,
                    transfer,
                    rank: to,
                    request: 0,
                    to: from,
                    from: cursor,
                    len: asked.ask.bytes,
                    sent: 0,
                    fin: Fin::Nobody,
                    failed: 0,
                    credit: true,
                });
            }
            Answer::Bring(cursor) => self.bring(asked, cursor),
        }
    }

    /// Have the origin's carrier send what is to be written.
    fn bring(&mut self, asked: &Asked, to: Cursor) {
        let Asked { node, from, request, .. } = *asked;
        let len = asked.ask.bytes;
        let entry = Incoming {
            rank: asked.to,
            request: 0,
            node,
            sender: from,
            sender_request: request,
            to,
            len,
            got: 0,
            failed: 0,
            pull: Envelope::EMPTY,
            answers_sender: true,
            said: true,
            told: false,
            void: false,
            credit: true,
        };
        self.begin(entry);
    }

    /// Complete the request of a rank of another node.
    pub(super) fn finish_far(&mut self, node: u32, rank: u32, request: u32, outcome: u32) {
        let mut fin = answer(kind::FIN, request);
        fin.set_peer_request(outcome);
        self.answer_far(node, rank, &fin);
    }
}
