//! Does a process spin? Seen from outside: the kernel samples the registers of its threads and the top of their stacks while they use the CPU (perf_event_open(2), the
//! software clock, which virtual machines have, too), for a few milliseconds and only on suspicion.
//!
//! Who waits for a word of memory goes round a few instructions, and each time registers and variables are the same there: the samples hold a handful of states again and
//! again. Who computes counts, adds or walks through memory, so hardly any state is seen twice. (Without the stack a loop compiled without optimization, whose counter lies
//! there, looked like a spin. What such a loop in a function that calls none keeps below the stack pointer is not seen.) What a spin that counts its rounds or asks for the time does looks like work,
//! and is taken for that.
#![allow(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use vmpi_shared::perf_event::{Attributes, EXCLUDE_HYPERVISOR, EXCLUDE_KERNEL, SOFTWARE, TASK_CLOCK};
use vmpi_shared::proc;

/// What a thread's samples, of so much CPU time each, say about it.
const PERIOD: Duration = Duration::from_micros(50);
/// So many are enough to judge a process by; of a thread no more fit.
const ENOUGH: usize = 40;
/// Fewer say nothing.
const LEAST: usize = 12;
/// Of so many samples at most one may be of a state that was not seen before.
const REPEATS: usize = 3;
/// So many of one thread, most of them of different states, show that it works.
const LEAST_WORK: usize = 8;
/// After so long the verdict is what there is.
const PATIENCE: Duration = Duration::from_millis(20);
const MOST_THREADS: usize = 16;

const PAGE: usize = 4096;
/// Room for `ENOUGH` samples: a power of two of pages.
const DATA: usize = 8 * PAGE;
/// So much of a stack, from its pointer on.
const STACK_BYTES: u32 = 512;
/// Where `struct perf_event_mmap_page` has `data_head`.
const HEAD_AT: usize = 1024;

const SAMPLE_IP: u64 = 1;
const SAMPLE_REGISTERS: u64 = 1 << 12;
const SAMPLE_STACK: u64 = 1 << 13;
const RECORD_SAMPLE: u32 = 9;

/// The general registers and the program counter, by the kernel's numbers; without flags and segments.
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 0xff | 1 << 8 | 0xff << 16;
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = (1 << 33) - 1;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const REGISTERS: u64 = 0;

/// What the samples of a process say.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Too few by now.
    Pending,
    Spins,
    Works,
    /// It hardly had the CPU.
    Nothing,
}

/// A thread under observation.
struct Thread {
    ring: NonNull<u8>,
    _event: OwnedFd,
}

// SAFETY: the mapping is this value's alone.
unsafe impl Send for Thread {}

impl Thread {
    fn observe(thread: i32) -> io::Result<Thread> {
        if REGISTERS == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let attributes = Attributes {
            kind: SOFTWARE,
            number: TASK_CLOCK,
            period: PERIOD.as_nanos() as u64,
            sample_type: SAMPLE_IP | SAMPLE_REGISTERS | SAMPLE_STACK,
            flags: EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR,
            registers: REGISTERS,
            stack: STACK_BYTES,
            ..Attributes::default()
        };
        let event = attributes.open(thread)?;
        // SAFETY: a new mapping of that descriptor.
        let at = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), PAGE + DATA, access, libc::MAP_SHARED, event.as_raw_fd(), 0)
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let ring = NonNull::new(at.cast()).ok_or_else(io::Error::last_os_error)?;
        Ok(Thread { ring, _event: event })
    }

    /// The states that were sampled, as numbers. As nobody takes records out, the kernel stops at the end of the ring.
    fn states(&self) -> Vec<u64> {
        // SAFETY: inside the mapping, aligned; the kernel writes it, and what is before it is written by then.
        let head = unsafe { &*self.ring.add(HEAD_AT).cast::<AtomicU64>().as_ptr() }.load(Ordering::Acquire);
        // SAFETY: inside the mapping; records up to `head` are not written any more.
        let data = unsafe { std::slice::from_raw_parts(self.ring.as_ptr().add(PAGE), DATA.min(head as usize)) };
        let mut states = Vec::new();
        let mut rest = data;
        while let Some((header, _)) = rest.split_first_chunk::<8>() {
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            let (Some(record), true) = (rest.get(8..size), size > 8) else { break };
            if kind == RECORD_SAMPLE {
                let mut state = DefaultHasher::new();
                record.hash(&mut state);
                states.push(state.finish());
            }
            rest = &rest[size..];
        }
        states
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: mapped by `observe`, and nobody has a reference into it.
        unsafe { libc::munmap(self.ring.as_ptr().cast(), PAGE + DATA) };
    }
}

fn different(states: &[u64]) -> usize {
    states.iter().collect::<BTreeSet<_>>().len()
}

