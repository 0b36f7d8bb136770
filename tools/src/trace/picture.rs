//! A timeline as a picture: a row per core, a row per rank, time to the right.
//!
//! A run has many more stretches than a picture has pixels. So each column of a row shows the shares of its time: stacked where a row is
//! high enough, mixed into one colour where it is not.

use super::timeline::{CoreDid, CoreSlice, Ns, RankDid, RankSlice, Timeline};
use crate::font::{Align, FONT, Face, FontError, Text};
use plotters::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// Pixels of the time axis, and of a column.
const WIDTH: i32 = 1200;
const LEFT: i32 = 96;
const RIGHT: i32 = 24;
const TOP: i32 = 74;
const CORE_HEIGHT: i32 = 34;
/// Above this a row would have less than a pixel.
pub const MOST_RANKS: usize = 4096;
/// Single messages are drawn if there are no more of them.
const MOST_LINES: usize = 300;

type Colour = (u8, u8, u8);

const RUNNING: Colour = (38, 115, 176);
const SUSPENDED: Colour = (238, 214, 176);
const READY: Colour = (214, 96, 60);
const AWAY: Colour = (136, 86, 167);
const HAND_OFF: Colour = (30, 30, 30);
const IDLE: Colour = (232, 232, 232);
const ELSEWHERE: Colour = (150, 150, 150);
const INK: Colour = (40, 40, 40);
const STARTING: Colour = (176, 214, 170);
const ENDING: Colour = (104, 166, 136);
const UNKNOWN: Colour = (255, 255, 255);

/// Blue is running; ranks on a core's row are told apart by its shades, in turn.
const RANKS: [Colour; 4] = [RUNNING, (120, 174, 222), (23, 74, 116), (72, 142, 206)];

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    #[error(
        "a timeline of {0} ranks has no pixel for each; pictures are drawn for up to {MOST_RANKS} ranks (Perfetto's format has no such limit)"
    )]
    TooManyRanks(usize),
    #[error("nothing was recorded")]
    Empty,
    #[error(transparent)]
    Font(#[from] FontError),
    #[error("the timeline cannot be drawn: {0}")]
    Draw(String),
}

/// What is drawn, in pixels.
enum Mark {
    Box { x: i32, y: i32, width: i32, height: i32, colour: Colour },
    Line { from: (i32, i32), to: (i32, i32), colour: Colour },
    Text(Text),
}

struct Picture {
    size: (i32, i32),
    marks: Vec<Mark>,
}

/// As SVG; needs no font.
pub fn svg(timeline: &Timeline) -> Result<String, PictureError> {
    Ok(draw(timeline)?.svg())
}

/// As PNG.
pub fn png(timeline: &Timeline) -> Result<Vec<u8>, PictureError> {
    draw(timeline)?.png()
}

/// Shares of a column's time, in the order in which they are stacked.
type Shares = Vec<(Colour, f32)>;

/// The shares of each of `columns` columns of the time that is shown. `slices`: from, until, and colour.
fn columns(
    slices: impl Iterator<Item = (Ns, Ns, usize)>,
    kinds: &[Colour],
    shown: &Range<Ns>,
    columns: usize,
) -> Vec<Shares> {
    let width = (shown.end - shown.start).max(1) as f64 / columns as f64;
    let mut shares = vec![vec![0f32; kinds.len()]; columns];
    for (from, until, kind) in slices {
        let place = |at: Ns| at.saturating_sub(shown.start) as f64 / width;
        let (from, until) = (place(from), place(until));
        let last = (until as usize).min(columns - 1);
        for (column, its) in shares.iter_mut().enumerate().take(last + 1).skip(from as usize) {
            let part = until.min((column + 1) as f64) - from.max(column as f64);
            its[kind] += part.max(0.0) as f32;
        }
    }
    let stacked = |its: Vec<f32>| kinds.iter().copied().zip(its).filter(|(_, share)| *share > 0.002).collect();
    shares.into_iter().map(stacked).collect()
}

