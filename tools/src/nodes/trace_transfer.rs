//! What a node has recorded, on its way to the launcher: the used parts of the job segment, which keep their places there. Both ends read it alike then.

use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use vmpi_shared::trace::{TraceMap, Used};

const CHUNK_BYTES: u64 = 1 << 20;

/// Tell `put` what lies where in the segment, piece by piece; first, with no bytes, how long it is.
///
/// # Errors
/// Those of reading, a map that does not fit, and those of `put`.
pub fn pass(segment: &File, map: &TraceMap, mut put: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
    put(segment.metadata()?.len(), &[])?;
    for (rank, _) in (0u32..).zip(&map.ranks).filter(|(_, stand)| stand.here) {
        pass_ring(segment, &map.rings.used(segment, rank)?, &mut put)?;
    }
    Ok(())
}

/// A ring's rank may go on writing.
fn pass_ring(segment: &File, used: &Used, put: &mut impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut at = used.place.start;
    while at < used.place.end {
        bytes.resize((used.place.end - at).min(CHUNK_BYTES) as usize, 0);
        segment.read_exact_at(&mut bytes, at)?;
        put(at, &bytes)?;
        at += bytes.len() as u64;
    }
    for (at, word) in used.marks(segment)? {
        put(at, &word)?;
    }
    Ok(())
}

/// What has come of a node's segment.
#[derive(Debug, Default)]
pub struct Arrivals(Option<io::Result<File>>);

impl Arrivals {
    /// A piece of it; the first error stays.
    pub fn take(&mut self, at: u64, bytes: &[u8]) {
        let begin = || Ok(File::from(memfd_create(c"vmpi trace", MFdFlags::MFD_CLOEXEC)?));
        if let Ok(file) = self.0.get_or_insert_with(begin) {
            let done = if bytes.is_empty() { file.set_len(at) } else { file.write_all_at(bytes, at) };
            if let Err(error) = done {
                self.0 = Some(Err(error));
            }
        }
    }

    /// All of it; `None`: nothing has come.
    pub fn end(&mut self) -> Option<io::Result<File>> {
        self.0.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_shared::trace::{Record, RingReader, Rings, TraceRank, bytes_for};

    /// The ring's rank writes between the look at its count and the copying.
    #[test]
    fn what_is_written_while_a_ring_is_copied_is_not_in_the_copy() {
        let rings = Rings { first: 0, stride: 0, capacity: 16 };
        let segment = File::from(memfd_create(c"segment", MFdFlags::MFD_CLOEXEC).unwrap());
        segment.set_len(bytes_for(16)).unwrap();
        let write = |count: u64| {
            let words = Record::Ended { at: count }.words();
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            segment.write_all_at(&bytes, bytes_for((count - 1) % 16)).unwrap();
            segment.write_all_at(&count.to_le_bytes(), 0).unwrap();
        };
        // There is room; some is overwritten; all is.
        for (before, after, first) in [(3, 7, 1), (14, 20, 6), (14, 40, 15)] {
            (1..=before).for_each(write);
            let used = rings.used(&segment, 0).unwrap();
            (before + 1..=after).for_each(write);
            let mut arrivals = Arrivals::default();
            arrivals.take(bytes_for(16), &[]);
            let mut put = |at, bytes: &[u8]| {
                arrivals.take(at, bytes);
                Ok(())
            };
            pass_ring(&segment, &used, &mut put).unwrap();
            let copy = arrivals.end().expect("something").expect("no error");
            let read = RingReader::read(&copy, &rings, 0, 0).unwrap();
            let kept: Vec<Record> = (first..=before).map(|at| Record::Ended { at }).collect();
            assert_eq!((read.records, read.dropped, read.damaged), (kept, first - 1, 0), "{before}, {after}");
        }
    }

    #[test]
    fn pieces_come_to_their_places() {
        let rings = Rings { first: 4096, stride: 1 << 16, capacity: 16 };
        let segment = File::from(memfd_create(c"segment", MFdFlags::MFD_CLOEXEC).unwrap());
        segment.set_len(1 << 20).unwrap();
        // Rank 0 has written three records, rank 1 none, and rank 2 is elsewhere.
        segment.write_all_at(&3u64.to_le_bytes(), 4096).unwrap();
        let ranks = [true, true, false].map(|here| TraceRank { here, ..TraceRank::default() }).to_vec();
        let map = TraceMap { rings, ranks, ..TraceMap::default() };
        let used = rings.used(&segment, 0).unwrap();
        let noise: Vec<u8> = (8..used.place.end - used.place.start).map(|at| (at % 251) as u8).collect();
        segment.write_all_at(&noise, 4104).unwrap();
        let (mut arrivals, mut count) = (Arrivals::default(), 0);
        pass(&segment, &map, |at, bytes| {
            count += bytes.len() as u64;
            arrivals.take(at, bytes);
            Ok(())
        })
        .unwrap();
        let empty = rings.used(&segment, 1).unwrap();
        let bytes: u64 = [used, empty].iter().map(|used| used.place.end - used.place.start).sum();
        assert_eq!(count, bytes + 32, "and two marks each");
        let copy = arrivals.end().expect("something").expect("no error");
        let [mut a, mut b] = [vec![0; 1 << 18], vec![0; 1 << 18]];
        segment.read_exact_at(&mut a, 0).unwrap();
        copy.read_exact_at(&mut b, 0).unwrap();
        // What a copy says of itself.
        for copied in [4096 + 16, 4096 + (1 << 16) + 16] {
            a[copied..copied + 8].fill(0);
            b[copied..copied + 8].fill(0);
        }
        assert!(a == b && copy.metadata().unwrap().len() == 1 << 20);
        assert!(arrivals.end().is_none());
        arrivals.take(u64::MAX, &[]);
        arrivals.take(0, &[1]);
        assert!(arrivals.end().is_some_and(|file| file.is_err()), "a length that cannot be");
    }
}
