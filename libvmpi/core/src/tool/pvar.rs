//! Performance variables: what the runtime does (MPI 4.1 section 15.3.7).
//!
//! Levels, sizes and states are what they are, always. Counters, aggregates and timers count from a handle's start, so
//! that several tools do not disturb each other. A high watermark is kept once, since the last time that any handle asked for
//! it to begin anew; before that, all handles take note of it.

mod session;

pub(super) use session::forget_all;
pub use session::{
    allocate, count, create_session, free, free_session, of_handle, read, read_and_reset, reset, reset_all,
    set_all_started, start, stop, write,
};

use super::enumeration;
use super::types::{Failure, Kind, Result, Value, Verbosity};
use crate::calls::DEFERRED;
use crate::lock;
use crate::tool::types;
use crate::{consts, process};
use vmpi_shared::control::RankReport;
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::mem::sync::Ordering::Relaxed;
use vmpi_shared::monitor::{FOR_TOOL, Flow};
use vmpi_shared::sched;

/// A performance variable of this rank (or of its core).
pub struct Pvar {
    pub name: &'static str,
    pub description: &'static str,
    /// `consts::T_PVAR_CLASS_*`.
    pub class: i32,
    pub kind: Kind,
    pub enumeration: Option<usize>,
    pub verbosity: Verbosity,
    read: fn(&mut Endpoint) -> Value,
    /// A value for each peer of a communicator (of which this is the rank in the job), which the handle is bound to. Counted only while a
    /// handle is started.
    per_peer: Option<fn(&Endpoint, u32) -> u64>,
    /// Of a watermark: let it begin anew.
    rewind: Option<fn(&mut Endpoint)>,
    pub category: &'static str,
}

impl Pvar {
    /// The raw value, zero while MPI has not been up.
    pub fn read(&self) -> Value {
        let _entered = lock::enter();
        process::endpoint_if_any().map_or(self.kind.zero(), |endpoint| (self.read)(endpoint))
    }

    /// Must its handles be bound to a communicator?
    pub fn is_of_comm(&self) -> bool {
        self.per_peer.is_some()
    }

    /// The raw values, one for each of `peers` if it is of a communicator.
    fn read_all(&self, peers: &[u32]) -> Vec<Value> {
        let Some(per_peer) = self.per_peer else { return vec![self.read()] };
        let _entered = lock::enter();
        let endpoint = process::endpoint_if_any();
        peers.iter().map(|peer| Value::Count(endpoint.as_deref().map_or(0, |e| per_peer(e, *peer)))).collect()
    }

    /// A handle of it counts from now on, or no more.
    fn set_counted(&self, counted: bool) {
        if let (Some(_), Some(endpoint)) = (self.per_peer, process::endpoint_if_any()) {
            let monitor = &endpoint.node.rank(endpoint.me).monitor;
            if counted {
                monitor.fetch_add(FOR_TOOL, Relaxed);
            } else {
                monitor.fetch_sub(FOR_TOOL, Relaxed);
            }
        }
    }

    /// It is what it is: it cannot be started, stopped, reset or written.
    pub fn is_continuous(&self) -> bool {
        self.per_peer.is_none()
            && !matches!(
                self.class,
                consts::T_PVAR_CLASS_COUNTER
                    | consts::T_PVAR_CLASS_AGGREGATE
                    | consts::T_PVAR_CLASS_TIMER
                    | consts::T_PVAR_CLASS_HIGHWATERMARK
            )
    }

    fn is_watermark(&self) -> bool {
        self.rewind.is_some()
    }

    /// A watermark begins anew at the present level.
    fn rewind(&self) {
        let _entered = lock::enter();
        if let (Some(rewind), Some(endpoint)) = (self.rewind, process::endpoint_if_any()) {
            rewind(endpoint);
        }
    }
}

const SCHEDULING: &str = "vmpi_scheduling";
const MESSAGES: &str = "vmpi_messages";
const MONITORING: &str = "vmpi_monitoring";

const fn pvar(
    category: &'static str,
    name: &'static str,
    class: i32,
    kind: Kind,
    read: fn(&mut Endpoint) -> Value,
    description: &'static str,
) -> Pvar {
    Pvar {
        name,
        description,
        class,
        kind,
        enumeration: None,
        verbosity: Verbosity::User,
        read,
        per_peer: None,
        rewind: None,
        category,
    }
}

const fn timer(name: &'static str, read: fn(&mut Endpoint) -> Value, description: &'static str) -> Pvar {
    pvar(SCHEDULING, name, consts::T_PVAR_CLASS_TIMER, Kind::Seconds, read, description)
}

const fn counter(
    category: &'static str,
    name: &'static str,
    read: fn(&mut Endpoint) -> Value,
    description: &'static str,
) -> Pvar {
    pvar(category, name, consts::T_PVAR_CLASS_COUNTER, Kind::Count, read, description)
}

