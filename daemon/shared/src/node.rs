//! The node segment of one job: cores, ranks, run queues and clocks. It is about time.
//!
//! One per job and node, so that a rank that scribbles over it can end its own job and no other (SPECIFICATION 4.1).
//! Reading order: `config` (what it is made from), `descriptors` (what lies there), this file (how it is made, mapped and looked at), `placement` (which ranks live where),
//! `pids` (which processes they are), `whereabouts` (how those are found).

mod config;
pub mod counting;
pub(crate) mod course;
mod descriptors;
pub mod last_words;
pub mod peer_memory;
pub mod peer_pids;
mod pids;
mod placement;
pub mod recording;
pub(crate) mod run_state;
mod whereabouts;

pub use config::{NodeConfig, Patience};
pub use descriptors::{CoreDescriptor, Life, Mark, NodeHeader, Post, RankDescriptor};
pub use pids::Pids;
pub use run_state::RunState;
pub use whereabouts::{Whereabouts, mark_of};

use course::Course;
use last_words::LastWords;
use peer_memory::Heaps;
use peer_pids::Peers;

use crate::clock::{Moment, Scale};
use crate::control::{MOST_RANKS, OnBlock, Wtime};
use crate::crash::OnCrash;
use crate::mem::bell::{Bell, Chime};
use crate::mem::segment::{Head, Segment, SegmentError, layout_hash};
use crate::mem::sync::{AtomicU32, AtomicU64, Ordering};
use crate::meter::{Event, Meter};
use crate::monitor::FOR_JOB;
use crate::trace::{Recorder, Ring};
use std::mem::size_of;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

#[cfg(not(feature = "model"))]
const _: () = {
    assert!(size_of::<CoreDescriptor>() == 256);
    assert!(size_of::<Post>() == 64);
    assert!(size_of::<Life>() == 128);
    assert!(POST_AT >= HEADER_AT + size_of::<NodeHeader>() as u64 && POST_AT + 64 <= CORES_AT);
    assert!(std::mem::offset_of!(CoreDescriptor, running) == 64);
    assert!(size_of::<RankDescriptor>() == 256);
    assert!(size_of::<Whereabouts>() == 64);
    assert!(std::mem::offset_of!(RankDescriptor, r) == 64);
    assert!(std::mem::offset_of!(RankDescriptor, call) == 128);
};

const VERSION: u64 = 16;
const LAYOUT: u64 = layout_hash(&[
    VERSION,
    size_of::<NodeHeader>() as u64,
    size_of::<CoreDescriptor>() as u64,
    size_of::<RankDescriptor>() as u64,
    size_of::<LastWords>() as u64,
    size_of::<Life>() as u64,
]);
const HEADER_AT: u64 = size_of::<Head>() as u64;
const POST_AT: u64 = 2048;
/// Where the cores are described in the segment, one `CoreDescriptor` after the other.
pub const CORES_AT: u64 = 4096;
const HEAD_WORDS: usize = (size_of::<Head>() + size_of::<NodeHeader>()) / 8;
/// Turns of sched_yield for which a rank stays awake after it has passed its core on.
const WARM_YIELDS: u32 = 2;
/// Of a job of several nodes: the carrier has some of the turns, and an answer from another node takes longer. (Allreduce of 8 bytes, two nodes, 8 ranks: 51 us
/// with 2, 34 with 6, 36 with 12.)
const WARM_YIELDS_BESIDE_CARRIER: u32 = 6;

/// Words of a set of ranks: whole cache lines.
const fn ready_words(ranks: u32) -> u32 {
    ranks.div_ceil(512) * 8
}

/// Sets of ranks: two of each core, and two of the node.
const fn sets(cores: u32) -> u32 {
    2 * cores + 2
}

/// Where the ranks are described in the segment of so many cores and ranks, one `RankDescriptor` after the other.
pub const fn ranks_at(cores: u32, ranks: u32) -> u64 {
    CORES_AT
        + (cores as usize * size_of::<CoreDescriptor>()) as u64
        + sets(cores) as u64 * ready_words(ranks) as u64 * 8
}

