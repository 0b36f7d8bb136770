//! `vmpictl trace`.

use super::Output;
use super::peers::find_job;
use crate::failure::Failure;
use crate::hosts;
use crate::outputs;
use crate::report::{Setup, Verdict};
use crate::trace::{self, About, Recording, Saved};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Seek};
use std::path::Path;
use std::time::Duration;
use vmpi_shared::control::{Reply, Request, TraceAsk};

const SWITCH: Duration = Duration::from_secs(30);
const EXPORT: Duration = Duration::from_secs(300);

/// Begin or stop recording, or write what was recorded to a file.
pub fn trace(target: &str, ask: TraceAsk, file: Option<&str>, as_json: bool) -> Result<Output, Failure> {
    let (mut peer, job, rank) = find_job(Some(target))?;
    if rank.is_some() {
        return Err(Failure::usage(format!("`{target}`: a trace is that of a whole job; leave the rank out")));
    }
    if let Some(path) = file {
        trace::check(path)?;
        outputs::try_file(Path::new(path)).map_err(|e| Failure::own(format!("cannot write {path}: {e}")))?;
    }
    let pid = peer.pid;
    let odd = || Failure::new(1, format!("vmpid (pid {pid}) did not answer about the trace"));
    let mut answer = json!({ "schema_version": 1, "job": job });
    let path = file.unwrap_or_default().to_string();
    // Longer than the launcher of a job of several nodes waits for its nodes.
    let patience = if ask == TraceAsk::Export { EXPORT } else { SWITCH };
    let text = match (ask, peer.ask_within(&Request::Trace { job, ask, path }, patience)?) {
        (TraceAsk::Export, (Reply::Trace { map }, mut files)) => {
            let path = file.ok_or_else(|| Failure::usage("export needs a file"))?;
            let segment = File::from(files.pop().ok_or_else(odd)?);
            let recording = Recording { map, segment };
            // A job that has ended meanwhile has no clocks to tell of.
            let report = peer.job(job).ok();
            let verdict = report
                .as_ref()
                .map(|report| Verdict::new(report, &Setup { v: report.v, balance: &report.balance, nodes: 1 }));
            let about = About { host: hosts::own_name(), report: report.as_ref(), verdict, ..About::default() };
            say(&trace::save(&recording.timeline()?, &about, path)?, path, &mut answer)
        }
        (TraceAsk::Export, (Reply::Traced { gaps, events, dropped, length_s }, mut files)) => {
            let path = file.ok_or_else(|| Failure::usage("export needs a file"))?;
            let mut written = File::from(files.pop().ok_or_else(odd)?);
            let failed = |e: io::Error| Failure::own(format!("cannot write {path}: {e}"));
            // Its position is the sender's.
            written.rewind().map_err(failed)?;
            io::copy(&mut written, &mut File::create(path).map_err(failed)?).map_err(failed)?;
            say(&Saved { gaps, events, dropped, length_s }, path, &mut answer)
        }
        (TraceAsk::Start, (Reply::Done, _)) => {
            answer["on"] = true.into();
            format!("job {job} is being traced\n")
        }
        (TraceAsk::Stop, (Reply::Done, _)) => {
            answer["on"] = false.into();
            format!(
                "job {job} is not being traced any more; `vmpictl trace {target} export FILE` writes what was recorded\n"
            )
        }
        _ => return Err(odd()),
    };
    Ok(Output::from(if as_json { format!("{answer:#}\n") } else { text }))
}

/// What was written.
fn say(saved: &Saved, path: &str, answer: &mut Value) -> String {
    if let Some(gaps) = &saved.gaps {
        super::complain(&format!("note: {gaps}"));
    }
    answer["file"] = path.into();
    answer["events"] = saved.events.into();
    answer["dropped"] = saved.dropped.into();
    answer["length_s"] = saved.length_s.into();
    format!("{path}: {:.3} s, {} events\n", saved.length_s, saved.events)
}
