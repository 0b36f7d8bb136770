//! What this face exports but does not offer, beyond what no face offers (`vmpi_abi::unsupported`).
//!
//! The large-count functions are here because the standard ABI has them all, and programs built for it name them strongly.

use crate::Standard;

vmpi_abi::export_unsupported! { Standard;
    MPI_Bsend_c
    MPI_Bsend_init_c
    MPI_Buffer_attach_c
    MPI_Buffer_detach_c
    MPI_Comm_attach_buffer_c
    MPI_Comm_detach_buffer_c
    MPI_Ibsend_c
    MPI_Imrecv_c
    MPI_Irecv_c
    MPI_Irsend_c
    MPI_Isend_c
    MPI_Isendrecv_c
    MPI_Isendrecv_replace_c
    MPI_Issend_c
    MPI_Mrecv_c
    MPI_Precv_init_c
    MPI_Psend_init_c
    MPI_Recv_c
    MPI_Recv_init_c
    MPI_Rsend_c
    MPI_Rsend_init_c
    MPI_Send_c
    MPI_Send_init_c
    MPI_Sendrecv_c
    MPI_Sendrecv_replace_c
    MPI_Session_attach_buffer_c
    MPI_Session_detach_buffer_c
    MPI_Ssend_c
    MPI_Ssend_init_c
    MPI_Status_set_elements_c
}
