//! A timeline in Perfetto's format (perfetto.dev, protos/perfetto/trace): tracks with slices, flows and counters.

use super::timeline::{CoreDid, NodeTrack, Ns, RankDid, Timeline};
use prost::Message as _;
use std::collections::HashMap;

// The messages and fields used here, by their numbers there.

#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// CLOCK_BOOTTIME, nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// 3: children in the order of their ranks.
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct CounterDescriptor {
    /// 1: nanoseconds, 2: a count.
    #[prost(int32, optional, tag = "3")]
    pub unit: Option<i32>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub category_iids: Vec<u64>,
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    #[prost(int32, optional, tag = "9")]
    pub r#type: Option<i32>,
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    #[prost(int64, optional, tag = "30")]
    pub counter_value: Option<i64>,
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    #[prost(int64, optional, tag = "4")]
    pub int_value: Option<i64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedData {
    #[prost(message, repeated, tag = "1")]
    pub event_categories: Vec<Interned>,
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<Interned>,
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<Interned>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct Interned {
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

pub(super) const SLICE_BEGIN: i32 = 1;
pub(super) const SLICE_END: i32 = 2;
pub(super) const INSTANT: i32 = 3;
pub(super) const COUNTER: i32 = 4;
const CLEARED: u32 = 1;
const NEEDS: u32 = 2;
const EXPLICIT_ORDER: i32 = 3;
const UNIT_NS: i32 = 1;
const UNIT_COUNT: i32 = 2;
const SEQUENCE: u32 = 1;

/// Strings that are written once and named by number.
#[derive(Default)]
struct Strings {
    numbers: HashMap<String, u64>,
    list: Vec<Interned>,
}

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.list.len() as u64 + 1;
        self.numbers.insert(text.into(), number);
        self.list.push(Interned { iid: Some(number), name: Some(text.into()) });
        number
    }
}

#[derive(Default)]
struct Writer {
    /// CLOCK_BOOTTIME at the beginning.
    boottime: u64,
    descriptors: Vec<TracePacket>,
    /// Packets of events, as bytes: a long run has many millions.
    bytes: Vec<u8>,
    /// When each is, and where it begins and ends; what is of one time and track stays in order.
    events: Vec<(Ns, usize, usize)>,
    names: Strings,
    categories: Strings,
    annotations: Strings,
}

/// What identifies a track: its group, and its number there.
fn uuid(group: u64, number: u32) -> u64 {
    (group << 32) + u64::from(number) + 1
}

const GROUPS: u64 = 0x766d_7000;
const CORES: u64 = GROUPS + 1;
const RANKS: u64 = GROUPS + 2;
const CLOCKS: u64 = GROUPS + 3;
const CORE_CLOCKS: u64 = GROUPS + 4;
const RANK_COUNTERS: u64 = GROUPS + 5;
const CORE_COUNTERS: u64 = GROUPS + 16;
const NODES: u64 = GROUPS + 32;
/// One group of tracks for each row of regions.
const REGIONS: u64 = GROUPS + 64;

/// The number of a core among those of all nodes.
fn core_number(node: u32, core: u32) -> u32 {
    node << 16 | core & 0xffff
}

/// `(CPU 3)`, `(pid 17, node b)`
fn about(what: &str, number: impl std::fmt::Display, node: Option<&str>) -> String {
    match node {
        Some(node) => format!("({what} {number}, node {node})"),
        None => format!("({what} {number})"),
    }
}

impl Writer {
    fn descriptor(&mut self, descriptor: TrackDescriptor) {
        let packet = TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(descriptor),
            ..TracePacket::default()
        };
        self.descriptors.push(packet);
    }

    fn group(&mut self, number: u32, name: &str) -> u64 {
        let id = uuid(GROUPS, number);
        self.descriptor(TrackDescriptor {
            uuid: Some(id),
            name: Some(name.into()),
            child_ordering: Some(EXPLICIT_ORDER),
            ..TrackDescriptor::default()
        });
        id
    }

    fn track(&mut self, id: u64, parent: u64, order: u32, name: String, unit: Option<i32>) {
        self.descriptor(TrackDescriptor {
            uuid: Some(id),
            name: Some(name),
            parent_uuid: Some(parent),
            counter: unit.map(|unit| CounterDescriptor { unit: Some(unit) }),
            sibling_order_rank: Some(order as i32),
            ..TrackDescriptor::default()
        });
    }

    fn put(&mut self, at: Ns, event: TrackEvent) {
        let packet = TracePacket {
            timestamp: Some(self.boottime + at),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(NEEDS),
            track_event: Some(event),
            ..TracePacket::default()
        };
        let from = self.bytes.len();
        put(&mut self.bytes, &packet);
        self.events.push((at, from, self.bytes.len()));
    }

    fn event(&mut self, at: Ns, track: u64, kind: i32) {
        self.put(at, TrackEvent { track_uuid: Some(track), r#type: Some(kind), ..TrackEvent::default() });
    }

    /// An event with a name, a category and notes, for `put`.
    fn named(&mut self, track: u64, kind: i32, category: &str, name: &str, notes: &[(&str, i64)]) -> TrackEvent {
        let note = |(note, value): &(&str, i64)| DebugAnnotation {
            name_iid: Some(self.annotations.number(note)),
            int_value: Some(*value),
        };
        TrackEvent {
            debug_annotations: notes.iter().map(note).collect(),
            name_iid: Some(self.names.number(name)),
            category_iids: vec![self.categories.number(category)],
            track_uuid: Some(track),
            r#type: Some(kind),
            ..TrackEvent::default()
        }
    }

    /// A stretch of a track.
    fn slice(&mut self, (from, until): (Ns, Ns), track: u64, category: &str, name: &str, notes: &[(&str, i64)]) {
        let begin = self.named(track, SLICE_BEGIN, category, name, notes);
        self.put(from, begin);
        self.event(until, track, SLICE_END);
    }

    fn instant(&mut self, at: Ns, track: u64, category: &str, name: &str, notes: &[(&str, i64)]) {
        let event = self.named(track, INSTANT, category, name, notes);
        self.put(at, event);
    }

    fn count(&mut self, at: Ns, track: u64, value: u64) {
        let counter_value = Some(i64::try_from(value).unwrap_or(i64::MAX));
        let event =
            TrackEvent { track_uuid: Some(track), r#type: Some(COUNTER), counter_value, ..TrackEvent::default() };
        self.put(at, event);
    }
}

/// The bytes of the trace.
pub fn encode(timeline: &Timeline) -> Vec<u8> {
    let mut writer = Writer { boottime: timeline.boottime, ..Writer::default() };
    let job = format!("vmpi job {} ({})", timeline.job, timeline.program);
    let cores = writer.group(0, &format!("{job}: cores"));
    let ranks = writer.group(1, &format!("{job}: ranks"));
    let clocks = writer.group(2, &format!("{job}: clocks"));
    if !timeline.nodes.is_empty() {
        let group = writer.group(3, &format!("{job}: nodes"));
        (0u32..).zip(&timeline.nodes).for_each(|(number, node)| writer.node(group, number, node));
    }
    for core in &timeline.cores {
        let (number, node) = (core_number(core.node, core.core), timeline.node(core.node));
        let (track, clock) = (uuid(CORES, number), uuid(CORE_CLOCKS, number));
        writer.track(track, cores, number, format!("core {} {}", core.core, about("CPU", core.cpu, node)), None);
        let of = node.map_or_else(String::new, |node| format!(" of node {node}"));
        writer.track(clock, clocks, number, format!("core {}{of}: ranks ran", core.core), Some(UNIT_NS));
        let mut ran = 0;
        for slice in &core.slices {
            let (category, name, rank) = match slice.did {
                CoreDid::Ran(rank) => ("running", format!("rank {rank}"), Some(rank)),
                CoreDid::Watched(rank) => ("idle", "idle (watched by its rank)".into(), Some(rank)),
                CoreDid::HandOff(rank) => ("hand-off", "hand-off".into(), Some(rank)),
                CoreDid::Idle => ("idle", "idle".into(), None),
                CoreDid::Elsewhere => ("elsewhere", "another job".into(), None),
                CoreDid::Starting => ("starting", "starting".into(), None),
                CoreDid::Ending => ("ending", "ending".into(), None),
            };
            let note = rank.map(|rank| ("rank", i64::from(rank)));
            writer.slice((slice.from, slice.until), track, category, &name, note.as_slice());
            if let CoreDid::Ran(_) = slice.did {
                writer.count(slice.from, clock, ran);
                ran += slice.until - slice.from;
                writer.count(slice.until, clock, ran);
            }
        }
    }
    // Cores are in the order of their numbers, ranks behind them.
    let behind_cores = timeline.cores.iter().map(|core| core_number(core.node, core.core) + 1).max().unwrap_or(0);
    for rank in &timeline.ranks {
        let (track, clock) = (uuid(RANKS, rank.rank), uuid(CLOCKS, rank.rank));
        writer.track(
            track,
            ranks,
            rank.rank,
            format!("rank {} {}", rank.rank, about("pid", rank.pid, timeline.node(rank.node))),
            None,
        );
        let order = behind_cores + rank.rank;
        writer.track(clock, clocks, order, format!("rank {}: process-POV clock", rank.rank), Some(UNIT_NS));
        if rank.dropped > 0 {
            let lost = [("events", rank.dropped.cast_signed())];
            writer.instant(rank.known_from, track, "lost", "older events were overwritten", &lost);
        }
        if rank.damaged > 0 {
            let lost = [("events", rank.damaged.cast_signed())];
            writer.instant(rank.known_from, track, "lost", "events were damaged", &lost);
        }
        for slice in &rank.slices {
            let span = (slice.from, slice.until);
            match slice.did {
                RankDid::Suspended => {
                    let name = match &*slice.call {
                        "" => "SUSPENDED".into(),
                        call => format!("SUSPENDED in {call}"),
                    };
                    let notes = [("peer", slice.peer.into()), ("tag", slice.tag.into())];
                    writer.slice(span, track, "SUSPENDED", &name, &notes);
                }
                did => writer.slice(span, track, did.name(), did.name(), &[]),
            }
        }
        for (from, until) in &rank.paused {
            let length = [("for (ns)", (until - from).cast_signed())];
            writer.instant(*from, track, "paused", "the program wants nothing recorded (MPI_Pcontrol)", &length);
        }
        for (at, value) in &rank.clock {
            writer.count(*at, clock, *value);
        }
    }
    let behind = behind_cores + timeline.ranks.iter().map(|rank| rank.rank + 1).max().unwrap_or(0);
    counters(&mut writer, timeline, clocks, behind);
    regions(&mut writer, timeline, &job);
    for (message, flow) in timeline.messages.iter().zip(1u64..) {
        let category = if message.collective { "collective" } else { "point-to-point" };
        let notes = |peer: &'static str, rank: u32| {
            [(peer, i64::from(rank)), ("tag", message.tag.into()), ("bytes", message.bytes.cast_signed())]
        };
        let (from, to) = (uuid(RANKS, message.from), uuid(RANKS, message.to));
        let mut event = writer.named(from, INSTANT, category, "send", &notes("to", message.to));
        event.flow_ids.push(flow);
        writer.put(message.sent, event);
        let mut event = writer.named(to, INSTANT, category, "receive", &notes("from", message.from));
        event.terminating_flow_ids.push(flow);
        writer.put(message.received, event);
    }
    writer.finish()
}

/// Tracks of the program's own regions, below each other where they overlap.
fn regions(writer: &mut Writer, timeline: &Timeline, job: &str) {
    if timeline.ranks.iter().all(|rank| rank.regions.is_empty()) {
        return;
    }
    let group = writer.group(4, &format!("{job}: regions"));
    let mut order = 0;
    for rank in &timeline.ranks {
        let rows = rank.regions.iter().map(|span| span.row + 1).max().unwrap_or(0);
        for row in 0..rows {
            let name = match row {
                0 => format!("rank {}", rank.rank),
                _ => format!("rank {}, row {}", rank.rank, row + 1),
            };
            writer.track(uuid(REGIONS + u64::from(row), rank.rank), group, order, name, None);
            order += 1;
        }
        for span in &rank.regions {
            let track = uuid(REGIONS + u64::from(span.row), rank.rank);
            let ended = [("ended", i64::from(span.ended))];
            writer.slice((span.from, span.until), track, "region", &span.name, &ended);
        }
    }
}

/// Tracks of performance counters: of each rank, and of each core what all its ranks counted there.
fn counters(writer: &mut Writer, timeline: &Timeline, group: u64, behind: u32) {
    for ((name, at), groups) in timeline.counters.iter().zip(0usize..).zip(0u64..) {
        let order = behind;
        for core in &timeline.cores {
            let number = core_number(core.node, core.core);
            let of = timeline.node(core.node).map_or_else(String::new, |node| format!(" of node {node}"));
            let track = uuid(CORE_COUNTERS + groups, number);
            writer.track(track, group, order + number, format!("core {}{of}: {name}", core.core), Some(UNIT_COUNT));
        }
        for rank in timeline.ranks.iter().filter(|rank| !rank.counted.is_empty()) {
            let track = uuid(RANK_COUNTERS + groups, rank.rank);
            writer.track(
                track,
                group,
                order.saturating_mul(2).saturating_add(rank.rank),
                format!("rank {}: {name}", rank.rank),
                Some(UNIT_COUNT),
            );
            for counted in &rank.counted {
                writer.count(counted.at, track, counted.values[at]);
                let core = core_number(rank.node, counted.core);
                writer.count(counted.at, uuid(CORE_COUNTERS + groups, core), counted.of_core[at]);
            }
        }
    }
}

impl Writer {
    /// A node's track: when it recorded, and how its clock was put on the axis.
    fn node(&mut self, group: u64, number: u32, node: &NodeTrack) {
        let track = uuid(NODES, number);
        self.track(track, group, number, format!("node {}", node.name), None);
        let offset = [("clock offset (ns)", node.offset_ns), ("uncertainty (ns)", node.within_ns.cast_signed())];
        let offset = if node.is_compared { &offset[..] } else { &[] };
        match &node.missing {
            None => self.slice((node.from, node.until), track, "recorded", "recorded", offset),
            Some(_) => self.instant(0, track, "lost", "what was recorded here is missing", &[]),
        }
    }

    fn finish(mut self) -> Vec<u8> {
        // At one time what ends goes before what begins: each track was written in order, and the sort keeps that.
        self.events.sort_by_key(|(at, ..)| *at);
        let mut bytes = Vec::with_capacity(self.bytes.len() + (64 << 10));
        let first = TracePacket {
            timestamp: Some(self.boottime),
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: Some(CLEARED),
            interned_data: Some(InternedData {
                event_categories: self.categories.list,
                event_names: self.names.list,
                debug_annotation_names: self.annotations.list,
            }),
            ..TracePacket::default()
        };
        put(&mut bytes, &first);
        self.descriptors.iter().for_each(|packet| put(&mut bytes, packet));
        for (_, from, until) in self.events {
            bytes.extend_from_slice(&self.bytes[from..until]);
        }
        bytes
    }
}

/// One more `Trace::packet`.
fn put(bytes: &mut Vec<u8>, packet: &TracePacket) {
    bytes.push(1 << 3 | 2);
    packet.encode_length_delimited(bytes).expect("a vector takes everything");
}

#[cfg(test)]
mod tests {
    use super::super::timeline::{Message, RankSlice, RankTrack};
    use super::*;
    use std::rc::Rc;

    #[test]
    fn what_is_written_can_be_read() {
        let slice = |from: Ns, until: Ns, did: RankDid, call: &str| RankSlice {
            from,
            until,
            did,
            call: Rc::from(call),
            peer: 1,
            tag: 7,
        };
        let slices = vec![slice(5, 9, RankDid::Running, ""), slice(9, 20, RankDid::Suspended, "MPI_Recv")];
        let track = RankTrack { rank: 0, slices, dropped: 3, known_from: 5, ..RankTrack::default() };
        let (call, collective) = ("MPI_Send".into(), false);
        let (context, within) = (0, vmpi_shared::trace::Within::default());
        let message =
            Message { from: 0, to: 0, sent: 6, received: 20, bytes: 8, tag: 7, call, collective, context, within };
        let timeline =
            Timeline { boottime: 1000, length: 30, ranks: vec![track], messages: vec![message], ..Timeline::default() };
        let trace = Trace::decode(encode(&timeline).as_slice()).expect("a trace");
        let strings = trace.packet[0].interned_data.clone().expect("strings first");
        let name = |event: &TrackEvent| {
            let named = |entry: &&Interned| entry.iid == event.name_iid;
            strings.event_names.iter().find(named).and_then(|entry| entry.name.clone()).unwrap_or_default()
        };
        let events: Vec<(u64, i32, String)> = trace
            .packet
            .iter()
            .filter_map(|packet| Some((packet.timestamp?, packet.track_event.as_ref()?)))
            .map(|(at, event)| (at, event.r#type.unwrap_or(0), name(event)))
            .collect();
        let expected = [
            (1005, INSTANT, "older events were overwritten"),
            (1005, SLICE_BEGIN, "RUNNING"),
            (1006, INSTANT, "send"),
            (1009, SLICE_END, ""),
            (1009, SLICE_BEGIN, "SUSPENDED in MPI_Recv"),
            (1020, SLICE_END, ""),
            (1020, INSTANT, "receive"),
        ];
        assert_eq!(events, expected.map(|(at, kind, name)| (at, kind, name.to_owned())));
        let flows: Vec<u64> = trace
            .packet
            .iter()
            .filter_map(|packet| packet.track_event.as_ref())
            .flat_map(|e| e.flow_ids.clone())
            .collect();
        assert_eq!(flows, [1]);
    }
}
