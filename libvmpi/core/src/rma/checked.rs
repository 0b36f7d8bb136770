//! One-sided communication of a program that is checked (`vmpirun --check`).
//!
//! What conflicts is found among accesses that are open at the same time (`vmpi_shared::check::accesses`): put and get are complete at the next synchronisation,
//! whenever vmpi does them. So what is told is never in order by chance; what is in order by chance and should not be is told if the accesses meet. Members of
//! other nodes are not seen. All of it is `full`, but calls outside their epochs (`raise`).

use super::Window;
use super::local::Local;
use super::place::Spot;
use super::step::Basic;
use crate::check::board;
use crate::check::sites::{self, Site};
use crate::check::{self, signature, sums, tell};
use crate::consts;
use crate::errors::{Class, Error};
use crate::guarded::EntryGuarded;
use crate::op::{Builtin, Operation};
use crate::process;
use std::cell::Cell;
use std::collections::BTreeSet;
use vmpi_shared::check::accesses::{Access, Kind, Place};
use vmpi_shared::control::{FindingKind, Party};
use vmpi_shared::trace::called;

/// An access in more pieces is not compared.
const MOST_PIECES: usize = 32;
/// Operations whose buffers are looked at again at the end.
const MOST_OPEN: usize = 10_000;
/// The kernel keeps so much room below the top of the main thread's stack for nothing else (`mmap_base`).
const STACK_BYTES: usize = 128 << 20;

/// Of one window.
#[derive(Default)]
pub(super) struct State {
    /// Fences so far.
    fences: Cell<u64>,
    /// Its memory has been found missing.
    missed: Cell<bool>,
}

/// An operation of this process that is not known to be complete at its origin.
struct Open {
    context: u32,
    target: u32,
    /// Its buffer, and what was in there.
    origin: Local,
    sum: u64,
    function: &'static str,
    site: Site,
}

static OPEN: EntryGuarded<Vec<Open>> = EntryGuarded::new(Vec::new());

/// What an access that has begun leaves to be done when its data is there.
pub(super) struct Noted {
    place: Place,
    pieces: Vec<Access>,
}

fn place(window: &Window, target: u32) -> Place {
    Place { context: window.comm.context, target: window.comm.local.world_rank(target) }
}

/// The kind of an accumulation; its operation and class of data.
pub(super) fn accumulation(op: &Operation, basic: &Basic) -> (Kind, u32, u32) {
    let class = signature::of(&basic.ty, basic.ty.size()).into();
    match op.builtin() {
        Some(Builtin::NoOp) => (Kind::FETCH, 0, class),
        // Implementations may, and users do, mix it with others.
        Some(Builtin::Replace) | None => (Kind::ACCUMULATE, 0, class),
        Some(builtin) => (Kind::ACCUMULATE, 1 + builtin as u32, class),
    }
}

pub(super) const PUT: (Kind, u32, u32) = (Kind::PUT, 0, 0);
pub(super) const GET: (Kind, u32, u32) = (Kind::GET, 0, 0);
pub(super) const SWAP: (Kind, u32, u32) = (Kind::ACCUMULATE, 0, 0);

/// An access to `bytes` bytes begins; `origin`: the buffer that it reads.
#[inline]
pub(super) fn begins(spot: &Spot, bytes: u64, what: (Kind, u32, u32), origin: Option<&Local>) -> Option<Noted> {
    if check::is_full() { begun(spot, bytes, what, origin) } else { None }
}

#[cold]
fn begun(spot: &Spot, bytes: u64, (kind, operation, class): (Kind, u32, u32), origin: Option<&Local>) -> Option<Noted> {
    let window = spot.window;
    let (function, site) = (called(), sites::here());
    // Those with a request of their own may be complete before the next synchronisation: at the origin, and so a get is over.
    let has_request = function.starts_with("MPI_R");
    if let Some(origin) = origin.filter(|_| !has_request) {
        keep(window, spot.target, origin, (function, site));
    }
    let pieces = spot.blocks(0, bytes);
    if pieces.len() > MOST_PIECES {
        return None;
    }
    let new = Access {
        kind,
        operation,
        class,
        origin: process::endpoint_rank(),
        fence: if window.is_between_fences() { window.checks.fences.get() } else { 0 },
        site: site.numbers(),
        name: board::name_of(function),
        ..Access::default()
    };
    let base = base(window, spot.target);
    let access = |first: u64, len: u64| Access { first, end: first.wrapping_add(len), ..new };
    let mut pieces: Vec<Access> = pieces.iter().map(|block| access(block.addr.wrapping_sub(base), block.len)).collect();
    if let Some(origin) = origin.filter(|_| kind == Kind::PUT) {
        sum_up(&mut pieces, origin);
    }
    let place = place(window, spot.target);
    let leaves = !(has_request && (kind == Kind::GET || kind == Kind::FETCH || function.contains("get")));
    let met = board::with(|board| if leaves { board.open(place, &pieces) } else { board.meets(place, &pieces) });
    if let Some((before, now)) = met.flatten() {
        tell_of_conflict(window, spot.target, &before, (&now, site));
    }
    (leaves && kind == Kind::PUT && new.fence != 0 && !spot.is_far()).then_some(Noted { place, pieces })
}

