//! Regions: parts of a program that it names itself (MPIX_Region_begin, MPIX_Region_end), and how long a rank was in each.
//!
//! The table lies in the rank's ring, behind the names of MPI functions, and is used without a trace, too: a report wants sums only. The rank is the
//! only writer; readers read the file, so that a table that nobody has touched stays a hole.
//!
//! A region is open from its first begin to the end that matches it; it may begin again meanwhile (recursion, threads), and regions may overlap in
//! any way: each counts for itself. What is in no room of its own shares the last one.

use crate::mem::sync::{AtomicU64, Ordering};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Regions of a rank; the last one stands for all that find no room.
pub const REGIONS: usize = 128;
/// What is told of more regions than there is room for.
pub const OTHERS: &str = "(other regions)";
const NAME_WORDS: usize = 12;
/// Bytes of a name; of a longer one the beginning is kept, and a number that tells it from others.
pub const NAME_BYTES: usize = 8 * NAME_WORDS;
const WORDS: usize = 24;
const BYTES: usize = 8 * WORDS;
/// Bytes of the table: its head and the regions.
pub(super) const TABLE_BYTES: u64 = (64 + REGIONS * BYTES) as u64;

const RELAXED: Ordering = Ordering::Relaxed;

/// A region of a rank. Times are ticks.
#[repr(C)]
pub(super) struct Region {
    name: [AtomicU64; NAME_WORDS],
    /// Begins.
    entered: AtomicU64,
    /// Begins that have no end yet.
    open: AtomicU64,
    /// Ends without a begin.
    strays: AtomicU64,
    /// How long it was open; how much of that the rank waited in MPI, and for its core.
    ticks: AtomicU64,
    waited: AtomicU64,
    ready: AtomicU64,
    /// How the clocks stood when it was opened.
    since: AtomicU64,
    waited_then: AtomicU64,
    ready_then: AtomicU64,
    /// It was open when the rank left MPI.
    left_open: AtomicU64,
    reserved: [AtomicU64; 2],
}

const _: () = assert!(cfg!(feature = "model") || size_of::<Region>() == BYTES);

/// A rank's clocks at a moment, ticks.
#[derive(Copy, Clone, Debug, Default)]
pub struct Clocks {
    pub now: u64,
    pub waited: u64,
    pub ready: u64,
}

/// A rank's table, as the rank itself has it.
#[derive(Copy, Clone)]
pub struct Table<'a> {
    count: &'a AtomicU64,
    regions: &'a [Region],
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(RELAXED).wrapping_add(amount), RELAXED);
}

impl<'a> Table<'a> {
    /// # Safety
    /// `at` is the address of `TABLE_BYTES` bytes of shared memory, aligned to 64.
    pub(super) unsafe fn at(at: *const u8) -> Table<'a> {
        // SAFETY: the caller's promise; atomics only.
        unsafe { Table { count: &*at.cast(), regions: std::slice::from_raw_parts(at.add(64).cast(), REGIONS) } }
    }

    /// Room for one more region; `None`: there is none but the one that all others share.
    pub fn new_region(&self, name: &[u8]) -> Option<usize> {
        let count = self.count.load(RELAXED) as usize;
        let region = self.regions[..REGIONS - 1].get(count)?;
        for (to, bytes) in region.name.iter().zip(kept_name(name).as_chunks::<8>().0) {
            to.store(u64::from_le_bytes(*bytes), RELAXED);
        }
        self.count.store(count as u64 + 1, Ordering::Release);
        Some(count)
    }

    /// The region begins, or once more while it is open: always true.
    pub fn begin(&self, region: usize, clocks: Clocks) -> bool {
        let region = &self.regions[region];
        let open = region.open.load(RELAXED);
        region.open.store(open.wrapping_add(1), RELAXED);
        add(&region.entered, 1);
        if open == 0 {
            region.since.store(clocks.now, RELAXED);
            region.waited_then.store(clocks.waited, RELAXED);
            region.ready_then.store(clocks.ready, RELAXED);
        }
        true
    }

    /// The region ends. Had it begun?
    pub fn end(&self, region: usize, clocks: Clocks) -> bool {
        let region = &self.regions[region];
        let Some(open) = region.open.load(RELAXED).checked_sub(1) else {
            add(&region.strays, 1);
            return false;
        };
        region.open.store(open, RELAXED);
        if open == 0 {
            region.close(clocks);
        }
        true
    }

    /// The rank leaves MPI: what is open ends here.
    pub fn finish(&self, clocks: Clocks) {
        let count = (self.count.load(RELAXED) as usize).min(REGIONS - 1);
        for region in self.regions[..count].iter().chain(&self.regions[REGIONS - 1..]) {
            if region.open.load(RELAXED) > 0 && region.left_open.load(RELAXED) == 0 {
                region.close(clocks);
                region.left_open.store(1, RELAXED);
            }
        }
    }
}

