//! A build whose bytes depend on the sources and the compiler, and not on where and when it is done.

use super::Facts;
use crate::Result;
use crate::build::Manner;
use crate::place::top;
use crate::shell::{command, output};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Directories of this machine, and what binaries say instead. Later ones win, so the more special ones come later.
fn renamed() -> Result<Vec<(PathBuf, String)>> {
    let said = |args: &[&str]| output(command("rustc").args(args)).map(|text| text.trim().to_owned());
    let sysroot = PathBuf::from(said(&["--print", "sysroot"])?);
    let commit = said(&["-vV"])?.lines().find_map(|line| line.strip_prefix("commit-hash: ").map(str::to_owned));
    let rust = format!("/rustc/{}", commit.as_deref().unwrap_or("unknown"));
    let mut all = vec![(cargo_home(), "/cargo".to_owned())];
    all.push((top(), format!("/vmpi-{}", env!("CARGO_PKG_VERSION"))));
    // With the component rust-src, rustc names the standard library's files where they lie.
    all.push((sysroot.join("lib/rustlib/src/rust"), rust));
    Ok(all)
}

fn cargo_home() -> PathBuf {
    let home = || std::env::var_os("HOME").map_or_else(PathBuf::new, PathBuf::from).join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(home, PathBuf::from)
}

/// What no package may name.
pub fn places() -> Vec<PathBuf> {
    vec![top(), cargo_home()]
}

/// Into a directory of its own below `room`, so that builds while one works stay as they are.
pub fn manner(room: &Path, facts: &Facts, glibc: Option<&str>) -> Result<Manner> {
    let renamed = renamed()?;
    // Crates with C and assembly in them (ring), through the crate cc.
    let for_c = |(from, to): &(PathBuf, String)| format!("'-ffile-prefix-map={}={to}'", from.display());
    let own = std::env::var("CFLAGS").unwrap_or_default();
    let for_c: Vec<String> = renamed.iter().map(for_c).chain([own]).collect();
    let mut flags: Vec<String> =
        renamed.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect();
    // Debian's gcc asks for it by itself, others may not.
    flags.push("-Clink-arg=-Wl,--build-id=sha1".into());
    let mut environment: Vec<(&'static str, OsString)> = vec![
        // Cargo's own separator: a path may have spaces in it.
        ("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}").into()),
        ("CFLAGS", for_c.join(" ").trim().into()),
        ("CC_SHELL_ESCAPED_FLAGS", "1".into()),
        ("SOURCE_DATE_EPOCH", facts.epoch.to_string().into()),
        // What an earlier build has left decides how incremental compilation cuts code.
        ("CARGO_INCREMENTAL", "0".into()),
        ("CARGO_PROFILE_RELEASE_INCREMENTAL", "false".into()),
        ("LC_ALL", "C.UTF-8".into()),
    ];
    environment.extend(facts.commit.iter().map(|commit| ("VMPI_COMMIT", OsString::from(commit))));
    let target = match glibc {
        None => room.join("build"),
        Some(glibc) => {
            let dir = room.join(format!("build-{glibc}"));
            environment.extend(zig(&dir, glibc)?);
            dir
        }
    };
    Ok(Manner { target, environment })
}

/// zig as the linker, with an older glibc's symbols, called as cargo-zigbuild calls it.
fn zig(dir: &Path, glibc: &str) -> Result<Vec<(&'static str, OsString)>> {
    let zigbuild = crate::shell::which("cargo-zigbuild")
        .ok_or("--glibc needs cargo-zigbuild in PATH: `pip install cargo-zigbuild ziglang`")?;
    crate::shell::create_dir(dir)?;
    let linker = dir.join("linker");
    let text = include_str!("zig-linker.sh").replace("@ZIGBUILD@", &zigbuild.display().to_string());
    crate::shell::write(&linker, &text.replace("@GLIBC@", glibc))?;
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&linker, executable).map_err(|e| format!("{}: {e}", linker.display()))?;
    Ok(vec![("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER", linker.into())])
}
