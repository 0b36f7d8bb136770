//! What a rank did, put together record by record; and times in nanoseconds.

use super::{CollectiveCall, CoreDid, CoreSlice, Ns, RankDid, RankSlice, RankTrack};
use std::rc::Rc;
use vmpi_shared::sched::report::CALLS;
use vmpi_shared::trace::{Call, Record, RingReader, TraceMap};

/// From ticks to nanoseconds.
#[derive(Copy, Clone)]
pub(super) struct Clock {
    since: u64,
    ns_per_tick: f64,
    pub(super) length: Ns,
}

impl Clock {
    pub(super) fn of(map: &TraceMap) -> Clock {
        Clock::at_rate(map, if map.ticks_per_second > 0.0 { 1e9 / map.ticks_per_second } else { 0.0 })
    }

    pub(super) fn at_rate(map: &TraceMap, ns_per_tick: f64) -> Clock {
        let clock = Clock { since: map.since, ns_per_tick, length: u64::MAX };
        Clock { length: clock.ns(map.until), ..clock }
    }

    pub(super) fn ns_per_tick(&self) -> f64 {
        self.ns_per_tick
    }

    /// Times outside the recording become its begin or end.
    pub(super) fn ns(&self, ticks: u64) -> Ns {
        (self.span(ticks.saturating_sub(self.since))).min(self.length)
    }

    pub(super) fn span(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick) as u64
    }
}

/// The track of a rank in the making.
pub(super) struct Track<'a> {
    pub(super) track: RankTrack,
    pub(super) names: &'a Names,
    pub(super) clock: Clock,
    /// Watches and absences since the last turn.
    pub(super) watches: Vec<(Call, u64, u64)>,
    pub(super) aways: Vec<(u64, u64)>,
}

/// The names of a ring, shared by all slices.
pub(super) struct Names {
    own: Vec<Rc<str>>,
    kinds: Vec<Rc<str>>,
}

impl Names {
    pub(super) fn new(ring: &RingReader) -> Names {
        let own = ring.names.iter().map(|name| Rc::from(name.as_str())).collect();
        Names { own, kinds: CALLS.iter().map(|kind| Rc::from(*kind)).collect() }
    }

    pub(super) fn of(&self, call: &Call) -> Rc<str> {
        let own = usize::from(call.name).checked_sub(1).and_then(|index| self.own.get(index));
        let name = own.or_else(|| self.kinds.get(usize::from(call.kind)));
        name.cloned().unwrap_or_else(|| Rc::from(""))
    }
}

impl Track<'_> {
    pub(super) fn push(&mut self, from: u64, until: u64, did: RankDid, call: Option<&Call>) {
        let (from, until) = (self.clock.ns(from), self.clock.ns(until));
        let from = from.max(self.track.known_from).max(self.track.slices.last().map_or(0, |last| last.until));
        if from < until {
            let (name, peer, tag) =
                call.map_or_else(|| (Rc::from(""), -1, -1), |call| (self.names.of(call), call.peer, call.tag));
            self.track.slices.push(RankSlice { from, until, did, call: name, peer, tag });
        }
    }

    /// The rank had `core` from `since` to `left`.
    pub(super) fn had(&mut self, core: u32, since: u64, left: u64, pieces: &mut [Vec<CoreSlice>]) {
        let rank = self.track.rank;
        let mut at = since;
        let mut on_core = |from: u64, until: u64, did: CoreDid, clock: Clock| {
            let (from, until) = (clock.ns(from), clock.ns(until));
            if let Some(pieces) = pieces.get_mut(core as usize).filter(|_| from < until) {
                pieces.push(CoreSlice { from, until, did });
            }
        };
        for (call, from, until) in std::mem::take(&mut self.watches) {
            let (from, until) = (from.clamp(at, left.max(at)), until.clamp(at, left.max(at)));
            on_core(at, from, CoreDid::Ran(rank), self.clock);
            on_core(from, until, CoreDid::Watched(rank), self.clock);
            self.push(at, from, RankDid::Running, None);
            self.push(from, until, RankDid::Suspended, Some(&call));
            at = until;
        }
        on_core(at, left, CoreDid::Ran(rank), self.clock);
        self.push(at, left, RankDid::Running, None);
    }

    /// The rank has made a collective call.
    pub(super) fn collective(&mut self, record: &Record) {
        let Record::Collective { call, from, until, context, root, sent, received, within } = *record else { return };
        let call = self.names.of(&Call { name: call, ..Call::default() });
        let (from, until, root) = (self.clock.ns(from), self.clock.ns(until), u32::try_from(root).ok());
        self.track.collectives.push(CollectiveCall { from, until, call, context, root, sent, received, within });
    }

    /// The program wanted nothing recorded.
    pub(super) fn paused(&mut self, since: u64, until: u64) {
        self.watches.clear();
        self.aways.clear();
        let (since, until) = (self.clock.ns(since), self.clock.ns(until));
        if since < until {
            self.track.paused.push((since, until));
        }
    }

    /// The clock when the rank has left its core for the last time: as it stood at the last turn, and what the rank ran since.
    pub(super) fn close_clock(&mut self) {
        let Some((from, clock)) = self.track.clock.last().copied() else { return };
        let ran = self.track.slices.iter().rev().take_while(|slice| slice.from >= from);
        let ran = ran.filter(|slice| slice.did == RankDid::Running);
        let (until, ran) =
            ran.fold((from, 0), |(until, sum), slice| (until.max(slice.until), sum + slice.until - slice.from));
        self.track.clock.push((until, clock + ran));
    }

    /// The rank had no core from `left` on: away, then waiting in `call` until `ready`, then READY until `run`.
    pub(super) fn waited(&mut self, left: u64, ready: u64, run: u64, call: &Call) {
        let mut at = left;
        for (from, until) in std::mem::take(&mut self.aways) {
            if until > at {
                self.push(at.max(from.min(at)), until, RankDid::Away, None);
                at = until;
            }
        }
        self.push(at, ready, RankDid::Suspended, Some(call));
        self.push(ready.max(at), run, RankDid::Ready, Some(call));
    }
}
