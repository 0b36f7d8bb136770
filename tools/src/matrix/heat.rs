//! The heat map of a matrix: senders downwards, receivers to the right, the darker the more bytes (logarithmic).

use crate::font::{FONT, FontError, encode_png, register};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::HashMap;
use vmpi_shared::monitor::Matrix;

/// Pixels of the map without its margins, about.
const MAP: u32 = 720;
const LEFT: i32 = 70;
const TOP: i32 = 70;
const RIGHT: i32 = 130;
const BOTTOM: i32 = 40;
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
    (map.max(260) + (LEFT + RIGHT) as u32, map + (TOP + BOTTOM) as u32)
}

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
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size(matrix.ranks)).into_drawing_area();
        draw(matrix, &area)?;
        area.present().map_err(drawn)?;
    }
    Ok(text)
}

/// As PNG.
pub fn png(matrix: &Matrix) -> Result<Vec<u8>, HeatError> {
    check(matrix)?;
    register()?;
    let (width, height) = size(matrix.ranks);
    let mut pixels = vec![255u8; 3 * width as usize * height as usize];
    {
        let area = BitMapBackend::with_buffer(&mut pixels, (width, height)).into_drawing_area();
        draw(matrix, &area)?;
        area.present().map_err(drawn)?;
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

fn draw<B: DrawingBackend>(matrix: &Matrix, area: &DrawingArea<B, Shift>) -> Result<(), HeatError>
where
    B::ErrorType: 'static,
{
    let (ranks, cell) = (matrix.ranks, cell(matrix.ranks) as i32);
    let side = cell * ranks as i32;
    area.fill(&WHITE).map_err(drawn)?;
    let mut pairs: HashMap<(u32, u32), u64> = HashMap::new();
    for entry in &matrix.entries {
        *pairs.entry((entry.from, entry.to)).or_default() += entry.counts.bytes;
    }
    let sums = pairs.values().copied().filter(|sum| *sum > 0);
    let (least, most) = (sums.clone().min().unwrap_or(1), sums.max().unwrap_or(1));
    let (low, high) = ((least as f64).ln(), (most as f64).ln());
    let share = |bytes: u64| if high > low { 0.1 + 0.9 * ((bytes as f64).ln() - low) / (high - low) } else { 1.0 };
    let style = |size: i32| TextStyle::from((FONT, size).into_font()).color(&RGBColor(40, 40, 40));
    let right = Pos::new(HPos::Right, VPos::Center);
    let centre = Pos::new(HPos::Center, VPos::Bottom);
    let put = |text: &str, at: (i32, i32), style: &TextStyle| area.draw_text(text, style, at).map_err(drawn);
    put(&format!("job {}: bytes from rank (down) to rank (right)", matrix.job), (LEFT, 14), &style(17))?;
    area.draw(&Rectangle::new([(LEFT, TOP), (LEFT + side, TOP + side)], RGBColor(246, 246, 246).filled()))
        .map_err(drawn)?;
    // A pair between which messages without data went is told apart from one without messages.
    let silent = RGBColor(232, 226, 210);
    for ((from, to), sum) in &pairs {
        let at = (LEFT + *to as i32 * cell, TOP + *from as i32 * cell);
        let fill = if *sum == 0 { silent } else { colour(share(*sum)) };
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
    for rank in (0..ranks).step_by(stride(ranks) as usize) {
        let middle = rank as i32 * cell + cell / 2;
        put(&rank.to_string(), (LEFT - 6, TOP + middle), &style(13).pos(right))?;
        put(&rank.to_string(), (LEFT + middle, TOP - 5), &style(13).pos(centre))?;
    }
    // The scale.
    let (x, height) = (LEFT + side + 24, side.clamp(60, 240));
    for y in 0..height {
        let fill = colour(0.1 + 0.9 * (1.0 - f64::from(y) / f64::from(height)));
        area.draw(&Rectangle::new([(x, TOP + y), (x + 16, TOP + y + 1)], fill.filled())).map_err(drawn)?;
    }
    let marks = if high > low { 4 } else { 1 };
    for mark in 0..=marks {
        let at = f64::from(mark) / f64::from(marks);
        let value = (low + (high - low) * at).exp().round() as u64;
        let y = TOP + ((1.0 - at) * f64::from(height)) as i32;
        let text = if mark > 0 && high <= low { continue } else { format!("{} B", crate::table::bytes(value)) };
        put(&text, (x + 22, y), &style(12).pos(Pos::new(HPos::Left, VPos::Center)))?;
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
