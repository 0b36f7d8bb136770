//! How far a node's clock is from the launcher's: time stamps go to and fro, and the shortest round trip says most.
//!
//! Both ends read CLOCK_BOOTTIME. The node has read its own somewhere between the launcher's two readings, so half the round trip is how far off
//! the estimate can be, however the way there and the way back share it. There is a burst of round trips at the beginning and one at the end,
//! because the clocks of two machines go apart by some microseconds a second.

use vmpi_shared::clock::boottime_ns;

/// Round trips of a burst.
const ROUNDS: u32 = 24;

/// A round trip: the launcher's clock, the node's, the launcher's; nanoseconds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub sent: u64,
    pub there: u64,
    pub received: u64,
}

impl Stamp {
    /// By so much the node's clock is ahead.
    fn offset_ns(&self) -> i64 {
        self.there as i64 - (self.sent + (self.received - self.sent) / 2) as i64
    }

    fn within_ns(&self) -> i64 {
        (self.received - self.sent).div_ceil(2) as i64
    }
}

/// The round trips with a node.
#[derive(Debug, Default)]
pub struct Exchange {
    due: u32,
    /// The number of the question that is to be answered, and when it was asked.
    asked: (u32, u64),
    best: Option<Stamp>,
    /// The best of each burst.
    bursts: Vec<Stamp>,
}

impl Exchange {
    /// Begin a burst; the number of its first question, which is to be asked at once.
    pub fn begin(&mut self) -> u32 {
        self.give_up();
        self.due = ROUNDS;
        self.ask()
    }

    fn ask(&mut self) -> u32 {
        self.asked = (self.asked.0.wrapping_add(1), boottime_ns());
        self.asked.0
    }

    /// The node has answered question `number`; the number of the next one, if there is to be one.
    pub fn heard(&mut self, number: u32, there: u64, received: u64) -> Option<u32> {
        let (asked, sent) = self.asked;
        if self.due == 0 || number != asked || received < sent {
            return None;
        }
        let stamp = Stamp { sent, there, received };
        if self.best.is_none_or(|best| stamp.within_ns() < best.within_ns()) {
            self.best = Some(stamp);
        }
        self.due -= 1;
        if self.due > 0 {
            return Some(self.ask());
        }
        self.give_up();
        None
    }

    /// When the last question was asked.
    #[cfg(test)]
    pub fn asked_at(&self) -> u64 {
        self.asked.1
    }

    /// No answer comes any more.
    pub fn give_up(&mut self) {
        self.due = 0;
        self.bursts.extend(self.best.take());
    }

    /// No answer is waited for.
    pub fn is_quiet(&self) -> bool {
        self.due == 0
    }

    /// What is known of the node's clock.
    pub fn offset(&self) -> Option<Offset> {
        Offset::of(&self.bursts)
    }
}

/// By how much a node's clock is ahead of the launcher's: a line over the node's time.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Offset {
    /// At this time it was so much.
    at: u64,
    offset_ns: i64,
    /// And grew by so much each nanosecond.
    drift: f64,
    /// It may be off by so much.
    pub within_ns: u64,
}

impl Offset {
    /// From the best round trip of each burst. As long as one offset is possible for all, it is one: what looks like a drift within the uncertainty is
    /// more likely to be none.
    fn of(bursts: &[Stamp]) -> Option<Offset> {
        let (first, last) = (bursts.first()?, bursts.last()?);
        let least = bursts.iter().map(|stamp| stamp.offset_ns() - stamp.within_ns()).max()?;
        let most = bursts.iter().map(|stamp| stamp.offset_ns() + stamp.within_ns()).min()?;
        if least <= most || last.there <= first.there {
            let within_ns = ((most - least).max(0) / 2 + 1) as u64;
            return Some(Offset { at: first.there, offset_ns: least + (most - least) / 2, drift: 0.0, within_ns });
        }
        let drift = (last.offset_ns() - first.offset_ns()) as f64 / (last.there - first.there) as f64;
        let within_ns = first.within_ns().max(last.within_ns()) as u64;
        Some(Offset { at: first.there, offset_ns: first.offset_ns(), drift, within_ns })
    }

    /// By so much the node's clock is ahead when it says `there`.
    pub fn ns_at(&self, there: u64) -> i64 {
        self.offset_ns + ((there as f64 - self.at as f64) * self.drift) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamp(sent: u64, there: u64, received: u64) -> Stamp {
        Stamp { sent, there, received }
    }

    #[test]
    fn the_shortest_round_trip_of_a_burst_counts() {
        let mut exchange = Exchange::default();
        let mut number = Some(exchange.begin());
        let mut rounds = 0;
        while let Some(asked) = number {
            assert_eq!(exchange.heard(asked.wrapping_sub(1), 0, u64::MAX), None, "an answer to another question");
            let (_, sent) = exchange.asked;
            let trip = 1000 + 100 * u64::from(rounds.max(7) - 7 + (7 - rounds.min(7)));
            number = exchange.heard(asked, sent + 5000 + trip / 2, sent + trip);
            rounds += 1;
        }
        assert!(rounds == ROUNDS && exchange.is_quiet(), "{rounds}");
        let offset = exchange.offset().expect("a burst");
        assert_eq!((offset.ns_at(0), offset.within_ns), (5000, 501));
        assert_eq!(Exchange::default().offset(), None);
    }

    proptest! {
        /// Whatever part of a round trip the way there took, the truth is within what is said; with a drift that shows, too.
        #[test]
        fn the_truth_is_within(
            ahead in -1_000_000_000i64..1_000_000_000,
            ppm in prop_oneof![Just(0i64), -50i64..50],
            trips in proptest::collection::vec((1u64..200_000, 0f64..1.0), 2..4),
        ) {
            let true_at = |at: u64| ahead + (at as i64 - 5_000_000_000) * ppm / 1_000_000;
            let bursts: Vec<Stamp> = trips.iter().zip(0u64..).map(|((trip, part), burst)| {
                let sent = 5_000_000_000 + burst * 100_000_000_000;
                let at = sent + (*trip as f64 * part) as u64;
                stamp(sent, (at as i64 + true_at(at)) as u64, sent + trip)
            }).collect();
            let offset = Offset::of(&bursts).expect("bursts");
            // What a drift hides in the uncertainty of the ends it hides between them.
            let hidden: i64 = bursts.iter().map(Stamp::within_ns).sum();
            for burst in &bursts {
                let off = (offset.ns_at(burst.there) - true_at(burst.sent)).abs();
                prop_assert!(off <= offset.within_ns as i64 + if ppm == 0 { 3 } else { 2 * hidden + 20 }, "{} {:?}", off, offset);
            }
        }
    }
}
