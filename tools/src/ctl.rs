//! vmpictl: what the daemons of this user are doing on this node.

use crate::cli::{CtlArgs, CtlCommand};
use crate::daemon::{self, HelloError, VERSION};
use crate::failure::Failure;
use crate::status_page::{self, StatusPage};
use crate::table::{Table, bytes, percent, seconds};
use clap::Parser;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use vmpi_shared::control::{
    Connection, JobReport, PROTOCOL, RankReport, Reply, Request, SOCKET_NAME, STATUS_FLINK_NAME,
};

/// Run vmpictl; returns the exit code.
pub fn main() -> i32 {
    let args = CtlArgs::parse();
    let done = match &args.command {
        CtlCommand::Ps { ranks, format } => ps(*ranks, format.json),
        CtlCommand::Show { job, format } => show(job, format.json),
        CtlCommand::Version { format } => version(format.json),
    };
    match done.and_then(|text| print(&text)) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("vmpictl: {why}");
            why.code
        }
    }
}

fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(1, format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}

/// A runtime directory with a socket, and what its status page says.
struct Place {
    dir: PathBuf,
    page: Option<StatusPage>,
}

/// A daemon that answers.
struct Peer {
    connection: Connection,
    pid: i32,
    place: Place,
}

/// The user's runtime directory and the private ones below it.
fn places() -> Vec<Place> {
    let base = daemon::runtime_dir();
    let below = std::fs::read_dir(&base).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut dirs: Vec<PathBuf> = below.filter(|dir| dir.is_dir()).collect();
    dirs.sort();
    dirs.insert(0, base);
    dirs.into_iter()
        .filter(|dir| dir.join(SOCKET_NAME).exists())
        .map(|dir| Place { page: status_page::read(&dir.join(STATUS_FLINK_NAME)), dir })
        .collect()
}

/// The daemons that answer. Dead ones' sockets are passed over; other versions are told on stderr.
fn peers() -> Vec<Peer> {
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
    fn ask(&mut self, request: &Request) -> Result<Reply, Failure> {
        let place = self.place.dir.display();
        let lost = |what: String| Failure::new(1, format!("vmpid (pid {}) in {place}: {what}", self.pid));
        self.connection.send(request, &[]).map_err(|e| lost(e.to_string()))?;
        match self.connection.receive::<Reply>() {
            Ok(Some((Reply::Refused { reason, .. }, _))) => Err(lost(reason)),
            Ok(Some((reply, _))) => Ok(reply),
            Ok(None) => Err(lost("it ended meanwhile".into())),
            Err(e) => Err(lost(e.to_string())),
        }
    }

    fn jobs(&mut self) -> Result<Vec<JobReport>, Failure> {
        match self.ask(&Request::Jobs)? {
            Reply::Jobs { jobs } => Ok(jobs),
            _ => Err(Failure::new(1, format!("vmpid (pid {}) did not answer with its jobs", self.pid))),
        }
    }

    fn job(&mut self, job: u32) -> Result<JobReport, Failure> {
        match self.ask(&Request::Show { job })? {
            Reply::Show { job } => Ok(*job),
            _ => Err(Failure::new(1, format!("vmpid (pid {}) did not answer with its job", self.pid))),
        }
    }
}

