//! A collective call as other ranks see it: what they compare, and who has made it.

use super::sites::{self, Site};
use super::{board, signature, tell};
use crate::check::signature::fit;
use crate::handle::{FIRST_DYNAMIC, Handle, Op};
use crate::op;
use crate::process::endpoint_rank;
use vmpi_shared::check::{COMPARED, Record, WORDS};
use vmpi_shared::control::{FindingKind, Party};
use vmpi_shared::trace::called;

/// Above this bit of `Amount::bytes` there is a hash of the counts, of data that are listed by rank.
pub(crate) const LISTED_SHIFT: u32 = 48;

/// How much of what kind of data.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Amount {
    pub bytes: u64,
    pub code: u16,
}

impl Amount {
    pub(crate) fn fits(self, other: Amount) -> bool {
        self.bytes == other.bytes && fit(self.code, other.code)
    }

    pub(crate) fn words(self) -> String {
        format!("{} bytes of {}", self.bytes & ((1 << LISTED_SHIFT) - 1), signature::words(self.code))
    }
}

/// What the members of a communicator have alike.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct What {
    pub kind: u64,
    pub root: Option<i32>,
    pub op: Option<Op>,
    /// What all ranks must have alike; `None`: that differs, or is not known here.
    pub amount: Option<Amount>,
}

impl What {
    /// The first words of a record.
    #[inline]
    pub(crate) fn words(self) -> [u64; COMPARED] {
        let root = self.root.map_or(0, |root| 1 << 32 | u64::from(root as u32));
        let op = self.op.map_or(0, |op| 1 << 32 | u64::from(op.raw()));
        let (bytes, code) = self.amount.map_or((0, 0), |amount| (amount.bytes, 1 << 32 | u64::from(amount.code)));
        [self.kind, root, op, bytes, code]
    }
}

/// A call as others see it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub what: What,
    pub rank: u32,
    pub site: [u64; 2],
    pub name: [u8; 32],
}

impl Seen {
    /// This rank makes this call.
    pub(crate) fn own(what: What) -> Seen {
        let (site, name) = (sites::here().numbers(), board::name_of(called()));
        Seen { what, rank: endpoint_rank(), site, name }
    }

    pub(crate) fn record(&self) -> Record {
        let mut record: Record = [0; WORDS];
        record[..COMPARED].copy_from_slice(&self.what.words());
        record[5] = self.rank.into();
        [record[6], record[7]] = self.site;
        let (words, _) = self.name.as_chunks::<8>();
        for (to, from) in record[8..12].iter_mut().zip(words) {
            *to = u64::from_ne_bytes(*from);
        }
        record
    }

    pub(crate) fn of_record(record: &Record) -> Seen {
        let some = |word: u64| (word >> 32 == 1).then_some(word as u32);
        let mut name = [0; 32];
        for (to, from) in name.chunks_exact_mut(8).zip(&record[8..12]) {
            to.copy_from_slice(&from.to_ne_bytes());
        }
        let what = What {
            kind: record[0],
            root: some(record[1]).map(|root| root as i32),
            op: some(record[2]).map(Op::from_raw),
            amount: some(record[4]).map(|code| Amount { bytes: record[3], code: code as u16 }),
        };
        Seen { what, rank: record[5] as u32, site: [record[6], record[7]], name }
    }

    fn name(&self) -> String {
        board::name(&self.name)
    }

    /// What is wrong if one rank makes this call and another one `other`; both in words.
    fn differs(&self, other: &Seen) -> Option<(FindingKind, String, String)> {
        let both = |kind, words: &dyn Fn(&Seen) -> String| Some((kind, words(self), words(other)));
        let (mine, theirs) = (self.what, other.what);
        if mine.kind != theirs.kind {
            return both(FindingKind::CollectiveMismatch, &Seen::name);
        }
        if mine.root != theirs.root {
            let words = |seen: &Seen| format!("{} with root {}", seen.name(), seen.what.root.unwrap_or(-1));
            return both(FindingKind::RootMismatch, &words);
        }
        if let (Some(a), Some(b)) = (mine.op, theirs.op)
            && a != b
            // Handles of the program's own operations say nothing in other ranks.
            && (a.raw() < FIRST_DYNAMIC || b.raw() < FIRST_DYNAMIC)
        {
            let words = |seen: &Seen| format!("{} with {}", seen.name(), seen.what.op.map_or(String::new(), op_words));
            return both(FindingKind::OpMismatch, &words);
        }
        match (mine.amount, theirs.amount) {
            (Some(a), Some(b)) if !a.fits(b) => {
                let words = |seen: &Seen| {
                    format!("{} of {}", seen.name(), seen.what.amount.map_or(String::new(), Amount::words))
                };
                both(FindingKind::CountMismatch, &words)
            }
            _ => None,
        }
    }
}

