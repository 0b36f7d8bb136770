//! Where a rank's records lie, and how they are read while it goes on writing.
//!
//! The rank is the only writer. It fills a record and then counts it (SYNC T: release, with the reader's acquire). Readers take what
//! they find and look at the count again: what may have been overwritten meanwhile is not believed. Readers read the file, not a mapping: a
//! hole that nobody has touched stays one. Death story: nobody waits here.

use super::regions::{self, RegionRead, TABLE_BYTES, Table};
use super::{RECORD_BYTES, Record};
use crate::mem::prefetch;
use crate::mem::sync::{AtomicU64, Ordering};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Words of a record: a cache line.
pub const RECORD_WORDS: usize = 8;
/// Names of MPI functions that a ring has room for, and bytes of each.
const NAMES: usize = 192;
const NAME_BYTES: usize = 32;
const NAME_WORDS: usize = NAME_BYTES / 8;
/// Where the regions lie: behind head and names.
const REGIONS_AT: u64 = 64 + (NAMES * NAME_BYTES) as u64;
const HEAD_BYTES: u64 = REGIONS_AT + TABLE_BYTES;
/// So many records on, a line is fetched.
const AHEAD: u64 = 4;
/// A ring has room for so many records at least.
pub const CAPACITY_FLOOR: u64 = 4096;

/// Where `RingHead::copied` lies.
const COPIED: u64 = std::mem::offset_of!(RingHead, copied) as u64;

const _: () = assert!(RECORD_BYTES == 64 && REGIONS_AT.is_multiple_of(64) && HEAD_BYTES.is_multiple_of(64));

/// Head of a ring.
#[repr(C, align(64))]
pub(super) struct RingHead {
    /// Records written so far; the rank.
    written: AtomicU64,
    /// Names in use; the rank.
    names: AtomicU64,
    /// In a copy of the ring: what `written` was when all had been copied; who copied.
    copied: AtomicU64,
    reserved: [AtomicU64; 5],
}

/// Records of a ring in a job whose ranks have so many request slots: the more ranks, the fewer (`JobConfig::for_ranks`). 131,072 for up to 64.
pub fn capacity_for(slots: u32) -> u64 {
    (u64::from(slots) / 8).max(CAPACITY_FLOOR).next_power_of_two()
}

/// Bytes of a ring.
pub fn bytes_for(capacity: u64) -> u64 {
    HEAD_BYTES + capacity * RECORD_BYTES
}

/// A rank's ring, as the rank itself has it.
#[derive(Copy, Clone)]
pub struct Ring<'a> {
    head: &'a RingHead,
    names: &'a [[AtomicU64; NAME_WORDS]],
    regions: Table<'a>,
    /// A power of two.
    records: &'a [[AtomicU64; RECORD_WORDS]],
}

impl<'a> Ring<'a> {
    /// # Safety
    /// `at` is the address of `bytes_for(capacity)` bytes of shared memory, aligned to 64; `capacity` is a power of two.
    pub(crate) unsafe fn at(at: *const u8, capacity: u64) -> Ring<'a> {
        debug_assert!(capacity.is_power_of_two());
        // SAFETY: the caller's promise; atomics only.
        unsafe {
            Ring {
                head: &*at.cast(),
                names: std::slice::from_raw_parts(at.add(size_of::<RingHead>()).cast(), NAMES),
                regions: Table::at(at.add(REGIONS_AT as usize)),
                records: std::slice::from_raw_parts(at.add(HEAD_BYTES as usize).cast(), capacity as usize),
            }
        }
    }

    #[inline]
    pub(super) fn put(&self, words: &[u64; RECORD_WORDS]) {
        let count = self.head.written.load(Ordering::Relaxed);
        let at = |count: u64| &self.records[count as usize & (self.records.len() - 1)];
        let record = at(count);
        // A ring is larger than caches: have the line on its way that is due in a while.
        prefetch::for_writing(at(count.wrapping_add(AHEAD)));
        for (to, word) in record.iter().zip(words) {
            to.store(*word, Ordering::Relaxed);
        }
        self.head.written.store(count.wrapping_add(1), Ordering::Release); // SYNC T
    }

    /// The index + 1 of a name, which is added if it is new; 0: there is no room.
    #[cold]
    pub(super) fn name_index(&self, name: &str) -> u16 {
        let mut bytes = [0u8; NAME_BYTES];
        let len = name.len().min(NAME_BYTES);
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        let words: [u64; NAME_WORDS] =
            std::array::from_fn(|at| u64::from_le_bytes(bytes[8 * at..8 * at + 8].try_into().expect("eight bytes")));
        let count = (self.head.names.load(Ordering::Relaxed) as usize).min(NAMES);
        let is_it =
            |known: &[AtomicU64; NAME_WORDS]| known.iter().zip(&words).all(|(a, b)| a.load(Ordering::Relaxed) == *b);
        if let Some(known) = self.names[..count].iter().position(is_it) {
            return known as u16 + 1;
        }
        let Some(free) = self.names.get(count) else { return 0 };
        free.iter().zip(&words).for_each(|(to, word)| to.store(*word, Ordering::Relaxed));
        self.head.names.store(count as u64 + 1, Ordering::Release);
        count as u16 + 1
    }

    /// The program's own regions.
    pub fn regions(&self) -> Table<'a> {
        self.regions
    }

    /// Records written so far.
    pub fn written(&self) -> u64 {
        self.head.written.load(Ordering::Acquire)
    }
}