/// One colour for all.
fn mix(shares: &Shares) -> Colour {
    let known: f32 = shares.iter().map(|(_, share)| share).sum();
    let all = shares.iter().copied().chain([(UNKNOWN, (1.0 - known).max(0.0))]);
    let sum = all.fold([0f32; 4], |sum, ((r, g, b), share)| {
        [sum[0] + f32::from(r) * share, sum[1] + f32::from(g) * share, sum[2] + f32::from(b) * share, sum[3] + share]
    });
    // In steps of 8: columns that look alike become one mark.
    let part = |at: usize| ((sum[at] / sum[3] / 8.0).round() * 8.0).min(255.0) as u8;
    (part(0), part(1), part(2))
}

impl Picture {
    fn text(&mut self, at: (i32, i32), size: i32, align: Align, text: impl Into<String>) {
        self.marks.push(Mark::Text(Text { at, size, align, text: text.into() }));
    }

    fn fill(&mut self, x: i32, y: i32, width: i32, height: i32, colour: Colour) {
        if width > 0 && height > 0 {
            self.marks.push(Mark::Box { x, y, width, height, colour });
        }
    }

    /// A row of columns, each `step` pixels wide.
    fn row(&mut self, y: i32, height: i32, step: i32, columns: &[Shares]) {
        let place = |column: usize| LEFT + column as i32 * step;
        let mut begin = 0;
        if height < 8 {
            let colours: Vec<Colour> = columns.iter().map(mix).collect();
            for column in 1..=colours.len() {
                if column == colours.len() || colours[column] != colours[begin] {
                    self.fill(place(begin), y, (column - begin) as i32 * step, height, colours[begin]);
                    begin = column;
                }
            }
            return;
        }
        // From the bottom: whole pixels, of which each share gets as many as are due to it and those below it.
        let heights = |shares: &Shares| -> Vec<(Colour, i32, i32)> {
            let mut sum = 0f32;
            let pixels = |sum: f32| (sum.min(1.0) * height as f32).round() as i32;
            let part = |(colour, share): &(Colour, f32)| {
                let low = pixels(sum);
                sum += share;
                (*colour, low, pixels(sum))
            };
            shares.iter().map(part).filter(|(_, low, high)| low < high).collect()
        };
        let stacks: Vec<_> = columns.iter().map(heights).collect();
        for column in 1..=stacks.len() {
            if column == stacks.len() || stacks[column] != stacks[begin] {
                for (colour, low, high) in &stacks[begin] {
                    self.fill(place(begin), y + height - high, (column - begin) as i32 * step, high - low, *colour);
                }
                begin = column;
            }
        }
    }

    fn legend(&mut self, mut x: i32, y: i32, entries: &[(&str, Colour)]) {
        for (name, colour) in entries {
            self.fill(x, y - 6, 12, 12, *colour);
            self.text((x + 17, y), 13, Align::Left, *name);
            x += 17 + words_width(name, 13) + 18;
        }
    }