/// What was put is there.
#[inline]
pub(super) fn written(noted: Option<Noted>) {
    if let Some(Noted { place, pieces }) = noted {
        board::with(|board| pieces.iter().for_each(|piece| board.written(place, piece)));
    }
}

/// Sums over what is put.
fn sum_up(pieces: &mut [Access], origin: &Local) {
    let (mut room, mut from) = (Vec::new(), 0);
    for piece in pieces {
        let len = piece.end - piece.first;
        // SAFETY: the elements that the program puts.
        let data = unsafe { origin.packed(from, len, &mut room) };
        // 0 is no sum.
        piece.data = sums::over(sums::START, data) | 1;
        from += len;
    }
}

/// Pairs of calls that have been told.
static TOLD: EntryGuarded<BTreeSet<([u64; 2], [u64; 2])>> = EntryGuarded::new(BTreeSet::new());

/// Is this the first time for two calls? What a loop does has many ranges.
fn is_news(one: [u64; 2], other: [u64; 2]) -> bool {
    TOLD.with(|told| told.insert((one.min(other), one.max(other))))
}

fn verb(kind: Kind) -> &'static str {
    match kind {
        Kind::PUT => "writes",
        Kind::GET | Kind::FETCH => "reads",
        _ => "accumulates to",
    }
}

/// What a member's accesses are counted from: addresses that lie elsewhere in each process are the same for all then.
fn base(window: &Window, target: u32) -> u64 {
    if window.is_dynamic() { 0 } else { window.parts[target as usize].base }
}

/// `bytes 0 to 8`: of the member's memory, or addresses of a dynamic window.
fn range(window: &Window, Access { first, end, .. }: &Access) -> String {
    if window.is_dynamic() { format!("addresses {first:#x} to {end:#x}") } else { format!("bytes {first} to {end}") }
}

fn party(window: &Window, access: &Access, site: Option<Site>) -> Party {
    let call = format!("{} {} {}", board::name(&access.name), verb(access.kind), range(window, access));
    let site = site.map_or_else(|| sites::of_numbers(access.site), Site::told);
    Party { ranks: [access.origin].into(), call, site }
}

#[cold]
fn tell_of_conflict(window: &Window, target: u32, before: &Access, (now, site): (&Access, Site)) {
    if !is_news(before.site, now.site) {
        return;
    }
    let text = format!("in the memory of rank {target} in {}", window.describe());
    let mut parties = vec![party(window, before, None), party(window, now, Some(site))];
    // Whoever comes first.
    parties.sort_by(|a, b| (&a.call, &a.site).cmp(&(&b.call, &b.site)));
    tell::tell(FindingKind::RmaConflict, parties, text);
}

/// Remember what is in the origin's buffer.
fn keep(window: &Window, target: u32, origin: &Local, (function, site): (&'static str, Site)) {
    let Some(sum) = sum_of(origin) else { return };
    let open = Open { context: window.comm.context, target, origin: origin.clone(), sum, function, site };
    OPEN.with(|all| {
        if all.len() < MOST_OPEN {
            all.push(open);
        }
    });
}

fn sum_of(origin: &Local) -> Option<u64> {
    let (mut sum, mut pieces) = (Some(sums::START), 0);
    origin.ty.blocks(origin.count, &mut |offset, len| {
        pieces += 1;
        let addr = (origin.buf as u64).wrapping_add_signed(offset);
        sum = sum.and_then(|sum| sums::over_memory(sum, addr, len));
        sum.is_some() && pieces <= MOST_PIECES
    });
    sum.filter(|_| pieces <= MOST_PIECES)
}

/// Operations on `target` (`None`: all) are complete here.
fn look_at_origins(window: &Window, target: Option<u32>) {
    let is_it = |open: &Open| open.context == window.comm.context && target.is_none_or(|target| target == open.target);
    let over: Vec<Open> = OPEN.with(|all| all.extract_if(.., |open| is_it(open)).collect());
    for open in over.iter().filter(|open| sum_of(&open.origin) != Some(open.sum)) {
        let call = format!("{} to rank {}", open.function, open.target);
        tell::tell(FindingKind::OriginBufferChanged, vec![tell::own(call, open.site)], window.describe());
    }
}

/// MPI_Win_fence begins.
#[inline]
pub(super) fn fence_begins(window: &Window, assert: i32, used: bool) {
    if check::is_full() {
        look_at_fence(window, assert, used);
    }
}

#[cold]
fn look_at_fence(window: &Window, assert: i32, used: bool) {
    if used && assert & consts::MODE_NOPRECEDE != 0 {
        let text = format!("MPI_MODE_NOPRECEDE, and there were accesses since the last fence of {}", window.describe());
        tell::tell(FindingKind::RmaEpoch, vec![tell::own(called().into(), sites::here())], text);
    }
    look_at_origins(window, None);
    look_at_stores(window);
    look_for_memory(window);
}

/// Is what others have put still there? What several have written is left to `RmaConflict`.
fn look_at_stores(window: &Window) {
    let me = window.rank();
    let opened = || {
        let all = board::with(|board| board.opened(place(window, me), window.checks.fences.get()));
        all.unwrap_or_default()
    };
    let is_alone = |access: &Access, all: &[Access]| !all.iter().any(|other| other.conflicts(access));
    let all = opened();
    for access in all.iter().filter(|access| access.sum != 0 && is_alone(access, &all)) {
        let first = base(window, me).wrapping_add(access.first);
        let now = sums::over_memory(sums::START, first, access.end - access.first);
        // Who writes there meanwhile has said so before.
        if now.is_none_or(|now| now | 1 == access.sum) || !is_alone(access, &opened()) {
            continue;
        }
        let site = sites::here();
        if is_news(access.site, site.numbers()) {
            let own = format!("changes the same bytes itself before {}", called());
            let parties = vec![party(window, access, None), tell::own(own, site)];
            tell::tell(FindingKind::RmaLocalStore, parties, window.describe());
        }
    }
}

/// MPI_Win_fence is over.
#[inline]
pub(super) fn fenced(window: &Window) {
    window.checks.fences.set(window.checks.fences.get() + 1);
}

/// How far operations are complete.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Extent {
    /// At the origin only: what is read is there.
    Origin,
    Target,
}

