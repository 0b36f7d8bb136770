//! What the ranks of a job wait for, as the daemons see it from outside; `vmpictl why` and vmpirun's deadlock report are made of it.
//!
//! Of a job of several nodes each daemon knows its own ranks; its launcher puts together what they say ([`JobWaits::of_nodes`]).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// All ranks of a job and what they wait for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobWaits {
    pub job: u32,
    pub program: String,
    /// Every rank waits in MPI for another one, no message is under way, and nothing outside the ranks can end a wait: proven.
    pub deadlock: bool,
    pub ranks: Vec<RankWait>,
    /// The communicators that the waits are about, and who is in them.
    pub comms: Vec<CommInfo>,
}

/// One rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankWait {
    pub rank: u32,
    pub pid: i32,
    /// Which MPI_COMM_WORLD (1: the launcher's), and the rank there.
    pub world: u32,
    pub world_rank: u32,
    /// As `vmpictl show` names it; `ENDED` if its process is gone, `STARTING` before MPI_Init, `REMOTE` on another node.
    pub state: String,
    /// Its node, in a job of several: told with ranks of other nodes, and by the launcher with all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// One of `sched::CALLS`; empty if it does not wait in MPI.
    pub call: String,
    /// How long it has been suspended.
    pub waiting_s: f64,
    pub waits: Vec<WaitOn>,
    /// Waits that are not listed.
    pub more: u32,
    /// Any one of them is enough.
    pub any: bool,
    /// What it waits for is a call that has returned before (`vmpirun --overlap`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<Deferred>,
    /// Messages here that no receive has asked for, the oldest first.
    pub unexpected: Vec<Unasked>,
    /// How many there are in all.
    pub unexpected_count: u32,
    /// More about them, if they are many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crowd: Option<Crowd>,
    /// Of a rank that does not wait in MPI: has it used the CPU lately? If somebody has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_busy: Option<bool>,
    /// Where it has called MPI, if somebody has looked.
    #[serde(default)]
    pub site: Option<Site>,
}

/// A call that has returned before its message was over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deferred {
    /// Of MPI; empty: not known.
    pub function: String,
    /// Where it has returned to; 0: not known.
    pub address: u64,
    /// The same for people, if somebody has looked.
    #[serde(default)]
    pub site: Option<Site>,
}

/// Where a rank has called MPI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The function of MPI; empty: not known.
    pub function: String,
    /// The function that called it.
    pub caller: String,
    /// `file.c:12`, or `program+0x1234` without debugging information.
    pub place: String,
}

/// No rank of a node has run for a while, all of them wait in MPI, and its carrier sleeps with nothing to do: what could change that must come from another node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Still {
    /// Ranks that live there, and how often they have been switched in all together.
    pub living: u32,
    pub switches: u64,
    /// Frames that its carrier has sent to other nodes, and acted on from there.
    pub sent: u64,
    pub received: u64,
    /// Ranks that wait for what the launcher has to answer: that must be to meet another one.
    pub asking: Vec<u32>,
}

/// What a wait is for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// A message that is to be received.
    #[default]
    Receive,
    /// The receiver of a message that has been sent.
    Send,
    /// A message that is to be probed.
    Probe,
    /// The other members of a collective call.
    Collective,
    /// Room in another rank's inbox.
    Space,
    /// Another member of a window.
    Window,
    /// The daemon (MPI_Comm_spawn, agreement, questions about ports).
    Daemon,
    /// A group of this job that connects to the port at which it accepts.
    Connect,
    /// A group of this job that accepts at the port to which it connects.
    Accept,
}

/// One thing that a rank waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitOn {
    pub kind: WaitKind,
    /// Matching context of the communicator; bit 0: a message of a collective call.
    pub context: u32,
    /// Rank in the communicator; -1: any.
    pub peer: i32,
    /// -2: any.
    pub tag: i32,
    pub bytes: u64,
    /// The ranks of the job that could end it; empty: not known.
    pub ranks: Vec<u32>,
    /// A send that waits only because its receiver, or the job, holds so many messages that no receive has asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub crowded: bool,
}

/// The messages that a rank holds without having asked for them, if they are many.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crowd {
    /// Whose.
    pub rank: u32,
    pub messages: u32,
    /// Of their payloads.
    pub bytes: u64,
    /// Who has sent most of them, and how many.
    pub mostly: u32,
    pub of_these: u32,
    /// Memory that the job uses for such messages on this node, beyond what each rank has room for, and the most that it may.
    pub used_bytes: u64,
    pub limit_bytes: u64,
    /// There is no room for the next one.
    pub stuck: bool,
}

impl Crowd {
    /// Is it memory that ends, or does a rank's own limit make its sends wait?
    pub fn is_limit_of_memory(&self) -> bool {
        self.stuck || self.used_bytes >= self.limit_bytes / 8 * 7
    }

