//! Chaos: a generator decides. What it draws follows from the seed, this rank, what is decided and how often that has been decided, and from nothing else.
//!
//! Nothing waits for ever: a rank with messages that it holds back lets them go, one by one, before it suspends, and after so many looks in any case; a test
//! says "not yet" a few times at most; who lets others run comes back in turn (`Policy::Drawn`).

use super::{CHAOS, OWN_FAULT, Want, mode};
use crate::consts;
use crate::guarded::EntryGuarded;
use crate::process::{self, endpoint};
use vmpi_shared::endpoint::Endpoint;
use vmpi_shared::mem::sync::Ordering;

/// What may be left to chance: the words of `vmpirun --chaos SEED,what`.
const SCHED: u32 = 1;
const MATCH: u32 = 2;
const DELAY: u32 = 4;
const SENDS: u32 = 8;
const TESTS: u32 = 16;
const WORDS: [(&str, u32); 5] =
    [("sched", SCHED), ("match", MATCH), ("delay", DELAY), ("sends", SENDS), ("tests", TESTS)];

/// Each kind of draw has a row of its own.
#[derive(Copy, Clone)]
enum Purpose {
    Style,
    Lot,
    Turn,
    Sender,
    Delay,
    Yield,
    Send,
    Test,
    Request,
}
const PURPOSES: usize = Purpose::Request as usize + 1;

/// Lots are few, so that equal ones go by age.
const LOTS: u64 = 16;
/// A test says "not yet" so many times in a row at most, when it could say yes.
const MOST_MISSES: u32 = 3;
/// So many times others run at most before a choice is made.
const MOST_TURNS: u64 = 3;
/// So many of a communicator's ranks are asked for a message at most.
const MOST_SOURCES: u64 = 256;

/// How this seed goes about it: each of these differs from seed to seed, for what finds one fault hides another.
#[derive(Default)]
struct Style {
    /// A new lot is drawn at each call whose number is a multiple.
    calls_per_lot: u64,
    /// Of 16 calls so many let others run.
    yields: u64,
    /// Of 16 standard sends so many are synchronous.
    sends: u64,
    /// A message is held back for fewer looks than this.
    looks: u64,
    /// Of 16 tests that could say yes so many say no.
    misses: u64,
}

struct Chaos {
    seed: u64,
    /// This rank.
    me: u32,
    what: u32,
    counts: [u64; PURPOSES],
    style: Style,
    calls: u64,
    misses: u32,
    /// Senders of which messages are held back, and for how many looks more.
    patience: Vec<(u32, u64)>,
}

static STATE: EntryGuarded<Option<Chaos>> = EntryGuarded::new(None);

