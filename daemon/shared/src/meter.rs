//! Performance counters of a rank (process-POV) and of its core (core-POV), as the clocks of listings 2 and 3 of the EuroMPI'20 paper have them.
//!
//! The kernel counts for a process while that runs (perf_event_open(2)), so a rank's own counters need no more than to be read. What a core's ranks
//! have counted is added up when a rank leaves its core: all of it, and apart from that what was counted in metered sections
//! (MPIX_Start_processor_timer). Up to [`COUNTERS`] events a job; each costs a system call at every hand-off, so only what was asked for is counted.
//! A rank that loses its core outside MPI counts for the core that it next leaves.

use crate::perf_event::{Attributes, EXCLUDE_HYPERVISOR, EXCLUDE_KERNEL, HARDWARE, INHERIT, SOFTWARE};
use crate::trace::COUNTERS;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Mutex;

/// An event by its name, kind (perf_event_attr.type) and number there.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    pub name: &'static str,
    kind: u32,
    number: u64,
}

const fn event(name: &'static str, kind: u32, number: u64) -> Event {
    Event { name, kind, number }
}

/// What can be counted where the machine can, by the names of perf(1).
pub const EVENTS: &[Event] = &[
    event("cycles", HARDWARE, 0),
    event("instructions", HARDWARE, 1),
    event("cache-references", HARDWARE, 2),
    event("cache-misses", HARDWARE, 3),
    event("branches", HARDWARE, 4),
    event("branch-misses", HARDWARE, 5),
    event("stalled-cycles-frontend", HARDWARE, 7),
    event("stalled-cycles-backend", HARDWARE, 8),
    event("ref-cycles", HARDWARE, 9),
    event("cpu-clock", SOFTWARE, 0),
    event("task-clock", SOFTWARE, 1),
    event("page-faults", SOFTWARE, 2),
    event("context-switches", SOFTWARE, 3),
    event("cpu-migrations", SOFTWARE, 4),
    event("minor-faults", SOFTWARE, 5),
    event("major-faults", SOFTWARE, 6),
];

/// Why a list of events cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum MeterError {
    #[error("`{0}` is no event; known are {list}", list = names(EVENTS.iter()))]
    Unknown(String),
    #[error("at most {COUNTERS} events can be counted, not {0}")]
    TooMany(usize),
    #[error("`{name}` cannot be counted on this machine: {why} (what can: {possible})")]
    Unavailable { name: &'static str, why: String, possible: String },
}

fn names<'a>(events: impl Iterator<Item = &'a Event>) -> String {
    events.map(|event| event.name).collect::<Vec<_>>().join(", ")
}

/// The events of a list with commas.
///
/// # Errors
/// An unknown name, or too many.
pub fn parse(list: &str) -> Result<Vec<&'static Event>, MeterError> {
    let words: Vec<&str> = list.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    if words.len() > COUNTERS {
        return Err(MeterError::TooMany(words.len()));
    }
    let find = |word: &&str| {
        EVENTS.iter().find(|event| event.name == *word).ok_or_else(|| MeterError::Unknown((*word).to_owned()))
    };
    words.iter().map(find).collect()
}

/// Can these be counted here?
///
/// # Errors
/// One cannot, and why.
pub fn check(events: &[&'static Event]) -> Result<(), MeterError> {
    for event in events {
        if let Err(error) = open(event) {
            let why = match error.raw_os_error() {
                Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) if event.kind == HARDWARE => {
                    "the processor's counters are not there, as in most virtual machines".to_owned()
                }
                Some(libc::EACCES | libc::EPERM) => {
                    "the kernel does not permit it (sysctl kernel.perf_event_paranoid; seccomp in containers)"
                        .to_owned()
                }
                _ => error.to_string(),
            };
            let possible = EVENTS.iter().filter(|event| open(event).is_ok());
            let possible = names(possible);
            let possible = if possible.is_empty() { "none".to_owned() } else { possible };
            return Err(MeterError::Unavailable { name: event.name, why, possible });
        }
    }
    Ok(())
}

/// Count for this process, and for threads that it starts from now on. Where the kernel permits no more, what happens in the kernel is left out of
/// those that happen elsewhere, too.
fn open(event: &Event) -> io::Result<File> {
    let try_with = |flags: u64| {
        let attributes =
            Attributes { kind: event.kind, number: event.number, flags: INHERIT | flags, ..Attributes::default() };
        attributes.open(0).map(File::from)
    };
    if event.kind == HARDWARE {
        // As perf's `:u`: what the program does, and the same whoever measures.
        return try_with(EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR);
    }
    match try_with(0) {
        // They happen in the kernel only.
        Err(error) if ["context-switches", "cpu-migrations"].contains(&event.name) => Err(error),
        Err(_) => try_with(EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR),
        good => good,
    }
}

/// This process's counters.
pub(crate) struct Meter {
    inner: Mutex<Inner>,
}

pub(crate) struct Inner {
    files: Vec<File>,
    /// As they stood when they were last added to the core's, and to its metered ones.
    pub(crate) last: [u64; COUNTERS],
    pub(crate) metered: [u64; COUNTERS],
}

impl Inner {
    pub(crate) fn read(&mut self) -> [u64; COUNTERS] {
        let mut values = self.last;
        for (value, file) in values.iter_mut().zip(&mut self.files) {
            let mut word = [0; 8];
            // A counter that cannot be read stays as it was.
            if file.read_exact(&mut word).is_ok() {
                *value = u64::from_ne_bytes(word);
            }
        }
        values
    }
}

impl Meter {
    /// Begin to count.
    ///
    /// # Errors
    /// Those of perf_event_open(2).
    pub(crate) fn begin(events: &[&Event]) -> io::Result<Meter> {
        let files = events.iter().map(|event| open(event)).collect::<io::Result<_>>()?;
        Ok(Meter { inner: Mutex::new(Inner { files, last: [0; COUNTERS], metered: [0; COUNTERS] }) })
    }

    pub(crate) fn inner(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn lists() {
        assert_eq!(names(parse("page-faults, task-clock").unwrap().into_iter()), "page-faults, task-clock");
        assert!(parse("").unwrap().is_empty());
        let why = parse("page-faults,nonsense").unwrap_err().to_string();
        assert!(why.contains("`nonsense` is no event") && why.contains("instructions"), "{why}");
        assert!(parse("cycles,instructions,branches,page-faults").unwrap_err().to_string().contains("not 4"));
    }

    #[test]
    fn a_counter_counts_what_this_process_does() {
        let events = parse("page-faults").unwrap();
        if let Err(error) = check(&events) {
            // A machine without any: then it says so.
            assert!(error.to_string().contains("page-faults"), "{error}");
            return;
        }
        let meter = Meter::begin(&events).unwrap();
        let before = meter.inner().read()[0];
        let mut memory = vec![0u8; 64 << 20];
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        let after = meter.inner().read()[0];
        assert!(std::hint::black_box(&memory)[0] == 1 && after > before, "{before} {after}");
    }
}
