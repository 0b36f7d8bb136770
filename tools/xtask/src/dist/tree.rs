//! What is packed, as one sorted list: paths below the prefix, contents, links. Every package is made from it.

use crate::Result;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    File { bytes: Vec<u8>, executable: bool },
    Link(String),
}

impl Entry {
    pub fn text(text: impl Into<String>) -> Entry {
        Entry::File { bytes: text.into().into_bytes(), executable: false }
    }

    pub fn script(text: impl Into<String>) -> Entry {
        Entry::File { bytes: text.into().into_bytes(), executable: true }
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Entry::File { bytes, .. } => bytes,
            Entry::Link(_) => &[],
        }
    }

    /// As archives say it: nobody's umask is in it.
    pub fn mode(&self) -> u32 {
        match self {
            Entry::File { executable: false, .. } => 0o644,
            Entry::File { executable: true, .. } => 0o755,
            Entry::Link(_) => 0o777,
        }
    }
}

/// Sorted by path, so that archives do not depend on the order in which a directory lists its files.
#[derive(Clone, Debug, Default)]
pub struct Tree(pub BTreeMap<String, Entry>);

impl Tree {
    /// All files and links below `dir`.
    pub fn of(dir: &Path) -> Result<Tree> {
        let mut tree = Tree::default();
        tree.read(dir, "")?;
        Ok(tree)
    }

    fn read(&mut self, dir: &Path, below: &str) -> Result<()> {
        let cannot = |e: std::io::Error| format!("cannot read {}: {e}", dir.display());
        for entry in fs::read_dir(dir).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let name = entry.file_name().into_string().map_err(|name| format!("{name:?} is not UTF-8"))?;
            let (path, kind) = (format!("{below}{name}"), entry.file_type().map_err(cannot)?);
            if kind.is_dir() {
                self.read(&entry.path(), &format!("{path}/"))?;
            } else if kind.is_symlink() {
                let target = fs::read_link(entry.path()).map_err(cannot)?;
                self.0.insert(path, Entry::Link(target.to_string_lossy().into_owned()));
            } else {
                let executable = entry.metadata().map_err(cannot)?.permissions().mode() & 0o100 != 0;
                self.0.insert(path, Entry::File { bytes: fs::read(entry.path()).map_err(cannot)?, executable });
            }
        }
        Ok(())
    }

    pub fn put(&mut self, path: impl Into<String>, entry: Entry) {
        self.0.insert(path.into(), entry);
    }

    /// Those for which `choose` names a path, under that.
    pub fn choose(&self, mut choose: impl FnMut(&str) -> Option<String>) -> Tree {
        Tree(self.0.iter().filter_map(|(path, entry)| Some((choose(path)?, entry.clone()))).collect())
    }

    /// Every directory that an entry lies in, parents first.
    pub fn directories(&self) -> Vec<String> {
        let parents = self.0.keys().flat_map(|path| path.match_indices('/').map(|(at, _)| path[..at].to_owned()));
        parents.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    }

    /// Write it all below `dir`, which is made anew.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let _ = fs::remove_dir_all(dir);
        let cannot = |path: &Path, e: std::io::Error| format!("cannot write {}: {e}", path.display());
        let make = |path: &Path| {
            fs::create_dir_all(path)
                .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)))
                .map_err(|e| cannot(path, e))
        };
        make(dir)?;
        self.directories().iter().try_for_each(|below| make(&dir.join(below)))?;
        for (path, entry) in &self.0 {
            let file = dir.join(path);
            match entry {
                Entry::Link(target) => symlink(target, &file),
                Entry::File { bytes, .. } => fs::write(&file, bytes)
                    .and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(entry.mode()))),
            }
            .map_err(|e| cannot(&file, e))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let dir = std::env::temp_dir().join(format!("vmpi-tree-{}", std::process::id()));
        let mut tree = Tree::default();
        tree.put("lib/b", Entry::text("b"));
        tree.put("bin/a", Entry::script("#!/bin/sh\n"));
        tree.put("lib/a/c", Entry::Link("../b".into()));
        tree.write(&dir).unwrap();
        let read = Tree::of(&dir).unwrap();
        assert_eq!(read.0, tree.0);
        assert_eq!(read.0.keys().collect::<Vec<_>>(), ["bin/a", "lib/a/c", "lib/b"]);
        assert_eq!(read.directories(), ["bin", "lib", "lib/a"]);
        assert_eq!(read.0["bin/a"].mode(), 0o755);
        // Made anew: nothing of another time stays.
        Tree::default().write(&dir).unwrap();
        assert!(Tree::of(&dir).unwrap().0.is_empty());
        fs::remove_dir_all(dir).unwrap();
    }
}
