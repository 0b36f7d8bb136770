//! Point-to-point messages and requests, as Fortran calls them.

/// Sends, receives, probes.
#[macro_export]
macro_rules! f_table_p2p {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            #[counts]
            fn bsend BSEND = c::bsend(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int,
                comm: In<h::Comm>);
            #[counts]
            fn bsend_init BSEND_INIT = c::bsend_init(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn buffer_attach BUFFER_ATTACH = c::buffer_attach(buffer: Buf, size: Num);
            #[counts]
            fn ibsend IBSEND = c::ibsend(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
            fn improbe IMPROBE = c::improbe(source: Int, tag: Int, comm: In<h::Comm>, flag: LogicalOut,
                message: Out<h::Message>, status: Status);
            #[counts]
            fn imrecv IMRECV = c::imrecv(buf: Buf, count: Num, ty: In<h::Datatype>, message: InOut<h::Message>,
                request: Out<h::Request>);
            fn iprobe IPROBE = c::iprobe(source: Int, tag: Int, comm: In<h::Comm>, flag: LogicalOut, status: Status);
            #[counts]
            fn irecv IRECV = c::irecv(buf: Buf, count: Num, ty: In<h::Datatype>, source: Int, tag: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn irsend IRSEND = c::irsend(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn isend ISEND = c::isend(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int, comm: In<h::Comm>,
                request: Out<h::Request>);
            #[counts]
            fn issend ISSEND = c::issend(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
            fn mprobe MPROBE = c::mprobe(source: Int, tag: Int, comm: In<h::Comm>, message: Out<h::Message>,
                status: Status);
            #[counts]
            fn mrecv MRECV = c::mrecv(buf: Buf, count: Num, ty: In<h::Datatype>, message: InOut<h::Message>,
                status: Status);
            fn probe PROBE = c::probe(source: Int, tag: Int, comm: In<h::Comm>, status: Status);
            #[counts]
            fn recv RECV = c::recv(buf: Buf, count: Num, ty: In<h::Datatype>, source: Int, tag: Int, comm: In<h::Comm>,
                status: Status);
            #[counts]
            fn recv_init RECV_INIT = c::recv_init(buf: Buf, count: Num, ty: In<h::Datatype>, source: Int, tag: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn rsend RSEND = c::rsend(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int,
                comm: In<h::Comm>);
            #[counts]
            fn rsend_init RSEND_INIT = c::rsend_init(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn send SEND = c::send(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int, comm: In<h::Comm>);
            #[counts]
            fn send_init SEND_INIT = c::send_init(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn sendrecv SENDRECV = c::sendrecv(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, dest: Int,
                sendtag: Int, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, source: Int, recvtag: Int,
                comm: In<h::Comm>, status: Status);
            #[counts]
            fn sendrecv_replace SENDRECV_REPLACE = c::sendrecv_replace(buf: Buf, count: Num, ty: In<h::Datatype>,
                dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: In<h::Comm>, status: Status);
            #[counts]
            fn ssend SSEND = c::ssend(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int,
                comm: In<h::Comm>);
            #[counts]
            fn ssend_init SSEND_INIT = c::ssend_init(buf: Buf, count: Num, ty: In<h::Datatype>, dest: Int, tag: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
        }
    };
}

/// Completion, persistent requests, generalized requests.
#[macro_export]
macro_rules! f_table_request {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn cancel CANCEL = c::cancel(request: InOut<h::Request>);
            fn grequest_complete GREQUEST_COMPLETE = c::grequest_complete(request: In<h::Request>);
            fn grequest_start GREQUEST_START = f::grequest_start(query_fn: Buf, free_fn: Buf, cancel_fn: Buf,
                extra_state: Aints, request: Out<h::Request>);
            fn request_free REQUEST_FREE = c::request_free(request: InOut<h::Request>);
            fn request_get_status REQUEST_GET_STATUS = c::request_get_status(request: In<h::Request>, flag: LogicalOut,
                status: Status);
            fn start START = c::start(request: InOut<h::Request>);
            fn startall STARTALL = c::startall(count: Int, requests: InOuts<h::Request>[n(count)]);
            fn status_set_cancelled STATUS_SET_CANCELLED = c::status_set_cancelled(status: Status, flag: LogicalIn);
            fn test TEST = c::test(request: InOut<h::Request>, flag: LogicalOut, status: Status);
            fn test_cancelled TEST_CANCELLED = c::test_cancelled(status: Status, flag: LogicalOut);
            fn testall TESTALL = c::testall(count: Int, requests: InOuts<h::Request>[n(count)], flag: LogicalOut,
                statuses: Statuses[n(count)]);
            fn testany TESTANY = c::testany(count: Int, requests: InOuts<h::Request>[n(count)], indx: IndexOut,
                flag: LogicalOut, status: Status);
            fn testsome TESTSOME = f::testsome(incount: Int, requests: InOuts<h::Request>[n(incount)], outcount: Ints,
                indices: Ints, statuses: Statuses[n(incount)]);
            fn wait WAIT = c::wait(request: InOut<h::Request>, status: Status);
            fn waitall WAITALL = c::waitall(count: Int, requests: InOuts<h::Request>[n(count)],
                statuses: Statuses[n(count)]);
            fn waitany WAITANY = c::waitany(count: Int, requests: InOuts<h::Request>[n(count)], indx: IndexOut,
                status: Status);
            fn waitsome WAITSOME = f::waitsome(incount: Int, requests: InOuts<h::Request>[n(incount)], outcount: Ints,
                indices: Ints, statuses: Statuses[n(incount)]);
        }
    };
}

/// MPI_BUFFER_DETACH of mpif.h and `use mpi`, which is another one in mpi_f08.
#[macro_export]
macro_rules! f_table_buffer_detach {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn buffer_detach BUFFER_DETACH = f::buffer_detach(buffer: Buf, size: Ints);
        }
    };
}
