//! Small programs that check MPI's meaning chapter by chapter: under vmpi they must print and return what they do under the
//! MPI that they were compiled for.

use vmpi_tests::case::{Case, Peers};
use vmpi_tests::compile::Mpi;
use vmpi_tests::suite;

const PIECES: &[(&str, &str)] = &[("VMPI_SINGLE_COPY", "0")];

suite! {
    ring: Case { program: "ring.c", ranks: &[2, 6], args: &["100", "8"], ..Case::DEFAULT };
    ring_large: Case { program: "ring.c", ranks: &[2, 6], args: &["20", "300000"], ..Case::DEFAULT };
    ring_of_many: Case { program: "ring.c", ranks: &[24], v: 12, args: &["20", "1000"], ..Case::DEFAULT };
    barrier_allreduce: Case { program: "barrier_allreduce.c", ranks: &[1, 2, 5, 6], ..Case::DEFAULT };
    globals: Case { program: "globals.c", args: &["one", "two words"], ..Case::DEFAULT };
    listing1_busy: Case { program: "listing1.c", ranks: &[2], v: 2, args: &["busy", "300"], ..Case::DEFAULT };
    listing1_sleep: Case { program: "listing1.c", ranks: &[2], v: 2, args: &["sleep", "300"], ..Case::DEFAULT };
    p2p: Case { program: "p2p.c", ranks: &[1, 2, 5, 6], ..Case::DEFAULT };
    probe: Case { program: "probe.c", ranks: &[1, 2, 5], ..Case::DEFAULT };
    polls: Case { program: "polls.c", ranks: &[1, 2, 6], args: &["400", "1"], ..Case::DEFAULT };
    polls_v1: Case { program: "polls.c", ranks: &[2], v: 1, args: &["1000", "2"], ..Case::DEFAULT };
    no_single_copy_polls: Case { program: "polls.c", ranks: &[4], args: &["400", "3"], env: PIECES, ..Case::DEFAULT };
    waits: Case { program: "waits.c", ranks: &[1, 2, 6], ..Case::DEFAULT };
    // The others take the one that comes first in the list.
    first: Case { program: "first.c", ranks: &[2, 3, 6], peers: Peers::Neither, ..Case::DEFAULT };
    first_v1: Case { program: "first.c", ranks: &[2], v: 1, peers: Peers::Neither, ..Case::DEFAULT };
    coll: Case { program: "coll.c", ranks: &[1, 2, 5, 6], ..Case::DEFAULT };
    coll_nonblocking: Case { program: "coll.c", ranks: &[1, 2, 5, 6], args: &["nb"], ..Case::DEFAULT };
    coll_random: Case { program: "coll_random.c", ranks: &[1, 2, 5], args: &["1", "250"], ..Case::DEFAULT };
    coll_random_of_many: Case { program: "coll_random.c", ranks: &[13, 24], args: &["2", "600"], peers: Peers::Neither, ..Case::DEFAULT };
    blocks: Case { program: "blocks.c", ranks: &[2, 3, 6], ..Case::DEFAULT };
    blocks_of_many: Case { program: "blocks.c", ranks: &[17, 40], peers: Peers::Neither, ..Case::DEFAULT };
    blocks_differ: Case { program: "blocks.c", ranks: &[2, 6], args: &["differ"], peers: Peers::Neither, ..Case::DEFAULT };
    blocks_differ_much: Case { program: "blocks.c", ranks: &[2, 6], args: &["much"], peers: Peers::Neither, ..Case::DEFAULT };
    blocks_differ_more: Case { program: "blocks.c", ranks: &[2, 6], args: &["far"], peers: Peers::Neither, ..Case::DEFAULT };
    nbc: Case { program: "nbc.c", ranks: &[1, 2, 6], ..Case::DEFAULT };
    types: Case { program: "types.c", ranks: &[1, 2, 3], ..Case::DEFAULT };
    ops: Case { program: "ops.c", ranks: &[1, 2, 5], ..Case::DEFAULT };
    comms: Case { program: "comms.c", ranks: &[2, 5, 6], ..Case::DEFAULT };
    topo: Case { program: "topo.c", ranks: &[4, 6], ..Case::DEFAULT };
    errors: Case { program: "errors.c", ranks: &[1, 3], ..Case::DEFAULT };
    // Wrong arguments, chapter by chapter. Where no peer is asked, each of them crashes or hangs on some of it.
    args_p2p: Case { program: "args_p2p.c", ranks: &[1, 2, 5], peers: Peers::Neither, ..Case::DEFAULT };
    args_type: Case { program: "args_type.c", ranks: &[1, 2], peers: Peers::Debian, ..Case::DEFAULT };
    args_comm: Case { program: "args_comm.c", ranks: &[1, 2, 5], peers: Peers::Neither, ..Case::DEFAULT };
    args_coll: Case { program: "args_coll.c", ranks: &[1, 2, 5], peers: Peers::Neither, ..Case::DEFAULT };
    args_mpi4: Case { program: "args_mpi4.c", ranks: &[1, 2], peers: Peers::Neither, ..Case::DEFAULT };
    huge: Case { program: "huge.c", ranks: &[1, 2], ..Case::DEFAULT };
    env: Case { program: "env.c", ranks: &[1, 3], args: &["hello"], ..Case::DEFAULT };
    traffic: Case { program: "traffic.c", ranks: &[2, 6], args: &["20", "7"], ..Case::DEFAULT };
    traffic_v1: Case { program: "traffic.c", ranks: &[2], v: 1, args: &["30", "11"], ..Case::DEFAULT };
    spin: Case { program: "spin.c", ranks: &[2, 4], flags: &["--quantum", "50"], one_running: false, ..Case::DEFAULT };
    // Under the others messages of the next round come early by the hundred.
    nbx: Case { program: "nbx.c", ranks: &[4, 6], alone: true, peers: Peers::Neither, ..Case::DEFAULT };
    threads: Case { program: "threads.c", ranks: &[2, 3], ..Case::DEFAULT };
    // Open MPI and MPICH hang in it now and then.
    threads_unasked: Case { program: "threads_unasked.c", ranks: &[2, 5], peers: Peers::Neither, ..Case::DEFAULT };
    threads_mixed: Case { program: "threads_mixed.c", ranks: &[2, 3], ..Case::DEFAULT };
    // A child that calls MPI_Finalize hangs under Open MPI, and MPICH's children end the job.
    forked: Case { program: "forked.c", ranks: &[1, 2, 5], peers: Peers::Neither, ..Case::DEFAULT };
    pressure_flood: Case { program: "pressure.c", ranks: &[2], args: &["flood"], ..Case::DEFAULT };
    pressure_isend: Case { program: "pressure.c", ranks: &[2], args: &["isend"], ..Case::DEFAULT };
    pressure_many: Case { program: "pressure.c", ranks: &[6], args: &["many", "5000"], ..Case::DEFAULT };
    pressure_all: Case { program: "pressure.c", ranks: &[4], args: &["all", "1000"], ..Case::DEFAULT };
    floods: Case { program: "floods.c", ranks: &[2, 5], args: &["tswpb", "8000"], peers: Peers::Neither, ..Case::DEFAULT };
    floods_v1: Case { program: "floods.c", ranks: &[2], v: 1, args: &["tswpb", "30000"], peers: Peers::Neither, ..Case::DEFAULT };
    floods_survive: Case { program: "floods.c", ranks: &[3], args: &["tswpb", "8000"], flags: &["--enable-recovery"], peers: Peers::Neither, ..Case::DEFAULT };
    medium: Case { program: "medium.c", ranks: &[2, 6], ..Case::DEFAULT };
    medium_of_one_core: Case { program: "medium.c", ranks: &[2, 5], v: 5, ..Case::DEFAULT };
    scattered: Case { program: "scattered.c", ranks: &[1, 2, 6], ..Case::DEFAULT };
    scattered_v1: Case { program: "scattered.c", ranks: &[2], v: 1, ..Case::DEFAULT };
    no_single_copy_scattered: Case { program: "scattered.c", ranks: &[3], env: PIECES, ..Case::DEFAULT };
    laid_open_scattered: Case { program: "scattered.c", ranks: &[3], env: &[("VMPI_MAP_MEMORY", "1")], ..Case::DEFAULT };
    // What Open MPI leaves behind a truncated message is not within the program's checks.
    large: Case { program: "large.c", ranks: &[2, 3, 6], peers: Peers::Neither, ..Case::DEFAULT };
    large_v1: Case { program: "large.c", ranks: &[2], v: 1, peers: Peers::Neither, ..Case::DEFAULT };
    no_single_copy_large: Case { program: "large.c", ranks: &[2, 3], env: PIECES, peers: Peers::Neither, ..Case::DEFAULT };
    io_basic: Case { program: "io_basic.c", ranks: &[1, 2, 3], ..Case::DEFAULT };
    io_coll: Case { program: "io_coll.c", ranks: &[1, 2, 3, 6], ..Case::DEFAULT };
    io_coll_v1: Case { program: "io_coll.c", ranks: &[2], v: 1, ..Case::DEFAULT };
    io_errors: Case { program: "io_errors.c", ranks: &[1, 2, 3], peers: Peers::Debian, ..Case::DEFAULT };
    io_datarep: Case { program: "io_datarep.c", ranks: &[1, 2, 5], ..Case::DEFAULT };
    dup_fails: Case { program: "dup_fails.c", ranks: &[1, 3], ..Case::DEFAULT };
    idup_handler: Case { program: "idup_handler.c", ranks: &[1, 2, 5], ..Case::DEFAULT };
    coll_order: Case { program: "coll_order.c", ranks: &[1, 2, 5], ..Case::DEFAULT };
    dup_fails_one: Case { program: "dup_fails_one.c", ranks: &[2, 3, 6], peers: Peers::Neither, ..Case::DEFAULT };
    neighbors_same: Case { program: "neighbors_same.c", ranks: &[1, 2, 4], ..Case::DEFAULT };
    // Where the kernel refuses single copy: the same messages through the slab.
    no_single_copy_isend: Case { program: "pressure.c", ranks: &[2], args: &["isend"], env: PIECES, ..Case::DEFAULT };
    no_single_copy_all: Case { program: "pressure.c", ranks: &[4], args: &["all", "3000"], env: PIECES, ..Case::DEFAULT };
    no_single_copy_coll: Case { program: "coll.c", ranks: &[5], env: PIECES, ..Case::DEFAULT };
    no_single_copy_io: Case { program: "io_coll.c", ranks: &[3], env: PIECES, ..Case::DEFAULT };
    no_single_copy_types: Case { program: "types.c", ranks: &[3], env: PIECES, ..Case::DEFAULT };
    spawn: Case { program: "spawn_basic.c", ranks: &[1, 2], peers: Peers::Recorded, ..Case::DEFAULT };
    // Open MPI gets through the first round only.
    spawn_leave: Case { program: "spawn_leave.c", ranks: &[1, 2, 3], peers: Peers::Neither, ..Case::DEFAULT };
    ports: Case { program: "spawn_ports.c", ranks: &[2], peers: Peers::Recorded, ..Case::DEFAULT };
    spawn_fortran: Case { program: "spawn_fortran.f90", ranks: &[1, 2], peers: Peers::Recorded, ..Case::DEFAULT };
    legacy_fortran: Case { program: "legacy.f", ranks: &[2, 6], ..Case::DEFAULT };
    files_fortran: Case { program: "io.f90", ranks: &[1, 3], ..Case::DEFAULT };
    bad_handles_fortran: Case { program: "bad_handles.f90", ranks: &[1, 2], ..Case::DEFAULT };
    grequest_fortran: Case { program: "grequest.f90", ranks: &[1], ..Case::DEFAULT };
    use_mpi: Case { program: "usempi.f90", ranks: &[2, 6], ..Case::DEFAULT };
    // Open MPI's module is a library of its own on top of ours; MPICH's procedures are in our face, and vmpi's own module calls
    // the same.
    use_mpi_f08: Case { program: "usempif08.f90", ranks: &[2, 6], ..Case::DEFAULT };
    f08_chapters: Case { program: "f08.f90", ranks: &[1, 2, 5], ..Case::DEFAULT };
    // One-sided. Debian's Open MPI makes no windows for one rank, and its MPICH hangs in some of these on two cores.
    rma_move: Case { program: "rma_move.c", ranks: &[2, 6], ..Case::DEFAULT };
    rma_accumulate: Case { program: "rma_accumulate.c", ranks: &[3, 6], ..Case::DEFAULT };
    rma_sync: Case { program: "rma_sync.c", ranks: &[3, 6], ..Case::DEFAULT };
    rma_win: Case { program: "rma_win.c", ranks: &[2, 5], ..Case::DEFAULT };
    rma_query: Case { program: "rma_query.c", ranks: &[1, 2, 5], peers: Peers::Neither, ..Case::DEFAULT };
    rma_errors: Case { program: "rma_errors.c", ranks: &[2, 3], ..Case::DEFAULT };
    rma_spin_load: Case { program: "rma_spin.c", ranks: &[4], args: &["load", "3"], flags: &["--quantum", "50"],
        one_running: false, ..Case::DEFAULT };
    rma_spin_sync: Case { program: "rma_spin.c", ranks: &[6], args: &["sync", "50"], ..Case::DEFAULT };
    rma_spin_get: Case { program: "rma_spin.c", ranks: &[6], args: &["get", "50"], ..Case::DEFAULT };
    rma_spin_fetch: Case { program: "rma_spin.c", ranks: &[6], args: &["fetch", "50"], ..Case::DEFAULT };
    no_single_copy_rma_move: Case { program: "rma_move.c", ranks: &[3], env: PIECES, ..Case::DEFAULT };
    no_single_copy_rma_accumulate: Case { program: "rma_accumulate.c", ranks: &[3], env: PIECES, ..Case::DEFAULT };
    rma_threads: Case { program: "rma_threads.c", ranks: &[3], ..Case::DEFAULT };
    rma_fortran: Case { program: "rma.f90", ranks: &[2, 6], ..Case::DEFAULT };
    partitioned: Case { program: "partitioned.c", ranks: &[1, 2, 5], peers: Peers::Mpich, ..Case::DEFAULT };
    large_counts: Case { program: "large_counts.c", ranks: &[1, 2, 5], peers: Peers::Mpich, ..Case::DEFAULT };
    // Freeing a key twice is an error to Open MPI, so only its use after one freeing is checked.
    keys: Case { program: "keys.c", ranks: &[1, 2], ..Case::DEFAULT };
    differ: Case { program: "differ.c", ranks: &[1, 2], ..Case::DEFAULT };
    sessions: Case { program: "sessions.c", ranks: &[1, 2, 5], peers: Peers::Neither, ..Case::DEFAULT };
    tool: Case { program: "tool.c", ranks: &[1, 2, 5], peers: Peers::Mpich, ..Case::DEFAULT };
    mpi41: Case { program: "mpi41.c", ranks: &[1, 2, 5], peers: Peers::Neither, ..Case::DEFAULT };
}

