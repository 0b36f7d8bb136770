//! Several jobs on one CPU: whose turn it is.
//!
//! Gang scheduling with backfill. Time is cut into slots; in its slot a job is preferred on all CPUs at once, so that ranks that answer
//! each other run at the same time. A core that the preferred job has no use for goes to the next job that has, and comes back as soon
//! as the preferred one wants it. A core is moved when its rank reaches a scheduling point (`sched::lease`), or is taken
//! after a grace time from one that computes: that one then shares the CPU by the kernel's time slices until it calls MPI.
//!
//! With one job there is nothing to decide, and nothing is done.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use vmpi_shared::node::NodeSegment;
use vmpi_shared::sched::{self, lease, supervise};

use crate::job::Job;
use crate::log::debug;

/// How long a job is preferred while others wait. Moving a core costs about 0.1 ms, a cold cache more.
const SLOT: Duration = Duration::from_millis(50);
/// How long a rank may go on computing after its core was promised to another job.
const GRACE: Duration = Duration::from_millis(10);
/// A core that is still not given up so long after is counted as given up: the job's segment is damaged, or it is stopped.
const PATIENCE: Duration = Duration::from_millis(200);

/// A job on a CPU.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Tenant {
    job: u32,
    /// Index of the CPU among the job's cores.
    core: u32,
}

/// What the arbiter sees of a tenant and does to it.
pub trait Scene {
    fn is_held(&self, job: u32, core: u32) -> bool;
    fn is_wanted(&self, job: u32, core: u32) -> bool;
    /// Tell the holder how it stands; true if that freed the core.
    fn set(&mut self, job: u32, core: u32, lease: u32) -> bool;
    fn give(&mut self, job: u32, core: u32, lease: u32);
    /// Take the core from the rank that runs there, if one does.
    fn take(&mut self, job: u32, core: u32);
    fn force(&mut self, job: u32, core: u32);
}

/// A tenant, and the CPUs of its core.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seat {
    tenant: Tenant,
    cpus: Vec<u32>,
}

impl Seat {
    /// Have two cores of different jobs a CPU in common?
    fn excludes(&self, other: &Seat) -> bool {
        self.tenant.job != other.tenant.job && self.cpus.iter().any(|cpu| other.cpus.contains(cpu))
    }
}

/// Decides which job has which core.
#[derive(Default)]
pub struct Arbiter {
    /// The cores that exclude others, those together that depend on each other.
    shared: Vec<Vec<Seat>>,
    /// The job whose slot it is.
    preferred: u32,
    slot_end: Option<Instant>,
    /// Cores being taken away, since when.
    revoked: BTreeMap<(u32, u32), Instant>,
    next: Option<Instant>,
}

/// Seats that exclude each other, directly or through others, together; without those that exclude none.
fn groups(seats: Vec<Seat>) -> Vec<Vec<Seat>> {
    let mut groups: Vec<Vec<Seat>> = Vec::new();
    for seat in seats {
        let (mut near, far): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| group.iter().any(|other| other.excludes(&seat)));
        let mut group: Vec<Seat> = near.drain(..).flatten().collect();
        group.push(seat);
        groups = far;
        groups.push(group);
    }
    groups.retain(|group| group.len() > 1);
    groups
}

impl Arbiter {
    /// The set of jobs has changed: `jobs` gives for each its number and the CPUs of each of its cores.
    /// Jobs left alone on a core get it for good.
    pub fn retake(&mut self, jobs: &[(u32, Vec<Vec<u32>>)], scene: &mut dyn Scene, now: Instant) {
        let mut seats = Vec::new();
        for (job, cores) in jobs {
            let core = |(core, cpus): (u32, &Vec<u32>)| Seat { tenant: Tenant { job: *job, core }, cpus: cpus.clone() };
            seats.extend((0..).zip(cores).map(core));
        }
        let shared = groups(seats.clone());
        let is_in = |groups: &[Vec<Seat>], tenant: Tenant| groups.iter().flatten().any(|seat| seat.tenant == tenant);
        for Seat { tenant, .. } in &seats {
            if is_in(&self.shared, *tenant) && !is_in(&shared, *tenant) {
                scene.set(tenant.job, tenant.core, lease::ALONE);
                scene.give(tenant.job, tenant.core, lease::ALONE);
            }
        }
        self.revoked.retain(|(job, core), _| is_in(&shared, Tenant { job: *job, core: *core }));
        self.shared = shared;
        self.decide(scene, now);
    }

    /// Does another job use a CPU of this core, too? Only then may it be another one's for a while.
    pub fn is_shared(&self, job: u32, core: u32) -> bool {
        self.shared.iter().flatten().any(|seat| seat.tenant == Tenant { job, core })
    }

