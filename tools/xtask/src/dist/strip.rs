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
    let id = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
    id.map(str::to_owned).ok_or_else(|| format!("{} has no build ID", file.display()))
}
