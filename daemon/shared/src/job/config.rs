//! What a job segment is made from.

use super::layout::Areas;
use crate::control::MOST_RANKS;
use crate::matching::queues::CROWDED;
use crate::mem::chunks::{CHUNK_BYTES, MOST_CHUNKS};
use crate::mem::slab::{LARGEST_BYTES, PART_BYTES};
use std::mem::size_of;

/// With fewer chunks senders would not be asked to wait before they are used up.
const LEAST_CHUNKS: u32 = 8;

/// What a job segment is made from, as it lies in its header. Counts per rank; memory is used as it is touched.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct JobConfig {
    pub slab_bytes: u64,
    pub ranks: u32,
    /// Messages up to this size are copied through the slab.
    pub eager_limit_bytes: u32,
    /// The same for messages to ranks of the sender's core, where nobody else could copy meanwhile.
    pub near_eager_limit_bytes: u32,
    /// The same for messages out of memory that is laid open, where it is less.
    pub open_eager_limit_bytes: u32,
    /// The same for messages to ranks of other nodes.
    pub far_eager_limit_bytes: u32,
    /// Cells of an inbox (a power of two).
    pub inbox_cells: u32,
    /// Messages under way (posted receives, pending sends).
    pub slots: u32,
    /// Unexpected messages for which each rank has room of its own; more go into the job's chunks.
    pub unexpected: u32,
    /// Collective cells of the job.
    pub cells: u32,
    /// A receiver with so many unexpected messages makes its senders wait until they are matched; [`CROWDED`]: only where memory ends.
    pub unexpected_limit: u32,
    /// Memory for what is more than the ranks have room for, of the whole job (`mem::chunks`).
    pub chunks: u32,
    /// 0: never read another rank's memory, as where the kernel refuses it (`VMPI_SINGLE_COPY=0`).
    pub single_copy: u32,
    /// Ranks let others match for them while they compute (`endpoint::strong_progress`; `VMPI_STRONG_PROGRESS=0`: not).
    pub lend_queues: u32,
    /// So that there is no padding.
    pub reserved: u32,
}

impl Default for JobConfig {
    fn default() -> JobConfig {
        JobConfig {
            ranks: 1,
            eager_limit_bytes: 16384,
            near_eager_limit_bytes: LARGEST_BYTES as u32,
            open_eager_limit_bytes: PART_BYTES as u32,
            far_eager_limit_bytes: PART_BYTES as u32,
            inbox_cells: 256,
            slots: 65536,
            unexpected: 1024,
            slab_bytes: 8 << 20,
            cells: 1024,
            unexpected_limit: CROWDED,
            chunks: 16,
            single_copy: 1,
            lend_queues: 1,
            reserved: 0,
        }
    }
}

impl JobConfig {
    /// The requests of a job of `ranks`: the fewer ranks, the more, so that their part of the segment stays some 20 GB of addresses.
    pub fn for_ranks(ranks: u32) -> JobConfig {
        let most = (1 << 26) / ranks.max(1);
        let slots = most.clamp(1 << 16, 1 << 20);
        JobConfig { ranks, slots, ..JobConfig::default() }
    }

    /// With `bytes` of memory for unexpected messages beyond what each rank has room for, rounded up to chunks: at least a few.
    pub fn with_memory(self, bytes: u64) -> JobConfig {
        let chunks = bytes.div_ceil(CHUNK_BYTES).clamp(LEAST_CHUNKS.into(), MOST_CHUNKS.into()) as u32;
        JobConfig { chunks, ..self }
    }

    pub(super) fn chunks_bytes(&self) -> u64 {
        u64::from(self.chunks) * CHUNK_BYTES
    }

    /// Address space that each rank takes.
    pub fn rank_bytes(&self) -> u64 {
        Areas::of(self).stride
    }

    /// Could a segment be made from this? Bounds that keep all sizes computed from it far from overflow.
    pub(super) fn is_possible(&self) -> bool {
        let counts = [self.ranks, self.inbox_cells, self.slots, self.unexpected, self.cells];
        counts.iter().all(|count| (1..=MOST_RANKS).contains(count))
            && self.inbox_cells.is_power_of_two()
            && self.slab_bytes <= 1 << 32
            && self.chunks <= MOST_CHUNKS
    }
}

const _: () = assert!(size_of::<JobConfig>() == 64);
