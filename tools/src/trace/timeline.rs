//! A job's recording as a timeline: what each core and each rank did, and which message went when. Pure.
//!
//! Ranks write a record for a whole turn when it begins (`vmpi_shared::trace`), so the end of a turn is in the next record, and that of
//! the last one in how the rank stood when the daemon looked.

mod axis;
mod build;
mod messages;
mod outside;
mod regions;
mod track;

pub use axis::OnNode;

use std::rc::Rc;
use vmpi_shared::trace::Within;

/// Nanoseconds since the recording began.
pub type Ns = u64;

/// What a core did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CoreDid {
    /// This rank ran.
    Ran(u32),
    /// Idle; this rank had the core, and watched for the end of its wait.
    Watched(u32),
    /// It went over to this rank.
    HandOff(u32),
    Idle,
    /// It was another job's.
    Elsewhere,
    /// Nobody ran, while a rank of it had not come to the end of MPI_Init; while one had left MPI, or the job was ended.
    Starting,
    Ending,
}

/// What a rank did.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RankDid {
    Running,
    /// In MPI, for something that had not happened yet.
    Suspended,
    /// It could have run, and waited for its core.
    Ready,
    /// Outside MPI, without its core.
    Away,
    /// Before the end of MPI_Init; after MPI_Finalize, or its death there.
    Starting,
    Ending,
}

impl RankDid {
    pub fn name(self) -> &'static str {
        match self {
            RankDid::Running => "RUNNING",
            RankDid::Suspended => "SUSPENDED",
            RankDid::Ready => "READY",
            RankDid::Away => "AWAY",
            RankDid::Starting => "STARTING",
            RankDid::Ending => "ENDING",
        }
    }
}

/// A stretch of a core's time. Those of a track do not overlap, and are in order.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreSlice {
    pub from: Ns,
    pub until: Ns,
    pub did: CoreDid,
}

/// A stretch of a rank's time.
#[derive(Clone, Debug, PartialEq)]
pub struct RankSlice {
    pub from: Ns,
    pub until: Ns,
    pub did: RankDid,
    /// The MPI function that it waits in, or what is known of it; empty if it does not.
    pub call: Rc<str>,
    /// Negative: any, or none.
    pub peer: i32,
    pub tag: i32,
}

/// A node of several, and how its part was put on the axis.
#[derive(Clone, Debug, Default)]
pub struct NodeTrack {
    pub name: String,
    /// When it recorded.
    pub from: Ns,
    pub until: Ns,
    /// Its CLOCK_BOOTTIME was so much ahead of the launcher's when it began, give or take so much.
    pub offset_ns: i64,
    pub within_ns: Ns,
    /// By time stamps; otherwise messages alone say where its part lies.
    pub is_compared: bool,
    /// Why there is nothing of it.
    pub missing: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub struct CoreTrack {
    /// Index in the timeline's nodes.
    pub node: u32,
    pub core: u32,
    pub cpu: u32,
    pub slices: Vec<CoreSlice>,
}

#[derive(Clone, Debug, Default)]
pub struct RankTrack {
    pub node: u32,
    pub rank: u32,
    pub pid: i32,
    pub slices: Vec<RankSlice>,
    /// Process-POV clock (ns) at times.
    pub clock: Vec<(Ns, u64)>,
    /// Performance counters of the rank, and of its core, at times.
    pub counted: Vec<Counted>,
    /// The program's own regions, in order of their beginnings.
    pub regions: Vec<RegionSpan>,
    /// Blocking collective calls, in order.
    pub collectives: Vec<CollectiveCall>,
    /// When the program wanted nothing recorded.
    pub paused: Vec<(Ns, Ns)>,
    /// From when on everything is known.
    pub known_from: Ns,
    /// Records that were lost, because the ring holds only the newest; and those that were damaged.
    pub dropped: u64,
    pub damaged: u64,
}

/// A stretch in which a rank was in a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSpan {
    pub from: Ns,
    pub until: Ns,
    pub name: Rc<str>,
    /// The first row that has room for it, if those of one row are not to overlap.
    pub row: u32,
    /// Its beginning, and its end, were recorded.
    pub begun: bool,
    pub ended: bool,
}

/// A blocking collective call of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveCall {
    pub from: Ns,
    pub until: Ns,
    /// The MPI function.
    pub call: Rc<str>,
    pub context: u32,
    pub root: Option<u32>,
    /// What it had to send and to receive, bytes.
    pub sent: u64,
    pub received: u64,
    pub within: Within,
}

/// Performance counters at a time.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Counted {
    pub at: Ns,
    pub core: u32,
    pub values: [u64; vmpi_shared::trace::COUNTERS],
    pub of_core: [u64; vmpi_shared::trace::COUNTERS],
}

/// A message whose sending and receiving are both known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub from: u32,
    pub to: u32,
    pub sent: Ns,
    pub received: Ns,
    /// As many as the sender sent.
    pub bytes: u64,
    pub tag: i32,
    /// The function that sent it; empty: not known.
    pub call: Rc<str>,
    /// Of a collective call.
    pub collective: bool,
    /// Its communicator, and who is who there: the sender's view.
    pub context: u32,
    pub within: Within,
}

