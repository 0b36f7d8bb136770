! Fortran's clocks in virtual time: three hours asleep take no time, and SYSTEM_CLOCK, like MPI_Wtime, says that they have passed.
program clocks
   use mpi
   implicit none
   interface
      integer(4) function nap(seconds) bind(c, name='sleep')
         use iso_c_binding
         integer(c_int), value :: seconds
      end function
   end interface
   integer :: ierr, rank
   integer(8) :: before, after, rate
   double precision :: began
   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call system_clock(before, rate)
   began = MPI_Wtime()
   ierr = nap(10800)
   call system_clock(after)
   if (rank == 0) print '(i0, a, i0)', (after - before) / rate, ' and ', nint(MPI_Wtime() - began)
   call MPI_Finalize(ierr)
end program
