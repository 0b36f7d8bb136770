//! vmpictl: what the daemons of this user are doing on this node.
//!
//! [`peers`] finds the daemons and the job that a command is about; each other file is a command or two.

mod peers;
mod show;
mod why;

use crate::cli::{CtlArgs, CtlCommand};
use crate::failure::Failure;
use clap::Parser;
use std::io::Write;

/// Run vmpictl; returns the exit code.
pub fn main() -> i32 {
    let args = CtlArgs::parse();
    let done = match &args.command {
        CtlCommand::Ps { ranks, format } => show::ps(*ranks, format.json),
        CtlCommand::Show { job, format } => show::show(job, format.json),
        CtlCommand::Why { job, dot, format } => why::why(job, *dot, format.json),
        CtlCommand::Stacks { job, threads, format } => why::stacks(job, *threads, format.json),
        CtlCommand::Version { format } => show::version(format.json),
    };
    match done.and_then(|text| print(&text)) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("vmpictl: {why}");
            why.code
        }
    }
}

fn print(text: &str) -> Result<(), Failure> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(1, format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
