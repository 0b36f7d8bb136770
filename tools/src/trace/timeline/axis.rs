//! What several nodes have recorded, on one axis of time: the launcher's.
//!
//! Each node's clock is known within some microseconds (`nodes::clock_sync`). Messages say more: none arrives before it is sent, so each one between two
//! nodes bounds by how much the one's clock can be ahead of the other's. What all bounds together leave open is looked up as in any
//! system of difference constraints, and its middle is taken.

use super::build::Part;
use super::messages::{End, matched};
use super::track::Clock;
use super::{NodeTrack, Ns, Timeline};
use crate::nodes::clock_sync::Offset;
use std::collections::HashMap;
use vmpi_shared::trace::{RingReader, TraceMap};

/// What a node has recorded.
pub struct OnNode<'a> {
    pub name: &'a str,
    /// `None`: its clock could not be compared with the launcher's.
    pub offset: Option<Offset>,
    /// Or why there is nothing of it.
    pub recorded: Result<(&'a TraceMap, Vec<RingReader>), String>,
}

/// Nothing is known of a clock: a day.
const UNKNOWN: i64 = 86_400_000_000_000;

/// A node's part, and where it lies.
struct Placed {
    node: u32,
    part: Part,
    /// The launcher's time at its beginning, by what the time stamps say, and how far off that may be.
    start: i64,
    within: i64,
    offset: i64,
}

impl Timeline {
    /// Put together what was read of the rings of each node.
    pub fn of_nodes(nodes: Vec<OnNode<'_>>) -> Timeline {
        let mut whole = Timeline::default();
        let mut placed: Vec<Placed> = Vec::new();
        let mut realtime = None;
        for (number, node) in (0u32..).zip(nodes) {
            let mut track = NodeTrack { name: node.name.into(), ..NodeTrack::default() };
            match node.recorded {
                Ok((map, rings)) => {
                    let (clock, start, offset) = clock(map, node.offset.as_ref());
                    let part = Part::new(map, &rings, clock, number);
                    let within = node.offset.map_or(UNKNOWN, |offset| (offset.within_ns + map.within_ns) as i64);
                    track.is_compared = node.offset.is_some();
                    realtime = realtime.or(Some((placed.len(), part.timeline.realtime)));
                    placed.push(Placed { node: number, part, start, within, offset });
                }
                Err(why) => track.missing = Some(why),
            }
            whole.nodes.push(track);
        }
        // Who could not be compared began when the first of the others did, for all that is known.
        let compared = |placed: &&Placed| placed.within < UNKNOWN;
        let first = placed.iter().filter(compared).map(|placed| placed.start).min().unwrap_or(0);
        placed.iter_mut().filter(|placed| placed.within >= UNKNOWN).for_each(|placed| placed.start = first);
        let begin = placed.iter().map(|placed| placed.start).min().unwrap_or(0);
        // All ends, as the stamps have them.
        let (mut sends, mut takes): (Vec<End>, Vec<End>) = (Vec::new(), Vec::new());
        let mut home: HashMap<u32, usize> = HashMap::new();
        for (index, its) in placed.iter_mut().enumerate() {
            let late = (its.start - begin) as Ns;
            home.extend(its.part.timeline.ranks.iter().map(|rank| (rank.rank, index)));
            for (all, some) in [(&mut sends, &mut its.part.sends), (&mut takes, &mut its.part.takes)] {
                some.iter_mut().for_each(|end| end.ns += late);
                all.append(some);
            }
        }
        let slack = |from: u32, to: u32| match (home.get(&from), home.get(&to)) {
            (Some(from), Some(to)) if from != to => (placed[*from].within + placed[*to].within) as Ns,
            _ => 0,
        };
        let (mut messages, half) = matched(&sends, &takes, slack);
        let mut bounds: HashMap<(usize, usize), i64> = HashMap::new();
        for message in &messages {
            let (Some(from), Some(to)) = (home.get(&message.from), home.get(&message.to)) else { continue };
            if from != to {
                let took = message.received as i64 - message.sent as i64;
                bounds.entry((*from, *to)).and_modify(|least| *least = took.min(*least)).or_insert(took);
            }
        }
        let within: Vec<i64> = placed.iter().map(|placed| placed.within).collect();
        let corrected = correct(&within, &bounds);
        let starts: Vec<i64> = placed.iter().zip(&corrected).map(|(its, (by, _))| its.start + by).collect();
        let begin_now = starts.iter().copied().min().unwrap_or(0);
        let moved: Vec<i64> =
            starts.iter().zip(&placed).map(|(now, its)| (now - begin_now) - (its.start - begin)).collect();
        for message in &mut messages {
            let by = |rank: u32| home.get(&rank).map_or(0, |index| moved[*index]);
            let sent = (message.sent as i64 + by(message.from)).max(0);
            let received = (message.received as i64 + by(message.to)).max(0);
            if sent > received + 1 {
                whole.backwards += 1;
                whole.backwards_by = whole.backwards_by.max((sent - received) as Ns);
            }
            (message.sent, message.received) = (sent as Ns, received.max(sent) as Ns);
        }
        messages.sort_by_key(|message| (message.sent, message.from));
        whole.half_messages = half;
        whole.messages = messages;
        for ((mut its, start), (by, within)) in placed.into_iter().zip(&starts).zip(corrected) {
            let late = (start - begin_now) as Ns;
            its.part.timeline.shift(late);
            let Timeline { job, program, length, on, counters, cores, ranks, .. } = its.part.timeline;
            let track = &mut whole.nodes[its.node as usize];
            (track.from, track.until) = (late, late + length);
            (track.offset_ns, track.within_ns) = (its.offset - by, within as Ns);
            whole.length = whole.length.max(late + length);
            whole.cores.extend(cores);
            whole.ranks.extend(ranks);
            (whole.job, whole.program, whole.counters) = (job, program, counters);
            whole.on |= on;
        }
        whole.ranks.sort_by_key(|rank| rank.rank);
        whole.boottime = begin_now.max(0) as u64;
        whole.realtime = realtime.map_or(0, |(index, at)| at.saturating_sub((starts[index] - begin_now) as u64));
        whole
    }

