//! What is recorded, and how it lies in a ring.

use super::ring::RECORD_WORDS;

/// One event. Times are ticks of the node's clock.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The rank got its core.
    Turn(Turn),
    /// The rank has waited, in its turn, without leaving its core: the core was idle for the clocks.
    Watched {
        core: u16,
        call: Call,
        from: u64,
        until: u64,
    },
    /// The core had been taken from the rank (it was outside MPI, asleep in the kernel or past its quantum).
    Away {
        from: u64,
        until: u64,
    },
    /// A message was sent to, or taken by, job rank `peer`.
    ///
    /// `call`: index + 1 of the name of the function that sent it, as in `Call`; 0: not known. `within`: of who sent it only.
    Message {
        sent: bool,
        call: u16,
        id: u16,
        at: u64,
        bytes: u64,
        peer: u32,
        context: u32,
        tag: i32,
        within: Within,
    },
    /// A blocking collective call of the program. `call`: as of a message; `root` as the program gave it.
    Collective {
        call: u16,
        from: u64,
        until: u64,
        context: u32,
        root: i32,
        sent: u64,
        received: u64,
        within: Within,
    },
    /// The program has begun or ended a region, of `regions`.
    Region {
        begins: bool,
        region: u16,
        at: u64,
    },
    /// The program wants nothing recorded from now on (MPI_Pcontrol), or wants it again; its core.
    Paused {
        core: u16,
        at: u64,
    },
    Resumed {
        core: u16,
        at: u64,
    },
    /// The rank has left MPI.
    Ended {
        at: u64,
    },
    /// Performance counters of the rank, and of its core, as they stood then (`Counted`).
    Counted {
        at: u64,
        core: u16,
        values: [u64; COUNTERS],
        of_core: [u64; COUNTERS],
    },
}

/// Performance counters of a record.
pub const COUNTERS: usize = 3;

/// Who is who in a communicator: this rank, how many there are (of its own group), and who is at the other end; size 0: not known.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Within {
    pub rank: u32,
    pub size: u32,
    pub peer: u32,
}

/// A rank got its core.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    pub core: u16,
    /// What it had waited in.
    pub call: Call,
    /// When it had left its core; 0: it had none before.
    pub left: u64,
    /// When its wait was over.
    pub ready: u64,
    pub run: u64,
    /// When the core was given to it, and when the one before it had left it.
    pub granted: u64,
    pub released: u64,
    /// Its process-POV clock at `run`.
    pub clock: u64,
}

/// In which MPI call a rank waits, and for whom.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Index in the ring's names + 1; 0: not known.
    pub name: u16,
    /// Index in `sched::report::CALLS`.
    pub kind: u8,
    /// Rank in the communicator, and tag; negative: any, or none.
    pub peer: i32,
    pub tag: i32,
}

const TURN: u64 = 1;
const WATCHED: u64 = 2;
const AWAY: u64 = 3;
const SENT: u64 = 4;
const RECEIVED: u64 = 5;
const ENDED: u64 = 6;
const COUNTED: u64 = 7;
const REGION: u64 = 8;
const PAUSED: u64 = 9;
const RESUMED: u64 = 10;
const COLLECTIVE: u64 = 11;

