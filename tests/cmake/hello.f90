program hello
  use mpi_f08
  implicit none
  integer :: me, sum
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Allreduce(me, sum, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (me == 0) print '(a, i0)', 'Fortran: ', sum
  call MPI_Finalize()
end program
