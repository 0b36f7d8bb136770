//! `vmpictl machine`: what a description of a machine says, in words and times.

use crate::failure::Failure;
use crate::table::{Table, bytes};
use serde_json::{Value, json};
use vmpi_machine::{
    BUILT_IN, Class, HostRun, Image, LEVELS, Level, Machine, Model, Policy, Topology, show_bandwidth, show_time,
};

/// Messages whose times are told.
const SIZES: [u64; 3] = [1, 1 << 10, 1 << 20];

/// Explain a machine, or say what is wrong with its file.
pub fn check(name: &str, as_json: bool) -> Result<String, Failure> {
    let machine = Machine::load(name).map_err(|why| Failure::usage(why.to_string()))?;
    let words = machine.image_words();
    let image = Image::from_words(&words)
        .map_err(|why| Failure::own(format!("the image of {name} cannot be read again: {why}")))?;
    let pairs = pairs(&image);
    if as_json {
        return Ok(format!("{:#}\n", document(&machine, &image, &pairs)));
    }
    Ok(format!("{}\n{}", words_of(&machine), table(&machine, &image, &pairs)))
}

/// The built-in machines, a line each.
pub fn list(as_json: bool) -> Result<String, Failure> {
    if !as_json {
        return Ok(vmpi_machine::list());
    }
    let mut machines = Vec::new();
    for known in BUILT_IN {
        let machine = Machine::load(known.name).map_err(|why| Failure::own(why.to_string()))?;
        machines.push(json!({ "name": known.name, "about": machine.about, "hosts": machine.host_count(), "cores": machine.place_count() }));
    }
    Ok(format!("{:#}\n", json!({ "schema_version": 1, "machines": machines })))
}

/// What messages take here, as a machine's file.
pub fn measure(output: Option<&str>, flags: &[String]) -> Result<String, Failure> {
    let text = crate::measure::measure(flags)?;
    let Some(file) = output else { return Ok(text) };
    std::fs::write(file, &text).map_err(|e| Failure::new(1, format!("cannot write {file}: {e}")))?;
    Ok(format!("written to {file}\n"))
}

/// The file that a built-in machine is made of.
pub fn print(name: &str) -> Result<String, Failure> {
    let known = BUILT_IN.iter().find(|known| known.name == name);
    let names = || BUILT_IN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ");
    let missing = || Failure::usage(format!("there is no built-in machine {name}; there are {}", names()));
    known.map(|known| known.text.to_string()).ok_or_else(missing)
}

/// For each level that there is, a pair of places that have it in common: the first place and the next one.
fn pairs(image: &Image<'_>) -> Vec<(Level, u32, u32)> {
    let mut found: Vec<(Level, u32, u32)> = Vec::new();
    // One place of each host but the first, of which all are looked at.
    let (mut to, mut host) = (1, 0);
    while to < image.place_count() && found.len() < LEVELS.len() {
        if host == 0 || image.host_of(to) != host {
            host = image.host_of(to);
            let level = image.level(0, to);
            if !found.iter().any(|(known, ..)| *known == level) {
                found.push((level, 0, to));
            }
        }
        to += 1;
    }
    found.sort_by_key(|(level, ..)| *level);
    found
}

/// Half a round trip, in picoseconds: a large message is announced and asked for, each by one without bytes.
fn half_round_trip(image: &Image<'_>, (_, from, to): (Level, u32, u32), bytes: u64) -> u64 {
    let path = image.path(from, to);
    let whole = |bytes: u64| {
        let cost = image.cost(&path, bytes);
        cost.send_overhead.saturating_add(cost.wire).saturating_add(cost.receive_overhead)
    };
    let is_announced = image.rules().rendezvous_handshake && bytes > image.eager_limit(&path);
    whole(bytes).saturating_add(if is_announced { whole(0).saturating_mul(2) } else { 0 })
}

fn table(machine: &Machine, image: &Image<'_>, pairs: &[(Level, u32, u32)]) -> String {
    if pairs.is_empty() {
        return "There is one core: no message leaves it.\n".into();
    }
    let mut table = Table::new(&["IN COMMON", "CORES", "HOSTS", "LINKS", "SHARED", "EAGER", "1 B", "1 KiB", "1 MiB"]);
    for (level, from, to) in pairs {
        let path = image.path(*from, *to);
        let (from_host, to_host) = (image.host_of(*from), image.host_of(*to));
        let links =
            if from_host == to_host && machine.model == Model::LogGp { 0 } else { image.links_between(*from, *to) };
        let mut row = vec![
            level.name().to_string(),
            format!("{from}, {to}"),
            format!("{}, {}", host_name(machine, from_host), host_name(machine, to_host)),
            links.to_string(),
            path.uses().len().to_string(),
            bytes(image.eager_limit(&path)),
        ];
        row.extend(SIZES.map(|size| show_time(half_round_trip(image, (*level, *from, *to), size))));
        table.row(row);
    }
    let alone = "Half a round trip, if no other message is under way; a message above EAGER waits for its receive.\n";
    format!("{table}{alone}")
}

fn host_name(machine: &Machine, host: u32) -> String {
    machine.host_names.get(host as usize).cloned().unwrap_or_else(|| host.to_string())
}

