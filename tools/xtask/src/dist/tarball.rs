//! Archives whose bytes depend on nothing but what is in them: sorted, one time, one owner.

use super::Facts;
use super::tree::{Entry, Tree};
use crate::Result;
use flate2::{Compression, GzBuilder};
use std::path::PathBuf;

const INSTALL: &str = include_str!("../../../../packaging/tarball/install.sh");
const README: &str = include_str!("../../../../packaging/tarball/README");

/// The relocatable tarball: usable where it is unpacked, and with a script that copies it elsewhere.
pub fn relocatable(tree: &Tree, facts: &Facts) -> Result<(String, Vec<u8>)> {
    let mut tree = tree.clone();
    tree.put("install.sh", Entry::script(INSTALL));
    tree.put("README", Entry::text(facts.fill(README)?));
    named(&tree, facts, &format!("vmpi-{}-linux-x86_64", facts.version))
}

/// What was stripped off, to be unpacked over an installation: gdb and `vmpictl stacks` look into `.debug` beside a file.
pub fn debug(tree: &Tree, facts: &Facts) -> Result<(String, Vec<u8>)> {
    named(tree, facts, &format!("vmpi-{}-linux-x86_64-debug", facts.version))
}

fn named(tree: &Tree, facts: &Facts, name: &str) -> Result<(String, Vec<u8>)> {
    let bytes = pack(tree, name, facts.epoch).map_err(|e| format!("cannot pack {name}: {e}"))?;
    Ok((format!("{name}.tar.gz"), gzip(&bytes)?))
}

pub fn pack(tree: &Tree, below: &str, epoch: u64) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    archive.mode(tar::HeaderMode::Deterministic);
    let header = |kind: tar::EntryType, mode: u32, size: usize| {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_mtime(epoch);
        header.set_size(size as u64);
        header.set_uid(0);
        header.set_gid(0);
        header
    };
    let top = |path: &str| PathBuf::from(below).join(path);
    for directory in std::iter::once(String::new()).chain(tree.directories()) {
        archive.append_data(&mut header(tar::EntryType::Directory, 0o755, 0), top(&directory), std::io::empty())?;
    }
    for (path, entry) in &tree.0 {
        match entry {
            Entry::Link(target) => {
                archive.append_link(&mut header(tar::EntryType::Symlink, entry.mode(), 0), top(path), target)?;
            }
            Entry::File { bytes, .. } => {
                let mut header = header(tar::EntryType::Regular, entry.mode(), bytes.len());
                archive.append_data(&mut header, top(path), bytes.as_slice())?;
            }
        }
    }
    archive.into_inner()
}

/// Without a name, a time, or the system that made it.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    use std::io::Write;
    let mut packed = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    packed.write_all(bytes).and_then(|()| packed.finish()).map_err(|e| format!("cannot compress: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// Names, modes, owners and times, in order; and the same bytes whatever the order of making.
    #[test]
    fn a_tarball_is_sorted_and_of_one_time() {
        let entries = [
            ("bin/vmpirun", Entry::script("x")),
            ("lib/a.so", Entry::Link("a.so.1".into())),
            ("lib/a.so.1", Entry::text("y")),
        ];
        let made = |order: &[usize]| {
            let mut tree = Tree::default();
            order.iter().for_each(|at| tree.put(entries[*at].0, entries[*at].1.clone()));
            gzip(&pack(&tree, "vmpi-1", 1_700_000_000).unwrap()).unwrap()
        };
        let bytes = made(&[0, 1, 2]);
        assert_eq!(bytes, made(&[2, 0, 1]));
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            let header = entry.header();
            assert_eq!((header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap()), (1_700_000_000, 0, 0));
            let link = entry.link_name().unwrap().map_or(String::new(), |link| link.display().to_string());
            let name = entry.path().unwrap().display().to_string();
            seen.push(format!("{name} {:o} {text}{link}", header.mode().unwrap()));
        }
        let expected = [
            "vmpi-1/ 755 ",
            "vmpi-1/bin 755 ",
            "vmpi-1/lib 755 ",
            "vmpi-1/bin/vmpirun 755 x",
            "vmpi-1/lib/a.so 777 a.so.1",
            "vmpi-1/lib/a.so.1 644 y",
        ];
        assert_eq!(seen, expected);
    }
}
