//! The ports of a job, where groups of its ranks meet (MPI_Comm_accept and MPI_Comm_connect), and the names under which they are published.
//!
//! Kept where a whole job is seen: by the daemon, and for a job on several nodes by the launcher. A port's name tells whose it is and of
//! which job, so that a name from elsewhere gets a sentence that says so.

use std::collections::BTreeMap;

use crate::dynamic::{Answer, Ask, InterContexts, Ranks, Why};

/// An answer to a rank's question of this number.
#[derive(Debug)]
pub struct Told {
    pub rank: u32,
    pub number: u64,
    pub answer: Answer,
}

/// A group that waits at a port, by its root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor {
    pub accepts: bool,
    pub ranks: Ranks,
    /// The root, and the number of its question.
    pub root: u32,
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
    #[error("{MOST} {0} already")]
    Full(&'static str),
}

/// The open ports of a job.
pub struct Ports {
    /// What all names begin with.
    prefix: String,
    opened: u64,
    open: BTreeMap<u64, Vec<Visitor>>,
}

const SCHEME: &str = "vmpi-port:";
/// Ports of a job that may be open, groups that may wait at one, and names that may be published.
const MOST: usize = 1 << 16;
/// The longest name; MPI's own limits (MPI_MAX_PORT_NAME) are shorter.
const MOST_NAME_BYTES: usize = 4096;

impl Ports {
    /// `keeper` must be a word that nobody else has who keeps ports.
    pub fn new(keeper: &str, job: u32) -> Ports {
        Ports { prefix: format!("{SCHEME}{keeper}:{job}:"), opened: 0, open: BTreeMap::new() }
    }

    /// The group whose root is `rank`, if it waits at a port for another one.
    pub fn visitor(&self, rank: u32) -> Option<&Visitor> {
        self.open.values().flatten().find(|visitor| visitor.root == rank)
    }

