//! vmpictl: what the daemons of this user are doing on this node.
//!
//! [`peers`] finds the daemons and the job that a command is about; each other file is a command or two.

mod act;
mod compare;
mod doctor;
mod logs;
mod machine;
mod matrix;
mod metrics;
mod peers;
mod show;
mod top;
mod trace;
mod why;

use crate::cli::{CtlArgs, CtlCommand, MachineCommand, TraceCommand};
use crate::failure::Failure;
use crate::matrix::Form;
use crate::version;
use clap::{CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::io::Write;
use vmpi_shared::control::TraceAsk;
use vmpi_shared::escape;

/// Run vmpictl; returns the exit code.
pub fn main(words: &[OsString]) -> i32 {
    let known = CtlArgs::command().version(version::long()).get_matches_from(words);
    let args = CtlArgs::from_arg_matches(&known).unwrap_or_else(|error| error.exit());
    let done: Result<Output, Failure> = match &args.command {
        CtlCommand::Ps { ranks, format } => show::ps(*ranks, format.json).map(Output::from),
        CtlCommand::Show { job, format } => show::show(job.as_deref(), format.json).map(Output::from),
        CtlCommand::Matrix { job, place: true, output, .. } => matrix::place(job.as_deref(), output.as_deref()),
        CtlCommand::Matrix { job, on, off, csv, svg, png, output, format, .. } => {
            let form = match (csv, svg, png, format.json) {
                (true, ..) => Some(Form::Csv),
                (_, true, ..) => Some(Form::Svg),
                (_, _, true, _) => Some(Form::Png),
                (.., true) => Some(Form::Json),
                _ => None,
            };
            let switch = on.then_some(true).or(off.then_some(false));
            matrix::matrix(job.as_deref(), switch, form, output.as_deref())
        }
        CtlCommand::Trace { job, what } => {
            let (ask, file, format) = match what {
                TraceCommand::Start { format } => (TraceAsk::Start, None, format),
                TraceCommand::Stop { format } => (TraceAsk::Stop, None, format),
                TraceCommand::Export { file, format } => (TraceAsk::Export, Some(file.as_str()), format),
            };
            trace::trace(job, ask, file, format.json)
        }
        CtlCommand::Suspend { job, format } => {
            act::signal(job, libc::SIGSTOP, "suspended", format.json).map(Output::from)
        }
        CtlCommand::Resume { job, format } => act::signal(job, libc::SIGCONT, "resumed", format.json).map(Output::from),
        CtlCommand::Kill { job, format } => act::kill(job, format.json).map(Output::from),
        CtlCommand::Prio { job, nice, format } => act::prio(job, *nice, format.json).map(Output::from),
        CtlCommand::Top { once, interval, sort, filter, format } => {
            top::top(*once, *interval, (sort.as_deref(), filter.as_deref()), format.json).map(Output::from)
        }
        CtlCommand::Doctor { program, format } => doctor::doctor(program.as_deref(), format.json),
        CtlCommand::Metrics { per_rank, format } => metrics::metrics(*per_rank, format.json).map(Output::from),
        CtlCommand::Why { job, dot, format } => why::why(job.as_deref(), *dot, format.json).map(Output::from),
        CtlCommand::Stacks { job, threads, all_frames, format } => {
            why::stacks(job.as_deref(), *threads, *all_frames, format.json).map(Output::from)
        }
        CtlCommand::Compare { a, b, format } => compare::compare(a, b, format.json),
        CtlCommand::Machine { what } => match what {
            MachineCommand::Check { machine, format } => machine::check(machine, format.json).map(Output::from),
            MachineCommand::Measure { output, flags } => machine::measure(output.as_deref(), flags).map(Output::from),
            MachineCommand::List { format } => machine::list(format.json).map(Output::from),
            MachineCommand::Print { name } => machine::print(name).map(Output::from),
        },
        CtlCommand::Logs { job, format } => logs::logs(job.as_deref(), format.json).map(Output::from),
        CtlCommand::Version { format } => show::version(format.json).map(Output::from),
    };
    match done.and_then(|output| print(&output.bytes).map(|()| output.code)) {
        Ok(code) => code,
        Err(why) => {
            complain(&why.sentence);
            why.code
        }
    }
}

fn complain(sentence: &str) {
    let _ = writeln!(std::io::stderr(), "vmpictl: {}", escape::lines(sentence));
}

/// What a command prints, and its exit code.
pub struct Output {
    bytes: Vec<u8>,
    code: i32,
}

impl From<String> for Output {
    fn from(text: String) -> Output {
        Output { bytes: text.into_bytes(), code: 0 }
    }
}

fn print(bytes: &[u8]) -> Result<(), Failure> {
    // A picture is no text.
    let text = std::str::from_utf8(bytes).map(escape::lines);
    match std::io::stdout().write_all(text.as_ref().map_or(bytes, |text| text.as_bytes())) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(1, format!("cannot write to standard output: {e}")))
        }
        _ => Ok(()),
    }
}
