//! A machine as flat data: written once, mapped by all ranks, read without allocating.
//!
//! Reading order: `layout` (the tables) -> `write` -> this file (checks, places) -> `route` (which links from host to host) -> `path`
//! (what a message costs).

mod layout;
mod path;
mod route;
#[cfg(test)]
pub(crate) mod tests;
mod write;

pub use path::{Cost, LinkUse, MOST_USES, Path, Way};
pub(crate) use path::{coefficient, drain_time};

use crate::machine::{Level, Model};
use crate::smpi;
use crate::units::{Ps, transfer_time};
use layout::{Class, Header, HostRun, MAGIC, Piece, Route, Table, VERSION};
use thiserror::Error;
use zerocopy::{FromBytes, Immutable, KnownLayout};

#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
pub enum BadImage {
    #[error("the image of the machine is not aligned to 8 bytes")]
    Misaligned,
    #[error("this is no image of a machine")]
    NotOne,
    #[error("the image of the machine has version {found}, this is for {wanted}", wanted = VERSION)]
    Version { found: u32 },
    #[error("the image of the machine is cut off: {bytes} bytes")]
    Short { bytes: usize },
    #[error("the image of the machine makes no sense: {what}")]
    Senseless { what: &'static str },
}

/// How MPI's calls behave on this machine.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// An eager message's transfer begins when its receive is posted, not when it is sent.
    pub eager_leaves_when_received: bool,
    /// A message above the eager limit is announced and asked for first, each of which costs a message without bytes.
    pub rendezvous_handshake: bool,
    /// Of MPI_Wtime and its kin.
    pub clock_cost: Ps,
}

#[derive(Copy, Clone, Debug)]
pub struct Image<'a> {
    header: &'a Header,
    host_runs: &'a [HostRun],
    classes: &'a [Class],
    levels: &'a [layout::Level],
    pieces: &'a [Piece],
    routes: &'a [Route],
    route_links: &'a [u32],
}

fn table<T: FromBytes + Immutable + KnownLayout>(bytes: &[u8], table: Table) -> Result<&[T], BadImage> {
    let (offset, count) = (table.offset as usize, table.count as usize);
    let short = BadImage::Short { bytes: bytes.len() };
    let rest = bytes.get(offset..).ok_or(short)?;
    // A wrong alignment of the offset or too few bytes.
    <[T]>::ref_from_prefix_with_elems(rest, count).map(|(rows, _)| rows).map_err(|_| short)
}

