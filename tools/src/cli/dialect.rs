//! One letter means different things to different launchers: `-c 4` is four ranks to Open MPI and four CPUs for each to srun. The rest of the
//! line tells whose words they are.

use super::apply as a;
use super::flags::{self, Flag, Group, Takes};
use super::{places, slurm_time, trace_file};
use std::collections::BTreeSet;

/// Whose words a command line is in.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Open MPI's, Hydra's and vmpi's own, which agree enough.
    #[default]
    Mpiexec,
    Srun,
}

/// Options that srun alone has.
const SRUN_ONLY: &[&str] = &[
    "ntasks",
    "nodes",
    "cpus-per-task",
    "mpi",
    "distribution",
    "hint",
    "export",
    "gres",
    "kill-on-bad-exit",
    "unbuffered",
    "partition",
    "account",
    "time",
    "mem",
    "mem-per-cpu",
    "gpus-per-task",
    "overlap",
    "exact",
    "job-name",
    "nodelist",
    "constraint",
    "threads-per-core",
    "pty",
    "ntasks-per-core",
    "ntasks-per-socket",
    "qos",
    "reservation",
    "jobid",
    "multi-prog",
    "container-image",
    "gpus",
    "gpus-per-node",
    "het-group",
    "A",
    "J",
    "p",
    "w",
    "u",
    "C",
    "G",
    "m",
];

use Group::{Anyway, NoEffect, Srun};

/// srun's `--overlap`, which has no value. vmpi's own has one.
static STEPS_OVERLAP: Flag = flags::flag(NoEffect, &["overlap"], Takes::Nothing, "for Slurm", |_, _| Ok(()));

/// What is otherwise in srun's words.
#[rustfmt::skip]
static SRUN: &[Flag] = &[
    flags::flag(Srun, &["c"], Takes::One("K"), "as --cpus-per-task", |l, v| places::cpus_per_rank(l, &v[0])),
    flags::flag(Srun, &["N"], Takes::One("N"), "as --nodes", |l, v| a::nodes(l, &v[0])),
    flags::flag(Srun, &["o", "output"], Takes::One("FILE"), "as --outfile-pattern", |l, v| a::srun_output(l, &v[0])),
    flags::flag(Srun, &["e", "error"], Takes::One("FILE"), "as --errfile-pattern", |l, v| a::srun_error(l, &v[0])),
    flags::flag(Srun, &["x"], Takes::One("NAMES"), "as --exclude", |l, v| a::exclude(l, &v[0])),
    flags::flag(Anyway, &["s"], Takes::Nothing, "as --oversubscribe", |_, _| Ok(())),
    flags::flag(NoEffect, &["d", "q", "S", "r", "B", "T", "W", "profile", "M"], Takes::One("VALUE"), "for Slurm", |_, _| Ok(())),
    flags::flag(NoEffect, &["H", "X", "Z", "E"], Takes::Nothing, "for Slurm", |_, _| Ok(())),
];

/// Options without a value here, where the word behind them is none: Intel's `-trace` and `-gdb`, Open MPI's `-d`.
#[rustfmt::skip]
static ALONE: &[(Flag, fn(&str) -> bool)] = &[
    (flags::flag(NoEffect, &["trace", "t"], Takes::Nothing, "Intel's Trace Collector", |_, _| Ok(())), |word| trace_file(word).is_ok() || slurm_time(word).is_ok()),
    (flags::flag(NoEffect, &["tune"], Takes::Nothing, "Intel's tuned settings", |_, _| Ok(())), |word| !word.starts_with('-')),
    (flags::flag(NoEffect, &["gdb"], Takes::Nothing, "Hydra's", |_, _| a::gdb_of_all()), |word| a::ranks(word).is_ok()),
    (flags::flag(NoEffect, &["d"], Takes::Nothing, "Open MPI's --debug-devel", |_, _| Ok(())), |word| word.parse::<u32>().is_ok()),
    (flags::flag(NoEffect, &["o"], Takes::One("OFFSET"), "ibrun's", |_, _| Ok(())), |word| word.parse::<u32>().is_err()),
];

impl Dialect {
    /// Of a command line that names these options.
    pub fn of(names: &BTreeSet<&str>) -> Dialect {
        let has = |name: &str| names.contains(name);
        let both = |one: &str, others: &[&str]| has(one) && others.iter().any(|other| has(other));
        let srun = SRUN_ONLY.iter().any(|name| has(name))
            // Two numbers of ranks, or two of ranks per node, would be one too many.
            || both("c", &["n", "np"])
            || both("N", &["ppn", "npernode", "ntasks-per-node"]);
        if srun { Dialect::Srun } else { Dialect::Mpiexec }
    }

    /// Is `--overlap` with this word behind it srun's?
    fn is_steps_overlap(self, next: &str) -> bool {
        next.starts_with('-') || (self == Dialect::Srun && a::overlap(next).is_err())
    }

    /// The option with this name; `next` is the word behind it, unless a value is glued to it.
    pub fn named(self, name: &str, dashes: usize, next: Option<&str>) -> Option<&'static Flag> {
        if name == "overlap" && next.is_some_and(|next| self.is_steps_overlap(next)) {
            return Some(&STEPS_OVERLAP);
        }
        if self == Dialect::Srun
            && let Some(flag) = SRUN.iter().find(|flag| flag.names.contains(&name))
        {
            return Some(flag);
        }
        let may_be_alone = dashes == 1 && self != Dialect::Srun;
        let alone = ALONE.iter().find(|(flag, _)| may_be_alone && flag.names.contains(&name));
        match (alone, next) {
            (Some((flag, fits)), Some(next)) if !fits(next) => Some(flag),
            _ => flags::named(name),
        }
    }
}
