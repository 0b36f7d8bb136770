! Dynamic processes from Fortran: the program starts itself. Only the ranks that were started first print.
program spawn
   use mpi
   implicit none
   integer :: ierr, rank, nranks, parent, comm, i, k, root, got, total, remote
   integer :: errcodes(8), maxprocs(2), infos(2), word(3), status(MPI_STATUS_SIZE)
   character(len=300) :: self, commands(2)
   character(len=20) :: argv(3), argvs(2, 3), text
   character(len=MPI_MAX_PORT_NAME) :: port, found

   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
   call MPI_Comm_get_parent(parent, ierr)
   call get_command_argument(0, self)
   if (parent /= MPI_COMM_NULL) then
      total = 0
      do i = 1, command_argument_count()
         call get_command_argument(i, text)
         total = total + len_trim(text) * 10**(i - 1)
      end do
      word = [rank, command_argument_count(), total]
      call MPI_Comm_remote_size(parent, remote, ierr)
      call MPI_Send(word, 3, MPI_INTEGER, mod(rank, remote), 5, parent, ierr)
      call MPI_Comm_disconnect(parent, ierr)
      if (parent /= MPI_COMM_NULL) print *, 'the handle stays'
      call MPI_Finalize(ierr)
      stop
   end if
   root = nranks - 1

   argv = [character(len=20) :: 'one', ' two words', ' ']
   errcodes = -7
   call MPI_Comm_spawn(self, argv, 3, MPI_INFO_NULL, root, MPI_COMM_WORLD, comm, errcodes, ierr)
   call check('errcodes', all(errcodes(1:3) == MPI_SUCCESS) .and. errcodes(4) == -7)
   call hear('argv', comm)
   call MPI_Comm_spawn(self, MPI_ARGV_NULL, 2, MPI_INFO_NULL, root, MPI_COMM_WORLD, comm, MPI_ERRCODES_IGNORE, ierr)
   call hear('none', comm)

   commands = self
   argvs = ' '
   argvs(1, 1) = 'a'
   argvs(1, 2) = 'bb'
   argvs(2, 1) = 'cccc'
   maxprocs = [2, 1]
   infos = MPI_INFO_NULL
   errcodes = -7
   call MPI_Comm_spawn_multiple(2, commands, argvs, maxprocs, infos, 0, MPI_COMM_WORLD, comm, errcodes, ierr)
   call check('errcodes', all(errcodes(1:3) == MPI_SUCCESS) .and. errcodes(4) == -7)
   call hear('several', comm)
   call MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, maxprocs, infos, 0, MPI_COMM_WORLD, comm, &
      MPI_ERRCODES_IGNORE, ierr)
   call hear('several, none', comm)

   if (rank == 0) then
      call MPI_Open_port(MPI_INFO_NULL, port, ierr)
      call MPI_Publish_name('vmpi fortran', MPI_INFO_NULL, port, ierr)
   end if
   call MPI_Barrier(MPI_COMM_WORLD, ierr)
   if (rank == 0) then
      do i = 1, nranks - 1
         call MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, comm, ierr)
         call MPI_Recv(got, 1, MPI_INTEGER, 0, 6, comm, status, ierr)
         call check('connected', got > 0)
         call MPI_Comm_disconnect(comm, ierr)
      end do
   else
      call MPI_Lookup_name('vmpi fortran', MPI_INFO_NULL, found, ierr)
      call MPI_Comm_connect(found, MPI_INFO_NULL, 0, MPI_COMM_SELF, comm, ierr)
      call MPI_Send(rank, 1, MPI_INTEGER, 0, 6, comm, ierr)
      call MPI_Comm_disconnect(comm, ierr)
   end if
   call MPI_Barrier(MPI_COMM_WORLD, ierr)
   if (rank == 0) then
      call MPI_Unpublish_name('vmpi fortran', MPI_INFO_NULL, port, ierr)
      call MPI_Close_port(port, ierr)
      print '(a)', 'done'
   end if
   call MPI_Finalize(ierr)

contains
   subroutine check(what, good)
      character(len=*), intent(in) :: what
      logical, intent(in) :: good
      if (.not. good) print '(a, i0, 2a)', 'rank ', rank, ' FAILED: ', what
   end subroutine

   subroutine hear(what, comm)
      character(len=*), intent(in) :: what
      integer, intent(inout) :: comm
      integer :: children, mine(3)
      call MPI_Comm_remote_size(comm, children, ierr)
      if (rank == 0) then
         do k = 0, children - 1, nranks
            call MPI_Recv(mine, 3, MPI_INTEGER, k, 5, comm, status, ierr)
            print '(2a, 3(1x, i0))', what, ':', mine
         end do
      else
         do k = rank, children - 1, nranks
            call MPI_Recv(mine, 3, MPI_INTEGER, k, 5, comm, status, ierr)
         end do
      end if
      call MPI_Comm_disconnect(comm, ierr)
      call check('disconnected', comm == MPI_COMM_NULL)
   end subroutine
end program
