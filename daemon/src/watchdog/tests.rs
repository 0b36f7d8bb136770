//! The watchdog on a pretended core.

use super::*;
use std::cell::Cell;

fn spec(quantum_ms: u64, on_block: OnBlock) -> JobSpec {
    JobSpec { ranks: 2, v: 2, placement: vec![0, 0], quantum_ms, on_block, ..JobSpec::plain(vec![]) }
}

/// One core, rank 0 on it, rank 1 READY.
struct Stage {
    wanted: Cell<bool>,
    cpu_ns: Cell<u64>,
    asleep: Cell<bool>,
    for_ns: Cell<u64>,
    switches: Cell<u64>,
    taken: RefCell<Vec<u32>>,
    seen: Cell<Option<Seen>>,
    away: Cell<bool>,
    kicks: Cell<u32>,
    samples: Cell<u32>,
}

impl Scene for Stage {
    fn running_on(&self, _: u32) -> Option<u32> {
        Some(0)
    }
    fn is_wanted(&self, _: u32) -> bool {
        self.wanted.get()
    }
    fn running_for_ns(&self, _: u32) -> u64 {
        self.for_ns.get()
    }
    fn switches(&self, _: u32) -> u64 {
        self.switches.get()
    }
    fn cpu_time_ns(&self, _: u32) -> Option<u64> {
        Some(self.cpu_ns.get())
    }
    fn is_asleep(&self, _: u32) -> bool {
        self.asleep.get()
    }
    fn take_core(&self, rank: u32) -> bool {
        self.taken.borrow_mut().push(rank);
        // It will get the core back some time.
        self.switches.set(self.switches.get() + 1);
        true
    }
    fn is_shared(&self, _: u32) -> bool {
        true
    }
    fn begin_sample(&self, _: u32, _: Instant) -> bool {
        self.samples.set(self.samples.get() + 1);
        self.seen.get().is_some()
    }
    fn sampled(&self, _: u32, _: Instant) -> Seen {
        self.seen.get().unwrap()
    }
    fn is_running(&self, _: u32) -> bool {
        !self.away.get()
    }
    fn core_of(&self, _: u32) -> u32 {
        0
    }
    fn slices(&self, _: u32, _: bool) {}

    fn kick(&self, cores: &[u32]) {
        self.kicks.set(self.kicks.get() + cores.len() as u32);
    }
}

fn stage() -> Stage {
    Stage {
        wanted: Cell::new(true),
        cpu_ns: Cell::new(0),
        asleep: Cell::new(false),
        for_ns: Cell::new(0),
        switches: Cell::new(0),
        taken: RefCell::default(),
        seen: Cell::new(Some(Seen::Works)),
        away: Cell::new(false),
        kicks: Cell::new(0),
        samples: Cell::new(0),
    }
}

/// Run for `ms` of pretended time; the rank uses its cpu unless asleep. Returns when it lost its core first.
fn run(dog: &mut Watchdog, stage: &Stage, start: Instant, ms: u64) -> Option<u64> {
    dog.wake(start);
    for t in 0..ms {
        if !stage.asleep.get() {
            stage.cpu_ns.set(stage.cpu_ns.get() + 1_000_000);
        }
        stage.for_ns.set(stage.for_ns.get() + 1_000_000);
        dog.tick(stage, start + Duration::from_millis(t));
        if !stage.taken.borrow().is_empty() {
            stage.taken.borrow_mut().clear();
            stage.for_ns.set(0);
            return Some(t);
        }
    }
    None
}

#[test]
fn a_sleeper_loses_its_core_after_two_looks() {
    let (stage, start) = (stage(), Instant::now());
    stage.asleep.set(true);
    let at = run(&mut Watchdog::new(&spec(5000, OnBlock::Release)), &stage, start, 1000);
    assert!(at.is_some_and(|ms| (7..=15).contains(&ms)), "{at:?}");
    assert_eq!(run(&mut Watchdog::new(&spec(0, OnBlock::Keep)), &stage, start, 10_000), None);
}