    /// Everything later, by so much.
    fn shift(&mut self, by: Ns) {
        for core in &mut self.cores {
            core.slices.iter_mut().for_each(|slice| (slice.from, slice.until) = (slice.from + by, slice.until + by));
        }
        for rank in &mut self.ranks {
            rank.slices.iter_mut().for_each(|slice| (slice.from, slice.until) = (slice.from + by, slice.until + by));
            rank.clock.iter_mut().for_each(|(at, _)| *at += by);
            rank.counted.iter_mut().for_each(|counted| counted.at += by);
            rank.regions
                .iter_mut()
                .for_each(|region| (region.from, region.until) = (region.from + by, region.until + by));
            rank.collectives.iter_mut().for_each(|call| (call.from, call.until) = (call.from + by, call.until + by));
            rank.paused.iter_mut().for_each(|(from, until)| (*from, *until) = (*from + by, *until + by));
            rank.known_from += by;
        }
    }
}

/// How a node's ticks become the launcher's nanoseconds, when the recording began by the launcher's clock, and by how much the node's was ahead then.
fn clock(map: &TraceMap, offset: Option<&Offset>) -> (Clock, i64, i64) {
    let ahead = |there: u64| offset.map_or(0, |offset| offset.ns_at(there));
    let at = |there: u64| there as i64 - ahead(there);
    let (began, ended) = (at(map.began.boottime_ns), at(map.boottime_ns));
    let nominal = Clock::of(map);
    let ticks = map.until.saturating_sub(map.began.ticks) as f64;
    // Over less than a millisecond the nominal rate is as good.
    let by_line = (ended - began) as f64 / ticks.max(1.0);
    let clock = if ended - began > 1_000_000 && ticks > 0.0 { Clock::at_rate(map, by_line) } else { nominal };
    let before = (map.began.ticks as f64 - map.since as f64) * clock.ns_per_tick();
    (clock, began - before as i64, ahead(map.began.boottime_ns))
}

