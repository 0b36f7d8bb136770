//! What a message costs from one place to another.

use super::Image;
use super::layout;
use crate::machine::{Level, Model};
use crate::smpi;
use crate::units::{PS_PER_S, Ps, transfer_time};

/// A path has room for so many links that messages compete for.
pub const MOST_USES: usize = 40;

/// A link, and how much of a flow's share goes over it, in hundredths.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    pub link: u32,
    pub hundredths: u32,
}

/// What a message's costs follow from: a way without its links.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Way {
    level: Level,
    model: Model,
    /// SMPI: the sum of the links' latencies. LogGP: what switches on the way add to the level's.
    on_the_way: Ps,
    /// Bytes a second that no flow exceeds, however free the links are.
    bound: f64,
    /// Bytes a second of a flow that has its shared links for itself.
    share: f64,
    shares: bool,
}

impl Way {
    /// Whether messages on it compete with others; else [`Cost::wire`] is all there is.
    pub fn shares(&self) -> bool {
        self.shares
    }
}

/// The way from one place to another: plain data.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Path {
    way: Way,
    /// The least time of any message.
    least: Ps,
    /// What a flow's share is divided by.
    penalty: f64,
    used: u32,
    uses: [LinkUse; MOST_USES],
}

/// A message alone on the wire.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The sender is busy.
    pub send_overhead: Ps,
    /// The receiver is busy.
    pub receive_overhead: Ps,
    /// From the begin of a message to that of the next one from the same place.
    pub gap: Ps,
    /// From the end of the sender's overhead to the begin of the receiver's.
    pub wire: Ps,
}

/// A message as a flow: it waits, then drains.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Transfer {
    pub latency: Ps,
    /// Bytes.
    pub volume: f64,
    /// Bytes a second.
    pub bound: f64,
    pub penalty: f64,
}

impl Path {
    /// What its costs follow from.
    pub fn way(&self) -> &Way {
        &self.way
    }

    pub fn level(&self) -> Level {
        self.way.level
    }

    /// The least time of any message on this path.
    pub fn latency(&self) -> Ps {
        self.least
    }

    /// Whether messages on it compete with others; else [`Cost::wire`] is all there is.
    pub fn shares(&self) -> bool {
        self.used > 0
    }

    /// The links that messages compete for.
    pub fn uses(&self) -> &[LinkUse] {
        &self.uses[..self.used as usize]
    }

    fn add(&mut self, link: u32, hundredths: u32) {
        let used = self.used as usize;
        if let Some(known) = self.uses[..used].iter_mut().find(|known| known.link == link) {
            known.hundredths += hundredths;
        } else if let Some(free) = self.uses.get_mut(used) {
            *free = LinkUse { link, hundredths };
            self.used += 1;
        }
    }
}

/// How long what is left takes at this rate, rounded up to a picosecond.
pub(crate) fn drain_time(bytes: f64, rate: f64) -> Ps {
    if bytes <= 0.0 {
        return 0;
    }
    // Past the end of time for a rate of nothing; a cast saturates.
    (bytes / rate * PS_PER_S as f64).ceil() as Ps
}

