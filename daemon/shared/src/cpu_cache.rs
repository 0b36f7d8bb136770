//! What the kernel tells of the processors' caches.

use std::fs;

/// What the file `name` says of the cache for data of this level that `cpu` uses (`size`, `shared_cpu_list`); `None` if there is none, or the kernel does not tell.
pub fn property(cpu: u32, level: u32, name: &str) -> Option<String> {
    (0..8).find_map(|index| {
        let read = |name: &str| {
            let text =
                fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}")).ok()?;
            Some(text.trim().to_owned())
        };
        let right = read("level")? == level.to_string() && read("type")? != "Instruction";
        right.then(|| read(name)).flatten()
    })
}

/// Its size.
pub fn bytes(cpu: u32, level: u32) -> Option<u64> {
    size(&property(cpu, level, "size")?)
}

/// The kernel writes `1024K`.
fn size(text: &str) -> Option<u64> {
    text.strip_suffix('K')?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_in_kib() {
        assert_eq!(["1024K", "0K", "1024", "", "K"].map(size), [Some(1 << 20), Some(0), None, None, None]);
        assert_eq!(bytes(0, 9), None, "no processor has so many levels");
    }
}
