//! Writing down what has been decided: into a file of this rank that is mapped, so that what is in there outlives the process however that ends.

use super::Want;
use crate::guarded::EntryGuarded;
use crate::process::endpoint;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use vmpi_shared::clock;
use vmpi_shared::decisions::{Encoder, Entry};
use vmpi_shared::matching::request::state;

/// The file begins with the number of bytes that follow and count.
const HEAD: usize = 8;
/// The file grows by so much.
const STEP: usize = 1 << 18;

/// A file that is written through memory.
struct Mapped {
    file: File,
    base: *mut u8,
    room: usize,
    used: usize,
}

impl Mapped {
    fn create(path: &Path) -> Result<Mapped, String> {
        let failed = |e: std::io::Error| format!("cannot write {}: {e}", path.display());
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path).map_err(failed)?;
        let mut mapped = Mapped { file, base: std::ptr::null_mut(), room: 0, used: HEAD };
        mapped.grow(STEP).map_err(failed)?;
        Ok(mapped)
    }

    fn grow(&mut self, by: usize) -> std::io::Result<()> {
        let room = self.room + by;
        // Blocks are reserved: a full file system is an error here, not a signal later.
        // SAFETY: plain system calls; a mapping that is replaced is unmapped first and used by nobody else.
        unsafe {
            let error = libc::posix_fallocate(self.file.as_raw_fd(), 0, room as libc::off_t);
            if error != 0 {
                return Err(std::io::Error::from_raw_os_error(error));
            }
            if !self.base.is_null() {
                libc::munmap(self.base.cast(), self.room);
            }
            let (read_write, fd) = (libc::PROT_READ | libc::PROT_WRITE, self.file.as_raw_fd());
            let base = libc::mmap(std::ptr::null_mut(), room, read_write, libc::MAP_SHARED, fd, 0);
            if base == libc::MAP_FAILED {
                self.base = std::ptr::null_mut();
                return Err(std::io::Error::last_os_error());
            }
            (self.base, self.room) = (base.cast(), room);
        }
        Ok(())
    }

    /// Behind what is there. What counts is counted last.
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.used + bytes.len() > self.room {
            self.grow(STEP.max(bytes.len()))?;
        }
        // SAFETY: inside the mapping, which is this object's.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(self.used), bytes.len());
            self.used += bytes.len();
            self.base.cast::<u64>().write_volatile((self.used - HEAD) as u64);
        }
        Ok(())
    }
}

struct Log {
    file: Mapped,
    encoder: Encoder,
    /// Everything is written that tells what else could have been taken.
    full: bool,
    /// When the last entry was written.
    at: u64,
    /// Answers of one kind that have not been written yet.
    run: Option<Entry>,
    /// Receives that have not taken a message, as far as this rank has seen: number and whether for any tag, by slot.
    open: BTreeMap<u32, (u64, bool)>,
    /// Messages that nobody has received, as told at MPI's end: how many by context, source and tag.
    left: BTreeMap<(u32, u32, i32), u32>,
    bytes: Vec<u8>,
}

// SAFETY: used with the entry lock held only (`EntryGuarded`).
unsafe impl Send for Log {}

static STATE: EntryGuarded<Option<Log>> = EntryGuarded::new(None);
static NUMBER: EntryGuarded<u64> = EntryGuarded::new(0);

/// The number of a receive with a wildcard that is about to be posted.
pub(super) fn number() -> u64 {
    NUMBER.with(|number| std::mem::replace(number, *number + 1))
}

/// That of the next one.
pub(super) fn next_number() -> u64 {
    NUMBER.with(|number| *number)
}

pub(super) fn begin(directory: &str, rank: u32, full: bool) -> Result<(), String> {
    let file = Mapped::create(&Path::new(directory).join(format!("rank-{rank}")))?;
    let log = Log {
        file,
        encoder: Encoder::default(),
        full,
        // The first entry of time says when by the clock that all ranks of a node have.
        at: 0,
        run: None,
        open: BTreeMap::new(),
        left: BTreeMap::new(),
        bytes: Vec::new(),
    };
    STATE.with(|state| *state = Some(log));
    Ok(())
}

impl Log {
    fn write(&mut self, entry: &Entry) {
        self.flush();
        self.encoder.encode(entry, &mut self.bytes);
        self.put();
    }

