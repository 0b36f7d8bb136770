//! Where the program has called MPI: the address to which its call returns.
//!
//! Unwinding takes microseconds, so it is done once for each way through this library. A way is the function, and how far from here the return address lies on the stack; on a way that is known,
//! what lies there is taken if unwinding has found the very same address there before.

use crate::guarded::EntryGuarded;
use std::collections::HashMap;
use std::ffi::{CStr, OsString, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;
use vmpi_shared::control::CallSite;
use vmpi_shared::trace::called;

/// An address in the program; 0: not known.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct Site(usize);

/// Frames of this library between here and the program.
const MOST_FRAMES: u32 = 32;
/// No way is longer, bytes: beyond it the stack may end.
const LONGEST: usize = 4096;

/// The ways of one function, by its name (its address).
struct Ways {
    function: usize,
    /// Distance of the return address from the frame of `here`, and the addresses that unwinding has found there.
    known: Vec<(usize, Vec<usize>)>,
}

/// Rows of functions, by a hash of their names' addresses.
static KNOWN: EntryGuarded<[Vec<Ways>; ROWS]> = EntryGuarded::new([const { Vec::new() }; ROWS]);
const ROWS: usize = 64;

/// The place of a function, by its name's address, in a table of `N`, a power of two. Names lie side by side: neighbours get places far from each other.
pub(crate) fn place_of<const N: usize>(function: usize) -> usize {
    const { assert!(N.is_power_of_two()) };
    (function as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - N.ilog2())
}

/// Where the program has made the call that is under way.
#[inline(never)]
pub(crate) fn here() -> Site {
    let mark = 0usize;
    let base = &raw const mark as usize;
    let function = called().as_ptr() as usize;
    let known = KNOWN.with(|rows| {
        let ways = rows[place_of::<ROWS>(function)].iter().find(|ways| ways.function == function)?;
        let mut fitting = ways.known.iter().filter_map(|(distance, sites)| {
            // SAFETY: a word of this thread's stack: at least as far up there was a caller's frame, and above the first one lies what the kernel or the thread's creator has put there.
            let word = unsafe { ((base + distance) as *const usize).read_volatile() };
            sites.contains(&word).then_some(word)
        });
        // What two ways agree about may be left over from another call.
        fitting.next().filter(|_| fitting.next().is_none())
    });
    Site(known.unwrap_or_else(|| look(base, function)))
}

#[cold]
fn look(base: usize, function: usize) -> usize {
    let Walk { found, stack, .. } = unwind();
    // x86-64: it lies right below where the caller's stack ends.
    let place = stack.checked_sub(8).filter(|at| (base..base + LONGEST).contains(at) && at % 8 == 0);
    // SAFETY: a word of this thread's stack, between this frame and the program's.
    let place = place.filter(|at| unsafe { (*at as *const usize).read_volatile() } == found && found != 0);
    if let Some(distance) = place.map(|at| at - base) {
        KNOWN.with(|rows| learn(&mut rows[place_of::<ROWS>(function)], function, distance, found));
    }
    found
}

fn learn(row: &mut Vec<Ways>, function: usize, distance: usize, found: usize) {
    let at = row.iter().position(|ways| ways.function == function).unwrap_or_else(|| {
        row.push(Ways { function, known: Vec::new() });
        row.len() - 1
    });
    let known = &mut row[at].known;
    match known.iter_mut().find(|way| way.0 == distance) {
        Some(way) if way.1.contains(&found) => {}
        Some(way) => way.1.push(found),
        None => known.push((distance, vec![found])),
    }
}

/// What unwinding finds.
struct Walk {
    left: u32,
    /// The address to which the first frame that is not this library's is returned to, and where that one's stack ended when it called.
    found: usize,
    stack: usize,
}

fn unwind() -> Walk {
    type Trace = extern "C" fn(*mut c_void, *mut c_void) -> c_int;
    unsafe extern "C" {
        fn _Unwind_Backtrace(trace: Trace, argument: *mut c_void) -> c_int;
        fn _Unwind_GetIP(context: *mut c_void) -> usize;
        fn _Unwind_GetCFA(context: *mut c_void) -> usize;
    }
    extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
        // SAFETY: the unwinder's context, and the walk that `unwind` has passed.
        let (ip, walk) = unsafe { (_Unwind_GetIP(context), &mut *walk.cast::<Walk>()) };
        walk.left -= 1;
        let (first, end) = own_range();
        if (first..end).contains(&ip) || is_binding(ip) {
            // _URC_NO_REASON, and any other code.
            return if walk.left > 0 { 0 } else { 4 };
        }
        walk.found = ip;
        // SAFETY: the unwinder's context: of the frame that was looked at before this one.
        walk.stack = unsafe { _Unwind_GetCFA(context) };
        4
    }
    let mut walk = Walk { left: MOST_FRAMES, found: 0, stack: 0 };
    // SAFETY: `step` is what the unwinder calls, with the walk, which outlives the call.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    walk
}

