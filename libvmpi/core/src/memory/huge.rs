//! Huge pages under buffers that large messages use often, and which of those are laid open to other ranks (`memory`).
//!
//! The kernel copies from process to process slower than memcpy where the other process's memory lies in small pages, because it looks
//! up and pins each of them; huge pages spare it that (ping-pong on one core here, half a round trip: 128 KiB 11.6 -> 8.6 us, 2 MiB
//! 278 -> 197, beside Open MPI's 10.2 and 263 in the same run). A program's heap has small pages. So a rank asks the kernel to make a
//! huge page of each 2 MiB of its memory through which many bytes have gone: when the time that this would have saved so far is what
//! making it costs, which is at most twice the least possible cost. Nothing of the memory's meaning changes: it stays private, and fork
//! copies it on write.

use crate::guarded::EntryGuarded;
use crate::memory;
use nix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;
use std::time::Duration;
use vmpi_shared::control::env;
use vmpi_shared::mem::HUGE_PAGE_BYTES;

/// Messages that the kernel copies, and that are large enough for the pages to matter.
const LEAST_BYTES: u64 = 32 << 10;
const PAGE_BYTES: u64 = 4 << 10;
/// Until a huge page has paid for itself: a byte costs 0.08 ns in small pages, half of that in huge ones. Both measured here.
const HUGE: Price = Price { usual_bytes: 10 << 20, usual_seconds: 0.45e-3, bytes: 10 << 20 };
/// Until laying a region open has, huge page included: the kernel's copy takes 0.03 ns a byte longer than one between mappings.
const OPEN: Price = Price { usual_bytes: 40 << 20, usual_seconds: 1.2e-3, bytes: 40 << 20 };
const MOST_SLOWER: f64 = 160.0;
/// What takes less than this part of the usual time had been done already, and tells nothing.
const LEAST_SLOWER: f64 = 0.1;
/// A huge page for memory that is mostly unused would waste it: at least so many pages of a region must be in use.
const LEAST_PAGES: usize = 128;
/// After so many refusals in a row the kernel is not asked again.
const MOST_REFUSALS: u32 = 4;
/// What has been improved is tried again after so many bytes times 2 to this power: the program may have given the memory back and got other there. Asking for
/// what is huge already costs little.
const DOUBLINGS: u32 = 3;
/// Each refusal doubles them, too.
const MOST_DOUBLINGS: u32 = 10;
/// Regions that are counted at a time.
const REGIONS: usize = 1024;

/// 2 MiB of this process's memory, by number; 0: none.
#[derive(Copy, Clone, Default)]
struct Region {
    number: u64,
    /// Towards a huge page.
    huge: Count,
    /// Towards its lying open to other ranks.
    open: Count,
}

#[derive(Copy, Clone, Default)]
struct Count {
    /// Bytes of messages since the region was first seen, or tried the last time.
    bytes: u64,
    /// For the next try, how often what is enough is doubled.
    doublings: u32,
}

impl Count {
    const NONE: Count = Count { bytes: 0, doublings: 0 };

    fn add(&mut self, bytes: u64, enough: u64) -> bool {
        self.bytes += bytes;
        self.bytes >= enough << self.doublings
    }

    fn begin_again(&mut self, improved: bool) {
        let doublings = if improved { DOUBLINGS } else { MOST_DOUBLINGS.min(self.doublings + 1) };
        *self = Count { bytes: 0, doublings };
    }
}

/// Bytes that go through a region before something done to it is worth its time, which is measured each time (ten times as long where the host of a virtual
/// machine has to find the memory first).
struct Price {
    usual_bytes: u64,
    usual_seconds: f64,
    bytes: u64,
}

impl Price {
    fn learn(&mut self, seconds: f64) {
        let slower = seconds / self.usual_seconds;
        if slower >= LEAST_SLOWER {
            self.bytes = (self.usual_bytes as f64 * slower.clamp(1.0, MOST_SLOWER)) as u64;
        }
    }
}

