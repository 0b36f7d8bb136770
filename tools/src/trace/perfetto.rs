//! A timeline in Perfetto's format (perfetto.dev, protos/perfetto/trace): tracks with slices, flows and counters.

use super::timeline::{CoreDid, Ns, RankDid, Timeline};
use prost::Message as _;
use std::collections::HashMap;

// The messages and fields used here, by their numbers there.

#[cfg(test)]
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

const SLICE_BEGIN: i32 = 1;
const SLICE_END: i32 = 2;
const INSTANT: i32 = 3;
const COUNTER: i32 = 4;
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
    descriptors: Vec<TracePacket>,
    /// By time; what is of one time and track stays in order.
    events: Vec<(Ns, TrackEvent)>,
    names: Strings,
    categories: Strings,
    annotations: Strings,
}

/// What identifies a track: its group, and its number there.
fn uuid(group: u64, number: u32) -> u64 {
    group << 32 | u64::from(number) + 1
}

const GROUPS: u64 = 0x766d_7000;
const CORES: u64 = GROUPS + 1;
const RANKS: u64 = GROUPS + 2;
const CLOCKS: u64 = GROUPS + 3;
const CORE_CLOCKS: u64 = GROUPS + 4;
const RANK_COUNTERS: u64 = GROUPS + 5;
const CORE_COUNTERS: u64 = GROUPS + 16;

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

    fn event(&mut self, at: Ns, track: u64, kind: i32) -> &mut TrackEvent {
        let event = TrackEvent { track_uuid: Some(track), r#type: Some(kind), ..TrackEvent::default() };
        self.events.push((at, event));
        &mut self.events.last_mut().expect("just pushed").1
    }

    fn named(
        &mut self,
        at: Ns,
        track: u64,
        kind: i32,
        category: &str,
        name: &str,
        notes: &[(&str, i64)],
    ) -> &mut TrackEvent {
        let name = self.names.number(name);
        let category = self.categories.number(category);
        let notes: Vec<DebugAnnotation> = notes
            .iter()
            .map(|(note, value)| DebugAnnotation {
                name_iid: Some(self.annotations.number(note)),
                int_value: Some(*value),
            })
            .collect();
        let event = self.event(at, track, kind);
        (event.name_iid, event.category_iids, event.debug_annotations) = (Some(name), vec![category], notes);
        event
    }

    fn count(&mut self, at: Ns, track: u64, value: u64) {
        self.event(at, track, COUNTER).counter_value = Some(i64::try_from(value).unwrap_or(i64::MAX));
    }
}

