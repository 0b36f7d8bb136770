//! Checking a program's use of MPI (`vmpirun --check`, `VMPI_CHECK`): how much, and what has been found.

use super::env;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// How much is checked.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u32)]
pub enum Check {
    Off,
    /// What costs next to nothing: errors only.
    Cheap,
    /// Also what takes a look at the program's buffers, and what it has made and not freed.
    Full,
}

impl Check {
    /// All of them, by the names that users know.
    pub const NAMES: [(&'static str, Check); 3] = [("off", Check::Off), ("cheap", Check::Cheap), ("full", Check::Full)];

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, check)| *check == self).map_or("", |(name, _)| name)
    }

    /// What the environment of this process says.
    ///
    /// # Errors
    /// A sentence about a word that is none of the names.
    pub fn of_environment() -> Result<Check, String> {
        let Some(word) = std::env::var_os(env::CHECK) else { return Ok(Check::Off) };
        let known = Self::NAMES.iter().find(|(name, _)| word == *name);
        known.map(|(_, check)| *check).ok_or_else(|| {
            format!("{} is `{}`, which is not one of off, cheap, full", env::CHECK, word.to_string_lossy())
        })
    }
}

/// What a finding is about.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    CollectiveMismatch,
    RootMismatch,
    OpMismatch,
    CountMismatch,
    TypeMismatch,
    Truncation,
    TagTooLarge,
    BufferOverlap,
    SendBufferChanged,
    RequestNotCompleted,
    MessageNotReceived,
    WindowNotFreed,
    FileNotClosed,
    BufferNotDetached,
    NotFreed,
    RmaConflict,
    RmaLocalStore,
    OriginBufferChanged,
    RmaEpoch,
    RmaRange,
    WindowMemoryGone,
}

/// What is known of a kind: a word for programs is its name in JSON.
pub struct About {
    pub headline: &'static str,
    /// Of MPI 4.1, which says it.
    pub chapter: &'static str,
    pub rule: &'static str,
    pub advice: &'static str,
}

const TERMS: &str = "2 (MPI Terms and Conventions)";
const MESSAGES: &str = "3 (Point-to-Point Communication)";
const COLLECTIVES: &str = "6 (Collective Communication)";
const PROCESSES: &str = "11 (Process Initialization, Creation, and Management)";
const ONE_SIDED: &str = "12 (One-Sided Communications)";
const FILES: &str = "14 (I/O)";

impl FindingKind {
    /// Is it an error by the standard, or only worth a word?
    pub fn is_error(self) -> bool {
        self != FindingKind::NotFreed && self != FindingKind::BufferNotDetached
    }

    pub fn about(self) -> About {
        use FindingKind as K;
        let about = |headline, chapter, rule, advice| About { headline, chapter, rule, advice };
        match self {
            K::CollectiveMismatch => about(
                "ranks call different collectives",
                COLLECTIVES,
                "all ranks of a communicator call its collective operations in the same order",
                "look for a branch, a loop or an early return that depends on the rank",
            ),
            K::RootMismatch => about(
                "ranks name different roots",
                COLLECTIVES,
                "the argument root has the same value at all ranks",
                "make the root the same at all ranks: it is a rank of this communicator, not of MPI_COMM_WORLD",
            ),
            K::OpMismatch => about(
                "ranks name different operations",
                COLLECTIVES,
                "all ranks of a reduction give the same operation",
                "pass the same MPI_Op at all ranks",
            ),
            K::CountMismatch => about(
                "counts or types of a collective do not fit",
                COLLECTIVES,
                "the type signature (count times datatype) that a rank sends is that which its partner receives",
                "compute counts from what all ranks know alike; for different amounts use the v form (MPI_Gatherv ...)",
            ),
            K::TypeMismatch => about(
                "a message is received as another type than it was sent",
                MESSAGES,
                "types of sender and receiver match, element by element; MPI_BYTE and MPI_PACKED are exempt here",
                "receive with the datatype that the sender uses",
            ),
            K::Truncation => about(
                "a message is longer than its receive buffer",
                MESSAGES,
                "a receive buffer holds at least what is sent",
                "receive with a larger count, or ask for the size first (MPI_Probe, MPI_Get_count)",
            ),
            K::TagTooLarge => about(
                "a tag is larger than MPI allows",
                MESSAGES,
                "tags are 0 to the value of the attribute MPI_TAG_UB of MPI_COMM_WORLD",
                "ask for MPI_TAG_UB (MPI_Comm_get_attr) and keep below it; other MPIs allow less",
            ),
            K::BufferOverlap => about(
                "the buffer of a receive overlaps that of another operation that is open",
                MESSAGES,
                "a receive buffer is not accessed from the call until the operation is complete",
                "give each open receive memory of its own, or wait for the other operation first",
            ),
            K::SendBufferChanged => about(
                "a send buffer was changed while its send was open",
                MESSAGES,
                "a send buffer is not modified until the send is complete",
                "wait for the request before the buffer is written again",
            ),
            K::RequestNotCompleted => about(
                "requests were never completed",
                PROCESSES,
                "before MPI_Finalize a rank completes all operations that it has started",
                "call MPI_Wait or MPI_Test until it is complete",
            ),
            K::MessageNotReceived => about(
                "messages were never received",
                PROCESSES,
                "before MPI_Finalize a rank makes the calls that its messages need at the other side",
                "receive them, or do not send them",
            ),
            K::WindowNotFreed => about(
                "windows were never freed",
                ONE_SIDED,
                "freeing a window is collective and closes its last epoch",
                "call MPI_Win_free before MPI_Finalize",
            ),
            K::FileNotClosed => about(
                "files were never closed",
                FILES,
                "the program closes a file before MPI_Finalize",
                "call MPI_File_close",
            ),
            K::BufferNotDetached => about(
                "a buffer for MPI_Bsend is still attached",
                MESSAGES,
                "MPI_Buffer_detach waits for the messages in it; not an error, MPI_Finalize does that, too",
                "call MPI_Buffer_detach before the buffer is freed",
            ),
            K::NotFreed => about(
                "objects were never freed",
                TERMS,
                "the program frees what it has made; not an error, but a leak where it happens again and again",
                "free it with the function of its kind",
            ),
            K::RmaConflict => about(
                "one-sided accesses conflict",
                ONE_SIDED,
                "what comes of two accesses to the same bytes that are open at one time is undefined, if one of them writes; accumulations with one operation \
                 on one type may meet",
                "separate them by a synchronization (MPI_Win_fence, MPI_Win_flush, MPI_Win_unlock), or accumulate",
            ),
            K::RmaLocalStore => about(
                "a rank writes to its memory while others put there",
                ONE_SIDED,
                "bytes that are put to are not stored to by their own rank in the same epoch",
                "store before the fence that opens the epoch, or after the one that closes it",
            ),
            K::OriginBufferChanged => about(
                "the origin's buffer was changed while its operation was open",
                ONE_SIDED,
                "the buffer of a put or an accumulation is not modified until the operation is complete at its origin",
                "wait for the synchronization, or MPI_Win_flush_local, before the buffer is written again",
            ),
            K::RmaEpoch => about(
                "a one-sided call does not belong there",
                ONE_SIDED,
                "accesses are made inside an access epoch for their target, and epochs are opened and closed in pairs",
                "open the epoch first (MPI_Win_fence, MPI_Win_start, MPI_Win_lock), and close it with the call of its kind",
            ),
            K::RmaRange => about(
                "an access leaves the memory of the window",
                ONE_SIDED,
                "the target's buffer lies in the target's window, or in memory that is attached to it",
                "compare displacement (in the target's units), count and type with the size that the target has given",
            ),
            K::WindowMemoryGone => about(
                "memory of a window is gone",
                ONE_SIDED,
                "memory that is given to a window, or attached to it, stays until the window is freed or the memory detached",
                "call MPI_Win_free or MPI_Win_detach before the memory is given back; do not use local variables",
            ),
        }
    }
}

