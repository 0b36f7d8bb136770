//! Who is in a communicator and what it is called, for those who look from outside (`vmpictl why`).
//!
//! One roster per collective cell, written by the members as they make the communicator; read by the daemon. Nothing in MPI depends
//! on it: what a roster says of a communicator that is being made or has been freed may be mixed.

use crate::mem::sync::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Longest name kept, bytes.
pub const NAME_BYTES: usize = 56;

/// Head of a roster; the members follow, a word each: rank in the job + 1.
#[repr(C, align(64))]
pub(crate) struct RosterHead {
    /// Matching context + 1 of the communicator that wrote last; its members.
    context: AtomicU32,
    /// Its size; its members.
    size: AtomicU32,
    /// Its name, NUL-padded; whichever member named it last.
    name: [AtomicU64; NAME_BYTES / 8],
}

const _: () = assert!(cfg!(feature = "model") || size_of::<RosterHead>() == 64);

/// Bytes of one roster with room for `ranks` members.
pub(crate) const fn bytes_for(ranks: u32) -> u64 {
    (size_of::<RosterHead>() as u64 + 4 * ranks as u64).next_multiple_of(64)
}

/// The roster of one communicator.
pub struct Roster<'a> {
    pub(crate) context: u32,
    pub(crate) head: &'a RosterHead,
    pub(crate) members: &'a [AtomicU32],
}

impl Roster<'_> {
    /// Job rank `me` is member `rank` of `size`.
    pub fn enroll(&self, rank: u32, size: u32, me: u32) {
        if let Some(member) = self.members.get(rank as usize) {
            member.store(me + 1, Relaxed);
        }
        if self.head.context.swap(self.context + 1, Relaxed) != self.context + 1 {
            // The first member of a communicator whose cell another one had before.
            self.rename(b"");
        }
        self.head.size.store(size, Relaxed);
    }

    /// The communicator's name, cut at `NAME_BYTES`.
    pub fn rename(&self, name: &[u8]) {
        for (at, word) in self.head.name.iter().enumerate() {
            let mut bytes = [0u8; 8];
            let rest = name.get(8 * at..).unwrap_or_default();
            let len = rest.len().min(8);
            bytes[..len].copy_from_slice(&rest[..len]);
            word.store(u64::from_le_bytes(bytes), Relaxed);
        }
    }

    /// The name, if it has one; bytes that are not UTF-8 or no printable characters are replaced.
    pub fn name(&self) -> String {
        if !self.is_current() {
            return String::new();
        }
        let bytes: Vec<u8> = self.head.name.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    }

    /// The members' ranks in the job, in the communicator's order; `None` for one that has not enrolled.
    pub fn members(&self) -> Vec<Option<u32>> {
        if !self.is_current() {
            return Vec::new();
        }
        let size = self.head.size.load(Relaxed) as usize;
        self.members.iter().take(size).map(|member| member.load(Relaxed).checked_sub(1)).collect()
    }

    /// Member `rank`'s rank in the job.
    pub fn member(&self, rank: u32) -> Option<u32> {
        let current = self.is_current() && rank < self.head.size.load(Relaxed);
        self.members.get(rank as usize).filter(|_| current)?.load(Relaxed).checked_sub(1)
    }

    /// The matching context (even) of the communicator.
    pub fn context(&self) -> u32 {
        self.context
    }

    /// That of whichever communicator has written it.
    pub(crate) fn written(self) -> Self {
        let context = self.head.context.load(Relaxed).saturating_sub(1);
        Roster { context, ..self }
    }

    pub(crate) fn is_current(&self) -> bool {
        self.head.context.load(Relaxed) == self.context + 1
    }
}
