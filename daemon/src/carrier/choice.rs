//! Which network carries a job's frames.

use std::time::Instant;

use vmpi_fabric::verbs::{Demand, Nic, Plugin, PluginError, plugin};
use vmpi_fabric::{Emulated, Fabric, Model, Tcp, Verbs};
use vmpi_shared::control::{Nodes, env};

/// Are the links of `tcp` to be sealed?
pub fn is_sealed(nodes: &Nodes) -> bool {
    nodes.fabric == "tcp,seal"
}

/// What the launcher has written in `Nodes::fabric`, over the links of `tcp`.
///
/// # Errors
/// In words, what was demanded and cannot be.
pub fn choose(tcp: Tcp, nodes: &Nodes) -> Result<Box<dyn Fabric>, String> {
    match nodes.fabric.split_once(':') {
        None if nodes.fabric == "tcp" || is_sealed(nodes) => Ok(Box::new(tcp)),
        None if nodes.fabric == "auto" => verbs(tcp, nodes, None, Demand::May),
        None if nodes.fabric == "verbs" => verbs(tcp, nodes, None, Demand::Must),
        Some(("verbs", device)) => verbs(tcp, nodes, Some(device), Demand::Must),
        Some(("emulated", model)) => {
            let model = Model::parse(model).map_err(|why| format!("--fabric {why}"))?;
            let emulated = Emulated::new(tcp, model, nodes.names.clone());
            Ok(Box::new(emulated.map_err(|why| format!("--fabric {}: {why}", nodes.fabric))?))
        }
        _ => Err(format!(
            "--fabric: `{}` is not one of tcp, tcp,seal, verbs, emulated:LATENCY_US:MB_PER_S",
            nodes.fabric
        )),
    }
}

fn verbs(tcp: Tcp, nodes: &Nodes, device: Option<&str>, demand: Demand) -> Result<Box<dyn Fabric>, String> {
    let own = std::env::var(env::VERBS_DEVICE).ok().filter(|name| !name.is_empty());
    let nic = open(device.or(own.as_deref())).map_err(|e| e.to_string());
    if let (Err(why), Demand::Must) = (&nic, demand) {
        return Err(format!("--fabric {}: {why}", nodes.fabric));
    }
    let names = nodes.names.clone();
    let verbs = Verbs::new(tcp, nic, demand, nodes.here, names, Instant::now()).map_err(|e| e.to_string())?;
    match (verbs.refusal(), demand) {
        (Some(why), Demand::Must) => Err(format!("--fabric {}: {why}", nodes.fabric)),
        _ => Ok(Box::new(verbs)),
    }
}

fn open(device: Option<&str>) -> Result<Box<dyn Nic>, PluginError> {
    Ok(Box::new(Plugin::load(&plugin::directories())?.open(device)?))
}
