//! Command lines: vmpirun's table of flags and its parser, vmpictl's commands.
//!
//! vmpirun speaks the dialects of four launchers at once (single-dash long names, two-value flags, `:` between
//! programs), which clap cannot parse; so `flags` is one table, from which the parser, `--help`, the man page and the
//! completions all come; `dialect` has the letters that launchers do not agree about.

mod apply;
mod configfile;
mod ctl;
mod defaults;
mod dialect;
mod finish;
mod flags;
mod help;
mod options;
mod parse;
mod places;
mod starter;
mod timeout;

use apply::{slurm_time, trace_file};

pub use configfile::split_words;
pub use ctl::{CtlArgs, CtlCommand, Format, MachineCommand, TraceCommand, vmpictl_command};
pub use defaults::Defaults;
pub use flags::{FLAGS, Flag, Group, Takes};
pub use help::{help_text, vmpirun_command};
pub use options::{
    AppOptions, EnvMode, EnvSetting, Label, MapBy, OnDeadlock, OutputMode, ReportForm, RunOptions, StdinTo, Tool,
    Universe, VChoice,
};
pub use parse::{Action, Command, parse, parse_with};
pub use places::{BindTo, CpusPerRank, RankPlace, Resource, Slots, named_cpus};
pub use starter::Starter;
pub use timeout::timeout_s;
