//! Collective calls on several nodes: on each, who comes first to a call tells the communicator's first rank, which compares with its own.
//!
//! A report is a small message in a context of its own, in front of those of the call itself. Nobody waits for it: the first rank looks at its calls, before it
//! waits (a report wakes it), when an error is raised, and in MPI_Finalize.

use super::calls::{self, Seen};
use super::sites::{self, Site};
use crate::guarded::EntryGuarded;
use crate::nodes;
use crate::process::{endpoint, endpoint_if_any};
use std::collections::{HashMap, VecDeque};
use vmpi_shared::check::{Key, Record, WORDS};
use vmpi_shared::matching::envelope::{Envelope, INLINE_BYTES, kind};
use vmpi_shared::matching::queues::AWAKENING;

/// A report: the words of its key, and its record.
const BYTES: usize = 16 + WORDS * size_of::<u64>();
const _: () = assert!(BYTES <= INLINE_BYTES);
/// So many calls, and reports, are remembered at most: beyond that nothing is compared any more.
const MOST: usize = 1 << 16;

/// Which call: context, class and number. A context is used again by a later communicator.
type Call = [u32; 3];

/// A call of this rank, which is the first one of the communicator.
struct Own {
    seen: Seen,
    site: Site,
    /// The nodes that have reported, and how many others will.
    reported: Vec<u32>,
    left: usize,
}

/// What the first rank of communicators knows.
#[derive(Default)]
struct Known {
    /// Its own calls until all reports have come, the oldest of each key first.
    own: HashMap<Call, VecDeque<Own>>,
    /// Reports, with their nodes, of calls that it has not made yet. Those of one node come in order.
    early: HashMap<Call, VecDeque<(u32, Record)>>,
    /// So many calls and reports are in the two.
    held: usize,
    is_full: bool,
}

impl Known {
    /// A report has come: with which call of this rank it is to be compared, if that is known.
    fn hear(&mut self, call: Call, node: u32, record: &Record) -> Option<(Seen, Site)> {
        let calls = self.own.get_mut(&call);
        let at = calls.as_ref().and_then(|calls| calls.iter().position(|own| !own.reported.contains(&node)));
        let (Some(calls), Some(at)) = (calls, at) else {
            self.is_full |= self.held >= MOST;
            if !self.is_full {
                self.held += 1;
                self.early.entry(call).or_default().push_back((node, *record));
            }
            return None;
        };
        let own = &mut calls[at];
        own.reported.push(node);
        own.left -= 1;
        let found = (own.seen, own.site);
        if own.left == 0 {
            calls.remove(at);
            self.held -= 1;
        }
        if calls.is_empty() {
            self.own.remove(&call);
        }
        Some(found)
    }

    /// This rank makes a call, of which so many nodes report: reports that have come before.
    fn make(&mut self, call: Call, (seen, site): (Seen, Site), reports: usize) -> Vec<Record> {
        self.is_full |= self.held >= MOST;
        if self.is_full || reports == 0 {
            return Vec::new();
        }
        self.held += 1;
        let own = Own { seen, site, reported: Vec::new(), left: reports };
        self.own.entry(call).or_default().push_back(own);
        let early = self.early.remove(&call).unwrap_or_default();
        self.held -= early.len();
        early.into_iter().filter_map(|(node, record)| self.hear(call, node, &record).map(|_| record)).collect()
    }
}

static KNOWN: EntryGuarded<Option<Known>> = EntryGuarded::new(None);

/// This rank makes a call of a communicator whose ranks are on `nodes` nodes, `home` being its first one; `is_first`: nobody of this node was there before.
#[cold]
pub(crate) fn called(key: Key, (home, nodes): (u32, usize), seen: &Seen, is_first: bool) {
    let endpoint = endpoint();
    let call = [key.context, key.class, key.number];
    if home == endpoint.me {
        let site = sites::here();
        let make = |known: &mut Option<Known>| known.get_or_insert_default().make(call, (*seen, site), nodes - 1);
        for record in KNOWN.with(make) {
            calls::compare(seen, site, &Seen::of_record(&record));
        }
        look();
    } else if is_first && endpoint.node.is_remote(home) {
        report(home, call, &seen.record());
    }
}

