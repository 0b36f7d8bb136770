//! Which CPUs other jobs of this machine have: each vmpirun claims those of its job while it runs, and takes those that nobody has claimed first.
//!
//! A claim is an abstract socket address, of which the kernel grants each once (per network namespace): it needs no file, is seen by all users, is gone with the
//! process however that ends, and of two vmpiruns that start together one gets it. A CPU that one job has is claimed by the next one a level higher, so those with
//! the fewest jobs come first. Whoever does not claim (other launchers, other namespaces) is not seen.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// More jobs on each CPU are not told apart.
const LEVELS: u32 = 64;

/// What this process has claimed.
#[derive(Default)]
pub struct Claims {
    _sockets: Vec<UnixDatagram>,
}

fn claim(cpu: u32, level: u32, space: &str) -> Option<UnixDatagram> {
    let address = SocketAddr::from_abstract_name(format!("vmpi{space}/cpu/{cpu}/{level}")).ok()?;
    UnixDatagram::bind_addr(&address).ok()
}

impl Claims {
    /// Claim `wanted` of these CPUs: those with the fewest jobs, in the order given. They come first in what is returned, and the others after them.
    pub fn take(cpus: &[u32], wanted: usize) -> (Claims, Vec<u32>) {
        Claims::take_in("", cpus, wanted)
    }

    fn take_in(space: &str, cpus: &[u32], wanted: usize) -> (Claims, Vec<u32>) {
        let mut sockets = Vec::new();
        let mut mine = vec![false; cpus.len()];
        for level in 0..LEVELS {
            for (cpu, mine) in cpus.iter().zip(&mut mine) {
                if sockets.len() < wanted
                    && !*mine
                    && let Some(socket) = claim(*cpu, level, space)
                {
                    *mine = true;
                    sockets.push(socket);
                }
            }
        }
        // Where nothing can be claimed at all the first ones are as good as any.
        let (first, others): (Vec<_>, Vec<_>) = cpus.iter().zip(&mine).partition(|(_, mine)| **mine);
        let cpus = first.into_iter().chain(others).map(|(cpu, _)| *cpu).collect();
        (Claims { _sockets: sockets }, cpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_job_takes_what_is_free_and_then_what_has_the_fewest() {
        let space = format!("-test-{}", std::process::id());
        let take = |wanted| Claims::take_in(&space, &[0, 1, 2, 3], wanted);
        let (first, cpus) = take(2);
        assert_eq!(cpus, [0, 1, 2, 3]);
        let (second, cpus) = take(1);
        assert_eq!(cpus, [2, 0, 1, 3]);
        let (third, cpus) = take(2);
        assert_eq!(cpus, [0, 3, 1, 2], "one that is free, one that has one job");
        drop(first);
        let (_fourth, cpus) = take(1);
        assert_eq!(cpus, [1, 0, 2, 3]);
        drop((second, third));
        let (_fifth, cpus) = take(3);
        assert_eq!(cpus, [0, 2, 3, 1]);
    }
}
