//! The states of a rank and of a core's holder word.

/// State of a rank (EuroMPI'20 paper, figure 1, with SUSPENDED split by who owns its queues and whether its wait is over).
///
/// It is also the lock on the rank's matching queues: RUNNING, AWAY and ADOPTED, the rank itself; TENDED, the deliverer that put it
/// there; SUSPENDED, nobody; READY, nobody until it runs (deliverers only push).
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum RunState {
    /// Before the end of MPI_Init.
    Init = 0,
    Running = 1,
    Suspended = 2,
    Tended = 3,
    Ready = 4,
    /// It lost its core while outside MPI (asleep in the kernel, or past its quantum); it asks for it at its next MPI call.
    Away = 5,
    /// MPI_Finalize has returned.
    Finalized = 6,
    /// Its process is gone.
    Dead = 7,
    /// Its descriptor holds a value that is no state: the segment was scribbled over.
    Damaged = 8,
    /// AWAY, and the daemon is giving it an idle core (`regrant`).
    Adopted = 9,
    /// It lives on another node: what is pushed into its inbox here is for this node's carrier to take there.
    Remote = 32,
}

impl RunState {
    pub fn from_word(word: u32) -> RunState {
        match word {
            0 => RunState::Init,
            1 => RunState::Running,
            2 => RunState::Suspended,
            3 => RunState::Tended,
            4 => RunState::Ready,
            5 => RunState::Away,
            6 => RunState::Finalized,
            7 => RunState::Dead,
            9 => RunState::Adopted,
            32 => RunState::Remote,
            _ => RunState::Damaged,
        }
    }

    pub fn word(self) -> u32 {
        self as u32
    }

    pub fn name(self) -> &'static str {
        match self {
            RunState::Init => "INIT",
            RunState::Running => "RUNNING",
            RunState::Suspended => "SUSPENDED",
            RunState::Tended => "TENDED",
            RunState::Ready => "READY",
            RunState::Away | RunState::Adopted => "AWAY",
            RunState::Finalized => "FINALIZED",
            RunState::Dead => "DEAD",
            RunState::Damaged => "DAMAGED",
            RunState::Remote => "REMOTE",
        }
    }
}

/// What a suspended rank waits for; who may end the wait.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Wait {
    None = 0,
    /// Messages: ended by whoever tends its queues.
    Queues = 1,
    /// One message, of context `operand`, and of the descriptor's `peer` and `tag`, and nothing else: also ended by whoever has pushed that, without tending.
    Message = 4,
    /// Room in the inbox of rank `operand`: ended by that rank as it drains.
    Space = 2,
    /// The collective cell `operand`: ended by the rank that completes it.
    Cell = 3,
    /// Nothing: it has polled for a message in vain, and lets others run.
    Poll = 5,
}

/// Holder word: nobody, and nobody watches: whoever makes a rank READY dispatches it.
pub const IDLE: u32 = 0;
/// Holder word: nobody, but a suspended rank of this core spins and watches the run queue.
pub const SPINNING: u32 = u32::MAX - 1;
/// Holder word: the core is another job's now (`lease`); only the daemon gives it back.
pub const WITHHELD: u32 = u32::MAX - 2;
/// Holder word: nobody, and there are READY ranks that have not parked: the one that the kernel runs first takes it.
pub const OPEN: u32 = u32::MAX - 3;
/// Holder word: someone is choosing the next rank.
pub const CLAIMED: u32 = u32::MAX;

/// The rank in a holder word.
pub fn holder_rank(word: u32) -> Option<u32> {
    match word {
        IDLE | SPINNING | WITHHELD | OPEN | CLAIMED => None,
        word => Some(word - 1),
    }
}

/// The holder word of a rank.
pub fn holder_word(rank: u32) -> u32 {
    rank + 1
}
