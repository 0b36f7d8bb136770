//! Are there RDMA devices, and are they to carry the messages?

use super::start::Agent;
use std::fs;
use std::path::Path;
use vmpi_shared::control::env;

const DEVICES: &str = "/sys/class/infiniband";

/// The device that this node's owner has named, else the first with an active port that is real: one made of software is slower than TCP,
/// and used only if asked for.
pub fn device() -> Option<String> {
    let named = std::env::var(env::VERBS_DEVICE).ok().filter(|name| !name.is_empty());
    named.or_else(|| first_of(Path::new(DEVICES)))
}

fn first_of(devices: &Path) -> Option<String> {
    let names = fs::read_dir(devices).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names.into_iter().find(|name| {
        let device = devices.join(name);
        let real =
            fs::canonicalize(&device).is_ok_and(|path| !path.components().any(|part| part.as_os_str() == "virtual"));
        let ports = || fs::read_dir(device.join("ports")).into_iter().flatten().flatten();
        // `4: ACTIVE`
        let active =
            |port: fs::DirEntry| fs::read_to_string(port.path().join("state")).is_ok_and(|s| s.starts_with("4:"));
        real && ports().any(active)
    })
}

/// What `Nodes::fabric` says, and why if that was chosen here.
pub fn choose(wanted: &str, agents: &[Agent]) -> (String, String) {
    let devices = agents.iter().map(|agent| (agent.name.as_str(), agent.facts.rdma.is_some()));
    decide(wanted, devices)
}

fn decide<'a>(wanted: &str, mut devices: impl Iterator<Item = (&'a str, bool)>) -> (String, String) {
    if wanted != "auto" {
        return (wanted.into(), format!("--fabric {wanted}"));
    }
    match devices.find(|(_, has)| !has) {
        Some((name, _)) => ("tcp".into(), format!("node {name} has no active RDMA device")),
        None => ("auto".into(), "all nodes have an active RDMA device".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn real_and_active_devices_count() {
        let base = std::env::temp_dir().join(format!("vmpi-rdma-{}", std::process::id()));
        let class = base.join("class");
        fs::create_dir_all(&class).unwrap();
        let add = |name: &str, place: &str, state: &str| {
            let device = base.join(place).join(name);
            fs::create_dir_all(device.join("ports/1")).unwrap();
            fs::write(device.join("ports/1/state"), state).unwrap();
            symlink(&device, class.join(name)).unwrap();
        };
        assert_eq!(first_of(&class), None);
        add("mlx5_0", "devices/pci", "1: DOWN\n");
        add("a_rxe0", "devices/virtual/infiniband", "4: ACTIVE\n");
        assert_eq!(first_of(&class), None);
        add("mlx5_1", "devices/pci", "4: ACTIVE\n");
        assert_eq!(first_of(&class).as_deref(), Some("mlx5_1"));
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(first_of(&class), None);
    }

    #[test]
    fn all_nodes_must_have_one() {
        let decide = |wanted, devices: &[(&'static str, bool)]| super::decide(wanted, devices.iter().copied());
        assert_eq!(decide("auto", &[("a", true), ("b", true)]).0, "auto");
        let (fabric, why) = decide("auto", &[("a", true), ("b", false)]);
        assert_eq!((fabric.as_str(), why.as_str()), ("tcp", "node b has no active RDMA device"));
        assert_eq!(decide("verbs:rxe0", &[("a", false)]).0, "verbs:rxe0");
    }
}
