//! A rank before the end of its MPI_Init (STARTING) and after its MPI_Finalize (ENDING).
//!
//! Its process then runs, reads files and loads libraries, but it takes no part in the baton: a core all of whose ranks are there looks idle. So a core's
//! idle time while a rank of it starts is told as that, and so is what is idle while one ends, or once the job does. A rank marks when it comes and
//! goes, and how much idle time its core had by then; on that axis the times of a core's ranks are joined, so that nothing counts twice.

use super::progress;
use crate::mem::sync::AtomicU64;
use crate::mem::sync::Ordering::Relaxed;
#[cfg(not(feature = "model"))]
use crate::mem::sync::Ordering::SeqCst;
use crate::node::run_state::RunState;
use crate::node::{Life, Mark, NodeSegment};
use crate::trace::Span;

/// A mark as it was read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Moment {
    at: u64,
    core: u32,
    /// Idle time of that core until then, ticks.
    idle: u64,
}

impl Mark {
    fn get(&self) -> Option<Moment> {
        let core = self.core.load(Relaxed).checked_sub(1)?;
        Some(Moment { at: self.at.load(Relaxed), core, idle: self.idle.load(Relaxed) })
    }

    /// When; `None`: not yet.
    fn when(&self) -> Option<u64> {
        self.get().map(|moment| moment.at)
    }

    fn put(&self, node: &NodeSegment, core: u32, at: u64) {
        self.at.store(at, Relaxed);
        self.idle.store(progress::of_core(node, core, at).idle, Relaxed);
        self.core.store(core + 1, Relaxed);
    }

    pub(crate) fn clear(&self) {
        self.at.store(0, Relaxed);
        self.idle.store(0, Relaxed);
        self.core.store(0, Relaxed);
    }
}

/// A process becomes a rank.
#[cfg(not(feature = "model"))]
impl NodeSegment {
    /// The daemon places a process as `rank`, whose last one is gone (or never was).
    pub fn place(&self, rank: u32, core: u32) {
        self.renew(rank, core);
        self.core(core).ranks.fetch_add(1, Relaxed);
    }

    /// `rank` lives on node `number`, which is this one, in a job of several.
    pub fn place_here(&self, rank: u32, number: u32, core: u32) {
        self.place(rank, core);
        self.rank(rank).node.store(number, SeqCst);
    }

    /// Another process becomes `rank`, on the core where it is placed.
    pub fn renew(&self, rank: u32, core: u32) {
        self.renew_descriptor(rank, core);
        begin(self, rank, core);
    }
}

/// `rank` is to be a process on `core` from now on, in place of the one that it was, if it was any: what that one was outside MPI is kept for its core.
#[cfg(not(feature = "model"))]
fn begin(node: &NodeSegment, rank: u32, core: u32) {
    let (life, now) = (node.life(rank), node.now());
    let born = life.born.get().filter(|born| born.core < node.header().cores);
    let before: Option<(u32, Outside)> = born.map(|born| (born.core, of_core(node, born.core, now, None)));
    [&life.born, &life.entered, &life.left, &life.over].into_iter().for_each(Mark::clear);
    life.died_as.store(0, Relaxed);
    if let Some((core, before)) = before {
        let (left, kept) = (of_core(node, core, now, None), node.core(core));
        // Both may be less than nothing: what started during another's end counts as that again without it.
        keep(&kept.past_starting, before.starting.wrapping_sub(left.starting));
        keep(&kept.past_ending, before.ending.wrapping_sub(left.ending));
    }
    life.born.put(node, core, now);
}

#[cfg(not(feature = "model"))]
fn keep(past: &AtomicU64, more: u64) {
    past.store(past.load(Relaxed).wrapping_add(more), Relaxed);
}

/// The rank is at the end of its MPI_Init.
pub(super) fn entered(node: &NodeSegment, me: u32, now: u64) {
    node.life(me).entered.put(node, node.core_of(me), now);
}

/// The rank is at the end of its MPI_Finalize.
pub(super) fn left(node: &NodeSegment, me: u32, now: u64) {
    node.life(me).left.put(node, node.core_of(me), now);
}

/// The rank has died in `state`.
pub(super) fn died(node: &NodeSegment, rank: u32, state: RunState) {
    let life = node.life(rank);
    if life.died_as.load(Relaxed) == 0 {
        life.died_as.store(state.word() + 1, Relaxed);
        if life.left.get().is_none() {
            life.left.put(node, node.core_of(rank), node.now());
        }
    }
}

/// All processes of the rank are gone.
pub fn over(node: &NodeSegment, rank: u32) {
    let life = node.life(rank);
    if let (Some(born), None) = (life.born.get(), life.over.get()) {
        // Where it was last, so that both ends of a stretch are of one core.
        let core = life.left.get().map_or(born.core, |left| left.core);
        life.over.put(node, core.min(node.header().cores - 1), node.now());
    }
}

/// The state in which a rank died; `None`: it has not.
pub fn died_as(node: &NodeSegment, rank: u32) -> Option<RunState> {
    node.life(rank).died_as.load(Relaxed).checked_sub(1).map(RunState::from_word)
}

/// Idle time of a core by now, for `of_core`.
pub fn idle_of(node: &NodeSegment, core: u32) -> u64 {
    progress::of_core(node, core, node.now()).idle
}

