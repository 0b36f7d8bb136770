//! What ranks compute between their calls of MPI, in a file: written by `--compute record`, read by `--compute replay`.
//!
//! A line that says what the file is, a line of JSON that says of what, then blocks in any order. A block is a piece of one rank's: its header, names of MPI
//! functions that are new in it, and points. A point is a word: what took place, and the CPU time since the point before. Blocks are appended whole, under
//! the file's lock, so ranks need not know of each other. All numbers are little-endian.

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const TITLE: &str = "vmpi computation 1\n";
/// Longest line of JSON.
const MOST_ABOUT: u64 = 1 << 20;
const MAGIC: u32 = u32::from_le_bytes(*b"VMPC");
const HEADER_BYTES: u64 = 32;
/// A block has so many points at most.
const BLOCK: usize = 1 << 14;
const MOST_NAME_BYTES: u32 = 1 << 20;
const LAST: u32 = 1;

const NS_BITS: u32 = 48;
const NAME_BITS: u32 = 14;
const MOST_NS: u64 = (1 << NS_BITS) - 1;

/// What the file is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The command, as a shell would take it.
    pub command: String,
    pub ranks: u32,
}

/// What took place.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A call that the program makes whenever messages come.
    Call,
    /// One of those of which it makes as many as it takes (MPI_Test).
    Poll,
    /// The program looked at a clock, or slept.
    Clock,
}

const KINDS: [Kind; 3] = [Kind::Call, Kind::Poll, Kind::Clock];

fn kind_of(word: u64) -> Option<Kind> {
    KINDS.get((word >> (NS_BITS + NAME_BITS)) as usize).copied()
}

impl Kind {
    /// Of a call of the function `name`.
    pub fn of(name: &str) -> Kind {
        const POLLS: [&str; 11] = [
            "MPI_Test",
            "MPI_Testall",
            "MPI_Testany",
            "MPI_Testsome",
            "MPI_Waitsome",
            "MPI_Iprobe",
            "MPI_Improbe",
            "MPI_Request_get_status",
            "MPI_Request_get_status_all",
            "MPI_Request_get_status_any",
            "MPI_Request_get_status_some",
        ];
        if POLLS.contains(&name) { Kind::Poll } else { Kind::Call }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is no recording of what ranks compute (vmpirun --simulate ... --compute record:FILE makes one)")]
    Foreign,
    #[error("it is damaged at byte {0}")]
    Damaged(u64),
    #[error("the part of rank {0} has no end: the run that was recorded did not get to its MPI_Finalize")]
    Unfinished(u32),
}

/// Begin a file, in place of what was there.
///
/// # Errors
/// Those of the system.
pub fn create(path: &Path, about: &About) -> io::Result<()> {
    let mut file = File::create(path)?;
    let line = serde_json::to_string(about)?;
    file.write_all(format!("{TITLE}{line}\n").as_bytes())
}

/// Read up to the first block.
fn open(path: &Path) -> Result<(File, About, u64), Problem> {
    let mut file = File::open(path)?;
    let mut title = [0; TITLE.len()];
    if file.read_exact(&mut title).is_err() || title != TITLE.as_bytes() {
        return Err(Problem::Foreign);
    }
    let mut line = Vec::new();
    io::BufRead::read_until(&mut io::BufReader::new((&file).take(MOST_ABOUT)), b'\n', &mut line)?;
    let about = serde_json::from_slice(&line).map_err(|_| Problem::Damaged(TITLE.len() as u64))?;
    let at = (TITLE.len() + line.len()) as u64;
    Ok((file, about, at))
}

/// A block's header.
struct Block {
    rank: u32,
    name_bytes: u32,
    points: u32,
    last: bool,
}

impl Block {
    fn bytes(&self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        let words = [MAGIC, self.rank, self.name_bytes, self.points, if self.last { LAST } else { 0 }];
        for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The one at `at`; `None`: the file ends there.
    fn at(file: &File, at: u64) -> Result<Option<Block>, Problem> {
        let mut bytes = [0; HEADER_BYTES as usize];
        match file.read_at(&mut bytes, at)? {
            0 => return Ok(None),
            read if read < bytes.len() => return Err(Problem::Damaged(at)),
            _ => {}
        }
        let word = |n: usize| u32::from_le_bytes([bytes[4 * n], bytes[4 * n + 1], bytes[4 * n + 2], bytes[4 * n + 3]]);
        let block = Block { rank: word(1), name_bytes: word(2), points: word(3), last: word(4) & LAST != 0 };
        let good = word(0) == MAGIC && block.name_bytes <= MOST_NAME_BYTES && block.points as usize <= BLOCK;
        good.then_some(Some(block)).ok_or(Problem::Damaged(at))
    }

    /// What follows the header.
    fn rest(&self) -> u64 {
        u64::from(self.name_bytes) + 8 * u64::from(self.points)
    }
}

/// What a file is about, if it has all of each rank.
///
/// # Errors
/// It is none, or has not.
pub fn check(path: &Path) -> Result<About, Problem> {
    let (file, about, mut at) = open(path)?;
    let length = file.metadata()?.len();
    let mut whole = BTreeSet::new();
    while let Some(block) = Block::at(&file, at)? {
        if block.rank >= about.ranks || at + HEADER_BYTES + block.rest() > length {
            return Err(Problem::Damaged(at));
        }
        if block.last {
            whole.insert(block.rank);
        }
        at += HEADER_BYTES + block.rest();
    }
    match (0..about.ranks).find(|rank| !whole.contains(rank)) {
        Some(rank) => Err(Problem::Unfinished(rank)),
        None => Ok(about),
    }
}

/// A rank's end of a file that is written.
pub struct Writer {
    file: File,
    rank: u32,
    points: Vec<u64>,
    names: Vec<&'static str>,
    /// So many of them are in the file.
    told: usize,
}

impl Writer {
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path, rank: u32) -> io::Result<Writer> {
        let file = File::options().append(true).open(path)?;
        Ok(Writer { file, rank, points: Vec::new(), names: Vec::new(), told: 0 })
    }

