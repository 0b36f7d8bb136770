//! Two jobs on one core: the daemon moves it between them, told by their bells alone.

use super::baton::{Mail, deliver, receive};
use super::world::{assert_alone, check_pct, check_random, node_of};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread;
use vmpi_shared::control::{Balance, Policy};
use vmpi_shared::mem::bell::Bell;
use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched::{self, lease, supervise};

const ROUNDS: usize = 2000;
const LAPS: u32 = 2;

/// At most one rank of all jobs is RUNNING on the core. Both counts are of one moment, whoever asks: two loads that others can step
/// between may count a job that gives the core up, and then the job that gets it.
fn assert_only(nodes: &[NodeSegment; 2]) {
    // SAFETY: shuttle runs one thread at a time, and this load lets no other in.
    let running: u32 = nodes.iter().map(|node| unsafe { node.core(0).running.raw_load() }).sum();
    assert!(running <= 1, "ranks of two jobs are RUNNING on one core");
}

/// One look of the daemon: the core goes to `first` if that job wants it, else to the other if that one does.
fn decide(nodes: &[NodeSegment; 2], first: usize, take: bool) {
    let second = 1 - first;
    let wants = [0, 1].map(|job| lease::is_wanted(&nodes[job], 0));
    let owner = if wants[first] {
        first
    } else if wants[second] {
        second
    } else {
        return;
    };
    let other = 1 - owner;
    let lease = if wants[other] { lease::CONTESTED } else { lease::ALONE };
    if lease::is_held(&nodes[other], 0) && !lease::set(&nodes[other], 0, lease::REVOKED) {
        if take && let Some(rank) = nodes[other].running_on(0) {
            sched::take_core(&nodes[other], rank);
        }
        if lease::is_held(&nodes[other], 0) {
            return; // its bell will say when it has given the core up
        }
    }
    if !lease::is_held(&nodes[owner], 0) || lease::set(&nodes[owner], 0, lease) {
        supervise::give(&nodes[owner], 0, lease);
    }
}

fn explore(spin_ticks: u64, take: bool) {
    explore_on([&[0, 0], &[0, 0]], Balance::None, spin_ticks, take);
}

/// Two jobs with ranks on core 0; if there is another core, it is the first job's alone.
fn explore_on(placement: [&'static [u32]; 2], balance: Balance, spin_ticks: u64, take: bool) {
    let scenario = move || {
        let bell = Bell::default();
        let made: [NodeSegment; 2] = std::array::from_fn(|job| {
            let mut node = node_of(placement[job], Policy::Rr, balance, false);
            node.set_bell(bell.clone());
            if job == 1 {
                lease::begin_withheld(&node, 0);
            }
            node
        });
        let views = || std::array::from_fn::<_, 2, _>(|job| made[job].another_view(spin_ticks));
        let mut threads = Vec::new();
        for job in 0..2 {
            let n = placement[job].len() as u32;
            let mails: Arc<Vec<Mail>> = Arc::new((0..n).map(|_| Mail::new()).collect());
            for me in 0..n {
                let (nodes, mails) = (views(), mails.clone());
                threads.push(thread::spawn(move || {
                    let node = &nodes[job];
                    sched::enter(node, me);
                    for lap in 0..LAPS {
                        sched::scheduling_point(node, me);
                        assert_only(&nodes);
                        deliver(node, &mails[((me + 1) % n) as usize], (me + 1) % n, lap, lap + 1);
                        receive(node, &mails[me as usize], me, lap + 1);
                        assert_only(&nodes);
                        sched::yield_core(node, me);
                    }
                    sched::finish(node, me);
                }));
            }
        }
        let over = Arc::new(AtomicU32::new(0));
        let daemon = {
            let (nodes, bell, over) = (views(), bell.clone(), over.clone());
            thread::spawn(move || {
                while over.load(Ordering::SeqCst) == 0 {
                    bell.wait();
                    let first = thread_rng().gen_range(0..2);
                    decide(&nodes, first, take && thread_rng().gen_bool(0.5));
                }
            })
        };
        for thread in threads {
            thread.join().unwrap();
        }
        over.store(1, Ordering::SeqCst);
        bell.ring();
        daemon.join().unwrap();
        made.iter().for_each(assert_alone);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS, 3);
}

#[test]
fn two_jobs_pass_a_core() {
    explore(0, false);
}

#[test]
fn two_jobs_pass_a_core_with_spinning() {
    explore(20, false);
}

#[test]
fn two_jobs_and_one_that_is_taken_from_the_core() {
    explore(20, true);
}

/// Ranks of the first job go to its other core while the second job wants theirs.
#[test]
fn two_jobs_and_ranks_that_are_taken_over() {
    for take in [false, true] {
        explore_on([&[0, 0, 0, 1], &[0, 0]], Balance::Steal, 20, take);
    }
}
