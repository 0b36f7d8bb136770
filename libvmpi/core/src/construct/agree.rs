//! Agreement on the context of a new communicator: one rank takes it, a binomial tree tells the others.
//!
//! The same small state machine serves the blocking constructors (run to its end) and MPI_Comm_idup (as a request).
//! A member that dies leaves the others waiting for their slot; the daemon ends the job then, or the messages of all end with an error.

use crate::comm::{self, CONTEXTS, Communicator, Contexts};
use crate::consts::dt;
use crate::datatype;
use crate::errors::Result;
use crate::group::Members;
use crate::p2p::{self, Mode, Slot, take_in};
use crate::plane::Plane;
use crate::process;
use crate::request::Progress;
use crate::status::Status;
use std::rc::Rc;

/// Another rank, and how a message reaches it.
struct Route {
    comm: Rc<Communicator>,
    rank: u32,
    tag: i32,
}

enum State {
    Start,
    Receiving(Slot),
    Sending(Vec<Slot>),
    Done,
}

/// The agreement under way; `finish` is called with the contexts once this rank knows them and has told its children.
pub(super) struct Agreement {
    /// All its members are needed.
    comm: Rc<Communicator>,
    source: Option<Route>,
    targets: Vec<Route>,
    pairs: usize,
    contexts: Box<Contexts>,
    state: State,
    finish: Option<Box<dyn FnOnce(Contexts)>>,
}

/// Parent and children of `position` in a binomial tree over `0 .. size` with root 0; largest subtree first.
pub(super) fn tree(position: u32, size: u32) -> (Option<u32>, Vec<u32>) {
    let parent = (position != 0).then(|| position & (position - 1));
    let limit = if position == 0 { 32 } else { position.trailing_zeros() };
    let children = (0..limit)
        .rev()
        .filter_map(|bit| position.checked_add(1u32.checked_shl(bit)?))
        .filter(|&child| child < size)
        .collect();
    (parent, children)
}

impl Agreement {
    /// All ranks of an intracommunicator agree; the call counts as one collective on it.
    pub(super) fn over_intra(comm: &Rc<Communicator>, finish: Box<dyn FnOnce(Contexts)>) -> Agreement {
        let tag = comm.next_collective_tag();
        Agreement::over(comm, comm.rank, comm.size(), |position| position, tag, finish)
    }

    /// The ranks `members[..]` of `comm` agree among themselves under a tag of their own; `position`: mine in `members`.
    pub(super) fn over_ranks(
        comm: &Rc<Communicator>,
        members: &[u32],
        position: u32,
        tag: i32,
        finish: Box<dyn FnOnce(Contexts)>,
    ) -> Agreement {
        let all = members.iter().map(|rank| comm.local.world_rank(*rank)).collect();
        let view = comm.among(Rc::new(Members::list(all)));
        Agreement::over(&view, position, members.len() as u32, |position| members[position as usize], tag, finish)
    }

    fn over(
        comm: &Rc<Communicator>,
        position: u32,
        size: u32,
        rank_at: impl Fn(u32) -> u32,
        tag: i32,
        finish: Box<dyn FnOnce(Contexts)>,
    ) -> Agreement {
        let route = |position| Route { comm: comm.clone(), rank: rank_at(position), tag };
        let (parent, children) = tree(position, size);
        Agreement {
            comm: comm.clone(),
            source: parent.map(&route),
            targets: children.into_iter().map(&route).collect(),
            pairs: 1,
            contexts: Box::new([0; CONTEXTS]),
            state: State::Start,
            finish: Some(finish),
        }
    }

    /// All ranks of both groups of an intercommunicator agree: the group whose first member has the lower job-wide
    /// rank takes the contexts, its first member tells the other group's, and each group has its own tree.
    pub(super) fn over_inter(comm: &Rc<Communicator>, finish: Box<dyn FnOnce(Contexts)>) -> Agreement {
        let mut agreement = Agreement::over_intra(comm.local_phase(), finish);
        agreement.pairs = CONTEXTS;
        let across = Route { comm: comm.clone(), rank: 0, tag: comm.next_collective_tag() };
        if comm.rank == 0 {
            if comm::leads(comm) {
                agreement.targets.insert(0, across);
            } else {
                agreement.source = Some(across);
            }
        }
        agreement
    }

    /// Take part for the others' sake only.
    pub(super) fn withdraw(&mut self) {
        self.finish = None;
    }

    fn receive(&mut self) -> Result<State> {
        let Some(route) = &self.source else {
            for context in &mut self.contexts[..self.pairs] {
                *context = process::new_context();
            }
            return self.send();
        };
        let byte = datatype::get(dt::BYTE)?;
        let buf = self.contexts.as_mut_ptr().cast();
        let bytes = size_of::<Contexts>() as u64;
        // SAFETY: the boxed array stays where it is until the slot has completed (`advance` polls it to the end).
        let slot = unsafe {
            p2p::start_recv(&route.comm, Plane::Collective, buf, bytes, &byte, route.rank as i32, route.tag)?
        };
        Ok(State::Receiving(slot))
    }

    fn send(&self) -> Result<State> {
        let byte = datatype::get(dt::BYTE)?;
        let buf = self.contexts.as_ptr().cast();
        let bytes = size_of::<Contexts>() as u64;
        let mut slots = Vec::with_capacity(self.targets.len());
        for to in &self.targets {
            let (rank, mode) = (to.rank as i32, Mode::Standard);
            // SAFETY: the boxed array is not written any more, and lives until every slot has completed.
            let slot = unsafe { p2p::start_send(&to.comm, Plane::Collective, buf, bytes, &byte, rank, to.tag, mode)? };
            slots.extend(slot);
        }
        Ok(State::Sending(slots))
    }
}

impl Progress for Agreement {
    fn advance(&mut self) -> Result<Option<Status>> {
        loop {
            match &mut self.state {
                State::Start => {
                    take_in::look();
                    self.comm.health.check_all()?;
                    self.state = self.receive()?;
                }
                State::Receiving(slot) => match p2p::poll(*slot) {
                    None => return Ok(None),
                    Some(outcome) => {
                        self.state = State::Done;
                        outcome?;
                        self.state = self.send()?;
                    }
                },
                State::Sending(slots) => {
                    while let Some(&slot) = slots.last() {
                        match p2p::poll(slot) {
                            None => return Ok(None),
                            Some(outcome) => {
                                slots.pop();
                                outcome?;
                            }
                        }
                    }
                    self.state = State::Done;
                    if let Some(finish) = self.finish.take() {
                        finish(*self.contexts);
                    }
                }
                State::Done => return Ok(Some(Status::EMPTY)),
            }
        }
    }

    fn pending(&self, slots: &mut Vec<Slot>) {
        match &self.state {
            State::Receiving(slot) => slots.push(*slot),
            State::Sending(sends) => slots.extend_from_slice(sends),
            State::Start | State::Done => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_reaches_every_rank_once() {
        for size in 1..70 {
            let mut reached = vec![0; size as usize];
            for position in 0..size {
                let (parent, children) = tree(position, size);
                for &child in &children {
                    reached[child as usize] += 1;
                    assert_eq!(tree(child, size).0, Some(position));
                }
                assert_eq!(parent.is_none(), position == 0);
            }
            assert_eq!(reached[0], 0);
            assert!(reached[1..].iter().all(|&times| times == 1));
        }
    }
}
