//! A timeline as an OTF2 archive (Open Trace Format 2: Vampir, Scalasca, ViTE): what is in it (here, pure), and how libotf2 writes it (`library`).
//!
//! A location is a rank. It enters and leaves the program, its own regions, collective calls, and MPI functions in which it waited: of those that did not wait
//! the recording does not tell. Regions that overlap are left and entered again, because OTF2 wants them nested. Messages are those of the program
//! itself, of which both ends are known; what vmpi sends for collective calls is not told, but the calls are.

mod communicators;
mod library;
mod write;

pub use write::{check, write};

use super::timeline::{CollectiveCall, Ns, RankDid, RankTrack, Timeline};
use communicators::{Communicator, Communicators};
use std::collections::HashMap;

/// Who sent it is told by the communicator; tags with this bit are vmpi's own (`comm::USER_TAG_BIT` of vmpi-core).
const OWN_TAG_BIT: i32 = 1 << 30;

/// An event of a location.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    Enter(u32),
    Leave(u32),
    Send {
        to: u32,
        comm: u32,
        tag: u32,
        bytes: u64,
    },
    Receive {
        from: u32,
        comm: u32,
        tag: u32,
        bytes: u64,
    },
    CollectiveBegin,
    CollectiveEnd {
        operation: u8,
        comm: u32,
        root: Option<u32>,
        sent: u64,
        received: u64,
    },
    /// The program wants nothing recorded, or wants it again.
    Recording(bool),
}

/// What a region is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Program,
    /// Named by the program.
    Own,
    Mpi,
}

/// All that an archive says.
#[derive(Debug)]
struct Archive {
    /// Name and kind; events have the number.
    regions: Vec<(String, Kind)>,
    communicators: Vec<Communicator>,
    /// Of each rank from 0 on: its node, and its events in order of time.
    locations: Vec<(u32, Vec<(Ns, Event)>)>,
    nodes: Vec<String>,
    length: Ns,
    realtime: u64,
}

/// Names that are told once.
#[derive(Default)]
struct Regions {
    numbers: HashMap<(String, Kind), u32>,
    list: Vec<(String, Kind)>,
}

impl Regions {
    fn number(&mut self, name: &str, kind: Kind) -> u32 {
        *self.numbers.entry((name.to_owned(), kind)).or_insert_with(|| {
            self.list.push((name.to_owned(), kind));
            self.list.len() as u32 - 1
        })
    }
}

/// A stretch that a location was in a region.
struct Stretch<'a> {
    from: Ns,
    until: Ns,
    region: u32,
    /// It is a collective call.
    call: Option<&'a CollectiveCall>,
}

impl Archive {
    fn of(timeline: &Timeline, host: &str) -> Archive {
        let mut regions = Regions::default();
        let program = timeline.program.rsplit('/').next().unwrap_or_default();
        let program = regions.number(if program.is_empty() { "(program)" } else { program }, Kind::Program);
        let ranks = timeline.ranks.iter().map(|rank| rank.rank + 1).max().unwrap_or(0);
        let messages = || timeline.messages.iter().filter(|m| !m.collective && (m.tag < 0 || m.tag & OWN_TAG_BIT == 0));
        let communicators = Communicators::of(timeline, ranks, messages());
        let mut locations = vec![(0, Vec::new()); ranks as usize];
        for rank in &timeline.ranks {
            let stretches = stretches(rank, program, &mut regions);
            let mut events = nested(&stretches, |call| communicators.collective(call));
            for (from, until) in &rank.paused {
                events.extend([(*from, 2, Event::Recording(false)), (*until, 2, Event::Recording(true))]);
            }
            let place = &mut locations[rank.rank as usize];
            place.0 = rank.node;
            place.1 = events;
        }
        for message in messages() {
            let (comm, from, to) = communicators.message(message);
            // Partitioned operations have tags of their own.
            let (tag, bytes) = (message.tag as u32 & i32::MAX as u32, message.bytes);
            let mut put = |rank: u32, at: Ns, event: Event| {
                if let Some((_, events)) = locations.get_mut(rank as usize) {
                    events.push((at, 2, event));
                }
            };
            put(message.from, message.sent, Event::Send { to, comm, tag, bytes });
            put(message.to, message.received, Event::Receive { from, comm, tag, bytes });
        }
        let locations = locations
            .into_iter()
            .map(|(node, mut events)| {
                events.sort_by_key(|(at, order, _)| (*at, *order));
                (node, events.into_iter().map(|(at, _, event)| (at.min(timeline.length), event)).collect())
            })
            .collect();
        let nodes = match &timeline.nodes[..] {
            [] => vec![host.to_owned()],
            nodes => nodes.iter().map(|node| node.name.clone()).collect(),
        };
        Archive {
            regions: regions.list,
            communicators: communicators.list,
            locations,
            nodes,
            length: timeline.length,
            realtime: timeline.realtime,
        }
    }
}

