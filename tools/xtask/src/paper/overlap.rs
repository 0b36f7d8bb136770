//! Figures 5 and 7: how much of the communication hides behind computation, by V, and by who moves large messages.

use super::{Found, Options, moment};
use crate::Result;
use crate::bench::experiment::{Axis, Experiment, Figure, Picture, Scale, show_bytes, words};
use crate::bench::picture;
use crate::bench::process::Outcome;
use crate::bench::programs::Program;
use crate::bench::report::{Report, aligned, short, wrapped};
use crate::bench::samples::{Line, Samples, parse};
use crate::bench::{Bench, circumstances, load};
use std::path::Path;

/// Milliseconds that all ranks of a node compute together in an iteration.
const COMPUTE_MS: u32 = 30;
const MOST_V: u32 = 4;
const PROGRESS: &[&str] = &["rank", "daemon"];

/// What carries the messages: the flag, in words, iterations, and how many bytes a node sends in one. The first rank's computing and the last
/// one's transfer have nothing to hide behind, and it takes the ranks a while to fall into step: an iteration or two in all, which many iterations
/// make small (emulated, 480,000 bytes, --progress rank, V=3: T_full is 1.059 times the larger part with 72 of them, 1.045 with 150).
struct Network {
    fabric: &'static str,
    /// Prefix of figures and files.
    name: &'static str,
    title: &'static str,
    iterations: u32,
    bytes: &'static [u32],
    /// Of the distribution of MPI_Waitall's times: where T_comm is about T_comp.
    even: u32,
}

const NETWORKS: &[Network] = &[
    Network {
        fabric: "emulated:100:16",
        name: "emulated",
        title: "an emulated network of 100 us and 16 MB/s",
        iterations: 200,
        bytes: &[320_000, 480_000, 720_000],
        even: 480_000,
    },
    Network {
        fabric: "tcp",
        name: "tcp",
        title: "TCP over a veth cable",
        iterations: 32,
        bytes: &[8 << 20, 16 << 20],
        even: 16 << 20,
    },
];

const fn times(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "ms", scale: Scale::Linear, rows: None, picture: Picture::Lines }
}

const fn waits(name: &'static str, title: &'static str) -> Figure {
    Figure { name, title, unit: "ms", scale: Scale::Log10, rows: None, picture: Picture::Distribution }
}

/// For the pictures: a panel for each V and each way to progress, and the distributions.
const FIGURE_5: Experiment = Experiment {
    name: "overlap",
    about: "",
    variants: &[],
    x: Axis { title: "bytes that a node sends in an iteration", show: show_bytes, scale: Scale::Linear },
    figures: &[
        times("rank_1", "--progress rank, V=1"),
        times("rank_2", "--progress rank, V=2"),
        times("rank_3", "--progress rank, V=3"),
        times("rank_4", "--progress rank, V=4"),
        times("daemon_1", "--progress daemon, V=1"),
        times("daemon_2", "--progress daemon, V=2"),
        times("daemon_3", "--progress daemon, V=3"),
        times("daemon_4", "--progress daemon, V=4"),
    ],
    judged: &[],
    bars: &[],
    runs: |_| Vec::new(),
};
const FIGURE_7: Experiment = Experiment {
    name: "waitall",
    figures: &[
        waits("waitall_rank", "a call of MPI_Waitall, --progress rank"),
        waits("waitall_daemon", "a call of MPI_Waitall, --progress daemon"),
    ],
    ..FIGURE_5
};

