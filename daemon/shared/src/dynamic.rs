//! What ranks ask of their daemon for dynamic processes (MPI 4.1 chapter 11), and the answers.
//!
//! A rank numbers its questions (`Request::Ask`); the daemon answers each once (`Reply::Answer`), in any order, and then wakes the
//! rank, which waits suspended like for a message. Ranks are told by their number in the job, in order of their group.

use crate::escape::Names;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Ranks of the job in a certain order, as runs of (first, how many).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ranks(Vec<[u32; 2]>);

impl FromIterator<u32> for Ranks {
    fn from_iter<I: IntoIterator<Item = u32>>(ranks: I) -> Ranks {
        let mut runs: Vec<[u32; 2]> = Vec::new();
        for rank in ranks {
            match runs.last_mut() {
                Some([first, count]) if u64::from(*first) + u64::from(*count) == u64::from(rank) => *count += 1,
                _ => runs.push([rank, 1]),
            }
        }
        Ranks(runs)
    }
}

impl Ranks {
    /// All of them in order; a number out of range saturates, so that the receiver's range check sees it.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|[first, count]| (0..*count).map(move |at| first.saturating_add(at)))
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|[_, count]| *count as usize).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Are all of them among the first `limit` ranks, and no more than that many, in no more runs?
    pub fn fit(&self, limit: u32) -> bool {
        self.0.iter().all(|[first, count]| u64::from(*first) + u64::from(*count) <= u64::from(limit))
            && self.len() <= limit as usize
            && self.0.len() <= limit as usize
    }
}

/// Contexts of an intercommunicator: its own, and those of the private communicators of the leading and of the other group.
pub type InterContexts = [u32; 3];
/// Those, and one for the MPI_COMM_WORLD of ranks that are spawned.
pub type NewContexts = [u32; 4];

/// The MPI_COMM_WORLD of a rank: the ranks that were started together with it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct World {
    /// 1 for the ranks that vmpirun started, 2 for those that were spawned first ...
    pub number: u32,
    /// In order of their rank in MPI_COMM_WORLD.
    pub ranks: Ranks,
    /// Matching context.
    pub context: u32,
    pub parent: Option<Parent>,
    /// Error handler of the predefined communicators at the start: `mpi_errors_return` and the like; empty: as always.
    pub errhandler: String,
}

/// Who spawned a world.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Parent {
    pub ranks: Ranks,
    pub contexts: InterContexts,
}

/// One program of MPI_Comm_spawn(_multiple).
#[derive(Clone, Serialize, Deserialize)]
pub struct SpawnApp {
    /// Absolute paths: the first that can be executed where it is to start is the program.
    pub candidates: Vec<String>,
    /// `argv`, `argv[0]` included.
    pub argv: Vec<String>,
    pub cwd: String,
    /// In a job of several nodes those on which it may start; none: all.
    #[serde(default)]
    pub nodes: Vec<u32>,
    /// Variables on top of those of the rank that asks.
    pub env: Vec<(String, String)>,
    /// The numbers of processes that will do, the best first.
    pub counts: Vec<u32>,
}

impl fmt::Debug for SpawnApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SpawnApp { candidates, argv, cwd, nodes, env, counts } = self;
        let mut told = f.debug_struct("SpawnApp");
        told.field("candidates", candidates).field("argv", argv).field("cwd", cwd).field("nodes", nodes);
        told.field("env", &Names(env)).field("counts", counts).finish()
    }
}

impl SpawnApp {
    /// Most programs of a call, and most files and numbers for one: each is tried.
    pub const MOST: usize = 4096;

    pub fn is_bearable(&self) -> bool {
        self.candidates.len().max(self.counts.len()) <= SpawnApp::MOST
    }

