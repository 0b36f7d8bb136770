! What MPI 4.1 and 5.0 add to mpi_f08: buffers of communicators and sessions, several requests looked at, statuses, error codes, the ABI.
program f08_mpi41
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: big = MPI_COUNT_KIND
  integer :: rank, i, n, bad, class, code, indx, indices(3), major, minor, number
  integer, target :: room(500)
  integer(big) :: long
  logical :: flag, yes, no
  type(c_ptr) :: where
  type(MPI_Request) :: q, requests(3)
  type(MPI_Status) :: status, statuses(3)
  type(MPI_Info) :: info
  type(MPI_Session) :: session
  type(MPI_Datatype) :: pair
  character(len=40) :: text
  bad = 0
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)

  call MPI_Comm_attach_buffer(MPI_COMM_SELF, room, 2000)
  call MPI_Bsend([1, 2, 3], 3, MPI_INTEGER, 0, 1, MPI_COMM_SELF)
  call MPI_Comm_iflush_buffer(MPI_COMM_SELF, q)
  call MPI_Recv(indices, 3, MPI_INTEGER, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE)
  call MPI_Wait(q, MPI_STATUS_IGNORE)
  call MPI_Comm_flush_buffer(MPI_COMM_SELF)
  call MPI_Comm_detach_buffer(MPI_COMM_SELF, where, n)

  call expect(1, all(indices == [1, 2, 3]) .and. n == 2000 .and. transfer(where, 1_8) == transfer(c_loc(room), 1_8))
  call MPI_Comm_attach_buffer(MPI_COMM_SELF, room, 1000_big)
  call MPI_Comm_detach_buffer(MPI_COMM_SELF, where, long)
  call expect(2, long == 1000)
  call MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, session)
  call MPI_Session_attach_buffer(session, room, 800)
  call MPI_Session_flush_buffer(session)
  call MPI_Session_detach_buffer(session, where, n)
  call expect(3, n == 800 .and. transfer(where, 1_8) == transfer(c_loc(room), 1_8))
  call MPI_Session_finalize(session)
  call MPI_Buffer_flush()
  call MPI_Buffer_iflush(q)
  call MPI_Wait(q, MPI_STATUS_IGNORE)

  do i = 1, 3
    call MPI_Irecv(room(i), 1, MPI_INTEGER, 0, 10 + i, MPI_COMM_SELF, requests(i))
  end do
  call MPI_Send(5, 1, MPI_INTEGER, 0, 12, MPI_COMM_SELF)
  call MPI_Request_get_status_any(3, requests, indx, flag, status)
  call expect(4, flag .and. indx == 2)
  call MPI_Status_get_tag(status, n)
  call MPI_Status_get_source(status, number)
  call expect(5, n == 12 .and. number == 0)
  call MPI_Request_get_status_some(3, requests, n, indices, statuses)
  call expect(6, n == 1 .and. indices(1) == 2)
  call MPI_Request_get_status_all(3, requests, flag, statuses)
  call expect(7, .not. flag)
  call MPI_Send(4, 1, MPI_INTEGER, 0, 11, MPI_COMM_SELF)
  call MPI_Send(6, 1, MPI_INTEGER, 0, 13, MPI_COMM_SELF)
  call MPI_Request_get_status_all(3, requests, flag, statuses)
  call MPI_Status_get_tag(statuses(3), n)
  call expect(8, flag .and. n == 13)
  call MPI_Waitall(3, requests, MPI_STATUSES_IGNORE)
  call expect(9, all(room(1:3) == [4, 5, 6]))
  call MPI_Status_set_source(status, 3)
  call MPI_Status_set_tag(status, 4)
  call MPI_Status_set_error(status, MPI_ERR_TRUNCATE)
  call MPI_Status_get_error(status, n)
  call expect(10, status%MPI_SOURCE == 3 .and. status%MPI_TAG == 4 .and. n == MPI_ERR_TRUNCATE)

  call MPI_Add_error_class(class)
  call MPI_Add_error_code(class, code)
  call MPI_Add_error_string(code, 'out of tea')
  call MPI_Remove_error_string(code)
  call MPI_Remove_error_code(code)
  call MPI_Remove_error_class(class)
  call MPI_Type_get_value_index(MPI_FLOAT, MPI_INT, pair)
  call expect(11, pair == MPI_FLOAT_INT)
  call MPI_Get_hw_resource_info(info)
  call MPI_Info_get_nkeys(info, n)
  call expect(12, n > 0)
  call MPI_Info_free(info)
  call MPI_Abi_get_version(major, minor)
  call expect(13, major == 1 .and. minor >= 0)
  call MPI_Abi_get_info(info)
  n = len(text)
  call MPI_Info_get_string(info, 'mpi_count_size', n, text, flag)
  call expect(14, flag .and. text == '8')
  call MPI_Info_free(info)
  call MPI_Abi_get_fortran_info(info)
  call MPI_Info_get_string(info, 'mpi_integer_size', n, text, flag)
  call expect(15, flag .and. text == '4')
  call MPI_Info_free(info)
  call MPI_Abi_get_fortran_booleans(4, yes, no, flag)
  call expect(16, yes .and. .not. no .and. flag)
  if (bad == 0 .and. rank == 0) print '(a)', 'all checks hold'
  call MPI_Finalize()
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
