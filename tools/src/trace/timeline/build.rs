//! A timeline put together from what was read of the ranks' rings.

use super::messages::{End, matched};
use super::outside::Outside;
use super::regions::Regions;
use super::track::{Clock, Names, Track};
use super::{CoreDid, CoreSlice, CoreTrack, Counted, Ns, RankDid, RankTrack, Timeline};
use vmpi_shared::sched::outside::joined;
use vmpi_shared::trace::{Call, Record, RingReader, TraceMap, TraceRank, Turn};
use vmpi_shared::trace::{Given, Span};

impl Timeline {
    /// Put together what was read of the ring of each rank of `map`.
    pub fn new(map: &TraceMap, rings: &[RingReader]) -> Timeline {
        let Part { mut timeline, sends, takes } = Part::new(map, rings, Clock::of(map), 0);
        (timeline.messages, timeline.half_messages) = matched(&sends, &takes, |_, _| 0);
        timeline
    }
}

/// What one node has recorded: a timeline without messages, and their ends.
pub(super) struct Part {
    pub(super) timeline: Timeline,
    pub(super) sends: Vec<End>,
    pub(super) takes: Vec<End>,
}

impl Part {
    pub(super) fn new(map: &TraceMap, rings: &[RingReader], clock: Clock, node: u32) -> Part {
        let mut builder = Builder {
            map,
            clock,
            node,
            pieces: vec![Vec::new(); map.cores.len()],
            sends: Vec::new(),
            takes: Vec::new(),
        };
        let mut ranks = Vec::new();
        for (rank, (stand, ring)) in map.ranks.iter().zip(rings).enumerate() {
            if stand.here {
                ranks.push(builder.rank(rank as u32, stand, ring));
            }
        }
        // What nobody recorded while a rank wanted that is not another job's.
        let paused = joined(ranks.iter().flat_map(|rank: &RankTrack| rank.paused.iter().copied()).collect());
        let complete = ranks.iter().map(|rank| rank.known_from).max().unwrap_or(0);
        let Builder { pieces, sends, takes, .. } = builder;
        let cores = pieces.into_iter().zip(&map.cores).zip(0..);
        let cores = cores
            .map(|((pieces, stand), core)| {
                let withheld = (stand.withheld_at != 0).then(|| clock.ns(stand.withheld_at));
                let slices = core_slices(pieces, complete, clock.length, withheld, &paused);
                let outside = Outside::new(map, &clock, core);
                CoreTrack { node, core, cpu: stand.cpu, slices: outside.told(slices) }
            })
            .filter(|track| {
                let ran = track.slices.iter().any(|slice| matches!(slice.did, CoreDid::Ran(_)));
                ran || ranks.iter().flat_map(|rank| &rank.counted).any(|counted| counted.core == track.core)
            })
            .collect();
        let timeline = Timeline {
            job: map.job,
            program: map.program.clone(),
            length: clock.length,
            boottime: map.boottime_ns.saturating_sub(clock.length),
            realtime: map.realtime_ns.saturating_sub(clock.length),
            on: map.on,
            counters: map.counters.iter().take(vmpi_shared::trace::COUNTERS).cloned().collect(),
            cores,
            ranks,
            ..Timeline::default()
        };
        Part { timeline, sends, takes }
    }
}

struct Builder<'a> {
    map: &'a TraceMap,
    clock: Clock,
    node: u32,
    pieces: Vec<Vec<CoreSlice>>,
    sends: Vec<End>,
    takes: Vec<End>,
}

/// Where a rank is between two records.
#[derive(Copy, Clone, PartialEq)]
enum At {
    /// It is not known.
    Nowhere,
    /// It has this core since then.
    Core { core: u32, since: u64 },
    /// It has left MPI.
    Out,
    /// It has wanted nothing recorded since then.
    Paused { since: u64 },
}

