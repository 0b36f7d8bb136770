! mpi_f08 beyond what Open MPI 4.1's module has: status conversions, MPI_Info_get_string, and a section that is not contiguous in a call that goes on (vmpi refuses it, MPICH's module sends it).
program f08_mpi4
  use mpi_f08
  implicit none
  integer :: n, bad, ierr, class, fstatus(MPI_STATUS_SIZE), row(8)
  character(len=20) :: text
  logical :: flag, vmpi
  type(MPI_Info) :: info
  type(MPI_Request) :: request
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
  call MPI_Irecv(row(1:8:2), 4, MPI_INTEGER, 0, 7, MPI_COMM_SELF, request, ierr)
  if (vmpi) then
    call MPI_Error_class(ierr, class)
    if (class /= MPI_ERR_BUFFER) bad = bad + 16
  else
    call MPI_Send([1, 2, 3, 4], 4, MPI_INTEGER, 0, 7, MPI_COMM_SELF)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
  end if
  print '(a, i0)', 'bad ', bad
  call MPI_Finalize()
end program