/// All jobs with their daemon's pid; a daemon that ends meanwhile has none.
fn all_jobs(full: bool) -> Vec<(i32, JobReport)> {
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

fn with_daemon(daemon: i32, job: &JobReport) -> Value {
    let mut value = json!(job);
    value["daemon_pid"] = json!(daemon);
    value
}

fn ps(ranks: bool, as_json: bool) -> Result<String, Failure> {
    let jobs = all_jobs(ranks);
    if as_json {
        let jobs: Vec<Value> = jobs.iter().map(|(pid, job)| with_daemon(*pid, job)).collect();
        return Ok(format!("{:#}\n", json!({ "schema_version": 1, "jobs": jobs })));
    }
    if ranks {
        let mut table = rank_table();
        for (_, job) in &jobs {
            job.rank_list.iter().for_each(|rank| table.row(rank_row(job.job, rank)));
        }
        return Ok(table.to_string());
    }
    let mut table =
        Table::new(&["JOB", "DAEMON", "PROGRAM", "RANKS", "V", "CORES", "FACE", "POLICY", "ELAPSED", "LAUNCHER"]);
    for (pid, job) in &jobs {
        table.row(vec![
            job.job.to_string(),
            pid.to_string(),
            job.program.clone(),
            job.ranks.to_string(),
            job.v.to_string(),
            job.cores.len().to_string(),
            dash(&job.faces.join(",")),
            job.policy.clone(),
            seconds(job.elapsed_s),
            job.launcher_pid.to_string(),
        ]);
    }
    Ok(table.to_string())
}

fn dash(text: &str) -> String {
    if text.is_empty() { "-".into() } else { text.into() }
}

fn rank_table() -> Table {
    Table::new(&[
        "JOB",
        "RANK",
        "PID",
        "CORE",
        "STATE",
        "BUSY%",
        "READY%",
        "WAIT%",
        "WAITING-ON",
        "SWITCHES",
        "RSS",
        "TX",
        "RX",
        "UNEXP",
        "RTIME",
        "WARN",
    ])
}

fn rank_row(job: u32, rank: &RankReport) -> Vec<String> {
    let whole = rank.rtime_s + rank.ready_s + rank.wait_s + rank.away_s;
    vec![
        job.to_string(),
        match rank.world {
            0 | 1 => rank.rank.to_string(),
            world => format!("{} ({world}:{})", rank.rank, rank.world_rank),
        },
        rank.pid.to_string(),
        rank.cpu.to_string(),
        rank.state.clone(),
        percent(rank.rtime_s, whole),
        percent(rank.ready_s, whole),
        percent(rank.wait_s, whole),
        dash(&rank.waiting_on),
        rank.switches.to_string(),
        bytes(rank.rss_bytes),
        bytes(rank.sent_bytes),
        bytes(rank.received_bytes),
        rank.unexpected.to_string(),
        seconds(rank.rtime_s),
        rank.warn.clone(),
    ]
}

/// `JOB`, `JOB/RANK`, `DAEMON:JOB`, `DAEMON:JOB/RANK`.
fn parse_target(text: &str) -> Result<(Option<i32>, u32, Option<u32>), Failure> {
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

fn show(target: &str, as_json: bool) -> Result<String, Failure> {
    let (daemon, number, rank) = parse_target(target)?;
    let mut jobs: Vec<_> = all_jobs(true)
        .into_iter()
        .filter(|(pid, job)| job.job == number && daemon.is_none_or(|daemon| daemon == *pid))
        .collect();
    if jobs.len() > 1 {
        let names: Vec<String> = jobs.iter().map(|(pid, _)| format!("{pid}:{number}")).collect();
        return Err(Failure::new(1, format!("several daemons have a job {number}; say which: {}", names.join(", "))));
    }
    let Some((pid, mut job)) = jobs.pop() else {
        return Err(Failure::new(1, format!("no job {target} runs on this node; `vmpictl ps` lists the jobs")));
    };
    if let Some(rank) = rank {
        job.rank_list.retain(|report| report.rank == rank);
        if job.rank_list.is_empty() {
            return Err(Failure::new(1, format!("job {number} has no rank {rank}; it has {} ranks", job.ranks)));
        }
    }
    if as_json {
        let mut value = with_daemon(pid, &job);
        value["schema_version"] = json!(1);
        return Ok(format!("{value:#}\n"));
    }
    Ok(describe(pid, &job, rank.is_some()))
}

fn describe(pid: i32, job: &JobReport, one_rank: bool) -> String {
    let mut text = format!(
        "job {} of vmpid {pid}: {}\n{} ranks, V = {}, policy {}, balance {}, face {}, {} since its start, launcher {}\n",
        job.job,
        job.program,
        job.ranks,
        job.v,
        job.policy,
        job.balance,
        dash(&job.faces.join(",")),
        seconds(job.elapsed_s),
        job.launcher_pid
    );
    for note in &job.notes {
        text.push_str(&format!("{note}\n"));
    }
    if !one_rank && !job.cores.is_empty() {
        let mut table = Table::new(&[
            "CPU",
            "RANKS",
            "RUNNING",
            "READY",
            "HAND-OFFS",
            "BUSY%",
            "IDLE%",
            "OTHER-JOBS%",
            "PTIME",
            "MOVED-IN",
            "MAX-RUNNING",
            "VIOLATIONS",
        ]);
        for core in &job.cores {
            let whole = core.running_s + core.idle_s + core.handoff_s + core.withheld_s;
            table.row(vec![
                core.cpu.to_string(),
                core.ranks.to_string(),
                core.running.map_or_else(|| "-".into(), |rank| rank.to_string()),
                core.ready.to_string(),
                core.handoffs.to_string(),
                percent(core.running_s, whole),
                percent(core.idle_s, whole),
                percent(core.withheld_s, whole),
                seconds(core.ptime_s),
                core.moves.to_string(),
                core.max_running.to_string(),
                core.violations.to_string(),
            ]);
        }
        text.push_str(&format!("\n{table}"));
    }
    let mut table = rank_table();
    job.rank_list.iter().for_each(|rank| table.row(rank_row(job.job, rank)));
    if !table.is_empty() {
        text.push_str(&format!("\n{table}"));
    }
    text
}

fn version(as_json: bool) -> Result<String, Failure> {
    let places = places();
    if as_json {
        let daemons: Vec<Value> = places
            .iter()
            .filter_map(|place| Some((place, place.page.as_ref()?)))
            .filter(alive)
            .map(|(place, page)| {
                json!({
                    "pid": page.pid,
                    "version": page.version,
                    "jobs": page.jobs,
                    "started_jobs": page.started_jobs,
                    "start_unix_s": page.start_s,
                    "runtime_dir": place.dir,
                })
            })
            .collect();
        let document = json!({ "schema_version": 1, "version": VERSION, "protocol": PROTOCOL, "daemons": daemons });
        return Ok(format!("{document:#}\n"));
    }
    let mut text = format!("vmpictl (vmpi) {VERSION}, protocol {PROTOCOL}\n");
    for (place, page) in places.iter().filter_map(|place| Some((place, place.page.as_ref()?))).filter(alive) {
        text.push_str(&format!(
            "vmpid {}, pid {}, {} job{}, in {}\n",
            page.version,
            page.pid,
            page.jobs,
            if page.jobs == 1 { "" } else { "s" },
            place.dir.display()
        ));
    }
    Ok(text)
}

/// The daemon of a status page still lives.
fn alive(place: &(&Place, &StatusPage)) -> bool {
    Path::new(&format!("/proc/{}", place.1.pid)).exists()
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

    #[test]
    fn a_rank_fills_its_columns() {
        let rank = RankReport { rank: 2, rtime_s: 1.0, wait_s: 3.0, sent_bytes: 2048, ..RankReport::default() };
        let mut table = rank_table();
        table.row(rank_row(7, &rank));
        let text = table.to_string();
        assert!(text.contains("25") && text.contains("75") && text.contains("2.0K"), "{text}");
    }
}
