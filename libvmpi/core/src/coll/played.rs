//! In virtual time: collectives whose messages the engine sends and receives in the ranks' place (`vmpi_shared::simulate::play`): barriers, broadcasts
//! and allreduces of few data.

use super::cell_operation::disagree;
use super::choose;
use super::p2p_machine::Kit;
use super::plan::{Data, Plan, Ranks, Step, Via};
use super::work::Work;
use crate::calls::CALL_COLLECTIVE;
use crate::comm::Communicator;
use crate::datatype;
use crate::errors::Result;
use crate::monitor;
use crate::op;
use crate::simulate;
use crate::tool::event;
use smallvec::{SmallVec, smallvec};
use vmpi_shared::arith::{Builtin, Element};
use vmpi_shared::simulate::layout::{MOST_DATA, MOST_STEPS, NOBODY, Step as Played, does};
use vmpi_shared::simulate::play::Holding;

/// What this rank brings to a collective, where the result goes, and how two are combined.
struct Parcel {
    send: Data,
    recv: Data,
    arithmetic: Option<(Builtin, Element)>,
}

impl Parcel {
    /// `None`: the engine does not play that. All ranks of a communicator answer alike.
    fn of(work: &Work, kit: &Kit) -> Option<Parcel> {
        let fits = |data: &Data| (1..=MOST_DATA as u64).contains(&data.bytes());
        match work {
            Work::Barrier => Some(Parcel { send: Data::EMPTY, recv: Data::EMPTY, arithmetic: None }),
            Work::Bcast { data, .. } if fits(data) => Some(Parcel { send: *data, recv: *data, arithmetic: None }),
            Work::Allreduce { send, recv, .. } if fits(send) => {
                // The program's own function is called by its ranks.
                let builtin = kit.reduction.as_ref().and_then(|reduction| reduction.op.builtin())?;
                let ty = &kit.types[send.elem.id as usize];
                let element = op::element_of(ty).filter(|element| element.bytes() as u64 == send.elem.size)?;
                ty.is_dense().then_some(Parcel { send: *send, recv: *recv, arithmetic: Some((builtin, element)) })
            }
            _ => None,
        }
    }
}

/// Have `work` played, if it may be: all ranks of `comm` answer that alike. `None`: it goes message by message, by its plan.
///
/// # Safety
/// The buffers in `work` are the caller's.
#[cold]
pub(super) unsafe fn run(comm: &Communicator, work: &Work, kit: &Kit) -> Option<Result<()>> {
    if comm.is_inter() || comm.size() < 2 || !simulate::plays() {
        return None;
    }
    let Parcel { send, recv, arithmetic } = Parcel::of(work, kit)?;
    let rank_of = |rank: i32| {
        u32::try_from(rank).ok().filter(|rank| *rank < comm.size()).map(|rank| comm.peers().world_rank(rank))
    };
    let mut plan = Plan::with_room(4 * MOST_STEPS);
    choose::build(&mut plan, Ranks { rank: comm.rank, size: comm.size(), via: Via::Main }, work);
    let mut steps = steps(&plan, send.at, rank_of)?;
    let mut holding = Holding { bytes: send.bytes() as u32, arithmetic, ..Holding::NOTHING };
    let bytes = send.bytes();
    if bytes > 0 {
        let ty = &kit.types[send.elem.id as usize];
        // SAFETY: the caller's buffer; the parcel has room for it.
        unsafe { datatype::pack(ty, send.count, send.at, 0, &mut holding.data[..bytes as usize]) };
    }
    monitor::played(steps.iter().map(|step| step.to).filter(|to| *to != NOBODY), bytes);
    event::around(-1, -1, || simulate::wait::join(comm.context, &mut steps, &mut holding, CALL_COLLECTIVE));
    if holding.too_long {
        return Some(disagree(bytes + 1, bytes));
    }
    let brings_all = steps.iter().all(|step| step.from == NOBODY);
    if bytes > 0 && !brings_all {
        let ty = &kit.types[recv.elem.id as usize];
        // SAFETY: as above.
        unsafe { datatype::unpack(ty, recv.count, recv.at, 0, &holding.data[..bytes as usize]) };
    }
    Some(Ok(()))
}