/// A file that is loaded.
struct Object {
    path: String,
    bias: usize,
    first: usize,
    end: usize,
}

/// The object in which `address` lies, or the one for which `wanted` says so.
fn object(wanted: &mut dyn FnMut(&Object) -> bool) -> Option<Object> {
    struct Look<'a> {
        wanted: &'a mut dyn FnMut(&Object) -> bool,
        found: Option<Object>,
    }
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: usize, look: *mut c_void) -> c_int {
        // SAFETY: the loader's description, and the look that `object` has passed.
        let (info, look) = unsafe { (&*info, &mut *look.cast::<Look>()) };
        // SAFETY: so many headers, as the loader says.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let loaded = headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
        let bias = info.dlpi_addr as usize;
        let first = loaded.clone().map(|header| bias + header.p_vaddr as usize).min().unwrap_or(0);
        let end = loaded.map(|header| bias + (header.p_vaddr + header.p_memsz) as usize).max().unwrap_or(0);
        // SAFETY: a name that ends with zero, or none.
        let name = if info.dlpi_name.is_null() { c"" } else { unsafe { CStr::from_ptr(info.dlpi_name) } };
        let path = OsString::from_vec(name.to_bytes().to_vec()).to_string_lossy().into_owned();
        let object = Object { path, bias, first, end };
        if !(look.wanted)(&object) {
            return 0;
        }
        look.found = Some(object);
        1
    }
    let mut look = Look { wanted, found: None };
    // SAFETY: `each` is called with the look, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(each), (&raw mut look).cast()) };
    look.found.map(|mut object| {
        if object.path.is_empty() {
            // The program itself.
            object.path = std::env::current_exe().map_or_else(|_| String::new(), |path| path.to_string_lossy().into());
        }
        object
    })
}

/// Is this in a library that stands between a program and MPI, as Open MPI's for Fortran modules (libmpi_usempif08.so)?
fn is_binding(ip: usize) -> bool {
    let found = object(&mut |object| (object.first..object.end).contains(&ip));
    found.is_some_and(|found| found.path.rsplit('/').next().unwrap_or_default().starts_with("libmpi"))
}

fn own_range() -> (usize, usize) {
    static OWN: OnceLock<(usize, usize)> = OnceLock::new();
    *OWN.get_or_init(|| {
        let own = own_range as *const () as usize;
        object(&mut |object| (object.first..object.end).contains(&own)).map_or((0, 0), |own| (own.first, own.end))
    })
}

fn hash(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

static NUMBERS: EntryGuarded<Option<HashMap<usize, [u64; 2]>>> = EntryGuarded::new(None);

impl Site {
    /// For who finds names for it.
    pub(crate) fn told(self) -> Option<CallSite> {
        let found = object(&mut |object| (object.first..object.end).contains(&self.0))?;
        Some(CallSite { module: found.path, offset: (self.0 - found.bias) as u64 })
    }

    /// The same in two words that are alike in all ranks: of the file, and the address there.
    pub(crate) fn numbers(self) -> [u64; 2] {
        if let Some(known) = NUMBERS.with(|numbers| numbers.as_ref().and_then(|known| known.get(&self.0).copied())) {
            return known;
        }
        let numbers = self.told().map_or([0; 2], |site| [hash(&site.module), site.offset]);
        NUMBERS.with(|known| known.get_or_insert_default().insert(self.0, numbers));
        numbers
    }
}

/// The site that another rank has told in numbers: in a file that this process has loaded, too.
pub(crate) fn of_numbers([file, offset]: [u64; 2]) -> Option<CallSite> {
    let own = std::env::current_exe().map_or_else(|_| String::new(), |path| path.to_string_lossy().into_owned());
    let found = object(&mut |object| match &object.path[..] {
        "" => hash(&own) == file,
        path => hash(path) == file,
    })?;
    Some(CallSite { module: found.path, offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_survives_its_numbers() {
        let site = Site(a_site_survives_its_numbers as *const () as usize);
        let told = site.told().unwrap();
        assert_eq!(of_numbers(site.numbers()), Some(told));
        assert_eq!(of_numbers([1, 2]), None);
        assert_eq!(Site(0).told(), None);
    }
}
