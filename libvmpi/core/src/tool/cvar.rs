//! Control variables: what the runtime is set to (MPI 4.1 section 15.3.6).

use super::enumeration;
use super::types::{Failure, Kind, Result, Value, Verbosity};
use crate::consts;
use crate::lock;
use crate::process;
use crate::tool::types;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use vmpi_shared::control::{Check, Overlap};
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::matching::queues::CROWDED;
use vmpi_shared::matching::queues::LEAST_UNEXPECTED_LIMIT;
use vmpi_shared::mem::chunks::CHUNK_BYTES;
use vmpi_shared::mem::slab::{LARGEST_BYTES, PART_BYTES};

/// A control variable.
pub struct Cvar {
    pub name: &'static str,
    pub description: &'static str,
    pub kind: Kind,
    pub enumeration: Option<usize>,
    pub verbosity: Verbosity,
    read: fn(&Endpoint) -> Value,
    /// False: the value is not possible.
    write: Option<fn(&mut Endpoint, Value) -> bool>,
    pub category: &'static str,
}

impl Cvar {
    /// Its value now; zero while MPI has not been up.
    pub fn read(&self) -> Value {
        let _entered = lock::enter();
        process::endpoint_if_any().map_or(self.kind.zero(), |endpoint| (self.read)(endpoint))
    }

    /// `consts::T_SCOPE_*`: what is fixed for the job, or this rank's own.
    pub fn scope(&self) -> i32 {
        if self.write.is_some() { consts::T_SCOPE_LOCAL } else { consts::T_SCOPE_CONSTANT }
    }
}

const SCHEDULING: &str = "vmpi_scheduling";
const MESSAGES: &str = "vmpi_messages";

const fn fixed(
    category: &'static str,
    name: &'static str,
    kind: Kind,
    enumeration: Option<usize>,
    read: fn(&Endpoint) -> Value,
    description: &'static str,
) -> Cvar {
    Cvar { name, description, kind, enumeration, verbosity: Verbosity::User, read, write: None, category }
}

const fn tunable(
    category: &'static str,
    name: &'static str,
    read: fn(&Endpoint) -> Value,
    write: fn(&mut Endpoint, Value) -> bool,
    description: &'static str,
) -> Cvar {
    let (kind, verbosity, write) = (Kind::Count, Verbosity::Tuner, Some(write));
    Cvar { name, description, kind, enumeration: None, verbosity, read, write, category }
}

