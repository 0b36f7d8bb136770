interface MPI_Sizeof
  subroutine sizeof_character(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_character")
    character(len=*), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_logical(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_logical")
    logical, dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_xint8(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_xint8")
    integer(1), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_xint16(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_xint16")
    integer(2), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_xint32(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_xint32")
    integer(4), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_xint64(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_xint64")
    integer(8), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_xreal32(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_xreal32")
    real(4), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_xreal64(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_xreal64")
    real(8), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_xreal128(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_xreal128")
    real(16), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_xcomplex32(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_xcomplex32")
    complex(4), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_xcomplex64(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_xcomplex64")
    complex(8), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
  subroutine sizeof_xcomplex128(x, size, ierror) bind(C, name="__mpi_f08_types_MOD_mpi_sizeof_xcomplex128")
    complex(16), dimension(..), intent(in) :: x
    integer, intent(out) :: size
    integer, optional, intent(out) :: ierror
  end subroutine
end interface
