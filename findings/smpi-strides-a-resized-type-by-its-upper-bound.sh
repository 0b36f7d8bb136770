#!/bin/sh
# SimGrid 3.32 (Debian 12's libsimgrid-dev 3.32-2+b2, which must be installed; no root).
# Three elements of MPI_INT, resized to an extent of 8 bytes (MPI_Type_create_resized), of the numbers 0 1 2 3 4 5 6 7: every second, wherever the
# lower bound is put, since only the extent is a distance. Expected: 0 2 4, three times. Seen: the lower bound is added: with -4 as lower bound
# the next element is 4 bytes away, with 4 it is 12 bytes away, in sends, receives and MPI_Pack; MPI_Type_get_extent says 8 all the same, and
# the true lower bound and extent are those that were asked for instead of 0 and 4. With a lower bound of 0 all is right, which
# nearly all programs have; a type that was made with its ghost cells in front (lower bound below 0) simulates another communication, and computes
# something else. Who compares results of a simulated run with a real one sees it; times alone do not tell.
# Seen: the three lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
cd "$d"
cat > p.c <<'P'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int lower = -4; lower <= 4; lower += 4) {
        int numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7}, got[3], packed[3], at = 0;
        MPI_Datatype type;
        MPI_Aint bound, extent, true_bound, true_extent;
        MPI_Type_create_resized(MPI_INT, lower, 8, &type);
        MPI_Type_commit(&type);
        MPI_Type_get_extent(type, &bound, &extent);
        MPI_Type_get_true_extent(type, &true_bound, &true_extent);
        MPI_Sendrecv(numbers, 3, type, 0, 0, got, 3, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Pack(numbers, 3, type, packed, sizeof packed, &at, MPI_COMM_SELF);
        printf("lower bound %d, extent %d, true ones %d, %d: sent %d %d %d, packed %d %d %d\n", (int)bound, (int)extent, (int)true_bound,
            (int)true_extent, got[0], got[1], got[2], packed[0], packed[1], packed[2]);
        MPI_Type_free(&type);
    }
    MPI_Finalize();
}
P
cat > p.xml <<'P'
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-0" speed="1Gf" bw="1GBps" lat="10us"/></platform>
P
echo n0 > hosts
smpirun -version | head -n 1
smpicc -o p p.c
smpirun -np 1 -hostfile hosts -platform p.xml ./p 2> said | tee seen
cmp - seen <<'S'
lower bound -4, extent 8, true ones -4, 8: sent 0 1 2, packed 0 1 2
lower bound 0, extent 8, true ones 0, 8: sent 0 2 4, packed 0 2 4
lower bound 4, extent 8, true ones 4, 8: sent 0 3 6, packed 0 3 6
S
