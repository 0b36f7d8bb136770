//! A window's state on this node: what is done at once, and what waits for a lock.

use std::collections::{BTreeMap, HashMap, VecDeque};

use vmpi_cma::Block;
use vmpi_shared::ask::{self, Ask, What};
use vmpi_shared::endpoint::carrier::CarrierEndpoint;
use vmpi_shared::matching::request::outcome;
use vmpi_shared::mem::sync::{Ordering, fence};
use vmpi_shared::window::{Ticket, Window};

use super::answer::Answer;
use super::combine::combine;
use crate::carrier::transfer::{Cursor, Memory, Unreachable};

/// Up to here what is read goes in one frame, before large messages that are under way.
const SMALL_BYTES: u64 = 64 << 10;

/// An ask of a rank on another node.
pub struct Asked {
    pub ask: Ask,
    /// Where it comes from; the job's ranks that ask and are asked about.
    pub node: u32,
    pub from: u32,
    pub to: u32,
    /// The origin's request, and the number of the data that answers it.
    pub request: u32,
    pub transfer: u32,
}

/// One that waits for the lock of a member (MPI_Win_lock).
struct Turn {
    asked: Asked,
    ticket: Ticket,
}

/// A window of which members are here.
pub struct Open {
    pub control: Window,
    /// Asks that wait for the lock for moments, and those behind them; by target and origin.
    pub lines: BTreeMap<(u32, u32), VecDeque<(Asked, Vec<u8>)>>,
    turns: Vec<Turn>,
    /// What has failed without anybody waiting for it: told with the next answer. By target and origin.
    failed: HashMap<(u32, u32), i32>,
    /// Members that may go on.
    pub stirred: Vec<u32>,
    /// Somebody of another node may.
    pub again: bool,
}

pub fn failure(errno: i32) -> u32 {
    outcome::ERRNO | errno as u32
}

fn errno_of(why: Unreachable) -> i32 {
    match why {
        Unreachable::Errno(errno) => errno,
        Unreachable::Refused => libc::EPERM,
    }
}

/// Must it wait until all before it has been done?
pub fn is_ordered(what: What) -> bool {
    match what {
        What::Take | What::Combine | What::Fetch | What::Swap => true,
        What::Flush | What::Unlock | What::Complete => true,
        // Give must never wait behind one that waits for what it gives.
        _ => false,
    }
}

/// How an ask is refused.
pub fn refusal(what: What, errno: i32) -> Answer {
    match what {
        _ if what.fetches() => Answer::Refused(errno),
        _ if what.is_answered() => Answer::Word(failure(errno)),
        _ => Answer::Nothing,
    }
}

impl Open {
    pub fn new(control: Window) -> Open {
        Open {
            control,
            lines: BTreeMap::new(),
            turns: Vec::new(),
            failed: HashMap::new(),
            stirred: Vec::new(),
            again: false,
        }
    }

    /// Bytes, about, of what waits here.
    #[cfg(test)]
    pub fn held_bytes(&self) -> usize {
        let lines = self.lines.values().flatten().map(|(_, payload)| size_of::<Asked>() + payload.capacity());
        lines.sum::<usize>() + self.turns.len() * size_of::<Turn>()
    }

    /// The window is no more: the asks that wait there with a credit.
    pub fn into_waiting(self) -> impl Iterator<Item = Asked> {
        self.lines.into_values().flatten().map(|(asked, _)| asked)
    }

    /// Is it one of member `target`, rank `to`, by member `origin`, rank `from`?
    pub fn fits(&self, asked: &Asked) -> bool {
        let is = |member: u32, rank: u32| {
            member < self.control.members() && self.control.member(member).rank() == Some(rank)
        };
        is(asked.ask.target, asked.to) && is(asked.ask.origin, asked.from)
    }

    fn holds(&self, target: u32, blocks: &[Block]) -> bool {
        blocks.iter().all(|block| {
            let end = block.addr.checked_add(block.len);
            block.len == 0 || end.is_some_and(|end| self.control.holds(target, block.addr, end))
        })
    }

