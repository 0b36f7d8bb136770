//! Our own description: TOML, documented in docs/guide/src/simulation-machines.md.
//!
//! A key that is not known, a figure without its unit and a figure that makes no sense are refused, with the line and what is allowed.

use crate::machine::{
    Class, HostRun, LEVELS, LevelCost, MOST_DIMENSIONS, MOST_HOSTS, MOST_LINKS, MOST_PLACES, Machine, Model, Piece,
    Policy, Topology,
};
use crate::problem::{Problem, line_of};
use crate::units::{self, Ps};
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, de};
use std::fmt;
use toml::Spanned;

/// A figure in quotes, with its unit.
macro_rules! figure {
    ($name:ident, $of:ty, $parse:path, $says:literal) => {
        #[derive(Copy, Clone)]
        struct $name($of);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($says)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $parse(text).map($name).ok_or_else(|| E::invalid_value(de::Unexpected::Str(text), &self))
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
    };
}

figure!(
    Time,
    Ps,
    units::time,
    "a time with its unit, such as \"1.5us\" or \"300ns\" (ps, ns, us, ms, s; at most 1000 s)"
);
figure!(
    Bandwidth,
    u64,
    units::bandwidth,
    "a bandwidth with its unit, such as \"25GB/s\" or \"100Gb/s\" (k, M, G, T, or Ki and so on; B or b; more than 0)"
);
figure!(Size, u64, units::size, "a size with its unit, such as \"4KiB\" or \"64kB\"");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    source: String,
    model: Option<ModelName>,
    hosts: Spanned<Hosts>,
    #[serde(default)]
    topology: Option<Spanned<TopologyTable>>,
    #[serde(default)]
    links: Option<Spanned<Links>>,
    #[serde(default)]
    level: Option<Spanned<Levels>>,
}

#[derive(Copy, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ModelName {
    LogGp,
    Smpi,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hosts {
    count: Option<Spanned<u32>>,
    sockets: Option<Spanned<u32>>,
    cores: Spanned<u32>,
    speed: Option<Spanned<f64>>,
    poll: Option<Spanned<Time>>,
}

#[derive(Copy, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Flat,
    FatTree,
    Torus,
    Dragonfly,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TopologyTable {
    kind: Kind,
    hop: Option<Spanned<Time>>,
    down: Option<Spanned<Vec<u32>>>,
    up: Option<Spanned<Vec<u32>>>,
    size: Option<Spanned<Vec<u32>>>,
    hosts_per_switch: Option<Spanned<u32>>,
    groups: Option<Spanned<u32>>,
    switches: Option<Spanned<u32>>,
    global_links: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Links {
    host: Option<Spanned<Link>>,
    switch: Option<Spanned<Link>>,
    group: Option<Spanned<Link>>,
    backbone: Option<Spanned<Link>>,
    loopback: Option<Spanned<Link>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    bandwidth: Bandwidth,
    latency: Option<Spanned<Time>>,
    #[serde(default = "yes")]
    shared: bool,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Levels {
    core: Option<Spanned<Cost>>,
    socket: Option<Spanned<Cost>>,
    host: Option<Spanned<Cost>>,
    switch: Option<Spanned<Cost>>,
    group: Option<Spanned<Cost>>,
    system: Option<Spanned<Cost>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cost {
    latency: Time,
    bandwidth: Bandwidth,
    send_overhead: Option<Time>,
    receive_overhead: Option<Time>,
    gap: Option<Time>,
    eager_limit: Option<Size>,
    #[serde(default)]
    sizes: Vec<Spanned<FromSize>>,
}

/// What is other from a size on; what is left out is as for the sizes before.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FromSize {
    from: Size,
    latency: Option<Time>,
    bandwidth: Option<Bandwidth>,
    send_overhead: Option<Time>,
    receive_overhead: Option<Time>,
    gap: Option<Time>,
}

/// Where nothing else is said.
const EAGER_LIMIT: u64 = 8192;
const POLL: Ps = 100_000;

/// The file's text, for lines.
struct Source<'a> {
    text: &'a str,
    file: &'a str,
}

impl Source<'_> {
    fn at<T>(&self, what: &Spanned<T>, says: String) -> Problem {
        Problem::At { file: self.file.into(), line: line_of(self.text, what.span().start), what: says }
    }

    fn whole(&self, what: &str) -> Problem {
        Problem::Whole { file: self.file.into(), what: what.into() }
    }

    /// From `least` to `most`; `none` where the key is missing.
    fn number(
        &self,
        value: Option<&Spanned<u32>>,
        name: &str,
        least: u32,
        most: u32,
        none: u32,
    ) -> Result<u32, Problem> {
        let Some(value) = value else { return Ok(none) };
        let number = *value.get_ref();
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        Err(self.at(value, format!("{name} is {number}; allowed are {least} to {most}")))
    }
}

