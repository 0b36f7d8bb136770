//! One page about a run that opens without a network: timeline, clocks, waits, matrix. The data goes into `page.html`.

use super::timeline::{CoreDid, CoreTrack, Ns, RankDid, RankTrack, Timeline};
use crate::cpus::format_list;
use crate::daemon::VERSION;
use crate::report::{Verdict, unbalanced};
use crate::sites::SiteSeen;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::rc::Rc;
use vmpi_shared::control::JobReport;
use vmpi_shared::monitor::{Matrix, bucket};

/// The page: what draws, with places for title and data.
const PAGE: &str = include_str!("page.html");
/// Stretches that a page holds one by one; beyond that a track's time is told in cells.
const MOST_SLICES: usize = 300_000;
const CELLS: usize = 4000;
/// What cores and ranks can have done.
const CORE_KINDS: usize = 7;
const RANK_KINDS: usize = 6;
/// Messages that a page holds.
const MOST_MESSAGES: usize = 40_000;
/// Stretches in regions that a page holds, and rows of them below a rank's own.
const MOST_REGIONS: usize = 40_000;
const REGION_ROWS: u32 = 4;

/// What a page is about, besides what was recorded.
#[derive(Debug, Default)]
pub struct About<'a> {
    /// The command line, if it is known.
    pub command: Option<String>,
    /// Where it ran.
    pub host: String,
    pub matrix: Option<&'a Matrix>,
    pub report: Option<&'a JobReport>,
    pub verdict: Option<Verdict>,
    /// From where ranks were seen waiting.
    pub sites: &'a [SiteSeen],
}

/// The page about a run.
pub fn page(timeline: &Timeline, about: &About<'_>) -> String {
    let program = timeline.program.rsplit('/').next().unwrap_or_default();
    let title = format!("vmpi job {}: {program}, {} ranks", timeline.job, timeline.ranks.len());
    // Nothing in it can end the script that holds it.
    let data = data(timeline, about, &title).to_string().replace('<', "\\u003c");
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    PAGE.replace("{{title}}", &title).replace("{{data}}", &data)
}

fn data(timeline: &Timeline, about: &About<'_>, title: &str) -> Value {
    let (matrix, report) = (about.matrix, about.report);
    let cores = timeline.cores.iter().map(|core| core.slices.len());
    let ranks = timeline.ranks.iter().map(|rank| rank.slices.len());
    let all: usize = cores.chain(ranks).sum();
    let tracks = timeline.cores.len() + timeline.ranks.len();
    let most = if all <= MOST_SLICES { all } else { (MOST_SLICES / tracks.max(1)).max(CELLS / 2) };
    let coarse = timeline.cores.iter().any(|core| core.slices.len() > most)
        || timeline.ranks.iter().any(|rank| rank.slices.len() > most);
    let spans: usize = timeline.ranks.iter().map(|rank| rank.regions.len()).sum();
    let regions_fit = spans <= MOST_REGIONS;
    let (mut calls, mut region_names) = (Calls::default(), Calls::default());
    let cores: Vec<Value> = timeline.cores.iter().map(|core| core_row(timeline, core, most)).collect();
    let ranks: Vec<Value> = timeline
        .ranks
        .iter()
        .map(|rank| {
            let mut value = rank_row(timeline, rank, most, &mut calls);
            let regions = shown_regions(rank, &mut region_names);
            if regions_fit && !regions.is_empty() {
                value["regions"] = regions.into();
            }
            value
        })
        .collect();
    let few = timeline.messages.len() <= MOST_MESSAGES;
    let messages = if few { messages(timeline) } else { Vec::new() };
    json!({
        "schema_version": 1,
        "title": title,
        "program": timeline.program,
        "length": timeline.length,
        "begun": timeline.realtime / 1_000_000,
        "gaps": timeline.gaps(),
        "clocks": timeline.clocks(),
        "coarse": coarse,
        "cores": cores,
        "ranks": ranks,
        "calls": calls.names,
        "region_names": region_names.names,
        "regions_left_out": if regions_fit { 0 } else { spans },
        "messages": messages,
        "messages_left_out": if few { 0 } else { timeline.messages.len() },
        "waits": waits(timeline),
        "sites": about.sites.iter().map(site).collect::<Vec<Value>>(),
        "sizes": sizes(timeline),
        "about": { "command": about.command, "host": about.host, "version": VERSION },
        "verdict": about.verdict.as_ref().map(|verdict| {
            json!({ "busy": verdict.busy, "waits": verdict.waits, "advice": verdict.advice() })
        }),
        "matrix": matrix.map(pairs),
        "report": report.map(|report| json!({ "cores": report.cores, "ranks": report.rank_list, "notes": report.notes, "v": report.v,
            "policy": report.policy, "balance": report.balance, "regions": report.regions, "unbalanced": unbalanced(&report.regions) })),
    })
}

