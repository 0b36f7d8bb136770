//! COMMMAMA (Lescouet, Brunet, Trahay, Thomas, HPCC 2020): blocking calls that do not block until their data is needed. Figures 2 and 4.

use super::{Found, Options, moment};
use crate::Result;
use crate::bench::experiment::{show_bytes, words};
use crate::bench::process::Outcome;
use crate::bench::programs::Program;
use crate::bench::report::{aligned, short, wrapped};
use crate::bench::samples::{Key, Line, Rounds, Samples, parse};
use crate::bench::system::Launch;
use crate::bench::{Bench, circumstances, load};
use serde_json::json;

/// 4 KiB to 64 MiB, and 512 KiB: on the emulated network a round trip of them takes as long as 2 x 2,000 us of computation, as the paper's of 1 MiB.
const BYTES: &[u64] = &[4 << 10, 16 << 10, 64 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// Microseconds that each of the two computations of a round trip takes.
const COMPUTE_US: &[u64] = &[200, 2_000, 20_000];
const ITERATIONS: u32 = 100;
/// What is measured of them to see whether it works at all.
const BRIEF_BYTES: &[u64] = &[64 << 10, 512 << 10, 1 << 20, 4 << 20];
const BRIEF_COMPUTE_US: &[u64] = &[2_000];

/// What is measured.
struct Extent {
    networks: &'static [Network],
    bytes: &'static [u64],
    compute_us: &'static [u64],
}

impl Extent {
    fn of(options: &Options) -> Extent {
        match options.brief {
            true => Extent { networks: &NETWORKS[..1], bytes: BRIEF_BYTES, compute_us: BRIEF_COMPUTE_US },
            false => Extent { networks: NETWORKS, bytes: BYTES, compute_us: COMPUTE_US },
        }
    }
}

/// What carries the messages; `flags`: vmpirun's. `None`: one node.
struct Network {
    name: &'static str,
    title: &'static str,
    fabric: Option<&'static str>,
    /// Open MPI can use it.
    peers: bool,
}

const NETWORKS: &[Network] = &[
    Network {
        name: "emulated",
        title: "an emulated network of 20 us and 250 MB/s between two nodes of one core each",
        fabric: Some("emulated:20:250"),
        peers: false,
    },
    Network {
        name: "tcp",
        title: "TCP over a veth cable between two nodes of one core each",
        fabric: Some("tcp"),
        peers: true,
    },
    Network { name: "node", title: "one node, two cores", fabric: None, peers: true },
];

/// Who plays: ranks per core, and how.
struct Player {
    name: &'static str,
    system: &'static str,
    v: u32,
    overlap: &'static str,
}

const PLAYERS: &[Player] = &[
    Player { name: "off", system: "vmpi-openmpi", v: 1, overlap: "off" },
    Player { name: "on", system: "vmpi-openmpi", v: 1, overlap: "on" },
    Player { name: "auto", system: "vmpi-openmpi", v: 1, overlap: "auto" },
    Player { name: "V=2, off", system: "vmpi-openmpi", v: 2, overlap: "off" },
    Player { name: "V=2, on", system: "vmpi-openmpi", v: 2, overlap: "on" },
    Player { name: "V=3, off", system: "vmpi-openmpi", v: 3, overlap: "off" },
    Player { name: "V=3, on", system: "vmpi-openmpi", v: 3, overlap: "on" },
    Player { name: "Open MPI", system: "openmpi4-yield", v: 1, overlap: "" },
];

pub fn blocking(bench: &mut Bench, options: &Options) -> Result<Found> {
    let load_before = load();
    let (mut samples, mut text) = (Samples::default(), head());
    let extent = Extent::of(options);
    for round in 0..options.rounds {
        for network in extent.networks {
            eprintln!("blocking calls, {}: round {} of {}, load {}", network.name, round + 1, options.rounds, load());
            let plays = |player: &&Player| network.peers || player.system.starts_with("vmpi");
            for player in PLAYERS.iter().filter(plays) {
                for us in [0].iter().chain(extent.compute_us) {
                    run(bench, &mut samples, round, network, player, extent.bytes, *us)?;
                }
            }
        }
    }
    let at = circumstances(options.rounds, load_before);
    for network in extent.networks {
        text += &format!("\n### {}\n\n", capital(network.title));
        text += &format!(
            "Figure 2: a round trip without computation, us.\n\n{}\n",
            aligned(&figure_2(&samples, network, extent.bytes))
        );
        for us in extent.compute_us {
            text += &format!(
                "\nFigure 4: with 2 x {us} us of computation, us. {}\n\n{}",
                equal_parts(&samples, network, extent.bytes, *us),
                aligned(&figure_4(&samples, network, extent.bytes, *us))
            );
        }
    }
    samples.missing.iter().for_each(|(what, why)| text += &format!("\nNot had: {what}: {why}\n"));
    text += &moment(&at, bench);
    let row = |(key, rounds): (&Key, &Rounds)| json!({ "what": key.figure, "bytes": key.x, "player": key.system, "us": rounds.values().collect::<Vec<_>>() });
    let json = json!({
        "schema_version": 1, "rounds": at.rounds, "commit": at.commit, "cpu": at.cpu, "kernel": at.kernel,
        "load_average_before": at.load_before, "load_average_after": at.load_after,
        "rows": samples.iter().map(row).collect::<Vec<_>>(), "missing": samples.missing,
    });
    Ok(Found { text, json, wrong: samples.failures })
}

fn head() -> String {
    let about = "Lescouet, Brunet, Trahay, Thomas: *Transparent overlapping of blocking communication in MPI applications* (HPCC 2020), with \
        `vmpirun --overlap`. In a round trip (`tests/programs/bench/blocking.c`, one binary for all columns) rank 0 sends, computes, writes a byte of \
        the buffer, receives, computes, and reads one; rank 1 receives first. Optimal is the larger one of what is computed and of the round trip \
        without computation and without overlap. With V ranks per core as many pairs play, each with its part of the bytes and of the computation. The paper's best \
        speed-ups (two nodes with InfiniBand of 56 Gb/s, Open MPI 3.1.3) are 42 % with 2 x 200 us, 73 % with 2 x 2,000 us (1 MiB), 50 % with 2 x 20,000 us.";
    format!("\n## COMMMAMA: blocking calls that do not block until their data is needed\n\n{}", wrapped(about))
}

fn capital(text: &str) -> String {
    text[..1].to_uppercase() + &text[1..]
}

fn figure(network: &Network, us: u64) -> String {
    format!("{}_{us}", network.name)
}

fn run(
    bench: &mut Bench,
    samples: &mut Samples,
    round: usize,
    network: &Network,
    player: &Player,
    bytes: &[u64],
    us: u64,
) -> Result<()> {
    let system = super::system(player.system)?;
    let program = bench.programs.get(Program::C("bench/blocking"), system.abi)?;
    let arguments: Vec<String> =
        words([ITERATIONS.to_string(), us.to_string()]).into_iter().chain(bytes.iter().map(u64::to_string)).collect();
    let v = player.v.to_string();
    let finished = match network.fabric {
        Some(fabric) => {
            let flags = words(["--fabric", fabric, "--overlap", player.overlap, "-V", &v]);
            bench.execute_across(system, 2 * player.v, &flags, &program, &arguments)?
        }
        None => {
            let cpus = bench.scope.cpus.get(..2).ok_or("there are not enough CPUs")?.to_vec();
            let flags = ["--overlap", player.overlap, "-V", &v];
            let launch = Launch { ranks: 2 * player.v, cpus: &cpus, pin: true, flags: &flags };
            bench.execute(system, &launch, &program, &arguments, None)?
        }
    };
    for line in &finished.lines {
        if let Some(Line::Measured { figure: "round", x, value, .. }) = parse(line) {
            samples.add(round, &figure(network, us), x, player.name, value);
        }
    }
    let what = format!("{}, {}, 2 x {us} us", network.name, player.name);
    match finished.outcome {
        Outcome::Done => {}
        Outcome::Interrupted => return Err("interrupted".into()),
        Outcome::Failed(how) if player.system.starts_with("vmpi") => samples.failures.push(format!("{what}: {how}")),
        Outcome::Failed(why) => drop(samples.missing.insert(what, why)),
        Outcome::TooLong => drop(samples.missing.insert(what, "took too long".into())),
    }
    Ok(())
}

fn median(samples: &Samples, network: &Network, us: u64, bytes: u64, player: &str) -> Option<f64> {
    samples.summary(&figure(network, us), bytes, player).map(|summary| summary.median)
}

fn cell(value: Option<f64>) -> String {
    value.map_or("-".into(), short)
}

fn figure_2(samples: &Samples, network: &Network, bytes: &[u64]) -> Vec<Vec<String>> {
    let mut table = vec![["bytes", "off", "on", "on / off", "auto", "Open MPI"].map(String::from).to_vec()];
    for bytes in bytes {
        let value = |player| median(samples, network, 0, *bytes, player);
        let cost = value("on").zip(value("off")).map(|(on, off)| on / off);
        table.push(vec![
            show_bytes(*bytes),
            cell(value("off")),
            cell(value("on")),
            cost.map_or("-".into(), |cost| format!("{cost:.3}")),
            cell(value("auto")),
            cell(value("Open MPI")),
        ]);
    }
    table
}

/// Where computation and communication are most nearly equal, and the best speed-up of all sizes.
fn equal_parts(samples: &Samples, network: &Network, bytes: &[u64], us: u64) -> String {
    let computed = 2.0 * us as f64;
    let parts = |bytes: &u64| {
        let ratio = median(samples, network, 0, *bytes, "off")? / computed;
        Some((ratio, *bytes, speed_up(samples, network, us, *bytes)?))
    };
    let found: Vec<(f64, u64, f64)> = bytes.iter().filter_map(parts).collect();
    let equal = found.iter().min_by(|one, other| one.0.ln().abs().total_cmp(&other.0.ln().abs()));
    let best = found.iter().max_by(|one, other| one.2.total_cmp(&other.2));
    let Some(((ratio, equal, gained), (_, at, most))) = equal.zip(best) else { return String::new() };
    format!(
        "Most nearly equal parts: {} (communication {ratio:.2} of the computation), speed-up {gained:.0} %; best: {most:.0} % at {}.",
        show_bytes(*equal),
        show_bytes(*at)
    )
}

/// Of `on` against `off`, percent.
fn speed_up(samples: &Samples, network: &Network, us: u64, bytes: u64) -> Option<f64> {
    let value = |player| median(samples, network, us, bytes, player);
    value("on").zip(value("off")).map(|(on, off)| (off / on - 1.0) * 100.0)
}

fn figure_4(samples: &Samples, network: &Network, bytes: &[u64], us: u64) -> Vec<Vec<String>> {
    let mut table = vec![
        [
            "bytes",
            "optimal",
            "off",
            "on",
            "on / optimal",
            "speed-up",
            "auto",
            "V=2, off",
            "V=2, on",
            "V=3, off",
            "V=3, on",
            "Open MPI",
        ]
        .map(String::from)
        .to_vec(),
    ];
    for bytes in bytes {
        let value = |player| median(samples, network, us, *bytes, player);
        let optimal = median(samples, network, 0, *bytes, "off").map(|transfer| transfer.max(2.0 * us as f64));
        let ratio = value("on").zip(optimal).map(|(on, optimal)| on / optimal);
        let gained = speed_up(samples, network, us, *bytes);
        let mut row = vec![show_bytes(*bytes), cell(optimal), cell(value("off")), cell(value("on"))];
        row.push(ratio.map_or("-".into(), |ratio| format!("{ratio:.3}")));
        row.push(gained.map_or("-".into(), |gained| format!("{gained:.0} %")));
        row.extend(
            ["auto", "V=2, off", "V=2, on", "V=3, off", "V=3, on", "Open MPI"].map(|player| cell(value(player))),
        );
        table.push(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_parts_are_found_where_the_two_are_nearest() {
        let mut samples = Samples::default();
        let network = &NETWORKS[0];
        for (bytes, alone, off, on) in
            [(256, 2000.0, 6000.0, 4400.0), (512, 4200.0, 8200.0, 4700.0), (1024, 9000.0, 13000.0, 9000.0)]
        {
            for (us, player, value) in [(0, "off", alone), (2000, "off", off), (2000, "on", on)] {
                samples.add(0, &figure(network, us), bytes, player, value);
            }
        }
        let said = equal_parts(&samples, network, &[256, 512, 1024], 2000);
        let at = show_bytes(512);
        assert!(said.contains(&format!("equal parts: {at} (communication 1.05 of")), "{said}");
        assert!(said.contains("speed-up 74 %; best: 74 %"), "{said}");
        assert_eq!(equal_parts(&samples, network, &[4096], 2000), "");
    }

    #[test]
    fn optimal_is_the_larger_part_and_gains_are_of_what_was() {
        let mut samples = Samples::default();
        for (us, player, value) in [(0, "off", 3000.0), (2000, "off", 7000.0), (2000, "on", 4200.0)] {
            samples.add(0, &figure(&NETWORKS[0], us), 1 << 20, player, value);
        }
        let row = figure_4(&samples, &NETWORKS[0], BYTES, 2000)
            .into_iter()
            .find(|row| row[0] == show_bytes(1 << 20))
            .unwrap();
        assert_eq!((row[4].as_str(), row[5].as_str(), row[6].as_str()), ("1.050", "67 %", "-"));
    }
}
