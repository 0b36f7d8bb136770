//! The generic functions as this face's exported symbols: a line per chapter of `vmpi_abi`.

use crate::OpenMpi;

vmpi_abi::c_table_convert!(OpenMpi);
vmpi_abi::c_table_convert_pointers!(OpenMpi);

// To be enabled as the chapters arrive:
// vmpi_abi::c_table_attr!(OpenMpi);
// vmpi_abi::c_table_attr_openmpi!(OpenMpi);
// vmpi_abi::c_table_coll!(OpenMpi);
// vmpi_abi::c_table_coll_init!(OpenMpi);
// vmpi_abi::c_table_coll_mpix_init!(OpenMpi);
// vmpi_abi::c_table_comm!(OpenMpi);
// vmpi_abi::c_table_datatype!(OpenMpi);
// vmpi_abi::c_table_datatype_pack!(OpenMpi);
// vmpi_abi::c_table_datatype_query!(OpenMpi);
// vmpi_abi::c_table_env!(OpenMpi);
// vmpi_abi::c_table_errhandler!(OpenMpi);
// vmpi_abi::c_table_group!(OpenMpi);
// vmpi_abi::c_table_info!(OpenMpi);
// vmpi_abi::c_table_neighbor!(OpenMpi);
// vmpi_abi::c_table_neighbor_init!(OpenMpi);
// vmpi_abi::c_table_neighbor_mpix_init!(OpenMpi);
// vmpi_abi::c_table_op!(OpenMpi);
// vmpi_abi::c_table_p2p!(OpenMpi);
// vmpi_abi::c_table_request!(OpenMpi);
// vmpi_abi::c_table_topo!(OpenMpi);
// vmpi_abi::f_tables_openmpi!(OpenMpi);
