//! Collectives through a cell, driven as `vmpi_core::coll::cell_operation` drives it, while messages come in and others tend.

use super::world::{World, assert_alone, check_pct, check_random, recv, send};
use shuttle::thread;
use vmpi_shared::cell::{DATA_BYTES, Groups, SIZES, Turn};
use vmpi_shared::endpoint::Endpoint;

const SIZE: u32 = 3;
const ROUNDS: usize = 500;

#[derive(Copy, Clone)]
enum Op {
    Barrier,
    Bcast(u32),
    /// With more data.
    MiddleBcast(u32),
    WideBcast(u32),
    /// One rank believes that there are many more data than the others do.
    OddBcast(u32),
    OddReduce(u32),
    Scan,
    /// To a root; the others go on as soon as they have left their part.
    Reduce(u32),
    Allreduce,
}

/// A rank in the communicator of the first three ranks.
struct Member<'a> {
    endpoint: &'a mut Endpoint,
    groups: Groups,
    placement: &'static [u32],
    operations: u64,
    /// All are known to have left those before this one.
    left: u64,
}

impl Member<'_> {
    /// Suspend until `over`: `Visit::wait`.
    fn wait(&mut self, over: impl Fn(&Endpoint) -> bool) {
        while !over(self.endpoint) {
            self.endpoint.progress();
            if over(self.endpoint) {
                return;
            }
            let seen: *const Endpoint = self.endpoint;
            // SAFETY: only the cell, which is atomics, is looked at while this thread is in the call.
            self.endpoint.suspend_for_cell(0, 5, || over(unsafe { &*seen }));
        }
    }

    fn wake(&mut self, of: impl Fn(u32) -> bool) {
        self.endpoint.wake_cell(0, (0..SIZE).filter(|rank| of(*rank)));
    }

    /// `Visit::tell_group`.
    fn tell_group(&mut self, turn: Turn) {
        let (placement, core) = (self.placement, self.placement[self.endpoint.me as usize]);
        if self.endpoint.job.cell(0, &self.groups).tells(&turn) {
            self.wake(|rank| placement[rank as usize] == core);
        }
    }

    /// `Visit::wake_group_by_group`.
    fn wake_group_by_group(&mut self, turn: Turn) {
        let (placement, core) = (self.placement, self.placement[self.endpoint.me as usize]);
        let first =
            |rank: u32| placement.iter().position(|core| *core == placement[rank as usize]) == Some(rank as usize);
        self.wake(|rank| placement[rank as usize] != core && first(rank));
        self.tell_group(turn);
    }

    /// `Visit::start`.
    fn start(&mut self, bytes: usize) -> Turn {
        let turn = Turn::new(self.operations, bytes);
        self.operations += 1;
        let groups = self.groups.clone();
        if !turn.may_start(self.left) && !self.endpoint.job.cell(0, &groups).is_free(&turn) {
            self.wait(|e| e.job.cell(0, &groups).want(&turn));
        }
        turn
    }

    fn run(&mut self, op: Op) {
        let me = self.endpoint.me;
        let bytes = match op {
            Op::WideBcast(_) => DATA_BYTES,
            Op::MiddleBcast(_) => SIZES[1].0,
            _ => 8,
        };
        let odd = me == 1 && matches!(op, Op::OddBcast(_) | Op::OddReduce(_));
        let turn = self.start(if odd { DATA_BYTES } else { bytes });
        let (number, groups) = (turn.number(), self.groups.clone());
        // A member's slot is a word, or the operation's data are words.
        let at = |e: &Endpoint, word: u32| {
            let data = e.job.cell(0, &groups).data(&turn, bytes).cast::<u64>();
            // SAFETY: within the operation's data.
            unsafe { data.add(word as usize) }
        };
        // Reading and writing take time, in which the others go on: that shows a lane that is used too early.
        let write = |e: &Endpoint, word, value: u64| {
            thread::yield_now();
            // SAFETY: this rank's slot, or the result if it is the one to write that.
            unsafe { at(e, word).write(value) };
        };
        let read = |e: &Endpoint, word| {
            thread::yield_now();
            // SAFETY: that it is not being written is what the test is about.
            unsafe { at(e, word).read() }
        };
        let posted = |e: &Endpoint| e.job.cell(0, &groups).is_posted(&turn);
        let value = |rank: u32| number * 10 + u64::from(rank) + 1;
        match op {
            Op::Bcast(root) | Op::MiddleBcast(root) | Op::WideBcast(root) | Op::OddBcast(root) => {
                let end = (bytes / 8 - 1) as u32;
                if me == root {
                    [0, end].into_iter().for_each(|word| write(self.endpoint, word, 1000 + number));
                    self.endpoint.job.cell(0, &groups).post(&turn, number);
                    self.wake(|_| true);
                } else {
                    self.wait(posted);
                    assert_eq!(self.endpoint.job.cell(0, &groups).said(&turn), number);
                    for word in [0, end] {
                        assert_eq!(read(self.endpoint, word), 1000 + number, "rank {me} operation {number}");
                    }
                }
            }
            Op::Scan => {
                write(self.endpoint, me, value(me));
                if let Some(before) = me.checked_sub(1) {
                    self.wait(|e| e.job.cell(0, &groups).has_passed(&turn, before));
                    write(self.endpoint, me, value(me) + read(self.endpoint, before));
                }
                let sum: u64 = (0..=me).map(value).sum();
                assert_eq!(read(self.endpoint, me), sum, "rank {me} operation {number}");
                if me + 1 < SIZE {
                    self.endpoint.job.cell(0, &groups).pass(&turn, me);
                    self.wake(|rank| rank == me + 1);
                }
            }
            Op::Barrier | Op::Reduce(_) | Op::OddReduce(_) | Op::Allreduce => {
                let root = match op {
                    Op::Reduce(root) | Op::OddReduce(root) => Some(root),
                    _ => None,
                };
                write(self.endpoint, me, value(me));
                let last = self.endpoint.job.cell(0, &groups).arrive(&turn);
                if last {
                    let sum = (0..SIZE).map(|rank| read(self.endpoint, rank)).sum();
                    write(self.endpoint, SIZE, sum);
                    self.endpoint.job.cell(0, &groups).post(&turn, number);
                    match root {
                        Some(root) => self.wake(|rank| rank == root),
                        None => self.wake_group_by_group(turn),
                    }
                    self.left = turn.number();
                }
                if root.is_none_or(|root| root == me) {
                    if !last {
                        self.wait(posted);
                        if root.is_none() {
                            self.tell_group(turn);
                        }
                        self.left = turn.number();
                    }
                    let sum: u64 = (0..SIZE).map(value).sum();
                    assert_eq!(read(self.endpoint, SIZE), sum, "rank {me} operation {number}");
                }
            }
        }
        if self.endpoint.job.cell(0, &groups).leave(&turn) {
            self.wake(|_| true);
        }
    }
}

