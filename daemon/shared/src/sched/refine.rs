//! Measured load moves ranks for good: which ranks, and when.
//!
//! A core that is about to be left idle looks, if it is time to, how long each rank has run in the window (process-POV clock). If one core had
//! more to do than another, and moving a rank would make the larger of the two smaller by an eighth, in two windows in a row, the rank that the
//! second one shows is told to move. A window that shows less goes on until it is long enough to show a twentieth. So what an even
//! job does never moves a rank, a load that is far from even is levelled within some milliseconds, and each time that ranks have moved the least
//! window doubles, up to a second: a job whose load wanders faster than that is left alone after a few moves.

use super::clocks::process_time;
use crate::mem::sync::Ordering;
use crate::node::NodeSegment;

const RELAXED: Ordering = Ordering::Relaxed;
const SEQ: Ordering = Ordering::SeqCst;

/// The first window is at least so long, and so much per rank, for each of which a look takes some 100 ns.
const FIRST_S: f64 = 1e-3;
const FIRST_PER_RANK_S: f64 = 10e-6;
/// A window shorter than this one shows chance as well.
const SHORT_S: f64 = 5e-3;
const LONGEST_S: f64 = 1.0;
/// A move is worth it if the larger load falls by one part in so many: in a short window, and in others.
const GAIN_SHORT: u64 = 8;
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
    let ticks = |seconds: f64| match cfg!(feature = "model") {
        true => 20,
        false => (seconds * node.header().ticks_per_second) as u64,
    };
    let ranks: u32 = (0..node.header().own_cores).map(|core| node.core(core).ranks.load(RELAXED)).sum();
    let shortest = ticks(FIRST_S.max(FIRST_PER_RANK_S * f64::from(ranks)));
    let window_ticks = first.window_ticks.load(RELAXED);
    if window_ticks == 0 {
        first.window_ticks.store(shortest, RELAXED);
        return begin_window(node, now);
    }
    let elapsed = now.saturating_sub(first.window_at.load(RELAXED));
    let loads = loads(node, now);
    // What returns before the next window begins makes this one longer.
    if !holds_turns(&loads) {
        return;
    }
    let short = elapsed < ticks(SHORT_S);
    let moves = plan(&loads, node.header().own_cores, elapsed, if short { GAIN_SHORT } else { GAIN });
    let Some(&(rank, to)) = moves.first() else {
        if short {
            return;
        }
        first.proposed_from.store(0, RELAXED);
        return begin_window(node, now);
    };
    // From and to the same cores again; of ranks that are about as good, chance says which one it is.
    let from = node.core_of(rank) + 1;
    let again = first.proposed_from.load(RELAXED) == from && first.proposed_to.load(RELAXED) == to;
    if again {
        for (rank, core) in moves {
            node.rank(rank).target.store(core + 1, SEQ);
        }
        first.window_ticks.store((2 * window_ticks).clamp(shortest, ticks(LONGEST_S).max(shortest)), RELAXED);
    }
    first.proposed_from.store(if again { 0 } else { from }, RELAXED);
    first.proposed_to.store(to, RELAXED);
    begin_window(node, now);
}

/// Room for ranks that have not been spawned is most of what a small job has.
fn those_that_ran(node: &NodeSegment) -> impl Iterator<Item = u32> {
    (0..node.header().ranks).filter(|rank| node.switches(*rank) != 0)
}

