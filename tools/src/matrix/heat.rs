//! The heat map of a matrix: senders downwards, receivers to the right, the darker the more bytes (logarithmic).

use crate::font::{Align, FONT, Face, FontError, Text, encode_png};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::collections::HashMap;
use vmpi_shared::monitor::Matrix;

/// Pixels of the map without its margins, about.
const MAP: u32 = 720;
const LEFT: i32 = 70;
const TOP: i32 = 70;
const RIGHT: i32 = 130;
const BOTTOM: i32 = 40;
const INK: (u8, u8, u8) = (40, 40, 40);
/// Above this a cell would have less than a pixel.
pub const MOST_RANKS: u32 = 4096;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum HeatError {
    #[error(
        "a heat map of {0} ranks has no pixel for each pair; pictures are drawn for up to {MOST_RANKS} ranks (use CSV or JSON)"
    )]
    TooManyRanks(u32),
    #[error("there are no ranks to draw")]
    Empty,
    #[error(transparent)]
    Font(#[from] FontError),
    #[error("the heat map cannot be drawn: {0}")]
    Draw(String),
}

fn drawn<E: std::error::Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> HeatError {
    HeatError::Draw(error.to_string())
}

/// Pixels of a cell.
fn cell(ranks: u32) -> u32 {
    (MAP / ranks).clamp(1, 48)
}

fn size(ranks: u32) -> (u32, u32) {
    let map = cell(ranks) * ranks;
    let legend = (Scale::height(map as i32) + LEGEND * (LEGENDS.len() as i32 + 1)) as u32;
    (map.max(260) + (LEFT + RIGHT) as u32, map.max(legend) + (TOP + BOTTOM) as u32)
}

/// Below the scale: a pair between which messages without data went is told apart from one without messages.
const LEGENDS: [(RGBColor, &str); 2] = [(RGBColor(232, 226, 210), "no data"), (RGBColor(246, 246, 246), "no messages")];
/// Pixels from one to the next.
const LEGEND: i32 = 20;

fn check(matrix: &Matrix) -> Result<(), HeatError> {
    match matrix.ranks {
        0 => Err(HeatError::Empty),
        ranks if ranks > MOST_RANKS => Err(HeatError::TooManyRanks(ranks)),
        _ => Ok(()),
    }
}

/// As SVG; needs no font.
pub fn svg(matrix: &Matrix) -> Result<String, HeatError> {
    check(matrix)?;
    let (mut svg, texts) = (String::new(), texts(matrix));
    {
        let area = SVGBackend::with_string(&mut svg, size(matrix.ranks)).into_drawing_area();
        draw(matrix, &area)?;
        area.present().map_err(drawn)?;
    }
    let Some(end) = svg.rfind("</svg>") else { return Err(HeatError::Draw("the SVG has no end".into())) };
    let lines = texts.iter().map(|text| {
        format!(
            "<text x=\"{}\" y=\"{}\" font-family=\"{FONT}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"#282828\">{}</text>\n",
            text.at.0,
            text.baseline(),
            text.size,
            text.align.anchor(),
            text.text
        )
    });
    svg.insert_str(end, &lines.collect::<String>());
    Ok(svg)
}

/// As PNG.
pub fn png(matrix: &Matrix) -> Result<Vec<u8>, HeatError> {
    check(matrix)?;
    let face = Face::load()?;
    let (width, height) = size(matrix.ranks);
    let mut pixels = vec![255u8; 3 * width as usize * height as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        draw(matrix, &area)?;
        area.present().map_err(drawn)?;
    }
    for text in texts(matrix) {
        face.draw(&mut pixels, (width as i32, height as i32), &text, INK);
    }
    encode_png(&pixels, width, height).map_err(|e| HeatError::Draw(e.to_string()))
}

/// From light to dark blue; `share` from 0 to 1.
fn colour(share: f64) -> RGBColor {
    let stops = [(222.0, 235.0, 247.0), (107.0, 174.0, 214.0), (33.0, 113.0, 181.0), (8.0, 29.0, 88.0)];
    let place = share.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let at = (place as usize).min(stops.len() - 2);
    let mix = |a: f64, b: f64| (a + (b - a) * (place - at as f64)).round() as u8;
    let (low, high) = (stops[at], stops[at + 1]);
    RGBColor(mix(low.0, high.0), mix(low.1, high.1), mix(low.2, high.2))
}

/// Ranks between two labels: at most about 16 of them.
fn stride(ranks: u32) -> u32 {
    [1, 2, 4, 8, 16, 32, 64, 128, 256].into_iter().find(|step| ranks / step <= 16).unwrap_or(512)
}

/// The least and the most that went between two ranks, and what that is for each pair.
struct Scale {
    pairs: HashMap<(u32, u32), u64>,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(matrix: &Matrix) -> Scale {
        let mut pairs: HashMap<(u32, u32), u64> = HashMap::new();
        for entry in &matrix.entries {
            *pairs.entry((entry.from, entry.to)).or_default() += entry.counts.bytes;
        }
        let sums = pairs.values().copied().filter(|sum| *sum > 0);
        let (least, most) = (sums.clone().min().unwrap_or(1), sums.max().unwrap_or(1));
        Scale { low: (least as f64).ln(), high: (most as f64).ln(), pairs }
    }

    fn share(&self, bytes: u64) -> f64 {
        let Scale { low, high, .. } = *self;
        if high > low { 0.1 + 0.9 * ((bytes as f64).ln() - low) / (high - low) } else { 1.0 }
    }