    fn svg(&self) -> String {
        let (width, height) = self.size;
        let hex = |(r, g, b): Colour| format!("#{r:02x}{g:02x}{b:02x}");
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
        );
        // All boxes of a colour are one path: a tenth of the size.
        let mut boxes: BTreeMap<Colour, String> = BTreeMap::new();
        for mark in &self.marks {
            if let Mark::Box { x, y, width, height, colour } = mark {
                let _ = write!(boxes.entry(*colour).or_default(), "M{x} {y}h{width}v{height}h-{width}z");
            }
        }
        for (colour, path) in boxes {
            let _ = writeln!(text, "<path fill=\"{}\" shape-rendering=\"crispEdges\" d=\"{path}\"/>", hex(colour));
        }
        for mark in &self.marks {
            let _ = match mark {
                Mark::Box { .. } => Ok(()),
                Mark::Line { from, to, colour } => writeln!(
                    text,
                    "<path stroke=\"{}\" stroke-width=\"1\" fill=\"none\" d=\"M{} {}L{} {}\"/>",
                    hex(*colour),
                    from.0,
                    from.1,
                    to.0,
                    to.1
                ),
                Mark::Text(line) => {
                    let words = line.text.replace('&', "&amp;").replace('<', "&lt;");
                    writeln!(
                        text,
                        "<text x=\"{}\" y=\"{}\" font-family=\"{FONT}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\">{words}</text>",
                        line.at.0,
                        line.baseline(),
                        line.size,
                        line.align.anchor(),
                        hex(INK)
                    )
                }
            };
        }
        text.push_str("</svg>\n");
        text
    }

    fn png(&self) -> Result<Vec<u8>, PictureError> {
        let face = Face::load()?;
        let (width, height) = (self.size.0 as u32, self.size.1 as u32);
        let mut pixels = vec![255u8; 3 * width as usize * height as usize];
        let rgb = |(r, g, b): Colour| RGBColor(r, g, b);
        for mark in &self.marks {
            if let Mark::Box { x, y, width: across, height: down, colour: (r, g, b) } = *mark {
                for line in y.max(0)..(y + down).min(self.size.1) {
                    let first = line * self.size.0;
                    for pixel in first + x.max(0)..first + (x + across).min(self.size.0) {
                        pixels[3 * pixel as usize..][..3].copy_from_slice(&[r, g, b]);
                    }
                }
            }
        }
        {
            let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
            let failed = |e: &dyn std::error::Error| PictureError::Draw(e.to_string());
            for mark in &self.marks {
                match mark {
                    Mark::Line { from, to, colour } => {
                        let line = PathElement::new([*from, *to], rgb(*colour));
                        area.draw(&line).map_err(|e| failed(&e))?;
                    }
                    Mark::Box { .. } | Mark::Text(_) => {}
                }
            }
            area.present().map_err(|e| failed(&e))?;
        }
        for mark in &self.marks {
            if let Mark::Text(text) = mark {
                face.draw(&mut pixels, self.size, text, INK);
            }
        }
        crate::font::encode_png(&pixels, width, height).map_err(|e| PictureError::Draw(e.to_string()))
    }
}

/// Pixels of a line in a plain sans-serif font, about: who shows an SVG chooses which.
fn words_width(words: &str, size: i32) -> i32 {
    let ems = |letter: char| match letter {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | '\'' | '(' | ')' | 'f' | 't' | 'r' | ' ' => 0.36,
        'm' | 'w' | 'M' | 'W' => 0.92,
        'A'..='Z' => 0.70,
        _ => 0.61,
    };
    (words.chars().map(ems).sum::<f64>() * f64::from(size)).ceil() as i32
}

/// A round number of nanoseconds between two marks of the time axis.
fn step(length: Ns) -> Ns {
    let decades = (0..20).map(|power| 10u64.pow(power));
    let steps = decades.flat_map(|unit| [unit, 2 * unit, 5 * unit]);
    steps.into_iter().find(|step| length / step <= 12).unwrap_or(length.max(1))
}

/// `0.25 s`, `250 us`: in the unit that fits the step.
fn time(at: Ns, step: Ns) -> String {
    let (unit, name) = match step {
        1_000_000.. => (1e9, "s"),
        1_000.. => (1e6, "ms"),
        _ => (1e3, "us"),
    };
    let digits = (0..7).find(|digits| step as f64 / unit * 10f64.powi(*digits) >= 0.999).unwrap_or(6);
    format!("{:.*} {name}", digits as usize, at as f64 / unit)
}

/// Ranks between two labels.
fn stride(ranks: usize, row: i32) -> usize {
    [1, 2, 4, 8, 16, 32, 64, 128, 256]
        .into_iter()
        .find(|step| *step as i32 * row >= 14 && ranks / step <= 40)
        .unwrap_or(512)
}

/// Where the rows of a picture lie, and which part of the run it shows.
struct Rows<'a> {
    timeline: &'a Timeline,
    core_row: i32,
    ranks_at: i32,
    row: i32,
    gap: i32,
    bottom: i32,
    shown: Range<Ns>,
}