/// A mapped node segment.
pub struct NodeSegment {
    header: NodeHeader,
    cores: *const CoreDescriptor,
    ready: *const AtomicU64,
    ranks: *const RankDescriptor,
    last_words: *const LastWords,
    lives: *const Life,
    whereabouts: *const Whereabouts,
    post: *const Post,
    segment: Option<Segment>,
    /// Calls the daemon.
    bell: Option<Bell>,
    /// Calls the carrier.
    carrier_bell: Option<Chime>,
    pub(crate) peers: Peers,
    /// Which processes the ranks are, by the daemon's word; none in a world without one.
    pids: Option<Pids>,
    heaps: Heaps,
    /// The rank that this process is; none in the daemon.
    actor: Option<u32>,
    /// Which way it sends.
    course: Course,
    /// How often the rank of this process had moved when it last looked on which CPU it is.
    moves_seen: AtomicU32,
    /// The same when this process became it.
    moves_before: AtomicU32,
    /// Where this process records what it does, while somebody traces.
    recorder: Recorder,
    /// What this process counts, if somebody asked for that.
    meter: Option<Meter>,
}

// SAFETY: everything reached through it is atomics in shared memory; the header is a private copy.
unsafe impl Send for NodeSegment {}
// SAFETY: as above.
unsafe impl Sync for NodeSegment {}

impl NodeSegment {
    /// Make the segment for a job on this node. Measures the clock (5 ms).
    pub fn create(config: &NodeConfig) -> Result<NodeSegment, SegmentError> {
        let scale = Scale::measure();
        let header = Self::header_for(config, scale);
        let segment = Segment::create("node", LAYOUT, Self::bytes_for(&header))?;
        let at = segment.at(HEADER_AT, size_of::<NodeHeader>());
        // SAFETY: inside the fresh mapping, aligned, not yet shared.
        unsafe { at.cast::<NodeHeader>().write(header) };
        let node = Self::view(segment, header);
        node.fill(config);
        Ok(node)
    }

    /// Map the segment that the daemon handed over.
    pub fn map(fd: OwnedFd) -> Result<NodeSegment, SegmentError> {
        let segment = Segment::map("node", LAYOUT, fd)?;
        // SAFETY: a mapping is at least a page; the header was written before the descriptor was sent. Read once.
        let header = unsafe { segment.at(HEADER_AT, size_of::<NodeHeader>()).cast::<NodeHeader>().read() };
        let found = segment.bytes() as u64;
        let counts = [header.cores, header.ranks];
        if !counts.iter().all(|n| (1..=MOST_RANKS).contains(n)) || header.ready_words != ready_words(header.ranks) {
            return Err(SegmentError::Size { expected: 0, found });
        }
        let expected = Self::bytes_for(&header);
        if found != expected {
            return Err(SegmentError::Size { expected, found });
        }
        Ok(Self::view(segment, header))
    }

    fn header_for(config: &NodeConfig, scale: Scale) -> NodeHeader {
        let ticks = |time: Duration| (time.as_secs_f64() * scale.ticks_per_second) as u64;
        NodeHeader {
            job: config.job,
            ranks: config.ranks,
            cores: config.cpus.len() as u32,
            v: config.v,
            policy: config.policy as u32,
            keep_on_block: u32::from(config.on_block == OnBlock::Keep),
            wtime_rank: u32::from(config.wtime == Wtime::Rank),
            tsc: u32::from(scale.tsc),
            ticks_per_second: scale.ticks_per_second,
            // A spinner tends; in a job that survives deaths nobody touches another's queues.
            spin_ticks: if config.recovery { 0 } else { ticks(config.patience.spin) },
            long_ticks: ticks(config.patience.long),
            // A looked-at clock is a tick in the model: some turns are short there, some are not.
            brisk_ticks: if cfg!(feature = "model") { 8 } else { ticks(config.patience.brisk) },
            warm_yields: WARM_YIELDS,
            ready_words: ready_words(config.ranks),
            recovery: u32::from(config.recovery),
            simulated: 0,
            balance: if config.recovery { 0 } else { config.balance as u32 },
            own_cores: config.own_cores.min(config.cpus.len() as u32),
            bind: u32::from(config.bind),
            spread: 0,
            answers_first: u32::from(config.answers_first),
            on_crash: OnCrash::None.word(),
            started_at: if cfg!(feature = "model") { 0 } else { scale.now() },
        }
    }