    /// What has come to its end, and what can be done, as a sentence without its beginning and end.
    pub fn sentence(&self) -> String {
        let Crowd { rank, messages, bytes, mostly, of_these, used_bytes, limit_bytes, .. } = self;
        let held = format!(
            "rank {rank} holds {messages} messages of {bytes} bytes in all that no receive has asked for, {of_these} of them from rank {mostly}"
        );
        match self.is_limit_of_memory() {
            true => format!(
                "{held}, and the job's memory for such messages is used up ({used_bytes} of {limit_bytes} bytes on this node): post receives earlier, \
                 let the senders wait (MPI_Ssend, or a barrier now and then), or allow more (-x VMPI_UNEXPECTED_BYTES=...)"
            ),
            false => format!(
                "{held}, and its senders wait then, as MPI_T's variable vmpi_unexpected_limit says: post receives earlier, or set it higher"
            ),
        }
    }
}

/// A message that no receive has asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unasked {
    pub context: u32,
    /// Sender, rank in the communicator and in the job.
    pub source: i32,
    pub from: u32,
    pub tag: i32,
    pub bytes: u64,
}

/// A communicator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommInfo {
    pub context: u32,
    pub name: String,
    /// Job ranks of its members in order, as far as they are known.
    pub members: Vec<Option<u32>>,
}

impl RankWait {
    /// Does it wait for other members of this communicator in a collective call, by whatever means?
    pub fn is_in_collective(&self, context: u32) -> bool {
        self.waits.iter().any(|wait| match wait.kind {
            WaitKind::Collective => !wait.ranks.is_empty() && wait.context == context,
            WaitKind::Receive | WaitKind::Send => wait.context == context | 1,
            _ => false,
        })
    }
}

impl JobWaits {
    /// The messages without which somebody who waits would not: then it is a limit that all wait at, whatever else they wait for.
    pub fn limit(&self) -> Option<&Crowd> {
        let held = |rank: u32| self.ranks.iter().find(|one| one.rank == rank)?.crowd.as_ref();
        let largest = || self.ranks.iter().filter_map(|rank| rank.crowd.as_ref()).max_by_key(|crowd| crowd.messages);
        let stuck = self.ranks.iter().filter_map(|rank| rank.crowd.as_ref()).find(|crowd| crowd.stuck);
        let mut crowded = self.ranks.iter().flat_map(|rank| &rank.waits).filter(|wait| wait.crowded);
        match crowded.next() {
            _ if stuck.is_some() => largest(),
            Some(wait) => wait.ranks.first().and_then(|to| held(*to)).or_else(largest),
            None => None,
        }
    }

    pub fn comm(&self, context: u32) -> Option<&CommInfo> {
        self.comms.iter().find(|comm| comm.context == context & !1)
    }

    /// Name the ranks that could send the messages that receives and probes wait for, where only the communicator tells.
    pub fn name_senders(&mut self) {
        let comms = std::mem::take(&mut self.comms);
        let waits = self.ranks.iter_mut().flat_map(|rank| &mut rank.waits);
        for wait in
            waits.filter(|wait| wait.ranks.is_empty() && matches!(wait.kind, WaitKind::Receive | WaitKind::Probe))
        {
            let Some(comm) = comms.iter().find(|comm| comm.context == wait.context & !1) else { continue };
            match usize::try_from(wait.peer) {
                Ok(peer) => wait.ranks.extend(comm.members.get(peer).copied().flatten()),
                // If one is not known it may be the one.
                Err(_) => wait.ranks = comm.members.iter().copied().collect::<Option<_>>().unwrap_or_default(),
            }
        }
        self.comms = comms;
    }

    /// What the nodes of a job, by their names, know together; `None`: one has said nothing.
    pub fn of_nodes(job: u32, parts: Vec<(String, Option<JobWaits>)>) -> JobWaits {
        let mut all = JobWaits { job, ..JobWaits::default() };
        let mut ranks: BTreeMap<u32, RankWait> = BTreeMap::new();
        let mut comms: BTreeMap<u32, CommInfo> = BTreeMap::new();
        for (name, part) in parts.into_iter().filter_map(|(name, part)| Some((name, part?))) {
            all.program = part.program;
            for mut rank in part.ranks {
                let here = rank.node.is_empty();
                if here {
                    rank.node.clone_from(&name);
                }
                if here || !ranks.contains_key(&rank.rank) {
                    ranks.insert(rank.rank, rank);
                }
            }
            for comm in part.comms {
                let known = comms
                    .entry(comm.context)
                    .or_insert_with(|| CommInfo { context: comm.context, ..CommInfo::default() });
                if known.name.is_empty() {
                    known.name = comm.name;
                }
                known.members.resize(known.members.len().max(comm.members.len()), None);
                for (member, told) in known.members.iter_mut().zip(comm.members) {
                    *member = member.or(told);
                }
            }
        }
        all.ranks = ranks.into_values().collect();
        all.comms = comms.into_values().collect();
        all.look_for_absent();
        all.name_senders();
        all
    }

