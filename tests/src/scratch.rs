//! A runtime directory of a test: fresh, private, gone when the test is over.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const PREFIX: &str = "vmpi-test-";

/// Removed when dropped.
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Socket paths are short (108 bytes), so the directory is not below target/. What tests that were killed left is
    /// removed on this occasion.
    ///
    /// # Panics
    /// If it cannot be made.
    pub fn new(name: &str) -> Scratch {
        let base = std::env::temp_dir();
        sweep(&base);
        let path = base.join(format!("{PREFIX}{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.unwrap_or_else(|e| panic!("cannot create {}: {e}", path.display()));
        Scratch { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Remove the directories of test processes that are dead.
fn sweep(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<i32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_its_test_and_those_of_dead_tests_go_too() {
        let dead = std::env::temp_dir().join(format!("{PREFIX}999999999-dead"));
        fs::create_dir_all(dead.join("below")).unwrap();
        let scratch = Scratch::new("scratch");
        let path = scratch.path().to_owned();
        assert!(path.is_dir() && !dead.exists());
        drop(scratch);
        assert!(!path.exists());
    }
}