impl Machine {
    /// # Errors
    /// It is wrong; with the line.
    pub fn from_toml(text: &str, file: &str) -> Result<Machine, Problem> {
        let source = Source { text, file };
        let read: File = toml::from_str(text).map_err(|why| {
            let line = why.span().map_or(1, |span| line_of(text, span.start));
            Problem::At { file: file.into(), line, what: why.message().trim().replace('\n', "; ") }
        })?;
        let model = match read.model {
            Some(ModelName::Smpi) => Model::Smpi,
            _ => Model::LogGp,
        };
        let topology = match &read.topology {
            Some(table) => topology(&source, table)?,
            None => Topology::Flat { half_duplex: false, backbone: false, loopback: false },
        };
        let hosts = hosts(&source, &read.hosts, &topology)?;
        let topology = with_extras(topology, read.links.as_ref().map(Spanned::get_ref));
        let classes = classes(&source, &read, model, &topology, hosts.count)?;
        let hop = read.topology.as_ref().and_then(|table| table.get_ref().hop.as_ref());
        if let (Model::Smpi, Some(hop)) = (model, hop) {
            return Err(source.at(hop, "`hop` is for model = \"loggp\"; with \"smpi\" links have a `latency`".into()));
        }
        let name = if read.name.is_empty() { file.to_string() } else { read.name.clone() };
        let poll = read.hosts.get_ref().poll.as_ref().map_or(POLL, |poll| poll.get_ref().0);
        let machine = Machine {
            name,
            about: read.about.clone(),
            source: read.source.clone(),
            model,
            hosts: vec![hosts],
            topology,
            classes,
            levels: levels(&source, &read, model)?,
            hop_latency: hop.map_or(0, |hop| hop.get_ref().0),
            poll,
            host_names: Vec::new(),
            notes: Vec::new(),
        };
        if machine.paths_fit() {
            return Ok(machine);
        }
        Err(source.whole(&format!(
            "its longest way has {} links that messages compete for, and there is room for {}: give some links `shared = false`",
            machine.most_uses(),
            crate::image::MOST_USES
        )))
    }
}

fn hosts(source: &Source<'_>, table: &Spanned<Hosts>, topology: &Topology) -> Result<HostRun, Problem> {
    let read = table.get_ref();
    let capacity = topology.capacity();
    let room = capacity.map_or(MOST_HOSTS, |capacity| u32::try_from(capacity).unwrap_or(u32::MAX));
    if room > MOST_HOSTS {
        return Err(
            source.at(table, format!("the topology has room for {room} hosts; at most {MOST_HOSTS} are allowed"))
        );
    }
    if read.count.is_none() && capacity.is_none() {
        return Err(source.at(table, "`count` is missing: how many hosts are there?".into()));
    }
    let count = source.number(read.count.as_ref(), "count", 1, room, room)?;
    let sockets = source.number(read.sockets.as_ref(), "sockets", 1, 1024, 1)?;
    let cores = source.number(Some(&read.cores), "cores (of a socket)", 1, 4096, 1)?;
    if u64::from(count) * u64::from(sockets) * u64::from(cores) > u64::from(MOST_PLACES) {
        return Err(source.at(table, format!("more than {MOST_PLACES} cores in all")));
    }
    let speed = read.speed.as_ref().map_or(1.0, |speed| *speed.get_ref());
    if !(1e-3..=1e3).contains(&speed) {
        let says = format!("speed is {speed}; allowed are 0.001 to 1000, against a core of the machine that simulates");
        return Err(source.at(read.speed.as_ref().expect("it is not 1"), says));
    }
    Ok(HostRun { count, sockets, cores, speed_millionths: (speed * 1e6).round() as u64 })
}