    /// All that the segment has of a rank.
    const RANK_BYTES: u64 =
        (size_of::<RankDescriptor>() + size_of::<LastWords>() + size_of::<Life>() + size_of::<Whereabouts>()) as u64;

    fn bytes_for(header: &NodeHeader) -> u64 {
        let cores = u64::from(header.cores);
        let bytes = CORES_AT
            + cores * size_of::<CoreDescriptor>() as u64
            + u64::from(sets(header.cores)) * u64::from(header.ready_words) * 8
            + u64::from(header.ranks) * Self::RANK_BYTES;
        bytes.next_multiple_of(4096)
    }

    fn view(segment: Segment, header: NodeHeader) -> NodeSegment {
        let cores = header.cores as usize;
        let words = sets(header.cores) as usize * header.ready_words as usize;
        let ready_at = CORES_AT + (cores * size_of::<CoreDescriptor>()) as u64;
        let ranks_at = ranks_at(header.cores, header.ranks);
        let rank_bytes = header.ranks as usize * size_of::<RankDescriptor>();
        let words_at = ranks_at + rank_bytes as u64;
        let lives_at = words_at + u64::from(header.ranks) * size_of::<LastWords>() as u64;
        let whereabouts_at = lives_at + u64::from(header.ranks) * size_of::<Life>() as u64;
        NodeSegment {
            header,
            cores: segment.at(CORES_AT, cores * size_of::<CoreDescriptor>()).as_ptr().cast(),
            ready: segment.at(ready_at, words * 8).as_ptr().cast(),
            ranks: segment.at(ranks_at, rank_bytes).as_ptr().cast(),
            last_words: segment.at(words_at, header.ranks as usize * size_of::<LastWords>()).as_ptr().cast(),
            lives: segment.at(lives_at, header.ranks as usize * size_of::<Life>()).as_ptr().cast(),
            whereabouts: segment.at(whereabouts_at, header.ranks as usize * size_of::<Whereabouts>()).as_ptr().cast(),
            post: segment.at(POST_AT, size_of::<Post>()).as_ptr().cast(),
            segment: Some(segment),
            bell: None,
            carrier_bell: None,
            peers: Peers::default(),
            pids: None,
            heaps: Heaps::default(),
            actor: None,
            course: Course::default(),
            moves_seen: AtomicU32::new(0),
            moves_before: AtomicU32::new(0),
            recorder: Recorder::default(),
            meter: None,
        }
    }

    /// This process is `rank`.
    pub(crate) fn set_actor(&mut self, rank: u32) {
        self.actor = Some(rank);
        let descriptor = self.rank(rank);
        descriptor.pinned.store(self.core_of(rank) + 1, Ordering::Relaxed);
        let moves = descriptor.moves.load(Ordering::Relaxed);
        self.moves_before.store(moves, Ordering::Relaxed);
        self.moves_seen.store(moves, Ordering::Relaxed);
    }

    /// # Safety
    /// The ring outlives this.
    pub(crate) unsafe fn set_ring(&mut self, ring: Ring<'_>) {
        // SAFETY: the caller's promise.
        self.recorder = unsafe { Recorder::new(ring) };
    }

    /// Count these events for this process from now on.
    ///
    /// # Errors
    /// Those of perf_event_open(2).
    pub fn count_events(&mut self, events: &[&Event]) -> std::io::Result<()> {
        self.meter = Some(Meter::begin(events)?);
        Ok(())
    }

    #[inline]
    pub(crate) fn meter(&self) -> Option<&Meter> {
        self.meter.as_ref()
    }

    #[inline]
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Has the rank of this process ever moved? Most never have, and are asked nothing else.
    #[inline]
    pub(crate) fn has_moved(&self, rank: &RankDescriptor) -> bool {
        rank.moves.load(Ordering::Relaxed) != self.moves_before.load(Ordering::Relaxed)
    }

    /// Has it moved since this was asked last?
    pub(crate) fn has_moved_again(&self, rank: &RankDescriptor) -> bool {
        let moves = rank.moves.load(Ordering::Relaxed);
        self.moves_seen.swap(moves, Ordering::Relaxed) != moves
    }

    #[inline]
    pub(crate) fn actor(&self) -> Option<u32> {
        self.actor
    }

