! use mpi_f08: typed handles and statuses, optional ierror, buffers that are array sections made contiguous by the compiler.
program usempif08
  use mpi_f08
  implicit none
  integer :: me, np, next, prev, bad, allbad, n, i
  type(MPI_Comm) :: twin
  type(MPI_Request) :: requests(2)
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Datatype) :: triple
  integer :: in(30), out(30), sums(5)
  logical :: flag
  bad = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, np)
  call MPI_Comm_dup(MPI_COMM_WORLD, twin)
  next = mod(me + 1, np)
  prev = mod(me + np - 1, np)
  out = [(me * 100 + i, i=1, 30)]
  call MPI_Type_contiguous(3, MPI_INTEGER, triple)
  call MPI_Type_commit(triple)
  call MPI_Irecv(in, 10, triple, prev, 4, twin, requests(1))
  call MPI_Isend(out, 30, MPI_INTEGER, next, 4, twin, requests(2))
  call MPI_Waitall(2, requests, statuses)
  call MPI_Get_count(statuses(1), triple, n)
  if (n /= 10 .or. statuses(1)%MPI_SOURCE /= prev .or. statuses(1)%MPI_TAG /= 4) bad = bad + 1
  if (any(in /= [(prev * 100 + i, i=1, 30)])) bad = bad + 1
  if (requests(1) /= MPI_REQUEST_NULL) bad = bad + 1
  call MPI_Sendrecv(out, 30, MPI_INTEGER, next, 5, in, 30, MPI_INTEGER, prev, 5, twin, status)
  if (status%MPI_SOURCE /= prev) bad = bad + 1
  sums = out(1:5)
  call MPI_Allreduce(MPI_IN_PLACE, sums, 5, MPI_INTEGER, MPI_SUM, twin)
  if (sums(2) /= 100 * np * (np - 1) / 2 + 2 * np) bad = bad + 1
  call MPI_Iprobe(MPI_ANY_SOURCE, 99, twin, flag, MPI_STATUS_IGNORE)
  if (flag) bad = bad + 1
  call MPI_Barrier(twin)
  call MPI_Type_free(triple)
  call MPI_Comm_free(twin)
  if (twin /= MPI_COMM_NULL) bad = bad + 1
  call MPI_Allreduce(bad, allbad, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
  if (me == 0) print '(a, i0, a, i0)', 'ranks ', np, ', bad ', allbad
  if (me == 0 .and. allbad == 0) print '(a)', 'all checks hold'
  call MPI_Finalize()
  if (allbad /= 0) stop 1
end program
