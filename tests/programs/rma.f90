! One-sided communication from Fortran: windows made in each way (with TYPE(C_PTR) where MPI gives the address), put, get,
! accumulate, fetch, locks, post and start, attributes, names.
program rma
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: ierr, me, n, win, right, left, i, seen, group, g1, g2, wrong, flag_int, length, unit, kind_, req
  integer :: values(10), status(MPI_STATUS_SIZE), total
  integer, target :: memory(10)
  integer(kind=MPI_ADDRESS_KIND) :: bytes, disp, attr
  logical :: flag
  character(len=MPI_MAX_OBJECT_NAME) :: name
  type(c_ptr) :: base
  integer, pointer :: cells(:)

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  right = mod(me + 1, n)
  left = mod(me + n - 1, n)
  wrong = 0
  call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
  call MPI_Group_incl(group, 1, [left], g1, ierr)
  call MPI_Group_incl(group, 1, [right], g2, ierr)

  do kind_ = 1, 3
    bytes = 40
    if (kind_ == 1) then
      memory = 0
      call MPI_Win_create(memory, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
      cells => memory
    else if (kind_ == 2) then
      bytes = 65536
      call MPI_Win_allocate(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
      call c_f_pointer(base, cells, [10])
    else
      bytes = 65536
      call MPI_Win_allocate_shared(bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
      call c_f_pointer(base, cells, [10])
    end if
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, attr, flag, ierr)
    if (.not. flag .or. attr /= bytes) wrong = wrong + 1
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, attr, flag, ierr)
    if (.not. flag .or. attr /= 4) wrong = wrong + 1
    call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, attr, flag, ierr)
    if (kind_ == 1 .and. attr /= MPI_WIN_FLAVOR_CREATE) wrong = wrong + 1
    if (kind_ == 2 .and. attr /= MPI_WIN_FLAVOR_ALLOCATE) wrong = wrong + 1
    if (kind_ == 3 .and. attr /= MPI_WIN_FLAVOR_SHARED) wrong = wrong + 1
    call MPI_Win_set_name(win, "fortran window", ierr)
    call MPI_Win_get_name(win, name, length, ierr)
    if (name /= "fortran window" .or. length /= 14) wrong = wrong + 1

    cells(1:10) = -1
    do i = 1, 10
      values(i) = 100 * me + i
    end do
    call MPI_Win_fence(0, win, ierr)
    disp = 2
    call MPI_Put(values, 5, MPI_INTEGER, right, disp, 5, MPI_INTEGER, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    do i = 1, 5
      if (cells(i + 2) /= 100 * left + i) wrong = wrong + 1
    end do
    call MPI_Win_fence(0, win, ierr)
    call MPI_Get(seen, 1, MPI_INTEGER, right, disp, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_fence(MPI_MODE_NOSUCCEED, win, ierr)
    if (seen /= 100 * me + 1) wrong = wrong + 1

    call MPI_Win_post(g1, 0, win, ierr)
    call MPI_Win_start(g2, 0, win, ierr)
    disp = 0
    call MPI_Put(me, 1, MPI_INTEGER, right, disp, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_complete(win, ierr)
    call MPI_Win_wait(win, ierr)
    if (cells(1) /= left) wrong = wrong + 1

    call MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, win, ierr)
    cells(2) = 0
    call MPI_Win_unlock(me, win, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Win_lock_all(0, win, ierr)
    disp = 1
    do i = 1, 10
      call MPI_Accumulate(1, 1, MPI_INTEGER, 0, disp, 1, MPI_INTEGER, MPI_SUM, win, ierr)
      call MPI_Fetch_and_op(1, seen, MPI_INTEGER, 0, disp, MPI_SUM, win, ierr)
      call MPI_Win_flush(0, win, ierr)
    end do
    call MPI_Rput(me, 1, MPI_INTEGER, right, int(9, MPI_ADDRESS_KIND), 1, MPI_INTEGER, win, req, ierr)
    call MPI_Wait(req, status, ierr)
    call MPI_Win_unlock_all(win, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win, ierr)
    call MPI_Get(total, 1, MPI_INTEGER, 0, disp, 1, MPI_INTEGER, win, ierr)
    call MPI_Win_unlock(0, win, ierr)
    if (total /= 20 * n) wrong = wrong + 1
    call MPI_Win_lock(MPI_LOCK_SHARED, me, 0, win, ierr)
    if (cells(10) /= left) wrong = wrong + 1
    call MPI_Win_unlock(me, win, ierr)
    if (kind_ == 3) then
      call MPI_Win_shared_query(win, left, bytes, unit, base, ierr)
      call c_f_pointer(base, cells, [10])
      if (unit /= 4 .or. cells(1) /= mod(me + 2 * n - 2, n)) wrong = wrong + 1
    end if
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Win_free(win, ierr)
    if (win /= MPI_WIN_NULL) wrong = wrong + 1
  end do
  call MPI_Reduce(wrong, total, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (me == 0) print *, "wrong:", total
  call MPI_Finalize(ierr)
end program rma
