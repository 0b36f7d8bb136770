//! RDMA devices of this machine: what the kernel says of their ports, and whether vmpi could use them.

use std::fs;
use std::path::Path;
use vmpi_fabric::verbs::{Nic, Plugin, PluginError, plugin};

/// Where the kernel lists them.
pub const DEVICES: &str = "/sys/class/infiniband";

/// A device, as the kernel describes it.
#[derive(Debug, PartialEq, Eq)]
pub struct Device {
    pub name: String,
    /// Made of software (soft-RoCE): used only if asked for.
    pub software: bool,
    /// `port 1 is ACTIVE (Ethernet, 2.5 Gb/sec (1X SDR))`
    pub ports: Vec<String>,
    pub active: bool,
}

/// All devices, by name.
pub fn devices(class: &Path) -> Vec<Device> {
    let names = fs::read_dir(class).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names.into_iter().map(|name| device(class, name)).collect()
}

fn device(class: &Path, name: String) -> Device {
    let at = class.join(&name);
    let software = fs::canonicalize(&at).is_ok_and(|path| path.components().any(|part| part.as_os_str() == "virtual"));
    let entries = fs::read_dir(at.join("ports")).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    let (mut ports, mut active) = (Vec::new(), false);
    for number in numbers {
        let said = |what: &str| {
            let text = fs::read_to_string(at.join(format!("ports/{number}/{what}"))).unwrap_or_default();
            // `4: ACTIVE`
            let text = text.trim();
            text.split_once(": ").map_or(text, |(_, words)| words).to_owned()
        };
        let state = said("state");
        active |= state == "ACTIVE";
        let more: Vec<String> = ["link_layer", "rate"].map(said).into_iter().filter(|word| !word.is_empty()).collect();
        let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
        ports.push(format!("port {number} is {}{more}", if state.is_empty() { "in no known state" } else { &state }));
    }
    Device { name, software, ports, active }
}

/// Vmpi's plugin, as a carrier of this installation would load it.
///
/// # Errors
/// Why it cannot be used.
pub fn load() -> Result<Plugin, PluginError> {
    Plugin::load(&plugin::directories())
}

/// Open a device as `--fabric verbs:NAME` does, or the first of use, as `--fabric verbs` does: which port of it is used.
///
/// # Errors
/// Why it cannot be used.
pub fn try_open(plugin: &Plugin, name: Option<&str>) -> Result<String, PluginError> {
    plugin.open(name).map(|card| card.name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn devices_are_read_as_the_kernel_writes_them() {
        let base = std::env::temp_dir().join(format!("vmpi-doctor-rdma-{}", std::process::id()));
        let class = base.join("class");
        fs::create_dir_all(&class).unwrap();
        let add = |name: &str, place: &str, files: &[(&str, &str)]| {
            let device = base.join(place).join(name);
            for (file, text) in files {
                let path = device.join("ports").join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            fs::create_dir_all(&device).unwrap();
            symlink(&device, class.join(name)).unwrap();
        };
        assert_eq!(devices(&class), []);
        let first = [("1/state", "1: DOWN\n"), ("1/link_layer", "InfiniBand\n"), ("1/rate", "100 Gb/sec (4X EDR)\n")];
        add("mlx5_0", "pci", &[&first[..], &[("2/state", "4: ACTIVE\n")]].concat());
        add("bare", "pci", &[]);
        add("rxe0", "virtual/infiniband", &[("1/state", "2: INIT\n"), ("1/link_layer", "Ethernet\n")]);
        let words = |device: &Device| (device.name.clone(), device.software, device.active, device.ports.join("; "));
        let found: Vec<_> = devices(&class).iter().map(words).collect();
        let both = "port 1 is DOWN (InfiniBand, 100 Gb/sec (4X EDR)); port 2 is ACTIVE";
        assert_eq!(
            found,
            [
                ("bare".into(), false, false, String::new()),
                ("mlx5_0".into(), false, true, both.into()),
                ("rxe0".into(), true, false, "port 1 is INIT (Ethernet)".to_string()),
            ]
        );
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(devices(&class), []);
    }
}
