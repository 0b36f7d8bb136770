//! `<zone routing="Full">`: hosts, links, and a route for each pair.

use super::attributes::{bandwidth, cores, known, latency, speed, text, word};
use super::{Host, Read, Source, elements, host_runs, machine};
use crate::machine::{Class, Machine, Policy, Route, Topology};
use crate::smpi;
use roxmltree::Node;
use std::collections::BTreeMap;

/// A link by its number, and whether it has a number for each way.
#[derive(Copy, Clone)]
struct Link {
    number: u32,
    is_split: bool,
}

#[derive(Default)]
struct Zone<'a> {
    hosts: Vec<Host>,
    by_name: BTreeMap<&'a str, u32>,
    links: BTreeMap<&'a str, Link>,
    classes: Vec<Class>,
    routes: BTreeMap<(u32, u32), Vec<u32>>,
}

pub fn read<'a>(source: &Source<'_>, node: Node<'a, 'a>) -> Read<Machine> {
    known(source, node, &["id", "routing"])?;
    word(source, node, "routing", &["Full"])?;
    if node.attribute("routing").is_none() {
        return Err(source.at(node, "routing is missing; allowed is Full"));
    }
    let mut zone = Zone::default();
    for inside in elements(node) {
        match inside.tag_name().name() {
            "host" => zone.host(source, inside)?,
            "link" => zone.link(source, inside)?,
            "route" => zone.route(source, inside)?,
            "prop" => {}
            _ => return Err(source.at(inside, "not read in a zone; allowed are <host>, <link>, <route>, <prop>")),
        }
    }
    zone.finish(source, node)
}

impl<'a> Zone<'a> {
    fn host(&mut self, source: &Source<'_>, node: Node<'a, 'a>) -> Read<()> {
        known(source, node, &["id", "speed", "core"])?;
        if let Some(inside) = elements(node).find(|inside| inside.tag_name().name() != "prop") {
            return Err(source.at(inside, "nothing inside a <host> is read but <prop>"));
        }
        let name = text(source, node, "id")?;
        let number = self.hosts.len() as u32;
        if self.by_name.insert(name, number).is_some() {
            return Err(source.at(node, format!("a second host {name}")));
        }
        self.hosts.push(Host { name: name.to_string(), cores: cores(source, node)?, speed: speed(source, node)? });
        Ok(())
    }

    fn link(&mut self, source: &Source<'_>, node: Node<'a, 'a>) -> Read<()> {
        known(source, node, &["id", "bandwidth", "latency", "sharing_policy"])?;
        if let Some(inside) = elements(node).find(|inside| inside.tag_name().name() != "prop") {
            return Err(source.at(inside, "nothing inside a <link> is read but <prop>"));
        }
        let name = text(source, node, "id")?;
        // The first is what SimGrid takes where nothing stands, whatever its manual says.
        let policy = word(source, node, "sharing_policy", &["SHARED", "SPLITDUPLEX", "FATPIPE"])?;
        let link = Link { number: self.classes.len() as u32, is_split: policy == "SPLITDUPLEX" };
        let class = Class {
            count: 1,
            bandwidth: bandwidth(source, node, "bandwidth")?,
            latency: latency(source, node, "latency", false)?,
            policy: if policy == "FATPIPE" { Policy::Free } else { Policy::Shared },
        };
        self.classes.extend(std::iter::repeat_n(class, if link.is_split { 2 } else { 1 }));
        if self.links.insert(name, link).is_some() {
            return Err(source.at(node, format!("a second link {name}")));
        }
        Ok(())
    }

    fn route(&mut self, source: &Source<'_>, node: Node<'a, 'a>) -> Read<()> {
        known(source, node, &["src", "dst", "symmetrical"])?;
        let end = |name: &str| {
            let host = text(source, node, name)?;
            let number = self.by_name.get(host).copied();
            number.ok_or_else(|| source.at(node, format!("{name}=\"{host}\": there is no such host above")))
        };
        let (from, to) = (end("src")?, end("dst")?);
        let symmetrical = matches!(word(source, node, "symmetrical", &["YES", "NO", "yes", "no"])?, "YES" | "yes");
        let (mut there, mut back) = (Vec::new(), Vec::new());
        for inside in elements(node) {
            if inside.tag_name().name() != "link_ctn" {
                return Err(source.at(inside, "a <route> is made of <link_ctn>"));
            }
            known(source, inside, &["id", "direction"])?;
            let name = text(source, inside, "id")?;
            let Some(link) = self.links.get(name).copied() else {
                return Err(source.at(inside, format!("id=\"{name}\": there is no such link above")));
            };
            let direction = word(source, inside, "direction", &["NONE", "UP", "DOWN"])?;
            if link.is_split == (direction == "NONE") {
                let says = match link.is_split {
                    true => format!("link {name} is SPLITDUPLEX: direction=\"UP\" or \"DOWN\" is needed"),
                    false => format!("link {name} is not SPLITDUPLEX: it has no direction {direction}"),
                };
                return Err(source.at(inside, says));
            }
            let down = u32::from(direction == "DOWN");
            there.push(link.number + down);
            back.push(link.number + if link.is_split { 1 - down } else { 0 });
        }
        if there.is_empty() {
            return Err(source.at(node, "a route without links"));
        }
        back.reverse();
        let mut add = |from: u32, to: u32, links: Vec<u32>| match self.routes.insert((from, to), links) {
            None => Ok(()),
            Some(_) => {
                let (from, to) = (&self.hosts[from as usize].name, &self.hosts[to as usize].name);
                let says =
                    format!("a second route from {from} to {to}; one counts for both ways unless symmetrical=\"NO\"");
                Err(source.at(node, says))
            }
        };
        add(from, to, there)?;
        if symmetrical && from != to { add(to, from, back) } else { Ok(()) }
    }

    fn finish(mut self, source: &Source<'_>, node: Node<'a, 'a>) -> Read<Machine> {
        let runs = host_runs(source, node, &self.hosts)?;
        let count = self.hosts.len() as u32;
        // As many as there are pairs, so the first gap is near.
        for from in 0..count {
            if let Some(to) = (0..count).find(|to| from != *to && !self.routes.contains_key(&(from, *to))) {
                let (from, to) = (&self.hosts[from as usize].name, &self.hosts[to as usize].name);
                return Err(source.at(node, format!("there is no <route> from {from} to {to}")));
            }
        }
        let loopback = Class { count: 1, bandwidth: smpi::LOOPBACK_BANDWIDTH, latency: 0, policy: Policy::Free };
        self.classes.push(loopback);
        let route = |((from, to), links)| Route { from, to, links };
        let routes: Vec<Route> = self.routes.into_iter().map(route).collect();
        let names = self.hosts.into_iter().map(|host| host.name).collect();
        let machine = machine(runs, names, Topology::Routes(routes), self.classes);
        if machine.paths_fit() {
            return Ok(machine);
        }
        let says = format!("a route has more than {} links that messages compete for", crate::image::MOST_USES / 2);
        Err(source.at(node, says))
    }
}
