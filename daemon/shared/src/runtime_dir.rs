//! The runtime directory: where a user's daemon listens, and who could reach into it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::control::env;

/// The bit of directories in which only the owner of a file may rename it.
const STICKY: u32 = 0o1000;

/// Where the user's daemon lives unless told: $VMPI_RUNTIME_DIR, else $XDG_RUNTIME_DIR/vmpi, else /tmp/vmpi-UID.
pub fn default_path() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let user = nix::unistd::geteuid();
    // It may be another user's, where su or sudo keep the variable.
    let is_own = |dir: &PathBuf| fs::metadata(dir).map_or(true, |meta| meta.uid() == user.as_raw());
    set(env::RUNTIME_DIR)
        .or_else(|| set("XDG_RUNTIME_DIR").filter(is_own).map(|dir| dir.join("vmpi")))
        .unwrap_or_else(|| PathBuf::from(format!("/tmp/vmpi-{user}")))
}

/// Is it a directory of this user that nobody else can enter?
pub fn is_private(dir: &Path) -> bool {
    let user = nix::unistd::geteuid().as_raw();
    fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir() && meta.uid() == user && meta.mode() & 0o077 == 0)
}

/// For root only: a directory on the way to `dir` whose owner, another user, could put something else in its place.
pub fn foreign_parent(dir: &Path) -> Option<(PathBuf, u32)> {
    if !nix::unistd::geteuid().is_root() {
        return None;
    }
    let dir = std::path::absolute(dir).ok()?;
    // Where the existing part of the way leads.
    let real = dir.ancestors().skip(1).find_map(|parent| fs::canonicalize(parent).ok())?;
    let unmapped = unmapped_user();
    let mut ways = dir.ancestors().skip(1).chain(real.ancestors());
    ways.find_map(|parent| {
        let meta = fs::symlink_metadata(parent).ok()?;
        let foreign = meta.uid() != 0 && Some(meta.uid()) != unmapped && meta.mode() & STICKY == 0;
        foreign.then(|| (parent.to_owned(), meta.uid()))
    })
}

/// Whom files of users that have no number in this user namespace seem to belong to: the machine's root among others.
fn unmapped_user() -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    if map.split_whitespace().eq(["0", "0", "4294967295"]) {
        return None;
    }
    fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn a_foreign_parent_is_found_unless_it_is_sticky() {
        if !nix::unistd::geteuid().is_root() {
            println!("skipped: only root can give a directory away");
            return;
        }
        let base = std::env::temp_dir().join(format!("vmpi-parent-{}", std::process::id()));
        let inner = base.join("inner");
        fs::create_dir_all(&inner).unwrap();
        let dir = inner.join("not/yet");
        assert_eq!(foreign_parent(&dir), None);
        chown(&base, Some(4711), None).unwrap();
        assert_eq!(foreign_parent(&dir), Some((base.clone(), 4711)));
        let link = std::env::temp_dir().join(format!("vmpi-parent-link-{}", std::process::id()));
        std::os::unix::fs::symlink(&inner, &link).unwrap();
        assert_eq!(foreign_parent(&link.join("rt")), Some((base.clone(), 4711)), "by a link");
        fs::set_permissions(&base, fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(foreign_parent(&dir), None);
        fs::remove_file(link).unwrap();
        fs::remove_dir_all(base).unwrap();
    }
}
