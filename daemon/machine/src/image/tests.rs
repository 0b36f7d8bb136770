//! Paths are what the topologies say; an image is itself again; damaged ones are refused.

use super::*;
use crate::machine::{Machine, Topology};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Memory aligned to 8, as a mapping is.
pub struct Aligned(Vec<u64>, usize);

impl Aligned {
    pub fn as_bytes(&self) -> &[u8] {
        &zerocopy::IntoBytes::as_bytes(self.0.as_slice())[..self.1]
    }

    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        let length = self.1;
        &mut zerocopy::IntoBytes::as_mut_bytes(self.0.as_mut_slice())[..length]
    }
}

pub fn aligned(bytes: &[u8]) -> Aligned {
    let mut own = Aligned(vec![0; bytes.len().div_ceil(8)], bytes.len());
    own.as_bytes_mut().copy_from_slice(bytes);
    own
}

const COSTS: &str = r#"
[level.socket]
latency = "200ns"
bandwidth = "8GB/s"
[level.switch]
latency = "1us"
send_overhead = "300ns"
receive_overhead = "400ns"
gap = "350ns"
bandwidth = "10GB/s"
eager_limit = "16KiB"
sizes = [{ from = "8KiB", latency = "2us" }, { from = "1MiB", bandwidth = "12GB/s" }]
"#;

const LINKS: &str = r#"
[links.host]
bandwidth = "10GB/s"
[links.switch]
bandwidth = "10GB/s"
"#;

fn machine(text: &str) -> Machine {
    Machine::from_toml(&format!("{text}\n{COSTS}"), "test").unwrap_or_else(|why| panic!("{why}"))
}

/// Each link has one begin and one end, seen over all pairs; every way begins and ends at its hosts and has no link twice.
fn ways_are_ways(machine: &Machine) {
    let bytes = aligned(&machine.image());
    let image = Image::new(bytes.as_bytes()).unwrap();
    let hosts = image.host_count();
    // A link's successors lead on from where it ends: two links that are ever joined share that point.
    let mut ends: BTreeMap<u32, u32> = BTreeMap::new();
    let mut begins: BTreeMap<u32, u32> = BTreeMap::new();
    for from in 0..hosts {
        for to in 0..hosts {
            let mut way = Vec::new();
            image.each_link(from, to, &mut |link| way.push(link));
            assert!(way.iter().all(|link| *link < image.link_count()), "{from} to {to}: {way:?}");
            let once: BTreeSet<u32> = way.iter().copied().collect();
            assert_eq!(once.len(), way.len(), "{from} to {to}: {way:?}");
            assert_eq!(*begins.entry(way[0]).or_insert(from), from, "the way out of {from}");
            assert_eq!(*ends.entry(way[way.len() - 1]).or_insert(to), to, "the way in to {to}");
            if from != to {
                assert_eq!(way.len() as u32, 2 + image.hops(from, to), "{from} to {to}: {way:?}");
                let shared = image.path(from * places(machine), to * places(machine)).uses().len();
                assert_eq!(shared, way.len());
                assert!(shared as u32 <= machine.most_uses());
            }
        }
    }
}

fn places(machine: &Machine) -> u32 {
    machine.hosts[0].sockets * machine.hosts[0].cores
}

/// No pair takes less, and some pair takes as long but for a dragonfly's groups that are not joined by neighbours.
#[test]
fn no_message_takes_less_than_the_least_latency() {
    let mut random = fastrand::Rng::with_seed(43);
    for built_in in crate::BUILT_IN {
        let machine = Machine::load(built_in.name).unwrap();
        let words = machine.image_words();
        let image = Image::from_words(&words).unwrap();
        for _ in 0..12 {
            let places = random.u32(1..=image.place_count().min(700));
            let pairs = (0..places).flat_map(|from| (0..places).map(move |to| (from, to)));
            let exact = pairs.map(|(from, to)| image.path(from, to).latency()).min().unwrap();
            assert!(image.least_latency(places) <= exact, "{}, {places} places", built_in.name);
            if !built_in.name.contains("dragonfly") {
                assert_eq!(image.least_latency(places), exact, "{}, {places} places", built_in.name);
            }
        }
    }
}

#[test]
fn a_flat_network() {
    let machine = machine("hosts = { count = 5, sockets = 2, cores = 3 }\n[links.host]\nbandwidth = \"1GB/s\"");
    ways_are_ways(&machine);
    let bytes = aligned(&machine.image());
    let image = Image::new(bytes.as_bytes()).unwrap();
    assert_eq!((image.place_count(), image.host_of(11), image.host_of(12), image.host_of(999)), (30, 1, 2, 4));
    let levels = [(0, 0), (0, 2), (0, 3), (0, 6)].map(|(from, to)| image.level(from, to));
    assert_eq!(levels, [Level::Core, Level::Socket, Level::Host, Level::Switch]);
}

