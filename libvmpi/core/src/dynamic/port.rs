//! Ports, accept and connect, and names for ports (MPI 4.1 sections 11.9.1 to 11.9.4).

use super::{Outcome, Shared, ask, check_root, members, share, strange};
use crate::calls::CALL_CONNECT;
use crate::comm::Communicator;
use crate::construct;
use crate::errors::{Class, Result, fail};
use crate::simulate;
use std::rc::Rc;
use vmpi_shared::dynamic::{Answer, Ask};

fn text(bytes: &[u8], what: &str, class: Class) -> Result<String> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_empty() => Ok(text.to_string()),
        Ok(_) => fail(class, format!("the {what} is empty")),
        Err(_) => fail(class, format!("the {what} {:?} is not UTF-8", String::from_utf8_lossy(bytes))),
    }
}

fn done(question: Ask, class: Class) -> Result<()> {
    match ask(question, CALL_CONNECT, class)? {
        Answer::Done => Ok(()),
        _ => strange(class),
    }
}

fn name_of_port(question: Ask, class: Class) -> Result<String> {
    match ask(question, CALL_CONNECT, class)? {
        Answer::Port { port } => Ok(port),
        _ => strange(class),
    }
}

/// MPI_Open_port.
///
/// # Errors
/// `Class::Port` if this process has no daemon.
pub fn open_port() -> Result<String> {
    simulate::refuse("MPI_Open_port", "meeting other groups goes by the daemon, which knows no virtual time")?;
    name_of_port(Ask::OpenPort, Class::Port)
}

/// MPI_Close_port; those who wait there get `Class::Port`.
///
/// # Errors
/// `Class::Port` if it is not open.
pub fn close_port(port: &[u8]) -> Result<()> {
    done(Ask::ClosePort { port: text(port, "port name", Class::Port)? }, Class::Port)
}

/// MPI_Publish_name.
///
/// # Errors
/// `Class::Service` if the name is published already.
pub fn publish_name(service: &[u8], port: &[u8]) -> Result<()> {
    let service = text(service, "service name", Class::Service)?;
    done(Ask::Publish { service, port: text(port, "port name", Class::Port)? }, Class::Service)
}

/// MPI_Unpublish_name.
///
/// # Errors
/// `Class::Service` if the name is not published with that port.
pub fn unpublish_name(service: &[u8], port: &[u8]) -> Result<()> {
    let service = text(service, "service name", Class::Service)?;
    done(Ask::Unpublish { service, port: text(port, "port name", Class::Port)? }, Class::Service)
}

/// MPI_Lookup_name.
///
/// # Errors
/// `Class::Name` if the name is not published.
pub fn lookup_name(service: &[u8]) -> Result<String> {
    name_of_port(Ask::Lookup { service: text(service, "service name", Class::Name)? }, Class::Name)
}

/// MPI_Comm_accept: wait at a port for a group that connects. The port's name matters at the root only.
///
/// # Errors
/// `Class::Port` for a port that is not open; `Class::Root`.
pub fn accept(comm: &Rc<Communicator>, root: i32, port: impl FnOnce() -> Result<Vec<u8>>) -> Result<Rc<Communicator>> {
    simulate::refuse("MPI_Comm_accept", "meeting other groups goes by the daemon, which knows no virtual time")?;
    meet(comm, root, port, true)
}

/// MPI_Comm_connect: go to a port and wait for a group that accepts.
///
/// # Errors
/// As [`accept`].
pub fn connect(comm: &Rc<Communicator>, root: i32, port: impl FnOnce() -> Result<Vec<u8>>) -> Result<Rc<Communicator>> {
    simulate::refuse("MPI_Comm_connect", "meeting other groups goes by the daemon, which knows no virtual time")?;
    meet(comm, root, port, false)
}

fn meet(
    comm: &Rc<Communicator>,
    root: i32,
    port: impl FnOnce() -> Result<Vec<u8>>,
    accept: bool,
) -> Result<Rc<Communicator>> {
    let root = check_root(comm, root)?;
    let mine = (comm.rank == root).then(|| -> Shared {
        match port().and_then(|port| go(comm, &port, accept)) {
            Ok(outcome) => (outcome, None),
            Err(error) => (Outcome::default(), Some(error)),
        }
    });
    match share(comm, root, mine)? {
        (_, Some(error)) => Err(error),
        (outcome, None) => construct::connect(comm, outcome.contexts, outcome.remote),
    }
}

/// The root's part.
fn go(comm: &Rc<Communicator>, port: &[u8], accept: bool) -> Result<Outcome> {
    let port = text(port, "port name", Class::Port)?;
    match ask(Ask::Meet { port, accept, ranks: members(comm) }, CALL_CONNECT, Class::Port)? {
        Answer::Met { ranks, contexts } => {
            Ok(Outcome { contexts, remote: ranks.iter().collect(), ..Outcome::default() })
        }
        _ => strange(Class::Port),
    }
}
