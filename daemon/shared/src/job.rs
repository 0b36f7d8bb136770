//! The job segment: inboxes, queues, requests, slabs, collective cells. It is about messages.

mod config;
mod contexts;
mod layout;
mod parts;

pub use config::JobConfig;
pub use layout::{REVOCATIONS, SIMULATED};
pub(crate) use parts::Parts;

use crate::matching::inbox::{Cell, Ends, Inbox};
use crate::matching::queues::{Queues, Reserve};
use crate::mem::chunks::{self, Chunks};
use crate::mem::segment::{Head, Segment, SegmentError};
use crate::mem::slab::{Regions, Slab, SlabHead};
use crate::mem::sync::{AtomicU32, AtomicU64, Ordering};
use crate::monitor::Row;
use crate::trace::{self, Ring, Rings};
use layout::{Areas, HEADER_AT, JobHeader, LAYOUT, MAX_CELLS, chunk_heads_at, ranks_at};
use std::mem::size_of;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::NonNull;

/// A mapped job segment. Only the areas of the ranks in use at the time of mapping are mapped at first: room for others is much
/// address space, of which debuggers and limits (valgrind, `ulimit -v`) allow little. It is mapped when such a rank appears.
pub struct JobSegment {
    config: JobConfig,
    areas: Areas,
    ranks_at: u64,
    header: NonNull<JobHeader>,
    /// Address of the first rank's area.
    base: *mut u8,
    /// Ranks whose areas are mapped there.
    mapped: u32,
    segment: Segment,
    /// In a place of its own: `Parts` name it.
    reserve: Box<Reserve>,
}

// SAFETY: `base` and `header` point into the segment, which is Send and Sync itself.
unsafe impl Send for JobSegment {}
// SAFETY: as above.
unsafe impl Sync for JobSegment {}

impl JobSegment {
    /// A segment of `config`, all of whose ranks are in use.
    pub fn create(config: &JobConfig) -> Result<JobSegment, SegmentError> {
        Self::create_with_room(config, config.ranks)
    }

    /// A segment of `config`, of whose ranks the first `in_use` are in use; the others may be spawned.
    pub fn create_with_room(config: &JobConfig, in_use: u32) -> Result<JobSegment, SegmentError> {
        let areas = Areas::of(config);
        let ranks_at = ranks_at(config);
        let upto = |ranks: u32| ranks_at + areas.stride * u64::from(ranks);
        let bytes = upto(config.ranks) + config.chunks_bytes();
        let segment = Segment::create_in_part("job", LAYOUT, bytes, upto(in_use))?;
        let header = segment.at(HEADER_AT, size_of::<JobHeader>()).cast::<JobHeader>();
        let cells = [const { AtomicU64::new(0) }; MAX_CELLS / 64];
        cells[0].store(1, Ordering::Relaxed); // MPI_COMM_WORLD's
        // SAFETY: inside the fresh mapping, aligned, not yet shared.
        unsafe {
            header.write(JobHeader {
                config: *config,
                communicators: AtomicU32::new(1),
                in_use: AtomicU32::new(in_use),
                changes: AtomicU64::new(0),
                failures: AtomicU32::new(0),
                nodes: AtomicU32::new(0),
                cells,
            });
        }
        let job = Self::view(*config, areas, ranks_at, in_use, segment)?;
        #[cfg(feature = "model")]
        job.fill_model();
        Ok(job)
    }