impl Builder<'_> {
    fn rank(&mut self, rank: u32, stand: &TraceRank, ring: &RingReader) -> RankTrack {
        let (map, clock) = (self.map, self.clock);
        let names = Names::new(ring);
        let records = records(map, stand, ring);
        let known_from = match records.first() {
            Some(first) if ring.dropped > 0 => clock.ns(first.at()),
            _ => 0,
        };
        let track = RankTrack {
            node: self.node,
            rank,
            pid: stand.pid,
            known_from,
            dropped: ring.dropped,
            damaged: ring.damaged,
            ..RankTrack::default()
        };
        let mut track = Track { track, names: &names, clock, watches: Vec::new(), aways: Vec::new() };
        let edges = stand.life.map(|life| (life, life.edges(map.until)));
        if let Some((life, (entered, ..))) = edges {
            track.push(life.born, entered, RankDid::Starting, None);
        }
        let mut at = At::Nowhere;
        let mut turns = 0;
        let mut over = None;
        let mut regions = Regions::default();
        for record in &records {
            match *record {
                Record::Turn(turn) => {
                    self.turn(&mut track, &mut at, &turn, turns == 0 && ring.dropped == 0);
                    turns += 1;
                }
                Record::Watched { core, call, from, until } => {
                    if at == At::Nowhere {
                        // Who always watches has no other record that says where it is.
                        let since = match turns == 0 && ring.dropped == 0 {
                            true => map.since,
                            false => from.min(records[0].at()),
                        };
                        at = At::Core { core: core.into(), since };
                    }
                    track.watches.push((call, from, until));
                }
                Record::Away { from, until } => track.aways.push((from, until)),
                Record::Ended { at: end } => {
                    if let At::Core { core, since } = at {
                        track.had(core, since, end, &mut self.pieces);
                        track.close_clock();
                    }
                    if let At::Paused { since } = at {
                        track.paused(since, end);
                    }
                    over = Some(clock.ns(end));
                    at = At::Out;
                }
                Record::Paused { core, at: now } => {
                    let since = match at {
                        At::Core { since, .. } => Some(since),
                        // It has run since the recording began.
                        At::Nowhere if turns == 0 && ring.dropped == 0 => Some(map.since),
                        _ => None,
                    };
                    if let Some(since) = since {
                        track.had(core.into(), since, now, &mut self.pieces);
                        track.close_clock();
                    }
                    at = At::Paused { since: now };
                }
                Record::Resumed { core, at: now } => {
                    let since = if let At::Paused { since } = at { since } else { map.since };
                    track.paused(since, now);
                    (at, turns) = (At::Core { core: core.into(), since: now }, turns + 1);
                }
                Record::Region { begins, region, at } => regions.note(begins, region, clock.ns(at)),
                Record::Collective { .. } => track.collective(record),
                Record::Message { sent, call, id, at, bytes, peer, context, tag, within } => {
                    let call = names.of(&Call { name: call, ..Call::default() });
                    let end = End { rank, peer, id, ns: clock.ns(at), bytes, context, tag, call, within };
                    if sent { self.sends.push(end) } else { self.takes.push(end) }
                }
                Record::Counted { at, core, values, of_core } => {
                    track.track.counted.push(Counted { at: clock.ns(at), core: core.into(), values, of_core });
                }
            }
        }
        self.tail(&mut track, at, stand, turns == 0 && ring.dropped == 0);
        // Of what was before that no record is left.
        let since = records.first().filter(|_| ring.dropped > 0).map_or(map.since, Record::at);
        track.track.regions = regions.spans(&ring.regions, since, known_from, over.unwrap_or(clock.length));
        if let Some((_, (_, left, over))) = edges {
            track.push(left, over, RankDid::Ending, None);
        }
        track.track
    }

    /// The rank gets its core. `first`: nothing was recorded of it before, nor lost.
    fn turn(&mut self, track: &mut Track, at: &mut At, turn: &Turn, first: bool) {
        let (map, clock) = (self.map, self.clock);
        let core = u32::from(turn.core);
        match *at {
            At::Core { core, since } => track.had(core, since, turn.left, &mut self.pieces),
            // When the recording began it ran: on the same core if ranks do not move, else on one that nothing tells of.
            At::Nowhere if first && turn.left > map.since => {
                let pieces = if map.ranks_stay { &mut self.pieces[..] } else { &mut [] };
                track.had(core, map.since, turn.left, pieces);
            }
            _ => {
                track.watches.clear();
            }
        }
        if turn.left == 0 {
            // Its first core.
            track.aways.clear();
            track.push(turn.ready, turn.run, RankDid::Ready, None);
        } else {
            track.waited(turn.left, turn.ready, turn.run, &turn.call);
        }
        if let Some(pieces) = self.pieces.get_mut(core as usize) {
            let times = [turn.released, turn.granted, turn.run].map(|ticks| clock.ns(ticks));
            for (from, until, did) in
                [(times[0], times[1], CoreDid::Idle), (times[1], times[2], CoreDid::HandOff(track.track.rank))]
            {
                if from < until {
                    pieces.push(CoreSlice { from, until, did });
                }
            }
        }
        // It stood still from when the rank had left its core.
        let left = clock.ns(turn.left).max(track.track.known_from);
        if turn.left > map.since {
            track.track.clock.push((left, clock.span(turn.clock)));
        }
        track.track.clock.push((clock.ns(turn.run), clock.span(turn.clock)));
        *at = At::Core { core, since: turn.run };
    }

    /// From the last record to the end of the recording.
    fn tail(&mut self, track: &mut Track, at: At, stand: &TraceRank, nothing: bool) {
        let map = self.map;
        let call = Call { name: 0, kind: stand.call as u8, peer: stand.peer, tag: stand.tag };
        let (core, since) = match at {
            At::Core { core, since } => (core, since),
            At::Paused { since } => return track.paused(since, map.until),
            // Nothing happened: it ran, or waited, all the time.
            At::Nowhere
                if nothing && stand.state != "INIT" && stand.pid != 0 && stand.t != 0 && stand.t <= map.until =>
            {
                (stand.core, map.since)
            }
            _ => return,
        };
        // What a dead one was in the middle of ended with it.
        let end = match stand.life {
            Some(Span { left: Some(left), .. }) if stand.is_dead => left.clamp(since, map.until),
            _ => map.until,
        };
        let left = stand.t.clamp(since, end);
        let ready = stand.ready_at.clamp(left, end);
        // What was read of a rank that went on meanwhile may be from two moments: then it ran until the end, nearly.
        let has_left = stand.t >= since || at == At::Nowhere;
        match stand.state.as_str() {
            "SUSPENDED" | "TENDED" if has_left => {
                track.had(core, since, left, &mut self.pieces);
                track.waited(left, end, end, &call);
            }
            "READY" if has_left => {
                track.had(core, since, left, &mut self.pieces);
                track.waited(left, ready, end, &call);
            }
            "AWAY" if has_left => {
                track.had(core, since, left, &mut self.pieces);
                track.push(left, end, RankDid::Away, None);
            }
            "RUNNING" if stand.is_dead => track.had(core, since, left, &mut self.pieces),
            "DEAD" | "FINALIZED" | "DAMAGED" => track.had(core, since, left, &mut self.pieces),
            _ => track.had(core, since, end, &mut self.pieces),
        }
        if at != At::Nowhere {
            track.close_clock();
        }
    }
}

