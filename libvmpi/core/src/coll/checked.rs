//! Collective calls of a program that is checked (`vmpirun --check`): are they the same at all ranks?
//!
//! The members of a communicator that are on one node compare through `vmpi_shared::check`, before any of them waits: who comes first leaves what its call is, the
//! others look. Between nodes nothing is compared.

use super::call::{Block, Call, Many, Operands, Parts, Types};
use crate::check::signature::{self, fit};
use crate::check::sites::{self, Site};
use crate::check::{self, board, made, tell};
use crate::comm::Communicator;
use crate::consts;
use crate::datatype;
use crate::handle::{FIRST_DYNAMIC, Handle, Op, Request};
use crate::nodes;
use crate::op;
use crate::process;
use vmpi_shared::check::{Arrival, Key, Record};
use vmpi_shared::control::{FindingKind, Party};
use vmpi_shared::trace::called;

/// Blocking calls are counted apart from others, as tags are.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum How {
    Blocking,
    Nonblocking,
    Persistent,
}

/// Above this bit of `Amount::bytes` there is a hash of the counts, of data that are listed by rank.
const LISTED_SHIFT: u32 = 48;

/// How much of what kind of data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Amount {
    bytes: u64,
    code: u16,
}

impl Amount {
    fn fits(self, other: Amount) -> bool {
        self.bytes == other.bytes && fit(self.code, other.code)
    }

    fn words(self) -> String {
        format!("{} bytes of {}", self.bytes & ((1 << LISTED_SHIFT) - 1), signature::words(self.code))
    }
}

/// A call as others see it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    kind: u64,
    root: Option<i32>,
    op: Option<Op>,
    /// What all ranks must have alike; `None`: that differs, or is not known here.
    amount: Option<Amount>,
    rank: u32,
    site: [u64; 2],
    name: [u8; 32],
}

impl Seen {
    fn record(&self) -> Record {
        let mut record: Record = [0; vmpi_shared::check::WORDS];
        record[0] = self.kind;
        record[1] = self.root.map_or(0, |root| 1 << 32 | u64::from(root as u32));
        record[2] = self.op.map_or(0, |op| 1 << 32 | u64::from(op.raw()));
        if let Some(Amount { bytes, code }) = self.amount {
            (record[3], record[4]) = (bytes, 1 << 32 | u64::from(code));
        }
        record[5] = self.rank.into();
        [record[6], record[7]] = self.site;
        let (words, _) = self.name.as_chunks::<8>();
        for (to, from) in record[8..12].iter_mut().zip(words) {
            *to = u64::from_ne_bytes(*from);
        }
        record
    }

    fn of_record(record: &Record) -> Seen {
        let some = |word: u64| (word >> 32 == 1).then_some(word as u32);
        let mut name = [0; 32];
        for (to, from) in name.chunks_exact_mut(8).zip(&record[8..12]) {
            to.copy_from_slice(&from.to_ne_bytes());
        }
        Seen {
            kind: record[0],
            root: some(record[1]).map(|root| root as i32),
            op: some(record[2]).map(Op::from_raw),
            amount: some(record[4]).map(|code| Amount { bytes: record[3], code: code as u16 }),
            rank: record[5] as u32,
            site: [record[6], record[7]],
            name,
        }
    }

    fn name(&self) -> String {
        board::name(&self.name)
    }

    /// What is wrong if one rank makes this call and another one `other`; both in words.
    fn differs(&self, other: &Seen) -> Option<(FindingKind, String, String)> {
        let both = |kind, words: &dyn Fn(&Seen) -> String| Some((kind, words(self), words(other)));
        if self.kind != other.kind {
            return both(FindingKind::CollectiveMismatch, &Seen::name);
        }
        if self.root != other.root {
            let words = |seen: &Seen| format!("{} with root {}", seen.name(), seen.root.unwrap_or(-1));
            return both(FindingKind::RootMismatch, &words);
        }
        if let (Some(a), Some(b)) = (self.op, other.op)
            && a != b
            // Handles of the program's own operations say nothing in other ranks.
            && (a.raw() < FIRST_DYNAMIC || b.raw() < FIRST_DYNAMIC)
        {
            let words = |seen: &Seen| format!("{} with {}", seen.name(), seen.op.map_or(String::new(), op_words));
            return both(FindingKind::OpMismatch, &words);
        }
        match (self.amount, other.amount) {
            (Some(a), Some(b)) if !a.fits(b) => {
                let words =
                    |seen: &Seen| format!("{} of {}", seen.name(), seen.amount.map_or(String::new(), Amount::words));
                both(FindingKind::CountMismatch, &words)
            }
            _ => None,
        }
    }
}

fn op_words(handle: Op) -> String {
    op::name(handle).map_or_else(|| "an operation of the program".into(), str::to_owned)
}

fn in_place(addr: *mut std::ffi::c_void) -> bool {
    addr.addr() == consts::IN_PLACE
}

