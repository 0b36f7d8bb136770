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

/// A network between ranks. The same answer to the same question, always.
pub trait Network {
    fn cost(&self, from: u32, to: u32, bytes: u64) -> Cost;
}
