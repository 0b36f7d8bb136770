! Ranks that wait for each other, in a subroutine that calls MPI through mpi_f08.
program where_f08
  use mpi_f08
  implicit none
  integer :: rank, ranks
  real :: x(2)
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call ring
  call MPI_Finalize()
contains
  subroutine ring
    call MPI_Recv(x, 2, MPI_REAL, mod(rank + 1, ranks), 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  end subroutine
end program
