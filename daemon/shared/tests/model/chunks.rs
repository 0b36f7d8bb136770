//! Chunks of a job's memory: several take and give them at once, and unexpected messages and payloads that lie there come through.

use super::world::{World, assert_alone, check_pct, check_random, irecv, wait};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread;
use vmpi_shared::job::{JobConfig, JobSegment};
use vmpi_shared::matching::envelope::kind;
use vmpi_shared::mem::chunks::Purpose;

const ROUNDS: usize = 500;

fn job(chunks: u32) -> JobSegment {
    let config = JobConfig {
        ranks: 2,
        inbox_cells: 2,
        slots: 4,
        unexpected: 1,
        slab_bytes: 4096,
        cells: 1,
        chunks,
        ..JobConfig::default()
    };
    JobSegment::create(&config).unwrap()
}

fn view(job: &JobSegment) -> JobSegment {
    JobSegment::map(job.fd().try_clone_to_owned().unwrap()).unwrap()
}

/// Nobody has what another one has, and none is lost.
#[test]
fn a_chunk_is_one_taker_s() {
    let scenario = || {
        let job = job(2);
        let holders: Arc<[AtomicU32; 2]> = Arc::default();
        let takers: Vec<_> = (0..3)
            .map(|me| {
                let (job, holders) = (view(&job), holders.clone());
                thread::spawn(move || {
                    for _ in 0..3 {
                        let Some(chunk) = job.chunks().take(me, Purpose::Entries) else { continue };
                        assert_eq!(holders[chunk as usize].swap(me + 1, Ordering::SeqCst), 0, "it is taken");
                        thread::yield_now();
                        assert_eq!(holders[chunk as usize].swap(0, Ordering::SeqCst), me + 1);
                        job.chunks().give(chunk);
                    }
                })
            })
            .collect();
        takers.into_iter().for_each(|taker| taker.join().unwrap());
        assert_eq!(job.chunks().used_bytes().0, 0);
        assert!((0..2).all(|_| job.chunks().take(0, Purpose::Entries).is_some()), "one is lost");
        assert!(job.chunks().is_exhausted());
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

/// A sender goes from chunk to chunk while receivers give what lay there: each chunk comes back once, and not before.
#[test]
fn a_chunk_of_payloads_comes_back_with_the_last() {
    let scenario = || {
        let job = job(3);
        let (mine, theirs) = (view(&job), view(&job));
        let sent: Arc<[shuttle::sync::Mutex<Vec<u64>>; 2]> = Arc::default();
        let to_give = sent.clone();
        const EACH: u64 = 65536;
        const ALL: usize = 9;
        let sender = thread::spawn(move || {
            let slab = mine.slab(0);
            while slab.take(512).is_some() {}
            let mut put = 0;
            while put < ALL {
                let Some(offset) = slab.take_or_put(0, EACH) else {
                    thread::yield_now();
                    continue;
                };
                // SAFETY: as many bytes that nobody else uses.
                unsafe { slab.block(offset, EACH).unwrap().cast::<u64>().write(offset) };
                sent[put % 2].lock().unwrap().push(offset);
                put += 1;
            }
        });
        let receiver = |which: usize, expected: usize, job: JobSegment| {
            let list = to_give.clone();
            thread::spawn(move || {
                let mut got = 0;
                while got < expected {
                    let Some(offset) = list[which].lock().unwrap().pop() else {
                        thread::yield_now();
                        continue;
                    };
                    // SAFETY: as above.
                    let found = unsafe { job.block(0, offset, EACH).expect("still there").cast::<u64>().read() };
                    assert_eq!(found, offset, "somebody has written there");
                    job.slab(0).give(offset, EACH);
                    got += 1;
                }
            })
        };
        let receivers = [receiver(0, ALL.div_ceil(2), view(&theirs)), receiver(1, ALL / 2, theirs)];
        receivers.into_iter().chain([sender]).for_each(|thread| thread.join().unwrap());
        let (used, each) = (job.chunks().used_bytes().0, job.chunks().used_bytes().1 / 3);
        assert!(used <= each, "only what the sender fills is in use: {used}");
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

/// Two senders, a receiver with room for one message of its own and with tables from the second on; it is tended while it waits for the last message.
fn flood(placement: &'static [u32], recovery: bool) {
    let scenario = move || {
        let world = World::tight(placement, recovery);
        let receiver = world.rank(0, |endpoint| {
            let last = [1, 2].map(|source| irecv(endpoint, source, 9));
            for index in last {
                wait(endpoint, index);
            }
            for (source, tags) in [(2, [2, 1, 0]), (-1, [0, 1, 2])] {
                for tag in tags {
                    let index = irecv(endpoint, source, tag);
                    assert_eq!(wait(endpoint, index), (if source < 0 { 1 } else { 2 }, tag));
                }
            }
            let head = endpoint.queues().head;
            assert_eq!((head.unexpected_count, head.chunks, head.index), (0, 0, 0));
        });
        let senders = (1..3).map(|me| {
            world.rank(me, move |endpoint| {
                for tag in [0, 1, 2, 9] {
                    super::world::send(endpoint, 0, tag);
                }
            })
        });
        let ranks: Vec<_> = senders.chain([receiver]).collect();
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_eq!(world.job.chunks().used_bytes().0, 0, "all is given back");
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS / 2);
    check_pct(scenario, ROUNDS / 4, 3);
}

#[test]
fn a_flood_beyond_what_a_rank_has_room_for() {
    flood(&[0, 0, 1], false);
    flood(&[0, 1, 2], false);
}

#[test]
fn a_flood_in_a_job_that_survives_deaths() {
    flood(&[0, 0, 1], true);
}

/// What a rank held when it died is there for others when it has been buried.
#[test]
fn a_dead_rank_s_chunks_are_given() {
    let scenario = || {
        let job = job(4);
        // SAFETY: nobody else uses them.
        let mut queues = unsafe { job.queues(1) };
        queues.head.rank = 1;
        for tag in 0..3 {
            job.inbox(1).push(&super::world::message(0, kind::INLINE, tag)).unwrap();
            queues.drain(&mut super::world::Nobody, &mut Vec::new());
        }
        assert_eq!((queues.head.unexpected_count, queues.head.chunks), (3, 2));
        let other = view(&job);
        let taker = thread::spawn(move || {
            let taken = other.chunks().take(0, Purpose::Entries);
            thread::yield_now();
            taken.into_iter().for_each(|chunk| other.chunks().give(chunk));
        });
        job.chunks().forget(1);
        taker.join().unwrap();
        assert_eq!(job.chunks().used_bytes().0, 0);
    };
    check_random(scenario, ROUNDS);
}