/// What a rank has recorded, and the daemon for it, in order of time.
fn records(map: &TraceMap, stand: &TraceRank, ring: &RingReader) -> Vec<Record> {
    let given = stand.given.iter().flat_map(given_records);
    let mut records: Vec<Record> = ring.records.iter().copied().chain(given).collect();
    records.retain(|record| (map.since..=map.until).contains(&record.at()));
    if !stand.given.is_empty() {
        records.sort_by_key(Record::at);
    }
    if let (1.., Some(first)) = (ring.dropped, ring.records.first()) {
        // What was given before the oldest record says nothing any more.
        records.retain(|record| record.at() >= first.at());
    }
    records
}

/// What the ring of a rank would say of a core that it was given outside MPI.
fn given_records(given: &Given) -> [Record; 2] {
    let Given { core, taken, at, released, clock } = *given;
    let turn =
        Turn { core: core as u16, left: taken, ready: at, run: at, granted: at, released, clock, ..Turn::default() };
    [Record::Away { from: taken, until: at }, Record::Turn(turn)]
}

/// A core's track: its pieces in order, and what lies between them from `complete` on, when everything is known.
/// Nothing is told of what is in none of them while a rank was `paused`.
fn core_slices(
    mut pieces: Vec<CoreSlice>,
    complete: Ns,
    length: Ns,
    withheld: Option<Ns>,
    paused: &[(Ns, Ns)],
) -> Vec<CoreSlice> {
    pieces.sort_by_key(|piece| (piece.from, piece.until));
    let mut slices: Vec<CoreSlice> = Vec::with_capacity(pieces.len());
    let mut at = complete;
    for piece in pieces {
        // Ticks were rounded down alike, so pieces that met still do.
        slices.extend(outside(paused, at, piece.from, CoreDid::Elsewhere));
        at = at.max(piece.until);
        slices.push(piece);
    }
    if at < length {
        let idle_until = withheld.unwrap_or(length).clamp(at, length);
        for (from, until, did) in [(at, idle_until, CoreDid::Idle), (idle_until, length, CoreDid::Elsewhere)] {
            slices.extend(outside(paused, from, until, did));
        }
    }
    slices
}

