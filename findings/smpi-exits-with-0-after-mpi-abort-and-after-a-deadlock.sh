#!/bin/sh
# SimGrid 3.32 (Debian 12's libsimgrid-dev 3.32-2+b2, which must be installed; no root).
# smpirun passes on what a rank returns (7) and a signal (139). Expected of MPI_Abort(MPI_COMM_WORLD, 7) then: 7, as from other MPIs,
# and of a deadlock some failure. Seen: 0 for both; only the text on standard error tells. A script that trusts the exit code
# takes a simulation that was aborted or never ended for a success; one that compares simulators must look for output that
# only a whole run prints.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
cd "$d"
cat > p.c <<'P'
#include <mpi.h>
#include <stdlib.h>
int main(int c, char **v) {
    int rank, got, how = c > 1 ? atoi(v[1]) : 0;
    MPI_Init(&c, &v);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (how == 1 && rank == 1) MPI_Abort(MPI_COMM_WORLD, 7);
    if (how == 2) MPI_Recv(&got, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return how == 3 && rank == 1 ? 7 : 0;
}
P
cat > p.xml <<'P'
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" bw="1GBps" lat="10us"/></platform>
P
printf 'n0\nn1\n' > hosts
smpirun -version | head -n 1
smpicc -o p p.c
for how in abort:1 deadlock:2 return:3 nothing:0; do
    code=0
    smpirun -np 2 -hostfile hosts -platform p.xml ./p "${how#*:}" > "said.${how%:*}" 2>&1 || code=$?
    echo "${how%:*}: exit code $code"
done | tee seen
grep -q "MPI_Abort was called" said.abort && grep -q "Deadlock detected" said.deadlock
printf '%s\n' "abort: exit code 0" "deadlock: exit code 0" "return: exit code 7" "nothing: exit code 0" | cmp - seen
