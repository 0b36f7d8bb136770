//! `vmpictl why` and `stacks`.

use super::peers::{self, find_job};
use crate::failure::Failure;
use crate::stack::{self, Frame, Names};
use crate::why::Why;
use serde_json::json;
use std::time::{Duration, Instant};
use vmpi_shared::control::{Reply, Request};

/// Longer than the launcher of a job of several nodes waits for its nodes.
const PATIENCE: Duration = Duration::from_secs(15);

/// Who waits for whom.
pub fn why(target: &str, dot: bool, as_json: bool) -> Result<String, Failure> {
    let (mut peer, job, rank) = find_job(target)?;
    if rank.is_some() {
        return Err(Failure::usage(format!("`{target}`: why is about a whole job; leave the rank out")));
    }
    let begin = Instant::now();
    let reply = match peer.ask_within(&Request::Why { job, here: false }, PATIENCE) {
        Err(why) if begin.elapsed() >= PATIENCE => {
            eprintln!("vmpictl: note: {why}; this is what is known on this node");
            find_job(target)?.0.ask(&Request::Why { job, here: true })?
        }
        reply => reply?.0,
    };
    let Reply::Why { waits } = reply else {
        return Err(Failure::new(1, format!("vmpid (pid {}) did not answer who waits for whom", peer.pid)));
    };
    let why = Why::look(*waits);
    Ok(match (dot, as_json) {
        (true, _) => why.dot(),
        (_, true) => format!("{:#}\n", why.json()),
        _ => why.text(),
    })
}

fn line(number: usize, frame: &Frame) -> String {
    let function = frame.function.as_deref().unwrap_or("?");
    format!("  #{number:<3}{function} at {}\n", frame.place())
}

/// The ranks' call stacks.
pub fn stacks(target: &str, all_threads: bool, as_json: bool) -> Result<String, Failure> {
    let (mut peer, number, wanted) = find_job(target)?;
    let job = peer.job(number)?;
    let ranks: Vec<_> = job.rank_list.iter().filter(|rank| wanted.is_none_or(|wanted| wanted == rank.rank)).collect();
    if let (true, Some(rank)) = (ranks.is_empty(), wanted) {
        return Err(peers::no_rank(number, rank, job.ranks));
    }
    let (mut names, mut text, mut list, mut taken) = (Names::default(), String::new(), Vec::new(), 0);
    for rank in ranks {
        match stack::stacks(rank.pid, &mut names, all_threads) {
            Ok(threads) => {
                taken += 1;
                for thread in &threads {
                    text.push_str(&format!(
                        "rank {}, pid {}, thread {} ({})\n",
                        rank.rank, rank.pid, thread.tid, thread.name
                    ));
                    thread.frames.iter().enumerate().for_each(|(number, frame)| text.push_str(&line(number, frame)));
                }
                let threads: Vec<_> = threads
                    .iter()
                    .map(|thread| json!({ "tid": thread.tid, "name": thread.name, "frames": thread.frames }))
                    .collect();
                list.push(json!({ "rank": rank.rank, "pid": rank.pid, "state": rank.state, "threads": threads }));
            }
            Err(error) => {
                text.push_str(&format!("rank {}, pid {}: {error}\n", rank.rank, rank.pid));
                list.push(
                    json!({ "rank": rank.rank, "pid": rank.pid, "state": rank.state, "error": error.to_string() }),
                );
            }
        }
    }
    if taken == 0 {
        return Err(Failure::new(1, format!("no stack could be taken\n{}", text.trim_end())));
    }
    Ok(if as_json {
        format!("{:#}\n", json!({ "schema_version": 1, "job": number, "daemon_pid": peer.pid, "ranks": list }))
    } else {
        text
    })
}