    /// When to call `decide` though nobody rings.
    pub fn next(&self) -> Option<Instant> {
        self.next
    }

    /// Look at all shared cores and move those that are to be moved. Called after a ring, a death, a change of jobs, and at `next`.
    pub fn decide(&mut self, scene: &mut dyn Scene, now: Instant) {
        self.next = None;
        if self.shared.is_empty() {
            self.slot_end = None;
            return;
        }
        self.turn(scene, now);
        let shared = std::mem::take(&mut self.shared);
        let mut contested = false;
        for seats in &shared {
            contested |= self.decide_group(seats, scene, now);
        }
        self.shared = shared;
        // While nobody waits, a ring says when somebody does.
        let slot = self.slot_end.filter(|_| contested && self.revoked.is_empty());
        let taking =
            self.revoked.values().map(|since| *since + GRACE).map(|at| if now < at { at } else { now + GRACE });
        self.next = slot.into_iter().chain(taking).min();
    }

    /// Whose slot it is: the next job's if this one's is over and another job waits.
    fn turn(&mut self, scene: &dyn Scene, now: Instant) {
        // A core that is on its way is waited for; else one that never comes would be given up for good.
        if self.slot_end.is_some_and(|end| now < end) || !self.revoked.is_empty() {
            return;
        }
        let wanting: Vec<u32> = self.tenants().filter(|t| scene.is_wanted(t.job, t.core)).map(|t| t.job).collect();
        let after = wanting.iter().filter(|job| **job > self.preferred).min();
        if let Some(job) = after.or(wanting.iter().min()) {
            self.preferred = *job;
        }
        self.slot_end = Some(now + SLOT);
    }

    fn tenants(&self) -> impl Iterator<Item = Tenant> + '_ {
        self.shared.iter().flatten().map(|seat| seat.tenant)
    }

    /// Cores that depend on each other; true if not all that are wanted can be had.
    fn decide_group(&mut self, seats: &[Seat], scene: &mut dyn Scene, now: Instant) -> bool {
        // The preferred job first, then the others in their order after it.
        let mut order: Vec<&Seat> = seats.iter().collect();
        order.sort_by_key(|seat| (seat.tenant.job < self.preferred, seat.tenant.job, seat.tenant.core));
        let wanting: Vec<&Seat> =
            order.iter().copied().filter(|seat| scene.is_wanted(seat.tenant.job, seat.tenant.core)).collect();
        // Who wants a core goes before who only has it.
        let held = order.iter().copied().filter(|seat| scene.is_held(seat.tenant.job, seat.tenant.core));
        let mut owners: Vec<&Seat> = Vec::new();
        for seat in wanting.iter().copied().chain(held.collect::<Vec<_>>()) {
            if !owners.iter().any(|owner| *owner == seat || owner.excludes(seat)) {
                owners.push(seat);
            }
        }
        let mut busy: Vec<&Seat> = Vec::new();
        for seat in order.iter().copied().filter(|seat| !owners.contains(seat)) {
            let Tenant { job, core } = seat.tenant;
            if !scene.is_held(job, core) {
                self.revoked.remove(&(job, core));
            } else if !self.revoke(seat.tenant, scene, now) {
                busy.push(seat);
            }
        }
        for owner in &owners {
            let Tenant { job, core } = owner.tenant;
            self.revoked.remove(&(job, core));
            let waited_for = wanting.iter().any(|seat| seat.excludes(owner));
            let lease = if waited_for { lease::CONTESTED } else { lease::ALONE };
            if scene.is_held(job, core) {
                // Idle at this moment, though a rank has just become READY: that one finds the core WITHHELD, or gets it now.
                if scene.set(job, core, lease) {
                    scene.give(job, core, lease);
                }
            } else if !busy.iter().any(|seat| seat.excludes(owner)) {
                scene.give(job, core, lease);
            }
        }
        wanting.iter().any(|seat| !owners.contains(seat))
    }

    /// Take the core away from a tenant; true if it is free.
    fn revoke(&mut self, tenant: Tenant, scene: &mut dyn Scene, now: Instant) -> bool {
        let Tenant { job, core } = tenant;
        if scene.set(job, core, lease::REVOKED) {
            self.revoked.remove(&(job, core));
            return true;
        }
        let since = *self.revoked.entry((job, core)).or_insert(now);
        let age = now.duration_since(since);
        if age >= GRACE {
            scene.take(job, core);
        }
        if age >= PATIENCE && scene.is_held(job, core) {
            debug!("job {job}: it does not give up core {core}; counted as given up");
            scene.force(job, core);
        }
        let free = !scene.is_held(job, core);
        if free {
            self.revoked.remove(&(job, core));
        }
        free
    }
}

/// The daemon's jobs, as the arbiter sees them.
pub struct LiveScene<'a> {
    pub jobs: &'a mut BTreeMap<u32, Job>,
}

