//! A plan: the steps of one collective on one rank. Pure: building one neither communicates nor touches user data.
//!
//! Steps run in order. Local steps (copy, reduce) are done on the spot; sends and receives are only started, and a
//! [`Step::Fence`] waits for all that were started before it. A plan may be executed many times (persistent
//! collectives), one execution at a time. Between one pair of ranks, sends and receives must be listed in the same
//! order on both sides: all messages of a collective carry the same tag.

use crate::comm::layout::Layout;

/// What the algorithms need to know about a datatype; `id` says which one it is to whoever executes the plan.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Elem {
    pub id: u32,
    /// Bytes of data.
    pub size: u64,
    pub extent: i64,
    pub true_lb: i64,
    pub true_extent: i64,
    /// As [`crate::datatype::Type::is_dense`].
    pub dense: bool,
}

impl Elem {
    /// Raw bytes (packed data): always type 0 of an execution.
    pub const BYTE: Elem = Elem { id: 0, size: 1, extent: 1, true_lb: 0, true_extent: 1, dense: true };
}

/// `count` elements in memory; `at` is the MPI buffer address (not the true lower bound).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Data {
    pub at: *mut u8,
    pub count: u64,
    pub elem: Elem,
}

impl Data {
    /// No data: what a barrier's messages carry.
    pub const EMPTY: Data = Data { at: std::ptr::null_mut(), count: 0, elem: Elem::BYTE };

    /// Packed size.
    pub fn bytes(&self) -> u64 {
        self.count * self.elem.size
    }

    /// Elements `first .. first + count`.
    pub fn slice(&self, first: u64, count: u64) -> Data {
        Data { at: self.at.wrapping_offset((first as i64 * self.elem.extent) as isize), count, elem: self.elem }
    }

    /// The same memory as bytes, if it is one block in packed order.
    pub fn packed(&self) -> Option<Data> {
        let dense = self.elem.dense;
        dense.then(|| Data {
            at: self.at.wrapping_offset(self.elem.true_lb as isize),
            count: self.bytes(),
            elem: Elem::BYTE,
        })
    }
}

/// One block of data for each rank (or neighbour).
#[derive(Clone, Debug)]
pub enum Regions {
    /// `blocks` blocks of the first one's count, one after another.
    Even {
        first: Data,
        blocks: usize,
    },
    Listed(Vec<Data>),
}

impl Regions {
    /// Block `i`.
    pub fn get(&self, i: usize) -> Data {
        match self {
            Regions::Even { first, .. } => first.slice(i as u64 * first.count, first.count),
            Regions::Listed(list) => list[i],
        }
    }

    /// Packed size of all blocks.
    pub fn bytes(&self) -> u64 {
        match self {
            Regions::Even { first, blocks } => first.bytes() * *blocks as u64,
            Regions::Listed(list) => list.iter().map(Data::bytes).sum(),
        }
    }
}

/// Which communicator a peer's rank belongs to.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Via {
    /// The collective's own (an intercommunicator's remote group).
    Main,
    /// The private intracommunicator of an intercommunicator's local group.
    Local,
}

/// The ranks that (a phase of) a collective works with, and this rank among them. In an intercommunicator's remote
/// group this rank has no place; `rank` is then its rank in the local group.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Ranks {
    pub rank: u32,
    pub size: u32,
    pub via: Via,
}

impl Ranks {
    /// The rank `distance` after this one, cyclically.
    pub fn after(&self, distance: u32) -> u32 {
        ((u64::from(self.rank) + u64::from(distance)) % u64::from(self.size)) as u32
    }

    /// The rank `distance` (at most `size`) before this one, cyclically.
    pub fn before(&self, distance: u32) -> u32 {
        self.after(self.size - distance)
    }
}

/// One step of a plan.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Step {
    Send {
        data: Data,
        to: i32,
        via: Via,
    },
    Recv {
        data: Data,
        from: i32,
        via: Via,
    },
    /// Same packed size on both sides; packs and unpacks as the types demand.
    Copy {
        from: Data,
        to: Data,
    },
    /// `inout[i] = input[i] op inout[i]`; `input` is the lower rank's contribution.
    Reduce {
        input: *mut u8,
        inout: Data,
    },
    /// Wait for all messages started so far.
    Fence,
}

impl Step {
    /// Name the peer, if there is one, as `name` says.
    pub fn rename(&mut self, name: impl FnOnce(i32) -> i32) {
        if let Step::Send { to: peer, .. } | Step::Recv { from: peer, .. } = self {
            *peer = name(*peer);
        }
    }
}

/// The steps of one rank, and the temporary memory they use.
#[derive(Debug, Default)]
pub struct Plan {
    pub steps: Vec<Step>,
    temps: Vec<Vec<u8>>,
}

/// Alignment of temporaries: a cache line, more than any element needs.
const TEMP_ALIGN: usize = 64;

impl Plan {
    /// Empty, with memory for so many steps.
    pub fn with_room(steps: usize) -> Plan {
        Plan { steps: Vec::with_capacity(steps), temps: Vec::new() }
    }

    pub fn send(&mut self, ranks: Ranks, to: u32, data: Data) {
        self.steps.push(Step::Send { data, to: to as i32, via: ranks.via });
    }

    pub fn recv(&mut self, ranks: Ranks, from: u32, data: Data) {
        self.steps.push(Step::Recv { data, from: from as i32, via: ranks.via });
    }

    /// As `send`, but nothing if there is no data (the receiver knows, and does not wait).
    pub fn send_some(&mut self, ranks: Ranks, to: u32, data: Data) {
        if data.bytes() > 0 {
            self.send(ranks, to, data);
        }
    }

