//! Connections of those who do not belong to the job, far more of them than there is room for: its nodes find each other all the same, and where they cannot the
//! sentence says why.

mod told;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use told::{Told, losses, turn, until, ups};
use vmpi_fabric::auth::{Greeting, no_room};
use vmpi_fabric::fabric::WIRE_UP;
use vmpi_fabric::{Fabric, Key, Node, Tcp};

const MANY: u32 = 600;

/// Room for both ends of many connections.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("up to the hard limit");
    assert!(limit.maximum.is_none_or(|most| most >= 4096), "this test needs 4096 files: {limit:?}");
}

/// Somebody who has begun to connect to this port of the loopback, from an address of it.
fn stranger(from: Ipv4Addr, port: u16) -> OwnedFd {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
    bind(fd.as_raw_fd(), &SockaddrIn::from(std::net::SocketAddrV4::new(from, 0))).unwrap();
    let _ = connect(fd.as_raw_fd(), &SockaddrIn::from(std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)));
    fd
}

fn alias(n: u32) -> Ipv4Addr {
    Ipv4Addr::from(0x7f00_0100 + n % 1000)
}

fn two() -> (Tcp, Tcp, Vec<Node>) {
    let (a, b) = (Tcp::listen().unwrap(), Tcp::listen().unwrap());
    let at = |tcp: &Tcp| vec![SocketAddr::from((Ipv4Addr::LOCALHOST, tcp.port().unwrap()))];
    let node = |name: &str, addresses| Node { name: name.into(), addresses };
    let table = vec![node("n0", at(&a)), node("n1", at(&b))];
    (a, b, table)
}

fn key() -> Key {
    Key::from_bytes([7; 32])
}

/// Two nodes wire up, with strangers at the door of the lower one before and while they do; how many of those are there.
fn wire_up(strangers: impl Fn(u16, &AtomicBool) -> Vec<OwnedFd> + Sync) {
    allow_many_files();
    let (mut a, mut b, table) = two();
    let (port, done) = (a.port().unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let first = stranger(alias(0), port);
        let crowd = scope.spawn(|| strangers(port, &done));
        std::thread::sleep(Duration::from_millis(200));
        let now = Instant::now();
        a.join(0, table.clone(), key(), now).unwrap();
        b.join(1, table.clone(), key(), now).unwrap();
        let told = until(&mut [&mut a, &mut b], |told| ups(told) == 2 || !losses(told).is_empty());
        done.store(true, Ordering::SeqCst);
        assert!(losses(&told).is_empty(), "{told:?}");
        a.send(1, 16, &[b"x"]);
        until(&mut [&mut a, &mut b], |told| {
            told.iter().any(|(me, told)| matches!((me, told), (1, Told::Frame(0, 16, _))))
        });
        drop((first, crowd.join().unwrap()));
    });
}

#[test]
fn silent_ones_keep_nobody_out() {
    wire_up(|port, _| (0..MANY).map(|n| stranger(alias(n), port)).collect());
}

/// From the address that the nodes have, too.
#[test]
fn silent_ones_of_the_nodes_own_address_keep_nobody_out() {
    wire_up(|port, _| (0..MANY).map(|_| stranger(Ipv4Addr::LOCALHOST, port)).collect());
}

#[test]
fn those_that_come_again_and_again_keep_nobody_out() {
    wire_up(|port, done| {
        let mut crowd: Vec<OwnedFd> = Vec::new();
        for n in 0.. {
            if done.load(Ordering::SeqCst) {
                break;
            }
            let next = stranger(alias(n), port);
            match crowd.get_mut(n as usize % MANY as usize) {
                Some(place) => *place = next,
                None => crowd.push(next),
            }
        }
        crowd
    });
}

/// They know how a greeting looks, and whom it should name; only the key they do not have.
#[test]
fn those_that_greet_and_then_say_nothing_keep_nobody_out() {
    wire_up(|port, _| {
        let crowd: Vec<OwnedFd> = (0..MANY).map(|n| stranger(alias(n), port)).collect();
        std::thread::sleep(Duration::from_millis(50));
        for (n, fd) in crowd.iter().enumerate() {
            let greeting =
                Greeting { nodes: 2, from: 1, to: 0, lane: n as u32 % 2, sealed: false, nonce: [n as u8; 32] };
            let _ = nix::unistd::write(fd, &greeting.encode());
        }
        crowd
    });
}

/// Nothing is heard at the port of a node that all have found.
#[test]
fn who_comes_later_finds_the_door_closed() {
    let (mut a, mut b, table) = two();
    let port = a.port().unwrap();
    a.join(0, table.clone(), key(), Instant::now()).unwrap();
    b.join(1, table, key(), Instant::now()).unwrap();
    until(&mut [&mut a, &mut b], |told| ups(told) == 2);
    turn(&mut a);
    let late = std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    assert_eq!(late.map(drop).map_err(|e| e.kind()), Err(std::io::ErrorKind::ConnectionRefused));
}

/// Who waits for a node that does not come says whether others have come.
#[test]
fn who_waits_in_vain_says_what_kept_the_port_busy() {
    for strangers in [0, 300] {
        let (mut a, _b, table) = two();
        let (port, start) = (a.port().unwrap(), Instant::now());
        a.join(0, table, key(), start).unwrap();
        let crowd: Vec<OwnedFd> = (0..strangers).map(|n| stranger(alias(n), port)).collect();
        while start.elapsed() < Duration::from_secs(1) {
            assert!(turn(&mut a).is_empty());
        }
        drop(crowd);
        let mut told = Vec::new();
        a.progress(start + WIRE_UP, &mut |event| told.push(event_text(&event)));
        let told = told.join("\n");
        let why = match strangers {
            0 => "node n1 has not connected within 20 s: is there a firewall between the nodes?".to_string(),
            n => format!(
                "node n1 has not connected within 20 s, while {n} connections that were not of this job came to this node's \
                 port, the last from {}: is it being scanned?",
                alias(n - 1)
            ),
        };
        assert_eq!(told, why);
    }
}

/// Who is shown the door because there is no room tries again until the time is over, and then says that this was the cause.
#[test]
fn who_finds_no_room_says_so() {
    let door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = door.local_addr().unwrap();
    let node = |name: &str, addresses| Node { name: name.into(), addresses };
    let (mut b, start) = (Tcp::listen().unwrap(), Instant::now());
    b.join(1, vec![node("n0", vec![at]), node("n1", vec![])], key(), start).unwrap();
    door.set_nonblocking(true).unwrap();
    let (mut tries, mut kept) = (0, Vec::new());
    while tries < 6 {
        if let Ok((mut stream, _)) = door.accept() {
            stream.write_all(&no_room()).unwrap();
            kept.push(stream);
            tries += 1;
        }
        assert!(turn(&mut b).is_empty());
        assert!(start.elapsed() < WIRE_UP, "it has tried only {tries} times");
    }
    let mut told = Vec::new();
    b.progress(start + WIRE_UP, &mut |event| told.push(event_text(&event)));
    let why = "node n0: its port has no room left: more connections come to it from others than it can hear at a time";
    assert_eq!(told, [why]);
}

fn event_text(event: &vmpi_fabric::Event<'_>) -> String {
    match event {
        vmpi_fabric::Event::Lost(_, why) => why.to_string(),
        other => format!("{other:?}"),
    }
}
