//! Where the parts of a job segment lie.

use super::JobConfig;
use crate::cell::CELL_BYTES;
use crate::matching::inbox::{Cell, Ends};
use crate::matching::queues::{BINS, Bin, QueueHead, Unexpected};
use crate::matching::request::Slot;
use crate::mem::chunks::{self, CHUNK_BYTES, ChunkHead};
use crate::mem::segment::{Head, layout_hash};
use crate::mem::slab::SlabHead;
use crate::mem::sync::{AtomicU32, AtomicU64};
use crate::{monitor, roster, trace};
use std::mem::size_of;

#[repr(C)]
pub(super) struct JobHeader {
    pub(super) config: JobConfig,
    /// Communicators made so far.
    pub(super) communicators: AtomicU32,
    /// Ranks from 0 on that are or were in use; the daemon.
    pub(super) in_use: AtomicU32,
    /// Deaths and revocations so far: a rank for which it is different looks at both. Added to by whoever has published one.
    pub(super) changes: AtomicU64,
    /// Ranks that have failed; the daemon.
    pub(super) failures: AtomicU32,
    /// Nodes of the job, if several, and this one's number << 16; the daemon, before any rank.
    pub(super) nodes: AtomicU32,
    /// Collective cells in use, a bit each.
    pub(super) cells: [AtomicU64; MAX_CELLS / 64],
}

/// Contexts that can be revoked in a job's life.
pub const REVOCATIONS: usize = if cfg!(feature = "model") { 16 } else { 1 << 20 };

/// In `JobHeader::changes` of a simulated job: more than any count of deaths.
pub const SIMULATED: u64 = 1 << 63;

/// Most collective cells of a job.
pub(super) const MAX_CELLS: usize = 1024;

pub(super) const HEADER_AT: u64 = size_of::<Head>() as u64;
pub(super) const LAYOUT: u64 = layout_hash(&[
    12,
    REVOCATIONS as u64,
    size_of::<JobHeader>() as u64,
    size_of::<Ends>() as u64,
    size_of::<Cell>() as u64,
    size_of::<QueueHead>() as u64,
    size_of::<Slot>() as u64,
    size_of::<Unexpected>() as u64,
    size_of::<SlabHead>() as u64,
    size_of::<ChunkHead>() as u64,
    CHUNK_BYTES,
    CELL_BYTES,
    BINS as u64,
]);

/// Where a rank's parts begin, relative to its area.
#[derive(Copy, Clone)]
pub(super) struct Areas {
    pub(super) slab_head: u64,
    pub(super) queue_head: u64,
    pub(super) bins: u64,
    pub(super) ring: u64,
    pub(super) slots: u64,
    pub(super) unexpected: u64,
    pub(super) slab: u64,
    pub(super) monitor: u64,
    pub(super) trace: u64,
    pub(super) stride: u64,
}

impl Areas {
    pub(super) fn of(config: &JobConfig) -> Areas {
        let mut at = 0u64;
        let mut take = |bytes: u64, align: u64| {
            at = at.next_multiple_of(align);
            let start = at;
            at += bytes;
            start
        };
        take(size_of::<Ends>() as u64, 64); // at 0
        let slab_head = take(size_of::<SlabHead>() as u64, 64);
        let queue_head = take(size_of::<QueueHead>() as u64, 64);
        let bins = take((BINS * size_of::<Bin>()) as u64, 64);
        let ring = take(u64::from(config.inbox_cells) * size_of::<Cell>() as u64, 64);
        let slots = take(u64::from(config.slots) * size_of::<Slot>() as u64, 64);
        let unexpected = take(u64::from(config.unexpected) * size_of::<Unexpected>() as u64, 64);
        let slab = take(config.slab_bytes, 4096);
        let monitor = take(monitor::bytes_for(config.ranks), 4096);
        let trace = take(trace::bytes_for(trace::capacity_for(config.slots)), 4096);
        let stride = take(0, 4096);
        Areas { slab_head, queue_head, bins, ring, slots, unexpected, slab, monitor, trace, stride }
    }
}

/// Where the contexts that have been revoked are listed: behind the collective cells.
pub(super) fn revocations_at(config: &JobConfig) -> u64 {
    4096 + u64::from(config.cells) * CELL_BYTES
}

/// Where the rosters of the communicators begin, one per collective cell.
pub(super) fn rosters_at(config: &JobConfig) -> u64 {
    (revocations_at(config) + (REVOCATIONS * size_of::<AtomicU32>()) as u64).next_multiple_of(4096)
}

/// Where the heads of the chunks begin.
pub(super) fn chunk_heads_at(config: &JobConfig) -> u64 {
    (rosters_at(config) + u64::from(config.cells) * roster::bytes_for(config.ranks)).next_multiple_of(4096)
}

/// Where the ranks' areas begin. Behind them, at the end of the segment, lie the chunks.
pub(super) fn ranks_at(config: &JobConfig) -> u64 {
    (chunk_heads_at(config) + chunks::heads_bytes(config.chunks)).next_multiple_of(4096)
}
