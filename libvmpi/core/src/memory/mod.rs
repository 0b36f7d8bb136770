//! An unmodified program's memory, laid open to the job's other ranks (`VMPI_MAP_MEMORY`). (Floor 4.)
//!
//! The kernel's copy from process to process looks up and pins each page; a copy between two mappings of the same memory does not. So
//! memory through which many bytes of messages have gone is moved, where it is, into a memory file: the file's page at offset A holds what
//! the process has at address A. The others, and the carrier of their node, map the file (`vmpi_shared::node::peer_memory`) and copy by
//! themselves.
//!
//! What makes it safe, and what it costs:
//! - Memory is moved while no message is under way and no window exists, so nobody else writes to it, by the only thread, with signals blocked.
//! - Unasked, only malloc's memory is moved, of processes whose memory nothing else uses (`blocks`), and `MOST_BYTES` of them at most. With
//!   `VMPI_MAP_MEMORY=1` it is all private, anonymous, writable memory without a name, and the heap. Pages that hold zeros take no memory in the file, unless the region is in use.
//! - Before each message the kernel is asked (PROCMAP_QUERY, Linux 6.11) whether the buffer's addresses still mean the file: a program
//!   frees memory and gets other at the same address. What nothing maps any more is punched out of the file when that is found, or when
//!   more memory is moved; till then it stays used. What could not be punched out is not used again.
//! - fork: see `fork`.

mod blocks;
mod file;
mod fork;
pub(crate) mod huge;

use crate::guarded::EntryGuarded;
use crate::overlap::guard;
use crate::process::{self, endpoint};
use file::{ADDRESSES, Area, MemoryFile};
use procfs::process::{MemoryMap, Process};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, OnceLock};
use vmpi_cma::Areas;
use vmpi_shared::control::{Overlap, env};
use vmpi_shared::mem::checker;
use vmpi_shared::proc;

/// Messages of up to so many bytes gain by it: larger ones come from memory, not from a cache, and the kernel's copy out of huge pages is as fast.
const MOST_MESSAGE_BYTES: u64 = 4 << 20;
/// So much is laid open unasked, at most: what a child of fork has to be given, and what stays used when the program has freed it. More is in no cache.
const MOST_BYTES: u64 = 64 << 20;

#[derive(Copy, Clone, PartialEq, Eq)]
enum Wanted {
    Nothing,
    /// malloc's memory, if there is no reason against it.
    Mallocs,
    /// Whatever messages use: the user has asked for it.
    All,
}

static WANTED: LazyLock<Wanted> = LazyLock::new(|| match std::env::var_os(env::MAP_MEMORY) {
    Some(value) if value == "0" => Wanted::Nothing,
    Some(value) if value == "1" => Wanted::All,
    // Under valgrind malloc is not the library's, though its name still means that.
    // What is guarded is the process's own memory.
    _ if Overlap::of_environment() != Ok(Overlap::Off) => Wanted::Nothing,
    _ if endpoint().job.config().single_copy == 0 || is_limited() || checker::is_valgrind() => Wanted::Nothing,
    _ => Wanted::Mallocs,
});
static HEAP: EntryGuarded<Option<Heap>> = EntryGuarded::new(None);
static FILE: OnceLock<MemoryFile> = OnceLock::new();
/// There are windows.
static WINDOWS: AtomicBool = AtomicBool::new(false);
/// Something may lie in the file.
static OPEN: AtomicBool = AtomicBool::new(false);
/// It cannot be, or there was a reason to end it. If the user has asked for it, that has been said.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// What has been moved into the file.
struct Heap {
    file: &'static MemoryFile,
    areas: Areas,
    /// Parts of the file that may hold something.
    ranges: Vec<Range<u64>>,
}

/// Does the job want it, and can it be had as far as is known?
#[inline]
pub(crate) fn is_wanted() -> bool {
    *WANTED != Wanted::Nothing && !REFUSED.load(Ordering::Relaxed)
}

/// To be called when MPI begins: of what fork calls, this is to come first in the child.
pub(crate) fn prepare() {
    if *WANTED != Wanted::Nothing
        && let Err(why) = fork::prepare()
    {
        refuse(&why);
    }
}

