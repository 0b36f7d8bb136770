//! Columns: the least, the mean and the most over cores and ranks; and, for those who ask, each of them.

use super::verdict::{inside_core, inside_rank};
use crate::cpus::format_list;
use crate::sites::SiteSeen;
use crate::table::{Table, bytes, percent, seconds};
use vmpi_shared::control::{CoreReport, JobReport, RankReport, RegionReport};

/// A column: its name, its value in one, and how that is written.
type Column<T> = (&'static str, fn(&T) -> f64, fn(f64) -> String);

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { 100.0 * part / whole } else { f64::NAN }
}

/// A whole number of percents; `-` where there was no whole.
fn percents(value: f64) -> String {
    if value.is_nan() { "-".into() } else { format!("{value:.0}") }
}

fn size(value: f64) -> String {
    bytes(value.round() as u64)
}

fn count(value: f64) -> String {
    format!("{value:.0}")
}

/// Shares are those of the time between start-up and end.
const CORES: &[Column<CoreReport>] = &[
    ("RUNNING", |core| core.running_s, seconds),
    ("HAND-OFF", |core| core.handoff_s, seconds),
    ("IDLE", |core| core.idle_s, seconds),
    ("OTHER-JOBS", |core| core.withheld_s, seconds),
    ("STARTING", |core| core.starting_s, seconds),
    ("ENDING", |core| core.ending_s, seconds),
    ("RUNNING%", |core| share(core.running_s, inside_core(core)), percents),
    ("HAND-OFF%", |core| share(core.handoff_s, inside_core(core)), percents),
    ("IDLE%", |core| share(core.idle_s, inside_core(core)), percents),
];

const RANKS: &[Column<RankReport>] = &[
    ("RUNNING", |rank| rank.rtime_s, seconds),
    ("READY", |rank| rank.ready_s, seconds),
    ("WAITING", |rank| rank.wait_s, seconds),
    ("AWAY", |rank| rank.away_s, seconds),
    ("STARTING", |rank| rank.starting_s, seconds),
    ("ENDING", |rank| rank.ending_s, seconds),
    ("RUNNING%", |rank| share(rank.rtime_s, inside_rank(rank)), percents),
    ("READY%", |rank| share(rank.ready_s, inside_rank(rank)), percents),
    ("WAITING%", |rank| share(rank.wait_s, inside_rank(rank)), percents),
    ("SENT", |rank| rank.sent_bytes as f64, size),
    ("RECEIVED", |rank| rank.received_bytes as f64, size),
];

/// Three rows: least, mean, most of each column by itself.
fn spread<T>(head: &str, list: &[T], columns: &[Column<T>], counters: &[String], of: fn(&T) -> &[u64]) -> Table {
    let names = columns.iter().map(|(name, ..)| *name).chain(counters.iter().map(String::as_str));
    let mut table = Table::new(&std::iter::once(head).chain(names).collect::<Vec<_>>());
    let values = |value: &dyn Fn(&T) -> f64| -> Option<[f64; 3]> {
        let known: Vec<f64> = list.iter().map(value).filter(|value| !value.is_nan()).collect();
        if known.is_empty() {
            return None;
        }
        let mean = known.iter().sum::<f64>() / known.len() as f64;
        let fold = |of: fn(f64, f64) -> f64| known.iter().copied().fold(f64::NAN, of);
        Some([fold(f64::min), mean, fold(f64::max)])
    };
    let counted = counters.iter().enumerate().map(|(at, _)| {
        values(&|item: &T| of(item).get(at).map_or(f64::NAN, |count| *count as f64)).map(|all| all.map(count))
    });
    let cells: Vec<[String; 3]> = columns
        .iter()
        .map(|(_, value, show)| values(value).map(|all| all.map(show)))
        .chain(counted)
        .map(|cells| cells.unwrap_or_else(|| ["-", "-", "-"].map(str::to_owned)))
        .collect();
    for (at, name) in ["min", "mean", "max"].into_iter().enumerate() {
        table.row(std::iter::once(name.to_owned()).chain(cells.iter().map(|column| column[at].clone())).collect());
    }
    table
}

/// Least, mean and most over cores, and over ranks.
pub fn summary(report: &JobReport) -> String {
    let cores = spread("CORES", &report.cores, CORES, &report.counters, |core| &core.counters);
    let ranks = spread("RANKS", &report.rank_list, RANKS, &report.counters, |rank| &rank.counters);
    let broken: u64 = report.cores.iter().map(|core| core.violations).sum();
    let broken = match broken {
        0 => String::new(),
        times => {
            format!("{times} times more than one rank was RUNNING on a core, which must not be: please report it\n")
        }
    };
    format!("{broken}{cores}\n{ranks}{}", regions(&report.regions))
}

/// So many regions are told one by one.
const MOST_REGIONS: usize = 40;

