//! Numbers of jobs: no two that run at the same time have the same, among all daemons of a user on a node, so that `vmpictl why 2` means one of them.
//!
//! A number is claimed as vmpirun claims CPUs: by an abstract socket address, of which the kernel grants each once (per network namespace). It needs no file, and is
//! gone with the daemon however that ends. Daemons of another runtime directory are not seen by vmpictl, and count by themselves.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::Path;

/// So many numbers that others have are passed over; then one is taken all the same.
const TRIES: u32 = 4096;

/// Where the numbers of one daemon come from.
pub struct Numbers {
    prefix: String,
    last: u32,
}

impl Numbers {
    /// `base`: the user's runtime directory, in which this daemon's may lie.
    pub fn new(base: &Path) -> Numbers {
        let mut hash = DefaultHasher::new();
        base.hash(&mut hash);
        Numbers { prefix: format!("vmpi/job/{}/{:016x}/", nix::unistd::geteuid(), hash.finish()), last: 0 }
    }

    /// The next number that no job has, and what keeps it.
    pub fn take(&mut self) -> (u32, Option<UnixDatagram>) {
        let claim = |number: u32| {
            let address = SocketAddr::from_abstract_name(format!("{}{number}", self.prefix))?;
            UnixDatagram::bind_addr(&address)
        };
        let next = self.last + 1;
        for number in next..next + TRIES {
            match claim(number) {
                Ok(socket) => {
                    self.last = number;
                    return (number, Some(socket));
                }
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {}
                Err(_) => break,
            }
        }
        self.last = next;
        (next, None)
    }

    /// No job has come of the last one.
    pub fn take_back(&mut self) {
        self.last -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daemons_of_one_directory_share_numbers() {
        let base = std::env::temp_dir().join(format!("vmpi-numbers-{}", std::process::id()));
        let mut daemons = [Numbers::new(&base), Numbers::new(&base), Numbers::new(&base.join("other"))];
        let mut take = |daemon: usize| daemons[daemon].take();
        let (first, held) = take(0);
        let (second, also) = take(1);
        let (elsewhere, _) = take(2);
        assert_eq!((first, second, elsewhere), (1, 2, 1));
        let (third, _more) = take(0);
        assert_eq!(third, 3);
        drop((held, also));
        // A daemon's own numbers only grow.
        assert_eq!(take(1).0, 4);
        assert_eq!(Numbers::new(&base).take().0, 1);
    }
}
