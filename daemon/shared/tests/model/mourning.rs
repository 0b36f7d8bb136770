//! A node of several in a job that survives deaths. The carrier brings what ranks of another node have sent, and takes there what ranks here send; it
//! publishes that a rank there has failed. A rank here dies anywhere, which the daemon publishes and mends. The third one gets what the living send, ends what it
//! waits for in vain, and can acknowledge no failure that it does not see.

use super::recovery::{ALIVE, Seen, bury, live, recv_or_fail};
use super::world::{World, assert_alone, check_random, message, recv, send};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::AtomicU32;
use shuttle::thread;
use std::collections::VecDeque;
use vmpi_shared::endpoint::carrier::CarrierEndpoint;
use vmpi_shared::job::JobSegment;
use vmpi_shared::matching::envelope::{Envelope, kind};
use vmpi_shared::mem::bell::Bell;
use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched::{self, failure};

const ROUNDS: usize = 3000;
/// Each rank sends so many to each that hears of it.
const TAGS: i32 = 3;

/// Ranks: who waits, who dies here, and two of the other node, of which the second one dies.
const SURVIVOR: u32 = 0;
const VICTIM: u32 = 1;
const FAR: u32 = 2;
const FAR_VICTIM: u32 = 3;

/// What the other node's carrier says, in its order.
enum Frame {
    Message(u32, Envelope),
    Dead(u32),
}

/// The frames of a run in which the far victim sends `sent` messages before it fails.
fn frames(sent: i32) -> VecDeque<Frame> {
    let mut frames = VecDeque::new();
    for tag in 0..TAGS {
        if tag == sent {
            frames.push_back(Frame::Dead(FAR_VICTIM));
        }
        frames.push_back(Frame::Message(SURVIVOR, message(FAR, kind::INLINE, tag)));
        frames.push_back(Frame::Message(VICTIM, message(FAR, kind::INLINE, tag)));
        if tag < sent {
            frames.push_back(Frame::Message(SURVIVOR, message(FAR_VICTIM, kind::INLINE, tag)));
        }
    }
    if sent == TAGS {
        frames.push_back(Frame::Dead(FAR_VICTIM));
    }
    frames
}

/// The carrier, until all has come, and all has gone that the survivor sends and the victim can.
fn carry(mut endpoint: CarrierEndpoint, bell: &Bell, mut frames: VecDeque<Frame>) {
    // The next tag of each sender here.
    let mut next = [0; 2];
    let mut buried = false;
    loop {
        let mut called = endpoint.called();
        if !buried && endpoint.node.failure(VICTIM).is_some() {
            buried = true;
            // It may have died before it marked what it had pushed.
            called.extend([FAR, FAR_VICTIM]);
        }
        let mut busy = !called.is_empty();
        for rank in called {
            endpoint.collect(rank, |envelope| {
                if envelope.kind == kind::INLINE {
                    let next = &mut next[envelope.from as usize];
                    assert_eq!((rank, envelope.tag), (FAR, *next), "lost, doubled or overtaken");
                    *next += 1;
                }
                true
            });
        }
        let done = match frames.front() {
            Some(Frame::Dead(rank)) => {
                failure::publish_elsewhere(&endpoint.node, &endpoint.job, *rank);
                true
            }
            Some(Frame::Message(to, envelope)) => {
                endpoint.node.failure(*to).is_some() || endpoint.deliver(*to, envelope).is_ok()
            }
            None if next[0] == TAGS && (buried || next[1] == TAGS) => return,
            None => false,
        };
        if done {
            frames.pop_front();
            busy = true;
        }
        match () {
            () if busy => {}
            () if !frames.is_empty() => thread::yield_now(),
            () if endpoint.prepare_to_sleep(false) => {
                bell.wait();
                endpoint.get_up(true, true);
            }
            () => {}
        }
    }
}

/// What a program acknowledges are all failures up to a number; it hears of those that it then sees.
#[derive(Default)]
struct Acknowledged {
    upto: u32,
    seen: Vec<u32>,
}

impl Acknowledged {
    fn more(&mut self, node: &NodeSegment) {
        let failed = || (0..4).filter_map(|rank| Some((rank, node.failure(rank)?)));
        let newest = failed().map(|(_, number)| number).max().unwrap_or(0);
        for (rank, number) in failed() {
            assert!(self.seen.contains(&rank) || number > self.upto, "acknowledged without having been seen");
        }
        self.seen = failed().map(|(rank, _)| rank).collect();
        self.upto = self.upto.max(newest);
    }
}

fn explore(placement: &'static [u32], latest: u32) {
    let seen: &'static Seen = Box::leak(Box::default());
    let scenario = move || {
        let mut world = World::recovering(placement, 4);
        let bell = Bell::default();
        world.node.spread(|rank| rank >= FAR);
        world.node.set_carrier_bell(bell.clone());
        let sent = thread_rng().gen_range(0..=TAGS);
        let end = Arc::new(AtomicU32::new(ALIVE));
        let mut endpoint = world.endpoint(VICTIM);
        let last = end.clone();
        let victim = thread::spawn(move || {
            let life = || {
                sched::enter(&endpoint.node, VICTIM);
                for tag in 0..TAGS {
                    send(&mut endpoint, SURVIVOR, tag);
                    recv(&mut endpoint, FAR, tag);
                    send(&mut endpoint, FAR, tag);
                    sched::yield_core(&endpoint.node, VICTIM);
                }
                sched::finish(&endpoint.node, VICTIM);
            };
            live(life, &last);
        });
        let doomed = victim.thread().id();
        let survivor = world.rank(SURVIVOR, move |endpoint| {
            let mut acknowledged = Acknowledged::default();
            for tag in 0..TAGS {
                recv(endpoint, FAR, tag);
                assert_eq!(recv_or_fail(endpoint, FAR_VICTIM, tag), tag < sent, "what is received is what was sent");
                acknowledged.more(&endpoint.node);
                recv_or_fail(endpoint, VICTIM, tag);
                acknowledged.more(&endpoint.node);
                send(endpoint, FAR, tag);
                sched::yield_core(&endpoint.node, SURVIVOR);
            }
        });
        let job = JobSegment::map(world.job.fd().try_clone_to_owned().unwrap()).unwrap();
        let endpoint = CarrierEndpoint::new(world.node.another_view(0), job);
        let its_bell = bell.clone();
        let carrier = thread::spawn(move || carry(endpoint, &its_bell, frames(sent)));
        let mut daemon = world.endpoint(SURVIVOR);
        daemon.node = world.node.another_view(0);
        let daemon = thread::spawn(move || {
            if bury(&daemon, VICTIM, doomed, latest, &end, seen) {
                bell.ring();
            }
        });
        for thread in [survivor, victim, carrier, daemon] {
            thread.join().unwrap();
        }
        assert_alone(&world.node);
    };
    // Not by priorities: a rank that finds a cell taken and not filled looks again and again, and the daemon, which mends that, would never run.
    check_random(scenario, ROUNDS);
    let [died, acting] = seen.each_ref().map(|count| count.load(std::sync::atomic::Ordering::Relaxed));
    assert!(died > 100 && acting > 20, "{died} deaths, {acting} in the middle of steps: this says nothing");
}

#[test]
fn a_carrier_beside_a_death_on_its_core() {
    explore(&[0, 0, 0, 0], 150);
}

#[test]
fn a_carrier_beside_a_death_on_another_core() {
    explore(&[0, 1, 0, 0], 150);
}
