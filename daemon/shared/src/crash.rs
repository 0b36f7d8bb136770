//! How a rank ends badly: what it says itself before (`node::last_words`), and what its launcher tells of it.

use serde::{Deserialize, Serialize};

/// What is done about a rank that is about to end badly.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnCrash {
    /// Nothing.
    None,
    /// Its call stack is told.
    #[default]
    Stack,
    /// Also, it may write a core dump as large as the hard limit allows.
    Core,
    /// Its call stack is told, and it stays as it is for a debugger.
    Gdb,
}

impl OnCrash {
    /// All of them, by the names that users know.
    pub const NAMES: [(&'static str, OnCrash); 4] =
        [("stack", OnCrash::Stack), ("core", OnCrash::Core), ("gdb", OnCrash::Gdb), ("none", OnCrash::None)];

    pub fn word(self) -> u32 {
        self as u32
    }

    pub fn of_word(word: u32) -> OnCrash {
        Self::NAMES.into_iter().find(|(_, choice)| choice.word() == word).map_or(OnCrash::None, |(_, choice)| choice)
    }
}

/// How a rank is about to end.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "way")]
pub enum Way {
    /// By a signal that has its default effect. `code`: siginfo's si_code.
    Signal { signal: i32, code: i32 },
    /// By `exit`, with this code, between MPI_Init and MPI_Finalize.
    Exit { code: i32 },
    /// By MPI_Abort, or an MPI error that is fatal, with this code.
    Abort { code: i32 },
}

/// Where in its code a thread is.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
}

/// What a rank says before its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dying {
    pub rank: u32,
    /// As the daemon sees the process.
    pub pid: i32,
    /// The thread, if it is not the process's first one, as the process sees it.
    pub thread: Option<i32>,
    #[serde(flatten)]
    pub way: Way,
    /// The address that a memory fault is about.
    pub address: u64,
    pub registers: Registers,
}

/// A rank that has said its last words, and where it was: what its launcher tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crash {
    pub rank: u32,
    pub pid: i32,
    /// The thread, if it is not the process's first one: its name.
    pub thread: Option<String>,
    #[serde(flatten)]
    pub way: Way,
    /// The address that a memory fault is about; of a signal that a process has sent, which one.
    pub address: u64,
    /// The fault came where the thread's stack ends.
    pub stack_used_up: bool,
    /// The innermost frame first, those of vmpi as one.
    pub frames: Vec<Place>,
    /// Why there are none.
    pub error: Option<String>,
    /// In a job of several nodes.
    #[serde(default)]
    pub node: String,
}

/// A frame of a call stack, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// `?`: not known.
    pub function: String,
    /// `file.c:12`, or `program+0x1234`.
    pub at: String,
    /// It is in vmpi.
    pub in_vmpi: bool,
    /// Its file and line are known.
    pub in_source: bool,
}
