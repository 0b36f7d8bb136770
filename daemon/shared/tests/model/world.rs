//! A job for model tests: the real endpoints over private segments, one shuttle thread per rank.

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::thread::{self, JoinHandle};
use shuttle::{Config, Runner};
use std::sync::atomic::AtomicU8;
use vmpi_shared::control::{Balance, OnBlock, Policy, Wtime};
use vmpi_shared::endpoint::{Endpoint, Want};
use vmpi_shared::job::{JobConfig, JobSegment};
use vmpi_shared::matching::envelope::{Envelope, kind};
use vmpi_shared::matching::mover::{Mover, Transfer};
use vmpi_shared::matching::queues::LARGE_BYTES;
use vmpi_shared::matching::request::{ANY_SOURCE, FLAG_AWAITED, Slot, state};
use vmpi_shared::mem::sync;
use vmpi_shared::node::{NodeConfig, NodeSegment, Patience};
use vmpi_shared::sched;

/// Segments of a job whose ranks are placed on cores as told.
pub struct World {
    pub node: NodeSegment,
    pub job: JobSegment,
    spin_ticks: u64,
}

/// A node in private memory.
pub fn node(placement: &[u32], policy: Policy) -> NodeSegment {
    node_of(placement, policy, Balance::None, false)
}

/// As `node`, with everything that matters to scheduling.
pub fn node_of(placement: &[u32], policy: Policy, balance: Balance, recovery: bool) -> NodeSegment {
    NodeSegment::private(&NodeConfig { balance, recovery, ..plain(placement, policy) })
}

fn plain(placement: &[u32], policy: Policy) -> NodeConfig {
    let ranks = placement.len() as u32;
    let cores = placement.iter().max().unwrap() + 1;
    NodeConfig {
        job: 1,
        ranks,
        v: ranks,
        cpus: (0..cores).collect(),
        placement: placement.to_vec(),
        policy,
        balance: Balance::None,
        own_cores: cores,
        bind: false,
        on_block: OnBlock::Release,
        wtime: Wtime::Wall,
        quantum_ms: 0,
        recovery: false,
        answers_first: false,
        patience: Patience::default(),
    }
}

/// No core ever had two ranks RUNNING.
pub fn assert_alone(node: &NodeSegment) {
    for core in 0..node.header().cores {
        let core = node.core(core);
        assert_eq!(core.violations.load(sync::Ordering::Relaxed), 0, "two ranks were RUNNING on one core");
        assert!(core.max_running.load(sync::Ordering::Relaxed) <= 1);
    }
}

impl World {
    /// `spin_ticks` are looks at the clock, see `mem::sync`.
    pub fn new(placement: &[u32], inbox_cells: u32, spin_ticks: u64) -> World {
        Self::under(Policy::Rr, placement, inbox_cells, spin_ticks)
    }

    pub fn under(policy: Policy, placement: &[u32], inbox_cells: u32, spin_ticks: u64) -> World {
        let node = node(placement, policy);
        for rank in 0..placement.len() as u32 {
            node.set_pid(rank, std::process::id() as i32);
            node.introduce(rank);
        }
        World { spin_ticks, node, job: Self::job(placement, inbox_cells) }
    }

    /// A job whose ranks move.
    pub fn balanced(balance: Balance, placement: &[u32], spin_ticks: u64) -> World {
        let node = node_of(placement, Policy::Rr, balance, false);
        World { spin_ticks, node, job: Self::job(placement, 8) }
    }

    /// A job that goes on when a rank dies.
    pub fn recovering(placement: &[u32], inbox_cells: u32) -> World {
        World {
            spin_ticks: 0,
            node: node_of(placement, Policy::Rr, Balance::None, true),
            job: Self::job(placement, inbox_cells),
        }
    }

    /// A job whose ranks take part in handshakes themselves.
    pub fn answering(policy: Policy, placement: &[u32], spin_ticks: u64) -> World {
        let node = NodeSegment::private(&NodeConfig { answers_first: true, ..plain(placement, policy) });
        World { spin_ticks, node, job: Self::job(placement, 2) }
    }

    /// A job whose ranks have room for one unexpected message each: more lie in chunks.
    pub fn tight(placement: &[u32], recovery: bool) -> World {
        let node = node_of(placement, Policy::Rr, Balance::None, recovery);
        World { spin_ticks: 0, node, job: Self::job_with(placement, 2, 1) }
    }

    fn job(placement: &[u32], inbox_cells: u32) -> JobSegment {
        Self::job_with(placement, inbox_cells, 16)
    }

    fn job_with(placement: &[u32], inbox_cells: u32, unexpected: u32) -> JobSegment {
        let job = JobSegment::create(&JobConfig {
            ranks: placement.len() as u32,
            inbox_cells,
            slots: 16,
            unexpected,
            slab_bytes: 4096,
            cells: 1,
            chunks: 4,
            ..JobConfig::default()
        });
        job.unwrap()
    }

    pub fn endpoint(&self, rank: u32) -> Endpoint {
        let job = JobSegment::map(self.job.fd().try_clone_to_owned().unwrap()).unwrap();
        Endpoint::new(self.node.another_view(self.spin_ticks), job, rank)
    }

    /// Start a rank that enters, does `body` and finishes.
    pub fn rank(&self, rank: u32, body: impl FnOnce(&mut Endpoint) + Send + 'static) -> JoinHandle<()> {
        let mut endpoint = self.endpoint(rank);
        thread::spawn(move || {
            sched::enter(&endpoint.node, rank);
            body(&mut endpoint);
            sched::finish(&endpoint.node, rank);
        })
    }
}

