//! Procedures that are exported but not offered: what later issues bring. The letters stand for the arguments before IERROR.

/// Not offered, and only in MPICH.
#[macro_export]
macro_rules! f_table_unsupported_mpich {
    ($A:ty, $face:ident) => {
        $crate::export_f_unsupported! { $A, $face, [mpix MPIX];
            (): query_cuda_support QUERY_CUDA_SUPPORT
                query_hip_support QUERY_HIP_SUPPORT
                query_ze_support QUERY_ZE_SUPPORT;
            (a b): gpu_query_support GPU_QUERY_SUPPORT;
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