/// What is left of a stretch without the spans, which are in order.
fn outside(spans: &[(Ns, Ns)], mut from: Ns, until: Ns, did: CoreDid) -> Vec<CoreSlice> {
    let mut parts = Vec::new();
    for (begin, end) in spans.iter().filter(|(begin, end)| *end > from && *begin < until).copied().collect::<Vec<_>>() {
        if from < begin {
            parts.push(CoreSlice { from, until: begin, did });
        }
        from = from.max(end);
    }
    if from < until {
        parts.push(CoreSlice { from, until, did });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_shared::trace::{TraceCore, Within};

    /// A tick is a nanosecond; the recording goes from 1000 to 2000.
    fn map(ranks: Vec<TraceRank>) -> TraceMap {
        let cores = vec![TraceCore::default(), TraceCore { cpu: 1, withheld_at: 0 }];
        TraceMap {
            since: 1000,
            until: 2000,
            ticks_per_second: 1e9,
            ranks_stay: true,
            cores,
            ranks,
            ..TraceMap::default()
        }
    }

    fn stand(state: &str, core: u32, t: u64, ready_at: u64) -> TraceRank {
        TraceRank { pid: 9, here: true, state: state.into(), core, t, ready_at, call: 1, ..TraceRank::default() }
    }

    fn turn(core: u16, left: u64, ready: u64, run: u64, granted: u64, released: u64) -> Record {
        let call = Call { name: 1, ..Call::default() };
        Record::Turn(Turn { core, call, left, ready, run, granted, released, clock: 0 })
    }

    fn ring(records: Vec<Record>) -> RingReader {
        RingReader { records, names: vec!["MPI_Recv".into()], ..RingReader::default() }
    }

    fn of_rank(timeline: &Timeline, rank: usize) -> Vec<(Ns, Ns, RankDid)> {
        timeline.ranks[rank].slices.iter().map(|slice| (slice.from, slice.until, slice.did)).collect()
    }

    fn of_core(timeline: &Timeline, core: usize) -> Vec<(Ns, Ns, CoreDid)> {
        timeline.cores[core].slices.iter().map(|slice| (slice.from, slice.until, slice.did)).collect()
    }

    #[test]
    fn two_ranks_of_a_core_from_their_start() {
        let first = ring(vec![
            turn(0, 0, 1100, 1110, 1105, 1000),
            turn(0, 1200, 1250, 1310, 1300, 1300),
            Record::Ended { at: 1400 },
        ]);
        let second = ring(vec![turn(0, 0, 1150, 1205, 1200, 1200)]);
        let timeline =
            Timeline::new(&map(vec![stand("FINALIZED", 0, 1400, 0), stand("SUSPENDED", 0, 1300, 0)]), &[first, second]);
        use {CoreDid::*, RankDid::*};
        assert_eq!(
            of_rank(&timeline, 0),
            [(100, 110, Ready), (110, 200, Running), (200, 250, Suspended), (250, 310, Ready), (310, 400, Running)]
        );
        assert_eq!(of_rank(&timeline, 1), [(150, 205, Ready), (205, 300, Running), (300, 1000, Suspended)]);
        let core = [
            (0, 105, Idle),
            (105, 110, HandOff(0)),
            (110, 200, Ran(0)),
            (200, 205, HandOff(1)),
            (205, 300, Ran(1)),
            (300, 310, HandOff(0)),
            (310, 400, Ran(0)),
            (400, 1000, Idle),
        ];
        assert_eq!(of_core(&timeline, 0), core);
        assert_eq!(timeline.cores.len(), 1, "a core on which nobody ran is left out");
        let calls: Vec<&str> = timeline.ranks[0].slices.iter().map(|slice| &*slice.call).collect();
        assert_eq!(calls, ["", "", "MPI_Recv", "MPI_Recv", ""]);
        assert_eq!(&*timeline.ranks[1].slices[2].call, "receive", "as the descriptor tells it");
    }

    #[test]
    fn watches_and_absences_have_their_places() {
        let call = Call { name: 1, ..Call::default() };
        let records = vec![
            turn(1, 0, 1000, 1000, 1000, 1000),
            Record::Watched { core: 1, call, from: 1100, until: 1160 },
            Record::Away { from: 1290, until: 1400 },
            turn(1, 1300, 1400, 1420, 1410, 1300),
        ];
        let timeline = Timeline::new(&map(vec![stand("AWAY", 1, 1900, 0)]), &[ring(records)]);
        use {CoreDid::*, RankDid::*};
        let rank = [
            (0, 100, Running),
            (100, 160, Suspended),
            (160, 300, Running),
            (300, 400, Away),
            (400, 420, RankDid::Ready),
            (420, 900, Running),
            (900, 1000, Away),
        ];
        assert_eq!(of_rank(&timeline, 0), rank);
        let core = [
            (0, 100, Ran(0)),
            (100, 160, Watched(0)),
            (160, 300, Ran(0)),
            (300, 410, Idle),
            (410, 420, HandOff(0)),
            (420, 900, Ran(0)),
            (900, 1000, Idle),
        ];
        assert_eq!(of_core(&timeline, 0), core);
    }

    /// What goes before has been overwritten, and the rank has not left its core since.
    #[test]
    fn who_only_watches_has_a_core() {
        let call = Call { name: 1, ..Call::default() };
        let watched = |from: u64| Record::Watched { core: 1, call, from, until: from + 50 };
        let counted = Record::Counted { at: 1300, core: 0, values: [0; 3], of_core: [0; 3] };
        let ring = |dropped: u64| RingReader { dropped, ..ring(vec![watched(1200), counted, watched(1400)]) };
        let of = |dropped: u64, stays: bool| {
            let map = TraceMap { ranks_stay: stays, ..map(vec![stand("RUNNING", 1, 900, 0)]) };
            Timeline::new(&map, &[ring(dropped)])
        };
        use {CoreDid::*, RankDid::*};
        let timeline = of(7, true);
        let rank = [(250, 400, Running), (400, 450, Suspended), (450, 1000, Running)];
        assert_eq!(of_rank(&timeline, 0), rank);
        assert_eq!(of_core(&timeline, 1).last(), Some(&(450, 1000, Ran(0))));
        assert_eq!(timeline.cores.len(), 2, "something was counted on the other one");
        assert_eq!(of_rank(&of(0, true), 0)[..2], [(0, 200, Running), (200, 250, Suspended)]);
        assert_eq!(of_rank(&of(0, false), 0)[..2], [(0, 200, Running), (200, 250, Suspended)], "to move takes a turn");
    }

    /// While a rank wants nothing recorded nothing is told, of its core neither, unless others recorded something there.
    #[test]
    fn a_pause_is_no_time_of_anything() {
        let of = |records: Vec<Record>, ranks_stay: bool| {
            let map = TraceMap { ranks_stay, ..map(vec![stand("RUNNING", 0, 1600, 0)]) };
            Timeline::new(&map, &[ring(records)])
        };
        use {CoreDid::*, RankDid::*};
        let (paused, resumed) = (Record::Paused { core: 0, at: 1300 }, Record::Resumed { core: 0, at: 1500 });
        let timeline =
            of(vec![turn(0, 0, 1050, 1100, 1100, 1050), paused, resumed, turn(0, 1600, 1650, 1650, 1640, 1600)], true);
        let rank =
            [(50, 100, Ready), (100, 300, Running), (500, 600, Running), (600, 650, Suspended), (650, 1000, Running)];
        assert_eq!(of_rank(&timeline, 0), rank);
        let core =
            [(100, 300, Ran(0)), (500, 600, Ran(0)), (600, 640, Idle), (640, 650, HandOff(0)), (650, 1000, Ran(0))];
        assert_eq!(of_core(&timeline, 0)[2..], core, "{:?}", of_core(&timeline, 0));
        assert_eq!(timeline.ranks[0].paused, [(300, 500)]);
        assert!(timeline.gaps().is_some_and(|text| text.contains("1 ranks wanted nothing recorded")));
        // It ran when the recording began, on the core that it says; it began while it was paused; it never went on.
        assert_eq!(of_rank(&of(vec![paused, resumed], false), 0), [(0, 300, Running), (500, 1000, Running)]);
        assert_eq!(of_rank(&of(vec![resumed], false), 0), [(500, 1000, Running)]);
        let never = of(vec![paused], false);
        assert_eq!((of_rank(&never, 0), of_core(&never, 0)), (vec![(0, 300, Running)], vec![(0, 300, Ran(0))]));
    }

    /// Who runs when the recording begins does so until its first record; on which core is known only if ranks do not move.
    #[test]
    fn who_runs_at_the_beginning() {
        use {CoreDid::*, RankDid::*};
        for stays in [true, false] {
            let map = TraceMap { ranks_stay: stays, ..map(vec![stand("RUNNING", 0, 900, 0)]) };
            let timeline = Timeline::new(&map, &[ring(vec![turn(0, 1500, 1600, 1700, 1650, 1600)])]);
            let rank = [(0, 500, Running), (500, 600, Suspended), (600, 700, Ready), (700, 1000, Running)];
            assert_eq!(of_rank(&timeline, 0), rank);
            assert_eq!(of_core(&timeline, 0).contains(&(0, 500, Ran(0))), stays, "{:?}", of_core(&timeline, 0));
        }
    }

    /// Who did nothing new while it was recorded was all the time what it is; what is between two ranks' turns and no idle time was another job's.
    #[test]
    fn what_has_no_record() {
        let ranks = vec![
            stand("RUNNING", 0, 900, 800),
            stand("SUSPENDED", 1, 900, 800),
            stand("INIT", 1, 0, 0),
            stand("RUNNING", 1, 1600, 0),
        ];
        let last = ring(vec![turn(1, 900, 1500, 1600, 1550, 1500)]);
        let empty = RingReader::default;
        let timeline = Timeline::new(&map(ranks), &[empty(), empty(), empty(), last]);
        use {CoreDid::*, RankDid::*};
        assert_eq!(of_rank(&timeline, 0), [(0, 1000, Running)]);
        assert_eq!(of_rank(&timeline, 1), [(0, 1000, Suspended)]);
        assert_eq!(of_rank(&timeline, 2), []);
        assert_eq!(of_core(&timeline, 0), [(0, 1000, Ran(0))]);
        assert_eq!(
            of_core(&timeline, 1),
            [(0, 500, Elsewhere), (500, 550, Idle), (550, 600, HandOff(3)), (600, 1000, Ran(3))]
        );
    }

    #[test]
    fn messages_find_their_other_ends() {
        let end = |sent: bool, id: u16, at: u64, bytes: u64, peer: u32| Record::Message {
            sent,
            call: u16::from(sent),
            id,
            at,
            bytes,
            peer,
            context: 4,
            tag: 3,
            within: Within::default(),
        };
        // The second receive takes what was sent first under the same number again; the third has no sender; a fourth message is under way.
        let sends = ring(vec![
            end(true, 1, 1010, 8, 1),
            end(true, 2, 1020, 16, 1),
            end(true, 1, 1050, 24, 1),
            end(true, 3, 1900, 1, 1),
        ]);
        let takes = ring(vec![
            end(false, 2, 1030, 16, 0),
            end(false, 1, 1040, 8, 0),
            end(false, 1, 1060, 20, 0),
            end(false, 9, 1070, 1, 0),
        ]);
        let timeline =
            Timeline::new(&map(vec![stand("RUNNING", 0, 900, 0), stand("RUNNING", 1, 900, 0)]), &[sends, takes]);
        let found: Vec<(Ns, Ns, u64)> = timeline.messages.iter().map(|m| (m.sent, m.received, m.bytes)).collect();
        assert_eq!(found, [(10, 40, 8), (20, 30, 16), (50, 60, 24)]);
        assert_eq!(timeline.half_messages, 2);
        assert!(timeline.messages.iter().all(|message| &*message.call == "MPI_Recv"), "the sender's function");
    }

    #[test]
    fn losses_are_told() {
        let lossy =
            RingReader { dropped: 7, ..ring(vec![Record::Ended { at: 1500 }, turn(0, 1500, 1510, 1520, 1515, 1505)]) };
        let timeline = Timeline::new(&map(vec![stand("RUNNING", 0, 1520, 0)]), &[lossy]);
        assert_eq!(timeline.ranks[0].known_from, 500);
        assert!(timeline.ranks[0].slices.iter().all(|slice| slice.from >= 500));
        assert!(
            timeline.gaps().is_some_and(|text| text.starts_with("7 of the oldest events of 1 ranks")),
            "{:?}",
            timeline.gaps()
        );
    }
}
