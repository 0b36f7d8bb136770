#!/bin/sh
# MPICH 4.0.2 (Debian 12's mpich 4.0.2-3+b1, which must be installed) and 4.0.3 (PyPI); needs cc, no root.
# MPI_Allreduce, MPI_Scan and MPI_Reduce_local with MPI_MAX and MPI_MIN of unsigned integers, one of which has its highest bit set. Expected:
# the larger one. Seen: 4.0.3 gives it, as all others do; Debian's 4.0.2 compares as signed, in all unsigned types from MPI_UNSIGNED_CHAR to
# MPI_UINT64_T: of 7 and 250 bytes the largest is 7. No error, and small numbers are right: bytes of pictures, global indices beyond 2^31 and hashes
# are not. Reduce in the next larger signed type, or take another version.
# Seen: the lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
cat > "$d/max.c" <<'C'
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
static int rank;
#define ALL(C, TYPE) { \
    C large = (C)-6, seven = 7, max, min, scan, local = 7; \
    MPI_Allreduce(rank ? &seven : &large, &max, 1, TYPE, MPI_MAX, MPI_COMM_WORLD); \
    MPI_Allreduce(rank ? &seven : &large, &min, 1, TYPE, MPI_MIN, MPI_COMM_WORLD); \
    MPI_Scan(rank ? &seven : &large, &scan, 1, TYPE, MPI_MAX, MPI_COMM_WORLD); \
    MPI_Reduce_local(&large, &local, 1, TYPE, MPI_MAX); \
    if (rank == 1) \
        printf(#TYPE ": max %s, min %s, scan %s, local %s\n", max == large ? "large" : "7", min == large ? "large" : "7", \
            scan == large ? "large" : "7", local == large ? "large" : "7"); \
}
int main(int argc, char **argv)
{
    int length;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    if (rank == 1)
        fprintf(stderr, "%.40s\n", version);
    ALL(unsigned char, MPI_UNSIGNED_CHAR)
    ALL(unsigned short, MPI_UNSIGNED_SHORT)
    ALL(unsigned, MPI_UNSIGNED)
    ALL(unsigned long, MPI_UNSIGNED_LONG)
    ALL(uint64_t, MPI_UINT64_T)
    MPI_Finalize();
}
C
python3 -m venv "$d/pypi"
"$d/pypi/bin/pip" install -q --disable-pip-version-check mpich==4.0.3
cc -o "$d/max.pypi" "$d/max.c" -I"$d/pypi/include" -L"$d/pypi/lib" -lmpi -Wl,-rpath,"$d/pypi/lib" -Wl,-rpath-link,"$d/pypi/lib"
mpicc.mpich -o "$d/max.debian" "$d/max.c"
{
    "$d/pypi/bin/mpiexec" -n 2 "$d/max.pypi" | sed "s/^/pypi, /"
    mpiexec.mpich -n 2 "$d/max.debian" | sed "s/^/debian, /"
} | tee "$d/seen"
cmp - "$d/seen" <<'S'
pypi, MPI_UNSIGNED_CHAR: max large, min 7, scan large, local large
pypi, MPI_UNSIGNED_SHORT: max large, min 7, scan large, local large
pypi, MPI_UNSIGNED: max large, min 7, scan large, local large
pypi, MPI_UNSIGNED_LONG: max large, min 7, scan large, local large
pypi, MPI_UINT64_T: max large, min 7, scan large, local large
debian, MPI_UNSIGNED_CHAR: max 7, min large, scan 7, local 7
debian, MPI_UNSIGNED_SHORT: max 7, min large, scan 7, local 7
debian, MPI_UNSIGNED: max 7, min large, scan 7, local 7
debian, MPI_UNSIGNED_LONG: max 7, min large, scan 7, local 7
debian, MPI_UINT64_T: max 7, min large, scan 7, local 7
S
