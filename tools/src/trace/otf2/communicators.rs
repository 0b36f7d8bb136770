//! Communicators of a recording: what their members have told of themselves in messages and collective calls.

use super::super::timeline::{CollectiveCall, Message, Timeline};
use super::Event;
use std::collections::BTreeMap;
use vmpi_shared::trace::Within;

/// MPI_COMM_WORLD's and MPI_COMM_SELF's contexts.
const WORLD: u32 = 0;
const SELF: u32 = 2;

/// Who is in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Members {
    /// Ranks of the job, in the communicator's order.
    Ranks(Vec<u32>),
    /// Each by itself: MPI_COMM_SELF.
    Oneself,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Communicator {
    pub(super) name: String,
    pub(super) members: Members,
}

/// What is known of a communicator in the making.
#[derive(Default)]
struct Known {
    size: u32,
    /// By their ranks there.
    members: BTreeMap<u32, u32>,
    /// Two say different things, or it lies between two groups.
    is_odd: bool,
}

impl Known {
    fn hear(&mut self, within: &Within, rank: u32, peer: Option<u32>) {
        self.is_odd |= within.size == 0 || (self.size != 0 && self.size != within.size);
        self.size = within.size;
        let mut put = |at: u32, rank: u32| self.is_odd |= *self.members.entry(at).or_insert(rank) != rank;
        put(within.rank, rank);
        if let Some(peer) = peer {
            put(within.peer, peer);
        }
    }

    /// All members, if they are known: each once.
    fn whole(&self) -> Option<Vec<u32>> {
        let complete = !self.is_odd && self.members.len() == self.size as usize;
        let in_order = self.members.keys().zip(0..).all(|(at, expected)| *at == expected);
        let list: Vec<u32> = self.members.values().copied().collect();
        let mut once = list.clone();
        once.sort_unstable();
        once.dedup();
        (complete && in_order && once.len() == list.len()).then_some(list)
    }
}

pub(super) struct Communicators {
    pub(super) list: Vec<Communicator>,
    /// By context: the number in the list, and whether its own ranks are told, not the job's.
    numbers: BTreeMap<u32, (u32, bool)>,
}

impl Communicators {
    pub(super) fn of<'a>(
        timeline: &Timeline,
        ranks: u32,
        messages: impl Iterator<Item = &'a Message>,
    ) -> Communicators {
        let mut known: BTreeMap<u32, Known> = BTreeMap::new();
        known.entry(WORLD).or_default();
        for message in messages {
            known.entry(message.context).or_default().hear(&message.within, message.from, Some(message.to));
        }
        for rank in &timeline.ranks {
            for call in &rank.collectives {
                known.entry(call.context & !1).or_default().hear(&call.within, rank.rank, None);
            }
        }
        let mut all = Communicators { list: Vec::new(), numbers: BTreeMap::new() };
        let everybody = || Members::Ranks((0..ranks).collect());
        for (context, known) in &known {
            let (name, members, own) = match (*context, known.whole()) {
                (SELF, _) => ("MPI_COMM_SELF".into(), Members::Oneself, true),
                (WORLD, Some(members)) => ("MPI_COMM_WORLD".into(), Members::Ranks(members), true),
                (WORLD, None) => ("MPI_COMM_WORLD".into(), everybody(), false),
                (context, Some(members)) => (format!("communicator {context}"), Members::Ranks(members), true),
                (context, None) => (format!("communicator {context}, by ranks of the job"), everybody(), false),
            };
            all.numbers.insert(*context, (all.list.len() as u32, own));
            all.list.push(Communicator { name, members });
        }
        all
    }

    /// Of a message: its communicator, and who sent it and received it there.
    pub(super) fn message(&self, message: &Message) -> (u32, u32, u32) {
        match self.numbers.get(&message.context) {
            Some((comm, true)) => (*comm, message.within.rank, message.within.peer),
            found => (found.map_or(0, |(comm, _)| *comm), message.from, message.to),
        }
    }

    /// The end of a collective call.
    pub(super) fn collective(&self, call: &CollectiveCall) -> Event {
        let (comm, own) = self.numbers.get(&(call.context & !1)).copied().unwrap_or((0, false));
        // Where the members are not known the root's number in the job is not, either.
        let root = call.root.filter(|_| own);
        Event::CollectiveEnd { operation: operation(&call.call), comm, root, sent: call.sent, received: call.received }
    }
}

/// OTF2_CollectiveOp of a function; neighbourhood collectives are what they would be among all.
fn operation(call: &str) -> u8 {
    let name = call.trim_start_matches("MPI_").trim_end_matches("_c").to_ascii_lowercase();
    match name.trim_start_matches("neighbor_") {
        "barrier" => 0,
        "bcast" => 1,
        "gather" => 2,
        "gatherv" => 3,
        "scatter" => 4,
        "scatterv" => 5,
        "allgather" => 6,
        "allgatherv" => 7,
        "alltoall" => 8,
        "alltoallv" => 9,
        "alltoallw" => 10,
        "allreduce" => 11,
        "reduce" => 12,
        "reduce_scatter" => 13,
        "scan" => 14,
        "exscan" => 15,
        "reduce_scatter_block" => 16,
        // Not told by its name, as where a ring had no room for more names.
        _ => 8,
    }
}
