//! What is this process's alone, beside the segment that all share.

use super::peer_memory::PeerMemory;
use super::peer_pids::PeerPids;
use super::send_pattern::SendPattern;
use super::{NodeSegment, Pids, RankDescriptor};
use crate::mem::bell::{Bell, Chime};
use crate::mem::sync::{AtomicU32, Ordering};
use crate::meter::{Event, Meter};
use crate::trace::{Recorder, Ring};

#[derive(Default)]
pub(super) struct Own {
    /// Calls the daemon.
    bell: Option<Bell>,
    /// Calls the carrier.
    carrier_bell: Option<Chime>,
    pub(super) peers: PeerPids,
    /// Which processes the ranks are, by the daemon's word; none in a world without one.
    pub(super) pids: Option<Pids>,
    heaps: PeerMemory,
    /// The rank that this process is; none in the daemon.
    actor: Option<u32>,
    /// Which way it sends.
    send_pattern: SendPattern,
    /// How often the rank of this process had moved when it last looked on which CPU it is.
    moves_seen: AtomicU32,
    /// The same when this process became it.
    moves_before: AtomicU32,
    /// Where this process records what it does, while somebody traces.
    recorder: Recorder,
    /// What this process counts, if somebody asked for that.
    meter: Option<Meter>,
}

impl Own {
    /// Of another rank of a model test.
    #[cfg(feature = "model")]
    pub(super) fn with_the_same_bells(&self) -> Own {
        Own { bell: self.bell.clone(), carrier_bell: self.carrier_bell.clone(), ..Own::default() }
    }
}

impl NodeSegment {
    /// This process is `rank`.
    pub(crate) fn set_actor(&mut self, rank: u32) {
        self.own.actor = Some(rank);
        let descriptor = self.rank(rank);
        descriptor.pinned.store(self.core_of(rank) + 1, Ordering::Relaxed);
        let moves = descriptor.moves.load(Ordering::Relaxed);
        self.own.moves_before.store(moves, Ordering::Relaxed);
        self.own.moves_seen.store(moves, Ordering::Relaxed);
    }

    /// # Safety
    /// The ring outlives this.
    pub(crate) unsafe fn set_ring(&mut self, ring: Ring<'_>) {
        // SAFETY: the caller's promise.
        self.own.recorder = unsafe { Recorder::new(ring) };
    }

    /// Count these events for this process from now on.
    ///
    /// # Errors
    /// Those of perf_event_open(2).
    pub fn count_events(&mut self, events: &[&Event]) -> std::io::Result<()> {
        self.own.meter = Some(Meter::begin(events)?);
        Ok(())
    }

    #[inline]
    pub(crate) fn meter(&self) -> Option<&Meter> {
        self.own.meter.as_ref()
    }

    #[inline]
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.own.recorder
    }

    /// Has the rank of this process ever moved? Most never have, and are asked nothing else.
    #[inline]
    pub(crate) fn has_moved(&self, rank: &RankDescriptor) -> bool {
        rank.moves.load(Ordering::Relaxed) != self.own.moves_before.load(Ordering::Relaxed)
    }

    /// Has it moved since this was asked last?
    pub(crate) fn has_moved_again(&self, rank: &RankDescriptor) -> bool {
        let moves = rank.moves.load(Ordering::Relaxed);
        self.own.moves_seen.swap(moves, Ordering::Relaxed) != moves
    }

    #[inline]
    pub(crate) fn actor(&self) -> Option<u32> {
        self.own.actor
    }

    /// Which way the rank of this process sends.
    #[inline]
    pub(crate) fn send_pattern(&self) -> &SendPattern {
        &self.own.send_pattern
    }

    /// Ring this bell when the daemon is to look at the cores' leases.
    pub fn set_bell(&mut self, bell: Bell) {
        self.own.bell = Some(bell);
    }

    /// The bell of a job that a daemon started.
    pub fn bell(&self) -> Option<&Bell> {
        self.own.bell.as_ref()
    }

    /// Call the daemon; nothing in a world without one.
    pub(crate) fn ring(&self) {
        if let Some(bell) = &self.own.bell {
            bell.ring();
        }
    }

    /// Ring this bell when the carrier sleeps and there is something to take.
    pub fn set_carrier_bell(&mut self, bell: Chime) {
        self.own.carrier_bell = Some(bell);
    }

    /// The bell of a job of several nodes.
    pub fn carrier_bell(&self) -> Option<&Chime> {
        self.own.carrier_bell.as_ref()
    }

    /// The other ranks' memory that is mapped here.
    pub fn heaps(&self) -> &PeerMemory {
        &self.own.heaps
    }
}
