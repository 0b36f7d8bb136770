//! What a run decided where MPI leaves a choice, rank by rank, in the order of its calls: the content of `vmpirun --record`.
//!
//! A rank's part is a row of entries. Each begins with a number whose four lowest bits say what it is, so most take one byte (of up to eight ranks) or two:
//! which sender's message a receive from anybody took, in the order in which these were posted; what a probe found; that a test said no (so many times)
//! or yes; which request was taken. With `full`, what is needed to see what else could have been taken: when, what was asked for, and each message received.
//! Numbers have seven bits a byte, the lowest first.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;

/// The bits of an entry's first number that say what it is.
const KIND_BITS: u32 = 4;

/// One thing that was decided, or seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The receive that was posted as the so manieth with a wildcard took a message; `tag` if it was for any.
    Receive { number: u64, source: u32, tag: Option<i32> },
    /// It was cancelled.
    Cancelled { number: u64 },
    /// A probe found this.
    Found { source: u32, tag: i32 },
    /// So many tests or probes said no.
    No(u64),
    /// So many tests said yes.
    Yes(u64),
    /// This request was taken of several; 0: none is active; else its index + 1.
    Index(u64),
    /// These were.
    Set(Vec<u64>),
    /// Nanoseconds since the one before.
    Time(u64),
    /// The next receive with a wildcard (or the probe that is answered next) asks for this.
    Asked { context: u32, source: i32, tag: i32 },
    /// A receive took this message; `source` in its communicator.
    Took { context: u32, source: u32, tag: i32 },
    /// Nobody has received this message.
    Left { context: u32, source: u32, tag: i32 },
}

/// Receives are numbered: of those that are not decided, the first one, and the later ones that are.
#[derive(Default)]
struct Order {
    first: u64,
    later: BTreeSet<u64>,
}

impl Order {
    fn note(&mut self, number: u64) {
        if number == self.first && self.later.is_empty() {
            self.first += 1;
            return;
        }
        self.later.insert(number);
        while self.later.remove(&self.first) {
            self.first += 1;
        }
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn signed(number: i32) -> u64 {
    u64::from((number << 1 ^ number >> 31) as u32)
}

fn unsigned(number: u64) -> Option<i32> {
    let number = u32::try_from(number).ok()?;
    Some((number >> 1) as i32 ^ -((number & 1) as i32))
}

/// Writes entries.
#[derive(Default)]
pub struct Encoder(Order);

impl Encoder {
    pub fn encode(&mut self, entry: &Entry, out: &mut Vec<u8>) {
        let mut head = |kind: u64, number: u64| put(out, number << KIND_BITS | kind);
        match entry {
            Entry::Receive { number, source, tag } => {
                let order = &mut self.0;
                let ahead = *number - order.first;
                match (ahead, tag) {
                    (0, None) => head(0, u64::from(*source)),
                    (0, Some(tag)) => {
                        head(1, u64::from(*source));
                        put(out, signed(*tag));
                    }
                    _ => {
                        head(2, ahead << 1 | u64::from(tag.is_some()));
                        put(out, u64::from(*source));
                        tag.iter().for_each(|tag| put(out, signed(*tag)));
                    }
                }
                order.note(*number);
            }
            Entry::Cancelled { number } => {
                head(3, *number - self.0.first);
                self.0.note(*number);
            }
            Entry::Found { source, tag } => {
                head(4, u64::from(*source));
                put(out, signed(*tag));
            }
            Entry::No(count) => head(5, *count),
            Entry::Yes(count) => head(6, *count),
            Entry::Index(index) => head(7, *index),
            Entry::Set(indices) => {
                head(8, indices.len() as u64);
                indices.iter().for_each(|index| put(out, *index));
            }
            Entry::Time(ns) => head(9, *ns),
            Entry::Asked { context, source, tag } => {
                head(10, u64::from(*context));
                put(out, signed(*source));
                put(out, signed(*tag));
            }
            Entry::Took { context, source, tag } => {
                head(11, u64::from(*context));
                put(out, u64::from(*source));
                put(out, signed(*tag));
            }
            Entry::Left { context, source, tag } => {
                head(12, u64::from(*context));
                put(out, u64::from(*source));
                put(out, signed(*tag));
            }
        }
    }
}

/// Reads entries; ends at the first one that is none, or not whole.
pub struct Decoder<'a> {
    bytes: &'a [u8],
    order: Order,
}

impl<'a> Decoder<'a> {
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes, order: Order::default() }
    }

    /// Has all been read?
    pub fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for (place, byte) in self.bytes.iter().enumerate().take(10) {
            number |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[place + 1..];
                return Some(number);
            }
        }
        None
    }

    fn source(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn tag(&mut self) -> Option<i32> {
        unsigned(self.number()?)
    }

    fn next_entry(&mut self) -> Option<Entry> {
        let head = self.number()?;
        let number = head >> KIND_BITS;
        let word = u32::try_from(number);
        Some(match head & ((1 << KIND_BITS) - 1) {
            kind @ 0..=1 => {
                let tag = if kind == 1 { Some(self.tag()?) } else { None };
                self.receive(0, word.ok()?, tag)
            }
            2 => {
                let source = self.source()?;
                let tag = if number & 1 == 1 { Some(self.tag()?) } else { None };
                self.receive(number >> 1, source, tag)
            }
            3 => {
                let number = self.order.first.checked_add(number)?;
                self.order.note(number);
                Entry::Cancelled { number }
            }
            4 => Entry::Found { source: word.ok()?, tag: self.tag()? },
            5 => Entry::No(number),
            6 => Entry::Yes(number),
            7 => Entry::Index(number),
            8 => Entry::Set((0..number).map(|_| self.number()).collect::<Option<_>>()?),
            9 => Entry::Time(number),
            10 => Entry::Asked { context: word.ok()?, source: self.tag()?, tag: self.tag()? },
            11 => Entry::Took { context: word.ok()?, source: self.source()?, tag: self.tag()? },
            12 => Entry::Left { context: word.ok()?, source: self.source()?, tag: self.tag()? },
            _ => return None,
        })
    }

    fn receive(&mut self, ahead: u64, source: u32, tag: Option<i32>) -> Entry {
        let number = self.order.first.saturating_add(ahead);
        self.order.note(number);
        Entry::Receive { number, source, tag }
    }
}

