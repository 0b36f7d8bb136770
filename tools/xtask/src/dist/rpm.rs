//! An RPM of the same tree, by rpmbuild.

use super::Facts;
use super::debian::squeezed;
use super::tree::Tree;
use crate::Result;
use crate::shell::{command, output, which, write};
use std::path::Path;

const SPEC: &str = include_str!("../../../../packaging/rpm/vmpi.spec");

/// Empty where there is no rpmbuild.
pub fn package(tree: &Tree, facts: &Facts, room: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    if which("rpmbuild").is_none() {
        eprintln!("dist: there is no rpmbuild, so no RPM (Debian: apt-get install rpm; Fedora: dnf install rpm-build)");
        return Ok(Vec::new());
    }
    let tree = squeezed(&tree.choose(|path| Some(format!("usr/{path}"))))?;
    let root = room.join("root");
    tree.write(&root)?;
    let spec = facts.fill(&SPEC.replace("@FILES@", &files(&tree)))?;
    let file = room.join("vmpi.spec");
    write(&file, &spec)?;
    let mut build = command("rpmbuild");
    let defined = |name: &str, value: &str| ["--define".to_owned(), format!("{name} {value}")];
    build.arg("-bb").arg(&file).env("SOURCE_DATE_EPOCH", facts.epoch.to_string());
    build.args(defined("_topdir", &room.join("top").display().to_string()));
    build.args(defined("vmpi_root", &root.display().to_string()));
    // What otherwise tells of this machine and this minute.
    build.args(defined("_buildhost", "localhost")).args(defined("use_source_date_epoch_as_buildtime", "1"));
    build.args(defined("clamp_mtime_to_source_date_epoch", "1")).args(defined("_binary_payload", "w9.xzdio"));
    output(&mut build)?;
    let name = format!("vmpi-{}-1.x86_64.rpm", facts.version);
    let made = room.join("top/RPMS/x86_64").join(&name);
    let bytes = std::fs::read(&made).map_err(|e| format!("rpmbuild made no {}: {e}", made.display()))?;
    Ok(vec![(name, bytes)])
}

/// The list of a spec: every file, and the directories that are vmpi's alone.
fn files(tree: &Tree) -> String {
    let own = tree.directories().into_iter().filter(|dir| dir.contains("/vmpi"));
    let directories = own.map(|dir| format!("%dir /{dir}\n"));
    directories.chain(tree.0.keys().map(|path| format!("\"/{path}\"\n"))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::Entry;
    use super::*;

    #[test]
    fn an_rpm_owns_its_own_directories() {
        let mut tree = Tree::default();
        tree.put("usr/bin/vmpirun", Entry::script("x"));
        tree.put("usr/lib/vmpi/openmpi/libmpi.so.40", Entry::text("x"));
        let expected = "%dir /usr/lib/vmpi\n%dir /usr/lib/vmpi/openmpi\n\"/usr/bin/vmpirun\"\n\"/usr/lib/vmpi/openmpi/libmpi.so.40\"\n";
        assert_eq!(files(&tree), expected);
    }
}
