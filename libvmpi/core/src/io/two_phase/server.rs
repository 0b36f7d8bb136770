//! An aggregator, which reads and writes its part of the file for all.

use super::{HEADER_BYTES, Shared, VERDICT_BYTES};
use crate::errors::{Error, Result};
use crate::io::domains::takes_part;
use crate::io::pieces::{Coverage, List, PIECES_BYTES};
use crate::io::{errno, transfer};
use crate::p2p::{self, Mode, Slot};
use crate::plane::Plane;

/// One client of an aggregator in one window.
struct Incoming {
    rank: u32,
    state: Expect,
    message: Vec<u8>,
    list: List,
}

enum Expect {
    Header(Slot),
    Rest(Slot),
    Data(Slot),
    Ready,
}

/// An aggregator at work on its domain.
pub(super) struct Server {
    domain: usize,
    round: u32,
    window: (i64, i64),
    clients: Vec<Incoming>,
    buffer: Vec<u8>,
    coverage: Coverage,
    /// Replies and verdicts on their way.
    sends: Vec<Slot>,
    replied: bool,
    verdict: [u8; VERDICT_BYTES],
    finishing: bool,
}

impl Server {
    pub(super) fn new(domain: usize) -> Server {
        Server {
            domain,
            round: 0,
            window: (0, 0),
            clients: Vec::new(),
            buffer: Vec::new(),
            coverage: Coverage::new(),
            sends: Vec::new(),
            replied: false,
            verdict: [0; VERDICT_BYTES],
            finishing: false,
        }
    }

    pub(super) fn over(&self) -> bool {
        self.finishing && self.sends.is_empty()
    }

    pub(super) fn pending(&self, slots: &mut Vec<Slot>) {
        slots.extend_from_slice(&self.sends);
        slots.extend(self.clients.iter().filter_map(|client| match client.state {
            Expect::Header(slot) | Expect::Rest(slot) | Expect::Data(slot) => Some(slot),
            Expect::Ready => None,
        }));
    }

    /// True if something has happened.
    pub(super) fn advance(&mut self, shared: &Shared) -> Result<bool> {
        let mut moved = false;
        let mut index = 0;
        while index < self.sends.len() {
            if Shared::done(self.sends[index])?.is_some() {
                self.sends.swap_remove(index);
                moved = true;
            } else {
                index += 1;
            }
        }
        for index in 0..self.clients.len() {
            moved |= self.hear(shared, index)?;
        }
        let waiting = self.clients.iter().any(|client| !matches!(client.state, Expect::Ready));
        if waiting || !self.sends.is_empty() || self.finishing {
            return Ok(moved);
        }
        if !self.clients.is_empty() && !self.replied {
            self.replied = true;
            if shared.access.write { self.write(shared) } else { self.reply(shared)? }
        } else if self.round < shared.plan.rounds {
            self.start_round(shared)?;
            self.round += 1;
        } else {
            self.finish(shared)?;
        }
        Ok(true)
    }

    /// Expect the headers of all who have something in the next window.
    fn start_round(&mut self, shared: &Shared) -> Result<()> {
        self.clients.clear();
        self.replied = false;
        let Some((low, high)) = shared.plan.window(self.domain, self.round) else { return Ok(()) };
        self.window = (low, high);
        for (rank, _) in shared.records.iter().enumerate().filter(|(_, record)| takes_part(record, low, high)) {
            let mut message = vec![0; HEADER_BYTES];
            // SAFETY: the vector stays with the client until the slot has completed.
            let slot =
                unsafe { shared.recv(message.as_mut_ptr(), HEADER_BYTES as u64, rank as u32, shared.access.up)? };
            let state = Expect::Header(slot);
            self.clients.push(Incoming { rank: rank as u32, state, message, list: List::default() });
        }
        if shared.access.write {
            self.coverage.reset((high - low) as usize);
        }
        if self.buffer.len() < (high - low) as usize {
            self.buffer = shared.access.file.take_buffer((high - low) as usize);
        }
        Ok(())
    }

