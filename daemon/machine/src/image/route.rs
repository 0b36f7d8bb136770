//! Which links lead from one host to another, by arithmetic.

use super::Image;
use super::layout::{self, BACKBONE, HALF_DUPLEX, LOOPBACK};
use crate::machine::{Level, MOST_DIMENSIONS, Model};

/// The digits of a point of a torus.
fn digits(mut point: u32, sizes: &[u32]) -> [u32; MOST_DIMENSIONS] {
    let mut digits = [0; MOST_DIMENSIONS];
    for (digit, size) in digits.iter_mut().zip(sizes) {
        *digit = point % size;
        point /= size;
    }
    digits
}

impl Image<'_> {
    /// Fat tree: `down`; torus: `size`; dragonfly: groups, switches.
    fn sizes(&self) -> &[u32] {
        &self.header.sizes[..self.header.dimensions as usize]
    }

    /// Numbers that divisions and the numbering of links rest on.
    pub(super) fn topology_is_senseless(&self) -> Option<&'static str> {
        let header = self.header;
        if header.dimensions as usize > MOST_DIMENSIONS || self.sizes().contains(&0) || header.hosts_per_switch == 0 {
            return Some("the topology's sizes");
        }
        let product =
            self.sizes().iter().map(|n| u64::from(*n)).fold(u64::from(header.hosts_per_switch), u64::saturating_mul);
        let hosts = u64::from(header.hosts);
        let class = |at: usize| self.classes.get(at).map_or(0, |class| u64::from(class.count));
        let fits = match header.topology {
            layout::topology::FLAT => {
                let (backbone, loopback) = (header.flags & BACKBONE != 0, header.flags & LOOPBACK != 0);
                let per_host = if header.flags & HALF_DUPLEX == 0 { 2 } else { 1 };
                let loopbacks_at = 1 + usize::from(backbone);
                // Without links at all LogGP's levels say everything.
                (self.classes.is_empty() && self.model() == Model::LogGp)
                    || (class(0) >= per_host * hosts
                        && (!backbone || class(1) >= 1)
                        && (!loopback || class(loopbacks_at) >= hosts))
            }
            layout::topology::FAT_TREE => {
                let up = &header.ups[..header.dimensions as usize];
                let counts = || {
                    let (down, up) = (self.sizes().to_vec(), up.to_vec());
                    crate::machine::Topology::FatTree { down, up }.class_counts(header.hosts)
                };
                header.dimensions > 0 && hosts <= product && !up.contains(&0) && self.counts_fit(&counts())
            }
            layout::topology::TORUS => {
                let points = product / u64::from(header.hosts_per_switch);
                header.dimensions > 0
                    && hosts <= product
                    && self.counts_fit(&[2 * hosts, points.saturating_mul(2 * u64::from(header.dimensions))])
            }
            layout::topology::DRAGONFLY => {
                let (groups, switches) = (u64::from(header.sizes[0]), u64::from(header.sizes[1]));
                let global = u64::from(header.ups[0]);
                header.dimensions == 2
                    && hosts <= product
                    && switches.saturating_mul(global) + 1 >= groups
                    && self.counts_fit(&[
                        2 * hosts,
                        groups.saturating_mul(switches).saturating_mul(switches),
                        groups.saturating_mul(switches).saturating_mul(global),
                    ])
            }
            layout::topology::ROUTES => self.routes_fit(),
            _ => false,
        };
        (!fits).then_some("the topology and its links")
    }

    /// Links are as many as the topology numbers, or none at all, where LogGP's levels say everything.
    fn counts_fit(&self, wanted: &[u64]) -> bool {
        let have = |at: usize| self.classes.get(at).map_or(0, |class| u64::from(class.count));
        // A class without links is left out only at the end.
        self.classes.is_empty() && self.model() == Model::LogGp
            || wanted.iter().enumerate().all(|(at, count)| have(at) >= *count)
    }

    fn routes_fit(&self) -> bool {
        let ends_fit = |route: &layout::Route| {
            let (from, to) = (route.key >> 32, route.key & u64::from(u32::MAX));
            from.max(to) < u64::from(self.header.hosts)
        };
        let links_fit = |route: &layout::Route| {
            let first = route.first_link as usize;
            let own = self.route_links.get(first..first.saturating_add(route.links as usize));
            own.is_some_and(|own| own.iter().all(|link| *link < self.header.links))
        };
        self.model() == Model::Smpi
            && self.header.links > 0
            && self.routes.is_sorted_by(|a, b| a.key < b.key)
            && self.routes.iter().all(|route| ends_fit(route) && links_fit(route))
    }

    /// What two different hosts have in common.
    pub(super) fn host_level(&self, from: u32, to: u32) -> Level {
        let per_switch = self.header.hosts_per_switch;
        let (from_switch, to_switch) = (from / per_switch, to / per_switch);
        match self.header.topology {
            layout::topology::FAT_TREE => match self.turn(from, to) {
                0 | 1 => Level::Switch,
                2 => Level::Group,
                _ => Level::System,
            },
            layout::topology::TORUS if from_switch != to_switch => Level::Group,
            layout::topology::DRAGONFLY if from_switch != to_switch => {
                let switches = self.header.sizes[1];
                if from_switch / switches == to_switch / switches { Level::Group } else { Level::System }
            }
            _ => Level::Switch,
        }
    }

    /// The level of a fat tree's switches that joins two hosts.
    fn turn(&self, from: u32, to: u32) -> usize {
        let (mut from, mut to) = (from, to);
        for (level, down) in (1..).zip(self.sizes()) {
            (from, to) = (from / down, to / down);
            if from == to {
                return level;
            }
        }
        self.sizes().len()
    }

    /// Links between switches on the way from one host to another.
    pub(super) fn hops(&self, from: u32, to: u32) -> u32 {
        let per_switch = self.header.hosts_per_switch;
        let (from_switch, to_switch) = (from / per_switch, to / per_switch);
        match self.header.topology {
            layout::topology::FAT_TREE if from != to => 2 * (self.turn(from, to) as u32 - 1),
            layout::topology::TORUS => {
                let sizes = self.sizes();
                let (from, to) = (digits(from_switch, sizes), digits(to_switch, sizes));
                let apart =
                    |((from, to), size): ((&u32, &u32), &u32)| from.abs_diff(*to).min(size - from.abs_diff(*to));
                from.iter().zip(&to).zip(sizes).map(apart).sum()
            }
            layout::topology::DRAGONFLY => {
                let mut hops = 0;
                self.dragonfly(from_switch, to_switch, &mut |_| hops += 1);
                hops
            }
            _ => 0,
        }
    }

    /// All links from one host to another, in order.
    pub(super) fn each_link(&self, from: u32, to: u32, each: &mut impl FnMut(u32)) {
        let header = self.header;
        let per_switch = header.hosts_per_switch;
        match header.topology {
            layout::topology::FLAT => self.flat(from, to, each),
            layout::topology::FAT_TREE => self.fat_tree(from, to, each),
            layout::topology::ROUTES => {
                let key = u64::from(from) << 32 | u64::from(to);
                match self.routes.binary_search_by_key(&key, |route| route.key) {
                    Ok(at) => {
                        let route = self.routes[at];
                        let first = route.first_link as usize;
                        self.route_links[first..first + route.links as usize].iter().for_each(|link| each(*link));
                    }
                    // Only a host's way to itself may be left out.
                    Err(_) => each(header.links - 1),
                }
            }
            topology => {
                let (from_switch, to_switch) = (from / per_switch, to / per_switch);
                each(2 * from);
                if topology == layout::topology::TORUS {
                    self.torus(from_switch, to_switch, each);
                } else {
                    self.dragonfly(from_switch, to_switch, each);
                }
                each(2 * to + 1);
            }
        }
    }

    fn flat(&self, from: u32, to: u32, each: &mut impl FnMut(u32)) {
        let header = self.header;
        let (backbone, half) = (header.flags & BACKBONE != 0, header.flags & HALF_DUPLEX != 0);
        if from == to && header.flags & LOOPBACK != 0 {
            let class = self.classes[1 + usize::from(backbone)];
            return each(class.first + from);
        }
        each(if half { from } else { 2 * from });
        if backbone && from != to {
            each(self.classes[1].first);
        }
        each(if half { to } else { 2 * to + 1 });
    }

    /// Up to the first switch above both, and down again; of parallel ways up the one that the destination's number says (D-mod-k).
    fn fat_tree(&self, from: u32, to: u32, each: &mut impl FnMut(u32)) {
        let (down, up) = (self.sizes(), &self.header.ups);
        let turn = if from == to { 1 } else { self.turn(from, to) };
        // By level: the first cable, and which of the parents.
        let mut first = [0; MOST_DIMENSIONS];
        let mut port = [0; MOST_DIMENSIONS];
        let (mut cables_before, mut spread) = (0, to);
        for level in 0..turn {
            first[level] = cables_before;
            let above: u32 = down[level..].iter().product();
            cables_before += above * up[..=level].iter().product::<u32>();
            (port[level], spread) = (spread % up[level], spread / up[level]);
        }
        // A node's number: where it is from above, then which of the parallel ones, `way`.
        let cable = |host: u32, level: usize| {
            let block: u32 = down[..level].iter().product();
            let (parallel, way) = (0..level).fold((1, 0), |(scale, way), l| (scale * up[l], way + scale * port[l]));
            first[level] + (host / block * parallel + way) * up[level] + port[level]
        };
        (0..turn).for_each(|level| each(2 * cable(from, level)));
        (0..turn).rev().for_each(|level| each(2 * cable(to, level) + 1));
    }

    /// One dimension after the other, each the shorter way, upwards if both are as long.
    fn torus(&self, from: u32, to: u32, each: &mut impl FnMut(u32)) {
        let Some(first) = self.classes.get(1).map(|class| class.first) else { return };
        let sizes = self.sizes();
        let (mut at, to) = (digits(from, sizes), digits(to, sizes));
        let dimensions = sizes.len() as u32;
        let mut point = from;
        let mut stride = 1;
        for (dimension, size) in sizes.iter().enumerate() {
            while at[dimension] != to[dimension] {
                let upwards = (to[dimension] + size - at[dimension]) % size;
                let is_up = upwards <= size - upwards;
                each(first + point * 2 * dimensions + 2 * dimension as u32 + u32::from(!is_up));
                let next = if is_up { (at[dimension] + 1) % size } else { (at[dimension] + size - 1) % size };
                point = point - at[dimension] * stride + next * stride;
                at[dimension] = next;
            }
            stride *= size;
        }
    }

    /// The least way: to the switch with a link to the other group, over it, to the switch. Of parallel links between two groups the one that the destination's number says.
    fn dragonfly(&self, from: u32, to: u32, each: &mut impl FnMut(u32)) {
        let header = self.header;
        let (groups, switches, global) = (header.sizes[0], header.sizes[1], header.ups[0]);
        let class = |at: usize| self.classes.get(at).map_or(0, |class| class.first);
        let (from_group, to_group) = (from / switches, to / switches);
        let within = |group: u32, a: u32, b: u32, each: &mut dyn FnMut(u32)| {
            if a != b {
                each(class(1) + (group * switches + a) * switches + b);
            }
        };
        if from_group == to_group {
            return within(from_group, from % switches, to % switches, each);
        }
        let ports = switches * global;
        let parallel = (ports / (groups - 1)).max(1);
        // Which of a group's ports leads to the other one.
        let port = |here: u32, there: u32| {
            let neighbour = if there < here { there } else { there - 1 };
            neighbour * parallel + to % parallel
        };
        let (out, into) = (port(from_group, to_group), port(to_group, from_group));
        within(from_group, from % switches, out / global, each);
        each(class(2) + from_group * ports + out);
        within(to_group, into / global, to % switches, each);
    }
}
