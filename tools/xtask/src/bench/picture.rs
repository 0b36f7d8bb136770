//! A picture of an experiment: a panel per figure, one legend for all.

use super::experiment::{Axis, Figure, Picture, Scale};
use super::report::{Report, short};
use super::system::{Kind, SYSTEMS};
use crate::Result;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

const PANEL: (u32, u32) = (620, 400);
const LEGEND: u32 = 210;
const HEAD: u32 = 40;
const FONT: &str = "sans-serif";
/// One for each of SYSTEMS; told apart by those who do not see red and green, too.
const COLOURS: &[RGBColor] = &[
    RGBColor(0, 90, 181),
    RGBColor(220, 50, 32),
    RGBColor(240, 140, 120),
    RGBColor(160, 20, 90),
    RGBColor(80, 170, 230),
    RGBColor(225, 160, 0),
    RGBColor(150, 110, 0),
    RGBColor(60, 150, 90),
];
/// For vmpi under different flags: the first is as vmpi elsewhere.
const VARIANTS: &[RGBColor] = &[
    RGBColor(0, 90, 181),
    RGBColor(0, 170, 170),
    RGBColor(130, 80, 200),
    RGBColor(225, 160, 0),
    RGBColor(90, 160, 20),
];
/// For what is no system: floors, ideals, kinds of updates.
const OTHERS: &[RGBColor] = &[
    RGBColor(40, 40, 40),
    RGBColor(150, 150, 150),
    RGBColor(110, 60, 150),
    RGBColor(150, 120, 70),
    RGBColor(0, 130, 130),
    RGBColor(200, 100, 180),
];

/// A line of a panel, in the figure's units.
struct Line {
    name: String,
    points: Vec<Point>,
}

struct Point {
    x: f64,
    y: f64,
    low: f64,
    high: f64,
}

/// The ends of an axis and where it has marks, in the scale's own measure (logarithms).
#[derive(Clone)]
struct Span {
    range: Range<f64>,
    marks: Vec<f64>,
}

impl Ranged for Span {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl Scale {
    fn place(self, value: f64) -> f64 {
        match self {
            Scale::Linear => value,
            Scale::Log2 => value.max(f64::MIN_POSITIVE).log2(),
            Scale::Log10 => value.max(f64::MIN_POSITIVE).log10(),
        }
    }

    fn value(self, place: f64) -> f64 {
        match self {
            Scale::Linear => place,
            Scale::Log2 => place.exp2(),
            Scale::Log10 => 10f64.powf(place),
        }
    }

    /// An axis for values from `low` to `high`.
    fn span(self, low: f64, high: f64) -> Span {
        let (low, high) = (self.place(low), self.place(high.max(low)));
        match self {
            Scale::Linear => {
                let step = step(high - low.min(0.0));
                let top = ((high / step).ceil() * step).max(step);
                let bottom = (low.min(0.0) / step).floor() * step;
                let count = ((top - bottom) / step).round() as i32;
                Span { range: bottom..top, marks: (0..=count).map(|i| bottom + f64::from(i) * step).collect() }
            }
            Scale::Log2 => {
                let (first, last) = (low.floor(), high.ceil().max(low.floor() + 1.0));
                let stride = if last - first > 14.0 { 2 } else { 1 };
                let marks = (first as i32..=last as i32).step_by(stride).map(f64::from).collect();
                Span { range: first - 0.15..last + 0.15, marks }
            }
            Scale::Log10 => {
                let high = high.max(low + 2f64.log10());
                let fine = high - low < 2.5;
                let steps: &[f64] = if fine { &[1.0, 2.0, 5.0] } else { &[1.0] };
                let all = (low.floor() as i32..=high.ceil() as i32)
                    .flat_map(|decade| steps.iter().map(move |step| f64::from(decade) + step.log10()));
                let all: Vec<f64> = all.collect();
                let bottom = all.iter().copied().filter(|mark| *mark <= low + 1e-9).fold(low.floor(), f64::max);
                let top = all.iter().copied().filter(|mark| *mark >= high - 1e-9).fold(f64::INFINITY, f64::min);
                let top = if top.is_finite() { top.max(bottom + 0.3) } else { high.ceil() };
                let marks = all.into_iter().filter(|mark| (bottom - 1e-9..=top + 1e-9).contains(mark)).collect();
                Span { range: bottom..top, marks }
            }
        }
    }
}

/// A round distance between marks: about six of them.
fn step(length: f64) -> f64 {
    let rough = if length > 0.0 { length / 6.0 } else { 1.0 };
    let decade = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|n| n * decade).find(|step| *step >= rough).unwrap_or(decade)
}