/// What a rank was in: the program, regions, collective calls, and waits that are in none of those.
fn stretches<'a>(rank: &'a RankTrack, program: u32, regions: &mut Regions) -> Vec<Stretch<'a>> {
    let mut all: Vec<Stretch<'_>> = Vec::new();
    let slices = rank.slices.iter().flat_map(|slice| [slice.from, slice.until]);
    let spans = rank.regions.iter().flat_map(|span| [span.from, span.until]);
    let calls = rank.collectives.iter().flat_map(|call| [call.from, call.until]);
    let times: Vec<Ns> = slices.chain(spans).chain(calls).collect();
    if let (Some(from), Some(until)) = (times.iter().min(), times.iter().max()) {
        all.push(Stretch { from: *from, until: *until, region: program, call: None });
    }
    for span in &rank.regions {
        let region = regions.number(&span.name, Kind::Own);
        all.push(Stretch { from: span.from, until: span.until, region, call: None });
    }
    for call in &rank.collectives {
        let region = regions.number(&call.call, Kind::Mpi);
        all.push(Stretch { from: call.from, until: call.until, region, call: Some(call) });
    }
    let mut wait: Option<Stretch<'_>> = None;
    for slice in &rank.slices {
        if !matches!(slice.did, RankDid::Suspended | RankDid::Ready) || slice.call.is_empty() {
            all.extend(wait.take());
            continue;
        }
        // What a collective call waits in is told already.
        let next = rank.collectives.partition_point(|call| call.until <= slice.from);
        if rank.collectives.get(next).is_some_and(|call| call.from <= slice.from) {
            continue;
        }
        let region = regions.number(&slice.call, Kind::Mpi);
        match &mut wait {
            Some(wait) if wait.region == region && wait.until == slice.from => wait.until = slice.until,
            _ => all.extend(wait.replace(Stretch { from: slice.from, until: slice.until, region, call: None })),
        }
    }
    all.extend(wait);
    all
}

/// Enters and leaves of stretches as a stack has them; with each an order among what is at one time: what ends, what begins, what is
/// in between, what has no length.
fn nested(stretches: &[Stretch<'_>], mut end_of: impl FnMut(&CollectiveCall) -> Event) -> Vec<(Ns, u8, Event)> {
    let mut edges: Vec<(Ns, u8, Ns, usize)> = Vec::with_capacity(2 * stretches.len());
    for (index, stretch) in stretches.iter().enumerate() {
        // The longer one of two that begin together is around the other.
        edges.push((stretch.from, 1, Ns::MAX - stretch.until, index));
        edges.push((stretch.until, if stretch.from == stretch.until { 3 } else { 0 }, Ns::MAX - stretch.from, index));
    }
    edges.sort_unstable();
    let mut events = Vec::with_capacity(edges.len());
    let mut active: Vec<usize> = Vec::new();
    for (at, order, _, index) in edges {
        let mut put = |event: Event| events.push((at, order, event));
        let stretch = &stretches[index];
        if order == 1 {
            put(Event::Enter(stretch.region));
            if stretch.call.is_some() {
                put(Event::CollectiveBegin);
            }
            active.push(index);
            continue;
        }
        let Some(place) = active.iter().rposition(|open| *open == index) else { continue };
        let above: Vec<usize> = active.drain(place..).skip(1).collect();
        above.iter().rev().for_each(|open| put(Event::Leave(stretches[*open].region)));
        if let Some(call) = stretch.call {
            put(end_of(call));
        }
        put(Event::Leave(stretch.region));
        above.iter().for_each(|open| put(Event::Enter(stretches[*open].region)));
        active.extend(above);
    }
    events
}

#[cfg(test)]
mod tests;
