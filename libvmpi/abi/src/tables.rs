//! Which tables a face exports. A new chapter is a line here, and comes to all the faces that have it.

/// What every face exports.
#[macro_export]
macro_rules! c_tables {
    ($A:ty) => {
        $crate::c_table_convert!($A);
        $crate::c_table_attr!($A);
        $crate::c_table_buffer!($A);
        $crate::c_table_coll!($A);
        $crate::c_table_coll_init!($A);
        $crate::c_table_comm!($A);
        $crate::c_table_datatype!($A);
        $crate::c_table_env!($A);
        $crate::c_table_errhandler!($A);
        $crate::c_table_ft!($A);
        $crate::c_table_group!($A);
        $crate::c_table_info!($A);
        $crate::c_table_io!($A);
        $crate::c_table_io_data!($A);
        $crate::c_table_neighbor!($A);
        $crate::c_table_neighbor_init!($A);
        $crate::c_table_op!($A);
        $crate::c_table_p2p!($A);
        $crate::c_table_probe!($A);
        $crate::c_table_partitioned!($A);
        $crate::c_table_request!($A);
        $crate::c_table_rma!($A);
        $crate::c_table_session!($A);
        $crate::c_table_tool!($A);
        $crate::c_table_topo!($A);
        $crate::c_table_win!($A);
        $crate::c_table_win_sync!($A);
        $crate::c_table_absent!($A);
    };
}

/// What MPI 4.0 to 5.0 add and Open MPI does not have: large counts, MPI_X_toint, MPI_Abi_*.
#[macro_export]
macro_rules! c_tables_mpi5 {
    ($A:ty) => {
        $crate::c_table_abi_info!($A);
        $crate::c_table_convert_mpi5!($A);
        $crate::c_table_coll_c!($A);
        $crate::c_table_datatype_c!($A);
        $crate::c_table_io_c!($A);
        $crate::c_table_io_data_c!($A);
        $crate::c_table_mpi41!($A);
        $crate::c_table_neighbor_c!($A);
        $crate::c_table_op_c!($A);
        $crate::c_table_p2p_c!($A);
        $crate::c_table_probe_c!($A);
        $crate::c_table_request_status!($A);
        $crate::c_table_rma_c!($A);
        $crate::c_table_tool_events!($A);
        $crate::c_table_win_c!($A);
    };
}
