//! A rank that has its pieces written, or read, by the aggregators.

use super::{Access, HEADER_BYTES, Shared, VERDICT_BYTES};
use crate::errhandler::codes;
use crate::errors::{Result, fail};
use crate::io::domains::takes_part;
use crate::io::pieces::List;
use crate::p2p::Slot;
use crate::status::Status;

/// Something that a client waits for.
struct Await {
    slot: Slot,
    /// Held for the message's data.
    data: Vec<u8>,
    then: Then,
}

enum Then {
    Nothing,
    /// A reply: bytes of the stream from here on, so many if the file has them; `packed`: they are in `data` yet.
    Reply {
        at: u64,
        bytes: u64,
        packed: bool,
    },
    /// An aggregator's verdict.
    Verdict {
        aggregator: u32,
    },
}

#[derive(Default)]
pub(super) struct Client {
    round: u32,
    waits: Vec<Await>,
    /// The file ended at this place of the stream.
    short: Option<u64>,
    /// Error code and errno of the first aggregator that failed, and its rank.
    verdict: Option<(i32, i32, u32)>,
    finishing: bool,
}

impl Client {
    pub(super) fn over(&self) -> bool {
        self.finishing && self.waits.is_empty()
    }

    pub(super) fn pending(&self, slots: &mut Vec<Slot>) {
        slots.extend(self.waits.iter().map(|wait| wait.slot));
    }

    /// True if something has happened.
    pub(super) fn advance(&mut self, shared: &Shared) -> Result<bool> {
        let mut moved = false;
        let mut index = 0;
        while index < self.waits.len() {
            match Shared::done(self.waits[index].slot)? {
                Some(status) => {
                    let wait = self.waits.swap_remove(index);
                    self.take(shared, wait, &status);
                    moved = true;
                }
                None => index += 1,
            }
        }
        if !self.waits.is_empty() || self.finishing {
            return Ok(moved);
        }
        if self.round < shared.plan.rounds {
            self.start_round(shared)?;
            self.round += 1;
        } else {
            self.finish(shared)?;
        }
        Ok(true)
    }

    fn take(&mut self, shared: &Shared, wait: Await, status: &Status) {
        match wait.then {
            Then::Nothing => {}
            Then::Reply { at, bytes, packed } => {
                if packed {
                    shared.access.memory.scatter(at, &wait.data[..status.bytes as usize]);
                }
                if status.bytes < bytes {
                    let end = at + status.bytes;
                    self.short = Some(self.short.map_or(end, |short| short.min(end)));
                }
            }
            Then::Verdict { aggregator } => {
                let word = |i: usize| i32::from_ne_bytes(std::array::from_fn(|k| wait.data[i + k]));
                if word(0) != 0 && self.verdict.is_none() {
                    self.verdict = Some((word(0), word(4), aggregator));
                }
            }
        }
    }

    /// Tell each aggregator about this rank's pieces in its window, and start to move their data.
    fn start_round(&mut self, shared: &Shared) -> Result<()> {
        let Access { file, view, write, from, memory, bytes, up, down, .. } = &*shared.access;
        let mine = &shared.records[file.comm.rank as usize];
        for (index, domain) in shared.plan.domains.iter().enumerate() {
            let Some((low, high)) = shared.plan.window(index, self.round) else { continue };
            if !takes_part(mine, low, high) {
                continue;
            }
            let start = view.first_at(*from, from + bytes, low);
            let end = view.first_at(start, from + bytes, high);
            let mut list = List::default();
            view.extents(start, end, &mut |position, len| {
                list.push(position, len);
                true
            });
            let mut message = vec![0; 8];
            message[..8].copy_from_slice(&(list.0.len() as u64).to_ne_bytes());
            list.encode(&mut message);
            let rest = message.split_off(message.len().min(HEADER_BYTES));
            self.send(shared, message, domain.aggregator, *up)?;
            if !rest.is_empty() {
                self.send(shared, rest, domain.aggregator, *up)?;
            }
            if start == end {
                continue;
            }
            let (at, part) = (start - from, end - start);
            if *write {
                match memory.block(at) {
                    Some(block) => {
                        // SAFETY: the program keeps its buffer until the operation is over.
                        let slot = unsafe { shared.send(block, part, domain.aggregator, *up)? };
                        self.waits.extend(slot.map(|slot| Await { slot, data: Vec::new(), then: Then::Nothing }));
                    }
                    None => {
                        let mut data = vec![0; part as usize];
                        memory.gather(at, &mut data);
                        self.send(shared, data, domain.aggregator, *up)?;
                    }
                }
            } else {
                let (room, mut data) = match memory.block(at) {
                    Some(block) => (block, Vec::new()),
                    None => (std::ptr::null_mut(), vec![0; part as usize]),
                };
                let packed = room.is_null();
                let room = if packed { data.as_mut_ptr() } else { room };
                // SAFETY: the program's buffer, or the vector, which is kept with the slot.
                let slot = unsafe { shared.recv(room, part, domain.aggregator, *down)? };
                self.waits.push(Await { slot, data, then: Then::Reply { at, bytes: part, packed } });
            }
        }
        Ok(())
    }

    fn send(&mut self, shared: &Shared, data: Vec<u8>, to: u32, tag: i32) -> Result<()> {
        // SAFETY: the vector is kept with the slot; its data do not move.
        if let Some(slot) = unsafe { shared.send(data.as_ptr(), data.len() as u64, to, tag)? } {
            self.waits.push(Await { slot, data, then: Then::Nothing });
        }
        Ok(())
    }

    /// Wait for the aggregators' verdicts.
    fn finish(&mut self, shared: &Shared) -> Result<()> {
        let mine = &shared.records[shared.access.file.comm.rank as usize];
        for domain in shared.plan.domains.iter().filter(|d| takes_part(mine, d.low, d.high)) {
            let mut data = vec![0; VERDICT_BYTES];
            // SAFETY: the vector is kept with the slot.
            let slot =
                unsafe { shared.recv(data.as_mut_ptr(), VERDICT_BYTES as u64, domain.aggregator, shared.access.down)? };
            self.waits.push(Await { slot, data, then: Then::Verdict { aggregator: domain.aggregator } });
        }
        self.finishing = true;
        Ok(())
    }

    pub(super) fn outcome(&self, shared: &Shared) -> Result<u64> {
        let access = &shared.access;
        match self.verdict {
            Some((code, errno, aggregator)) => {
                let verb = if access.write { "write" } else { "read" };
                let why = match errno {
                    0 => codes::error_string(code),
                    errno => std::io::Error::from_raw_os_error(errno).to_string(),
                };
                let name = &access.file.name;
                let who = format!("rank {aggregator} of its group, which does it for this one");
                fail(codes::error_class(code), format!("cannot {verb} the file {name} ({who}): {why}"))
            }
            None => Ok(self.short.unwrap_or(access.bytes)),
        }
    }
}