/// Does it gain anything for messages of so many bytes?
#[inline]
pub(crate) fn is_wanted_for(len: u64) -> bool {
    is_wanted() && (len <= MOST_MESSAGE_BYTES || *WANTED == Wanted::All)
}

/// Address space is limited: others' memory needs some of it, which the program may want later.
fn is_limited() -> bool {
    use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
    getrlimit(Resource::RLIMIT_AS).map_or(true, |(limit, _)| limit != RLIM_INFINITY)
}

/// May others reach `len` bytes at `addr` through the file?
#[inline]
pub(crate) fn holds(addr: u64, len: u64) -> bool {
    is_wanted() && len != 0 && HEAP.with(|heap| heap.as_mut().is_some_and(|heap| heap.holds(addr, len)))
}

/// Move what of `range` can be moved; false if nothing of it lies in the file then. `None`: not now, messages are under way. To be called while it is wanted, which it may not
/// be any more on return. Nor is memory moved while some is guarded. `in_use`: most of it is in memory, and is to be so in the file, or it would get no huge page.
#[cold]
pub(crate) fn move_in(range: Range<u64>, in_use: bool) -> Option<bool> {
    // What is guarded is not where it seems to be.
    if endpoint().queues().head.slots_live != 0 || guard::any_armed() {
        return None;
    }
    if !is_quiet() {
        return Some(false);
    }
    Some(try_to_move_in(range, in_use).unwrap_or(false))
}

fn try_to_move_in(range: Range<u64>, in_use: bool) -> procfs::ProcResult<bool> {
    let wanted = range.start..range.end.min(ADDRESSES);
    let process = Process::myself()?;
    let maps: Vec<MemoryMap> = process.maps()?.into_iter().collect();
    let parts = if *WANTED == Wanted::All {
        let plain = maps.iter().filter(|map| blocks::is_plain(map));
        blocks::clipped(plain.map(|map| map.address.0..map.address.1).collect(), &wanted)
    } else {
        let is_moved = |map: &MemoryMap| FILE.get().is_some_and(|file| file.is_behind(map));
        let parts = blocks::in_maps(&maps, &wanted, is_moved);
        if !parts.is_empty() && !blocks::are_its_own(&process, &maps) {
            REFUSED.store(true, Ordering::Relaxed);
            return Ok(false);
        }
        parts
    };
    HEAP.with(|heap| {
        if heap.is_none() && !parts.is_empty() {
            *heap = Heap::new().inspect_err(refuse).ok();
        }
        heap.as_mut().map_or(Ok(false), |heap| heap.move_in(&parts, &wanted, in_use))
    })
}

/// Nobody else writes to this process's memory: it has no window and no message under way, and no other thread.
fn is_quiet() -> bool {
    endpoint().queues().head.slots_live == 0 && !is_in_windows() && is_alone()
}

/// The first rank of the node says why it cannot be, if the user has asked for it.
fn refuse(why: &std::io::Error) {
    REFUSED.store(true, Ordering::Relaxed);
    let endpoint = endpoint();
    if *WANTED == Wanted::All && (0..endpoint.me).all(|rank| endpoint.node.is_remote(rank)) {
        let name = env::MAP_MEMORY;
        eprintln!(
            "vmpi: {name}=1 has no effect on this node: {why}. Large messages are copied by the kernel, as without it."
        );
    }
}

/// The first window opens, or the last one has been closed.
pub(crate) fn set_windows(any: bool) {
    WINDOWS.store(any, Ordering::Relaxed);
}

/// May others reach memory of this process by windows?
pub(crate) fn is_in_windows() -> bool {
    WINDOWS.load(Ordering::Relaxed)
}

/// Is this thread the only one of its process?
fn is_alone() -> bool {
    proc::own_threads() == 1
}

impl Heap {
    fn new() -> std::io::Result<Heap> {
        let file = match FILE.get() {
            Some(file) => file,
            None => {
                let file = MemoryFile::new()?;
                FILE.get_or_init(|| file)
            }
        };
        let heap = Heap { file, areas: Areas::open()?, ranges: Vec::new() };
        let endpoint = endpoint();
        endpoint.node.lay_open(endpoint.me, file)?;
        Ok(heap)
    }