    fn height(side: i32) -> i32 {
        side.clamp(60, 240)
    }
}

/// All words of the picture.
fn texts(matrix: &Matrix) -> Vec<Text> {
    let (ranks, cell) = (matrix.ranks, cell(matrix.ranks) as i32);
    let (side, scale) = (cell * ranks as i32, Scale::of(matrix));
    let put = |at: (i32, i32), size: i32, align: Align, text: String| Text { at, size, align, text };
    let title = format!("job {}: bytes from rank (down) to rank (right)", matrix.job);
    // Where the map is narrow the title begins further left.
    let mut texts = vec![put((LEFT.min(16), 20), 15, Align::Left, title)];
    for rank in (0..ranks).step_by(stride(ranks) as usize) {
        let middle = rank as i32 * cell + cell / 2;
        texts.push(put((LEFT - 6, TOP + middle), 13, Align::Right, rank.to_string()));
        texts.push(put((LEFT + middle, TOP - 11), 13, Align::Centre, rank.to_string()));
    }
    let (x, height, marks) = (LEFT + side + 46, Scale::height(side), if scale.high > scale.low { 4 } else { 0 });
    for mark in 0..=marks {
        let at = f64::from(mark) / f64::from(marks.max(1));
        let value = (scale.low + (scale.high - scale.low) * at).exp().round() as u64;
        // What is all there is is the darkest.
        let y = if marks == 0 { TOP } else { TOP + ((1.0 - at) * f64::from(height)) as i32 };
        texts.push(put((x, y), 12, Align::Left, format!("{} B", crate::table::bytes(value))));
    }
    for ((_, name), number) in LEGENDS.iter().zip(1..) {
        texts.push(put((x, TOP + height + LEGEND * number), 12, Align::Left, (*name).into()));
    }
    texts
}

fn draw<B: DrawingBackend>(matrix: &Matrix, area: &DrawingArea<B, Shift>) -> Result<(), HeatError>
where
    B::ErrorType: 'static,
{
    let (ranks, cell) = (matrix.ranks, cell(matrix.ranks) as i32);
    let (side, scale) = (cell * ranks as i32, Scale::of(matrix));
    area.fill(&WHITE).map_err(drawn)?;
    let [(silent, _), (nothing, _)] = LEGENDS;
    area.draw(&Rectangle::new([(LEFT, TOP), (LEFT + side, TOP + side)], nothing.filled())).map_err(drawn)?;
    for ((from, to), sum) in &scale.pairs {
        let at = (LEFT + *to as i32 * cell, TOP + *from as i32 * cell);
        let fill = if *sum == 0 { silent } else { colour(scale.share(*sum)) };
        // Cells that have room for it are set apart by a thin line.
        let line = i32::from(cell >= 8);
        let end = (at.0 + cell - line, at.1 + cell - line);
        if cell == 1 {
            area.draw_pixel(at, &fill).map_err(drawn)?;
        } else {
            area.draw(&Rectangle::new([at, end], fill.filled())).map_err(drawn)?;
        }
    }
    area.draw(&Rectangle::new(
        [(LEFT - 1, TOP - 1), (LEFT + side, TOP + side)],
        RGBColor(120, 120, 120).stroke_width(1),
    ))
    .map_err(drawn)?;
    let (x, height) = (LEFT + side + 24, Scale::height(side));
    for y in 0..height {
        let fill = colour(0.1 + 0.9 * (1.0 - f64::from(y) / f64::from(height)));
        area.draw(&Rectangle::new([(x, TOP + y), (x + 16, TOP + y + 1)], fill.filled())).map_err(drawn)?;
    }
    for ((fill, _), number) in LEGENDS.iter().zip(1..) {
        let y = TOP + height + LEGEND * number;
        let place = [(x, y - 6), (x + 16, y + 6)];
        area.draw(&Rectangle::new(place, fill.filled())).map_err(drawn)?;
        area.draw(&Rectangle::new(place, RGBColor(120, 120, 120).stroke_width(1))).map_err(drawn)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::ring;
    use super::*;

    #[test]
    fn a_cell_for_each_pair() {
        for ranks in [1, 2, 8, 256] {
            let matrix = ring(ranks);
            let text = svg(&matrix).unwrap();
            assert!(text.starts_with("<svg"), "{ranks}");
            let (width, height) = size(ranks);
            assert!(width < 1000 && height < 1000, "{ranks}: {width} x {height}");
            let cells = text.matches("<rect").count();
            assert!(cells >= ranks as usize, "{ranks}: {cells} rectangles");
            // The legend is inside the picture.
            for (_, name) in LEGENDS {
                let line = text.lines().find(|line| line.ends_with(&format!(">{name}</text>"))).expect("a legend");
                let y = line.split("y=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a place");
                assert!(y.parse::<u32>().is_ok_and(|y| y + 4 < height), "{ranks}: {line}, of {height}");
            }
        }
        assert!(matches!(svg(&Matrix::default()), Err(HeatError::Empty)));
        let many = Matrix { ranks: MOST_RANKS + 1, ..Matrix::default() };
        assert!(matches!(svg(&many), Err(HeatError::TooManyRanks(_))));
    }

    #[test]
    fn more_bytes_are_darker() {
        let light = |c: RGBColor| u32::from(c.0) + u32::from(c.1) + u32::from(c.2);
        let all: Vec<u32> = (0..=20).map(|at| light(colour(f64::from(at) / 20.0))).collect();
        assert!(all.is_sorted_by(|a, b| a > b), "{all:?}");
    }
}
