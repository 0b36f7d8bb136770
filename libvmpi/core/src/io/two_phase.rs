//! Collective accesses in two phases: the ranks exchange their pieces with a few aggregators, which read and write large
//! blocks of the file (the idea of ROMIO's generalized two-phase method).
//!
//! Every rank tells all others which part of the file it accesses (`domains::Record`); all come to the same plan. The file
//! is divided among the aggregators, which go through their parts window by window. Per window a rank sends each
//! aggregator the list of its pieces there and, to write, their data; an aggregator answers a read with the data. At the
//! end each aggregator tells its clients that all is in the file, or why not.
//!
//! Ranks and aggregators are state machines that never block, so the same code serves blocking, nonblocking and split
//! calls. A write touches exactly the bytes that were given, holes are never read and written back: another group may be
//! writing there. Death story: everything is waited for as a message; the daemon ends the job of a rank that died.

#![allow(unsafe_code)]

use super::domains::{Plan, RECORD_BYTES, Record, takes_part, worthwhile};
use super::file::File;
use super::memory::Memory;
use super::pieces::{Coverage, List, PIECES_BYTES};
use super::view::View;
use super::{errno, transfer};
use crate::coll::{self, Block, Call, Many};
use crate::consts::dt;
use crate::datatype::{self, Type};
use crate::errhandler::codes;
use crate::errors::{Error, Result, fail};
use crate::p2p::{self, Mode, Plane, Slot};
use crate::request::Progress;
use crate::status::Status;
use std::rc::Rc;

/// So many blocks are looked at to estimate how many there are.
const SAMPLE_BLOCKS: u64 = 1024;
/// A header message: the number of pieces, and the first few of them; it fits into an envelope.
const HEADER_BYTES: usize = 8 + HEADER_PIECES * PIECES_BYTES;
const HEADER_PIECES: usize = 3;
/// What an aggregator says at the end: error code and errno.
const VERDICT_BYTES: usize = 8;

/// One rank's part in a collective access.
pub struct Collective {
    access: Rc<Access>,
    stage: Stage,
}

/// What is accessed.
struct Access {
    file: Rc<File>,
    view: Rc<View>,
    write: bool,
    /// Where in the view's data stream.
    from: u64,
    memory: Memory,
    bytes: u64,
    /// Tags of messages to and from aggregators.
    up: i32,
    down: i32,
    byte: Rc<Type>,
}

enum Stage {
    Gather { gather: Box<dyn Progress>, _mine: Box<[u8]>, all: Box<[u8]> },
    Exchange(Box<Exchange>),
    Done,
}

impl Collective {
    /// Nothing but the exchange of records is started. All ranks of the file's group must call this in the same order.
    ///
    /// # Errors
    /// Those of messages.
    ///
    /// # Safety
    /// The memory must stay valid until the operation is over.
    pub unsafe fn new(file: Rc<File>, view: Rc<View>, write: bool, from: u64, memory: Memory) -> Result<Collective> {
        let comm = file.comm.clone();
        let bytes = if view.is_empty() { 0 } else { memory.bytes() };
        let mine: Box<[u8]> = Box::new(record(&file, &view, write, from, bytes).encode());
        let mut all = vec![0; RECORD_BYTES * comm.size() as usize].into_boxed_slice();
        let block = |at: *mut u8| Block { addr: at.cast(), count: RECORD_BYTES as i64, ty: dt::BYTE };
        let (send, recv) = (block(mine.as_ptr().cast_mut()), Many::Even(block(all.as_mut_ptr())));
        // SAFETY: both arrays stay where they are, on the heap, until the exchange is over.
        let gather = unsafe { coll::prepare(&comm, &Call::Allgather { send, recv })? };
        let (up, down) = (comm.next_collective_tag(), comm.next_collective_tag());
        let byte = datatype::get(dt::BYTE)?;
        let access = Rc::new(Access { file, view, write, from, memory, bytes, up, down, byte });
        Ok(Collective { access, stage: Stage::Gather { gather, _mine: mine, all } })
    }

    /// The data are where they belong; `done` bytes of the stream.
    fn finish(&mut self, done: u64) -> Result<Option<Status>> {
        self.stage = Stage::Done;
        let Some(access) = Rc::get_mut(&mut self.access) else { unreachable!("the parts of the exchange have ended") };
        let bytes = if access.write { access.memory.finish_write(done) } else { access.memory.finish_read(done)? };
        Ok(Some(Status { bytes, ..Status::EMPTY }))
    }
}

/// What this rank tells the others.
fn record(file: &File, view: &View, write: bool, from: u64, bytes: u64) -> Record {
    let (mut low, mut high, mut blocks) = (0, 0, 0);
    if bytes > 0 {
        (low, high) = view.bounds(from, from + bytes);
        let (mut seen, mut sample) = (0, 0);
        view.extents(from, from + bytes, &mut |_, len| {
            seen += 1;
            sample += len;
            seen < SAMPLE_BLOCKS
        });
        blocks = (u128::from(bytes) * u128::from(seen) / u128::from(sample.max(1))) as u64;
    }
    let hints = file.hints.borrow();
    Record {
        low,
        high,
        bytes,
        blocks: blocks.max(1),
        alone: !view.is_ascending() || file.atomic.get(),
        exchange: hints.exchange(write),
        cb_nodes: hints.cb_nodes(),
        cb_bytes: hints.cb_buffer_bytes() as u32,
    }
}