impl<'a> Image<'a> {
    /// Look at `bytes`, which must be aligned to 8, and stay as they are.
    ///
    /// # Errors
    /// They are no image of this version, or an index in them leads out of a table.
    pub fn new(bytes: &'a [u8]) -> Result<Image<'a>, BadImage> {
        if bytes.as_ptr().align_offset(8) != 0 {
            return Err(BadImage::Misaligned);
        }
        let short = BadImage::Short { bytes: bytes.len() };
        let (header, _) = Header::ref_from_prefix(bytes).map_err(|_| short)?;
        if header.magic != MAGIC {
            return Err(BadImage::NotOne);
        }
        if header.version != VERSION {
            return Err(BadImage::Version { found: header.version });
        }
        let total = usize::try_from(header.total_bytes).map_err(|_| short)?;
        let bytes = bytes.get(..total).ok_or(short)?;
        let image = Image {
            header,
            host_runs: table(bytes, header.host_runs)?,
            classes: table(bytes, header.classes)?,
            levels: table(bytes, header.levels)?,
            pieces: table(bytes, header.pieces)?,
            routes: table(bytes, header.routes)?,
            route_links: table(bytes, header.route_links)?,
        };
        match image.senseless() {
            Some(what) => Err(BadImage::Senseless { what }),
            None => Ok(image),
        }
    }

    /// The same of whole words, which are aligned.
    ///
    /// # Errors
    /// As [`Image::new`].
    pub fn from_words(words: &'a [u64]) -> Result<Image<'a>, BadImage> {
        Image::new(zerocopy::IntoBytes::as_bytes(words))
    }

    /// What keeps the functions below from being right, or from ending.
    fn senseless(&self) -> Option<&'static str> {
        let header = self.header;
        if header.model > 1 {
            return Some("an unknown model");
        }
        if header.storage_bandwidth == 0 {
            return Some("a file system without bandwidth");
        }
        if header.most_uses as usize > MOST_USES {
            return Some("its paths have too many links");
        }
        let (mut hosts, mut places) = (0_u64, 0_u64);
        for run in self.host_runs {
            if u64::from(run.first_host) != hosts || u64::from(run.first_place) != places || run.speed_millionths == 0 {
                return Some("hosts are not in order, or have no speed");
            }
            let of_one = u64::from(run.sockets) * u64::from(run.cores);
            if run.hosts == 0 || of_one == 0 || of_one > u64::from(u32::MAX) {
                return Some("hosts without cores");
            }
            hosts += u64::from(run.hosts);
            places = places.saturating_add(u64::from(run.hosts) * of_one);
        }
        if hosts == 0 || hosts != u64::from(header.hosts) || places != u64::from(header.places) {
            return Some("the number of hosts or cores");
        }
        let mut links = 0_u64;
        for class in self.classes {
            if u64::from(class.first) != links || class.count == 0 || class.bandwidth == 0 {
                return Some("links are not in order, or have no bandwidth");
            }
            links += u64::from(class.count);
        }
        if links != u64::from(header.links) {
            return Some("the number of links");
        }
        let pieces_fit = |level: &layout::Level| {
            let first = level.first_piece as usize;
            let own = self.pieces.get(first..first.saturating_add(level.pieces as usize)).unwrap_or(&[]);
            own.first().is_some_and(|piece| piece.from_bytes == 0)
                && own.iter().all(|piece| piece.bandwidth > 0)
                && own.is_sorted_by(|a, b| a.from_bytes < b.from_bytes)
        };
        if self.levels.len() != if self.model() == Model::LogGp { 6 } else { 0 } || !self.levels.iter().all(pieces_fit)
        {
            return Some("the levels' costs");
        }
        self.topology_is_senseless()
    }

    pub fn model(&self) -> Model {
        if self.header.model == 0 { Model::LogGp } else { Model::Smpi }
    }

    /// Cores in all.
    pub fn place_count(&self) -> u32 {
        self.header.places
    }

    pub fn host_count(&self) -> u32 {
        self.header.hosts
    }

    pub fn link_count(&self) -> u32 {
        self.header.links
    }

    /// The run that a place is in, its host, and its number there. A place that is not there is the last one.
    fn find(&self, place: u32) -> (&'a HostRun, u32, u32) {
        let place = place.min(self.header.places - 1);
        let run = &self.host_runs[self.host_runs.partition_point(|run| run.first_place <= place) - 1];
        let (of_one, at) = (run.sockets * run.cores, place - run.first_place);
        (run, run.first_host + at / of_one, at % of_one)
    }

    /// Places are cores, numbered host by host and there socket by socket.
    pub fn host_of(&self, place: u32) -> u32 {
        self.find(place).1
    }

    /// What two places have in common.
    pub fn level(&self, from: u32, to: u32) -> Level {
        let ((run, from_host, from_core), (_, to_host, to_core)) = (self.find(from), self.find(to));
        if from_host != to_host {
            return self.host_level(from_host, to_host);
        }
        if from_core == to_core {
            Level::Core
        } else if from_core / run.cores == to_core / run.cores {
            Level::Socket
        } else {
            Level::Host
        }
    }

    pub fn rules(&self) -> Rules {
        match self.model() {
            Model::LogGp => Rules { eager_leaves_when_received: false, rendezvous_handshake: true, clock_cost: 0 },
            Model::Smpi => {
                Rules { eager_leaves_when_received: true, rendezvous_handshake: false, clock_cost: smpi::CLOCK_COST }
            }
        }
    }

    /// What the next MPI_Test or MPI_Iprobe takes after so many in a row that found nothing. With SMPI's model it passes before the call looks.
    pub fn poll_cost(&self, failures: u32) -> Ps {
        match self.model() {
            Model::LogGp => self.header.poll,
            Model::Smpi => smpi::POLL_COST * (u64::from(failures) + 1),
        }
    }

    /// What one access to a file takes that moves so many bytes.
    pub fn storage_cost(&self, bytes: u64) -> Ps {
        self.header.storage_latency.saturating_add(transfer_time(bytes, self.header.storage_bandwidth))
    }

    /// How long a core there takes for what took a core here `real`.
    pub fn compute(&self, place: u32, real: Ps) -> Ps {
        let speed = u128::from(self.find(place).0.speed_millionths);
        let there = (u128::from(real) * 1_000_000).div_ceil(speed);
        u64::try_from(there).unwrap_or(u64::MAX)
    }

    /// Bandwidth of a link, and whether messages compete for it.
    pub fn link(&self, link: u32) -> Option<(u64, bool)> {
        let class = self.class_of(link)?;
        Some((class.bandwidth, class.shared != 0))
    }

    /// Links on the way from one place to another.
    pub fn links_between(&self, from: u32, to: u32) -> u32 {
        let mut links = 0;
        if !self.classes.is_empty() {
            self.each_link(self.host_of(from), self.host_of(to), &mut |_| links += 1);
        }
        links
    }

    fn class_of(&self, link: u32) -> Option<&'a Class> {
        let at = self.classes.partition_point(|class| class.first <= link).checked_sub(1)?;
        self.classes.get(at).filter(|class| link - class.first < class.count)
    }
}