/// Where the rings of a job lie in the file of its segment.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// That of rank 0, and how far the next one is.
    pub first: u64,
    pub stride: u64,
    /// Records of each.
    pub capacity: u64,
}

impl Rings {
    /// Where the ring of `rank` begins in `file`.
    fn start(&self, file: &File, rank: u32) -> io::Result<u64> {
        let nonsense = || io::Error::new(io::ErrorKind::InvalidData, "these cannot be the rings of a job");
        let size = file.metadata()?.len();
        let start = u64::from(rank)
            .checked_mul(self.stride)
            .and_then(|offset| offset.checked_add(self.first))
            .ok_or_else(nonsense)?;
        let is_there = self.capacity.is_power_of_two() && self.capacity <= size;
        let fits = is_there && start.checked_add(bytes_for(self.capacity)).is_some_and(|end| end <= size);
        if fits { Ok(start) } else { Err(nonsense()) }
    }

    /// Where the table of regions of `rank` begins in `file`.
    pub fn regions_at(&self, file: &File, rank: u32) -> io::Result<u64> {
        Ok(self.start(file, rank)? + REGIONS_AT)
    }

    /// What rank `rank` has written in `file`, to be copied.
    ///
    /// # Errors
    /// Those of reading, and rings that do not fit the file.
    pub fn used(&self, file: &File, rank: u32) -> io::Result<Used> {
        let start = self.start(file, rank)?;
        let written = word_at(file, start)?; // SYNC T
        Ok(Used { place: start..start + HEAD_BYTES + written.min(self.capacity) * RECORD_BYTES, written })
    }
}

/// What a rank had written when somebody began to copy its ring.
#[derive(Clone, Debug)]
pub struct Used {
    /// Where it lies in the file.
    pub place: Range<u64>,
    /// Records written so far: the copy has no later ones, whatever the head says by the time when that is copied.
    written: u64,
}

impl Used {
    /// What the copy is to have at these places, once everything else has been copied: what it has, and what had been written by now. The reader
    /// then sees what was overwritten meanwhile.
    ///
    /// # Errors
    /// Those of reading.
    pub fn marks(&self, file: &File) -> io::Result<[(u64, [u8; 8]); 2]> {
        let start = self.place.start;
        Ok([(start, self.written.to_le_bytes()), (start + COPIED, word_at(file, start)?.to_le_bytes())])
    }
}

fn word_at(file: &File, at: u64) -> io::Result<u64> {
    let mut word = [0u8; 8];
    file.read_exact_at(&mut word, at)?;
    Ok(u64::from_le_bytes(word))
}

/// What was read of a rank's ring.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RingReader {
    /// In order.
    pub records: Vec<Record>,
    /// Names of MPI functions; `Call::name` is an index + 1.
    pub names: Vec<String>,
    /// The program's own regions; `Record::Region` has an index.
    pub regions: Vec<RegionRead>,
    /// Records that were overwritten, by the rank's count.
    pub dropped: u64,
    /// Words that are no record: the rank's memory was damaged.
    pub damaged: u64,
}

