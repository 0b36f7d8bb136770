//! A machine as an image.

use super::MOST_USES;
use super::layout::{self, BACKBONE, HALF_DUPLEX, Header, LOOPBACK, MAGIC, Table, VERSION};
use crate::machine::{Machine, Model, Policy, Topology};
use zerocopy::{FromZeros, Immutable, IntoBytes};

impl Machine {
    /// The same as flat data, for [`Image::new`](crate::Image::new).
    pub fn image(&self) -> Vec<u8> {
        let mut header = Header::new_zeroed();
        (header.magic, header.version) = (MAGIC, VERSION);
        header.model = match self.model {
            Model::LogGp => 0,
            Model::Smpi => 1,
        };
        (header.hosts, header.places, header.links) = (self.host_count(), self.place_count(), self.link_count());
        (header.hop_latency, header.poll) = (self.hop_latency, self.poll);
        (header.storage_latency, header.storage_bandwidth) = (self.storage.latency, self.storage.bandwidth);
        self.topology_into(&mut header);

        let mut bytes = vec![0; size_of::<Header>()];
        header.host_runs = append(&mut bytes, &self.host_runs());
        header.classes = append(&mut bytes, &self.class_rows());
        let (levels, pieces) = self.level_rows();
        header.levels = append(&mut bytes, &levels);
        header.pieces = append(&mut bytes, &pieces);
        let (routes, links) = self.route_rows();
        header.routes = append(&mut bytes, &routes);
        header.route_links = append(&mut bytes, &links);
        header.total_bytes = bytes.len() as u64;
        header.most_uses = self.most_uses();
        bytes[..size_of::<Header>()].copy_from_slice(header.as_bytes());
        bytes
    }

    /// The same in whole words, for [`Image::from_words`](crate::Image::from_words).
    pub fn image_words(&self) -> Vec<u64> {
        let bytes = self.image();
        let mut words = vec![0_u64; bytes.len().div_ceil(8)];
        words.as_mut_bytes()[..bytes.len()].copy_from_slice(&bytes);
        words
    }

    fn topology_into(&self, header: &mut Header) {
        let fill = |to: &mut [u32; 8], from: &[u32]| to.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        header.hosts_per_switch = 1;
        match &self.topology {
            Topology::Flat { half_duplex, backbone, loopback } => {
                header.topology = layout::topology::FLAT;
                let flag = |is: bool, bit: u32| if is { bit } else { 0 };
                header.flags = flag(*half_duplex, HALF_DUPLEX) | flag(*backbone, BACKBONE) | flag(*loopback, LOOPBACK);
            }
            Topology::FatTree { down, up } => {
                header.topology = layout::topology::FAT_TREE;
                header.dimensions = down.len() as u32;
                fill(&mut header.sizes, down);
                fill(&mut header.ups, up);
            }
            Topology::Torus { size, hosts_per_switch } => {
                header.topology = layout::topology::TORUS;
                header.dimensions = size.len() as u32;
                fill(&mut header.sizes, size);
                header.hosts_per_switch = *hosts_per_switch;
            }
            Topology::Dragonfly { groups, switches, hosts_per_switch, global_links } => {
                header.topology = layout::topology::DRAGONFLY;
                header.dimensions = 2;
                fill(&mut header.sizes, &[*groups, *switches]);
                fill(&mut header.ups, &[*global_links]);
                header.hosts_per_switch = *hosts_per_switch;
            }
            Topology::Routes(_) => header.topology = layout::topology::ROUTES,
        }
    }

    fn host_runs(&self) -> Vec<layout::HostRun> {
        let (mut first_host, mut first_place) = (0, 0);
        let row = |run: &crate::machine::HostRun| {
            let row = layout::HostRun {
                first_host,
                first_place,
                hosts: run.count,
                sockets: run.sockets,
                cores: run.cores,
                reserved: 0,
                speed_millionths: run.speed_millionths,
            };
            first_host += run.count;
            first_place += run.count * run.sockets * run.cores;
            row
        };
        self.hosts.iter().map(row).collect()
    }

    fn class_rows(&self) -> Vec<layout::Class> {
        let mut first = 0;
        let row = |class: &crate::machine::Class| {
            let shared = u32::from(class.policy == Policy::Shared);
            let (count, bandwidth, latency) = (class.count, class.bandwidth, class.latency);
            let row = layout::Class { first, count, bandwidth, latency, shared, reserved: 0 };
            first += class.count;
            row
        };
        self.classes.iter().map(row).collect()
    }

    fn level_rows(&self) -> (Vec<layout::Level>, Vec<layout::Piece>) {
        let mut pieces = Vec::new();
        let row = |level: &crate::machine::LevelCost| {
            let first_piece = pieces.len() as u32;
            pieces.extend(level.pieces.iter().map(|piece| layout::Piece {
                from_bytes: piece.from_bytes,
                latency: piece.latency,
                send_overhead: piece.send_overhead,
                receive_overhead: piece.receive_overhead,
                gap: piece.gap,
                bandwidth: piece.bandwidth,
            }));
            layout::Level { first_piece, pieces: level.pieces.len() as u32, eager_limit: level.eager_limit }
        };
        let levels: Vec<layout::Level> = self.levels.iter().map(row).collect();
        (levels, pieces)
    }

    fn route_rows(&self) -> (Vec<layout::Route>, Vec<u32>) {
        let Topology::Routes(routes) = &self.topology else { return (Vec::new(), Vec::new()) };
        let mut links = Vec::new();
        let row = |route: &crate::machine::Route| {
            let first_link = links.len() as u32;
            links.extend(&route.links);
            let key = u64::from(route.from) << 32 | u64::from(route.to);
            layout::Route { key, first_link, links: route.links.len() as u32 }
        };
        let rows = routes.iter().map(row).collect();
        (rows, links)
    }

    /// The most links that compete on a path; with SMPI's model those of the way back count, too.
    pub fn most_uses(&self) -> u32 {
        let shared = |class: usize| self.classes.get(class).is_some_and(|class| class.policy == Policy::Shared);
        let count = |class: usize, links: u32| if shared(class) { links } else { 0 };
        let one_way = match &self.topology {
            Topology::Flat { backbone, .. } => count(0, 2) + if *backbone { count(1, 1) } else { 0 },
            Topology::FatTree { down, .. } => count(0, 2) + count(1, 2 * (down.len() as u32 - 1)),
            Topology::Torus { size, .. } => count(0, 2) + count(1, size.iter().map(|n| n / 2).sum()),
            Topology::Dragonfly { .. } => count(0, 2) + count(1, 2) + count(2, 1),
            Topology::Routes(routes) => {
                let on = |route: &crate::machine::Route| {
                    route.links.iter().filter(|link| shared(**link as usize)).count() as u32
                };
                routes.iter().map(on).max().unwrap_or(0)
            }
        };
        if self.model == Model::Smpi { 2 * one_way } else { one_way }
    }

    /// Whether paths find room for their links.
    pub fn paths_fit(&self) -> bool {
        self.most_uses() as usize <= MOST_USES
    }
}

/// The rows on an 8-byte boundary behind what is there.
fn append<T: IntoBytes + Immutable>(bytes: &mut Vec<u8>, rows: &[T]) -> Table {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let offset = bytes.len() as u32;
    bytes.extend_from_slice(rows.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    Table { offset, count: rows.len() as u32 }
}
