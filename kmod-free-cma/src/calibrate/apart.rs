//! What the two ways cost between two cores, which may be far from each other: a message that one has just written is read by the other, there and back.
//!
//! Two threads stand for the two processes. Each writes its message anew before it sends, as programs do: then the lines of the message, or of the
//! block through which it goes, have to be taken back from the other core, and that is most of the cost where the cores share no cache.

use super::{Point, read_self};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Message sizes measured, bytes.
pub const SIZES_BYTES: [usize; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
const LARGEST_BYTES: usize = SIZES_BYTES[SIZES_BYTES.len() - 1];
/// Time given to each size and way.
const SLICE: Duration = Duration::from_micros(250);
/// The other core may be another program's: then there is no answer.
const PATIENCE: Duration = Duration::from_millis(10);
const LINE_BYTES: usize = 64;

#[derive(Copy, Clone, PartialEq, Eq)]
enum Way {
    /// Through a block of memory that both may read and write.
    TwoCopies,
    /// By the kernel.
    OneCopy,
}

/// One of the two: its messages, and the block through which it sends.
#[derive(Copy, Clone)]
struct Side {
    source: *mut u8,
    target: *mut u8,
    block: *mut u8,
}

/// Between the two. Whose turn it is uses all of the memory, and nobody else.
struct Table {
    /// Odd: the second one's.
    turn: AtomicU32,
    bytes: AtomicU32,
    one_copy: AtomicBool,
    ended: AtomicBool,
    sides: [Side; 2],
}

#[allow(unsafe_code)]
// SAFETY: the memory outlives the threads, of which one at a time uses it.
unsafe impl Sync for Table {}

/// Measure on these two cpus; takes about 3 ms. `None` where the other does not answer in time. `cma_ns` is 0 where the kernel refuses.
pub(super) fn measure(cpus: [u32; 2]) -> Option<[Point; SIZES_BYTES.len()]> {
    let mut memory = [(); 6].map(|()| vec![1u8; LARGEST_BYTES]);
    let [a, b, c, d, e, f] = memory.each_mut().map(|part| part.as_mut_ptr());
    let sides = [Side { source: a, target: b, block: c }, Side { source: d, target: e, block: f }];
    let table = Table {
        turn: AtomicU32::new(0),
        bytes: AtomicU32::new(0),
        one_copy: AtomicBool::new(false),
        ended: AtomicBool::new(false),
        sides,
    };
    thread::scope(|scope| {
        // `None` where the user may have no more threads.
        let start = |work| thread::Builder::new().spawn_scoped(scope, work).ok();
        let table = &table;
        let second = start(Box::new(move || table.answer(cpus[1])) as Box<dyn FnOnce() -> Option<_> + Send>)?;
        let first = start(Box::new(move || table.ask(cpus[0])));
        let points = first.and_then(|first| first.join().ok()?);
        table.ended.store(true, Ordering::SeqCst);
        second.join().ok()?;
        points
    })
}

fn pin(cpu: u32) -> Option<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize).ok()?;
    sched_setaffinity(Pid::from_raw(0), &set).ok()
}

impl Table {
    fn ask(&self, cpu: u32) -> Option<[Point; SIZES_BYTES.len()]> {
        pin(cpu)?;
        let mut points = SIZES_BYTES.map(|bytes| Point { bytes: bytes as u64, ..Point::default() });
        for point in &mut points {
            point.memcpy_ns = self.fastest_ns(point.bytes as usize, Way::TwoCopies)?.div_ceil(2);
            point.cma_ns = self.fastest_ns(point.bytes as usize, Way::OneCopy)?;
        }
        Some(points)
    }

    /// The fastest of the messages one way; 0 if the kernel refuses to copy.
    fn fastest_ns(&self, bytes: usize, way: Way) -> Option<u64> {
        self.bytes.store(bytes as u32, Ordering::Relaxed);
        self.one_copy.store(way == Way::OneCopy, Ordering::Relaxed);
        let (begin, mut best) = (Instant::now(), u64::MAX);
        while begin.elapsed() < SLICE {
            let start = Instant::now();
            self.send(0, bytes, way);
            let turn = self.turn.load(Ordering::Relaxed);
            self.turn.store(turn + 1, Ordering::Release);
            self.await_turn(|now| now == turn + 2)?;
            if !self.receive(0, bytes, way) {
                return Some(0);
            }
            best = best.min(start.elapsed().as_nanos() as u64 / 2);
        }
        Some(best)
    }

    fn answer(&self, cpu: u32) -> Option<[Point; SIZES_BYTES.len()]> {
        pin(cpu)?;
        loop {
            self.await_turn(|turn| turn % 2 == 1)?;
            let bytes = self.bytes.load(Ordering::Relaxed) as usize;
            let way = if self.one_copy.load(Ordering::Relaxed) { Way::OneCopy } else { Way::TwoCopies };
            self.receive(1, bytes, way);
            self.send(1, bytes, way);
            self.turn.fetch_add(1, Ordering::Release);
        }
    }

    /// `None`: it has not come in time, or all is over.
    fn await_turn(&self, mine: impl Fn(u32) -> bool) -> Option<()> {
        let start = Instant::now();
        loop {
            for _ in 0..256 {
                if mine(self.turn.load(Ordering::Acquire)) {
                    return Some(());
                }
                std::hint::spin_loop();
            }
            if self.ended.load(Ordering::Relaxed) || start.elapsed() > PATIENCE {
                return None;
            }
            thread::yield_now();
        }
    }

    /// Write a message, and put it where the other one finds it.
    #[allow(unsafe_code)]
    fn send(&self, me: usize, bytes: usize, way: Way) {
        let Side { source, block, .. } = self.sides[me];
        for at in (0..bytes).step_by(LINE_BYTES) {
            // SAFETY: inside the buffer; it is this side's turn.
            unsafe { source.add(at).write_volatile(at as u8) };
        }
        if way == Way::TwoCopies {
            // SAFETY: two buffers, neither shorter.
            unsafe { std::ptr::copy_nonoverlapping(source, block, bytes) };
        }
    }

    /// Take the message that the other one has sent. False if the kernel refuses.
    #[allow(unsafe_code)]
    fn receive(&self, me: usize, bytes: usize, way: Way) -> bool {
        let (from, target) = (self.sides[1 - me], self.sides[me].target);
        let from = if way == Way::OneCopy { from.source } else { from.block };
        // SAFETY: two buffers, neither shorter; it is this side's turn.
        let (message, target) =
            unsafe { (std::slice::from_raw_parts(from, bytes), std::slice::from_raw_parts_mut(target, bytes)) };
        if way == Way::OneCopy {
            return read_self(message, target);
        }
        target.copy_from_slice(message);
        std::hint::black_box(target);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_cpus_have_costs() {
        let cpus: Vec<u32> = (0..CpuSet::count() as u32)
            .filter(|cpu| nix::sched::sched_getaffinity(Pid::from_raw(0)).unwrap().is_set(*cpu as usize).unwrap())
            .collect();
        let [first, .., last] = cpus[..] else { return };
        // Another program may have one of them for long.
        let points = (0..20).find_map(|_| measure([first, last])).expect("20 times no answer in time");
        println!("{points:#?}");
        for point in points {
            assert!(point.memcpy_ns > 10 && point.cma_ns > 100 || point.cma_ns == 0, "{points:?}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_has_none() {
        assert_eq!(measure([0, CpuSet::count() as u32]), None);
    }
}
