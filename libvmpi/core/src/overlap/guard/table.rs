//! What is guarded. Changed with signals held back, by the only thread, so a handler sees a whole table.

use super::{Access, NotGuardable};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

/// So many guards, at most.
pub const MOST: usize = 64;
pub(super) const PAGE_BYTES: usize = 4 << 10;
/// A program's addresses lie below this.
pub(super) const ADDRESSES: usize = 1 << 47;

/// A guard's pages; none: free.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    access: AtomicU8,
}

static TABLE: [Slot; MOST] =
    [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), access: AtomicU8::new(0) } }; MOST];
static COUNT: AtomicU32 = AtomicU32::new(0);

const ACCESSES: [Access; 3] = [Access::Write, Access::Any, Access::Away];

impl Slot {
    fn pages(&self) -> Range<usize> {
        self.start.load(Relaxed)..self.end.load(Relaxed)
    }

    fn access(&self) -> Access {
        ACCESSES[usize::from(self.access.load(Relaxed))]
    }

    fn meets(&self, range: &Range<usize>) -> bool {
        let own = self.pages();
        own.start < range.end && range.start < own.end
    }
}

#[inline(always)]
pub(super) fn count() -> u32 {
    COUNT.load(Relaxed)
}

/// All pages of which `len` bytes at `addr` have a part.
pub(super) fn pages_of(addr: usize, len: usize) -> Option<Range<usize>> {
    let end = addr.checked_add(len).filter(|end| *end <= ADDRESSES && len != 0)?;
    Some(addr & !(PAGE_BYTES - 1)..end.next_multiple_of(PAGE_BYTES))
}

/// Every guard, with its ticket.
fn guards() -> impl Iterator<Item = (u32, &'static Slot)> {
    (0u32..).zip(&TABLE).filter(|(_, slot)| !slot.pages().is_empty())
}

pub(super) fn may_enter(ticket: u32, wanted: &Range<usize>, access: Access) -> Result<(), NotGuardable> {
    if !TABLE.get(ticket as usize).is_some_and(|slot| slot.pages().is_empty()) {
        return Err(NotGuardable::Table);
    }
    match guards().find(|(_, slot)| slot.meets(wanted) && slot.access() != access) {
        Some((other, _)) => Err(NotGuardable::Overlap(other)),
        None => Ok(()),
    }
}

pub(super) fn enter(ticket: u32, pages: Range<usize>, access: Access) {
    let slot = &TABLE[ticket as usize];
    slot.access.store(ACCESSES.iter().position(|known| *known == access).unwrap_or(0) as u8, Relaxed);
    slot.start.store(pages.start, Relaxed);
    slot.end.store(pages.end, Relaxed);
    COUNT.store(count() + 1, Relaxed);
}

pub(super) fn leave(ticket: u32) -> Option<(Range<usize>, Access)> {
    let slot = TABLE.get(ticket as usize)?;
    let pages = slot.pages();
    if pages.is_empty() {
        return None;
    }
    slot.start.store(0, Relaxed);
    slot.end.store(0, Relaxed);
    COUNT.store(count() - 1, Relaxed);
    Some((pages, slot.access()))
}

/// A guard, and where it begins.
pub(super) fn any() -> Option<(u32, usize)> {
    guards().next().map(|(ticket, slot)| (ticket, slot.pages().start))
}

/// A guard that stops an access to a part of `range`.
pub(super) fn meeting(range: &Range<usize>, for_write: bool) -> Option<u32> {
    let stops = |slot: &Slot| slot.meets(range) && (for_write || slot.access() != Access::Write);
    guards().find(|(_, slot)| stops(slot)).map(|(ticket, _)| ticket)
}

/// The guard of an address.
pub(super) fn at(addr: usize) -> Option<u32> {
    guards().find(|(_, slot)| slot.pages().contains(&addr)).map(|(ticket, _)| ticket)
}

/// The parts of `range` that no guard in the table has, in order.
pub(super) fn parts_without_guard(range: &Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    let mut at = range.start;
    std::iter::from_fn(move || {
        while let Some((_, slot)) = guards().find(|(_, slot)| slot.pages().contains(&at)) {
            at = slot.pages().end;
        }
        if at >= end {
            return None;
        }
        let next = guards().map(|(_, slot)| slot.pages().start).filter(|start| *start > at).min();
        let part = at..next.unwrap_or(end).min(end);
        at = part.end;
        Some(part)
    })
}
