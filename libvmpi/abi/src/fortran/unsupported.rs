//! Procedures that are exported but not offered: one-sided communication, files, dynamic processes and what else later
//! issues bring. The letters stand for the arguments before IERROR.

/// Not offered, and in both faces.
#[macro_export]
macro_rules! f_table_unsupported {
    ($A:ty, $face:ident) => {
        $crate::export_f_unsupported! { $A, $face, [mpi MPI];
            (a):
                file_close FILE_CLOSE
                file_sync FILE_SYNC
                win_complete WIN_COMPLETE
                win_flush_all WIN_FLUSH_ALL
                win_flush_local_all WIN_FLUSH_LOCAL_ALL
                win_free WIN_FREE
                win_sync WIN_SYNC
                win_unlock_all WIN_UNLOCK_ALL
                win_wait WIN_WAIT
            ;
            (a b):
                file_call_errhandler FILE_CALL_ERRHANDLER
                file_create_errhandler FILE_CREATE_ERRHANDLER
                file_delete FILE_DELETE
                file_get_amode FILE_GET_AMODE
                file_get_atomicity FILE_GET_ATOMICITY
                file_get_errhandler FILE_GET_ERRHANDLER
                file_get_group FILE_GET_GROUP
                file_get_info FILE_GET_INFO
                file_get_position FILE_GET_POSITION
                file_get_position_shared FILE_GET_POSITION_SHARED
                file_get_size FILE_GET_SIZE
                file_preallocate FILE_PREALLOCATE
                file_set_atomicity FILE_SET_ATOMICITY
                file_set_errhandler FILE_SET_ERRHANDLER
                file_set_info FILE_SET_INFO
                file_set_size FILE_SET_SIZE
                win_call_errhandler WIN_CALL_ERRHANDLER
                win_create_errhandler WIN_CREATE_ERRHANDLER
                win_detach WIN_DETACH
                win_fence WIN_FENCE
                win_flush WIN_FLUSH
                win_flush_local WIN_FLUSH_LOCAL
                win_get_errhandler WIN_GET_ERRHANDLER
                win_get_group WIN_GET_GROUP
                win_get_info WIN_GET_INFO
                win_lock_all WIN_LOCK_ALL
                win_set_errhandler WIN_SET_ERRHANDLER
                win_set_info WIN_SET_INFO
                win_set_name WIN_SET_NAME
                win_test WIN_TEST
                win_unlock WIN_UNLOCK
            ;
            (a b c):
                file_get_byte_offset FILE_GET_BYTE_OFFSET
                file_get_type_extent FILE_GET_TYPE_EXTENT
                file_read_all_end FILE_READ_ALL_END
                file_read_at_all_end FILE_READ_AT_ALL_END
                file_read_ordered_end FILE_READ_ORDERED_END
                file_seek FILE_SEEK
                file_seek_shared FILE_SEEK_SHARED
                file_write_all_end FILE_WRITE_ALL_END
                file_write_at_all_end FILE_WRITE_AT_ALL_END
                file_write_ordered_end FILE_WRITE_ORDERED_END
                win_attach WIN_ATTACH
                win_create_dynamic WIN_CREATE_DYNAMIC
                win_get_name WIN_GET_NAME
                win_post WIN_POST
                win_start WIN_START
            ;
            (a b c d):
                file_read_all_begin FILE_READ_ALL_BEGIN
                file_read_ordered_begin FILE_READ_ORDERED_BEGIN
                file_write_all_begin FILE_WRITE_ALL_BEGIN
                file_write_ordered_begin FILE_WRITE_ORDERED_BEGIN
                win_lock WIN_LOCK
            ;
            (a b c d e):
                file_get_view FILE_GET_VIEW
                file_iread FILE_IREAD
                file_iread_all FILE_IREAD_ALL
                file_iread_shared FILE_IREAD_SHARED
                file_iwrite FILE_IWRITE
                file_iwrite_all FILE_IWRITE_ALL
                file_iwrite_shared FILE_IWRITE_SHARED
                file_open FILE_OPEN
                file_read FILE_READ
                file_read_all FILE_READ_ALL
                file_read_at_all_begin FILE_READ_AT_ALL_BEGIN
                file_read_ordered FILE_READ_ORDERED
                file_read_shared FILE_READ_SHARED
                file_write FILE_WRITE
                file_write_all FILE_WRITE_ALL
                file_write_at_all_begin FILE_WRITE_AT_ALL_BEGIN
                file_write_ordered FILE_WRITE_ORDERED
                file_write_shared FILE_WRITE_SHARED
                register_datarep REGISTER_DATAREP
                win_shared_query WIN_SHARED_QUERY
            ;
            (a b c d e f):
                conversion_fn_null CONVERSION_FN_NULL
                file_iread_at FILE_IREAD_AT
                file_iread_at_all FILE_IREAD_AT_ALL
                file_iwrite_at FILE_IWRITE_AT
                file_iwrite_at_all FILE_IWRITE_AT_ALL
                file_read_at FILE_READ_AT
                file_read_at_all FILE_READ_AT_ALL
                file_set_view FILE_SET_VIEW
                file_write_at FILE_WRITE_AT
                file_write_at_all FILE_WRITE_AT_ALL
                win_allocate WIN_ALLOCATE
                win_allocate_shared WIN_ALLOCATE_SHARED
                win_create WIN_CREATE
            ;
            (a b c d e f g):
                compare_and_swap COMPARE_AND_SWAP
                fetch_and_op FETCH_AND_OP
            ;
            (a b c d e f g h):
                get GET
                put PUT
            ;
            (a b c d e f g h i):
                accumulate ACCUMULATE
                rget RGET
                rput RPUT
            ;
            (a b c d e f g h i j):
                raccumulate RACCUMULATE
            ;
            (a b c d e f g h i j k l):
                get_accumulate GET_ACCUMULATE
            ;
            (a b c d e f g h i j k l m):
                rget_accumulate RGET_ACCUMULATE
            ;
        }
    };
}

