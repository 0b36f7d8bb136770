! mpi_f08 with counts of MPI_COUNT_KIND: each sort of procedure once, beside the INTEGER one of the same name.
program f08_large
  use mpi_f08
  implicit none
  integer, parameter :: big = MPI_COUNT_KIND
  integer(big), parameter :: huge = 3000000000_big
  integer(big) :: n, m, place, counts(16), positions(16), lengths(2), ints, addresses, larges, kinds, wide(4)
  integer(MPI_ADDRESS_KIND) :: displs(16), bytes, addr(4)
  integer :: rank, size, i, bad, small, unit, combiner, room(4), a(64), b(64), matrix(4, 6)
  integer(big) :: elements
  type(MPI_Comm) :: w
  type(MPI_Datatype) :: t, u, types(16), inner(2)
  type(MPI_Request) :: q
  type(MPI_Status) :: status
  type(MPI_Win) :: win
  type(MPI_Message) :: message
  bad = 0
  call MPI_Init()
  w = MPI_COMM_WORLD
  call MPI_Comm_rank(w, rank)
  call MPI_Comm_size(w, size)
  a = [(100 * rank + i, i = 1, 64)]

  ! Messages.
  b = 0
  call MPI_Isend(a, 5_big, MPI_INTEGER, rank, 1, w, q)
  call MPI_Recv(b, 10_big, MPI_INTEGER, rank, 1, w, status)
  call MPI_Wait(q, MPI_STATUS_IGNORE)
  call MPI_Get_count(status, MPI_INTEGER, n)
  call MPI_Get_count(status, MPI_INTEGER, small)
  call MPI_Get_elements(status, MPI_INTEGER, m)
  call expect(1, n == 5 .and. small == 5 .and. m == 5 .and. all(b(1:5) == a(1:5)))
  call MPI_Sendrecv(a, 3_big, MPI_INTEGER, mod(rank + 1, size), 2, b, 3_big, MPI_INTEGER, mod(rank + size - 1, size), 2, w, &
      MPI_STATUS_IGNORE)
  call expect(2, b(3) == 100 * mod(rank + size - 1, size) + 3)
  call MPI_Send_init(a, 2_big, MPI_INTEGER, rank, 3, w, q)
  call MPI_Start(q)
  call MPI_Mprobe(rank, 3, w, message, status)
  call MPI_Mrecv(b, 2_big, MPI_INTEGER, message, status)
  call MPI_Wait(q, MPI_STATUS_IGNORE)
  call MPI_Request_free(q)
  call expect(3, b(2) == a(2))
  ! A section that is not contiguous.
  matrix = reshape([(i, i = 1, 24)], [4, 6])
  call MPI_Sendrecv(matrix(2, :), 6_big, MPI_INTEGER, rank, 4, b, 6_big, MPI_INTEGER, rank, 4, w, status)
  call expect(4, all(b(1:6) == matrix(2, :)))

  ! Collectives.
  b = -1
  call MPI_Allgather(a, 2_big, MPI_INTEGER, b, 2_big, MPI_INTEGER, w)
  call expect(5, all([(b(2 * i + 1) == 100 * i + 1, i = 0, size - 1)]))
  counts = 1
  displs = [(int(3 * i, MPI_ADDRESS_KIND), i = 0, 15)]
  b = -1
  call MPI_Allgatherv(a, 1_big, MPI_INTEGER, b, counts, displs, MPI_INTEGER, w)
  call expect(6, all([(b(3 * i + 1) == 100 * i + 1, i = 0, size - 1)]))
  b = -1
  call MPI_Alltoallv(a, counts, displs, MPI_INTEGER, b, counts, displs, MPI_INTEGER, w)
  call expect(7, all([(b(3 * i + 1) == 100 * i + 3 * rank + 1, i = 0, size - 1)]))
  types = MPI_INTEGER
  displs = 4 * displs
  b = -1
  call MPI_Alltoallw(a, counts, displs, types, b, counts, displs, types, w)
  call expect(8, all([(b(3 * i + 1) == 100 * i + 3 * rank + 1, i = 0, size - 1)]))
  call MPI_Allreduce(rank, small, 1_big, MPI_INTEGER, MPI_SUM, w)
  call expect(9, small == size * (size - 1) / 2)
  call MPI_Iallreduce(MPI_IN_PLACE, b, 0_big, MPI_INTEGER, MPI_SUM, w, q)
  call MPI_Wait(q, MPI_STATUS_IGNORE)
  b(1) = merge(7, 0, rank == 0)
  call MPI_Bcast(b, 1_big, MPI_INTEGER, 0, w)
  call expect(10, b(1) == 7)
  call MPI_Reduce_scatter(a, b, counts, MPI_INTEGER, MPI_SUM, w)
  call expect(11, b(1) == 100 * (size * (size - 1) / 2) + size * (rank + 1))

  ! Datatypes.
  call MPI_Type_contiguous(huge, MPI_INTEGER, t)
  call MPI_Type_size(t, n)
  call MPI_Type_size(t, small)
  call expect(12, n == 4 * huge .and. small == MPI_UNDEFINED)
  call MPI_Type_get_envelope(t, ints, addresses, larges, kinds, combiner)
  call expect(13, ints == 0 .and. addresses == 0 .and. larges == 1 .and. kinds == 1 .and. combiner == MPI_COMBINER_CONTIGUOUS)
  call MPI_Type_get_contents(t, 0_big, 0_big, 1_big, 1_big, room, addr, wide, inner)
  call expect(14, wide(1) == huge .and. inner(1) == MPI_INTEGER)
  call MPI_Type_free(t)
  lengths = [2_big, 1_big]
  positions(1:2) = [0_big, 5_big]
  call MPI_Type_indexed(2_big, lengths, positions, MPI_INTEGER, t)
  call MPI_Type_commit(t)
  call MPI_Type_create_struct(2_big, lengths, positions, [MPI_INTEGER, MPI_DOUBLE_PRECISION], u)
  call MPI_Type_size(u, n)
  call expect(15, n == 16)
  call MPI_Type_free(u)
  call MPI_Pack_size(2_big, t, w, n)
  place = 0
  call MPI_Pack(a, 2_big, t, b, 256_big, place, w)
  call expect(16, n >= 24 .and. place == 24)
  b(10:) = 0
  n = 0
  call MPI_Unpack(b, place, n, b(20), 2_big, t, w)
  call expect(17, n == place .and. b(20) == a(1) .and. b(25) == a(6) .and. b(22) == 0)
  call MPI_Pack_external_size('external32', 3_big, MPI_INTEGER, n)
  call expect(18, n == 12)
  call MPI_Status_set_elements_x(status, MPI_INTEGER, huge)
  call MPI_Get_elements(status, MPI_INTEGER, elements)
  call MPI_Get_count(status, MPI_INTEGER, small)
  call expect(19, elements == huge .and. small == MPI_UNDEFINED)
  call MPI_Type_free(t)

  ! One-sided.
  if (size > 1) then
    bytes = 256
    call MPI_Win_create(a, bytes, 4_MPI_ADDRESS_KIND, MPI_INFO_NULL, w, win)
    b = 0
    call MPI_Win_fence(0, win)
    call MPI_Get(b, 4_big, MPI_INTEGER, mod(rank + 1, size), 2_MPI_ADDRESS_KIND, 4_big, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call expect(20, b(1) == 100 * mod(rank + 1, size) + 3)
    call MPI_Accumulate(b, 1_big, MPI_INTEGER, rank, 0_MPI_ADDRESS_KIND, 1_big, MPI_INTEGER, MPI_REPLACE, win)
    call MPI_Win_fence(0, win)
    call expect(21, a(1) == b(1))
    call MPI_Win_free(win)
  end if
  if (bad == 0 .and. rank == 0) print '(a)', 'all checks hold'
  call MPI_Finalize()
  unit = 0
  if (bad /= 0) stop 1
contains
  subroutine expect(number, holds)
    integer, intent(in) :: number
    logical, intent(in) :: holds
    if (.not. holds) then
      bad = bad + 1
      print '(a, i0, a, i0)', 'rank ', rank, ': wrong: ', number
    end if
  end subroutine
end program