/// Run `ops` on ranks 0..3 as placed; if there is a rank 3, it sends each of them `messages` meanwhile and so tends.
fn explore(placement: &'static [u32], ops: &'static [Op], messages: i32, spin_ticks: u64) {
    let scenario = move || {
        let world = World::new(placement, 4, spin_ticks);
        let mut ranks: Vec<_> = (0..SIZE)
            .map(|rank| {
                world.rank(rank, move |endpoint| {
                    let core = placement[rank as usize];
                    let groups = Groups::new(core, placement[..SIZE as usize].iter().copied());
                    let mut member = Member { endpoint, groups, placement, operations: 0, left: 0 };
                    ops.iter().for_each(|op| member.run(*op));
                    if placement.len() > SIZE as usize {
                        (0..messages).for_each(|tag| recv(endpoint, SIZE, tag));
                    }
                })
            })
            .collect();
        if placement.len() > SIZE as usize {
            ranks.push(world.rank(SIZE, move |endpoint| {
                for tag in 0..messages {
                    (0..SIZE).for_each(|to| send(endpoint, to, tag));
                }
            }));
        }
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        assert_alone(&world.node);
    };
    check_random(scenario, ROUNDS);
    check_pct(scenario, ROUNDS / 2, 3);
}

use Op::{Allreduce, Barrier, Bcast, MiddleBcast, OddBcast, OddReduce, Reduce, Scan, WideBcast};