/// What a process does of whose threads these samples are. While one works it works, whatever the others wait for.
fn judge(threads: &[Vec<u64>]) -> Seen {
    let works = |states: &Vec<u64>| states.len() >= LEAST_WORK && different(states) * 2 > states.len();
    let all = threads.concat();
    if threads.iter().any(works) {
        Seen::Works
    } else if all.len() < LEAST {
        Seen::Nothing
    } else if different(&all) * REPEATS <= all.len() {
        Seen::Spins
    } else {
        Seen::Works
    }
}

/// The threads of a process that have, or wait for, a CPU.
fn awake_threads(pid: i32) -> Vec<i32> {
    let Some(seen) = proc::seen_as(pid) else { return Vec::new() };
    let threads = fs::read_dir(format!("/proc/{seen}/task")).into_iter().flatten().flatten();
    let awake = threads.filter_map(|thread| {
        let name = thread.file_name();
        let stat = fs::read_to_string(thread.path().join("stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        rest.starts_with('R').then(|| proc::pid_of(&format!("{seen}/task/{}", name.to_str()?)))?
    });
    awake.take(MOST_THREADS).collect()
}

struct Sample {
    threads: Vec<Thread>,
    begun: Instant,
}

/// The ranks under observation.
#[derive(Default)]
pub struct Sampler {
    samples: BTreeMap<u32, Sample>,
}

impl Sampler {
    /// Observe process `pid`, which is `rank`. False if the kernel does not permit it.
    pub fn begin(&mut self, rank: u32, pid: i32, now: Instant) -> bool {
        let mut threads = Vec::new();
        for thread in awake_threads(pid) {
            match Thread::observe(thread) {
                Ok(thread) => threads.push(thread),
                // It has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                Err(_) => return false,
            }
        }
        self.samples.insert(rank, Sample { threads, begun: now });
        true
    }

    /// What is seen of it by now; with a verdict the observation ends.
    pub fn look(&mut self, rank: u32, now: Instant) -> Seen {
        let Some(sample) = self.samples.get(&rank) else { return Seen::Nothing };
        let states: Vec<_> = sample.threads.iter().map(Thread::states).collect();
        let count: usize = states.iter().map(Vec::len).sum();
        if count < ENOUGH && now.duration_since(sample.begun) < PATIENCE {
            return Seen::Pending;
        }
        self.samples.remove(&rank);
        judge(&states)
    }
}

#[cfg(test)]
/// May this process sample its own and its user's processes?
fn is_permitted() -> bool {
    Thread::observe(0).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn few_states_again_and_again_are_a_spin() {
        let few: Vec<u64> = (0..40).map(|n| n % 5).collect();
        let many: Vec<u64> = (0..40).map(|n| n * 2 / 3).collect();
        assert_eq!(judge(std::slice::from_ref(&few)), Seen::Spins);
        assert_eq!(judge(std::slice::from_ref(&many)), Seen::Works);
        assert_eq!(judge(&[few[..LEAST - 1].to_vec()]), Seen::Nothing);
        // Workers that wait for the one that works; threads each of which had the CPU for a moment.
        assert_eq!(judge(&[few.clone(), few.clone(), few.clone(), many[..16].to_vec()]), Seen::Works);
        assert_eq!(judge(&vec![few[..5].to_vec(); 4]), Seen::Spins);
    }

    /// A thread of this process, observed as if it were another one.
    fn observe(work: impl Fn(&AtomicBool) + Sync) -> Seen {
        let (end, thread) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                thread.store(nix::unistd::gettid().as_raw() as u64, Relaxed);
                work(&end);
            });
            while thread.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            let observed = Thread::observe(thread.load(Relaxed) as i32).expect("permitted");
            let deadline = Instant::now() + Duration::from_secs(20);
            while observed.states().len() < ENOUGH && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            end.store(true, Relaxed);
            judge(&[observed.states()])
        })
    }

    #[test]
    fn a_spin_is_told_from_work() {
        if !is_permitted() {
            eprintln!("skipped: this machine does not permit perf_event_open");
            return;
        }
        let spins = observe(|end| while !end.load(Relaxed) {});
        assert_eq!(spins, Seen::Spins);
        let paused = observe(|end| {
            while !end.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        assert_eq!(paused, Seen::Spins);
        let adds = observe(|end| {
            let numbers: Vec<f64> = (0..100_000).map(f64::from).collect();
            let mut sum = 0.0;
            while !end.load(Relaxed) {
                sum += numbers.iter().map(|x| x * 1.5).sum::<f64>();
            }
            std::hint::black_box(sum);
        });
        assert_eq!(adds, Seen::Works);
        // A counter in memory, as without optimization.
        let counts = observe(|end| {
            let mut count = 0_u64;
            while !end.load(Relaxed) {
                // SAFETY: a variable of this function.
                unsafe { std::ptr::write_volatile(&raw mut count, count + 1) };
                std::hint::black_box(&mut count);
            }
        });
        assert_eq!(counts, Seen::Works);
        let asks_the_time = observe(|end| while !end.load(Relaxed) && Instant::now().elapsed().as_secs() < 5 {});
        assert_eq!(asks_the_time, Seen::Works);
    }
}
