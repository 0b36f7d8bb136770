//! `vmpictl why` and `stacks`.

use super::complain;
use super::peers::{self, find_job};
use crate::cpus::format_list;
use crate::failure::Failure;
use crate::stack::{self, Frame, Names};
use crate::why::Why;
use serde_json::json;
use std::time::{Duration, Instant};
use vmpi_shared::control::{Reply, Request};
use vmpi_shared::escape;

/// Longer than the launcher of a job of several nodes waits for its nodes.
const PATIENCE: Duration = Duration::from_secs(15);

/// Who waits for whom.
pub fn why(target: Option<&str>, dot: bool, as_json: bool) -> Result<String, Failure> {
    let (mut peer, job, rank) = find_job(target)?;
    if let (Some(_), Some(target)) = (rank, target) {
        return Err(Failure::usage(format!("`{target}`: why is about a whole job; leave the rank out")));
    }
    let begin = Instant::now();
    let reply = match peer.ask_within(&Request::Why { job, here: false }, PATIENCE) {
        Err(why) if begin.elapsed() >= PATIENCE => {
            complain(&format!("note: {why}; this is what is known on this node"));
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

/// The ranks' call stacks: equal ones once, the program's own frames; or of each rank all of them.
pub fn stacks(target: Option<&str>, all_threads: bool, all_frames: bool, as_json: bool) -> Result<String, Failure> {
    let (mut peer, number, wanted) = find_job(target)?;
    let job = peer.job(number)?;
    let ranks: Vec<_> = job.rank_list.iter().filter(|rank| wanted.is_none_or(|wanted| wanted == rank.rank)).collect();
    if let (true, Some(rank)) = (ranks.is_empty(), wanted) {
        return Err(peers::no_rank(number, rank, job.ranks));
    }
    let (mut names, mut list, mut taken, mut failed) = (Names::default(), Vec::new(), Vec::new(), String::new());
    for rank in ranks {
        match stack::stacks(rank.pid, &mut names, all_threads) {
            Ok(threads) => {
                let (tids, frames): (Vec<_>, Vec<_>) =
                    threads.iter().map(|thread| ((thread.tid, &thread.name), &thread.frames)).unzip();
                let threads_json: Vec<_> = tids
                    .iter()
                    .zip(frames)
                    .map(|((tid, name), frames)| json!({ "tid": tid, "name": name, "frames": frames }))
                    .collect();
                list.push(json!({ "rank": rank.rank, "pid": rank.pid, "state": rank.state, "threads": threads_json }));
                taken.push((rank, threads));
            }
            Err(error) => {
                failed.push_str(&format!("rank {}, pid {}: {error}\n", rank.rank, rank.pid));
                list.push(
                    json!({ "rank": rank.rank, "pid": rank.pid, "state": rank.state, "error": error.to_string() }),
                );
            }
        }
    }
    if taken.is_empty() {
        return Err(Failure::new(1, format!("no stack could be taken\n{}", failed.trim_end())));
    }
    let merged = stack::group(taken.iter().flat_map(|(rank, threads)| {
        threads.iter().map(|thread| {
            let name = if thread.tid == rank.pid { String::new() } else { thread.name.clone() };
            (rank.rank, name, thread.folded.clone())
        })
    }));
    if as_json {
        let document = json!({
            "schema_version": 1, "job": number, "daemon_pid": peer.pid, "ranks": list, "groups": merged,
        });
        return Ok(format!("{document:#}\n"));
    }
    let mut text = String::new();
    if all_frames {
        for (rank, threads) in &taken {
            for thread in threads {
                let (rank, pid) = (rank.rank, rank.pid);
                text.push_str(&format!(
                    "rank {rank}, pid {pid}, thread {} ({})\n",
                    thread.tid,
                    escape::word(&thread.name)
                ));
                thread.frames.iter().enumerate().for_each(|(number, frame)| text.push_str(&line(number, frame)));
            }
        }
    } else {
        let pid = |rank: u32| job.rank_list.iter().find(|report| report.rank == rank).map_or(0, |report| report.pid);
        for group in &merged {
            let who = match group.ranks[..] {
                [rank] => format!("rank {rank}, pid {}", pid(rank)),
                _ => format!("{} ranks: {}", group.ranks.len(), format_list(&group.ranks)),
            };
            let thread = if group.thread.is_empty() {
                String::new()
            } else {
                format!(", thread {}", escape::word(&group.thread))
            };
            text.push_str(&format!("{who}{thread}\n{}", stack::lines(&group.frames)));
        }
    }
    Ok(text + &failed)
}

fn line(number: usize, frame: &Frame) -> String {
    let function = frame.function.as_deref().unwrap_or("?");
    format!("  #{number:<3}{function} at {}\n", frame.place())
}
