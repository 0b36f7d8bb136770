//! Which way to move bytes is cheapest at which size: measured, within about 15 ms, without a second process.
//!
//! `process_vm_readv` on oneself takes the kernel's whole road (look up the task, check access, pin pages, copy), so no fork
//! is needed to know its cost. The memory read is touched before; the source of each copy is as warm as a message that has
//! just been written.

mod apart;

use crate::{Areas, Block, read};
use std::time::{Duration, Instant};

/// Message sizes measured, bytes.
pub const SIZES_BYTES: [usize; 8] = [64, 1 << 10, 4 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20];
/// Time given to each size and way.
const SLICE: Duration = Duration::from_micros(700);
/// Bounds of the eager limit, bytes: slab blocks larger than the upper one would waste more memory than they save time.
const EAGER_MIN_BYTES: u64 = 1 << 10;
const EAGER_MAX_BYTES: u64 = 512 << 10;

/// One size's cost.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    pub bytes: u64,
    /// One `process_vm_readv`; 0 if it is refused.
    pub cma_ns: u64,
    /// One `memcpy`.
    pub memcpy_ns: u64,
}

/// What the machine showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// Cost of a `process_vm_readv` of a few bytes; 0 if it is refused.
    pub cma_fixed_ns: u64,
    /// Rate of `process_vm_readv` beyond the fixed cost; 0 if it is refused.
    pub cma_bytes_per_us: u64,
    pub memcpy_bytes_per_us: u64,
    /// To ask the kernel what lies at an address; 0 if it does not tell.
    pub question_ns: u64,
    /// Up to this size two copies through shared memory are cheaper than a single copy by the kernel, within one core.
    pub eager_limit_bytes: u64,
    /// The same from one core to another, copied on the way; empty if it could not be measured.
    pub apart: Vec<Point>,
    pub points: [Point; SIZES_BYTES.len()],
}

impl Calibration {
    /// Up to this size two copies are cheaper from one core to another, where the single copy takes `longer`, since it needs the sender once more;
    /// `None` if it could not be measured.
    pub fn apart_limit_bytes(&self, longer: Duration) -> Option<u64> {
        limit_bytes(&self.apart, |point| match point.cma_ns {
            0 => 0,
            cma_ns => cma_ns + longer.as_nanos() as u64,
        })
    }

    /// Up to this size two copies are cheaper than one between mappings, for which both ends ask the kernel whether their buffer is what it was, and which takes `longer`;
    /// within a core or from one core to another, where the receiver asks while the message is on its way. `None` if it could not be measured.
    pub fn open_limit_bytes(&self, apart: bool, longer: Duration) -> Option<u64> {
        let (points, questions) = if apart { (&self.apart[..], 1) } else { (&self.points[..], 2) };
        let more = questions * self.question_ns + longer.as_nanos() as u64;
        if self.question_ns == 0 { None } else { limit_bytes(points, |point| point.memcpy_ns + more) }
    }
}

/// Where two copies begin to cost more than one that takes `single_ns` (0: there is none), within bounds; `None` if nothing has been measured.
fn limit_bytes(points: &[Point], single_ns: impl Fn(&Point) -> u64) -> Option<u64> {
    let points: Vec<Point> = points.iter().map(|point| Point { cma_ns: single_ns(point), ..*point }).collect();
    (!points.is_empty()).then(|| crossing_bytes(&points).clamp(EAGER_MIN_BYTES, EAGER_MAX_BYTES))
}

/// Measure; takes about 12 ms of this thread, and then 3 ms of two more on the first and the last of these cpus.
pub fn calibrate(cpus: &[u32]) -> Calibration {
    let largest = SIZES_BYTES[SIZES_BYTES.len() - 1];
    let source = vec![1u8; largest];
    let mut target = vec![2u8; largest];
    let points = SIZES_BYTES.map(|bytes| {
        let memcpy_ns = fastest_ns(|| {
            target[..bytes].copy_from_slice(std::hint::black_box(&source[..bytes]));
            std::hint::black_box(&target);
            true
        });
        let cma_ns = fastest_ns(|| read_self(&source[..bytes], &mut target[..bytes]));
        Point { bytes: bytes as u64, cma_ns: cma_ns.unwrap_or(0), memcpy_ns: memcpy_ns.unwrap_or(1) }
    });
    let apart = if let [first, .., last] = cpus { apart::measure([*first, *last]) } else { None };
    let areas = Areas::open().ok();
    let question_ns = areas.and_then(|areas| fastest_ns(|| areas.at(source.as_ptr() as u64).is_ok()));
    let apart = apart.map_or_else(Vec::new, Vec::from);
    Calibration { apart, question_ns: question_ns.unwrap_or(0), ..summarize(points) }
}

#[allow(unsafe_code)]
fn read_self(source: &[u8], target: &mut [u8]) -> bool {
    // SAFETY: `target` is borrowed exclusively, and the block describes just it.
    unsafe { read(std::process::id() as i32, &[Block::of(target)], &[Block::of(source)]) }.is_ok()
}

/// The fastest of many repetitions: what the copy costs when nothing disturbs it. `None` if it does not work.
fn fastest_ns(mut once: impl FnMut() -> bool) -> Option<u64> {
    let begin = Instant::now();
    let mut best = u64::MAX;
    loop {
        let start = Instant::now();
        // A clock reading costs as much as a small memcpy, so four copies share one.
        let worked = once() && once() && once() && once();
        let quarter = start.elapsed().as_nanos() as u64 / 4;
        if !worked {
            return None;
        }
        best = best.min(quarter.max(1));
        if begin.elapsed() > SLICE {
            return Some(best);
        }
    }
}