impl Rows<'_> {
    fn of(timeline: &Timeline) -> Rows<'_> {
        let (cores, ranks) = (timeline.cores.len(), timeline.ranks.len());
        let row = (720 / ranks as i32).clamp(if ranks <= 512 { 3 } else { 1 }, 24);
        let core_row = (CORE_HEIGHT * 16 / cores.max(16) as i32).max(4);
        let gap = i32::from(row >= 8) * 3;
        let ranks_at = TOP + cores as i32 * (core_row + 4) + 34;
        let bottom = ranks_at + ranks as i32 * (row + gap);
        // From when there is something to see.
        let first = timeline.ranks.iter().filter_map(|rank| rank.slices.first()).map(|slice| slice.from).min();
        let shown = first.unwrap_or(0).min(timeline.length.saturating_sub(1))..timeline.length;
        Rows { timeline, core_row, ranks_at, row, gap, bottom, shown }
    }

    fn x(&self, at: Ns) -> i32 {
        let span = self.shown.end - self.shown.start;
        LEFT + (at.saturating_sub(self.shown.start) as f64 / span as f64 * f64::from(WIDTH)) as i32
    }

    fn middle(&self, rank: u32) -> Option<i32> {
        let at = self.timeline.ranks.iter().position(|track| track.rank == rank)?;
        Some(self.ranks_at + at as i32 * (self.row + self.gap) + self.row / 2)
    }

    /// As much of a node's name as there is room for.
    fn of_node(&self, node: u32) -> String {
        let name = self.timeline.node(node).map(|name| name.chars().take(6).collect::<String>() + " ");
        name.unwrap_or_default()
    }
}

fn draw(timeline: &Timeline) -> Result<Picture, PictureError> {
    let (cores, ranks) = (timeline.cores.len(), timeline.ranks.len());
    if cores == 0 || ranks == 0 || timeline.length == 0 {
        return Err(PictureError::Empty);
    }
    if ranks > MOST_RANKS {
        return Err(PictureError::TooManyRanks(ranks));
    }
    let rows = Rows::of(timeline);
    let mut picture = Picture { size: (LEFT + WIDTH + RIGHT, rows.bottom + 40), marks: Vec::new() };
    picture.head(timeline);
    picture.cores(&rows);
    picture.ranks(&rows);
    picture.messages(&rows);
    picture.axis(&rows);
    Ok(picture)
}

/// The parts of the picture of a run.
impl Picture {
    fn head(&mut self, timeline: &Timeline) {
        let program = timeline.program.rsplit('/').next().unwrap_or_default();
        let on_nodes = match timeline.nodes.len() {
            0 => String::new(),
            nodes => format!(" of {nodes} nodes"),
        };
        let (cores, ranks) = (timeline.cores.len(), timeline.ranks.len());
        let title = format!("job {}: {program}, {ranks} ranks on {cores} cores{on_nodes}", timeline.job);
        self.text((LEFT, 18), 17, Align::Left, title);
        let notes: Vec<String> = timeline.clocks().into_iter().chain(timeline.gaps()).collect();
        if !notes.is_empty() {
            self.text((LEFT, 36), 12, Align::Left, notes.join("; "));
        }
    }

    fn cores(&mut self, rows: &Rows<'_>) {
        self.text((LEFT - 8, TOP - 16), 13, Align::Right, "cores");
        let legend = [
            ("a rank runs (shades tell ranks apart)", RUNNING),
            ("hand-off", HAND_OFF),
            ("idle", IDLE),
            ("another job's", ELSEWHERE),
            ("ranks start", STARTING),
            ("ranks end", ENDING),
        ];
        self.legend(LEFT, TOP - 16, &legend);
        let mut kinds: Vec<Colour> = RANKS.to_vec();
        kinds.extend([HAND_OFF, IDLE, ELSEWHERE, STARTING, ENDING]);
        let kind = |slice: &CoreSlice| match slice.did {
            CoreDid::Ran(rank) => rank as usize % RANKS.len(),
            CoreDid::HandOff(_) => RANKS.len(),
            CoreDid::Idle | CoreDid::Watched(_) => RANKS.len() + 1,
            CoreDid::Elsewhere => RANKS.len() + 2,
            CoreDid::Starting => RANKS.len() + 3,
            CoreDid::Ending => RANKS.len() + 4,
        };
        let height = rows.core_row;
        for (at, core) in rows.timeline.cores.iter().enumerate() {
            let y = TOP + at as i32 * (height + 4);
            let slices = core.slices.iter().map(|slice| (slice.from, slice.until, kind(slice)));
            let shares = columns(slices, &kinds, &rows.shown, WIDTH as usize);
            self.row(y, height, 1, &shares);
            if at % (16 / height).max(1) as usize == 0 {
                let name = format!("{}CPU {}", rows.of_node(core.node), core.cpu);
                self.text((LEFT - 8, y + height / 2), 13, Align::Right, name);
            }
        }
    }

