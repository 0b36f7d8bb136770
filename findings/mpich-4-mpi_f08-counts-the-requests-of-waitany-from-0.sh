#!/bin/sh
# MPICH 4.0.2 and Open MPI 4.1.4 (Debian 12's libmpich-dev 4.0.2-3+b1, libopenmpi-dev 4.1.4-3+b1 and gfortran, which must be installed; no
# root).
# MPI_Waitany and kin over three requests of which the third completes. Expected: Fortran counts from 1, so the index is 3, whichever module
# is used, as the standard says. Seen: 3 with `use mpi`, and with both modules of Open MPI; MPICH's mpi_f08 passes on C's index, 2, in all
# four calls. So `call handle(buffers(:, index))` takes the data of another request, here of one that was never started, or element 0 of an
# array, with no error. The binding is in libmpichfort.so, so a program that adds one is wrong again with the next library (MPICH mended it in
# 4.1). Whoever runs programs that were compiled for this MPICH gives them 3, which is what they were written for. Until then: the module
# `mpi`, or MPI_Waitall.
# Seen: the four lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$d"
cat > mpi_f08.f90 <<'F'
program third
  use mpi_f08
  implicit none
  type(MPI_Request) :: requests(3)
  integer :: turn, n, done, ierr, room, places(3), found(4)
  logical :: flag
  call MPI_Init(ierr)
  do turn = 1, 4
    requests = MPI_REQUEST_NULL
    call MPI_Irecv(room, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, requests(3), ierr)
    call MPI_Send(turn, 1, MPI_INTEGER, 0, 1, MPI_COMM_SELF, ierr)
    flag = .false.
    done = 0
    places = -1
    select case (turn)
    case (1)
      call MPI_Waitany(3, requests, places(1), MPI_STATUS_IGNORE, ierr)
    case (2)
      do while (.not. flag)
        call MPI_Testany(3, requests, places(1), flag, MPI_STATUS_IGNORE, ierr)
      end do
    case (3)
      call MPI_Waitsome(3, requests, done, places, MPI_STATUSES_IGNORE, ierr)
    case (4)
      do while (done == 0)
        call MPI_Testsome(3, requests, done, places, MPI_STATUSES_IGNORE, ierr)
      end do
    end select
    found(turn) = places(1)
  end do
  print '(4(a, i0))', 'Waitany ', found(1), ', Testany ', found(2), ', Waitsome ', found(3), ', Testsome ', found(4)
  call MPI_Finalize(ierr)
end program third
F
sed 's/use mpi_f08/use mpi/; s/type(MPI_Request)/integer/' mpi_f08.f90 > mpi.f90
for mpi in mpich openmpi; do
    "mpiexec.$mpi" --version 2>&1 | head -n 2 >&2
    for module in mpi mpi_f08; do
        "mpif90.$mpi" -o "$module.$mpi" "$module.f90"
        "mpiexec.$mpi" -n 1 "./$module.$mpi" 2> said | sed "s/^/$mpi, use $module: /"
    done
done | tee seen
cmp - seen <<'S'
mpich, use mpi: Waitany 3, Testany 3, Waitsome 3, Testsome 3
mpich, use mpi_f08: Waitany 2, Testany 2, Waitsome 2, Testsome 2
openmpi, use mpi: Waitany 3, Testany 3, Waitsome 3, Testsome 3
openmpi, use mpi_f08: Waitany 3, Testany 3, Waitsome 3, Testsome 3
S
