//! Nodes in one process over the loopback: who gets in, order, large frames, and what a lost link says.

mod told;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use told::{LIMIT, Told, frames, losses, turn, until, ups};
use vmpi_fabric::auth::{End, GREETING_BYTES, Greeting, PROOF_BYTES, check, proof};
use vmpi_fabric::frame::{MAX_BODY_BYTES, VERSION, head};
use vmpi_fabric::{Emulated, Fabric, Key, Model, Node, Tcp};

fn key(byte: u8) -> Key {
    Key::from_bytes([byte; 32])
}

fn table(nodes: &[Tcp]) -> Vec<Node> {
    let at = |tcp: &Tcp| SocketAddr::from((Ipv4Addr::LOCALHOST, tcp.port().unwrap()));
    nodes.iter().enumerate().map(|(n, tcp)| Node { name: format!("n{n}"), addresses: vec![at(tcp)] }).collect()
}

/// `count` nodes that have joined, each with its key.
fn joined(keys: &[Key]) -> Vec<Tcp> {
    let mut nodes: Vec<Tcp> = keys.iter().map(|_| Tcp::listen().unwrap()).collect();
    let table = table(&nodes);
    for (me, key) in keys.iter().enumerate() {
        nodes[me].join(me as u32, table.clone(), key.clone(), Instant::now()).unwrap();
    }
    nodes
}

/// The same, with sealed frames.
fn sealed(count: usize) -> Vec<Tcp> {
    let mut nodes: Vec<Tcp> = (0..count).map(|_| Tcp::listen().unwrap()).collect();
    let table = table(&nodes);
    for (me, node) in nodes.iter_mut().enumerate() {
        node.seal();
        node.join(me as u32, table.clone(), key(1), Instant::now()).unwrap();
    }
    nodes
}

/// An emulated network over these links.
fn slowed(links: Vec<Tcp>, model: &str) -> Vec<Emulated<Tcp>> {
    let names: Vec<String> = (0..links.len()).map(|node| format!("n{node}")).collect();
    let model = Model::parse(model).unwrap();
    links.into_iter().map(|tcp| Emulated::new(tcp, model, names.clone()).unwrap()).collect()
}

#[test]
fn three_nodes_talk_in_order() {
    talk(joined(&[key(1), key(1), key(1)]));
}

#[test]
fn three_nodes_talk_in_order_under_seal() {
    let nodes = sealed(3);
    assert_eq!(nodes[0].describe(), "tcp, sealed");
    talk(nodes);
}

