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

mod client;
mod server;

use super::domains::{Plan, RECORD_BYTES, Record, worthwhile};
use super::file::File;
use super::memory::Memory;
use super::pieces::PIECES_BYTES;
use super::view::View;
use crate::coll::{self, Block, Call, Many};
use crate::consts::dt;
use crate::datatype::{self, Type};
use crate::errors::Result;
use crate::p2p::{self, Mode, Slot};
use crate::plane::Plane;
use crate::request::Progress;
use crate::status::Status;
use client::Client;
use server::Server;
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