fn summarize(points: [Point; SIZES_BYTES.len()]) -> Calibration {
    let (first, last) = (points[0], points[points.len() - 1]);
    let rate = |ns: u64| ((last.bytes - first.bytes) * 1000).checked_div(ns).unwrap_or(0);
    Calibration {
        cma_fixed_ns: first.cma_ns,
        cma_bytes_per_us: if first.cma_ns == 0 { 0 } else { rate(last.cma_ns.saturating_sub(first.cma_ns).max(1)) },
        memcpy_bytes_per_us: rate(last.memcpy_ns.saturating_sub(first.memcpy_ns).max(1)),
        eager_limit_bytes: crossing_bytes(&points).clamp(EAGER_MIN_BYTES, EAGER_MAX_BYTES),
        points,
        question_ns: 0,
        apart: Vec::new(),
    }
}

/// The size at which a single copy by the kernel begins to cost less than two copies, interpolated between two points.
fn crossing_bytes(points: &[Point]) -> u64 {
    // Positive where two copies are dearer.
    let loss = |p: &Point| 2 * p.memcpy_ns as i64 - p.cma_ns as i64;
    let mut below: Option<&Point> = None;
    for point in points {
        if point.cma_ns == 0 {
            return u64::MAX;
        }
        if loss(point) > 0 {
            let Some(below) = below else { return 0 };
            let (low, high) = (-loss(below) as u64, loss(point) as u64);
            return below.bytes + (point.bytes - below.bytes) * low / (low + high);
        }
        below = Some(point);
    }
    u64::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of plain lines: cost = fixed + bytes / rate.
    fn machine(fixed_ns: u64, cma_bytes_per_us: u64, memcpy_bytes_per_us: u64) -> Calibration {
        let points = SIZES_BYTES.map(|bytes| {
            let ns = |rate: u64| bytes as u64 * 1000 / rate;
            Point { bytes: bytes as u64, cma_ns: fixed_ns + ns(cma_bytes_per_us), memcpy_ns: ns(memcpy_bytes_per_us) }
        });
        Calibration { apart: points.to_vec(), ..summarize(points) }
    }

    #[test]
    fn the_crossing_lies_where_the_lines_meet() {
        // 1000 ns + b/10 = 2 b/10 at b = 10,000 (times in ns, rates in bytes per ns).
        let found = machine(1000, 10_000, 10_000);
        assert!((9_500..10_500).contains(&found.eager_limit_bytes), "{found:?}");
        assert_eq!(found.apart_limit_bytes(Duration::ZERO), Some(found.eager_limit_bytes));
        // 2000 ns + b/10 = 2 b/10 at b = 20,000.
        let later = found.apart_limit_bytes(Duration::from_micros(1)).unwrap();
        assert!((19_000..21_000).contains(&later), "{later}");
        assert!((9_900..10_100).contains(&found.cma_bytes_per_us), "{found:?}");
        assert!((1000..1010).contains(&found.cma_fixed_ns), "{found:?}");
    }

    #[test]
    fn one_copy_between_mappings_pays_for_its_questions() {
        let asks = |question_ns| Calibration { question_ns, ..machine(1000, 10_000, 10_000) };
        assert_eq!(asks(0).open_limit_bytes(false, Duration::ZERO), None, "the kernel does not tell");
        // b/10 + 1000 = 2 b/10 at b = 10,000; with one question less, and 2 us more, at 25,000.
        for (apart, us, least, most) in [(false, 0, 9_900, 10_100), (true, 2, 24_500, 25_500)] {
            let found = asks(500).open_limit_bytes(apart, Duration::from_micros(us)).unwrap();
            assert!((least..most).contains(&found), "{apart} {us} {found}");
        }
        let unknown = Calibration { apart: Vec::new(), ..asks(500) };
        assert_eq!(unknown.open_limit_bytes(true, Duration::ZERO), None);
    }

    #[test]
    fn the_limit_stays_within_bounds() {
        assert_eq!(machine(1, 100_000, 1_000).eager_limit_bytes, EAGER_MIN_BYTES);
        assert_eq!(machine(1_000_000, 1_000, 100_000).eager_limit_bytes, EAGER_MAX_BYTES);
    }

    #[test]
    fn without_cma_everything_up_to_the_bound_is_eager() {
        let points = SIZES_BYTES.map(|b| Point { bytes: b as u64, cma_ns: 0, memcpy_ns: b as u64 / 10 + 1 });
        let refused = summarize(points);
        assert_eq!((refused.cma_fixed_ns, refused.cma_bytes_per_us), (0, 0));
        assert_eq!(refused.eager_limit_bytes, EAGER_MAX_BYTES);
        assert_eq!(refused.apart_limit_bytes(Duration::ZERO), None);
        let refused = Calibration { apart: points.to_vec(), ..refused };
        assert_eq!(refused.apart_limit_bytes(Duration::ZERO), Some(EAGER_MAX_BYTES));
    }

    #[test]
    fn this_machine_has_rates() {
        let found = calibrate(&[]);
        assert_eq!(found.apart_limit_bytes(Duration::ZERO), None, "there is no second core");
        assert!(found.memcpy_bytes_per_us > 0, "{found:?}");
        println!("{found:#?}");
    }
}
