//! What the engine asks of the machine that it simulates.

/// What one message costs, in picoseconds.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct Cost {
    /// The sender is busy for so long; then the first byte leaves.
    pub send_overhead: u64,
    /// From then on until the last byte is there.
    pub wire: u64,
    /// The receiver is busy for so long when it takes the message.
    pub receive_overhead: u64,
    /// The next message of this sender leaves so much later than this one.
    pub gap: u64,
}

/// A message whose first byte leaves.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Flow {
    pub at: u64,
    /// No other one under way has the same.
    pub key: u64,
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
}

/// A network between ranks. The same answer to the same question, always.
pub trait Network {
    /// What a message costs, if it is alone.
    fn cost(&self, from: u32, to: u32, bytes: u64) -> Cost;

    /// What a word costs that says something of a message: that it is there, or that a receive has taken it. By itself that is a message without bytes.
    fn word(&self, from: u32, to: u32) -> Cost {
        self.cost(from, to, 0)
    }

    /// Does a message of so many bytes leave its sender's buffer at once, and its sender only once a receive has taken it?
    fn detaches(&self, _bytes: u64) -> bool {
        false
    }

    /// Do messages of so many bytes of these two compete with others? Then they are flows, and what those under way need to remember is in `memory`, from call to
    /// call. Words never do.
    fn shares(&self, _from: u32, _to: u32, _bytes: u64) -> bool {
        false
    }

    /// False: too many are under way.
    fn start(&self, _memory: &mut [u8], _flow: &Flow) -> bool {
        false
    }

    /// When flows change next, or one ends, if none starts before that.
    fn next(&self, _memory: &mut [u8]) -> Option<u64> {
        None
    }

    /// All that happens to flows up to `to`; the keys of those that end, and when, go to `ended`. False: the memory has been overwritten.
    fn advance(&self, _memory: &mut [u8], _to: u64, _ended: &mut Vec<(u64, u64)>) -> bool {
        false
    }
}