    /// The model checker's atomics are not all-zero when new.
    #[cfg(feature = "model")]
    fn fill_model(&self) {
        use crate::cell::{CELL_BYTES, CellHead};
        for cell in 0..self.config.cells {
            let at = self.segment.at(4096 + u64::from(cell) * CELL_BYTES, size_of::<CellHead>());
            // SAFETY: inside the fresh mapping, aligned, not yet shared.
            unsafe { at.cast::<CellHead>().write(CellHead::default()) };
        }
        self.reserve.regions.chunks.fill_model();
        let log = self.segment.at(layout::revocations_at(&self.config), REVOCATIONS * size_of::<AtomicU32>());
        for at in 0..REVOCATIONS {
            // SAFETY: as above.
            unsafe { log.cast::<AtomicU32>().add(at).write(AtomicU32::new(0)) };
        }
        for rank in 0..self.config.ranks {
            let area = self.area(rank);
            // SAFETY: as above; each part lies where `Areas` puts it.
            unsafe {
                area.cast::<Ends>().write(Ends::default());
                area.add(self.areas.slab_head as usize).cast::<SlabHead>().write(SlabHead::default());
                for cell in 0..self.config.inbox_cells as usize {
                    area.add(self.areas.ring as usize).cast::<Cell>().add(cell).write(Cell::default());
                }
            }
        }
    }

    pub fn map(fd: OwnedFd) -> Result<JobSegment, SegmentError> {
        let mut segment = Segment::map_head("job", LAYOUT, fd)?;
        let header = segment.at(HEADER_AT, size_of::<JobHeader>()).cast::<JobHeader>();
        // SAFETY: a mapping is at least a page; the words are read once, before use; the number of ranks is atomic.
        let (config, in_use) = unsafe { ((*header.as_ptr()).config, header.as_ref().in_use.load(Ordering::SeqCst)) };
        let found = segment.bytes() as u64;
        if !config.is_possible() {
            return Err(SegmentError::Size { expected: 0, found });
        }
        let areas = Areas::of(&config);
        let ranks_at = ranks_at(&config);
        let expected = ranks_at + areas.stride * u64::from(config.ranks) + config.chunks_bytes();
        if found != expected {
            return Err(SegmentError::Size { expected, found });
        }
        let in_use = in_use.min(config.ranks);
        segment.extend((ranks_at + areas.stride * u64::from(in_use)) as usize)?;
        Self::view(config, areas, ranks_at, in_use, segment)
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.fd()
    }

    #[inline]
    pub fn config(&self) -> &JobConfig {
        &self.config
    }

    /// This process's own copy of the configuration, to change the limits of what it sends.
    pub fn config_mut(&mut self) -> &mut JobConfig {
        &mut self.config
    }

    /// Head and configuration as they lie in memory now; nobody changes them after creation.
    pub fn constant_words(&self) -> Vec<u64> {
        self.segment.words((size_of::<Head>() + size_of::<JobConfig>()) / 8)
    }

    #[inline(always)]
    fn header(&self) -> &JobHeader {
        // SAFETY: inside the mapping, aligned; what changes in it is atomic.
        unsafe { self.header.as_ref() }
    }

    /// Ranks from 0 on that are or were in use. The segment may have room for more, which may be spawned.
    pub fn ranks_in_use(&self) -> u32 {
        self.header().in_use.load(Ordering::Relaxed).min(self.config.ranks)
    }

    /// The daemon uses the first `ranks` ranks.
    pub fn use_ranks(&self, ranks: u32) {
        self.header().in_use.fetch_max(ranks, Ordering::SeqCst);
    }

    /// Map what a rank needs that has appeared since: otherwise its first use maps it, which must not fail then.
    ///
    /// # Errors
    /// Those of mremap: the process may not have so many addresses.
    pub fn reach(&self, rank: u32) -> Result<(), SegmentError> {
        if rank < self.mapped { Ok(()) } else { self.segment.whole().map(drop) }
    }