const fn watermark(
    name: &'static str,
    read: fn(&mut Endpoint) -> Value,
    rewind: fn(&mut Endpoint),
    description: &'static str,
) -> Pvar {
    let class = consts::T_PVAR_CLASS_HIGHWATERMARK;
    Pvar { rewind: Some(rewind), ..pvar(MESSAGES, name, class, Kind::Count, read, description) }
}

/// What went to or came from each rank of a communicator.
const fn flow(name: &'static str, class: i32, per_peer: fn(&Endpoint, u32) -> u64, description: &'static str) -> Pvar {
    Pvar { per_peer: Some(per_peer), ..pvar(MONITORING, name, class, Kind::Count, |_| Value::Count(0), description) }
}

fn messages(endpoint: &Endpoint, flow: Flow, peer: u32) -> u64 {
    endpoint.job.monitor(endpoint.me).pair(flow, peer).messages
}

fn bytes(endpoint: &Endpoint, flow: Flow, peer: u32) -> u64 {
    endpoint.job.monitor(endpoint.me).pair(flow, peer).bytes
}

const COUNT: i32 = consts::T_PVAR_CLASS_COUNTER;
const SUM: i32 = consts::T_PVAR_CLASS_AGGREGATE;

fn rank(endpoint: &Endpoint) -> RankReport {
    sched::rank_report(&endpoint.node, endpoint.me)
}

