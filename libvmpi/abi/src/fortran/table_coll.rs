//! Collectives, as Fortran calls them.

/// Blocking and nonblocking collectives.
#[macro_export]
macro_rules! f_table_coll {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            #[counts]
            fn allgather ALLGATHER = c::allgather(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf,
                recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>);
            #[counts]
            fn allgatherv ALLGATHERV = c::allgatherv(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>,
                recvbuf: Buf, recvcounts: ConstNums, displs: ConstNums, recvtype: In<h::Datatype>, comm: In<h::Comm>);
            #[counts]
            fn allreduce ALLREDUCE = c::allreduce(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>,
                op: In<h::Op>, comm: In<h::Comm>);
            #[counts]
            fn alltoall ALLTOALL = c::alltoall(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf,
                recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>);
            #[counts]
            fn alltoallv ALLTOALLV = c::alltoallv(sendbuf: Buf, sendcounts: ConstNums, sdispls: ConstNums,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcounts: ConstNums, rdispls: ConstNums, recvtype: In<h::Datatype>,
                comm: In<h::Comm>);
            #[counts]
            fn alltoallw ALLTOALLW = c::alltoallw(sendbuf: Buf, sendcounts: ConstNums, sdispls: ConstNums,
                sendtypes: Ins<h::Datatype>[types_of_peers::<$A>(comm, sendbuf)], recvbuf: Buf, recvcounts: ConstNums,
                rdispls: ConstNums, recvtypes: Ins<h::Datatype>[types_of_peers::<$A>(comm, recvbuf)], comm: In<h::Comm>);
            fn barrier BARRIER = c::barrier(comm: In<h::Comm>);
            #[counts]
            fn bcast BCAST = c::bcast(buffer: Buf, count: Num, ty: In<h::Datatype>, root: Int, comm: In<h::Comm>);
            #[counts]
            fn exscan EXSCAN = c::exscan(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>, op: In<h::Op>,
                comm: In<h::Comm>);
            #[counts]
            fn gather GATHER = c::gather(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf,
                recvcount: Num, recvtype: In<h::Datatype>, root: Int, comm: In<h::Comm>);
            #[counts]
            fn gatherv GATHERV = c::gatherv(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf,
                recvcounts: ConstNums, displs: ConstNums, recvtype: In<h::Datatype>, root: Int, comm: In<h::Comm>);
            #[counts]
            fn iallgather IALLGATHER = c::iallgather(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>,
                recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn iallgatherv IALLGATHERV = c::iallgatherv(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>,
                recvbuf: Buf, recvcounts: ConstNums, displs: ConstNums, recvtype: In<h::Datatype>, comm: In<h::Comm>,
                request: Out<h::Request>);
            #[counts]
            fn iallreduce IALLREDUCE = c::iallreduce(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>,
                op: In<h::Op>, comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn ialltoall IALLTOALL = c::ialltoall(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf,
                recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn ialltoallv IALLTOALLV = c::ialltoallv(sendbuf: Buf, sendcounts: ConstNums, sdispls: ConstNums,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcounts: ConstNums, rdispls: ConstNums, recvtype: In<h::Datatype>,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn ialltoallw IALLTOALLW = c::ialltoallw(sendbuf: Buf, sendcounts: ConstNums, sdispls: ConstNums,
                sendtypes: Ins<h::Datatype>[types_of_peers::<$A>(comm, sendbuf)], recvbuf: Buf, recvcounts: ConstNums,
                rdispls: ConstNums, recvtypes: Ins<h::Datatype>[types_of_peers::<$A>(comm, recvbuf)], comm: In<h::Comm>,
                request: Out<h::Request>);
            fn ibarrier IBARRIER = c::ibarrier(comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn ibcast IBCAST = c::ibcast(buffer: Buf, count: Num, ty: In<h::Datatype>, root: Int, comm: In<h::Comm>,
                request: Out<h::Request>);
            #[counts]
            fn iexscan IEXSCAN = c::iexscan(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>, op: In<h::Op>,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn igather IGATHER = c::igather(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf,
                recvcount: Num, recvtype: In<h::Datatype>, root: Int, comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn igatherv IGATHERV = c::igatherv(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf,
                recvcounts: ConstNums, displs: ConstNums, recvtype: In<h::Datatype>, root: Int, comm: In<h::Comm>,
                request: Out<h::Request>);
            #[counts]
            fn ireduce IREDUCE = c::ireduce(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>, op: In<h::Op>,
                root: Int, comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn ireduce_scatter IREDUCE_SCATTER = c::ireduce_scatter(sendbuf: Buf, recvbuf: Buf, recvcounts: ConstNums,
                ty: In<h::Datatype>, op: In<h::Op>, comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn ireduce_scatter_block IREDUCE_SCATTER_BLOCK = c::ireduce_scatter_block(sendbuf: Buf, recvbuf: Buf,
                recvcount: Num, ty: In<h::Datatype>, op: In<h::Op>, comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn iscan ISCAN = c::iscan(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>, op: In<h::Op>,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn iscatter ISCATTER = c::iscatter(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf,
                recvcount: Num, recvtype: In<h::Datatype>, root: Int, comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn iscatterv ISCATTERV = c::iscatterv(sendbuf: Buf, sendcounts: ConstNums, displs: ConstNums,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, root: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn reduce REDUCE = c::reduce(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>, op: In<h::Op>,
                root: Int, comm: In<h::Comm>);
            #[counts]
            fn reduce_scatter REDUCE_SCATTER = c::reduce_scatter(sendbuf: Buf, recvbuf: Buf, recvcounts: ConstNums,
                ty: In<h::Datatype>, op: In<h::Op>, comm: In<h::Comm>);
            #[counts]
            fn reduce_scatter_block REDUCE_SCATTER_BLOCK = c::reduce_scatter_block(sendbuf: Buf, recvbuf: Buf,
                recvcount: Num, ty: In<h::Datatype>, op: In<h::Op>, comm: In<h::Comm>);
            #[counts]
            fn scan SCAN = c::scan(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>, op: In<h::Op>,
                comm: In<h::Comm>);
            #[counts]
            fn scatter SCATTER = c::scatter(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf,
                recvcount: Num, recvtype: In<h::Datatype>, root: Int, comm: In<h::Comm>);
            #[counts]
            fn scatterv SCATTERV = c::scatterv(sendbuf: Buf, sendcounts: ConstNums, displs: ConstNums, sendtype: In<h::Datatype>,
                recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, root: Int, comm: In<h::Comm>);
        }
    };
}

/// Neighbourhood collectives.
#[macro_export]
macro_rules! f_table_neighbor {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            #[counts]
            fn ineighbor_allgather INEIGHBOR_ALLGATHER = c::ineighbor_allgather(sendbuf: Buf, sendcount: Num,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>,
                request: Out<h::Request>);
            #[counts]
            fn ineighbor_allgatherv INEIGHBOR_ALLGATHERV = c::ineighbor_allgatherv(sendbuf: Buf, sendcount: Num,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcounts: ConstNums, displs: ConstNums, recvtype: In<h::Datatype>,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn ineighbor_alltoall INEIGHBOR_ALLTOALL = c::ineighbor_alltoall(sendbuf: Buf, sendcount: Num,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>,
                request: Out<h::Request>);
            #[counts]
            fn ineighbor_alltoallv INEIGHBOR_ALLTOALLV = c::ineighbor_alltoallv(sendbuf: Buf, sendcounts: ConstNums,
                sdispls: ConstNums, sendtype: In<h::Datatype>, recvbuf: Buf, recvcounts: ConstNums, rdispls: ConstNums,
                recvtype: In<h::Datatype>, comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn ineighbor_alltoallw INEIGHBOR_ALLTOALLW = c::ineighbor_alltoallw(sendbuf: Buf, sendcounts: ConstNums,
                sdispls: ConstAints, sendtypes: Ins<h::Datatype>[types_of_destinations::<$A>(comm)], recvbuf: Buf,
                recvcounts: ConstNums, rdispls: ConstAints, recvtypes: Ins<h::Datatype>[types_of_sources::<$A>(comm)],
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn neighbor_allgather NEIGHBOR_ALLGATHER = c::neighbor_allgather(sendbuf: Buf, sendcount: Num,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>);
            #[counts]
            fn neighbor_allgatherv NEIGHBOR_ALLGATHERV = c::neighbor_allgatherv(sendbuf: Buf, sendcount: Num,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcounts: ConstNums, displs: ConstNums, recvtype: In<h::Datatype>,
                comm: In<h::Comm>);
            #[counts]
            fn neighbor_alltoall NEIGHBOR_ALLTOALL = c::neighbor_alltoall(sendbuf: Buf, sendcount: Num,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>);
            #[counts]
            fn neighbor_alltoallv NEIGHBOR_ALLTOALLV = c::neighbor_alltoallv(sendbuf: Buf, sendcounts: ConstNums,
                sdispls: ConstNums, sendtype: In<h::Datatype>, recvbuf: Buf, recvcounts: ConstNums, rdispls: ConstNums,
                recvtype: In<h::Datatype>, comm: In<h::Comm>);
            #[counts]
            fn neighbor_alltoallw NEIGHBOR_ALLTOALLW = c::neighbor_alltoallw(sendbuf: Buf, sendcounts: ConstNums,
                sdispls: ConstAints, sendtypes: Ins<h::Datatype>[types_of_destinations::<$A>(comm)], recvbuf: Buf,
                recvcounts: ConstNums, rdispls: ConstAints, recvtypes: Ins<h::Datatype>[types_of_sources::<$A>(comm)],
                comm: In<h::Comm>);
        }
    };
}

/// Persistent collectives: MPI_X_INIT (`mpi MPI`) in MPICH, MPIX_X_INIT (`mpix MPIX`) in Open MPI 4.1.
#[macro_export]
macro_rules! f_table_coll_init {
    ($A:ty, $face:ident, [$pre:ident $PRE:ident]) => {
        $crate::export_f! { $A, $face, [$pre $PRE];
            #[counts]
            fn allgather_init ALLGATHER_INIT = c::allgather_init(sendbuf: Buf, sendcount: Num,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>,
                info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn allgatherv_init ALLGATHERV_INIT = c::allgatherv_init(sendbuf: Buf, sendcount: Num,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcounts: ConstNums, displs: ConstNums, recvtype: In<h::Datatype>,
                comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn allreduce_init ALLREDUCE_INIT = c::allreduce_init(sendbuf: Buf, recvbuf: Buf, count: Num,
                ty: In<h::Datatype>, op: In<h::Op>, comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn alltoall_init ALLTOALL_INIT = c::alltoall_init(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>,
                recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>, info: In<h::Info>,
                request: Out<h::Request>);
            #[counts]
            fn alltoallv_init ALLTOALLV_INIT = c::alltoallv_init(sendbuf: Buf, sendcounts: ConstNums, sdispls: ConstNums,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcounts: ConstNums, rdispls: ConstNums, recvtype: In<h::Datatype>,
                comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn alltoallw_init ALLTOALLW_INIT = c::alltoallw_init(sendbuf: Buf, sendcounts: ConstNums, sdispls: ConstNums,
                sendtypes: Ins<h::Datatype>[types_of_peers::<$A>(comm, sendbuf)], recvbuf: Buf, recvcounts: ConstNums,
                rdispls: ConstNums, recvtypes: Ins<h::Datatype>[types_of_peers::<$A>(comm, recvbuf)], comm: In<h::Comm>,
                info: In<h::Info>, request: Out<h::Request>);
            fn barrier_init BARRIER_INIT = c::barrier_init(comm: In<h::Comm>, info: In<h::Info>,
                request: Out<h::Request>);
            #[counts]
            fn bcast_init BCAST_INIT = c::bcast_init(buffer: Buf, count: Num, ty: In<h::Datatype>, root: Int,
                comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn exscan_init EXSCAN_INIT = c::exscan_init(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>,
                op: In<h::Op>, comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn gather_init GATHER_INIT = c::gather_init(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>,
                recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, root: Int, comm: In<h::Comm>,
                info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn gatherv_init GATHERV_INIT = c::gatherv_init(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>,
                recvbuf: Buf, recvcounts: ConstNums, displs: ConstNums, recvtype: In<h::Datatype>, root: Int, comm: In<h::Comm>,
                info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn reduce_init REDUCE_INIT = c::reduce_init(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>,
                op: In<h::Op>, root: Int, comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn reduce_scatter_block_init REDUCE_SCATTER_BLOCK_INIT = c::reduce_scatter_block_init(sendbuf: Buf,
                recvbuf: Buf, recvcount: Num, ty: In<h::Datatype>, op: In<h::Op>, comm: In<h::Comm>, info: In<h::Info>,
                request: Out<h::Request>);
            #[counts]
            fn reduce_scatter_init REDUCE_SCATTER_INIT = c::reduce_scatter_init(sendbuf: Buf, recvbuf: Buf,
                recvcounts: ConstNums, ty: In<h::Datatype>, op: In<h::Op>, comm: In<h::Comm>, info: In<h::Info>,
                request: Out<h::Request>);
            #[counts]
            fn scan_init SCAN_INIT = c::scan_init(sendbuf: Buf, recvbuf: Buf, count: Num, ty: In<h::Datatype>,
                op: In<h::Op>, comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn scatter_init SCATTER_INIT = c::scatter_init(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>,
                recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, root: Int, comm: In<h::Comm>,
                info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn scatterv_init SCATTERV_INIT = c::scatterv_init(sendbuf: Buf, sendcounts: ConstNums, displs: ConstNums,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, root: Int,
                comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn neighbor_allgather_init NEIGHBOR_ALLGATHER_INIT = c::neighbor_allgather_init(sendbuf: Buf,
                sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>,
                comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn neighbor_allgatherv_init NEIGHBOR_ALLGATHERV_INIT = c::neighbor_allgatherv_init(sendbuf: Buf,
                sendcount: Num, sendtype: In<h::Datatype>, recvbuf: Buf, recvcounts: ConstNums, displs: ConstNums,
                recvtype: In<h::Datatype>, comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn neighbor_alltoall_init NEIGHBOR_ALLTOALL_INIT = c::neighbor_alltoall_init(sendbuf: Buf, sendcount: Num,
                sendtype: In<h::Datatype>, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, comm: In<h::Comm>,
                info: In<h::Info>, request: Out<h::Request>);
            #[counts]
            fn neighbor_alltoallv_init NEIGHBOR_ALLTOALLV_INIT = c::neighbor_alltoallv_init(sendbuf: Buf,
                sendcounts: ConstNums, sdispls: ConstNums, sendtype: In<h::Datatype>, recvbuf: Buf, recvcounts: ConstNums,
                rdispls: ConstNums, recvtype: In<h::Datatype>, comm: In<h::Comm>, info: In<h::Info>,
                request: Out<h::Request>);
            #[counts]
            fn neighbor_alltoallw_init NEIGHBOR_ALLTOALLW_INIT = c::neighbor_alltoallw_init(sendbuf: Buf,
                sendcounts: ConstNums, sdispls: ConstAints, sendtypes: Ins<h::Datatype>[types_of_destinations::<$A>(comm)],
                recvbuf: Buf, recvcounts: ConstNums, rdispls: ConstAints,
                recvtypes: Ins<h::Datatype>[types_of_sources::<$A>(comm)], comm: In<h::Comm>, info: In<h::Info>,
                request: Out<h::Request>);
        }
    };
}