/// Not offered, and only in Open MPI.
#[macro_export]
macro_rules! f_table_unsupported_openmpi {
    ($A:ty, $face:ident) => {
        $crate::export_f_unsupported! { $A, $face, [mpi MPI];
            (a b c d e):
                win_shared_query_cptr WIN_SHARED_QUERY_CPTR
            ;
            (a b c d e f):
                win_allocate_cptr WIN_ALLOCATE_CPTR
                win_allocate_shared_cptr WIN_ALLOCATE_SHARED_CPTR
            ;
        }
    };
}

/// Not offered, and only in MPICH.
#[macro_export]
macro_rules! f_table_unsupported_mpich {
    ($A:ty, $face:ident) => {
        $crate::export_f_unsupported! { $A, $face, [mpi MPI];
            (a):
                session_finalize SESSION_FINALIZE
            ;
            (a b):
                pready PREADY
                session_call_errhandler SESSION_CALL_ERRHANDLER
                session_create_errhandler SESSION_CREATE_ERRHANDLER
                session_get_errhandler SESSION_GET_ERRHANDLER
                session_get_info SESSION_GET_INFO
                session_set_errhandler SESSION_SET_ERRHANDLER
            ;
            (a b c):
                group_from_session_pset GROUP_FROM_SESSION_PSET
                parrived PARRIVED
                pready_list PREADY_LIST
                pready_range PREADY_RANGE
                session_get_num_psets SESSION_GET_NUM_PSETS
                session_get_pset_info SESSION_GET_PSET_INFO
                session_init SESSION_INIT
            ;
            (a b c d e):
                comm_create_from_group COMM_CREATE_FROM_GROUP
                session_get_nth_pset SESSION_GET_NTH_PSET
            ;
            (a b c d e f g h):
                intercomm_create_from_groups INTERCOMM_CREATE_FROM_GROUPS
            ;
            (a b c d e f g h i):
                isendrecv_replace ISENDRECV_REPLACE
                precv_init PRECV_INIT
                psend_init PSEND_INIT
            ;
            (a b c d e f g h i j k l):
                isendrecv ISENDRECV
            ;
        }
        $crate::export_f_unsupported! { $A, $face, [mpix MPIX];
            (): query_cuda_support QUERY_CUDA_SUPPORT
                query_hip_support QUERY_HIP_SUPPORT
                query_ze_support QUERY_ZE_SUPPORT;
            (a): comm_failure_ack COMM_FAILURE_ACK
                comm_revoke COMM_REVOKE;
            (a b): comm_agree COMM_AGREE
                comm_failure_get_acked COMM_FAILURE_GET_ACKED
                comm_shrink COMM_SHRINK
                gpu_query_support GPU_QUERY_SUPPORT;
        }
    };
}

