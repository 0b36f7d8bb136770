! Checks the Fortran bindings of `use mpi`: each kind of argument goes through at least one procedure.
! Prints one line, "fortran_usempi: ok", from rank 0; any rank that finds a wrong answer says so and aborts.
module checks
  use mpi
  implicit none
  integer :: rank, nprocs, ierr, handled = 0, deleted = 0
  ! What nonblocking receives write to: a module variable, which the compiler does not keep in registers across calls.
  integer, parameter :: many = 5
  integer :: got_later(many), number
  character(len=5) :: word
  double precision :: real8
contains
  subroutine check(ok, what)
    logical, intent(in) :: ok
    character(len=*), intent(in) :: what
    integer :: code
    if (.not. ok) then
      print *, 'fortran_usempi: rank', rank, 'wrong: ', what
      call MPI_Abort(MPI_COMM_WORLD, 3, code)
    end if
  end subroutine

  subroutine keep_larger(invec, inoutvec, len, datatype)
    integer, intent(in) :: len, datatype
    integer, intent(in) :: invec(len)
    integer, intent(inout) :: inoutvec(len)
    call check(datatype == MPI_INTEGER, 'datatype of a user operation')
    inoutvec = max(invec, inoutvec)
  end subroutine

  subroutine on_error(comm, code)
    integer :: comm, code, class, ierror
    call MPI_Error_class(code, class, ierror)
    if (comm == MPI_COMM_WORLD .and. class == MPI_ERR_RANK) handled = handled + 1
  end subroutine

  subroutine copy_attr(comm, keyval, extra_state, value_in, value_out, flag, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    value_out = value_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine delete_attr(comm, keyval, value, extra_state, ierror)
    integer :: comm, keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: value, extra_state
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine

  subroutine grequest_query(extra_state, status, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: status(MPI_STATUS_SIZE), ierror
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state), ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    status(MPI_SOURCE) = 1
    status(MPI_TAG) = 2
    ierror = MPI_SUCCESS
  end subroutine

  subroutine grequest_free(extra_state, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine

  subroutine grequest_cancel(extra_state, complete, ierror)
    integer(kind=MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine
end module

program fortran_usempi
  use checks
  implicit none
  call MPI_Init(ierr)
  call check(ierr == MPI_SUCCESS, 'MPI_Init')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nprocs, ierr)
  call environment()
  call messages()
  call completion()
  call collectives()
  call datatypes()
  call communicators()
  call attributes()
  call topologies()
  call callbacks()
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(a)', 'fortran_usempi: ok'
  call MPI_Finalize(ierr)
contains
  subroutine environment()
    character(len=MPI_MAX_PROCESSOR_NAME) :: name
    character(len=MPI_MAX_ERROR_STRING) :: text
    character(len=40) :: value, short
    character(len=3) :: tiny
    integer :: length, info, nkeys, major, minor, bytes
    logical :: flag
    double precision :: start, real8
    real :: real4(3)
    integer(kind=MPI_ADDRESS_KIND) :: a, b, location
    call MPI_Initialized(flag, ierr)
    call check(flag, 'MPI_Initialized')
    call MPI_Finalized(flag, ierr)
    call check(.not. flag, 'MPI_Finalized')
    name = repeat('x', len(name))
    call MPI_Get_processor_name(name, length, ierr)
    call check(len_trim(name) == length .and. length > 0, 'MPI_Get_processor_name')
    call MPI_Error_string(MPI_ERR_TAG, text, length, ierr)
    call check(len_trim(text) == length .and. length > 0, 'MPI_Error_string')
    call MPI_Get_version(major, minor, ierr)
    call check(major >= 3, 'MPI_Get_version')
    start = MPI_Wtime()
    call check(MPI_Wtime() >= start .and. MPI_Wtick() > 0 .and. PMPI_Wtime() >= start, 'MPI_Wtime')
    call MPI_Sizeof(real8, bytes, ierr)
    call check(bytes == 8, 'MPI_Sizeof of a double')
    call MPI_Sizeof(real4, bytes, ierr)
    call check(bytes == 4, 'MPI_Sizeof of a real array')
    call MPI_Get_address(real4(1), a, ierr)
    call MPI_Get_address(real4(3), b, ierr)
    call check(MPI_Aint_diff(b, a) == 8 .and. MPI_Aint_add(a, 8_MPI_ADDRESS_KIND) == b, 'MPI_Aint_add, _diff')
    call MPI_Get_address(MPI_BOTTOM, location, ierr)
    call check(location == 0, 'address of MPI_BOTTOM')
    call MPI_Info_create(info, ierr)
    call MPI_Info_set(info, '  a key ', ' its value  ', ierr)
    call MPI_Info_set(info, 'second', '2', ierr)
    call MPI_Info_get_nkeys(info, nkeys, ierr)
    call check(nkeys == 2, 'MPI_Info_get_nkeys')
    value = 'untouched'
    call MPI_Info_get(info, 'no such key', 40, value, flag, ierr)
    call check(.not. flag, 'MPI_Info_get of a missing key')
    call MPI_Info_get(info, 'a key', 40, value, flag, ierr)
    call check(flag .and. value == 'its value', 'MPI_Info_get')
    call MPI_Info_get(info, 'second', 3, tiny, flag, ierr)
    call check(flag .and. tiny == '2', 'MPI_Info_get of a short value')
    call MPI_Info_get_valuelen(info, 'a key', length, flag, ierr)
    call check(flag .and. length == 9, 'MPI_Info_get_valuelen')
    call MPI_Info_get_nthkey(info, 1, short, ierr)
    call check(short == 'second', 'MPI_Info_get_nthkey')
    call MPI_Info_free(info, ierr)
    call check(info == MPI_INFO_NULL, 'MPI_Info_free')
  end subroutine

  subroutine messages()
    integer :: next, previous, sent(4), got(4), status(MPI_STATUS_SIZE), n, request, message
    logical :: flag
    next = mod(rank + 1, nprocs)
    previous = mod(rank + nprocs - 1, nprocs)
    sent = [rank, rank + 1, rank + 2, rank + 3]
    call MPI_Sendrecv(sent, 4, MPI_INTEGER, next, 7, got, 4, MPI_INTEGER, previous, 7, MPI_COMM_WORLD, status, ierr)
    call MPI_Get_count(status, MPI_INTEGER, n, ierr)
    call check(got(4) == previous + 3 .and. n == 4, 'MPI_Sendrecv')
    call check(status(MPI_SOURCE) == previous .and. status(MPI_TAG) == 7, 'status')
    call MPI_Isend(sent, 2, MPI_INTEGER, next, 8, MPI_COMM_WORLD, request, ierr)
    call MPI_Probe(previous, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
    call MPI_Get_count(status, MPI_INTEGER, n, ierr)
    call check(n == 2 .and. status(MPI_TAG) == 8, 'MPI_Probe')
    call MPI_Mprobe(MPI_ANY_SOURCE, 8, MPI_COMM_WORLD, message, MPI_STATUS_IGNORE, ierr)
    call MPI_Mrecv(got, 2, MPI_INTEGER, message, status, ierr)
    call check(message == MPI_MESSAGE_NULL .and. got(1) == status(MPI_SOURCE), 'MPI_Mrecv')
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(request == MPI_REQUEST_NULL, 'MPI_Wait')
    call MPI_Irecv(word, 5, MPI_CHARACTER, previous, 9, MPI_COMM_WORLD, request, ierr)
    call MPI_Send('words', 5, MPI_CHARACTER, next, 9, MPI_COMM_WORLD, ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Test(request, flag, status, ierr)
    end do
    call check(word == 'words', 'a CHARACTER message')
    call MPI_Recv(got, 4, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD, status, ierr)
    call check(status(MPI_SOURCE) == MPI_PROC_NULL .and. status(MPI_TAG) == MPI_ANY_TAG, 'MPI_PROC_NULL')
  end subroutine

  subroutine completion()
    integer :: requests(2 * many), statuses(MPI_STATUS_SIZE, 2 * many), indices(many), i, n, index, done
    integer :: status(MPI_STATUS_SIZE), values(many)
    logical :: flag
    values = [(100 * rank + i, i = 1, many)]
    do i = 1, many
      call MPI_Irecv(got_later(i), 1, MPI_INTEGER, rank, i, MPI_COMM_WORLD, requests(i), ierr)
      call MPI_Isend(values(i), 1, MPI_INTEGER, rank, i, MPI_COMM_WORLD, requests(many + i), ierr)
    end do
    call MPI_Waitall(2 * many, requests, statuses, ierr)
    call check(all(got_later == values) .and. all(requests == MPI_REQUEST_NULL), 'MPI_Waitall')
    call check(all(statuses(MPI_TAG, 1:many) == [(i, i = 1, many)]), 'statuses of MPI_Waitall')
    call MPI_Waitany(many, requests, index, status, ierr)
    ! MPICH 4.0.2 adds 1 to MPI_UNDEFINED too; the standard and Open MPI do not.
    call check(index == MPI_UNDEFINED .or. index == MPI_UNDEFINED + 1, 'MPI_Waitany of nothing')
    call MPI_Waitsome(many, requests, n, indices, MPI_STATUSES_IGNORE, ierr)
    call check(n == MPI_UNDEFINED, 'MPI_Waitsome of nothing')
    requests = MPI_REQUEST_NULL
    call MPI_Irecv(got_later(3), 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, requests(3), ierr)
    call MPI_Send(values(2), 1, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, ierr)
    call MPI_Waitany(many, requests, index, status, ierr)
    call check(index == 3 .and. status(MPI_TAG) == 3 .and. got_later(3) == values(2), 'MPI_Waitany counts from 1')
    do i = 1, many
      call MPI_Recv_init(got_later(i), 1, MPI_INTEGER, rank, i, MPI_COMM_WORLD, requests(i), ierr)
    end do
    got_later = 0
    call MPI_Startall(many, requests, ierr)
    do i = 1, many
      call MPI_Send(values(i), 1, MPI_INTEGER, rank, i, MPI_COMM_WORLD, ierr)
    end do
    done = 0
    do while (done < many)
      call MPI_Waitsome(many, requests, n, indices, statuses, ierr)
      call check(n >= 1 .and. all(indices(1:n) >= 1) .and. all(indices(1:n) <= many), 'MPI_Waitsome')
      call check(all(statuses(MPI_TAG, 1:n) == indices(1:n)), 'indices of MPI_Waitsome')
      done = done + n
    end do
    call check(all(got_later == values), 'persistent receives')
    call MPI_Testall(many, requests, flag, MPI_STATUSES_IGNORE, ierr)
    call check(flag, 'MPI_Testall of inactive requests')
    do i = 1, many
      call MPI_Request_free(requests(i), ierr)
    end do
  end subroutine

  subroutine collectives()
    integer :: x, total, counts(0:nprocs - 1), displs(0:nprocs - 1), i, all_of(nprocs), request
    integer :: sendtypes(nprocs), recvtypes(nprocs), mine(nprocs)
    x = rank + 1
    call MPI_Allreduce(x, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(total == nprocs * (nprocs + 1) / 2, 'MPI_Allreduce')
    total = x
    call MPI_Allreduce(MPI_IN_PLACE, total, 1, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierr)
    call check(total == nprocs, 'MPI_Allreduce in place')
    counts = 1
    displs = [(nprocs - 1 - i, i = 0, nprocs - 1)]
    call MPI_Allgatherv(x, 1, MPI_INTEGER, all_of, counts, displs, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(all(all_of == [(nprocs - i, i = 0, nprocs - 1)]), 'MPI_Allgatherv')
    call MPI_Ibcast(total, 1, MPI_INTEGER, nprocs - 1, MPI_COMM_WORLD, request, ierr)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    call check(total == nprocs, 'MPI_Ibcast')
    mine = [(10 * rank + i, i = 0, nprocs - 1)]
    sendtypes = MPI_INTEGER
    recvtypes = MPI_INTEGER
    displs = [(4 * i, i = 0, nprocs - 1)]
    call MPI_Alltoallw(mine, counts, displs, sendtypes, all_of, counts, displs, recvtypes, MPI_COMM_WORLD, ierr)
    call check(all(all_of == [(10 * i + rank, i = 0, nprocs - 1)]), 'MPI_Alltoallw')
  end subroutine

  subroutine datatypes()
    integer :: vector, struct, got_types(2), ints(4), types(2), lens(2), n_ints, n_addrs, n_types, combiner, bytes
    integer :: position, matrix(4, 4), column(4), i, j, row, status(MPI_STATUS_SIZE), length
    integer(kind=MPI_ADDRESS_KIND) :: places(2), addrs(4), lb, extent
    character(len=64) :: buffer
    character(len=MPI_MAX_OBJECT_NAME) :: name
    matrix = reshape([((10 * i + j, i = 1, 4), j = 1, 4)], [4, 4])
    call MPI_Type_vector(4, 1, 4, MPI_INTEGER, row, ierr)
    call MPI_Type_commit(row, ierr)
    call MPI_Sendrecv(matrix(2, 1), 1, row, rank, 0, column, 4, MPI_INTEGER, rank, 0, MPI_COMM_WORLD, status, ierr)
    call check(all(column == matrix(2, :)), 'a row of a matrix')
    call MPI_Type_get_envelope(row, n_ints, n_addrs, n_types, combiner, ierr)
    call check(n_ints == 3 .and. n_addrs == 0 .and. n_types == 1 .and. combiner == MPI_COMBINER_VECTOR, 'envelope')
    call MPI_Type_get_contents(row, 3, 0, 1, ints, addrs, types, ierr)
    call check(all(ints(1:3) == [4, 1, 4]) .and. types(1) == MPI_INTEGER, 'contents')
    number = 5
    real8 = 2.5d0
    call MPI_Get_address(number, places(1), ierr)
    call MPI_Get_address(real8, places(2), ierr)
    lens = 1
    got_types = [MPI_INTEGER, MPI_DOUBLE_PRECISION]
    call MPI_Type_create_struct(2, lens, places, got_types, struct, ierr)
    call MPI_Type_commit(struct, ierr)
    call MPI_Type_size(struct, bytes, ierr)
    call check(bytes == 12, 'MPI_Type_size')
    call MPI_Sendrecv(MPI_BOTTOM, 1, struct, rank, 0, buffer, len(buffer), MPI_PACKED, rank, 0, MPI_COMM_WORLD, status, ierr)
    number = 0
    real8 = 0
    call MPI_Sendrecv(buffer, 12, MPI_PACKED, rank, 0, MPI_BOTTOM, 1, struct, rank, 0, MPI_COMM_WORLD, status, ierr)
    call check(number == 5 .and. real8 == 2.5d0, 'MPI_BOTTOM')
    position = 0
    call MPI_Pack(column, 4, MPI_INTEGER, buffer, len(buffer), position, MPI_COMM_WORLD, ierr)
    column = 0
    position = 0
    call MPI_Unpack(buffer, len(buffer), position, column, 4, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(position >= 16 .and. all(column == matrix(2, :)), 'MPI_Pack and MPI_Unpack')
    call MPI_Type_create_resized(MPI_INTEGER, 0_MPI_ADDRESS_KIND, 16_MPI_ADDRESS_KIND, vector, ierr)
    call MPI_Type_get_extent(vector, lb, extent, ierr)
    call check(lb == 0 .and. extent == 16, 'MPI_Type_get_extent')
    call MPI_Type_set_name(vector, 'spaced  ', ierr)
    call MPI_Type_get_name(vector, name, length, ierr)
    call check(name == 'spaced' .and. length == 6, 'MPI_Type_get_name')
    call MPI_Type_free(vector, ierr)
    call MPI_Type_free(struct, ierr)
    call MPI_Type_free(row, ierr)
    call check(row == MPI_DATATYPE_NULL, 'MPI_Type_free')
  end subroutine

  subroutine communicators()
    integer :: half, group, part, ranks(1), ranges(3, 1), n, me, result, translated(1), copy, world_group
    character(len=MPI_MAX_OBJECT_NAME) :: name
    integer :: length
    logical :: flag
    call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, ierr)
    call MPI_Comm_size(half, n, ierr)
    call check(n == (nprocs + 1 - mod(rank, 2)) / 2, 'MPI_Comm_split')
    call MPI_Comm_test_inter(half, flag, ierr)
    call check(.not. flag, 'MPI_Comm_test_inter')
    call MPI_Comm_group(MPI_COMM_WORLD, world_group, ierr)
    ranges(:, 1) = [nprocs - 1, 0, -1]
    call MPI_Group_range_incl(world_group, 1, ranges, group, ierr)
    call MPI_Group_rank(group, me, ierr)
    call check(me == nprocs - 1 - rank, 'MPI_Group_range_incl')
    ranks(1) = 0
    call MPI_Group_translate_ranks(group, 1, ranks, world_group, translated, ierr)
    call check(translated(1) == nprocs - 1, 'MPI_Group_translate_ranks')
    call MPI_Comm_create(MPI_COMM_WORLD, group, part, ierr)
    call MPI_Comm_compare(part, MPI_COMM_WORLD, result, ierr)
    call check(result == merge(MPI_CONGRUENT, MPI_SIMILAR, nprocs == 1), 'MPI_Comm_compare')
    call MPI_Comm_dup(part, copy, ierr)
    call MPI_Comm_set_name(copy, 'a copy', ierr)
    call MPI_Comm_get_name(copy, name, length, ierr)
    call check(name == 'a copy' .and. length == 6, 'MPI_Comm_get_name')
    call MPI_Comm_get_name(MPI_COMM_WORLD, name, length, ierr)
    call check(name == 'MPI_COMM_WORLD', 'name of MPI_COMM_WORLD')
    call MPI_Comm_free(copy, ierr)
    call check(copy == MPI_COMM_NULL, 'MPI_Comm_free')
    call MPI_Comm_free(part, ierr)
    call MPI_Comm_free(half, ierr)
    call MPI_Group_free(group, ierr)
    call MPI_Group_free(world_group, ierr)
    call MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, half, ierr)
    call check(half == MPI_COMM_NULL, 'MPI_Comm_split with MPI_UNDEFINED')
  end subroutine

  subroutine attributes()
    integer :: key, copy, dup_key
    integer(kind=MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
    call check(flag .and. value >= 32767, 'MPI_TAG_UB')
    call MPI_Comm_create_keyval(copy_attr, delete_attr, key, 1000_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, dup_key, 0_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_get_attr(MPI_COMM_SELF, key, value, flag, ierr)
    call check(.not. flag, 'an attribute that is not set')
    value = -5
    call MPI_Comm_set_attr(MPI_COMM_SELF, key, value, ierr)
    value = 2_MPI_ADDRESS_KIND**40 + 1
    call MPI_Comm_set_attr(MPI_COMM_SELF, dup_key, value, ierr)
    call MPI_Comm_dup(MPI_COMM_SELF, copy, ierr)
    call MPI_Comm_get_attr(copy, key, value, flag, ierr)
    call check(flag .and. value == 995, 'copy callback')
    call MPI_Comm_get_attr(copy, dup_key, value, flag, ierr)
    call check(flag .and. value == 2_MPI_ADDRESS_KIND**40 + 1, 'MPI_COMM_DUP_FN')
    call MPI_Comm_free(copy, ierr)
    call check(deleted == 1, 'delete callback')
    call MPI_Comm_delete_attr(MPI_COMM_SELF, key, ierr)
    call check(deleted == 2, 'MPI_Comm_delete_attr')
    call MPI_Comm_delete_attr(MPI_COMM_SELF, dup_key, ierr)
    call MPI_Comm_free_keyval(key, ierr)
    call check(key == MPI_KEYVAL_INVALID, 'MPI_Comm_free_keyval')
    call MPI_Comm_free_keyval(dup_key, ierr)
  end subroutine

  subroutine topologies()
    integer :: dims(2), cart, coords(2), me, below, above, kind, line, dims_got(2), graph, neighbour(1), sources(1)
    integer :: destinations(1), indegree, outdegree, weights(1)
    logical :: periods(2), periods_got(2), weighted
    dims = 0
    call MPI_Dims_create(nprocs, 2, dims, ierr)
    call check(dims(1) * dims(2) == nprocs, 'MPI_Dims_create')
    periods = [.true., .false.]
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., cart, ierr)
    call MPI_Topo_test(cart, kind, ierr)
    call check(kind == MPI_CART, 'MPI_Topo_test')
    call MPI_Cart_get(cart, 2, dims_got, periods_got, coords, ierr)
    call check(all(dims_got == dims) .and. (periods_got(1) .eqv. .true.) .and. (periods_got(2) .eqv. .false.), 'MPI_Cart_get')
    call MPI_Cart_rank(cart, coords, me, ierr)
    call check(me == rank, 'MPI_Cart_rank')
    call MPI_Cart_shift(cart, 1, 1, below, above, ierr)
    if (coords(2) == 0) call check(below == MPI_PROC_NULL, 'MPI_Cart_shift')
    call MPI_Cart_sub(cart, [.true., .false.], line, ierr)
    call MPI_Cartdim_get(line, kind, ierr)
    call check(kind == 1, 'MPI_Cart_sub')
    call MPI_Comm_free(line, ierr)
    call MPI_Comm_free(cart, ierr)
    neighbour(1) = mod(rank + 1, nprocs)
    call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], neighbour, MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, indegree, outdegree, weighted, ierr)
    call check(indegree == 1 .and. outdegree == 1 .and. .not. weighted, 'MPI_Dist_graph_neighbors_count')
    call MPI_Dist_graph_neighbors(graph, 1, sources, MPI_UNWEIGHTED, 1, destinations, MPI_UNWEIGHTED, ierr)
    call check(destinations(1) == neighbour(1) .and. sources(1) == mod(rank + nprocs - 1, nprocs), 'MPI_Dist_graph_neighbors')
    call MPI_Comm_free(graph, ierr)
    weights = 1
  end subroutine

  subroutine callbacks()
    integer :: op, handler, old, values(2), results(2), request, status(MPI_STATUS_SIZE), n
    logical :: flag
    call MPI_Op_create(keep_larger, .true., op, ierr)
    call MPI_Op_commutative(op, flag, ierr)
    call check(flag, 'MPI_Op_commutative')
    values = [rank, -rank]
    call MPI_Allreduce(values, results, 2, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
    call check(results(1) == nprocs - 1 .and. results(2) == 0, 'a user operation')
    call MPI_Op_free(op, ierr)
    call check(op == MPI_OP_NULL, 'MPI_Op_free')
    call MPI_Comm_get_errhandler(MPI_COMM_WORLD, old, ierr)
    call check(old == MPI_ERRORS_ARE_FATAL, 'MPI_Comm_get_errhandler')
    call MPI_Comm_create_errhandler(on_error, handler, ierr)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler, ierr)
    call MPI_Send(values, 1, MPI_INTEGER, nprocs + 10, 0, MPI_COMM_WORLD, ierr)
    call check(handled == 1 .and. ierr /= MPI_SUCCESS, 'a user error handler')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierr)
    call MPI_Errhandler_free(handler, ierr)
    call check(handler == MPI_ERRHANDLER_NULL, 'MPI_Errhandler_free')
    call MPI_Grequest_start(grequest_query, grequest_free, grequest_cancel, 6_MPI_ADDRESS_KIND, request, ierr)
    call MPI_Test(request, flag, status, ierr)
    call check(.not. flag, 'a generalized request under way')
    call MPI_Grequest_complete(request, ierr)
    call MPI_Wait(request, status, ierr)
    call MPI_Get_elements(status, MPI_INTEGER, n, ierr)
    call check(n == 6 .and. status(MPI_TAG) == 2, 'a generalized request')
  end subroutine
end program
