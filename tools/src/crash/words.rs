//! Bad ends in words.

use super::foremost;
use crate::cpus::format_list;
use crate::outcome::signal_name;
use crate::stack::{self, MOST_FRAMES};
use std::collections::HashMap;
use vmpi_shared::crash::{Crash, OnCrash, Place, Way};
use vmpi_shared::escape;

/// A fault so near to the stack's end is one of the stack.
const NEAR_STACK: u64 = 64 << 10;

// si_code of sigaction(2).
const MAPERR: i32 = 1;
const ACCERR: i32 = 2;

/// Is this a fault at the end of the thread's stack?
pub(super) fn is_stack_used_up(way: Way, address: u64, sp: u64) -> bool {
    let fault = matches!(way, Way::Signal { signal: libc::SIGSEGV, code: MAPERR | ACCERR });
    fault && address.abs_diff(sp) < NEAR_STACK
}

/// The address of a fault, or who has sent the signal; 0: neither.
pub(super) fn told_address(way: Way, address: u64, pid: i32) -> u64 {
    match way {
        Way::Signal { code: ..=0, .. } if address == pid as u64 => 0,
        Way::Signal { signal: libc::SIGSEGV | libc::SIGBUS, .. } | Way::Signal { code: ..=0, .. } => address,
        _ => 0,
    }
}

/// Why the kernel or a process has sent this signal; empty: the signal says it.
fn reason(signal: i32, code: i32, address: u64) -> String {
    match (signal, code) {
        (_, ..=0) if address != 0 => format!("sent by process {address}"),
        (libc::SIGSEGV, MAPERR) if address < 4096 => format!("a null pointer: address {address:#x}"),
        (libc::SIGSEGV, MAPERR) => format!("nothing is mapped at address {address:#x}"),
        (libc::SIGSEGV, ACCERR) => format!("the memory at address {address:#x} is protected"),
        (libc::SIGSEGV, 128) => "an address that no process can have".into(),
        (libc::SIGBUS, 1) => "an address that is not aligned".into(),
        (libc::SIGBUS, 2) => format!(
            "the file that is mapped at address {address:#x} is too short, or its file system (/dev/shm, huge pages) is full"
        ),
        (libc::SIGFPE, 1) => "an integer divided by zero".into(),
        (libc::SIGFPE, 2) => "an integer overflow".into(),
        (libc::SIGFPE, 3) => "a floating-point number divided by zero".into(),
        (libc::SIGFPE, 4) => "a floating-point overflow".into(),
        (libc::SIGFPE, 5) => "a floating-point underflow".into(),
        (libc::SIGFPE, 6) => "an inexact floating-point result".into(),
        (libc::SIGFPE, 7) => "an invalid floating-point operation".into(),
        _ => String::new(),
    }
}

/// `at crunch.c:7 (crunch)`, or `calling MPI_Send at pair.c:7 (main)`: where a rank was.
pub fn place_of(crash: &Crash) -> Option<String> {
    let frame = foremost(&crash.frames)?;
    let called = crash.frames.first().filter(|first| first.in_vmpi && first.function != "?");
    let at = |frame: &Place| match &frame.function[..] {
        "?" => format!("at {}", frame.at),
        function => format!("at {} ({function})", frame.at),
    };
    Some(match called {
        Some(call) if frame.in_vmpi => match crash.frames.iter().find(|frame| !frame.in_vmpi) {
            Some(caller) => format!("calling {} {}", call.function, at(caller)),
            None => format!("in {}", call.function),
        },
        Some(call) => format!("calling {} {}", call.function, at(frame)),
        None => at(frame),
    })
}

/// Ranks that ended alike.
struct Alike<'a> {
    first: &'a Crash,
    all: Vec<&'a Crash>,
}

fn alike(list: &[Crash]) -> Vec<Alike<'_>> {
    let mut groups: Vec<Alike> = Vec::new();
    let mut known = HashMap::new();
    for crash in list {
        let way = format!("{:?} {}", crash.way, crash.stack_used_up);
        let key = (way, crash.thread.is_some(), crash.frames.clone(), crash.error.clone());
        let at = *known.entry(key).or_insert_with(|| {
            groups.push(Alike { first: crash, all: Vec::new() });
            groups.len() - 1
        });
        groups[at].all.push(crash);
    }
    groups
}

/// `rank 3 (pid 4711)`, `rank 3 (pid 4711, node b, thread 4713 (omp))`, `ranks 0-3`.
fn who(group: &Alike) -> String {
    match &group.all[..] {
        [one] => {
            let node = if one.node.is_empty() { String::new() } else { format!(", node {}", one.node) };
            let thread =
                one.thread.as_ref().map_or(String::new(), |thread| format!(", thread {}", escape::word(thread)));
            format!("rank {} (pid {}{node}{thread})", one.rank, one.pid)
        }
        many => {
            let mut ranks: Vec<u32> = many.iter().map(|crash| crash.rank).collect();
            ranks.sort_unstable();
            ranks.dedup();
            format!("ranks {}", format_list(&ranks))
        }
    }
}

