//! `--sweep`: one job on several machines, and what it would take on each.

use crate::cli::{OnDeadlock, RunOptions};
use crate::failure::Failure;
use crate::font::{Align, FONT, Text};
use crate::simulate::show;
use crate::table::Table;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use vmpi_shared::control::{JobReport, SimulationReport};
use vmpi_shared::escape;

/// What is other from run to run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Key {
    Latency,
    Bandwidth,
    Machine,
    Ranks,
}

const KEYS: [(&str, Key); 4] =
    [("latency", Key::Latency), ("bandwidth", Key::Bandwidth), ("machine", Key::Machine), ("ranks", Key::Ranks)];

impl Key {
    fn name(self) -> &'static str {
        KEYS.iter().find(|(_, key)| *key == self).map_or("", |(name, _)| name)
    }
}

/// The runs that are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    key: Key,
    values: Vec<String>,
}

/// The value of `--sweep`.
///
/// # Errors
/// What may be said there.
pub fn parse(word: &str) -> Result<Sweep, String> {
    let (key, list) = word.split_once('=').unwrap_or((word, ""));
    let known = KEYS.iter().find(|(name, _)| *name == key).map(|(_, key)| *key);
    let key = known.ok_or_else(|| {
        format!("`{key}` is not one of latency, bandwidth, machine, ranks; say latency=1us,2us,5us, for example")
    })?;
    let values: Vec<String> = list.split(',').map(|value| value.trim().to_owned()).collect();
    if let Some(wrong) = values.iter().find(|value| match key {
        Key::Ranks => value.parse::<u32>().is_ok_and(|ranks| ranks > 0).eq(&false),
        _ => value.is_empty(),
    }) {
        return Err(format!("`{wrong}` is no value of {}: a list with commas is wanted", key.name()));
    }
    Ok(Sweep { key, values })
}

/// The value of `--sweep-picture`.
///
/// # Errors
/// It has another ending.
pub fn picture_file(word: &str) -> Result<String, String> {
    match word.ends_with(".svg") {
        true => Ok(word.into()),
        false => Err(format!("`{word}` does not end in .svg")),
    }
}

/// One of the runs.
struct Run {
    value: String,
    report: SimulationReport,
    real_s: f64,
}

/// Run the job once for each value; returns the exit code.
///
/// # Errors
/// Those of a run, and options that do not go with it.
pub fn run(
    options: &RunOptions,
    sweep: &Sweep,
    mut once: impl FnMut(&RunOptions) -> Result<(i32, Option<JobReport>), Failure>,
) -> Result<i32, Failure> {
    check(options, sweep)?;
    let mut runs = Vec::new();
    for value in &sweep.values {
        let one = with(options, sweep.key, value)?;
        if !options.quiet {
            let _ = writeln!(std::io::stderr(), "vmpirun: --sweep: {}={}", sweep.key.name(), escape::word(value));
        }
        let (code, report) = once(&one)?;
        if options.dry_run {
            continue;
        }
        let simulated = report.and_then(|report| report.simulation.clone().zip(Some(report.elapsed_s)));
        let (0, Some((report, real_s))) = (code, simulated) else {
            complain(&format!("--sweep ends here: the run with {}={value} ended with {code}", sweep.key.name()));
            return Ok(code);
        };
        runs.push(Run { value: value.clone(), report, real_s });
    }
    if options.dry_run {
        return Ok(0);
    }
    let is_same = |run: &Run| run.report.predicted_s == runs[0].report.predicted_s;
    if runs.len() > 1 && matches!(sweep.key, Key::Latency | Key::Bandwidth) && runs.iter().all(is_same) {
        complain(
            "note: --sweep: all runs take the same time. What is changed is the network between hosts; each rank has a core of its own, in order, and so few ranks \
             may all be on one host (vmpictl machine check says how many cores that has)",
        );
    }
    if let Some(file) = &options.sweep_picture {
        let picture = picture(sweep.key.name(), &runs);
        std::fs::write(file, picture).map_err(|why| Failure::own(format!("--sweep-picture {file}: {why}")))?;
    }
    let text = if options.json { format!("{}\n", document(sweep.key, &runs)) } else { table(sweep.key, &runs) };
    match std::io::stdout().write_all(escape::lines(&text).as_bytes()) {
        Err(why) if why.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::own(format!("cannot write to standard output: {why}")))
        }
        _ => Ok(0),
    }
}

