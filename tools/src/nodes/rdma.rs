//! Are there RDMA devices, and are they to carry the messages?

use super::place::Known;
use crate::rdma;
use std::path::Path;
use vmpi_shared::control::env;

/// The device that this node's owner has named, else the first with an active port that is real: one made of software is slower than TCP,
/// and used only if asked for.
pub fn device() -> Option<String> {
    let named = std::env::var(env::VERBS_DEVICE).ok().filter(|name| !name.is_empty());
    named.or_else(|| first_of(rdma::devices(Path::new(rdma::DEVICES))))
}

fn first_of(devices: Vec<rdma::Device>) -> Option<String> {
    devices.into_iter().find(|device| device.active && !device.software).map(|device| device.name)
}

/// What `Nodes::fabric` says, and why if that was chosen here.
pub fn choose(wanted: &str, nodes: &[&Known]) -> (String, String) {
    let devices = nodes.iter().map(|node| (node.name.as_str(), node.facts.rdma.is_some()));
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

    #[test]
    fn real_and_active_devices_count() {
        let device =
            |name: &str, software, active| rdma::Device { name: name.into(), software, ports: Vec::new(), active };
        assert_eq!(first_of(Vec::new()), None);
        assert_eq!(first_of(vec![device("a_rxe0", true, true), device("mlx5_0", false, false)]), None);
        let three = vec![device("a_rxe0", true, true), device("mlx5_0", false, false), device("mlx5_1", false, true)];
        assert_eq!(first_of(three).as_deref(), Some("mlx5_1"));
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