impl LiveScene<'_> {
    fn with<T>(&self, job: u32, otherwise: T, look: impl FnOnce(&NodeSegment) -> T) -> T {
        self.jobs.get(&job).map_or(otherwise, |job| look(&job.node))
    }
}

impl Scene for LiveScene<'_> {
    fn is_held(&self, job: u32, core: u32) -> bool {
        self.with(job, false, |node| lease::is_held(node, core))
    }

    fn is_wanted(&self, job: u32, core: u32) -> bool {
        self.with(job, false, |node| lease::is_wanted(node, core))
    }

    fn set(&mut self, job: u32, core: u32, lease: u32) -> bool {
        if lease != lease::ALONE
            && let Some(job) = self.jobs.get_mut(&job)
        {
            // It also looks for ranks that sleep in the kernel on a core that another job wants.
            job.watchdog.wake(Instant::now());
        }
        self.with(job, false, |node| lease::set(node, core, lease))
    }

    fn give(&mut self, job: u32, core: u32, lease: u32) {
        self.with(job, (), |node| supervise::give(node, core, lease));
    }

    fn take(&mut self, job: u32, core: u32) {
        let take = |node: &NodeSegment| node.running_on(core).filter(|rank| sched::take_core(node, *rank));
        if let (Some(rank), Some(job)) = (self.with(job, None, take), self.jobs.get_mut(&job)) {
            job.preempted.note(rank, Instant::now());
        }
    }

    fn force(&mut self, job: u32, core: u32) {
        self.with(job, (), |node| lease::force(node, core));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One CPU, two jobs, as plain data; a job that is told REVOKED gives up only when the test says so.
    #[derive(Default)]
    struct Stage {
        held: BTreeMap<u32, bool>,
        wanted: BTreeMap<u32, bool>,
        lease: BTreeMap<u32, u32>,
        taken: Vec<u32>,
        takeable: bool,
    }

    impl Scene for Stage {
        fn is_held(&self, job: u32, _: u32) -> bool {
            self.held[&job]
        }
        fn is_wanted(&self, job: u32, _: u32) -> bool {
            self.wanted[&job]
        }
        fn set(&mut self, job: u32, _: u32, lease: u32) -> bool {
            self.lease.insert(job, lease);
            let idle = self.held[&job] && !self.wanted[&job] && lease != lease::ALONE;
            if idle {
                self.held.insert(job, false);
            }
            idle
        }
        fn give(&mut self, job: u32, _: u32, lease: u32) {
            self.lease.insert(job, lease);
            self.held.insert(job, true);
            assert!(self.held.values().filter(|held| **held).count() <= 1, "two jobs on one core");
        }
        fn take(&mut self, job: u32, _: u32) {
            self.taken.push(job);
            if self.takeable {
                self.held.insert(job, false);
            }
        }
        fn force(&mut self, job: u32, _: u32) {
            self.held.insert(job, false);
        }
    }

    fn stage() -> (Arbiter, Stage, Instant) {
        let mut stage = Stage::default();
        for job in [1, 2] {
            stage.held.insert(job, job == 1);
            stage.wanted.insert(job, false);
        }
        let (mut arbiter, now) = (Arbiter::default(), Instant::now());
        arbiter.retake(&[(1, vec![vec![0]]), (2, vec![vec![0]])], &mut stage, now);
        (arbiter, stage, now)
    }

    #[test]
    fn an_idle_core_goes_to_who_wants_it() {
        let (mut arbiter, mut stage, now) = stage();
        assert!(stage.held[&1]);
        stage.wanted.insert(2, true);
        arbiter.decide(&mut stage, now);
        assert!(stage.held[&2] && !stage.held[&1]);
        assert_eq!(stage.lease[&2], lease::ALONE);
        assert_eq!(arbiter.next(), None, "nobody waits");
    }

    #[test]
    fn the_slot_moves_on_and_the_core_with_it() {
        let (mut arbiter, mut stage, mut now) = stage();
        stage.wanted.insert(1, true);
        arbiter.decide(&mut stage, now + SLOT);
        stage.wanted.insert(2, true);
        arbiter.decide(&mut stage, now + SLOT);
        assert_eq!((stage.held[&1], stage.lease[&1]), (true, lease::CONTESTED), "in its slot, told that another waits");
        now = arbiter.next().expect("the end of the slot");
        arbiter.decide(&mut stage, now);
        assert_eq!(stage.lease[&1], lease::REVOKED);
        assert!(stage.held[&1] && !stage.held[&2]);
        // Its rank reaches a scheduling point, and rings.
        stage.held.insert(1, false);
        arbiter.decide(&mut stage, now + Duration::from_millis(1));
        assert!(stage.held[&2]);
        assert_eq!(stage.lease[&2], lease::CONTESTED);
    }

    #[test]
    fn one_that_computes_is_taken_after_the_grace_and_one_that_cannot_be_is_passed_over() {
        for takeable in [true, false] {
            let (mut arbiter, mut stage, now) = stage();
            stage.takeable = takeable;
            stage.wanted = [(1, true), (2, true)].into();
            let mut at = now;
            while !stage.held[&2] {
                at = arbiter.next().unwrap_or(at + SLOT).max(at);
                arbiter.decide(&mut stage, at);
                assert!(at < now + Duration::from_secs(2), "job 2 never gets the core");
            }
            assert!(stage.taken.contains(&1));
            assert_eq!(at >= now + PATIENCE, !takeable);
        }
    }

    #[test]
    fn the_last_job_gets_the_core_back() {
        let (mut arbiter, mut stage, now) = stage();
        stage.wanted = [(1, true), (2, true)].into();
        arbiter.decide(&mut stage, now);
        stage.held.insert(1, false);
        arbiter.retake(&[(2, vec![vec![0]])], &mut stage, now);
        assert!(stage.held[&2]);
        assert_eq!((stage.lease[&2], arbiter.next()), (lease::ALONE, None));
        assert!(arbiter.shared.is_empty());
    }

    /// Cores of many kinds, as plain data: no two that have a CPU in common are ever held at once.
    #[derive(Default)]
    struct Board {
        cpus: BTreeMap<(u32, u32), Vec<u32>>,
        held: BTreeMap<(u32, u32), bool>,
        wanted: BTreeMap<(u32, u32), bool>,
    }

    impl Scene for Board {
        fn is_held(&self, job: u32, core: u32) -> bool {
            self.held[&(job, core)]
        }
        fn is_wanted(&self, job: u32, core: u32) -> bool {
            self.wanted[&(job, core)]
        }
        fn set(&mut self, job: u32, core: u32, lease: u32) -> bool {
            let idle = self.held[&(job, core)] && !self.wanted[&(job, core)] && lease != lease::ALONE;
            if idle {
                self.held.insert((job, core), false);
            }
            idle
        }
        fn give(&mut self, job: u32, core: u32, _: u32) {
            let of_others = self.held.iter().filter(|(key, held)| **held && key.0 != job);
            let clash =
                of_others.filter(|(key, _)| self.cpus[key].iter().any(|cpu| self.cpus[&(job, core)].contains(cpu)));
            assert_eq!(clash.count(), 0, "two jobs on one CPU");
            self.held.insert((job, core), true);
        }
        fn take(&mut self, job: u32, core: u32) {
            self.held.insert((job, core), false);
        }
        fn force(&mut self, job: u32, core: u32) {
            self.take(job, core);
        }
    }

    /// A job of two places of two CPUs beside one of four cores: each gets what it wants in its turn, and the four run together.
    #[test]
    fn places_of_several_cpus_and_single_ones() {
        let jobs = [(1, vec![vec![0, 1], vec![2, 3]]), (2, vec![vec![0], vec![1], vec![2], vec![3]])];
        let mut board = Board::default();
        for (job, cores) in &jobs {
            for (core, cpus) in (0..).zip(cores) {
                board.cpus.insert((*job, core), cpus.clone());
                board.held.insert((*job, core), *job == 1);
                board.wanted.insert((*job, core), true);
            }
        }
        let (mut arbiter, start) = (Arbiter::default(), Instant::now());
        arbiter.retake(&jobs, &mut board, start);
        let mut seen = [0; 2];
        for ms in 0..1000 {
            let now = start + Duration::from_millis(ms);
            if arbiter.next().is_some_and(|next| next <= now) {
                arbiter.decide(&mut board, now);
            }
            let has = |job: u32| board.held.iter().filter(|((of, _), held)| *of == job && **held).count();
            match (has(1), has(2)) {
                (2, 0) => seen[0] += 1,
                (0, 4) => seen[1] += 1,
                _ => {}
            }
        }
        assert!(seen.iter().all(|ms| *ms > 300), "{seen:?}");
        // The first job has no use for its second place.
        board.wanted.insert((1, 1), false);
        for ms in 1000..2000 {
            arbiter.decide(&mut board, start + Duration::from_millis(ms));
            assert!(ms < 1100 || (board.held[&(2, 2)] && board.held[&(2, 3)]), "idle CPUs that a job wants");
        }
        // The second job ends.
        board.held.iter_mut().filter(|((job, _), _)| *job == 2).for_each(|(_, held)| *held = false);
        arbiter.retake(&jobs[..1], &mut board, start + Duration::from_secs(3));
        assert!(board.held[&(1, 0)] && board.held[&(1, 1)] && !arbiter.is_shared(1, 0));
    }
}
