//! `--overlap auto`: where a call is worth being left behind. A site is what has called MPI, by its return address, with messages of a size; what is learnt of it is how long its calls wait when they
//! are not left behind, how long the program lets the buffer be when they are, and what guarding costs there. What can be hidden is the smaller one of the first two.
//! Where other ranks of the core are READY nothing is left behind: they run while this one waits.

use super::mode;
use crate::guarded::EntryGuarded;
use crate::process::{called, endpoint};
use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use vmpi_shared::clock;
use vmpi_shared::control::Overlap;

/// Sites that are remembered (a power of two): one more takes the place of another one.
const SITES: usize = 256;
/// Calls that wait as they would, and are timed, before the first one is left behind.
const LOOKS: u32 = 2;
/// One of so many is timed so later.
const LOOK_EVERY: u32 = 64;
/// A site where nothing is to be had is left alone for so many calls, and for twice as many each time that it is found so again.
const REST: u32 = 64;
const LONGEST_REST: u32 = 4096;
/// What can be hidden is to be so many times what guarding costs.
const WORTH: f64 = 1.5;
/// The signal of a touch, and what the caches lose by all that.
const TOUCH_NS: f64 = 10_000.0;
/// Frames of this library between here and the program.
const MOST_FRAMES: u32 = 24;

#[derive(Copy, Clone)]
struct Site {
    key: u64,
    calls: u32,
    /// It is left alone until then.
    next: u32,
    rest: u32,
    looks: u32,
    /// Nanoseconds, each a mean that forgets; 0: not known.
    waited: f64,
    window: f64,
    cost: f64,
}

const NO_SITE: Site = Site { key: 0, calls: 0, next: 0, rest: REST, looks: 0, waited: 0.0, window: 0.0, cost: 0.0 };

static TABLE: EntryGuarded<[Site; SITES]> = EntryGuarded::new([NO_SITE; SITES]);
/// A call that waits as it would, to be timed: its site, and since when.
static LOOKED_AT: EntryGuarded<Option<(usize, u64)>> = EntryGuarded::new(None);

/// A call of a site that is left behind.
#[derive(Copy, Clone)]
pub struct Place {
    site: usize,
    /// When it was left behind, ns.
    since: u64,
}

/// Ways by which calls come: the function, where its frames lie, and a size. Unwinding, which tells sites apart, costs more than all else here (8,500 instructions for six
/// frames), so where all calls that come by one way rest only one of so many is looked at.
#[derive(Copy, Clone)]
struct Way {
    key: u64,
    /// In a row, of those looked at.
    rested: u32,
    skip: u32,
    skipped: u32,
}

const WAYS: usize = 64;
const NO_WAY: Way = Way { key: 0, rested: 0, skip: 0, skipped: 0 };
/// So many that have rested in a row, before any is skipped, and how many then are: not one less than an even number, so that of two sites in turn both are looked at.
const ALL_REST: u32 = 8;
const SKIPPED: u32 = 14;

static BY_WAY: EntryGuarded<[Way; WAYS]> = EntryGuarded::new([NO_WAY; WAYS]);

impl Way {
    /// Is this call left alone without a look?
    fn skips(&mut self, key: u64) -> bool {
        if self.key != key {
            *self = Way { key, ..NO_WAY };
        }
        let skips = self.skip > 0;
        self.skip -= u32::from(skips);
        self.skipped += u32::from(skips);
        skips
    }

    /// A call has been looked at.
    fn note(&mut self, rests: bool) {
        self.rested = if rests { self.rested.saturating_add(1) } else { 0 };
        (self.skip, self.skipped) = (if self.rested > ALL_REST { SKIPPED } else { 0 }, 0);
    }
}

fn mean(old: f64, new: f64) -> f64 {
    if old == 0.0 { new } else { old + (new - old) / 4.0 }
}

/// What a call is to do.
#[derive(PartialEq, Eq, Debug)]
enum Advice {
    Wait,
    WaitAndTell,
    Leave,
}

impl Site {
    fn advise(&mut self) -> Advice {
        self.calls = self.calls.wrapping_add(1);
        if self.calls < self.next {
            return Advice::Wait;
        }
        if self.looks < LOOKS || self.calls.is_multiple_of(LOOK_EVERY) {
            return Advice::WaitAndTell;
        }
        if self.pays() {
            return Advice::Leave;
        }
        // What is known may be old by then.
        self.next = self.calls.saturating_add(self.rest);
        self.rest = (self.rest * 2).min(LONGEST_REST);
        (self.looks, self.waited, self.window) = (0, 0.0, 0.0);
        Advice::Wait
    }

