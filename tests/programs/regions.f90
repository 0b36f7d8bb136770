! Regions from Fortran: each rank is three times in "fortran part".
program regions
  use mpi
  implicit none
  external :: MPIX_Region_begin, MPIX_Region_end
  integer :: ierror, round
  character(len=40) :: name
  call MPI_Init(ierror)
  name = 'fortran part'
  do round = 1, 3
    call MPIX_Region_begin(name, ierror)
    if (ierror /= MPI_SUCCESS) stop 2
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call MPIX_Region_end('fortran part', ierror)
    if (ierror /= MPI_SUCCESS) stop 3
  end do
  call MPI_Finalize(ierror)
end program