    /// Which way the rank of this process sends.
    #[inline]
    pub(crate) fn course(&self) -> &Course {
        &self.course
    }

    /// Has `rank` failed in a job that goes on without it? The number of failures when it did.
    #[inline]
    pub fn failure(&self, rank: u32) -> Option<u32> {
        if self.header.recovery == 0 {
            return None;
        }
        Some(self.rank(rank).failed.load(Ordering::SeqCst)).filter(|number| *number != 0)
    }

    /// Ring this bell when the daemon is to look at the cores' leases.
    pub fn set_bell(&mut self, bell: Bell) {
        self.bell = Some(bell);
    }

    /// The bell of a job that a daemon started.
    pub fn bell(&self) -> Option<&Bell> {
        self.bell.as_ref()
    }

    /// Call the daemon; nothing in a world without one.
    pub(crate) fn ring(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    /// Some of the job's ranks live on other nodes. Before anybody else has the segment.
    pub fn spread(&mut self, is_remote: impl Fn(u32) -> bool) {
        self.header.spread = 1;
        // No rank moves: what is known of cores here is not known elsewhere.
        self.header.balance = 0;
        if !cfg!(feature = "model") {
            self.header.warm_yields = WARM_YIELDS_BESIDE_CARRIER;
        }
        self.write_header();
        for rank in (0..self.header.ranks).filter(|rank| is_remote(*rank)) {
            self.core(self.core_of(rank)).ranks.fetch_sub(1, Ordering::Relaxed);
            self.rank(rank).state.store(RunState::Remote.word(), Ordering::SeqCst);
            self.life(rank).born.clear();
        }
    }

    /// What ranks are to do that are about to end badly. Before anybody else has the segment.
    /// The job lives in virtual time.
    pub fn set_simulated(&mut self) {
        self.header.simulated = 1;
        self.write_header();
    }

    pub fn set_on_crash(&mut self, choice: OnCrash) {
        self.header.on_crash = choice.word();
        self.write_header();
    }

    fn write_header(&self) {
        if let Some(segment) = &self.segment {
            // SAFETY: inside the mapping, aligned, not yet shared.
            unsafe { segment.at(HEADER_AT, size_of::<NodeHeader>()).cast::<NodeHeader>().write(self.header) };
        }
    }

    /// Does `rank` live on another node?
    #[inline]
    pub fn is_remote(&self, rank: u32) -> bool {
        self.header.spread != 0 && self.rank(rank).state.load(Ordering::Relaxed) == RunState::Remote.word()
    }

    /// Ring this bell when the carrier sleeps and there is something to take.
    pub fn set_carrier_bell(&mut self, bell: Chime) {
        self.carrier_bell = Some(bell);
    }

    /// The bell of a job of several nodes.
    pub fn carrier_bell(&self) -> Option<&Chime> {
        self.carrier_bell.as_ref()
    }

    /// A node in private memory, for model tests (leaked). Its last suspended rank does not spin.
    pub fn private(config: &NodeConfig) -> NodeSegment {
        fn leak<T: Default>(n: usize) -> *const T {
            Box::leak((0..n).map(|_| T::default()).collect::<Vec<_>>().into_boxed_slice()).as_ptr()
        }
        let mut header = Self::header_for(config, Scale { tsc: false, ticks_per_second: 1e9 });
        header.spin_ticks = 0;
        let node = NodeSegment {
            header,
            cores: leak::<CoreDescriptor>(header.cores as usize),
            ready: leak::<AtomicU64>(sets(header.cores) as usize * header.ready_words as usize),
            ranks: leak::<RankDescriptor>(header.ranks as usize),
            last_words: leak::<LastWords>(header.ranks as usize),
            lives: leak::<Life>(header.ranks as usize),
            whereabouts: leak::<Whereabouts>(header.ranks as usize),
            post: leak::<Post>(1),
            segment: None,
            bell: None,
            carrier_bell: None,
            peers: Peers::default(),
            pids: None,
            heaps: Heaps::default(),
            actor: None,
            course: Course::default(),
            moves_seen: AtomicU32::new(0),
            moves_before: AtomicU32::new(0),
            recorder: Recorder::default(),
            meter: None,
        };
        node.fill(config);
        node
    }

    /// Another view of a private node, for another rank of a model test; `spin_ticks` is how long the last rank of a core
    /// to suspend spins (same for all views).
    #[cfg(feature = "model")]
    pub fn another_view(&self, spin_ticks: u64) -> NodeSegment {
        assert!(self.segment.is_none(), "only a private node, which is never unmapped");
        let header = NodeHeader { spin_ticks, long_ticks: 2 * spin_ticks, ..self.header };
        NodeSegment {
            header,
            cores: self.cores,
            ready: self.ready,
            ranks: self.ranks,
            last_words: self.last_words,
            lives: self.lives,
            whereabouts: self.whereabouts,
            post: self.post,
            segment: None,
            bell: self.bell.clone(),
            carrier_bell: self.carrier_bell.clone(),
            peers: Peers::default(),
            pids: None,
            heaps: Heaps::default(),
            actor: None,
            course: Course::default(),
            moves_seen: AtomicU32::new(0),
            moves_before: AtomicU32::new(0),
            recorder: Recorder::default(),
            meter: None,
        }
    }

    fn fill(&self, config: &NodeConfig) {
        for (core, cpu) in config.cpus.iter().enumerate() {
            let descriptor = self.core(core as u32);
            descriptor.cpu.store(*cpu, Ordering::Relaxed);
            descriptor.released_at.store(self.header.started_at, Ordering::Relaxed);
        }
        for (rank, core) in config.placement.iter().enumerate() {
            self.rank(rank as u32).core.store(*core, Ordering::Relaxed);
            self.rank(rank as u32).home.store(*core, Ordering::Relaxed);
            self.core(*core).ranks.fetch_add(1, Ordering::Relaxed);
            // What the job's start takes is theirs, too: nothing was idle before.
            let born = &self.life(rank as u32).born;
            born.at.store(self.header.started_at, Ordering::Relaxed);
            born.core.store(*core + 1, Ordering::Relaxed);
        }
    }

    /// The descriptor to hand to ranks.
    ///
    /// # Panics
    /// On a private node (model tests).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.segment.as_ref().expect("a private node has no descriptor").fd()
    }

