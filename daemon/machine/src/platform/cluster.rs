//! `<cluster>`: equal hosts, each with a link of its own, which meet in a router or in a backbone.

use super::attributes::{bandwidth, cores, known, latency, speed, text, word};
use super::{Host, Read, Source, elements, host_runs, machine};
use crate::machine::{Class, MOST_HOSTS, Machine, Policy, Topology};
use roxmltree::Node;

const ATTRIBUTES: &[&str] = &[
    "id",
    "prefix",
    "suffix",
    "radical",
    "speed",
    "core",
    "bw",
    "lat",
    "sharing_policy",
    "bb_bw",
    "bb_lat",
    "bb_sharing_policy",
    "loopback_bw",
    "loopback_lat",
    "router_id",
    "topology",
];

/// `0-15`, `0-3,8,10-11`.
fn radical(text: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last - first >= MOST_HOSTS || all.len() > MOST_HOSTS as usize {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

pub fn read<'a>(source: &Source<'_>, node: Node<'a, 'a>) -> Read<Machine> {
    known(source, node, ATTRIBUTES)?;
    word(source, node, "topology", &["FLAT"])?;
    if let Some(inside) = elements(node).find(|inside| inside.tag_name().name() != "prop") {
        return Err(source.at(inside, "nothing inside a <cluster> is read but <prop>"));
    }
    let numbers = text(source, node, "radical")?;
    let Some(numbers) = radical(numbers) else {
        let says = format!(
            "radical=\"{numbers}\"; allowed are numbers and ranges that rise, as in 0-15 or 0-3,8; at most {MOST_HOSTS} hosts"
        );
        return Err(source.at(node, says));
    };
    let (prefix, suffix) = (text(source, node, "prefix")?, text(source, node, "suffix")?);
    let (speed, cores) = (speed(source, node)?, cores(source, node)?);
    let host = |number: &u32| Host { name: format!("{prefix}{number}{suffix}"), cores, speed };
    let hosts: Vec<Host> = numbers.iter().map(host).collect();
    let runs = host_runs(source, node, &hosts)?;
    let count = hosts.len() as u32;

    // SimGrid shares a cluster's links even where FATPIPE is asked for, with one link for both ways.
    let policy = word(source, node, "sharing_policy", &["SPLITDUPLEX", "SHARED", "FATPIPE"])?;
    let half_duplex = policy != "SPLITDUPLEX";
    let own = Class {
        count: if half_duplex { count } else { 2 * count },
        bandwidth: bandwidth(source, node, "bw")?,
        latency: latency(source, node, "lat", true)?,
        policy: Policy::Shared,
    };
    let mut classes = vec![own];
    let backbone = node.attribute("bb_bw").is_some();
    if backbone {
        let policy = word(source, node, "bb_sharing_policy", &["SHARED", "FATPIPE"])?;
        classes.push(Class {
            count: 1,
            bandwidth: bandwidth(source, node, "bb_bw")?,
            latency: latency(source, node, "bb_lat", false)?,
            policy: if policy == "SHARED" { Policy::Shared } else { Policy::Free },
        });
    } else if node.attribute("bb_lat").or(node.attribute("bb_sharing_policy")).is_some() {
        return Err(source.at(node, "bb_lat or bb_sharing_policy without bb_bw: there is no backbone"));
    }
    let loopback = node.attribute("loopback_bw").is_some();
    if loopback {
        classes.push(Class {
            count,
            bandwidth: bandwidth(source, node, "loopback_bw")?,
            latency: latency(source, node, "loopback_lat", false)?,
            policy: Policy::Free,
        });
    } else if node.attribute("loopback_lat").is_some() {
        return Err(source.at(node, "loopback_lat without loopback_bw: there is no loopback"));
    }
    let names = hosts.into_iter().map(|host| host.name).collect();
    let mut machine = machine(runs, names, Topology::Flat { half_duplex, backbone, loopback }, classes);
    if policy == "FATPIPE" {
        machine.notes.push("sharing_policy=\"FATPIPE\" of a <cluster> is SHARED, as in SimGrid: messages compete for a host's link, both ways together.".into());
    }
    Ok(machine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn radicals() {
        assert_eq!(radical("0-2,8, 10-11"), Some(vec![0, 1, 2, 8, 10, 11]));
        assert_eq!(["", "3-1", "a", "0-99999999", "1-"].map(radical), [const { None }; 5]);
    }
}
