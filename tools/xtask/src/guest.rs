//! A guest with a kernel of its own, for the tests that need an RDMA device: Debian's stock kernel and a small initramfs in target/guest. Nothing is
//! installed; qemu boots it (`tests/src/guest.rs`).

use crate::Result;
use crate::place::target;
use crate::shell::{command, create_dir, output, run, write};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// What runs first in the guest.
const INIT: &str = include_str!("guest-init.sh");
/// Modules in the order in which they are loaded, without what they depend on.
const MODULES: &[&str] = &[
    "virtio_pci",
    "9pnet_virtio",
    "9p",
    "crc32c_generic",
    "crc32_generic",
    "crc32c_intel",
    "crc32_pclmul",
    "veth",
    "ib_uverbs",
    "rdma_rxe",
];
/// Where in the package they are; unpacking everything takes 400 MB.
const UNPACKED: &[&str] = &[
    "./boot/vmlinuz-*",
    "*/kernel/arch/x86/crypto/*",
    "*/kernel/crypto/*",
    "*/kernel/drivers/infiniband/*",
    "*/kernel/drivers/net/*.ko*",
    "*/kernel/drivers/virtio/*",
    "*/kernel/fs/*",
    "*/kernel/lib/*",
    "*/kernel/net/*",
];

/// Fetch the kernel and make the initramfs, if that has not been done.
pub fn prepare() -> Result<()> {
    let depends = output(command("apt-cache").args(["depends", "linux-image-amd64"]))?;
    let kernel = depends.lines().find_map(|line| Some(line.split_once("Depends: ")?.1.trim().to_owned()));
    let kernel =
        kernel.filter(|name| name.starts_with("linux-image-")).ok_or("apt knows no kernel: run apt-get update")?;
    let dir = target().join("guest");
    let stamp = dir.join("made.txt");
    let wanted = format!("{kernel}\n{MODULES:?}\n{INIT}");
    if fs::read_to_string(&stamp).is_ok_and(|have| have == wanted) {
        return Ok(());
    }
    let work = dir.join("unpacked");
    let _ = fs::remove_dir_all(&work);
    create_dir(&work)?;
    let mut download = command("apt-get");
    download.args(["-qq", "-o", "APT::Sandbox::User=root", "download", &kernel, "busybox-static"]);
    run(download.current_dir(&work))?;
    let package = |name: &str| {
        let files = files_below(&work).into_iter();
        let starts = |path: &PathBuf| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name));
        files.into_iter().find(starts).ok_or(format!("apt-get has brought no {name}"))
    };
    let (image, busybox) = (package("linux-image-")?, package("busybox-static")?);
    run(command("dpkg-deb").arg("-x").arg(busybox).arg(&work))?;
    let unpack = format!("dpkg-deb --fsys-tarfile {} | tar -x -C {} --wildcards", quoted(&image), quoted(&work));
    run(command("sh").arg("-c").arg(UNPACKED.iter().fold(unpack, |all, part| format!("{all} '{part}'"))))?;

    let files = files_below(&work);
    let modules = Modules::find(&files);
    let mut order = Vec::new();
    for name in MODULES {
        modules.add(name, &work, &mut order)?;
    }
    let mut archive = Archive::default();
    for name in ["dev", "host", "modules", "proc", "sys"] {
        archive.add(name, 0o040_755, &[]);
    }
    archive.add("init", 0o100_755, INIT.as_bytes());
    archive.add("busybox", 0o100_755, &read(&work.join("bin/busybox"))?);
    let names: String = order.iter().map(|(name, _)| format!("{name}.ko\n")).collect();
    archive.add("modules/order", 0o100_644, names.as_bytes());
    for (name, bytes) in &order {
        archive.add(&format!("modules/{name}.ko"), 0o100_644, bytes);
    }
    let vmlinuz = files.iter().find(|path| path.to_string_lossy().contains("/boot/vmlinuz-")).ok_or("no kernel")?;
    fs::copy(vmlinuz, dir.join("vmlinuz")).map_err(|e| format!("{}: {e}", vmlinuz.display()))?;
    fs::write(dir.join("initramfs"), archive.end()).map_err(|e| format!("{}: {e}", dir.display()))?;
    fs::remove_dir_all(&work).map_err(|e| format!("{}: {e}", work.display()))?;
    eprintln!("guest: {kernel} with {} modules", order.len());
    write(&stamp, &wanted)
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_below(&entry.path())),
            _ => found.push(entry.path()),
        }
    }
    found
}

/// The package's modules by name.
struct Modules(BTreeMap<String, PathBuf>);

impl Modules {
    fn find(files: &[PathBuf]) -> Modules {
        let named = |path: &PathBuf| {
            let (name, _) = path.file_name()?.to_str()?.split_once(".ko")?;
            Some((name.replace('-', "_"), path.clone()))
        };
        Modules(files.iter().filter_map(named).collect())
    }

    /// A module behind all that it depends on; one that is not there is built in.
    fn add(&self, name: &str, work: &Path, order: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
        let name = name.replace('-', "_");
        let Some(path) = self.0.get(&name) else { return Ok(()) };
        if order.iter().any(|(known, _)| *known == name) {
            return Ok(());
        }
        let plain = work.join("module.ko");
        let unpacker = match path.extension().and_then(OsStr::to_str) {
            Some("xz") => Some("xz"),
            Some("zst") => Some("zstd"),
            _ => None,
        };
        let bytes = match unpacker {
            Some(program) => {
                run(command("sh").args(["-c", &format!("{program} -dc {} > {}", quoted(path), quoted(&plain))]))?;
                read(&plain)?
            }
            None => read(path)?,
        };
        for needed in depends(&bytes) {
            self.add(&needed, work, order)?;
        }
        order.push((name, bytes));
        Ok(())
    }
}

/// What a module's `.modinfo` says that it needs.
fn depends(module: &[u8]) -> Vec<String> {
    let key = b"\0depends=";
    let Some(at) = module.windows(key.len()).position(|window| window == key) else { return Vec::new() };
    let text = &module[at + key.len()..];
    let text = &text[..text.iter().position(|byte| *byte == 0).unwrap_or(0)];
    String::from_utf8_lossy(text).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// A cpio archive in the form that the kernel reads (newc).
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    files: u32,
}

impl Archive {
    fn add(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.files += 1;
        let fields = [self.files, mode, 0, 0, 1, 0, content.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.add("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read() {
        assert_eq!(depends(b"x\0license=GPL\0depends=ib_core,udp-tunnel\0name=y\0"), ["ib_core", "udp-tunnel"]);
        assert!(depends(b"x\0depends=\0").is_empty() && depends(b"none").is_empty());
    }

    #[test]
    fn an_archive_lists_its_files() {
        let mut archive = Archive::default();
        archive.add("a/b", 0o100_644, b"hello");
        let bytes = archive.end();
        assert!(bytes.len() % 4 == 0 && bytes.starts_with(b"070701"));
        assert_eq!(&bytes[110..113], b"a/b");
        assert_eq!(&bytes[116..121], b"hello");
    }
}