    #[inline]
    pub fn header(&self) -> &NodeHeader {
        &self.header
    }

    /// This process's own copy of the header: what it changes here holds for itself.
    pub fn header_mut(&mut self) -> &mut NodeHeader {
        &mut self.header
    }

    #[inline(always)]
    pub fn core(&self, core: u32) -> &CoreDescriptor {
        assert!(core < self.header.cores, "core index {core} out of range: the node segment is damaged");
        // SAFETY: in range of the array that `view` checked; atomics only.
        unsafe { &*self.cores.add(core as usize) }
    }

    #[inline(always)]
    pub fn rank(&self, rank: u32) -> &RankDescriptor {
        assert!(rank < self.header.ranks, "rank {rank} out of range: the node segment is damaged");
        // SAFETY: as above.
        unsafe { &*self.ranks.add(rank as usize) }
    }

    pub(crate) fn life(&self, rank: u32) -> &Life {
        assert!(rank < self.header.ranks, "rank {rank} out of range: the node segment is damaged");
        // SAFETY: as above.
        unsafe { &*self.lives.add(rank as usize) }
    }

    /// How the process of a rank of this node is found.
    pub fn whereabouts(&self, rank: u32) -> &Whereabouts {
        assert!(rank < self.header.ranks, "rank {rank} out of range: the node segment is damaged");
        // SAFETY: in range of the array that `view` checked; atomics only.
        unsafe { &*self.whereabouts.add(rank as usize) }
    }

    /// A core's set of READY ranks.
    #[inline(always)]
    pub(crate) fn ready(&self, core: u32) -> &[AtomicU64] {
        self.set(2 * core)
    }

    /// A core's set of suspended ranks that have mail for its spinner to tend.
    #[inline]
    pub(crate) fn mail(&self, core: u32) -> &[AtomicU64] {
        self.set(2 * core + 1)
    }

    /// The remote ranks for which there is something to take to their nodes.
    #[inline]
    pub(crate) fn outbox(&self) -> &[AtomicU64] {
        self.set(2 * self.header.cores)
    }

