//! What is described: hosts, levels, links and how they are joined, whatever file it came from.

use crate::units::{Ps, transfer_time};

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Model {
    /// LogGP, with shared links where the machine has them.
    LogGp,
    /// That of SimGrid's SMPI.
    Smpi,
}

impl Model {
    pub fn name(self) -> &'static str {
        match self {
            Model::LogGp => "loggp",
            Model::Smpi => "smpi",
        }
    }
}

/// What two places have in common, the nearest first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Core,
    Socket,
    Host,
    Switch,
    Group,
    System,
}

pub const LEVELS: [Level; 6] = [Level::Core, Level::Socket, Level::Host, Level::Switch, Level::Group, Level::System];

impl Level {
    pub fn name(self) -> &'static str {
        ["core", "socket", "host", "switch", "group", "system"][self as usize]
    }
}

/// A run of equal hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRun {
    pub count: u32,
    pub sockets: u32,
    /// Of each socket.
    pub cores: u32,
    /// Of a core, against one of the machine that simulates, in millionths.
    pub speed_millionths: u64,
}

/// LogGP's parameters from a size of messages on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub from_bytes: u64,
    /// L
    pub latency: Ps,
    /// o_s
    pub send_overhead: Ps,
    /// o_r
    pub receive_overhead: Ps,
    /// g
    pub gap: Ps,
    /// 1 / G, bytes a second
    pub bandwidth: u64,
}

impl Piece {
    pub fn drain(&self, bytes: u64) -> Ps {
        transfer_time(bytes, self.bandwidth)
    }
}

/// What messages cost between places that have this level in common and none nearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelCost {
    /// A message of more bytes waits for its receive.
    pub eager_limit: u64,
    /// By size; the first one begins at 0.
    pub pieces: Vec<Piece>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Messages compete for the bandwidth.
    Shared,
    /// Each message gets the whole of it.
    Free,
}

/// So many equal links, numbered on from those of the class before.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Class {
    pub count: u32,
    pub bandwidth: u64,
    pub latency: Ps,
    pub policy: Policy,
}

/// Which links, in order, from one host to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    pub from: u32,
    pub to: u32,
    pub links: Vec<u32>,
}

/// How hosts are joined. Links are numbered class by class, a host's way out before its way in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// All hosts on one switch. Classes: host links (two each; with `half_duplex` one), then, if there, a backbone that all pass, and a loopback per host.
    Flat { half_duplex: bool, backbone: bool, loopback: bool },
    /// An extended generalized fat tree: `down[i]` nodes below each switch of level i + 1, each of which has `up[i]` parents there. Classes: host links, links between switches.
    FatTree { down: Vec<u32>, up: Vec<u32> },
    /// A switch with `hosts_per_switch` hosts on each point of a grid that is closed in every dimension. Classes: host links, links between switches.
    Torus { size: Vec<u32>, hosts_per_switch: u32 },
    /// Groups of switches, all joined with each other within a group, all groups with each other. Classes: host links, links within groups, links between groups.
    Dragonfly { groups: u32, switches: u32, hosts_per_switch: u32, global_links: u32 },
    /// Every pair by itself, sorted by from and to. Each link is a class of its own, the last one the loopback of hosts that have no route to themselves.
    Routes(Vec<Route>),
}

/// The least and the most of what a description may ask for.
pub const MOST_HOSTS: u32 = 1 << 20;
pub const MOST_PLACES: u32 = 1 << 24;
pub const MOST_DIMENSIONS: usize = 8;
pub const MOST_LINKS: u64 = 1 << 24;

/// The file system, as each rank has it for itself.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// Of each access.
    pub latency: Ps,
    /// Bytes a second.
    pub bandwidth: u64,
}