fn words_of(machine: &Machine) -> String {
    let mut lines = vec![format!("{}: {}", machine.name, machine.about)];
    lines.push(hosts(machine));
    lines.push(network(machine));
    lines.push(match machine.model {
        Model::LogGp => format!(
            "Model loggp: latency, overheads, gap and bandwidth by level and size; looking for a message in vain takes {}.",
            show_time(machine.poll)
        ),
        Model::Smpi => "Model smpi, as SimGrid 3.32 has it by default: factors by size, max-min shares, traffic of acknowledgements; \
             a small message leaves when its receive is posted, and looking for a message in vain takes 100us, then 200us, and so on."
            .into(),
    });
    let storage = machine.storage;
    let (latency, bandwidth) = (show_time(storage.latency), show_bandwidth(storage.bandwidth));
    lines.push(format!("Files of MPI: each access of a rank takes {latency}, and its bytes {bandwidth}."));
    lines.extend(machine.notes.iter().cloned());
    if !machine.source.is_empty() {
        lines.push(format!("Source: {}", machine.source.trim()));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

/// `2 sockets`.
fn count(number: u32, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn hosts(machine: &Machine) -> String {
    let run = |run: &HostRun| {
        let cores = match run.sockets {
            1 => count(run.cores, "core"),
            sockets => format!("{} of {}", count(sockets, "socket"), count(run.cores, "core")),
        };
        let speed = match run.speed_millionths {
            1_000_000 => String::new(),
            millionths => format!(" ({} times as fast)", millionths as f64 / 1e6),
        };
        format!("{} of {cores}{speed}", count(run.count, "host"))
    };
    const MOST: usize = 4;
    let mut runs: Vec<String> = machine.hosts.iter().take(MOST).map(run).collect();
    if machine.hosts.len() > MOST {
        runs.push(format!("{} more kinds", machine.hosts.len() - MOST));
    }
    let relative = match machine.hosts.iter().all(|run| run.speed_millionths == 1_000_000) {
        true => "each computes as fast as a core here",
        false => "times as fast as a core here where it is said, else as fast",
    };
    format!("{} in all: {}; {relative}.", count(machine.place_count(), "core"), runs.join(", "))
}

fn network(machine: &Machine) -> String {
    let list = |numbers: &[u32]| numbers.iter().map(u32::to_string).collect::<Vec<_>>();
    let shape = match &machine.topology {
        Topology::Flat { .. } if machine.host_count() == 1 && machine.classes.is_empty() => {
            return "No network.".into();
        }
        Topology::Flat { backbone: true, .. } => "Flat: all hosts meet in a backbone".to_string(),
        Topology::Flat { .. } => "Flat: all hosts meet in one switch".to_string(),
        Topology::FatTree { down, up } => format!(
            "Fat tree of {}: {} below each from the hosts up, {} up",
            count(down.len() as u32, "level"),
            list(down).join(", "),
            list(up).join(", ")
        ),
        Topology::Torus { size, hosts_per_switch } => {
            format!("Torus of {} switches with {} each", list(size).join(" x "), count(*hosts_per_switch, "host"))
        }
        Topology::Dragonfly { groups, switches, hosts_per_switch, global_links } => format!(
            "Dragonfly of {} of {} with {} each; a switch has {} to other groups",
            count(*groups, "group"),
            count(*switches, "switch").replace("switchs", "switches"),
            count(*hosts_per_switch, "host"),
            count(*global_links, "link")
        ),
        Topology::Routes(routes) => format!("A route for each pair of hosts: {} over", routes.len()),
    };
    let links = match &machine.topology {
        Topology::Routes(_) => format!(" {}", count(machine.link_count() - 1, "link")),
        _ if machine.classes.is_empty() => "; messages do not compete for links".into(),
        topology => {
            let kinds: &[&str] = match topology {
                Topology::Flat { backbone: false, .. } => &["of hosts", "within a host"],
                Topology::Flat { .. } => &["of hosts", "of the backbone", "within a host"],
                Topology::Dragonfly { .. } => &["of hosts", "within groups", "between groups"],
                _ => &["of hosts", "between switches"],
            };
            let tell = |(kind, class): (&&str, &Class)| {
                let latency = if class.latency > 0 { format!(", {}", show_time(class.latency)) } else { String::new() };
                let shared =
                    if class.policy == Policy::Shared { "messages compete" } else { "each message has the whole" };
                format!(
                    "{} {kind} of {}{latency} ({shared})",
                    count(class.count, "link"),
                    show_bandwidth(class.bandwidth)
                )
            };
            format!(". {}", kinds.iter().zip(&machine.classes).map(tell).collect::<Vec<_>>().join("; "))
        }
    };
    format!("{shape}{links}.")
}

fn document(machine: &Machine, image: &Image<'_>, pairs: &[(Level, u32, u32)]) -> Value {
    let level = |pair: &(Level, u32, u32)| {
        let (level, from, to) = *pair;
        let path = image.path(from, to);
        let times: Vec<Value> = SIZES
            .iter()
            .map(|bytes| json!({ "bytes": bytes, "half_round_trip_s": half_round_trip(image, *pair, *bytes) as f64 / 1e12 }))
            .collect();
        json!({
            "level": level.name(),
            "from": from,
            "to": to,
            "shared_links": path.uses().len(),
            "eager_limit_bytes": image.eager_limit(&path),
            "messages": times,
        })
    };
    json!({
        "schema_version": 1,
        "name": machine.name,
        "about": machine.about,
        "source": machine.source,
        "model": machine.model.name(),
        "topology": machine.topology.name(),
        "hosts": machine.host_count(),
        "cores": machine.place_count(),
        "links": machine.link_count(),
        "notes": machine.notes,
        "levels": pairs.iter().map(level).collect::<Vec<_>>(),
    })
}
