//! The ports of a job, where groups of its ranks meet (MPI_Comm_accept and MPI_Comm_connect).
//!
//! A port's name tells the daemon and the job that it belongs to, so that a name from elsewhere gets a sentence that says so.

use std::collections::BTreeMap;

use vmpi_shared::dynamic::Ranks;

/// A group that waits at a port, by its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor {
    pub accepts: bool,
    pub ranks: Ranks,
    /// The root, its connection and the number of its question.
    pub root: u32,
    pub token: u64,
    pub number: u64,
}

/// Why a port is of no use.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    #[error("\"{0}\" is not the name of a port of vmpi")]
    NoName(String),
    #[error(
        "the port belongs to another job of vmpirun, and processes of two jobs cannot be connected; start both programs as one job: \
         vmpirun -n 1 ./server : -n 1 ./client"
    )]
    OtherJob,
    #[error("the port is not open (closed, or never opened)")]
    NotOpen,
    #[error("rank {0} of the job is in both groups that meet at the port")]
    Overlap(u32),
}

/// The open ports of a job.
pub struct Ports {
    /// What all names begin with.
    prefix: String,
    opened: u64,
    open: BTreeMap<u64, Vec<Visitor>>,
}

const SCHEME: &str = "vmpi-port:";

impl Ports {
    /// `daemon` must be a word that no other daemon has.
    pub fn new(daemon: &str, job: u32) -> Ports {
        Ports { prefix: format!("{SCHEME}{daemon}:{job}:"), opened: 0, open: BTreeMap::new() }
    }

    /// Does a group wait for another one to come?
    pub fn has_visitors(&self) -> bool {
        self.open.values().any(|waiting| !waiting.is_empty())
    }

    pub fn open(&mut self) -> String {
        self.opened += 1;
        self.open.insert(self.opened, Vec::new());
        format!("{}{}", self.prefix, self.opened)
    }

    fn number(&self, name: &str) -> Result<u64, PortError> {
        let Some(number) = name.strip_prefix(&self.prefix) else {
            let foreign = name.starts_with(SCHEME);
            return Err(if foreign { PortError::OtherJob } else { PortError::NoName(name.into()) });
        };
        let number = number.parse().map_err(|_| PortError::NoName(name.into()))?;
        if self.open.contains_key(&number) { Ok(number) } else { Err(PortError::NotOpen) }
    }

    /// Close a port; returns those who wait there.
    ///
    /// # Errors
    /// It is not open.
    pub fn close(&mut self, name: &str) -> Result<Vec<Visitor>, PortError> {
        let number = self.number(name)?;
        Ok(self.open.remove(&number).unwrap_or_default())
    }

    /// A group comes to a port. The one that it meets, which has waited longest, or `None`: it waits.
    ///
    /// # Errors
    /// The port is not open, or a rank would meet itself.
    pub fn meet(&mut self, name: &str, visitor: &Visitor) -> Result<Option<Visitor>, PortError> {
        let number = self.number(name)?;
        let waiting = self.open.get_mut(&number).ok_or(PortError::NotOpen)?;
        let Some(at) = waiting.iter().position(|other| other.accepts != visitor.accepts) else {
            waiting.push(visitor.clone());
            return Ok(None);
        };
        let mine: std::collections::BTreeSet<u32> = visitor.ranks.iter().collect();
        if let Some(both) = waiting[at].ranks.iter().find(|rank| mine.contains(rank)) {
            return Err(PortError::Overlap(both));
        }
        Ok(Some(waiting.remove(at)))
    }

    /// A rank is over: it waits for nobody.
    pub fn forget(&mut self, rank: u32) {
        for waiting in self.open.values_mut() {
            waiting.retain(|visitor| visitor.root != rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(accepts: bool, ranks: std::ops::Range<u32>) -> Visitor {
        let root = ranks.start;
        Visitor { accepts, ranks: ranks.collect(), root, token: u64::from(root), number: 0 }
    }

    #[test]
    fn groups_meet_in_the_order_of_their_coming() {
        let mut ports = Ports::new("d", 7);
        let name = ports.open();
        let (a, b, c) = (visitor(false, 0..2), visitor(false, 2..3), visitor(true, 5..9));
        assert_eq!(ports.meet(&name, &a), Ok(None));
        assert_eq!(ports.meet(&name, &b), Ok(None));
        assert_eq!(ports.meet(&name, &c), Ok(Some(a.clone())));
        assert_eq!(ports.meet(&name, &visitor(true, 2..4)), Err(PortError::Overlap(2)));
        ports.forget(2);
        assert_eq!(ports.meet(&name, &c), Ok(None));
        assert_eq!(ports.close(&name), Ok(vec![c]));
        assert_eq!(ports.meet(&name, &a), Err(PortError::NotOpen));
    }

    #[test]
    fn a_name_from_elsewhere_is_told() {
        let (mut ports, mut others) = (Ports::new("d", 7), Ports::new("d", 8));
        assert_eq!(ports.number(&others.open()), Err(PortError::OtherJob));
        assert_eq!(ports.number("tcp:x"), Err(PortError::NoName("tcp:x".into())));
        let name = ports.open();
        assert_eq!(ports.number(&name), Ok(1));
        assert_eq!(ports.number(&format!("{name}x")), Err(PortError::NoName(format!("{name}x"))));
        assert!(name.len() < 250);
    }
}