/// Who matches small messages only.
pub struct Nobody;

impl Mover for Nobody {
    fn owner(&self) -> u32 {
        unreachable!("nothing is announced")
    }
    fn is_owner(&self) -> bool {
        true
    }
    fn transfer(&mut self, _: &Envelope, _: u32, _: &Slot) -> Transfer {
        unreachable!("nothing is announced")
    }
    fn piece(&mut self, _: &Envelope, _: &Slot) {
        unreachable!("nothing is announced")
    }
    fn help(&mut self, _: &Envelope, _: &Slot) {
        unreachable!("nothing is announced")
    }
}

/// MPI_Send of a small message, as vmpi-core does it.
pub fn send(endpoint: &mut Endpoint, to: u32, tag: i32) {
    endpoint.deliver(to, &message(endpoint.me, kind::INLINE, tag));
}

/// What large messages are copied from and to: as the ranks are threads, all is one process's memory.
static BYTE: AtomicU8 = AtomicU8::new(7);

/// MPI_Isend of a large message (of one byte, which only sender and receiver can move).
pub fn announce(endpoint: &mut Endpoint, to: u32, tag: i32) -> u32 {
    let mut queues = endpoint.queues();
    let index = queues.take_slot().expect("a free request slot");
    (queues.slots[index as usize].state, queues.slots[index as usize].from) = (state::SENT, to);
    let mut envelope = message(endpoint.me, kind::RTS, tag);
    (envelope.request, envelope.len) = (index, 1);
    envelope.set_addr(BYTE.as_ptr() as u64);
    endpoint.deliver(to, &envelope);
    index
}

/// MPI_Irecv with room for a large message.
pub fn irecv_large(endpoint: &mut Endpoint, source: i32, tag: i32) -> u32 {
    post(endpoint, source, tag, LARGE_BYTES)
}

/// MPI_Irecv.
pub fn irecv(endpoint: &mut Endpoint, source: i32, tag: i32) -> u32 {
    post(endpoint, source, tag, 0)
}

fn post(endpoint: &mut Endpoint, source: i32, tag: i32, capacity: u64) -> u32 {
    let mut queues = endpoint.queues();
    let index = queues.take_slot().expect("a free request slot");
    let slot = &mut queues.slots[index as usize];
    (slot.context, slot.source, slot.tag, slot.capacity) = (2, source, tag, capacity);
    slot.addr = BYTE.as_ptr() as u64;
    endpoint.post(index);
    index
}

pub fn message(from: u32, kind: u8, tag: i32) -> Envelope {
    let mut envelope = Envelope::EMPTY;
    (envelope.kind, envelope.context, envelope.from, envelope.source, envelope.tag) = (kind, 2, from, from as i32, tag);
    envelope
}

/// MPI_Wait; returns source and tag of what came.
pub fn wait(endpoint: &mut Endpoint, index: u32) -> (i32, i32) {
    loop {
        endpoint.progress();
        if endpoint.queues().is_over(index) {
            let queues = &mut endpoint.queues();
            let slot = queues.slots[index as usize];
            assert!(matches!(slot.state, state::ARRIVED | state::COMPLETE));
            queues.free_slot(index);
            return (slot.matched_source, slot.matched_tag);
        }
        let slot = endpoint.queues().slots[index as usize];
        if slot.state == state::SENT {
            endpoint.await_receiver(slot.from);
        }
        endpoint.queues().slots[index as usize].flags |= FLAG_AWAITED;
        endpoint.arm(1);
        endpoint.suspend(1, -1, -1);
        endpoint.queues().slots[index as usize].flags &= !FLAG_AWAITED;
    }
}

/// The short way of MPI_Recv, if it is open.
fn take(endpoint: &mut Endpoint, source: i32, tag: i32) -> Option<(i32, i32)> {
    // SAFETY: a message of no bytes needs no room.
    let taken = unsafe {
        endpoint.take(&Want { context: 2, source, tag, call: 1 }, std::ptr::NonNull::dangling().as_ptr(), 0)
    }?;
    Some((taken.source, taken.tag))
}

/// MPI_Recv from anyone.
pub fn recv_any(endpoint: &mut Endpoint, tag: i32) -> i32 {
    if let Some((source, _)) = take(endpoint, ANY_SOURCE, tag) {
        return source;
    }
    let index = irecv(endpoint, ANY_SOURCE, tag);
    wait(endpoint, index).0
}

/// MPI_Recv.
pub fn recv(endpoint: &mut Endpoint, source: u32, tag: i32) {
    let got = match take(endpoint, source as i32, tag) {
        Some(got) => got,
        None => {
            let index = irecv(endpoint, source as i32, tag);
            wait(endpoint, index)
        }
    };
    assert_eq!(got, (source as i32, tag));
}

/// As shuttle's functions of these names, with stacks on which the views of two jobs' segments have room.
pub fn check_random(scenario: impl Fn() + Send + Sync + 'static, rounds: usize) {
    Runner::new(RandomScheduler::new(rounds), config()).run(scenario);
}

pub fn check_pct(scenario: impl Fn() + Send + Sync + 'static, rounds: usize, depth: usize) {
    Runner::new(PctScheduler::new(depth, rounds), config()).run(scenario);
}

fn config() -> Config {
    let mut config = Config::new();
    // A node's and a job's views lie on a test's stack; without room they end by SIGSEGV.
    config.stack_size = 4 << 20;
    config
}
