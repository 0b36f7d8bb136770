//! Shares are fair, nothing is lost, the order of calls says nothing, and what SMPI was measured to give comes out.

use super::*;
use crate::image::tests::{Aligned, aligned};
use crate::machine::Machine;
use proptest::prelude::*;

/// A cluster of SimGrid, 1 GBps and 10 us, as measured.
fn cluster(hosts: u32, more: &str) -> Machine {
    let last = hosts - 1;
    let text = format!(
        "<platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-{last}\" speed=\"1Gf\" bw=\"1GBps\" lat=\"10us\" {more}/></platform>"
    );
    Machine::from_platform(&text, "test").unwrap_or_else(|why| panic!("{why}"))
}

/// One link between two hosts.
fn link(attributes: &str, direction: &str) -> Machine {
    let text = format!(
        "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/>\
         <link id=\"l\" {attributes}/><route src=\"a\" dst=\"b\"><link_ctn id=\"l\" {direction}/></route></zone></platform>"
    );
    Machine::from_platform(&text, "test").unwrap_or_else(|why| panic!("{why}"))
}

struct World {
    image: Aligned,
    memory: Aligned,
}

impl World {
    fn new(machine: &Machine, slots: u32) -> World {
        let image = aligned(&machine.image());
        let bytes = Flows::memory_for(&Image::new(image.as_bytes()).unwrap(), slots);
        let mut memory = aligned(&vec![0x5a; bytes]);
        Flows::create(memory.as_bytes_mut(), &Image::new(image.as_bytes()).unwrap(), slots).unwrap();
        World { image, memory }
    }

    fn parts(&mut self) -> (Image<'_>, Flows<'_>) {
        (Image::new(self.image.as_bytes()).unwrap(), Flows::open(self.memory.as_bytes_mut()).unwrap())
    }

    /// All that ends, if these start: (start, from, to, bytes), with their numbers as keys.
    fn run(&mut self, messages: &[(Ps, u32, u32, u64)]) -> Vec<(u64, Ps)> {
        let (image, mut flows) = self.parts();
        for (key, (start, from, to, bytes)) in (0..).zip(messages) {
            flows.start(*start, key, &image, &image.path(*from, *to), *bytes).unwrap();
        }
        let mut ended = Vec::new();
        while let Some(time) = flows.next_event() {
            flows.advance(time).unwrap();
            while let Some(one) = flows.completed().unwrap() {
                ended.push(one);
            }
        }
        assert_eq!(flows.in_flight(), 0);
        ended
    }
}

/// Microseconds as measured, and how far off is allowed: 0.01 %.
fn is_near(ps: Ps, measured_us: f64) -> bool {
    (ps as f64 / 1e6 / measured_us - 1.0).abs() < 1e-4
}

/// SimGrid 3.32, MPI_Send and MPI_Recv, half a round trip.
#[test]
fn messages_alone_take_what_smpi_was_measured_to_give() {
    let full = link("bandwidth=\"1GBps\" latency=\"10us\"", "");
    let far = link("bandwidth=\"1GBps\" latency=\"10ms\"", "");
    let backbone = cluster(4, "bb_bw=\"2.25GBps\" bb_lat=\"5us\"");
    let slow = Machine::from_platform(
        "<platform version=\"4.1\"><cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1Gf\" bw=\"125MBps\" lat=\"50us\" \
         bb_bw=\"1.25GBps\" bb_lat=\"500us\"/></platform>",
        "test",
    )
    .unwrap();
    let measured: &[(&Machine, u64, f64)] = &[
        (&full, 1, 20.169),
        (&full, 1410, 23.882),
        (&full, 1411, 18.569),
        (&full, 65456, 133.393),
        (&full, 65457, 189.517),
        (&full, 1 << 20, 1286.87),
        (&full, 16 << 20, 18843.136),
        (&far, 1 << 20, 121751.306),
        (&far, 16 << 20, 201479.677),
        (&cluster(4, ""), 1024, 42.048),
        (&cluster(4, ""), 1 << 20, 1347.573),
        (&backbone, 1024, 51.799),
        (&backbone, 1 << 20, 1405.791),
        (&slow, 65536, 7543.638),
        (&slow, 1 << 20, 15903.764),
    ];
    for (machine, bytes, us) in measured {
        let mut world = World::new(machine, 1);
        let ended = world.run(&[(0, 0, 1, *bytes)]);
        assert!(is_near(ended[0].1, *us), "{bytes} bytes: {} ps, measured {us} us", ended[0].1);
        let (image, _) = world.parts();
        assert_eq!(image.cost(&image.path(0, 1), *bytes).wire, ended[0].1, "alone it is what `cost` says");
    }
}

