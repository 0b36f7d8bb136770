! use mpi: modules with state, user operations and error handlers in Fortran, attributes, cartesian grids, strings.
module shared_state
  implicit none
  integer :: counter = 3
  double precision, allocatable :: field(:, :)
  integer :: bad = 0
contains
  subroutine check(ok, line)
    logical, intent(in) :: ok
    integer, intent(in) :: line
    if (.not. ok) then
      bad = bad + 1
      write (0, *) 'usempi.f90 line', line, 'FAILED'
    end if
  end subroutine
end module

subroutine largest_even(a, b, n, type)
  implicit none
  integer :: n, type, i
  integer :: a(n), b(n)
  do i = 1, n
    if (mod(a(i), 2) == 0 .and. (a(i) > b(i) .or. mod(b(i), 2) /= 0)) b(i) = a(i)
  end do
end subroutine

program usempi
  use mpi
  use shared_state
  implicit none
  external :: largest_even
  integer :: ierr, me, np, op, i, allbad, class, n, grid, up, down, keyval, info, newtype, group
  integer :: status(MPI_STATUS_SIZE), dims(2), coords(2), values(4), results(4), request(3), blocks(2), types(2), sub
  integer(kind=MPI_ADDRESS_KIND) :: attribute, extent, lb, displacements(2)
  logical :: flag, periods(2)
  character(len=MPI_MAX_ERROR_STRING) :: text
  character(len=40) :: value
  character(len=MPI_MAX_OBJECT_NAME) :: name
  double precision :: x, y
  type particle
    sequence
    double precision :: x(3)
    integer :: id, kind
  end type
  type(particle) :: mine, theirs
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, np, ierr)
  counter = counter + me
  allocate (field(100, 10))
  field = me

  call MPI_Op_create(largest_even, .true., op, ierr)
  values = [me, me * 3, 2 * me, -me]
  call MPI_Allreduce(values, results, 4, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
  call check(results(3) == 2 * (np - 1), __LINE__)
  call MPI_Op_free(op, ierr)

  ! a column slice and a whole allocatable array
  call MPI_Sendrecv_replace(field, 1000, MPI_DOUBLE_PRECISION, mod(me + 1, np), 1, mod(me + np - 1, np), 1, MPI_COMM_WORLD, status, ierr)
  call check(all(field == mod(me + np - 1, np)), __LINE__)
  call check(status(MPI_SOURCE) == mod(me + np - 1, np), __LINE__)

  ! errors return with codes; strings are blank padded
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Send(values, -1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, ierr)
  call MPI_Error_class(ierr, class, i)
  call check(class == MPI_ERR_COUNT, __LINE__)
  text = repeat('x', MPI_MAX_ERROR_STRING)
  call MPI_Error_string(ierr, text, n, i)
  call check(n > 0 .and. text(n + 1:) == ' ', __LINE__)

  ! attributes are address-sized
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, keyval, 0_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 1234567890123_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, attribute, flag, ierr)
  call check(flag .and. attribute == 1234567890123_MPI_ADDRESS_KIND, __LINE__)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, attribute, flag, ierr)
  call check(flag .and. attribute >= 32767, __LINE__)

  ! grids
  dims = 0
  call MPI_Dims_create(np, 2, dims, ierr)
  periods = [.true., .false.]
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., grid, ierr)
  call MPI_Cart_coords(grid, me, 2, coords, ierr)
  call MPI_Cart_shift(grid, 1, 1, down, up, ierr)
  call check((coords(2) == 0) .eqv. (down == MPI_PROC_NULL), __LINE__)
  periods = [.false., .true.]
  call MPI_Cart_sub(grid, periods, sub, ierr)
  call MPI_Comm_size(sub, n, ierr)
  call check(n == dims(2), __LINE__)
  call MPI_Comm_free(sub, ierr)
  call MPI_Comm_free(grid, ierr)
  call check(grid == MPI_COMM_NULL, __LINE__)

  ! a derived type of the program
  blocks = [3, 2]
  types = [MPI_DOUBLE_PRECISION, MPI_INTEGER]
  call MPI_Get_address(mine%x, displacements(1), ierr)
  call MPI_Get_address(mine%id, displacements(2), ierr)
  displacements = displacements - displacements(1)
  call MPI_Type_create_struct(2, blocks, displacements, types, newtype, ierr)
  call MPI_Type_commit(newtype, ierr)
  call MPI_Type_get_extent(newtype, lb, extent, ierr)
  call check(extent == 32, __LINE__)
  mine%x = [1.d0, 2.d0, 3.d0] * me
  mine%id = me
  mine%kind = -me
  call MPI_Irecv(theirs, 1, newtype, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, request(1), ierr)
  call MPI_Isend(mine, 1, newtype, mod(me + 1, np), 7, MPI_COMM_WORLD, request(2), ierr)
  request(3) = MPI_REQUEST_NULL
  call MPI_Waitall(3, request, MPI_STATUSES_IGNORE, ierr)
  call check(theirs%id == mod(me + np - 1, np) .and. theirs%kind == -theirs%id .and. theirs%x(3) == 3 * theirs%id, __LINE__)
  call check(all(request == MPI_REQUEST_NULL), __LINE__)
  call MPI_Type_free(newtype, ierr)

  ! Waitany counts from one
  call MPI_Irecv(n, 1, MPI_INTEGER, mod(me + np - 1, np), 8, MPI_COMM_WORLD, request(2), ierr)
  request(1) = MPI_REQUEST_NULL
  call MPI_Send(me, 1, MPI_INTEGER, mod(me + 1, np), 8, MPI_COMM_WORLD, ierr)
  call MPI_Waitany(2, request, i, status, ierr)
  call check(i == 2 .and. n == mod(me + np - 1, np), __LINE__)

  ! info, names, groups, complex and logical reductions
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'key  ', ' some value ', ierr)
  call MPI_Info_get(info, 'key', 40, value, flag, ierr)
  call check(flag .and. value == 'some value', __LINE__)
  call MPI_Info_free(info, ierr)
  call MPI_Comm_get_name(MPI_COMM_WORLD, name, n, ierr)
  call check(name == 'MPI_COMM_WORLD' .and. n == 14, __LINE__)
  call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
  call MPI_Group_size(group, n, ierr)
  call check(n == np, __LINE__)
  call MPI_Group_free(group, ierr)
  call MPI_Allreduce(me == 0, flag, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, ierr)
  call check(flag, __LINE__)
  call MPI_Allreduce(me == 0, flag, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
  call check(flag .eqv. np == 1, __LINE__)
  block
    complex :: z, sumz
    double precision :: pair(2), best(2)
    z = cmplx(me, -me)
    call MPI_Allreduce(z, sumz, 1, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, ierr)
    call check(sumz == cmplx(np * (np - 1) / 2, -np * (np - 1) / 2), __LINE__)
    pair = [dble(mod(me * 3, 4)), dble(me)]
    call MPI_Allreduce(pair, best, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, ierr)
    call check(best(1) == maxval([(mod(i * 3, 4), i=0, np - 1)]), __LINE__)
  end block
  x = MPI_Wtime()
  y = MPI_Wtick()
  call check(x >= 0 .and. y > 0 .and. y < 1, __LINE__)
  call check(counter == 3 + me, __LINE__)

  call MPI_Allreduce(bad, allbad, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (me == 0) then
    print '(a, i0, a, 2(1x, i0))', 'ranks ', np, ', grid', dims
    if (allbad == 0) print '(a)', 'all checks hold'
    if (allbad /= 0) print '(i0, a)', allbad, ' checks FAILED'
  end if
  call MPI_Finalize(ierr)
  if (allbad /= 0) stop 1
end program
