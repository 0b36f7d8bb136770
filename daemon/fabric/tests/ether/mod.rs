//! RDMA devices without devices: all in this process, joined by a network that can be cut.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;

use nix::sys::eventfd::{EfdFlags, EventFd};
use vmpi_fabric::verbs::abi::{flag, what};
use vmpi_fabric::verbs::nic::{Address, Done, Keys, Pair, Work};
use vmpi_fabric::verbs::{Nic, NicError};

/// As `IBV_WC_RETRY_EXC_ERR` and `IBV_WC_RNR_RETRY_EXC_ERR`.
const NO_ANSWER: u32 = 12;
const NOT_READY: u32 = 13;

struct End {
    card: usize,
    peer: Option<usize>,
    receives: VecDeque<(u64, u64, u32)>,
    most: (u32, u32),
    alive: bool,
}

#[derive(Default)]
struct Completions {
    queue: VecDeque<Done>,
    most: u32,
    armed: bool,
}

/// The network between the devices.
#[derive(Default)]
pub struct Ether {
    ends: Vec<End>,
    cards: Vec<Completions>,
    bells: Vec<Rc<EventFd>>,
    pub cut: bool,
    /// A SEND or WRITE that found no receive: never with credits.
    pub not_ready: u32,
    pub sends: u32,
    pub writes: u32,
}

impl Ether {
    fn complete(&mut self, card: usize, done: Done) {
        let completions = &mut self.cards[card];
        completions.queue.push_back(done);
        assert!(completions.queue.len() <= completions.most as usize, "the completion queue has run over");
        if std::mem::take(&mut completions.armed) {
            self.bells[card].write(1).expect("an eventfd takes it");
        }
    }
}

/// A device on it.
pub struct Toy {
    ether: Rc<RefCell<Ether>>,
    card: usize,
    name: String,
    bell: Rc<EventFd>,
}

impl Toy {
    pub fn on(ether: &Rc<RefCell<Ether>>) -> Toy {
        let bell = Rc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK).expect("a descriptor is left"));
        let mut all = ether.borrow_mut();
        all.cards.push(Completions::default());
        all.bells.push(bell.clone());
        let card = all.cards.len() - 1;
        Toy { ether: ether.clone(), card, name: format!("toy{card} port 1"), bell }
    }
}

impl Nic for Toy {
    fn name(&self) -> &str {
        &self.name
    }

    fn channel(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn prepare(&mut self, completions: u32) -> Result<(), NicError> {
        self.ether.borrow_mut().cards[self.card].most = completions;
        Ok(())
    }

    fn register(&mut self, _: u64, _: u64) -> Result<Keys, NicError> {
        Ok(Keys { local: 1, remote: 2 })
    }

    fn pair(&mut self, receives: u32, sends: u32) -> Result<(Pair, Address), NicError> {
        let mut all = self.ether.borrow_mut();
        let end = End { card: self.card, peer: None, receives: VecDeque::new(), most: (receives, sends), alive: true };
        all.ends.push(end);
        let pair = all.ends.len() as u32 - 1;
        Ok((pair, Address { queue_pair: pair, mtu: 3, ethernet: 1, ..Address::default() }))
    }

    fn join(&mut self, pair: Pair, to: &Address) -> Result<(), NicError> {
        self.ether.borrow_mut().ends[pair as usize].peer = Some(to.queue_pair as usize);
        Ok(())
    }

    fn part(&mut self, pair: Pair) {
        self.ether.borrow_mut().ends[pair as usize].alive = false;
    }

    fn receive(&mut self, pair: Pair, id: u64, addr: u64, bytes: u32, _: u32) -> Result<(), NicError> {
        let mut all = self.ether.borrow_mut();
        let end = &mut all.ends[pair as usize];
        assert!(end.receives.len() < end.most.0 as usize, "more receives than asked for");
        end.receives.push_back((id, addr, bytes));
        Ok(())
    }

    fn send(&mut self, pair: Pair, work: &Work) -> Result<(), NicError> {
        let mut all = self.ether.borrow_mut();
        let own = &all.ends[pair as usize];
        let peer = own.peer.ok_or(NicError("not joined".into()))?;
        let card = own.card;
        let dead = all.cut || !all.ends[peer].alive;
        let failed = |status| Done { id: work.id, status, ..Done::default() };
        if dead {
            all.complete(card, failed(NO_ANSWER));
            return Ok(());
        }
        let Some((id, addr, room)) = all.ends[peer].receives.pop_front() else {
            all.not_ready += 1;
            all.complete(card, failed(NOT_READY));
            return Ok(());
        };
        let there = all.ends[peer].card;
        let write = work.flags & flag::WRITE != 0;
        let to = if write { work.remote } else { addr };
        assert!(write || work.bytes <= room, "a message longer than the receive");
        // SAFETY: both ends are live mappings of this process, of the stated lengths.
        unsafe { std::ptr::copy_nonoverlapping(work.addr as *const u8, to as *mut u8, work.bytes as usize) };
        let what = if write { what::WRITTEN } else { what::RECEIVED };
        *(if write { &mut all.writes } else { &mut all.sends }) += 1;
        all.complete(there, Done { id, status: 0, what, bytes: work.bytes, immediate: work.immediate });
        if work.flags & flag::SIGNALED != 0 {
            all.complete(card, Done { id: work.id, what: what::SENT, ..Done::default() });
        }
        Ok(())
    }

    fn poll(&mut self, done: &mut [Done]) -> Result<usize, NicError> {
        let queue = &mut self.ether.borrow_mut().cards[self.card].queue;
        let count = queue.len().min(done.len());
        for (to, from) in done.iter_mut().zip(queue.drain(..count)) {
            *to = from;
        }
        Ok(count)
    }

    fn arm(&mut self) -> Result<(), NicError> {
        self.ether.borrow_mut().cards[self.card].armed = true;
        Ok(())
    }

    fn heed(&mut self) -> bool {
        self.bell.read().is_ok()
    }

    fn status(&self, status: u32) -> String {
        format!("toy status {status}")
    }
}