    /// Deaths and revocations so far.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.header().changes.load(Ordering::SeqCst)
    }

    /// The job lives in virtual time: nothing comes through its inboxes, and each look at what has come looks further (`SIMULATED`). Before any rank starts.
    pub fn simulate(&self) {
        (0..self.ranks_in_use()).for_each(|rank| self.inbox(rank).close());
        self.header().changes.store(SIMULATED, Ordering::SeqCst);
    }

    /// A death or a revocation has been published: whoever waits must be woken after this.
    pub fn note_change(&self) {
        self.header().changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Ranks that have failed.
    pub fn failures(&self) -> u32 {
        self.header().failures.load(Ordering::SeqCst)
    }

    /// One more rank has failed: `write` its number among those, from 1 on, to the rank. The daemon calls this, or the carrier for one of another
    /// node. A number is counted when it has been written, so that who sees one sees all below it: programs acknowledge all failures up to a number.
    /// Who comes second writes once more.
    pub fn count_failure(&self, write: impl Fn(u32)) {
        let failures = &self.header().failures;
        loop {
            let count = self.failures();
            write(count + 1);
            if failures.compare_exchange(count, count + 1, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return;
            }
        }
    }

    /// The process of `rank` has ended, in a job in which nobody else matches in its queues: what it held is nobody's, and the memory that this took others may use.
    pub fn bury(&self, rank: u32) {
        // SAFETY: there is no owner any more.
        unsafe { self.queues(rank) }.head.unexpected_count = 0;
        self.reserve.regions.chunks.forget(rank);
    }

    /// The process of `rank` has ended: make its queues as new for another one, and give their memory back.
    ///
    /// Its slab stays as it is: blocks may still be on their way to receivers, and a new process can go on with the lists.
    ///
    /// # Errors
    /// Those of fallocate; the rank must not be used again then.
    pub fn renew_rank(&self, rank: u32) -> Result<(), nix::errno::Errno> {
        use nix::fcntl::{FallocateFlags, fallocate};
        let start = self.ranks_at + u64::from(rank) * self.areas.stride;
        let parts = [(0, self.areas.slab_head), (self.areas.queue_head, self.areas.slab)];
        for (from, to) in parts {
            let mode = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
            fallocate(self.segment.fd(), mode, (start + from) as i64, (to - from) as i64)?;
        }
        self.reserve.regions.chunks.forget(rank);
        Ok(())
    }

    fn view(
        config: JobConfig,
        areas: Areas,
        ranks_at: u64,
        mapped: u32,
        mut segment: Segment,
    ) -> Result<JobSegment, SegmentError> {
        segment.conceal();
        let chunks_at = ranks_at + areas.stride * u64::from(config.ranks);
        let memory = segment.apart(chunks_at)?;
        let heads = segment.at(chunk_heads_at(&config), chunks::heads_bytes(config.chunks) as usize);
        // SAFETY: `Segment` keeps this mapping.
        let chunks = unsafe { Chunks::new(heads, config.chunks, memory, chunks_at) };
        let regions = Regions { bytes: config.slab_bytes, chunks };
        let reserve = Box::new(Reserve { regions, own: config.unexpected as usize });
        let base = segment.at(ranks_at, areas.stride as usize * mapped as usize).as_ptr();
        let header = segment.at(HEADER_AT, size_of::<JobHeader>()).cast::<JobHeader>();
        Ok(JobSegment { config, areas, ranks_at, header, base, mapped, segment, reserve })
    }

    /// Memory for what is more than ranks have room for.
    pub fn chunks(&self) -> &Chunks {
        &self.reserve.regions.chunks
    }

    #[inline(always)]
    fn area(&self, rank: u32) -> *mut u8 {
        let base = if rank < self.mapped { self.base } else { self.late_base(rank) };
        // SAFETY: inside the areas, whose end `view`, or the size of the whole, tells.
        unsafe { base.add(rank as usize * self.areas.stride as usize) }
    }

    /// Address of the first area in a mapping that has the area of `rank`, too.
    ///
    /// # Panics
    /// If there is no such rank, or if it cannot be mapped.
    #[cold]
    fn late_base(&self, rank: u32) -> *mut u8 {
        assert!(rank < self.config.ranks, "rank {rank} out of range");
        let whole =
            self.segment.whole().unwrap_or_else(|e| panic!("{e}, to reach rank {rank}, which was started later"));
        // SAFETY: the whole segment is mapped there.
        unsafe { whole.as_ptr().add(self.ranks_at as usize) }
    }

    /// The inbox of a rank.
    #[inline(always)]
    pub fn inbox(&self, rank: u32) -> Inbox<'_> {
        // SAFETY: this segment outlives the result.
        unsafe { self.inbox_at(self.area(rank)) }
    }

    /// # Safety
    /// `area` is a rank's, and mapped for as long as the result is used.
    #[inline(always)]
    unsafe fn inbox_at<'a>(&self, area: *mut u8) -> Inbox<'a> {
        // SAFETY: the area is mapped whole and laid out by `Areas`; both parts are made for sharing.
        unsafe {
            Inbox {
                ends: &*area.cast::<Ends>(),
                cells: std::slice::from_raw_parts(
                    area.add(self.areas.ring as usize).cast::<Cell>(),
                    self.config.inbox_cells as usize,
                ),
            }
        }
    }

    /// The matching queues of a rank.
    ///
    /// # Safety
    /// The caller owns them (`sched::RunState`) for as long as it uses the result.
    #[inline(always)]
    pub unsafe fn queues(&self, rank: u32) -> Queues<'_> {
        // SAFETY: passed on; this segment outlives the result.
        unsafe { self.parts(rank).queues() }
    }

    /// Where a rank's inbox and queues lie.
    #[inline(always)]
    pub(crate) fn parts(&self, rank: u32) -> Parts {
        let area = self.area(rank);
        // SAFETY: all parts are inside the area.
        unsafe {
            Parts {
                inbox: self.inbox_at(area),
                head: area.add(self.areas.queue_head as usize).cast(),
                bins: area.add(self.areas.bins as usize).cast(),
                slots: std::ptr::slice_from_raw_parts_mut(
                    area.add(self.areas.slots as usize).cast(),
                    self.config.slots as usize,
                ),
                unexpected: area.add(self.areas.unexpected as usize).cast(),
                reserve: &raw const *self.reserve,
            }
        }
    }

    /// What a rank has counted of its transfers.
    pub fn monitor(&self, rank: u32) -> Row<'_> {
        // SAFETY: inside the area, aligned; room for as many ranks.
        unsafe { Row::at(self.area(rank).add(self.areas.monitor as usize), self.config.ranks) }
    }

    /// Where a rank records what it does, and when.
    pub fn trace(&self, rank: u32) -> Ring<'_> {
        // SAFETY: inside the area, aligned; as large as `Areas` made it.
        unsafe { Ring::at(self.area(rank).add(self.areas.trace as usize), trace::capacity_for(self.config.slots)) }
    }

    /// Where the rings of all ranks lie in the file.
    pub fn rings(&self) -> Rings {
        let capacity = trace::capacity_for(self.config.slots);
        Rings { first: self.ranks_at + self.areas.trace, stride: self.areas.stride, capacity }
    }

    /// The slab region of a rank.
    #[inline]
    pub fn slab(&self, rank: u32) -> Slab<'_> {
        let area = self.area(rank);
        let before = self.ranks_at + u64::from(rank) * self.areas.stride;
        Slab {
            // SAFETY: inside the area, aligned; atomics only.
            head: unsafe { &*area.add(self.areas.slab_head as usize).cast::<SlabHead>() },
            base: area.wrapping_sub(before as usize),
            start: before + self.areas.slab,
            of_job: &self.reserve.regions,
        }
    }

    /// Address of `len` bytes at a slab offset of rank `from`; `None` if it is not inside that rank's slab.
    #[inline]
    pub fn block(&self, from: u32, offset: u64, len: u64) -> Option<*mut u8> {
        (from < self.config.ranks).then(|| self.slab(from))?.block(offset, len)
    }
}
