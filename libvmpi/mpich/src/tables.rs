//! The generic functions as this face's exported symbols: a line per chapter of `vmpi_abi`.

use crate::Mpich;

vmpi_abi::c_table_convert!(Mpich);
vmpi_abi::c_table_convert_mpi5!(Mpich);

vmpi_abi::c_table_attr!(Mpich);
vmpi_abi::c_table_attr_mpich!(Mpich);
vmpi_abi::c_table_buffer!(Mpich);
vmpi_abi::c_table_coll!(Mpich);
vmpi_abi::c_table_coll_c!(Mpich);
vmpi_abi::c_table_coll_init!(Mpich);
vmpi_abi::c_table_comm!(Mpich);
vmpi_abi::c_table_datatype!(Mpich);
vmpi_abi::c_table_datatype_c!(Mpich);
vmpi_abi::c_table_env!(Mpich);
vmpi_abi::c_table_errhandler!(Mpich);
vmpi_abi::c_table_group!(Mpich);
vmpi_abi::c_table_info!(Mpich);
vmpi_abi::c_table_mpi41!(Mpich);
vmpi_abi::c_table_neighbor!(Mpich);
vmpi_abi::c_table_neighbor_c!(Mpich);
vmpi_abi::c_table_neighbor_init!(Mpich);
vmpi_abi::c_table_op!(Mpich);
vmpi_abi::c_table_op_c!(Mpich);
vmpi_abi::c_table_p2p!(Mpich);
vmpi_abi::c_table_p2p_c!(Mpich);
vmpi_abi::c_table_partitioned!(Mpich);
vmpi_abi::c_table_request!(Mpich);
vmpi_abi::c_table_request_status!(Mpich);
vmpi_abi::c_table_session!(Mpich);
vmpi_abi::c_table_topo!(Mpich);
vmpi_abi::f_tables_mpich!(Mpich);
