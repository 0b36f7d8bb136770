//! Two nodes: what ranks push for remote ranks is taken there, whoever sleeps when (SYNC M), and full inboxes on the way lose nobody.

use super::world::{World, announce, assert_alone, check_pct, check_random, message, recv, send, wait};
use shuttle::rand::Rng;
use shuttle::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use shuttle::sync::{Arc, Mutex};
use shuttle::thread::{self, JoinHandle};
use std::collections::VecDeque;
use vmpi_shared::control::Policy;
use vmpi_shared::endpoint::carrier::CarrierEndpoint;
use vmpi_shared::endpoint::inspect;
use vmpi_shared::job::JobSegment;
use vmpi_shared::matching::envelope::{Envelope, kind};
use vmpi_shared::matching::queues::{answer, go};
use vmpi_shared::mem::bell::Bell;
use vmpi_shared::sched::carrier_bell::{self, Stand};

const ROUNDS: usize = 400;

/// What goes to a node: to whom, and what; and the bell of its carrier.
#[derive(Clone, Default)]
struct Link {
    queue: Arc<Mutex<VecDeque<(u32, Envelope)>>>,
    bell: Bell,
    /// It takes its time, and whoever uses it, so that others look meanwhile.
    slow: bool,
}

impl Link {
    fn slow() -> Link {
        Link { slow: true, ..Link::default() }
    }

    fn linger(&self) {
        let turns = if self.slow { shuttle::rand::thread_rng().gen_range(0..60) } else { 0 };
        (0..turns).for_each(|_| thread::yield_now());
    }
}

/// Take `frames` frames from one end of a network to the other.
fn network(from: Link, to: Link, frames: u32) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut left = frames;
        while left > 0 {
            let Some(frame) = from.queue.lock().unwrap().pop_front() else {
                from.bell.wait();
                continue;
            };
            from.linger();
            to.queue.lock().unwrap().push_back(frame);
            to.bell.ring();
            left -= 1;
        }
    })
}

/// One node of two: a world of its own, in which `here` alone runs.
fn node(here: u32, spin_ticks: u64, link: &Link) -> World {
    let mut world = World::new(&[0, 0], 2, spin_ticks);
    world.node.spread(|rank| rank != here);
    world.node.set_carrier_bell(link.bell.clone());
    world
}

/// Carry until so many have come and gone. It says how things stand before it sleeps.
fn carrier(world: &World, spin_ticks: u64, mine: Link, other: Link, mut come: u32, mut go: u32) -> JoinHandle<()> {
    let job = JobSegment::map(world.job.fd().try_clone_to_owned().unwrap()).unwrap();
    let mut endpoint = CarrierEndpoint::new(world.node.another_view(spin_ticks), job);
    thread::spawn(move || {
        let mut stand = Stand::default();
        while come + go > 0 {
            let mut busy = false;
            let first = mine.queue.lock().unwrap().front().copied();
            if let Some((to, envelope)) = first
                && endpoint.deliver(to, &envelope).is_ok()
            {
                mine.linger();
                mine.queue.lock().unwrap().pop_front();
                come -= 1;
                stand.received += 1;
                busy = true;
            }
            for rank in endpoint.called() {
                let mut taken = Vec::new();
                endpoint.collect(rank, |envelope| {
                    taken.push((rank, *envelope));
                    true
                });
                other.linger();
                go -= taken.len() as u32;
                stand.sent += taken.len() as u64;
                other.queue.lock().unwrap().extend(taken);
                other.bell.ring();
                busy = true;
            }
            if busy || come + go == 0 {
                continue;
            }
            endpoint.note(Stand { holds: first.is_some(), ..stand });
            if first.is_some() {
                // No room: again later, as the real one does.
                thread::yield_now();
            } else if endpoint.prepare_to_sleep(spin_ticks > 0 && come.is_multiple_of(2)) {
                mine.bell.wait();
                endpoint.get_up(true, true);
            }
        }
    })
}

/// All threads come to their end, and no core has ever had two ranks.
fn all_end<const N: usize>(threads: [JoinHandle<()>; N], a: &World, b: &World) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_alone(&a.node);
    assert_alone(&b.node);
}

