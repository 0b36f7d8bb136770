//! Verbs over a device that is none: order, credits, what happens where it does not work, and why the plugin cannot be used.

mod ether;
mod told;

use ether::{Ether, Toy};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use proptest::prelude::*;
use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};
use told::{LIMIT, Told, frames, losses, turn, ups};
use vmpi_fabric::frame::MAX_BODY_BYTES;
use vmpi_fabric::verbs::{Demand, Nic, Plugin};
use vmpi_fabric::{Fabric, Key, Node, Tcp, Verbs};

/// Turn all until `enough` of what was told.
fn until(nodes: &mut [Verbs<Tcp>], enough: impl Fn(&[(usize, Told)]) -> bool) -> Vec<(usize, Told)> {
    told::until(&mut nodes.iter_mut().collect::<Vec<_>>(), enough)
}

type Device = Result<Box<dyn Nic>, String>;

/// Nodes with these devices, joined over the loopback.
fn joined(devices: Vec<Device>, demand: Demand) -> Vec<Verbs<Tcp>> {
    let mut links: Vec<Tcp> = devices.iter().map(|_| Tcp::listen().unwrap()).collect();
    let at = |tcp: &Tcp| SocketAddr::from((Ipv4Addr::LOCALHOST, tcp.port().unwrap()));
    let table: Vec<Node> =
        links.iter().enumerate().map(|(n, tcp)| Node { name: format!("n{n}"), addresses: vec![at(tcp)] }).collect();
    let names: Vec<String> = table.iter().map(|node| node.name.clone()).collect();
    for (me, tcp) in links.iter_mut().enumerate() {
        tcp.join(me as u32, table.clone(), Key::from_bytes([3; 32]), Instant::now()).unwrap();
    }
    let both = links.into_iter().zip(devices).enumerate();
    both.map(|(me, (tcp, nic))| Verbs::new(tcp, nic, demand, me as u32, names.clone(), Instant::now()).unwrap())
        .collect()
}

fn toys(ether: &Rc<RefCell<Ether>>, count: usize) -> Vec<Device> {
    (0..count).map(|_| Ok(Box::new(Toy::on(ether)) as Box<dyn Nic>)).collect()
}

fn two(ether: &Rc<RefCell<Ether>>) -> Vec<Verbs<Tcp>> {
    let mut nodes = joined(toys(ether, 2), Demand::Must);
    until(&mut nodes, |told| ups(told) == 2);
    nodes
}

