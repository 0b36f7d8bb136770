//! A record in the order of time: its decisions, and which of them could have been others.
//!
//! A receive (or a probe) from anybody could have taken a message of another sender if one that it accepts is received later in the run, or never. It is not
//! asked whether that message was sent because of what this one took: a run that is to take it and cannot does not count (`explore`). So no order is left out for
//! a wrong guess, and some runs are made for nothing.

use std::collections::BTreeSet;
use vmpi_shared::decisions::{Decoder, Encoder, Entry, Head, Record};
use vmpi_shared::matching::request::{ANY_SOURCE, ANY_TAG};

/// Something decided at a rank.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub rank: usize,
    /// Nanoseconds, by the clock that all ranks of a node have.
    pub at: u64,
    /// When that was asked for: a receive may be found to have taken a message long after it was posted.
    since: u64,
    pub entry: Entry,
    /// What was asked for: context, source, tag.
    asked: Option<(u32, i32, i32)>,
    /// Other senders whose messages could have been taken, and the tag of the first such one.
    pub others: Vec<(u32, i32)>,
}

const ANY: i32 = ANY_SOURCE;

/// A message that a rank received, or was left with.
struct Message {
    at: u64,
    context: u32,
    source: u32,
    tag: i32,
}

struct Row {
    decisions: Vec<Decision>,
    messages: Vec<Message>,
}

fn read(rank: usize, bytes: &[u8]) -> Row {
    let mut row = Row { decisions: Vec::new(), messages: Vec::new() };
    let mut at = 0;
    // What receives ask for, by their numbers; of a probe it stands right before its answer.
    let mut posted: Vec<(u64, (u32, i32, i32))> = Vec::new();
    let mut entries = Decoder::new(bytes).peekable();
    while let Some(entry) = entries.next() {
        let mut decided = |entry: Entry, since, asked| {
            row.decisions.push(Decision { rank, at, since, entry, asked, others: Vec::new() })
        };
        match entry {
            Entry::Time(ns) => at += ns,
            Entry::Asked { context, source, tag } => match entries.peek() {
                Some(Entry::Found { .. }) => {
                    let found = entries.next().expect("peeked");
                    decided(found, at, Some((context, source, tag)));
                }
                _ => posted.push((at, (context, source, tag))),
            },
            Entry::Took { context, source, tag } => row.messages.push(Message { at, context, source, tag }),
            Entry::Left { context, source, tag } => row.messages.push(Message { at: u64::MAX, context, source, tag }),
            Entry::Receive { number, .. } | Entry::Cancelled { number } => {
                let (since, asked) = posted.get(number as usize).copied().unzip();
                decided(entry, since.unwrap_or(at), asked);
            }
            other => decided(other, at, None),
        }
    }
    row
}

/// All decisions of a record, in the order of time.
pub(super) fn decisions(record: &Record) -> Vec<Decision> {
    let mut all = Vec::new();
    for (rank, bytes) in record.rows.iter().enumerate() {
        let Row { decisions, messages } = read(rank, bytes);
        for mut decision in decisions {
            let taken = match &decision.entry {
                Entry::Receive { source, .. } | Entry::Found { source, .. } => *source,
                _ => {
                    all.push(decision);
                    continue;
                }
            };
            if let Some((context, ANY, tag)) = decision.asked {
                let fits = |message: &&Message| {
                    message.at > decision.since
                        && message.context == context
                        && message.source != taken
                        && (tag == ANY_TAG || tag == message.tag)
                };
                let mut seen = BTreeSet::new();
                decision.others = messages
                    .iter()
                    .filter(fits)
                    .filter(|message| seen.insert(message.source))
                    .map(|message| (message.source, message.tag))
                    .collect();
            }
            all.push(decision);
        }
    }
    all.sort_by_key(|decision| decision.at);
    all
}