#[test]
fn messages_that_share_take_what_smpi_was_measured_to_give() {
    // 1 MB each way at once.
    let both = [(0, 0, 1, 1_000_000), (0, 1, 0, 1_000_000)];
    for (policy, us) in [("SPLITDUPLEX", 1349.0), ("SHARED", 2465.0), ("FATPIPE", 2465.0)] {
        let ended = World::new(&cluster(2, &format!("sharing_policy=\"{policy}\"")), 2).run(&both);
        assert_eq!(ended[0].1, ended[1].1);
        assert!((ended[0].1 as f64 / 1e6 / us - 1.0).abs() < 5e-4, "{policy}: {} ps, measured {us} us", ended[0].1);
    }
    // A ring: each sends to the next one.
    let ring: Vec<_> = (0..16).map(|rank| (0, rank, (rank + 1) % 16, 1 << 20)).collect();
    let ended = World::new(&cluster(16, ""), 16).run(&ring);
    assert!(ended.iter().all(|(_, at)| is_near(*at, 1403.3)), "{ended:?}");
    // Ten of one pair at once.
    let ten: Vec<_> = (0..10).map(|_| (0, 0, 1, 1 << 20)).collect();
    let ended = World::new(&link("bandwidth=\"1GBps\" latency=\"10us\"", ""), 10).run(&ten);
    assert!((ended[9].1 as f64 / 1e6 / 11820.0 - 1.0).abs() < 0.02, "{ended:?}");
}

#[test]
fn an_own_loopback_and_that_of_a_zone() {
    let zone = link("bandwidth=\"1GBps\" latency=\"10us\"", "");
    let mut world = World::new(&zone, 1);
    assert!(is_near(world.run(&[(0, 0, 0, 1 << 20)])[0].1, 111.47));
    let without = World::new(&cluster(2, "core=\"2\""), 1).run(&[(0, 0, 1, 1)])[0].1;
    assert!(is_near(without, 40.3154), "out and in by the host's own link: {without}");
    let own = cluster(2, "core=\"2\" loopback_bw=\"10GBps\" loopback_lat=\"1us\"");
    assert!(is_near(World::new(&own, 1).run(&[(0, 0, 1, 1)])[0].1, 2.01467 + 0.0021));
}

/// A short way and a long one on the same link: shares as one over the latency.
#[test]
fn a_long_way_gets_less() {
    let text = "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"><host id=\"a\" speed=\"1Gf\"/><host id=\"b\" speed=\"1Gf\"/><host id=\"c\" speed=\"1Gf\"/>\
        <link id=\"l\" bandwidth=\"1GBps\" latency=\"20us\" sharing_policy=\"SPLITDUPLEX\"/><link id=\"far\" bandwidth=\"1GBps\" latency=\"990us\" sharing_policy=\"FATPIPE\"/>\
        <route src=\"a\" dst=\"b\"><link_ctn id=\"l\" direction=\"UP\"/></route>\
        <route src=\"a\" dst=\"c\"><link_ctn id=\"l\" direction=\"UP\"/><link_ctn id=\"far\"/></route>\
        <route src=\"b\" dst=\"c\"><link_ctn id=\"far\"/></route></zone></platform>";
    let mut world = World::new(&Machine::from_platform(text, "test").unwrap(), 2);
    let (image, mut flows) = world.parts();
    for (key, to) in [(1, 1), (2, 2)] {
        flows.start(0, key, &image, &image.path(0, to), 1 << 30).unwrap();
    }
    flows.advance(100_000_000_000).unwrap();
    let rate = |key: u64| rate(&flows, flows.parts.flows.iter().find(|flow| flow.key == key).unwrap());
    let ratio = (1010e-6 + 2.0 * 8775e-9) / (20e-6 + 8775e-9);
    assert!((rate(1) / rate(2) / ratio - 1.0).abs() < 1e-9, "{} {}", rate(1), rate(2));
    assert!((rate(1) + rate(2) - 1e9).abs() < 1.0);
}