    /// Do what is asked. `None`: the lock for moments is taken by somebody else.
    fn run(&mut self, asked: &Asked, payload: &[u8], endpoint: &CarrierEndpoint) -> Option<Answer> {
        let ask = &asked.ask;
        let (origin, target) = (ask.origin, ask.target);
        let member = self.control.member(target);
        let said = (target, origin);
        match ask.what {
            What::Open | What::Close | What::Attend => return Some(Answer::Nothing),
            What::Lock => return Some(Answer::Nothing),
            What::Unlock => {
                if member.lock.leave(ask.flag) {
                    self.stirred.extend(self.control.called(target));
                }
                return Some(Answer::Word(self.failed.remove(&said).map_or(outcome::GOOD, failure)));
            }
            What::Flush => return Some(Answer::Word(self.failed.remove(&said).map_or(outcome::GOOD, failure))),
            What::Post => {
                // The asking member is the target of what is to come.
                self.control.posts(target, origin).fetch_add(1, Ordering::SeqCst);
                self.stir_if_waiting(target);
                return Some(Answer::Nothing);
            }
            What::Complete => {
                member.completed.fetch_add(1, Ordering::SeqCst);
                self.stir_if_waiting(target);
                return Some(Answer::Nothing);
            }
            What::Take => return member.moment.take(origin).then_some(Answer::Word(outcome::GOOD)),
            What::Give => {
                if member.moment.holder() == Some(origin) {
                    self.give(target);
                }
                return Some(Answer::Nothing);
            }
            What::Step => {
                let Some(counter) = self.control.counter() else { return Some(refusal(ask.what, libc::EINVAL)) };
                return Some(Answer::Number(counter.fetch_add(ask.offset, Ordering::SeqCst)));
            }
            What::Write | What::Read | What::Bring | What::Combine | What::Fetch | What::Swap => {}
        }
        let refuse = |open: &mut Open, errno: i32| {
            if !ask.what.fetches() && !ask.what.is_answered() {
                open.failed.entry(said).or_insert(errno);
            }
            Some(refusal(ask.what, errno))
        };
        let Ok((blocks, data)) = ask::read_payload(ask, payload) else { return refuse(self, libc::EINVAL) };
        if !self.holds(target, &blocks) {
            return refuse(self, libc::EFAULT);
        }
        let Some(memory) = Memory::of(endpoint, asked.to, false) else { return refuse(self, libc::ESRCH) };
        let mut cursor = Cursor::over(memory, blocks);
        let done = match ask.what {
            What::Write => cursor.write(&endpoint.node, data).map(|()| Answer::Nothing),
            What::Read if ask.bytes > SMALL_BYTES => Ok(Answer::Stream(cursor)),
            What::Read => {
                let mut read = vec![0; ask.bytes as usize];
                cursor.read(&endpoint.node, &mut read).map(|()| Answer::Data(read))
            }
            What::Bring => Ok(Answer::Bring(cursor)),
            _ => {
                if !self.control.member(target).moment.take(origin) {
                    return None;
                }
                let combined = combine(ask, &endpoint.node, cursor, data);
                self.give(target);
                combined
            }
        };
        match done {
            Ok(answer) => Some(answer),
            Err(why) => refuse(self, errno_of(why)),
        }
    }

    /// Give the lock for moments of `target` back.
    fn give(&mut self, target: u32) {
        if self.control.member(target).moment.give() {
            self.stirred.extend(self.control.waiting_for(target));
        }
    }

    fn stir_if_waiting(&mut self, member: u32) {
        fence(Ordering::SeqCst); // SYNC W
        if self.control.member(member).waiting.load(Ordering::SeqCst) != 0 {
            self.stirred.push(member);
        }
    }

