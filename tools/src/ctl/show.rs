//! `vmpictl ps`, `show` and `version`: jobs, ranks and daemons as tables or JSON.

use super::peers::{self, all_jobs, find_job, places};
use crate::check;
use crate::daemon::VERSION;
use crate::failure::Failure;
use crate::stack::Names;
use crate::status_page::StatusPage;
use crate::table::{Table, bytes, percent, seconds};
use serde_json::{Value, json};
use std::path::Path;
use vmpi_shared::control::{JobReport, PROTOCOL, RankReport};
use vmpi_shared::escape;

pub(super) fn with_daemon(daemon: i32, job: &JobReport) -> Value {
    let mut value = json!(job);
    value["daemon_pid"] = json!(daemon);
    value
}

/// All jobs of all daemons.
pub fn ps(ranks: bool, as_json: bool) -> Result<String, Failure> {
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

pub(super) fn dash(text: &str) -> String {
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

/// One job, or one rank of it.
pub fn show(target: Option<&str>, as_json: bool) -> Result<String, Failure> {
    let (mut peer, number, rank) = find_job(target)?;
    let (pid, mut job) = (peer.pid, peer.job(number)?);
    if let Some(rank) = rank {
        job.rank_list.retain(|report| report.rank == rank);
        if job.rank_list.is_empty() {
            return Err(peers::no_rank(number, rank, job.ranks));
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
        escape::word(&job.program),
        job.ranks,
        job.v,
        job.policy,
        job.balance,
        dash(&job.faces.join(",")),
        seconds(job.elapsed_s),
        job.launcher_pid
    );
    for note in &job.notes {
        text.push_str(&format!("{}\n", escape::indented(note)));
    }
    if !one_rank && !job.findings.is_empty() {
        text.push_str(&escape::lines(&check::text(&job.findings, &mut Names::default())));
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

/// Versions of vmpictl and of the daemons that run.
pub fn version(as_json: bool) -> Result<String, Failure> {
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
    let mut text = format!("vmpictl (vmpi) {}, protocol {PROTOCOL}\n", crate::version::long());
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
fn alive(place: &(&peers::Place, &StatusPage)) -> bool {
    Path::new(&format!("/proc/{}", place.1.pid)).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_fills_its_columns() {
        let rank = RankReport { rank: 2, rtime_s: 1.0, wait_s: 3.0, sent_bytes: 2048, ..RankReport::default() };
        let mut table = rank_table();
        table.row(rank_row(7, &rank));
        let text = table.to_string();
        assert!(text.contains("25") && text.contains("75") && text.contains("2.0K"), "{text}");
    }
}