fn begin_window(node: &NodeSegment, now: u64) {
    for rank in those_that_ran(node) {
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
    those_that_ran(node).map(load).filter(|load| load.core < node.header().own_cores && load.ticks > 0).collect()
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
fn plan(loads: &[Load], cores: u32, elapsed: u64, gain: u64) -> Vec<(u32, u32)> {
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
        let Some((at, best)) = best.filter(|(_, load)| after(load) < high - high / gain) else { break };
        moves.push((best.rank, least));
        loads[at].core = least;
    }
    moves
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::control::Balance;
    use crate::node::NodeConfig;

    /// Ranks in order, these ticks each, on these cores.
    fn loads(of: &[(u32, u64)]) -> Vec<Load> {
        (0..).zip(of).map(|(rank, (core, ticks))| Load { rank, core: *core, ticks: *ticks, turns: 10 }).collect()
    }

    #[test]
    fn the_neighbour_of_the_heavy_rank_moves() {
        // Rank 0 has three times the work: two ranks a core, then four.
        assert_eq!(plan(&loads(&[(0, 300), (0, 100), (1, 100), (1, 100)]), 2, 400, GAIN), [(1, 1)]);
        let four = [(0, 300), (0, 100), (0, 100), (0, 100), (1, 100), (1, 100), (1, 100), (1, 100)];
        assert_eq!(plan(&loads(&four), 2, 600, GAIN), [(3, 1)]);
        // The other way round the lowest number is nearest.
        let last = [(0, 100), (0, 100), (1, 100), (1, 300)];
        assert_eq!(plan(&loads(&last), 2, 400, GAIN), [(2, 0)]);
    }

    #[test]
    fn even_loads_and_lone_ranks_stay() {
        assert_eq!(plan(&loads(&[(0, 100), (0, 104), (1, 100), (1, 97)]), 2, 204, GAIN), []);
        assert_eq!(plan(&loads(&[(0, 300), (1, 100)]), 2, 300, GAIN), []);
        assert_eq!(
            plan(&loads(&[(0, 300), (0, 290), (1, 300)]), 2, 600, GAIN),
            [],
            "one more there is as much as it is here"
        );
        assert_eq!(plan(&loads(&[(0, 30), (0, 10), (1, 10), (1, 10)]), 2, 400, GAIN), [], "nobody is short of a core");
        assert_eq!(plan(&[], 2, 400, GAIN), []);
    }

    #[test]
    fn a_short_window_asks_for_more() {
        // The larger of two loads, 203 and 163, would fall by a tenth: enough for a long window only.
        let slightly = loads(&[(0, 100), (0, 83), (0, 20), (1, 163)]);
        assert_eq!((plan(&slightly, 2, 203, GAIN), plan(&slightly, 2, 203, GAIN_SHORT)), (vec![(2, 1)], vec![]));
        let four = [(0, 300), (0, 100), (0, 100), (0, 100), (1, 100), (1, 100), (1, 100), (1, 100)];
        assert_eq!(plan(&loads(&four), 2, 600, GAIN_SHORT), [(3, 1)]);
    }

    #[test]
    fn many_cores_are_levelled_at_once() {
        let of: Vec<(u32, u64)> = (0..32).map(|rank| (rank / 4, if rank < 16 { 100 } else { 50 })).collect();
        let moves = plan(&loads(&of), 8, 400, GAIN);
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
            let moves = plan(&before, cores, 0, GAIN);
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

    /// Two cores of two ranks; in a window of so many microseconds each has run so much, and had enough turns.
    fn window(node: &NodeSegment, now: &mut u64, us: u64, ran: [u64; 4]) {
        let tick = |us: u64| (us as f64 * 1e-6 * node.header().ticks_per_second) as u64;
        *now += tick(us);
        for (rank, ran) in (0..).zip(ran) {
            node.rank(rank).r.fetch_add(tick(ran), SEQ);
            node.rank(rank).switches.fetch_add(10, SEQ);
        }
        measure(node, *now);
    }

    fn world() -> NodeSegment {
        NodeSegment::private(&NodeConfig {
            cpus: vec![0, 1],
            own_cores: 2,
            placement: vec![0, 0, 1, 1],
            balance: Balance::Refine,
            ..NodeConfig::on_one_core(0, 4)
        })
    }

    fn targets(node: &NodeSegment) -> [u32; 4] {
        std::array::from_fn(|rank| node.rank(rank as u32).target.load(SEQ))
    }

    #[test]
    fn two_windows_that_agree_on_the_cores_move_a_rank() {
        let (node, mut now) = (world(), 1);
        window(&node, &mut now, 2000, [1000, 1000, 1000, 1000]);
        window(&node, &mut now, 4000, [3000, 1000, 1000, 1000]);
        assert_eq!(targets(&node), [0; 4], "one window is chance");
        // Which rank it is has changed meanwhile.
        window(&node, &mut now, 4000, [1000, 3000, 1000, 1000]);
        assert_eq!(targets(&node), [2, 0, 0, 0], "the second window says which");
        let (node, mut now) = (world(), 1);
        window(&node, &mut now, 2000, [1000, 1000, 1000, 1000]);
        window(&node, &mut now, 4000, [3000, 1000, 1000, 1000]);
        window(&node, &mut now, 4000, [1000, 1000, 3000, 1000]);
        assert_eq!(targets(&node), [0; 4], "the other way round");
    }

    #[test]
    fn a_little_is_seen_once_a_window_is_long() {
        let (node, mut now) = (world(), 1);
        window(&node, &mut now, 2000, [1000; 4]);
        // A tenth is to be gained: nothing after 2 and 4 ms, a proposal after 6, and the same again.
        for look in 1..=6 {
            assert_eq!(targets(&node), [0; 4], "look {look}");
            window(&node, &mut now, 2000, [1800, 200, 800, 800]);
            assert_eq!(node.core(0).proposed_from.load(SEQ), u32::from((3..6).contains(&look)), "look {look}");
        }
        assert_eq!(targets(&node), [0, 2, 0, 0]);
    }

    #[test]
    fn a_window_holds_turns_or_goes_on() {
        let mut short = loads(&[(0, 300), (0, 100), (1, 100)]);
        assert!(holds_turns(&short));
        (short[0].turns, short[1].turns) = (1, 1);
        assert!(!holds_turns(&short) && !holds_turns(&[]));
    }
}
