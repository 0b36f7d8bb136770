abstract interface
  subroutine MPI_User_function(invec, inoutvec, len, datatype)
    import
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
  end subroutine
  subroutine MPI_Comm_copy_attr_function(oldcomm, comm_keyval, extra_state, &
    attribute_val_in, attribute_val_out, flag, ierror)
    import
    type(MPI_Comm) :: oldcomm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
  end subroutine
  subroutine MPI_Comm_delete_attr_function(comm, comm_keyval, attribute_val, extra_state, ierror)
    import
    type(MPI_Comm) :: comm
    integer :: comm_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
  end subroutine
  subroutine MPI_Type_copy_attr_function(oldtype, type_keyval, extra_state, &
    attribute_val_in, attribute_val_out, flag, ierror)
    import
    type(MPI_Datatype) :: oldtype
    integer :: type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
  end subroutine
  subroutine MPI_Type_delete_attr_function(datatype, type_keyval, attribute_val, extra_state, ierror)
    import
    type(MPI_Datatype) :: datatype
    integer :: type_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
  end subroutine
  subroutine MPI_Win_copy_attr_function(oldwin, win_keyval, extra_state, &
    attribute_val_in, attribute_val_out, flag, ierror)
    import
    type(MPI_Win) :: oldwin
    integer :: win_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
  end subroutine
  subroutine MPI_Win_delete_attr_function(win, win_keyval, attribute_val, extra_state, ierror)
    import
    type(MPI_Win) :: win
    integer :: win_keyval, ierror
    integer(MPI_ADDRESS_KIND) :: attribute_val, extra_state
  end subroutine
  subroutine MPI_Comm_errhandler_function(comm, error_code)
    import
    type(MPI_Comm) :: comm
    integer :: error_code
  end subroutine
  subroutine MPI_Win_errhandler_function(win, error_code)
    import
    type(MPI_Win) :: win
    integer :: error_code
  end subroutine
  subroutine MPI_File_errhandler_function(file, error_code)
    import
    type(MPI_File) :: file
    integer :: error_code
  end subroutine
  subroutine MPI_Session_errhandler_function(session, error_code)
    import
    type(MPI_Session) :: session
    integer :: error_code
  end subroutine
  subroutine MPI_Grequest_query_function(extra_state, status, ierror)
    import
    integer(MPI_ADDRESS_KIND) :: extra_state
    type(MPI_Status) :: status
    integer :: ierror
  end subroutine
  subroutine MPI_Grequest_free_function(extra_state, ierror)
    import
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
  end subroutine
  subroutine MPI_Grequest_cancel_function(extra_state, complete, ierror)
    import
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
  end subroutine
  subroutine MPI_Datarep_extent_function(datatype, extent, extra_state, ierror)
    import
    type(MPI_Datatype) :: datatype
    integer(MPI_ADDRESS_KIND) :: extent, extra_state
    integer :: ierror
  end subroutine
  subroutine MPI_Datarep_conversion_function(userbuf, datatype, count, &
    filebuf, position, extra_state, ierror)
    import
    type(c_ptr), value :: userbuf, filebuf
    type(MPI_Datatype) :: datatype
    integer :: count, ierror
    integer(MPI_OFFSET_KIND) :: position
    integer(MPI_ADDRESS_KIND) :: extra_state
  end subroutine
end interface
procedure(MPI_Comm_copy_attr_function) :: MPI_COMM_NULL_COPY_FN, MPI_COMM_DUP_FN
procedure(MPI_Comm_delete_attr_function) :: MPI_COMM_NULL_DELETE_FN
procedure(MPI_Type_copy_attr_function) :: MPI_TYPE_NULL_COPY_FN, MPI_TYPE_DUP_FN
procedure(MPI_Type_delete_attr_function) :: MPI_TYPE_NULL_DELETE_FN
procedure(MPI_Win_copy_attr_function) :: MPI_WIN_NULL_COPY_FN, MPI_WIN_DUP_FN
procedure(MPI_Win_delete_attr_function) :: MPI_WIN_NULL_DELETE_FN
procedure(MPI_Datarep_conversion_function) :: MPI_CONVERSION_FN_NULL