#[test]
fn a_fat_tree() {
    for (down, up, hosts) in
        [("[3, 2]", "[1, 2]", 6), ("[2, 3, 2]", "[1, 2, 3]", 12), ("[4]", "[1]", 4), ("[2, 2, 2]", "[2, 1, 2]", 8)]
    {
        let links = if hosts == 4 { "[links.host]\nbandwidth = \"10GB/s\"" } else { LINKS };
        let text =
            format!("hosts = {{ cores = 2 }}\n[topology]\nkind = \"fat-tree\"\ndown = {down}\nup = {up}\n{links}");
        let machine = machine(&text);
        assert_eq!(machine.host_count(), hosts);
        ways_are_ways(&machine);
    }
    let text = format!(
        "hosts = {{ cores = 1 }}\n[topology]\nkind = \"fat-tree\"\nhop = \"100ns\"\ndown = [2, 2, 2]\nup = [1, 2, 2]\n{LINKS}"
    );
    let bytes = aligned(&machine(&text).image());
    let image = Image::new(bytes.as_bytes()).unwrap();
    let levels = [1, 2, 4].map(|to| (image.level(0, to), image.hops(0, to)));
    assert_eq!(levels, [(Level::Switch, 0), (Level::Group, 2), (Level::System, 4)]);
    // What is not given costs as the next nearer level does, and each link between switches more.
    assert_eq!(image.path(0, 4).latency(), 1_000_000 + 4 * 100_000);
}

/// Ways to different hosts behind one switch do not all climb the same cable.
#[test]
fn a_fat_tree_spreads() {
    let text = format!("hosts = {{ cores = 1 }}\n[topology]\nkind = \"fat-tree\"\ndown = [4, 4]\nup = [1, 4]\n{LINKS}");
    let bytes = aligned(&machine(&text).image());
    let image = Image::new(bytes.as_bytes()).unwrap();
    let second = |to: u32| {
        let mut way = Vec::new();
        image.each_link(0, to, &mut |link| way.push(link));
        way[1]
    };
    let used: BTreeSet<u32> = (4..8).map(second).collect();
    assert_eq!(used.len(), 4);
}

#[test]
fn a_torus() {
    for (size, hosts) in [("[4]", 2), ("[3, 4]", 1), ("[2, 3, 4]", 1), ("[1, 5]", 1)] {
        let text = format!(
            "hosts = {{ cores = 1 }}\n[topology]\nkind = \"torus\"\nsize = {size}\nhosts_per_switch = {hosts}\n{LINKS}"
        );
        ways_are_ways(&machine(&text));
    }
    let text = format!("hosts = {{ cores = 1 }}\n[topology]\nkind = \"torus\"\nsize = [4, 5]\n{LINKS}");
    let bytes = aligned(&machine(&text).image());
    let image = Image::new(bytes.as_bytes()).unwrap();
    // Host 18 is (2, 4): two in the first dimension, one backwards in the second.
    assert_eq!((image.hops(0, 18), image.hops(18, 0), image.hops(0, 3)), (3, 3, 1));
    assert_eq!(image.level(0, 1), Level::Group);
}

#[test]
fn a_dragonfly() {
    for (groups, switches, hosts, global) in [(5, 4, 2, 1), (3, 2, 1, 1), (9, 4, 1, 2), (3, 4, 2, 2), (2, 1, 1, 3)] {
        let text = format!(
            "hosts = {{ cores = 1 }}\n[topology]\nkind = \"dragonfly\"\ngroups = {groups}\nswitches = {switches}\n\
             hosts_per_switch = {hosts}\nglobal_links = {global}\n{LINKS}[links.group]\nbandwidth = \"10GB/s\""
        );
        let machine = machine(&text);
        ways_are_ways(&machine);
        let bytes = aligned(&machine.image());
        let image = Image::new(bytes.as_bytes()).unwrap();
        let count = image.host_count();
        let longest = (0..count).flat_map(|a| (0..count).map(move |b| (a, b))).map(|(a, b)| image.hops(a, b)).max();
        assert!(longest <= Some(3), "{longest:?}");
    }
}

/// Where one side leaves a link of a dragonfly between groups, the other one has its end.
#[test]
fn links_between_groups_pair_up() {
    let text = format!(
        "hosts = {{ cores = 1 }}\n[topology]\nkind = \"dragonfly\"\ngroups = 5\nswitches = 4\nhosts_per_switch = 1\n\
         global_links = 1\n{LINKS}[links.group]\nbandwidth = \"10GB/s\""
    );
    let bytes = aligned(&machine(&text).image());
    let image = Image::new(bytes.as_bytes()).unwrap();
    let global = |from: u32, to: u32| {
        let mut found = None;
        let first = image.classes[2].first;
        image.each_link(from, to, &mut |link| found = found.or((link >= first).then_some(link)));
        found
    };
    // One link each way for each pair of groups, whoever sends.
    let mut of_pair: BTreeMap<(u32, u32), BTreeSet<Option<u32>>> = BTreeMap::new();
    for from in 0..20 {
        for to in 0..20 {
            of_pair.entry((from / 4, to / 4)).or_default().insert(global(from, to));
        }
    }
    let all: BTreeSet<_> = of_pair
        .iter()
        .filter(|((a, b), _)| a != b)
        .map(|(_, links)| {
            assert_eq!(links.len(), 1);
            *links.first().unwrap()
        })
        .collect();
    assert_eq!(all.len(), 20);
}

