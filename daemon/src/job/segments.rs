//! What a job's two segments are made from.

use vmpi_shared::control::{JobSpec, env};
use vmpi_shared::job::JobConfig;
use vmpi_shared::mem::bell::Bell;
use vmpi_shared::node::{NodeConfig, NodeSegment, Pids, recording};

use crate::eager_limits::{self, Sharing};
use crate::job::{Place, SubmitError};

/// Does a large message to another node move only at its sender's scheduling points?
fn has_progress_by_rank(spec: &JobSpec) -> bool {
    spec.nodes.as_ref().is_some_and(|nodes| nodes.progress_by_rank)
}

/// The segment about time, for so many ranks.
pub(super) fn node_segment(id: u32, spec: &JobSpec, capacity: u32, place: &Place) -> Result<NodeSegment, SubmitError> {
    let mut node = NodeSegment::create(&NodeConfig {
        job: id,
        ranks: capacity,
        v: spec.v,
        cpus: spec.all_cpus().collect(),
        placement: spec.placement.clone(),
        policy: spec.policy,
        balance: spec.balance,
        own_cores: spec.cpus.len() as u32,
        bind: spec.bind,
        on_block: spec.on_block,
        wtime: spec.wtime,
        quantum_ms: spec.quantum_ms,
        recovery: spec.recovery,
        answers_first: has_progress_by_rank(spec),
        patience: place.patience,
    })?;
    node.set_pids(Pids::create(capacity)?);
    node.set_on_crash(spec.on_crash);
    node.set_monitored(spec.monitor);
    recording::switch(&node, spec.trace);
    node.set_bell(Bell::new().map_err(SubmitError::Bell)?);
    Ok(node)
}

/// What the segment about messages is made from; `room`: what there is room for.
pub(super) fn job_config(spec: &JobSpec, room: &JobConfig, place: &Place) -> JobConfig {
    let by_rank = has_progress_by_rank(spec);
    let refused = |name| spec.apps.iter().any(|app| app.env.iter().any(|(n, v)| n == name && v == "0"));
    let calibration = &place.calibration;
    let sharing = Sharing {
        v: spec.v,
        shared: (0..spec.ranks).filter(|rank| spec.is_local(*rank)).count() > spec.cpus.len(),
        cache_bytes: eager_limits::cache_bytes(&spec.cpus),
    };
    let far = if by_rank { eager_limits::far_by_rank_bytes(calibration) } else { room.far_eager_limit_bytes };
    JobConfig {
        eager_limit_bytes: eager_limits::apart_bytes(calibration, &sharing, place.hand_over),
        near_eager_limit_bytes: eager_limits::near_bytes(calibration, &sharing),
        open_eager_limit_bytes: eager_limits::open_bytes(calibration, &sharing, place.hand_over),
        far_eager_limit_bytes: far,
        single_copy: u32::from(!refused(env::SINGLE_COPY)),
        lend_queues: u32::from(!refused(env::STRONG_PROGRESS) && !by_rank),
        ..*room
    }
}
