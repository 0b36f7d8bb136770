//! SimGrid's SMPI beside vmpi-machine: the same messages on the same platform file take the same virtual time.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use vmpi_machine::{Flows, Image, Machine};
use vmpi_tests::job::Vmpirun;
use vmpi_tests::place::top;
use vmpi_tests::scratch::Scratch;

/// Messages that all leave at time 0: from, to.
fn messages(pattern: &str, ranks: u32) -> Vec<(u32, u32)> {
    let side = ranks.isqrt();
    let neighbours = |rank: u32| {
        let (x, y) = (rank % side, rank / side);
        let next = [((x + 1) % side, y), ((x + side - 1) % side, y), (x, (y + 1) % side), (x, (y + side - 1) % side)];
        next.map(|(x, y)| y * side + x)
    };
    match pattern {
        "pingpong" => vec![(0, 1)],
        "opposite" => vec![(0, 1), (1, 0)],
        "ring" => (0..ranks).map(|rank| (rank, (rank + 1) % ranks)).collect(),
        "alltoall" => (0..ranks).flat_map(|a| (0..ranks).filter(move |b| a != *b).map(move |b| (a, b))).collect(),
        "stencil" => (0..side * side).flat_map(|rank| neighbours(rank).map(|to| (rank, to))).collect(),
        _ => panic!("{pattern}"),
    }
}

/// When the last of them is there, in us.
fn ours(machine: &Machine, pattern: &str, ranks: u32, bytes: u64) -> f64 {
    let words = machine.image_words();
    let image = Image::from_words(&words).expect("it was just made");
    let all = messages(pattern, ranks);
    let mut memory = vec![0_u64; Flows::memory_for(&image, all.len() as u32).div_ceil(8)];
    let mut flows = Flows::create_in_words(&mut memory, &image, all.len() as u32).expect("there is room");
    for (key, (from, to)) in (0..).zip(&all) {
        flows.start(0, key, &image, &image.path(*from, *to), bytes).expect("there is room");
    }
    let mut last = 0;
    while let Some(time) = flows.next_event() {
        flows.advance(time).expect("nobody else writes there");
        while let Some((_, at)) = flows.completed().expect("nobody else writes there") {
            last = at;
        }
    }
    last as f64 / 1e6
}

/// What the same program says under smpirun, in us.
fn theirs(dir: &Path, platform: &str, pattern: &str, ranks: u32, bytes: u64) -> f64 {
    let mut smpirun = Command::new("smpirun");
    smpirun.args(["-np", &ranks.to_string(), "-hostfile", "hosts", "-platform", platform]);
    smpirun.args(["--cfg=smpi/simulate-computation:no", "./patterns", pattern, &bytes.to_string()]).current_dir(dir);
    let output = smpirun.output().expect("smpirun is there");
    // Its exit code says nothing (findings/smpi-exits-with-0-after-mpi-abort-and-after-a-deadlock.sh).
    let text = String::from_utf8_lossy(&output.stdout);
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("@ {pattern}_{bytes} {ranks} "))?.parse().ok());
    value.unwrap_or_else(|| panic!("{platform} {pattern} {bytes}: {output:?}"))
}

fn compile(dir: &Path, compiler: &str, binary: &str) {
    let compiled = Command::new(compiler)
        .args(["-O2", "-o", binary])
        .arg(top().join("tests/programs/bench/patterns.c"))
        .current_dir(dir)
        .output()
        .expect("the compiler is there");
    assert!(compiled.status.success(), "{compiled:?}");
}

const HEAD: &str = "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n<platform version=\"4.1\">";

fn zone(link: &str, direction: &str) -> String {
    let route = format!("<route src=\"n0\" dst=\"n1\"><link_ctn id=\"l\"{direction}/></route>");
    let hosts = "<host id=\"n0\" speed=\"1Gf\"/><host id=\"n1\" speed=\"1Gf\"/>";
    format!("{HEAD}<zone id=\"z\" routing=\"Full\">{hosts}<link id=\"l\" {link}/>{route}</zone></platform>")
}