fn topology(source: &Source<'_>, table: &Spanned<TopologyTable>) -> Result<Topology, Problem> {
    let read = table.get_ref();
    let (name, allowed): (&str, &[&str]) = match read.kind {
        Kind::Flat => ("flat", &[]),
        Kind::FatTree => ("fat-tree", &["down", "up"]),
        Kind::Torus => ("torus", &["size", "hosts_per_switch"]),
        Kind::Dragonfly => ("dragonfly", &["groups", "switches", "hosts_per_switch", "global_links"]),
    };
    let given = [
        ("down", read.down.as_ref().map(Spanned::span)),
        ("up", read.up.as_ref().map(Spanned::span)),
        ("size", read.size.as_ref().map(Spanned::span)),
        ("hosts_per_switch", read.hosts_per_switch.as_ref().map(Spanned::span)),
        ("groups", read.groups.as_ref().map(Spanned::span)),
        ("switches", read.switches.as_ref().map(Spanned::span)),
        ("global_links", read.global_links.as_ref().map(Spanned::span)),
    ];
    for (key, span) in given {
        match span {
            Some(span) if !allowed.contains(&key) => {
                let all: Vec<String> = ["kind", "hop"].iter().chain(allowed).map(|key| format!("`{key}`")).collect();
                let what = format!("`{key}` does not belong to kind = \"{name}\"; allowed are {}", all.join(", "));
                return Err(Problem::At { file: source.file.into(), line: line_of(source.text, span.start), what });
            }
            None if allowed.contains(&key) && key != "hosts_per_switch" => {
                return Err(source.at(table, format!("kind = \"{name}\" needs `{key}`")));
            }
            _ => {}
        }
    }
    let per_switch = source.number(read.hosts_per_switch.as_ref(), "hosts_per_switch", 1, 4096, 1)?;
    let topology = match (read.kind, &read.down, &read.up, &read.size) {
        (Kind::FatTree, Some(down), Some(up), _) => {
            let (down, up) = (list(source, "down", down)?, list(source, "up", up)?);
            if down.len() != up.len() {
                let says = format!(
                    "`down` has {} levels and `up` has {}: each level of switches needs both",
                    down.len(),
                    up.len()
                );
                return Err(source.at(table, says));
            }
            Topology::FatTree { down, up }
        }
        (Kind::Torus, _, _, Some(size)) => {
            Topology::Torus { size: list(source, "size", size)?, hosts_per_switch: per_switch }
        }
        (Kind::Dragonfly, ..) => {
            let groups = source.number(read.groups.as_ref(), "groups", 1, MOST_HOSTS, 1)?;
            let switches = source.number(read.switches.as_ref(), "switches (of a group)", 1, 4096, 1)?;
            let global = source.number(read.global_links.as_ref(), "global_links (of a switch)", 0, 4096, 0)?;
            if u64::from(switches) * u64::from(global) + 1 < u64::from(groups) {
                let says = format!(
                    "a group has {switches} x {global} links to other groups, of which there are {}: each needs one",
                    groups - 1
                );
                return Err(source.at(read.global_links.as_ref().expect("it is needed"), says));
            }
            Topology::Dragonfly { groups, switches, hosts_per_switch: per_switch, global_links: global }
        }
        _ => Topology::Flat { half_duplex: false, backbone: false, loopback: false },
    };
    let links = topology.class_counts(0).into_iter().fold(0, u64::saturating_add);
    if links > MOST_LINKS {
        return Err(source.at(table, format!("it has {links} links; at most {MOST_LINKS} are allowed")));
    }
    Ok(topology)
}