#[test]
fn f08_beyond_mpi_3() {
    let case = Case { program: "f08_mpi4.f90", ranks: &[1], ..Case::DEFAULT };
    [Mpi::Mpich, Mpi::Standard].iter().for_each(|&mpi| case.check(mpi));
}

/// Open MPI 4.1's header has no events, and MPICH no events of these.
#[test]
fn tool_events() {
    let case = Case { program: "tool_events.c", ranks: &[1, 2, 5], peers: Peers::Neither, ..Case::DEFAULT };
    [Mpi::Mpich, Mpi::Standard].iter().for_each(|&mpi| case.check(mpi));
}

/// Large counts in mpi_f08, with MPICH's module and vmpi's own (Open MPI 4.1's has none).
#[test]
fn f08_with_large_counts() {
    let case = Case { program: "f08_large.f90", ranks: &[1, 2], ..Case::DEFAULT };
    [Mpi::Mpich, Mpi::Standard].iter().for_each(|&mpi| case.check(mpi));
}

/// What MPI 4.1 and 5.0 add, with vmpi's own module: no other has it.
#[test]
fn f08_of_mpi_4_1() {
    Case { program: "f08_mpi41.f90", ranks: &[1, 2], peers: Peers::Neither, ..Case::DEFAULT }.check(Mpi::Standard);
}

/// What MPICH 4.1 to 5 has beyond Debian's. The oracle of MPICH's ABI is older.
#[test]
fn mpich_of_later_years() {
    Case { program: "mpich_later.c", ranks: &[1, 2, 5], peers: Peers::Neither, ..Case::DEFAULT }.check(Mpi::Mpich);
}

/// The C++ bindings of Open MPI and MPICH are libraries on top of ours; MPI 3 removed them, and the standard ABI has none.
#[test]
fn cxx_bindings() {
    let case = Case { program: "bindings.cc", ranks: &[1, 2, 5], ..Case::DEFAULT };
    [Mpi::Openmpi, Mpi::Mpich].iter().for_each(|&mpi| case.check(mpi));
}

/// MPI 4 from Fortran, by the header of MPICH 4.0, which itself gets it wrong (Open MPI 4.1 has none of it).
#[test]
fn mpi4_from_fortran() {
    Case { program: "mpi4.f90", ranks: &[1, 2, 5], peers: Peers::Neither, ..Case::DEFAULT }.check(Mpi::Mpich);
}
