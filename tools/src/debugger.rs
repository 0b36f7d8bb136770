//! `-tv`, `-debug`: this vmpirun becomes a debugger of parallel programs that runs vmpirun, and finds the ranks by [`crate::mpir`].

use crate::cli::RunOptions;
use crate::failure::{Failure, code};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Debuggers by their names, and what they take before and behind the program to start.
const DEBUGGERS: &[(&str, &[&str], &[&str])] = &[("totalview", &[], &["-a"]), ("ddt", &["--start"], &[])];

/// Become the debugger; returns only if that fails.
///
/// # Errors
/// Exit code 127: none is in PATH.
pub fn run(options: &RunOptions, args: &[String]) -> Result<i32, Failure> {
    let wanted = options.debugger.as_deref().unwrap_or_default();
    let path = std::env::var("PATH").unwrap_or_default();
    let find = |name: &str| path.split(':').map(|dir| PathBuf::from(dir).join(name)).find(|file| file.is_file());
    let known = DEBUGGERS.iter().filter(|(name, ..)| wanted.is_empty() || *name == wanted);
    let found = known.clone().find_map(|(name, before, behind)| Some((find(name)?, *before, *behind)));
    let Some((debugger, before, behind)) = found else {
        let names: Vec<&str> = known.map(|(name, ..)| *name).collect();
        let names = names.join(" or ");
        return Err(Failure::new(
            code::NOT_FOUND,
            format!(
                "there is no {names} in PATH; any debugger that attaches finds the ranks: --gdb RANKS stops them at their start"
            ),
        ));
    };
    let own = std::env::current_exe().map_err(|e| Failure::own(format!("cannot find vmpirun's own place: {e}")))?;
    // The first is vmpirun's, others may be the program's.
    let option = args.iter().position(|arg| ["-tv", "--tv", "-debug", "--debug"].contains(&arg.as_str()));
    let others = args.iter().enumerate().filter(|(at, _)| Some(*at) != option).map(|(_, arg)| arg);
    let error = Command::new(&debugger).args(before).arg(own).args(behind).args(others).exec();
    Err(Failure::own(format!("cannot run {}: {error}", debugger.display())))
}
