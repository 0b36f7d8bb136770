//! Which CPUs other jobs of this machine have: each vmpirun claims those of its job while it runs, and takes those that nobody has claimed first.
//!
//! A claim is an abstract socket address, of which the kernel grants each once (per network namespace): it needs no file, is seen by all users, is gone with the
//! process however that ends. Each CPU has several, one for each job that shares it. Of two vmpiruns that choose the same CPU at the same moment the one with the
//! later address sees more claims than it had counted, and chooses again. Whoever does not claim (other launchers, other namespaces) is not seen.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// More jobs on a CPU are not told apart.
const LEVELS: u32 = 32;
/// After so many others that came first a CPU is taken all the same.
const TRIES: u32 = 16;

/// What this process has claimed.
#[derive(Default)]
pub struct Claims {
    _sockets: Vec<UnixDatagram>,
}

/// The claims of one CPU.
struct Cpu<'a> {
    space: &'a str,
    number: u32,
}

impl Cpu<'_> {
    fn address(&self, level: u32) -> Option<SocketAddr> {
        SocketAddr::from_abstract_name(format!("vmpi{}/cpu/{}/{level}", self.space, self.number)).ok()
    }

    /// Claims below this level.
    fn load(&self, level: u32) -> u32 {
        let Ok(probe) = UnixDatagram::unbound() else { return 0 };
        let is_bound = |level: &u32| self.address(*level).is_some_and(|address| probe.connect_addr(&address).is_ok());
        (0..level).filter(is_bound).count() as u32
    }

    /// The first claim that is free.
    fn claim(&self) -> Option<(UnixDatagram, u32)> {
        (0..LEVELS).find_map(|level| Some((UnixDatagram::bind_addr(&self.address(level)?).ok()?, level)))
    }
}

impl Claims {
    /// Claim `wanted` of these CPUs: those with the fewest jobs, in the order given. They come first in what is returned, and the others after them.
    pub fn take(cpus: &[u32], wanted: usize) -> (Claims, Vec<u32>) {
        Claims::take_in("", cpus, wanted)
    }

    fn take_in(space: &str, cpus: &[u32], wanted: usize) -> (Claims, Vec<u32>) {
        let cpu = |at: usize| Cpu { space, number: cpus[at] };
        let mut others: Vec<usize> = (0..cpus.len()).collect();
        let mut loads: Vec<u32> = others.iter().map(|at| cpu(*at).load(LEVELS)).collect();
        let (mut sockets, mut mine, mut tries) = (Vec::new(), Vec::new(), 0);
        while mine.len() < wanted.min(cpus.len()) {
            let Some(place) = (0..others.len()).min_by_key(|place| loads[others[*place]]) else { break };
            let at = others[place];
            if let Some((socket, level)) = cpu(at).claim() {
                let before = cpu(at).load(level);
                tries += 1;
                if before > loads[at] && tries < TRIES {
                    loads[at] = before;
                    continue;
                }
                sockets.push(socket);
            }
            mine.push(others.remove(place));
        }
        mine.sort_unstable();
        (Claims { _sockets: sockets }, mine.into_iter().chain(others).map(|at| cpus[at]).collect())
    }
}

/// Has any vmpirun claimed this CPU?
pub fn is_claimed(cpu: u32) -> bool {
    Cpu { space: "", number: cpu }.load(LEVELS) > 0
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

    /// Many at the same time: nobody shares as long as there is a CPU for each.
    #[test]
    fn of_those_that_start_together_each_has_its_own() {
        let space = format!("-race-{}", std::process::id());
        let cpus: Vec<u32> = (0..8).collect();
        for _ in 0..50 {
            let barrier = std::sync::Barrier::new(4);
            let take = || {
                barrier.wait();
                Claims::take_in(&space, &cpus, 2)
            };
            let taken: Vec<(Claims, Vec<u32>)> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let mut all: Vec<u32> = taken.iter().flat_map(|(_, cpus)| cpus[..2].to_vec()).collect();
            all.sort_unstable();
            assert_eq!(all, cpus);
        }
    }
}