    /// As `run`, for one that may have said already that it waits (`waits`). Whether it waits now.
    pub fn run_or_wait(
        &mut self,
        asked: &Asked,
        payload: &[u8],
        endpoint: &CarrierEndpoint,
        waits: &mut bool,
    ) -> Option<Answer> {
        loop {
            if let Some(answer) = self.run(asked, payload, endpoint) {
                if std::mem::take(waits) {
                    self.control.member(asked.ask.origin).end_wait();
                }
                return Some(answer);
            }
            if !*waits {
                *waits = true;
                self.control.member(asked.ask.origin).begin_wait(asked.ask.target + 1, 0);
                continue; // SYNC W: once more
            }
            if self.control.member(asked.ask.target).moment.contend() {
                return None;
            }
        }
    }

    /// Go on with what waits here; what has been done, and whether it held a credit.
    pub fn advance(&mut self, endpoint: &CarrierEndpoint) -> Vec<(Asked, Answer, bool)> {
        let mut done = Vec::new();
        let keys: Vec<(u32, u32)> = self.lines.keys().copied().collect();
        for key in keys {
            let Some(mut line) = self.lines.remove(&key) else { continue };
            // The first one says that it waits.
            let mut waits = true;
            while let Some((asked, payload)) = line.pop_front() {
                match self.run_or_wait(&asked, &payload, endpoint, &mut waits) {
                    Some(answer) => done.push((asked, answer, true)),
                    None => {
                        line.push_front((asked, payload));
                        break;
                    }
                }
            }
            if !line.is_empty() {
                self.lines.insert(key, line);
            }
        }
        let mut at = 0;
        while let Some(turn) = self.turns.get(at) {
            let target = turn.asked.ask.target;
            let member = self.control.member(target);
            if !member.lock.is_called(turn.ticket) {
                at += 1;
                continue;
            }
            let turn = self.turns.remove(at);
            member.lock.unqueue();
            self.control.member(turn.asked.ask.origin).end_wait();
            if member.lock.come_in(turn.ticket) {
                self.stirred.extend(self.control.called(target));
            }
            done.push((turn.asked, Answer::Word(outcome::GOOD), false));
        }
        done
    }

    /// Get in line for the lock of a member.
    pub fn queue_up(&mut self, asked: Asked) -> Option<(Asked, Answer)> {
        let ask = &asked.ask;
        let same = |turn: &Turn| (turn.asked.ask.target, turn.asked.ask.origin) == (ask.target, ask.origin);
        if self.turns.iter().any(same) {
            // Nobody gets in line twice for the same lock (MPI 4.1, 12.5.3): what waits here is bounded by the members.
            return Some((asked, Answer::Word(failure(libc::EINVAL))));
        }
        let lock = &self.control.member(ask.target).lock;
        let ticket = lock.draw(ask.flag);
        if lock.is_called(ticket) {
            if lock.come_in(ticket) {
                self.stirred.extend(self.control.called(ask.target));
            }
            return Some((asked, Answer::Word(outcome::GOOD)));
        }
        lock.queue();
        self.control.member(ask.origin).begin_wait(ask.target + 1, ticket.number);
        self.turns.push(Turn { asked, ticket });
        self.again = true; // SYNC W: once more
        None
    }

    pub fn waits(&self) -> bool {
        !self.lines.is_empty() || !self.turns.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(unsafe_code)]

    use super::*;
    use vmpi_shared::arith::{Builtin, Element};
    use vmpi_shared::job::{JobConfig, JobSegment};
    use vmpi_shared::node::{NodeConfig, NodeSegment};
    use vmpi_shared::window::Shape;

    fn endpoint() -> CarrierEndpoint {
        let node = NodeSegment::create(&NodeConfig::on_one_core(0, 4)).unwrap();
        for rank in 0..4 {
            node.set_pid(rank, std::process::id() as i32);
            node.introduce(rank);
        }
        CarrierEndpoint::new(node, JobSegment::create(&JobConfig { cells: 1, ..JobConfig::for_ranks(4) }).unwrap())
    }