impl Iterator for Decoder<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        let before = self.bytes;
        let entry = self.next_entry();
        if entry.is_none() {
            self.bytes = before;
        }
        entry
    }
}

/// A record's first line.
const MAGIC: &str = "vmpi record 1";

/// Its second one, as JSON; the rows of the ranks follow, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Bytes of each rank's row.
    pub bytes: Vec<u64>,
    /// The programs, and a number that follows from their files' content.
    pub programs: Vec<(String, u64)>,
    /// The command line that it was made with.
    pub command: String,
    /// All is there that tells what else could have been taken.
    pub full: bool,
}

/// A record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    pub head: Head,
    pub rows: Vec<Vec<u8>>,
}

impl Record {
    /// # Errors
    /// The file cannot be read, or is no record.
    pub fn read(path: &Path) -> Result<Record, String> {
        let content = std::fs::read(path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Record::parse(&content)
            .ok_or_else(|| format!("{} is no record of `vmpirun --record` (or it is cut)", path.display()))
    }

    fn parse(content: &[u8]) -> Option<Record> {
        let mut parts = content.splitn(3, |byte| *byte == b'\n');
        if parts.next()? != MAGIC.as_bytes() {
            return None;
        }
        let head: Head = serde_json::from_slice(parts.next()?).ok()?;
        let mut rest = parts.next()?;
        let mut rows = Vec::new();
        for bytes in &head.bytes {
            let (row, others) = rest.split_at_checked(usize::try_from(*bytes).ok()?)?;
            rows.push(row.to_vec());
            rest = others;
        }
        rest.is_empty().then_some(Record { head, rows })
    }

    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let head = Head { bytes: self.rows.iter().map(|row| row.len() as u64).collect(), ..self.head.clone() };
        let mut content = format!("{MAGIC}\n{}\n", serde_json::json!(head)).into_bytes();
        self.rows.iter().for_each(|row| content.extend_from_slice(row));
        std::fs::write(path, content).map_err(|e| format!("cannot write {}: {e}", path.display()))
    }
}

