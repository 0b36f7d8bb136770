//! Measured load moves ranks for good: which ranks, and when.
//!
//! A core that is about to be left idle looks, if the window is over, how long each rank has run in it (process-POV clock). If one core had
//! more to do than another, and moving a rank would make the larger of the two smaller by a twentieth, in two windows in a row, the rank is told
//! to move. So what an even job does never moves a rank, and each time that ranks have moved the window doubles, up to a second: a
//! job whose load wanders faster than that is left alone after a few moves.

use super::clocks::process_time;
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;

const RELAXED: Ordering = Ordering::Relaxed;
const SEQ: Ordering = Ordering::SeqCst;

/// The first window, and the longest.
const FIRST_S: f64 = 5e-3;
const LONGEST_S: f64 = 1.0;
/// A move is worth it if the larger load falls by one part in so many.
const GAIN: u64 = 20;
/// The busier core must have been busy for this part of the window, in tenths; if it was not, something else than computing is short.
const BUSY: u64 = 6;
/// In one window each rank of the busier core must have been switched in so often: the window holds whole turns of the program.
const TURNS: u64 = 3;

/// A rank's load in the window.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Load {
    rank: u32,
    core: u32,
    ticks: u64,
    /// How often it was switched in.
    turns: u64,
}

/// Look if it is time to.
#[inline]
pub(super) fn look(node: &NodeSegment, now: u64) {
    let first = node.core(0);
    let looked_at = first.looked_at.load(RELAXED);
    if now.saturating_sub(looked_at) >= first.window_ticks.load(RELAXED)
        && first.looked_at.compare_exchange(looked_at, now, SEQ, SEQ).is_ok()
    {
        measure(node, now);
    }
}

/// Only who has just moved `looked_at` on is here; the next one comes a window later.
#[cold]
fn measure(node: &NodeSegment, now: u64) {
    let first = node.core(0);
    let shortest = match cfg!(feature = "model") {
        true => 20,
        false => (FIRST_S * node.header().ticks_per_second) as u64,
    };
    let window_ticks = first.window_ticks.load(RELAXED);
    if window_ticks == 0 {
        first.window_ticks.store(shortest, RELAXED);
        return begin_window(node, now);
    }
    let elapsed = now.saturating_sub(first.window_at.load(RELAXED));
    let loads = loads(node, now);
    if !holds_turns(&loads) {
        return; // a longer window
    }
    let moves = plan(&loads, node.header().own_cores, elapsed);
    let Some(&(rank, core)) = moves.first() else {
        first.proposed_rank.store(0, RELAXED);
        return begin_window(node, now);
    };
    let again = first.proposed_rank.load(RELAXED) == rank + 1 && first.proposed_core.load(RELAXED) == core;
    if again {
        for (rank, core) in moves {
            node.rank(rank).target.store(core + 1, SEQ);
        }
        let longest = (LONGEST_S * node.header().ticks_per_second) as u64;
        first.window_ticks.store((2 * window_ticks).clamp(shortest, longest.max(shortest)), RELAXED);
    }
    first.proposed_rank.store(if again { 0 } else { rank + 1 }, RELAXED);
    first.proposed_core.store(core, RELAXED);
    begin_window(node, now);
}

fn begin_window(node: &NodeSegment, now: u64) {
    for rank in 0..node.header().ranks {
        let descriptor = node.rank(rank);
        descriptor.window_r.store(process_time(node, rank, now), RELAXED);
        descriptor.window_switches.store(descriptor.switches.load(RELAXED), RELAXED);
    }
    node.core(0).window_at.store(now, RELAXED);
}

/// What each rank that may move has run in the window.
fn loads(node: &NodeSegment, now: u64) -> Vec<Load> {
    let load = |rank: u32| Load {
        rank,
        core: node.core_of(rank),
        ticks: process_time(node, rank, now).saturating_sub(node.rank(rank).window_r.load(RELAXED)),
        turns: node.switches(rank).saturating_sub(node.rank(rank).window_switches.load(RELAXED)),
    };
    (0..node.header().ranks).map(load).filter(|load| load.core < node.header().own_cores && load.ticks > 0).collect()
}

/// Does the window hold whole turns of the program, as far as one can see from those ranks that share the busiest core?
fn holds_turns(loads: &[Load]) -> bool {
    let of_core = |core: u32| loads.iter().filter(move |load| load.core == core);
    let busiest =
        loads.iter().map(|load| load.core).max_by_key(|core| of_core(*core).map(|load| load.ticks).sum::<u64>());
    busiest
        .is_some_and(|core| of_core(core).map(|load| load.turns).sum::<u64>() >= TURNS * of_core(core).count() as u64)
}