    /// A window of four members, ranks 0 to 3, of which member 0 has these bytes.
    fn open(memory: &[u8]) -> Open {
        let control = Window::create(Shape { members: 4, dynamic: false, data_bytes: 0 }).unwrap();
        (0..4).for_each(|member| control.member(member).set_rank(member));
        control.member(0).set_memory(memory.as_ptr() as u64, memory.len() as u64);
        Open::new(control)
    }

    fn asked(what: What, origin: u32, bytes: u64, blocks: u32) -> Asked {
        let ask = Ask {
            what,
            window: (0, 0),
            origin,
            target: 0,
            flag: false,
            op: Builtin::Sum as u8,
            element: Element::I64 as u8,
            bytes,
            blocks,
            offset: 0,
        };
        Asked { ask, node: 1, from: origin, to: 0, request: 7, transfer: 9 }
    }

    fn payload(blocks: &[Block], data: &[u8]) -> Vec<u8> {
        let mut payload = vec![0; blocks.len() * ask::BLOCK_BYTES + data.len()];
        ask::write_payload(blocks, &[data], &mut payload);
        payload
    }

    /// Whatever is asked: nothing outside of the window's memory changes, and nothing panics.
    #[test]
    fn nonsense_stays_in_the_window() {
        const GUARD: usize = 256;
        let endpoint = endpoint();
        let mut arena = vec![0xa5u8; 3 * GUARD];
        let start = arena.as_mut_ptr() as u64;
        // SAFETY: inside the arena, whose middle is written by system calls only.
        let mut window = open(unsafe { std::slice::from_raw_parts((start as *const u8).add(GUARD), GUARD) });
        let mut chance = fastrand::Rng::with_seed(11);
        let (mut done, mut refused) = (0, 0);
        for _ in 0..60_000 {
            let what = What::try_from(chance.u8(..=What::Step as u8)).unwrap();
            let count = chance.usize(..4);
            let mut blocks = Vec::new();
            for _ in 0..count {
                let addr = match chance.u32(..8) {
                    0 => u64::MAX - chance.u64(..40),
                    1 => chance.u64(..1000),
                    _ => start + GUARD as u64 / 2 + chance.u64(..2 * GUARD as u64),
                };
                let len = if chance.u32(..20) == 0 { u64::MAX - chance.u64(..9) } else { 8 * chance.u64(..5) };
                blocks.push(Block { addr, len });
            }
            let total = blocks.iter().fold(0u64, |sum, block| sum.wrapping_add(block.len));
            let data = if chance.u32(..8) == 0 { chance.usize(..100) } else { total.min(200) as usize };
            let data = if what == What::Swap { 2 * data } else { data };
            let payload = payload(&blocks, &vec![chance.u8(..); data]);
            let mut asked = asked(what, chance.u32(1..=3), total, count as u32);
            (asked.ask.op, asked.ask.element) = (chance.u8(..20), chance.u8(..50));
            if chance.u32(..10) == 0 {
                asked.ask.bytes = chance.u64(..1 << 40) << chance.u32(..24);
            }
            let mut waits = false;
            match window.run_or_wait(&asked, &payload, &endpoint, &mut waits) {
                Some(Answer::Refused(_)) => refused += 1,
                Some(Answer::Word(word)) if word != outcome::GOOD => refused += 1,
                Some(_) => done += 1,
                None => {
                    // Somebody has taken the lock for moments: give it back in that one's name.
                    let holder = window.control.member(0).moment.holder().unwrap();
                    let mut give = self::asked(What::Give, holder, 0, 0);
                    give.from = holder;
                    assert!(matches!(window.run(&give, &[], &endpoint), Some(Answer::Nothing)));
                    window.control.member(asked.ask.origin).end_wait();
                }
            }
            window.stirred.clear();
            // SAFETY: the test's own memory.
            let now = unsafe { std::slice::from_raw_parts(start as *const u8, 3 * GUARD) };
            let whole = now[..GUARD].iter().chain(&now[2 * GUARD..]).all(|byte| *byte == 0xa5);
            assert!(whole, "{:?} has written outside", asked.ask);
        }
        assert!(done > 5000 && refused > 5000, "{done} {refused}");
    }

