//! The daemons of this user on this node, and the jobs that a command is about.

use super::complain;
use crate::daemon::{self, HelloError};
use crate::failure::Failure;
use crate::status_page::{self, StatusPage};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use vmpi_shared::control::{Connection, JobReport, Reply, Request, SOCKET_NAME, STATUS_FLINK_NAME};
use vmpi_shared::{escape, runtime_dir};

/// So long an answer is waited for once more when the daemon turns out to be well.
const AGAIN: Duration = Duration::from_secs(1);

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

/// Tell of something once, however often a command looks at the daemons.
fn note(why: &HelloError) {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let sentence = format!("note: {why}");
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if !told.contains(&sentence) {
        complain(&sentence);
        told.push(sentence);
    }
}

/// The user's runtime directory, the private ones below it, and those in /tmp for which there was no room there.
pub fn places() -> Vec<Place> {
    let base = runtime_dir::default_path();
    let own = daemon::is_own_dir(&base).inspect_err(note).unwrap_or(false);
    let below = own.then(|| std::fs::read_dir(&base).ok()).flatten().into_iter().flatten().flatten();
    let mut dirs: Vec<PathBuf> = below.map(|entry| entry.path()).filter(|dir| runtime_dir::is_private(dir)).collect();
    dirs.extend(daemon::fallback_dirs());
    dirs.sort();
    if own {
        dirs.insert(0, base);
    }
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
            Err(why) => note(&why),
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
        self.connection.send(request, &[]).map_err(|e| self.lost(&e.to_string()))?;
        self.hear()
    }

    fn lost(&self, what: &str) -> Failure {
        Failure::new(1, format!("vmpid (pid {}) in {}: {}", self.pid, self.place.dir.display(), escape::indented(what)))
    }

    /// The answer to what was asked.
    fn hear(&mut self) -> Result<(Reply, Vec<OwnedFd>), Failure> {
        match self.connection.receive::<Reply>() {
            Ok(Some((Reply::Refused { reason, .. }, _))) => Err(self.lost(&reason)),
            Ok(Some((reply, files))) => Ok((reply, files)),
            Ok(None) => Err(self.lost("it ended meanwhile")),
            Err(e) => Err(self.lost(&e.to_string())),
        }
    }

    /// As `ask_with_files`, for what others than the daemon may have to answer. Who does not within `patience` is named.
    pub fn ask_within(&mut self, request: &Request, patience: Duration) -> Result<(Reply, Vec<OwnedFd>), Failure> {
        let wait = |peer: &Peer, time| {
            let set = peer.connection.stream().set_read_timeout(Some(time));
            set.map_err(|e| Failure::own(format!("no time can be set: {e}")))
        };
        wait(self, patience)?;
        let begin = Instant::now();
        match self.ask_with_files(request) {
            Err(_) if begin.elapsed() >= patience => {}
            answer => return answer,
        }
        if let Err(why) = daemon::hello(&self.place.dir.join(SOCKET_NAME)) {
            return Err(Failure::new(1, why.to_string()));
        }
        // The daemon answers: it may only just have begun to again.
        wait(self, AGAIN)?;
        self.hear().map_err(|_| {
            let (pid, seconds) = (self.pid, patience.as_secs());
            let reason =
                "the vmpirun of the job or what leads to it is stopped (kill -CONT), or they are still at work";
            Failure::new(1, format!("no answer for {seconds} s, though vmpid (pid {pid}) is well: {reason}"))
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

/// The only job that runs on this node.
fn only_job() -> Result<(Peer, u32, Option<u32>), Failure> {
    let mut found = Vec::new();
    for mut peer in peers() {
        let Ok(jobs) = peer.jobs() else { continue };
        found.extend(jobs.into_iter().map(|job| (peer.pid, job)));
    }
    let one = match &found[..] {
        [(pid, job)] => peers().into_iter().find(|peer| peer.pid == *pid).map(|peer| (peer, job.job, None)),
        [] => None,
        many => {
            let names: Vec<String> = many
                .iter()
                .map(|(pid, job)| format!("{pid}:{} ({}, {} ranks)", job.job, escape::word(&job.program), job.ranks))
                .collect();
            return Err(Failure::new(
                1,
                format!("{} jobs run on this node; say which: {}", many.len(), names.join(", ")),
            ));
        }
    };
    one.ok_or_else(|| Failure::new(1, "no job runs on this node (of this user, in this VMPI_RUNTIME_DIR)"))
}

/// The daemon and the number of the job that a target names, and the rank if it names one; without a target the only job.
///
/// # Errors
/// There is no such job, or several daemons have one of that number.
pub fn find_job(target: Option<&str>) -> Result<(Peer, u32, Option<u32>), Failure> {
    let Some(target) = target else { return only_job() };
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
    use std::os::unix::net::UnixListener;
    use vmpi_shared::control::PROTOCOL;

    /// Whom a question blames that is not answered in time: a daemon that is stopped, or one that is well (and answers late or never).
    #[test]
    fn who_does_not_answer_is_named() {
        let dir = std::env::temp_dir().join(format!("vmpi-peers-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let socket = dir.join(SOCKET_NAME);
        for (well, late) in [(false, false), (true, false), (true, true)] {
            let _ = std::fs::remove_file(&socket);
            let listener = UnixListener::bind(&socket).unwrap();
            let answering = std::thread::spawn(move || {
                let greet = || {
                    let mut connection = Connection::new(listener.accept().unwrap().0);
                    let _: Option<(Request, _)> = connection.receive().unwrap();
                    let version = daemon::VERSION.into();
                    connection.send(&Reply::Hello { version, protocol: PROTOCOL, pid: 5 }, &[]).unwrap();
                    connection
                };
                let mut asked = greet();
                let _: Option<(Request, _)> = asked.receive().unwrap();
                let other = well.then(greet);
                if late {
                    asked.send(&Reply::Done, &[]).unwrap();
                }
                // Until the asker is gone.
                let _ = asked.receive::<Request>();
                drop((other, listener));
            });
            let (connection, pid) = daemon::hello(&socket).unwrap();
            let mut peer = Peer { connection, pid, place: Place { dir: dir.clone(), page: None } };
            let answer = peer.ask_within(&Request::Jobs, Duration::from_millis(50));
            match (well, late, answer.map_err(|why| why.sentence)) {
                (false, _, Err(why)) => assert!(why.contains("does not answer") && why.contains("peers"), "{why}"),
                (true, false, Err(why)) => assert!(why.contains("(pid 5) is well: the vmpirun of the job"), "{why}"),
                (true, true, Ok((Reply::Done, _))) => {}
                (_, _, answer) => panic!("{well} {late}: {answer:?}"),
            }
            drop(peer);
            answering.join().unwrap();
        }
        std::fs::remove_dir_all(dir).unwrap();
    }

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
