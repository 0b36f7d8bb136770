//! SimGrid's platform files: what clusters use of them. One `<cluster>`, or one `<zone routing="Full">` of hosts, links and routes.
//!
//! Such a machine gets SMPI's model. What is not read is refused with its line, since a part that is left out would change times in silence.

mod attributes;
mod cluster;
#[cfg(test)]
mod tests;
mod zone;

use crate::machine::{HostRun, MOST_HOSTS, MOST_PLACES, Machine, Model, Storage};
use crate::problem::Problem;
use roxmltree::{Document, Node, ParsingOptions};

/// The file that elements are of.
struct Source<'a> {
    file: &'a str,
}

type Read<T> = Result<T, Problem>;

impl Source<'_> {
    fn line(&self, node: Node<'_, '_>) -> usize {
        node.document().text_pos_at(node.range().start).row as usize
    }

    fn at(&self, node: Node<'_, '_>, says: impl std::fmt::Display) -> Problem {
        let what = format!("<{}>: {says}", node.tag_name().name());
        Problem::At { file: self.file.into(), line: self.line(node), what }
    }
}

/// The versions of the format that mean what is read here.
const VERSIONS: [&str; 2] = ["4", "4.1"];

impl Machine {
    /// # Errors
    /// It is no platform, or has parts that are not read; with line and element.
    pub fn from_platform(text: &str, file: &str) -> Read<Machine> {
        let source = Source { file };
        let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
        let document = Document::parse_with_options(text, options).map_err(|why| Problem::At {
            file: file.into(),
            line: why.pos().row as usize,
            what: format!("this is no XML: {why}"),
        })?;
        let root = document.root_element();
        if root.tag_name().name() != "platform" {
            return Err(source.at(root, "a description of SimGrid begins with <platform>; ours are TOML"));
        }
        match root.attribute("version") {
            Some(version) if VERSIONS.contains(&version) => {}
            version => {
                let says = format!("version is {}; read are {}", version.unwrap_or("missing"), VERSIONS.join(" and "));
                return Err(source.at(root, format!("{says} (simgrid_update_xml brings older files up to date)")));
            }
        }
        let mut machine = read(&source, root)?;
        machine.name = file.to_string();
        machine.about = format!("a platform of SimGrid with {} hosts", machine.host_count());
        machine.source = format!("{file}, in SimGrid's format");
        Ok(machine)
    }
}

fn elements<'a>(node: Node<'a, 'a>) -> impl Iterator<Item = Node<'a, 'a>> {
    node.children().filter(Node::is_element)
}

/// What is below <platform>, or below a zone that has only a cluster in it.
fn read<'a>(source: &Source<'_>, parent: Node<'a, 'a>) -> Read<Machine> {
    let mut found: Option<Machine> = None;
    for node in elements(parent) {
        let machine = match node.tag_name().name() {
            "cluster" => cluster::read(source, node)?,
            "zone" if elements(node).next().is_some_and(|first| first.tag_name().name() == "cluster") => {
                attributes::known(source, node, &["id", "routing"])?;
                read(source, node)?
            }
            "zone" => zone::read(source, node)?,
            "config" => return Err(source.at(
                node,
                "settings of SimGrid in a platform are not read: the model is SMPI's with its defaults; take them out",
            )),
            "cabinet" | "peer" => {
                return Err(source.at(
                    node,
                    "not read; allowed are <cluster>, and <zone routing=\"Full\"> with <host>, <link>, <route>",
                ));
            }
            "zoneRoute" | "bypassRoute" | "bypassZoneRoute" => {
                return Err(source.at(
                    node,
                    "several zones joined by routes are not read: one <cluster>, or one <zone routing=\"Full\">",
                ));
            }
            _ => return Err(source.at(node, "not read here; allowed are <cluster> and <zone>")),
        };
        if found.is_some() {
            return Err(source.at(node, "a second cluster or zone: several are not read"));
        }
        found = Some(machine);
    }
    found.ok_or_else(|| source.at(parent, "there is no <cluster> and no <zone> in it"))
}

/// A host as it is written.
struct Host {
    name: String,
    cores: u32,
    /// Flops a second.
    speed: f64,
}

/// Equal hosts together. Speeds count against the first host's, which computes as fast as the machine that simulates.
fn host_runs(source: &Source<'_>, node: Node<'_, '_>, hosts: &[Host]) -> Read<Vec<HostRun>> {
    let places: u64 = hosts.iter().map(|host| u64::from(host.cores)).sum();
    if hosts.is_empty() || hosts.len() > MOST_HOSTS as usize || places > u64::from(MOST_PLACES) {
        let says = format!(
            "{} hosts with {places} cores; allowed are 1 to {MOST_HOSTS} hosts, {MOST_PLACES} cores",
            hosts.len()
        );
        return Err(source.at(node, says));
    }
    let mut runs: Vec<HostRun> = Vec::new();
    for host in hosts {
        let ratio = host.speed / hosts[0].speed * 1e6;
        if !(1.0..1e12).contains(&ratio) {
            return Err(
                source.at(node, format!("host {} is {} times as fast as the first one", host.name, ratio / 1e6))
            );
        }
        let run = HostRun { count: 1, sockets: 1, cores: host.cores, speed_millionths: ratio.round() as u64 };
        match runs.last_mut() {
            Some(last) if (last.cores, last.speed_millionths) == (run.cores, run.speed_millionths) => last.count += 1,
            _ => runs.push(run),
        }
    }
    Ok(runs)
}

/// What all platforms have alike.
fn machine(
    hosts: Vec<HostRun>,
    names: Vec<String>,
    topology: crate::machine::Topology,
    classes: Vec<crate::machine::Class>,
) -> Machine {
    Machine {
        name: String::new(),
        about: String::new(),
        source: String::new(),
        model: Model::Smpi,
        hosts,
        topology,
        classes,
        levels: Vec::new(),
        hop_latency: 0,
        poll: 0,
        storage: Storage::default(),
        host_names: names,
        notes: Vec::new(),
    }
}
