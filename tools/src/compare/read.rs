//! A file that vmpi wrote about a run, as figures: the output of `vmpirun --json` or `vmpictl show --json`, a trace, a matrix.

use crate::table::{bytes, seconds};
use crate::trace::Totals;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use vmpi_shared::control::{CoreReport, JobReport, RankReport};
use vmpi_shared::monitor::{Matrix, Transfer};

/// What a figure is one of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Run,
    /// Times of all cores together, and of all ranks.
    Cores,
    Ranks,
    Waits,
    Regions,
    Traffic,
    Counters,
}

impl Group {
    pub fn name(self) -> &'static str {
        match self {
            Group::Run => "run",
            Group::Cores => "cores",
            Group::Ranks => "ranks",
            Group::Waits => "waits",
            Group::Regions => "regions",
            Group::Traffic => "traffic",
            Group::Counters => "counters",
        }
    }

    /// What stands before a figure's name.
    pub fn before(self) -> &'static str {
        match self {
            Group::Run | Group::Traffic => "",
            Group::Cores => "cores: ",
            Group::Ranks => "ranks: ",
            Group::Waits => "waited: ",
            Group::Regions => "region ",
            Group::Counters => "counter ",
        }
    }
}

/// What it counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    Seconds,
    Bytes,
    Count,
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "seconds",
            Unit::Bytes => "bytes",
            Unit::Count => "count",
        }
    }

    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Seconds => seconds(value),
            Unit::Bytes => bytes(value.round() as u64),
            Unit::Count => format!("{value:.0}"),
        }
    }
}

/// A figure of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub group: Group,
    pub name: String,
    pub unit: Unit,
    pub value: f64,
}

/// What a file is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Report,
    Trace,
    Matrix,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Report => "report",
            Kind::Trace => "trace",
            Kind::Matrix => "matrix",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a {}", self.name())
    }
}

/// A run, as a file tells of it.
#[derive(Clone, Debug)]
pub struct Run {
    pub file: String,
    pub kind: Kind,
    pub program: String,
    pub ranks: Option<u32>,
    pub v: Option<u32>,
    pub wall_s: Option<f64>,
    pub figures: Vec<Figure>,
}

impl Run {
    /// In a line.
    pub fn title(&self) -> String {
        let mut parts = vec![self.file.clone()];
        parts.extend((!self.program.is_empty()).then(|| self.program.clone()));
        parts.extend(self.ranks.map(|ranks| format!("{ranks} ranks")));
        parts.extend(self.v.map(|v| format!("V = {v}")));
        parts.join(", ")
    }

    fn new(file: &str, kind: Kind) -> Run {
        Run { file: file.into(), kind, program: String::new(), ranks: None, v: None, wall_s: None, figures: Vec::new() }
    }

    fn put(&mut self, group: Group, name: &str, unit: Unit, value: f64) {
        if value.is_finite() {
            self.figures.push(Figure { group, name: name.into(), unit, value });
        }
    }

    fn wall(&mut self, wall_s: f64) {
        self.wall_s = Some(wall_s).filter(|wall_s| wall_s.is_finite());
        self.put(Group::Run, "wall time", Unit::Seconds, wall_s);
    }
}

/// Read a file about a run.
///
/// # Errors
/// It is none, and what would be; or it cannot be read.
pub fn read(path: &str) -> Result<Run, String> {
    let content = std::fs::read(path).map_err(|e| format!("{path}: {e}"))?;
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if crate::trace::PERFETTO.contains(&ending) {
        let totals = Totals::read(&content).map_err(|why| format!("{path} is no trace of vmpi's: {why}"))?;
        return Ok(of_trace(path, &totals));
    }
    let text = String::from_utf8_lossy(&content);
    let odd = |why: &str| {
        format!(
            "{path} is nothing that can be compared ({why}): that is what `vmpirun --json` or `vmpictl show --json` printed, a trace \
             (FILE.pftrace), or a matrix (FILE.json)"
        )
    };
    let document = document(&text).ok_or_else(|| odd("it has no JSON of vmpi's at its end"))?;
    // A whole outcome of vmpirun holds the report; its job may have come to none.
    let value = match document.get("report") {
        Some(Value::Null) => return Err(odd("its job came to no report")),
        Some(report) => report,
        None => &document,
    };
    if value.get("rank_list").is_some() {
        let report: JobReport = serde_json::from_value(value.clone()).map_err(|e| odd(&e.to_string()))?;
        return Ok(of_report(path, &report));
    }
    if value.get("entries").is_some() {
        let matrix: Matrix = serde_json::from_value(value.clone()).map_err(|e| odd(&e.to_string()))?;
        return Ok(of_matrix(path, &matrix));
    }
    Err(odd("its JSON is neither report nor matrix"))
}