fn complain(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "vmpirun: {}", escape::lines(sentence));
}

fn check(options: &RunOptions, sweep: &Sweep) -> Result<(), Failure> {
    use crate::simulate::ComputeTime;
    let refused = |why: &str| Err(Failure::usage(format!("--sweep {why}")));
    if options.simulate.is_none() && sweep.key != Key::Machine {
        return refused("is for simulated jobs: say --simulate, too");
    }
    if options.simulate.is_some() && sweep.key == Key::Machine {
        return refused("machine=... names the machines to simulate: leave out --simulate");
    }
    if sweep.key == Key::Ranks && options.apps.len() != 1 {
        return refused("ranks=... goes with one program");
    }
    if matches!(options.compute, Some(ComputeTime::Record(_))) {
        return refused(
            "does not go with --compute record, which each run would write anew; record first, then replay",
        );
    }
    let files = [&options.trace, &options.report_html, &options.matrix, &options.profile];
    if files.iter().any(|file| file.is_some()) {
        return refused(
            "does not go with --trace, --report-html, --matrix and --profile, which each run would write anew",
        );
    }
    if let Some(file) = &options.sweep_picture {
        crate::outputs::try_file(std::path::Path::new(file))
            .map_err(|why| Failure::usage(format!("--sweep-picture {file}: {why}; nothing was started")))?;
    }
    // Before the first run, not after some.
    sweep.values.iter().try_for_each(|value| {
        let one = with(options, sweep.key, value)?;
        crate::simulate::wanted(&one, false).map(|_| ())
    })
}

/// The options of the run with `value`.
fn with(options: &RunOptions, key: Key, value: &str) -> Result<RunOptions, Failure> {
    let mut one = options.clone();
    (one.sweep, one.sweep_picture, one.json) = (None, None, false);
    match key {
        Key::Latency | Key::Bandwidth => one.machine_changes.push(format!("{}={value}", key.name())),
        Key::Machine => one.simulate = Some(value.into()),
        Key::Ranks => {
            let ranks =
                value.parse().map_err(|_| Failure::usage(format!("--sweep: `{value}` is no number of ranks")))?;
            one.apps.iter_mut().for_each(|app| app.ranks = Some(ranks));
        }
    }
    if one.on_deadlock == OnDeadlock::Report {
        // Nobody waits for a run that cannot go on with others to come.
        one.on_deadlock = OnDeadlock::Abort;
    }
    Ok(one)
}

/// A row for each run.
fn table(key: Key, runs: &[Run]) -> String {
    let mut table = Table::new(&[key.name(), "TIME", "COMPUTING", "SENDING", "WAITING", "MESSAGES", "REAL"]);
    for Run { value, report, real_s } in runs {
        table.row(vec![
            value.clone(),
            show(report.predicted_s),
            show(report.computing.mean_s),
            show(report.sending.mean_s),
            show(report.waiting.mean_s),
            report.messages.to_string(),
            show(*real_s),
        ]);
    }
    table.to_string()
}

fn document(key: Key, runs: &[Run]) -> Value {
    let one = |run: &Run| json!({ "value": run.value, "simulation": run.report, "real_s": run.real_s });
    json!({ "schema_version": 1, "code": 0, "sweep": key.name(), "runs": runs.iter().map(one).collect::<Vec<_>>() })
}

const LEFT: i32 = 90;
const TOP: i32 = 50;
const BOTTOM: i32 = 50;
const HEIGHT: i32 = 320;
const STEP: i32 = 90;
const BAR: i32 = 50;
const PARTS: [(&str, &str); 3] = [("computing", "#2171b5"), ("sending", "#fdae61"), ("waiting", "#d7d7d7")];