fn cluster(attributes: &str) -> String {
    format!("{HEAD}<cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-15\" speed=\"1Gf\" {attributes}/></platform>")
}

#[test]
#[ignore = "second tier"]
fn the_same_messages_take_the_same_virtual_time() {
    let scratch = Scratch::new("smpi");
    let dir = scratch.path();
    compile(dir, "smpicc", "patterns");
    let platforms = [
        ("zone.xml", 2, zone("bandwidth=\"1GBps\" latency=\"10us\"", "")),
        (
            "split.xml",
            2,
            zone("bandwidth=\"1GBps\" latency=\"10us\" sharing_policy=\"SPLITDUPLEX\"", " direction=\"UP\""),
        ),
        ("fat.xml", 2, zone("bandwidth=\"1GBps\" latency=\"10us\" sharing_policy=\"FATPIPE\"", "")),
        ("far.xml", 2, zone("bandwidth=\"1GBps\" latency=\"10ms\"", "")),
        ("cluster.xml", 16, cluster("bw=\"1GBps\" lat=\"10us\"")),
        ("shared.xml", 16, cluster("bw=\"1GBps\" lat=\"10us\" sharing_policy=\"SHARED\"")),
        ("fatpipe.xml", 16, cluster("bw=\"1GBps\" lat=\"10us\" sharing_policy=\"FATPIPE\"")),
        ("backbone.xml", 16, cluster("bw=\"125MBps\" lat=\"50us\" bb_bw=\"1.25GBps\" bb_lat=\"500us\"")),
        (
            "free.xml",
            16,
            cluster("bw=\"1GBps\" lat=\"10us\" bb_bw=\"2GBps\" bb_lat=\"5us\" bb_sharing_policy=\"FATPIPE\""),
        ),
    ];
    let mut wrong = Vec::new();
    let mut compared = 0;
    for (name, ranks, text) in platforms {
        std::fs::write(dir.join(name), &text).expect("the scratch directory is writable");
        let hosts: String = (0..ranks).map(|host| format!("n{host}\n")).collect();
        std::fs::write(dir.join("hosts"), hosts).expect("the scratch directory is writable");
        let machine = Machine::from_text(&text, name).unwrap_or_else(|why| panic!("{why}"));
        let sizes = (0..20).map(|power| 1 << power);
        let mut cases: Vec<(&str, u64)> = sizes.map(|bytes| ("pingpong", bytes)).collect();
        cases.extend([("opposite", 1_000_000), ("opposite", 30_000)]);
        if ranks > 2 {
            cases.extend([("ring", 1 << 20), ("ring", 1024), ("alltoall", 1 << 16), ("alltoall", 1 << 20)]);
            cases.extend([("stencil", 1 << 16), ("stencil", 1 << 20)]);
        }
        for (pattern, bytes) in cases {
            let (our, their) = (ours(&machine, pattern, ranks, bytes), theirs(dir, name, pattern, ranks, bytes));
            // The program reads its clock twice, which takes 0.01 us each time; half of that in a ping-pong.
            let clock = if pattern == "pingpong" { 0.005 } else { 0.01 };
            compared += 1;
            if ((our + clock) / their - 1.0).abs() > 1e-4 {
                wrong.push(format!("{name} {pattern} {bytes}: {our} us here, {their} us in SMPI"));
            }
        }
    }
    assert!(compared == 4 * 22 + 5 * 28 && wrong.is_empty(), "{compared} compared:\n{}", wrong.join("\n"));
}

