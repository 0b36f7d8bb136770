//! A node of the job that has the key and lies: driven through the carrier as it is, over a fabric that says what the test wants.
//!
//! Each lie ends in a sentence with the node's name or is of no effect, nothing panics, and what the carrier holds stays within bounds that do not depend on
//! how much the node sends.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Instant;

use vmpi_fabric::frame::MAX_BODY_BYTES;
use vmpi_fabric::{Event, Fabric};
use vmpi_shared::ask::{Ask, What};
use vmpi_shared::control::{Connection, Nodes, Request};
use vmpi_shared::endpoint::carrier::CarrierEndpoint;
use vmpi_shared::job::{JobConfig, JobSegment};
use vmpi_shared::matching::envelope::{Envelope, FLAG_MAPPED, FLAG_SYNC, kind};
use vmpi_shared::node::{NodeConfig, NodeSegment};

use super::idle::Moves;
use super::{CarrierLoop, Fin};
use crate::carrier::transfer::Announced;
use crate::carrier::wire;

/// Ranks 0 and 1 are here; who lies is node 1 with ranks 2 and 3; rank 4 is an honest third node's.
const HERE: u32 = 0;
const LIAR: u32 = 1;
const RANKS: u32 = 5;
const OF_RANK: [u32; RANKS as usize] = [HERE, HERE, LIAR, LIAR, 2];
const UNASKED: u32 = 1 << 31;

type Frames = Vec<(u8, Vec<u8>)>;

/// What the two ends of the test's fabric share.
#[derive(Default)]
struct Air {
    up: bool,
    coming: Frames,
    /// Of what goes to the liar only how much: it does not read.
    unread_bytes: usize,
}

struct Ether {
    air: Rc<RefCell<Air>>,
    wakes: UnixStream,
}

impl Fabric for Ether {
    fn describe(&self) -> String {
        "the test's".into()
    }