/// All of them; the index is MPI's.
pub static ALL: &[Pvar] = &[
    Pvar {
        enumeration: Some(enumeration::RUN_STATE),
        ..pvar(
            SCHEDULING,
            "vmpi_run_state",
            consts::T_PVAR_CLASS_STATE,
            Kind::Int,
            |e| Value::Int(e.node.state(e.me).word() as i32),
            "State of this rank (another thread may see it suspended).",
        )
    },
    pvar(
        SCHEDULING,
        "vmpi_ready_ranks",
        consts::T_PVAR_CLASS_LEVEL,
        Kind::Count,
        |e| Value::Count(e.node.ready_count(e.node.core_of(e.me)).into()),
        "Ranks of this rank's core that are READY.",
    ),
    counter(
        SCHEDULING,
        "vmpi_switches",
        |e| Value::Count(e.node.switches(e.me)),
        "Times that this rank was given its core.",
    ),
    counter(
        SCHEDULING,
        "vmpi_core_handoffs",
        |e| Value::Count(e.node.core(e.node.core_of(e.me)).handoffs.load(Relaxed)),
        "Times that this rank's core was given to a rank.",
    ),
    timer(
        "vmpi_time_running",
        |e| Value::Seconds(rank(e).rtime_s),
        "Time in which this rank had its core (MPIX_Rtime).",
    ),
    timer(
        "vmpi_time_ready",
        |e| Value::Seconds(rank(e).ready_s),
        "Time in which this rank could have run, and another had the core.",
    ),
    timer("vmpi_time_waiting", |e| Value::Seconds(rank(e).wait_s), "Time in which this rank waited for others."),
    timer(
        "vmpi_core_time_idle",
        |e| Value::Seconds(sched::core_report(&e.node, e.node.core_of(e.me)).idle_s),
        "Time in which no rank had this rank's core.",
    ),
    timer(
        "vmpi_core_time_handoff",
        |e| Value::Seconds(sched::core_report(&e.node, e.node.core_of(e.me)).handoff_s),
        "Time that giving this rank's core from rank to rank took.",
    ),
    counter(
        MESSAGES,
        "vmpi_messages_sent",
        |e| Value::Count(e.node.rank(e.me).sent_messages.load(Relaxed)),
        "Messages that this rank has sent, those of collectives included.",
    ),
    counter(
        MESSAGES,
        "vmpi_messages_received",
        |e| Value::Count(e.node.rank(e.me).received_messages.load(Relaxed)),
        "Messages that this rank has received.",
    ),
    pvar(
        MESSAGES,
        "vmpi_bytes_sent",
        consts::T_PVAR_CLASS_AGGREGATE,
        Kind::Count,
        |e| Value::Count(e.node.rank(e.me).sent_bytes.load(Relaxed)),
        "Bytes in these messages.",
    ),
    pvar(
        MESSAGES,
        "vmpi_bytes_received",
        consts::T_PVAR_CLASS_AGGREGATE,
        Kind::Count,
        |e| Value::Count(e.node.rank(e.me).received_bytes.load(Relaxed)),
        "Bytes in those messages.",
    ),
    counter(
        MESSAGES,
        "vmpi_copies_refused",
        |e| Value::Count(e.node.rank(e.me).copies_refused.load(Relaxed)),
        "Single copies that the kernel refused; the messages went through shared memory.",
    ),
    counter(
        MESSAGES,
        "vmpi_messages_deferred",
        |_| Value::Count(DEFERRED.load(Relaxed)),
        "Large messages that were not over when the call that waits for them returned (vmpirun --overlap).",
    ),
    pvar(
        MESSAGES,
        "vmpi_unexpected_messages",
        consts::T_PVAR_CLASS_LEVEL,
        Kind::Count,
        |e| Value::Count(e.queues().head.unexpected_count.into()),
        "Messages here that no receive has asked for.",
    ),
    pvar(
        MESSAGES,
        "vmpi_requests_live",
        consts::T_PVAR_CLASS_LEVEL,
        Kind::Count,
        |e| Value::Count(e.queues().head.slots_live.into()),
        "Posted receives and pending sends of this rank.",
    ),
    watermark(
        "vmpi_unexpected_messages_most",
        |e| Value::Count(e.queues().head.unexpected_most.into()),
        |e| e.queues().head.unexpected_most = e.queues().head.unexpected_count,
        "The most messages here at a time that no receive had asked for.",
    ),
    watermark(
        "vmpi_requests_live_most",
        |e| Value::Count(e.queues().head.slots_most.into()),
        |e| e.queues().head.slots_most = e.queues().head.slots_live,
        "The most posted receives and pending sends of this rank at a time.",
    ),
    pvar(
        MESSAGES,
        "vmpi_requests_used",
        consts::T_PVAR_CLASS_PERCENTAGE,
        Kind::Seconds,
        |e| Value::Seconds(f64::from(e.queues().head.slots_live) / f64::from(e.job.config().slots.max(1))),
        "How much of that room is used, from 0 to 1.",
    ),
    pvar(
        MESSAGES,
        "vmpi_requests_room",
        consts::T_PVAR_CLASS_SIZE,
        Kind::Count,
        |e| Value::Count(e.job.config().slots.into()),
        "Posted receives and pending sends that there is room for.",
    ),
    flow(
        "vmpi_messages_to",
        COUNT,
        |e, peer| messages(e, Flow::Message, peer),
        "Messages that the program has sent to each rank of the communicator.",
    ),
    flow("vmpi_bytes_to", SUM, |e, peer| bytes(e, Flow::Message, peer), "Bytes in these messages."),
    flow(
        "vmpi_collective_messages_to",
        COUNT,
        |e, peer| messages(e, Flow::Collective, peer),
        "Messages that collective operations have sent to each rank, and results handed out through shared memory.",
    ),
    flow("vmpi_collective_bytes_to", SUM, |e, peer| bytes(e, Flow::Collective, peer), "Bytes in these."),
    flow(
        "vmpi_collective_messages_from",
        COUNT,
        |e, peer| messages(e, Flow::Gathered, peer),
        "Values of each rank that this one has taken from shared memory to combine them.",
    ),
    flow("vmpi_collective_bytes_from", SUM, |e, peer| bytes(e, Flow::Gathered, peer), "Bytes in these."),
    flow(
        "vmpi_puts_to",
        COUNT,
        |e, peer| messages(e, Flow::Put, peer),
        "One-sided transfers to each rank: put and accumulate.",
    ),
    flow("vmpi_put_bytes_to", SUM, |e, peer| bytes(e, Flow::Put, peer), "Bytes in these."),
    flow(
        "vmpi_gets_from",
        COUNT,
        |e, peer| messages(e, Flow::Got, peer),
        "One-sided transfers from each rank: get, and the results of fetching operations.",
    ),
    flow("vmpi_get_bytes_from", SUM, |e, peer| bytes(e, Flow::Got, peer), "Bytes in these."),
    // The names under which Open MPI's monitoring has them, so that programs made for it find them.
    flow(
        "pml_monitoring_messages_count",
        consts::T_PVAR_CLASS_SIZE,
        |e, peer| messages(e, Flow::Message, peer),
        "As vmpi_messages_to, by Open MPI's name.",
    ),
    flow(
        "pml_monitoring_messages_size",
        consts::T_PVAR_CLASS_SIZE,
        |e, peer| bytes(e, Flow::Message, peer),
        "As vmpi_bytes_to, by Open MPI's name.",
    ),
];

/// The variable with this index.
///
/// # Errors
/// `T_ERR_INVALID_INDEX`.
pub fn get(index: i32) -> Result<&'static Pvar> {
    usize::try_from(index).ok().and_then(|index| ALL.get(index)).ok_or(Failure(consts::T_ERR_INVALID_INDEX))
}

/// MPI_T_pvar_get_index: the variable with this name and class.
///
/// # Errors
/// `T_ERR_INVALID_NAME`.
pub fn index_of(name: &[u8], class: i32) -> Result<usize> {
    let index = types::index_of(ALL.iter().map(|variable| variable.name), name)?;
    if ALL[index].class == class { Ok(index) } else { Err(Failure(consts::T_ERR_INVALID_NAME)) }
}