#[derive(Clone, Debug, Default)]
pub struct Timeline {
    pub job: u32,
    pub program: String,
    pub length: Ns,
    /// CLOCK_BOOTTIME and CLOCK_REALTIME at the beginning, nanoseconds.
    pub boottime: u64,
    pub realtime: u64,
    pub on: bool,
    /// Names of the performance counters.
    pub counters: Vec<String>,
    pub cores: Vec<CoreTrack>,
    pub ranks: Vec<RankTrack>,
    /// In order of sending.
    pub messages: Vec<Message>,
    /// Sends and receives whose other end is not known: under way, before the recording, lost, or of another node.
    pub half_messages: u64,
    /// Of a job of several nodes.
    pub nodes: Vec<NodeTrack>,
    /// Messages that arrived before they were sent, by the clocks of two nodes, and by how much at most; they are told as arriving at once.
    pub backwards: u64,
    pub backwards_by: Ns,
}

impl Timeline {
    pub fn dropped(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.dropped).sum()
    }

    /// Stretches and messages.
    pub fn events(&self) -> u64 {
        let cores: usize = self.cores.iter().map(|core| core.slices.len()).sum();
        let ranks: usize = self.ranks.iter().map(|rank| rank.slices.len()).sum();
        (cores + ranks + self.messages.len()) as u64
    }

    /// The name of a node, in a job of several.
    pub fn node(&self, node: u32) -> Option<&str> {
        self.nodes.get(node as usize).map(|node| node.name.as_str())
    }

    /// How far the nodes' clocks are known, in a sentence.
    pub fn clocks(&self) -> Option<String> {
        let known = || self.nodes.iter().filter(|node| node.missing.is_none() && node.is_compared);
        let within = known().map(|node| node.within_ns).max()?;
        let us = |ns: f64| format!("{:.1} us", ns * 1e-3);
        let text = format!("the clocks of {} nodes are on one axis within {}", known().count(), us(within as f64));
        Some(text)
    }

    /// What is missing from it, in a sentence.
    pub fn gaps(&self) -> Option<String> {
        let mut told = Vec::new();
        if self.nodes.is_empty() {
            told.extend(self.losses(0));
        }
        for (number, node) in (0u32..).zip(&self.nodes) {
            let losses = match &node.missing {
                Some(why) => Some(format!("nothing of what was recorded there is here: {why}")),
                None => self.losses(number),
            };
            told.extend(losses.map(|losses| format!("node {}: {losses}", node.name)));
            if node.missing.is_none() && !node.is_compared {
                told.push(format!("node {}: its clock could not be compared with those of the others", node.name));
            }
        }
        if self.backwards > 0 {
            told.push(format!(
                "{} messages arrived up to {:.1} us before they were sent, by the clocks of their nodes",
                self.backwards,
                self.backwards_by as f64 * 1e-3
            ));
        }
        let paused = || self.ranks.iter().filter(|rank| !rank.paused.is_empty());
        if paused().next().is_some() {
            let longest = paused().map(|rank| rank.paused.iter().map(|(from, until)| until - from).sum::<Ns>()).max();
            told.push(format!(
                "{} ranks wanted nothing recorded (MPI_Pcontrol) for up to {:.3} s",
                paused().count(),
                longest.unwrap_or(0) as f64 * 1e-9
            ));
        }
        told.extend(self.unbalanced());
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// Regions that began and did not end, in words.
    fn unbalanced(&self) -> Option<String> {
        let open = || self.ranks.iter().filter(|rank| rank.regions.iter().any(|region| !region.ended));
        let first = open().flat_map(|rank| &rank.regions).find(|region| !region.ended).filter(|_| !self.on)?;
        let name = &first.name;
        Some(format!(
            "regions of {} ranks began and did not end (`{name}` is one), and are told until the end",
            open().count()
        ))
    }

    /// What is missing of a node's ranks.
    fn losses(&self, node: u32) -> Option<String> {
        let ranks = || self.ranks.iter().filter(|rank| rank.node == node);
        let (dropped, damaged): (u64, u64) =
            ranks().fold((0, 0), |(dropped, damaged), rank| (dropped + rank.dropped, damaged + rank.damaged));
        let mut told = Vec::new();
        if dropped > 0 {
            let from = ranks().map(|rank| rank.known_from).max().unwrap_or(0);
            told.push(format!(
                "{dropped} of the oldest events of {} ranks were overwritten by newer ones; the trace is complete from {:.3} s on, of {:.3} s",
                ranks().filter(|rank| rank.dropped > 0).count(),
                from as f64 * 1e-9,
                self.length as f64 * 1e-9
            ));
        }
        if damaged > 0 {
            told.push(format!("{damaged} events cannot be: a rank wrote over its own records"));
        }
        (!told.is_empty()).then(|| told.join("; "))
    }
}