struct Regions {
    regions: [Region; REGIONS],
    huge: Price,
    open: Price,
    refusals: u32,
    /// Those that could not be laid open when they were worth it.
    waiting: Vec<u64>,
}

static REGIONS_SEEN: EntryGuarded<Regions> = EntryGuarded::new(Regions {
    regions: [Region { number: 0, huge: Count::NONE, open: Count::NONE }; REGIONS],
    huge: HUGE,
    open: OPEN,
    refusals: 0,
    waiting: Vec::new(),
});

static WANTED: LazyLock<bool> = LazyLock::new(|| std::env::var_os(env::HUGE_PAGES).is_none_or(|value| value != "0"));

/// A message of `len` bytes goes out of, or has come into, this memory of the process by a copy of the kernel's.
#[inline]
pub(crate) fn note(addr: u64, len: u64) {
    if len >= LEAST_BYTES && (*WANTED || memory::is_wanted_for(len)) {
        note_large(addr, len, true);
    }
}

/// As `note`, by two copies of the ranks' own, where one would be better: huge pages gain nothing, laying it open does.
#[inline]
pub(crate) fn note_copied(addr: u64, len: u64) {
    if len != 0 && memory::is_wanted_for(len) {
        note_large(addr, len, false);
    }
}

fn note_large(addr: u64, len: u64, by_kernel: bool) {
    REGIONS_SEEN.with(|seen| {
        let end = addr.saturating_add(len);
        let numbers = addr / HUGE_PAGE_BYTES..=(end - 1) / HUGE_PAGE_BYTES;
        let (huge, open) = (by_kernel && *WANTED && seen.refusals < MOST_REFUSALS, memory::is_wanted_for(len));
        let (huge_bytes, open_bytes, mut any_open) = (seen.huge.bytes, seen.open.bytes, false);
        for number in numbers.clone() {
            let inside = end.min((number + 1) * HUGE_PAGE_BYTES) - addr.max(number * HUGE_PAGE_BYTES);
            let Some(region) = seen.region(number, inside) else { continue };
            let huge_due = huge && region.huge.add(inside, huge_bytes);
            let open_due = open && region.open.add(inside, open_bytes);
            any_open |= open_due;
            if huge_due && !open_due {
                seen.make_huge(number);
            }
        }
        // Others copy by themselves only what lies open from end to end.
        if any_open {
            numbers.for_each(|number| seen.lay_open(number));
        }
    });
}

/// To be called when MPI begins.
pub(crate) fn prepare() {
    memory::prepare();
    align_mappings();
}

/// Have what the program maps next end where a huge page does: mappings follow each other downwards, and a block of 2 MiB that lies across two huge
/// pages' places gets none. What lies between is address space, and no memory.
fn align_mappings() {
    if !*WANTED {
        return;
    }
    let len = HUGE_PAGE_BYTES + PAGE_BYTES;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping where nothing is; only a part of it is unmapped again.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), len as usize, libc::PROT_NONE, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return;
        }
        let free = (at as u64 + len) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES - at as u64;
        libc::munmap(at, free as usize);
    }
}

/// No message of this call is under way yet: lay open what has had to wait for that.
#[inline]
pub(crate) fn catch_up() {
    REGIONS_SEEN.with(|seen| {
        for number in std::mem::take(&mut seen.waiting) {
            seen.lay_open(number);
        }
    });
}

impl Regions {
    /// The counts of a region through which so many bytes more have gone; `None`: those of one that is used more are in its place.
    fn region(&mut self, number: u64, bytes: u64) -> Option<&mut Region> {
        let region = &mut self.regions[number as usize % REGIONS];
        if region.number != number {
            // One that is used less gives way, a little with each try.
            for count in [&mut region.huge, &mut region.open] {
                count.bytes = count.bytes.saturating_sub(bytes);
            }
            if region.huge.bytes != 0 || region.open.bytes != 0 {
                return None;
            }
            *region = Region { number, ..Region::default() };
        }
        Some(region)
    }

