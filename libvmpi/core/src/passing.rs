//! A memory file of one rank for the others of its node: nothing has a name.
//!
//! Who sees its maker under /proc opens the descriptor there. In namespaces of their own (a container for each rank) ranks do not, or see
//! another process under the same number: the maker then passes the descriptor on by the daemon's socket. Either way the file is known by its mark.

use crate::comm::Communicator;
use crate::dynamic::{pass_descriptor, take_descriptor};
use crate::errors::{Class, Error, Result};
use crate::nodes;
use crate::process::endpoint;
use std::fs::OpenOptions;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use vmpi_shared::node::mark_of;

/// What the maker tells the others about its descriptor.
#[derive(Copy, Clone, Default, PartialEq, Eq, Debug)]
pub struct Told {
    /// 0: there is none.
    mark: u64,
    /// Its number in the maker's process.
    fd: u64,
    /// By which it is taken from the daemon, or 0.
    passed: u64,
}

pub const TOLD_BYTES: usize = 24;

impl Told {
    /// There is nothing to open.
    pub const NOTHING: Told = Told { mark: 0, fd: 0, passed: 0 };

    /// Make `file`, of this rank, known to the others of `comm` that are on this node.
    ///
    /// # Errors
    /// It cannot be passed on to those who do not see it.
    pub fn of(comm: &Communicator, file: BorrowedFd<'_>) -> Result<Told> {
        use std::os::fd::AsRawFd;
        let endpoint = endpoint();
        let is_taker =
            |rank: &u32| nodes::same_node(endpoint.me, *rank) && !endpoint.node.see_each_other(endpoint.me, *rank);
        let mark = mark_of(&file).map_err(|error| Error::new(Class::Other, error.to_string()))?;
        let passed = match comm.local.iter().filter(is_taker).count() as u32 {
            0 => 0,
            takers => pass_descriptor(file.as_raw_fd(), takers, Class::Other)?,
        };
        Ok(Told { mark, fd: file.as_raw_fd() as u64, passed })
    }

    pub fn is_nothing(self) -> bool {
        self.mark == 0
    }

    /// What `maker`, a rank of this node, has told.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(self, maker: u32) -> std::result::Result<OwnedFd, String> {
        let (node, me) = (&endpoint().node, endpoint().me);
        let (file, whence) = if node.see_each_other(me, maker) {
            let path = format!("/proc/{}/fd/{}", node.pid(maker), self.fd);
            // O_NONBLOCK: it may be any file until the mark has been seen.
            let opened = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(&path);
            (opened.map_err(|error| format!("{path}: {error}"))?.into(), path)
        } else {
            let taken = take_descriptor(maker, self.passed, Class::Other).map_err(|error| error.message)?;
            (taken, "what has been passed on".into())
        };
        match mark_of(&file) {
            Ok(mark) if mark == self.mark => Ok(file),
            _ => Err(format!("{whence} is another file than rank {maker} has made")),
        }
    }

    pub fn encode(self) -> [u8; TOLD_BYTES] {
        let mut bytes = [0; TOLD_BYTES];
        for (into, word) in bytes.chunks_exact_mut(8).zip([self.mark, self.fd, self.passed]) {
            into.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    pub fn decode(bytes: [u8; TOLD_BYTES]) -> Told {
        let words: [[u8; 8]; 3] = bytes.as_chunks().0.try_into().expect("three words");
        let [mark, fd, passed] = words.map(u64::from_ne_bytes);
        Told { mark, fd, passed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_what_is_heard() {
        let told = Told { mark: 3, fd: 1 << 20, passed: 7 << 40 };
        assert_eq!(Told::decode(told.encode()), told);
        assert!(Told::decode(Told::NOTHING.encode()).is_nothing() && !told.is_nothing());
    }
}