    /// The file to execute, on this node.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub fn program(&self) -> Result<&str, String> {
        if !Path::new(&self.cwd).is_dir() {
            return Err(format!("the working directory {} (info key wdir) does not exist", self.cwd));
        }
        let command = self.argv.first().map_or("", String::as_str);
        let found = self.candidates.iter().find(|file| !command.is_empty() && is_executable(Path::new(file)));
        found.map(String::as_str).ok_or_else(|| {
            let there = self.candidates.iter().find(|file| Path::new(file).exists() && !command.is_empty());
            match (there, &self.candidates[..]) {
                (Some(file), _) => format!("{file} cannot be executed"),
                (None, [only]) if command.contains('/') => format!("there is no file {only}"),
                _ => format!("there is no program {command:?} in the info key path, PATH or {}", self.cwd),
            }
        })
    }
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Ask {
    Spawn {
        apps: Vec<SpawnApp>,
        /// The group that spawns.
        parent: Ranks,
        errhandler: String,
        /// The environment on top of which the programs' is; filled in by the vmpid of the rank that asks.
        #[serde(default)]
        variables: Vec<(String, String)>,
    },
    OpenPort,
    ClosePort {
        port: String,
    },
    Publish {
        service: String,
        port: String,
    },
    Unpublish {
        service: String,
        port: String,
    },
    Lookup {
        service: String,
    },
    /// A descriptor, which comes along, for so many other ranks of this node, who cannot open it themselves.
    Pass {
        takers: u32,
    },
    /// The descriptor that `from` has passed with question `number`. It comes along with the answer.
    Take {
        from: u32,
        number: u64,
    },
    /// MPIX_Comm_agree, MPIX_Comm_shrink: answered when all of both groups have asked, or are gone. All ask with the same first three.
    Agree {
        context: u32,
        /// Number of the agreement on this communicator.
        number: u64,
        /// The group of an intracommunicator and none, or those of an intercommunicator, the leading one first.
        groups: [Ranks; 2],
        /// Contexts are wanted for a communicator of those who are left.
        shrink: bool,
        flag: u32,
        /// Failures up to this one are known to the program.
        acknowledged: u32,
        /// These are the failed ranks; from the rank's vmpid, since each node has numbers of its own.
        known: Ranks,
    },
    /// MPI_Comm_accept and MPI_Comm_connect: answered when the other side has come.
    Meet {
        port: String,
        accept: bool,
        ranks: Ranks,
    },
}

/// Why the answer is no.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    Spawn,
    Port,
    Name,
    Service,
    Descriptor,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    Spawned {
        ranks: Ranks,
        contexts: InterContexts,
        /// How many processes of each program.
        counts: Vec<u32>,
    },
    Port {
        port: String,
    },
    Done,
    Met {
        ranks: Ranks,
        contexts: InterContexts,
    },
    Agreed {
        /// The bitwise AND over what the members of each group gave.
        flags: [u32; 2],
        /// The members that had failed by then.
        failed: Ranks,
        /// One of these failures was not acknowledged by all who agreed.
        news: bool,
        /// If they are wanted: for an intracommunicator the first.
        contexts: InterContexts,
    },
    /// Nothing was done.
    Denied {
        why: Why,
        reason: String,
    },
}

impl Answer {
    /// Are all ranks that it names among the first `limit`?
    pub fn fits(&self, limit: u32) -> bool {
        match self {
            Answer::Spawned { ranks, .. } | Answer::Met { ranks, .. } | Answer::Agreed { failed: ranks, .. } => {
                ranks.fit(limit)
            }
            Answer::Port { .. } | Answer::Done | Answer::Denied { .. } => true,
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn an_answer_names_ranks_of_the_job() {
        let ranks = |text: &str| serde_json::from_str::<Ranks>(text).unwrap();
        let agreed = |failed| Answer::Agreed { flags: [0; 2], failed, news: true, contexts: [0; 3] };
        assert!(agreed(ranks("[[3,1],[0,2]]")).fits(4));
        assert!(!agreed(ranks("[[1000000,1]]")).fits(4));
        assert!(!agreed(ranks("[[0,1],[0,1],[0,1],[0,1],[0,1]]")).fits(4), "more than there are");
        assert!(!Answer::Met { ranks: ranks("[[4294967295,4294967295]]"), contexts: [0; 3] }.fits(4));
        assert!(!Answer::Spawned { ranks: ranks("[[4,1]]"), contexts: [0; 3], counts: vec![1] }.fits(4));
        assert!(Answer::Done.fits(0));
    }

    #[test]
    fn ranks_keep_their_order() {
        for list in [vec![], vec![3], vec![0, 1, 2, 7, 8, 5, 6, 6], vec![u32::MAX, 0]] {
            let ranks: Ranks = list.iter().copied().collect();
            assert_eq!(ranks.iter().collect::<Vec<_>>(), list);
            assert_eq!(ranks.len(), list.len());
        }
        let ranks: Ranks = (4..8).collect();
        assert_eq!(serde_json::to_string(&ranks).unwrap(), "[[4,4]]");
        assert!(ranks.fit(8) && !ranks.fit(7));
        assert!(!Ranks(vec![[0, u32::MAX], [0, u32::MAX]]).fit(u32::MAX));
        assert!(!Ranks(vec![[0, 0]; 9]).fit(8), "nothing, at length");
    }
}
