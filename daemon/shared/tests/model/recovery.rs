//! A job that survives deaths: rank 0 dies anywhere, also between two steps on a baton; the daemon mends and tells, and the others go
//! on: what they exchange among themselves arrives, and what they wait for from the dead one ends.

use super::world::{World, assert_alone, check_pct, check_random, irecv, recv, send};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::matching::request::FLAG_AWAITED;
use vmpi_shared::mem::sync::{self, Killed};
use vmpi_shared::sched::{self, failure, recover};

const ROUNDS: usize = 3000;
pub const ALIVE: u32 = 0;
const FINISHED: u32 = 1;
const GONE: u32 = 2;

/// How often the victim died at all, and in the middle of steps.
pub type Seen = [std::sync::atomic::AtomicU32; 2];

/// MPI_Recv, as the core does it: false if the source has failed, and the message is not there.
pub fn recv_or_fail(endpoint: &mut Endpoint, source: u32, tag: i32) -> bool {
    let index = irecv(endpoint, source as i32, tag);
    let mut known = 0;
    loop {
        let changes = endpoint.job.changes();
        let failed = if changes == known {
            endpoint.progress();
            Vec::new()
        } else {
            known = changes;
            endpoint.take_in()
        };
        if endpoint.queues().is_over(index) {
            endpoint.queues().free_slot(index);
            return true;
        }
        if failed.contains(&source) {
            return false;
        }
        endpoint.queues().slots[index as usize].flags |= FLAG_AWAITED;
        endpoint.arm(1);
        endpoint.suspend(1, source as i32, tag);
        endpoint.queues().slots[index as usize].flags &= !FLAG_AWAITED;
    }
}

/// Live until the end or until killed, and say which.
pub fn live(life: impl FnOnce(), end: &AtomicU32) {
    let how = match catch_unwind(AssertUnwindSafe(life)) {
        Ok(()) => FINISHED,
        Err(payload) if payload.is::<Killed>() => GONE,
        Err(payload) => resume_unwind(payload),
    };
    end.store(how, Ordering::SeqCst);
}

/// The daemon's part: doom the thread of `victim` after a while, and publish and mend its death. True if it died.
pub fn bury(
    daemon: &Endpoint,
    victim: u32,
    doomed: thread::ThreadId,
    latest: u32,
    end: &AtomicU32,
    seen: &Seen,
) -> bool {
    for _ in 0..thread_rng().gen_range(0..latest) {
        thread::yield_now();
    }
    sync::doom_anywhere(doomed);
    while end.load(Ordering::SeqCst) == ALIVE {
        thread::yield_now();
    }
    if end.load(Ordering::SeqCst) != GONE {
        return false;
    }
    seen[0].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    sched::rank_died(&daemon.node, victim);
    if let Some(core) = failure::publish(&daemon.node, &daemon.job, victim) {
        seen[1].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        while !recover::mend(&daemon.node, core) {
            thread::yield_now();
        }
    }
    true
}

fn explore(placement: &'static [u32], latest: u32) {
    let seen: &'static Seen = Box::leak(Box::default());
    let scenario = move || {
        let world = World::recovering(placement, 4);
        let end = Arc::new(AtomicU32::new(ALIVE));
        // How much the victim has sent to each of the others.
        let sent: Arc<[AtomicU32; 3]> = Arc::default();
        let mut endpoint = world.endpoint(0);
        let (last, counts) = (end.clone(), sent.clone());
        let victim = thread::spawn(move || {
            let life = || {
                sched::enter(&endpoint.node, 0);
                for tag in 0..3 {
                    sync::yield_cpu();
                    send(&mut endpoint, 1, tag);
                    counts[1].fetch_add(1, Ordering::SeqCst);
                    recv(&mut endpoint, 2, tag);
                    send(&mut endpoint, 2, tag);
                    counts[2].fetch_add(1, Ordering::SeqCst);
                    sched::yield_core(&endpoint.node, 0);
                }
                sched::finish(&endpoint.node, 0);
            };
            live(life, &last);
        });
        let doomed = victim.thread().id();
        let survivors: Vec<_> = (1..3u32)
            .map(|me| {
                let sent = sent.clone();
                world.rank(me, move |endpoint| {
                    for tag in 0..3 {
                        if me == 2 {
                            send(endpoint, 0, tag);
                        }
                        let got = recv_or_fail(endpoint, 0, tag);
                        assert!(
                            got || sent[me as usize].load(Ordering::SeqCst) <= tag as u32,
                            "what had been sent came to nothing"
                        );
                        send(endpoint, 3 - me, 10 + tag);
                        recv(endpoint, 3 - me, 10 + tag);
                        sched::yield_core(&endpoint.node, me);
                    }
                })
            })
            .collect();
        let mut daemon = world.endpoint(0);
        daemon.node = world.node.another_view(0);
        let daemon = thread::spawn(move || {
            bury(&daemon, 0, doomed, latest, &end, seen);
        });
        for thread in survivors.into_iter().chain([victim, daemon]) {
            thread.join().unwrap();
        }
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 3, 3);
    let [died, acting] = seen.each_ref().map(|count| count.load(std::sync::atomic::Ordering::Relaxed));
    assert!(died > 100 && acting > 20, "{died} deaths, {acting} in the middle of steps: this says nothing");
}

#[test]
fn a_death_anywhere_on_one_core() {
    explore(&[0, 0, 0], 150);
}

#[test]
fn a_death_anywhere_beside_another_core() {
    explore(&[0, 0, 1], 150);
}

#[test]
fn a_death_anywhere_on_a_core_of_its_own() {
    explore(&[1, 0, 0], 150);
}
