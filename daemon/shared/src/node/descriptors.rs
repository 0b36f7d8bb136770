//! What lies in the node segment: facts about the job, its cores, its ranks, and where its carrier is called.
//!
//! Every field says who writes it. All-zero is a valid start.

use crate::mem::sync::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use crate::trace::COUNTERS;

/// Facts fixed at creation; written by the daemon before any rank starts.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct NodeHeader {
    pub job: u32,
    pub ranks: u32,
    pub cores: u32,
    pub v: u32,
    pub policy: u32,
    pub keep_on_block: u32,
    pub wtime_rank: u32,
    pub tsc: u32,
    pub ticks_per_second: f64,
    /// Ticks that the last rank to suspend spins before it parks.
    pub spin_ticks: u64,
    /// Ticks that it watches on a core whose idle times lately ended sooner than that (`CoreDescriptor::idles`).
    pub long_ticks: u64,
    /// Turns on a core shorter than this are so short that several waiting ranks are woken together: ticks.
    pub brisk_ticks: u64,
    /// sched_yield calls of a rank that has just passed its core on, before it parks.
    pub warm_yields: u32,
    pub ready_words: u32,
    /// The job goes on when a rank dies: nobody touches another's queues or spins, and half-done steps are marked (`sched::intent`).
    pub recovery: u32,
    /// The job lives in virtual time (`simulate`).
    pub simulated: u32,
    /// `control::Balance`; in a job that survives deaths no rank moves.
    pub balance: u32,
    /// The first of the cores, between which ranks may move.
    pub own_cores: u32,
    /// Each rank is pinned to its core's CPU.
    pub bind: u32,
    /// Some ranks live on other nodes (`RunState::Remote`).
    pub spread: u32,
    /// Who has been made READY only to answer goes before others (`NodeSegment::answering`).
    pub answers_first: u32,
    /// `crash::OnCrash`.
    pub on_crash: u32,
    pub started_at: u64,
}

/// One core of the job.
#[repr(C, align(64))]
#[derive(Default)]
pub struct CoreDescriptor {
    /// `sched::IDLE`, `SPINNING`, `WITHHELD`, `OPEN`, `CLAIMED`, or rank + 1 of the rank that holds the core. CAS by anyone, SeqCst.
    pub holder: AtomicU32,
    /// Rank that spins while holder is SPINNING; written by it.
    pub spinner: AtomicU32,
    pub cpu: AtomicU32,
    pub ranks: AtomicU32,
    /// `lease::ALONE`, `CONTESTED` or `REVOKED`: does another job want this core? Written by the daemon, SeqCst.
    pub lease: AtomicU32,
    /// Where the round-robin scan starts; written by whoever holds or claims the core.
    pub last: AtomicU32,
    /// Rank that ran last before the core became idle; written by it.
    pub idler: AtomicU32,
    /// The daemon mends what a dead rank has left half-done; written by it, SeqCst.
    pub mending: AtomicU32,
    pub violations: AtomicU64,
    /// When it became WITHHELD; written by whoever did that: ticks.
    pub withheld_at: AtomicU64,
    /// Time that it was another job's, ticks; written by the daemon.
    pub withheld_ticks: AtomicU64,
    reserved0: AtomicU32,
    /// Ranks that have come here from other cores, counted at each move; by whoever moves.
    pub moves: AtomicU32,
    // What changes with every wait: apart from what deliverers on other cores look at.
    /// Ranks that are RUNNING on this core right now (SPECIFICATION 2.1: 0 or 1), counted at every change.
    pub running: AtomicU32,
    pub max_running: AtomicU32,
    /// Written by the rank that leaves the core (or the daemon for it): ticks.
    pub released_at: AtomicU64,
    /// Written by whoever gives the core to a rank: ticks.
    pub granted_at: AtomicU64,
    /// Times of this core, ticks; written by the rank that holds it.
    pub running_ticks: AtomicU64,
    pub idle_ticks: AtomicU64,
    pub handoff_ticks: AtomicU64,
    pub handoffs: AtomicU64,
    /// Core-POV timer (listing 3 of the EuroMPI'20 paper: C), ticks.
    pub ptime: AtomicU64,
    // The window in which load is measured; written by whoever has just moved `looked_at` on. Ticks.
    /// When somebody looked last.
    pub looked_at: AtomicU64,
    /// `running_ticks` then, and the part of the time before that in which ranks ran (`sched::balance`).
    pub window_running: AtomicU64,
    pub busy_percent: AtomicU64,
    // Of the first core only, for `sched::refine`.
    pub window_at: AtomicU64,
    /// How long the window is at least.
    pub window_ticks: AtomicU64,
    /// From which core + 1 the last window would have moved ranks, and to which.
    pub proposed_from: AtomicU32,
    pub proposed_to: AtomicU32,
    /// In a job of several nodes: its holder watches, so that the core does nothing else; written by that rank.
    pub watched: AtomicU32,
    /// How the core's idle times have been (`sched::watch`); written by whoever ends one, or ends watching it.
    pub idles: AtomicU32,
    /// What ranks whose numbers others have now were outside MPI while it was idle (`sched::outside`), ticks, signed; written by the daemon.
    pub past_starting: AtomicU64,
    // Performance counters (`meter`), written by the rank that leaves the core.
    /// What all ranks counted here, and what they counted in metered sections.
    pub counters: [AtomicU64; COUNTERS],
    pub metered: [AtomicU64; COUNTERS],
    /// When it, or a rank of it that had nothing to do, last looked for a rank of another core to let run (`sched::balance`); ticks.
    pub offered_at: AtomicU64,
    pub past_ending: AtomicU64,
}

