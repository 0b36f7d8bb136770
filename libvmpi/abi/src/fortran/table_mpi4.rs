//! What MPI 4 adds, as Fortran calls it: sessions, partitioned messages, nonblocking exchange.

/// Partitioned messages, nonblocking exchange.
#[macro_export]
macro_rules! f_table_mpi4_p2p {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            #[counts]
            fn isendrecv ISENDRECV = c::isendrecv(sendbuf: Buf, sendcount: Num, sendtype: In<h::Datatype>, dest: Int,
                sendtag: Int, recvbuf: Buf, recvcount: Num, recvtype: In<h::Datatype>, source: Int, recvtag: Int,
                comm: In<h::Comm>, request: Out<h::Request>);
            #[counts]
            fn isendrecv_replace ISENDRECV_REPLACE = c::isendrecv_replace(buf: Buf, count: Num, ty: In<h::Datatype>,
                dest: Int, sendtag: Int, source: Int, recvtag: Int, comm: In<h::Comm>, request: Out<h::Request>);
            fn parrived PARRIVED = c::parrived(request: In<h::Request>, partition: Int, flag: LogicalOut);
            fn pready PREADY = c::pready(partition: Int, request: In<h::Request>);
            fn pready_list PREADY_LIST = c::pready_list(length: Int, partitions: ConstInts, request: In<h::Request>);
            fn pready_range PREADY_RANGE = c::pready_range(low: Int, high: Int, request: In<h::Request>);
            fn precv_init PRECV_INIT = c::precv_init(buf: Buf, partitions: Int, count: Count, ty: In<h::Datatype>,
                source: Int, tag: Int, comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
            fn psend_init PSEND_INIT = c::psend_init(buf: Buf, partitions: Int, count: Count, ty: In<h::Datatype>,
                dest: Int, tag: Int, comm: In<h::Comm>, info: In<h::Info>, request: Out<h::Request>);
        }
    };
}

/// Sessions.
#[macro_export]
macro_rules! f_table_session {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn comm_create_from_group COMM_CREATE_FROM_GROUP = c::comm_create_from_group(group: In<h::Group>,
                tag: StrIn[tag_len], info: In<h::Info>, errhandler: In<h::Errhandler>, newcomm: Out<h::Comm>; tag_len);
            fn group_from_session_pset GROUP_FROM_SESSION_PSET = c::group_from_session_pset(session: In<h::Session>,
                name: StrIn[name_len], newgroup: Out<h::Group>; name_len);
            fn intercomm_create_from_groups INTERCOMM_CREATE_FROM_GROUPS = c::intercomm_create_from_groups(
                local_group: In<h::Group>, local_leader: Int, remote_group: In<h::Group>, remote_leader: Int,
                tag: StrIn[tag_len], info: In<h::Info>, errhandler: In<h::Errhandler>, newcomm: Out<h::Comm>; tag_len);
            fn session_call_errhandler SESSION_CALL_ERRHANDLER = c::session_call_errhandler(session: In<h::Session>,
                errorcode: Int);
            fn session_create_errhandler SESSION_CREATE_ERRHANDLER = f::comm_create_errhandler(function: Buf,
                errhandler: Out<h::Errhandler>);
            fn session_finalize SESSION_FINALIZE = c::session_finalize(session: InOut<h::Session>);
            fn session_get_errhandler SESSION_GET_ERRHANDLER = c::session_get_errhandler(session: In<h::Session>,
                errhandler: Out<h::Errhandler>);
            fn session_get_info SESSION_GET_INFO = c::session_get_info(session: In<h::Session>, info: Out<h::Info>);
            fn session_get_nth_pset SESSION_GET_NTH_PSET = f::session_get_nth_pset(session: In<h::Session>,
                info: In<h::Info>, n: Int, pset_len: Ints, name: StrOut[name_len]; name_len);
            fn session_get_num_psets SESSION_GET_NUM_PSETS = c::session_get_num_psets(session: In<h::Session>,
                info: In<h::Info>, count: Ints);
            fn session_get_pset_info SESSION_GET_PSET_INFO = c::session_get_pset_info(session: In<h::Session>,
                name: StrIn[name_len], info: Out<h::Info>; name_len);
            fn session_init SESSION_INIT = c::session_init(info: In<h::Info>, errhandler: In<h::Errhandler>,
                session: Out<h::Session>);
            fn session_set_errhandler SESSION_SET_ERRHANDLER = c::session_set_errhandler(session: In<h::Session>,
                errhandler: In<h::Errhandler>);
        }
    };
}