pub fn overlap(bench: &mut Bench, options: &Options, dir: &Path) -> Result<Found> {
    let mut text = format!(
        "\n## Figures 5 and 7: how much of the communication hides behind computation\n\n{}\n",
        wrapped(&format!(
            "Listing 4 (`tests/programs/bench/overlap.c`) on two nodes of one core each (network namespaces): in an iteration each rank computes, \
             then starts four sends and four receives, from and to the other node, and waits for all of them. All ranks of a node together compute \
             {COMPUTE_MS} ms and send so many bytes, whatever V. T_comp and T_comm are the same with one of the two only; T_full is to be the larger \
             one of them where all that can hides. With `--progress rank` a large message's handshake goes on only at scheduling points of its sender, as \
             in the paper; with `--progress daemon` (the default) the carriers of the two nodes do all of it."
        ))
    );
    let mut json = Vec::new();
    let mut wrong = Vec::new();
    for network in NETWORKS {
        let load_before = load();
        let mut samples = Samples::default();
        for round in 0..options.rounds {
            eprintln!("overlap over {}: round {} of {}, load {}", network.name, round + 1, options.rounds, load());
            for progress in PROGRESS {
                for (v, bytes) in (1..=MOST_V).flat_map(|v| network.bytes.iter().map(move |bytes| (v, *bytes))) {
                    run(bench, &mut samples, round, network, progress, (v, bytes))?;
                }
            }
        }
        let at = circumstances(options.rounds, load_before);
        text += &format!("\n### Over {}\n\n{}", network.title, aligned(&table(&samples, network)));
        for (experiment, file, head) in [
            (&FIGURE_5, "figure5", "Figure 5: time of an iteration"),
            (&FIGURE_7, "figure7", "Figure 7: time of a call of MPI_Waitall"),
        ] {
            let report = Report { experiment, samples: &samples, scope: &bench.scope, circumstances: &at };
            let shown: Vec<_> = experiment.figures.iter().filter(|f| !samples.places(f.name).is_empty()).collect();
            let name = format!("{file}-{}.svg", network.name);
            if !shown.is_empty() {
                picture::draw_figures(&report, &shown, &format!("{head}, over {}", network.title), &dir.join(&name))?;
                text += &format!("\n![{head}, over {}]({name})\n", network.title);
            }
            // All samples are in either.
            if experiment.name == FIGURE_5.name {
                json.push(report.json());
            }
        }
        samples.missing.iter().for_each(|(what, why)| text += &format!("\nNot had: {what}: {why}\n"));
        text += &moment(&at, bench);
        wrong.extend(samples.failures);
    }
    Ok(Found { text, json: json.into(), wrong })
}

fn run(
    bench: &mut Bench,
    samples: &mut Samples,
    round: usize,
    network: &Network,
    progress: &str,
    (v, bytes): (u32, u32),
) -> Result<()> {
    let system = super::system("vmpi-openmpi")?;
    let program = bench.programs.get(Program::C("bench/overlap"), system.abi)?;
    let flags = words(["--fabric", network.fabric, "--progress", progress, "-V", &v.to_string()]);
    let arguments = words([COMPUTE_MS, network.iterations, 0, bytes]);
    let finished = bench.execute_across(system, 2 * v, &flags, &program, &arguments)?;
    for line in &finished.lines {
        let Some(Line::Measured { figure, x, value, .. }) = parse(line) else { continue };
        let times = format!("{progress}_{v}");
        match figure {
            "comp" => samples.add(round, &times, x, "T_comp", value),
            "comm" => samples.add(round, &times, x, "T_comm", value),
            "full" => samples.add(round, &times, x, "T_full", value),
            "ratio" => samples.add(round, &format!("{times}_ratio"), x, "ratio", value),
            other if other == format!("waitall_{}", network.even) => {
                samples.add(round, &format!("waitall_{progress}"), x, &format!("V={v}"), value);
            }
            _ => {}
        }
    }
    let what = format!("overlap over {}, {bytes} bytes, --progress {progress}, V={v}", network.name);
    match finished.outcome {
        Outcome::Done => {}
        Outcome::Interrupted => return Err("interrupted".into()),
        Outcome::Failed(how) => samples.failures.push(format!("{what}: {how}")),
        Outcome::TooLong => {
            samples.missing.insert(what, "took too long".into());
        }
    }
    Ok(())
}

fn table(samples: &Samples, network: &Network) -> Vec<Vec<String>> {
    let mut table = vec![
        ["bytes", "--progress", "V", "T_comp, ms", "T_comm, ms", "T_full, ms", "T_full / larger"]
            .map(String::from)
            .to_vec(),
    ];
    for bytes in network.bytes {
        for progress in PROGRESS {
            for v in 1..=MOST_V {
                let times = format!("{progress}_{v}");
                let value = |figure: &str, name: &str| {
                    samples.summary(figure, u64::from(*bytes), name).map_or("-".into(), |s| short(s.median))
                };
                table.push(vec![
                    bytes.to_string(),
                    progress.to_string(),
                    v.to_string(),
                    value(&times, "T_comp"),
                    value(&times, "T_comm"),
                    value(&times, "T_full"),
                    value(&format!("{times}_ratio"), "ratio"),
                ]);
            }
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_panel_has_its_runs() {
        let panels: Vec<&str> = FIGURE_5.figures.iter().map(|figure| figure.name).collect();
        for progress in PROGRESS {
            assert!((1..=MOST_V).all(|v| panels.contains(&format!("{progress}_{v}").as_str())));
            assert!(FIGURE_7.figures.iter().any(|figure| figure.name == format!("waitall_{progress}")));
        }
        assert!(NETWORKS.iter().all(|network| network.bytes.contains(&network.even)));
    }

    #[test]
    fn the_table_says_where_there_is_nothing() {
        let mut samples = Samples::default();
        samples.add(0, "daemon_2", 480_000, "T_full", 31.5);
        let text = aligned(&table(&samples, &NETWORKS[0]));
        assert!(text.contains("| 31.5 ") && text.contains("| -"), "{text}");
    }
}