    /// The same, as it is.
    fn known(&mut self, number: u64) -> Option<&mut Region> {
        Some(&mut self.regions[number as usize % REGIONS]).filter(|region| region.number == number)
    }

    /// The region is worth a huge page.
    #[cold]
    fn make_huge(&mut self, number: u64) {
        let made = self.collapse(number);
        self.conclude(number, made);
    }

    /// How that went. After several refusals the kernel is not asked again.
    fn conclude(&mut self, number: u64, made: bool) {
        let first = self.known(number).is_some_and(|region| region.huge.doublings == 0);
        if made {
            self.refusals = 0;
        } else if first {
            self.refusals += 1;
        }
        if let Some(region) = self.known(number) {
            region.huge.begin_again(made);
        }
    }

    /// The region is worth being laid open to other ranks; then it gets a huge page, too.
    #[cold]
    fn lay_open(&mut self, number: u64) {
        if !memory::is_wanted() {
            return;
        }
        let start = used();
        let in_use = pages_in_use(number).is_some_and(|pages| pages >= LEAST_PAGES);
        match memory::move_in(number * HUGE_PAGE_BYTES..(number + 1) * HUGE_PAGE_BYTES, in_use) {
            Some(open) => {
                // A refusal is the file's, and says nothing about other memory.
                let huge = open && *WANTED && self.collapse(number);
                if let Some(region) = self.known(number) {
                    region.open.begin_again(open);
                    if open {
                        region.huge.begin_again(huge);
                    }
                }
                if open {
                    self.open.learn(since(start));
                }
            }
            None if self.waiting.contains(&number) => {}
            None => self.waiting.push(number),
        }
    }

    /// Have a huge page made, if enough of the memory is there; false if the kernel has refused.
    fn collapse(&mut self, number: u64) -> bool {
        if pages_in_use(number).is_none_or(|pages| pages < LEAST_PAGES) {
            return true;
        }
        let start = used();
        let at = (number * HUGE_PAGE_BYTES) as *mut libc::c_void;
        // SAFETY: changes how the memory is backed, not what it holds; a range that is not wholly mapped is an error.
        let made = unsafe { libc::madvise(at, HUGE_PAGE_BYTES as usize, libc::MADV_COLLAPSE) } == 0;
        if made {
            self.huge.learn(since(start));
        }
        made
    }
}

/// What this thread has had of its CPU. Not the time that passes: other processes' turns say nothing about what something costs.
fn used() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

fn since(start: Duration) -> f64 {
    used().saturating_sub(start).as_secs_f64()
}