fn two(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl Record {
    /// As it lies in the ring.
    #[inline]
    pub fn words(&self) -> [u64; RECORD_WORDS] {
        let head = |kind: u64, call: u8, core: u16, name: u16| {
            kind | u64::from(call) << 8 | u64::from(core) << 16 | u64::from(name) << 32
        };
        let about = |call: &Call| two(call.peer as u32, call.tag as u32);
        match *self {
            Record::Turn(Turn { core, call, left, ready, run, granted, released, clock }) => {
                [head(TURN, call.kind, core, call.name), left, ready, run, granted, released, clock, about(&call)]
            }
            Record::Watched { core, call, from, until } => {
                [head(WATCHED, call.kind, core, call.name), from, until, 0, 0, 0, 0, about(&call)]
            }
            Record::Away { from, until } => [AWAY, from, until, 0, 0, 0, 0, 0],
            Record::Message { sent, call, id, at, bytes, peer, context, tag, within } => {
                let kind = if sent { SENT } else { RECEIVED };
                let (own, other) = (two(within.rank, within.size), two(0, within.peer));
                [head(kind, 0, call, id), at, bytes, two(peer, context), own, other, 0, two(0, tag as u32)]
            }
            Record::Collective { call, from, until, context, root, sent, received, within } => {
                let (who, own) = (two(root as u32, context), two(within.rank, within.size));
                [head(COLLECTIVE, 0, call, 0), from, until, sent, received, who, own, two(0, within.peer)]
            }
            Record::Region { begins, region, at } => [head(REGION, begins.into(), 0, region), at, 0, 0, 0, 0, 0, 0],
            Record::Paused { core, at } => [head(PAUSED, 0, core, 0), at, 0, 0, 0, 0, 0, 0],
            Record::Resumed { core, at } => [head(RESUMED, 0, core, 0), at, 0, 0, 0, 0, 0, 0],
            Record::Ended { at } => [ENDED, at, 0, 0, 0, 0, 0, 0],
            Record::Counted { at, core, values: [a, b, c], of_core: [d, e, f] } => {
                [head(COUNTED, 0, core, 0), at, a, b, c, d, e, f]
            }
        }
    }

    /// What the words of a ring say; `None`: nothing that a rank writes.
    pub fn of_words(words: &[u64; RECORD_WORDS]) -> Option<Record> {
        let [head, a, b, c, d, e, f, g] = *words;
        let (kind, call, core, name) = (head & 0xff, (head >> 8) as u8, (head >> 16) as u16, (head >> 32) as u16);
        let ((peer, tag), ordered) = (halves(g), |times: &[u64]| times.is_sorted());
        let call = Call { name, kind: call, peer: peer as i32, tag: tag as i32 };
        let record = match kind {
            TURN => {
                let turn = Turn { core, call, left: a, ready: b, run: c, granted: d, released: e, clock: f };
                (ordered(&[a, b, c]) && ordered(&[e, d, c])).then_some(Record::Turn(turn))?
            }
            WATCHED => ordered(&[a, b]).then_some(Record::Watched { core, call, from: a, until: b })?,
            AWAY => ordered(&[a, b]).then_some(Record::Away { from: a, until: b })?,
            SENT | RECEIVED => {
                let (peer, context) = halves(c);
                let (sent, call, id) = (kind == SENT, core, name);
                let ((rank, size), (_, other)) = (halves(d), halves(e));
                let within = Within { rank, size, peer: other };
                Record::Message { sent, call, id, at: a, bytes: b, peer, context, tag: tag as i32, within }
            }
            COLLECTIVE => {
                let ((root, context), (rank, size), (_, other)) = (halves(e), halves(f), halves(g));
                let within = Within { rank, size, peer: other };
                let (root, sent, received) = (root as i32, c, d);
                ordered(&[a, b]).then_some(Record::Collective {
                    call: core,
                    from: a,
                    until: b,
                    context,
                    root,
                    sent,
                    received,
                    within,
                })?
            }
            REGION => Record::Region { begins: call.kind != 0, region: name, at: a },
            PAUSED => Record::Paused { core, at: a },
            RESUMED => Record::Resumed { core, at: a },
            ENDED => Record::Ended { at: a },
            COUNTED => Record::Counted { at: a, core, values: [b, c, d], of_core: [e, f, g] },
            _ => return None,
        };
        Some(record)
    }

    /// When it was written, nearly: records of a ring are in this order.
    pub fn at(&self) -> u64 {
        match self {
            Record::Turn(turn) => turn.run,
            Record::Watched { until, .. } | Record::Away { until, .. } | Record::Collective { until, .. } => *until,
            Record::Message { at, .. } | Record::Ended { at } | Record::Counted { at, .. } => *at,
            Record::Region { at, .. } | Record::Paused { at, .. } | Record::Resumed { at, .. } => *at,
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_went() {
        let call = Call { name: 7, kind: 3, peer: -1, tag: -2 };
        let turn = Turn { core: 9, call, left: 1, ready: 2, run: 9, granted: 8, released: 6, clock: u64::MAX };
        for record in [
            Record::Turn(turn),
            Record::Watched { core: 65535, call, from: 1, until: 1 },
            Record::Away { from: 1, until: 2 },
            Record::Message {
                sent: true,
                call: 3,
                id: 65535,
                at: 5,
                bytes: 1 << 40,
                peer: 70000,
                context: u32::MAX,
                tag: -2,
                within: Within { rank: 3, size: 70000, peer: 69999 },
            },
            Record::Message {
                sent: false,
                call: 0,
                id: 0,
                at: 0,
                bytes: 0,
                peer: 0,
                context: 0,
                tag: i32::MAX,
                within: Within::default(),
            },
            Record::Collective {
                call: 2,
                from: 5,
                until: 6,
                context: 8,
                root: -1,
                sent: 1 << 50,
                received: 7,
                within: Within { rank: 1, size: 2, peer: 0 },
            },
            Record::Region { begins: true, region: 127, at: 9 },
            Record::Region { begins: false, region: 0, at: 9 },
            Record::Paused { core: 3, at: 4 },
            Record::Resumed { core: 65535, at: 4 },
            Record::Ended { at: 3 },
            Record::Counted { at: 3, core: 1, values: [1, 2, 3], of_core: [4, 5, u64::MAX] },
        ] {
            assert_eq!(Record::of_words(&record.words()), Some(record));
        }
    }

    #[test]
    fn nonsense_is_no_record() {
        assert_eq!(Record::of_words(&[0; RECORD_WORDS]), None);
        assert_eq!(Record::of_words(&[u64::MAX; RECORD_WORDS]), None);
        let backwards = Record::Turn(Turn { left: 5, ready: 4, run: 9, ..Turn::default() });
        assert_eq!(Record::of_words(&backwards.words()), None);
    }
}