/// One rank of the job.
#[repr(C, align(64))]
#[derive(Default)]
pub struct RankDescriptor {
    /// `RunState`; CAS by the rank, deliverers and the daemon, SeqCst. Also the lock on the rank's matching queues.
    pub state: AtomicU32,
    /// Futex: `permit::NONE`, `GRANTED`, `PARKED` or `SPIN`.
    pub permit: AtomicU32,
    /// Process that called MPI_Init, in a world without a daemon; else `Pids` tells, which no rank can write.
    pub pid: AtomicI32,
    /// Index of its core.
    pub core: AtomicU32,
    /// Why it is suspended (`sched::Wait` kind) and its operand; written by the rank before it suspends.
    pub wait_kind: AtomicU32,
    pub wait_operand: AtomicU32,
    /// Rank + 1 that got the core when this one had left it idle the last time; written by whoever gave it.
    pub expected_next: AtomicU32,
    /// Threads of this rank that wait for a collective cell or in a window while others may be in MPI; written by the rank.
    pub cell_threads: AtomicU32,
    /// Ticks; written by whoever makes it READY.
    pub ready_at: AtomicU64,
    /// Does it lend its queues while it computes, and does a deliverer have them (`endpoint::strong_progress`)? CAS by it and by deliverers, SeqCst.
    pub lent: AtomicU32,
    /// In a job of several nodes the one on which it lives, for whom it was spawned after; written by the daemon, before it is told to anybody.
    pub node: AtomicU32,
    /// Somebody ended its wait while another tended it or before it was suspended: whoever tends makes it READY. Set by
    /// wakers, cleared by the rank when it looks again.
    pub wake: AtomicU32,
    /// Suspensions for which it parks at once, because staying warm was of no use the last time; written by the rank.
    pub cold: AtomicU32,
    /// Steps on the baton that this rank is in the middle of, and the core + 1 (`sched::intent`); written by it, SeqCst.
    pub acting: AtomicU32,
    pub acting_on: AtomicU32,
    // Clocks of listings 2 and 3; written by the rank while RUNNING, by the daemon for the step RUNNING -> AWAY. Ticks.
    pub r: AtomicU64,
    pub t: AtomicU64,
    /// 0: not in a metered section.
    pub m: AtomicU64,
    pub ready_ticks: AtomicU64,
    pub wait_ticks: AtomicU64,
    pub away_ticks: AtomicU64,
    pub switches: AtomicU64,
    /// Rank + 1 that this one made READY last in this turn, or 0; written by it, under the policies that ask for it.
    pub follower: AtomicU32,
    /// How often it has moved; written by whoever moves it.
    pub moves: AtomicU32,
    // What it waits for; written by the rank before it suspends.
    pub call: AtomicU32,
    pub peer: AtomicI32,
    pub tag: AtomicI32,
    /// It has failed, as the job's so manieth rank; 0: it has not. Written by the daemon, SeqCst, once.
    pub failed: AtomicU32,
    // Counters; written by the rank.
    pub sent_messages: AtomicU64,
    pub sent_bytes: AtomicU64,
    pub received_messages: AtomicU64,
    pub received_bytes: AtomicU64,
    /// Not 0: transfers are counted (`monitor::FOR_JOB`, `FOR_TOOL`), or what the rank does is recorded (`trace::FOR_TRACE`). Written by the daemon and by the rank, atomically.
    pub monitor: AtomicU32,
    /// Core + 1 to which it is to move when it next suspends (`sched::refine`), or home to, once that is idle (`rescue`); written by who moves it, and by itself.
    pub target: AtomicU32,
    /// Single copies that the kernel refused.
    pub copies_refused: AtomicU64,
    /// `r` at the begin of the window of `sched::refine`.
    pub window_r: AtomicU64,
    /// Core + 1 to whose CPU all its threads were pinned last; written by it, and by the daemon while it is ADOPTED. `STAYS`: it has chosen its CPUs
    /// itself, so it does not move; written by who found that out.
    pub pinned: AtomicU32,
    /// Index of the core where it was first placed: alike for all who look, whatever moves (collective cells, MPI-IO); written by the daemon, once.
    pub home: AtomicU32,
    /// `switches` at the begin of that window; under `Policy::Drawn`, where nobody moves, its lot (`RankDescriptor::lot`).
    pub window_switches: AtomicU64,
    /// With MPI_THREAD_MULTIPLE: threads that waited in MPI when the rank was suspended; else 0. Written by the rank.
    pub waiting_threads: AtomicU32,
    /// Descriptor + 1, in its process, of the file in which memory of it lies (`node::peer_memory`); written by it.
    pub heap_fd: AtomicU32,
    /// Ticks; written by the daemon when it takes the core away.
    pub away_at: AtomicU64,
    /// Performance counters as they stood when it last left a core (`meter`); written by it.
    pub counters: [AtomicU64; COUNTERS],
}