impl Progress for Collective {
    fn advance(&mut self) -> Result<Option<Status>> {
        let outcome = self.step();
        if outcome.is_err() {
            self.stage = Stage::Done;
        }
        outcome.map_err(|e| e.on_file(self.access.file.handle.get()))
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        match &self.stage {
            Stage::Gather { gather, .. } => gather.pending(slots),
            Stage::Exchange(exchange) => exchange.pending(slots),
            Stage::Done => {}
        }
    }

    fn needs_all(&self) -> bool {
        // A rank is client and aggregator at once, each of many others.
        matches!(self.stage, Stage::Gather { .. })
    }
}

impl Collective {
    fn step(&mut self) -> Result<Option<Status>> {
        loop {
            match &mut self.stage {
                Stage::Gather { gather, all, .. } => {
                    if gather.advance()?.is_none() {
                        return Ok(None);
                    }
                    let records: Vec<Record> = all.chunks_exact(RECORD_BYTES).map(Record::decode).collect();
                    if !worthwhile(&records, self.access.write) {
                        self.stage = Stage::Done;
                        let Access { file, view, write, from, memory, .. } = &*self.access;
                        let done = file.access_alone(view, *write, *from, memory)?;
                        return self.finish(done);
                    }
                    self.stage = Stage::Exchange(Box::new(Exchange::new(&self.access, records)));
                }
                Stage::Exchange(exchange) => {
                    let Some(outcome) = exchange.advance()? else { return Ok(None) };
                    self.stage = Stage::Done;
                    let done = outcome?;
                    return self.finish(done);
                }
                Stage::Done => return Ok(Some(Status::EMPTY)),
            }
        }
    }
}

/// This rank as a client, and as an aggregator if it is one.
struct Exchange {
    shared: Rc<Shared>,
    client: Client,
    server: Option<Server>,
    over: bool,
}

struct Shared {
    access: Rc<Access>,
    plan: Plan,
    records: Vec<Record>,
}

impl Exchange {
    fn new(access: &Rc<Access>, records: Vec<Record>) -> Exchange {
        let plan = Plan::new(&records, &access.file.aggregators);
        let me = access.file.comm.rank;
        let server = plan.domains.iter().position(|d| d.aggregator == me).map(Server::new);
        let shared = Rc::new(Shared { access: access.clone(), plan, records });
        Exchange { shared, client: Client::default(), server, over: false }
    }

    /// `Some`: over, with the bytes that were accessed or what an aggregator reported.
    fn advance(&mut self) -> Result<Option<Result<u64>>> {
        loop {
            let moved = self.client.advance(&self.shared)?;
            let served = match &mut self.server {
                Some(server) => server.advance(&self.shared)?,
                None => false,
            };
            if self.client.over() && self.server.as_ref().is_none_or(Server::over) {
                self.over = true;
                return Ok(Some(self.client.outcome(&self.shared)));
            }
            if !moved && !served {
                return Ok(None);
            }
        }
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        self.client.pending(slots);
        if let Some(server) = &self.server {
            server.pending(slots);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if !self.over {
            // Given up in mid-flight: peers may still read or write the buffers, so they are left to the end of the process.
            std::mem::forget(std::mem::take(&mut self.client));
            std::mem::forget(self.server.take());
        }
    }
}

impl Shared {
    /// # Safety
    /// The bytes must stay valid until the slot completes.
    unsafe fn send(&self, data: *const u8, bytes: u64, to: u32, tag: i32) -> Result<Option<Slot>> {
        let Access { file, byte, .. } = &*self.access;
        // SAFETY: the caller's promise.
        unsafe {
            p2p::start_send(&file.comm, Plane::Collective, data.cast(), bytes, byte, to as i32, tag, Mode::Standard)
        }
    }

    /// # Safety
    /// The room must stay valid until the slot completes.
    unsafe fn recv(&self, room: *mut u8, bytes: u64, from: u32, tag: i32) -> Result<Slot> {
        let Access { file, byte, .. } = &*self.access;
        // SAFETY: the caller's promise.
        unsafe { p2p::start_recv(&file.comm, Plane::Collective, room.cast(), bytes, byte, from as i32, tag) }
    }

    /// A message larger than its slot (or one that never fits) would be a fault of ours; report what p2p says.
    fn done(slot: Slot) -> Result<Option<Status>> {
        p2p::poll(slot).transpose()
    }
}

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
struct Client {
    round: u32,
    waits: Vec<Await>,
    /// The file ended at this place of the stream.
    short: Option<u64>,
    /// Error code and errno of the first aggregator that failed, and its rank.
    verdict: Option<(i32, i32, u32)>,
    finishing: bool,
}

impl Client {
    fn over(&self) -> bool {
        self.finishing && self.waits.is_empty()
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        slots.extend(self.waits.iter().map(|wait| wait.slot));
    }

    /// True if something has happened.
    fn advance(&mut self, shared: &Shared) -> Result<bool> {
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

    fn outcome(&self, shared: &Shared) -> Result<u64> {
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
struct Server {
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
    fn new(domain: usize) -> Server {
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

    fn over(&self) -> bool {
        self.finishing && self.sends.is_empty()
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        slots.extend_from_slice(&self.sends);
        slots.extend(self.clients.iter().filter_map(|client| match client.state {
            Expect::Header(slot) | Expect::Rest(slot) | Expect::Data(slot) => Some(slot),
            Expect::Ready => None,
        }));
    }

    /// True if something has happened.
    fn advance(&mut self, shared: &Shared) -> Result<bool> {
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