/// What rank `rank` of `ranks` is to decide by the record in `path`.
///
/// # Errors
/// As [`Record::read`]; or it is of another number of ranks.
pub fn read_rank(path: &Path, rank: u32, ranks: u32) -> Result<Vec<Entry>, String> {
    let record = Record::read(path)?;
    if record.rows.len() != ranks as usize {
        return Err(format!("{} is of {} ranks, and this job has {ranks}", path.display(), record.rows.len()));
    }
    let row = record.rows.get(rank as usize).map_or(&[][..], |row| row);
    let mut decoder = Decoder::new(row);
    let entries = decoder.by_ref().collect();
    if decoder.is_at_end() {
        return Ok(entries);
    }
    Err(format!("{}: what it has of rank {rank} is damaged", path.display()))
}

/// What a rank has written while it ran: the number of bytes that count, and these. Nothing, if there is not even that.
pub fn row_of_rank(content: &[u8]) -> &[u8] {
    let Some((count, rest)) = content.split_first_chunk() else { return &[] };
    rest.get(..u64::from_ne_bytes(*count) as usize).unwrap_or(&[])
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn bytes(entries: &[Entry]) -> Vec<u8> {
        let (mut encoder, mut out) = (Encoder::default(), Vec::new());
        entries.iter().for_each(|entry| encoder.encode(entry, &mut out));
        out
    }

    #[test]
    fn what_is_written_is_read() {
        let receive = |number, source, tag| Entry::Receive { number, source, tag };
        let entries = [
            receive(0, 3, None),
            receive(2, 1000, Some(-5)),
            receive(1, 0, Some(i32::MAX)),
            receive(4, 1, None),
            Entry::Cancelled { number: 3 },
            receive(5, 7, None),
            Entry::Found { source: 2, tag: i32::MIN },
            Entry::No(123_456_789),
            Entry::Yes(1),
            Entry::Index(0),
            Entry::Set(vec![0, 5, 300]),
            Entry::Time(u64::MAX >> KIND_BITS),
            Entry::Asked { context: 4, source: -2, tag: -1 },
            Entry::Took { context: u32::MAX, source: 9, tag: 7 },
            Entry::Left { context: 0, source: 0, tag: 0 },
        ];
        let bytes = bytes(&entries);
        let mut decoder = Decoder::new(&bytes);
        let read: Vec<Entry> = decoder.by_ref().collect();
        assert_eq!(read, entries);
        assert!(decoder.is_at_end());
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let path = std::env::temp_dir().join(format!("vmpi-record-{}", std::process::id()));
        let rows = vec![bytes(&[Entry::No(10), Entry::Yes(138)]), Vec::new(), bytes(&[Entry::Index(1)])];
        let head = Head { bytes: vec![4, 0, 1], programs: vec![("./a\n".into(), 7)], command: "x".into(), full: false };
        let record = Record { head, rows };
        record.write(&path).unwrap();
        assert_eq!(
            Record::read(&path),
            Ok(Record {
                head: Head { bytes: Record::read(&path).unwrap().head.bytes, ..record.head.clone() },
                ..record.clone()
            })
        );
        assert_eq!(read_rank(&path, 2, 3), Ok(vec![Entry::Index(1)]));
        assert!(read_rank(&path, 0, 4).unwrap_err().contains("of 3 ranks"));
        let mut content = std::fs::read(&path).unwrap();
        content.pop();
        assert_eq!(Record::parse(&content), None);
        assert_eq!(Record::parse(b"vmpi record 1\n{}"), None);
        std::fs::remove_file(&path).unwrap();
        assert!(Record::read(&path).unwrap_err().starts_with("cannot read"));
    }

    #[test]
    fn a_receive_of_few_ranks_takes_one_byte() {
        let entries: Vec<Entry> =
            (0..1000).map(|number| Entry::Receive { number, source: number as u32 % 8, tag: None }).collect();
        assert_eq!(bytes(&entries).len(), 1000);
    }

    #[test]
    fn what_is_cut_ends_there() {
        let whole = bytes(&[Entry::Found { source: 1, tag: 500 }, Entry::Set(vec![1000, 2000])]);
        for len in 0..whole.len() {
            let mut decoder = Decoder::new(&whole[..len]);
            assert!(decoder.by_ref().count() < 2);
            assert!(decoder.is_at_end() == (len == 0 || len == 3), "{len}");
        }
        // Bytes that are no number, and kinds that there are not.
        assert_eq!(Decoder::new(&[0xff; 20]).count(), 0);
        assert_eq!(Decoder::new(&[0x0f]).count(), 0);
    }
}
