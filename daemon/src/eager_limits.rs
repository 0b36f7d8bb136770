//! Up to which size messages of a job are copied twice, through shared memory: what copies cost when the daemon started, and how the job's ranks share cores.

use std::time::Duration;

use vmpi_cma::Calibration;
use vmpi_shared::cpu_cache;
use vmpi_shared::matching::queues::LARGE_BYTES;
use vmpi_shared::mem::slab::{LARGEST_BYTES, PART_BYTES};

/// Below, the rendezvous costs more than any copy.
const LEAST_BYTES: u64 = LARGE_BYTES;
/// To another core at most, where each rank has one of its own: a message that has not been written anew is still in the receiver's cache when it comes once
/// more, and only the kernel's copy leaves it there.
const ALONE_MAX_BYTES: u64 = 32768;
/// To another core, where calibration has not found out what that costs.
const USUAL_BYTES: u64 = 16384;
/// Within a core, also where many ranks share it.
const NEAR_LEAST_BYTES: u64 = 131_072;
/// Out of memory that is laid open, to another core, where calibration has not found out what that costs.
const USUAL_OPEN_BYTES: u64 = 8192;
/// To other nodes, if ranks make the progress: above, messages take a handshake, in which the sender has a part.
const FAR_BY_RANK_BYTES: u64 = 16384;

/// How a job's ranks share the cores of this node.
pub struct Sharing {
    /// Ranks of a core.
    pub v: u32,
    /// Are there more ranks than cores?
    pub shared: bool,
    /// The smallest second-level cache of a core.
    pub cache_bytes: u64,
}

impl Sharing {
    /// What it takes longer that the sender is needed once more, and what is copied twice at most.
    fn turn(&self, hand_over: Option<Duration>) -> (Duration, u64) {
        if self.shared { (hand_over.unwrap_or_default(), PART_BYTES) } else { (Duration::ZERO, ALONE_MAX_BYTES) }
    }
}

/// The second-level caches of these cpus, the smallest one; 1 MiB if the kernel does not tell.
pub fn cache_bytes(cpus: &[u32]) -> u64 {
    cpus.iter().filter_map(|cpu| cpu_cache::bytes(*cpu, 2)).min().unwrap_or(1 << 20)
}

fn within_core(calibration: &Calibration, most: u64) -> u32 {
    calibration.eager_limit_bytes.clamp(LEAST_BYTES, most) as u32
}

/// Between ranks of one core. Calibration times one message in a cache that it has for itself: where each rank has one under way, all of them are to find room there,
/// or the second copy comes from farther away than the kernel's only one.
pub fn near_bytes(calibration: &Calibration, sharing: &Sharing) -> u32 {
    let room = sharing.cache_bytes / u64::from(sharing.v.max(1));
    within_core(calibration, room.clamp(NEAR_LEAST_BYTES, LARGEST_BYTES))
}

/// To ranks of another core. A handshake needs the sender once more: where ranks share cores that is a turn of it.
pub fn apart_bytes(calibration: &Calibration, sharing: &Sharing, hand_over: Option<Duration>) -> u32 {
    let (turn, most) = sharing.turn(hand_over);
    match calibration.apart_limit_bytes(turn) {
        Some(limit) => limit.clamp(LEAST_BYTES, most) as u32,
        None => within_core(calibration, USUAL_BYTES),
    }
}

/// Out of memory that is laid open. Where ranks share cores the sender, too, has to say when it has been read: a turn of it.
pub fn open_bytes(calibration: &Calibration, sharing: &Sharing, hand_over: Option<Duration>) -> u32 {
    let (turn, most) = sharing.turn(hand_over);
    let limit = calibration.open_limit_bytes(!sharing.shared, turn);
    let usual = if sharing.shared { most } else { USUAL_OPEN_BYTES };
    limit.unwrap_or(usual).clamp(LEAST_BYTES, most) as u32
}

/// To ranks of other nodes, where ranks make the progress.
pub fn far_by_rank_bytes(calibration: &Calibration) -> u32 {
    within_core(calibration, FAR_BY_RANK_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_cma::calibrate::Point;

    /// Two copies always win within a core; between two cores up to 10,000 bytes, and with 2 us more for the other way up to 30,000.
    fn calibration() -> Calibration {
        let point = |bytes: u64| Point { bytes, cma_ns: 1000 + bytes / 10, memcpy_ns: bytes / 10 };
        let apart = [1 << 10, 32 << 10, 64 << 10].map(point).to_vec();
        Calibration { eager_limit_bytes: LARGEST_BYTES, apart, ..vmpi_cma::calibrate(&[]) }
    }

    fn sharing(v: u32) -> Sharing {
        Sharing { v, shared: v > 1, cache_bytes: 1 << 20 }
    }

    #[test]
    fn what_is_under_way_on_a_core_fits_its_cache() {
        let near_kib = |cache_kib: u64, v| {
            near_bytes(&calibration(), &Sharing { cache_bytes: cache_kib << 10, ..sharing(v) }) >> 10
        };
        assert_eq!([1, 2, 3, 4, 8, 64].map(|v| near_kib(1024, v)), [512, 512, 341, 256, 128, 128]);
        assert_eq!([0, 1, 2, 4].map(|v| near_kib(256, v)), [256, 256, 128, 128]);
        let slow_copies = Calibration { eager_limit_bytes: 20_000, ..calibration() };
        assert_eq!(near_bytes(&slow_copies, &sharing(2)), 20_000);
        assert_eq!(cache_bytes(&[]), 1 << 20);
    }

    #[test]
    fn what_lies_open_is_copied_once_from_where_the_questions_pay() {
        let open = |v, question_ns, us| {
            let calibration = Calibration { question_ns, ..calibration() };
            open_bytes(&calibration, &sharing(v), Some(Duration::from_micros(us)))
        };
        assert!((9_500..10_500).contains(&open(1, 1000, 9)), "nobody takes turns: {}", open(1, 1000, 9));
        assert_eq!(open(1, 0, 0), USUAL_OPEN_BYTES as u32);
        assert_eq!((open(1, 10, 0), open(1, 90_000, 0)), (LEAST_BYTES as u32, ALONE_MAX_BYTES as u32));
        assert_eq!((open(2, 0, 2), open(2, 500, 1000)), (PART_BYTES as u32, PART_BYTES as u32));
    }

    #[test]
    fn a_turn_of_the_sender_counts_where_cores_are_shared() {
        let apart = |v, us| apart_bytes(&calibration(), &sharing(v), Some(Duration::from_micros(us)));
        assert!((9_000..11_000).contains(&apart(1, 2)), "{}", apart(1, 2));
        assert!((29_000..31_000).contains(&apart(2, 2)), "{}", apart(2, 2));
        assert_eq!(apart(2, 1000), PART_BYTES as u32);
        assert_eq!(apart_bytes(&calibration(), &sharing(2), None), apart(1, 0));
        let unknown = Calibration { apart: Vec::new(), ..calibration() };
        assert_eq!(apart_bytes(&unknown, &sharing(2), None), USUAL_BYTES as u32);
    }
}