fn list(source: &Source<'_>, name: &str, list: &Spanned<Vec<u32>>) -> Result<Vec<u32>, Problem> {
    let numbers = list.get_ref();
    if (1..=MOST_DIMENSIONS).contains(&numbers.len()) && !numbers.iter().any(|n| *n == 0 || *n > MOST_HOSTS) {
        return Ok(numbers.clone());
    }
    Err(source.at(list, format!("`{name}` is a list of 1 to {MOST_DIMENSIONS} numbers from 1 to {MOST_HOSTS}")))
}

/// A flat network may have a backbone and loopbacks.
fn with_extras(topology: Topology, links: Option<&Links>) -> Topology {
    match (topology, links) {
        (Topology::Flat { half_duplex, .. }, Some(links)) => {
            Topology::Flat { half_duplex, backbone: links.backbone.is_some(), loopback: links.loopback.is_some() }
        }
        (topology, _) => topology,
    }
}

/// Links in the topology's order. None at all: LogGP's levels say everything.
fn classes(
    source: &Source<'_>,
    file: &File,
    model: Model,
    topology: &Topology,
    hosts: u32,
) -> Result<Vec<Class>, Problem> {
    let Some(table) = &file.links else {
        return match model {
            Model::LogGp => Ok(Vec::new()),
            Model::Smpi => Err(source.whole("model = \"smpi\" needs `[links.host]`, with `bandwidth` and `latency`")),
        };
    };
    let links = table.get_ref();
    let all = [
        ("host", &links.host),
        ("switch", &links.switch),
        ("group", &links.group),
        ("backbone", &links.backbone),
        ("loopback", &links.loopback),
    ];
    let wanted: &[&str] = match topology {
        Topology::Flat { backbone: true, loopback: true, .. } => &["host", "backbone", "loopback"],
        Topology::Flat { backbone: true, .. } => &["host", "backbone"],
        Topology::Flat { loopback: true, .. } => &["host", "loopback"],
        Topology::Flat { .. } => &["host"],
        Topology::Dragonfly { .. } => &["host", "switch", "group"],
        _ => &["host", "switch"],
    };
    for (name, link) in all {
        match link {
            Some(link) if !wanted.contains(&name) => {
                let says = format!("{} has no links of this kind; it has {}", topology.described(), wanted.join(", "));
                return Err(source.at(link, says));
            }
            Some(link) if name == "loopback" && model == Model::LogGp => {
                return Err(source
                    .at(link, "a loopback is for model = \"smpi\"; with \"loggp\" there is [level.socket]".into()));
            }
            _ => {}
        }
    }
    let mut classes = Vec::new();
    for (name, count) in wanted.iter().zip(topology.class_counts(hosts)) {
        let link = all.iter().find(|(known, _)| known == name).and_then(|(_, link)| link.as_ref());
        let Some(link) = link else {
            // A topology of one switch, or of one group, has none of the others.
            if count == 0 {
                continue;
            }
            return Err(source.at(table, format!("[links.{name}] is missing: {} has such links", topology.described())));
        };
        if count == 0 {
            return Err(source.at(link, format!("{} of these sizes has no such links", topology.described())));
        }
        let read = link.get_ref();
        if let (Model::LogGp, Some(latency)) = (model, &read.latency) {
            let says = "with model = \"loggp\" latencies are those of levels, and of [topology] `hop`; allowed here are `bandwidth`, `shared`";
            return Err(source.at(latency, says.into()));
        }
        classes.push(Class {
            count: u32::try_from(count).unwrap_or(u32::MAX),
            bandwidth: read.bandwidth.0,
            latency: read.latency.as_ref().map_or(0, |latency| latency.get_ref().0),
            policy: if read.shared { Policy::Shared } else { Policy::Free },
        });
    }
    Ok(classes)
}

