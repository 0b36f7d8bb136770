//! The table of vmpirun's flags: names, values, what they do, what `--help` says, and whose spelling they are.

use super::options::{Label, MapBy};
use super::parse::{Action, Line};
use super::places::{self, Resource};
use super::{apply as a, finish, slurm_time, starter};

/// What follows a flag.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    One(&'static str),
    /// A value only as `--flag=VALUE`.
    Maybe(&'static str),
    Two(&'static str, &'static str),
    /// `NAME VALUE` or `NAME=VALUE`.
    NameValue,
}

impl Takes {
    /// The values in words, for a message.
    pub fn wanted(self) -> String {
        match self {
            Takes::Nothing => "no value".into(),
            Takes::One(what) | Takes::Maybe(what) => format!("a value: {what}"),
            Takes::Two(one, two) => format!("two values: {one} {two}"),
            Takes::NameValue => "a name and a value: NAME VALUE or NAME=VALUE".into(),
        }
    }
}

/// Whose flag it is; `--help` groups by it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Own,
    Standard,
    Hydra,
    OpenMpi,
    Srun,
    /// HPE's PALS and ALPS.
    Cray,
    /// Asked for what is so anyway.
    Anyway,
    /// Accepted from other launchers' command lines, without effect: named when the job starts.
    NoEffect,
}

impl Group {
    pub const ALL: [Group; 8] = [
        Group::Own,
        Group::Standard,
        Group::Hydra,
        Group::OpenMpi,
        Group::Srun,
        Group::Cray,
        Group::Anyway,
        Group::NoEffect,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Group::Own => "vmpi",
            Group::Standard => "MPI standard",
            Group::Hydra => "MPICH (Hydra), Intel MPI",
            Group::OpenMpi => "Open MPI",
            Group::Srun => "srun",
            Group::Cray => "PALS, aprun",
            Group::Anyway => "Accepted, being so anyway",
            Group::NoEffect => "Accepted without effect",
        }
    }
}

/// One flag.
#[derive(Debug)]
pub struct Flag {
    /// Names without dashes, the preferred one first; one dash or two are the same.
    pub names: &'static [&'static str],
    pub takes: Takes,
    pub group: Group,
    pub help: &'static str,
    pub(super) apply: fn(&mut Line, &[String]) -> Result<(), String>,
}

/// The flag with this name (without dashes).
pub fn named(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.names.contains(&name))
}

/// A name as it is best typed: one dash for a letter, two for a word.
pub fn dashed(name: &str) -> String {
    if name.len() == 1 { format!("-{name}") } else { format!("--{name}") }
}

pub(super) const fn flag(
    group: Group,
    names: &'static [&'static str],
    takes: Takes,
    help: &'static str,
    apply: fn(&mut Line, &[String]) -> Result<(), String>,
) -> Flag {
    Flag { names, takes, group, help, apply }
}

use Group::*;
use Takes::*;

