#!/bin/sh
# MPICH 4.0.2 and Open MPI 4.1.4 (Debian 12's libmpich-dev 4.0.2-3+b1, libopenmpi-dev 4.1.4-3+b1 and gfortran, which must be installed; no
# root).
# Every other element of an array, a(1:5:2), given to MPI calls of mpi_f08, as one may where MPI_SUBARRAYS_SUPPORTED is .TRUE. Expected: MPICH
# says .TRUE. and sends and receives the elements of the section; Open MPI says .FALSE., where gfortran makes a copy for the call, which does
# for calls that block. Seen: Open MPI is right in all of them. MPICH is in MPI_Sendrecv and MPI_Bcast. But where a section is split between
# ranks, or added up, it takes the whole array: MPI_Gather and MPI_Allgather write a(1), a(2), a(3) instead of a(1), a(3), a(5), MPI_Scatter
# and MPI_Alltoall send these, MPI_Allreduce adds these, all without a word; only if both buffers are sections MPI_Allreduce says MPI_ERR_OP,
# since they have become a derived type. Whoever writes mpi_f08 for an MPI must copy such sections in collective calls; whoever uses MPICH's
# must do it himself: (a(1:5:2)) to send, a variable to receive.
# Seen: the eighteen lines at the end.
set -eu
d=$(mktemp -d); trap 'rm -rf "$d"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
cd "$d"
cat > section.f90 <<'F'
program section
  use mpi_f08
  implicit none
  integer :: rank, code, class, i, a(6), b(6)
  type(MPI_Status) :: status
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  if (rank == 0) print '(a, l1)', 'MPI_SUBARRAYS_SUPPORTED ', MPI_SUBARRAYS_SUPPORTED
  a = [(100 * rank + i, i = 1, 6)]

  b = -1
  call MPI_Sendrecv(a(1:5:2), 3, MPI_INTEGER, modulo(rank + 1, 3), 0, b(1:5:2), 3, MPI_INTEGER, modulo(rank - 1, 3), 0, &
    MPI_COMM_WORLD, status)
  call show('MPI_Sendrecv', 0)
  b = -1
  if (rank == 1) b = a
  call MPI_Bcast(b(1:5:2), 3, MPI_INTEGER, 1, MPI_COMM_WORLD)
  call show('MPI_Bcast', 0)
  b = -1
  call MPI_Gather(a, 1, MPI_INTEGER, b(1:5:2), 1, MPI_INTEGER, 0, MPI_COMM_WORLD)
  call show('MPI_Gather', 0)
  b = -1
  call MPI_Allgather(a, 1, MPI_INTEGER, b(1:5:2), 1, MPI_INTEGER, MPI_COMM_WORLD)
  call show('MPI_Allgather', 0)
  b = -1
  call MPI_Scatter(a(1:5:2), 1, MPI_INTEGER, b, 1, MPI_INTEGER, 1, MPI_COMM_WORLD)
  call show('MPI_Scatter from rank 1 to 2', 2)
  b = -1
  call MPI_Alltoall(a(1:5:2), 1, MPI_INTEGER, b, 1, MPI_INTEGER, MPI_COMM_WORLD)
  call show('MPI_Alltoall', 2)
  b = -1
  call MPI_Allreduce(a(1:5:2), b, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  call show('MPI_Allreduce', 0)
  b = -1
  call MPI_Allreduce(a(1:5:2), b(1:5:2), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  call MPI_Error_class(code, class)
  if (class == MPI_ERR_OP) b = 0
  call show('MPI_Allreduce into a section', 0)
  call MPI_Finalize()
contains
  subroutine show(call, who)
    character(*), intent(in) :: call
    integer, intent(in) :: who
    call MPI_Bcast(b, 6, MPI_INTEGER, who, MPI_COMM_WORLD)
    if (rank == 0) print '(a, 6(1x, i0))', call, b
  end subroutine show
end program section
F
for mpi in mpich openmpi; do
    "mpiexec.$mpi" --version 2>&1 | head -n 2 >&2
    more=; [ $mpi = mpich ] || more="--oversubscribe --bind-to none"
    "mpif90.$mpi" -o "section.$mpi" section.f90
    "mpiexec.$mpi" $more -n 3 "./section.$mpi" 2> said | sed "s/^/$mpi, /"
done | tee seen
cmp - seen <<'S'
mpich, MPI_SUBARRAYS_SUPPORTED T
mpich, MPI_Sendrecv 201 -1 203 -1 205 -1
mpich, MPI_Bcast 101 -1 103 -1 105 -1
mpich, MPI_Gather 1 101 201 -1 -1 -1
mpich, MPI_Allgather 1 101 201 -1 -1 -1
mpich, MPI_Scatter from rank 1 to 2 103 -1 -1 -1 -1 -1
mpich, MPI_Alltoall 3 103 203 -1 -1 -1
mpich, MPI_Allreduce 303 306 309 -1 -1 -1
mpich, MPI_Allreduce into a section 0 0 0 0 0 0
openmpi, MPI_SUBARRAYS_SUPPORTED F
openmpi, MPI_Sendrecv 201 -1 203 -1 205 -1
openmpi, MPI_Bcast 101 -1 103 -1 105 -1
openmpi, MPI_Gather 1 -1 101 -1 201 -1
openmpi, MPI_Allgather 1 -1 101 -1 201 -1
openmpi, MPI_Scatter from rank 1 to 2 105 -1 -1 -1 -1 -1
openmpi, MPI_Alltoall 5 105 205 -1 -1 -1
openmpi, MPI_Allreduce 303 309 315 -1 -1 -1
openmpi, MPI_Allreduce into a section 303 -1 309 -1 315 -1
S
