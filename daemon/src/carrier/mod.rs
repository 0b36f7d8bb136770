//! The carrier: one process per job and node, which takes messages for remote ranks to their nodes and delivers what comes from there.
//!
//! Not the daemon itself, because it matches for ranks in their job's memory: what a rank scribbles there can then end the carrier, and
//! with it that job, but never the daemon or another job (SPECIFICATION 4.1). It has the same part as a peer rank: it pushes, tends and makes
//! READY (`vmpi_shared::endpoint::carrier`).
//!
//! Reading order: `start` and `main` (how it begins) -> `choice` (which network) -> `post` (the loop) -> `wire` (frames) -> `transfer` (large messages).
//!
//! Death story: the daemon sees this process's end by its connection, and ends the job; this process sees the daemon's end likewise, tells the
//! other nodes that this one quits, and ends.

mod choice;
mod frame_count;
mod post;
mod realtime;
mod transfer;
mod wire;

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Instant;

use vmpi_fabric::{Key, Node, Tcp};
use vmpi_shared::control::{Connection, PROTOCOL, Reply, Request, env};
use vmpi_shared::endpoint::carrier::CarrierEndpoint;
use vmpi_shared::job::JobSegment;
use vmpi_shared::mem::bell::Chime;
use vmpi_shared::node::{NodeSegment, Pids};

/// Start the carrier of job `id`; returns its pid. It is a child of the daemon, which reaps it.
///
/// # Errors
/// Those of fork and exec.
pub fn start(socket: &str, id: u32) -> io::Result<i32> {
    // Not by its path: the file may have been replaced since.
    Command::new("/proc/self/exe")
        .arg("--carry")
        .env_clear()
        .envs(
            std::env::vars_os()
                .filter(|(name, _)| name == "VMPI_LOG" || name == env::RUNTIME_DIR || name == env::VERBS_DEVICE),
        )
        .env(env::SOCKET, socket)
        .env(env::JOBID, id.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        // What it tells of a process by its group, it does not tell of the daemon.
        .process_group(0)
        .spawn()
        .map(|child| child.id() as i32)
}

/// Why a carrier could not begin.
#[derive(Debug, thiserror::Error)]
enum StartError {
    #[error("it was not started by a vmpid ({0} is not set)")]
    Environment(&'static str),
    #[error("cannot talk to its vmpid: {0}")]
    Daemon(#[from] io::Error),
    #[error("its vmpid did not answer as expected")]
    Answer,
    #[error("its vmpid refuses: {0}")]
    Refused(String),
    #[error("cannot map the job's memory: {0}")]
    Segment(#[from] vmpi_shared::mem::segment::SegmentError),
    #[error("the job's key is no key")]
    Key,
}

/// `vmpid --carry`: serve until the job is over; the exit code.
pub fn main() -> i32 {
    match serve() {
        Ok(()) => 0,
        Err(error) => {
            crate::log::line(&format!("carrier: {error}"));
            125
        }
    }
}

fn serve() -> Result<(), StartError> {
    let variable = |name: &'static str| std::env::var(name).map_err(|_| StartError::Environment(name));
    let socket = variable(env::SOCKET)?;
    let job = variable(env::JOBID)?.parse().map_err(|_| StartError::Environment(env::JOBID))?;
    let mut daemon = Connection::new(UnixStream::connect(socket)?);
    ask(&mut daemon, &Request::Hello { version: env!("CARGO_PKG_VERSION").into(), protocol: PROTOCOL })?;
    let (Reply::Carrying { nodes }, fds) = ask(&mut daemon, &Request::Carry { job })? else {
        return Err(StartError::Answer);
    };
    let [node, segment, pids, bell, timer, own]: [OwnedFd; 6] = fds.try_into().map_err(|_| StartError::Answer)?;
    let mut node = NodeSegment::map(node)?;
    node.set_pids(Pids::map(pids, node.header().ranks)?);
    node.set_carrier_bell(Chime::of_carrier(bell, timer, own));
    let endpoint = CarrierEndpoint::new(node, JobSegment::map(segment)?);

    let mut tcp = Tcp::listen()?;
    daemon.send(&Request::Listening { port: tcp.port()? }, &[])?;
    let table = loop {
        match daemon.receive::<Reply>()? {
            Some((Reply::Wire { table }, _)) => break table,
            Some((Reply::Quit, _)) | None => return Ok(()),
            Some(_) => {}
        }
    };
    let named = nodes.names.iter().cloned().zip(table);
    let all: Vec<Node> = named.map(|(name, addresses)| Node { name, addresses }).collect();
    if all.len() != nodes.names.len() {
        return Err(StartError::Answer);
    }
    if choice::is_sealed(&nodes) {
        tcp.seal();
    }
    tcp.join(nodes.here, all, Key::from_hex(&nodes.key).ok_or(StartError::Key)?, Instant::now())?;
    let fabric = match choice::choose(tcp, &nodes) {
        Ok(fabric) => fabric,
        Err(reason) => {
            daemon.send(&Request::Lost { reason }, &[])?;
            // The daemon ends the job, and with it this process.
            while let Some((reply, _)) = daemon.receive::<Reply>()? {
                if matches!(reply, Reply::Quit) {
                    break;
                }
            }
            return Ok(());
        }
    };
    crate::log::debug!("job {job}: node {} of {} by {}", nodes.here, nodes.names.len(), fabric.describe());
    post::CarrierLoop::new(endpoint, fabric, daemon, *nodes).serve()?;
    Ok(())
}

fn ask(daemon: &mut Connection, request: &Request) -> Result<(Reply, Vec<OwnedFd>), StartError> {
    daemon.send(request, &[])?;
    match daemon.receive::<Reply>()? {
        Some((Reply::Refused { reason, .. }, _)) => Err(StartError::Refused(reason)),
        Some(answer) => Ok(answer),
        None => Err(StartError::Answer),
    }
}
