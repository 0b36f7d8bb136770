! mpi_f08 chapter by chapter: array sections, callbacks, strings, C pointers, groups, topologies, reductions, attributes, info.
! Sections that are not contiguous are only checked where the module says that it supports them, and under vmpi in blocking calls.
module checks
  implicit none
  integer :: bad = 0
contains
  subroutine ok(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (holds) return
    bad = bad + 1
    print '(2a)', 'FAILED: ', what
  end subroutine

  subroutine assumed_size(a, n, comm)
    use mpi_f08
    integer, intent(in) :: n
    integer, intent(inout) :: a(*)
    type(MPI_Comm), intent(in) :: comm
    call MPI_Bcast(a, n, MPI_INTEGER, 0, comm)
  end subroutine
end module

module callbacks
  use mpi_f08
  implicit none
  integer :: handled = 0, copies = 0
contains
  subroutine longest(invec, inoutvec, len, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    if (datatype /= MPI_INTEGER) error stop 'the wrong type'
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = merge(a, b, abs(a) > abs(b))
  end subroutine

  subroutine on_error(comm, error_code)
    type(MPI_Comm) :: comm
    integer :: error_code, class
    call MPI_Error_class(error_code, class)
    if (class == MPI_ERR_RANK .and. comm /= MPI_COMM_NULL) handled = handled + 1
  end subroutine

  subroutine copy(oldcomm, comm_keyval, extra_state, value_in, value_out, flag, ierror)
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    copies = copies + 1
    value_out = value_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine drop(comm, comm_keyval, value, extra_state, ierror)
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra_state
    copies = copies - 1
    ierror = MPI_SUCCESS
  end subroutine
end module

program f08
  use mpi_f08
  use checks
  use callbacks
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: me, np, next, prev, i, n, ierr, key, total, where
  integer :: row(8), matrix(4, 6), back(4, 6), ranges(3, 1), dims(2), coords(1)
  integer, pointer :: memory(:)
  double precision :: t
  logical :: flag, periods(1), vmpi
  character(len=MPI_MAX_OBJECT_NAME) :: text
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  integer(MPI_ADDRESS_KIND) :: address, other, value
  type(c_ptr) :: base
  type(MPI_Comm) :: comm, twin, half
  type(MPI_Group) :: world, first
  type(MPI_Info) :: info
  type(MPI_Op) :: op
  type(MPI_Errhandler) :: handler
  type(MPI_Request) :: request, requests(3)
  type(MPI_Status) :: status, statuses(3)
  type(MPI_Datatype) :: column
  type(MPI_Message) :: message

  call MPI_Init_thread(MPI_THREAD_FUNNELED, n, ierr)
  call ok(ierr == MPI_SUCCESS .and. n >= MPI_THREAD_FUNNELED, 'MPI_Init_thread')
  comm = MPI_COMM_WORLD
  call MPI_Comm_rank(comm, me)
  call MPI_Comm_size(comm, np)
  next = mod(me + 1, np)
  prev = mod(me + np - 1, np)
  call get_environment_variable('VMPI_JOBID', status=i)
  vmpi = i == 0
  call MPI_Get_processor_name(name, n)
  call ok(len_trim(name) == n .and. n > 0, 'MPI_Get_processor_name')
  t = MPI_Wtime()
  call ok(MPI_Wtime() >= t .and. MPI_Wtick() > 0 .and. PMPI_Wtime() >= t, 'clocks')

  ! scalars, whole arrays, contiguous sections, assumed size
  matrix = reshape([(1000 * me + i, i=1, 24)], [4, 6])
  call MPI_Irecv(back(:, 2:3), 8, MPI_INTEGER, prev, 1, comm, request)
  call MPI_Send(matrix(:, 2:3), 8, MPI_INTEGER, next, 1, comm)
  call MPI_Wait(request, status)
  call ok(all(back(:, 2:3) == matrix(:, 2:3) + 1000 * (prev - me)), 'a contiguous section')
  call ok(status%MPI_SOURCE == prev .and. request == MPI_REQUEST_NULL, 'its status')
  row = me
  call assumed_size(row, 8, comm)
  call ok(all(row == 0), 'assumed size')
  n = me
  call MPI_Allreduce(n, total, 1, MPI_INTEGER, MPI_SUM, comm)
  call ok(total == np * (np - 1) / 2, 'a scalar')

  ! sections that are not contiguous, in blocking calls
  if (MPI_SUBARRAYS_SUPPORTED .or. vmpi) then
    back = -1
    call MPI_Sendrecv(matrix(2, :), 6, MPI_INTEGER, next, 2, back(3, :), 6, MPI_INTEGER, prev, 2, comm, status)
    call ok(all(back(3, :) == matrix(2, :) + 1000 * (prev - me)), 'a row')
    call ok(all(back(1:2, :) == -1) .and. all(back(4, :) == -1), 'what is beside the row')
    row = me
    if (me == 0) row = [(i, i=1, 8)]
    call MPI_Bcast(row(8:1:-2), 4, MPI_INTEGER, 0, comm)
    call ok(all(row(2:8:2) == [2, 4, 6, 8]) .and. (me == 0 .or. all(row(1:7:2) == me)), 'a section backwards')
  end if

  ! several requests, cancelled ones, probes
  call MPI_Isend(me, 1, MPI_INTEGER, next, 3, comm, requests(1))
  call MPI_Irecv(n, 1, MPI_INTEGER, prev, 3, comm, requests(2))
  requests(3) = MPI_REQUEST_NULL
  call MPI_Waitall(3, requests, statuses)
  call ok(n == prev .and. statuses(2)%MPI_TAG == 3 .and. all([(requests(i) == MPI_REQUEST_NULL, i=1, 3)]), 'MPI_Waitall')
  call MPI_Waitany(3, requests, where, status)
  call ok(where == MPI_UNDEFINED, 'MPI_Waitany of none')
  call MPI_Isend(me, 1, MPI_INTEGER, next, 4, comm, requests(2))
  call MPI_Mprobe(prev, 4, comm, message, status)
  call MPI_Get_count(status, MPI_INTEGER, n)
  call MPI_Mrecv(total, 1, MPI_INTEGER, message, MPI_STATUS_IGNORE)
  call ok(n == 1 .and. total == prev .and. message == MPI_MESSAGE_NULL, 'MPI_Mprobe')
  call MPI_Waitany(3, requests, where, status)
  call ok(where == 2 .or. .not. vmpi, 'MPI_Waitany counts from 1') ! MPICH 4.0.2 counts otherwise
  call MPI_Sizeof(t, n, ierr)
  call ok(n == 8, 'MPI_Sizeof')

  ! collectives, in place too
  row(1:np) = 0
  row(me + 1) = me + 1
  call MPI_Allreduce(MPI_IN_PLACE, row, np, MPI_INTEGER, MPI_SUM, comm)
  call ok(all(row(1:np) == [(i, i=1, np)]), 'MPI_IN_PLACE')
  call MPI_Allgather(10 * me, 1, MPI_INTEGER, row, 1, MPI_INTEGER, comm)
  call ok(all(row(1:np) == [(10 * i, i=0, np - 1)]), 'MPI_Allgather of an expression')
  call MPI_Ibarrier(comm, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Op_create(longest, .true., op)
  call MPI_Allreduce(merge(-me, me, mod(me, 2) == 1), n, 1, MPI_INTEGER, op, comm)
  call ok(abs(n) == np - 1, 'an operation of the program')
  call MPI_Op_free(op)
  call ok(op == MPI_OP_NULL, 'MPI_Op_free')

  ! groups, communicators, topologies
  call MPI_Comm_group(comm, world)
  ranges(:, 1) = [0, np - 1, 1]
  call MPI_Group_range_incl(world, 1, ranges, first)
  call MPI_Group_compare(world, first, n)
  call ok(n == MPI_IDENT, 'MPI_Group_range_incl')
  call MPI_Group_free(world)
  call MPI_Group_free(first)
  call MPI_Comm_split(comm, mod(me, 2), 0, half)
  call MPI_Comm_compare(comm, half, n)
  call ok(n == merge(MPI_CONGRUENT, MPI_UNEQUAL, np == 1), 'MPI_Comm_split')
  call MPI_Comm_set_name(half, '  halves ')
  call MPI_Comm_get_name(half, text, n)
  call ok(text == 'halves' .and. n == 6, 'names')
  call MPI_Comm_free(half)
  dims = 0
  call MPI_Dims_create(np, 2, dims)
  call ok(product(dims) == np, 'MPI_Dims_create')
  call MPI_Cart_create(comm, 1, [np], [.true.], .false., twin)
  call MPI_Cart_shift(twin, 0, 1, i, n)
  call ok(i == prev .and. n == next, 'MPI_Cart_shift')
  call MPI_Cart_get(twin, 1, dims, periods, coords)
  call ok(periods(1) .and. coords(1) == me, 'MPI_Cart_get')
  call MPI_Comm_free(twin)
  call MPI_Dist_graph_create_adjacent(comm, 1, [prev], MPI_UNWEIGHTED, 1, [next], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., twin)
  call MPI_Dist_graph_neighbors_count(twin, i, n, flag)
  call ok(i == 1 .and. n == 1 .and. .not. flag, 'a graph without weights')
  call MPI_Neighbor_allgather(me, 1, MPI_INTEGER, row, 1, MPI_INTEGER, twin)
  call ok(row(1) == prev, 'MPI_Neighbor_allgather')
  call MPI_Comm_free(twin)

  ! datatypes and memory
  call MPI_Type_vector(6, 1, 4, MPI_INTEGER, column)
  call MPI_Type_commit(column)
  back = -1
  call MPI_Sendrecv(matrix, 1, column, next, 5, back, 1, column, prev, 5, comm, MPI_STATUS_IGNORE)
  call ok(all(back(1, :) == matrix(1, :) + 1000 * (prev - me)) .and. all(back(2:4, :) == -1), 'MPI_Type_vector')
  call MPI_Type_size(column, n)
  call ok(n == 24, 'MPI_Type_size')
  call MPI_Type_free(column)
  call MPI_Get_address(matrix(1, 1), address)
  call MPI_Get_address(matrix(1, 2), other)
  call ok(MPI_Aint_diff(other, address) == 16 .and. MPI_Aint_add(address, 16_MPI_ADDRESS_KIND) == other, 'addresses')
  call MPI_Alloc_mem(64_MPI_ADDRESS_KIND, MPI_INFO_NULL, base)
  call c_f_pointer(base, memory, [16])
  memory = me
  call MPI_Bcast(memory, 16, MPI_INTEGER, np - 1, comm)
  call ok(all(memory == np - 1), 'MPI_Alloc_mem')
  call MPI_Free_mem(memory)

  ! attributes, info, errors
  call MPI_Comm_create_keyval(copy, drop, key, 7_MPI_ADDRESS_KIND)
  value = 100 + me
  call MPI_Comm_set_attr(comm, key, value)
  call MPI_Comm_dup(comm, twin)
  call MPI_Comm_get_attr(twin, key, value, flag)
  call ok(flag .and. value == 107 + me .and. copies == 1, 'a copied attribute')
  call MPI_Comm_free(twin)
  call MPI_Comm_delete_attr(comm, key)
  call ok(copies == -1, 'deleted attributes')
  call MPI_Comm_free_keyval(key)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND)
  value = 5
  call MPI_Comm_set_attr(comm, key, value)
  call MPI_Comm_dup(comm, twin)
  value = 0
  call MPI_Comm_get_attr(twin, key, value, flag)
  call ok(flag .and. value == 5, 'MPI_COMM_DUP_FN')
  call MPI_Comm_free(twin)
  call MPI_Comm_delete_attr(comm, key)
  call MPI_Comm_free_keyval(key)
  call MPI_Comm_get_attr(comm, MPI_TAG_UB, value, flag)
  call ok(flag .and. value >= 32767, 'MPI_TAG_UB')
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'colour', 'red green')
  call MPI_Info_get(info, 'colour', len(text), text, flag)
  call ok(flag .and. text == 'red green', 'MPI_Info_get')
  call MPI_Info_get_nkeys(info, n)
  call ok(n == 1, 'MPI_Info_get_nkeys')
  call MPI_Info_free(info)
  call MPI_Comm_create_errhandler(on_error, handler)
  call MPI_Comm_dup(comm, twin)
  call MPI_Comm_set_errhandler(twin, handler)
  call MPI_Errhandler_free(handler)
  call MPI_Send(n, 1, MPI_INTEGER, np + 3, 0, twin, ierr)
  call ok(handled == 1, 'an error handler of the program')
  call MPI_Comm_free(twin)

  call MPI_Reduce(bad, total, 1, MPI_INTEGER, MPI_SUM, 0, comm)
  if (me == 0) print '(a, i0, a, i0)', 'ranks ', np, ', bad ', total
  call MPI_Finalize()
  if (bad /= 0) stop 1
end program