/// A bar for each run: what its ranks do with the time, in the mean; as SVG.
fn picture(name: &str, runs: &[Run]) -> String {
    let most = runs.iter().map(|run| run.report.predicted_s).fold(0.0, f64::max).max(1e-12);
    let width = LEFT + STEP * (runs.len() as i32).max(4) + 20;
    let whole = TOP + HEIGHT + BOTTOM;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{whole}\" viewBox=\"0 0 {width} {whole}\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    let base = TOP + HEIGHT;
    let pixels = |seconds: f64| seconds / most * f64::from(HEIGHT);
    let mut texts = Vec::new();
    for tick in 0..=4 {
        let (share, y) = (f64::from(tick) / 4.0, base - HEIGHT * tick / 4);
        let _ = writeln!(svg, "<path d=\"M{LEFT} {y}H{}\" stroke=\"#e0e0e0\"/>", width - 20);
        texts.push(Text { at: (LEFT - 8, y), size: 12, align: Align::Right, text: show(share * most) });
    }
    for (number, run) in runs.iter().enumerate() {
        let middle = LEFT + STEP * number as i32 + STEP / 2;
        let means = [run.report.computing.mean_s, run.report.sending.mean_s, run.report.waiting.mean_s];
        let mut y = f64::from(base);
        for ((_, colour), mean) in PARTS.iter().zip(means) {
            let height = pixels(mean);
            y -= height;
            let x = middle - BAR / 2;
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y:.2}\" width=\"{BAR}\" height=\"{height:.2}\" fill=\"{colour}\"/>"
            );
        }
        // Up to the last rank's end.
        let (x, top) = (middle - BAR / 2, f64::from(base) - pixels(run.report.predicted_s));
        let height = pixels(run.report.predicted_s);
        let outline = "fill=\"none\" stroke=\"#282828\"";
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{top:.2}\" width=\"{BAR}\" height=\"{height:.2}\" {outline}/>");
        let time = show(run.report.predicted_s);
        texts.push(Text { at: (middle, top as i32 - 10), size: 12, align: Align::Centre, text: time });
        texts.push(Text { at: (middle, base + 16), size: 12, align: Align::Centre, text: run.value.clone() });
    }
    texts.push(Text {
        at: (LEFT, base + 36),
        size: 12,
        align: Align::Left,
        text: format!("time that it would take, by {name}"),
    });
    for (number, (part, colour)) in PARTS.iter().enumerate() {
        let x = LEFT + 110 * number as i32;
        let _ = writeln!(svg, "<rect x=\"{x}\" y=\"10\" width=\"12\" height=\"12\" fill=\"{colour}\"/>");
        texts.push(Text { at: (x + 18, 16), size: 12, align: Align::Left, text: (*part).into() });
    }
    for text in &texts {
        let words = text.text.replace('&', "&amp;").replace('<', "&lt;");
        let (x, y, anchor) = (text.at.0, text.baseline(), text.align.anchor());
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{y}\" font-family=\"{FONT}\" font-size=\"{}\" text-anchor=\"{anchor}\" fill=\"#282828\">{words}</text>",
            text.size
        );
    }
    svg + "</svg>\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_shared::control::Spread3;

    #[test]
    fn words() {
        let sweep = parse("latency=1us, 2us").expect("it is right");
        assert_eq!((sweep.key, sweep.values), (Key::Latency, vec!["1us".to_owned(), "2us".to_owned()]));
        for wrong in ["latency", "latency=", "ranks=4,0", "ranks=x", "speed=2", "latency=1us,,2us"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    fn some() -> Vec<Run> {
        let spread = |mean_s| Spread3 { min_s: mean_s, mean_s, max_s: mean_s };
        let report = |predicted_s: f64| SimulationReport {
            predicted_s,
            computing: spread(predicted_s / 2.0),
            waiting: spread(predicted_s / 4.0),
            messages: 7,
            ..SimulationReport::default()
        };
        let run = |value: &str, s| Run { value: value.into(), report: report(s), real_s: 0.5 };
        vec![run("1us", 1.0), run("<2us>", 2.0)]
    }

    #[test]
    fn a_bar_is_as_high_as_its_time() {
        let picture = picture("latency", &some());
        for part in [
            "height=\"320.00\" fill=\"none\"",
            "height=\"160.00\" fill=\"none\"",
            "height=\"80.00\" fill=\"#2171b5\"",
            "&lt;2us>",
        ] {
            assert!(picture.contains(part), "{part}: {picture}");
        }
    }

    #[test]
    fn rows_and_a_document() {
        let table = table(Key::Latency, &some());
        let row = table.lines().nth(1).expect("a row");
        assert!(row.starts_with("1us") && row.contains("1.000 s") && row.contains("500.000 ms"), "{table}");
        let document = document(Key::Latency, &some());
        assert_eq!(document["runs"][1]["simulation"]["predicted_s"], 2.0);
    }
}