/// SplitMix64's last step (Steele, Lea, Flood 2014): each bit of the result depends on each of `word`.
fn mixed(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

fn hash(words: [u64; 4]) -> u64 {
    words.iter().fold(0, |hash, word| mixed((hash ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15)))
}

impl Chaos {
    fn new(seed: u64, what: u32, me: u32) -> Chaos {
        // All ranks have the same style.
        let pick = |place: u64, of: [u64; 4]| of[(hash([seed, Purpose::Style as u64, place, 0]) % 4) as usize];
        let only = |word: u32, style: u64, all: u64| if what == word { all } else { style };
        let style = Style {
            calls_per_lot: pick(0, [1, 1, 4, 32]),
            yields: pick(1, [0, 2, 6, 12]),
            sends: only(SENDS, pick(2, [0, 4, 8, 16]), 16),
            looks: pick(3, [1, 2, 6, 24]),
            misses: pick(4, [0, 4, 8, 12]),
        };
        Chaos { seed, me, what, counts: [0; PURPOSES], style, calls: 0, misses: 0, patience: Vec::new() }
    }

    fn has(&self, what: u32) -> bool {
        self.what & what != 0
    }

    /// The next draw of its kind, below `bound`.
    fn draw(&mut self, purpose: Purpose, bound: u64) -> u64 {
        let count = &mut self.counts[purpose as usize];
        *count += 1;
        let number = hash([self.seed, u64::from(self.me), 1 + purpose as u64, *count]);
        // Multiplied, not divided: the high bits decide.
        ((u128::from(number) * u128::from(bound.max(1))) >> 64) as u64
    }

    /// Is this message's turn to be seen? Asked once a look.
    fn is_due(&mut self, sender: u32) -> bool {
        let at = self.patience.iter().position(|(from, _)| *from == sender);
        let left = match at {
            Some(at) => self.patience[at].1,
            None => {
                let looks = self.style.looks;
                self.draw(Purpose::Delay, looks)
            }
        };
        match (left, at) {
            (0, Some(at)) => _ = self.patience.swap_remove(at),
            (0, None) => {}
            (left, Some(at)) => self.patience[at].1 = left - 1,
            (left, None) => self.patience.push((sender, left - 1)),
        }
        left == 0
    }
}

/// `SEED` or `SEED,what,...`, checked by vmpirun. True: messages are to be held back. `None`: it is neither.
pub(super) fn begin(words: &str, endpoint: &Endpoint) -> Option<bool> {
    let mut words = words.split(',');
    let seed = words.next()?.parse().ok()?;
    let mut what = 0;
    for word in words {
        what |= WORDS.iter().find(|(name, _)| *name == word)?.1;
    }
    let all = SCHED | MATCH | DELAY | SENDS | TESTS;
    let chaos = Chaos::new(seed, if what == 0 { all } else { what }, endpoint.me);
    let holds = chaos.has(DELAY);
    STATE.with(|state| *state = Some(chaos));
    Some(holds)
}

fn with<R>(nothing: R, decide: impl FnOnce(&mut Chaos) -> R) -> R {
    if !mode(CHAOS) {
        return nothing;
    }
    STATE.with(|state| state.as_mut().map(decide)).unwrap_or(nothing)
}

/// Take this rank's place at the start: a lot that no other one has. True: of the ranks of this core it is the first.
pub(crate) fn take_place(mut ranks: impl Iterator<Item = u32>) -> bool {
    let endpoint = endpoint();
    let seed = with(0, |chaos| chaos.seed);
    // Above all lots that are drawn.
    let place = |rank: u32| (hash([seed, u64::from(rank), 0, 0]) | 1 << 63) & !u64::from(u32::MAX) | u64::from(rank);
    let (node, me) = (&endpoint.node, endpoint.me);
    node.rank(me).lot().store(place(me), Ordering::Relaxed);
    let beside = |rank: u32| !node.is_remote(rank) && node.core_of(rank) == node.core_of(me);
    ranks.all(|rank| !beside(rank) || place(rank) <= place(me))
}

/// From now on lots are drawn.
pub(crate) fn leave_place() {
    let endpoint = endpoint();
    endpoint.node.rank(endpoint.me).lot().store(0, Ordering::Relaxed);
}

/// The program calls MPI: draw a lot, and perhaps let others run.
pub(super) fn entered() {
    let (lot, yields) = with((None, false), |chaos| {
        if !chaos.has(SCHED) {
            return (None, false);
        }
        let lot = chaos.calls.is_multiple_of(chaos.style.calls_per_lot).then(|| chaos.draw(Purpose::Lot, LOTS));
        chaos.calls += 1;
        (lot, chaos.draw(Purpose::Turn, 16) < chaos.style.yields)
    });
    let endpoint = endpoint();
    if let Some(lot) = lot {
        endpoint.node.rank(endpoint.me).lot().store(lot, Ordering::Relaxed);
    }
    if yields {
        endpoint.yield_core();
    }
}

/// A message goes to where it is seen.
fn let_go(sender: u32) {
    if !endpoint().let_go(sender) {
        process::abort(OWN_FAULT, "no memory is left for messages that no receive has asked for");
    }
}

/// Those whose time has come are seen from now on.
pub(super) fn let_some_go() {
    if !mode(CHAOS) {
        return;
    }
    for sender in endpoint().held_senders() {
        while with(false, |chaos| chaos.is_due(sender)) {
            let_go(sender);
            if !endpoint().held_senders().contains(&sender) {
                break;
            }
        }
    }
}

/// Before this rank suspends: others may go on first and send something that comes before what is held back; then one message is seen. False: none is held back.
pub(super) fn let_one_go() -> bool {
    if !mode(CHAOS) || endpoint().held_senders().is_empty() {
        return false;
    }
    let turns = with(0, |chaos| chaos.draw(Purpose::Yield, MOST_TURNS + 1));
    for _ in 0..turns {
        if !endpoint().yield_core() {
            break;
        }
        endpoint().progress();
    }
    let senders = endpoint().held_senders();
    let at = with(0, |chaos| chaos.draw(Purpose::Sender, senders.len() as u64)) as usize;
    if let Some(sender) = senders.get(at) {
        with((), |chaos| chaos.patience.retain(|(from, _)| from != sender));
        let_go(*sender);
    }
    true
}

/// Whose message a receive or a probe from anybody is to take: one of those whose messages are here, after others have had a chance to send one. ANY_SOURCE: none is.
pub(super) fn prefer(context: u32, size: u32, asked: Want) -> i32 {
    let turns = with(0, |chaos| if chaos.has(MATCH) { chaos.draw(Purpose::Yield, MOST_TURNS + 1) } else { 0 });
    for _ in 0..turns {
        if !endpoint().yield_core() {
            break;
        }
        super::progress();
        endpoint().look_again();
    }
    let first = with(None, |chaos| chaos.has(MATCH).then(|| chaos.draw(Purpose::Sender, u64::from(size))));
    let Some(first) = first else { return asked.source };
    let queues = endpoint().queues();
    let source = |at: u64| ((first + at) % u64::from(size)) as i32;
    let mut found = (0..u64::from(size).min(MOST_SOURCES)).map(source);
    found.find(|source| queues.find_unexpected(context, *source, asked.tag).is_some()).unwrap_or(consts::ANY_SOURCE)
}

/// Is a standard send to wait for its receiver?
pub(crate) fn wishes_synchronous() -> bool {
    with(false, |chaos| chaos.has(SENDS) && chaos.draw(Purpose::Send, 16) < chaos.style.sends)
}

/// Does a test that does not wait say "not yet", whatever has come?
pub(crate) fn says_not_yet() -> bool {
    with(false, |chaos| {
        let no = chaos.has(TESTS) && chaos.misses < MOST_MISSES && chaos.draw(Purpose::Test, 16) < chaos.style.misses;
        chaos.misses = if no { chaos.misses + 1 } else { 0 };
        no
    })
}

/// Which of so many complete requests is taken.
pub(crate) fn take_one(count: usize) -> usize {
    with(0, |chaos| if chaos.has(MATCH) { chaos.draw(Purpose::Request, count as u64) as usize } else { 0 })
}

/// Which of so many complete requests are taken: at least one.
pub(crate) fn some_of(count: usize) -> Vec<usize> {
    let all = || (0..count).collect();
    if count == 0 {
        return Vec::new();
    }
    with(None, |chaos| {
        if !chaos.has(MATCH) {
            return None;
        }
        let sure = chaos.draw(Purpose::Request, count as u64) as usize;
        Some((0..count).filter(|index| *index == sure || chaos.draw(Purpose::Request, 2) == 0).collect())
    })
    .unwrap_or_else(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styles(seeds: std::ops::Range<u64>, of: fn(&Style) -> u64) -> Vec<u64> {
        let mut found: Vec<u64> = seeds.map(|seed| of(&Chaos::new(seed, SCHED | SENDS, 0).style)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    #[test]
    fn seeds_differ_in_how_they_go_about_it() {
        assert_eq!(styles(1..41, |style| style.sends), [0, 4, 8, 16]);
        assert_eq!(styles(1..41, |style| style.yields), [0, 2, 6, 12]);
        assert_eq!(styles(1..41, |style| style.looks), [1, 2, 6, 24]);
        assert_eq!(Chaos::new(3, SENDS, 0).style.sends, 16, "alone it means all");
    }

    #[test]
    fn a_message_is_due_after_so_many_looks_at_most() {
        for seed in 0..50 {
            let mut chaos = Chaos::new(seed, DELAY, 0);
            for sender in 0..5 {
                let looks = (1..100).find(|_| chaos.is_due(sender));
                assert!(looks.is_some_and(|looks| looks <= 24), "{looks:?}");
            }
            assert!(chaos.patience.is_empty());
        }
    }
}