/// Which ranks to move where, the most important one first: as long as a move from the core with most to do to the one with least is worth it.
fn plan(loads: &[Load], cores: u32, elapsed: u64) -> Vec<(u32, u32)> {
    let mut loads = loads.to_vec();
    let mut moves = Vec::new();
    for _ in 0..cores {
        let mut of_core = vec![0u64; cores as usize];
        for load in &loads {
            of_core[load.core as usize] += load.ticks;
        }
        let Some(most) = (0..cores).max_by_key(|core| of_core[*core as usize]) else { break };
        let Some(least) = (0..cores).min_by_key(|core| of_core[*core as usize]) else { break };
        let (high, low) = (of_core[most as usize], of_core[least as usize]);
        if high < elapsed / 10 * BUSY {
            break;
        }
        // After the move: the larger of the two. Of ranks that are about as good the one nearest to those of the other core by number.
        let after = |load: &Load| (high - load.ticks).max(low + load.ticks);
        let grain = (high / 64).max(1);
        let near = |load: &Load| if least > most { load.rank } else { u32::MAX - load.rank };
        let movable = loads
            .iter()
            .enumerate()
            .filter(|(_, load)| load.core == most && !moves.iter().any(|(rank, _)| *rank == load.rank));
        let best = movable.min_by_key(|(_, load)| (after(load) / grain, u32::MAX - near(load)));
        let Some((at, best)) = best.filter(|(_, load)| after(load) < high - high / GAIN) else { break };
        moves.push((best.rank, least));
        loads[at].core = least;
    }
    moves
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    /// Ranks in order, these ticks each, on these cores.
    fn loads(of: &[(u32, u64)]) -> Vec<Load> {
        (0..).zip(of).map(|(rank, (core, ticks))| Load { rank, core: *core, ticks: *ticks, turns: 10 }).collect()
    }

    #[test]
    fn the_neighbour_of_the_heavy_rank_moves() {
        // Rank 0 has three times the work: two ranks a core, then four.
        assert_eq!(plan(&loads(&[(0, 300), (0, 100), (1, 100), (1, 100)]), 2, 400), [(1, 1)]);
        let four = [(0, 300), (0, 100), (0, 100), (0, 100), (1, 100), (1, 100), (1, 100), (1, 100)];
        assert_eq!(plan(&loads(&four), 2, 600), [(3, 1)]);
        // The other way round the lowest number is nearest.
        let last = [(0, 100), (0, 100), (1, 100), (1, 300)];
        assert_eq!(plan(&loads(&last), 2, 400), [(2, 0)]);
    }

    #[test]
    fn even_loads_and_lone_ranks_stay() {
        assert_eq!(plan(&loads(&[(0, 100), (0, 104), (1, 100), (1, 97)]), 2, 204), []);
        assert_eq!(plan(&loads(&[(0, 300), (1, 100)]), 2, 300), []);
        assert_eq!(
            plan(&loads(&[(0, 300), (0, 290), (1, 300)]), 2, 600),
            [],
            "one more there is as much as it is here"
        );
        assert_eq!(plan(&loads(&[(0, 30), (0, 10), (1, 10), (1, 10)]), 2, 400), [], "nobody is short of a core");
        assert_eq!(plan(&[], 2, 400), []);
    }

    #[test]
    fn many_cores_are_levelled_at_once() {
        let of: Vec<(u32, u64)> = (0..32).map(|rank| (rank / 4, if rank < 16 { 100 } else { 50 })).collect();
        let moves = plan(&loads(&of), 8, 400);
        assert!(moves.len() >= 4 && moves.iter().all(|(rank, core)| *rank < 16 && *core >= 4), "{moves:?}");
    }

    /// Whatever the loads: each move makes the larger of two smaller, no rank moves twice, and what is planned comes to an end.
    #[test]
    fn plans_never_make_it_worse() {
        let mut chance = fastrand::Rng::with_seed(7);
        for _ in 0..3000 {
            let cores = chance.u32(1..=5);
            let of: Vec<(u32, u64)> =
                (0..chance.u32(..24)).map(|_| (chance.u32(..cores), chance.u64(1..=1000))).collect();
            let before = loads(&of);
            let largest = |loads: &[Load]| {
                (0..cores)
                    .map(|c| loads.iter().filter(|l| l.core == c).map(|l| l.ticks).sum::<u64>())
                    .max()
                    .unwrap_or(0)
            };
            let mut after = before.clone();
            let moves = plan(&before, cores, 0);
            assert!(moves.len() <= cores as usize);
            for (rank, core) in &moves {
                assert!(
                    after[*rank as usize].core != *core && moves.iter().filter(|(other, _)| other == rank).count() == 1
                );
                after[*rank as usize].core = *core;
            }
            assert!(largest(&after) <= largest(&before));
            assert!(moves.is_empty() || cores > 1);
        }
    }

    #[test]
    fn a_window_holds_turns_or_goes_on() {
        let mut short = loads(&[(0, 300), (0, 100), (1, 100)]);
        assert!(holds_turns(&short));
        (short[0].turns, short[1].turns) = (1, 1);
        assert!(!holds_turns(&short) && !holds_turns(&[]));
    }
}
