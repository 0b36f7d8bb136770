//! Debug information goes into files of its own, by which debuggers name functions and lines of the stripped ones.

use super::tree::{Entry, Tree};
use crate::Result;
use crate::shell::{command, create_dir, output};
use std::path::Path;

/// Strip every ELF file below `stage`; what comes off goes below `debug`, where a debugger looks for it beside the file
/// (`DIR/.debug/NAME.debug`).
pub fn apart(stage: &Path, debug: &Path) -> Result<()> {
    for (path, entry) in &Tree::of(stage)?.0 {
        if !is_elf(entry) {
            continue;
        }
        let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (file, beside) = (stage.join(path), debug.join(dir).join(".debug"));
        if !has_lines(&file)? {
            // The thin libraries: nothing of them would be of use.
            output(command("strip").arg(&file))?;
            continue;
        }
        create_dir(&beside)?;
        let apart = beside.join(format!("{name}.debug"));
        output(
            command("objcopy").args(["--only-keep-debug", "--enable-deterministic-archives"]).arg(&file).arg(&apart),
        )?;
        output(command("strip").args(["--strip-all", "--enable-deterministic-archives"]).arg(&file))?;
        let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
        link.push(&apart);
        output(command("objcopy").arg(link).arg(&file))?;
    }
    Ok(())
}

pub fn is_elf(entry: &Entry) -> bool {
    entry.bytes().starts_with(b"\x7fELF")
}

fn has_lines(file: &Path) -> Result<bool> {
    Ok(output(command("readelf").args(["-SW"]).arg(file))?.contains(" .debug_info "))
}

/// The build ID of an ELF file, as text.
pub fn build_id(file: &Path) -> Result<String> {
    let notes = output(command("readelf").args(["-nW"]).arg(file))?;
    id_in(&notes).map(str::to_owned).ok_or_else(|| format!("{} has no build ID", file.display()))
}

/// In a line of its own, or, with -W, at the end of one.
fn id_in(notes: &str) -> Option<&str> {
    notes.lines().find_map(|line| Some(line.split_once("Build ID: ")?.1.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_in_both_forms() {
        let notes = "\nDisplaying notes found in: .note.gnu.build-id\n  GNU  0x00000014\tNT_GNU_BUILD_ID (bitstring)\t    Build ID: 0af1 \n";
        assert_eq!(id_in(notes), Some("0af1"));
        assert_eq!(id_in("  GNU\n    Build ID: 0af1\n"), Some("0af1"));
        assert_eq!(id_in("  GNU\n"), None);
        let own = std::env::current_exe().unwrap();
        assert!(build_id(&own).unwrap().len() >= 16, "of this very program");
    }
}