/// Write the picture of an experiment; nothing if there is nothing to show.
pub fn draw(report: &Report, path: &Path) -> Result<()> {
    let figures: Vec<&Figure> =
        report.experiment.figures.iter().filter(|figure| !report.samples.places(figure.name).is_empty()).collect();
    if figures.is_empty() {
        return Ok(());
    }
    draw_figures(report, &figures, report.experiment.name, path)
}

/// Write a picture of these figures under a title.
pub fn draw_figures(report: &Report, figures: &[&Figure], head: &str, path: &Path) -> Result<()> {
    let failed = |e: String| format!("cannot draw {}: {e}", path.display());
    let columns = figures.len().min(2) as u32;
    let lines = (figures.len() as u32).div_ceil(columns);
    let size = (columns * PANEL.0 + LEGEND, lines * PANEL.1 + HEAD);
    let root = SVGBackend::new(path, size).into_drawing_area();
    root.fill(&WHITE).map_err(|e| failed(e.to_string()))?;
    let (top, below) = root.split_vertically(HEAD);
    let c = report.circumstances;
    let how = match c.rounds {
        1 => "one round".to_string(),
        n if figures.iter().all(|figure| figure.picture == Picture::Distribution) => format!("medians of {n} rounds"),
        n => format!("medians of {n} rounds, whiskers from the 5th to the 95th percentile"),
    };
    let line = format!("{head}: {how}; load {}", c.load_before);
    text(&top, &line, (14, 22), 17.0, &BLACK, HPos::Left)?;
    let (panels, legend) = below.split_horizontally(columns * PANEL.0);
    let mut named: Vec<String> = Vec::new();
    for (area, figure) in panels.split_evenly((lines as usize, columns as usize)).iter().zip(figures) {
        let names = match figure.picture {
            Picture::Bars => bars(report, figure, area),
            Picture::Lines => lines_of(report, figure, area),
            Picture::Distribution => distribution(report, figure, area),
        };
        for name in names.map_err(|e| failed(e.clone()))? {
            if !named.contains(&name) {
                named.push(name);
            }
        }
    }
    for (place, name) in named.iter().enumerate() {
        let y = 30 + 22 * place as i32;
        let style = colour(name, report).stroke_width(if is_ours(name, report) { 3 } else { 2 });
        let whole = is_system(name, report) || figures.iter().all(|figure| figure.picture == Picture::Distribution);
        let dash: Vec<(i32, i32)> = if whole { vec![(0, 28)] } else { vec![(0, 7), (11, 18), (22, 28)] };
        for (from, to) in dash {
            legend
                .draw(&PathElement::new(vec![(10 + from, y), (10 + to, y)], style))
                .map_err(|e| failed(e.to_string()))?;
        }
        text(&legend, report.title(name), (46, y), 14.0, &BLACK, HPos::Left)?;
    }
    root.present().map_err(|e| failed(e.to_string()))
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn text(area: &Area, words: &str, at: (i32, i32), size: f64, ink: &RGBColor, anchor: HPos) -> Result<()> {
    let style = TextStyle::from((FONT, size)).color(ink).pos(Pos::new(anchor, VPos::Center));
    area.draw(&Text::new(words.to_string(), at, style)).map_err(|e| e.to_string())
}

fn is_system(name: &str, report: &Report) -> bool {
    report.variant(name).is_some() || SYSTEMS.iter().any(|system| system.name == name)
}

fn is_ours(name: &str, report: &Report) -> bool {
    report.variant(name).is_some() || SYSTEMS.iter().any(|system| system.name == name && system.kind == Kind::Vmpi)
}

/// A system has the same colour in all pictures, anything else one by its place among all such names of the experiment.
fn colour(name: &str, report: &Report) -> RGBColor {
    if let Some(place) = report.experiment.variants.iter().position(|variant| variant.name == name) {
        return VARIANTS[place % VARIANTS.len()];
    }
    match SYSTEMS.iter().position(|system| system.name == name) {
        Some(place) => COLOURS[place % COLOURS.len()],
        None => {
            let names = report.samples.iter().map(|(key, _)| key.system.as_str());
            let others: BTreeSet<&str> = names.filter(|name| !is_system(name, report)).collect();
            OTHERS[others.iter().position(|other| *other == name).unwrap_or(0) % OTHERS.len()]
        }
    }
}

/// A mark of an axis, without the noise of logarithms.
fn mark(value: f64) -> String {
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    rounded.to_string()
}

fn lines_of(report: &Report, figure: &Figure, area: &Area) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for name in report.columns(figure.name) {
        let at = |x: u64| {
            report.samples.summary(figure.name, x, &name).map(|s| Point {
                x: x as f64,
                y: s.median,
                low: s.p5,
                high: s.p95,
            })
        };
        let points: Vec<Point> = report.samples.places(figure.name).into_iter().filter_map(at).collect();
        if !points.is_empty() {
            lines.push(Line { name, points });
        }
    }
    let Axis { title, show, scale } = report.experiment.x;
    let y_title = format!("{} ({})", figure.title, figure.unit);
    let shown = move |x: f64| show(x.round() as u64);
    panel(report, area, &lines, (title, scale, &shown), (&y_title, figure.scale, &mark), true)
}