/// The same decision, with another sender's message.
pub(super) fn altered(entry: &Entry, source: u32, with_tag: i32) -> Entry {
    match entry {
        Entry::Receive { number, tag, .. } => Entry::Receive { number: *number, source, tag: tag.map(|_| with_tag) },
        _ => Entry::Found { source, tag: with_tag },
    }
}

/// Does this record have that decision of that rank?
pub(super) fn has(record: &Record, rank: usize, wanted: &Entry, place: usize) -> bool {
    match wanted {
        Entry::Receive { .. } => Decoder::new(&record.rows[rank]).any(|entry| entry == *wanted),
        // Probes have no numbers: by how many answers stand before it.
        _ => answers(record, rank).nth(place).is_some_and(|entry| entry == *wanted),
    }
}

/// Is it what a test or a probe says?
pub(super) fn is_answer(entry: &Entry) -> bool {
    !matches!(
        entry,
        Entry::Receive { .. }
            | Entry::Cancelled { .. }
            | Entry::Time(_)
            | Entry::Asked { .. }
            | Entry::Took { .. }
            | Entry::Left { .. }
    )
}

/// What tests and probes of a rank answered.
fn answers(record: &Record, rank: usize) -> impl Iterator<Item = Entry> {
    Decoder::new(&record.rows[rank]).filter(is_answer)
}

/// A record of these decisions alone, in their order.
pub(super) fn record_of<'a>(like: &Record, decisions: impl Iterator<Item = (usize, &'a Entry)>) -> Record {
    let mut encoders: Vec<Encoder> = like.rows.iter().map(|_| Encoder::default()).collect();
    let mut rows = vec![Vec::new(); like.rows.len()];
    for (rank, entry) in decisions {
        encoders[rank].encode(entry, &mut rows[rank]);
    }
    Record { head: Head { full: false, ..like.head.clone() }, rows }
}

/// How many answers of that rank are among these decisions.
pub(super) fn answers_among(decisions: &[Decision], rank: usize) -> usize {
    decisions.iter().filter(|decision| decision.rank == rank && is_answer(&decision.entry)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(rows: &[&[Entry]]) -> Record {
        let encode = |entries: &&[Entry]| {
            let (mut encoder, mut out) = (Encoder::default(), Vec::new());
            entries.iter().for_each(|entry| encoder.encode(entry, &mut out));
            out
        };
        Record { head: Head::default(), rows: rows.iter().map(encode).collect() }
    }

    fn asked(tag: i32) -> Entry {
        Entry::Asked { context: 0, source: ANY_SOURCE, tag }
    }

    fn took(source: u32, tag: i32) -> Entry {
        Entry::Took { context: 0, source, tag }
    }

    #[test]
    fn what_is_received_later_could_have_been_taken() {
        let receive = |number, source| Entry::Receive { number, source, tag: None };
        let row = [
            asked(7),
            Entry::Time(10),
            receive(0, 1),
            took(1, 7),
            Entry::Time(10),
            took(2, 7),
            took(3, 8),
            asked(7),
            Entry::Time(5),
            receive(1, 1),
            took(1, 7),
            Entry::Left { context: 0, source: 4, tag: 7 },
            Entry::Left { context: 2, source: 5, tag: 7 },
        ];
        let all = decisions(&record(&[&[], &row]));
        let others: Vec<_> = all.iter().map(|decision| decision.others.clone()).collect();
        // Another context, another tag, and its own sender's later message are none.
        assert_eq!(others, [vec![(2, 7), (4, 7)], vec![(4, 7)]]);
        assert_eq!(altered(&all[0].entry, 4, 7), receive(0, 4));
    }

    #[test]
    fn decisions_stand_in_the_order_of_time() {
        let one = [Entry::Time(5), Entry::Index(1), Entry::Time(10), Entry::Index(2)];
        let two = [Entry::Time(7), Entry::Index(3)];
        let order: Vec<_> =
            decisions(&record(&[&one, &two])).into_iter().map(|decision| (decision.rank, decision.at)).collect();
        assert_eq!(order, [(0, 5), (1, 7), (0, 15)]);
    }
}
