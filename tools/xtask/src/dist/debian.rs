//! Debian packages: vmpi, vmpi-dev (wrappers, headers, modules), vmpi-dbgsym. Put together by dpkg-deb from a tree;
//! debhelper would build once more and move files about, and its rules would be longer than this file.

use super::tarball::gzip;
use super::tree::{Entry, Tree};
use super::{Facts, strip};
use crate::Result;
use crate::shell::{command, output, which};
use std::path::Path;

/// A template of packaging/debian, built in.
macro_rules! debian {
    ($name:literal) => {
        include_str!(concat!("../../../../packaging/debian/", $name))
    };
}

/// Which files need a compiler to be of use.
fn is_dev(path: &str) -> bool {
    let compilers = ["vmpicc", "vmpicxx", "vmpifort", "mpicc", "mpicxx", "mpic++", "mpifort", "mpif90", "mpif77"];
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    match dir {
        "bin" | "lib/vmpi/bin" => compilers.contains(&name),
        "lib/vmpi/standard" => name.ends_with(".so"),
        "share/man/man1" => compilers.contains(&name.trim_end_matches(".1")),
        _ => ["include/", "lib/pkgconfig/", "lib/vmpi/fortran/"].iter().any(|own| path.starts_with(own)),
    }
}

/// Where Debian has it, relative to the root; `None`: not in its packages.
fn place(path: &str) -> Option<String> {
    Some(match path {
        // What Debian's copyright file says.
        "share/doc/vmpi/LICENSE-APACHE" | "share/doc/vmpi/LICENSE-MIT" => return None,
        "share/doc/vmpi/CHANGELOG.md" => "usr/share/doc/vmpi/changelog".into(),
        path => match path.strip_prefix("share/zsh/site-functions/") {
            Some(name) => format!("usr/share/zsh/vendor-completions/{name}"),
            None => format!("usr/{path}"),
        },
    })
}

/// Empty where there is no dpkg-deb.
pub fn packages(tree: &Tree, debug: &Tree, facts: &Facts, room: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    if which("dpkg-deb").is_none() {
        eprintln!("dist: there is no dpkg-deb, so no Debian packages (Fedora has it in the package dpkg)");
        return Ok(Vec::new());
    }
    let (mut vmpi, mut dev) = (
        tree.choose(|path| place(path).filter(|_| !is_dev(path))),
        tree.choose(|path| place(path).filter(|_| is_dev(path))),
    );
    vmpi.put("usr/lib/systemd/user/vmpid.service", Entry::text(debian!("vmpid.service")));
    let copyright = Entry::text(facts.fill(debian!("copyright"))?);
    vmpi.put("usr/share/doc/vmpi/copyright", copyright.clone());
    dev.put("usr/share/doc/vmpi-dev/copyright", copyright.clone());
    // The prefix is known.
    for (_, entry) in dev.0.iter_mut().filter(|(path, _)| path.ends_with(".pc")) {
        *entry = Entry::text(String::from_utf8_lossy(entry.bytes()).replace("${pcfiledir}/../..", "/usr"));
    }
    let symbols = debug_symbols(debug, &copyright, room)?;
    [
        (
            "vmpi",
            vmpi,
            debian!("vmpi.control"),
            &[("postinst", debian!("vmpi.postinst")), ("prerm", debian!("vmpi.prerm"))][..],
        ),
        (
            "vmpi-dev",
            dev,
            debian!("vmpi-dev.control"),
            &[("postinst", debian!("vmpi-dev.postinst")), ("prerm", debian!("vmpi-dev.prerm"))][..],
        ),
        ("vmpi-dbgsym", symbols, debian!("vmpi-dbgsym.control"), &[]),
    ]
    .into_iter()
    .map(|(name, tree, control, scripts)| package(name, squeezed(&tree)?, control, scripts, facts, &room.join(name)))
    .collect()
}

/// By build ID below /usr/lib/debug, where gdb and `vmpictl stacks` look.
fn debug_symbols(debug: &Tree, copyright: &Entry, room: &Path) -> Result<Tree> {
    let mut symbols = Tree::default();
    symbols.put("usr/share/doc/vmpi-dbgsym/copyright", copyright.clone());
    let file = room.with_extension("elf");
    for (path, entry) in &debug.0 {
        std::fs::write(&file, entry.bytes()).map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        let id = strip::build_id(&file)?;
        let (first, rest) = id.split_at_checked(2).ok_or_else(|| format!("{path} has a build ID of {id}"))?;
        symbols.put(format!("usr/lib/debug/.build-id/{first}/{rest}.debug"), entry.clone());
    }
    Ok(symbols)
}

