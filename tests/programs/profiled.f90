! What a preloaded profiling tool in C (profiler.c) sees of it is checked there; that everything works beside it, here.
module procedures
  use mpi
  implicit none
  integer :: copied = 0, deleted = 0, handled = 0, asked = 0, ended = 0
contains
  subroutine smaller(a, b, n, type)
    integer :: n, type
    integer :: a(n), b(n)
    b = min(a, b)
  end subroutine
  subroutine copy(comm, key, extra, old, new, flag, e)
    integer :: comm, key, e
    integer(MPI_ADDRESS_KIND) :: extra, old, new
    logical :: flag
    copied = copied + int(extra)
    new = old + 1
    flag = .true.
    e = MPI_SUCCESS
  end subroutine
  subroutine del(comm, key, value, extra, e)
    integer :: comm, key, e
    integer(MPI_ADDRESS_KIND) :: value, extra
    deleted = deleted + int(value)
    e = MPI_SUCCESS
  end subroutine
  subroutine handle(comm, code)
    integer :: comm, code
    if (comm == MPI_COMM_SELF) handled = handled + 1
  end subroutine
  subroutine query(extra, status, e)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), e
    asked = asked + int(extra)
    call MPI_Status_set_elements(status, MPI_INTEGER, 3, e)
    call MPI_Status_set_cancelled(status, .false., e)
    e = MPI_SUCCESS
  end subroutine
  subroutine end_of(extra, e)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: e
    ended = int(extra)
    e = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra, complete, e)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: e
    e = MPI_SUCCESS
  end subroutine
end module

program profiled
  use procedures
  implicit none
  integer :: e, rank, size, n, key, op, handler, comm, request, type, index, requests(2), status(MPI_STATUS_SIZE), x(4), y(4)
  integer(MPI_ADDRESS_KIND) :: value, extra, place
  integer :: neighbours(1)
  logical :: flag, good = .true.
  character(20) :: name
  double precision :: t

  call MPI_Init(e)
  t = MPI_Wtime()
  call MPI_Pcontrol(2)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, e)
  call MPI_Comm_size(MPI_COMM_WORLD, size, e)
  x = rank
  call MPI_Allreduce(MPI_IN_PLACE, x, 4, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, e)
  call expect(all(x == size - 1), 'MPI_IN_PLACE')
  call MPI_Op_create(smaller, .true., op, e)
  x = rank + 5
  call MPI_Allreduce(x, y, 4, MPI_INTEGER, op, MPI_COMM_WORLD, e)
  call expect(all(y == 5), 'MPI_Op_create')
  call MPI_Op_free(op, e)

  call MPI_Get_address(x, place, e)
  call MPI_Type_create_hindexed(1, [4], [place], MPI_INTEGER, type, e)
  call MPI_Type_commit(type, e)
  call MPI_Irecv(y, 4, MPI_INTEGER, rank, 1, MPI_COMM_WORLD, requests(1), e)
  x = [1, 2, 3, 4]
  call MPI_Send(MPI_BOTTOM, 1, type, rank, 1, MPI_COMM_WORLD, e)
  requests(2) = MPI_REQUEST_NULL
  call MPI_Waitany(2, requests, index, status, e)
  call expect(index == 1 .and. requests(1) == MPI_REQUEST_NULL .and. all(y == [1, 2, 3, 4]), 'MPI_BOTTOM, MPI_Waitany')
  call MPI_Get_count(status, MPI_INTEGER, n, e)
  call expect(n == 4 .and. status(MPI_SOURCE) == rank, 'status')
  call MPI_Isend(x, 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, requests(1), e)
  call MPI_Recv(y, 1, MPI_INTEGER, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, e)
  call expect(all(requests == MPI_REQUEST_NULL), 'MPI_Waitall')

  neighbours = rank
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, neighbours, MPI_UNWEIGHTED, 1, neighbours, MPI_UNWEIGHTED, &
      MPI_INFO_NULL, .false., comm, e)
  call MPI_Dist_graph_neighbors_count(comm, n, index, flag, e)
  call expect(n == 1 .and. index == 1 .and. .not. flag, 'MPI_UNWEIGHTED')
  call MPI_Comm_set_name(comm, 'a name  ', e)
  call MPI_Comm_get_name(comm, name, n, e)
  call expect(n == 6 .and. name == 'a name', 'names')
  call MPI_Comm_free(comm, e)

  extra = 7
  call MPI_Comm_create_keyval(copy, del, key, extra, e)
  value = 2_MPI_ADDRESS_KIND ** 40
  call MPI_Comm_set_attr(MPI_COMM_SELF, key, value, e)
  value = 0
  call MPI_Comm_get_attr(MPI_COMM_SELF, key, value, flag, e)
  call expect(flag .and. value == 2_MPI_ADDRESS_KIND ** 40, 'MPI_Comm_set_attr')
  call MPI_Comm_set_attr(MPI_COMM_SELF, key, 10_MPI_ADDRESS_KIND, e)
  call MPI_Comm_dup(MPI_COMM_SELF, comm, e)
  call MPI_Comm_get_attr(comm, key, value, flag, e)
  call expect(copied == 7 .and. flag .and. value == 11, 'the copy of an attribute')
  deleted = 0
  call MPI_Comm_free(comm, e)
  call expect(deleted == 11, 'the end of an attribute')
  call MPI_Comm_delete_attr(MPI_COMM_SELF, key, e)
  call MPI_Comm_free_keyval(key, e)
  call expect(key == MPI_KEYVAL_INVALID, 'MPI_Comm_free_keyval')

  call MPI_Comm_create_errhandler(handle, handler, e)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, handler, e)
  call MPI_Comm_call_errhandler(MPI_COMM_SELF, MPI_ERR_OTHER, e)
  call expect(handled == 1, 'MPI_Comm_create_errhandler')
  call MPI_Errhandler_free(handler, e)

  extra = 3
  call MPI_Grequest_start(query, end_of, cancel, extra, request, e)
  call MPI_Grequest_complete(request, e)
  call MPI_Wait(request, status, e)
  call MPI_Get_count(status, MPI_INTEGER, n, e)
  call expect(asked == 3 .and. ended == 3 .and. n == 3, 'MPI_Grequest_start')
  call MPI_Type_free(type, e)
  if (rank == 0 .and. good) print '(a)', 'all checks hold'
  flush(6)
  call MPI_Finalize(e)
contains
  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (.not. holds) print '(a, i0, 2a)', 'rank ', rank, ': wrong: ', what
    good = good .and. holds
  end subroutine
end program
