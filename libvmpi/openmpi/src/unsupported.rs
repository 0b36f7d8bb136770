//! What this face exports but does not offer, beyond what no face offers (`vmpi_abi::unsupported`).

use crate::OpenMpi;

vmpi_abi::export_c! { OpenMpi, [vmpi_abi::unsupported];
    fn MPIX_Query_rocm_support = query_accelerator() -> c_int;
}
vmpi_abi::export_unsupported! { OpenMpi;
    // extensions
    MPIX_Comm_ack_failed
    MPIX_Comm_iagree
    MPIX_Comm_is_revoked
}