#[test]
fn a_message_costs_what_loggp_says() {
    let bytes = aligned(&machine("hosts = { count = 2, cores = 2 }").image());
    let image = Image::new(bytes.as_bytes()).unwrap();
    let path = image.path(0, 2);
    assert!(!path.shares());
    let cost = |bytes| image.cost(&path, bytes);
    let small = Cost { send_overhead: 300_000, receive_overhead: 400_000, gap: 350_000, wire: 1_000_000 };
    assert_eq!((cost(0), cost(10).wire), (small, 1_001_000));
    // From 8 KiB on another latency, from 1 MiB on another bandwidth, too.
    assert_eq!((cost(8191).wire, cost(8192).wire), (1_819_100, 2_819_200));
    assert_eq!((cost(1 << 20).wire, cost(1 << 20).gap), (2_000_000 + 87_381_334, 87_381_334));
    assert_eq!((image.eager_limit(&path), image.eager_limit(&image.path(0, 1))), (16384, 8192));
    assert_eq!((path.latency(), image.min_latency(), image.poll_cost(7)), (1_000_000, 1_000_000, 100_000));
    assert_eq!((image.cost(&image.path(0, 1), 8).wire, image.path(0, 0).latency()), (201_000, 200_000));
}

#[test]
fn cores_of_another_speed() {
    let bytes = aligned(&machine("hosts = { count = 2, cores = 2, speed = 2.5 }").image());
    assert_eq!(Image::new(bytes.as_bytes()).unwrap().compute(3, 1_000), 400);
}

#[test]
fn what_is_no_image_is_refused() {
    let bytes =
        machine(&format!("hosts = {{ cores = 1 }}\n[topology]\nkind = \"torus\"\nsize = [4, 5]\n{LINKS}")).image();
    let mut other = aligned(&bytes);
    other.as_bytes_mut()[8] = 9;
    assert_eq!(Image::new(other.as_bytes()).unwrap_err(), BadImage::Version { found: 9 });
    other.as_bytes_mut()[0] = 0;
    assert_eq!(Image::new(other.as_bytes()).unwrap_err(), BadImage::NotOne);
    let whole = aligned(&bytes);
    assert!(matches!(Image::new(&whole.as_bytes()[..bytes.len() - 8]), Err(BadImage::Short { .. })));
    assert!(matches!(Image::new(&whole.as_bytes()[..16]), Err(BadImage::Short { .. })));
    assert_eq!(Image::new(&whole.as_bytes()[4..]).unwrap_err(), BadImage::Misaligned);
}

proptest! {
    /// Whatever an image says, it is refused or answers without a panic.
    #[test]
    fn a_scribbled_image_never_panics(which in 0..5usize, scribbles in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let machine = Machine::load(crate::BUILT_IN[which].name).unwrap();
        let mut bytes = aligned(&machine.image());
        let header = size_of::<Header>().max(256);
        for (at, value) in scribbles {
            let length = bytes.as_bytes().len().min(header);
            bytes.as_bytes_mut()[at.index(length)] = value;
        }
        if let Ok(image) = Image::new(bytes.as_bytes()) {
            let last = image.place_count() - 1;
            for (from, to) in [(0, last), (last, 0), (last / 2, last / 3), (u32::MAX, 1), (0, 0)] {
                let path = image.path(from, to);
                image.cost(&path, 1 << 20);
                image.eager_limit(&path);
            }
            image.min_latency();
        }
    }

    /// Both ways are as long in a torus, and no longer than half of it.
    #[test]
    fn ways_in_a_torus(sizes in prop::collection::vec(1..7u32, 1..4), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>()) {
        let text = format!("hosts = {{ cores = 1 }}\n[topology]\nkind = \"torus\"\nsize = {sizes:?}\n{LINKS}");
        let machine = machine(&text);
        let Topology::Torus { size, .. } = &machine.topology else { panic!() };
        let bytes = aligned(&machine.image());
        let image = Image::new(bytes.as_bytes()).unwrap();
        let hosts = image.host_count() as usize;
        let (from, to) = (from.index(hosts) as u32, to.index(hosts) as u32);
        prop_assert_eq!(image.hops(from, to), image.hops(to, from));
        prop_assert!(image.hops(from, to) <= size.iter().map(|n| n / 2).sum());
    }
}
