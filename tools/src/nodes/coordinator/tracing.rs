//! What a tool on one of the nodes asks about the recording: all nodes are asked, and their recordings become one file as at the end of a job.
//!
//! One question at a time. Death story: a node that dies, ends or does not answer in time is missing by its name; a tool that is gone is no
//! concern here; if the asking node goes, so does the tool.

use super::Coordinator;
use super::outbox::Outbox;
use crate::nodes::frames::{self, ToNode};
use crate::threads;
use crate::trace::{self, NodeRecording, Recording};
use std::fs::File;
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use vmpi_shared::control::{Reply, Request, TraceAsk};
use vmpi_shared::trace::TraceMap;

/// A node that has not answered, nor sent more of what it has recorded, for so long is missing.
const PATIENCE: Duration = Duration::from_secs(10);
/// So much of a file goes in a frame: words wait for as long.
const CHUNK_BYTES: usize = 64 << 10;

/// A node's answer.
struct Heard {
    /// Whether it records now, if that is known.
    on: Option<bool>,
    /// Why it has done nothing, or what it has recorded.
    got: Result<Option<Recording>, String>,
}

struct Question {
    /// The node of the tool, and the tool's number there.
    by: usize,
    tool: u64,
    ask: TraceAsk,
    path: String,
    since: Instant,
    heard: Vec<Option<Heard>>,
}

#[derive(Default)]
pub(super) struct Tracing {
    /// Of the question that is asked, or was last.
    number: u64,
    question: Option<Question>,
    /// The last start or stop was not heard to have come to all nodes.
    half: bool,
    /// A file that is being written.
    writer: Option<JoinHandle<()>>,
}

impl Heard {
    /// No rank lives there, so nothing is recorded.
    fn gone(why: &str) -> Heard {
        Heard { on: Some(false), got: Err(why.into()) }
    }

    fn late() -> Heard {
        Heard { on: None, got: Err(format!("it has not answered for {} s", PATIENCE.as_secs())) }
    }
}

impl Tracing {
    /// A node has answered question `asked`.
    pub(super) fn heard(
        &mut self,
        node: usize,
        asked: u64,
        on: bool,
        refused: Option<String>,
        map: Option<Box<TraceMap>>,
        records: Option<io::Result<File>>,
    ) {
        let got = match (refused, map, records) {
            (Some(reason), ..) => Err(reason),
            (None, None, _) => Ok(None),
            (None, Some(map), Some(Ok(segment))) => Ok(Some(Recording { map, segment })),
            (None, Some(_), Some(Err(error))) => Err(format!("it cannot be kept: {error}")),
            (None, Some(_), None) => Err("it has not come".into()),
        };
        if asked == self.number {
            self.take(node, Heard { on: Some(on), got });
        }
    }

    /// A node will not answer any more.
    pub(super) fn missed(&mut self, node: usize, why: &str) {
        self.take(node, Heard::gone(why));
    }

    fn take(&mut self, node: usize, heard: Heard) {
        if let Some(place) = self.question.as_mut().and_then(|question| question.heard.get_mut(node)) {
            place.get_or_insert(heard);
        }
    }
}

impl Coordinator {
    /// A tool of node `by` asks.
    pub(super) fn on_trace_asked(&mut self, by: usize, tool: u64, ask: TraceAsk, path: String) {
        let busy = self.tracing.question.is_some() || self.tracing.writer.as_ref().is_some_and(|w| !w.is_finished());
        if busy {
            let reason = "somebody else asks about the trace of this job just now; try again".into();
            return self.tell_tool(by, tool, Reply::Refused { reason, code: 1 });
        }
        let heard = self.parts.iter().map(|part| part.finished.is_some().then(|| Heard::gone("it is gone"))).collect();
        self.tracing.number += 1;
        let number = self.tracing.number;
        self.tracing.question = Some(Question { by, tool, ask, path, since: Instant::now(), heard });
        self.ask_all(&Request::TracePart { number, ask });
        if ask != TraceAsk::Stop {
            let living = (0..self.parts.len()).filter(|number| self.parts[*number].finished.is_none());
            living.collect::<Vec<_>>().into_iter().for_each(|number| self.compare_clocks(number));
        }
    }

    pub(super) fn tell_tool(&self, node: usize, tool: u64, reply: Reply) {
        let request = Request::ToolTold { tool, reply: Box::new(reply), files: 0 };
        self.tell(node, &ToNode::Ask { request });
    }

    /// So long the nodes' answers are waited for.
    pub(super) fn tracing_until(&self) -> Option<Instant> {
        let question = self.tracing.question.as_ref()?;
        let waited = || self.parts.iter().zip(&question.heard).filter(|(_, heard)| heard.is_none());
        let last = waited().filter_map(|(part, _)| part.recorded_at).max();
        Some(last.map_or(question.since, |at| at.max(question.since)) + PATIENCE)
    }