/// What a core did: one stretch after the other, or in cells if they are more than `most`.
fn core_row(timeline: &Timeline, core: &CoreTrack, most: usize) -> Value {
    let kind = |did: CoreDid| match did {
        CoreDid::Ran(rank) => (0, i64::from(rank)),
        CoreDid::Watched(rank) => (1, i64::from(rank)),
        CoreDid::HandOff(rank) => (2, i64::from(rank)),
        CoreDid::Idle => (3, -1),
        CoreDid::Elsewhere => (4, -1),
        CoreDid::Starting => (5, -1),
        CoreDid::Ending => (6, -1),
    };
    let mut value = json!({ "core": core.core, "cpu": core.cpu, "node": timeline.node(core.node) });
    if core.slices.len() > most {
        let slices = core.slices.iter().map(|slice| (slice.from, slice.until, kind(slice.did).0 as usize));
        value["cells"] = cells(slices, CORE_KINDS, timeline.length);
    } else {
        let mut at = 0;
        let slices = core.slices.iter().flat_map(|slice| {
            let (kind, rank) = kind(slice.did);
            let from = (slice.from - at) as i64;
            at = slice.from;
            [from, (slice.until - slice.from) as i64, kind, rank]
        });
        value["slices"] = slices.collect();
    }
    value
}

/// The same for a rank, with its calls.
fn rank_row(timeline: &Timeline, rank: &RankTrack, most: usize, calls: &mut Calls) -> Value {
    let mut value = json!({
        "rank": rank.rank,
        "pid": rank.pid,
        "node": timeline.node(rank.node),
        "dropped": rank.dropped,
        "known_from": rank.known_from,
    });
    if rank.slices.len() > most {
        let slices = rank.slices.iter().map(|slice| (slice.from, slice.until, number(slice.did) as usize));
        value["cells"] = cells(slices, RANK_KINDS, timeline.length);
    } else {
        let mut at = 0;
        let mut flat: Vec<i64> = Vec::with_capacity(6 * rank.slices.len());
        for slice in &rank.slices {
            let call = calls.number(&slice.call) as i64;
            let (from, span) = ((slice.from - at) as i64, (slice.until - slice.from) as i64);
            flat.extend([from, span, number(slice.did), call, slice.peer.into(), slice.tag.into()]);
            at = slice.from;
        }
        value["slices"] = flat.into();
    }
    value
}

/// Messages: from, to, sent, time under way, bytes and tag, one after the other.
fn messages(timeline: &Timeline) -> Vec<i64> {
    let words = timeline.messages.iter().flat_map(|message| {
        let [sent, received, bytes] = [message.sent, message.received, message.bytes].map(u64::cast_signed);
        [i64::from(message.from), i64::from(message.to), sent, received - sent, bytes, message.tag.into()]
    });
    words.collect()
}

/// The regions of a rank for which there are rows: begin, length, name and row, one after the other.
fn shown_regions(rank: &RankTrack, names: &mut Calls) -> Vec<u64> {
    let shown = rank.regions.iter().filter(|span| span.row < REGION_ROWS);
    shown
        .flat_map(|span| [span.from, span.until - span.from, names.number(&span.name) as u64, span.row.into()])
        .collect()
}

fn number(did: RankDid) -> i64 {
    match did {
        RankDid::Running => 0,
        RankDid::Ready => 1,
        RankDid::Suspended => 2,
        RankDid::Away => 3,
        RankDid::Starting => 4,
        RankDid::Ending => 5,
    }
}

/// Names, each told once.
#[derive(Default)]
struct Calls {
    names: Vec<String>,
    numbers: BTreeMap<Rc<str>, usize>,
}

