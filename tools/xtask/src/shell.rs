//! Running other programs, and saying which.

use crate::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command in the workspace's top directory.
pub fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(crate::place::top());
    command
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Say what is run, run it, and demand success.
pub fn run(command: &mut Command) -> Result<()> {
    eprintln!("+ {}", shown(command));
    let status = command.status().map_err(|e| format!("{} does not start: {e}", shown(command)))?;
    if status.success() { Ok(()) } else { Err(format!("{} failed: {status}", shown(command))) }
}

/// Run quietly and return standard output; the error holds standard error.
pub fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|e| format!("{} does not start: {e}", shown(command)))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!("{} failed: {}\n{said}", shown(command), output.status))
    }
}

/// The first file of this name on PATH.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file())
}

pub fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

pub fn create_dir(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|e| format!("cannot create {}: {e}", path.display()))
}

/// Copy under a name of its own first, so that a running program keeps its file.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let fresh = to.with_extension("new");
    std::fs::copy(from, &fresh)
        .and_then(|_| std::fs::rename(&fresh, to))
        .map_err(|e| format!("cannot copy {} to {}: {e}", from.display(), to.display()))
}

/// A symbolic link, in the place of what is there.
pub fn link(target: &Path, link: &Path) -> Result<()> {
    let _ = std::fs::remove_file(link);
    std::os::unix::fs::symlink(target, link).map_err(|e| format!("cannot link {}: {e}", link.display()))
}

/// A command as one would type it, but for quoting.
pub fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