/// What a rank does by `plan`, whose data are at `brings` at first: in each step it sends what it has, then waits for what it receives, and has that, or
/// both combined. `None`: that is not what the plan says, or there are too many.
/// Of two receives before a fence the rank may see one before the other, and be busy with it meanwhile.
fn steps(plan: &Plan, brings: *const u8, rank_of: impl Fn(i32) -> Option<u32>) -> Option<Vec<Played>> {
    const NONE: Played = Played { to: NOBODY, from: NOBODY, before: 0, does: does::NOTHING, before_tie: 0 };
    let mut steps: Vec<Played> = Vec::with_capacity(MOST_STEPS);
    // Where what it has lies.
    let mut has: SmallVec<[*const u8; 2]> = smallvec![brings];
    let (mut sends, mut received) = (SmallVec::<[u32; MOST_STEPS]>::new(), None);
    let mut rest = plan.steps.iter().chain([&Step::Fence]).peekable();
    while let Some(step) = rest.next() {
        match *step {
            Step::Send { data, to, via: Via::Main } if data.bytes() == 0 || has.contains(&data.at.cast_const()) => {
                sends.push(rank_of(to)?);
            }
            Step::Recv { data, from, via: Via::Main } if received.is_none() => received = Some((rank_of(from)?, data)),
            Step::Copy { from, to } if has.contains(&from.at.cast_const()) && received.is_none() => has.push(to.at),
            Step::Fence => {
                steps.extend(sends.drain(..).map(|to| Played { to, ..NONE }));
                let Some((from, data)) = received.take() else { continue };
                let theirs = data.at.cast_const();
                let does = match rest.peek() {
                    _ if data.bytes() == 0 => does::NOTHING,
                    Some(Step::Reduce { input, inout }) => {
                        let both = (input.cast_const(), inout.at.cast_const());
                        match both {
                            (input, inout) if input == theirs && has.contains(&inout) => does::COMBINE,
                            (input, inout) if has.contains(&input) && inout == theirs => does::COMBINE_BEHIND,
                            _ => return None,
                        }
                    }
                    _ => does::REPLACE,
                };
                match (does, rest.peek()) {
                    (does::COMBINE, Some(Step::Reduce { inout, .. })) => has = smallvec![inout.at.cast_const()],
                    (does::REPLACE | does::COMBINE_BEHIND, _) => has = smallvec![theirs],
                    _ => {}
                }
                if matches!(does, does::COMBINE | does::COMBINE_BEHIND) {
                    rest.next();
                }
                match steps.last_mut().filter(|last| last.from == NOBODY && last.to != NOBODY) {
                    Some(last) => (last.from, last.does) = (from, does),
                    None => steps.push(Played { from, does, ..NONE }),
                }
            }
            _ => return None,
        }
    }
    (steps.len() <= MOST_STEPS).then_some(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coll::plan::Elem;

    const LONG: Elem = Elem { id: 0, size: 8, extent: 8, true_lb: 0, true_extent: 8, dense: true };

    /// The steps of all ranks, if each one's plan can be played.
    fn all(size: u32, send: &mut [u8; 8], recv: &mut [u8; 8], work: impl Fn(Data, Data) -> Work) -> Vec<Vec<Played>> {
        let data = |buffer: &mut [u8; 8]| Data { at: buffer.as_mut_ptr(), count: 1, elem: LONG };
        let (send, recv) = (data(send), data(recv));
        let one = |rank: u32| {
            let mut plan = Plan::default();
            choose::build(&mut plan, Ranks { rank, size, via: Via::Main }, &work(send, recv));
            steps(&plan, send.at, |rank| u32::try_from(rank).ok()).unwrap_or_else(|| panic!("rank {rank} of {size}"))
        };
        (0..size).map(one).collect()
    }

    /// Play them with sets of ranks for data, each in the order in which it was combined.
    fn play(steps: &[Vec<Played>], brings: impl Fn(u32) -> Vec<u32>) -> Vec<Vec<u32>> {
        let mut has: Vec<Vec<u32>> = (0..steps.len() as u32).map(brings).collect();
        let mut at = vec![(0, false); steps.len()];
        let mut under_way: Vec<(u32, u32, Vec<u32>)> = Vec::new();
        loop {
            let before = at.clone();
            for (me, own) in (0..).zip(steps) {
                let (place, sent) = &mut at[me as usize];
                let Some(step) = own.get(*place) else { continue };
                if !std::mem::replace(sent, true) && step.to != NOBODY {
                    under_way.push((me, step.to, has[me as usize].clone()));
                }
                if step.from != NOBODY {
                    let found = under_way.iter().position(|(from, to, _)| (*from, *to) == (step.from, me));
                    let Some(found) = found else { continue };
                    let (_, _, theirs) = under_way.remove(found);
                    let mine = std::mem::take(&mut has[me as usize]);
                    has[me as usize] = match step.does {
                        does::REPLACE => theirs,
                        does::COMBINE => [theirs, mine].concat(),
                        does::COMBINE_BEHIND => [mine, theirs].concat(),
                        _ => mine,
                    };
                }
                (*place, *sent) = (*place + 1, false);
            }
            if before == at {
                assert!(under_way.is_empty() && at.iter().zip(steps).all(|((at, _), own)| *at == own.len()), "{at:?}");
                return has;
            }
        }
    }

    #[test]
    fn an_allreduce_that_is_played_combines_all_in_their_order() {
        let (mut send, mut recv) = ([0; 8], [0; 8]);
        for size in 2..=70 {
            for in_place in [false, true] {
                let work = |send: Data, recv: Data| Work::Allreduce {
                    send,
                    recv: if in_place { send } else { recv },
                    commutative: true,
                };
                let ends = play(&all(size, &mut send, &mut recv, work), |rank| vec![rank]);
                let wanted: Vec<u32> = (0..size).collect();
                assert!(ends.iter().all(|end| *end == wanted), "{size}: {ends:?}");
            }
        }
    }

    #[test]
    fn a_broadcast_that_is_played_brings_all_what_the_root_has() {
        let (mut send, mut recv) = ([0; 8], [0; 8]);
        for size in 2..=33 {
            for root in [0, 1, size / 2, size - 1] {
                let work = |data: Data, _| Work::Bcast { data, root: root as i32 };
                let ends = play(&all(size, &mut send, &mut recv, work), |rank| vec![rank]);
                assert!(ends.iter().all(|end| *end == [root]), "{size}, root {root}: {ends:?}");
            }
        }
    }
}
