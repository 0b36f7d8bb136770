//! `vmpictl metrics`: Prometheus' text format (base units, counters end in `_total`, no label per rank unless asked).

use super::peers::{all_jobs, peers};
use crate::daemon::VERSION;
use crate::failure::Failure;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use vmpi_shared::control::{JobReport, RankReport};

#[derive(Copy, Clone)]
enum Kind {
    Counter,
    Gauge,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        }
    }
}

/// A metric with its samples.
struct Family {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    samples: Vec<(Vec<(&'static str, String)>, f64)>,
}

/// Metrics in the order in which they were first given.
#[derive(Default)]
struct Metrics(Vec<Family>);

impl Metrics {
    fn add(
        &mut self,
        (name, kind, help): (&'static str, Kind, &'static str),
        labels: &[(&'static str, String)],
        value: f64,
    ) {
        let at = match self.0.iter().position(|family| family.name == name) {
            Some(at) => at,
            None => {
                self.0.push(Family { name, kind, help, samples: Vec::new() });
                self.0.len() - 1
            }
        };
        self.0[at].samples.push((labels.to_vec(), value));
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for family in &self.0 {
            let Family { name, kind, help, .. } = family;
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {}\n", kind.name()));
            for (labels, value) in &family.samples {
                let labels: Vec<String> =
                    labels.iter().map(|(key, value)| format!("{key}=\"{}\"", escaped(value))).collect();
                let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
                text.push_str(&format!("{name}{labels} {value}\n"));
            }
        }
        text
    }

    fn json(&self) -> Value {
        let families: Vec<Value> = self
            .0
            .iter()
            .map(|family| {
                let samples = family.samples.iter().map(|(labels, value)| {
                    let labels: BTreeMap<&str, &String> = labels.iter().map(|(key, value)| (*key, value)).collect();
                    json!({ "labels": labels, "value": value })
                });
                json!({
                    "name": family.name,
                    "type": family.kind.name(),
                    "help": family.help,
                    "samples": samples.collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({ "schema_version": 1, "metrics": families })
    }
}

/// A label's value as the format wants it.
fn escaped(value: &str) -> String {
    vmpi_shared::escape::lines(value).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

use Kind::{Counter, Gauge};

const RANK_SECONDS: (&str, Kind, &str) = (
    "vmpi_rank_seconds_total",
    Counter,
    "Time of the ranks: starting, running, ready (another had the core), waiting, away, ending.",
);
const RANK_SENT: (&str, Kind, &str) = ("vmpi_rank_sent_bytes_total", Counter, "Bytes that the rank has sent.");
const RANK_RECEIVED: (&str, Kind, &str) =
    ("vmpi_rank_received_bytes_total", Counter, "Bytes that the rank has received.");
const RANK_SWITCHES: (&str, Kind, &str) =
    ("vmpi_rank_switches_total", Counter, "Times that the rank was given its core.");

fn seconds_of(rank: &RankReport) -> [(&'static str, f64); 6] {
    [
        ("starting", rank.starting_s),
        ("running", rank.rtime_s),
        ("ready", rank.ready_s),
        ("waiting", rank.wait_s),
        ("away", rank.away_s),
        ("ending", rank.ending_s),
    ]
}

fn of_job(metrics: &mut Metrics, daemon: i32, job: &JobReport, per_rank: bool) {
    let labels = [("daemon", daemon.to_string()), ("job", job.job.to_string())];
    let with = |more: &[(&'static str, String)]| [&labels[..], more].concat();
    let sum = |value: fn(&RankReport) -> u64| job.rank_list.iter().map(value).sum::<u64>() as f64;
    let info = with(&[("program", job.program.clone()), ("policy", job.policy.clone()), ("face", job.faces.join(","))]);
    metrics.add(("vmpi_job_info", Gauge, "A job that runs; what it is, in labels."), &info, 1.0);
    metrics.add(("vmpi_job_ranks", Gauge, "Ranks that the job was started with."), &labels, job.ranks.into());
    metrics.add(("vmpi_job_elapsed_seconds", Gauge, "Time since the job's start."), &labels, job.elapsed_s);
    let mut states: BTreeMap<&str, u32> = BTreeMap::new();
    job.rank_list.iter().for_each(|rank| *states.entry(&rank.state).or_default() += 1);
    for (state, count) in states {
        let labels = with(&[("state", state.to_lowercase())]);
        metrics.add(("vmpi_job_rank_states", Gauge, "Ranks in each state."), &labels, count.into());
    }
    for at in 0..seconds_of(&RankReport::default()).len() {
        let total: f64 = job.rank_list.iter().map(|rank| seconds_of(rank)[at].1).sum();
        let labels = with(&[("state", seconds_of(&RankReport::default())[at].0.into())]);
        let help =
            "Time of all ranks together: starting, running, ready (another had the core), waiting, away, ending.";
        metrics.add(("vmpi_job_rank_seconds_total", Counter, help), &labels, total);
    }
    let name =
        ("vmpi_job_sent_messages_total", Counter, "Messages that the ranks have sent, those of collectives included.");
    metrics.add(name, &labels, sum(|rank| rank.sent_messages));
    metrics.add(("vmpi_job_sent_bytes_total", Counter, "Bytes in these."), &labels, sum(|rank| rank.sent_bytes));
    let name = ("vmpi_job_received_messages_total", Counter, "Messages that the ranks have received.");
    metrics.add(name, &labels, sum(|rank| rank.received_messages));
    metrics.add(
        ("vmpi_job_received_bytes_total", Counter, "Bytes in these."),
        &labels,
        sum(|rank| rank.received_bytes),
    );
    let name = ("vmpi_job_unexpected_messages", Gauge, "Messages that no receive has asked for yet.");
    metrics.add(name, &labels, sum(|rank| rank.unexpected));
    let name =
        ("vmpi_job_resident_memory_bytes", Gauge, "Resident memory of the ranks; what they share counts for each.");
    metrics.add(name, &labels, sum(|rank| rank.rss_bytes));
    for core in &job.cores {
        let cpu = ("cpu", core.cpu.to_string());
        let times = [
            ("running", core.running_s),
            ("idle", core.idle_s),
            ("handoff", core.handoff_s),
            ("withheld", core.withheld_s),
            ("starting", core.starting_s),
            ("ending", core.ending_s),
        ];
        for (state, value) in times {
            let labels = with(&[cpu.clone(), ("state", state.into())]);
            let help = "Time of a core of the job: running, idle, in hand-offs, another job's; while its ranks start, and end.";
            metrics.add(("vmpi_core_seconds_total", Counter, help), &labels, value);
        }
        let labels = with(std::slice::from_ref(&cpu));
        let name = ("vmpi_core_handoffs_total", Counter, "Times that the core was given from rank to rank.");
        metrics.add(name, &labels, core.handoffs as f64);
        metrics.add(("vmpi_core_ready_ranks", Gauge, "Ranks that wait for the core."), &labels, core.ready.into());
        let name = (
            "vmpi_core_violations_total",
            Counter,
            "Times that more than one rank was RUNNING on the core (must be 0).",
        );
        metrics.add(name, &labels, core.violations as f64);
    }
    for rank in job.rank_list.iter().filter(|_| per_rank) {
        let number = ("rank", rank.rank.to_string());
        for (state, value) in seconds_of(rank) {
            metrics.add(RANK_SECONDS, &with(&[number.clone(), ("state", state.into())]), value);
        }
        let labels = with(&[number]);
        metrics.add(RANK_SENT, &labels, rank.sent_bytes as f64);
        metrics.add(RANK_RECEIVED, &labels, rank.received_bytes as f64);
        metrics.add(RANK_SWITCHES, &labels, rank.switches as f64);
    }
}

/// Figures of all jobs of this user's daemons.
pub fn metrics(per_rank: bool, as_json: bool) -> Result<String, Failure> {
    let mut metrics = Metrics::default();
    let version = [("version", VERSION.to_owned())];
    metrics.add(("vmpi_build_info", Gauge, "The version of vmpictl, in a label."), &version, 1.0);
    metrics.add(("vmpi_daemons", Gauge, "Daemons of this user that answer."), &[], peers().len() as f64);
    let jobs = all_jobs(true);
    metrics.add(("vmpi_jobs", Gauge, "Jobs that run."), &[], jobs.len() as f64);
    jobs.iter().for_each(|(daemon, job)| of_job(&mut metrics, *daemon, job, per_rank));
    Ok(if as_json { format!("{:#}\n", metrics.json()) } else { metrics.text() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_families_stay_together() {
        let mut metrics = Metrics::default();
        metrics.add(("vmpi_a", Gauge, "A."), &[("program", "x\"\\\n\x1b".into())], 1.0);
        metrics.add(("vmpi_b_total", Counter, "B."), &[], 0.5);
        metrics.add(("vmpi_a", Gauge, "A."), &[("program", "y".into())], 2.0);
        assert_eq!(
            metrics.text(),
            "# HELP vmpi_a A.\n# TYPE vmpi_a gauge\nvmpi_a{program=\"x\\\"\\\\\\n\\\\u001b\"} 1\nvmpi_a{program=\"y\"} 2\n\
             # HELP vmpi_b_total B.\n# TYPE vmpi_b_total counter\nvmpi_b_total 0.5\n"
        );
    }
}
