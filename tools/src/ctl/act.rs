//! Commands that do something to a job: `suspend`, `resume`, `kill`, `prio`.

use super::peers::{self, Peer, find_job};
use crate::failure::Failure;
use serde_json::json;
use vmpi_shared::control::{RankReport, Reply, Request};

/// `job 1` or `rank 3 of job 1`.
fn what(job: u32, rank: Option<u32>) -> String {
    rank.map_or_else(|| format!("job {job}"), |rank| format!("rank {rank} of job {job}"))
}

fn said(job: u32, rank: Option<u32>, done: &str, as_json: bool) -> String {
    if as_json {
        format!("{:#}\n", json!({ "schema_version": 1, "job": job, "rank": rank, "done": done }))
    } else {
        format!("{} {done}\n", what(job, rank))
    }
}

fn expect_done(peer: &mut Peer, request: &Request) -> Result<(), Failure> {
    match peer.ask(request)? {
        Reply::Done => Ok(()),
        _ => Err(Failure::new(1, format!("vmpid (pid {}) did not say that it was done", peer.pid))),
    }
}

/// Send a signal to all ranks of a job, or to one.
pub fn signal(target: &str, signal: i32, done: &str, as_json: bool) -> Result<String, Failure> {
    let (mut peer, job, rank) = find_job(Some(target))?;
    expect_done(&mut peer, &Request::Signal { job, rank, signal })?;
    Ok(said(job, rank, done, as_json))
}

/// End a job, or ask one rank to end.
pub fn kill(target: &str, as_json: bool) -> Result<String, Failure> {
    let (mut peer, job, rank) = find_job(Some(target))?;
    match rank {
        None => expect_done(&mut peer, &Request::Kill { job })?,
        Some(_) => expect_done(&mut peer, &Request::Signal { job, rank, signal: libc::SIGTERM })?,
    }
    Ok(said(job, rank, "is being ended", as_json))
}

/// Set the nice value of the ranks' threads.
pub fn prio(target: &str, nice: i32, as_json: bool) -> Result<String, Failure> {
    let (mut peer, number, wanted) = find_job(Some(target))?;
    let job = peer.job(number)?;
    let chosen = |rank: &&RankReport| wanted.is_none_or(|wanted| wanted == rank.rank) && rank.pid != 0;
    let ranks: Vec<_> = job.rank_list.iter().filter(chosen).collect();
    if let (true, Some(rank)) = (ranks.is_empty(), wanted) {
        return Err(peers::no_rank(number, rank, job.ranks));
    }
    for rank in ranks.iter().filter(|rank| rank.state != "ENDED") {
        set_nice(rank.pid, nice).map_err(|error| {
            let why = match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM) => {
                    "; a lower value than now needs privileges (CAP_SYS_NICE, ulimit -e)"
                }
                _ => "",
            };
            Failure::new(
                1,
                format!("rank {} (pid {}) cannot have the nice value {nice}: {error}{why}", rank.rank, rank.pid),
            )
        })?;
    }
    Ok(said(number, wanted, &format!("has the nice value {nice}"), as_json))
}

/// All threads of a process; the value is one of threads on Linux.
fn set_nice(pid: i32, nice: i32) -> std::io::Result<()> {
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        let Some(tid) = thread.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // SAFETY: no memory is involved.
        #[allow(unsafe_code)]
        let failed = unsafe { libc::setpriority(libc::PRIO_PROCESS, tid, nice) } != 0;
        let error = std::io::Error::last_os_error();
        if failed && error.raw_os_error() != Some(libc::ESRCH) {
            return Err(error);
        }
    }
    Ok(())
}
