//! Short slices of CPU time for a job of several nodes, so that the kernel lets its carrier run as soon as it wakes up.
//!
//! A carrier shares its CPU with a rank that computes. With the usual slice (1.4 to 3 ms) it waited for 2 to 5 ms after waking up in one of three
//! iterations of `tests/programs/bench/overlap.c`; if both ask for 100 us, in one of ten. Both: if only the carrier does, it gets many turns for each one
//! of a rank that watches beside it by sched_yield, and half the round trip of 8 bytes takes 19 us instead of 8.
//!
//! Ranks that spin get them, too: of sixteen threads of one CPU that wait in a barrier by spinning each kept the CPU for some 3 ms before the next one's turn, kicked or
//! not (`kick`); with slices of 100 us and a kick every 250 us a barrier took 0.45 of that CPU time, with either alone 0.85 and 0.95.
//!
//! What vmpid asks for itself is had by all that it starts, jobs of one node included; so it gives it back after the last job of several nodes.
#![allow(unsafe_code)]

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use vmpi_shared::proc;

/// The shortest that may be asked for.
const SLICE: Duration = Duration::from_micros(100);

/// `struct sched_attr` of sched_setattr(2), as it was first.
#[repr(C)]
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// For ordinary processes: the slice that they ask for, ns.
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl SchedAttr {
    /// Real time of the lowest priority, for this process and not for what it starts.
    pub fn real_time(self) -> SchedAttr {
        let flags = self.flags | libc::SCHED_FLAG_RESET_ON_FORK as u64;
        SchedAttr { policy: libc::SCHED_FIFO as u32, priority: 1, nice: 0, runtime: 0, flags, ..self }
    }
}

/// The slice that this process had before, ns.
static BEFORE: Mutex<Option<u64>> = Mutex::new(None);

/// Ask for this process, and for all that it starts from now on. Kernels before Linux 6.12 take no notice.
pub fn ask_short() {
    let mut before = BEFORE.lock().expect("nobody panics with it");
    if before.is_none()
        && let Some(attributes) = read()
    {
        *before = Some(attributes.runtime);
        let _ = write(&SchedAttr { runtime: SLICE.as_nanos() as u64, ..attributes });
    }
}

/// Ask for the calling thread alone, which starts no process.
pub fn ask_short_for_thread() {
    if let Some(attributes) = read() {
        let _ = write(&SchedAttr { runtime: SLICE.as_nanos() as u64, ..attributes });
    }
}

/// No job of several nodes is left: this process, and what it starts from now on, have what it had before.
pub fn give_back() {
    let before = BEFORE.lock().expect("nobody panics with it").take();
    if let (Some(runtime), Some(attributes)) = (before, read()) {
        let _ = write(&SchedAttr { runtime, ..attributes });
    }
}

/// Ask for all threads of a process, or have them as the kernel has it, unless all of the job's have short ones.
pub fn ask_short_for_process(pid: i32, short: bool) {
    let all_have = BEFORE.lock().expect("nobody panics with it").is_some();
    let Some(seen) = proc::seen_as(pid).filter(|_| !all_have) else { return };
    for thread in std::fs::read_dir(format!("/proc/{seen}/task")).into_iter().flatten().flatten() {
        let name = thread.file_name();
        let id = name.to_str().and_then(|name| proc::pid_of(&format!("{seen}/task/{name}")));
        // One that ends meanwhile needs none.
        if let Some((id, attributes)) = id.and_then(|id| Some((id, read_of(id)?))) {
            let _ = write_of(id, &SchedAttr { runtime: if short { SLICE.as_nanos() as u64 } else { 0 }, ..attributes });
        }
    }
}

/// How this process is scheduled. `None`: somebody has chosen another policy for all of it, and knows why.
pub fn read() -> Option<SchedAttr> {
    read_of(0)
}

fn read_of(thread: i32) -> Option<SchedAttr> {
    let mut attributes = SchedAttr { size: size_of::<SchedAttr>() as u32, ..SchedAttr::default() };
    // SAFETY: the kernel writes as many bytes of the struct as that says it has.
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, thread, &raw mut attributes, attributes.size, 0) };
    (got == 0 && attributes.policy == libc::SCHED_OTHER as u32).then_some(attributes)
}

/// Schedule this process so from now on.
///
/// # Errors
/// Those of sched_setattr(2): EPERM, if it may not ask for that.
pub fn write(attributes: &SchedAttr) -> io::Result<()> {
    write_of(0, attributes)
}

fn write_of(thread: i32, attributes: &SchedAttr) -> io::Result<()> {
    // SAFETY: the kernel reads as many bytes of the struct as that says it has.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, thread, std::ptr::from_ref(attributes), 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice() -> u64 {
        read().expect("an ordinary process").runtime
    }

    /// Asked for by two jobs, given back after the last one.
    #[test]
    fn what_was_before_is_given_back() {
        let usual = slice();
        ask_short();
        let short = slice();
        // An old kernel tells of none.
        assert!(short == SLICE.as_nanos() as u64 || usual == 0 && short == 0, "{usual} {short}");
        ask_short();
        give_back();
        assert_eq!(slice(), usual);
        give_back();
        assert_eq!(slice(), usual);
    }
}