/// How the life of the rank's process has gone so far.
pub fn span_of(node: &NodeSegment, rank: u32) -> Option<Span> {
    let Life { born, entered, left, over, .. } = node.life(rank);
    let born = born.get()?;
    let core = born.core.min(node.header().cores - 1);
    Some(Span { born: born.at, core, entered: entered.when(), left: left.when(), over: over.when() })
}

/// The part of a core's idle time in which ranks of it were outside MPI, ticks.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Outside {
    pub starting: u64,
    pub ending: u64,
}

/// Of `core` until `now`; `ends`: its idle time when the end of the job began.
pub fn of_core(node: &NodeSegment, core: u32, now: u64, ends: Option<u64>) -> Outside {
    let idle = progress::of_core(node, core, now).idle;
    let (mut starting, mut ending) = (Vec::new(), Vec::new());
    let lives = (0..node.header().ranks).map(|rank| node.life(rank));
    for life in lives {
        let on = |mark: &Mark| mark.get().filter(|moment| moment.core == core).map(|moment| moment.idle);
        let over = on(&life.over).unwrap_or(idle);
        let entered = on(&life.entered);
        starting.extend(on(&life.born).map(|born| (born, entered.unwrap_or(over))));
        ending.extend(on(&life.left).filter(|_| life.entered.get().is_some()).map(|left| (left, over)));
    }
    ending.extend(ends.map(|since| (since, idle)));
    let measure = |spans: Vec<(u64, u64)>| {
        let lengths = joined(spans).into_iter().map(|(from, until)| until - from);
        lengths.fold(0, u64::saturating_add)
    };
    let first = measure(starting.clone());
    let both = measure([starting, ending].concat());
    let descriptor = node.core(core);
    let with = |past: &AtomicU64, more: u64| past.load(Relaxed).wrapping_add(more).cast_signed().max(0).cast_unsigned();
    let starting = with(&descriptor.past_starting, first).min(idle);
    let ending = with(&descriptor.past_ending, both.saturating_sub(first)).min(idle - starting);
    Outside { starting, ending }
}

/// Spans in order that do not overlap.
pub fn joined(mut spans: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    spans.retain(|(from, until)| from < until);
    spans.sort_unstable();
    let mut all: Vec<(u64, u64)> = Vec::new();
    for (from, until) in spans {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => all.push((from, until)),
        }
    }
    all
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::node::NodeConfig;
    use crate::sched::{enter, finish, rank_died};

    #[test]
    fn spans_are_joined() {
        assert_eq!(joined(vec![(5, 9), (1, 3), (2, 4), (4, 4), (9, 10)]), [(1, 4), (5, 10)]);
        assert_eq!(joined(Vec::new()), []);
    }

    #[test]
    fn a_life_adds_up() {
        let whole = Span { born: 10, entered: Some(30), left: Some(70), over: Some(100), ..Span::default() };
        assert_eq!(whole.times(500), (20, 30, 90));
        assert_eq!(Span { over: None, ..whole }.times(90), (20, 20, 80));
        // It never was in MPI, though its death was noted as the end of that.
        assert_eq!(Span { entered: None, ..whole }.times(500), (90, 0, 90));
        assert_eq!(Span { born: 10, ..Span::default() }.times(40), (30, 0, 30));
    }

    /// What a core does while nobody is in MPI is not idle time, whoever of its ranks ends how, and in whose place another one comes.
    #[test]
    fn idle_is_what_is_between_the_last_start_and_the_first_end() {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 2)).unwrap();
        let pause = || std::thread::sleep(std::time::Duration::from_millis(5));
        let ms = |ticks: u64| node.seconds(ticks) * 1e3;
        let times = || {
            let outside = of_core(&node, 0, node.now(), None);
            (ms(outside.starting), ms(outside.ending), ms(idle_of(&node, 0)))
        };
        pause();
        let (starting, ending, idle) = times();
        assert!(starting >= 5.0 && ending == 0.0 && idle >= starting, "{starting} {ending} {idle}");
        enter(&node, 0);
        finish(&node, 0);
        pause();
        let (first, ending, _) = times();
        assert!(
            first >= 10.0 && ending == 0.0,
            "rank 1 still starts, so rank 0's end counts as that: {first} {ending}"
        );
        enter(&node, 1);
        let (first, ..) = times();
        pause();
        finish(&node, 1);
        pause();
        let (starting, ending, _) = times();
        assert!((starting - first).abs() < 1e-3 && ending >= 5.0, "{starting} {ending}");
        rank_died(&node, 0);
        over(&node, 0);
        rank_died(&node, 1);
        over(&node, 1);
        let (starting, ended, _) = times();
        pause();
        let (later, still, idle) = times();
        assert!(
            (later, still) == (starting, ended) && idle >= starting + ended + 5.0,
            "nobody is there: {later} {still} {idle}"
        );
        node.renew(1, 0);
        let (renewed, kept, idle_now) = times();
        // It starts since then.
        let more = renewed - starting;
        assert!(more > -1e-3 && more < idle_now - idle + 1e-3, "{renewed} after {starting}");
        assert!((kept - ended).abs() < 1e-3, "{kept} after {ended}");
        let report = crate::sched::core_report(&node, 0);
        let parts = [report.running_s, report.idle_s, report.handoff_s, report.starting_s, report.ending_s];
        assert!((parts.iter().sum::<f64>() - report.wall_s).abs() < 1e-6, "{report:?}");
    }
}