/// Values to the right, the share of them that is not greater upwards.
fn distribution(report: &Report, figure: &Figure, area: &Area) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for name in report.columns(figure.name) {
        let at = |x: u64| {
            let value = report.samples.summary(figure.name, x, &name)?.median;
            let (value, share) = (value.max(0.1), x as f64 / 10.0);
            Some(Point { x: value, y: share, low: share, high: share })
        };
        lines.push(Line {
            name: name.clone(),
            points: report.samples.places(figure.name).into_iter().filter_map(at).collect(),
        });
    }
    let x_title = format!("{} ({})", figure.title, figure.unit);
    panel(report, area, &lines, (&x_title, figure.scale, &mark), ("per cent of all", Scale::Linear, &mark), false)
}

type AxisOf<'a> = (&'a str, Scale, &'a dyn Fn(f64) -> String);

fn panel(report: &Report, area: &Area, lines: &[Line], x: AxisOf, y: AxisOf, points_too: bool) -> Result<Vec<String>> {
    let failed = |e: DrawingAreaErrorKind<_>| -> String {
        let e: DrawingAreaErrorKind<std::io::Error> = e;
        e.to_string()
    };
    let points = || lines.iter().flat_map(|line| &line.points);
    let ends = |of: &dyn Fn(&Point) -> (f64, f64)| {
        points().map(of).fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (a, b)| (low.min(a), high.max(b)))
    };
    let (x_low, x_high) = ends(&|p| (p.x, p.x));
    let (y_low, y_high) = ends(&|p| (p.low, p.high));
    let (x_span, y_span) = (x.1.span(x_low, x_high), y.1.span(y_low, y_high));
    let mut builder = ChartBuilder::on(area);
    let mut chart = builder
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(68)
        .build_cartesian_2d(x_span, y_span)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .axis_desc_style((FONT, 15))
        .label_style((FONT, 12))
        .x_desc(x.0)
        .y_desc(y.0)
        .x_label_formatter(&|at| x.2(x.1.value(*at)))
        .y_label_formatter(&|at| y.2(y.1.value(*at)))
        .draw()
        .map_err(failed)?;
    let named: Vec<String> = lines.iter().map(|line| line.name.clone()).collect();
    // The peers first, so that vmpi's line is seen.
    let mut order: Vec<&Line> = lines.iter().collect();
    order.sort_by_key(|line| is_ours(&line.name, report));
    for line in order {
        let ink = colour(&line.name, report);
        let style = ink.stroke_width(if is_ours(&line.name, report) { 3 } else { 2 });
        let at = |p: &Point| (x.1.place(p.x), y.1.place(p.y));
        let path = line.points.iter().map(at);
        if is_system(&line.name, report) || !points_too {
            chart.draw_series(LineSeries::new(path, style)).map_err(failed)?;
        } else {
            chart.draw_series(DashedLineSeries::new(path, 6, 4, style)).map_err(failed)?;
        }
        if points_too {
            chart.draw_series(line.points.iter().map(|p| Circle::new(at(p), 3, ink.filled()))).map_err(failed)?;
            let whisker = |p: &Point| {
                let x = x.1.place(p.x);
                PathElement::new(vec![(x, y.1.place(p.low)), (x, y.1.place(p.high))], ink.mix(0.5).stroke_width(1))
            };
            chart.draw_series(line.points.iter().map(whisker)).map_err(failed)?;
        }
    }
    Ok(named)
}

