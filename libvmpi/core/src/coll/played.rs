//! In virtual time: collectives whose messages the engine sends and receives in the ranks' place (`vmpi_shared::simulate::play`).

use super::plan::{Plan, Step, Via};
use super::work::Work;
use crate::calls::CALL_COLLECTIVE;
use crate::comm::Communicator;
use crate::simulate;
use crate::tool::event;
use vmpi_shared::simulate::layout::{MOST_STEPS, NOBODY, Step as Played};

/// Have `work` played, if it may be: all ranks of `comm` answer that alike. False: it goes message by message.
#[cold]
pub(super) fn run(comm: &Communicator, work: &Work, plan: &Plan) -> bool {
    // Of others the ranks would have to hand their data over, too.
    if !matches!(work, Work::Barrier) || comm.is_inter() || !simulate::plays() {
        return false;
    }
    let rank_of = |rank: i32| {
        u32::try_from(rank).ok().filter(|rank| *rank < comm.size()).map(|rank| comm.peers().world_rank(rank))
    };
    let Some(mut steps) = steps(plan, rank_of) else { return false };
    event::around(-1, -1, || simulate::wait::join(comm.context, &mut steps, CALL_COLLECTIVE));
    true
}

/// What a rank does by `plan`: in each step it sends, then waits for what it receives. `None`: that is not what the plan says, or there are too many.
/// Of two receives before a fence the rank may see one before the other, and be busy with it meanwhile.
fn steps(plan: &Plan, rank_of: impl Fn(i32) -> Option<u32>) -> Option<Vec<Played>> {
    const NONE: Played = Played { to: NOBODY, from: NOBODY, bytes: 0, before: 0, reserved: 0, before_tie: 0 };
    let (mut steps, mut from) = (Vec::new(), NOBODY);
    let mut sends = Vec::new();
    for step in plan.steps.iter().chain([&Step::Fence]) {
        match *step {
            Step::Send { data, to, via: Via::Main } if data.count == 0 => sends.push(rank_of(to)?),
            Step::Recv { data, from: source, via: Via::Main } if data.count == 0 && from == NOBODY => {
                from = rank_of(source)?;
            }
            Step::Fence => {
                steps.extend(sends.drain(..).map(|to| Played { to, ..NONE }));
                match steps.last_mut().filter(|last: &&mut Played| last.from == NOBODY && last.to != NOBODY) {
                    Some(last) => last.from = from,
                    None if from != NOBODY => steps.push(Played { from, ..NONE }),
                    None => {}
                }
                from = NOBODY;
            }
            _ => return None,
        }
    }
    (steps.len() <= MOST_STEPS).then_some(steps)
}
