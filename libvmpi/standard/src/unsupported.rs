//! What this face exports but does not offer, beyond what no face offers (`vmpi_abi::unsupported`).
//!
//! The large-count functions are here because the standard ABI has them all, and programs built for it name them strongly.

use crate::Standard;

vmpi_abi::export_unsupported! { Standard;
    MPI_Accumulate_c
    MPI_File_get_type_extent_c
    MPI_File_iread_all_c
    MPI_File_iread_at_all_c
    MPI_File_iread_at_c
    MPI_File_iread_c
    MPI_File_iread_shared_c
    MPI_File_iwrite_all_c
    MPI_File_iwrite_at_all_c
    MPI_File_iwrite_at_c
    MPI_File_iwrite_c
    MPI_File_iwrite_shared_c
    MPI_File_read_all_begin_c
    MPI_File_read_all_c
    MPI_File_read_at_all_begin_c
    MPI_File_read_at_all_c
    MPI_File_read_at_c
    MPI_File_read_c
    MPI_File_read_ordered_begin_c
    MPI_File_read_ordered_c
    MPI_File_read_shared_c
    MPI_File_write_all_begin_c
    MPI_File_write_all_c
    MPI_File_write_at_all_begin_c
    MPI_File_write_at_all_c
    MPI_File_write_at_c
    MPI_File_write_c
    MPI_File_write_ordered_begin_c
    MPI_File_write_ordered_c
    MPI_File_write_shared_c
    MPI_Get_accumulate_c
    MPI_Get_c
    MPI_Precv_init_c
    MPI_Psend_init_c
    MPI_Put_c
    MPI_Raccumulate_c
    MPI_Register_datarep_c
    MPI_Rget_accumulate_c
    MPI_Rget_c
    MPI_Rput_c
    MPI_Win_allocate_c
    MPI_Win_allocate_shared_c
    MPI_Win_create_c
    MPI_Win_shared_query_c
}
