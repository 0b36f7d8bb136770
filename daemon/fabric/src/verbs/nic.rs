//! What the fabric wants of an RDMA device, without unsafe code; the plugin's is [`super::Card`], tests have one without a device.

use std::os::fd::BorrowedFd;

pub use super::abi::{Address, Done, Keys, Work};

/// What a device refuses, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NicError(pub String);

/// One end of a connection, by its number at the device.
pub type Pair = u32;

/// An open device. Nothing here waits.
pub trait Nic {
    /// The device and its port.
    fn name(&self) -> &str;
    /// Readable at the next completion after `arm`.
    fn channel(&self) -> BorrowedFd<'_>;
    /// # Errors
    /// There is no room for so many completions.
    fn prepare(&mut self, completions: u32) -> Result<(), NicError>;
    /// Memory that lives and stays where it is until the device is dropped.
    ///
    /// # Errors
    /// It cannot be locked, say.
    fn register(&mut self, addr: u64, bytes: u64) -> Result<Keys, NicError>;
    /// # Errors
    /// The device has no more.
    fn pair(&mut self, receives: u32, sends: u32) -> Result<(Pair, Address), NicError>;
    /// # Errors
    /// The other end's address makes no sense here.
    fn join(&mut self, pair: Pair, to: &Address) -> Result<(), NicError>;
    fn part(&mut self, pair: Pair);
    /// # Errors
    /// More are posted than `pair` was made for, or the connection has failed.
    fn receive(&mut self, pair: Pair, id: u64, addr: u64, bytes: u32, key: u32) -> Result<(), NicError>;
    /// # Errors
    /// As `receive`.
    fn send(&mut self, pair: Pair, work: &Work) -> Result<(), NicError>;
    /// # Errors
    /// The device has failed.
    fn poll(&mut self, done: &mut [Done]) -> Result<usize, NicError>;
    /// # Errors
    /// The device has failed.
    fn arm(&mut self) -> Result<(), NicError>;
    /// Has the channel become readable? It is not any more.
    fn heed(&mut self) -> bool;
    fn status(&self, status: u32) -> String;
}
