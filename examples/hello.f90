! Each rank says who it is: mpifort -o hello_f hello.f90, or vmpifort.
program hello
  use mpi_f08
  implicit none
  integer :: rank, n
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  print '(a,i0,a,i0)', 'Fortran: rank ', rank, ' of ', n
  call MPI_Finalize()
end program
