interface MPI_Wtime
  double precision function MPI_Wtime_f08()
  end function
end interface
interface MPI_Wtick
  double precision function MPI_Wtick_f08()
  end function
end interface
interface MPI_Aint_add
  function MPI_Aint_add_f08(base, disp) result(sum)
    import
    integer(MPI_ADDRESS_KIND), intent(in) :: base, disp
    integer(MPI_ADDRESS_KIND) :: sum
  end function
end interface
interface MPI_Aint_diff
  function MPI_Aint_diff_f08(addr1, addr2) result(sum)
    import
    integer(MPI_ADDRESS_KIND), intent(in) :: addr1, addr2
    integer(MPI_ADDRESS_KIND) :: sum
  end function
end interface
interface PMPI_Wtime
  double precision function PMPIR_Wtime_f08()
  end function
end interface
interface PMPI_Wtick
  double precision function PMPIR_Wtick_f08()
  end function
end interface
interface PMPI_Aint_add
  function PMPIR_Aint_add_f08(base, disp) result(sum)
    import
    integer(MPI_ADDRESS_KIND), intent(in) :: base, disp
    integer(MPI_ADDRESS_KIND) :: sum
  end function
end interface
interface PMPI_Aint_diff
  function PMPIR_Aint_diff_f08(addr1, addr2) result(sum)
    import
    integer(MPI_ADDRESS_KIND), intent(in) :: addr1, addr2
    integer(MPI_ADDRESS_KIND) :: sum
  end function
end interface
interface MPI_Pcontrol
  subroutine MPI_Pcontrol_f08(level)
    integer, intent(in) :: level
  end subroutine
end interface
interface MPI_F_sync_reg
  subroutine MPI_F_sync_reg_f08ts(buf)
    type(*), dimension(..), asynchronous :: buf
  end subroutine
end interface
interface MPI_Status_f2f08
  subroutine status_f2f08(f_status, f08_status, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_status_f2f08")
    import
    integer, intent(in) :: f_status(MPI_STATUS_SIZE)
    type(MPI_Status), intent(out) :: f08_status
    integer, optional, intent(out) :: ierror
  end subroutine
end interface
interface MPI_Status_f082f
  subroutine status_f082f(f08_status, f_status, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_status_f082f")
    import
    type(MPI_Status), intent(in) :: f08_status
    integer, intent(out) :: f_status(MPI_STATUS_SIZE)
    integer, optional, intent(out) :: ierror
  end subroutine
end interface
