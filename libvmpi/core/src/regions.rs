//! The program's own regions (MPIX_Region_begin, MPIX_Region_end) and what it says of recording (MPI_Pcontrol).
//!
//! What is told of regions lies in the job segment (`vmpi_shared::trace::regions`), for a report at the job's end, and in the trace, if there is one. Where
//! nobody asks for either a call costs the test of a flag.
//!
//! Any thread may call these, whatever it may call of MPI otherwise (MPI_THREAD_FUNNELED), and none waits for another one that is inside MPI: sums are
//! kept under a lock of their own. Records are put into the trace inside MPI only; what a thread does that may not be there is in the sums alone.

use crate::lock;
use crate::process::{endpoint, is_active, is_this_process};
use crate::simulate;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use vmpi_shared::control::env;
use vmpi_shared::node::recording;
use vmpi_shared::trace::regions::{Clocks, REGIONS, Table, hash};

/// A report will tell of regions (`vmpirun --report`, `--json`).
static REPORTED: AtomicBool = AtomicBool::new(false);
/// `vmpirun --pcontrol regions`: what MPI_Pcontrol is given behind its level is the name of a region.
static NAMED: AtomicBool = AtomicBool::new(false);
/// The names of this process's regions, each as a number, and their places in the table: a process before it may have had the rank.
static KNOWN: Mutex<(Vec<u64>, Vec<usize>)> = Mutex::new((Vec::new(), Vec::new()));
/// From this level on MPI_Pcontrol begins the region of that number, and its negative ends it, as Intel's tools have it.
const FIRST_NUMBER: i32 = 5;
/// Of a name that somebody may not have given, so much is looked at.
const LONGEST: usize = 4096;

/// MPI is up: what does vmpirun say?
pub(crate) fn prepare() {
    REPORTED.store(std::env::var_os(env::REGIONS).is_some(), Relaxed);
    NAMED.store(std::env::var_os(env::PCONTROL).is_some_and(|word| word == "regions"), Relaxed);
}

/// Does somebody want to know of regions? Not before MPI_Init, nor after MPI_Finalize.
#[inline]
pub fn are_wanted() -> bool {
    is_active() && (REPORTED.load(Relaxed) || is_traced())
}

#[inline]
fn is_traced() -> bool {
    let endpoint = endpoint();
    recording::is_on(&endpoint.node, endpoint.me)
}

fn clocks() -> Clocks {
    if let Some((now, waited)) = simulate::region_clocks() {
        return Clocks { now, waited, ready: 0 };
    }
    let endpoint = endpoint();
    let rank = endpoint.node.rank(endpoint.me);
    let [waited, ready] =
        [&rank.wait_ticks, &rank.ready_ticks].map(|ticks| ticks.load(vmpi_shared::mem::sync::Ordering::Relaxed));
    Clocks { now: endpoint.node.now(), waited, ready }
}

fn table() -> Table<'static> {
    let endpoint = endpoint();
    endpoint.job.trace(endpoint.me).regions()
}

/// The region's place in the table; what finds no room shares the last one.
fn place((known, places): &mut (Vec<u64>, Vec<usize>), name: &[u8]) -> usize {
    let number = hash(name);
    if let Some(at) = known.iter().position(|known| *known == number) {
        return places[at];
    }
    let Some(place) = table().new_region(name) else { return REGIONS - 1 };
    known.push(number);
    places.push(place);
    place
}

/// The program begins a region.
pub fn begin(name: &[u8]) {
    note(name, true);
}

/// And ends it.
pub fn end(name: &[u8]) {
    note(name, false);
}

#[cold]
fn note(name: &[u8], begins: bool) {
    // The child of a fork would write in its parent's place.
    if !are_wanted() || !is_this_process() {
        return;
    }
    // Before the other lock: who is inside MPI may be in here, too.
    let inside = (is_traced() && lock::is_open_to_this_thread()).then(lock::enter);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let place = place(&mut known, name);
    let clocks = clocks();
    let told = if begins { table().begin(place, clocks) } else { table().end(place, clocks) };
    if told && inside.is_some() {
        recording::region(&endpoint().node, place, begins, clocks.now);
    }
}

/// The rank leaves MPI.
pub(crate) fn finish() {
    if REPORTED.load(Relaxed) || is_traced() {
        let _alone = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        table().finish(clocks());
    }
}

/// MPI_Pcontrol. `label`: what the program gave behind the level, if it gave something there. Whether it did cannot be seen, so that is read only
/// where the user says so, and only if it can be read.
///
/// By level alone (MPI 4.1 section 15.2.4): 0 stops recording of this rank, 1 lets it go on, 2 has nothing to flush; others begin and end regions with
/// numbers. With names, as IPM has it: 1 begins, -1 ends a region.
#[cold]
pub fn control(level: i32, label: *const c_char) {
    if !is_active() || !is_this_process() {
        return;
    }
    let number = || format!("region {}", level.unsigned_abs()).into_bytes();
    match (NAMED.load(Relaxed), level) {
        (true, 1) => drop(text_at(label).map(|name| begin(&name))),
        (true, -1) => drop(text_at(label).map(|name| end(&name))),
        (false, 0) => pause(true),
        (false, 1) => pause(false),
        (_, _) if level >= FIRST_NUMBER => begin(&number()),
        (_, _) if level <= -FIRST_NUMBER => end(&number()),
        _ => {}
    }
}

/// Of a thread that may not be in MPI now it is no word of the rank's.
fn pause(paused: bool) {
    if lock::is_open_to_this_thread() {
        let (_inside, endpoint) = (lock::enter(), endpoint());
        recording::pause(&endpoint.node, endpoint.me, paused);
    }
}

/// A text that may not be there: what lies at an address up to a zero byte, read by the kernel, page by page.
fn text_at(address: *const c_char) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    while text.len() < LONGEST {
        let mut piece = [0u8; 256];
        let from = address.addr().checked_add(text.len()).filter(|from| *from != 0)?;
        let len = piece.len().min(4096 - from % 4096);
        let local = libc::iovec { iov_base: piece.as_mut_ptr().cast(), iov_len: len };
        let remote = libc::iovec { iov_base: from as *mut c_void, iov_len: len };
        // SAFETY: the kernel checks the address, and writes into the piece only.
        let read = unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
        let read = usize::try_from(read).ok().filter(|read| *read > 0)?;
        if let Some(end) = piece[..read].iter().position(|byte| *byte == 0) {
            text.extend(&piece[..end]);
            return (!text.is_empty()).then_some(text);
        }
        text.extend(&piece[..read]);
    }
    text.truncate(LONGEST);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CString;

    #[test]
    fn a_text_that_is_not_there_is_none() {
        let text = |bytes: &[u8]| {
            let text = CString::new(bytes).unwrap();
            text_at(text.as_ptr())
        };
        assert_eq!(text(b"solve").as_deref(), Some(&b"solve"[..]));
        assert_eq!(text(&[b'x'; 700]).map(|text| text.len()), Some(700));
        assert_eq!(text(&[b'x'; 70_000]).map(|text| text.len()), Some(4096));
        assert_eq!(text(b""), None);
        for nonsense in [0usize, 1, 5, 0xdead_beef_0000, usize::MAX, usize::MAX - 4095] {
            assert_eq!(text_at(nonsense as *const c_char), None, "{nonsense:#x}");
        }
    }
}
