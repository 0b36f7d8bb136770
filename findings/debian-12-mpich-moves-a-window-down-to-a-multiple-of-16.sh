#!/bin/sh
# MPICH 4.0.2 with UCX 1.13.1 (Debian 12's mpich 4.0.2-3+b1, which must be installed) and MPICH 4.0.3 (PyPI); needs cc, no root.
# MPI_Win_create of memory whose address is no multiple of 16, as any int or double within an array or a struct may be; a Put, a Get and an
# Accumulate at displacement 0 of another process. Expected: they reach the window's first byte. Seen: so it is in MPICH 4.0.3. In Debian's, which
# is built for UCX, they reach the multiple of 16 below: 4, 8 or 12 bytes before the window, which belong to some other variable; nothing says
# so. MPI_Win_allocate of 4 bytes in each process has it, too. Where malloc has made the memory all is right (its addresses are multiples of 16),
# so examples work. Open a window on whole allocations, or align it: __attribute__((aligned(16))).
# Seen: the eight lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
cat > "$d/place.c" <<'C'
#include <mpi.h>
#include <stdio.h>
#include <string.h>
static char memory[256] __attribute__((aligned(64)));
static int where(char what, int from)
{
    char *found = memchr(memory, what, sizeof memory);
    return found ? (int)(found - memory) - from : 999;
}
int main(int argc, char **argv)
{
    int rank, length, one = 'a';
    char version[MPI_MAX_LIBRARY_VERSION_STRING], got[4];
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Get_library_version(version, &length);
    if (rank == 0)
        fprintf(stderr, "%.40s\n", version);
    for (int from = 64; from < 80; from += 4) {
        MPI_Win_create(memory + from, 16, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        memset(memory, 0, sizeof memory);
        MPI_Win_fence(0, window);
        if (rank == 1)
            MPI_Put("p", 1, MPI_CHAR, 0, 0, 1, MPI_CHAR, window);
        MPI_Win_fence(0, window);
        int put = where('p', from);
        for (int i = 0; i < 256; i++)
            memory[i] = i;
        MPI_Win_fence(0, window);
        if (rank == 1)
            MPI_Get(got, 1, MPI_CHAR, 0, 0, 1, MPI_CHAR, window);
        MPI_Win_fence(0, window);
        memset(memory, 0, sizeof memory);
        MPI_Win_fence(0, window);
        if (rank == 1)
            MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, window);
        MPI_Win_fence(0, window);
        int get = got[0] - from, accumulated = where('a', from);
        MPI_Bcast(&get, 1, MPI_INT, 1, MPI_COMM_WORLD);
        if (rank == 0)
            printf("window at 16 n + %d: put at %d, got from %d, accumulated at %d\n", from - 64, put, get, accumulated);
        MPI_Win_free(&window);
    }
    MPI_Finalize();
}
C
python3 -m venv "$d/pypi"
"$d/pypi/bin/pip" install -q --disable-pip-version-check mpich==4.0.3
cc -o "$d/place.pypi" "$d/place.c" -I"$d/pypi/include" -L"$d/pypi/lib" -lmpi -Wl,-rpath,"$d/pypi/lib" -Wl,-rpath-link,"$d/pypi/lib"
mpicc.mpich -o "$d/place.debian" "$d/place.c"
{
    "$d/pypi/bin/mpiexec" -n 2 "$d/place.pypi" | sed "s/^/pypi, /"
    mpiexec.mpich -n 2 "$d/place.debian" | sed "s/^/debian, /"
} | tee "$d/seen"
cmp - "$d/seen" <<'S'
pypi, window at 16 n + 0: put at 0, got from 0, accumulated at 0
pypi, window at 16 n + 4: put at 0, got from 0, accumulated at 0
pypi, window at 16 n + 8: put at 0, got from 0, accumulated at 0
pypi, window at 16 n + 12: put at 0, got from 0, accumulated at 0
debian, window at 16 n + 0: put at 0, got from 0, accumulated at 0
debian, window at 16 n + 4: put at -4, got from -4, accumulated at -4
debian, window at 16 n + 8: put at -8, got from -8, accumulated at -8
debian, window at 16 n + 12: put at -12, got from -12, accumulated at -12
S