    fn ranks(&mut self, rows: &Rows<'_>) {
        self.text((LEFT - 8, rows.ranks_at - 14), 13, Align::Right, "ranks");
        let legend = [
            ("running", RUNNING),
            ("ready, waits for its core", READY),
            ("waits in MPI", SUSPENDED),
            ("away (outside MPI, without its core)", AWAY),
            ("starts (before MPI_Init's end)", STARTING),
            ("ends (after MPI_Finalize)", ENDING),
        ];
        self.legend(LEFT, rows.ranks_at - 14, &legend);
        let kind = |slice: &RankSlice| match slice.did {
            RankDid::Running => 0,
            RankDid::Ready => 1,
            RankDid::Away => 2,
            RankDid::Suspended => 3,
            RankDid::Starting => 4,
            RankDid::Ending => 5,
        };
        let ranks = rows.timeline.ranks.len();
        let wide = if ranks > 64 { 2 } else { 1 };
        let pitch = rows.row + rows.gap;
        for (at, rank) in rows.timeline.ranks.iter().enumerate() {
            let y = rows.ranks_at + at as i32 * pitch;
            let slices = rank.slices.iter().map(|slice| (slice.from, slice.until, kind(slice)));
            let kinds = [RUNNING, READY, AWAY, SUSPENDED, STARTING, ENDING];
            self.row(y, rows.row, wide, &columns(slices, &kinds, &rows.shown, (WIDTH / wide) as usize));
            if at % stride(ranks, pitch) == 0 {
                let name = format!("{}{}", rows.of_node(rank.node), rank.rank);
                self.text((LEFT - 8, y + rows.row / 2), 13, Align::Right, name);
            }
        }
    }

    /// A line a message, where there are few and rows are high enough.
    fn messages(&mut self, rows: &Rows<'_>) {
        if rows.timeline.messages.len() > MOST_LINES || rows.row < 8 {
            return;
        }
        for message in &rows.timeline.messages {
            if let (Some(from), Some(to)) = (rows.middle(message.from), rows.middle(message.to)) {
                let (from, to) = ((rows.x(message.sent), from), (rows.x(message.received), to));
                self.marks.push(Mark::Line { from, to, colour: INK });
            }
        }
    }

    fn axis(&mut self, rows: &Rows<'_>) {
        let Range { start, end } = rows.shown;
        let step = step(end - start);
        for at in (start.next_multiple_of(step)..=end).step_by(step as usize) {
            self.fill(rows.x(at), rows.bottom + 4, 1, 6, INK);
            self.text((rows.x(at), rows.bottom + 20), 13, Align::Centre, time(at, step));
        }
        self.fill(LEFT, rows.bottom + 4, WIDTH, 1, INK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_show_shares() {
        let kinds = [RUNNING, READY];
        let found = columns([(0, 10, 0), (10, 15, 1), (30, 40, 0)].into_iter(), &kinds, &(0..40), 2);
        assert_eq!(found, [vec![(RUNNING, 0.5), (READY, 0.25)], vec![(RUNNING, 0.5)]]);
        assert_eq!(mix(&vec![]), UNKNOWN);
        assert_eq!(mix(&vec![(IDLE, 1.0)]), IDLE);
    }

    /// Entries of a legend do not run into each other, nor lie far apart.
    #[test]
    fn widths_are_those_of_the_font() {
        let Ok(face) = Face::load() else { return };
        for words in
            ["a rank runs (shades tell ranks apart)", "waits in MPI", "away (outside MPI, without its core)", "idle"]
        {
            let text = Text { at: (0, 0), size: 13, align: Align::Left, text: words.into() };
            let (real, about) = (face.width(&text), words_width(words, 13) as f32);
            assert!((about - real).abs() < 6.0 + 0.05 * real, "{words}: {about} for {real}");
        }
    }

    #[test]
    fn times_are_round() {
        assert_eq!((step(1_000_000_000), step(999)), (100_000_000, 100));
        assert_eq!(time(300_000_000, 100_000_000), "0.3 s");
        assert_eq!(time(1_500_000, 500_000), "1.5 ms");
        assert_eq!(time(250, 50), "0.25 us");
    }
}