fn amount(count: i64, ty: crate::handle::Datatype) -> Option<Amount> {
    let ty = datatype::get(ty).ok()?;
    let bytes = u64::try_from(count).ok()?.checked_mul(ty.size())?;
    Some(Amount { bytes, code: signature::of(&ty, bytes) })
}

fn of_block(block: &Block) -> Option<Amount> {
    amount(block.count, block.ty)
}

/// Of one block of many that are even; `None`: they are listed.
fn of_many(many: &Many<'_>) -> Option<Amount> {
    match many {
        Many::Even(block) => of_block(block),
        Many::Listed { .. } => None,
    }
}

/// Of blocks of one type whose numbers all ranks list alike: all of them, and a hash over the numbers.
///
/// # Safety
/// `counts` has `size` entries.
unsafe fn of_list(counts: super::call::Counts, ty: crate::handle::Datatype, size: u32) -> Option<Amount> {
    let (mut sum, mut hash) = (0i64, 0xcbf2_9ce4u64);
    for rank in 0..size as usize {
        // SAFETY: the caller's promise.
        let count = unsafe { counts.get(rank) };
        sum = sum.checked_add(count)?;
        hash = (hash ^ count as u64).wrapping_mul(0x100_0000_01b3);
    }
    let whole = amount(sum, ty)?;
    // Counts in another order are another thing, whatever the type.
    let bytes = whole.bytes;
    Some(Amount { bytes: bytes.wrapping_add((hash >> 16) << LISTED_SHIFT), code: whole.code })
}

/// What is significant here, and alike at all ranks.
///
/// # Safety
/// As the call's own.
unsafe fn significant(comm: &Communicator, call: &Call) -> (u64, Option<i32>, Option<Op>, Option<Amount>) {
    let size = comm.size();
    let is_root = |root: i32| root == comm.rank as i32;
    let listed = |many: &Many<'_>| match many {
        Many::Even(_) => 0,
        Many::Listed { types: Types::One(_), .. } => 1,
        Many::Listed { types: Types::Each(_), .. } => 2,
    };
    let reduction = |kind: u64, operands: &Operands, count: i64, root| {
        (kind << 2, root, Some(operands.op), amount(count, operands.ty))
    };
    match *call {
        Call::Barrier => (1 << 2, None, None, None),
        Call::Bcast { data, root } => (2 << 2, Some(root), None, of_block(&data)),
        Call::Gather { send, recv, root } => {
            let even = matches!(recv, Many::Even(_));
            let own = if is_root(root) { of_many(&recv) } else { of_block(&send) };
            (3 << 2 | listed(&recv), Some(root), None, own.filter(|_| even))
        }
        Call::Scatter { send, recv, root } => {
            let even = matches!(send, Many::Even(_));
            let own = if is_root(root) { of_many(&send) } else { of_block(&recv) };
            (4 << 2 | listed(&send), Some(root), None, own.filter(|_| even))
        }
        Call::Allgather { recv, .. } => {
            let all = match recv {
                // SAFETY: the caller's promise.
                Many::Listed { counts, types: Types::One(ty), .. } => unsafe { of_list(counts, ty, size) },
                recv => of_many(&recv),
            };
            (5 << 2 | listed(&recv), None, None, all)
        }
        Call::Alltoall { recv, .. } => (6 << 2 | listed(&recv), None, None, of_many(&recv)),
        Call::Reduce { operands, count, root } => reduction(7, &operands, count, Some(root)),
        Call::Allreduce { operands, count } => reduction(8, &operands, count, None),
        Call::ReduceScatter { operands, parts: Parts::Even(count) } => reduction(9, &operands, count, None),
        Call::ReduceScatter { operands, parts: Parts::Listed(counts) } => {
            // SAFETY: the caller's promise.
            (10 << 2, None, Some(operands.op), unsafe { of_list(counts, operands.ty, size) })
        }
        Call::Scan { operands, count } => reduction(11, &operands, count, None),
        Call::Exscan { operands, count } => reduction(12, &operands, count, None),
        Call::NeighborAllgather { ref recv, .. } => (13 << 2 | listed(recv), None, None, None),
        Call::NeighborAlltoall { ref recv, .. } => (14 << 2 | listed(recv), None, None, None),
    }
}

/// What this rank sends to itself, and what it receives that as, where both are in the call.
fn own_part(comm: &Communicator, call: &Call) -> Option<(Amount, Amount)> {
    let pair = |a: Option<Amount>, b: Option<Amount>| a.zip(b);
    match *call {
        Call::Allgather { send, recv } if !in_place(send.addr) => pair(of_block(&send), of_many(&recv)),
        Call::Alltoall { send, recv } if !in_place(send.addr()) => pair(of_many(&send), of_many(&recv)),
        Call::Gather { send, recv, root } if root == comm.rank as i32 && !in_place(send.addr) => {
            pair(of_block(&send), of_many(&recv))
        }
        Call::Scatter { send, recv, root } if root == comm.rank as i32 && !in_place(recv.addr) => {
            pair(of_many(&send), of_block(&recv))
        }
        _ => None,
    }
}