impl Image<'_> {
    /// The way between two places, by arithmetic.
    pub fn path(&self, from: u32, to: u32) -> Path {
        let (level, from_host, to_host) = (self.level(from, to), self.host_of(from), self.host_of(to));
        let way = Way {
            level,
            model: self.model(),
            on_the_way: 0,
            bound: f64::INFINITY,
            share: f64::INFINITY,
            shares: false,
        };
        let mut path = Path { way, least: 0, penalty: 1.0, used: 0, uses: [LinkUse::default(); MOST_USES] };
        match way.model {
            Model::LogGp => self.loggp_path(&mut path, from_host, to_host),
            Model::Smpi => self.smpi_path(&mut path, from_host, to_host),
        }
        (path.way.shares, path.way.share) = (path.used > 0, self.share_alone(&path));
        path
    }

    fn loggp_path(&self, path: &mut Path, from: u32, to: u32) {
        if from != to {
            path.way.on_the_way = self.header.hop_latency.saturating_mul(self.hops(from, to).into());
            if !self.classes.is_empty() {
                self.each_link(from, to, &mut |link| {
                    let Some(class) = self.class_of(link) else { return };
                    if class.shared != 0 {
                        path.add(link, 100);
                    } else {
                        path.way.bound = path.way.bound.min(class.bandwidth as f64);
                    }
                });
            }
        }
        let pieces = self.pieces_of(path.way.level);
        path.least = path.way.on_the_way.saturating_add(pieces.iter().map(|piece| piece.latency).min().unwrap_or(0));
    }

    fn smpi_path(&self, path: &mut Path, from: u32, to: u32) {
        let mut slowest = u64::MAX;
        path.penalty = 0.0;
        self.each_link(from, to, &mut |link| {
            let Some(class) = self.class_of(link) else { return };
            path.way.on_the_way = path.way.on_the_way.saturating_add(class.latency);
            path.penalty += smpi::penalty(class.bandwidth);
            slowest = slowest.min(class.bandwidth);
            if class.shared != 0 {
                path.add(link, 100);
            }
        });
        path.penalty += path.way.on_the_way as f64 / PS_PER_S as f64;
        path.way.bound = (slowest as f64).min(smpi::window_bound(path.way.on_the_way));
        self.each_link(to, from, &mut |link| {
            if self.class_of(link).is_some_and(|class| class.shared != 0) {
                path.add(link, smpi::CROSS_TRAFFIC);
            }
        });
        path.least = smpi::least_latency(path.way.on_the_way);
    }

    fn pieces_of(&self, level: Level) -> &[layout::Piece] {
        match self.levels.get(level as usize) {
            Some(level) => &self.pieces[level.first_piece as usize..][..level.pieces as usize],
            None => &[],
        }
    }

    fn piece(&self, level: Level, bytes: u64) -> Option<&layout::Piece> {
        let pieces = self.pieces_of(level);
        pieces.get(pieces.partition_point(|piece| piece.from_bytes <= bytes).checked_sub(1)?)
    }

    /// What a message of so many bytes costs, if no other one is on its way.
    pub fn cost(&self, path: &Path, bytes: u64) -> Cost {
        self.cost_by(&path.way, bytes)
    }

    /// The same of a path's [`Way`].
    pub fn cost_by(&self, way: &Way, bytes: u64) -> Cost {
        match (way.model, self.piece(way.level, bytes)) {
            (Model::LogGp, Some(piece)) if !way.shares && way.bound.is_infinite() => {
                let drain = transfer_time(bytes, piece.bandwidth);
                Cost {
                    send_overhead: piece.send_overhead,
                    receive_overhead: piece.receive_overhead,
                    gap: piece.gap.max(drain),
                    wire: way.on_the_way.saturating_add(piece.latency).saturating_add(drain),
                }
            }
            (_, piece) => {
                let transfer = self.transfer_by(way, 1.0, bytes);
                let drain = drain_time(transfer.volume, transfer.bound.min(way.share));
                let overheads = piece
                    .map_or((0, 0, 0), |piece| (piece.send_overhead, piece.receive_overhead, piece.gap.max(drain)));
                let (send_overhead, receive_overhead, gap) = overheads;
                Cost { send_overhead, receive_overhead, gap, wire: transfer.latency.saturating_add(drain) }
            }
        }
    }

    /// Bytes a second of a flow that has its links for itself.
    fn share_alone(&self, path: &Path) -> f64 {
        let of_link = |used: &LinkUse| {
            let bandwidth = self.link(used.link).map_or(f64::INFINITY, |(bandwidth, _)| bandwidth as f64);
            bandwidth / coefficient(used.hundredths)
        };
        path.uses().iter().map(of_link).fold(f64::INFINITY, f64::min)
    }

    pub(crate) fn transfer(&self, path: &Path, bytes: u64) -> Transfer {
        self.transfer_by(&path.way, path.penalty, bytes)
    }

    fn transfer_by(&self, way: &Way, penalty: f64, bytes: u64) -> Transfer {
        match (way.model, self.piece(way.level, bytes)) {
            (Model::LogGp, Some(piece)) => Transfer {
                latency: way.on_the_way.saturating_add(piece.latency),
                volume: bytes as f64,
                bound: way.bound.min(piece.bandwidth as f64),
                penalty,
            },
            _ => Transfer {
                latency: smpi::latency(way.on_the_way, bytes),
                volume: smpi::volume(bytes),
                bound: way.bound,
                penalty,
            },
        }
    }

    /// A message of more bytes than this waits for its receive.
    pub fn eager_limit(&self, path: &Path) -> u64 {
        match self.levels.get(path.way.level as usize) {
            Some(level) => level.eager_limit,
            None => smpi::RENDEZVOUS_FROM - 1,
        }
    }

    /// No message among the first so many places takes less, to its own place included. (What messages take between two places follows from what these have
    /// in common; since places lie host by host and switch by switch, neighbours show all that there is, and the shortest way of each.)
    pub fn least_latency(&self, places: u32) -> Ps {
        let places = places.clamp(1, self.header.places);
        if self.model() == Model::Smpi {
            // Each way has a link.
            let least = self.classes.iter().map(|class| class.latency).min().unwrap_or(0);
            return smpi::least_latency(least);
        }
        let of_pieces = |level: Level| self.pieces_of(level).iter().map(|piece| piece.latency).min().unwrap_or(0);
        let between = |from: u32, to: u32| {
            let level = self.level(from, to);
            let hops = match level {
                // Between groups the neighbours in number need not be those with a link; nobody has less than one.
                Level::System if self.header.topology == layout::topology::DRAGONFLY => 1,
                _ if level >= Level::Switch => self.hops(self.host_of(from), self.host_of(to)),
                _ => 0,
            };
            of_pieces(level).saturating_add(self.header.hop_latency.saturating_mul(hops.into()))
        };
        let neighbours = (1..places).map(|to| between(to - 1, to)).min().unwrap_or(Ps::MAX);
        neighbours.min(of_pieces(Level::Core))
    }

    /// The least time of a message between two hosts, or, where there is one, between two of its places: none is faster.
    pub fn min_latency(&self) -> Ps {
        let hops_cost = |level: Level| self.pieces_of(level).iter().map(|piece| piece.latency).min();
        match self.model() {
            Model::LogGp if self.header.hosts == 1 => {
                [Level::Socket, Level::Host].into_iter().filter_map(hops_cost).min().unwrap_or(0)
            }
            Model::LogGp => {
                [Level::Switch, Level::Group, Level::System].into_iter().filter_map(hops_cost).min().unwrap_or(0)
            }
            // Every route has at least one link, and not only loopbacks.
            Model::Smpi => {
                let of_routes = self.routes.iter().filter(|route| route.key >> 32 != route.key & u64::from(u32::MAX));
                let sum = |route: &layout::Route| {
                    let own = &self.route_links[route.first_link as usize..][..route.links as usize];
                    own.iter()
                        .filter_map(|link| self.class_of(*link))
                        .map(|class| class.latency)
                        .fold(0, Ps::saturating_add)
                };
                let least = match self.routes.is_empty() {
                    true => self.path(0, self.header.places - 1).way.on_the_way,
                    false => of_routes.map(sum).min().unwrap_or(0),
                };
                smpi::least_latency(least)
            }
        }
    }
}

pub(crate) fn coefficient(hundredths: u32) -> f64 {
    f64::from(hundredths) / 100.0
}