    fn holds(&mut self, addr: u64, len: u64) -> bool {
        let Some(end) = addr.checked_add(len) else { return false };
        if !covers(&self.ranges, addr..end) {
            return false;
        }
        let mut at = addr;
        while at < end {
            match self.areas.at(at) {
                // Offset and address are the same: nobody has moved it.
                Ok(area) if area.inode == self.file.inode && area.offset == area.start && area.end > at => {
                    at = area.end
                }
                _ => {
                    if at == addr {
                        // What is wrong with it shows again when memory is moved.
                        let _ = self.sweep();
                    }
                    return false;
                }
            }
        }
        true
    }

    /// Give memory back that nothing maps any more.
    fn sweep(&mut self) -> procfs::ProcResult<()> {
        if !process::is_this_process() {
            // It is the parent that maps it.
            return Ok(());
        }
        let mut mapped: Vec<Range<u64>> = self.file.areas()?.iter().map(Area::part).collect();
        mapped.sort_unstable_by_key(|part| part.start);
        for gap in gaps(&std::mem::take(&mut self.ranges), &mapped) {
            if !self.file.punch(&gap) {
                mapped.push(gap);
            }
        }
        OPEN.store(!mapped.is_empty(), Ordering::Relaxed);
        self.ranges = mapped;
        Ok(())
    }

    /// Move these parts of `wanted`, of which nothing else can be moved; false if nothing of it lies here then.
    fn move_in(&mut self, parts: &[Range<u64>], wanted: &Range<u64>, in_use: bool) -> procfs::ProcResult<bool> {
        self.sweep()?;
        let mut any = self.ranges.iter().any(|part| overlap(part, wanted));
        for part in parts {
            let used: u64 = self.ranges.iter().map(|range| range.end - range.start).sum();
            let room = *WANTED == Wanted::All || used + (part.end - part.start) <= MOST_BYTES;
            // What holds nothing is zero, which is what `copy_pages` wants.
            let holds_nothing = !self.ranges.iter().any(|range| overlap(range, part));
            if room && holds_nothing {
                OPEN.store(true, Ordering::Relaxed);
                // SAFETY: the caller has looked; this is the only thread.
                if unsafe { self.file.give(part, in_use) }.is_ok() {
                    self.ranges.push(part.clone());
                    any = true;
                }
            }
        }
        Ok(any)
    }
}

/// Is each byte of `wanted` in one of the ranges?
fn covers(ranges: &[Range<u64>], wanted: Range<u64>) -> bool {
    let mut at = wanted.start;
    while at < wanted.end {
        let Some(range) = ranges.iter().find(|range| range.contains(&at)) else { return false };
        at = range.end;
    }
    true
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// What of `ranges` is in none of `parts`, which are sorted.
fn gaps(ranges: &[Range<u64>], parts: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    for range in ranges {
        let mut at = range.start;
        for part in parts.iter().filter(|part| overlap(part, range)) {
            if at < part.start {
                gaps.push(at..part.start);
            }
            at = at.max(part.end);
        }
        if at < range.end {
            gaps.push(at..range.end);
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each page of the ranges that no part has, and no other, is in a gap.
        #[test]
        fn gaps_are_what_is_left(ranges in pieces(), parts in pieces()) {
            let has = |list: &[Range<u64>], page: u64| list.iter().any(|range| range.contains(&page));
            let gaps = gaps(&ranges, &parts);
            for page in 0..130 {
                prop_assert_eq!(has(&gaps, page), has(&ranges, page) && !has(&parts, page), "page {}", page);
            }
        }
    }

    #[test]
    fn a_message_is_covered_from_end_to_end_or_not_at_all() {
        let ranges = [20..30, 0..10, 10..18];
        for (wanted, is) in
            [(0..18, true), (3..15, true), (25..30, true), (0..19, false), (15..25, false), (40..41, false)]
        {
            assert_eq!(covers(&ranges, wanted.clone()), is, "{wanted:?}");
        }
    }

    fn pieces() -> impl Strategy<Value = Vec<Range<u64>>> {
        prop::collection::vec((0u64..100, 1u64..30), 0..6).prop_map(|list| {
            let mut list: Vec<Range<u64>> = list.into_iter().map(|(start, len)| start..start + len).collect();
            list.sort_unstable_by_key(|range| range.start);
            list
        })
    }
}
