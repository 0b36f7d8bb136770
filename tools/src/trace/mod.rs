//! What the ranks of a job did and when, for people: a Perfetto trace, an OTF2 archive, a picture, a page.
//!
//! Reading order: `timeline` (records become a timeline), `timeline::axis` (those of several nodes one), `perfetto`, `otf2`, `picture`, `page`.

mod otf2;
mod page;
mod perfetto;
mod picture;
mod timeline;
mod totals;

pub use page::About;
pub use timeline::{
    CollectiveCall, CoreDid, CoreSlice, CoreTrack, Message, NodeTrack, Ns, OnNode, RankDid, RankSlice, RankTrack,
    RegionSpan, Timeline,
};

pub use totals::Totals;

use crate::failure::Failure;
use crate::nodes::clock_sync::Offset;
use std::fs::File;
use std::io;
use std::path::Path;
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
    pub fn timeline(&self) -> Result<Timeline, Failure> {
        let rings = self.rings().map_err(|e| Failure::own(format!("cannot read the trace: {e}")))?;
        Ok(Timeline::new(&self.map, &rings))
    }

    fn rings(&self) -> io::Result<Vec<RingReader>> {
        let read = |(rank, stand): (usize, &vmpi_shared::trace::TraceRank)| {
            if !stand.here {
                return Ok(RingReader::default());
            }
            RingReader::read(&self.segment, &self.map.rings, rank as u32, stand.skip)
        };
        self.map.ranks.iter().enumerate().map(read).collect()
    }
}

/// What a node of several has recorded, or why that is not here.
#[derive(Debug)]
pub struct NodeRecording {
    pub name: String,
    /// Of its clock from the launcher's; `None`: they could not be compared.
    pub offset: Option<Offset>,
    pub recorded: Result<Recording, String>,
}

impl NodeRecording {
    fn read(&self) -> OnNode<'_> {
        let recorded = self.recorded.as_ref().map_err(Clone::clone).and_then(|recording| {
            let rings = recording.rings().map_err(|error| format!("it cannot be read: {error}"))?;
            Ok((&*recording.map, rings))
        });
        OnNode { name: &self.name, offset: self.offset, recorded }
    }
}

/// All nodes' recordings on one axis of time; `None`: nothing has come of any.
pub fn timeline_of_nodes(nodes: &[NodeRecording]) -> Option<Timeline> {
    let read: Vec<OnNode<'_>> = nodes.iter().map(NodeRecording::read).collect();
    read.iter().any(|node| node.recorded.is_ok()).then(|| Timeline::of_nodes(read))
}

/// How a trace is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// For ui.perfetto.dev and trace_processor.
    Perfetto,
    /// An archive of several files, for Vampir, Scalasca and ViTE.
    Otf2,
    Svg,
    Png,
    /// A page (without the matrix, if nobody has counted).
    Html,
}

impl Form {
    /// By the ending of a file's name.
    ///
    /// # Errors
    /// The ending means nothing; all that mean something are named.
    pub fn of(path: &str) -> Result<Form, String> {
        let name = Path::new(path);
        match name.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => Ok(Form::Svg),
            Some("png") => Ok(Form::Png),
            Some("html" | "htm") => Ok(Form::Html),
            Some("otf2") => Ok(Form::Otf2),
            Some(ending) if PERFETTO.contains(&ending) => Ok(Form::Perfetto),
            // A device, or a pipe.
            _ if std::fs::metadata(name).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) => Ok(Form::Perfetto),
            _ => Err(format!(
                "`{path}` does not end in .svg or .png (a picture), .html (a page), .otf2 (an archive), or .{} (for ui.perfetto.dev)",
                PERFETTO.join(", .")
            )),
        }
    }
}

/// Can a trace be written in the form that the file's name says?
///
/// # Errors
/// What that needs is not installed, or something is in the way.
pub fn check(path: &str) -> Result<(), Failure> {
    match Form::of(path).map_err(Failure::usage)? {
        Form::Otf2 => {
            let failed = |why: String| Failure::usage(format!("{path} could not be written: {why}"));
            otf2::check(Path::new(path)).map_err(failed)
        }
        _ => Ok(()),
    }
}

/// What Perfetto's own tools and others call its files.
pub(crate) const PERFETTO: [&str; 6] = ["pftrace", "perfetto-trace", "perfetto", "pb", "proto", "trace"];

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
/// It cannot be written.
pub fn save_page(timeline: &Timeline, about: &About<'_>, path: &str) -> Result<(), Failure> {
    std::fs::write(path, page::page(timeline, about)).map_err(|e| Failure::own(format!("cannot write {path}: {e}")))
}

/// Write the timeline to `path`.
///
/// # Errors
/// It cannot be written, or the picture not be drawn.
pub fn save(timeline: &Timeline, about: &About<'_>, path: &str) -> Result<Saved, Failure> {
    if Form::of(path) == Ok(Form::Otf2) {
        let failed = |why: String| Failure::own(format!("cannot write {path}: {why}"));
        otf2::write(timeline, &about.host, Path::new(path)).map_err(failed)?;
        return Ok(Saved::of(timeline));
    }
    let (saved, bytes) = encode(timeline, about, path)?;
    std::fs::write(Path::new(path), bytes).map_err(|e| Failure::own(format!("cannot write {path}: {e}")))?;
    Ok(saved)
}

impl Saved {
    fn of(timeline: &Timeline) -> Saved {
        Saved {
            gaps: timeline.gaps(),
            events: timeline.events(),
            dropped: timeline.dropped(),
            length_s: timeline.length as f64 * 1e-9,
        }
    }
}

/// What is to be written to `path`.
///
/// # Errors
/// The picture cannot be drawn, or it would be more than one file.
pub fn encode(timeline: &Timeline, about: &About<'_>, path: &str) -> Result<(Saved, Vec<u8>), Failure> {
    let failed = |e: picture::PictureError| Failure::own(format!("{path}: {e}"));
    let bytes = match Form::of(path).map_err(Failure::usage)? {
        Form::Perfetto => perfetto::encode(timeline),
        Form::Otf2 => {
            let why = "an OTF2 archive is several files, which do not come from another node";
            return Err(Failure::usage(format!(
                "{path}: {why}; `vmpirun --trace FILE.otf2` writes one, and FILE.pftrace is one file"
            )));
        }
        Form::Svg => picture::svg(timeline).map_err(failed)?.into_bytes(),
        Form::Png => picture::png(timeline).map_err(failed)?,
        Form::Html => page::page(timeline, about).into_bytes(),
    };
    Ok((Saved::of(timeline), bytes))
}
