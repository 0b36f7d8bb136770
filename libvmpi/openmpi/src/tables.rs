//! The generic functions as this face's exported symbols.

use crate::OpenMpi;

vmpi_abi::c_tables!(OpenMpi);
vmpi_abi::c_table_ft_openmpi!(OpenMpi);
vmpi_abi::c_table_convert_pointers!(OpenMpi);
vmpi_abi::c_table_coll_mpix_init!(OpenMpi);
vmpi_abi::c_table_mpi41!(OpenMpi);
vmpi_abi::c_table_neighbor_mpix_init!(OpenMpi);
vmpi_abi::c_table_request_status!(OpenMpi);
vmpi_abi::export_c! { OpenMpi, [vmpi_abi::c::session];
    fn MPI_Session_set_info = session_set_info(session: vmpi_abi::abi::CSession<OpenMpi>, info: vmpi_abi::abi::CInfo<OpenMpi>) -> c_int;
}
vmpi_abi::f_tables_openmpi!(OpenMpi);

// What mpi.h's MPI_COMM_DUP_FN and the like are the names of; MPI_COMM_DUP_FN itself is the Fortran version's name.
vmpi_abi::c_table_attr_openmpi! { @copy OpenMpi, CComm;
    OMPI_C_MPI_COMM_NULL_COPY_FN = comm_null_copy_fn,
    OMPI_C_MPI_COMM_DUP_FN = comm_dup_fn,
    OMPI_C_MPI_NULL_COPY_FN = comm_null_copy_fn,
    OMPI_C_MPI_DUP_FN = comm_dup_fn,
}
vmpi_abi::c_table_attr_openmpi! { @delete OpenMpi, CComm;
    OMPI_C_MPI_COMM_NULL_DELETE_FN = comm_null_delete_fn,
    OMPI_C_MPI_NULL_DELETE_FN = comm_null_delete_fn,
}
vmpi_abi::c_table_attr_openmpi! { @copy OpenMpi, CDatatype;
    OMPI_C_MPI_TYPE_NULL_COPY_FN = type_null_copy_fn,
    OMPI_C_MPI_TYPE_DUP_FN = type_dup_fn,
}
vmpi_abi::c_table_attr_openmpi! { @delete OpenMpi, CDatatype;
    OMPI_C_MPI_TYPE_NULL_DELETE_FN = type_null_delete_fn,
}
vmpi_abi::c_table_attr_openmpi! { @copy OpenMpi, CWin;
    OMPI_C_MPI_WIN_NULL_COPY_FN = win_null_copy_fn,
    OMPI_C_MPI_WIN_DUP_FN = win_dup_fn,
}
vmpi_abi::c_table_attr_openmpi! { @delete OpenMpi, CWin;
    OMPI_C_MPI_WIN_NULL_DELETE_FN = win_null_delete_fn,
}
