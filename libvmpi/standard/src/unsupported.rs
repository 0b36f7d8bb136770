//! What this face exports but does not offer, beyond what no face offers (`vmpi_abi::unsupported`).
//!
//! The large-count functions are here because the standard ABI has them all, and programs built for it name them strongly.

use crate::Standard;

vmpi_abi::export_unsupported! { Standard;
    MPI_Precv_init_c
    MPI_Psend_init_c
}