/// The program makes this call.
///
/// # Safety
/// As the call's own: its arrays of counts are read.
#[cold]
pub(super) unsafe fn begins(comm: &Communicator, call: &Call, how: How) {
    if !check::is_on() || comm.is_inter() || comm.size() == 1 {
        return;
    }
    // SAFETY: the caller's promise.
    let (kind, root, op, amount) = unsafe { significant(comm, call) };
    let site = sites::here();
    let name = board::name_of(called());
    let kind = kind << 2 | how as u64;
    let own = Seen { kind, root, op, amount, rank: process::endpoint_rank(), site: site.numbers(), name };
    if let Some((sent, received)) = own_part(comm, call)
        && !sent.fits(received)
    {
        let text = format!("this rank sends {}, and receives {}", sent.words(), received.words());
        tell::tell(FindingKind::CountMismatch, vec![tell::own(own.name(), site)], text);
        return;
    }
    let class = u32::from(how != How::Blocking);
    let number = comm.calls_so_far()[class as usize];
    let key = Key { context: comm.context, class, number };
    let members = members_here(comm);
    let met = board::with(|board| board.arrive(key, members, &own.record()));
    if let Some(Arrival::Behind(record)) = met {
        compare(&own, site, &Seen::of_record(&record));
    }
}

fn compare(own: &Seen, site: Site, first: &Seen) {
    let Some((kind, mine, theirs)) = own.differs(first) else { return };
    let other = Party { ranks: [first.rank].into(), call: theirs, site: sites::of_numbers(first.site) };
    let mut parties = vec![tell::own(mine, site), other];
    // Whoever comes first.
    parties.sort_by(|a, b| (&a.call, &a.site).cmp(&(&b.call, &b.site)));
    tell::tell(kind, parties, String::new());
}

/// Members of a communicator on this node.
fn members_here(comm: &Communicator) -> u32 {
    if !nodes::is_spread() {
        return comm.size();
    }
    let node = process::node();
    comm.local.iter().filter(|rank| !node.is_remote(*rank)).count() as u32
}

/// The call that has just begun has this request.
pub(super) fn started(request: Request) {
    if check::is_on() {
        made::started(request.raw());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::op::{MAX, SUM};

    fn seen() -> Seen {
        let mut name = [0; 32];
        name[..10].copy_from_slice(b"MPI_Reduce");
        let amount = Some(Amount { bytes: 16, code: 0x104 });
        Seen { kind: 28, root: Some(0), op: Some(SUM), amount, rank: 3, site: [7, 9], name }
    }

    #[test]
    fn a_call_survives_its_record() {
        for seen in [seen(), Seen { root: None, op: None, amount: None, ..seen() }] {
            assert_eq!(Seen::of_record(&seen.record()), seen);
        }
    }

    #[test]
    fn each_difference_has_its_name() {
        let kind = |other: &Seen| seen().differs(other).map(|(kind, _, _)| kind);
        assert_eq!(kind(&Seen { rank: 0, site: [0, 0], ..seen() }), None);
        assert_eq!(kind(&Seen { kind: 32, ..seen() }), Some(FindingKind::CollectiveMismatch));
        assert_eq!(kind(&Seen { root: Some(1), ..seen() }), Some(FindingKind::RootMismatch));
        assert_eq!(kind(&Seen { op: Some(MAX), ..seen() }), Some(FindingKind::OpMismatch));
        assert_eq!(kind(&Seen { op: Some(Op(FIRST_DYNAMIC)), ..seen() }), Some(FindingKind::OpMismatch));
        for amount in [Amount { bytes: 8, code: 0x104 }, Amount { bytes: 16, code: 0x208 }] {
            assert_eq!(kind(&Seen { amount: Some(amount), ..seen() }), Some(FindingKind::CountMismatch));
        }
        assert_eq!(kind(&Seen { amount: Some(Amount { bytes: 16, code: 0 }), ..seen() }), None);
        let (_, mine, theirs) = seen().differs(&Seen { op: Some(MAX), ..seen() }).unwrap();
        assert_eq!((&mine[..], &theirs[..]), ("MPI_Reduce with MPI_SUM", "MPI_Reduce with MPI_MAX"));
        let listed = Amount { bytes: 16 + (7 << LISTED_SHIFT), code: 0x104 };
        assert_eq!(listed.words(), seen().amount.unwrap().words(), "the hash of counts is no figure");
        assert!(!listed.fits(seen().amount.unwrap()));
        // Both of the program's own: their handles say nothing.
        let own = |raw| Seen { op: Some(Op(raw)), ..seen() };
        assert_eq!(own(FIRST_DYNAMIC).differs(&own(FIRST_DYNAMIC + 1)), None);
    }
}