/// Every flag of vmpirun.
#[rustfmt::skip]
pub static FLAGS: &[Flag] = &[
    flag(Own, &["V"], One("N|auto"), "ranks per core; without -n: V ranks on every core; without -V: what fits; auto: learnt from earlier runs of the program, which are remembered in the cache directory",
        |l, v| a::set(&mut l.job.v, a::v_choice(&v[0])?)),
    flag(Own, &["cores"], One("LIST"), "the CPUs to use, as 0,2-3; each must be in the affinity mask",
        |l, v| a::set(&mut l.job.cores, a::cores(&v[0])?)),
    flag(Own, &["policy"], One("rr|fifo|lifo|priority|follow"), "which READY rank gets a free core next: rr (in rank order; default), fifo, lifo, priority (whom most ranks wait for), follow (the receiver of what the last one sent)",
        |l, v| a::put(&mut l.job.policy, a::policy(&v[0])?)),
    flag(Own, &["balance"], One("none|rescue|steal|refine"), "whether ranks move from core to core: never (default with --bind-to and over several nodes), one that waits for 2 ms behind one that computes (default), an idle core takes over waiting ranks at once, or measured load moves ranks for good",
        |l, v| a::put(&mut l.job.balance, Some(a::balance(&v[0])?))),
    flag(Own, &["quantum"], One("MS"), "a rank that reaches no scheduling point for MS milliseconds (5000) while others of its core are READY loses the core to time-sharing; 0: never",
        |l, v| a::put(&mut l.job.quantum_ms, a::number(&v[0], "milliseconds")?)),
    flag(Own, &["on-block"], One("release|keep"), "whether a rank asleep in the kernel outside MPI gives up its core",
        |l, v| a::put(&mut l.job.on_block, a::on_block(&v[0])?)),
    flag(Own, &["on-deadlock"], One("report|abort|ignore"), "when all ranks wait in MPI for each other: explain it on stderr (default), also end the job with exit code 123, or let it be",
        |l, v| a::put(&mut l.job.on_deadlock, a::on_deadlock(&v[0])?)),
    flag(Own, &["on-crash"], One("stack|core|gdb|none"), "when a rank dies of a signal, exits in the middle of MPI or ends the job: print its call stack (default), also let it dump core as large as the hard limit allows, keep it as it is for a debugger, or nothing",
        |l, v| a::put(&mut l.job.on_crash, a::on_crash(&v[0])?)),
    flag(Own, &["on-hang"], One("SECONDS"), "when for SECONDS no message has gone or come and no wait in MPI has ended: explain on stderr who waits, sleeps or computes; the job goes on",
        |l, v| a::put(&mut l.job.on_hang_s, a::on_hang(&v[0])?)),
    flag(Own, &["kill-after"], One("SECONDS"), "when the job is told to end, its ranks get SIGTERM, and SIGKILL so long after that: 30 if vmpirun got SIGTERM, so that a checkpoint can be written, else 2; a second signal kills at once",
        |l, v| a::set(&mut l.job.kill_after_s, a::number(&v[0], "seconds")?)),
    flag(Own, &["randomize"], Nothing, "random addresses for each rank (ASLR); by default all ranks lie at the same ones, which makes switching between them cheaper",
        |l, _| a::put(&mut l.job.randomize, true)),
    flag(Own, &["wtime"], One("wall|rank"), "what MPI_Wtime returns: wall-clock time or the rank's own time",
        |l, v| a::put(&mut l.job.wtime, a::wtime(&v[0])?)),
    flag(Own, &["progress"], One("daemon|rank"), "who runs the handshakes of large messages between nodes (no effect on one node)",
        |l, v| a::put(&mut l.job.progress_by_rank, a::progress(&v[0])?)),
    flag(Own, &["overlap"], One("auto|on|off"), "whether MPI_Send, MPI_Recv, MPI_Sendrecv, MPI_Wait, MPI_Waitall and collectives of large messages return before these are over, with their buffers guarded, so that the first touch waits: where it pays, whenever they can, or never (default)",
        |l, v| a::set(&mut l.job.overlap, a::overlap(&v[0])?)),
    flag(Own, &["spare-nodes"], Nothing, "nodes on which no rank starts are kept, for ranks that MPI_Comm_spawn starts (vmpirun -n 1 --host a,b --spare-nodes ./manager)",
        |l, _| a::put(&mut l.job.spare_nodes, true)),
    flag(Own, &["fabric"], One("auto|tcp[,seal]|verbs[:DEV]|emulated:US:MBS"), "what carries messages between nodes: RDMA devices if all nodes have one, else TCP (auto); tcp,seal: encrypted and authenticated; emulated: a stated latency and bandwidth, for experiments on one machine",
        |l, v| a::put(&mut l.job.fabric, a::fabric(&v[0])?)),
    flag(Own, &["output"], One("lines|raw|dir=DIR[,tag]"), "whole lines (default), the ranks' own writes, or DIR/rank.N/stdout and stderr",
        |l, v| a::output(l, &v[0])),
    flag(Own, &["simulate"], One("FILE|NAME|list"), "run the program for real and its time virtually, on the machine that FILE describes or a built-in one (list: which there are): clocks tell what it would take there, each rank on a core of its own",
        |l, v| a::simulate(l, &v[0])),
    flag(Own, &["compute"], One("measured[:SCALE]|none|record:FILE|replay:FILE|instructions:RATE"), "what ranks' own computation takes on the simulated machine: their CPU time here (default), SCALE times that, nothing, their CPU time which is put into FILE, what FILE says, or their instructions at RATE a second",
        |l, v| a::put(&mut l.job.compute, Some(crate::simulate::compute_time(&v[0])?))),
    flag(Own, &["sweep"], One("latency=TIME,...|bandwidth=RATE,...|machine=FILE,...|ranks=N,..."), "simulate the job once for each of these values, and print a table of the times that it would take; with --json a document instead",
        |l, v| a::put(&mut l.job.sweep, Some(crate::sweep::parse(&v[0])?))),
    flag(Own, &["sweep-picture"], One("FILE.svg"), "draw the times of a --sweep into FILE",
        |l, v| a::put(&mut l.job.sweep_picture, Some(crate::sweep::picture_file(&v[0])?))),
    flag(Own, &["collectives"], One("engine|messages"), "how a simulated job does its collectives: the simulation itself plays those that it can, at the times of their messages (barriers; default), or each rank sends and receives the messages of all, which takes longer",
        |l, v| a::put(&mut l.job.by_messages, Some(crate::simulate::by_messages(&v[0])?))),
    flag(Own, &["chaos"], One("SEED[,WHAT...]|A..B[,WHAT...]"), "SEED decides wherever MPI leaves a choice: who runs next (sched), which of several messages or requests is taken (match), how long a message is under way (delay), which standard sends are synchronous (sends), whether a test says not yet (tests); all of it unless WHAT is said. A..B: seed after seed until one fails",
        |l, v| a::set(&mut l.job.chaos, crate::orders::Chaos::parse(&v[0])?)),
    flag(Own, &["record"], One("FILE"), "write to FILE which message each receive and probe from anybody took, and what tests answered",
        |l, v| a::set(&mut l.job.record, v[0].clone())),
    flag(Own, &["replay"], One("FILE"), "decide as the record in FILE says, with any V, also under a debugger",
        |l, v| a::set(&mut l.job.replay, v[0].clone())),
    flag(Own, &["explore"], Maybe("N"), "run again and again, each time with another message taken by a receive or probe from anybody, until a run fails, all have been seen, or N times (default 1000)",
        |l, v| a::put(&mut l.job.explore, Some(v.first().map_or(Ok(1000), |n| a::count(n, "runs"))?))),
    flag(Own, &["compare"], One("stdout"), "with --chaos A..B and --explore: other output than in the first run is a failure, too",
        |l, v| a::put(&mut l.job.compare_stdout, crate::orders::compared(&v[0])?)),
    flag(Own, &["dry-run"], Nothing, "print the placement and the MPI found in the program, and run nothing",
        |l, _| a::put(&mut l.job.dry_run, true)),
    flag(Own, &["json"], Nothing, "with --dry-run the plan, otherwise all ranks' ends after the output, as JSON on stdout",
        |l, _| a::put(&mut l.job.json, true)),
    flag(Own, &["report"], Maybe("full"), "after the job print to stderr how busy the cores were, what ranks waited for and what to try, and the least, mean and most of each kind of time; --report=full: also those of each core and rank",
        |l, v| a::put(&mut l.job.report, Some(a::report_form(v.first())?))),
    flag(Own, &["check"], Maybe("off|cheap|full"), "check what the program does with MPI, as it is: collectives that differ, types and buffers that do not fit, requests and messages left at MPI_Finalize; errors that cost nothing to find (--check, --check=cheap), or also buffers that are touched too early and what was not freed (full); findings are told at the end, and make exit code 122",
        |l, v| a::set(&mut l.job.check, a::check(v.first())?)),
    flag(Own, &["check-json"], One("FILE"), "write what --check finds to FILE as JSON, too (docs/check.schema.json), or as SARIF, which code hosts show at the lines, if its name ends in .sarif",
        |l, v| a::set(&mut l.job.check_json, v[0].clone())),
    flag(Own, &["pcontrol"], One("levels|regions"), "what MPI_Pcontrol means: its level alone (default: 0 stops recording, 1 lets it go on, 5 and more begin the region of that number and -5 and less end it), or, as IPM has it, MPI_Pcontrol(1, \"name\") begins a region and MPI_Pcontrol(-1, \"name\") ends it",
        |l, v| a::put(&mut l.job.pcontrol_names, a::pcontrol(&v[0])?)),
    flag(Own, &["counters"], One("LIST"), "count up to three events (page-faults, instructions, ...) for each rank and core; --report and --trace show them, MPIX_Rcounter and MPIX_Pcounter tell them",
        |l, v| a::set(&mut l.job.counters, v[0].clone())),
    flag(Own, &["gdb"], One("RANKS"), "stop these ranks right after their start and print the command that attaches gdb",
        |l, v| a::put(&mut l.job.gdb, a::ranks(&v[0])?)),
    flag(Own, &["trace"], One("FILE"), "record what cores and ranks do, and when, and write it to FILE at the end; its ending says how: .svg, .png, .html, .otf2 (an archive, by libotf2), or .pftrace and kin for ui.perfetto.dev",
        |l, v| a::set(&mut l.job.trace, a::trace_file(&v[0])?)),
    flag(Own, &["matrix"], One("FILE"), "count what goes from rank to rank, and write it to FILE at the end; its ending says how: .csv, .json, .svg or .png",
        |l, v| a::set(&mut l.job.matrix, a::matrix_file(&v[0])?)),
    flag(Own, &["report-html"], One("FILE"), "write a page about the run to FILE at the end: timeline, clocks, waits, matrix; it opens without a network",
        |l, v| a::set(&mut l.job.report_html, a::page_file(&v[0])?)),
    flag(Own, &["profile"], One("DIR"), "as --matrix, in all forms, and a file per rank, in DIR",
        |l, v| a::set(&mut l.job.profile, v[0].clone())),
    flag(Own, &["help", "h"], Maybe("TOPIC"), "print this", |l, _| a::set(&mut l.action, Action::Help)),
    flag(Own, &["show-config"], Nothing, "print each value that is set and where (command line, VMPIRUN_... in the environment, defaults file), and those that are built in",
        |l, _| a::set(&mut l.action, Action::ShowConfig)),
    flag(Own, &["version", "info"], Nothing, "print the version", |l, _| a::set(&mut l.action, Action::Version)),
    flag(Own, &["verbose", "v", "vv", "vvv"], Nothing, "say what is chosen and why",
        |l, _| a::put(&mut l.job.verbose, true)),
    flag(Own, &["quiet", "q", "Q"], Nothing, "no notes, errors only",
        |l, _| a::put(&mut l.job.quiet, true)),

    flag(Standard, &["n", "np", "c"], One("N"), "number of ranks",
        |l, v| a::set(&mut l.app.ranks, a::count(&v[0], "ranks")?)),
    flag(Standard, &["host", "hosts", "H", "hosts-group"], One("NAMES"), "where to run: a,b or a:4,b:2 (slots)",
        |l, v| a::hosts(l, &v[0])),
    flag(Standard, &["wdir", "wd", "cwd", "chdir", "D"], One("DIR"), "working directory of the ranks",
        |l, v| a::set(&mut l.app.wdir, v[0].clone())),
    flag(Standard, &["path"], One("DIRS"), "directories to look for the program first, separated by `:`",
        |l, v| a::set(&mut l.app.path, v[0].clone())),
    flag(Standard, &["configfile", "app"], One("FILE"), "read programs from FILE, one a line, each with its options",
        |l, v| a::push(&mut l.job.configfiles, v[0].clone())),
    flag(Standard, &["soft"], One("N,LOW:HIGH:STRIDE,..."), "numbers of ranks that will do; the largest up to -n is taken",
        |l, v| a::set(&mut l.app.soft, finish::soft(&v[0])?)),

    flag(Hydra, &["f", "file", "hostfile", "machinefile", "machine", "nodefile", "default-hostfile"], One("FILE"), "file of host names: name, name:4 or name slots=4 a line",
        |l, v| a::push(&mut l.job.hostfiles, v[0].clone())),
    flag(Hydra, &["launcher", "bootstrap"], One("ssh|rsh|slurm|pbs|lsf|sge|flux"), "whose way to start vmpid on another node, instead of the batch system's",
        |l, v| starter::launcher(l, &v[0])),
    flag(Hydra, &["launcher-exec", "bootstrap-exec", "rsh"], One("CMD"), "what starts a command on another node, instead of ssh; called as CMD HOST COMMAND ...",
        |l, v| a::set(&mut l.job.launcher, v[0].clone())),
    flag(Hydra, &["ppn", "perhost", "grr", "npernode", "N", "ntasks-per-node", "tasks-per-node"], One("N"), "ranks per node; on one node the number of ranks if there is no -n",
        |l, v| a::set(&mut l.job.ranks_per_node, a::count(&v[0], "ranks per node")?)),
    flag(Hydra, &["rr"], Nothing, "as -bynode", |l, _| a::put(&mut l.job.map_by, MapBy::Node)),
    flag(Hydra, &["nolocal"], Nothing, "no ranks on this node, if others are named", |l, _| a::put(&mut l.job.no_local, true)),
    flag(Hydra, &["ilp64"], Nothing, "refused: MPI's integers have 4 bytes here", |_, _| a::ilp64()),
    flag(Hydra, &["gtool"], One("CMD[:RANKS]"), "a command in front of the program of these ranks; several with `;` between them",
        |l, v| a::gtool(l, &v[0])),
    flag(Hydra, &["genv"], NameValue, "set a variable for all programs", |l, v| a::env(&mut l.job.env, v)),
    flag(Hydra, &["genvlist"], One("NAMES"), "pass only these variables", |l, v| a::put(&mut l.job.env_mode, a::env_list(&v[0]))),
    flag(Hydra, &["genvnone"], Nothing, "pass no variables", |l, _| a::put(&mut l.job.env_mode, super::EnvMode::Nothing)),
    flag(Hydra, &["genvall"], Nothing, "pass all variables (default)", |l, _| a::put(&mut l.job.env_mode, super::EnvMode::All)),
    flag(Hydra, &["genvexcl"], One("NAMES"), "pass all variables but these", |l, v| a::put(&mut l.job.env_mode, super::EnvMode::Except(a::names(&v[0])))),
    flag(Hydra, &["envexcl"], One("NAMES"), "as -genvexcl, for one program", |l, v| a::set(&mut l.app.env_mode, super::EnvMode::Except(a::names(&v[0])))),
    flag(Hydra, &["env"], NameValue, "set a variable for one program", |l, v| a::env(&mut l.app.env, v)),
    flag(Hydra, &["envlist"], One("NAMES"), "as -genvlist, for one program", |l, v| a::set(&mut l.app.env_mode, a::env_list(&v[0]))),
    flag(Hydra, &["envnone"], Nothing, "as -genvnone, for one program", |l, _| a::set(&mut l.app.env_mode, super::EnvMode::Nothing)),
    flag(Hydra, &["envall"], Nothing, "as -genvall, for one program", |l, _| a::set(&mut l.app.env_mode, super::EnvMode::All)),
    flag(Hydra, &["prepend-rank"], Nothing, "label lines: `[3] line`", |l, _| a::set(&mut l.job.label, Label::Hydra)),
    flag(Hydra, &["outfile-pattern"], One("FILE"), "write stdout to files; %r is the rank, %h the host",
        |l, v| a::set(&mut l.job.outfile_pattern, v[0].clone())),
    flag(Hydra, &["errfile-pattern"], One("FILE"), "write stderr to files; %r is the rank, %h the host",
        |l, v| a::set(&mut l.job.errfile_pattern, v[0].clone())),
    flag(Hydra, &["bind-to", "binding", "bind"], One("none|core|l3cache|numa|socket|board"),
        "pin each rank to its core's CPU (default unless cores stay free), or to a larger part of the machine",
        |l, v| places::bind_to(l, &v[0])),
    flag(Hydra, &["map-by"], One("slot|core|socket|node|ppr:N:socket|affinity:FILE|random:SEED"),
        "neighbours share a core (slot: default), or ranks go round cores (core, rr), caches, NUMA nodes, sockets or nodes, or so many to each, or sit by what --matrix FILE has counted",
        |l, v| places::map_by(l, &v[0])),
    flag(Hydra, &["usize"], One("N|SYSTEM|INFINITE"), "MPI_UNIVERSE_SIZE: so many, what the hosts' slots or else the cores hold (default), or not set",
        |l, v| a::universe(l, &v[0])),
    flag(Hydra, &["print-all-exitcodes"], Nothing, "print every rank's exit code after the job",
        |l, _| a::put(&mut l.job.print_exit_codes, true)),
    flag(Hydra, &["disable-auto-cleanup"], Nothing, "as --enable-recovery", |l, _| a::put(&mut l.job.recovery, true)),

    flag(OpenMpi, &["x"], One("NAME[=VALUE]"), "pass a variable, or set it", |l, v| a::export(l, &v[0])),
    flag(OpenMpi, &["byslot"], Nothing, "neighbours share a core", |l, _| a::put(&mut l.job.map_by, MapBy::Block)),
    flag(OpenMpi, &["bynode"], Nothing, "ranks go round the nodes", |l, _| a::put(&mut l.job.map_by, MapBy::Node)),
    flag(OpenMpi, &["bycore"], Nothing, "ranks go round the cores", |l, _| a::put(&mut l.job.map_by, MapBy::RoundRobin)),
    flag(OpenMpi, &["bysocket"], Nothing, "as -map-by socket", |l, _| a::put(&mut l.job.map_by, MapBy::Each(Resource::Socket))),
    flag(OpenMpi, &["npersocket", "ntasks-per-socket"], One("N"), "as -map-by ppr:N:socket", |l, v| places::ranks_per(l, &v[0], Resource::Socket)),
    flag(OpenMpi, &["bind-to-core"], Nothing, "as -bind-to core", |l, _| places::bind_to(l, "core")),
    flag(OpenMpi, &["bind-to-socket"], Nothing, "as -bind-to socket", |l, _| places::bind_to(l, "socket")),
    flag(OpenMpi, &["bind-to-none"], Nothing, "as -bind-to none", |l, _| places::bind_to(l, "none")),
    flag(OpenMpi, &["cpus-per-rank", "cpus-per-proc", "cpus-per-task"], One("K"), "CPUs for each rank", |l, v| places::cpus_per_rank(l, &v[0])),
    flag(OpenMpi, &["cpu-set", "cpu-list"], One("LIST"), "as --cores", |l, v| a::set(&mut l.job.cores, a::cores(&v[0])?)),
    flag(OpenMpi, &["report-bindings", "display-map", "display-devel-map", "print-rank-map"], Nothing, "print each rank's CPU to stderr",
        |l, _| a::put(&mut l.job.report_bindings, true)),
    flag(OpenMpi, &["display-allocation", "display-devel-allocation"], Nothing, "print the nodes and their slots to stderr",
        |l, _| a::put(&mut l.job.display_allocation, true)),
    flag(OpenMpi, &["display"], One("map|bind|alloc,..."), "as --report-bindings, --display-allocation", |l, v| a::display(l, &v[0])),
    flag(OpenMpi, &["tag-output"], Nothing, "label lines: `[1,3]<stdout>:line`", |l, _| a::set(&mut l.job.label, Label::OpenMpi)),
    flag(OpenMpi, &["timestamp-output"], Nothing, "put the local time before each line", |l, _| a::put(&mut l.job.timestamp, true)),
    flag(OpenMpi, &["output-filename"], One("DIR"), "as --output dir=DIR", |l, v| a::output_directory(l, &v[0])),
    flag(OpenMpi, &["merge-stderr-to-stdout"], Nothing, "one stream for both", |l, _| a::put(&mut l.job.merge_stderr, true)),
    flag(OpenMpi, &["stdin", "s"], One("RANKS|all|none"), "who reads standard input: rank 0 (default), these ranks, each all of it, or nobody",
        |l, v| a::stdin(l, &v[0])),
    flag(OpenMpi, &["nostdin"], Nothing, "as -stdin none", |l, _| a::stdin(l, "none")),
    flag(OpenMpi, &["timeout"], One("SECONDS"), "end the job after so long; exit code 124",
        |l, v| a::set(&mut l.job.timeout_s, a::number(&v[0], "seconds")?)),
    flag(OpenMpi, &["mca", "gmca", "prtemca", "gprtemca", "pmixmca", "gpmixmca", "pmca", "omca"], Two("KEY", "VALUE"), "plm_rsh_agent and its kin: as -launcher-exec; others have no meaning here, said once",
        a::mca),
    flag(OpenMpi, &["enable-recovery"], Nothing, "a rank's death is an MPI error for the others, not the job's end (MPIX_Comm_shrink, ...)",
        |l, _| a::put(&mut l.job.recovery, true)),
    flag(OpenMpi, &["disable-recovery"], Nothing, "a rank's death ends the job (default)", |l, _| a::put(&mut l.job.recovery, false)),
    flag(OpenMpi, &["with-ft"], One("ulfm|mpi|none"), "as --enable-recovery", |l, v| a::with_ft(l, &v[0])),
    flag(OpenMpi, &["pernode"], Nothing, "one rank", |l, _| a::set(&mut l.job.ranks_per_node, 1)),
    flag(OpenMpi, &["rankfile", "rf"], One("FILE"), "the node and CPU of each rank, a line each: rank 0=HOST slot=CPU", |l, v| places::rank_file(l, &v[0])),
    flag(OpenMpi, &["tv"], Nothing, "start vmpirun under TotalView", |l, _| a::set(&mut l.job.debugger, "totalview".into())),
    flag(OpenMpi, &["debug"], Nothing, "start vmpirun under TotalView or DDT, whichever is in PATH", |l, _| a::set(&mut l.job.debugger, String::new())),
    flag(OpenMpi, &["runtime-options", "rtos"], One("donotlaunch,..."), "donotlaunch: as --dry-run; others have no effect", |l, v| a::runtime_options(l, &v[0])),
    flag(OpenMpi, &["do-not-launch", "test-only"], Nothing, "as --dry-run", |l, _| a::put(&mut l.job.dry_run, true)),

    flag(Srun, &["label", "l"], Nothing, "label lines: `3: line`", |l, _| a::set(&mut l.job.label, Label::Srun)),
    flag(Srun, &["kill-on-bad-exit", "K"], Maybe("0|1"), "end the job when a rank fails (default)", a::kill_on_failure),
    flag(Srun, &["no-kill", "continuous"], Nothing, "let the other ranks go on when one fails",
        |l, _| a::put(&mut l.job.kill_on_failure, false)),
    flag(Srun, &["ntasks"], One("N"), "as -n", |l, v| a::set(&mut l.app.ranks, a::count(&v[0], "ranks")?)),
    flag(Srun, &["input", "i"], One("RANK|all|none"), "as -stdin", |l, v| a::stdin(l, &v[0])),
    flag(Srun, &["cpu-bind", "cc"], One("none|cores|depth|list:LIST"), "as -bind-to", |l, v| places::cpu_bind(l, &v[0])),
    flag(Srun, &["nodes"], One("N"), "no more nodes than N", |l, v| a::nodes(l, &v[0])),
    flag(Srun, &["nodelist", "w"], One("NAMES"), "as -host", |l, v| a::hosts(l, &v[0])),
    flag(Srun, &["exclude", "exclude-hosts"], One("NAMES"), "nodes that get no ranks", |l, v| a::exclude(l, &v[0])),
    flag(Srun, &["ntasks-per-core"], One("N"), "as -V", |l, v| places::ranks_per(l, &v[0], Resource::Core)),
    flag(Srun, &["multi-prog"], Nothing, "the program is a file with a line for the program of each rank: 0-3 PROGRAM ARGUMENTS", |l, _| a::put(&mut l.job.multi_prog, true)),
    flag(Srun, &["distribution", "m"], One("block|cyclic[:...]"), "as -map-by slot, -map-by node", |l, v| places::distribution(l, &v[0])),
    flag(Srun, &["export"], One("ALL|NONE|NAMES"), "which variables are passed, and NAME=VALUE", |l, v| a::srun_export(l, &v[0])),
    flag(Srun, &["threads-per-core"], One("N"), "use N CPUs (hyperthreads) of each physical core; without it all", |l, v| a::set(&mut l.job.threads_per_core, a::count(&v[0], "threads")?)),
    flag(Srun, &["hint"], One("nomultithread|..."), "nomultithread, compute_bound: as --threads-per-core 1", |l, v| places::hint(l, &v[0])),
    flag(Srun, &["time", "t"], One("TIME"), "as --timeout; minutes, M:S, H:M:S or D-H[:M[:S]]", |l, v| a::set(&mut l.job.timeout_s, slurm_time(&v[0])?)),
    flag(Srun, &["o"], One("FILE"), "as -outfile-pattern, and for stderr without -e; %t is the rank, %N the host, %j the batch job", |l, v| a::srun_output(l, &v[0])),
    flag(Srun, &["e", "error"], One("FILE"), "as -errfile-pattern; aprun's -e NAME=VALUE sets a variable", |l, v| a::srun_error(l, &v[0])),

    flag(Cray, &["depth", "d"], One("K"), "as --cpus-per-rank", |l, v| places::cpus_per_rank(l, &v[0])),
    flag(Cray, &["j"], One("N"), "as --threads-per-core; 0: all", |l, v| if v[0] == "0" { Ok(()) } else { a::set(&mut l.job.threads_per_core, a::count(&v[0], "threads")?) }),
    flag(Cray, &["S"], One("N"), "as -map-by ppr:N:numa", |l, v| places::ranks_per(l, &v[0], Resource::Numa)),
    flag(Cray, &["L", "hostlist", "node-list"], One("NAMES"), "as -host", |l, v| a::hosts(l, &v[0])),

    flag(Anyway, &["oversubscribe", "allow-run-as-root", "use-hwthread-cpus", "use-hwthreads", "overcommit", "O", "leave-session-attached",
        "noprefix", "novm", "localonly", "local", "line-buffer", "shared", "B", "disable-hostname-propagation", "ordered-output", "kill", "noconf"], Nothing,
        "vmpi never refuses, and has one way to start", |_, _| Ok(())),
    flag(NoEffect, &["nooversubscribe", "enable-x", "disable-x", "pmi-port", "show-progress", "exclusive", "check-mpi", "prot", "no-vni",
        "unbuffered", "u", "debug-devel", "debug-daemons", "xml", "display-topo", "display-topology", "display-diffable-map",
        "report-events", "preload-binary", "get-stack-traces", "report-state-on-timeout", "do-not-resolve", 
        "exact", "whole", "pty", "use-min-nodes", "contiguous", "spread-job", "no-allocate", "no-shell", "preserve-env",
        "pmi-aggregate", "pmi-noaggregate", "use-app-topology", "cleanup", "procinfo", "index-argv-by-rank", "dvm", "spindle", "ss",
        "quit-on-interrupt", "b", "aps", "strict", "set-sid", "system-server", "psm", "PSM", "psm2", "PSM2", "rdma", "RDMA", "dapl",
        "DAPL", "ib", "IB", "ofa", "OFA", "tmi", "TMI", "ofi", "OFI", "container-mount-home", "no-container-mount-home",
        "container-writable", "container-readonly", "container-remap-root", "no-container-entrypoint"], Nothing,
        "of other launchers", |_, _| Ok(())),
    flag(NoEffect, &["resv-ports", "immediate", "I", "nice", "output-proctable", "x11"], Maybe("VALUE"), "of other launchers", |_, _| Ok(())),
    flag(NoEffect, &["rank-by", "order-nodes", "membind", "mem-bind", "mem-bind-type", "topolib", "demux", "rmk", "iface",
        "nameserver", "localhost", "gpus-per-proc", "prefix", "personality", "launch-agent", "max-restarts", "tune", "am", "arch",
        "mpi", "pmi", "gres", "gpus", "G", "gpus-per-task", "gpus-per-node", "gpu-bind", "tres-per-task", "ntasks-per-gpu",
        "partition", "p", "account", "A", "qos", "mem", "mem-per-cpu", "mem-per-gpu", "constraint", "C", "job-name", "J", "jobid",
        "reservation", "cores-per-socket", "sockets-per-node", "extra-node-info", "dependency", "licenses",
        "network", "comment", "mail-type", "mail-user", "wait", "relative", "core-spec", "signal", "propagate", "bcast", "prolog", "epilog",
        "task-prolog", "task-epilog", "acctg-freq", "accel-bind", "open-mode", "cluster", "clusters", "container-image", "container-mounts",
        "container-workdir", "container-name", "exclude-hostfile", "rlimits", "fanout", "transfer", "cpus-per-gpu",
        "cores-per-task", "stream-buffering", "xterm", "preload-files", "report-pid", "report-uri", "ompi-server", "dvm-uri",
        "num-sockets", "num-boards", "initial-errhandler", "forward-signals", "max-vm-size", "tmpdir",
        "ckpointlib", "ckpoint-prefix", "ckpoint-interval", "gtoolfile", "pmi-connect", "container-env", "container-entrypoint", "het-group", "pack-group",
        "cpu-freq", "gpu-freq", "deadline", "begin", "slurmd-debug", "mincpus", "time-min", "wckey", "comm", "transform-hostname", "ecfn",
        "pset"], One("VALUE"),
        "of other launchers", |_, _| Ok(())),
];