    fn put(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if let Err(e) = self.file.append(&bytes) {
            // What is in the file is right, and a replay goes its own way after that.
            eprintln!("vmpi: the record of a rank ends early: {e}");
            self.file.used = HEAD;
            std::process::exit(super::OWN_FAULT);
        }
        self.bytes = bytes;
        self.bytes.clear();
    }

    fn flush(&mut self) {
        if let Some(run) = self.run.take() {
            self.encoder.encode(&run, &mut self.bytes);
            self.put();
        }
    }

    /// Say when, where that counts.
    fn stamp(&mut self) {
        if self.full {
            let now = clock::monotonic_ns();
            let since = now - std::mem::replace(&mut self.at, now);
            self.write(&Entry::Time(since));
        }
    }

    fn decided(&mut self, slot: u32, source: i32, tag: i32) {
        let Some((number, any_tag)) = self.open.remove(&slot) else { return };
        self.stamp();
        self.write(&Entry::Receive { number, source: source as u32, tag: any_tag.then_some(tag) });
    }

    fn answered(&mut self, entry: &Entry) {
        match (&mut self.run, entry) {
            (Some(Entry::No(run)), Entry::No(more)) | (Some(Entry::Yes(run)), Entry::Yes(more)) => *run += more,
            (_, Entry::No(_) | Entry::Yes(_)) => {
                self.flush();
                self.run = Some(entry.clone());
            }
            _ => self.write(entry),
        }
    }

    /// Receives that others have matched for this rank.
    fn look(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let queues = endpoint().queues();
        let mut found = Vec::new();
        for slot in self.open.keys() {
            let shared = &queues.slots[*slot as usize];
            if !matches!(shared.state, state::POSTED | state::CANCELLED) {
                found.push((shared.order, *slot, shared.matched_source, shared.matched_tag));
            }
        }
        found.sort_unstable();
        found.into_iter().for_each(|(_, slot, source, tag)| self.decided(slot, source, tag));
    }
}

fn with(write: impl FnOnce(&mut Log)) {
    STATE.with(|state| state.as_mut().map(write));
}

/// The receive in `slot` has this number.
pub(super) fn posted(slot: u32, number: u64, context: u32, asked: Want) {
    with(|log| {
        if log.full {
            log.write(&Entry::Asked { context, source: asked.source, tag: asked.tag });
        }
        log.open.insert(slot, (number, asked.tag == crate::consts::ANY_TAG));
    });
}

/// The receive with this number took its message without a slot.
pub(super) fn took(number: u64, (any_tag, (source, tag)): (bool, (i32, i32))) {
    with(|log| log.write(&Entry::Receive { number, source: source as u32, tag: any_tag.then_some(tag) }));
}

pub(super) fn received(slot: u32, context: u32, source: i32, tag: i32) {
    with(|log| {
        log.decided(slot, source, tag);
        if log.full && context & 1 == 0 && source >= 0 {
            log.stamp();
            log.write(&Entry::Took { context, source: source as u32, tag });
        }
    });
}

pub(super) fn cancelled(slot: u32) {
    with(|log| {
        if let Some((number, _)) = log.open.remove(&slot) {
            log.write(&Entry::Cancelled { number });
        }
    });
}

pub(super) fn found(context: u32, asked: Want, source: i32, tag: i32) {
    with(|log| {
        if log.full {
            log.stamp();
            log.write(&Entry::Asked { context, source: asked.source, tag: asked.tag });
        }
        log.write(&Entry::Found { source: source as u32, tag });
    });
}

pub(super) fn answered(entry: &Entry) {
    with(|log| {
        if !matches!(entry, Entry::No(_)) {
            log.stamp();
        }
        log.answered(entry);
    });
}

/// This rank is about to suspend, perhaps for good.
pub(super) fn catch_up() {
    with(|log| {
        log.look();
        log.flush();
    });
}

/// At the end: also what nobody has received.
pub(super) fn finish() {
    with(|log| {
        log.look();
        log.flush();
        if !log.full {
            return;
        }
        // Those that were told when MPI ended before are there still.
        let mut told = log.left.clone();
        endpoint().each_unasked(|envelope| {
            let (context, source, tag) = (envelope.context, envelope.source as u32, envelope.tag);
            if context & 1 != 0 || envelope.source < 0 {
                return;
            }
            match told.get_mut(&(context, source, tag)) {
                Some(before) if *before > 0 => *before -= 1,
                _ => {
                    *log.left.entry((context, source, tag)).or_default() += 1;
                    log.write(&Entry::Left { context, source, tag });
                }
            }
        });
    });
}
