//! What a node has recorded, on its way to the launcher: the used parts of the job segment, which keep their places there. Both ends read it alike then.

use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use vmpi_shared::trace::{TraceMap, mark_copied};

const CHUNK_BYTES: u64 = 1 << 20;

/// Tell `put` what lies where in the segment, piece by piece; first, with no bytes, how long it is.
///
/// # Errors
/// Those of reading, a map that does not fit, and those of `put`.
pub fn pass(segment: &File, map: &TraceMap, mut put: impl FnMut(u64, &[u8]) -> io::Result<()>) -> io::Result<()> {
    put(segment.metadata()?.len(), &[])?;
    let mut bytes = Vec::new();
    for (rank, _) in (0u32..).zip(&map.ranks).filter(|(_, stand)| stand.here) {
        let used = map.rings.used(segment, rank)?;
        let mut at = used.start;
        while at < used.end {
            bytes.resize((used.end - at).min(CHUNK_BYTES) as usize, 0);
            segment.read_exact_at(&mut bytes, at)?;
            put(at, &bytes)?;
            at += bytes.len() as u64;
        }
        let (at, word) = mark_copied(segment, &used)?;
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
    use vmpi_shared::trace::{Rings, TraceRank};

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
        let noise: Vec<u8> = (8..used.end - used.start).map(|at| (at % 251) as u8).collect();
        segment.write_all_at(&noise, 4104).unwrap();
        let (mut arrivals, mut count) = (Arrivals::default(), 0);
        pass(&segment, &map, |at, bytes| {
            count += bytes.len() as u64;
            arrivals.take(at, bytes);
            Ok(())
        })
        .unwrap();
        let empty = rings.used(&segment, 1).unwrap();
        assert_eq!(count, used.end - used.start + empty.end - empty.start + 16);
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
