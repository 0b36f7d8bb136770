//! The node segment of one job: cores, ranks, run queues and clocks. It is about time.
//!
//! One per job and node, so that a rank that scribbles over it can end its own job and no other (SPECIFICATION 4.1).
//! Reading order: `config` (what it is made from), `descriptors` and `layout` (what lies there, and where), this file (how it is made, mapped and looked at), `own` (what is this
//! process's alone), `placement` (which ranks live where), `pids` (which processes they are), `whereabouts` (how those are found).

mod config;
pub mod counting;
mod descriptors;
pub mod last_words;
mod layout;
mod own;
pub mod peer_memory;
pub mod peer_pids;
mod pids;
mod placement;
pub mod recording;
pub(crate) mod run_state;
pub(crate) mod send_pattern;
mod whereabouts;

pub use config::{NodeConfig, Patience};
pub use descriptors::{CarrierWords, CoreDescriptor, Life, Mark, NodeHeader, RankDescriptor};
pub use layout::{CORES_AT, ranks_at};
pub use pids::Pids;
pub use run_state::RunState;
pub use whereabouts::{Whereabouts, mark_of};

use last_words::LastWords;
use layout::{HEAD_WORDS, HEADER_AT, LAYOUT, Parts, ready_words, sets};
use own::Own;

use crate::clock::{Moment, Scale};
use crate::control::{MOST_RANKS, OnBlock, Wtime};
use crate::crash::OnCrash;
use crate::mem::segment::{Segment, SegmentError};
use crate::mem::sync::{AtomicU64, Ordering};
use crate::monitor::FOR_JOB;
use std::mem::size_of;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// Turns of sched_yield for which a rank stays awake after it has passed its core on.
const WARM_YIELDS: u32 = 2;
/// Of a job of several nodes: the carrier has some of the turns, and an answer from another node takes longer. (Allreduce of 8 bytes, two nodes, 8 ranks: 51 us
/// with 2, 34 with 6, 36 with 12.)
const WARM_YIELDS_BESIDE_CARRIER: u32 = 6;
/// Ranks of a core from which on none stays awake in a simulated job. (Of 64: half of the process switches and three quarters of the CPU time; of 8 it costs a third
/// more.)
const CROWDED_IN_VIRTUAL_TIME: u32 = 32;

/// A mapped node segment.
pub struct NodeSegment {
    header: NodeHeader,
    parts: Parts,
    segment: Option<Segment>,
    own: Own,
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
        let segment = Segment::create("node", LAYOUT, layout::bytes_for(&header))?;
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
        let expected = layout::bytes_for(&header);
        if found != expected {
            return Err(SegmentError::Size { expected, found });
        }
        Ok(Self::view(segment, header))
    }

    fn view(segment: Segment, header: NodeHeader) -> NodeSegment {
        NodeSegment { header, parts: Parts::of(&segment, &header), segment: Some(segment), own: Own::default() }
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

    /// Has `rank` failed in a job that goes on without it? The number of failures when it did.
    #[inline]
    pub fn failure(&self, rank: u32) -> Option<u32> {
        if self.header.recovery == 0 {
            return None;
        }
        Some(self.rank(rank).failed.load(Ordering::SeqCst)).filter(|number| *number != 0)
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

    /// The job lives in virtual time. Before anybody else has the segment.
    pub fn set_simulated(&mut self) {
        self.header.simulated = 1;
        if self.header.v >= CROWDED_IN_VIRTUAL_TIME {
            // Who waits there waits for most of the others: awake, it is switched to in vain.
            (self.header.warm_yields, self.header.spin_ticks, self.header.brisk_ticks) = (0, 0, 0);
        }
        self.write_header();
    }

    /// What ranks are to do that are about to end badly. Likewise.
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

    /// A node in private memory, for model tests (leaked). Its last suspended rank does not spin.
    pub fn private(config: &NodeConfig) -> NodeSegment {
        let mut header = Self::header_for(config, Scale { tsc: false, ticks_per_second: 1e9 });
        header.spin_ticks = 0;
        let node = NodeSegment { header, parts: Parts::leaked(&header), segment: None, own: Own::default() };
        node.fill(config);
        node
    }

    /// Another view of a private node, for another rank of a model test; `spin_ticks` is how long the last rank of a core
    /// to suspend spins (same for all views).
    #[cfg(feature = "model")]
    pub fn another_view(&self, spin_ticks: u64) -> NodeSegment {
        assert!(self.segment.is_none(), "only a private node, which is never unmapped");
        let header = NodeHeader { spin_ticks, long_ticks: 2 * spin_ticks, ..self.header };
        NodeSegment { header, parts: self.parts, segment: None, own: self.own.with_the_same_bells() }
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
        unsafe { &*self.parts.cores.add(core as usize) }
    }

    #[inline(always)]
    pub fn rank(&self, rank: u32) -> &RankDescriptor {
        assert!(rank < self.header.ranks, "rank {rank} out of range: the node segment is damaged");
        // SAFETY: as above.
        unsafe { &*self.parts.ranks.add(rank as usize) }
    }

    pub(crate) fn life(&self, rank: u32) -> &Life {
        assert!(rank < self.header.ranks, "rank {rank} out of range: the node segment is damaged");
        // SAFETY: as above.
        unsafe { &*self.parts.lives.add(rank as usize) }
    }

    /// How the process of a rank of this node is found.
    pub fn whereabouts(&self, rank: u32) -> &Whereabouts {
        assert!(rank < self.header.ranks, "rank {rank} out of range: the node segment is damaged");
        // SAFETY: in range of the array that `view` checked; atomics only.
        unsafe { &*self.parts.whereabouts.add(rank as usize) }
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
    pub(crate) fn post(&self) -> &CarrierWords {
        // SAFETY: inside the mapping (or leaked); atomics only.
        unsafe { &*self.parts.post }
    }

    pub(crate) fn last_words(&self, rank: u32) -> &LastWords {
        assert!(rank < self.header.ranks, "rank {rank} out of range: the node segment is damaged");
        // SAFETY: in range of the array that `view` checked; atomics only.
        unsafe { &*self.parts.last_words.add(rank as usize) }
    }

    #[inline(always)]
    fn set(&self, index: u32) -> &[AtomicU64] {
        assert!(index < sets(self.header.cores));
        let stride = self.header.ready_words as usize;
        // Every hand-over looks at all of them: not at the rest of the cache line, too.
        let words = self.header.ranks.div_ceil(64) as usize;
        // SAFETY: in range of the array that `view` checked; `ready_words` is not less than that.
        unsafe { std::slice::from_raw_parts(self.parts.ready.add(index as usize * stride), words) }
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
