//! `vmpictl logs`: what the daemons of this node have noted.

use super::peers::{parse_target, peers};
use crate::failure::Failure;
use serde_json::{Value, json};
use vmpi_shared::control::{LogLine, Reply, Request};
use vmpi_shared::escape;

/// The lines of all daemons, or about one job, which may be over.
pub fn logs(target: Option<&str>, as_json: bool) -> Result<String, Failure> {
    let (daemon, job) = match target.map(parse_target).transpose()? {
        Some((_, _, Some(_))) => {
            return Err(Failure::usage(format!(
                "`{}`: logs are of a job; leave the rank out",
                target.unwrap_or_default()
            )));
        }
        Some((daemon, job, None)) => (daemon, Some(job)),
        None => (None, None),
    };
    let mut lines: Vec<(i32, LogLine)> = Vec::new();
    let mut any = false;
    for mut peer in peers().into_iter().filter(|peer| daemon.is_none_or(|daemon| daemon == peer.pid)) {
        any = true;
        match peer.ask(&Request::Logs { job })? {
            Reply::Logs { lines: its } => lines.extend(its.into_iter().map(|line| (peer.pid, line))),
            _ => return Err(Failure::new(1, format!("vmpid (pid {}) did not answer with its log", peer.pid))),
        }
    }
    if !any {
        return Err(Failure::new(
            1,
            "no vmpid answers on this node: one that vmpirun starts for a job ends with it, and its log with it",
        ));
    }
    lines.sort_by(|(_, a), (_, b)| a.at_s.total_cmp(&b.at_s));
    if as_json {
        let line = |(daemon, line): &(i32, LogLine)| json!({ "daemon": daemon, "at_s": line.at_s, "job": line.job, "text": line.text });
        let document = json!({ "schema_version": 1, "lines": lines.iter().map(line).collect::<Vec<Value>>() });
        return Ok(format!("{document:#}\n"));
    }
    Ok(lines
        .iter()
        .map(|(daemon, line)| format!("{} vmpid {daemon}: {}\n", time(line.at_s), escape::indented(&line.text)))
        .collect())
}

/// The local time, with milliseconds.
fn time(at_s: f64) -> String {
    crate::output::local_time(std::time::Duration::from_secs_f64(at_s))
}