/// Systems below each other, at the largest place on the x axis.
fn bars(report: &Report, figure: &Figure, area: &Area) -> Result<Vec<String>> {
    let failed = |e: DrawingAreaErrorKind<_>| -> String {
        let e: DrawingAreaErrorKind<std::io::Error> = e;
        e.to_string()
    };
    let Some(x) = report.samples.places(figure.name).last().copied() else { return Ok(Vec::new()) };
    let columns = report.columns(figure.name);
    let values: Vec<_> =
        columns.into_iter().filter_map(|name| Some((report.samples.summary(figure.name, x, &name)?, name))).collect();
    let high = values.iter().map(|(s, _)| s.p95).fold(0.0, f64::max);
    let span = Scale::Linear.span(0.0, high * 1.12);
    let rows = values.len() as f64;
    let y_axis = Span { range: 0.0..rows, marks: (0..values.len()).map(|i| i as f64 + 0.5).collect() };
    let name_at = |at: &f64| {
        let place = (rows - at) as usize;
        values.get(place).map_or(String::new(), |(_, name)| report.title(name).to_string())
    };
    let mut builder = ChartBuilder::on(area);
    let mut chart = builder
        .margin(14)
        .x_label_area_size(46)
        .y_label_area_size(150)
        .build_cartesian_2d(span.clone(), y_axis)
        .map_err(failed)?;
    let description =
        format!("{} ({}), {} {}", figure.title, figure.unit, (report.experiment.x.show)(x), report.experiment.x.title);
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(WHITE.mix(0.0))
        .bold_line_style(BLACK.mix(0.12))
        .axis_desc_style((FONT, 15))
        .label_style((FONT, 12))
        .x_desc(description)
        .x_label_formatter(&|at| mark(*at))
        .y_label_formatter(&name_at)
        .draw()
        .map_err(failed)?;
    let named: Vec<String> = values.iter().map(|(_, name)| name.clone()).collect();
    for (place, (summary, name)) in values.iter().enumerate() {
        let middle = rows - place as f64 - 0.5;
        let ink = colour(name, report);
        let bar = Rectangle::new([(0.0, middle - 0.32), (summary.median, middle + 0.32)], ink.filled());
        chart.draw_series(std::iter::once(bar)).map_err(failed)?;
        let whisker = PathElement::new(vec![(summary.p5, middle), (summary.p95, middle)], BLACK.stroke_width(1));
        chart.draw_series(std::iter::once(whisker)).map_err(failed)?;
        let style = TextStyle::from((FONT, 12)).pos(Pos::new(HPos::Left, VPos::Center));
        let at = (summary.p95.max(summary.median) + span.range.end * 0.01, middle);
        chart.draw_series(std::iter::once(Text::new(short(summary.median), at, style))).map_err(failed)?;
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::experiment::{EXPERIMENTS, Scope};
    use crate::bench::report::Circumstances;
    use crate::bench::samples::Samples;
    use crate::bench::system::choose;

    #[test]
    fn axes_hold_their_values_between_round_marks() {
        for (scale, low, high) in [
            (Scale::Linear, 0.0, 37.0),
            (Scale::Linear, 0.0, 0.0),
            (Scale::Log2, 2.0, 512.0),
            (Scale::Log2, 8.0, 16777216.0),
            (Scale::Log2, 2.0, 2.0),
            (Scale::Log10, 0.3, 52000.0),
            (Scale::Log10, 30.0, 47.0),
            (Scale::Log10, 100.0, 100.0),
        ] {
            let span = scale.span(low, high);
            assert!(span.range.start < span.range.end, "{scale:?} {low} {high}: {:?}", span.range);
            assert!(span.range.start <= scale.place(low) + 1e-9, "{scale:?} {low}");
            assert!(span.range.end >= scale.place(high) - 1e-9, "{scale:?} {high}: {:?}", span.range);
            assert!((2..=16).contains(&span.marks.len()), "{scale:?} {low} {high}: {:?}", span.marks);
        }
    }

    #[test]
    fn every_kind_of_picture_is_drawn() {
        let scope = Scope { systems: choose("quick").unwrap(), cpus: vec![0, 1], ranks: None };
        let one = || "1".to_string();
        let circumstances = Circumstances {
            rounds: 1,
            cpu: one(),
            kernel: one(),
            commit: one(),
            load_before: one(),
            load_after: one(),
        };
        for experiment in EXPERIMENTS {
            let mut samples = Samples::default();
            let path =
                std::env::temp_dir().join(format!("vmpi-picture-{}-{}.svg", std::process::id(), experiment.name));
            let report = Report { experiment, samples: &samples, scope: &scope, circumstances: &circumstances };
            draw(&report, &path).unwrap();
            assert!(!path.exists(), "a picture of nothing");
            for figure in experiment.figures {
                for (x, y) in [(2, 1.5), (4, 2.5), (990, 100.0)] {
                    samples.add(0, figure.name, x, "vmpi-openmpi", y);
                    samples.add(0, figure.name, x, "futex", y / 2.0);
                }
            }
            let report = Report { experiment, samples: &samples, scope: &scope, circumstances: &circumstances };
            draw(&report, &path).unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            for figure in experiment.figures {
                assert!(text.contains(figure.title), "{}", figure.title);
            }
            assert!(text.contains("vmpi (Open MPI binary)") && text.contains("futex"));
        }
    }
}