#[test]
fn one_that_slept_lately_loses_its_core_sooner() {
    let (stage, start) = (stage(), Instant::now());
    stage.asleep.set(true);
    let mut dog = Watchdog::new(&spec(0, OnBlock::Release));
    let first = run(&mut dog, &stage, start, 1000).unwrap();
    let second = run(&mut dog, &stage, start + Duration::from_millis(500), 1000).unwrap();
    let later = run(&mut dog, &stage, start + Duration::from_secs(10), 1000).unwrap();
    assert!(second <= 7 && first > second && later > second, "{first} {second} {later}");
    // Awake again, it costs looks for as long as it is remembered.
    stage.asleep.set(false);
    run(&mut dog, &stage, start + Duration::from_millis(10_500), 100);
    assert_eq!(dog.pause, NAP_TICK);
    run(&mut dog, &stage, start + Duration::from_secs(20), 100);
    assert_eq!(dog.pause, WORK_TICK);
}

#[test]
fn who_works_is_looked_at_less_often_and_loses_its_core_soon_all_the_same() {
    let (stage, start) = (stage(), Instant::now());
    let mut dog = Watchdog::new(&spec(0, OnBlock::Release));
    let mut looks = 0;
    dog.wake(start);
    for ms in 0..1000 {
        // Turns of 10 ms, as those of ranks that compute and communicate.
        if ms % 10 == 0 && ms < 500 {
            stage.switches.set(stage.switches.get() + 1);
            stage.for_ns.set(0);
        }
        stage.cpu_ns.set(stage.cpu_ns.get() + 1_000_000);
        stage.for_ns.set(stage.for_ns.get() + 1_000_000);
        let at = start + Duration::from_millis(ms);
        looks += u32::from(dog.next().is_some_and(|next| next <= at));
        dog.tick(&stage, at);
    }
    assert!((50..=70).contains(&looks), "{looks}");
    stage.asleep.set(true);
    let at = run(&mut dog, &stage, start + Duration::from_secs(1), 1000);
    assert!(at.is_some_and(|ms| ms <= 30), "{at:?}");
}

#[test]
fn one_that_polls_with_short_sleeps_loses_its_core_too() {
    let (stage, start) = (stage(), Instant::now());
    stage.asleep.set(true);
    let mut dog = Watchdog::new(&spec(0, OnBlock::Release));
    dog.wake(start);
    let taken = (0..100).find(|ms| {
        stage.cpu_ns.set(stage.cpu_ns.get() + 50_000);
        dog.tick(&stage, start + Duration::from_millis(*ms));
        !stage.taken.borrow().is_empty()
    });
    assert!(taken.is_some_and(|ms| (20..=40).contains(&ms)), "{taken:?}");
}

#[test]
fn a_core_that_nobody_wants_is_left_alone() {
    let (stage, start) = (stage(), Instant::now());
    stage.asleep.set(true);
    stage.wanted.set(false);
    let mut dog = Watchdog::new(&spec(20, OnBlock::Release));
    assert_eq!(run(&mut dog, &stage, start, 10_000), None);
    assert_eq!(dog.pause, LONGEST_TICK);
    // One that computes may have others READY behind it any time, and is looked at oftener.
    stage.asleep.set(false);
    assert_eq!(run(&mut dog, &stage, start + Duration::from_secs(20), 1000), None);
    assert_eq!(dog.pause, SHARED_TICK);
}

#[test]
fn one_that_waits_for_a_cpu_is_not_asleep() {
    let (stage, start) = (stage(), Instant::now());
    let mut dog = Watchdog::new(&spec(0, OnBlock::Release));
    dog.wake(start);
    for ms in 0..1000 {
        dog.tick(&stage, start + Duration::from_millis(ms));
    }
    assert!(stage.taken.borrow().is_empty());
}

#[test]
fn the_quantum_shrinks_and_recovers() {
    let (stage, mut start) = (stage(), Instant::now());
    let mut dog = Watchdog::new(&spec(5000, OnBlock::Release));
    let mut last = Vec::new();
    for _ in 0..4 {
        last.push(run(&mut dog, &stage, start, 10_000).unwrap());
        start += Duration::from_secs(20);
    }
    for (at, expected) in last.iter().zip([5000, 500, 50, 20]) {
        assert!((expected..expected + 20).contains(at), "{last:?}");
    }
    stage.switches.set(stage.switches.get() + 3);
    let at = run(&mut dog, &stage, start, 10_000).unwrap();
    assert!((160..180).contains(&at), "20 ms doubled three times, not {at}");
    stage.switches.set(stage.switches.get() + 100);
    let at = run(&mut dog, &stage, start + Duration::from_secs(20), 10_000).unwrap();
    assert!((5000..5020).contains(&at), "never more than the job's: {at}");
}

