//! What the clocks cost at each change of who runs: the paper's figures 3 and 4.

use super::experiment::{Axis, Bar, Experiment, Figure, Gives, Picture, Reference, Run, Scale, Scope};
use super::programs::Program;

/// Rows of the tables: P50, P99, P99.9.
const ROWS: Option<&[u64]> = Some(&[500, 990, 999]);

pub const EXPERIMENT: Experiment = Experiment {
    name: "clocks",
    about: "The scheduler's own clock updates (daemon/shared/src/sched/clocks.rs: settle on suspend, resume on resume) on a real node segment, each call \
            timed by itself by the time stamp counter, less the median of timing nothing. They keep the process-POV clock, the core's account and what \
            the promise of one RUNNING rank per core is checked by. Process-POV: outside of a metered section (the paper's figure 3); core-POV: \
            inside one (figure 4). Warm: again and again; cold: after memory of twice the size of the L2 cache has been written, so that \
            the descriptors come from further away.",
    variants: &[],
    x: Axis { title: "per mille of the updates", show: show_per_mille, scale: Scale::Linear },
    figures: &[
        figure("process_suspend", "process-POV clock, on suspend"),
        figure("process_resume", "process-POV clock, on resume"),
        figure("core_suspend", "core-POV clock, on suspend"),
        figure("core_resume", "core-POV clock, on resume"),
    ],
    judged: &["warm"],
    bars: &[
        bar("process_suspend", 100.0, "P99 at most 100 ns"),
        bar("process_resume", 150.0, "P99 at most 150 ns"),
        bar("core_suspend", 170.0, "P99 at most 170 ns, as the paper's figure 4"),
        bar("core_resume", 150.0, "P99 at most 150 ns, as the paper's figure 4"),
    ],
    runs,
};

fn show_per_mille(x: u64) -> String {
    if x.is_multiple_of(10) { format!("P{}", x / 10) } else { format!("P{}.{}", x / 10, x % 10) }
}

const fn figure(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "ns", scale: Scale::Log10, rows: ROWS, picture: Picture::Distribution }
}

const fn bar(figure: &'static str, ns: f64, says: &'static str) -> Bar {
    Bar { figure, from: 990, to: 990, factor: ns, reference: Reference::Absolute, says }
}

/// The program is started as it is, like a floor; it says itself what is warm and what is cold.
fn runs(scope: &Scope) -> Vec<Run> {
    let run = |system| Run {
        system,
        variant: None,
        program: Program::ClockUpdates,
        arguments: vec![scope.cpus[0].to_string()],
        ranks: 1,
        cpus: scope.cpus[..1].to_vec(),
        pin: false,
        across: false,
        series: "clock updates",
        x: 0,
        gives: Gives::Lines,
    };
    scope.floor().map(run).into_iter().collect()
}