/// All of them; the index is MPI's.
pub static ALL: &[Cvar] = &[
    fixed(
        SCHEDULING,
        "vmpi_v",
        Kind::Int,
        None,
        |e| Value::Int(e.node.header().v as i32),
        "Ranks per core (vmpirun -V).",
    ),
    fixed(
        SCHEDULING,
        "vmpi_cores",
        Kind::Int,
        None,
        |e| Value::Int(e.node.header().cores as i32),
        "Cores of the job on this node.",
    ),
    fixed(
        SCHEDULING,
        "vmpi_ranks",
        Kind::Int,
        None,
        |e| Value::Int(e.node.header().ranks as i32),
        "Ranks of the job on this node.",
    ),
    fixed(
        SCHEDULING,
        "vmpi_policy",
        Kind::Int,
        Some(enumeration::POLICY),
        |e| Value::Int(e.node.header().policy as i32),
        "Which READY rank gets a core next (vmpirun --policy).",
    ),
    fixed(
        SCHEDULING,
        "vmpi_on_block",
        Kind::Int,
        Some(enumeration::ON_BLOCK),
        |e| Value::Int(i32::from(e.node.header().keep_on_block != 0)),
        "Does a rank asleep in the kernel outside MPI give up its core (vmpirun --on-block)?",
    ),
    fixed(
        SCHEDULING,
        "vmpi_wtime",
        Kind::Int,
        Some(enumeration::WTIME),
        |e| Value::Int(i32::from(e.node.header().wtime_rank != 0)),
        "What MPI_Wtime counts (vmpirun --wtime).",
    ),
    tunable(
        SCHEDULING,
        "vmpi_spin_ns",
        |e| Value::Count((e.node.seconds(e.node.header().spin_ticks) * 1e9).round() as u64),
        |e, value| {
            let Value::Count(ns) = value else { return false };
            let ticks = ns as f64 * 1e-9 * e.node.header().ticks_per_second;
            if ns > MOST_SPIN_NS {
                return false;
            }
            e.node.header_mut().spin_ticks = ticks.round() as u64;
            true
        },
        "Nanoseconds that this rank, the last one to suspend on its core, watches for work before it sleeps (at most a second).",
    ),
    tunable(
        SCHEDULING,
        "vmpi_warm_yields",
        |e| Value::Count(e.node.header().warm_yields.into()),
        |e, value| set(&mut e.node.header_mut().warm_yields, value, 0..=MOST_YIELDS),
        "sched_yield calls of this rank after it has passed its core on, before it sleeps (at most 100000).",
    ),
    fixed(
        MESSAGES,
        "vmpi_overlap",
        Kind::Int,
        Some(enumeration::OVERLAP),
        |_| Value::Int(Overlap::of_environment().unwrap_or(Overlap::Off) as i32),
        "Do blocking calls return before large messages are over, if they can (vmpirun --overlap)?",
    ),
    fixed(
        MESSAGES,
        "vmpi_check",
        Kind::Int,
        Some(enumeration::CHECK),
        |_| Value::Int(Check::of_environment().unwrap_or(Check::Off) as i32),
        "How much of the program's use of MPI is checked (vmpirun --check)?",
    ),
    tunable(
        MESSAGES,
        "vmpi_eager_limit_bytes",
        |e| Value::Count(e.job.config().eager_limit_bytes.into()),
        |e, value| set(&mut e.job.config_mut().eager_limit_bytes, value, 0..=PART_BYTES),
        "Messages that this rank sends to ranks of its node of up to so many bytes are copied through shared memory (at most 65536).",
    ),
    tunable(
        MESSAGES,
        "vmpi_near_eager_limit_bytes",
        |e| Value::Count(e.job.config().near_eager_limit_bytes.into()),
        |e, value| set(&mut e.job.config_mut().near_eager_limit_bytes, value, 0..=LARGEST_BYTES),
        "The same for ranks of its core, where it is more than vmpi_eager_limit_bytes (at most 524288).",
    ),
    tunable(
        MESSAGES,
        "vmpi_open_eager_limit_bytes",
        |e| Value::Count(e.job.config().open_eager_limit_bytes.into()),
        |e, value| set(&mut e.job.config_mut().open_eager_limit_bytes, value, 0..=LARGEST_BYTES),
        "The same for messages out of memory that is laid open, where it is less (VMPI_MAP_MEMORY; at most 524288).",
    ),
    tunable(
        MESSAGES,
        "vmpi_far_eager_limit_bytes",
        |e| Value::Count(e.job.config().far_eager_limit_bytes.into()),
        |e, value| set(&mut e.job.config_mut().far_eager_limit_bytes, value, 0..=PART_BYTES),
        "Messages that this rank sends to other nodes of up to so many bytes go without being asked for first (at most 65536).",
    ),
    tunable(
        MESSAGES,
        "vmpi_unexpected_limit",
        |e| Value::Count(e.job.config().unexpected_limit.into()),
        |e, value| {
            const { assert!(LEAST_UNEXPECTED_LIMIT == 64 && CROWDED == 4_294_967_295, "the description says so") };
            set(&mut e.job.config_mut().unexpected_limit, value, LEAST_UNEXPECTED_LIMIT.into()..=CROWDED.into())
        },
        "This rank's sends to a receiver that has so many unexpected messages (at least 64) wait until theirs is matched; 4294967295: only where memory ends.",
    ),
    fixed(
        MESSAGES,
        "vmpi_unexpected_bytes",
        Kind::Count,
        None,
        |e| Value::Count(u64::from(e.job.config().chunks) * CHUNK_BYTES),
        "Memory for unexpected messages of the job on this node, beyond 1024 of each rank (VMPI_UNEXPECTED_BYTES).",
    ),
    fixed(
        MESSAGES,
        "vmpi_single_copy",
        Kind::Int,
        Some(enumeration::SWITCH),
        |e| Value::Int(i32::from(e.job.config().single_copy != 0)),
        "Are large messages copied once, from process to process (VMPI_SINGLE_COPY)?",
    ),
    fixed(
        MESSAGES,
        "vmpi_strong_progress",
        Kind::Int,
        Some(enumeration::SWITCH),
        |e| Value::Int(i32::from(e.job.config().lend_queues != 0)),
        "Do others match messages for a rank while it computes (VMPI_STRONG_PROGRESS)?",
    ),
    fixed(
        MESSAGES,
        "vmpi_inbox_cells",
        Kind::Count,
        None,
        |e| Value::Count(e.job.config().inbox_cells.into()),
        "Envelopes that a rank's inbox holds.",
    ),
    fixed(
        MESSAGES,
        "vmpi_slab_bytes",
        Kind::Count,
        None,
        |e| Value::Count(e.job.config().slab_bytes),
        "Shared memory for the eager messages that a rank has under way.",
    ),
    fixed(
        MESSAGES,
        "vmpi_collective_cells",
        Kind::Count,
        None,
        |e| Value::Count(e.job.config().cells.into()),
        "Communicators of the job that can have a cell for collectives through shared memory.",
    ),
    fixed(MESSAGES, "vmpi_version", Kind::Text, None, |_| Value::Text(env!("CARGO_PKG_VERSION")), "Version of vmpi."),
];