    /// The ranks that were made READY, under `NodeHeader::answers_first`, only to answer what another node waits for.
    pub(crate) fn answering(&self) -> &[AtomicU64] {
        self.set(2 * self.header.cores + 1)
    }

    #[inline]
    pub(crate) fn post(&self) -> &Post {
        // SAFETY: inside the mapping (or leaked); atomics only.
        unsafe { &*self.post }
    }

    pub(crate) fn last_words(&self, rank: u32) -> &LastWords {
        assert!(rank < self.header.ranks, "rank {rank} out of range: the node segment is damaged");
        // SAFETY: in range of the array that `view` checked; atomics only.
        unsafe { &*self.last_words.add(rank as usize) }
    }

    #[inline(always)]
    fn set(&self, index: u32) -> &[AtomicU64] {
        assert!(index < sets(self.header.cores));
        let stride = self.header.ready_words as usize;
        // Every hand-over looks at all of them: not at the rest of the cache line, too.
        let words = self.header.ranks.div_ceil(64) as usize;
        // SAFETY: in range of the array that `view` checked; `ready_words` is not less than that.
        unsafe { std::slice::from_raw_parts(self.ready.add(index as usize * stride), words) }
    }

    /// Now, in ticks of this node's clock.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        #[cfg(feature = "model")]
        return crate::mem::sync::ticks();
        #[cfg(not(feature = "model"))]
        Scale { tsc: self.header.tsc != 0, ticks_per_second: self.header.ticks_per_second }.now()
    }

    /// As `now`, in its place between what this process does before and after it.
    pub fn now_in_order(&self) -> u64 {
        #[cfg(feature = "model")]
        return crate::mem::sync::ticks();
        #[cfg(not(feature = "model"))]
        Scale { tsc: self.header.tsc != 0, ticks_per_second: self.header.ticks_per_second }.now_in_order()
    }

    /// This moment, by the node's clock and another one.
    pub fn moment(&self) -> Moment {
        Scale { tsc: self.header.tsc != 0, ticks_per_second: self.header.ticks_per_second }.moment()
    }

    pub fn seconds(&self, ticks: u64) -> f64 {
        ticks as f64 / self.header.ticks_per_second
    }

    /// Count transfers for the job from now on, or no more; of ranks to come, too.
    pub fn set_monitored(&self, on: bool) {
        for rank in 0..self.header.ranks {
            let word = &self.rank(rank).monitor;
            if on {
                word.fetch_or(FOR_JOB, Ordering::Relaxed);
            } else {
                word.fetch_and(!FOR_JOB, Ordering::Relaxed);
            }
        }
    }

    /// The other ranks' memory that is mapped here.
    pub fn heaps(&self) -> &Heaps {
        &self.heaps
    }

    /// Descriptor, in its process, of the file in which a rank's memory lies.
    pub fn heap_fd(&self, rank: u32) -> Option<u32> {
        self.rank(rank).heap_fd.load(Ordering::Acquire).checked_sub(1)
    }

    #[inline]
    pub fn state(&self, rank: u32) -> RunState {
        RunState::from_word(self.rank(rank).state.load(Ordering::SeqCst))
    }

    /// The rank that holds a core.
    #[inline]
    pub fn running_on(&self, core: u32) -> Option<u32> {
        run_state::holder_rank(self.core(core).holder.load(Ordering::SeqCst)).filter(|r| *r < self.header.ranks)
    }

    pub fn ready_count(&self, core: u32) -> u32 {
        self.ready(core).iter().map(|w| w.load(Ordering::Relaxed).count_ones()).sum()
    }

    /// Nanoseconds since the rank that holds `core` got it.
    pub fn running_for_ns(&self, core: u32) -> u64 {
        let since = self.core(core).granted_at.load(Ordering::Relaxed);
        (self.seconds(self.now().saturating_sub(since)) * 1e9) as u64
    }

    /// Head and header as they lie in memory now; nobody changes them after creation.
    pub fn constant_words(&self) -> Vec<u64> {
        self.segment.as_ref().map_or(Vec::new(), |segment| segment.words(HEAD_WORDS))
    }

    pub fn switches(&self, rank: u32) -> u64 {
        self.rank(rank).switches.load(Ordering::Relaxed)
    }
}
