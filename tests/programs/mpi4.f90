! MPI 4 from Fortran: sessions, partitioned messages, nonblocking exchange.
program mpi4

  implicit none
  include 'mpif.h'
  integer, parameter :: no_session = int(z'38000000')
  integer :: ierr, session, n, length, group, comm, world, rank, size, failures, total, next, last
  integer :: requests(2), statuses(MPI_STATUS_SIZE, 2), i, info, request, status(MPI_STATUS_SIZE), got
  integer(MPI_COUNT_KIND) :: each
  integer :: list(2), outgoing(12), incoming(12)
  character(len=100) :: name
  logical :: flag
  failures = 0
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session, ierr)
  call MPI_Session_get_num_psets(session, MPI_INFO_NULL, n, ierr)
  if (n < 2) failures = failures + 1
  length = 0
  name = 'untouched'
  call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, name, ierr)
  if (name /= 'untouched') failures = failures + 1
  if (length /= len('mpi://WORLD')) failures = failures + 1
  call MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, length, name, ierr)
  if (name /= 'mpi://WORLD') failures = failures + 1
  call MPI_Session_get_pset_info(session, 'mpi://WORLD', info, ierr)
  call MPI_Info_free(info, ierr)
  call MPI_Group_from_session_pset(session, 'mpi://WORLD', group, ierr)
  call MPI_Comm_create_from_group(group, 'fortran', MPI_INFO_NULL, MPI_ERRORS_RETURN, comm, ierr)
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Comm_size(comm, size, ierr)
  next = mod(rank + 1, size)
  last = mod(rank + size - 1, size)
  do i = 1, 12
    outgoing(i) = rank * 100 + i
  end do
  each = 3
  call MPI_Psend_init(outgoing, 4, each, MPI_INTEGER, next, 1, comm, MPI_INFO_NULL, requests(1), ierr)
  call MPI_Precv_init(incoming, 4, each, MPI_INTEGER, last, 1, comm, MPI_INFO_NULL, requests(2), ierr)
  call MPI_Startall(2, requests, ierr)
  call MPI_Pready(2, requests(1), ierr)
  call MPI_Pready_range(0, 1, requests(1), ierr)
  list(1) = 3
  call MPI_Pready_list(1, list, requests(1), ierr)
  flag = .false.
  do while (.not. flag)
    call MPI_Parrived(requests(2), 3, flag, ierr)
  end do
  call MPI_Waitall(2, requests, statuses, ierr)
  do i = 1, 12
    if (incoming(i) /= last * 100 + i) failures = failures + 1
  end do
  call MPI_Request_free(requests(1), ierr)
  call MPI_Request_free(requests(2), ierr)
  call MPI_Isendrecv(rank, 1, MPI_INTEGER, next, 2, got, 1, MPI_INTEGER, last, 2, comm, request, ierr)
  call MPI_Wait(request, status, ierr)
  if (got /= last) failures = failures + 1
  call MPI_Allreduce(failures, total, 1, MPI_INTEGER, MPI_SUM, comm, ierr)
  if (rank == 0) print '(a)', merge('all checks hold', 'checks failed  ', total == 0)
  call MPI_Group_free(group, ierr)
  call MPI_Comm_free(comm, ierr)
  call MPI_Session_finalize(session, ierr)
  if (session /= no_session) stop 2
  if (total /= 0) stop 1
end program
