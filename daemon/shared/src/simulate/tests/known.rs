//! Ranks that wait for messages of ranks that they name take them as soon as it is known when they arrive.

use super::*;
use crate::matching::queues::Hope;

impl Rank {
    /// One go of waiting for a message of `from`. `None`: it is there.
    pub(super) fn await_named(&mut self, engine: &mut Engine<'_>, me: u32, from: u32) -> Option<bool> {
        self.messages.sort_unstable();
        let mut taken = Vec::new();
        let first = |message: &(u64, u32, i32)| message.1 == from && message.2 >= 0;
        if let Some(place) = self.messages.iter().position(first) {
            let message = self.messages.remove(place);
            self.clock = self.clock.max(message.0);
            self.seen.push(format!("{message:?} of {from} at {}", self.clock));
            return None;
        }
        let mut until = 0;
        if self.asked {
            until = engine.take_woken(me, &mut taken);
        }
        if taken.is_empty() && self.eager {
            let mut over = false;
            let wanted = |envelope: &Envelope| {
                let next = envelope.from == from && !matches!(envelope.kind, kind::FIN | kind::PLACED) && !over;
                over |= next;
                next && envelope.flags & FLAG_SYNC == 0
            };
            until = until.max(engine.take_known(me, wanted, &mut taken));
            self.known += taken.len();
        }
        if taken.is_empty() {
            let Some(at) = engine.wait_for(me, 1, &mut taken) else {
                engine.ranks[me as usize].clock.store(self.clock, SeqCst);
                self.asked = true;
                if self.eager {
                    engine.hope(me, Hope { arrivals: 1, from: Hope::bit_of(from) });
                }
                return Some(false);
            };
            until = at;
        }
        self.asked = false;
        self.clock = self.clock.max(until);
        self.take_in(engine, me, taken);
        Some(true)
    }
}

/// Rounds in which each rank sends some messages, and waits for those of the ranks that have sent it one.
fn programs(ranks: u32, random: &mut fastrand::Rng) -> Vec<Vec<Step>> {
    let mut all = vec![Vec::new(); ranks as usize];
    for _ in 0..12 {
        let mut sent = Vec::new();
        for me in 0..ranks {
            for _ in 0..random.u32(..4) {
                let (to, bytes) = (random.u32(..ranks), random.u64(..3) * 700);
                all[me as usize].push(Step::Send { to, bytes, asks: random.u32(..4) == 0 });
                sent.push((me, to));
            }
        }
        for me in 0..ranks {
            let own = &mut all[me as usize];
            if random.u32(..3) == 0 {
                own.push(Step::Compute { time: random.u64(..6) * 500 });
            }
            let mut from: Vec<u32> = sent.iter().filter(|(_, to)| *to == me).map(|(from, _)| *from).collect();
            random.shuffle(&mut from);
            own.extend(from.into_iter().map(|from| Step::Named { from }));
            if random.u32(..5) == 0 {
                own.push(Step::Look);
            }
        }
    }
    all
}

#[test]
fn what_is_taken_early_is_what_would_have_been_taken() {
    let (mut named, mut early) = (0, 0);
    for seed in 0..60 {
        let ranks = [2, 3, 5, 9][seed as usize % 4];
        let network: &dyn Network = [&Uneven as &dyn Network, &Even, &Narrow][seed as usize % 3];
        let run = |eager: bool, order: u64| {
            let all = programs(ranks, &mut fastrand::Rng::with_seed(seed)).into_iter();
            let all = all.map(|steps| Rank { eager, ..Rank::new(steps, ranks, false) }).collect();
            let (ranks, _) = run_to_the_end(network, all, order);
            let known: usize = ranks.iter().map(|rank| rank.known).sum();
            (ranks.into_iter().map(|rank| rank.seen).collect::<Vec<_>>(), known)
        };
        let (wanted, none) = run(false, 0);
        assert_eq!(none, 0);
        named += wanted.iter().flatten().filter(|line| line.contains(" of ")).count();
        for order in 0..8 {
            let (seen, known) = run(true, order);
            assert_eq!(seen, wanted, "seed {seed}, order {order}");
            early += known;
        }
    }
    assert!(named > 2000 && early > 2000, "{named} messages, {early} of them taken as known");
}

/// Each of a ring's ranks goes on for as many rounds as its neighbour has: few have to run in each round.
#[test]
fn a_ring_goes_on_for_many_rounds_at_a_time() {
    const RANKS: u32 = 16;
    const ROUNDS: u32 = 64;
    let program = |me: u32| {
        let (to, from) = ((me + 1) % RANKS, (me + RANKS - 1) % RANKS);
        (0..ROUNDS).flat_map(|_| [Step::Send { to, bytes: 0, asks: false }, Step::Named { from }]).collect()
    };
    let turns = |eager: bool| {
        let mut all: Vec<Rank> = (0..RANKS).map(|me| Rank { eager, ..Rank::new(program(me), RANKS, false) }).collect();
        let segment = segment(RANKS, LATENCY);
        let (mut turns, mut woken) = (0, Vec::new());
        let runs = |me: &u32| segment.rank(*me).status.load(SeqCst) == status::RUNS;
        while let Some(me) = (0..RANKS).cycle().skip(turns % RANKS as usize).take(RANKS as usize).find(runs) {
            turns += 1;
            while segment.locked(me, |engine| all[me as usize].step(engine, me, &Even)) {}
            segment.locked(me, |engine| engine.settle(&Even, &mut woken)).unwrap();
        }
        assert!(all.iter().all(|rank| rank.seen.len() == ROUNDS as usize));
        (turns, all.into_iter().map(|rank| rank.seen).collect::<Vec<_>>())
    };
    let ((late, by_arrival), (early, as_known)) = (turns(false), turns(true));
    assert_eq!(by_arrival, as_known);
    assert!(late > 1000 && early < 200, "{late} turns, {early} as known");
}
