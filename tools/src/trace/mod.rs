//! What the ranks of a job did and when, for people: a Perfetto trace, a picture, a page.
//!
//! Reading order: `timeline` (records become a timeline), `perfetto`, `picture`, `page`.

mod page;
mod perfetto;
mod picture;
mod timeline;

pub use timeline::{CoreDid, CoreSlice, CoreTrack, Message, Ns, RankDid, RankSlice, RankTrack, Timeline};

use crate::failure::Failure;
use std::fs::File;
use std::io;
use std::path::Path;
use vmpi_shared::control::JobReport;
use vmpi_shared::monitor::Matrix;
use vmpi_shared::trace::{RingReader, TraceMap};

/// A recording: how it is to be read, and where.
#[derive(Debug)]
pub struct Recording {
    pub map: Box<TraceMap>,
    pub segment: File,
}

impl Recording {
    /// Read all rings.
    ///
    /// # Errors
    /// Those of reading, and a map that does not fit.
    pub fn timeline(&self) -> io::Result<Timeline> {
        let read = |(rank, stand): (usize, &vmpi_shared::trace::TraceRank)| {
            if !stand.here {
                return Ok(RingReader::default());
            }
            RingReader::read(&self.segment, &self.map.rings, rank as u32, stand.skip)
        };
        let rings: Vec<RingReader> = self.map.ranks.iter().enumerate().map(read).collect::<io::Result<_>>()?;
        Ok(Timeline::new(&self.map, &rings))
    }
}

/// How a trace is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// For ui.perfetto.dev and trace_processor.
    Perfetto,
    Svg,
    Png,
    /// A page (without the matrix and the clocks, which are not in a recording).
    Html,
}

impl Form {
    /// By the ending of a file's name.
    pub fn of(path: &str) -> Form {
        match path.rsplit('.').next() {
            Some("svg") => Form::Svg,
            Some("png") => Form::Png,
            Some("html") => Form::Html,
            _ => Form::Perfetto,
        }
    }
}

/// What was written.
#[derive(Debug, Default)]
pub struct Saved {
    /// What is missing from it, in a sentence.
    pub gaps: Option<String>,
    /// Stretches of cores and ranks, and messages.
    pub events: u64,
    pub dropped: u64,
    pub length_s: f64,
}

/// `vmpirun --report-html FILE`: one page about the run.
///
/// # Errors
/// The recording cannot be read, or the page not be written.
pub fn save_page(
    recording: &Recording,
    matrix: Option<&Matrix>,
    report: Option<&JobReport>,
    path: &str,
) -> Result<(), Failure> {
    let timeline = recording.timeline().map_err(|e| Failure::own(format!("cannot read the trace: {e}")))?;
    std::fs::write(path, page::page(&timeline, matrix, report))
        .map_err(|e| Failure::own(format!("cannot write {path}: {e}")))
}

/// Write the recording to `path`.
///
/// # Errors
/// It cannot be read or written, or the picture not be drawn.
pub fn save(recording: &Recording, path: &str) -> Result<Saved, Failure> {
    let timeline = recording.timeline().map_err(|e| Failure::own(format!("cannot read the trace: {e}")))?;
    let failed = |e: picture::PictureError| Failure::own(format!("{path}: {e}"));
    let bytes = match Form::of(path) {
        Form::Perfetto => perfetto::encode(&timeline),
        Form::Svg => picture::svg(&timeline).map_err(failed)?.into_bytes(),
        Form::Png => picture::png(&timeline).map_err(failed)?,
        Form::Html => page::page(&timeline, None, None).into_bytes(),
    };
    std::fs::write(Path::new(path), bytes).map_err(|e| Failure::own(format!("cannot write {path}: {e}")))?;
    Ok(Saved {
        gaps: timeline.gaps(),
        events: timeline.events(),
        dropped: timeline.dropped(),
        length_s: timeline.length as f64 * 1e-9,
    })
}