/// Where MPI was called: the address to which the call returns.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallSite {
    /// The file that the code is in, and the address there.
    pub module: String,
    pub offset: u64,
}

/// Ranks that made the same call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// Their numbers in the job.
    pub ranks: BTreeSet<u32>,
    /// The call, as in `MPI_Bcast with root 1`.
    pub call: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub site: Option<CallSite>,
}

/// One thing that is wrong, wherever it was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: FindingKind,
    pub parties: Vec<Party>,
    /// What more there is to say.
    pub text: String,
}

impl Finding {
    /// The same, seen at other ranks?
    pub fn is_alike(&self, other: &Finding) -> bool {
        let alike = |(a, b): (&Party, &Party)| a.call == b.call && a.site == b.site;
        self.kind == other.kind
            && self.text == other.text
            && self.parties.len() == other.parties.len()
            && self.parties.iter().zip(&other.parties).all(alike)
    }
}

/// What has been found in a job, each thing once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    pub list: Vec<Finding>,
    /// So many have found no room.
    pub left_out: u64,
}

impl Findings {
    /// More would not be read.
    pub const MOST: usize = 500;
    const MOST_PARTIES: usize = 4;
    const MOST_BYTES: usize = 2048;

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|finding| finding.kind.is_error())
    }

    pub fn add(&mut self, finding: Finding) {
        if let Some(known) = self.list.iter_mut().find(|known| known.is_alike(&finding)) {
            for (known, more) in known.parties.iter_mut().zip(finding.parties) {
                known.ranks.extend(more.ranks);
            }
        } else if self.list.len() < Self::MOST {
            self.list.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    /// A rank of a job of so many tells of it; what no honest rank would say is cut.
    pub fn hear(&mut self, mut finding: Finding, ranks: u32) {
        let clip = |text: &mut String| {
            let end = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= Self::MOST_BYTES);
            text.truncate(end.last().unwrap_or(0));
        };
        finding.parties.truncate(Self::MOST_PARTIES);
        clip(&mut finding.text);
        for party in &mut finding.parties {
            party.ranks.retain(|rank| *rank < ranks);
            clip(&mut party.call);
            if let Some(site) = &mut party.site {
                clip(&mut site.module);
            }
        }
        self.add(finding);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn finding(rank: u32, call: &str) -> Finding {
        let party = Party { ranks: [rank].into(), call: call.into(), site: None };
        Finding { kind: FindingKind::RootMismatch, parties: vec![party], text: String::new() }
    }

    #[test]
    fn the_same_thing_is_told_once_with_all_ranks() {
        let mut findings = Findings::default();
        for rank in [3, 1, 3] {
            findings.hear(finding(rank, "MPI_Bcast with root 1"), 4);
        }
        findings.hear(finding(0, "MPI_Bcast with root 0"), 4);
        assert_eq!(findings.list.len(), 2);
        assert_eq!(findings.list[0].parties[0].ranks, [1, 3].into());
    }

    #[test]
    fn what_a_rank_says_has_bounds() {
        let mut findings = Findings::default();
        for n in 0..2 * Findings::MOST {
            findings.hear(finding(9, &format!("{n}{}", "é".repeat(5000))), 4);
        }
        assert_eq!((findings.list.len(), findings.left_out), (Findings::MOST, Findings::MOST as u64));
        let party = &findings.list[0].parties[0];
        assert!(party.ranks.is_empty() && party.call.len() <= 2048, "{}", party.call.len());
    }
}