/// What has happened to them.
fn what(group: &Alike) -> String {
    let same = group.all.iter().all(|crash| crash.address == group.first.address);
    match group.first.way {
        Way::Signal { signal, code } => {
            let reason = match group.first.stack_used_up {
                true => "its stack is used up (a deep recursion, or large local arrays: ulimit -s)".into(),
                false if same => reason(signal, code, group.first.address),
                false => String::new(),
            };
            let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
            format!("got signal {}{reason}", signal_name(signal))
        }
        Way::Exit { code } => format!("called exit with code {code} before MPI_Finalize"),
        Way::Abort { code } => match group.first.frames.first() {
            Some(call) if call.in_vmpi && call.function != "?" => {
                format!("ended the job in {} with code {code}", call.function)
            }
            _ => format!("ended the job with code {code}"),
        },
    }
}

/// A paragraph for each kind of end.
pub fn text(list: &[Crash], choice: OnCrash) -> String {
    let mut text = String::new();
    for group in alike(list) {
        let crash = group.first;
        let head = format!("{} {}", who(&group), what(&group));
        match &crash.error {
            Some(error) => text.push_str(&format!("vmpirun: {head}; no call stack: {error}\n")),
            None => text.push_str(&format!("vmpirun: {head}, here:\n{}", stack::lines(&crash.frames))),
        }
        if crash.frames.len() >= MOST_FRAMES {
            text.push_str("  ... and deeper\n");
        }
        if choice == OnCrash::Gdb {
            let attach: Vec<String> = group.all.iter().take(4).map(|crash| format!("gdb -p {}", crash.pid)).collect();
            let node = if crash.node.is_empty() { String::new() } else { format!(" on node {}", crash.node) };
            text.push_str(&format!(
                "vmpirun: it stays as it is for a debugger: {}{node}   (Ctrl-C here ends the job)\n",
                attach.join(", ")
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, at: &str) -> Place {
        let (in_vmpi, in_source) = (at.is_empty(), at.contains(".c:"));
        Place { function: function.into(), at: at.into(), in_vmpi, in_source }
    }

    fn crash(rank: u32, way: Way, address: u64, frames: &[(&str, &str)]) -> Crash {
        let frames = frames.iter().map(|(function, at)| frame(function, at)).collect();
        let pid = 100 + rank as i32;
        let (node, stack_used_up) = (String::new(), false);
        Crash { rank, pid, thread: None, way, address, stack_used_up, frames, error: None, node }
    }

    #[test]
    fn the_same_stack_is_told_once() {
        let way = Way::Signal { signal: libc::SIGSEGV, code: MAPERR };
        let frames = [("crunch", "a.c:7"), ("main", "a.c:20")];
        let list = [0, 1, 3].map(|rank| crash(rank, way, 0x10, &frames));
        let text = text(&list, OnCrash::Stack);
        let head = "vmpirun: ranks 0-1,3 got signal 11 (SIGSEGV, invalid memory reference): a null pointer: address 0x10, here:\n";
        assert_eq!(text, format!("{head}  #0  crunch at a.c:7\n  #1  main at a.c:20\n"));
    }

    #[test]
    fn a_call_of_mpi_is_named_with_its_place() {
        let way = Way::Abort { code: 6 };
        let in_send = crash(2, way, 0, &[("MPI_Send", ""), ("pair", "a.c:9"), ("main", "a.c:20")]);
        assert_eq!(place_of(&in_send).unwrap(), "calling MPI_Send at a.c:9 (pair)");
        let stripped = crash(2, way, 0, &[("MPI_Send", ""), ("?", "a.out+0x12")]);
        assert_eq!(place_of(&stripped).unwrap(), "calling MPI_Send at a.out+0x12");
        let failed =
            crash(0, Way::Signal { signal: 6, code: -6 }, 0, &[("abort", "libc.so.6+0x2"), ("check", "a.c:3")]);
        assert_eq!(place_of(&failed).unwrap(), "at a.c:3 (check)");
        let text = text(&[in_send], OnCrash::Gdb);
        assert!(text.starts_with("vmpirun: rank 2 (pid 102) ended the job in MPI_Send with code 6, here:\n"), "{text}");
        assert!(text.contains("gdb -p 102"), "{text}");
    }

    #[test]
    fn an_overflow_of_the_stack_is_told_from_other_faults() {
        let way = Way::Signal { signal: libc::SIGSEGV, code: MAPERR };
        assert!(is_stack_used_up(way, 0x7ffc_0000_0008, 0x7ffc_0000_0010));
        assert!(!is_stack_used_up(way, 8, 0x7ffc_0000_0010));
        let sent = |code| Way::Signal { signal: libc::SIGABRT, code };
        assert_eq!((told_address(sent(-6), 100, 100), told_address(sent(0), 100, 7)), (0, 100));
    }
}
