//! A simulator for plans: any number of virtual ranks in one thread, messages matched in memory.
//!
//! Messages keep their order per sender, receiver and communicator. In rendezvous mode a send completes only when it
//! is matched, and its data is read only then (as a single copy between processes does): a plan that changes a buffer
//! too early, or that needs sends to be buffered, fails. Ranks advance in a pseudo-random order.

use super::plan::{Data, Elem, Plan, Via};
use super::schedule::{Machine, Schedule};
use crate::errors::Result;
use crate::p2p::Slot;
use crate::request::Progress;
use crate::status::Status;
use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::rc::Rc;

/// A reduction on the simulator's values: every element packs to a u64.
pub type Op = fn(u64, u64) -> u64;

/// Commutative.
pub fn sum(a: u64, b: u64) -> u64 {
    a.wrapping_add(b)
}

/// Associative but not commutative: composition of affine maps, slope in the upper half.
pub fn compose(a: u64, b: u64) -> u64 {
    let (a1, a0, b1, b0) = ((a >> 32) as u32, a as u32, (b >> 32) as u32, b as u32);
    let (c1, c0) = (a1.wrapping_mul(b1), a1.wrapping_mul(b0).wrapping_add(a0));
    u64::from(c1) << 32 | u64::from(c0)
}

/// Element kinds by `Elem::id`: bytes, then four layouts of a u64 (dense; with holes; reaching below its address;
/// with its halves in the wrong order).
const BLOCKS: [&[(i64, usize)]; 5] = [&[(0, 1)], &[(0, 8)], &[(8, 8)], &[(-16, 8)], &[(8, 4), (0, 4)]];
pub const ELEMS: [Elem; 5] = [
    Elem::BYTE,
    Elem { id: 1, size: 8, extent: 8, true_lb: 0, true_extent: 8, dense: true },
    Elem { id: 2, size: 8, extent: 24, true_lb: 8, true_extent: 8, dense: false },
    Elem { id: 3, size: 8, extent: 12, true_lb: -16, true_extent: 8, dense: false },
    Elem { id: 4, size: 8, extent: 16, true_lb: 0, true_extent: 12, dense: false },
];

fn each_block(data: &Data, mut f: impl FnMut(*mut u8, usize)) {
    for i in 0..data.count {
        let at = data.slice(i, 1).at;
        for &(offset, len) in BLOCKS[data.elem.id as usize] {
            f(at.wrapping_offset(offset as isize), len);
        }
    }
}

fn pack(data: &Data) -> Vec<u8> {
    let mut out = Vec::new();
    // SAFETY: plans and buffers in tests point to live memory; Miri-like care is taken by `Buffer`'s guard bytes.
    each_block(data, |at, len| unsafe { out.extend_from_slice(std::slice::from_raw_parts(at, len)) });
    out
}

fn unpack(data: &Data, packed: &[u8]) {
    let mut rest = packed;
    each_block(data, |at, len| {
        let (now, later) = rest.split_at(len.min(rest.len()));
        // SAFETY: as in `pack`.
        unsafe { std::ptr::copy(now.as_ptr(), at, now.len()) };
        rest = later;
    });
    assert!(rest.is_empty(), "message longer than the receive");
}

fn values(packed: &[u8]) -> Vec<u64> {
    packed.chunks(8).map(|c| u64::from_ne_bytes(c.try_into().unwrap())).collect()
}

/// A user buffer of u64 values in some layout, with guards around and in the holes.
pub struct Buffer {
    memory: Vec<u8>,
    pub data: Data,
}

const GUARD: u8 = 0xA5;

impl Buffer {
    pub fn new(elem: Elem, values: &[u64]) -> Buffer {
        let mut memory = vec![GUARD; values.len() * 24 + 64];
        let at = memory.as_mut_ptr().wrapping_add(32);
        let data = Data { at, count: values.len() as u64, elem };
        unpack(&data, &values.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<u8>>());
        Buffer { memory, data }
    }

    /// Room for `count` values that the plan is to overwrite.
    pub fn blank(elem: Elem, count: usize) -> Buffer {
        Buffer::new(elem, &vec![u64::from_ne_bytes([GUARD; 8]); count])
    }

    pub fn values(&self) -> Vec<u64> {
        values(&pack(&self.data))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        each_block(&self.data.clone(), |at, len| {
            let offset = at.addr() - self.memory.as_ptr().addr();
            self.memory[offset..offset + len].fill(GUARD);
        });
        if !std::thread::panicking() {
            assert!(self.memory.iter().all(|&b| b == GUARD), "a plan wrote outside of the data");
        }
    }
}

/// Sender, receiver, communicator.
type Channel = (usize, usize, Via);

/// The data at the time of the send, where it lies, and the slot to complete (`None`: eager).
type Sent = (Vec<u8>, Data, Option<u32>);

#[derive(Default)]
struct Net {
    sent: HashMap<Channel, VecDeque<Sent>>,
    posted: HashMap<Channel, VecDeque<(Data, u32)>>,
    /// Is slot i complete?
    done: Vec<bool>,
    eager: bool,
}

impl Net {
    fn slot(&mut self) -> u32 {
        self.done.push(false);
        self.done.len() as u32 - 1
    }

    fn complete(&mut self, into: &Data, recv: u32, packed: &[u8]) {
        unpack(into, packed);
        self.done[recv as usize] = true;
    }
}

struct SimRank {
    net: Rc<RefCell<Net>>,
    id: usize,
    /// Global ids of the first remote and the first local rank.
    first: (usize, usize),
    op: Op,
}