    /// # Errors
    /// Those of the system.
    pub fn put(&mut self, kind: Kind, name: &'static str, ns: u64) -> io::Result<()> {
        let known = self.names.iter().rposition(|known| *known == name);
        let index = known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        // MPI has fewer functions than that.
        let index = (index as u64).min((1 << NAME_BITS) - 1);
        self.points.push((kind as u64) << (NS_BITS + NAME_BITS) | index << NS_BITS | ns.min(MOST_NS));
        if self.points.len() == BLOCK { self.flush(false) } else { Ok(()) }
    }

    /// This rank has no more.
    ///
    /// # Errors
    /// Those of the system.
    pub fn finish(&mut self) -> io::Result<()> {
        self.flush(true)
    }

    fn flush(&mut self, last: bool) -> io::Result<()> {
        let names: String = self.names[self.told..].iter().flat_map(|name| [name, "\n"]).collect();
        self.told = self.names.len();
        let points = std::mem::take(&mut self.points);
        let block = Block { rank: self.rank, name_bytes: names.len() as u32, points: points.len() as u32, last };
        let mut bytes = block.bytes().to_vec();
        bytes.extend_from_slice(names.as_bytes());
        bytes.extend(points.iter().flat_map(|point| point.to_le_bytes()));
        self.file.lock()?;
        let written = self.file.write_all(&bytes);
        self.file.unlock()?;
        written
    }
}

/// A point that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point<'a> {
    pub kind: Kind,
    pub name: &'a str,
    pub ns: u64,
}

/// A rank's end of a file that is read.
pub struct Reader {
    file: File,
    pub about: About,
    rank: u32,
    /// Where the next block is looked for.
    at: u64,
    names: Vec<String>,
    points: Vec<u64>,
    next: usize,
    /// The block that was read is the rank's last.
    over: bool,
}

impl Reader {
    /// # Errors
    /// It is no such file.
    pub fn open(path: &Path, rank: u32) -> Result<Reader, Problem> {
        let (file, about, at) = open(path)?;
        Ok(Reader { file, about, rank, at, names: Vec::new(), points: Vec::new(), next: 0, over: false })
    }