/// The program's own regions; nothing if it named none. Of each: the least, mean and most of its ranks' times, and how much of that was waiting.
pub fn regions(regions: &[RegionReport]) -> String {
    if regions.is_empty() {
        return String::new();
    }
    let head = ["REGION", "RANKS", "TIMES", "MIN", "MEAN", "MAX", "MAX-RANK", "IN-MPI%", "READY%"];
    let mut table = Table::new(&head);
    for region in regions.iter().take(MOST_REGIONS) {
        let part = |part: f64| percents(share(part, region.sum_s));
        table.row(vec![
            region.name.clone(),
            region.ranks.to_string(),
            region.entered.to_string(),
            seconds(region.min_s),
            seconds(region.mean_s()),
            seconds(region.max_s),
            region.max_rank.to_string(),
            part(region.wait_s),
            part(region.ready_s),
        ]);
    }
    let left_out = match regions.len().saturating_sub(MOST_REGIONS) {
        0 => String::new(),
        more => format!("{more} more regions, in which ranks were shorter, are in the report of --json\n"),
    };
    format!("\n{table}{left_out}{}", unbalanced(regions).map_or(String::new(), |text| format!("{text}\n")))
}

/// So many calls are told.
const MOST_SITES: usize = 12;

/// From where in the program ranks were seen asleep in MPI; nothing if none was.
pub fn sites(sites: &[SiteSeen]) -> String {
    if sites.is_empty() {
        return String::new();
    }
    let all: u64 = sites.iter().map(|site| site.looks).sum();
    let mut table = Table::new(&["WAITED-IN", "AT", "FUNCTION", "LOOKS%", "RANKS"]);
    for site in sites.iter().take(MOST_SITES) {
        let ranks: Vec<u32> = site.ranks.iter().copied().collect();
        let caller = if site.caller.is_empty() { "-" } else { &site.caller };
        table.row(vec![
            site.function.clone(),
            site.place.clone(),
            caller.to_owned(),
            percent(site.looks as f64, all as f64),
            format_list(&ranks),
        ]);
    }
    let left_out = match sites.len().saturating_sub(MOST_SITES) {
        0 => String::new(),
        more => format!("{more} more, in which ranks were seen less often, are on the page of --report-html\n"),
    };
    format!("\n{table}{left_out}")
}

/// So many are named.
const MOST_NAMED: usize = 5;

/// Regions whose begins and ends do not match, in a sentence.
pub fn unbalanced(regions: &[RegionReport]) -> Option<String> {
    let named = |which: fn(&RegionReport) -> u64, what: &str, unit: &str| {
        let wrong: Vec<(&RegionReport, u64)> =
            regions.iter().map(|region| (region, which(region))).filter(|(_, count)| *count > 0).collect();
        let names = wrong.iter().take(MOST_NAMED).map(|(region, count)| format!("`{}` ({count} {unit})", region.name));
        let names = names.collect::<Vec<_>>().join(", ");
        let more = match wrong.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!wrong.is_empty()).then(|| format!("{what}: {names}{more}"))
    };
    let open =
        named(|region| region.open.into(), "regions that began and never ended, told until MPI_Finalize", "ranks");
    let strays = named(|region| region.strays, "ends of regions that had not begun, which were left out", "times");
    let told: Vec<String> = [open, strays].into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Each core and rank, with what those who work on vmpi want to know, too.
pub fn full(report: &JobReport) -> String {
    format!("{}\n{}", core_table(&report.cores, &report.counters), rank_table(&report.rank_list, &report.counters))
}

/// A column more for each performance counter.
fn with_counters<'a>(head: &[&'a str], counters: &'a [String]) -> Vec<&'a str> {
    head.iter().copied().chain(counters.iter().map(String::as_str)).collect()
}

fn core_table(cores: &[CoreReport], counters: &[String]) -> Table {
    let first = ["CPU", "RANKS", "HAND-OFFS"];
    let last = ["MOVED-IN", "MAX-RUNNING", "VIOLATIONS"];
    let head: Vec<&str> = first.into_iter().chain(CORES.iter().map(|(name, ..)| *name)).chain(last).collect();
    let mut table = Table::new(&with_counters(&head, counters));
    for core in cores {
        let mut row = vec![core.cpu.to_string(), core.ranks.to_string(), core.handoffs.to_string()];
        row.extend(CORES.iter().map(|(_, value, show)| show(value(core))));
        row.extend([core.moves.to_string(), core.max_running.to_string(), core.violations.to_string()]);
        row.extend(core.counters.iter().map(u64::to_string));
        table.row(row);
    }
    table
}