fn op_words(handle: Op) -> String {
    op::name(handle).map_or_else(|| "an operation of the program".into(), str::to_owned)
}

/// Tell of it if they are not the same call: this rank's, which it makes at `site`, and another one's.
pub(crate) fn compare(own: &Seen, site: Site, other: &Seen) {
    let Some((kind, mine, theirs)) = own.differs(other) else { return };
    let other = Party { ranks: [other.rank].into(), call: theirs, site: sites::of_numbers(other.site) };
    let mut parties = vec![tell::own(mine, site), other];
    // Whoever comes first.
    parties.sort_by(|a, b| (&a.call, &a.site).cmp(&(&b.call, &b.site)));
    tell::tell(kind, parties, String::new());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consts::op::{MAX, SUM};

    const AMOUNT: Amount = Amount { bytes: 16, code: 0x104 };
    const WHAT: What = What { kind: 28, root: Some(0), op: Some(SUM), amount: Some(AMOUNT) };

    fn seen() -> Seen {
        let mut name = [0; 32];
        name[..10].copy_from_slice(b"MPI_Reduce");
        Seen { what: WHAT, rank: 3, site: [7, 9], name }
    }

    fn with(what: What) -> Seen {
        Seen { what, ..seen() }
    }

    #[test]
    fn a_call_survives_its_record() {
        for seen in [seen(), with(What { root: None, op: None, amount: None, ..WHAT })] {
            assert_eq!(Seen::of_record(&seen.record()), seen);
        }
    }

    #[test]
    fn each_difference_has_its_name() {
        let kind = |other: &Seen| seen().differs(other).map(|(kind, _, _)| kind);
        assert_eq!(kind(&Seen { rank: 0, site: [0, 0], ..seen() }), None);
        assert_eq!(kind(&with(What { kind: 32, ..WHAT })), Some(FindingKind::CollectiveMismatch));
        assert_eq!(kind(&with(What { root: Some(1), ..WHAT })), Some(FindingKind::RootMismatch));
        assert_eq!(kind(&with(What { op: Some(MAX), ..WHAT })), Some(FindingKind::OpMismatch));
        assert_eq!(kind(&with(What { op: Some(Op(FIRST_DYNAMIC)), ..WHAT })), Some(FindingKind::OpMismatch));
        for amount in [Amount { bytes: 8, code: 0x104 }, Amount { bytes: 16, code: 0x208 }] {
            assert_eq!(kind(&with(What { amount: Some(amount), ..WHAT })), Some(FindingKind::CountMismatch));
        }
        assert_eq!(kind(&with(What { amount: Some(Amount { bytes: 16, code: 0 }), ..WHAT })), None);
        let (_, mine, theirs) = seen().differs(&with(What { op: Some(MAX), ..WHAT })).unwrap();
        assert_eq!((&mine[..], &theirs[..]), ("MPI_Reduce with MPI_SUM", "MPI_Reduce with MPI_MAX"));
        let listed = Amount { bytes: 16 + (7 << LISTED_SHIFT), code: 0x104 };
        assert_eq!(listed.words(), AMOUNT.words(), "the hash of counts is no figure");
        assert!(!listed.fits(AMOUNT));
        // Both of the program's own: their handles say nothing.
        let own = |raw| with(What { op: Some(Op(raw)), ..WHAT });
        assert_eq!(own(FIRST_DYNAMIC).differs(&own(FIRST_DYNAMIC + 1)), None);
    }
}