impl SimRank {
    fn id_of(&self, peer: i32, via: Via) -> usize {
        peer as usize + if via == Via::Main { self.first.0 } else { self.first.1 }
    }
}

impl Machine for SimRank {
    unsafe fn send(&mut self, data: &Data, to: i32, via: Via) -> Result<Option<Slot>> {
        let channel = (self.id, self.id_of(to, via), via);
        let mut net = self.net.borrow_mut();
        if let Some((into, recv)) = net.posted.get_mut(&channel).and_then(VecDeque::pop_front) {
            net.complete(&into, recv, &pack(data));
            return Ok(None);
        }
        let slot = (!net.eager).then(|| net.slot());
        net.sent.entry(channel).or_default().push_back((pack(data), *data, slot));
        Ok(slot.map(Slot))
    }

    unsafe fn recv(&mut self, data: &Data, from: i32, via: Via) -> Result<Slot> {
        let channel = (self.id_of(from, via), self.id, via);
        let mut net = self.net.borrow_mut();
        let slot = net.slot();
        match net.sent.get_mut(&channel).and_then(VecDeque::pop_front) {
            Some((packed, source, sender)) => {
                if let Some(sender) = sender {
                    assert_eq!(packed, pack(&source), "a send buffer was changed while the send was under way");
                    net.done[sender as usize] = true;
                }
                net.complete(data, slot, &packed);
            }
            None => net.posted.entry(channel).or_default().push_back((*data, slot)),
        }
        Ok(Slot(slot))
    }

    fn poll(&mut self, slot: Slot) -> Option<Result<Status>> {
        self.net.borrow().done[slot.0 as usize].then_some(Ok(Status::EMPTY))
    }

    unsafe fn copy(&mut self, from: &Data, to: &Data) -> Result<()> {
        assert_eq!(from.bytes(), to.bytes());
        unpack(to, &pack(from));
        Ok(())
    }

    unsafe fn reduce(&mut self, input: *const u8, inout: &Data) -> Result<()> {
        let lower = values(&pack(&Data { at: input.cast_mut(), ..*inout }));
        let upper = values(&pack(inout));
        let result: Vec<u8> = lower.iter().zip(&upper).flat_map(|(&a, &b)| (self.op)(a, b).to_ne_bytes()).collect();
        unpack(inout, &result);
        Ok(())
    }

    unsafe fn pack(&self, data: &Data) -> Vec<u8> {
        pack(data)
    }
}

/// Which ranks a simulation has.
#[derive(Copy, Clone, Debug)]
pub enum Shape {
    Intra(usize),
    /// Two groups; global ids number the first group, then the second.
    Inter(usize, usize),
}

impl Shape {
    pub fn total(self) -> usize {
        match self {
            Shape::Intra(n) => n,
            Shape::Inter(a, b) => a + b,
        }
    }

    /// First global id of (remote, local) ranks for `id`.
    fn first(self, id: usize) -> (usize, usize) {
        match self {
            Shape::Intra(_) => (0, 0),
            Shape::Inter(a, _) if id < a => (a, 0),
            Shape::Inter(a, _) => (0, a),
        }
    }
}

/// Execute one plan per rank `times` times over, without pause, in rendezvous mode and eagerly. `late`: this rank
/// starts only when nobody else can go on; returns who was done by then.
pub fn execute_with(
    shape: Shape,
    op: Op,
    plans: Vec<Plan>,
    times: usize,
    eager: bool,
    late: Option<usize>,
) -> Vec<usize> {
    let net = Rc::new(RefCell::new(Net { eager, ..Net::default() }));
    let plans: Vec<Rc<Plan>> = plans.into_iter().map(Rc::new).collect();
    let begin = |id: usize| {
        let machine = SimRank { net: net.clone(), id, first: shape.first(id), op };
        // SAFETY: tests keep their buffers until the simulation is over, and executions of a plan follow one another.
        unsafe { Schedule::new(plans[id].clone(), machine) }
    };
    let mut running: Vec<(usize, usize, Schedule<SimRank>)> =
        (0..plans.len()).filter(|&id| Some(id) != late).map(|id| (id, 1, begin(id))).collect();
    let mut early = Vec::new();
    let mut late = late;
    let mut chance = fastrand::Rng::with_seed(12345);
    let mut idle = 0;
    while !running.is_empty() || late.is_some() {
        if idle > 4 * running.len() {
            let Some(id) = late.take() else {
                panic!("deadlock of ranks {:?}", running.iter().map(|(id, ..)| id).collect::<Vec<_>>());
            };
            early = (0..plans.len()).filter(|&other| other != id && running.iter().all(|r| r.0 != other)).collect();
            running.push((id, 1, begin(id)));
            idle = 0;
        }
        if running.is_empty() {
            idle += 1;
            continue;
        }
        // Mostly at random, but everyone's turn comes within the idle limit.
        let index = if idle > running.len() { idle % running.len() } else { chance.usize(..running.len()) };
        let before = net.borrow().done.len();
        let (id, round, schedule) = &mut running[index];
        let finished = schedule.advance().expect("no error").is_some();
        idle = if finished || net.borrow().done.len() > before { 0 } else { idle + 1 };
        if finished && *round < times {
            *schedule = begin(*id);
            *round += 1;
        } else if finished {
            running.swap_remove(index);
        }
    }
    let net = net.borrow();
    assert!(net.sent.values().all(VecDeque::is_empty), "messages left over");
    assert!(net.posted.values().all(VecDeque::is_empty), "receives left over");
    early
}
