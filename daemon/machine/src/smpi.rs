//! The model of SimGrid's SMPI (3.32), as measured: factors by size, TCP's window, traffic of acknowledgements, weights.
//!
//! A message of n bytes is p = n + 16 on the wire. It takes L times a latency factor, then p / (x times a bandwidth factor), where L is the
//! sum of its links' latencies and x its share of the links by max-min fairness: at most each link's bandwidth and window / 2L; flows that
//! go the other way count with 5 % of theirs; who has a long way, or slow links, gets less, as 1 / (L + sum of 8775 / bandwidth).

use crate::units::{PS_PER_S, Ps};

/// SMPI's own bytes on each message.
pub const ENVELOPE: u64 = 16;
/// A message of so many bytes or more waits for its receive (smpi/send-is-detached-thresh).
pub const RENDEZVOUS_FROM: u64 = 65536;
/// network/TCP-gamma, bytes.
pub const WINDOW: f64 = 4_194_304.0;
/// network/crosstraffic, in hundredths.
pub const CROSS_TRAFFIC: u32 = 5;
/// network/weight-S, bytes.
pub const WEIGHT: f64 = 8775.0;
/// Of MPI_Wtime (smpi/wtime).
pub const CLOCK_COST: Ps = 10_000;
/// Of the first MPI_Test or MPI_Iprobe (smpi/test, smpi/iprobe); each one that follows in vain costs one more of it.
pub const POLL_COST: Ps = 100_000_000;
/// Of hosts that have no route to themselves, where no `<cluster>` says otherwise.
pub const LOOPBACK_BANDWIDTH: u64 = 10_000_000_000;

/// A packet of more than so many bytes; factor of the latency, of the bandwidth.
const FACTORS: [(u64, f64, f64); 9] = [
    (0, 2.01467, 0.812084),
    (257, 1.95341, 0.338112),
    (732, 1.9503, 0.341987),
    (1426, 1.61075, 0.608902),
    (3484, 1.88101, 0.77493),
    (5776, 2.18796, 1.08739),
    (9376, 2.59299, 0.58729),
    (15424, 3.48845, 0.697866),
    (65472, 11.6436, 0.940694),
];

/// Of latency and bandwidth, for a message with its envelope.
fn factors(packet: u64) -> (f64, f64) {
    let at = FACTORS.partition_point(|(threshold, ..)| packet > *threshold).max(1) - 1;
    (FACTORS[at].1, FACTORS[at].2)
}

/// How long the first byte takes.
pub fn latency(latency: Ps, bytes: u64) -> Ps {
    let (factor, _) = factors(bytes.saturating_add(ENVELOPE));
    (latency as f64 * factor).round() as Ps
}

/// How long the first byte takes at least, of any message.
pub fn least_latency(latency: Ps) -> Ps {
    let least = FACTORS.iter().map(|(_, factor, _)| *factor).fold(f64::INFINITY, f64::min);
    (latency as f64 * least).round() as Ps
}

/// What is drained at the share of the links: bytes over the bandwidth's factor.
pub fn volume(bytes: u64) -> f64 {
    let packet = bytes.saturating_add(ENVELOPE);
    packet as f64 / factors(packet).1
}

/// The most that TCP's window lets through, bytes a second.
pub fn window_bound(latency: Ps) -> f64 {
    if latency == 0 { f64::INFINITY } else { WINDOW * PS_PER_S as f64 / (2.0 * latency as f64) }
}

/// Of one link; they and the latency, in seconds, are what a share is divided by.
pub fn penalty(bandwidth: u64) -> f64 {
    WEIGHT / bandwidth as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_begins_above_its_threshold() {
        assert_eq!(factors(257).0, 2.01467);
        assert_eq!(factors(258).0, 1.95341);
        assert_eq!((factors(0).0, factors(u64::MAX).0), (2.01467, 11.6436));
        // 1410 and 1411 bytes and their envelopes.
        assert_eq!((latency(10_000_000, 1410), latency(10_000_000, 1411)), (19_503_000, 16_107_500));
    }
}
