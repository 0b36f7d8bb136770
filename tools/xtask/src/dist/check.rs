//! What no package may hold, and what its binaries need.

use super::strip::is_elf;
use super::tree::Tree;
use crate::Result;
use crate::shell::{command, output};
use std::path::{Path, PathBuf};

/// # Errors
/// A file names a directory of the machine that it was built on.
pub fn no_paths_of_the_build(tree: &Tree, places: &[PathBuf]) -> Result<()> {
    for (path, entry) in &tree.0 {
        for place in places.iter().filter(|place| place.components().count() > 1) {
            let name = place.as_os_str().as_encoded_bytes();
            if let Some(at) = find(entry.bytes(), name) {
                let after = entry.bytes()[at..].iter().take(120).take_while(|byte| byte.is_ascii_graphic());
                let after: String = after.map(|byte| char::from(*byte)).collect();
                return Err(format!("{path} names a directory of this machine: {after}"));
            }
        }
    }
    Ok(())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(step) = bytes[from..].iter().position(|byte| *byte == first) {
        if bytes[from + step..].starts_with(wanted) {
            return Some(from + step);
        }
        from += step + 1;
    }
    None
}

/// The oldest glibc that has all symbols which the binaries ask for.
pub fn glibc(stage: &Path, tree: &Tree) -> Result<String> {
    let mut newest = Vec::new();
    for path in tree.0.iter().filter(|(_, entry)| is_elf(entry)).map(|(path, _)| path) {
        let table = output(command("objdump").arg("-T").arg(stage.join(path)))?;
        newest = newest.max(newest_in(&table));
    }
    match newest.is_empty() {
        true => Err("no binary asks glibc for anything".into()),
        false => Ok(newest.iter().map(u32::to_string).collect::<Vec<_>>().join(".")),
    }
}

/// Of symbols that are not defined there. (A weak one is asked for, too: the loader refuses a version that is not there.)
fn newest_in(table: &str) -> Vec<u32> {
    let asked = table.lines().filter(|line| line.contains("*UND*"));
    let versions = asked.filter_map(|line| line.split("GLIBC_").nth(1)?.split([')', ' ']).next());
    let numbers = versions.map(|version| version.split('.').filter_map(|number| number.parse().ok()).collect());
    numbers.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::tree::Entry;
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let table = "0000 DF *UND* 0000 (GLIBC_2.4) read\n0000  w  DF *UND* 0000 (GLIBC_2.17) fork\n\
                     0000 g DF .text 0010 (GLIBC_2.99) own\n0000 DF *UND* 0000 (GCC_3.0) _Unwind_Resume\n";
        assert_eq!(newest_in(table), [2, 17]);
        assert!(newest_in("") < newest_in(table));
    }

    #[test]
    fn a_path_of_the_build_is_named() {
        let mut tree = Tree::default();
        tree.put("bin/x", Entry::text("\0panicked at /home/me/vmpi/src/lib.rs:1\0"));
        let check = |place: &str| no_paths_of_the_build(&tree, &[place.into()]);
        assert_eq!(
            check("/home/me").unwrap_err(),
            "bin/x names a directory of this machine: /home/me/vmpi/src/lib.rs:1"
        );
        // The root of everything is in every path.
        assert!(check("/home/you").is_ok() && check("/").is_ok());
    }
}