#[test]
fn quantum_zero_is_never() {
    let (stage, start) = (stage(), Instant::now());
    assert_eq!(run(&mut Watchdog::new(&spec(0, OnBlock::Release)), &stage, start, 60_000), None);
}

#[test]
fn who_spins_loses_its_core_in_milliseconds_and_at_once_afterwards() {
    let (stage, start) = (stage(), Instant::now());
    stage.seen.set(Some(Seen::Spins));
    let mut dog = Watchdog::new(&spec(5000, OnBlock::Keep));
    let first = run(&mut dog, &stage, start, 1000).unwrap();
    assert!(first <= 20, "{first}");
    // It shares the CPU with the one that has the core, in short turns.
    stage.away.set(true);
    stage.wanted.set(false);
    for t in 0..40 {
        stage.cpu_ns.set(stage.cpu_ns.get() + 100_000);
        dog.tick(&stage, start + Duration::from_millis(100) + t * KNOWN_TICK);
    }
    assert!(stage.kicks.get() >= 39, "{}", stage.kicks.get());
    stage.away.set(false);
    stage.wanted.set(true);
    assert!(run(&mut dog, &stage, start + Duration::from_millis(200), 1000).unwrap() <= 1);
    // After a while it is a rank as any other.
    stage.seen.set(Some(Seen::Works));
    assert_eq!(run(&mut dog, &stage, start + Duration::from_secs(10), 1000), None);
    assert!(dog.next_kick.is_none());
}

#[test]
fn one_that_spun_and_works_now_is_known_no_more() {
    let (stage, start) = (stage(), Instant::now());
    stage.seen.set(Some(Seen::Spins));
    let mut dog = Watchdog::new(&spec(5000, OnBlock::Keep));
    run(&mut dog, &stage, start, 1000).unwrap();
    stage.away.set(true);
    stage.seen.set(Some(Seen::Works));
    for t in 0..100 {
        stage.cpu_ns.set(stage.cpu_ns.get() + 100_000);
        dog.tick(&stage, start + Duration::from_millis(20 + t));
    }
    assert!(dog.next_kick.is_none());
}

#[test]
fn who_works_is_sampled_ever_less_and_where_nobody_may_see_the_quantum_decides() {
    let (stage, start) = (stage(), Instant::now());
    let mut dog = Watchdog::new(&spec(5000, OnBlock::Keep));
    assert_eq!(run(&mut dog, &stage, start, 4000), None);
    assert!((2..=6).contains(&stage.samples.get()), "{}", stage.samples.get());
    let blind = Watchdog::new(&spec(5000, OnBlock::Keep));
    let (stage, mut dog) = (self::stage(), blind);
    stage.seen.set(None);
    let at = run(&mut dog, &stage, start, 6000).unwrap();
    assert!((5000..=5020).contains(&at), "{at}");
    assert!(stage.samples.get() <= 6, "{}", stage.samples.get());
}

#[test]
fn real_processes_sleep_and_run() {
    let mut sleeper = std::process::Command::new("/bin/sleep").arg("100").spawn().unwrap();
    let pid = sleeper.id() as i32;
    let deadline = Instant::now() + Duration::from_secs(10);
    // It may sleep on its way through exec and the loader; in the end it sleeps without using any CPU time.
    let mut before = None;
    while !all_threads_asleep(pid) || process_cpu_time_ns(pid) != before {
        assert!(Instant::now() < deadline);
        before = process_cpu_time_ns(pid);
        std::thread::sleep(Duration::from_millis(20));
    }
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGSTOP).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert!(all_threads_asleep(pid), "a stopped process counts as asleep");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(!all_threads_asleep(std::process::id() as i32));
    assert_eq!(process_cpu_time_ns(pid), None);
}