/// Messages between two hosts share alike, so that one that comes or goes concerns one class, however many there are.
#[test]
fn messages_between_two_hosts_are_one_class() {
    const MESSAGES: u32 = 4096;
    let machine = Machine::load("fat-tree").unwrap();
    let mut world = World::new(&machine, MESSAGES);
    let (image, mut flows) = world.parts();
    for key in 0..MESSAGES {
        // Of 64 ranks of one host to 64 of another; each begins at another time, and has another size.
        let (from, to) = (key / 64, 64 + key % 64);
        flows.start(u64::from(key), key.into(), &image, &image.path(from, to), 20_000 + u64::from(key)).unwrap();
    }
    let (mut ended, mut events) = (0, 0);
    while let Some(time) = flows.next_event() {
        flows.advance(time).unwrap();
        events += 1;
        assert!(flows.parts.header.classes_begun <= 1);
        while flows.completed().unwrap().is_some() {
            ended += 1;
        }
    }
    assert_eq!(ended, MESSAGES);
    assert!(events > MESSAGES, "they come and go one by one: {events} events");
}

#[test]
fn bounds_are_kept() {
    let mut world = World::new(&cluster(4, ""), 1);
    let (image, mut flows) = world.parts();
    let path = image.path(0, 1);
    flows.start(0, 1, &image, &path, 100).unwrap();
    assert_eq!(flows.start(0, 2, &image, &path, 100), Err(FlowsProblem::Full { slots: 1 }));
    assert_eq!((flows.in_flight(), flows.completed().unwrap()), (1, None));
    let begins = flows.next_event().unwrap();
    flows.advance(begins - 1).unwrap();
    assert_eq!(flows.next_event(), Some(begins));
    let late = 1_000_000_000;
    flows.advance(late).unwrap();
    let (key, at) = flows.completed().unwrap().unwrap();
    assert!(key == 1 && at > begins && flows.completed().unwrap().is_none() && flows.next_event().is_none());
    // It may leave before `late`, if it begins to drain after that.
    assert!(matches!(flows.start(late - 50_000_000, 3, &image, &path, 1), Err(FlowsProblem::Past { .. })));
    flows.start(late - 30_000_000, 3, &image, &path, 1).unwrap();
    assert!(matches!(Flows::create(&mut [0; 64], &image, 1), Err(FlowsProblem::Memory { .. })));
}

/// What flows move in all, and when they end, while others come and go; `order`: in which they are started.
fn ends(machine: &Machine, messages: &[(Ps, u32, u32, u64)], order: &[usize]) -> Vec<(u64, Ps)> {
    let mut world = World::new(machine, messages.len() as u32);
    let (image, mut flows) = world.parts();
    for at in order {
        let (start, from, to, bytes) = messages[*at];
        flows.start(start, *at as u64, &image, &image.path(from, to), bytes).unwrap();
    }
    let mut ended = Vec::new();
    while let Some(time) = flows.next_event() {
        flows.advance(time).unwrap();
        check_shares(&flows);
        while let Some(one) = flows.completed().unwrap() {
            ended.push(one);
        }
    }
    assert_eq!(ended.len(), messages.len());
    ended
}

fn rate(flows: &Flows<'_>, flow: &layout::Flow) -> f64 {
    flows.parts.classes[flow.class as usize].rate
}

/// No link carries more than it can; and each flow is at its bound, or on a full link where none has a higher level.
fn check_shares(flows: &Flows<'_>) {
    let draining: Vec<_> = flows.parts.flows.iter().filter(|flow| flow.state == DRAINS && flow.used > 0).collect();
    let load = |link: u32| -> f64 {
        let of = |flow: &&layout::Flow| -> f64 {
            flow.legs()
                .iter()
                .filter(|leg| leg.link == link)
                .map(|leg| f64::from(leg.hundredths) / 100.0 * rate(flows, flow))
                .sum()
        };
        draining.iter().map(of).sum()
    };
    let level = |flow: &layout::Flow| rate(flows, flow) * flow.penalty;
    for flow in &draining {
        let own = rate(flows, flow);
        assert!(own > 0.0 && own <= flow.bound * (1.0 + 1e-9));
        let is_fair = |used: &Leg| {
            let full = load(used.link) >= flows.parts.links[used.link as usize].capacity * (1.0 - 1e-9);
            let highest = draining
                .iter()
                .filter(|other| other.legs().iter().any(|one| one.link == used.link))
                .map(|other| level(other))
                .fold(0.0, f64::max);
            full && level(flow) >= highest * (1.0 - 1e-9)
        };
        assert!(own >= flow.bound * (1.0 - 1e-9) || flow.legs().iter().any(is_fair), "{flow:?}");
    }
    for (number, link) in (0..).zip(flows.parts.links.iter()) {
        assert!(load(number) <= link.capacity * (1.0 + 1e-9), "link {number}: {} of {}", load(number), link.capacity);
    }
}

