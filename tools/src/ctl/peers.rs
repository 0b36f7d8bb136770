//! The daemons of this user on this node, and the jobs that a command is about.

use crate::daemon::{self, HelloError};
use crate::failure::Failure;
use crate::status_page::{self, StatusPage};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use vmpi_shared::control::{Connection, JobReport, Reply, Request, SOCKET_NAME, STATUS_FLINK_NAME};

/// A runtime directory with a socket, and what its status page says.
pub struct Place {
    pub dir: PathBuf,
    pub page: Option<StatusPage>,
}

/// A daemon that answers.
pub struct Peer {
    connection: Connection,
    pub pid: i32,
    pub place: Place,
}

/// The user's runtime directory, the private ones below it, and those in /tmp for which there was no room there.
pub fn places() -> Vec<Place> {
    let base = daemon::runtime_dir();
    let below = std::fs::read_dir(&base).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut dirs: Vec<PathBuf> = below.filter(|dir| dir.is_dir()).collect();
    dirs.extend(daemon::fallback_dirs());
    dirs.sort();
    dirs.insert(0, base);
    dirs.into_iter()
        .filter(|dir| dir.join(SOCKET_NAME).exists())
        .map(|dir| Place { page: status_page::read(&dir.join(STATUS_FLINK_NAME)), dir })
        .collect()
}

/// The daemons that answer. Dead ones' sockets are passed over; other versions are told on stderr.
pub fn peers() -> Vec<Peer> {
    let mut peers = Vec::new();
    for place in places() {
        match daemon::hello(&place.dir.join(SOCKET_NAME)) {
            Ok((connection, pid)) => peers.push(Peer { connection, pid, place }),
            Err(HelloError::Unreachable { .. }) => {}
            Err(why) => eprintln!("vmpictl: note: {why}"),
        }
    }
    peers
}

impl Peer {
    /// Send a request and wait for its answer.
    pub fn ask(&mut self, request: &Request) -> Result<Reply, Failure> {
        self.ask_with_files(request).map(|(reply, _)| reply)
    }

    /// As `ask`, with the descriptors that come along.
    pub fn ask_with_files(&mut self, request: &Request) -> Result<(Reply, Vec<OwnedFd>), Failure> {
        let place = self.place.dir.display();
        let lost = |what: String| Failure::new(1, format!("vmpid (pid {}) in {place}: {what}", self.pid));
        self.connection.send(request, &[]).map_err(|e| lost(e.to_string()))?;
        match self.connection.receive::<Reply>() {
            Ok(Some((Reply::Refused { reason, .. }, _))) => Err(lost(reason)),
            Ok(Some((reply, files))) => Ok((reply, files)),
            Ok(None) => Err(lost("it ended meanwhile".into())),
            Err(e) => Err(lost(e.to_string())),
        }
    }

    /// As `ask_with_files`, for what others than the daemon have to answer.
    pub fn ask_within(&mut self, request: &Request, patience: Duration) -> Result<(Reply, Vec<OwnedFd>), Failure> {
        let stream = self.connection.stream();
        let set = stream.set_read_timeout(Some(patience));
        set.map_err(|e| Failure::own(format!("no time can be set: {e}")))?;
        let begin = Instant::now();
        self.ask_with_files(request).map_err(|why| match begin.elapsed() < patience {
            true => why,
            false => {
                let seconds = patience.as_secs();
                Failure::new(1, format!("the job's vmpirun has not answered for {seconds} s: is it stopped?"))
            }
        })
    }

    pub fn jobs(&mut self) -> Result<Vec<JobReport>, Failure> {
        match self.ask(&Request::Jobs)? {
            Reply::Jobs { jobs } => Ok(jobs),
            _ => Err(Failure::new(1, format!("vmpid (pid {}) did not answer with its jobs", self.pid))),
        }
    }

    pub fn job(&mut self, job: u32) -> Result<JobReport, Failure> {
        match self.ask(&Request::Show { job })? {
            Reply::Show { job } => Ok(*job),
            _ => Err(Failure::new(1, format!("vmpid (pid {}) did not answer with its job", self.pid))),
        }
    }
}

/// All jobs with their daemon's pid; a daemon that ends meanwhile has none.
pub fn all_jobs(full: bool) -> Vec<(i32, JobReport)> {
    let mut all = Vec::new();
    for mut peer in peers() {
        let Ok(jobs) = peer.jobs() else { continue };
        for job in jobs {
            let job = if full { peer.job(job.job).unwrap_or(job) } else { job };
            all.push((peer.pid, job));
        }
    }
    all
}

/// `JOB`, `JOB/RANK`, `DAEMON:JOB`, `DAEMON:JOB/RANK`.
pub fn parse_target(text: &str) -> Result<(Option<i32>, u32, Option<u32>), Failure> {
    let bad = || {
        Failure::usage(format!(
            "`{text}` is not JOB, JOB/RANK, DAEMON:JOB or DAEMON:JOB/RANK (numbers; `vmpictl ps` lists them)"
        ))
    };
    let (daemon, rest) = match text.split_once(':') {
        Some((daemon, rest)) => (Some(daemon.parse().map_err(|_| bad())?), rest),
        None => (None, text),
    };
    let (job, rank) = match rest.split_once('/') {
        Some((job, rank)) => (job, Some(rank.parse().map_err(|_| bad())?)),
        None => (rest, None),
    };
    Ok((daemon, job.parse().map_err(|_| bad())?, rank))
}

/// The daemon and the number of the job that a target names, and the rank if it names one.
///
/// # Errors
/// There is no such job, or several daemons have one of that number.
pub fn find_job(target: &str) -> Result<(Peer, u32, Option<u32>), Failure> {
    let (daemon, number, rank) = parse_target(target)?;
    let mut found = Vec::new();
    for mut peer in peers() {
        let wanted = daemon.is_none_or(|daemon| daemon == peer.pid);
        if wanted && peer.jobs().is_ok_and(|jobs| jobs.iter().any(|job| job.job == number)) {
            found.push(peer);
        }
    }
    if found.len() > 1 {
        let names: Vec<String> = found.iter().map(|peer| format!("{}:{number}", peer.pid)).collect();
        return Err(Failure::new(1, format!("several daemons have a job {number}; say which: {}", names.join(", "))));
    }
    match found.pop() {
        Some(peer) => Ok((peer, number, rank)),
        None => Err(Failure::new(1, format!("no job {target} runs on this node; `vmpictl ps` lists the jobs"))),
    }
}

/// A job has no such rank.
pub fn no_rank(job: u32, rank: u32, ranks: u32) -> Failure {
    Failure::new(1, format!("job {job} has no rank {rank}; it has {ranks} ranks"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        assert_eq!(parse_target("3").unwrap(), (None, 3, None));
        assert_eq!(parse_target("3/12").unwrap(), (None, 3, Some(12)));
        assert_eq!(parse_target("4711:3/12").unwrap(), (Some(4711), 3, Some(12)));
        for bad in ["", "x", "3/", "3/x", ":3", "1:2:3"] {
            assert_eq!(parse_target(bad).unwrap_err().code, 2, "{bad}");
        }
    }
}
