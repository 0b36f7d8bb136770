//! What this face exports but does not offer, beyond what no face offers (`vmpi_abi::unsupported`).

use crate::OpenMpi;

vmpi_abi::export_c! { OpenMpi, [vmpi_abi::unsupported];
    fn MPIX_Query_rocm_support = query_accelerator() -> c_int;
}