impl Region {
    fn close(&self, clocks: Clocks) {
        add(&self.ticks, clocks.now.saturating_sub(self.since.load(RELAXED)));
        add(&self.waited, clocks.waited.saturating_sub(self.waited_then.load(RELAXED)));
        add(&self.ready, clocks.ready.saturating_sub(self.ready_then.load(RELAXED)));
    }
}

/// What tells a name from others: FNV-1a.
pub fn hash(name: &[u8]) -> u64 {
    name.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The name as it is kept.
pub fn kept_name(name: &[u8]) -> [u8; NAME_BYTES] {
    let mut kept = [0; NAME_BYTES];
    if name.len() <= NAME_BYTES {
        kept[..name.len()].copy_from_slice(name);
        return kept;
    }
    let number = format!("~{:016x}", hash(name));
    let (start, end) = kept.split_at_mut(NAME_BYTES - number.len());
    start.copy_from_slice(&name[..start.len()]);
    end.copy_from_slice(number.as_bytes());
    kept
}

/// A region as it was read. Times are ticks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionRead {
    pub name: String,
    pub entered: u64,
    pub strays: u64,
    pub ticks: u64,
    pub waited: u64,
    pub ready: u64,
    /// It has begun, and not ended.
    pub open: bool,
    /// When it was opened last.
    pub since: u64,
}

/// The regions in the table that begins at `table` in the file of a job's segment (`Rings::regions_at`), by their places; those that were never used are left out at
/// the end.
///
/// # Errors
/// Those of reading.
pub fn read(file: &File, table: u64) -> io::Result<Vec<RegionRead>> {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, table)?;
    let count = (u64::from_le_bytes(word) as usize).min(REGIONS - 1);
    if count == 0 {
        return Ok(Vec::new());
    }
    // The last one is told only if there was no room for others.
    let upto = if count == REGIONS - 1 { REGIONS } else { count };
    let mut bytes = vec![0; upto * BYTES];
    file.read_exact_at(&mut bytes, table + 64)?;
    let mut regions: Vec<RegionRead> = bytes.as_chunks::<BYTES>().0.iter().map(region_of).collect();
    if let Some(others) = regions.get_mut(REGIONS - 1) {
        others.name = OTHERS.into();
    }
    if regions.last().is_some_and(|last| last.name == OTHERS && last.entered == 0 && last.strays == 0) {
        regions.pop();
    }
    Ok(regions)
}