/// Pages of a region that are in memory; `None` if it is not wholly mapped.
fn pages_in_use(number: u64) -> Option<usize> {
    let mut pages = [0u8; (HUGE_PAGE_BYTES / PAGE_BYTES) as usize];
    let at = (number * HUGE_PAGE_BYTES) as *mut libc::c_void;
    // SAFETY: the kernel writes a byte for each page of the range into `pages`, which has as many.
    let known = unsafe { libc::mincore(at, HUGE_PAGE_BYTES as usize, pages.as_mut_ptr()) } == 0;
    known.then(|| pages.iter().filter(|page| **page & 1 != 0).count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> Regions {
        Regions { regions: [Region::default(); REGIONS], huge: HUGE, open: OPEN, refusals: 0, waiting: Vec::new() }
    }

    /// So many bytes more go through a region by copies of the kernel's: is it worth a huge page?
    fn count(seen: &mut Regions, number: u64, bytes: u64) -> bool {
        let enough = seen.huge.bytes;
        seen.region(number, bytes).is_some_and(|region| region.huge.add(bytes, enough))
    }

    #[test]
    fn a_region_is_worth_it_after_many_bytes() {
        let mut seen = new();
        let due: Vec<bool> = (0..12).map(|_| count(&mut seen, 7, 1 << 20)).collect();
        assert_eq!(due.iter().position(|due| *due), Some(9));
        seen.make_huge(7);
        let due: Vec<bool> = (0..80).map(|_| count(&mut seen, 7, 1 << 20)).collect();
        assert_eq!(due.iter().position(|due| *due), Some(79), "seldom when there is nothing to gain");
    }

    #[test]
    fn what_takes_longer_has_to_be_saved_first() {
        for mut price in [HUGE, OPEN] {
            let (bytes, seconds) = (price.usual_bytes, price.usual_seconds);
            for (times, becomes) in [(10.0, 10), (0.01, 10), (0.8, 1), (1000.0, 160)] {
                price.learn(seconds * times);
                assert_eq!(price.bytes, becomes * bytes, "{times}: less than a tenth says that it had been done");
            }
        }
    }

    #[test]
    fn who_refuses_four_regions_is_not_asked_again() {
        let mut seen = new();
        for number in 1..=4 {
            assert!(seen.refusals < MOST_REFUSALS);
            count(&mut seen, number, 1);
            // The second time is no news.
            seen.conclude(number, false);
            seen.conclude(number, false);
        }
        assert_eq!((seen.refusals, seen.regions[4].huge.doublings), (MOST_REFUSALS, 2));
        seen.conclude(4, true);
        assert_eq!((seen.refusals, seen.regions[4].huge.doublings), (0, DOUBLINGS));
    }

    #[test]
    fn the_one_that_is_used_more_stays() {
        let mut seen = new();
        let other = 7 + REGIONS as u64;
        for _ in 0..5 {
            assert!(!count(&mut seen, 7, 1 << 20));
        }
        assert!(!count(&mut seen, other, 1 << 20));
        assert_eq!((seen.regions[7].number, seen.regions[7].huge.bytes), (7, 4 << 20));
        for _ in 0..4 {
            count(&mut seen, other, 1 << 20);
        }
        assert_eq!(seen.regions[7].number, other);
    }

    /// The bytes stay what they are, and the kernel says that the page is huge (where it makes any).
    #[test]
    fn memory_keeps_its_bytes() {
        let len = 3 * HUGE_PAGE_BYTES as usize;
        let mut memory: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let number = (memory.as_mut_ptr() as u64).div_ceil(HUGE_PAGE_BYTES);
        assert_eq!(pages_in_use(number), Some((HUGE_PAGE_BYTES / PAGE_BYTES) as usize));
        let mut seen = new();
        seen.make_huge(number);
        assert!(memory.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("procfs");
        let huge: u64 = smaps
            .lines()
            .filter_map(|line| line.strip_prefix("AnonHugePages:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
            .sum();
        assert_eq!(huge >= 2048, seen.refusals == 0, "{huge} kB in huge pages, {} refusals", seen.refusals);
    }

    /// What malloc maps for a block of 2 MiB.
    #[test]
    fn the_next_large_mapping_ends_where_a_huge_page_does() {
        let len = HUGE_PAGE_BYTES + PAGE_BYTES;
        for _ in 0..3 {
            align_mappings();
            let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            // SAFETY: a new mapping, which is kept.
            let at = unsafe { libc::mmap(std::ptr::null_mut(), len as usize, rights, flags, -1, 0) };
            assert_ne!(at, libc::MAP_FAILED);
            assert_eq!((at as u64 + len) % HUGE_PAGE_BYTES, 0, "{at:?}");
        }
    }

    #[test]
    fn memory_that_is_not_all_there_is_left_alone() {
        let mut seen = new();
        assert_eq!(pages_in_use(1), None, "nothing is mapped at 2 MiB");
        seen.make_huge(1);
        assert_eq!(seen.refusals, 0);
    }
}