impl Default for Storage {
    /// A client of a parallel file system of 2020, about.
    fn default() -> Storage {
        Storage { latency: 100_000_000, bandwidth: 1_000_000_000 }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    pub name: String,
    pub about: String,
    /// Where the figures come from.
    pub source: String,
    pub model: Model,
    pub hosts: Vec<HostRun>,
    pub topology: Topology,
    pub classes: Vec<Class>,
    /// By [`Level`]; none with [`Model::Smpi`].
    pub levels: Vec<LevelCost>,
    /// Of each link between switches, with [`Model::LogGp`].
    pub hop_latency: Ps,
    /// Of a call that looks for a message in vain.
    pub poll: Ps,
    pub storage: Storage,
    /// Names of hosts, where the file has some.
    pub host_names: Vec<String>,
    /// What the file asked for and is not modelled, in sentences.
    pub notes: Vec<String>,
}

impl Machine {
    pub fn host_count(&self) -> u32 {
        self.hosts.iter().map(|run| run.count).sum()
    }

    /// Cores in all.
    pub fn place_count(&self) -> u32 {
        self.hosts.iter().map(|run| run.count * run.sockets * run.cores).sum()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn model(&self) -> Model {
        self.model
    }

    pub fn link_count(&self) -> u32 {
        self.classes.iter().map(|class| class.count).sum()
    }
}

impl Topology {
    pub fn name(&self) -> &'static str {
        match self {
            Topology::Flat { .. } => "flat",
            Topology::FatTree { .. } => "fat-tree",
            Topology::Torus { .. } => "torus",
            Topology::Dragonfly { .. } => "dragonfly",
            Topology::Routes(_) => "routes",
        }
    }

    pub fn described(&self) -> &'static str {
        match self {
            Topology::Flat { .. } => "a flat network",
            Topology::FatTree { .. } => "a fat tree",
            Topology::Torus { .. } => "a torus",
            Topology::Dragonfly { .. } => "a dragonfly",
            Topology::Routes(_) => "a zone with a route for each pair",
        }
    }

    /// How many hosts it has room for; `None`: as many as there are.
    pub fn capacity(&self) -> Option<u64> {
        let product = |of: &[u32]| of.iter().map(|n| u64::from(*n)).try_fold(1, u64::checked_mul).unwrap_or(u64::MAX);
        match self {
            Topology::Flat { .. } | Topology::Routes(_) => None,
            Topology::FatTree { down, .. } => Some(product(down)),
            Topology::Torus { size, hosts_per_switch } => {
                Some(product(size).saturating_mul((*hosts_per_switch).into()))
            }
            Topology::Dragonfly { groups, switches, hosts_per_switch, .. } => {
                Some(product(&[*groups, *switches, *hosts_per_switch]))
            }
        }
    }

    /// Links of each class, for so many hosts; saturated.
    pub fn class_counts(&self, hosts: u32) -> Vec<u64> {
        let ends = 2 * u64::from(hosts);
        match self {
            Topology::Flat { half_duplex, backbone, loopback } => {
                let mut counts = vec![if *half_duplex { ends / 2 } else { ends }];
                counts.extend(backbone.then_some(1));
                counts.extend(loopback.then_some(u64::from(hosts)));
                counts
            }
            Topology::FatTree { down, up } => {
                let cables = |level: usize| {
                    let below: u64 = up[..=level].iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
                    let above: u64 = down[level..].iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
                    below.saturating_mul(above)
                };
                let all: Vec<u64> = (0..down.len()).map(|level| cables(level).saturating_mul(2)).collect();
                vec![all[0], all[1..].iter().copied().fold(0, u64::saturating_add)]
            }
            Topology::Torus { size, .. } => {
                let points = size.iter().map(|n| u64::from(*n)).fold(1, u64::saturating_mul);
                vec![ends, points.saturating_mul(2 * size.len() as u64)]
            }
            Topology::Dragonfly { groups, switches, global_links, .. } => {
                let (groups, switches) = (u64::from(*groups), u64::from(*switches));
                let within = groups.saturating_mul(switches).saturating_mul(switches);
                vec![ends, within, groups.saturating_mul(switches).saturating_mul((*global_links).into())]
            }
            Topology::Routes(_) => Vec::new(),
        }
    }
}