/// Rank 0 sends `count` messages to rank 1, which answers each of the last two.
fn exchange(count: u32, spin_ticks: u64) {
    let scenario = move || {
        let (to_a, to_b) = (Link::default(), Link::default());
        let (a, b) = (node(0, spin_ticks, &to_a), node(1, spin_ticks, &to_b));
        let threads = [
            carrier(&a, spin_ticks, to_a.clone(), to_b.clone(), 2, count),
            carrier(&b, spin_ticks, to_b.clone(), to_a.clone(), count, 2),
            a.rank(0, move |endpoint| {
                (0..count).for_each(|tag| send(endpoint, 1, tag as i32));
                (0..2).for_each(|tag| recv(endpoint, 1, 100 + tag));
            }),
            b.rank(1, move |endpoint| {
                for tag in 0..count {
                    recv(endpoint, 0, tag as i32);
                    if tag + 2 >= count {
                        send(endpoint, 0, 100 + (tag + 2 - count) as i32);
                    }
                }
            }),
        ];
        all_end(threads, &a, &b);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

#[test]
fn messages_and_answers_arrive() {
    exchange(2, 0);
}

#[test]
fn more_than_fit_into_the_way_out() {
    exchange(5, 0);
}

#[test]
fn to_ranks_that_watch() {
    exchange(3, 3);
}

/// The carrier hears of a message although its sender never comes to a scheduling point: if it was asked to come in a moment, it does.
#[test]
fn a_sender_that_computes_on() {
    let scenario = || {
        let (to_a, to_b) = (Link::default(), Link::default());
        let (a, b) = (node(0, 0, &to_a), node(1, 0, &to_b));
        let came = Arc::new(AtomicBool::new(false));
        let seen = came.clone();
        let threads = [
            carrier(&a, 0, to_a.clone(), to_b.clone(), 0, 1),
            carrier(&b, 0, to_b.clone(), to_a.clone(), 1, 0),
            a.rank(0, move |endpoint| {
                send(endpoint, 1, 0);
                while !seen.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
            }),
            b.rank(1, move |endpoint| {
                recv(endpoint, 0, 0);
                came.store(true, Ordering::SeqCst);
            }),
        ];
        all_end(threads, &a, &b);
    };
    check_random(scenario, ROUNDS);
}

/// With progress by ranks: two ranks of a core send large messages to a node whose carrier asks each for its word, and ends the send when that has come.
#[test]
fn who_is_asked_says_go() {
    const FAR: u32 = 2;
    for (policy, spin_ticks) in [(Policy::Rr, 0), (Policy::Rr, 3), (Policy::Lifo, 0)] {
        let scenario = move || {
            let bell = Bell::default();
            let mut world = World::answering(policy, &[0, 0, 0], spin_ticks);
            world.node.spread(|rank| rank == FAR);
            world.node.set_carrier_bell(bell.clone());
            let carrier = asking_carrier(&world, spin_ticks, bell, 4);
            let ranks: Vec<_> = (0..2)
                .map(|rank| {
                    world.rank(rank, |endpoint| {
                        let sends: Vec<u32> = (0..2).map(|tag| announce(endpoint, FAR, tag)).collect();
                        for index in sends {
                            wait(endpoint, index);
                        }
                    })
                })
                .collect();
            ranks.into_iter().chain([carrier]).for_each(|thread| thread.join().unwrap());
            assert_alone(&world.node);
        };
        check_random(scenario, ROUNDS);
        check_pct(scenario, ROUNDS / 2, 3);
    }
}

/// Ask for the word of whoever announces something, until so many messages are over.
fn asking_carrier(world: &World, spin_ticks: u64, bell: Bell, mut messages: u32) -> JoinHandle<()> {
    let job = JobSegment::map(world.job.fd().try_clone_to_owned().unwrap()).unwrap();
    let mut endpoint = CarrierEndpoint::new(world.node.another_view(spin_ticks), job);
    thread::spawn(move || {
        let mut due: VecDeque<(u32, Envelope)> = VecDeque::new();
        while messages > 0 {
            for far in endpoint.called() {
                endpoint.collect(far, |envelope| {
                    let (rank, request) = (envelope.from, envelope.request);
                    due.push_back(match envelope.kind {
                        kind::RTS => (rank, go(far, request, request + 7, envelope.len)),
                        kind::GO => {
                            assert_eq!((envelope.peer_request(), envelope.len), (request + 7, 1));
                            (rank, answer(kind::FIN, request))
                        }
                        other => panic!("an envelope of kind {other}"),
                    });
                    true
                });
            }
            while let Some((rank, envelope)) = due.front()
                && endpoint.deliver(*rank, envelope).is_ok()
            {
                messages -= u32::from(envelope.kind == kind::FIN);
                due.pop_front();
            }
            if messages > 0 && !due.is_empty() {
                thread::yield_now();
            } else if messages > 0 && endpoint.prepare_to_sleep(false) {
                bell.wait();
                endpoint.get_up(true, true);
            }
        }
    })
}

/// As the daemon of a node looks: how often `rank`, who lives there, has been switched in, and how its carrier stands, if both wait.
fn picture(world: &World, rank: u32) -> Option<(u64, Stand)> {
    let switches = inspect::is_suspended(&world.node, &world.job, rank)?;
    let stand = carrier_bell::stand(&world.node).filter(|stand| !stand.holds)?;
    (!inspect::is_moving(&world.node, &world.job, rank)).then_some((switches, stand))
}

/// Two ranks exchange messages, and then wait for one that nobody sends. Who looks at both nodes twice, as their daemons and the launcher do, finds that out, and
/// never takes them for deadlocked before: a message may be in a rank's inbox, in an outbox, or on its way.
fn look_for_a_deadlock(messages: u32, spin_ticks: u64) {
    let scenario = move || {
        let (to_a, to_b, from_a, from_b) = (Link::slow(), Link::slow(), Link::slow(), Link::slow());
        let (a, b) = (node(0, spin_ticks, &to_a), node(1, spin_ticks, &to_b));
        let waiting = Arc::new(AtomicU32::new(0));
        let (one, two) = (waiting.clone(), waiting.clone());
        let threads = [
            carrier(&a, spin_ticks, to_a.clone(), from_a.clone(), messages + 1, messages + 1),
            carrier(&b, spin_ticks, to_b.clone(), from_b.clone(), messages + 1, messages),
            network(from_a, to_b.clone(), messages + 1),
            network(from_b, to_a.clone(), messages),
            a.rank(0, move |endpoint| {
                for tag in 0..messages {
                    send(endpoint, 1, tag as i32);
                    recv(endpoint, 1, tag as i32);
                }
                one.fetch_add(1, Ordering::SeqCst);
                recv(endpoint, 1, 100);
                send(endpoint, 1, 101);
            }),
            b.rank(1, move |endpoint| {
                for tag in 0..messages {
                    recv(endpoint, 0, tag as i32);
                    send(endpoint, 0, tag as i32);
                }
                two.fetch_add(1, Ordering::SeqCst);
                recv(endpoint, 0, 101);
            }),
        ];
        loop {
            let look = || (picture(&a, 0), picture(&b, 1));
            if let (Some(of_a), Some(of_b)) = look()
                && of_a.1.sent + of_b.1.sent == of_a.1.received + of_b.1.received
                && look() == (Some(of_a), Some(of_b))
            {
                break;
            }
            thread::yield_now();
        }
        assert_eq!(waiting.load(Ordering::SeqCst), 2, "a deadlock, while they have something to exchange");
        // Nobody else will end it.
        to_a.queue.lock().unwrap().push_back((0, message(1, kind::INLINE, 100)));
        to_a.bell.ring();
        all_end(threads, &a, &b);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

#[test]
fn a_deadlock_over_nodes_is_found_and_nothing_else_is_taken_for_one() {
    look_for_a_deadlock(1, 0);
    look_for_a_deadlock(2, 0);
    look_for_a_deadlock(2, 3);
}