fn kinds() -> Vec<Machine> {
    let dragonfly = Machine::load("dragonfly").unwrap();
    let torus = Machine::load("torus").unwrap();
    let half = cluster(16, "sharing_policy=\"SHARED\" bb_bw=\"3GBps\" bb_lat=\"2us\"");
    vec![cluster(16, ""), half, torus, dragonfly, Machine::load("ethernet").unwrap()]
}

fn some_messages() -> impl Strategy<Value = (usize, Vec<(Ps, u32, u32, u64)>)> {
    let one = (0..200_000_000_u64, 0..512_u32, 0..512_u32, prop_oneof![0..5000_u64, 0..4_000_000_u64]);
    (0..5_usize, prop::collection::vec(one, 1..40))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Max-min conditions and capacities hold at every event, and neither the order of calls nor the slots change a picosecond.
    #[test]
    fn shares_are_fair_and_the_order_of_calls_says_nothing((which, messages) in some_messages(), seed in any::<u64>()) {
        let machine = &kinds()[which];
        let places = machine.place_count();
        let messages: Vec<_> = messages.iter().map(|(at, from, to, bytes)| (*at, from % places, to % places, *bytes)).collect();
        let mut order: Vec<usize> = (0..messages.len()).collect();
        let first = ends(machine, &messages, &order);
        fastrand::Rng::with_seed(seed).shuffle(&mut order);
        prop_assert_eq!(&first, &ends(machine, &messages, &order));
        // Nothing is faster than alone.
        let image = aligned(&machine.image());
        let image = Image::new(image.as_bytes()).unwrap();
        for (key, at) in first {
            let (start, from, to, bytes) = messages[key as usize];
            prop_assert!(at - start + 1 >= image.cost(&image.path(from, to), bytes).wire);
        }
    }

    /// Looking at other times in between changes nothing.
    #[test]
    fn looks_in_between_say_nothing((which, messages) in some_messages(), step in 1_000_u64..50_000_000) {
        let machine = &kinds()[which];
        let places = machine.place_count();
        let messages: Vec<_> = messages.iter().map(|(at, from, to, bytes)| (*at, from % places, to % places, *bytes)).collect();
        let all = ends(machine, &messages, &(0..messages.len()).collect::<Vec<_>>());
        let mut world = World::new(machine, messages.len() as u32);
        let (image, mut flows) = world.parts();
        let mut waiting: Vec<_> = (0_u64..).zip(&messages).collect();
        waiting.sort_by_key(|(key, (start, ..))| (*start, *key));
        let (mut now, mut ended) = (0, Vec::new());
        let mut next = waiting.into_iter().peekable();
        while next.peek().is_some() || flows.next_event().is_some() {
            now += step;
            while let Some((key, (start, from, to, bytes))) = next.next_if(|(_, (start, ..))| *start <= now) {
                flows.advance(*start).unwrap();
                flows.start(*start, key, &image, &image.path(*from, *to), *bytes).unwrap();
            }
            flows.advance(now).unwrap();
            while let Some(one) = flows.completed().unwrap() {
                ended.push(one);
            }
        }
        prop_assert_eq!(all, ended);
    }

    /// Memory that somebody has written into gives an error or some times, no panic and no endless loop.
    #[test]
    fn scribbled_memory_is_survived(scribbles in prop::collection::vec((any::<prop::sample::Index>(), any::<[u8; 8]>()), 1..8)) {
        let machine = cluster(4, "");
        let mut world = World::new(&machine, 6);
        {
            let (image, mut flows) = world.parts();
            for key in 0..5 {
                flows.start(0, key, &image, &image.path(key as u32 % 4, (key as u32 + 1) % 4), 1 << 20).unwrap();
            }
            flows.advance(50_000_000).unwrap();
        }
        for (at, value) in scribbles {
            let bytes = world.memory.as_bytes_mut();
            let at = at.index(bytes.len() / 8) * 8;
            bytes[at..at + 8].copy_from_slice(&value);
        }
        let image = Image::new(world.image.as_bytes()).unwrap();
        let Ok(mut flows) = Flows::open(world.memory.as_bytes_mut()) else { return Ok(()) };
        let _ = flows.start(60_000_000, 9, &image, &image.path(0, 2), 1000);
        for _ in 0..40 {
            let Some(time) = flows.next_event() else { break };
            if flows.advance(time).is_err() || flows.completed().is_err() {
                break;
            }
        }
    }
}