    /// A node's daemon sees who of its ranks has not come to a collective call; one among them may be there all the same, to speak for them to
    /// other nodes, and others may be missing there.
    fn look_for_absent(&mut self) {
        let in_cell = |wait: &WaitOn| wait.kind == WaitKind::Collective && !wait.ranks.is_empty();
        let waits = self.ranks.iter().flat_map(|rank| &rank.waits);
        let mut absent: BTreeMap<u32, Vec<u32>> =
            waits.filter(|wait| in_cell(wait)).map(|wait| (wait.context, Vec::new())).collect();
        for (context, absent) in &mut absent {
            let there = self.ranks.iter().filter(|rank| rank.is_in_collective(*context));
            let there: BTreeSet<u32> = there.map(|rank| rank.rank).collect();
            let comm = self.comms.iter().find(|comm| comm.context == *context);
            let members = comm.into_iter().flat_map(|comm| comm.members.iter().copied().flatten());
            absent.extend(members.filter(|rank| !there.contains(rank)));
        }
        for wait in self.ranks.iter_mut().flat_map(|rank| &mut rank.waits).filter(|wait| in_cell(wait)) {
            if let Some(absent) = absent.get(&wait.context).filter(|absent| !absent.is_empty()) {
                wait.ranks.clone_from(absent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(number: u32, node: &str, kind: WaitKind, context: u32, ranks: &[u32]) -> RankWait {
        let wait = WaitOn { kind, context, peer: 1, tag: 0, ranks: ranks.to_vec(), ..WaitOn::default() };
        RankWait { rank: number, node: node.into(), call: "?".into(), waits: vec![wait], ..RankWait::default() }
    }

    fn remote(number: u32, node: &str) -> RankWait {
        RankWait { rank: number, node: node.into(), state: "REMOTE".into(), ..RankWait::default() }
    }

    fn world(members: &[Option<u32>]) -> CommInfo {
        CommInfo { context: 0, name: String::new(), members: members.to_vec() }
    }

    /// Ranks 0, 1 on a, 2, 3 on b: 3 is not in the barrier, in which 0 speaks for a with 2.
    #[test]
    fn what_nodes_know_is_put_together() {
        let a = JobWaits {
            ranks: vec![
                rank(0, "", WaitKind::Receive, 1, &[2]),
                rank(1, "", WaitKind::Collective, 0, &[0]),
                remote(2, "b"),
                remote(3, "b"),
            ],
            comms: vec![world(&[Some(0), Some(1), None, None])],
            ..JobWaits::default()
        };
        let b = JobWaits {
            ranks: vec![
                remote(0, "a"),
                remote(1, "a"),
                rank(2, "", WaitKind::Collective, 0, &[3]),
                rank(3, "", WaitKind::Receive, 0, &[]),
            ],
            comms: vec![world(&[None, None, Some(2), Some(3)])],
            ..JobWaits::default()
        };
        let parts = |b| vec![("a".to_string(), Some(a.clone())), ("b".to_string(), b)];
        let all = JobWaits::of_nodes(7, parts(Some(b)));
        let behind: Vec<&[u32]> = all.ranks.iter().map(|rank| &rank.waits[0].ranks[..]).collect();
        assert_eq!(behind, [&[2][..], &[3], &[3], &[1]], "the last one receives from member 1");
        let nodes: Vec<&str> = all.ranks.iter().map(|rank| rank.node.as_str()).collect();
        assert_eq!((all.job, nodes), (7, vec!["a", "a", "b", "b"]));
        assert_eq!(all.comms, [world(&[Some(0), Some(1), Some(2), Some(3)])]);
        let half = JobWaits::of_nodes(7, parts(None));
        assert_eq!(half.ranks[3].state, "REMOTE", "{half:?}");
    }

    #[test]
    fn anybody_may_be_one_who_is_not_known() {
        let from = |peer, members: &[Option<u32>]| {
            let mut waits = JobWaits {
                ranks: vec![rank(0, "", WaitKind::Receive, 0, &[])],
                comms: vec![world(members)],
                ..JobWaits::default()
            };
            waits.ranks[0].waits[0].peer = peer;
            waits.name_senders();
            waits.ranks.remove(0).waits.remove(0).ranks
        };
        assert_eq!(from(-1, &[Some(4), Some(5)]), [4, 5]);
        assert!(
            from(-1, &[Some(4), None]).is_empty()
                && from(1, &[Some(4), None]).is_empty()
                && from(2, &[Some(4)]).is_empty()
        );
        assert_eq!(from(0, &[Some(4), None]), [4]);
    }
}