impl RankDescriptor {
    pub const STAYS: u32 = u32::MAX;

    /// Its turn under `Policy::Drawn`: higher ones go first. Written by it.
    pub fn lot(&self) -> &AtomicU64 {
        &self.window_switches
    }

    pub fn may_move(&self) -> bool {
        self.pinned.load(Ordering::Relaxed) != RankDescriptor::STAYS
    }
}

/// A moment of a rank's life.
#[repr(C)]
#[derive(Default)]
pub struct Mark {
    /// Ticks.
    pub at: AtomicU64,
    /// Idle time of the core until then, ticks.
    pub idle: AtomicU64,
    /// The core + 1; 0: not yet. Written last; who reads it too early misses a mark that is being made.
    pub core: AtomicU32,
    reserved: AtomicU32,
}

/// A rank's way into MPI and out of it (`sched::outside`): written once each, before and after it takes part in the baton.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Life {
    /// Its process was to be started; written by the daemon.
    pub born: Mark,
    /// The ends of MPI_Init and MPI_Finalize, by the rank; the latter by the daemon if it died before.
    pub entered: Mark,
    pub left: Mark,
    /// Its processes are gone; written by the daemon.
    pub over: Mark,
    /// `RunState` in which it died + 1, or 0; written by the daemon.
    pub died_as: AtomicU32,
    reserved: [AtomicU32; 7],
}

/// Where this node's carrier is called, who takes to other nodes what ranks push for remote ones.
#[repr(C, align(64))]
#[derive(Default)]
pub struct CarrierWords {
    /// `ASLEEP`, `DOZING`: the carrier sleeps, or is about to: ring. Set by it, cleared by whoever rings; SeqCst (SYNC N).
    pub asleep: AtomicU32,
    /// Not 0: its bell may have been asked to ring in a moment. Set by who asks, cleared by the carrier; nothing is ordered by it: the bell rings by a timer,
    /// and if this is seen late, or its writer dies, the carrier wakes once for nothing.
    pub chiming: AtomicU32,
    /// Not 0: it has something to do that no frame or bell tells of (deliveries to try again, data to send). This and the counts: written by the carrier
    /// before it sleeps, read by the daemon while it does (`sched::carrier_bell::Stand`).
    pub holds: AtomicU32,
    reserved: u32,
    /// Frames that it has sent to other nodes, and acted on from there.
    pub sent: AtomicU64,
    pub received: AtomicU64,
    /// Not 0: a rank has said its last words (`crash`). Set by it, cleared by the daemon.
    pub last_words: AtomicU32,
    reserved_too: [u32; 7],
}

impl CarrierWords {
    pub const AWAKE: u32 = 0;
    pub const ASLEEP: u32 = 1;
    /// It would look on, if only a core waited: whoever begins to watch one rings.
    pub const DOZING: u32 = 2;
    /// It sleeps, and its bell will ring in a moment: whoever leaves a core rings at once.
    pub const CALLED: u32 = 3;
}
