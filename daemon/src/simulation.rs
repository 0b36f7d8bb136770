//! A simulated job's virtual time: made here, gone on with by its ranks.

use std::cell::Cell;
use vmpi_machine::{Flows, Image, Machine};
use vmpi_shared::clock::Moment;
use vmpi_shared::control::{Simulation, SimulationReport, Spread3};
use vmpi_shared::job::JobConfig;
use vmpi_shared::matching::envelope::INLINE_BYTES;
use vmpi_shared::matching::queues::CROWDED;
use vmpi_shared::mem::segment::SegmentError;
use vmpi_shared::mem::sync::Ordering::Relaxed;
use vmpi_shared::simulate::{SimulationConfig, SimulationSegment};
use vmpi_shared::trace::{Span, TraceCore, TraceMap, TraceRank};

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("cannot simulate: {0}")]
    Refused(String),
    #[error("cannot make the memory of virtual time: {0}")]
    Segment(SegmentError),
}

/// Make the virtual time of a job of `ranks` ranks.
///
/// # Errors
/// The machine's file, or that it is too small, or that it has what is not simulated.
pub fn create(simulation: &Simulation, ranks: u32) -> Result<SimulationSegment, Problem> {
    let refused = |why: String| Problem::Refused(why);
    let mut machine = Machine::load(&simulation.machine).map_err(|problem| refused(problem.to_string()))?;
    simulation.changes.iter().try_for_each(|said| machine.change(said)).map_err(refused)?;
    let bytes = machine.image();
    // Aligned as the segment will be.
    let mut words = vec![0u64; bytes.len().div_ceil(8)];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        let mut eight = [0; 8];
        eight[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_ne_bytes(eight);
    }
    let aligned: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let config = |(lookahead, by_messages), flow_bytes, begin_flows| SimulationConfig {
        ranks,
        image: &aligned,
        lookahead,
        compute: simulation.compute,
        by_messages,
        flow_bytes,
        begin_flows,
    };
    let segment = SimulationSegment::create(&config((1, true), 0, &|_: &mut [u8]| {})).map_err(Problem::Segment)?;
    let image = Image::new(segment.image()).map_err(|error| refused(error.to_string()))?;
    if ranks > image.place_count() {
        return Err(refused(format!(
            "{ranks} ranks are more than the simulated machine {} has cores ({}); each rank of a simulated job has a core of its own",
            machine.name(),
            image.place_count()
        )));
    }
    // With SMPI's model ranks know of each other's messages at once.
    let eager_waits = !image.rules().rendezvous_handshake;
    let lookahead = if eager_waits { 1 } else { image.least_latency(ranks).max(1) };
    // There, messages of collectives leave when they are received, as all do: ranks send them.
    let rules = (lookahead, simulation.by_messages || eager_waits);
    if image.link_count() == 0 {
        return SimulationSegment::create(&config(rules, 0, &|_: &mut [u8]| {})).map_err(Problem::Segment);
    }
    // As many as there is room for events, but for those of very many ranks; what is not used takes no memory.
    let most = ranks.saturating_mul(512).clamp(1 << 14, 1 << 20);
    let bytes = Flows::memory_for(&image, most).next_multiple_of(8) as u64;
    let begun = Cell::new(true);
    let begin = |memory: &mut [u8]| begun.set(Flows::create(memory, &image, most).is_ok());
    let made = SimulationSegment::create(&config(rules, bytes, &begin)).map_err(Problem::Segment)?;
    match begun.get() {
        true => Ok(made),
        false => Err(refused(format!("the links of the machine {} cannot be set up", machine.name()))),
    }
}

/// How messages go in a simulated job, whatever suits this machine: what is announced follows from the simulated one (`p2p::send`), and only the owner of memory
/// touches it.
pub fn config(config: &JobConfig) -> JobConfig {
    let inline = INLINE_BYTES as u32;
    JobConfig {
        eager_limit_bytes: inline,
        near_eager_limit_bytes: inline,
        open_eager_limit_bytes: u32::MAX,
        lend_queues: 0,
        unexpected_limit: CROWDED,
        ..*config
    }
}

/// CLOCK_REALTIME at the beginning of virtual time, as ranks are told of it (`vmpi_core::simulate::clocks`).
const EPOCH_NS: u64 = 1_577_836_800_000_000_000;

/// A recording in virtual time: ticks are picoseconds from 1 on, and each rank has a core of its own.
pub fn in_virtual_time(map: TraceMap, segment: &SimulationSegment) -> TraceMap {
    let at = |rank: u32| segment.rank(rank).clock.load(Relaxed).saturating_add(1);
    let until = (0..segment.ranks()).map(at).max().unwrap_or(1);
    let ranks = map.ranks.into_iter().zip(0..segment.ranks()).map(|(stand, rank)| {
        let over = Some(at(rank));
        let life = Some(Span { born: 1, core: rank, entered: Some(1), left: over, over });
        TraceRank { core: rank, t: at(rank), ready_at: 0, given: Vec::new(), life, ..stand }
    });
    TraceMap {
        since: 1,
        until,
        ticks_per_second: 1e12,
        boottime_ns: until / 1000,
        realtime_ns: EPOCH_NS + until / 1000,
        began: Moment { ticks: 1, boottime_ns: 0, within_ns: 0 },
        within_ns: 0,
        ranks_stay: true,
        ends_at: 0,
        cores: (0..segment.ranks()).map(|cpu| TraceCore { cpu, withheld_at: 0 }).collect(),
        ranks: ranks.collect(),
        ..map
    }
}

/// What has become of virtual time so far.
pub fn report(segment: &SimulationSegment, simulation: &Simulation) -> SimulationReport {
    let ranks = 0..segment.ranks();
    let seconds = |picoseconds: u64| picoseconds as f64 * 1e-12;
    let spread = |of: &dyn Fn(u32) -> u64| {
        let all: Vec<u64> = ranks.clone().map(of).collect();
        Spread3 {
            min_s: seconds(all.iter().copied().min().unwrap_or(0)),
            mean_s: all.iter().map(|time| seconds(*time)).sum::<f64>() / all.len().max(1) as f64,
            max_s: seconds(all.iter().copied().max().unwrap_or(0)),
        }
    };
    let clock = |rank: u32| segment.rank(rank).clock.load(Relaxed);
    let events = segment.events();
    SimulationReport {
        machine: [std::slice::from_ref(&simulation.machine), &simulation.changes[..]].concat().join(", "),
        predicted_s: seconds(ranks.clone().map(clock).max().unwrap_or(0)),
        computing: spread(&|rank| segment.rank(rank).computed.load(Relaxed)),
        sending: spread(&|rank| segment.rank(rank).sent.load(Relaxed)),
        waiting: spread(&|rank| segment.rank(rank).waited.load(Relaxed)),
        messages: ranks.clone().map(|rank| segment.rank(rank).messages.load(Relaxed)).sum(),
        events,
        rounds: segment.rounds(),
    }
}