    /// The next point, which stays the next one until `take`.
    ///
    /// # Errors
    /// The file is damaged, or ends too early.
    pub fn peek(&mut self) -> Result<Option<Point<'_>>, Problem> {
        let Some(word) = self.word(0)? else { return Ok(None) };
        let name = (word >> NS_BITS) as usize & ((1 << NAME_BITS) - 1);
        match (kind_of(word), self.names.get(name)) {
            (Some(kind), Some(name)) => Ok(Some(Point { kind, name, ns: word & MOST_NS })),
            _ => Err(Problem::Damaged(self.at)),
        }
    }

    /// Is there a look at a clock before the next call?
    ///
    /// # Errors
    /// As `peek`.
    pub fn has_clock(&mut self) -> Result<bool, Problem> {
        for ahead in 0.. {
            match self.word(ahead)?.map(kind_of) {
                Some(Some(Kind::Clock)) => return Ok(true),
                Some(Some(Kind::Poll)) => {}
                _ => break,
            }
        }
        Ok(false)
    }

    /// The point that is so many after the next one.
    fn word(&mut self, ahead: usize) -> Result<Option<u64>, Problem> {
        while self.next + ahead >= self.points.len() {
            if self.over {
                return Ok(None);
            }
            self.read_block()?;
        }
        Ok(Some(self.points[self.next + ahead]))
    }

    pub fn take(&mut self) {
        self.next = (self.next + 1).min(self.points.len());
    }

    /// The rank's next block.
    fn read_block(&mut self) -> Result<(), Problem> {
        loop {
            let at = self.at;
            let Some(block) = Block::at(&self.file, at)? else { return Err(Problem::Unfinished(self.rank)) };
            self.at += HEADER_BYTES + block.rest();
            if block.rank != self.rank {
                continue;
            }
            self.file.seek(SeekFrom::Start(at + HEADER_BYTES))?;
            let mut names = vec![0; block.name_bytes as usize];
            let mut points = vec![0; 8 * block.points as usize];
            let read = self.file.read_exact(&mut names).and_then(|()| self.file.read_exact(&mut points));
            let text = String::from_utf8(names).ok().filter(|_| read.is_ok()).ok_or(Problem::Damaged(at))?;
            self.names.extend(text.lines().map(str::to_owned));
            self.points.drain(..self.next);
            self.points.extend(points.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)));
            (self.next, self.over) = (0, block.last);
            return Ok(());
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A file that is gone when this is.
    struct Scratch(PathBuf);

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn file(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("vmpi-recording-{}-{name}", std::process::id()));
        create(&path, &About { command: "./a 'b c'".into(), ranks: 2 }).expect("it is writable");
        Scratch(path)
    }

    fn write(path: &Path, rank: u32, count: u64, ends: bool) {
        let mut writer = Writer::open(path, rank).expect("it is there");
        for number in 0..count {
            let name = if number % 3 == 0 { "MPI_Send" } else { "MPI_Test" };
            writer.put(Kind::of(name), name, number * 7 + u64::from(rank)).expect("there is room");
        }
        if ends {
            writer.finish().expect("there is room");
        }
    }

    #[test]
    fn what_each_rank_writes_it_reads() {
        let file = file("whole");
        let count = 3 * BLOCK as u64 + 5;
        std::thread::scope(|scope| {
            scope.spawn(|| write(&file.0, 0, count, true));
            scope.spawn(|| write(&file.0, 1, count / 2, true));
        });
        assert_eq!(check(&file.0).expect("it is whole").command, "./a 'b c'");
        for (rank, count) in [(0, count), (1, count / 2)] {
            let mut reader = Reader::open(&file.0, rank).expect("it is there");
            for number in 0..count {
                let name = if number % 3 == 0 { "MPI_Send" } else { "MPI_Test" };
                let point = Point { kind: Kind::of(name), name, ns: number * 7 + u64::from(rank) };
                assert_eq!(reader.peek().expect("it is whole"), Some(point));
                reader.take();
            }
            assert_eq!(reader.peek().expect("it is whole"), None);
        }
    }

    #[test]
    fn what_is_not_whole_is_told() {
        let file = file("cut");
        write(&file.0, 0, 5, true);
        write(&file.0, 1, 2 * BLOCK as u64, false);
        assert!(matches!(check(&file.0), Err(Problem::Unfinished(1))));
        let length = std::fs::metadata(&file.0).expect("it is there").len();
        File::options().write(true).open(&file.0).and_then(|file| file.set_len(length - 1)).expect("it is writable");
        assert!(matches!(check(&file.0), Err(Problem::Damaged(_))));
        std::fs::write(&file.0, "nonsense").expect("it is writable");
        assert!(matches!(check(&file.0), Err(Problem::Foreign)));
    }

    #[test]
    fn damage_is_survived() {
        let file = file("damage");
        write(&file.0, 0, 40, true);
        write(&file.0, 1, 40, true);
        let good = std::fs::read(&file.0).expect("it is there");
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0xff;
            std::fs::write(&file.0, &bad).expect("it is writable");
            let _ = check(&file.0);
            let Ok(mut reader) = Reader::open(&file.0, 1) else { continue };
            while let Ok(Some(_)) = reader.peek() {
                reader.take();
            }
        }
    }
}
