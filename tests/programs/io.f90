! Files from Fortran: open, view, collective and shared accesses, positions, split calls, strings, handles; a data
! representation and an error handler of Fortran procedures (the latter two under vmpi only).
program io
    use mpi
    implicit none
    integer :: rank, size, ierr, f, i, n, amode, filetype, group, status(MPI_STATUS_SIZE), request, errors, all, handler
    integer :: mine(10), back(10), class, wanted(2)
    integer(kind=MPI_OFFSET_KIND) :: offset, bytes, where
    integer(kind=MPI_ADDRESS_KIND) :: extent
    character(len=MPI_MAX_DATAREP_STRING) :: rep
    character(len=8) :: job
    logical :: flag
    external :: from_text, to_text, text_extent, on_error
    common /calls/ n_calls
    integer :: n_calls
    n_calls = 0
    errors = 0
    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
    if (rank == 0) call MPI_File_delete('io_f90.dat   ', MPI_INFO_NULL, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_File_open(MPI_COMM_WORLD, 'io_f90.dat   ', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, f, ierr)
    call check(ierr == MPI_SUCCESS, 1)
    call MPI_File_get_amode(f, amode, ierr)
    call check(amode == MPI_MODE_CREATE + MPI_MODE_RDWR, 2)
    call MPI_Type_vector(5, 2, 2 * size, MPI_INTEGER, filetype, ierr)
    call MPI_Type_commit(filetype, ierr)
    offset = 8 * rank
    call MPI_File_set_view(f, offset, MPI_INTEGER, filetype, 'native', MPI_INFO_NULL, ierr)
    call check(ierr == MPI_SUCCESS, 3)
    do i = 1, 10
        mine(i) = 100 * rank + i
    end do
    call MPI_File_write_all(f, mine, 10, MPI_INTEGER, status, ierr)
    call MPI_Get_count(status, MPI_INTEGER, n, ierr)
    call check(n == 10, 4)
    call MPI_File_get_position(f, where, ierr)
    call check(where == 10, 5)
    call MPI_File_get_view(f, bytes, i, n, rep, ierr)
    call check(bytes == 8 * rank .and. i == MPI_INTEGER .and. rep == 'native', 6)
    call MPI_Type_free(n, ierr)
    call MPI_File_get_byte_offset(f, 2_MPI_OFFSET_KIND, bytes, ierr)
    call check(bytes == 8 * rank + 8 * size, 7)
    call MPI_File_sync(f, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_File_get_size(f, bytes, ierr)
    call check(bytes == 40 * size, 8)
    offset = 3
    back = 0
    call MPI_File_read_at(f, offset, back, 4, MPI_INTEGER, status, ierr)
    call check(all_of(back(1:4) == mine(4:7)), 9)
    call MPI_File_seek(f, offset, MPI_SEEK_SET, ierr)
    call MPI_File_iread(f, back, 2, MPI_INTEGER, request, ierr)
    call MPI_Wait(request, status, ierr)
    call check(back(1) == mine(4) .and. request == MPI_REQUEST_NULL, 10)
    call MPI_File_read_at_all_begin(f, offset, back, 5, MPI_INTEGER, ierr)
    call MPI_File_read_at_all_end(f, back, status, ierr)
    call check(all_of(back(1:5) == mine(4:8)), 11)
    call MPI_File_set_atomicity(f, .true., ierr)
    call MPI_File_get_atomicity(f, flag, ierr)
    call check(flag, 12)
    call MPI_File_get_group(f, group, ierr)
    call MPI_Group_size(group, n, ierr)
    call check(n == size, 13)
    call MPI_Group_free(group, ierr)
    call MPI_File_get_type_extent(f, MPI_INTEGER, extent, ierr)
    call check(extent == 4, 14)
    call MPI_File_set_view(f, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierr)
    call MPI_File_write_ordered(f, mine, rank + 1, MPI_INTEGER, status, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_File_get_position_shared(f, where, ierr)
    call check(where == size * (size + 1) / 2, 15)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_File_seek_shared(f, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, ierr)
    call MPI_File_read_ordered(f, back, rank + 1, MPI_INTEGER, status, ierr)
    call check(all_of(back(1:min(rank + 1, 10)) == mine(1:min(rank + 1, 10))), 16)
    call MPI_File_read_at(f, 0_MPI_OFFSET_KIND, back, 1, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
    call check(back(1) == 1, 17)

    call get_environment_variable('VMPI_JOBID', job, n, i)
    if (i == 0) then
        call MPI_Register_datarep('ftext', from_text, to_text, text_extent, 42_MPI_ADDRESS_KIND, ierr)
        call check(ierr == MPI_SUCCESS, 20)
        call MPI_File_set_view(f, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'ftext', MPI_INFO_NULL, ierr)
        call check(ierr == MPI_SUCCESS, 21)
        offset = 10 * rank
        call MPI_File_write_at_all(f, offset, mine, 10, MPI_INTEGER, status, ierr)
        back = 0
        call MPI_File_read_at(f, offset, back, 10, MPI_INTEGER, status, ierr)
        call check(all_of(back == mine) .and. n_calls >= 2, 22)
        call register_null(text_extent, ierr)
        call check(ierr == MPI_SUCCESS, 23)
        call MPI_File_set_view(f, 0_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'fnull', MPI_INFO_NULL, ierr)
        call check(ierr == MPI_SUCCESS, 25)
        n_calls = 0
        offset = 10 * rank
        call MPI_File_write_at_all(f, offset, mine, 4, MPI_INTEGER, status, ierr)
        call check(ierr == MPI_SUCCESS .and. n_calls == 0, 26)
        call MPI_File_create_errhandler(on_error, handler, ierr)
        call MPI_File_set_errhandler(f, handler, ierr)
        n_calls = 0
        call MPI_File_read(f, back, -1, MPI_INTEGER, status, ierr)
        call MPI_Error_class(ierr, class, ierr)
        call check(class == MPI_ERR_COUNT .and. n_calls == 1, 24)
        call MPI_Errhandler_free(handler, ierr)
    end if
    call MPI_File_close(f, ierr)
    call check(f == MPI_FILE_NULL, 30)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_Type_free(filetype, ierr)
    if (rank == 0) call MPI_File_delete('io_f90.dat', MPI_INFO_NULL, ierr)
    call check(ierr == MPI_SUCCESS, 31)
    call MPI_Reduce(errors, all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(a,i0)', 'errors: ', all
    call MPI_Finalize(ierr)
contains
    logical function all_of(list)
        logical, intent(in) :: list(:)
        integer :: k
        all_of = .true.
        do k = 1, ubound(list, 1)
            all_of = all_of .and. list(k)
        end do
    end function
    subroutine check(holds, number)
        logical, intent(in) :: holds
        integer, intent(in) :: number
        if (.not. holds) then
            errors = errors + 1
            write (0, *) 'rank', rank, ': check', number, 'fails'
        end if
    end subroutine
end program

! An INTEGER is eight characters in the file.
subroutine to_text(user, datatype, count, file, position, extra, ierror)
    use mpi
    integer :: user(*), datatype, count, ierror, k
    character(len=8) :: file(*)
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra
    common /calls/ n_calls
    integer :: n_calls
    n_calls = n_calls + 1
    ierror = MPI_SUCCESS
    if (datatype /= MPI_INTEGER .or. extra /= 42) ierror = MPI_ERR_CONVERSION
    do k = 1, count
        write (file(k), '(i8)') user(position + k)
    end do
end subroutine

subroutine from_text(user, datatype, count, file, position, extra, ierror)
    use mpi
    integer :: user(*), datatype, count, ierror, k
    character(len=8) :: file(*)
    integer(kind=MPI_OFFSET_KIND) :: position
    integer(kind=MPI_ADDRESS_KIND) :: extra
    common /calls/ n_calls
    integer :: n_calls
    n_calls = n_calls + 1
    ierror = MPI_SUCCESS
    if (datatype /= MPI_INTEGER .or. extra /= 42) ierror = MPI_ERR_CONVERSION
    do k = 1, count
        read (file(k), '(i8)') user(position + k)
    end do
end subroutine

subroutine text_extent(datatype, extent, extra, ierror)
    use mpi
    integer :: datatype, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extent, extra
    extent = 8
    ierror = MPI_SUCCESS
    if (extra /= 42) ierror = MPI_ERR_CONVERSION
end subroutine

! MPICH's module does not declare the null function, Open MPI's does.
subroutine register_null(extent, ierror)
    external :: extent, MPI_CONVERSION_FN_NULL, MPI_Register_datarep
    integer :: ierror
    call MPI_Register_datarep('fnull', MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent, 42_8, ierror)
end subroutine

subroutine on_error(file, code)
    integer :: file, code, n_calls
    common /calls/ n_calls
    n_calls = n_calls + 1
end subroutine