fn talk(mut nodes: Vec<Tcp>) {
    let [a, b, c] = &mut nodes[..] else { panic!() };
    until(&mut [a, b, c], |told| ups(told) == 6);
    let large: Vec<u8> = (0..MAX_BODY_BYTES).map(|at| (at * 7) as u8).collect();
    for round in 0..50u8 {
        a.send(1, 16, &[&[round], b"tail"]);
        b.send(0, 20, &[&large[..1000], &large[1000..]]);
        c.send(0, 17, &[&[round]]);
    }
    let told = until(&mut [a, b, c], |told| frames(told) == 150);
    let (mut at_b, mut from_c) = (0, 0);
    for (me, told) in told {
        let Told::Frame(node, kind, body) = told else { panic!("{told:?}") };
        match (me, node, kind) {
            (1, 0, 16) => {
                assert_eq!(body, [&[at_b][..], b"tail"].concat());
                at_b += 1;
            }
            (0, 1, 20) => assert!(body == large),
            (0, 2, 17) => {
                assert_eq!(body, [from_c]);
                from_c += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(nodes.iter().all(Tcp::is_flushed));
}

#[test]
fn a_wrong_key_gets_nobody_in() {
    let mut nodes = joined(&[key(1), key(2)]);
    let [a, b] = &mut nodes[..] else { panic!() };
    let told = until(&mut [a, b], |told| !losses(told).is_empty());
    assert_eq!(losses(&told), [(1, 0, "node n0: it does not have this job's key".to_string())]);
    assert_eq!(ups(&told), 0);
}

#[test]
fn nodes_of_which_one_seals_its_frames_say_so() {
    let mut nodes = [Tcp::listen().unwrap(), Tcp::listen().unwrap()];
    let table = table(&nodes);
    nodes[0].seal();
    for (me, node) in nodes.iter_mut().enumerate() {
        node.join(me as u32, table.clone(), key(1), Instant::now()).unwrap();
    }
    let [a, b] = &mut nodes;
    let told = until(&mut [a, b], |told| !losses(told).is_empty());
    let why =
        "node n0: its frames are sealed and this node's are not: --fabric must say the same on all nodes of a job";
    assert_eq!(losses(&told), [(1, 0, why.to_string())]);
}

/// Pass on what goes through, both ways; from `change` on, with a bit of what goes to the door changed.
fn stand_between(door: &TcpListener, to: u16, change: &'static AtomicBool) {
    for _ in 0..2 {
        let (upper, _) = door.accept().unwrap();
        let lower = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).unwrap();
        for (mut from, mut to, changes) in [
            (upper.try_clone().unwrap(), lower.try_clone().unwrap(), true),
            (lower.try_clone().unwrap(), upper.try_clone().unwrap(), false),
        ] {
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = from.read(&mut bytes) {
                    if changes && change.load(Ordering::SeqCst) {
                        bytes[count - 1] ^= 1;
                    }
                    if to.write_all(&bytes[..count]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
        }
    }
}

#[test]
fn what_is_changed_on_its_way_is_not_believed() {
    static CHANGE: AtomicBool = AtomicBool::new(false);
    let mut nodes = [Tcp::listen().unwrap(), Tcp::listen().unwrap()];
    let mut table = table(&nodes);
    let door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = nodes[0].port().unwrap();
    table[0].addresses = vec![door.local_addr().unwrap()];
    let between = std::thread::spawn(move || stand_between(&door, port, &CHANGE));
    for (me, node) in nodes.iter_mut().enumerate() {
        node.seal();
        node.join(me as u32, table.clone(), key(1), Instant::now()).unwrap();
    }
    let [a, b] = &mut nodes;
    until(&mut [&mut *a, &mut *b], |told| ups(told) == 2);
    between.join().unwrap();
    b.send(0, 16, &[b"right"]);
    let told = until(&mut [&mut *a, &mut *b], |told| !told.is_empty());
    assert!(matches!(&told[0], (0, Told::Frame(1, 16, body)) if body == b"right"), "{told:?}");
    CHANGE.store(true, Ordering::SeqCst);
    b.send(0, 16, &[b"changed"]);
    let told = until(&mut [a, b], |told| !told.is_empty());
    let why = "node n1 sent what is no frame: a frame whose seal is broken: it was changed on its way";
    assert_eq!(losses(&told), [(0, 1, why.to_string())]);
}

#[test]
fn strangers_are_shown_the_door_and_do_no_harm() {
    let mut nodes = joined(&[key(1), key(1)]);
    let port = nodes[0].port().unwrap();
    let mut strangers: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap()).collect();
    for (n, stranger) in strangers.iter_mut().enumerate() {
        stranger.write_all(&vec![n as u8; 10 * n]).unwrap();
    }
    let [a, b] = &mut nodes[..] else { panic!() };
    until(&mut [a, b], |told| ups(told) == 2);
    a.send(1, 16, &[b"x"]);
    until(&mut [a, b], |told| told.iter().any(|(me, told)| matches!((me, told), (1, Told::Frame(0, 16, _)))));
    // Whoever sent a whole greeting's worth of nonsense has been closed; nobody got a byte.
    let last = strangers.last_mut().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    assert!(matches!(last.read(&mut [0; 100]), Ok(0) | Err(_)));
}

#[test]
fn an_end_and_an_absence_have_their_sentences() {
    let mut nodes = joined(&[key(1), key(1)]);
    let mut b = nodes.pop().unwrap();
    let mut a = nodes.pop().unwrap();
    until(&mut [&mut a, &mut b], |told| ups(told) == 2);
    drop(b);
    let told = until(&mut [&mut a], |told| !losses(told).is_empty());
    assert!(losses(&told)[0].2.contains("node n1 has closed its connection"), "{told:?}");

    // Nobody listens there.
    let mut alone = Tcp::listen().unwrap();
    let mut table = table(&[Tcp::listen().unwrap()]);
    table.push(Node { name: "n1".into(), addresses: vec![] });
    alone.join(1, table, key(1), Instant::now()).unwrap();
    let told = until(&mut [&mut alone], |told| !losses(told).is_empty());
    assert!(losses(&told)[0].2.contains("node n0 cannot be reached at 127.0.0.1"), "{told:?}");
}

#[test]
fn the_emulated_network_is_as_slow_as_stated() {
    let mut nodes = slowed(joined(&[key(1), key(1)]), "30000:10");
    assert!(nodes[0].describe().starts_with("emulated (30000 us, 10 MB/s)"), "{}", nodes[0].describe());
    let [a, b] = &mut nodes[..] else { panic!() };
    until(&mut [a, b], |told| ups(told) == 2);
    let start = Instant::now();
    for n in 0..10u8 {
        a.send(1, 16, &[&vec![n; 100_000]]);
    }
    let mut n = 0;
    while n < 10 {
        for told in turn(b) {
            let Told::Frame(0, 16, body) = told else { panic!() };
            assert_eq!((body.len(), body[0]), (100_000, n));
            n += 1;
            // 30 ms, and 10 ms for each frame so far.
            assert!(start.elapsed() >= Duration::from_millis(30 + 10 * u64::from(n)));
        }
        turn(a);
        std::thread::yield_now();
    }
    for wrong in ["20", "x:1", "1:0", "-1:5", "1:nan"] {
        assert!(Model::parse(wrong).is_err(), "{wrong}");
    }
}

/// Does it become readable in this time?
fn wakes<F: Fabric>(fabric: &F, patience: Duration) -> bool {
    let mut fds = [PollFd::new(fabric.readable(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::try_from(patience).unwrap()).unwrap() == 1
}

/// Who sleeps is woken when a frame is due, and by nothing before.
#[test]
fn sleepers_of_the_emulated_network_wake_when_a_frame_is_due() {
    let mut nodes = slowed(joined(&[key(1), key(1)]), "100000:10");
    let [a, b] = &mut nodes[..] else { panic!() };
    until(&mut [a, b], |told| ups(told) == 2);
    // The ends open each other's memory.
    let end = Instant::now() + Duration::from_millis(400);
    while Instant::now() < end {
        assert!(turn(a).is_empty() && turn(b).is_empty());
        std::thread::sleep(Duration::from_millis(1));
    }
    for (round, several) in [(0u8, false), (1, true), (2, false)] {
        assert!(b.prepare_to_sleep(), "nothing has been sent");
        let start = Instant::now();
        a.send(1, 16, &[&[round]]);
        a.flush();
        if several {
            // Due shortly after the first one, and seen with it.
            std::thread::sleep(Duration::from_millis(1));
            a.send(1, 16, &[&[round]]);
            a.flush();
        }
        assert!(!wakes(b, Duration::from_millis(50)), "it is not due");
        assert!(wakes(b, LIMIT) && start.elapsed() >= Duration::from_millis(100));
        let mut came = turn(b);
        while came.len() <= usize::from(several) {
            std::thread::sleep(b.deadline().unwrap().saturating_duration_since(Instant::now()));
            came.extend(turn(b));
            if !several {
                break;
            }
        }
        assert!(came.iter().all(|told| matches!(told, Told::Frame(0, 16, body) if body[..] == [round])), "{came:?}");
        assert!(start.elapsed() < Duration::from_millis(900), "{:?}", start.elapsed());
    }
    a.send(1, 16, &[&[9]]);
    a.flush();
    assert!(!b.prepare_to_sleep(), "something has been sent that was not looked for");
    assert!(turn(b).is_empty() && b.prepare_to_sleep());
    drop(nodes.remove(0));
    assert!(wakes(&nodes[0], Duration::from_millis(50)), "an end is told at once");
}

/// Large bodies that come one shortly after the other wake a sleeper one by one, or some of them together while nobody could make use of them.
#[test]
fn large_bodies_of_the_emulated_network_wake_who_can_use_them() {
    // A body each 1.5 ms.
    let mut nodes = slowed(joined(&[key(1), key(1)]), "4000:10");
    let [a, b] = &mut nodes[..] else { panic!() };
    until(&mut [a, b], |told| ups(told) == 2);
    let end = Instant::now() + Duration::from_millis(100);
    while Instant::now() < end {
        assert!(turn(a).is_empty() && turn(b).is_empty());
        std::thread::sleep(Duration::from_millis(1));
    }
    // How many are told at each waking, and how late the last one; who sleeps when they are sent is woken, who has seen them coming wakes by itself.
    let mut told = |idle_hands: bool, seen: bool| {
        b.moderate(idle_hands);
        assert!(b.prepare_to_sleep());
        let start = Instant::now();
        for _ in 0..3 {
            a.send_bulk(1, 17, &[&[7; 15_000]]);
        }
        a.flush();
        if seen {
            assert!(turn(b).is_empty());
            b.prepare_to_sleep();
        }
        let (mut together, mut left) = (Vec::new(), 3);
        while left > 0 {
            let due = b.deadline().map_or(LIMIT, |at| at.saturating_duration_since(Instant::now()));
            // Whole milliseconds.
            wakes(b, due.min(LIMIT) + Duration::from_millis(1));
            let came = turn(b).len();
            left -= came;
            together.extend((came > 0).then_some(came));
            b.prepare_to_sleep();
        }
        (together, start.elapsed())
    };
    for seen in [false, true] {
        // This process may itself be late, but not every time.
        let (mut one_by_one, mut at_once) = (0, 0);
        for _ in 0..20 {
            let ((each, late), (all, no_later)) = (told(false, seen), told(true, seen));
            one_by_one += u32::from(each == [1, 1, 1]);
            at_once += u32::from(all == [3]);
            assert!(late.min(no_later) >= Duration::from_micros(8_400), "{late:?} {no_later:?}");
        }
        assert!(one_by_one > 0 && at_once > 0, "seen: {seen}, one by one: {one_by_one}, at once: {at_once}");
    }
}

/// In order, whether staged or not, however many slots there are, and as slow as stated.
#[test]
fn staged_bodies_of_the_emulated_network_come_as_they_went() {
    let mut nodes = slowed(joined(&[key(1), key(1)]), "1000:50");
    let [a, b] = &mut nodes[..] else { panic!() };
    until(&mut [a, b], |told| ups(told) == 2);
    let body = |n: usize| vec![n as u8; 1 + n * 997 % 100_000];
    let (start, mut came, mut bytes, mut staged) = (Instant::now(), 0, 0, 0);
    for sent in 0..200 {
        let goes = body(sent);
        match a.stage(1, goes.len()) {
            Some(memory) if sent % 3 != 0 => {
                memory.copy_from_slice(&goes);
                a.send_staged(1, 17);
                staged += 1;
            }
            _ => a.send_bulk(1, 17, &[&goes]),
        }
        while came <= sent && (sent == 199 || sent - came > 20) {
            for told in turn(b) {
                let Told::Frame(0, 17, got) = told else { panic!("{told:?}") };
                assert!(got == body(came), "{came}");
                (came, bytes) = (came + 1, bytes + got.len());
                assert!(start.elapsed().as_secs_f64() >= 0.001 + bytes as f64 / 50e6);
            }
            turn(a);
            std::thread::yield_now();
        }
    }
    assert!(staged > 20, "only {staged} of 200 were staged");
}

#[test]
fn small_frames_do_not_wait_behind_large_messages() {
    // Once all that fits into the connection's buffers has been sent.
    let mut nodes = joined(&[key(1), key(1)]);
    let [a, b] = &mut nodes[..] else { panic!() };
    until(&mut [a, b], |told| ups(told) == 2);
    let large: Vec<u8> = (0..MAX_BODY_BYTES).map(|at| (at * 7) as u8).collect();
    let mut sent = 0;
    while a.has_room(1) {
        a.send_bulk(1, 18, &[&large]);
        sent += 1;
    }
    a.send(1, 16, &[b"first"]);
    let told = until(&mut [a, b], |told| told.len() == sent + 1);
    let kinds: Vec<u8> =
        told.iter().map(|(_, told)| if let Told::Frame(0, kind, _) = told { *kind } else { 0 }).collect();
    let overtaken = kinds.iter().rev().take_while(|kind| **kind == 18).count();
    assert!(sent > 1 && overtaken > 0, "{sent} large frames, {kinds:?}");
    assert!(
        told.iter().all(|(_, told)| matches!(told, Told::Frame(0, 16, _))
            || matches!(told, Told::Frame(0, 18, body) if *body == large))
    );

    let mut nodes = slowed(nodes, "1000:1");
    let [a, b] = &mut nodes[..] else { panic!() };
    let start = Instant::now();
    // 200 ms, and a small frame 1 ms after it was sent.
    a.send_bulk(1, 18, &[&large[..100_000]]);
    a.send_bulk(1, 18, &[&large[..100_000]]);
    assert!(!a.has_room(1) && a.backlog_bytes(1) == 0, "{}", a.backlog_bytes(1));
    a.send(1, 16, &[b"first"]);
    let mut came = Vec::new();
    while came.len() < 3 {
        for told in turn(b) {
            let Told::Frame(0, kind, _) = told else { panic!("{told:?}") };
            came.push((kind, start.elapsed()));
        }
        turn(a);
        std::thread::yield_now();
    }
    let [(16, small), (18, one), (18, two)] = came[..] else { panic!("{came:?}") };
    assert!(small >= Duration::from_millis(1) && small < one, "{came:?}");
    assert!(one >= Duration::from_millis(101) && two >= Duration::from_millis(201), "{came:?}");
}

/// One of the two connections of node 1 to node 0, which has the key.
fn connect_as_node_1(to: &mut Tcp, lane: u32, told: &mut Vec<Told>) -> TcpStream {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, to.port().unwrap())).unwrap();
    let own = Greeting { nodes: 2, from: 1, to: 0, lane, sealed: false, nonce: [5; 32] };
    stream.write_all(&own.encode()).unwrap();
    stream.set_nonblocking(true).unwrap();
    let mut hear = |stream: &mut TcpStream, bytes: usize| {
        let (start, mut answer) = (Instant::now(), Vec::new());
        while answer.len() < bytes {
            assert!(start.elapsed() < LIMIT);
            told.extend(turn(to));
            let mut more = vec![0; bytes - answer.len()];
            if let Ok(count) = stream.read(&mut more) {
                answer.extend_from_slice(&more[..count]);
            }
        }
        answer
    };
    let answer = hear(&mut stream, GREETING_BYTES + PROOF_BYTES);
    let theirs = Greeting::decode(answer.first_chunk().unwrap()).unwrap();
    stream.write_all(&proof(&key(1), End::Connecting, &own, &theirs)).unwrap();
    let welcome = hear(&mut stream, PROOF_BYTES);
    check(&key(1), End::Welcome, &own, &theirs, &welcome).unwrap();
    stream
}

/// Connects to node 0 of two as node 1, has the key, and then sends these bytes by lane `lane`.
fn send_as_node_1(to: &mut Tcp, lane: usize, bytes: &[u8]) -> ([TcpStream; 2], Vec<(usize, Told)>) {
    let mut streams = [0, 1].map(|lane| connect_as_node_1(to, lane, &mut Vec::new()));
    streams[lane].write_all(bytes).unwrap();
    let told = until(&mut [to], |told| !losses(told).is_empty());
    (streams, told)
}

#[test]
fn a_node_that_sends_no_frames_is_named() {
    let too_long = (MAX_BODY_BYTES as u32 + 1).to_le_bytes();
    for (lane, bytes, why) in [
        (0, [&too_long[..], &[16, VERSION, 0, 0]].concat(), "a frame of 262145 bytes is longer than 262144 allowed"),
        (1, vec![0, 0, 0, 0, 16, VERSION + 1, 0, 0], "a frame of version"),
        (0, vec![0, 0, 0, 0, 16, VERSION, 7, 0], "where zeros must be"),
    ] {
        let mut a = Tcp::listen().unwrap();
        let mut table = table(&[Tcp::listen().unwrap()]);
        table.push(Node { name: "n1".into(), addresses: vec![] });
        a.join(0, table, key(1), Instant::now()).unwrap();
        let good = head(16, 2);
        let (mut streams, told) = send_as_node_1(&mut a, lane, &[&good[..], b"ok", &bytes].concat());
        // What came before counts.
        assert!(told.iter().any(|(_, told)| matches!(told, Told::Frame(1, 16, body) if body == b"ok")), "{told:?}");
        let (_, node, sentence) = &losses(&told)[0];
        assert!(*node == 1 && sentence.starts_with("node n1 sent what is no frame: "), "{sentence}");
        assert!(sentence.contains(why), "{sentence}");
        // It can still be told that the job ends, so that it does not take this node for dead.
        a.send(1, 23, &[]);
        a.linger(Duration::from_millis(200));
        drop(a);
        streams[0].set_nonblocking(false).unwrap();
        let mut last = Vec::new();
        let _ = streams[0].read_to_end(&mut last);
        assert_eq!(last, head(23, 0), "{why}");
    }
}

#[test]
fn the_last_words_of_one_lane_count_when_the_other_has_been_closed() {
    for closes in [true, false] {
        let mut a = Tcp::listen().unwrap();
        let mut table = table(&[Tcp::listen().unwrap()]);
        table.push(Node { name: "n1".into(), addresses: vec![] });
        a.join(0, table, key(1), Instant::now()).unwrap();
        let mut told = Vec::new();
        let [mut small, bulk] = [0, 1].map(|lane| connect_as_node_1(&mut a, lane, &mut told));
        assert!(matches!(told[..], [Told::Up(1)]), "{told:?}");
        drop(bulk);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(100) {
            assert!(turn(&mut a).is_empty());
        }
        small.write_all(&[&head(16, 3)[..], b"why"].concat()).unwrap();
        let told = until(&mut [&mut a], |told| !told.is_empty());
        assert!(matches!(&told[0].1, Told::Frame(1, 16, body) if body == b"why"), "{told:?}");
        if closes {
            drop(small);
        }
        let told = until(&mut [&mut a], |told| !losses(told).is_empty());
        assert!(losses(&told)[0].2.contains("node n1 has closed its connection"), "{told:?}");
        assert_eq!(start.elapsed() < Duration::from_millis(900), closes);
    }
}
