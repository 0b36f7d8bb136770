//! A node's part of the job, and the thread that reads what its agent says.

use super::super::clock_sync::Exchange;
use super::super::frames::{self, Frame, FromNode};
use super::super::place::Known;
use super::super::sinks::Sinks;
use super::super::trace_transfer::Arrivals;
use super::JOB;
use super::outbox::Outbox;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStdin};
use std::sync::mpsc;
use std::time::Instant;
use vmpi_shared::clock::boottime_ns;
use vmpi_shared::control::{Cause, JobReport, NewRank, Reply, Request};
use vmpi_shared::monitor::Matrix;
use vmpi_shared::trace::TraceMap;

/// What the threads of a coordinator tell it.
pub(super) enum Event {
    Said(usize, FromNode),
    /// A node's clock, when it had got question `number`; and this one's when the answer came.
    Time(usize, u32, u64, u64),
    /// More of what a node has recorded has come.
    Recorded(usize),
    /// All of it that will.
    Records(usize, io::Result<File>),
    /// Ranks have been spawned on a node: the read ends of their streams.
    Grown(usize, Vec<NewRank>, Vec<OwnedFd>),
    /// An agent's end.
    Gone(usize, String),
    Asked(Request),
    /// The session wants no more.
    SessionOver,
}

/// What is known of a node's part of the job.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) child: Child,
    pub(super) to: Outbox,
    /// The number of the job there.
    pub(super) job: u32,
    pub(super) addresses: Vec<std::net::IpAddr>,
    pub(super) port: Option<u16>,
    /// Ranks for which its segments have room.
    pub(super) capacity: u32,
    /// No rank lived there when this world was the newest one.
    pub(super) idle: Option<u32>,
    pub(super) pids: Option<Vec<i32>>,
    /// It has said its last word, or never will.
    pub(super) finished: Option<(Cause, i32, Box<JobReport>)>,
    /// What its ranks sent, if that was counted.
    pub(super) matrix: Option<Box<Matrix>>,
    pub(super) refused: Option<(String, i32)>,
    /// How its clock stands to this one's.
    pub(super) exchange: Exchange,
    /// What its ranks did and when, if that was recorded: how it is to be read, and when some of it came last.
    pub(super) map: Option<Box<TraceMap>>,
    pub(super) records: Option<io::Result<File>>,
    pub(super) recorded_at: Option<Instant>,
    /// Pulses without a word.
    pub(super) silent: u32,
}

impl Part {
    pub(super) fn new(known: Known, child: Child, to: ChildStdin) -> Part {
        Part {
            name: known.name,
            child,
            to: Outbox::new(to),
            job: JOB,
            addresses: known.facts.addresses,
            port: None,
            capacity: 0,
            idle: None,
            pids: None,
            finished: None,
            matrix: None,
            refused: None,
            exchange: Exchange::default(),
            map: None,
            records: None,
            recorded_at: None,
            silent: 0,
        }
    }
}

/// Read what the agent of node `number` says, write its ranks' output, and tell the rest, until its end.
pub(super) fn listen(number: usize, mut from: Box<dyn Read + Send>, sinks: &Sinks, tell: &mpsc::Sender<Event>) {
    let mut arrivals = Arrivals::default();
    let why = loop {
        match frames::hear::<FromNode>(&mut from) {
            Ok(Some(Frame::Bytes(stream, bytes))) => {
                sinks.write(stream, &bytes);
                let _ = tell.send(Event::Said(number, FromNode::Alive));
            }
            Ok(Some(Frame::Said(FromNode::Said { reply }))) if matches!(*reply, Reply::Grown { .. }) => {
                // What they write comes behind.
                let Reply::Grown { ranks } = *reply else { continue };
                match sinks.add(&ranks) {
                    Ok(ends) => drop(tell.send(Event::Grown(number, ranks, ends))),
                    Err(errno) => break format!("no pipes for the output of its new ranks: {errno}"),
                }
            }
            Ok(Some(Frame::Recorded(at, bytes))) => {
                arrivals.take(at, &bytes);
                let _ = tell.send(Event::Recorded(number));
            }
            Ok(Some(Frame::Said(FromNode::Time { number: asked, there }))) => {
                let _ = tell.send(Event::Time(number, asked, there, boottime_ns()));
            }
            Ok(Some(Frame::Said(said))) => {
                let completes = matches!(&said, FromNode::Said { reply } if matches!(**reply, Reply::Finished { .. } | Reply::TracePart { .. }));
                if let Some(records) = completes.then(|| arrivals.end()).flatten() {
                    let _ = tell.send(Event::Records(number, records));
                }
                if tell.send(Event::Said(number, said)).is_err() {
                    return;
                }
            }
            Ok(None) => break "the connection to it was closed".to_string(),
            Err(e) => break format!("the connection to it broke: {e}"),
        }
    };
    let _ = tell.send(Event::Gone(number, why));
}