#[test]
fn barriers_on_one_core() {
    explore(&[0, 0, 0], &[Barrier, Barrier, Barrier], 0, 0);
}

#[test]
fn barriers_on_two_cores_with_messages() {
    explore(&[0, 0, 1, 1], &[Barrier, Barrier], 2, 0);
}

/// The root runs ahead until all lanes are taken.
#[test]
fn fast_bcast_root_on_one_core() {
    explore(&[0, 0, 0], &[Bcast(0); 10], 0, 0);
}

#[test]
fn fast_bcast_root_on_two_cores_with_messages() {
    explore(&[0, 1, 1, 0], &[Bcast(0), Bcast(0), WideBcast(0), WideBcast(0), Bcast(0)], 1, 0);
}

#[test]
fn wide_ones_among_others() {
    explore(&[0, 1, 0], &[Bcast(0), Bcast(0), Bcast(0), Bcast(0), WideBcast(0), WideBcast(0), Reduce(2)], 0, 0);
    explore(&[0, 1, 0], &[WideBcast(0), Bcast(0), Bcast(1), WideBcast(0), Reduce(0), WideBcast(2)], 0, 0);
}

#[test]
fn slots_of_all_sizes_run_out() {
    explore(&[0, 0, 1], &[MiddleBcast(0); 6], 0, 0);
    explore(&[0, 1, 0], &[MiddleBcast(0), Bcast(0), WideBcast(0), MiddleBcast(0), MiddleBcast(0), WideBcast(1)], 0, 0);
}

#[test]
fn ranks_that_are_wrong_about_the_amount_meet_all_the_same() {
    explore(&[0, 0, 0], &[OddBcast(0), Bcast(0), OddBcast(0), OddBcast(1), OddReduce(1), Bcast(1), Allreduce], 0, 0);
    explore(&[0, 1, 1, 0], &[OddReduce(0), OddReduce(0), OddReduce(0), WideBcast(1), OddBcast(2), Barrier], 1, 2);
}

#[test]
fn reduce_to_a_root() {
    explore(&[0, 1, 1], &[WideBcast(0), Reduce(0), Reduce(0), Reduce(0), Reduce(0), Reduce(1)], 0, 0);
}

#[test]
fn scans_on_one_core() {
    explore(&[0, 0, 0, 0], &[Scan, Scan, WideBcast(2), Scan, WideBcast(0), Scan], 1, 0);
}

#[test]
fn scans_on_two_cores_with_spinning() {
    explore(&[0, 1, 0], &[Scan, Barrier, Scan, Scan, WideBcast(0), WideBcast(0), Scan], 0, 2);
}

#[test]
fn mixed_on_one_core() {
    explore(&[0, 0, 0, 0], &[Bcast(0), Reduce(1), Barrier, Bcast(2), Allreduce, WideBcast(0), Reduce(1)], 1, 0);
}

#[test]
fn mixed_on_two_cores_with_spinning() {
    explore(&[0, 0, 1, 1], &[Allreduce, Bcast(2), Reduce(1), WideBcast(0), Barrier], 1, 3);
}

#[test]
fn every_rank_on_a_core_of_its_own() {
    explore(&[0, 1, 2, 0], &[Barrier, Allreduce, Bcast(1), Barrier, Allreduce], 1, 2);
}