/// By how much each node's times are to be later, and how far off they may be then. The stamps say within what they are right; `bounds`: a message from
/// the first node to the second took so long at least, by the stamps.
fn correct(within: &[i64], bounds: &HashMap<(usize, usize), i64>) -> Vec<(i64, i64)> {
    let by_stamps = || within.iter().map(|within| (0, *within)).collect();
    // x[to] + took >= x[from], so what each can be at most, and at least, spreads along the messages.
    let (mut most, mut least): (Vec<i64>, Vec<i64>) = (within.to_vec(), within.iter().map(|within| -within).collect());
    for _ in 0..=within.len() {
        let mut changed = false;
        for ((from, to), took) in bounds {
            let (high, low) = (most[*to].saturating_add(*took), least[*from].saturating_sub(*took));
            if high < most[*from] {
                (most[*from], changed) = (high, true);
            }
            if low > least[*to] {
                (least[*to], changed) = (low, true);
            }
        }
        if most.iter().zip(&least).any(|(most, least)| most < least) {
            // Clocks that do not go evenly: nothing fits all messages.
            return by_stamps();
        }
        if !changed {
            // Where all are at most, and where all are at least, everything fits: so it does in the middle.
            return most
                .iter()
                .zip(&least)
                .map(|(most, least)| ((most + least).div_euclid(2), (most - least) / 2 + 1))
                .collect();
        }
    }
    by_stamps()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::clock_sync::{Exchange, Offset};
    use proptest::prelude::*;
    use vmpi_shared::clock::Moment;
    use vmpi_shared::trace::{Record, TraceCore, TraceRank, Turn};

    /// A node whose ticks are nanoseconds of a clock that is `ahead` of the launcher's: rank `rank` lives there and ran from 1 s to 2 s of the launcher's time.
    fn map(rank: u32, ahead: i64) -> TraceMap {
        let at = |launchers: i64| (launchers + ahead) as u64;
        let stand = |number: u32| TraceRank {
            pid: 9,
            here: number == rank,
            state: "FINALIZED".into(),
            t: at(2_000_000_000),
            ..TraceRank::default()
        };
        TraceMap {
            since: at(1_000_000_000),
            until: at(2_000_000_000),
            began: Moment { ticks: at(1_000_000_000), boottime_ns: at(1_000_000_000), within_ns: 0 },
            boottime_ns: at(2_000_000_000),
            ticks_per_second: 1e9,
            cores: vec![TraceCore::default()],
            ranks: (0..2).map(stand).collect(),
            ..TraceMap::default()
        }
    }

    fn message(sent: bool, peer: u32, id: u16, at: i64) -> Record {
        Record::Message {
            sent,
            call: 0,
            id,
            at: at as u64,
            bytes: 8,
            peer,
            context: 4,
            tag: 3,
            within: Default::default(),
        }
    }

    fn offset(says: i64, within: u64) -> Offset {
        let mut exchange = Exchange::default();
        let mut number = exchange.begin();
        loop {
            let sent = exchange.asked_at();
            match exchange.heard(number, (sent as i64 + says) as u64 + within, sent + 2 * within) {
                Some(next) => number = next,
                None => return exchange.offset().expect("a burst"),
            }
        }
    }

    proptest! {
        /// Two nodes whose clocks the stamps know within 50 us: messages of both directions tell better, and none goes back in time.
        #[test]
        fn messages_tell_what_stamps_do_not(
            ahead in -1_000_000_000i64..1_000_000_000,
            wrong in -49_000i64..49_000,
            trips in proptest::collection::vec((any::<bool>(), 2_000i64..30_000), 1..20),
        ) {
            let mut rings = [Vec::new(), Vec::new()];
            for (rank, ring) in rings.iter_mut().enumerate() {
                let own = if rank == 0 { 0 } else { ahead };
                let run = (1_000_000_100 + own) as u64;
                let turn = Turn { ready: run - 50, run, granted: run - 20, released: run - 100, ..Turn::default() };
                ring.push(Record::Turn(turn));
            }
            for ((there, took), id) in trips.iter().zip(1u16..) {
                let at = 1_100_000_000 + i64::from(id) * 1_000_000;
                let (from, to) = if *there { (0, 1) } else { (1, 0) };
                let own = [0, ahead];
                rings[from].push(message(true, to as u32, id, at + own[from]));
                rings[to].push(message(false, from as u32, id, at + took + own[to]));
            }
            rings.iter_mut().zip([0, ahead]).for_each(|(ring, own)| ring.push(Record::Ended { at: (2_000_000_000 + own) as u64 }));
            let read = rings.map(|records| RingReader { records, ..RingReader::default() });
            let [first, second] = read;
            let (a, b) = (map(0, 0), map(1, ahead));
            let nodes = vec![
                OnNode { name: "a", offset: Some(offset(0, 1)), recorded: Ok((&a, vec![first, RingReader::default()])) },
                OnNode { name: "b", offset: Some(offset(ahead + wrong, 50_000)), recorded: Ok((&b, vec![RingReader::default(), second])) },
            ];
            let timeline = Timeline::of_nodes(nodes);
            prop_assert_eq!((timeline.messages.len(), timeline.half_messages, timeline.backwards), (trips.len(), 0, 0));
            prop_assert!(timeline.messages.iter().all(|message| message.sent <= message.received));
            let track = &timeline.nodes[1];
            prop_assert!((track.offset_ns - ahead).unsigned_abs() <= track.within_ns + 2, "{:?}, in truth {}", track, ahead);
            let both = |way: bool| trips.iter().filter(|trip| trip.0 == way).map(|trip| trip.1).min();
            if let (Some(there), Some(back)) = (both(true), both(false)) {
                prop_assert!(track.within_ns as i64 <= (there + back) / 2 + 10, "{:?}: {} {}", track, there, back);
            }
            for rank in &timeline.ranks {
                let ran: u64 = rank.slices.iter().filter(|slice| slice.did == super::super::RankDid::Running).map(|slice| slice.until - slice.from).sum();
                prop_assert!((999_999_000..=1_000_000_000).contains(&ran), "{ran}");
            }
        }
    }

    #[test]
    fn nothing_fits_clocks_that_jump() {
        let bounds = HashMap::from([((0, 1), -100), ((1, 0), -100)]);
        assert_eq!(correct(&[10, 20], &bounds), [(0, 10), (0, 20)]);
        // Three in a row: the middle one has the room.
        let bounds = HashMap::from([((0, 1), -10), ((1, 2), -10)]);
        let found = correct(&[20, 20, 20], &bounds);
        assert!(found[0].0 - found[1].0 <= -10 && found[1].0 - found[2].0 <= -10, "{found:?}");
    }

    #[test]
    fn who_is_missing_is_told() {
        let a = map(0, 0);
        let nodes = vec![
            OnNode { name: "a", offset: None, recorded: Ok((&a, vec![RingReader::default(), RingReader::default()])) },
            OnNode { name: "b", offset: None, recorded: Err("it died".into()) },
        ];
        let gaps = Timeline::of_nodes(nodes).gaps().expect("gaps");
        assert!(gaps.contains("node b") && gaps.contains("it died") && gaps.contains("node a: its clock"), "{gaps}");
    }
}
