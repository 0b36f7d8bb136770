//! Packages of Debian and its kin: said before they come, under the names that this release has, and without a service
//! that would run afterwards.

use super::services::Services;
use crate::Result;
use crate::place::target;
use crate::shell::{command, create_dir, output, run, which};
use std::path::PathBuf;

/// Install what is missing of these; names with `|` are the same in different releases, of which the first that there is
/// is taken. Returns those that this release does not have.
///
/// # Errors
/// No apt, no root, or apt-get's own.
pub fn packages(wanted: &[&str]) -> Result<Vec<String>> {
    let missing: Vec<&str> = wanted.iter().filter(|names| !names.split('|').any(is_installed)).copied().collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    if which("apt-get").is_none() {
        return Err(format!(
            "there is no apt-get here. Tests and benchmarks need what Debian calls {}; `cargo xtask demo` and `cargo xtask \
             install` need nothing of it",
            missing.join(", ")
        ));
    }
    if !nix::unistd::geteuid().is_root() {
        return Err(format!("Debian packages are missing, which root installs: apt-get install {}", missing.join(" ")));
    }
    run(command("apt-get").args(["update", "-qq"]))?;
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for names in missing {
        match names.split('|').find(|name| is_offered(name)) {
            Some(name) => known.push(name),
            None => unknown.push(names.replace('|', ", ")),
        }
    }
    if !unknown.is_empty() {
        eprintln!("setup: this release has no {}; what needs it is left out", unknown.join(", no "));
    }
    if known.is_empty() {
        return Ok(unknown);
    }
    // What apt-get would do, in its words: how many, how much to fetch, how much they take.
    let mut ask = command("apt-get");
    ask.args(["install", "--assume-no", "--no-install-recommends"]).args(&known).env("LC_ALL", "C");
    let said = ask.output().map_err(|e| format!("apt-get does not start: {e}"))?;
    let text = String::from_utf8_lossy(&said.stdout);
    let told = |line: &&str| {
        ["newly installed", "Need to get", "additional disk space"].iter().any(|words| line.contains(words))
    };
    eprintln!("setup: installs {}", known.join(" "));
    text.lines().filter(told).for_each(|line| eprintln!("setup: apt-get says: {line}"));
    let services = Services::hold()?;
    let mut install = command("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive").args(["install", "-y", "--no-install-recommends"]);
    let installed = run(install.args(known));
    services.restore()?;
    installed.map(|()| unknown)
}

fn is_installed(package: &str) -> bool {
    output(command("dpkg-query").args(["-W", "-f=${db:Status-Status}", package])).is_ok_and(|s| s == "installed")
}

/// A release has it, or something that provides it.
fn is_offered(package: &str) -> bool {
    let policy = output(command("apt-cache").args(["policy", package]).env("LC_ALL", "C")).unwrap_or_default();
    policy.lines().any(|line| line.trim().strip_prefix("Candidate: ").is_some_and(|version| version != "(none)"))
}

/// The files of a package in target/packages, for what is run and must not be installed: its scripts would make users and
/// enable services.
///
/// # Errors
/// The release does not have it, or it cannot be fetched.
pub fn unpacked(package: &str) -> Result<PathBuf> {
    let dir = target().join("packages").join(package);
    if dir.is_dir() {
        return Ok(dir);
    }
    let fresh = dir.with_extension("new");
    let _ = std::fs::remove_dir_all(&fresh);
    create_dir(&fresh)?;
    let mut download = command("apt-get");
    download.args(["-qq", "-o", "APT::Sandbox::User=root", "download", package]).current_dir(&fresh);
    eprintln!("setup: unpacks {package} below {}, without installing it", target().display());
    run(&mut download)?;
    run(command("sh").args(["-c", "dpkg-deb -x *.deb . && rm *.deb"]).current_dir(&fresh))?;
    std::fs::rename(&fresh, &dir).map_err(|e| format!("cannot make {}: {e}", dir.display()))?;
    Ok(dir)
}