impl RingReader {
    /// Read the ring of `rank`, without its first `skip` records.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn read(file: &File, rings: &Rings, rank: u32, skip: u64) -> io::Result<RingReader> {
        let start = rings.start(file, rank)?;
        let word_at = |at: u64| word_at(file, at);
        let written = word_at(start)?; // SYNC T
        let mut read = RingReader::default();
        // The count is the rank's word: what is more than the ring has room for is lost.
        let new = written.saturating_sub(skip);
        let kept = new.min(rings.capacity);
        let mut bytes = vec![0u8; (kept * RECORD_BYTES) as usize];
        let first = (written - kept) & (rings.capacity - 1);
        let straight = kept.min(rings.capacity - first);
        let (head, tail) = bytes.split_at_mut((straight * RECORD_BYTES) as usize);
        let records_at = start + HEAD_BYTES;
        file.read_exact_at(head, records_at + first * RECORD_BYTES)?;
        file.read_exact_at(tail, records_at)?;
        // One more than it has counted may be half-written.
        let since = word_at(start)?.max(word_at(start + COPIED)?).wrapping_sub(written);
        let reach = if since == u64::MAX || kept == 0 { 0 } else { since + 1 };
        let torn = reach.saturating_sub(rings.capacity - kept).min(kept);
        read.dropped = new - kept + torn;
        let (words, _) = bytes.as_chunks::<8>();
        let (records, _) = words.as_chunks::<RECORD_WORDS>();
        let mut last = 0;
        for words in &records[torn as usize..] {
            match Record::of_words(&words.map(u64::from_le_bytes)).filter(|record| record.at() >= last) {
                Some(record) => {
                    last = record.at();
                    read.records.push(record);
                }
                None => read.damaged += 1,
            }
        }
        let names = word_at(start + 8)?.min(NAMES as u64);
        let mut bytes = vec![0u8; names as usize * NAME_BYTES];
        file.read_exact_at(&mut bytes, start + size_of::<[u64; 8]>() as u64)?;
        let text = |bytes: &[u8]| {
            let printable = bytes.iter().take_while(|byte| byte.is_ascii_graphic());
            printable.map(|byte| char::from(*byte)).collect()
        };
        read.names = bytes.chunks(NAME_BYTES).map(text).collect();
        read.regions = regions::read(file, rings.regions_at(file, rank)?)?;
        Ok(read)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    /// A ring in a file, of which this holds the words.
    struct Made(Vec<[u64; 8]>);

    impl Made {
        fn new(capacity: u64) -> Made {
            Made(vec![[0; 8]; bytes_for(capacity) as usize / 64 + 1])
        }

        /// Its ring, the file that it would be, and what lies before it in the file.
        fn ring(&self, capacity: u64) -> Ring<'_> {
            let at = self.0.as_ptr().cast::<u8>();
            let at = at.wrapping_add(at.align_offset(64));
            // SAFETY: room for one line more than needed.
            unsafe { Ring::at(at, capacity) }
        }

        fn file(&self, capacity: u64) -> File {
            let at = self.0.as_ptr().cast::<u8>();
            let at = at.wrapping_add(at.align_offset(64));
            let file = memfd::MemfdOptions::default().create("ring").unwrap().into_file();
            // SAFETY: as above; nobody writes meanwhile.
            let bytes = unsafe { std::slice::from_raw_parts(at, bytes_for(capacity) as usize) };
            (&file).write_all(bytes).unwrap();
            file
        }
    }

    proptest! {
        #[test]
        fn the_newest_are_kept_and_the_others_counted(writes in 0u64..40, skip in 0u64..40) {
            let capacity = 8;
            let made = Made::new(capacity);
            let ring = made.ring(capacity);
            for at in 1..=writes {
                ring.put(&Record::Ended { at }.words());
            }
            let rings = Rings { first: 0, stride: 0, capacity };
            let read = RingReader::read(&made.file(capacity), &rings, 0, skip).unwrap();
            let new = writes.saturating_sub(skip);
            // The oldest one of a full ring may be in the middle of being overwritten.
            let kept = new.min(capacity - 1);
            let expected: Vec<Record> = (writes - kept + 1..=writes).map(|at| Record::Ended { at }).collect();
            prop_assert_eq!(read.records, expected);
            prop_assert_eq!((read.dropped, read.damaged), (new - kept, 0));
        }

        #[test]
        fn whatever_lies_there_is_read(words in proptest::collection::vec(any::<u64>(), 8..64), capacity in 0u64..32) {
            let file = memfd::MemfdOptions::default().create("ring").unwrap().into_file();
            file.set_len(bytes_for(16)).unwrap();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            (&file).write_all(&bytes).unwrap();
            let rings = Rings { first: 0, stride: 64, capacity };
            for rank in [0, 1, u32::MAX] {
                let _ = RingReader::read(&file, &rings, rank, words[7]);
            }
        }
    }

    #[test]
    fn names_are_found_again() {
        let made = Made::new(8);
        let ring = made.ring(8);
        assert_eq!(
            [ring.name_index("MPI_Recv"), ring.name_index("MPI_Barrier"), ring.name_index("MPI_Recv")],
            [1, 2, 1]
        );
        for name in 0..NAMES {
            ring.name_index(&format!("MPI_{name}"));
        }
        assert_eq!((ring.name_index("MPI_Bcast"), ring.name_index("MPI_Recv")), (0, 1));
        let read = RingReader::read(&made.file(8), &Rings { first: 0, stride: 0, capacity: 8 }, 0, 0).unwrap();
        assert_eq!(
            (read.names.len(), read.names[0].as_str(), read.names[1].as_str()),
            (NAMES, "MPI_Recv", "MPI_Barrier")
        );
    }
}