#[test]
fn three_nodes_talk_in_order() {
    let ether = Rc::default();
    let mut nodes = joined(toys(&ether, 3), Demand::Must);
    until(&mut nodes, |told| ups(told) == 6);
    assert_eq!(nodes[1].describe(), "verbs (toy1 port 1)");
    let large: Vec<u8> = (0..MAX_BODY_BYTES).map(|at| (at * 7) as u8).collect();
    for round in 0..200u8 {
        nodes[0].send(1, 16, &[&[round], b"tail"]);
        nodes[0].send(1, 18, &[&large[..usize::from(round) * 700]]);
        nodes[1].send(0, 20, &[&large[..1000], &large[1000..]]);
        nodes[2].send(0, 17, &[&[round]]);
    }
    let told = until(&mut nodes, |told| frames(told) == 800);
    let (mut at_b, mut long_b, mut from_c) = (0, 0, 0);
    for (me, told) in told {
        let Told::Frame(node, kind, body) = told else { panic!("{told:?}") };
        match (me, node, kind) {
            (1, 0, 16) => {
                assert_eq!(body, [&[at_b][..], b"tail"].concat());
                at_b += 1;
            }
            (1, 0, 18) => {
                assert!(body == large[..usize::from(long_b) * 700]);
                long_b += 1;
                assert_eq!(at_b, long_b);
            }
            (0, 1, 20) => assert!(body == large),
            (0, 2, 17) => {
                assert_eq!(body, [from_c]);
                from_c += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(nodes.iter().all(Verbs::is_flushed));
    let ether = ether.borrow();
    assert!(ether.not_ready == 0 && ether.writes > 300, "{} writes", ether.writes);
    // Small frames travel together.
    assert!(ether.sends < 500, "{} sends", ether.sends);
}

#[test]
fn a_node_that_takes_nothing_is_not_run_over() {
    let ether = Rc::default();
    let mut nodes = two(&ether);
    for round in 0..2000u32 {
        nodes[0].send(1, 16, &[&round.to_le_bytes(), &[0; 2000]]);
        if round % 50 == 0 {
            nodes[0].send(1, 17, &[&[1; 100_000]]);
        }
        turn(&mut nodes[0]);
    }
    assert!(nodes[0].backlog_bytes(1) > 1 << 20 && !nodes[0].is_flushed());
    let told = until(&mut nodes, |told| frames(told) == 2040);
    let numbers: Vec<u32> = told
        .iter()
        .filter_map(|(_, told)| match told {
            Told::Frame(0, 16, body) => Some(u32::from_le_bytes(body[..4].try_into().unwrap())),
            _ => None,
        })
        .collect();
    assert_eq!(numbers, (0..2000).collect::<Vec<u32>>());
    assert_eq!((nodes[0].backlog_bytes(1), ether.borrow().not_ready), (0, 0));
}

#[test]
fn who_sleeps_is_woken() {
    let ether = Rc::default();
    let mut nodes = two(&ether);
    // Until both would sleep.
    let start = Instant::now();
    while nodes.iter().any(|node| node.deadline().is_none_or(|at| at <= Instant::now())) {
        assert!(start.elapsed() < LIMIT);
        nodes.iter_mut().for_each(|node| assert!(turn(node).is_empty()));
    }
    let ready = |node: &Verbs<Tcp>| {
        poll(&mut [PollFd::new(node.readable(), PollFlags::POLLIN)], PollTimeout::ZERO).expect("poll") == 1
    };
    assert!(!nodes.iter().any(ready));
    nodes[0].send(1, 16, &[b"wake"]);
    nodes[0].flush();
    assert!(ready(&nodes[1]));
    assert!(matches!(&turn(&mut nodes[1])[..], [Told::Frame(0, 16, body)] if body == b"wake"));
}

#[test]
fn what_is_staged_goes_from_where_it_lies() {
    let ether = Rc::default();
    let mut nodes = two(&ether);
    let mut staged = 0;
    for round in 0..100u8 {
        nodes[0].send(1, 16, &[&[round]]);
        match nodes[0].stage(1, 100_000) {
            Some(body) => {
                body.fill(round);
                nodes[0].send_staged(1, 17);
                staged += 1;
            }
            None => nodes[0].send(1, 17, &[&vec![round; 100_000]]),
        }
        if round % 5 == 0 {
            // Given up, and forgotten.
            let _ = nodes[0].stage(1, 50_000);
        }
    }
    let told = until(&mut nodes, |told| frames(told) == 200);
    for (at, (_, told)) in told.iter().enumerate() {
        let (round, kind) = ((at / 2) as u8, 16 + (at % 2) as u8);
        assert!(matches!(told, Told::Frame(0, k, body) if *k == kind && body.iter().all(|b| *b == round)), "{at}");
    }
    assert!(staged >= 7, "{staged}");
    assert!(nodes[0].stage(1, 100).is_none(), "small ones are not staged");
    // As long as there is room each is staged, and there is room again when some have been taken.
    let mut count = 0;
    while nodes[0].has_room(1) {
        nodes[0].stage(1, 100_000).expect("it said so").fill(7);
        nodes[0].send_staged(1, 17);
        count += 1;
    }
    assert!((4..=8).contains(&count) && nodes[0].is_flushed(), "{count}");
    until(&mut nodes, |told| frames(told) == count);
    let start = Instant::now();
    while !nodes[0].has_room(1) {
        assert!(start.elapsed() < LIMIT);
        nodes.iter_mut().for_each(|node| drop(turn(node)));
    }
}

#[test]
fn a_cut_network_is_told_by_the_nodes_name() {
    let ether: Rc<RefCell<Ether>> = Rc::default();
    let mut nodes = two(&ether);
    ether.borrow_mut().cut = true;
    nodes[0].send(1, 16, &[b"anybody?"]);
    // The other end learns it, too: over TCP.
    let told = until(&mut nodes, |told| losses(told).len() == 2);
    let broke = |other: u32, why: &str| {
        (1 - other as usize, other, format!("the RDMA connection to node n{other} broke: {why}"))
    };
    assert_eq!(losses(&told), [broke(1, "toy status 12"), broke(0, "its end says: toy status 12")]);
    // Nothing goes there any more, and nothing panics.
    nodes[0].send(1, 16, &[b"anybody?"]);
    turn(&mut nodes[0]);
}

#[test]
fn a_dead_process_is_told_by_its_tcp_link() {
    let ether = Rc::default();
    let mut nodes = two(&ether);
    nodes[1].send(0, 16, &[b"last words"]);
    nodes[1].linger(Duration::from_secs(1));
    nodes.truncate(1);
    let told = until(&mut nodes, |told| losses(told).len() == 1);
    assert!(matches!(&told[0], (0, Told::Frame(1, 16, body)) if body == b"last words"), "{told:?}");
    assert!(losses(&told)[0].2.starts_with("node n1 has closed its connection"), "{told:?}");
}

#[test]
fn where_devices_do_not_reach_each_other_tcp_carries() {
    let ether: Rc<RefCell<Ether>> = Rc::default();
    ether.borrow_mut().cut = true;
    let mut nodes = joined(toys(&ether, 2), Demand::May);
    until(&mut nodes, |told| ups(told) == 2);
    exchange(&mut nodes);
    assert!(nodes[0].describe().contains("tcp with node n1 (a greeting between"), "{}", nodes[0].describe());
}

#[test]
fn a_node_without_a_device_uses_tcp_and_the_others_verbs() {
    let ether = Rc::default();
    let mut devices = toys(&ether, 3);
    devices[1] = Err("there is no RDMA device".into());
    let mut nodes = joined(devices, Demand::May);
    until(&mut nodes, |told| ups(told) == 6);
    exchange(&mut nodes);
    assert_eq!(nodes[1].describe(), "tcp, not verbs: there is no RDMA device");
    let told = nodes[2].describe();
    assert_eq!(told, "verbs (toy2 port 1), tcp with node n1 (on node n1: there is no RDMA device)");
}

/// Each sends to each other.
fn exchange(nodes: &mut [Verbs<Tcp>]) {
    let count = nodes.len();
    for (from, node) in nodes.iter_mut().enumerate() {
        for to in (0..count).filter(|to| *to != from) {
            node.send(to as u32, 16, &[&[from as u8, to as u8]]);
            node.send(to as u32, 17, &[&vec![from as u8; 50_000]]);
        }
    }
    let told = until(nodes, |told| frames(told) == 2 * count * (count - 1));
    for (me, told) in told {
        let Told::Frame(node, kind, body) = told else { panic!("{told:?}") };
        assert!(if kind == 16 { body == [node as u8, me as u8] } else { body == vec![node as u8; 50_000] });
    }
}

#[test]
fn demanded_verbs_that_do_not_work_end_the_job() {
    let ether: Rc<RefCell<Ether>> = Rc::default();
    ether.borrow_mut().cut = true;
    let mut nodes = joined(toys(&ether, 2), Demand::Must);
    let told = until(&mut nodes, |told| losses(told).len() == 2);
    for (me, node, why) in losses(&told) {
        assert!(why.starts_with(&format!("node n{node} cannot be reached by verbs: ")), "{me}: {why}");
        assert!(why.contains("toy status 12"), "{why}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is sent between turns in whatever order: everything comes, once, in order, and no receive is ever missing.
    #[test]
    fn any_traffic_comes_as_it_went(script in proptest::collection::vec((0u8..7, 0usize..20_000), 1..400)) {
        let ether = Rc::default();
        let mut nodes = two(&ether);
        let mut sent: [Vec<(u8, usize)>; 2] = Default::default();
        let mut came: [Vec<(u8, usize)>; 2] = Default::default();
        let mut note = |me: usize, told: Vec<Told>| {
            for told in told {
                match told {
                    Told::Frame(_, kind, body) => came[1 - me].push((kind, body.len())),
                    other => panic!("{other:?}"),
                }
            }
        };
        for (what, bytes) in script {
            let (from, to) = (usize::from(what % 2), 1 - usize::from(what % 2));
            let kind = 16 + (bytes % 100) as u8;
            match what {
                0..=3 => nodes[from].send(to as u32, kind, &[&vec![7; if what < 2 { bytes % 300 } else { bytes * 10 }]]),
                4 => {
                    let told = turn(&mut nodes[0]);
                    note(0, told);
                    continue;
                }
                5 => {
                    let told = turn(&mut nodes[1]);
                    note(1, told);
                    continue;
                }
                _ => match nodes[from].stage(to as u32, bytes + 8200) {
                    Some(_) if bytes % 3 == 0 => continue,
                    Some(_) => nodes[from].send_staged(to as u32, kind),
                    None => continue,
                },
            }
            sent[from].push((kind, match what { 0 | 1 => bytes % 300, 2 | 3 => bytes * 10, _ => bytes + 8200 }));
        }
        let (start, mut quiet) = (Instant::now(), 0);
        while quiet < 3 {
            prop_assert!(start.elapsed() < LIMIT);
            let told = [turn(&mut nodes[0]), turn(&mut nodes[1])];
            quiet = if told.iter().all(Vec::is_empty) && nodes.iter().all(Verbs::is_flushed) { quiet + 1 } else { 0 };
            let [first, second] = told;
            note(0, first);
            note(1, second);
        }
        prop_assert_eq!(&sent, &came);
        prop_assert_eq!(ether.borrow().not_ready, 0);
    }
}

fn compile(dir: &Path, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    let (from, to) = (dir.join(format!("{name}.c")), dir.join(name));
    std::fs::write(&from, source).unwrap();
    let done = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&to).arg(&from).args(flags).status();
    assert!(done.expect("there is a C compiler").success());
    to
}

#[test]
fn a_plugin_that_cannot_be_used_says_why() {
    let dir = std::env::temp_dir().join(format!("vmpi-plugin-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let why = |found: Result<Plugin, _>| found.err().map(|e: vmpi_fabric::verbs::PluginError| e.to_string()).unwrap();
    let told = why(Plugin::load(&[dir.join("a"), dir.join("b")]));
    assert!(
        told.contains("libvmpi_verbs.so") && told.contains("/a or ") && told.contains("built without it"),
        "{told}"
    );
    // What it needs is not on this host.
    compile(&dir, "libgone.so", "int gone(void) { return 1; }", &["-Wl,-soname,libgone.so.7"]);
    let needs = "int gone(void); int needs(void) { return gone(); }";
    let plugin = compile(&dir, "needs.so", needs, &["-L", dir.to_str().unwrap(), "-l:libgone.so"]);
    let told = why(Plugin::load_file(&plugin));
    assert!(told.contains("libgone.so.7") && told.contains("libibverbs1"), "{told}");
    let told = why(Plugin::load_file(&compile(&dir, "other.so", "int other;", &[])));
    assert!(told.contains("no plugin of vmpi"), "{told}");
    let old = "unsigned table[64] = { 77 }; void *vmpi_verbs_table(void) { return table; }";
    let told = why(Plugin::load_file(&compile(&dir, "old.so", old, &[])));
    assert!(told.contains("another version") && told.contains("77"), "{told}");
    let odd = "unsigned table[64] = { 1, 8 }; void *vmpi_verbs_table(void) { return table; }";
    let told = why(Plugin::load_file(&compile(&dir, "odd.so", odd, &[])));
    assert!(told.contains("another layout"), "{told}");
    let none = "void *vmpi_verbs_table(void) { return 0; }";
    let told = why(Plugin::load_file(&compile(&dir, "none.so", none, &[])));
    assert!(told.contains("it has no table"), "{told}");
    let _ = std::fs::remove_dir_all(&dir);
}
