! mpi_f08 beyond what Open MPI 4.1's module has: status conversions, MPI_Info_get_string, sections that are not contiguous in
! calls that go on, and in persistent ones (which vmpi refuses, and MPICH's module does).
program f08_mpi4
  use mpi_f08
  implicit none
  integer :: n, bad, ierr, class, fstatus(MPI_STATUS_SIZE), row(8), i
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
    call MPI_Recv_init(row(1:8:2), 4, MPI_INTEGER, 0, 7, MPI_COMM_SELF, request, ierr)
    call MPI_Error_class(ierr, class)
    if (class /= MPI_ERR_BUFFER) bad = bad + 128
  end if
  print '(a, i0)', 'bad ', bad
  call MPI_Finalize()
end program
