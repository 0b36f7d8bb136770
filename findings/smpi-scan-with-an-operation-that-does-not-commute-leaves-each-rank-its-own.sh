#!/bin/sh
# SimGrid 3.32 (Debian 12's libsimgrid-dev 3.32-2+b2) and, beside it, Debian 12's MPICH 4.0.2-3+b1 (both must be installed; no root).
# MPI_Op_create(function, commute = 0): strings of digits put one behind the other, four ranks that have 1, 2, 3, 4. Expected: MPI_Scan gives
# 1, 12, 123, 1234, whoever runs the program; a simulator runs the real program, so its results are right and its times are modelled. Seen
# with SMPI: MPI_Reduce and MPI_Allreduce are right, but MPI_Scan leaves each rank its own value, and MPI_Exscan leaves the receive buffer as
# it was; MPI_Iallreduce combines in the order in which messages come, other ones in each rank; and of a contiguous type of two numbers
# MPI_Iallreduce adds nothing at all, though MPI_Allreduce does. No warning, exit code 0. A program that goes on with such a result (offsets
# from a scan, a stopping rule) is simulated along another path than it takes. Compare its output with that of a real run.
# Seen: the twelve lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
cd "$d"
cat > scan.c <<'C'
#include <mpi.h>
#include <stdio.h>
static int rank;
static long got;
static void show(const char *call)
{
    long all[4];
    MPI_Gather(&got, 1, MPI_LONG, all, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %ld %ld %ld %ld\n", call, all[0], all[1], all[2], all[3]);
    got = 0;
}
static void append(void *in, void *inout, int *count, MPI_Datatype *type)
{
    long *left = in, *right = inout;
    for (int i = 0; i < *count; i++) {
        long shift = 1;
        while (shift <= right[i])
            shift *= 10;
        right[i] += left[i] * shift;
    }
}
static void add_pairs(void *in, void *inout, int *count, MPI_Datatype *type)
{
    long *a = in, *b = inout;
    for (int i = 0; i < 2 * *count; i++)
        b[i] += a[i];
}
int main(int argc, char **argv)
{
    long mine, pair[2], sums[2] = {0, 0};
    MPI_Op behind, add;
    MPI_Datatype two;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    mine = pair[0] = pair[1] = rank + 1;
    MPI_Op_create(append, 0, &behind);
    MPI_Allreduce(&mine, &got, 1, MPI_LONG, behind, MPI_COMM_WORLD), show("MPI_Allreduce");
    MPI_Scan(&mine, &got, 1, MPI_LONG, behind, MPI_COMM_WORLD), show("MPI_Scan");
    MPI_Exscan(&mine, &got, 1, MPI_LONG, behind, MPI_COMM_WORLD), show("MPI_Exscan");
    MPI_Iallreduce(&mine, &got, 1, MPI_LONG, behind, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE), show("MPI_Iallreduce");
    MPI_Type_contiguous(2, MPI_LONG, &two);
    MPI_Type_commit(&two);
    MPI_Op_create(add_pairs, 1, &add);
    MPI_Allreduce(pair, sums, 1, two, add, MPI_COMM_WORLD);
    got = sums[1], show("pairs, MPI_Allreduce");
    MPI_Iallreduce(pair, sums, 1, two, add, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    got = sums[1], show("pairs, MPI_Iallreduce");
    MPI_Finalize();
    return 0;
}
C
cat > four.xml <<'P'
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-3" speed="1Gf" bw="1GBps" lat="10us"/></platform>
P
printf 'n0\nn1\nn2\nn3\n' > hosts
mpiexec.mpich --version | sed -n 2p >&2
smpirun -version | sed 1q >&2
mpicc.mpich -o scan.mpich scan.c
mpiexec.mpich -n 4 ./scan.mpich 2> said | sed 's/^/mpich, /' | tee seen
smpicc -o scan.smpi scan.c
smpirun -np 4 -hostfile hosts -platform four.xml --cfg=smpi/simulate-computation:no ./scan.smpi 2> said > told
sed 's/^/smpi, /' told | tee -a seen
cmp - seen <<'S'
mpich, MPI_Allreduce: 1234 1234 1234 1234
mpich, MPI_Scan: 1 12 123 1234
mpich, MPI_Exscan: 0 1 12 123
mpich, MPI_Iallreduce: 1234 1234 1234 1234
mpich, pairs, MPI_Allreduce: 10 10 10 10
mpich, pairs, MPI_Iallreduce: 10 10 10 10
smpi, MPI_Allreduce: 1234 1234 1234 1234
smpi, MPI_Scan: 1 2 3 4
smpi, MPI_Exscan: 0 0 0 0
smpi, MPI_Iallreduce: 4321 4312 4213 3214
smpi, pairs, MPI_Allreduce: 10 10 10 10
smpi, pairs, MPI_Iallreduce: 1 2 3 4
S
