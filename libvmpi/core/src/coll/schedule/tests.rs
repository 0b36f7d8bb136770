//! What may be left behind of a plan: its last round, and nothing that needs this rank afterwards.

use super::*;
use crate::coll::plan::Ranks;

/// Says what it is told to do; messages are over as soon as they are looked at.
#[derive(Default)]
struct Scribe {
    said: Vec<String>,
    slots: u32,
    /// What becomes of the last round: left behind, or declined.
    leaves: bool,
}

impl Machine for &mut Scribe {
    unsafe fn send(&mut self, data: &Data, to: i32, _via: Via) -> Result<Option<Slot>> {
        self.said.push(format!("send {} to {to}", data.count));
        self.slots += 1;
        Ok(Some(Slot(self.slots)))
    }

    unsafe fn recv(&mut self, data: &Data, from: i32, _via: Via) -> Result<Slot> {
        self.said.push(format!("recv {} from {from}", data.count));
        self.slots += 1;
        Ok(Slot(self.slots))
    }

    fn poll(&mut self, _slot: Slot) -> Option<Result<Status>> {
        Some(Ok(Status::EMPTY))
    }

    unsafe fn copy(&mut self, from: &Data, _to: &Data) -> Result<()> {
        self.said.push(format!("copy {}", from.count));
        Ok(())
    }

    unsafe fn reduce(&mut self, _input: *const u8, inout: &Data) -> Result<()> {
        self.said.push(format!("reduce {}", inout.count));
        Ok(())
    }

    fn may_leave(&self) -> bool {
        true
    }

    unsafe fn leave(&mut self, steps: &[Step]) -> Option<Result<Rest>> {
        let messages = steps.iter().filter(|step| !matches!(step, Step::Copy { .. })).count();
        self.said.push(format!("last {messages}"));
        self.leaves.then(|| Ok(Rest::new()))
    }

    unsafe fn pack(&self, _data: &Data) -> Vec<u8> {
        Vec::new()
    }
}

const RANKS: Ranks = Ranks { rank: 0, size: 4, via: Via::Main };
const LARGE: u64 = 1 << 20;

fn bytes(count: u64) -> Data {
    static PROGRAMS: [u8; 1] = [0];
    Data { at: PROGRAMS.as_ptr().cast_mut(), count, elem: Elem::BYTE }
}

/// What is done of a plan.
fn done(leaves: bool, build: impl FnOnce(&mut Plan)) -> Vec<String> {
    let mut plan = Plan::default();
    build(&mut plan);
    let mut scribe = Scribe { leaves, ..Scribe::default() };
    // SAFETY: nothing is touched.
    let mut schedule = unsafe { Schedule::new(Rc::new(plan), &mut scribe) };
    assert!(matches!(schedule.advance(), Ok(Some(_))));
    drop(schedule);
    scribe.said
}

#[test]
fn only_the_last_round_is_left_behind() {
    let forwards = |plan: &mut Plan| {
        plan.recv(RANKS, 1, bytes(LARGE));
        plan.fence();
        plan.send(RANKS, 2, bytes(LARGE));
        plan.send(RANKS, 3, bytes(LARGE));
        plan.fence();
    };
    assert_eq!(done(true, forwards), [format!("recv {LARGE} from 1"), "last 2".into()]);
    let declined =
        [format!("recv {LARGE} from 1"), "last 2".into(), format!("send {LARGE} to 2"), format!("send {LARGE} to 3")];
    assert_eq!(done(false, forwards), declined);
}

#[test]
fn copies_of_that_round_come_first_and_once() {
    let exchange = |plan: &mut Plan| {
        plan.recv(RANKS, 1, bytes(LARGE));
        plan.send(RANKS, 1, bytes(LARGE));
        plan.copy(bytes(8), bytes(16));
        plan.fence();
    };
    assert_eq!(done(true, exchange), ["copy 8", "last 2"]);
    assert_eq!(done(false, exchange).iter().filter(|said| said.starts_with("copy")).count(), 1);
}

#[test]
fn what_needs_this_rank_afterwards_is_waited_for() {
    let temporary = |plan: &mut Plan| {
        let copy = plan.temp_bytes(LARGE);
        plan.send(RANKS, 1, copy);
        plan.fence();
    };
    let combined = |plan: &mut Plan| {
        plan.recv(RANKS, 1, bytes(LARGE));
        plan.fence();
        plan.reduce(bytes(LARGE), bytes(LARGE));
    };
    let unpacked = |plan: &mut Plan| {
        plan.recv(RANKS, 1, bytes(LARGE));
        plan.fence();
        plan.copy(bytes(LARGE), bytes(LARGE + 1));
    };
    let small = |plan: &mut Plan| {
        plan.recv(RANKS, 1, bytes(100));
        plan.fence();
    };
    for plan in [done(true, temporary), done(true, combined), done(true, unpacked), done(true, small)] {
        assert!(plan.iter().all(|said| !said.starts_with("last")), "{plan:?}");
    }
}