/// What `cargo xtask bench simulate` gives to vmpi and to SMPI is one cluster.
#[test]
fn the_two_files_of_the_benchmark_agree() {
    let read = |name: &str| {
        let path = top().join("tests/data/simulate").join(name);
        Machine::load(path.to_str().expect("UTF-8")).unwrap_or_else(|why| panic!("{why}")).image_words()
    };
    let (toml, xml) = (read("cluster.toml"), read("cluster.xml"));
    let (toml, xml) = (Image::from_words(&toml).expect("an image"), Image::from_words(&xml).expect("an image"));
    assert_eq!(toml.place_count(), xml.place_count());
    for bytes in (0..=21).map(|power| 1_u64 << power).chain([241, 242, 716, 717, 65456, 65457]) {
        let [ours, theirs] = [toml, xml].map(|image| image.cost(&image.path(0, 1023), bytes).wire as f64);
        assert!((ours / theirs - 1.0).abs() < 0.02, "{bytes}: {ours} ps and {theirs} ps");
    }
    let hosts = std::fs::read_to_string(top().join("tests/data/simulate/cluster.hosts")).expect("it is there");
    assert!(hosts.lines().eq((0..1024).map(|host| format!("n{host}"))));
}

/// What the same program says under `vmpirun --simulate`, in us.
fn simulated(dir: &Path, platform: &str, pattern: &str, ranks: u32, bytes: u64) -> f64 {
    let run = Vmpirun::new("smpi").args(["-n", &ranks.to_string(), "--compute", "none", "--simulate"]);
    let run = run.arg(dir.join(platform)).arg(dir.join("ours")).args([pattern, &bytes.to_string()]);
    let outcome = run.deadline(Duration::from_secs(120)).run();
    let start = format!("@ {pattern}_{bytes} {ranks} ");
    let value = outcome.stdout.lines().find_map(|line| line.strip_prefix(&start)?.parse().ok());
    value.unwrap_or_else(|| panic!("{platform} {pattern} {bytes}: {outcome:?}"))
}

/// An unmodified program on a platform file: as long as SMPI says, where no collective algorithm is chosen.
#[test]
#[ignore = "second tier"]
fn programs_on_platform_files_take_as_long_as_in_smpi() {
    let scratch = Scratch::new("smpi-programs");
    let dir = scratch.path();
    compile(dir, "smpicc", "patterns");
    compile(dir, "mpicc.openmpi", "ours");
    let platforms = [
        ("zone.xml", 2, zone("bandwidth=\"1GBps\" latency=\"10us\"", "")),
        ("cluster.xml", 16, cluster("bw=\"1GBps\" lat=\"10us\"")),
        ("backbone.xml", 16, cluster("bw=\"125MBps\" lat=\"50us\" bb_bw=\"1.25GBps\" bb_lat=\"500us\"")),
    ];
    let (mut rows, mut wrong) = (Vec::new(), 0);
    for (name, ranks, text) in platforms {
        std::fs::write(dir.join(name), &text).expect("the scratch directory is writable");
        let hosts: String = (0..ranks).map(|host| format!("n{host}\n")).collect();
        std::fs::write(dir.join("hosts"), hosts).expect("the scratch directory is writable");
        let mut cases: Vec<(&str, u64)> = (0..20).map(|power| ("pingpong", 1 << power)).collect();
        if ranks > 2 {
            let all =
                [("ring", 20), ("ring", 10), ("alltoall", 16), ("alltoall", 12), ("stencil", 16), ("stencil", 20)];
            cases.extend(all.map(|(pattern, power)| (pattern, 1 << power)));
        }
        for (pattern, bytes) in cases {
            let (our, their) = (simulated(dir, name, pattern, ranks, bytes), theirs(dir, name, pattern, ranks, bytes));
            let off = our / their - 1.0;
            wrong += u32::from(off.abs() > 0.01);
            rows.push(format!("{name} {pattern} {bytes}: {our} us here, {their} us in SMPI ({:+.4} %)", off * 100.0));
        }
    }
    eprintln!("{}", rows.join("\n"));
    assert!(wrong == 0 && rows.len() == 3 * 20 + 2 * 6, "{wrong} wrong:\n{}", rows.join("\n"));
}