    /// Answer, if all nodes have, or the rest will not.
    pub(super) fn conclude_tracing(&mut self) {
        let Some(until) = self.tracing_until() else { return };
        let late = until <= Instant::now();
        let quiet = late || self.parts.iter().all(|part| part.exchange.is_quiet());
        let all = self.tracing.question.iter().all(|question| question.heard.iter().all(Option::is_some));
        let Some(question) = self.tracing.question.take_if(|_| late || (all && quiet)) else { return };
        let (by, tool, ask, path) = (question.by, question.tool, question.ask, question.path);
        let heard = question.heard.into_iter().map(|heard| heard.unwrap_or_else(Heard::late));
        let heard: Vec<(String, Heard)> = self.parts.iter().map(|part| part.name.clone()).zip(heard).collect();
        // What all say is said once.
        let refusal = heard[by].1.got.as_ref().err().filter(|_| heard.iter().all(|(_, heard)| heard.got.is_err()));
        if ask != TraceAsk::Export {
            let wish = ask == TraceAsk::Start;
            let reply = match (missing(&heard, wish, self.parts[by].job), refusal) {
                (None, Some(reason)) if !self.tracing.half => Reply::Refused { reason: reason.clone(), code: 1 },
                (None, _) => {
                    self.tracing.half = false;
                    Reply::Done
                }
                (Some(reason), _) => {
                    self.tracing.half = true;
                    Reply::Refused { reason, code: 1 }
                }
            };
            return self.tell_tool(by, tool, reply);
        }
        if let Some(reason) = refusal {
            let reply = Reply::Refused { reason: reason.clone(), code: 1 };
            return self.tell_tool(by, tool, reply);
        }
        let recordings: Vec<NodeRecording> = heard
            .into_iter()
            .zip(&self.parts)
            .map(|((name, heard), part)| {
                let recorded = heard.got.and_then(|recording| recording.ok_or_else(|| "it has not come".into()));
                NodeRecording { name, offset: part.exchange.offset(), recorded }
            })
            .collect();
        let to = self.parts[by].to.clone();
        self.tracing.writer = Some(threads::spawn(move || write(&recordings, &path, &to, tool)));
    }
}

/// What holds where, and what to do, unless all nodes record (do not, if that is the `wish`); the tool calls the job by number `job`.
fn missing(heard: &[(String, Heard)], wish: bool, job: u32) -> Option<String> {
    let (wished, others): (Vec<_>, Vec<_>) = heard.iter().partition(|(_, heard)| heard.on == Some(wish));
    if others.is_empty() {
        return None;
    }
    let names: Vec<&str> = wished.iter().map(|(name, _)| name.as_str()).collect();
    let (state, todo) = match wish {
        true => ("recording on", format!("`vmpictl trace {job} start` asks again, `vmpictl trace {job} stop` ends it")),
        false => ("not recording on", format!("`vmpictl trace {job} stop` asks again")),
    };
    let state = (!names.is_empty()).then(|| format!("{state} {}", names.join(", ")));
    let reasons = others.iter().map(|(name, heard)| {
        let known = if heard.on.is_some() { "not on node" } else { "not known of node" };
        format!("{known} {name}: {}", heard.got.as_ref().err().map_or("it has not done so", String::as_str))
    });
    Some(state.into_iter().chain(reasons).chain([todo]).collect::<Vec<_>>().join("; "))
}

/// Make the file and pass it to the tool's node.
fn write(recordings: &[NodeRecording], path: &str, to: &Outbox, tool: u64) {
    let host = recordings.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(", ");
    let about = trace::About { host, ..trace::About::default() };
    let encoded = trace::timeline_of_nodes(recordings).map(|timeline| trace::encode(&timeline, &about, path));
    let (reply, bytes) = match encoded {
        Some(Ok((saved, bytes))) => {
            let trace::Saved { gaps, events, dropped, length_s } = saved;
            (Reply::Traced { gaps, events, dropped, length_s }, bytes)
        }
        Some(Err(why)) => (Reply::Refused { reason: why.sentence, code: 1 }, Vec::new()),
        None => (Reply::Refused { reason: "the recordings cannot be read".into(), code: 1 }, Vec::new()),
    };
    let files = u32::from(matches!(reply, Reply::Traced { .. }));
    for (piece, at) in bytes.chunks(CHUNK_BYTES).zip((0u64..).step_by(CHUNK_BYTES)) {
        let mut frame = Vec::new();
        if frames::recorded(&mut frame, at, piece).is_err() || !to.pass(frame) {
            return;
        }
    }
    // Behind them.
    let told = ToNode::Ask { request: Request::ToolTold { tool, reply: Box::new(reply), files } };
    let mut frame = Vec::new();
    if frames::say(&mut frame, &told).is_ok() {
        to.pass(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_where_is_told() {
        let on = |on| Heard { on: Some(on), got: Ok(None) };
        let already = |on| Heard { on: Some(on), got: Err("already".into()) };
        let told = |wish: bool, of: [Heard; 2]| {
            missing(&["a", "b"].map(String::from).into_iter().zip(of).collect::<Vec<_>>(), wish, 7)
        };
        assert_eq!(told(true, [on(true), already(true)]), None);
        assert_eq!(told(false, [already(false), on(false)]), None);
        assert_eq!(told(false, [on(false), Heard::gone("it is gone")]), None, "nothing is recorded there");
        let half = told(true, [already(true), Heard::late()]).expect("b is not known");
        assert!(
            half.starts_with(
                "recording on a; not known of node b: it has not answered for 10 s; `vmpictl trace 7 start`"
            ),
            "{half}"
        );
        let gone = told(true, [on(true), Heard::gone("it is gone")]).expect("b is not recorded");
        assert!(gone.starts_with("recording on a; not on node b: it is gone; "), "{gone}");
        let none = told(false, [Heard::late(), Heard::late()]).expect("neither is known");
        assert!(
            none.starts_with("not known of node a: it has not answered for 10 s; not known of node b: it has"),
            "{none}"
        );
    }
}
