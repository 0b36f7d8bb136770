//! Baton, run queue, suspend against tend, the watchdog: the scheduler alone, with mailboxes that only count.

use super::world::{assert_alone, check_random, node};
use shuttle::sync::Arc;
use shuttle::thread;
use std::sync::atomic::{AtomicU32, Ordering};
use vmpi_shared::control::Policy;
use vmpi_shared::matching::envelope::{Envelope, kind};
use vmpi_shared::matching::inbox::{Cell, Ends, Inbox};
use vmpi_shared::mem::sync;
use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched::{self, Wait, wake};

const ROUNDS: usize = 1000;

/// A rank's mailbox for the tests: an inbox whose messages only count.
pub struct Mail {
    ends: Ends,
    cells: Vec<Cell>,
    taken: AtomicU32,
}

impl Mail {
    pub fn new() -> Mail {
        Mail { ends: Ends::default(), cells: (0..4).map(|_| Cell::default()).collect(), taken: AtomicU32::new(0) }
    }
    fn inbox(&self) -> Inbox<'_> {
        Inbox { ends: &self.ends, cells: &self.cells }
    }
    /// By the owner of the queues.
    fn drain(&self) {
        while self.inbox().pop_if(|envelope| {
            assert_eq!(envelope.tag as u32, self.taken.load(Ordering::Relaxed), "overtaken, lost or doubled");
            true
        }) {
            self.taken.fetch_add(1, Ordering::Relaxed);
        }
    }
    fn push(&self, tag: u32) -> bool {
        let mut envelope = Envelope::EMPTY;
        envelope.kind = kind::INLINE;
        envelope.tag = tag as i32;
        self.inbox().push(&envelope).is_ok()
    }
}

/// Deliver one message to `to`, tending for it if it is suspended, as `Endpoint::deliver` does.
pub fn deliver(node: &NodeSegment, mail: &Mail, to: u32, tag: u32, wanted: u32) {
    while !mail.push(tag) {
        sync::yield_cpu();
    }
    sync::fence(sync::Ordering::SeqCst);
    while sched::try_tend(node, to) {
        mail.drain();
        if mail.taken.load(Ordering::Relaxed) >= wanted {
            sched::make_ready(node, to);
            return;
        }
        wake::end_tend(node, to);
        if !mail.inbox().has_mail() {
            return;
        }
    }
}

/// Wait until `wanted` messages have been taken.
pub fn receive(node: &NodeSegment, mail: &Mail, me: u32, wanted: u32) {
    loop {
        mail.drain();
        if mail.taken.load(Ordering::Relaxed) >= wanted {
            return;
        }
        sched::suspend(node, me, Wait::Queues, 0, || mail.inbox().has_mail());
    }
}

/// Ranks in a ring, each passing a token; all placements of three ranks on one or two cores.
fn ring(placement: &'static [u32], policy: Policy, laps: u32) {
    check_random(
        move || {
            let n = placement.len() as u32;
            let node = Arc::new(node(placement, policy));
            let mails: Arc<Vec<Mail>> = Arc::new((0..n).map(|_| Mail::new()).collect());
            let threads: Vec<_> = (0..n)
                .map(|me| {
                    let (node, mails) = (node.clone(), mails.clone());
                    thread::spawn(move || {
                        sched::enter(&node, me);
                        for lap in 0..laps {
                            if me != 0 || lap > 0 {
                                receive(&node, &mails[me as usize], me, if me == 0 { lap } else { lap + 1 });
                            }
                            let to = (me + 1) % n;
                            deliver(&node, &mails[to as usize], to, lap, lap + 1);
                        }
                        sched::finish(&node, me);
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_alone(&node);
        },
        ROUNDS,
    );
}

#[test]
fn ring_on_one_core() {
    ring(&[0, 0, 0], Policy::Rr, 2);
}

#[test]
fn ring_on_two_cores() {
    ring(&[0, 0, 1], Policy::Rr, 2);
}

#[test]
fn ring_fifo() {
    ring(&[0, 1, 0, 1], Policy::Fifo, 2);
}

/// Two senders against one receiver that suspends: every message arrives once, in order of pushing.
#[test]
fn many_to_one() {
    check_random(
        || {
            let node = Arc::new(node(&[0, 1, 1], Policy::Rr));
            let mail = Arc::new(Mail::new());
            let next = Arc::new(shuttle::sync::Mutex::new(0u32));
            let mut threads = Vec::new();
            {
                let (node, mail) = (node.clone(), mail.clone());
                threads.push(thread::spawn(move || {
                    sched::enter(&node, 0);
                    for wanted in [1, 3, 6] {
                        receive(&node, &mail, 0, wanted);
                    }
                    sched::finish(&node, 0);
                }));
            }
            for me in 1..3 {
                let (node, mail, next) = (node.clone(), mail.clone(), next.clone());
                threads.push(thread::spawn(move || {
                    sched::enter(&node, me);
                    for _ in 0..3 {
                        // Numbering and pushing are one step here, so that the order can be checked.
                        let mut tag = next.lock().unwrap();
                        while !mail.push(*tag) {
                            sync::yield_cpu();
                        }
                        *tag += 1;
                        drop(tag);
                        sync::fence(sync::Ordering::SeqCst);
                        while sched::try_tend(&node, 0) {
                            mail.drain();
                            let taken = mail.taken.load(Ordering::Relaxed);
                            if [1, 3, 6].contains(&taken) || taken > 3 {
                                sched::make_ready(&node, 0);
                                break;
                            }
                            wake::end_tend(&node, 0);
                            if !mail.inbox().has_mail() {
                                break;
                            }
                        }
                    }
                    sched::finish(&node, me);
                }));
            }
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(mail.taken.load(Ordering::Relaxed), 6);
            assert_alone(&node);
        },
        ROUNDS,
    );
}

/// The daemon takes cores away at any time; ranks notice at their next call.
#[test]
fn watchdog_takes_cores() {
    check_random(
        || {
            let node = Arc::new(node(&[0, 0, 0], Policy::Rr));
            let mails: Arc<Vec<Mail>> = Arc::new((0..3).map(|_| Mail::new()).collect());
            let mut threads: Vec<_> = (0..3u32)
                .map(|me| {
                    let (node, mails) = (node.clone(), mails.clone());
                    thread::spawn(move || {
                        sched::enter(&node, me);
                        let mut clock = 0;
                        for round in 0..2 {
                            // Computing, it looks at its clock, whoever takes the core meanwhile.
                            for _ in 0..2 {
                                let now = sched::own_time(&node, me);
                                assert!(now >= clock, "the process-POV clock went back from {clock} to {now}");
                                clock = now;
                            }
                            sched::scheduling_point(&node, me);
                            let to = (me + 1) % 3;
                            deliver(&node, &mails[to as usize], to, round, round + 1);
                            receive(&node, &mails[me as usize], me, round + 1);
                            sched::yield_core(&node, me);
                        }
                        sched::finish(&node, me);
                    })
                })
                .collect();
            let watched = node.clone();
            threads.push(thread::spawn(move || {
                for _ in 0..4 {
                    if let Some(rank) = watched.running_on(0) {
                        sched::take_core(&watched, rank);
                    }
                    sync::yield_cpu();
                }
            }));
            for thread in threads {
                thread.join().unwrap();
            }
            assert_alone(&node);
        },
        ROUNDS,
    );
}