const MOST_SPIN_NS: u64 = 1_000_000_000;
const MOST_YIELDS: u64 = 100_000;
// Descriptions name these.
const _: () = assert!(PART_BYTES == 65536 && LARGEST_BYTES == 524_288);

/// Set `to`, if the value is a count within these bounds.
fn set(to: &mut u32, value: Value, bounds: RangeInclusive<u64>) -> bool {
    let Value::Count(count) = value else { return false };
    let fits = bounds.contains(&count);
    if fits {
        *to = count as u32;
    }
    fits
}

/// The variable with this index.
///
/// # Errors
/// `T_ERR_INVALID_INDEX`.
pub fn get(index: i32) -> Result<&'static Cvar> {
    usize::try_from(index).ok().and_then(|index| ALL.get(index)).ok_or(Failure(consts::T_ERR_INVALID_INDEX))
}

/// MPI_T_cvar_get_index.
///
/// # Errors
/// `T_ERR_INVALID_NAME`.
pub fn index_of(name: &[u8]) -> Result<usize> {
    types::index_of(ALL.iter().map(|variable| variable.name), name)
}

/// Handles, from 1; the numbers are not used again.
struct Handles {
    last: usize,
    variables: BTreeMap<usize, i32>,
}

static HANDLES: Mutex<Handles> = Mutex::new(Handles { last: 0, variables: BTreeMap::new() });

pub(super) fn forget_all() {
    HANDLES.lock().unwrap().variables.clear();
}

/// MPI_T_cvar_handle_alloc.
///
/// # Errors
/// `T_ERR_INVALID_INDEX`.
pub fn allocate(index: i32) -> Result<usize> {
    get(index)?;
    let handles = &mut *HANDLES.lock().unwrap();
    handles.last += 1;
    handles.variables.insert(handles.last, index);
    Ok(handles.last)
}

/// MPI_T_cvar_handle_free.
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`.
pub fn free(handle: usize) -> Result<()> {
    let removed = HANDLES.lock().unwrap().variables.remove(&handle);
    removed.map(drop).ok_or(Failure(consts::T_ERR_INVALID_HANDLE))
}

/// The variable of a handle.
///
/// # Errors
/// `T_ERR_INVALID_HANDLE`.
pub fn of_handle(handle: usize) -> Result<&'static Cvar> {
    let index = HANDLES.lock().unwrap().variables.get(&handle).copied();
    get(index.ok_or(Failure(consts::T_ERR_INVALID_HANDLE))?)
}

/// MPI_T_cvar_write; from now on the value is in force for this rank.
///
/// # Errors
/// `T_ERR_CVAR_SET_NEVER` for a fixed one, `T_ERR_CVAR_SET_NOT_NOW` before MPI is up, `T_ERR_INVALID` for a value
/// out of range.
pub fn write(variable: &Cvar, value: Value) -> Result<()> {
    let write = variable.write.ok_or(Failure(consts::T_ERR_CVAR_SET_NEVER))?;
    let _entered = lock::enter();
    let endpoint = process::endpoint_if_any().ok_or(Failure(consts::T_ERR_CVAR_SET_NOT_NOW))?;
    if write(endpoint, value) { Ok(()) } else { Err(Failure(consts::T_ERR_INVALID)) }
}