/// The bytes of the trace.
pub fn encode(timeline: &Timeline) -> Vec<u8> {
    let mut writer = Writer::default();
    let job = format!("vmpi job {} ({})", timeline.job, timeline.program);
    let cores = writer.group(0, &format!("{job}: cores"));
    let ranks = writer.group(1, &format!("{job}: ranks"));
    let clocks = writer.group(2, &format!("{job}: clocks"));
    for core in &timeline.cores {
        let (track, clock) = (uuid(CORES, core.core), uuid(CORE_CLOCKS, core.core));
        writer.track(track, cores, core.core, format!("core {} (CPU {})", core.core, core.cpu), None);
        writer.track(clock, clocks, core.core, format!("core {}: ranks ran", core.core), Some(UNIT_NS));
        let mut ran = 0;
        for slice in &core.slices {
            let (category, name, rank) = match slice.did {
                CoreDid::Ran(rank) => ("running", format!("rank {rank}"), Some(rank)),
                CoreDid::Watched(rank) => ("idle", "idle (watched by its rank)".into(), Some(rank)),
                CoreDid::HandOff(rank) => ("hand-off", "hand-off".into(), Some(rank)),
                CoreDid::Idle => ("idle", "idle".into(), None),
                CoreDid::Elsewhere => ("elsewhere", "another job".into(), None),
            };
            let note = rank.map(|rank| ("rank", i64::from(rank)));
            writer.named(slice.from, track, SLICE_BEGIN, category, &name, note.as_slice());
            writer.event(slice.until, track, SLICE_END);
            if let CoreDid::Ran(_) = slice.did {
                writer.count(slice.from, clock, ran);
                ran += slice.until - slice.from;
                writer.count(slice.until, clock, ran);
            }
        }
    }
    for rank in &timeline.ranks {
        let (track, clock) = (uuid(RANKS, rank.rank), uuid(CLOCKS, rank.rank));
        writer.track(track, ranks, rank.rank, format!("rank {} (pid {})", rank.rank, rank.pid), None);
        let order = timeline.cores.len() as u32 + rank.rank;
        writer.track(clock, clocks, order, format!("rank {}: process-POV clock", rank.rank), Some(UNIT_NS));
        if rank.dropped > 0 {
            let lost = [("events", rank.dropped.cast_signed())];
            writer.named(rank.known_from, track, INSTANT, "lost", "older events were overwritten", &lost);
        }
        if rank.damaged > 0 {
            let lost = [("events", rank.damaged.cast_signed())];
            writer.named(rank.known_from, track, INSTANT, "lost", "events were damaged", &lost);
        }
        for slice in &rank.slices {
            match slice.did {
                RankDid::Suspended => {
                    let name =
                        if slice.call.is_empty() { "SUSPENDED".into() } else { format!("SUSPENDED in {}", slice.call) };
                    let notes = [("peer", slice.peer.into()), ("tag", slice.tag.into())];
                    writer.named(slice.from, track, SLICE_BEGIN, "SUSPENDED", &name, &notes);
                }
                did => {
                    writer.named(slice.from, track, SLICE_BEGIN, did.name(), did.name(), &[]);
                }
            }
            writer.event(slice.until, track, SLICE_END);
        }
        for (at, value) in &rank.clock {
            writer.count(*at, clock, *value);
        }
    }
    counters(&mut writer, timeline, clocks);
    for (message, flow) in timeline.messages.iter().zip(1u64..) {
        let category = if message.collective { "collective" } else { "point-to-point" };
        let notes = |peer: &'static str, rank: u32| {
            [(peer, i64::from(rank)), ("tag", message.tag.into()), ("bytes", message.bytes.cast_signed())]
        };
        let (from, to) = (uuid(RANKS, message.from), uuid(RANKS, message.to));
        writer.named(message.sent, from, INSTANT, category, "send", &notes("to", message.to)).flow_ids.push(flow);
        let event = writer.named(message.received, to, INSTANT, category, "receive", &notes("from", message.from));
        event.terminating_flow_ids.push(flow);
    }
    writer.finish(timeline)
}

/// Tracks of performance counters: of each rank, and of each core what all its ranks counted there.
fn counters(writer: &mut Writer, timeline: &Timeline, group: u64) {
    for ((name, at), groups) in timeline.counters.iter().zip(0usize..).zip(0u64..) {
        let order = (timeline.cores.len() + timeline.ranks.len()) as u32;
        for core in &timeline.cores {
            let track = uuid(CORE_COUNTERS + groups, core.core);
            writer.track(track, group, order + core.core, format!("core {}: {name}", core.core), Some(UNIT_COUNT));
        }
        for rank in timeline.ranks.iter().filter(|rank| !rank.counted.is_empty()) {
            let track = uuid(RANK_COUNTERS + groups, rank.rank);
            writer.track(track, group, 2 * order + rank.rank, format!("rank {}: {name}", rank.rank), Some(UNIT_COUNT));
            for counted in &rank.counted {
                writer.count(counted.at, track, counted.values[at]);
                writer.count(counted.at, uuid(CORE_COUNTERS + groups, counted.core), counted.of_core[at]);
            }
        }
    }
}

impl Writer {
    fn finish(mut self, timeline: &Timeline) -> Vec<u8> {
        // At one time what ends goes before what begins: each track was written in order, and the sort keeps that.
        self.events.sort_by_key(|(at, _)| *at);
        let mut bytes = Vec::new();
        let first = TracePacket {
            timestamp: Some(timeline.boottime),
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
        for (at, event) in self.events {
            let packet = TracePacket {
                timestamp: Some(timeline.boottime + at),
                trusted_packet_sequence_id: Some(SEQUENCE),
                sequence_flags: Some(NEEDS),
                track_event: Some(event),
                ..TracePacket::default()
            };
            put(&mut bytes, &packet);
        }
        bytes
    }
}

/// One more `Trace::packet`.
fn put(bytes: &mut Vec<u8>, packet: &TracePacket) {
    bytes.push(1 << 3 | 2);
    packet.encode_length_delimited(bytes).expect("a vector takes everything");
}
