! Deaths of Fortran programs, by the first argument, of the last rank.
program crash
  use mpi
  implicit none
  character(len=32) :: what
  integer :: rank, nranks, ierr
  call get_command_argument(1, what)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == nranks - 1) call die(trim(what))
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
contains
  subroutine die(how)
    character(len=*), intent(in) :: how
    real, volatile :: x, nothing
    integer, allocatable :: values(:)
    integer, pointer :: nowhere
    integer :: at
    select case (how)
    case ('fpe')
      nothing = 0.0
      x = 1.0 / nothing
      print *, x
    case ('bounds')
      allocate(values(3))
      at = 3 + nranks
      values(at) = 1
      print *, values(1)
    case ('null')
      nullify(nowhere)
      nowhere = 1
    case ('stop')
      stop 4
    case ('error-stop')
      error stop 5
    case ('mpi')
      call MPI_Send(at, 1, MPI_INTEGER, nranks + 3, 0, MPI_COMM_WORLD, ierr)
    end select
  end subroutine
end program