/// The JSON at the end of a program's output: its first line is the last one that begins with a brace.
fn document(text: &str) -> Option<Value> {
    let whole = serde_json::from_str(text).ok();
    whole.or_else(|| {
        let starts = text.match_indices("\n{").map(|(at, _)| at + 1).last()?;
        serde_json::from_str(&text[starts..]).ok()
    })
}

fn of_report(path: &str, report: &JobReport) -> Run {
    let mut run = Run::new(path, Kind::Report);
    (run.program, run.ranks, run.v) = (report.program.clone(), Some(report.ranks), Some(report.v));
    run.wall(report.elapsed_s);
    let of_cores: [(&str, fn(&CoreReport) -> f64); 6] = [
        ("running", |core| core.running_s),
        ("hand-off", |core| core.handoff_s),
        ("idle", |core| core.idle_s),
        ("another job", |core| core.withheld_s),
        ("starting", |core| core.starting_s),
        ("ending", |core| core.ending_s),
    ];
    for (name, of) in of_cores {
        run.put(Group::Cores, name, Unit::Seconds, report.cores.iter().map(of).sum());
    }
    let of_ranks: [(&str, fn(&RankReport) -> f64); 6] = [
        ("running", |rank| rank.rtime_s),
        ("ready", |rank| rank.ready_s),
        ("waiting in MPI", |rank| rank.wait_s),
        ("away", |rank| rank.away_s),
        ("starting", |rank| rank.starting_s),
        ("ending", |rank| rank.ending_s),
    ];
    for (name, of) in of_ranks {
        run.put(Group::Ranks, name, Unit::Seconds, report.rank_list.iter().map(of).sum());
    }
    let longest = |of: fn(&RankReport) -> f64| report.rank_list.iter().map(of).fold(0.0, f64::max);
    run.put(Group::Run, "the longest that a rank ran", Unit::Seconds, longest(|rank| rank.rtime_s));
    for share in &report.waits {
        run.put(Group::Waits, &share.call, Unit::Seconds, share.seen_s);
    }
    for region in &report.regions {
        run.put(Group::Regions, &region.name, Unit::Seconds, region.sum_s);
    }
    let sum = |of: fn(&RankReport) -> u64| report.rank_list.iter().map(|rank| of(rank) as f64).sum::<f64>();
    run.put(Group::Traffic, "bytes sent", Unit::Bytes, sum(|rank| rank.sent_bytes));
    run.put(Group::Traffic, "messages sent", Unit::Count, sum(|rank| rank.sent_messages));
    run.put(Group::Traffic, "hand-offs", Unit::Count, report.cores.iter().map(|core| core.handoffs as f64).sum());
    run.put(Group::Traffic, "moves between cores", Unit::Count, sum(|rank| rank.moves.into()));
    for (at, name) in report.counters.iter().enumerate() {
        let counted = report.rank_list.iter().filter_map(|rank| rank.counters.get(at)).map(|count| *count as f64).sum();
        run.put(Group::Counters, name, Unit::Count, counted);
    }
    run
}

fn of_trace(path: &str, totals: &Totals) -> Run {
    let mut run = Run::new(path, Kind::Trace);
    (run.program, run.ranks) = (totals.program.clone(), Some(totals.ranks));
    run.wall(totals.length_s);
    for (category, sum) in &totals.of_cores {
        let name = if category == "elsewhere" { "another job" } else { category };
        run.put(Group::Cores, name, Unit::Seconds, *sum);
    }
    for (category, sum) in &totals.of_ranks {
        let name = match category.as_str() {
            "SUSPENDED" => "waiting in MPI".to_owned(),
            other => other.to_lowercase(),
        };
        run.put(Group::Ranks, &name, Unit::Seconds, *sum);
    }
    for (call, sum) in &totals.waits {
        run.put(Group::Waits, call, Unit::Seconds, *sum);
    }
    for (name, sum) in &totals.regions {
        run.put(Group::Regions, name, Unit::Seconds, *sum);
    }
    for (kind, (messages, bytes)) in &totals.messages {
        run.put(Group::Traffic, &format!("{kind}: bytes"), Unit::Bytes, *bytes as f64);
        run.put(Group::Traffic, &format!("{kind}: messages"), Unit::Count, *messages as f64);
    }
    run
}

fn of_matrix(path: &str, matrix: &Matrix) -> Run {
    let mut run = Run::new(path, Kind::Matrix);
    run.ranks = Some(matrix.ranks);
    for kind in Transfer::ALL {
        let (total, name) = (matrix.total(kind), kind.name().replace('_', "-"));
        run.put(Group::Traffic, &format!("{name}: bytes"), Unit::Bytes, total.bytes as f64);
        run.put(Group::Traffic, &format!("{name}: messages"), Unit::Count, total.messages as f64);
    }
    run
}