impl Calls {
    fn number(&mut self, name: &Rc<str>) -> usize {
        *self.numbers.entry(name.clone()).or_insert_with(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        })
    }
}

/// Thousandths of each cell's time by kind, one cell after the other.
fn cells(slices: impl Iterator<Item = (Ns, Ns, usize)>, kinds: usize, length: Ns) -> Value {
    let width = length.max(1) as f64 / CELLS as f64;
    let mut shares = vec![0f64; CELLS * kinds];
    for (from, until, kind) in slices {
        let (from, until) = (from as f64 / width, until as f64 / width);
        for cell in from as usize..=(until as usize).min(CELLS - 1) {
            let part = until.min((cell + 1) as f64) - from.max(cell as f64);
            shares[cell * kinds + kind] += part.max(0.0);
        }
    }
    shares.into_iter().map(|share| (share * 1000.0).round() as i64).collect()
}

/// How long and how often ranks waited in which call: of all ranks, and of the one that did so longest.
fn waits(timeline: &Timeline) -> Value {
    let mut sums: BTreeMap<Rc<str>, BTreeMap<u32, (u64, u64, u64)>> = BTreeMap::new();
    for rank in &timeline.ranks {
        for slice in rank.slices.iter().filter(|slice| slice.did == RankDid::Suspended) {
            let span = slice.until - slice.from;
            let sum = sums.entry(slice.call.clone()).or_default().entry(rank.rank).or_default();
            *sum = (sum.0 + span, sum.1 + 1, sum.2.max(span));
        }
    }
    let mut rows: Vec<Value> = sums
        .into_iter()
        .map(|(call, ranks)| {
            let total = |part: fn(&(u64, u64, u64)) -> u64| ranks.values().map(part).sum::<u64>();
            let worst = ranks.iter().max_by_key(|(_, sum)| sum.0).map_or((0, 0), |(rank, sum)| (*rank, sum.0));
            json!({
                "call": &*call,
                "ns": total(|sum| sum.0),
                "waits": total(|sum| sum.1),
                "longest": ranks.values().map(|sum| sum.2).max().unwrap_or(0),
                "most_rank": worst.0,
                "most_ns": worst.1,
            })
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row["ns"].as_u64()));
    rows.into()
}

/// How many messages of which size each call became: by ranges of `monitor::bucket`.
fn sizes(timeline: &Timeline) -> Value {
    let mut sums: BTreeMap<Rc<str>, (u64, u64, BTreeMap<usize, u64>)> = BTreeMap::new();
    for message in &timeline.messages {
        let (messages, bytes, ranges) = sums.entry(message.call.clone()).or_default();
        (*messages, *bytes) = (*messages + 1, *bytes + message.bytes);
        *ranges.entry(bucket(message.bytes)).or_default() += 1;
    }
    let mut rows: Vec<(Rc<str>, (u64, u64, BTreeMap<usize, u64>))> = sums.into_iter().collect();
    rows.sort_by_key(|(_, (messages, ..))| std::cmp::Reverse(*messages));
    rows.into_iter()
        .map(|(call, (messages, bytes, ranges))| {
            let ranges: Vec<(usize, u64)> = ranges.into_iter().collect();
            json!({ "call": &*call, "messages": messages, "bytes": bytes, "ranges": ranges })
        })
        .collect()
}

fn site(site: &SiteSeen) -> Value {
    let SiteSeen { function, place, caller, looks, ranks } = site;
    json!({ "call": function, "place": place, "caller": caller, "looks": looks, "ranks": format_list(&ranks.iter().copied().collect::<Vec<_>>()) })
}

/// Messages and bytes of all kinds by pair.
fn pairs(matrix: &Matrix) -> Value {
    let mut sums: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
    for entry in &matrix.entries {
        let sum = sums.entry((entry.from, entry.to)).or_default();
        *sum = (sum.0 + entry.counts.messages, sum.1 + entry.counts.bytes);
    }
    let flat = sums.into_iter().flat_map(|((from, to), (messages, bytes))| [from.into(), to.into(), messages, bytes]);
    json!({ "ranks": matrix.ranks, "pairs": flat.collect::<Vec<u64>>() })
}