    #[test]
    fn asks_of_others_are_not_those_of_members() {
        let memory = [0u8; 64];
        let window = open(&memory);
        let mut ask = asked(What::Write, 1, 0, 0);
        assert!(window.fits(&ask));
        ask.from = 2;
        assert!(!window.fits(&ask), "rank 2 is not member 1");
        ask = asked(What::Write, 4, 0, 0);
        ask.from = 4;
        assert!(!window.fits(&ask), "there is no member 4");
    }

    /// What waits for the lock for moments is done in its order, when the lock has been given back.
    #[test]
    fn accumulations_wait_for_a_moment_in_order() {
        let endpoint = endpoint();
        let memory = [1i64, 2, 3];
        let start = memory.as_ptr() as u64;
        // SAFETY: the test's own memory.
        let mut window = open(unsafe { std::slice::from_raw_parts(start as *const u8, 24) });
        assert!(window.control.member(0).moment.take(3));
        let sum = payload(&[Block { addr: start, len: 24 }], &[10i64, 20, 30].map(i64::to_ne_bytes).concat());
        let ask = asked(What::Combine, 1, 24, 1);
        let mut waits = false;
        assert!(window.run_or_wait(&ask, &sum, &endpoint, &mut waits).is_none() && waits);
        assert_eq!(window.control.waiting_for(0).collect::<Vec<_>>(), [1]);
        let flush = asked(What::Flush, 1, 0, 0);
        window.lines.insert((0, 1), [(ask, sum), (flush, Vec::new())].into());
        assert!(window.advance(&endpoint).is_empty(), "it is taken still");
        assert!(window.control.member(0).moment.give(), "and who has it knows that somebody waits");
        let done = window.advance(&endpoint);
        assert!(matches!(done[..], [(_, Answer::Nothing, true), (_, Answer::Word(outcome::GOOD), true)]));
        assert!(!window.waits() && window.control.waiting_for(0).next().is_none());
        // SAFETY: as above; written by a system call.
        let now = unsafe { std::ptr::read_volatile(start as *const [i64; 3]) };
        assert_eq!(now, [11, 22, 33]);
    }

    /// Locks of members here and of ranks of other nodes come in the same line.
    #[test]
    fn locks_come_in_turn() {
        let memory = [0u8; 8];
        let endpoint = endpoint();
        let mut window = open(&memory);
        let lock = |origin, flag| {
            let mut lock = asked(What::Lock, origin, 0, 0);
            lock.ask.flag = flag;
            lock
        };
        let here = window.control.member(0).lock.draw(true);
        assert!(window.control.member(0).lock.is_called(here));
        assert!(window.queue_up(lock(1, false)).is_none() && window.queue_up(lock(2, true)).is_none());
        let twice = window.queue_up(lock(1, false));
        assert!(matches!(twice, Some((_, Answer::Word(word))) if word == failure(libc::EINVAL)), "in line already");
        assert!(window.advance(&endpoint).is_empty());
        assert!(window.control.member(0).lock.leave(true), "somebody waits");
        assert_eq!(window.advance(&endpoint).len(), 1, "the one that shares");
        let mut unlock = asked(What::Unlock, 1, 0, 0);
        assert!(matches!(window.run(&unlock, &[], &endpoint), Some(Answer::Word(outcome::GOOD))));
        assert_eq!(window.advance(&endpoint).len(), 1, "and then the one alone");
        unlock.ask.flag = true;
        assert!(matches!(window.run(&unlock, &[], &endpoint), Some(Answer::Word(outcome::GOOD))));
        assert!(!window.waits());
        let next = window.control.member(0).lock.draw(false);
        assert!(window.control.member(0).lock.is_called(next));
    }
}
