//! Files that ranks of two nodes share: the shared pointer, and everything else of MPI-IO, with the real MPIs' answers.

use vmpi_tests::compile::Mpi;
use vmpi_tests::nodes::{Nodes, same};

#[test]
fn the_shared_pointer_is_one_wherever_ranks_live() {
    let nodes = Nodes::beside_others("files-shared");
    for (ranks, flags) in [
        (2, &[][..]),
        (5, &[]),
        (6, &["-V", "1", "--map-by", "node"]),
        (4, &["-V", "2", "--progress", "rank"]),
        (4, &["-x", "VMPI_SINGLE_COPY=0"]),
        (3, &["--fabric", "emulated:100:200"]),
    ] {
        same(&nodes, "io_shared.c", Mpi::Openmpi, ranks, flags, &[]);
    }
    same(&nodes, "io_shared.c", Mpi::Mpich, 4, &["--map-by", "node"], &[]);
}

#[test]
fn programs_answer_as_under_the_real_mpis() {
    let nodes = Nodes::beside_others("files");
    for (name, ranks) in [("io_basic.c", 3), ("io_coll.c", 4), ("io_datarep.c", 5), ("io_errors.c", 3), ("io.f90", 4)] {
        same(&nodes, name, Mpi::Openmpi, ranks, &[], &[]);
        same(&nodes, name, Mpi::Mpich, ranks, &["--map-by", "node"], &[]);
    }
}
