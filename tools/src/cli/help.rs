//! `vmpirun --help`, and the table of flags as clap sees it (man page, completions).

use super::flags::{FLAGS, Flag, Group, Takes, dashed};

const ABOUT: &str = "Run MPI programs with several ranks per core, each an operating-system process";
const AFTER: &str = "\
-n without -V: V is what fits the cores. -V without -n: V ranks on every core. Both: as few cores as hold n ranks.
Neither: one rank per core. -V auto without -n tries numbers of ranks (1 per core first), with -n numbers of cores (all first), one step a run,
to where idle and hand-off time point, and stays with what was fastest. What follows the program's name is never parsed, except `:` between programs.

Exit code: the first failing rank's, 128 + signal; MPI_Abort's code, never 0; 124 timeout; 125 vmpi's own fault;
126 the program cannot be executed; 127 no such program; 130 and 143 interrupted and terminated; 2 a bad option.

~/.config/vmpi/config.toml (or what VMPI_CONFIG names; empty: none) holds values of options for all runs, by their names: output = \"raw\",
quiet = true. VMPIRUN_ON_DEADLOCK=abort in the environment is as --on-deadlock abort, and wins over the file; the command line wins over both.

MPIEXEC_TIMEOUT=SECONDS in the environment is as --timeout.
OMPI_MPI_THREAD_LEVEL=0..3 (MPIR_CVAR_DEFAULT_THREAD_LEVEL=NAME) in the ranks' environment: the level of threads that MPI_Init asks for.
VMPI_FOREIGN=0 there: a program that another launcher has started (PMI, PMIx) is left alone, as rank 0 of 1.
VMPI_SINGLE_COPY=0 there: large messages go through shared memory, not from process to process.
VMPI_HUGE_PAGES=0 there: no huge pages under large blocks of memory, nor under buffers that large messages use often.
VMPI_MAP_MEMORY=0 there: memory that messages use often is not laid open to the job's other ranks, who would copy without the kernel;
  =1: also memory that is not malloc's.
VMPI_STRONG_PROGRESS=0 there: a rank that computes takes its messages only at its next MPI call; nobody matches for it before.
VMPI_OVERLAP=auto|on|off there: as --overlap, which wins.
VMPI_CHECK=off|cheap|full there: as --check, which wins.
VMPI_UNEXPECTED_BYTES=4G there: memory that the job may use on each node for messages that no receive has asked for; half of what is
  available, by the machine or its control group, if it says nothing.";

/// The text of `vmpirun --help`.
pub fn help_text() -> String {
    let mut text =
        format!("{ABOUT}.\n\nUsage: vmpirun [options] PROGRAM [arguments] [: [options] PROGRAM [arguments]]...\n");
    for group in Group::ALL {
        text.push_str(&format!("\n{}:\n", group.title()));
        for flag in FLAGS.iter().filter(|flag| flag.group == group) {
            let left = spelled(flag);
            if left.len() < 34 && !left.contains('\n') {
                text.push_str(&format!("  {left:<34}{}\n", flag.help));
            } else {
                text.push_str(&format!("  {left}\n{:36}{}\n", "", flag.help));
            }
        }
    }
    text.push('\n');
    text.push_str(AFTER);
    text.push('\n');
    text
}

fn spelled(flag: &Flag) -> String {
    let mut text = String::new();
    let mut width = 0;
    for (i, name) in flag.names.iter().enumerate() {
        let name = if flag.group == Group::Own { dashed(name) } else { format!("-{name}") };
        if i > 0 {
            text.push_str(", ");
        }
        if width + name.len() > 100 {
            text.push_str("\n  ");
            width = 0;
        }
        width += name.len() + 2;
        text.push_str(&name);
    }
    match flag.takes {
        Takes::Nothing => {}
        Takes::One(what) => text.push_str(&format!(" {what}")),
        Takes::Maybe(what) => text.push_str(&format!("[={what}]")),
        Takes::Two(one, two) => text.push_str(&format!(" {one} {two}")),
        Takes::NameValue => text.push_str(" NAME VALUE"),
    }
    text
}

/// vmpirun's flags as a clap command, for the man page and completions only: clap cannot parse this grammar.
pub fn vmpirun_command() -> clap::Command {
    let mut command = clap::Command::new("vmpirun")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(AFTER)
        .disable_help_flag(true)
        .disable_version_flag(true);
    for flag in FLAGS {
        let mut arg = clap::Arg::new(flag.names[0]).help(flag.help).help_heading(flag.group.title());
        let (long, short): (Vec<&str>, Vec<&str>) = flag.names.iter().partition(|name| name.len() > 1);
        if let Some((first, others)) = long.split_first() {
            arg = arg.long(*first).visible_aliases(others.iter().copied());
        }
        let mut letters = short.iter().filter_map(|name| name.chars().next());
        if let Some(first) = letters.next() {
            arg = arg.short(first).visible_short_aliases(letters);
        }
        arg = match flag.takes {
            Takes::Nothing => arg.action(clap::ArgAction::SetTrue),
            Takes::One(what) => complete(arg.value_name(what).num_args(1), what),
            Takes::Maybe(what) => arg.value_name(what).num_args(0..=1).require_equals(true),
            Takes::Two(one, two) => arg.value_names([one, two]).num_args(2),
            Takes::NameValue => arg.value_names(["NAME", "VALUE"]).num_args(2),
        };
        command = command.arg(arg);
    }
    let program = clap::Arg::new("PROGRAM").help("the program and its arguments").num_args(1..).trailing_var_arg(true);
    command.arg(program.value_hint(clap::ValueHint::CommandWithArguments))
}

/// Tell shells what may stand for `what`.
fn complete(arg: clap::Arg, what: &'static str) -> clap::Arg {
    let words: Vec<&'static str> = what.split('|').collect();
    let literal = |word: &&str| word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    match what {
        "FILE" => arg.value_hint(clap::ValueHint::FilePath),
        "DIR" => arg.value_hint(clap::ValueHint::DirPath),
        "CMD" => arg.value_hint(clap::ValueHint::CommandName),
        _ if words.len() > 1 && words.iter().all(literal) => {
            arg.value_parser(clap::builder::PossibleValuesParser::new(words))
        }
        _ => arg,
    }
}