    /// As `recv`, but nothing if there is no data.
    pub fn recv_some(&mut self, ranks: Ranks, from: u32, data: Data) {
        if data.bytes() > 0 {
            self.recv(ranks, from, data);
        }
    }

    /// Copy, unless there is nothing to do (no data, or already there).
    pub fn copy(&mut self, from: Data, to: Data) {
        if from != to && (from.bytes() > 0 || to.bytes() > 0) {
            self.steps.push(Step::Copy { from, to });
        }
    }

    /// `inout = input op inout`, both laid out as `inout` says.
    pub fn reduce(&mut self, input: Data, inout: Data) {
        if inout.count > 0 {
            self.steps.push(Step::Reduce { input: input.at, inout });
        }
    }

    pub fn fence(&mut self) {
        if !matches!(self.steps.last(), None | Some(Step::Fence)) {
            self.steps.push(Step::Fence);
        }
    }

    /// Temporary memory for `bytes` packed bytes.
    pub fn temp_bytes(&mut self, bytes: u64) -> Data {
        self.temp(Elem::BYTE, bytes)
    }

    /// Temporary memory laid out as `count` elements of `elem` in user memory (holes and all).
    pub fn temp(&mut self, elem: Elem, count: u64) -> Data {
        if count == 0 {
            return Data { at: std::ptr::null_mut(), count: 0, elem };
        }
        let reach = (count as i64 - 1) * elem.extent;
        let low = elem.true_lb + reach.min(0);
        let len = reach.unsigned_abs() as usize + elem.true_extent.max(0) as usize;
        let mut memory = spare::take(len + TEMP_ALIGN);
        // The buffer address (lower bound 0), not the first byte used, gets the alignment that user memory would have.
        let base = memory.as_mut_ptr().wrapping_offset(-low as isize);
        let at = base.wrapping_add(base.addr().wrapping_neg() % TEMP_ALIGN);
        self.temps.push(memory);
        Data { at, count, elem }
    }

    /// Does it lie in temporary memory?
    pub fn is_temp(&self, data: &Data) -> bool {
        let at = data.at.wrapping_offset(data.elem.true_lb as isize).addr();
        // Its length says nothing: outside debug builds nobody has written to it.
        self.temps
            .iter()
            .any(|memory| (memory.as_ptr().addr()..memory.as_ptr().addr() + memory.capacity()).contains(&at))
    }

    /// Is there temporary memory that messages under way may point to?
    pub fn has_temps(&self) -> bool {
        !self.temps.is_empty()
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        self.temps.drain(..).for_each(spare::keep);
    }
}

impl Plan {
    /// A phase among the members of this rank's node, who are known to it by their places.
    pub fn within(&mut self, layout: &Layout, build: impl FnOnce(&mut Plan, Ranks)) {
        self.among(layout.local(), layout.place(), build);
    }

    /// A phase among one member of each node, in the order of the nodes; nothing if this rank is none of them.
    pub fn across(&mut self, layout: &Layout, ranks: &[u32], build: impl FnOnce(&mut Plan, Ranks)) {
        if ranks[layout.here()] == layout.local()[layout.place() as usize] {
            self.among(ranks, layout.here() as u32, build);
        }
    }

    /// A phase among `members`, of which this rank is number `place`: `build` names them by their numbers.
    fn among(&mut self, members: &[u32], place: u32, build: impl FnOnce(&mut Plan, Ranks)) {
        let begin = self.steps.len();
        build(self, Ranks { rank: place, size: members.len() as u32, via: Via::Main });
        for step in &mut self.steps[begin..] {
            step.rename(|number| members[number as usize] as i32);
        }
    }
}

/// Temporary memory kept for the next plan: the allocator would give much of it back to the system, and fresh pages cost more than a copy into them.
mod spare {
    use std::cell::RefCell;

    /// So much is kept by a thread.
    pub const MOST_BYTES: usize = 8 << 20;
    /// What memory holds in debug builds, so that tests see who reads what nobody has written.
    const UNWRITTEN: u8 = 0xa5;

    thread_local! {
        static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
    }

    /// Memory of at least `len` bytes. Not zeroed, which would take a tenth of the time of a large reduction.
    pub fn take(len: usize) -> Vec<u8> {
        let kept = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            let fits = |memory: &Vec<u8>| (len..=len * 4).contains(&memory.capacity());
            spare.iter().rposition(fits).map(|at| spare.swap_remove(at))
        });
        let mut memory = kept.ok().flatten().unwrap_or_else(|| Vec::with_capacity(len));
        if cfg!(debug_assertions) {
            memory.clear();
            memory.resize(len, UNWRITTEN);
        }
        memory
    }

    /// Keep `memory`, and drop what is older instead.
    pub fn keep(memory: Vec<u8>) {
        // A thread that ends keeps nothing.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            spare.push(memory);
            while bytes(&spare) > MOST_BYTES {
                spare.remove(0);
            }
        });
    }

    fn bytes(spare: &[Vec<u8>]) -> usize {
        spare.iter().map(Vec::capacity).sum()
    }

    /// Bytes that this thread keeps.
    #[cfg(test)]
    pub fn kept() -> usize {
        SPARE.with(|spare| bytes(&spare.borrow()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_memory_is_used_again_and_does_not_pile_up() {
        let temp = |bytes: u64| {
            let mut plan = Plan::default();
            let (one, other) = (plan.temp_bytes(bytes), plan.temp_bytes(bytes));
            assert!(one.at.addr().abs_diff(other.at.addr()) as u64 >= bytes, "they overlap");
            let mut places = [one.at, other.at];
            places.sort();
            places
        };
        assert_eq!(temp(300_000), temp(300_000));
        for power in 20..24 {
            temp(1 << power);
        }
        assert!(spare::kept() <= spare::MOST_BYTES);
    }
}
