//! Real processors: the inbox under four producers, and two ranks (as threads) that suspend and deliver as fast as they
//! can. The model tests know no store buffers; here a missing fence shows as a hang, which the deadline ends.

#![cfg(not(feature = "model"))]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vmpi_shared::control::{Balance, OnBlock, Policy, Wtime};
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::job::{JobConfig, JobSegment};
use vmpi_shared::matching::envelope::{Envelope, INLINE_BYTES, kind};
use vmpi_shared::matching::request::FLAG_AWAITED;
use vmpi_shared::node::{NodeConfig, NodeSegment, Patience};
use vmpi_shared::sched;

/// Ends the test program if the value lives too long.
struct Deadline(Arc<AtomicBool>);

impl Deadline {
    fn new(what: &'static str) -> Deadline {
        let over = Arc::new(AtomicBool::new(false));
        let watched = over.clone();
        std::thread::spawn(move || {
            for _ in 0..1200 {
                std::thread::sleep(Duration::from_millis(100));
                if watched.load(Ordering::Relaxed) {
                    return;
                }
            }
            eprintln!("{what} hangs");
            std::process::abort();
        });
        Deadline(over)
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn job(ranks: u32, inbox_cells: u32) -> JobSegment {
    let small =
        JobConfig { ranks, inbox_cells, slots: 16, unexpected: 64, slab_bytes: 4096, cells: 1, ..JobConfig::default() };
    JobSegment::create(&small).unwrap()
}

#[test]
fn inbox_with_four_producers() {
    const EACH: u32 = 100_000;
    let _deadline = Deadline::new("the inbox");
    let job = Arc::new(job(1, 8));
    let producers: Vec<_> = (0..4u32)
        .map(|me| {
            let job = job.clone();
            std::thread::spawn(move || {
                for tag in 0..EACH {
                    let mut envelope = Envelope::EMPTY;
                    (envelope.kind, envelope.from, envelope.tag) = (kind::INLINE, me, tag as i32);
                    envelope.len = u64::from(tag % (INLINE_BYTES as u32 + 1));
                    envelope.body[..envelope.len as usize].fill((me + tag) as u8);
                    while job.inbox(0).push(&envelope).is_err() {
                        std::thread::yield_now();
                    }
                }
            })
        })
        .collect();
    let mut next = [0; 4];
    while next != [EACH; 4] {
        let popped = job.inbox(0).pop_if(|envelope| {
            let (from, tag) = (envelope.from, envelope.tag as u32);
            assert_eq!(tag, next[from as usize], "overtaken, lost or doubled");
            assert_eq!(envelope.len, u64::from(tag % (INLINE_BYTES as u32 + 1)));
            assert!(envelope.body[..envelope.body_len()].iter().all(|byte| *byte == (from + tag) as u8), "torn");
            next[from as usize] += 1;
            true
        });
        if !popped {
            std::thread::yield_now();
        }
    }
    producers.into_iter().for_each(|producer| producer.join().unwrap());
    assert!(!job.inbox(0).has_mail());
}

fn send(endpoint: &mut Endpoint, to: u32, tag: i32) {
    let mut envelope = Envelope::EMPTY;
    (envelope.kind, envelope.from, envelope.source) = (kind::INLINE, endpoint.me, endpoint.me as i32);
    envelope.tag = tag;
    endpoint.deliver(to, &envelope);
}

/// MPI_Recv as vmpi-core does it.
fn recv(endpoint: &mut Endpoint, source: u32, tag: i32) {
    let mut queues = endpoint.queues();
    let index = queues.take_slot().expect("a free request slot");
    let slot = &mut queues.slots[index as usize];
    (slot.source, slot.tag) = (source as i32, tag);
    endpoint.post(index);
    loop {
        endpoint.progress();
        if endpoint.queues().is_over(index) {
            endpoint.queues().free_slot(index);
            return;
        }
        endpoint.queues().slots[index as usize].flags |= FLAG_AWAITED;
        endpoint.arm(1);
        endpoint.suspend(1, -1, -1);
        endpoint.queues().slots[index as usize].flags &= !FLAG_AWAITED;
    }
}

/// Each rank sends to the next and receives from the one before, `laps` times; pauses of varying length make suspending
/// meet delivering at every offset.
fn ring(placement: &[u32], laps: i32) {
    let _deadline = Deadline::new("the ring");
    let ranks = placement.len() as u32;
    let node = NodeSegment::create(&NodeConfig {
        job: 1,
        ranks,
        v: ranks,
        cpus: (0..=*placement.iter().max().unwrap()).collect(),
        placement: placement.to_vec(),
        policy: Policy::Rr,
        balance: Balance::None,
        own_cores: 1,
        bind: false,
        on_block: OnBlock::Keep,
        wtime: Wtime::Wall,
        quantum_ms: 0,
        recovery: false,
        answers_first: false,
        patience: Patience::default(),
    })
    .unwrap();
    let job = job(ranks, 8);
    let threads: Vec<_> = (0..ranks)
        .map(|me| {
            let node = NodeSegment::map(node.fd().try_clone_to_owned().unwrap()).unwrap();
            let job = JobSegment::map(job.fd().try_clone_to_owned().unwrap()).unwrap();
            std::thread::spawn(move || {
                let mut endpoint = Endpoint::new(node, job, me);
                sched::enter(&endpoint.node, me);
                let mut noise = fastrand::Rng::with_seed(me.into());
                for tag in 0..laps {
                    (0..noise.u32(..64)).for_each(|_| std::hint::spin_loop());
                    send(&mut endpoint, (me + 1) % ranks, tag);
                    recv(&mut endpoint, (me + ranks - 1) % ranks, tag);
                }
                sched::finish(&endpoint.node, me);
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    for core in 0..node.header().cores {
        assert_eq!(node.core(core).violations.load(Ordering::Relaxed), 0, "two ranks were RUNNING on one core");
    }
}

#[test]
fn ring_of_two_cores() {
    ring(&[0, 1], 200_000);
}

#[test]
fn ring_of_four_ranks_on_two_cores() {
    ring(&[0, 1, 0, 1], 50_000);
}