/// Each line adds up to the rank's life.
fn rank_table(ranks: &[RankReport], counters: &[String]) -> Table {
    let head: Vec<&str> =
        ["RANK", "CPU"].into_iter().chain(RANKS.iter().map(|(name, ..)| *name)).chain(["SWITCHES", "MOVES"]).collect();
    let mut table = Table::new(&with_counters(&head, counters));
    for rank in ranks {
        let mut row = vec![rank.rank.to_string(), rank.cpu.to_string()];
        row.extend(RANKS.iter().map(|(_, value, show)| show(value(rank))));
        row.extend([rank.switches.to_string(), rank.moves.to_string()]);
        row.extend(rank.counters.iter().map(u64::to_string));
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_were_waited_in_are_told() {
        assert_eq!(sites(&[]), "");
        let site = |line: u32, looks: u64, ranks: &[u32]| SiteSeen {
            function: "MPI_Recv".into(),
            place: format!("a.c:{line}"),
            caller: String::new(),
            looks,
            ranks: ranks.iter().copied().collect(),
        };
        let text = sites(&[site(9, 15, &[0, 1, 2]), site(4, 5, &[7])]);
        let lines: Vec<Vec<&str>> = text.lines().skip(2).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines, [["MPI_Recv", "a.c:9", "-", "75", "0-2"], ["MPI_Recv", "a.c:4", "-", "25", "7"]]);
        let many: Vec<SiteSeen> = (0..15).map(|line| site(line, 1, &[0])).collect();
        assert!(
            sites(&many).ends_with("3 more, in which ranks were seen less often, are on the page of --report-html\n")
        );
    }

    #[test]
    fn regions_are_told_and_what_does_not_match() {
        let region = |name: &str, open: u32, strays: u64| RegionReport {
            name: name.into(),
            ranks: 4,
            entered: 40,
            min_s: 0.5,
            sum_s: 4.0,
            max_s: 2.0,
            max_rank: 3,
            wait_s: 1.0,
            ready_s: 0.4,
            open,
            strays,
        };
        let report = |regions: Vec<RegionReport>| JobReport { regions, ..JobReport::default() };
        let text = summary(&report(vec![region("solve", 0, 0), region("set up", 0, 0)]));
        let line = text.lines().find(|line| line.starts_with("solve")).expect("a line");
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(cells, ["solve", "4", "40", "0.500s", "1.000s", "2.000s", "3", "25", "10"]);
        assert!(!text.contains("never ended") && !text.contains("had not begun"), "{text}");
        let text = summary(&report((0..50).map(|n| region(&format!("r{n}"), n, u64::from(n == 7))).collect()));
        assert!(text.contains("10 more regions") && text.contains("`r1` (1 ranks)") && text.contains(" and 44 more; "));
        assert!(text.ends_with("which were left out: `r7` (1 times)\n"), "{text}");
        assert!(!summary(&report(Vec::new())).contains("REGION"));
    }

    #[test]
    fn least_mean_and_most_of_each_column() {
        let rank = |number: u32, rtime_s: f64, wait_s: f64, sent_bytes: u64| RankReport {
            rank: number,
            rtime_s,
            wait_s,
            sent_bytes,
            counters: vec![u64::from(number)],
            ..RankReport::default()
        };
        let core = CoreReport { cpu: 3, running_s: 1.0, idle_s: 1.0, starting_s: 8.0, ..CoreReport::default() };
        let report = JobReport {
            cores: vec![core],
            // The third never was in MPI: it has no shares.
            rank_list: vec![rank(0, 1.0, 3.0, 1024), rank(1, 3.0, 1.0, 3072), rank(2, 0.0, 0.0, 0)],
            counters: vec!["page-faults".into()],
            ..JobReport::default()
        };
        let text = summary(&report);
        let cells = |start: &str, nth: usize| -> Vec<String> {
            let line = text.lines().filter(|line| line.starts_with(start)).nth(nth).expect("a line");
            line.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(
            cells("mean", 0)[1..=9],
            ["1.000s", "0.000s", "1.000s", "0.000s", "8.000s", "0.000s", "50", "0", "50"]
        );
        let of = |name: &str, row: &str| {
            let at = cells("RANKS", 0).iter().position(|head| head == name).expect("a column");
            cells(row, 1)[at].clone()
        };
        let rows = ["min", "mean", "max"];
        assert_eq!(rows.map(|row| of("RUNNING", row)), ["0.000s", "1.333s", "3.000s"]);
        assert_eq!(rows.map(|row| of("WAITING%", row)), ["25", "50", "75"]);
        assert_eq!(rows.map(|row| of("SENT", row)), ["0", "1.3K", "3.0K"]);
        assert_eq!(rows.map(|row| of("page-faults", row)), ["0", "1", "2"]);
        assert!(!text.contains("VIOLATIONS") && full(&report).contains("VIOLATIONS"));
        assert!(full(&report).lines().any(|line| line.starts_with("2 ") && line.contains('-')), "{}", full(&report));
        let mut broken = report;
        broken.cores[0].violations = 2;
        assert!(summary(&broken).starts_with("2 times more than one rank was RUNNING"));
        assert!(!summary(&JobReport::default()).contains("NaN"), "{}", summary(&JobReport::default()));
    }
}
