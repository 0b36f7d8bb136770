! mpi_f08 beyond what Open MPI 4.1's module has: status conversions, MPI_Info_get_string, sections that are not contiguous in
! calls that go on, and in persistent ones (not in partitioned ones, which vmpi refuses).
program f08_mpi4
  use mpi_f08
  implicit none
  integer :: n, bad, fstatus(MPI_STATUS_SIZE), row(8), i
  integer :: sent(12) = [(i, i = 1, 12)]
  character(len=20) :: text
  logical :: flag, vmpi
  type(MPI_Info) :: info
  type(MPI_Request) :: request, requests(2)
  type(MPI_Status) :: status, again
  bad = 0
  call MPI_Init()
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call get_environment_variable('VMPI_JOBID', status=n)
  vmpi = n == 0
  call MPI_Sendrecv(1, 1, MPI_INTEGER, 0, 6, n, 1, MPI_INTEGER, 0, 6, MPI_COMM_SELF, status)
  call MPI_Status_f082f(status, fstatus)
  if (fstatus(MPI_SOURCE) /= 0 .or. fstatus(MPI_TAG) /= 6) bad = bad + 1
  call MPI_Status_f2f08(fstatus, again)
  if (again%MPI_SOURCE /= 0 .or. again%MPI_TAG /= 6) bad = bad + 2
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'colour', 'red green')
  n = len(text)
  call MPI_Info_get_string(info, 'colour', n, text, flag)
  if (.not. flag .or. text /= 'red green') bad = bad + 4
  call MPI_Info_free(info)
  row = 0
  call MPI_Irecv(row(1:8:2), 4, MPI_INTEGER, 0, 7, MPI_COMM_SELF, request)
  call MPI_Irecv(row(8:2:-2), 4, MPI_INTEGER, 0, 8, MPI_COMM_SELF, requests(1))
  call MPI_Isend(sent(::3), 4, MPI_INTEGER, 0, 8, MPI_COMM_SELF, requests(2))
  if (any(row(1:7:2) /= 0)) bad = bad + 8
  call MPI_Send([1, 2, 3, 4], 4, MPI_INTEGER, 0, 7, MPI_COMM_SELF)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
  if (any(row /= [1, 10, 2, 7, 3, 4, 4, 1])) bad = bad + 16
  ! A request that is looked at, and one that is freed.
  call MPI_Irecv(row(1:8:2), 4, MPI_INTEGER, 0, 9, MPI_COMM_SELF, request)
  call MPI_Isend(sent(::3), 4, MPI_INTEGER, 0, 9, MPI_COMM_SELF, requests(1))
  call MPI_Request_free(requests(1))
  flag = .false.
  do while (.not. flag)
    call MPI_Request_get_status(request, flag, status)
  end do
  if (any(row(1:7:2) /= [1, 4, 7, 10])) bad = bad + 32
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (vmpi) then
    call MPI_Iallreduce(sent(1:12:4), row(3:1:-1), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, request) ! MPICH 4.0.2 does not
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(row(1:3) /= [9, 5, 1])) bad = bad + 64
  end if
  call persistent()
  print '(a, i0)', 'bad ', bad
  call MPI_Finalize()
contains
  ! Each start takes what the sections hold then, and each end puts into them what has come, and nothing else.
  subroutine persistent()
    integer :: round, ierr, class, large(2, 40000), there(40000, 3)
    type(MPI_Request) :: reduction
    row = 0
    call MPI_Recv_init(row(8:2:-2), 4, MPI_INTEGER, 0, 10, MPI_COMM_SELF, requests(1))
    call MPI_Send_init(sent(::3), 4, MPI_INTEGER, 0, 10, MPI_COMM_SELF, requests(2))
    do round = 1, 3
      sent = [(100 * round + i, i = 1, 12)]
      row = -round
      call MPI_Startall(2, requests)
      row(1:7:2) = round
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
      if (any(row /= [round, 100 * round + 10, round, 100 * round + 7, round, 100 * round + 4, round, 100 * round + 1])) &
        bad = ior(bad, 128)
    end do
    ! Freeing an inactive one leaves the section as it is, and so does one that has been looked at and then waited for.
    row = 5
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    if (any(row /= 5)) bad = ior(bad, 256)
    call MPI_Recv_init(row(::2), 4, MPI_INTEGER, 0, 11, MPI_COMM_SELF, request)
    call MPI_Start(request)
    call MPI_Send([1, 2, 3], 3, MPI_INTEGER, 0, 11, MPI_COMM_SELF)
    row(7) = 9
    flag = .false.
    do while (.not. flag)
      call MPI_Request_get_status(request, flag, status)
    end do
    if (any(row /= [1, 5, 2, 5, 3, 5, 9, 5])) bad = ior(bad, 512)
    row = 6
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (any(row /= 6)) bad = ior(bad, 1024)
    ! One that is cancelled.
    call MPI_Start(request)
    call MPI_Cancel(request)
    call MPI_Wait(request, status)
    call MPI_Test_cancelled(status, flag)
    if (.not. flag .or. any(row /= 6)) bad = ior(bad, 2048)
    call MPI_Request_free(request)
    ! Large ones, which are not copied when they are sent.
    call MPI_Recv_init(large(2, :), 40000, MPI_INTEGER, 0, 12, MPI_COMM_SELF, requests(1))
    call MPI_Ssend_init(there(40000:1:-1, 1:3:2), 40000, MPI_INTEGER, 0, 12, MPI_COMM_SELF, requests(2))
    large = 0
    do round = 1, 2
      there = reshape([(round * i, i = 1, 120000)], [40000, 3])
      call MPI_Start(requests(1))
      call MPI_Start(requests(2))
      call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE)
      if (any(large(1, :) /= 0) .or. any(large(2, :) /= there(40000:1:-1, 1))) bad = ior(bad, 4096)
    end do
    call MPI_Request_free(requests(1))
    call MPI_Request_free(requests(2))
    if (.not. vmpi) return ! MPICH 4.0.2 frees the types that it makes of the sections once too often.
    call MPI_Allgather_init(sent(::3), 4, MPI_INTEGER, row(2::2), 4, MPI_INTEGER, MPI_COMM_SELF, MPI_INFO_NULL, request)
    do round = 1, 2
      sent = [(10 * round + i, i = 1, 12)]
      row = 0
      call MPI_Start(request)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      if (any(row /= [0, 1, 0, 4, 0, 7, 0, 10] + merge(10 * round, 0, [(mod(i, 2) == 0, i = 1, 8)]))) bad = ior(bad, 8192)
    end do
    call MPI_Request_free(request)
    call MPI_Allreduce_init(sent(1:12:4), row(3:1:-1), 3, MPI_INTEGER, MPI_SUM, MPI_COMM_SELF, MPI_INFO_NULL, reduction)
    do round = 1, 2
      sent = [(10 * round + i, i = 1, 12)]
      call MPI_Start(reduction)
      call MPI_Wait(reduction, MPI_STATUS_IGNORE)
      if (any(row(1:3) /= 10 * round + [9, 5, 1])) bad = ior(bad, 16384)
    end do
    call MPI_Request_free(reduction)
    call MPI_Precv_init(row(::2), 2, 2_MPI_COUNT_KIND, MPI_INTEGER, 0, 13, MPI_COMM_SELF, MPI_INFO_NULL, request, ierr)
    call MPI_Error_class(ierr, class)
    if (class /= MPI_ERR_BUFFER) bad = ior(bad, 32768)
  end subroutine
end program
