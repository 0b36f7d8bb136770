! Handles that were never set: any INTEGER may stand there, and the call that gets it says so.
program bad_handles
  use mpi
  implicit none
  integer, parameter :: numbers(5) = [123456789, -5, 70000, huge(0), -huge(0)]
  integer :: i, n, ierr, class, rank, types(1), failed
  failed = 0
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
  do i = 1, size(numbers)
    n = numbers(i)
    call MPI_Type_size(numbers(i), n, ierr)
    call expect(MPI_ERR_TYPE, 'MPI_Type_size')
    call MPI_Comm_size(numbers(i), n, ierr)
    call expect(MPI_ERR_COMM, 'MPI_Comm_size')
    call MPI_Group_size(numbers(i), n, ierr)
    call expect(MPI_ERR_GROUP, 'MPI_Group_size')
  end do
  ! One that is good stays so.
  call MPI_Type_contiguous(3, MPI_INTEGER, types(1), ierr)
  call MPI_Type_commit(types(1), ierr)
  call MPI_Type_size(types(1), n, ierr)
  if (ierr /= MPI_SUCCESS .or. n /= 12) failed = failed + 1
  call MPI_Type_free(types(1), ierr)
  call MPI_Allreduce(MPI_IN_PLACE, failed, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. failed == 0) print '(a)', 'all checks hold'
  if (rank == 0 .and. failed /= 0) print '(i0,a)', failed, ' checks FAILED'
  call MPI_Finalize(ierr)
contains
  subroutine expect(wanted, what)
    integer, intent(in) :: wanted
    character(*), intent(in) :: what
    integer :: ignored
    call MPI_Error_class(ierr, class, ignored)
    if (class == wanted) return
    failed = failed + 1
    print '(a,i0,a,i0)', what // ' of ', numbers(i), ' gave class ', class
  end subroutine
end program