    /// Go on with one client; true if something has happened.
    fn hear(&mut self, shared: &Shared, index: usize) -> Result<bool> {
        let up = shared.access.up;
        let client = &mut self.clients[index];
        match client.state {
            Expect::Header(slot) => {
                let Some(status) = Shared::done(slot)? else { return Ok(false) };
                client.message.truncate(status.bytes as usize);
                let count = client.message.get(..8).map_or(0, |b| u64::from_ne_bytes(std::array::from_fn(|k| b[k])));
                let have = (client.message.len().saturating_sub(8) / PIECES_BYTES) as u64;
                if count > have {
                    // At most a piece for every byte of the window.
                    let most = (self.window.1 - self.window.0) as u64;
                    let rest = (count.min(most) - have.min(most)) as usize * PIECES_BYTES;
                    let held = client.message.len();
                    client.message.resize(held + rest, 0);
                    // SAFETY: the room is in the vector, which stays with the client.
                    let slot =
                        unsafe { shared.recv(client.message.as_mut_ptr().add(held), rest as u64, client.rank, up)? };
                    client.state = Expect::Rest(slot);
                    return Ok(true);
                }
            }
            Expect::Rest(slot) => {
                if Shared::done(slot)?.is_none() {
                    return Ok(false);
                }
            }
            Expect::Data(slot) => {
                let over = Shared::done(slot)?.is_some();
                if over {
                    client.state = Expect::Ready;
                }
                return Ok(over);
            }
            Expect::Ready => return Ok(false),
        }
        let (low, high) = self.window;
        client.list = List::decode(client.message.get(8..).unwrap_or(&[]), low, high)?;
        client.state = Expect::Ready;
        if shared.access.write && !client.list.0.is_empty() {
            let coverage = &mut self.coverage;
            client.list.each(&mut |position, len| coverage.set((position - low) as usize, len as usize));
            let ty = client.list.to_type(low)?;
            let room = self.buffer.as_mut_ptr().cast();
            let comm = &shared.access.file.comm;
            // SAFETY: the pieces are inside the window, as decode checked, and so inside the buffer, which stays.
            let slot = unsafe { p2p::start_recv(comm, Plane::Collective, room, 1, &ty, client.rank as i32, up)? };
            client.state = Expect::Data(slot);
        }
        Ok(true)
    }

    fn failed(&mut self, error: &Error, errno: i32) {
        if self.verdict == [0; VERDICT_BYTES] {
            self.verdict[..4].copy_from_slice(&error.code.to_ne_bytes());
            self.verdict[4..].copy_from_slice(&errno.to_ne_bytes());
        }
    }

    /// Write what the clients have given.
    fn write(&mut self, shared: &Shared) {
        let (low, high) = self.window;
        let file = &shared.access.file;
        let mut outcome = Ok(());
        let buffer = &self.buffer;
        self.coverage.runs((high - low) as usize, &mut |from, len| {
            outcome = transfer::write_block(&file.os, &buffer[from..from + len], low + from as i64);
            outcome.is_ok()
        });
        if let Err(e) = outcome {
            self.failed(&errno::error("write", &file.name, &e), e.raw_os_error().unwrap_or(0));
        }
    }

    /// Read what the clients want, and send it.
    fn reply(&mut self, shared: &Shared) -> Result<()> {
        let low = self.window.0;
        let file = &shared.access.file;
        let bounds = || self.clients.iter().filter_map(|client| client.list.bounds());
        let (Some(first), Some(last)) = (bounds().map(|b| b.0).min(), bounds().map(|b| b.1).max()) else {
            return Ok(());
        };
        let part = &mut self.buffer[(first - low) as usize..(last - low) as usize];
        let end = match transfer::read_block(&file.os, part, first) {
            Ok(bytes) => first + bytes as i64,
            Err(e) => {
                self.failed(&errno::error("read", &file.name, &e), e.raw_os_error().unwrap_or(0));
                first
            }
        };
        for client in self.clients.iter().filter(|client| !client.list.0.is_empty()) {
            let available = client.list.before(end);
            let ty = available.to_type(low)?;
            let data = self.buffer.as_ptr().cast();
            // SAFETY: the pieces are inside the window and so inside the buffer, which stays until the sends are over.
            let slot = unsafe {
                p2p::start_send(
                    &file.comm,
                    Plane::Collective,
                    data,
                    1,
                    &ty,
                    client.rank as i32,
                    shared.access.down,
                    Mode::Standard,
                )?
            };
            self.sends.extend(slot);
        }
        Ok(())
    }

    /// Tell all clients how it went.
    fn finish(&mut self, shared: &Shared) -> Result<()> {
        let domain = &shared.plan.domains[self.domain];
        for (rank, _) in shared.records.iter().enumerate().filter(|(_, r)| takes_part(r, domain.low, domain.high)) {
            // SAFETY: so small a message is sent from the envelope: the array is free when this returns.
            let slot =
                unsafe { shared.send(self.verdict.as_ptr(), VERDICT_BYTES as u64, rank as u32, shared.access.down)? };
            self.sends.extend(slot);
        }
        shared.access.file.give_buffer(std::mem::take(&mut self.buffer));
        self.finishing = true;
        Ok(())
    }
}