    fn pays(&self) -> bool {
        let hidden = if self.window == 0.0 { self.waited } else { self.waited.min(self.window) };
        hidden > WORTH * (self.cost + TOUCH_NS)
    }

    fn note_window(&mut self, ns: f64) {
        self.window = mean(self.window, ns);
        if self.pays() {
            self.rest = REST;
        }
    }
}

fn with<R>(site: usize, f: impl FnOnce(&mut Site) -> R) -> R {
    TABLE.with(|table| f(&mut table[site]))
}

/// May the call that is under way, of a message of so many bytes, be left behind? `None`: not now; `Some(None)`: nothing is learnt of it.
pub(super) fn here(bytes: u64) -> Option<Option<Place>> {
    match mode() {
        Overlap::Off => return None,
        Overlap::On => return Some(None),
        Overlap::Auto => {}
    }
    let endpoint = endpoint();
    // Another rank of this core computes while this one waits: then nothing is idle.
    if endpoint.node.ready_count(endpoint.node.core_of(endpoint.me)) > 0 {
        return None;
    }
    let class = u64::from(bytes.ilog2());
    let frame = std::ptr::from_ref(&class) as u64;
    let way_key = (frame ^ (called().as_ptr() as u64).rotate_left(24)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ class | 1;
    let way = (way_key >> 40) as usize % WAYS;
    if BY_WAY.with(|ways| ways[way].skips(way_key)) {
        return None;
    }
    let skipped = BY_WAY.with(|ways| ways[way].skipped);
    let key = (caller() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ class | 1;
    let site = (key >> 40) as usize % SITES;
    let advice = with(site, |known| {
        if known.key != key {
            *known = Site { key, ..NO_SITE };
        }
        known.calls = known.calls.wrapping_add(skipped);
        known.advise()
    });
    BY_WAY.with(|ways| ways[way].note(advice == Advice::Wait));
    match advice {
        Advice::Leave => Some(Some(Place { site, since: 0 })),
        Advice::Wait => None,
        Advice::WaitAndTell => {
            LOOKED_AT.with(|looked_at| *looked_at = Some((site, clock::monotonic_ns())));
            None
        }
    }
}

/// A call that has not been left behind is over.
pub struct Watch(());

/// From now on a call waits as it would; the result is to be dropped when it is over.
pub fn watch() -> Watch {
    Watch(())
}

impl Drop for Watch {
    fn drop(&mut self) {
        waited();
    }
}

/// A call that has not been left behind is over.
pub(super) fn waited() {
    if let Some((site, since)) = LOOKED_AT.with(Option::take) {
        let waited = clock::monotonic_ns().saturating_sub(since) as f64;
        with(site, |site| {
            site.looks += 1;
            site.waited = mean(site.waited, waited.max(1.0));
        });
    }
}

/// Do a part of what guarding takes.
pub(super) fn timed<R>(place: Option<Place>, work: impl FnOnce() -> R) -> R {
    let Some(Place { site, .. }) = place else { return work() };
    let start = clock::monotonic_ns();
    let result = work();
    let took = clock::monotonic_ns().saturating_sub(start) as f64;
    // Twice a part is about the whole.
    with(site, |site| site.cost = mean(site.cost, 2.0 * took));
    result
}

/// The buffer cannot be guarded.
pub(super) fn refused(place: Option<Place>) {
    was_over(place);
}

/// It was over before the call could return.
pub(super) fn was_over(place: Option<Place>) {
    if let Some(Place { site, .. }) = place {
        with(site, |site| site.waited = mean(site.waited, 1.0));
    }
}

/// The call returns.
pub(super) fn leaves(place: Option<Place>) -> Option<Place> {
    place.map(|place| Place { since: clock::monotonic_ns(), ..place })
}

/// The program has got so far that it needs the message, or calls MPI again; `_was_over`: it was there by then.
pub(super) fn ended(place: Option<Place>, _was_over: bool) {
    if let Some(Place { site, since }) = place {
        let window = clock::monotonic_ns().saturating_sub(since) as f64;
        with(site, |site| site.note_window(window.max(1.0)));
    }
}

/// The address to which the MPI function returns: that of the first frame that is not this library's.
pub(super) fn caller() -> usize {
    type Trace = extern "C" fn(*mut c_void, *mut c_void) -> c_int;
    unsafe extern "C" {
        fn _Unwind_Backtrace(trace: Trace, argument: *mut c_void) -> c_int;
        fn _Unwind_GetIP(context: *mut c_void) -> usize;
    }
    struct Walk {
        left: u32,
        own: Range<usize>,
        found: usize,
    }
    extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
        // SAFETY: the unwinder's context, and the walk that `caller` has passed.
        let (ip, walk) = unsafe { (_Unwind_GetIP(context), &mut *walk.cast::<Walk>()) };
        walk.left -= 1;
        walk.found = ip;
        // _URC_NO_REASON, and any other code.
        if walk.left > 0 && walk.own.contains(&ip) { 0 } else { 4 }
    }
    let mut walk = Walk { left: MOST_FRAMES, own: own_code(), found: 0 };
    // SAFETY: `step` is what the unwinder calls, with the walk, which outlives the call.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    walk.found
}

/// Where the object lies that has this function.
fn own_code() -> Range<usize> {
    static START: AtomicUsize = AtomicUsize::new(0);
    static END: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn look(info: *mut libc::dl_phdr_info, _size: usize, found: *mut c_void) -> c_int {
        // SAFETY: the loader's description of an object, and the range that `own_code` has passed.
        let (info, found) = unsafe { (&*info, &mut *found.cast::<Range<usize>>()) };
        // SAFETY: as above.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let spans = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).map(|header| {
            let start = info.dlpi_addr as usize + header.p_vaddr as usize;
            start..start + header.p_memsz as usize
        });
        let whole = spans.reduce(|all, span| all.start.min(span.start)..all.end.max(span.end)).unwrap_or(0..0);
        if !whole.contains(&(own_code as *const () as usize)) {
            return 0;
        }
        *found = whole;
        1
    }
    if END.load(Ordering::Relaxed) == 0 {
        let mut found = 0..0;
        // SAFETY: `look` is what the loader calls, with the range, which outlives the call.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
        START.store(found.start, Ordering::Relaxed);
        END.store(found.end, Ordering::Relaxed);
    }
    START.load(Ordering::Relaxed)..END.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of a site that wait `waited` ns, of which those left behind let the buffer be for `window` ns: what each does.
    fn play(site: &mut Site, calls: usize, waited: f64, window: f64) -> (usize, usize) {
        let (mut left, mut looked) = (0, 0);
        for _ in 0..calls {
            match site.advise() {
                Advice::Leave => {
                    left += 1;
                    site.cost = mean(site.cost, 40_000.0);
                    site.note_window(window);
                }
                Advice::WaitAndTell => {
                    looked += 1;
                    site.looks += 1;
                    site.waited = mean(site.waited, waited);
                }
                Advice::Wait => {}
            }
        }
        (left, looked)
    }

    #[test]
    fn who_has_something_to_hide_is_left_behind_and_looked_at_now_and_then() {
        let (left, looked) = play(&mut NO_SITE.clone(), 1000, 1e6, 1e6);
        assert!(left > 970 && looked >= 15, "{left} {looked}");
    }

    #[test]
    fn who_touches_at_once_is_left_alone_after_few_tries() {
        let mut site = NO_SITE;
        let (left, looked) = play(&mut site, 2000, 1e6, 500.0);
        assert!((1..20).contains(&left) && looked < 60, "{left} {looked}");
        // And found again when that changes.
        assert!(play(&mut site, 9000, 1e6, 1e6).0 > 100);
    }

    /// A way by which two sites call in turn, of which the second one rests, and the first if `both`: how many of its calls each one has looked at.
    fn come(both: bool) -> [u32; 2] {
        let (mut way, mut looked) = (NO_WAY, [0, 0]);
        for call in 0..2000 {
            if !way.skips(7) {
                looked[call % 2] += 1;
                way.note(both || call % 2 == 1);
            }
        }
        looked
    }

    #[test]
    fn where_all_rest_few_are_looked_at_and_where_one_does_not_all_are() {
        assert_eq!(come(false), [1000, 1000]);
        let looked = come(true);
        assert!(looked.iter().sum::<u32>() < 2000 / 15 + 20 && looked.iter().all(|count| *count > 50), "{looked:?}");
    }

    #[test]
    fn who_does_not_wait_is_never_left_behind() {
        assert_eq!(play(&mut NO_SITE.clone(), 2000, 3000.0, 1e6).0, 0);
    }

    #[test]
    fn the_caller_is_outside_this_function() {
        assert_ne!(caller(), 0);
        assert!(own_code().contains(&(caller as *const () as usize)));
    }
}
