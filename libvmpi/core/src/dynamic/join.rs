//! MPI_Comm_join: two processes with a socket between them (MPI 4.1 section 11.10.4).
//!
//! Each sends who it is and a proposal of contexts, and reads the other's; the one with the lower number in the job decides.
//! The socket is quiescent again afterwards.

use crate::comm::{self, Communicator};
use crate::construct;
use crate::errors::{Class, Error, Result, fail};
use crate::handle::Comm;
use crate::lock;
use crate::nodes;
use crate::process;
use crate::simulate;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;
use vmpi_shared::dynamic::InterContexts;

const MAGIC: u64 = u64::from_le_bytes(*b"vmpijoin");
const WORDS: usize = 8;

/// What each side sends, in words of 8 bytes: magic, job's start time (on several nodes its random number), job's number, rank, contexts, zero.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Card {
    started_at: u64,
    job: u32,
    rank: u32,
    contexts: InterContexts,
}

impl Card {
    fn bytes(&self) -> [u8; 8 * WORDS] {
        let [a, b, c] = self.contexts.map(u64::from);
        let words = [MAGIC, self.started_at, self.job.into(), self.rank.into(), a, b, c, 0];
        let mut bytes = [0; 8 * WORDS];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; 8 * WORDS]) -> Option<Card> {
        let mut words = [0; WORDS];
        for (word, from) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*from);
        }
        let [magic, started_at, job, rank, a, b, c, _] = words;
        let small = |word: u64| u32::try_from(word).ok();
        (magic == MAGIC).then_some(())?;
        Some(Card { started_at, job: small(job)?, rank: small(rank)?, contexts: [small(a)?, small(b)?, small(c)?] })
    }
}

/// The intercommunicator of this process and the one at the other end of the connected socket `fd`, one rank on each side.
///
/// # Errors
/// `Class::Other` if the socket does not work or the other process belongs to another job.
pub fn join(fd: i32) -> Result<Rc<Communicator>> {
    simulate::refuse("MPI_Comm_join", "meeting other groups goes by the daemon, which knows no virtual time")?;
    if fd < 0 {
        return fail(Class::Arg, format!("{fd} is not a file descriptor"));
    }
    let own = comm::get(Comm::SELF)?;
    let (started_at, job) = nodes::job_identity();
    let contexts = std::array::from_fn(|_| process::new_context_without_cell());
    let mine = Card { started_at, job, rank: process::endpoint_rank(), contexts };
    let failed = |error: io::Error| Error::new(Class::Other, format!("the socket {fd} does not work: {error}"));
    let theirs = lock::blocking(|| exchange(fd, &mine.bytes())).map_err(failed)?;
    let Some(theirs) = Card::from_bytes(&theirs) else {
        return fail(Class::Other, format!("what came through the socket {fd} is not from vmpi's MPI_Comm_join"));
    };
    if (theirs.started_at, theirs.job) != (mine.started_at, mine.job) {
        return fail(
            Class::Other,
            "the other process belongs to another job of vmpirun (or was started without it); start both programs as one job: \
             vmpirun -n 1 ./a : -n 1 ./b",
        );
    }
    let agreed = match theirs.rank.cmp(&mine.rank) {
        std::cmp::Ordering::Less => theirs.contexts,
        std::cmp::Ordering::Greater => mine.contexts,
        std::cmp::Ordering::Equal => {
            return fail(Class::Other, format!("both ends of the socket {fd} are in this process"));
        }
    };
    construct::connect(&own, agreed, vec![theirs.rank])
}

#[allow(unsafe_code)]
fn exchange(fd: i32, mine: &[u8; 8 * WORDS]) -> io::Result<[u8; 8 * WORDS]> {
    // SAFETY: fcntl on any number is harmless; a bad one is an error.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the program's descriptor is open and stays so during the call (MPI's contract); it is only duplicated.
    let socket: OwnedFd = unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?;
    let mut theirs = [0; 8 * WORDS];
    // The card is far smaller than a socket's buffer, so nobody waits for room while both write first.
    all(&socket, PollFlags::POLLOUT, |fd, done| send(fd, &mine[done..], MsgFlags::MSG_NOSIGNAL))?;
    all(&socket, PollFlags::POLLIN, |fd, done| recv(fd, &mut theirs[done..], MsgFlags::empty()))?;
    Ok(theirs)
}

/// Call `step` until a card is through, waiting where a nonblocking socket says so.
fn all(socket: &OwnedFd, event: PollFlags, mut step: impl FnMut(RawFd, usize) -> nix::Result<usize>) -> io::Result<()> {
    let mut done = 0;
    while done < 8 * WORDS {
        match step(socket.as_raw_fd(), done) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                poll(&mut [PollFd::new(socket.as_fd(), event)], PollTimeout::NONE)?;
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn cards_are_exchanged_and_checked() {
        let (a, b) = UnixStream::pair().unwrap();
        b.set_nonblocking(true).unwrap();
        let card = |rank| Card { started_at: 9, job: 1, rank, contexts: [4, 5, u32::MAX] };
        let other = std::thread::spawn(move || exchange(b.as_raw_fd(), &card(1).bytes()).unwrap());
        assert_eq!(Card::from_bytes(&exchange(a.as_raw_fd(), &card(0).bytes()).unwrap()), Some(card(1)));
        assert_eq!(Card::from_bytes(&other.join().unwrap()), Some(card(0)));
        assert!(exchange(a.as_raw_fd(), &card(0).bytes()).is_err(), "the other end is closed");
        let mut bytes = card(0).bytes();
        bytes[20] = 1; // a job number of more than 32 bits
        assert_eq!(Card::from_bytes(&bytes), None);
        assert_eq!(Card::from_bytes(&[7; 64]), None);
        assert_eq!(exchange(99_999, &bytes).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
