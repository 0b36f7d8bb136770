! As watched.c, in Fortran: messages into allocatable arrays and their sections.
program watched
  use mpi
  implicit none
  integer :: rank, ranks, left, right, ierr, i, k, wrong, all, n, request
  integer :: status(MPI_STATUS_SIZE)
  integer, parameter :: lengths(4) = [1, 100, 30000, 300000]
  integer, allocatable :: out(:), in(:)
  double precision, allocatable :: table(:, :), sums(:)
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  right = mod(rank + 1, ranks)
  left = mod(rank + ranks - 1, ranks)
  wrong = 0
  do k = 1, 4
    n = lengths(k)
    allocate(out(n), in(n))
    out = [(rank * 1000 + i, i = 1, n)]
    call MPI_Irecv(in, n, MPI_INTEGER, left, 3, MPI_COMM_WORLD, request, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Send(out, n, MPI_INTEGER, right, 3, MPI_COMM_WORLD, ierr)
    call MPI_Wait(request, status, ierr)
    if (status(MPI_SOURCE) /= left) wrong = wrong + 1
    do i = 1, n
      if (in(i) /= left * 1000 + i) wrong = wrong + 1
    end do
    deallocate(out, in)
  end do
  allocate(table(300, 300), sums(90000))
  table = rank
  call MPI_Allreduce(table, sums, 90000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
  do i = 1, 90000
    if (sums(i) /= ranks * (ranks - 1) / 2) wrong = wrong + 1
  end do
  call MPI_Bcast(table(:, 100:200), 300 * 101, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD, ierr)
  if (any(table(:, 100:200) /= 0)) wrong = wrong + 1
  call MPI_Reduce(wrong, all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
  if (rank == 0) print '(i0, a)', all, ' wrong'
  deallocate(table, sums)
  call MPI_Finalize(ierr)
end program
