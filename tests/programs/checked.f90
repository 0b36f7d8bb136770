! Faults that vmpirun --check is to find in Fortran, and their correct twins: checked good|bad. A line that ends in a case's name is where that fault is to be found.
program checked
  use mpi_f08
  implicit none
  integer :: rank, extent, given, other
  logical :: bad
  real :: reals(4)
  integer :: integers(4)
  character(len=8) :: word
  type(MPI_Request) :: request
  type(MPI_Datatype) :: row

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, extent)
  call get_command_argument(1, word)
  bad = word == "bad"
  reals = 0
  integers = 0
  given = 0
  other = 0

  ! A real number is received as an integer.
  if (rank == 0) call MPI_Send(reals, 4, MPI_REAL, 1, 1, MPI_COMM_WORLD)
  if (rank == 1) then
     if (bad) then
        call MPI_Recv(integers, 4, MPI_INTEGER, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ! f_message
     else
        call MPI_Recv(reals, 4, MPI_REAL, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
     end if
  end if

  ! Operations differ.
  if (bad .and. rank == 1) then
     call MPI_Allreduce(MPI_IN_PLACE, integers, 4, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD) ! f_op
  else
     call MPI_Allreduce(MPI_IN_PLACE, integers, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD) ! f_op
  end if

  ! A datatype is left.
  call MPI_Type_contiguous(4, MPI_REAL, row) ! f_type
  call MPI_Type_commit(row)
  if (.not. bad) call MPI_Type_free(row)

  ! A receive is left open.
  if (rank == 1) then
     call MPI_Irecv(given, 1, MPI_INTEGER, 0, 2, MPI_COMM_WORLD, request) ! f_request
     if (.not. bad) call MPI_Wait(request, MPI_STATUS_IGNORE)
  end if
  if (rank == 0 .and. .not. bad) call MPI_Send(given, 1, MPI_INTEGER, 1, 2, MPI_COMM_WORLD)

  ! A message is left.
  if (rank == 1) call MPI_Send(other, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD)
  if (rank == 0 .and. .not. bad) call MPI_Recv(other, 1, MPI_INTEGER, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
  call MPI_Finalize()
end program checked