fn region_of(bytes: &[u8; BYTES]) -> RegionRead {
    let words = bytes.as_chunks::<8>().0;
    let word = |at: usize| u64::from_le_bytes(words[NAME_WORDS + at]);
    let name = &bytes[..NAME_BYTES];
    let name = &name[..name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES)];
    // The program's bytes: nothing that a terminal would take for more than text.
    let name = String::from_utf8_lossy(name).chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    RegionRead {
        name,
        entered: word(0),
        strays: word(2),
        ticks: word(3),
        waited: word(4),
        ready: word(5),
        open: word(1) > 0,
        since: word(6),
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::super::ring::{Ring, Rings, bytes_for};
    use super::*;
    use std::io::Write;

    /// What a table tells after `write`.
    fn told(write: impl FnOnce(Table<'_>)) -> Vec<RegionRead> {
        let made = vec![[0u64; 8]; bytes_for(8) as usize / 64 + 1];
        let at = made.as_ptr().cast::<u8>();
        let at = at.wrapping_add(at.align_offset(64));
        // SAFETY: room for one line more than needed.
        write(unsafe { Ring::at(at, 8) }.regions());
        let file = memfd::MemfdOptions::default().create("ring").unwrap().into_file();
        // SAFETY: as above; nobody writes meanwhile.
        (&file).write_all(unsafe { std::slice::from_raw_parts(at, bytes_for(8) as usize) }).unwrap();
        read(&file, Rings { first: 0, stride: 0, capacity: 8 }.regions_at(&file, 0).unwrap()).unwrap()
    }

    fn at(now: u64, waited: u64) -> Clocks {
        Clocks { now, waited, ready: waited / 2 }
    }

    #[test]
    fn times_are_those_from_the_first_begin_to_its_end() {
        let regions = told(|table| {
            let (a, b) = (table.new_region(b"a").unwrap(), table.new_region(b"b").unwrap());
            table.begin(a, at(100, 0));
            table.begin(a, at(110, 2));
            table.begin(b, at(120, 4));
            assert!(table.end(a, at(150, 10)));
            assert!(table.end(a, at(160, 12)));
            table.begin(a, at(200, 12));
            assert!(table.end(a, at(205, 14)));
            assert!(!table.end(a, at(210, 14)), "it is not open");
            table.finish(at(300, 40));
            table.finish(at(900, 90));
        });
        let of = |name: &str, entered, strays, ticks, waited, ready, (open, since)| RegionRead {
            name: name.into(),
            entered,
            strays,
            ticks,
            waited,
            ready,
            open,
            since,
        };
        assert_eq!(regions, [of("a", 3, 1, 65, 14, 7, (false, 200)), of("b", 1, 0, 180, 36, 18, (true, 120))]);
    }

    #[test]
    fn long_names_are_told_apart_and_odd_ones_are_text() {
        let long = |end: u8| [vec![b'x'; 5000], vec![end]].concat();
        let regions = told(|table| {
            for name in [&long(b'1')[..], &long(b'2'), &[b'y'; NAME_BYTES], b"\x1b[31m\xff", b""] {
                table.new_region(name).unwrap();
            }
        });
        let names: Vec<&str> = regions.iter().map(|region| region.name.as_str()).collect();
        assert!(names[0] != names[1] && names[0].len() == NAME_BYTES && names[0].starts_with("xxx"), "{names:?}");
        assert_eq!(names[2..], ["y".repeat(NAME_BYTES).as_str(), "?[31m\u{fffd}", ""]);
    }

    #[test]
    fn what_finds_no_room_shares_the_last_one() {
        let mut places = Vec::new();
        let regions = told(|table| {
            places = (0..300).map(|n| table.new_region(format!("region {n}").as_bytes())).collect();
            table.begin(REGIONS - 1, at(10, 0));
            table.end(REGIONS - 1, at(30, 0));
        });
        assert_eq!(places.iter().flatten().count(), REGIONS - 1);
        assert_eq!(
            (regions.len(), regions[REGIONS - 1].name.as_str(), regions[REGIONS - 1].ticks),
            (REGIONS, OTHERS, 20)
        );
        let full = told(|table| {
            (0..300u16).for_each(|n| {
                let _ = table.new_region(&n.to_be_bytes().map(|byte| byte | 1 << 7));
            });
        });
        assert_eq!(full.len(), REGIONS - 1, "nothing was in the last one");
        assert_eq!(told(|_| ()), []);
    }
}