fn report(home: u32, call: Call, record: &Record) {
    let endpoint = endpoint();
    endpoint.deliver(home, &envelope(endpoint.me, call, record));
}

fn envelope(from: u32, call: Call, record: &Record) -> Envelope {
    let mut envelope = Envelope::EMPTY;
    (envelope.kind, envelope.context, envelope.from) = (kind::INLINE, AWAKENING, from);
    envelope.len = BYTES as u64;
    let (head, body) = envelope.body.split_at_mut(16);
    for (to, word) in head.chunks_exact_mut(4).zip(call) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    for (to, word) in body.chunks_exact_mut(8).zip(record) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    envelope
}

fn read(envelope: &Envelope) -> (Call, Record) {
    let (head, body) = envelope.body.split_at(16);
    let (mut call, mut record) = ([0; 3], [0; WORDS]);
    for (to, bytes) in call.iter_mut().zip(head.as_chunks().0) {
        *to = u32::from_ne_bytes(*bytes);
    }
    for (to, bytes) in record.iter_mut().zip(body.as_chunks().0) {
        *to = u64::from_ne_bytes(*bytes);
    }
    (call, record)
}

/// Look at the reports that have come.
pub(crate) fn look() {
    while let Some(envelope) = take() {
        let (call, record) = read(&envelope);
        let node = nodes::node_of(envelope.from);
        let hear = |known: &mut Option<Known>| known.get_or_insert_default().hear(call, node, &record);
        if let Some((seen, site)) = KNOWN.with(hear) {
            calls::compare(&seen, site, &Seen::of_record(&record));
        }
    }
}

fn take() -> Option<Envelope> {
    let queues = endpoint_if_any()?.queues();
    if queues.head.unexpected_count == 0 {
        return None;
    }
    let index = queues.find_unexpected(AWAKENING, 0, 0)?;
    Some(endpoint().queues().take_unexpected(index))
}

#[cfg(test)]
mod tests {
    use super::calls::What;
    use super::*;

    fn seen(kind: u64) -> Seen {
        let what = What { kind, root: None, op: None, amount: None };
        Seen { what, rank: 0, site: [0, 0], name: [0; 32] }
    }

    /// A context that is used again: each node's reports go to calls in their order, whoever is ahead.
    #[test]
    fn reports_find_the_calls_that_they_are_of() {
        let (mut known, call, site) = (Known::default(), [4, 0, 1], Site::default());
        assert!(known.make(call, (seen(1), site), 2).is_empty());
        assert_eq!(known.hear(call, 1, &seen(1).record()).map(|(seen, _)| seen.what.kind), Some(1));
        // The later communicator's call: node 1 is ahead of this rank, node 2 behind.
        assert!(known.hear(call, 1, &seen(2).record()).is_none());
        assert_eq!(known.make(call, (seen(2), site), 2), [seen(2).record()]);
        for kind in [1, 2] {
            assert_eq!(known.hear(call, 2, &seen(kind).record()).map(|(seen, _)| seen.what.kind), Some(kind));
        }
        assert!(known.own.is_empty() && known.early.is_empty() && known.held == 0);
    }

    /// However many reports come of one call, whoever sends them.
    #[test]
    fn what_is_remembered_has_a_bound() {
        let mut known = Known::default();
        for _ in 0..MOST + 10 {
            assert!(known.hear([4, 0, 1], 1, &seen(1).record()).is_none());
        }
        assert!(known.is_full && known.early.values().map(VecDeque::len).sum::<usize>() == MOST);
    }

    #[test]
    fn a_report_survives_its_envelope() {
        let mut record = [0; WORDS];
        record.iter_mut().zip(7..).for_each(|(word, value)| *word = value << 33 | value);
        assert_eq!(read(&envelope(3, [1, 2, 3], &record)), ([1, 2, 3], record));
    }
}