/// Manual pages and the changelog are compressed, as policy 12.1 and 12.7 ask.
pub fn squeezed(tree: &Tree) -> Result<Tree> {
    let mut squeezed = Tree::default();
    for (path, entry) in &tree.0 {
        let zip = path.starts_with("usr/share/man/") || path.ends_with("/changelog");
        match entry {
            Entry::File { bytes, executable } if zip => {
                squeezed.put(format!("{path}.gz"), Entry::File { bytes: gzip(bytes)?, executable: *executable });
            }
            _ => squeezed.put(path.as_str(), entry.clone()),
        }
    }
    Ok(squeezed)
}

fn package(
    name: &str,
    mut tree: Tree,
    control: &str,
    scripts: &[(&str, &str)],
    facts: &Facts,
    room: &Path,
) -> Result<(String, Vec<u8>)> {
    let bytes: usize = tree.0.values().map(|entry| entry.bytes().len().div_ceil(1024) + 1).sum();
    let control = facts.fill(&control.replace("@SIZE@", &bytes.to_string()))?;
    tree.put("DEBIAN/control", Entry::text(control));
    for (script, text) in scripts {
        tree.put(format!("DEBIAN/{script}"), Entry::script(*text));
    }
    let md5 = tree.choose(|path| (!path.starts_with("DEBIAN/")).then(|| path.to_owned()));
    tree.write(room)?;
    let files: Vec<&String> =
        md5.0.iter().filter(|(_, entry)| matches!(entry, Entry::File { .. })).map(|(path, _)| path).collect();
    let sums = output(command("md5sum").args(files).current_dir(room))?;
    crate::shell::write(&room.join("DEBIAN/md5sums"), &sums)?;
    let file = room.with_extension("deb");
    let mut build = command("dpkg-deb");
    // xz: every release reads it, and what is chosen by default differs among them. One thread: cores decide how it cuts.
    build.args(["--root-owner-group", "-Zxz", "--threads-max=1", "--build"]).arg(room).arg(&file);
    output(build.env("SOURCE_DATE_EPOCH", facts.epoch.to_string()))?;
    let bytes = std::fs::read(&file).map_err(|e| format!("cannot read {}: {e}", file.display()))?;
    let _ = std::fs::remove_file(&file);
    Ok((format!("{name}_{}-1_amd64.deb", facts.version), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every file is in one package; what compilers need is apart, and the usual names are in a directory of vmpi's own.
    #[test]
    fn each_file_has_its_package() {
        for (path, dev) in [
            ("bin/vmpirun", false),
            ("bin/vmpicc", true),
            ("lib/vmpi/bin/mpirun", false),
            ("lib/vmpi/bin/mpif90", true),
            ("lib/vmpi/standard/libmpi_abi.so", true),
            ("lib/vmpi/standard/libmpi_abi.so.1", false),
            ("lib/vmpi/openmpi/libmpi.so", false),
            ("lib/vmpi/fortran/mpi.mod", true),
            ("include/vmpi/mpi.h", true),
            ("share/man/man1/vmpicxx.1", true),
            ("share/man/man1/vmpictl.1", false),
        ] {
            assert_eq!(is_dev(path), dev, "{path}");
        }
        assert_eq!(place("bin/vmpirun").unwrap(), "usr/bin/vmpirun");
        assert_eq!(place("share/zsh/site-functions/_vmpirun").unwrap(), "usr/share/zsh/vendor-completions/_vmpirun");
        assert_eq!(place("share/doc/vmpi/LICENSE-MIT"), None);
        let mut tree = Tree::default();
        tree.put("usr/share/man/man1/vmpirun.1", Entry::text("page"));
        tree.put("usr/bin/x", Entry::script("x"));
        let squeezed = squeezed(&tree).unwrap();
        assert_eq!(squeezed.0.keys().collect::<Vec<_>>(), ["usr/bin/x", "usr/share/man/man1/vmpirun.1.gz"]);
    }
}
