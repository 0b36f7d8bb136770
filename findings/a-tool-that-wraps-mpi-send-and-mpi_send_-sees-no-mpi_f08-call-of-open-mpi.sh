#!/bin/sh
# Open MPI 4.1.4 and MPICH 4.0.2 (Debian 12's libopenmpi-dev 4.1.4-3+b1, libmpich-dev 4.0.2-3+b1 and gfortran, which must be installed; no root).
# A profiling tool that tells calls apart by return address (mpiP, call sites of a trace) and wraps C's MPI_Send and Fortran's mpi_send_.
# Expected: it sees each MPI_Send of a Fortran program, at its line. Seen, in a program with 6 sends at 3 lines: with `use mpi_f08`
# Open MPI calls neither, so the tool sees nothing: it would have to wrap mpi_send_f08_; and ompi_send_f below that is called from one address
# in libmpi_usempif08.so whatever the line. MPICH comes to MPI_Send in all cases, from one address in libmpichfort.so, so all lines
# are one call site, and mpi_f08's own entry has another name, mpi_send_f08ts_. Only the outermost entry knows the line.
# Seen: the seven lines below the program.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$d"
cat > mpi_f08.f90 <<'F'
program sends
  use mpi_f08
  integer :: rank, turn, ierr
  real :: x(4)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  do turn = 1, 2
    if (rank == 0) then
      call MPI_Send(x, 1, MPI_REAL, 1, 1, MPI_COMM_WORLD, ierr)
      call MPI_Send(x, 2, MPI_REAL, 1, 2, MPI_COMM_WORLD, ierr)
      call MPI_Send(x, 3, MPI_REAL, 1, 3, MPI_COMM_WORLD, ierr)
    else
      call MPI_Recv(x, 1, MPI_REAL, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call MPI_Recv(x, 2, MPI_REAL, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call MPI_Recv(x, 3, MPI_REAL, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    end if
  end do
  call MPI_Finalize(ierr)
end program
F
sed 's/use mpi_f08/use mpi/' mpi_f08.f90 > mpi.f90
cat > tool.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#define WRAP(name)                                                                                                        \
    void name(void *a, void *b, void *c, void *d, void *e, void *f, void *g) {                                            \
        void (*next)(void *, void *, void *, void *, void *, void *, void *) = dlsym(RTLD_NEXT, #name);                   \
        fprintf(stderr, "wrapped " #name " %p\n", __builtin_return_address(0));                                           \
        next(a, b, c, d, e, f, g);                                                                                        \
    }
WRAP(MPI_Send) WRAP(mpi_send_) WRAP(mpi_send_f08_) WRAP(mpi_send_f08ts_) WRAP(ompi_send_f)
C
gcc -shared -fPIC -O1 -o tool.so tool.c
for mpi in openmpi mpich; do
    "mpiexec.$mpi" --version 2>&1 | head -n 2 >&2
    for module in mpi mpi_f08; do
        "mpif90.$mpi" -o "$module.$mpi" "$module.f90"
        "mpiexec.$mpi" -n 2 env LD_PRELOAD="$d/tool.so" "./$module.$mpi" 2> said
        for entry in MPI_Send mpi_send_ mpi_send_f08_ mpi_send_f08ts_ ompi_send_f; do
            calls=$(grep -c "^wrapped $entry " said || true)
            sites=$(grep "^wrapped $entry " said | sort -u | wc -l)
            [ "$calls" = 0 ] || echo "$mpi, use $module: $entry: $calls calls from $sites sites"
        done
    done
done | tee seen
cat > expected <<'S'
openmpi, use mpi: mpi_send_: 6 calls from 3 sites
openmpi, use mpi_f08: mpi_send_f08_: 6 calls from 3 sites
openmpi, use mpi_f08: ompi_send_f: 6 calls from 1 sites
mpich, use mpi: MPI_Send: 6 calls from 1 sites
mpich, use mpi: mpi_send_: 6 calls from 3 sites
mpich, use mpi_f08: MPI_Send: 6 calls from 1 sites
mpich, use mpi_f08: mpi_send_f08ts_: 6 calls from 3 sites
S
cmp expected seen