    /// # Errors
    /// Too many are open.
    pub fn open(&mut self) -> Result<String, PortError> {
        if self.open.len() >= MOST {
            return Err(PortError::Full("ports are open"));
        }
        self.opened += 1;
        self.open.insert(self.opened, Vec::new());
        Ok(format!("{}{}", self.prefix, self.opened))
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
            if waiting.len() >= MOST {
                return Err(PortError::Full("groups wait at the port"));
            }
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

/// A published service.
struct Service {
    port: String,
    /// The job that published it.
    job: u32,
}

/// Services by their names.
#[derive(Default)]
pub struct Services(BTreeMap<String, Service>);

fn denied(why: Why, reason: impl ToString) -> Answer {
    Answer::Denied { why, reason: reason.to_string() }
}

impl From<PortError> for Answer {
    fn from(error: PortError) -> Answer {
        denied(Why::Port, error)
    }
}

impl Services {
    fn publish(&mut self, job: u32, service: String, port: String) -> Answer {
        if service.len().max(port.len()) > MOST_NAME_BYTES || self.0.len() >= MOST {
            return denied(
                Why::Service,
                format!("a name has more than {MOST_NAME_BYTES} bytes, or {MOST} are published already"),
            );
        }
        if self.0.contains_key(&service) {
            return denied(Why::Service, format!("\"{service}\" is published already"));
        }
        self.0.insert(service, Service { port, job });
        Answer::Done
    }

    fn unpublish(&mut self, job: u32, service: &str, port: &str) -> Answer {
        match self.0.get(service) {
            Some(known) if known.job == job && known.port == port => {
                self.0.remove(service);
                Answer::Done
            }
            Some(_) => denied(Why::Service, format!("\"{service}\" is published with another port")),
            None => denied(Why::Service, format!("\"{service}\" is not published")),
        }
    }

    fn lookup(&self, service: &str) -> Answer {
        match self.0.get(service) {
            Some(known) => Answer::Port { port: known.port.clone() },
            None => denied(
                Why::Name,
                format!("\"{service}\" is not published (names are known within one job of vmpirun, or one vmpid)"),
            ),
        }
    }

    /// A job is over: what it published goes with it.
    pub fn withdraw(&mut self, job: u32) {
        self.0.retain(|_, service| service.job != job);
    }
}

/// What follows from question `number` of `rank`, if it is one about ports and names: the answers, to it and others. None to it: it waits.
/// `contexts` makes those of a new intercommunicator.
///
/// # Errors
/// The question, if it is another one.
pub fn serve(
    (ports, services): (&mut Ports, &mut Services),
    job: u32,
    (rank, number): (u32, u64),
    ask: Ask,
    contexts: impl FnOnce() -> InterContexts,
) -> Result<Vec<Told>, Ask> {
    let mut told = Vec::new();
    let answer = match ask {
        Ask::OpenPort => match ports.open() {
            Ok(port) => Answer::Port { port },
            Err(error) => error.into(),
        },
        Ask::ClosePort { port } => match ports.close(&port) {
            Ok(waiting) => {
                let refused = |visitor: Visitor| Told {
                    rank: visitor.root,
                    number: visitor.number,
                    answer: PortError::NotOpen.into(),
                };
                told.extend(waiting.into_iter().map(refused));
                Answer::Done
            }
            Err(error) => error.into(),
        },
        Ask::Publish { service, port } => services.publish(job, service, port),
        Ask::Unpublish { service, port } => services.unpublish(job, &service, &port),
        Ask::Lookup { service } => services.lookup(&service),
        Ask::Meet { port, accept, ranks } => {
            let visitor = Visitor { accepts: accept, ranks, root: rank, number };
            match ports.meet(&port, &visitor) {
                Ok(None) => return Ok(told),
                Ok(Some(other)) => {
                    let contexts = contexts();
                    let answer = Answer::Met { ranks: visitor.ranks, contexts };
                    told.push(Told { rank: other.root, number: other.number, answer });
                    Answer::Met { ranks: other.ranks, contexts }
                }
                Err(error) => error.into(),
            }
        }
        other => return Err(other),
    };
    told.push(Told { rank, number, answer });
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(accepts: bool, ranks: std::ops::Range<u32>) -> Visitor {
        let root = ranks.start;
        Visitor { accepts, ranks: ranks.collect(), root, number: 0 }
    }

    #[test]
    fn groups_meet_in_the_order_of_their_coming() {
        let mut ports = Ports::new("d", 7);
        let name = ports.open().unwrap();
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
        assert_eq!(ports.number(&others.open().unwrap()), Err(PortError::OtherJob));
        assert_eq!(ports.number("tcp:x"), Err(PortError::NoName("tcp:x".into())));
        let name = ports.open().unwrap();
        assert_eq!(ports.number(&name), Ok(1));
        assert_eq!(ports.number(&format!("{name}x")), Err(PortError::NoName(format!("{name}x"))));
        assert!(name.len() < 250);
    }
    #[test]
    fn questions_are_answered_to_all_whom_they_concern() {
        let (mut ports, mut services) = (Ports::new("d", 7), Services::default());
        let mut ask = |rank: u32, ask: Ask| {
            serve((&mut ports, &mut services), 7, (rank, 9), ask, || [4, 5, 6])
                .map(|told| told.into_iter().map(|told| (told.rank, format!("{:?}", told.answer))).collect::<Vec<_>>())
        };
        let [(0, opened)] = &ask(0, Ask::OpenPort).unwrap()[..] else { panic!() };
        let port = opened.split('"').nth(1).unwrap().to_string();
        let publish = || Ask::Publish { service: "s".into(), port: port.clone() };
        assert_eq!(ask(0, publish()).unwrap(), [(0, "Done".to_string())]);
        assert!(ask(1, publish()).unwrap()[0].1.contains("published already"));
        assert!(ask(1, Ask::Lookup { service: "s".into() }).unwrap()[0].1.contains(&port));
        assert!(ask(1, Ask::Lookup { service: "t".into() }).unwrap()[0].1.contains("is not published"));
        let meet =
            |accept, ranks: [u32; 2]| Ask::Meet { port: port.clone(), accept, ranks: ranks.into_iter().collect() };
        assert_eq!(ask(2, meet(true, [2, 3])).unwrap(), []);
        let met = ask(0, meet(false, [0, 1])).unwrap();
        assert!(
            met[0].0 == 2 && met[0].1.contains("[0, 2]") && met[1].0 == 0 && met[1].1.contains("[2, 2]"),
            "{met:?}"
        );
        assert!(met.iter().all(|(_, answer)| answer.contains("[4, 5, 6]")), "{met:?}");
        assert_eq!(ask(3, meet(true, [2, 3])).unwrap(), []);
        let closed = ask(0, Ask::ClosePort { port: port.clone() }).unwrap();
        assert!(closed[0].0 == 3 && closed[0].1.contains("not open") && closed[1] == (0, "Done".into()), "{closed:?}");
        assert!(
            ask(0, Ask::Spawn { apps: vec![], parent: Ranks::default(), errhandler: String::new(), variables: vec![] })
                .is_err()
        );
    }
}
