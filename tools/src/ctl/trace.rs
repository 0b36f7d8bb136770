//! `vmpictl trace`.

use super::Output;
use super::peers::find_job;
use crate::failure::Failure;
use crate::trace::{self, Recording};
use serde_json::json;
use std::fs::File;
use vmpi_shared::control::{Reply, Request, TraceAsk};

/// Begin or stop recording, or write what was recorded to a file.
pub fn trace(target: &str, ask: TraceAsk, file: Option<&str>, as_json: bool) -> Result<Output, Failure> {
    let (mut peer, job, rank) = find_job(target)?;
    if rank.is_some() {
        return Err(Failure::usage(format!("`{target}`: a trace is that of a whole job; leave the rank out")));
    }
    let pid = peer.pid;
    let odd = || Failure::new(1, format!("vmpid (pid {pid}) did not answer about the trace"));
    let mut answer = json!({ "schema_version": 1, "job": job });
    let text = match (ask, peer.ask_with_files(&Request::Trace { job, ask })?) {
        (TraceAsk::Export, (Reply::Trace { map }, mut files)) => {
            let path = file.ok_or_else(|| Failure::usage("export needs a file"))?;
            let segment = File::from(files.pop().ok_or_else(odd)?);
            let saved = trace::save(&Recording { map, segment }.timeline()?, path)?;
            if let Some(gaps) = &saved.gaps {
                eprintln!("vmpictl: note: {gaps}");
            }
            answer["file"] = path.into();
            answer["events"] = saved.events.into();
            answer["dropped"] = saved.dropped.into();
            answer["length_s"] = saved.length_s.into();
            format!("{path}: {:.3} s, {} events\n", saved.length_s, saved.events)
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