    fn readable(&self) -> BorrowedFd<'_> {
        self.wakes.as_fd()
    }

    fn send(&mut self, node: u32, _kind: u8, parts: &[&[u8]]) {
        if node == LIAR {
            self.air.borrow_mut().unread_bytes += 8 + parts.iter().map(|part| part.len()).sum::<usize>();
        }
    }

    fn backlog_bytes(&self, node: u32) -> usize {
        if node == LIAR { self.air.borrow().unread_bytes } else { 0 }
    }

    fn is_flushed(&self) -> bool {
        true
    }

    fn flush(&mut self) {}

    fn progress(&mut self, _now: Instant, on_event: &mut dyn FnMut(Event<'_>)) {
        let (first, frames) = {
            let mut air = self.air.borrow_mut();
            (!std::mem::replace(&mut air.up, true), std::mem::take(&mut air.coming))
        };
        if first {
            on_event(Event::Up(LIAR));
            on_event(Event::Up(2));
        }
        for (kind, body) in &frames {
            on_event(Event::Frame { node: LIAR, kind: *kind, body });
        }
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}

#[derive(Copy, Clone, Default)]
struct Job {
    recovery: bool,
    by_rank: bool,
}

const PLAIN: Job = Job { recovery: false, by_rank: false };
const RECOVERY: Job = Job { recovery: true, by_rank: false };
const BY_RANK: Job = Job { recovery: false, by_rank: true };

/// A carrier of node 0, and the other ends of what it talks to.
struct Stage {
    post: CarrierLoop,
    air: Rc<RefCell<Air>>,
    daemon: Connection,
    _wakes: UnixStream,
}

impl Stage {
    fn new(job: Job) -> Stage {
        let config = NodeConfig { recovery: job.recovery, ..NodeConfig::on_one_core(0, RANKS) };
        let mut node = NodeSegment::create(&config).unwrap();
        node.spread(|rank| OF_RANK[rank as usize] != HERE);
        for rank in [0, 1] {
            node.set_pid(rank, std::process::id() as i32);
            node.introduce(rank);
        }
        let memory = JobConfig { cells: 1, inbox_cells: 64, slots: 4096, ..JobConfig::for_ranks(RANKS) };
        let segment = JobSegment::create(&memory.with_memory(1 << 20)).unwrap();
        let (wakes, other) = UnixStream::pair().unwrap();
        let air = Rc::new(RefCell::new(Air::default()));
        let fabric = Box::new(Ether { air: Rc::clone(&air), wakes });
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let nodes = Nodes { names, of_rank: OF_RANK.to_vec(), progress_by_rank: job.by_rank, ..Nodes::default() };
        let post = CarrierLoop::new(CarrierEndpoint::new(node, segment), fabric, Connection::new(ours), nodes);
        let mut stage = Stage { post, air, daemon: Connection::new(theirs), _wakes: other };
        assert_eq!(stage.says(&[]), None);
        stage
    }

    /// The liar sends these frames; what the carrier then tells its daemon of a lost node.
    fn says(&mut self, frames: &[(u8, Vec<u8>)]) -> Option<String> {
        self.air.borrow_mut().coming.extend_from_slice(frames);
        self.post.step(Instant::now(), Moves::Yes).unwrap();
        let mut lost = None;
        while let Ok(Some((request, _))) = self.daemon.receive::<Request>() {
            if let Request::Lost { reason } = request {
                lost = Some(reason);
            }
        }
        lost
    }

    /// Bytes, about, that the carrier holds on account of what has come.
    fn held_bytes(&self) -> usize {
        let CarrierLoop { deaths, kept, outgoing, incoming, windows, .. } = &self.post;
        let waiting: usize = windows.values().map(|open| open.held_bytes()).sum();
        self.post.pending_bytes()
            + deaths.held_bytes()
            + kept.held_bytes()
            + waiting
            + (outgoing.len() + incoming.len()) * 256
            + self.air.borrow().unread_bytes
    }
}

fn envelope(kind: u8, from: u32, request: u32, len: u64) -> Envelope {
    let mut envelope = Envelope::EMPTY;
    (envelope.kind, envelope.from, envelope.request, envelope.len) = (kind, from, request, len);
    envelope
}

fn frame(to: u32, envelope: &Envelope, payload: &[u8]) -> (u8, Vec<u8>) {
    let (bytes, used) = wire::encode(to, envelope);
    (wire::ENVELOPE, [&bytes[..used], payload].concat())
}

fn words(kind: u8, words: &[u32]) -> (u8, Vec<u8>) {
    (kind, words.iter().flat_map(|word| word.to_le_bytes()).collect())
}

fn inline(len: u64) -> (u8, Vec<u8>) {
    frame(0, &envelope(kind::INLINE, 2, 0, len), &[])
}

fn slab(bytes: usize) -> (u8, Vec<u8>) {
    frame(0, &envelope(kind::SLAB, 2, 0, bytes as u64), &vec![7; bytes])
}

fn followed(transfer: u32, len: u64) -> (u8, Vec<u8>) {
    let (bytes, used) = wire::encode(0, &envelope(kind::RTS, 2, 5, len));
    (wire::FOLLOWED, [&transfer.to_le_bytes()[..], &bytes[..used]].concat())
}

fn data(transfer: u32, bytes: usize) -> (u8, Vec<u8>) {
    (wire::DATA, [&transfer.to_le_bytes()[..], &vec![1; bytes]].concat())
}

fn ask(what: What, window: (i32, u32)) -> (u8, Vec<u8>) {
    frame(0, &Ask::new(what, window, 1, 0).envelope(2, 9, 0), &[])
}

/// With bytes of the frame changed.
fn changed((kind, mut body): (u8, Vec<u8>), at: usize, bytes: &[u8]) -> (u8, Vec<u8>) {
    body[at..at + bytes.len()].copy_from_slice(bytes);
    (kind, body)
}

/// Where these lie in the frame of an envelope.
const FLAGS: usize = 5;
const REQUEST: usize = 22;
const LEN: usize = 26;
const NUMBERS: usize = 36;

#[test]
fn each_lie_is_named() {
    let far = 0xffff_fff0u32.to_le_bytes();
    let (none, some): (&[u8], &[u8]) = (&[], &[1]);
    let with_flag = changed(frame(0, &envelope(kind::RTS, 2, 1, 1 << 20), none), FLAGS, &[FLAG_MAPPED]);
    let of_kept = changed(frame(0, &envelope(kind::RTS, 2, 1, 1 << 20), none), REQUEST, &far);
    let synchronous = Envelope { flags: FLAG_SYNC, ..envelope(kind::INLINE, 2, 0, 8) };
    let mut piece = envelope(kind::PIECE, 2, 1, 8);
    piece.set_offset(u64::MAX - 3);
    let mut empty_block = envelope(kind::PIECE, 2, 1, 0);
    empty_block.set_addr(4096);
    let cases: Vec<(Job, (u8, Vec<u8>), &str)> = vec![
        // READY: sender, request, transfer, length.
        (RECOVERY, words(wire::READY, &[RANKS, 0, 1, 8, 0]), "rank 5, which is not here"),
        (RECOVERY, words(wire::READY, &[u32::MAX, 0, 1, 8, 0]), "rank 4294967295, which is not here"),
        (PLAIN, words(wire::READY, &[2, 0, 1, 8, 0]), "rank 2, which is not here"),
        (PLAIN, words(wire::READY, &[0, u32::MAX, 1, 8, 0]), "whose request is 4294967295"),
        (PLAIN, words(wire::READY, &[0, 0, UNASKED, 8, 0]), "whose transfer is 2147483648"),
        (PLAIN, words(wire::READY, &[0, 0, 1, 8]), "of kind 18 with 16 bytes"),
        // CREDIT: rank, count, unexpected.
        (PLAIN, words(wire::CREDIT, &[4, 1, 0]), "from rank 4, which is not there"),
        (PLAIN, words(wire::CREDIT, &[RANKS, 1, 0]), "from rank 5, which is not there"),
        (PLAIN, words(wire::CREDIT, &[2, 0, 0]), "whose count is 0"),
        (PLAIN, words(wire::CREDIT, &[2, 65, 0]), "whose count is 65"),
        // REFUSED: transfer, errno.
        (PLAIN, words(wire::REFUSED, &[7, 5]), "a transfer that does not exist (7)"),
        (PLAIN, words(wire::REFUSED, &[UNASKED, 4096]), "whose errno is 4096"),
        (RECOVERY, words(wire::REFUSED, &[UNASKED, 5]), "which has no place in this job"),
        // What is said in a job that survives deaths, and of whom.
        (PLAIN, words(wire::SENT, &[0]), "of kind 24, which has no place in this job"),
        (PLAIN, words(wire::DEAD, &[2]), "of kind 25, which has no place in this job"),
        (PLAIN, words(wire::KNOWN, &[4]), "of kind 27, which has no place in this job"),
        (PLAIN, words(wire::REVOKED, &[6]), "of kind 26, which has no place in this job"),
        (RECOVERY, words(wire::DEAD, &[0]), "from rank 0, which is not there"),
        (RECOVERY, words(wire::DEAD, &[RANKS]), "from rank 5, which is not there"),
        (RECOVERY, words(wire::KNOWN, &[0]), "from rank 0, which is not there"),
        (RECOVERY, words(wire::KNOWN, &[2]), "from rank 2, which is not there"),
        (RECOVERY, words(wire::REVOKED, &[u32::MAX]), "whose context is 4294967295"),
        (RECOVERY, words(wire::SENT, &[UNASKED]), "whose transfer is 2147483648"),
        // FOLLOWED, DATA.
        (RECOVERY, followed(UNASKED, 100), "of kind 28, which has no place in this job"),
        (BY_RANK, followed(UNASKED, 100), "of kind 28, which has no place in this job"),
        (PLAIN, followed(3, 100), "whose transfer is 3"),
        (PLAIN, followed(UNASKED, 0), "whose length is 0"),
        (PLAIN, followed(UNASKED, 1 << 40), "whose length is 1099511627776"),
        (PLAIN, data(3, 1), "a transfer that does not exist (3)"),
        (PLAIN, data(UNASKED, 0), "of kind 19 with 0 bytes"),
        (PLAIN, (wire::DATA, vec![1, 2, 3]), "of kind 19 with 3 bytes"),
        (PLAIN, words(wire::TAKEN, &[0]), "whose number of bytes is 0"),
        // Words alone.
        (PLAIN, (wire::BYE, some.to_vec()), "of kind 21 with 1 bytes"),
        (PLAIN, (wire::QUIT, some.to_vec()), "of kind 23 with 1 bytes"),
        (PLAIN, (wire::BYE_HEARD, none.to_vec()), "of kind 22, which has no place in this job"),
        (PLAIN, (wire::TAKEN + 1, none.to_vec()), "of kind 30, which does not exist"),
        // Envelopes: whom, what, how long.
        (PLAIN, frame(2, &synchronous, none), "rank 2, which is not here"),
        (PLAIN, frame(RANKS, &synchronous, none), "rank 5, which is not here"),
        (PLAIN, frame(0, &Envelope { from: 4, ..synchronous }, none), "from rank 4, which is not there"),
        (PLAIN, frame(0, &Envelope { from: 0, ..synchronous }, none), "from rank 0, which is not there"),
        (PLAIN, frame(0, &Envelope { from: u32::MAX, ..synchronous }, none), "from rank 4294967295"),
        (PLAIN, frame(0, &envelope(kind::PLACED, 2, 0, 0), none), "an envelope of kind 9, which does not travel"),
        (PLAIN, frame(0, &envelope(kind::LET_GO, 2, 0, 0), none), "an envelope of kind 11, which does not travel"),
        (PLAIN, changed(inline(8), LEN, &[200]), "of kind 16 with"),
        (PLAIN, changed(inline(8), LEN, &[9]), "of kind 16 with"),
        (PLAIN, changed(slab(5000), LEN + 6, &[1]), "of kind 16 with"),
        (PLAIN, slab(65537), "of kind 16 with"),
        (PLAIN, with_flag, "whose flags is 4"),
        (PLAIN, of_kept, "whose request is 4294967280"),
        (PLAIN, frame(0, &envelope(kind::FIN, 2, 4096, 0), none), "whose request is 4096"),
        (PLAIN, frame(0, &envelope(kind::PULL, 2, 4096, 0), none), "whose request is 4096"),
        (PLAIN, frame(0, &piece, none), "whose offset is 18446744073709551612"),
        (PLAIN, frame(0, &empty_block, none), "of kind 16 with"),
        (PLAIN, ask(What::Open, (0, 0)), "an ask that makes no sense"),
        (PLAIN, changed(ask(What::Lock, (0, 0)), 18, &[99]), "an ask that makes no sense"),
        (PLAIN, changed(ask(What::Lock, (0, 0)), NUMBERS + 24 + 8, &[2]), "an ask that makes no sense"),
    ];
    for (at, (job, frame, sentence)) in cases.into_iter().enumerate() {
        let mut stage = Stage::new(job);
        let said = stage.says(std::slice::from_ref(&frame));
        let told = said.is_some_and(|said| said.starts_with("node b sent ") && said.contains(sentence));
        assert!(told, "case {at}: {sentence}: {:?}", stage.says(&[]));
        // It is heard no more.
        let before = stage.held_bytes();
        assert_eq!(stage.says(&[inline(8), followed(UNASKED, 100), words(wire::SENT, &[0])]), None);
        assert_eq!(stage.held_bytes(), before, "case {at}");
    }
}

fn announce(stage: &mut Stage, request: u32, to: u32) {
    let place = Announced { addr: 4096, open: false, blocks: 0, len: 1 << 20, to, fin: Fin::Carrier, wanted: false };
    stage.post.announced.insert((0, request), place);
}

#[test]
fn a_message_for_a_third_node_is_not_given_away() {
    let mut stage = Stage::new(PLAIN);
    announce(&mut stage, 7, 4);
    let said = stage.says(&[words(wire::READY, &[0, 7, 1, 8, 0])]).unwrap();
    assert!(said.contains("rank 4, which is not there") && stage.post.outgoing.is_empty(), "{said}");
}

#[test]
fn a_message_is_asked_for_once() {
    let mut stage = Stage::new(BY_RANK);
    announce(&mut stage, 7, 2);
    let ready = words(wire::READY, &[0, 7, 1, 8, 0]);
    assert_eq!(stage.says(std::slice::from_ref(&ready)), None);
    assert!(stage.says(&[ready]).unwrap().contains("a transfer that does not exist"));
}

/// However much of it comes: bounded, and where there is no honest reading of it the job ends.
#[test]
fn floods_are_bounded() {
    type Flood = fn(u32) -> (u8, Vec<u8>);
    const MOST_BYTES: usize = 24 << 20;
    let floods: [(&str, Job, Flood, Option<&str>); 18] = [
        ("messages", PLAIN, |_| inline(128), Some("more messages for rank 0 than it had room for")),
        ("payloads", PLAIN, |_| slab(65536), Some("more messages for rank 0 than it had room for")),
        (
            "pieces",
            PLAIN,
            |_| {
                let mut piece = envelope(kind::PIECE, 2, 1, 4096);
                piece.set_addr(1);
                frame(0, &piece, &[3; 4096])
            },
            Some("more messages for rank 0 than it had room for"),
        ),
        ("announcements", PLAIN, |n| frame(0, &envelope(kind::RTS, 2, n, 1 << 30), &[]), Some("had room for")),
        ("answers", PLAIN, |n| frame(0, &envelope(kind::FIN, 2, n % 4096, 0), &[]), Some("more answers for rank 0")),
        ("pulls", PLAIN, |n| frame(0, &envelope(kind::PULL, 2, n % 4096, 8), &[]), Some("more answers for rank 0")),
        ("followed", PLAIN, |n| followed(UNASKED | n, 1 << 19), Some("had room for")),
        ("bytes ahead", PLAIN, |n| data(UNASKED | n, 1), Some("more data than it may send before it is asked")),
        ("data ahead", PLAIN, |n| data(UNASKED | n, 100_000), Some("more data than it may send")),
        ("refusals", PLAIN, |n| words(wire::REFUSED, &[UNASKED | n, 5]), Some("more data than it may send")),
        ("withheld", PLAIN, |n| words(wire::REFUSED, &[UNASKED | n, 0]), Some("more data than it may send")),
        ("ready", PLAIN, |n| words(wire::READY, &[0, n, n, 8, 0]), Some("does not take the answers")),
        ("ready of the bereaved", RECOVERY, |n| words(wire::READY, &[0, n, n, 8, 0]), Some("does not take")),
        ("asks", PLAIN, |n| ask(What::Lock, (0, n)), Some("more messages for rank 0 than it had room for")),
        ("sent", RECOVERY, |n| words(wire::SENT, &[n]), None),
        ("known", RECOVERY, |_| words(wire::KNOWN, &[4]), None),
        ("dead", RECOVERY, |n| words(wire::DEAD, &[2 + n % 2]), None),
        ("taken", PLAIN, |n| words(wire::TAKEN, &[n | 1]), None),
    ];
    for (name, job, flood, sentence) in floods {
        let mut stage = Stage::new(job);
        let (mut said, mut most) = (None, 0);
        for batch in 0..150u32 {
            let frames: Frames = (0..500).map(|n| flood(batch * 500 + n)).collect();
            said = said.or(stage.says(&frames));
            most = most.max(stage.held_bytes());
            assert!(most <= MOST_BYTES, "{name}: {most} bytes held after {batch} batches");
        }
        match sentence {
            Some(sentence) => {
                let said = said.unwrap_or_default();
                assert!(said.starts_with("node b sent ") && said.contains(sentence), "{name}: {said}");
            }
            None => assert_eq!(said, None, "{name}"),
        }
    }
}

/// An honest node that uses all its credits, and gets them back.
#[test]
fn who_keeps_within_its_credits_goes_on() {
    let mut stage = Stage::new(PLAIN);
    for round in 0..200 {
        let frames: Frames = (0..wire::CREDITS).map(|_| inline(128)).collect();
        assert_eq!(stage.says(&frames), None, "round {round}");
        // The rank takes them out, and what was held goes in.
        while stage.post.endpoint.job.inbox(0).pop_if(|_| true) {}
        assert_eq!(stage.says(&[]), None);
        stage.air.borrow_mut().unread_bytes = 0;
    }
}

/// Who lives on is told of a lie by a sentence, not by a carrier that has panicked; and a node of which all is refused has not killed rank 4.
#[test]
fn a_lie_about_the_dead_kills_no_others() {
    let mut stage = Stage::new(RECOVERY);
    assert_eq!(stage.says(&[words(wire::DEAD, &[2]), words(wire::DEAD, &[2])]), None);
    assert!(stage.post.has_failed(2) && !stage.post.has_failed(3));
    assert!(stage.says(&[words(wire::DEAD, &[4])]).unwrap().contains("from rank 4, which is not there"));
    assert!(!stage.post.has_failed(4) && !stage.post.has_failed(0));
}

/// A frame that may be right, or one with bytes of it changed.
fn any_frame(chance: &mut fastrand::Rng, job: Job) -> (u8, Vec<u8>) {
    let small = |chance: &mut fastrand::Rng| match chance.u8(..4) {
        0 => chance.u32(..8),
        1 => UNASKED | chance.u32(..8),
        2 => chance.u32(..5000),
        _ => chance.u32(..),
    };
    let kinds = [kind::INLINE, kind::SLAB, kind::RTS, kind::FIN, kind::PULL, kind::PIECE];
    let (mut kind, mut body) = match chance.u8(..16) {
        0 => words(wire::CREDIT, &[chance.u32(2..4), chance.u32(1..65), small(chance)]),
        1 => {
            let number = |chance: &mut fastrand::Rng| small(chance) & !UNASKED;
            words(wire::READY, &[chance.u32(..2), number(chance), number(chance), small(chance), small(chance)])
        }
        2 | 3 | 7 if job.recovery || job.by_rank => inline(chance.u64(..128)),
        2 => words(wire::REFUSED, &[UNASKED | chance.u32(..8), chance.u32(..3)]),
        3 => followed(UNASKED | chance.u32(..8), chance.u64(..2000)),
        4 => words(wire::TAKEN, &[small(chance)]),
        5 if !job.recovery => words(wire::CREDIT, &[3, 1, 0]),
        5 => words([wire::SENT, wire::DEAD, wire::KNOWN, wire::REVOKED][chance.usize(..4)], &[chance.u32(2..4)]),
        6 if chance.u8(..9) == 0 => ([wire::BYE, wire::QUIT, wire::BYE_HEARD][chance.usize(..3)], Vec::new()),
        7 => data(UNASKED | chance.u32(..8), chance.usize(..3000)),
        8 if chance.u8(..9) == 0 => (chance.u8(..), (0..chance.usize(..60)).map(|_| chance.u8(..)).collect()),
        9 => {
            let what = What::try_from(chance.u8(..17)).unwrap();
            let ask = Ask { bytes: chance.u64(..100), blocks: chance.u32(..3), ..Ask::new(what, (0, 0), 1, 0) };
            let bytes = chance.usize(..80);
            let mut envelope = ask.envelope(2, small(chance) & !UNASKED, bytes);
            (0..bytes).for_each(|at| envelope.body[48 + at] = chance.u8(..));
            frame(0, &envelope, &[])
        }
        _ => {
            let kind = kinds[chance.usize(..kinds.len())];
            let mut envelope = envelope(kind, chance.u32(2..4), chance.u32(..4096), chance.u64(1..100));
            envelope.flags = chance.u8(..4);
            envelope.set_addr(if kind == kind::PIECE { 0 } else { chance.u64(..) });
            let payload = vec![1; if kind == kind::SLAB { envelope.len as usize } else { 0 }];
            frame(chance.u32(..2), &envelope, &payload)
        }
    };
    if chance.u8(..20) == 0 && !body.is_empty() {
        for _ in 0..chance.u8(1..4) {
            let at = chance.usize(..body.len());
            body[at] = chance.u8(..);
        }
    }
    if chance.u8(..200) == 0 {
        kind = chance.u8(..);
    }
    if chance.u8(..200) == 0 {
        body.truncate(chance.usize(..=body.len()));
    }
    assert!(body.len() <= MAX_BODY_BYTES);
    (kind, body)
}

/// Whatever comes, in whatever order: a sentence or nothing, and bounds. (`fuzz/fuzz_targets/wire_frames.rs` looks for what a seed does not find.)
#[test]
fn seeded_noise_is_refused_or_bounded() {
    let (start, mut inputs, mut lost) = (Instant::now(), 0u64, 0);
    for seed in 0..300 {
        let mut chance = fastrand::Rng::with_seed(seed);
        let job = [PLAIN, RECOVERY, BY_RANK][seed as usize % 3];
        let mut stage = Stage::new(job);
        if seed % 2 == 0 {
            (0..8).for_each(|request| announce(&mut stage, request, 2 + request % 3));
        }
        for _ in 0..60 {
            let frames: Frames = (0..chance.usize(1..6)).map(|_| any_frame(&mut chance, job)).collect();
            inputs += frames.len() as u64;
            let said = stage.says(&frames);
            // The ranks take out what has come.
            [0, 1].iter().for_each(|rank| while stage.post.endpoint.job.inbox(*rank).pop_if(|_| chance.u8(..9) > 0) {});
            assert!(stage.held_bytes() < 24 << 20, "seed {seed}");
            if let Some(said) = said {
                assert!(said.starts_with("node b sent ") || said.contains("the job has ended on node b"), "{said}");
                lost += 1;
                break;
            }
        }
    }
    let rate = inputs as f64 / start.elapsed().as_secs_f64();
    println!("{inputs} frames, {rate:.0} a second; {lost} of 300 carriers had enough");
    assert!(lost > 150 && inputs > 4000, "{lost} {inputs}");
}