/// All six; one that is not there costs what the next farther one does within a host, or the next nearer one between hosts.
fn levels(source: &Source<'_>, file: &File, model: Model) -> Result<Vec<LevelCost>, Problem> {
    match (&file.level, model) {
        (None, Model::Smpi) => return Ok(Vec::new()),
        (Some(table), Model::Smpi) => {
            let says = "model = \"smpi\" has no levels: a message costs what its links' latency and bandwidth say";
            return Err(source.at(table, says.into()));
        }
        _ => {}
    }
    let Some(table) = &file.level else {
        return Err(
            source.whole("there is no [level.socket], [level.host] or [level.switch]: what does a message cost?")
        );
    };
    let read = table.get_ref();
    let given = [&read.core, &read.socket, &read.host, &read.switch, &read.group, &read.system];
    let mut costs: Vec<Option<LevelCost>> = Vec::new();
    for cost in given {
        costs.push(cost.as_ref().map(|cost| level_cost(source, cost)).transpose()?);
    }
    let (inside, between) = costs.split_at_mut(3);
    for at in (0..2).rev() {
        inside[at] = inside[at].take().or_else(|| inside[at + 1].clone());
    }
    for at in 1..3 {
        inside[at] = inside[at].take().or_else(|| inside[at - 1].clone());
        between[at] = between[at].take().or_else(|| between[at - 1].clone());
    }
    for at in (0..2).rev() {
        between[at] = between[at].take().or_else(|| between[at + 1].clone());
    }
    let several = file.hosts.get_ref().count.as_ref().is_none_or(|count| *count.get_ref() > 1);
    if inside[0].is_none() {
        return Err(source
            .at(table, "one of [level.core], [level.socket], [level.host] is needed: messages within a host".into()));
    }
    if between[0].is_none() && several {
        let says = "one of [level.switch], [level.group], [level.system] is needed: messages between hosts";
        return Err(source.at(table, says.into()));
    }
    // A single host's messages never cost these.
    let within = inside[2].clone();
    Ok(costs.into_iter().zip(LEVELS).filter_map(|(cost, _)| cost.or_else(|| within.clone())).collect())
}

fn level_cost(source: &Source<'_>, cost: &Spanned<Cost>) -> Result<LevelCost, Problem> {
    let read = cost.get_ref();
    let or_none = |time: Option<Time>| time.map_or(0, |time| time.0);
    let mut pieces = vec![Piece {
        from_bytes: 0,
        latency: read.latency.0,
        send_overhead: or_none(read.send_overhead),
        receive_overhead: or_none(read.receive_overhead),
        gap: or_none(read.gap),
        bandwidth: read.bandwidth.0,
    }];
    for spanned in &read.sizes {
        let (from, before) = (spanned.get_ref(), pieces[pieces.len() - 1]);
        if from.from.0 <= before.from_bytes {
            let says = format!(
                "`sizes` rise: this one begins at {} bytes, the one before at {}",
                from.from.0, before.from_bytes
            );
            return Err(source.at(spanned, says));
        }
        let time = |own: Option<Time>, before: Ps| own.map_or(before, |own| own.0);
        pieces.push(Piece {
            from_bytes: from.from.0,
            latency: time(from.latency, before.latency),
            send_overhead: time(from.send_overhead, before.send_overhead),
            receive_overhead: time(from.receive_overhead, before.receive_overhead),
            gap: time(from.gap, before.gap),
            bandwidth: from.bandwidth.map_or(before.bandwidth, |own| own.0),
        });
    }
    Ok(LevelCost { eager_limit: read.eager_limit.map_or(EAGER_LIMIT, |limit| limit.0), pieces })
}

#[cfg(test)]
mod tests;