/// Not offered: mpi_f08's large-count procedures of MPICH.
#[macro_export]
macro_rules! f_table_unsupported_f08_large {
    ($A:ty) => {
        $crate::export_f_unsupported! { $A, large, [mpi MPI];
            (a b):
                buffer_detach BUFFER_DETACH
                type_size TYPE_SIZE
            ;
            (a b c):
                get_count GET_COUNT
                get_elements GET_ELEMENTS
                type_contiguous TYPE_CONTIGUOUS
            ;
            (a b c d):
                pack_external_size PACK_EXTERNAL_SIZE
                pack_size PACK_SIZE
            ;
            (a b c d e):
                type_create_hindexed TYPE_CREATE_HINDEXED
                type_create_hindexed_block TYPE_CREATE_HINDEXED_BLOCK
                type_create_hvector TYPE_CREATE_HVECTOR
                type_create_indexed_block TYPE_CREATE_INDEXED_BLOCK
                type_create_struct TYPE_CREATE_STRUCT
                type_indexed TYPE_INDEXED
                type_vector TYPE_VECTOR
                win_shared_query WIN_SHARED_QUERY
            ;
            (a b c d e f):
                type_get_envelope TYPE_GET_ENVELOPE
                win_allocate WIN_ALLOCATE
                win_allocate_shared WIN_ALLOCATE_SHARED
            ;
            (a b c d e f g):
                type_create_subarray TYPE_CREATE_SUBARRAY
            ;
            (a b c d e f g h i):
                type_get_contents TYPE_GET_CONTENTS
            ;
            (a b c d e f g h i j):
                type_create_darray TYPE_CREATE_DARRAY
            ;
        }
        $crate::export_f_unsupported! { $A, large_descriptors, [mpi MPI];
            (a b):
                buffer_attach BUFFER_ATTACH
            ;
            (a b c d e):
                bcast BCAST
                imrecv IMRECV
                mrecv MRECV
                reduce_local REDUCE_LOCAL
            ;
            (a b c d e f):
                allreduce ALLREDUCE
                bsend BSEND
                exscan EXSCAN
                ibcast IBCAST
                reduce_scatter REDUCE_SCATTER
                reduce_scatter_block REDUCE_SCATTER_BLOCK
                rsend RSEND
                scan SCAN
                send SEND
                ssend SSEND
                win_create WIN_CREATE
            ;
            (a b c d e f g):
                allgather ALLGATHER
                alltoall ALLTOALL
                bcast_init BCAST_INIT
                bsend_init BSEND_INIT
                iallreduce IALLREDUCE
                ibsend IBSEND
                iexscan IEXSCAN
                irecv IRECV
                ireduce_scatter IREDUCE_SCATTER
                ireduce_scatter_block IREDUCE_SCATTER_BLOCK
                irsend IRSEND
                iscan ISCAN
                isend ISEND
                issend ISSEND
                neighbor_allgather NEIGHBOR_ALLGATHER
                neighbor_alltoall NEIGHBOR_ALLTOALL
                pack PACK
                pack_external PACK_EXTERNAL
                recv RECV
                recv_init RECV_INIT
                reduce REDUCE
                rsend_init RSEND_INIT
                send_init SEND_INIT
                ssend_init SSEND_INIT
                unpack UNPACK
                unpack_external UNPACK_EXTERNAL
            ;
            (a b c d e f g h):
                allgatherv ALLGATHERV
                allreduce_init ALLREDUCE_INIT
                exscan_init EXSCAN_INIT
                gather GATHER
                get GET
                iallgather IALLGATHER
                ialltoall IALLTOALL
                ineighbor_allgather INEIGHBOR_ALLGATHER
                ineighbor_alltoall INEIGHBOR_ALLTOALL
                ireduce IREDUCE
                neighbor_allgatherv NEIGHBOR_ALLGATHERV
                put PUT
                reduce_scatter_block_init REDUCE_SCATTER_BLOCK_INIT
                reduce_scatter_init REDUCE_SCATTER_INIT
                scan_init SCAN_INIT
                scatter SCATTER
            ;
            (a b c d e f g h i):
                accumulate ACCUMULATE
                allgather_init ALLGATHER_INIT
                alltoall_init ALLTOALL_INIT
                alltoallv ALLTOALLV
                alltoallw ALLTOALLW
                gatherv GATHERV
                iallgatherv IALLGATHERV
                igather IGATHER
                ineighbor_allgatherv INEIGHBOR_ALLGATHERV
                iscatter ISCATTER
                isendrecv_replace ISENDRECV_REPLACE
                neighbor_allgather_init NEIGHBOR_ALLGATHER_INIT
                neighbor_alltoall_init NEIGHBOR_ALLTOALL_INIT
                neighbor_alltoallv NEIGHBOR_ALLTOALLV
                neighbor_alltoallw NEIGHBOR_ALLTOALLW
                reduce_init REDUCE_INIT
                rget RGET
                rput RPUT
                scatterv SCATTERV
                sendrecv_replace SENDRECV_REPLACE
            ;
            (a b c d e f g h i j):
                allgatherv_init ALLGATHERV_INIT
                gather_init GATHER_INIT
                ialltoallv IALLTOALLV
                ialltoallw IALLTOALLW
                igatherv IGATHERV
                ineighbor_alltoallv INEIGHBOR_ALLTOALLV
                ineighbor_alltoallw INEIGHBOR_ALLTOALLW
                iscatterv ISCATTERV
                neighbor_allgatherv_init NEIGHBOR_ALLGATHERV_INIT
                raccumulate RACCUMULATE
                scatter_init SCATTER_INIT
            ;
            (a b c d e f g h i j k):
                alltoallv_init ALLTOALLV_INIT
                alltoallw_init ALLTOALLW_INIT
                gatherv_init GATHERV_INIT
                neighbor_alltoallv_init NEIGHBOR_ALLTOALLV_INIT
                neighbor_alltoallw_init NEIGHBOR_ALLTOALLW_INIT
                scatterv_init SCATTERV_INIT
            ;
            (a b c d e f g h i j k l):
                get_accumulate GET_ACCUMULATE
                isendrecv ISENDRECV
                sendrecv SENDRECV
            ;
            (a b c d e f g h i j k l m):
                rget_accumulate RGET_ACCUMULATE
            ;
        }
    };
}
