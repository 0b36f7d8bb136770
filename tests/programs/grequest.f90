! Generalized requests from Fortran: the procedures are given the program's own variable as extra state.
module procedures
   use mpi
   implicit none
contains
   subroutine query(extra_state, status, ierror)
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      integer :: status(MPI_STATUS_SIZE), ierror
      call MPI_Status_set_elements(status, MPI_INTEGER, int(extra_state), ierror)
      call MPI_Status_set_cancelled(status, .false., ierror)
      status(MPI_SOURCE) = 3
      status(MPI_TAG) = 4
      extra_state = extra_state * 10
      ierror = MPI_SUCCESS
   end subroutine

   subroutine release(extra_state, ierror)
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      integer :: ierror
      extra_state = extra_state + 1
      ierror = MPI_SUCCESS
   end subroutine

   subroutine cancel(extra_state, complete, ierror)
      integer(kind=MPI_ADDRESS_KIND) :: extra_state
      logical :: complete
      integer :: ierror
      extra_state = merge(1000, 2000, complete)
      ierror = MPI_SUCCESS
   end subroutine

   ! Out of the optimizer's sight.
   subroutine look(extra_state, what)
      integer(kind=MPI_ADDRESS_KIND), volatile :: extra_state
      character(len=*) :: what
      print '(2a, i0)', what, ': ', extra_state
   end subroutine
end module

program grequest
   use procedures
   implicit none
   integer :: request, status(MPI_STATUS_SIZE), n, ierr
   integer(kind=MPI_ADDRESS_KIND), volatile :: state
   logical :: done
   call MPI_Init(ierr)
   state = 5
   call MPI_Grequest_start(query, release, cancel, state, request, ierr)
   call MPI_Test(request, done, status, ierr)
   call look(state, 'under way')
   if (done) print *, 'over too early'
   state = 6
   call MPI_Grequest_complete(request, ierr)
   call MPI_Wait(request, status, ierr)
   call MPI_Get_elements(status, MPI_INTEGER, n, ierr)
   call look(state, 'over')
   print '(a, 3(1x, i0))', 'status', n, status(MPI_SOURCE), status(MPI_TAG)
   call MPI_Grequest_start(query, release, cancel, state, request, ierr)
   call MPI_Cancel(request, ierr)
   call look(state, 'cancelled')
   state = 7
   call MPI_Grequest_complete(request, ierr)
   call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
   call look(state, 'over')
   call MPI_Finalize(ierr)
end program