/// Operations of this process on `target` (`None`: all) are complete.
#[inline]
pub(super) fn completed(window: &Window, target: Option<u32>, extent: Extent) {
    if check::is_full() {
        close(window, target, extent);
    }
}

#[cold]
fn close(window: &Window, target: Option<u32>, extent: Extent) {
    look_at_origins(window, target);
    look_for_memory(window);
    let me = process::endpoint_rank();
    let is_over = |access: &Access| {
        let read = access.kind == Kind::GET || access.kind == Kind::FETCH;
        access.origin == me && (extent == Extent::Target || read)
    };
    let targets = target.map_or(0..window.comm.size(), |target| target..target + 1);
    board::with(|board| targets.for_each(|target| board.close(place(window, target), is_over)));
}

/// The window is about to be freed, by all.
pub(super) fn freed(window: &Window) {
    if check::is_full() {
        look_at_origins(window, None);
        // Programs do free the memory before the window, if nobody accesses it any more (MPICH's own tests, too): that does no harm.
        board::with(|board| board.clear(place(window, window.rank())));
    }
}

/// Does the memory exist that the program has brought?
fn look_for_memory(window: &Window) {
    let own = &window.parts[window.rank() as usize];
    let brought = window.flavor == consts::WIN_FLAVOR_CREATE && own.bytes > 0;
    let mut all: Vec<(u64, u64)> = if brought { vec![(own.base, own.bytes)] } else { Vec::new() };
    all.extend(window.control.attachments(window.rank()));
    if window.checks.missed.get() {
        return;
    }
    for (base, bytes) in all {
        let is_gone = bytes > 0 && (sums::is_missing(base) || sums::is_missing(base + (bytes - 1)));
        let how = if is_below_the_stack(base) {
            "it was a variable of a function that has returned"
        } else if is_gone {
            "it has been unmapped"
        } else {
            continue;
        };
        window.checks.missed.set(true);
        let text = format!("{bytes} bytes of {}: {how}", window.describe());
        tell::tell(FindingKind::WindowMemoryGone, vec![tell::own(called().into(), sites::here())], text);
        return;
    }
}

/// Does `address` lie in the main thread's stack, below the frames that there are? On other stacks the answer is no.
#[inline(never)]
fn is_below_the_stack(address: u64) -> bool {
    let mark = 0u8;
    let here = &raw const mark as usize;
    // SAFETY: reads a word that the kernel has left; the address is one above all frames of the main thread's stack.
    let top = unsafe { libc::getauxval(libc::AT_RANDOM) } as usize;
    let bottom = top.saturating_sub(STACK_BYTES);
    // What is in use of the stack ends a little below this frame.
    (bottom..top).contains(&here) && (bottom..here.saturating_sub(4096)).contains(&(address as usize))
}

/// A call ends with this error.
#[cold]
pub(crate) fn note_error(function: &str, error: &Error) {
    if !check::is_on() {
        return;
    }
    // What has led to it may be known by a report.
    check::far::look();
    let kind = match error.class {
        Class::RmaSync => FindingKind::RmaEpoch,
        Class::RmaRange => FindingKind::RmaRange,
        _ => return,
    };
    tell::tell(kind, vec![tell::own(function.to_owned(), sites::here())], error.message.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_below_the_main_threads_frames_is_gone() {
        let here = 0u8;
        // Tests run in threads of their own.
        assert!(!is_below_the_stack(&raw const here as u64));
        assert!(!is_below_the_stack(&raw const here as u64 - 100_000));
        assert!(!is_below_the_stack(Box::into_raw(Box::new(1u8)) as u64));
    }
}
