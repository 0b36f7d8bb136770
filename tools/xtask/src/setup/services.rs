//! Services stay as they are, whatever is installed: none is started meanwhile, and none is enabled afterwards that was not
//! before.

use crate::Result;
use crate::shell::{command, output};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where systemd and sysvinit keep, as links, what is started.
const ENABLED: &[&str] = &["/etc/systemd/system", "/etc/rc2.d", "/etc/rc3.d", "/etc/rc4.d", "/etc/rc5.d", "/etc/rcS.d"];
/// Asked by Debian's packages before they start anything; 101 is no.
const POLICY: &str = "/usr/sbin/policy-rc.d";

/// What was enabled, while nothing may be started.
pub struct Services {
    before: BTreeSet<PathBuf>,
    _no_starts: Option<NoStarts>,
}

impl Services {
    /// # Errors
    /// The policy cannot be written.
    pub fn hold() -> Result<Services> {
        let before = enabled(Path::new("/"));
        Ok(Services { before, _no_starts: NoStarts::begin()? })
    }

    /// Disable what has been enabled since.
    ///
    /// # Errors
    /// Something stays enabled.
    pub fn restore(self) -> Result<()> {
        let added = || enabled(Path::new("/")).difference(&self.before).cloned().collect::<Vec<_>>();
        for link in added() {
            let name = link.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // The packages' own means, so that upgrades know; they are not on every machine.
            let mut disable = if link.starts_with("/etc/systemd") {
                let mut disable = command("deb-systemd-helper");
                disable.args(["disable", &name]);
                disable
            } else {
                let mut disable = command("update-rc.d");
                disable
                    .args([name.trim_start_matches('S').trim_start_matches(|c: char| c.is_ascii_digit()), "disable"]);
                disable
            };
            let _ = output(&mut disable);
            // An alias (dbus-org..., sshd.service) is a link beside the others.
            let _ = std::fs::remove_file(&link);
            eprintln!("setup: the service {name} came with a package and is not enabled");
        }
        let left = added();
        if left.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = left.iter().map(|link| link.display().to_string()).collect();
        Err(format!("installing packages has enabled services that cannot be disabled again: {}", names.join(", ")))
    }
}

/// The links that start something, below `root`.
fn enabled(root: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for dir in ENABLED {
        let dir = root.join(dir.trim_start_matches('/'));
        let starts = |name: &str| !dir.to_string_lossy().contains("/rc") || name.starts_with('S');
        links_below(&dir, &mut |link| {
            if link.file_name().is_some_and(|name| starts(&name.to_string_lossy())) {
                found.insert(link);
            }
        });
    }
    found
}

fn links_below(dir: &Path, each: &mut dyn FnMut(PathBuf)) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => links_below(&entry.path(), each),
            Ok(kind) if kind.is_symlink() => each(entry.path()),
            _ => {}
        }
    }
}

/// Removed when dropped; one that is there already is the machine's own and stays.
struct NoStarts;

impl NoStarts {
    fn begin() -> Result<Option<NoStarts>> {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let mut new = std::fs::OpenOptions::new();
        match new.write(true).create_new(true).mode(0o755).open(POLICY) {
            Ok(mut file) => {
                let guard = NoStarts;
                let written = file
                    .write_all(b"#!/bin/sh\n# cargo xtask setup: nothing is started while it installs.\nexit 101\n");
                written.map(|()| Some(guard)).map_err(|e| format!("cannot write {POLICY}: {e}"))
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(None),
            Err(e) => Err(format!("cannot make {POLICY}: {e}")),
        }
    }
}

impl Drop for NoStarts {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(POLICY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_starts_is_told_from_what_does_not() {
        let root = std::env::temp_dir().join(format!("vmpi-services-{}", std::process::id()));
        let wants = root.join("etc/systemd/system/multi-user.target.wants");
        for dir in [wants.clone(), root.join("etc/rc2.d")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        symlink("/lib/x.service", wants.join("x.service")).unwrap();
        symlink("/lib/x.service", root.join("etc/systemd/system/alias.service")).unwrap();
        std::fs::write(root.join("etc/systemd/system/own.service"), "").unwrap();
        symlink("../init.d/x", root.join("etc/rc2.d/S01x")).unwrap();
        symlink("../init.d/y", root.join("etc/rc2.d/K01y")).unwrap();
        let found = enabled(&root);
        std::fs::remove_dir_all(&root).unwrap();
        let names: Vec<_> = found.iter().map(|l| l.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["S01x", "alias.service", "x.service"]);
    }
}
