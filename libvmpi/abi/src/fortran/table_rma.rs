//! Windows and one-sided operations, as Fortran calls them.

/// Windows.
#[macro_export]
macro_rules! f_table_win {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            #[counts]
            fn win_allocate WIN_ALLOCATE = c::win_allocate(size: Aint, disp_unit: Num, info: In<h::Info>,
                comm: In<h::Comm>, baseptr: Buf, win: Out<h::Win>);
            #[counts]
            fn win_allocate_shared WIN_ALLOCATE_SHARED = c::win_allocate_shared(size: Aint, disp_unit: Num,
                info: In<h::Info>, comm: In<h::Comm>, baseptr: Buf, win: Out<h::Win>);
            fn win_attach WIN_ATTACH = c::win_attach(win: In<h::Win>, base: Buf, size: Aint);
            fn win_call_errhandler WIN_CALL_ERRHANDLER = c::win_call_errhandler(win: In<h::Win>, errorcode: Int);
            fn win_complete WIN_COMPLETE = c::win_complete(win: In<h::Win>);
            #[counts]
            fn win_create WIN_CREATE = c::win_create(base: Buf, size: Aint, disp_unit: Num, info: In<h::Info>,
                comm: In<h::Comm>, win: Out<h::Win>);
            fn win_create_dynamic WIN_CREATE_DYNAMIC = c::win_create_dynamic(info: In<h::Info>, comm: In<h::Comm>,
                win: Out<h::Win>);
            fn win_create_errhandler WIN_CREATE_ERRHANDLER = f::comm_create_errhandler(function: Buf,
                errhandler: Out<h::Errhandler>);
            fn win_detach WIN_DETACH = c::win_detach(win: In<h::Win>, base: Buf);
            fn win_fence WIN_FENCE = c::win_fence(assert: Int, win: In<h::Win>);
            fn win_flush WIN_FLUSH = c::win_flush(rank: Int, win: In<h::Win>);
            fn win_flush_all WIN_FLUSH_ALL = c::win_flush_all(win: In<h::Win>);
            fn win_flush_local WIN_FLUSH_LOCAL = c::win_flush_local(rank: Int, win: In<h::Win>);
            fn win_flush_local_all WIN_FLUSH_LOCAL_ALL = c::win_flush_local_all(win: In<h::Win>);
            fn win_free WIN_FREE = c::win_free(win: InOut<h::Win>);
            fn win_get_errhandler WIN_GET_ERRHANDLER = c::win_get_errhandler(win: In<h::Win>,
                errhandler: Out<h::Errhandler>);
            fn win_get_group WIN_GET_GROUP = c::win_get_group(win: In<h::Win>, group: Out<h::Group>);
            fn win_get_info WIN_GET_INFO = c::win_get_info(win: In<h::Win>, info_used: Out<h::Info>);
            fn win_get_name WIN_GET_NAME = c::win_get_name(win: In<h::Win>, win_name: StrOut[win_name_len],
                resultlen: Ints; win_name_len);
            fn win_lock WIN_LOCK = c::win_lock(lock_type: Int, rank: Int, assert: Int, win: In<h::Win>);
            fn win_lock_all WIN_LOCK_ALL = c::win_lock_all(assert: Int, win: In<h::Win>);
            fn win_post WIN_POST = c::win_post(group: In<h::Group>, assert: Int, win: In<h::Win>);
            fn win_set_errhandler WIN_SET_ERRHANDLER = c::win_set_errhandler(win: In<h::Win>,
                errhandler: In<h::Errhandler>);
            fn win_set_info WIN_SET_INFO = c::win_set_info(win: In<h::Win>, info: In<h::Info>);
            fn win_set_name WIN_SET_NAME = c::win_set_name(win: In<h::Win>, win_name: StrIn[win_name_len];
                win_name_len);
            fn win_shared_query WIN_SHARED_QUERY = c::win_shared_query(win: In<h::Win>, rank: Int, size: Aints,
                disp_unit: Ints, baseptr: Buf);
            fn win_start WIN_START = c::win_start(group: In<h::Group>, assert: Int, win: In<h::Win>);
            fn win_sync WIN_SYNC = c::win_sync(win: In<h::Win>);
            fn win_test WIN_TEST = c::win_test(win: In<h::Win>, flag: LogicalOut);
            fn win_unlock WIN_UNLOCK = c::win_unlock(rank: Int, win: In<h::Win>);
            fn win_unlock_all WIN_UNLOCK_ALL = c::win_unlock_all(win: In<h::Win>);
            fn win_wait WIN_WAIT = c::win_wait(win: In<h::Win>);
        }
    };
}

/// Open MPI's names of the procedures whose address result is a TYPE(C_PTR).
#[macro_export]
macro_rules! f_table_win_cptr {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn win_allocate_cptr WIN_ALLOCATE_CPTR = c::win_allocate(size: Aint, disp_unit: Int, info: In<h::Info>,
                comm: In<h::Comm>, baseptr: Buf, win: Out<h::Win>);
            fn win_allocate_shared_cptr WIN_ALLOCATE_SHARED_CPTR = c::win_allocate_shared(size: Aint, disp_unit: Int,
                info: In<h::Info>, comm: In<h::Comm>, baseptr: Buf, win: Out<h::Win>);
            fn win_shared_query_cptr WIN_SHARED_QUERY_CPTR = c::win_shared_query(win: In<h::Win>, rank: Int,
                size: Aints, disp_unit: Ints, baseptr: Buf);
        }
    };
}

/// One-sided operations.
#[macro_export]
macro_rules! f_table_rma {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            #[counts]
            fn accumulate ACCUMULATE = c::accumulate(origin_addr: Buf, origin_count: Num, origin_type: In<h::Datatype>,
                target_rank: Int, target_disp: Aint, target_count: Num, target_type: In<h::Datatype>, op: In<h::Op>,
                win: In<h::Win>);
            fn compare_and_swap COMPARE_AND_SWAP = c::compare_and_swap(origin_addr: Buf, compare_addr: Buf,
                result_addr: Buf, ty: In<h::Datatype>, target_rank: Int, target_disp: Aint, win: In<h::Win>);
            fn fetch_and_op FETCH_AND_OP = c::fetch_and_op(origin_addr: Buf, result_addr: Buf, ty: In<h::Datatype>,
                target_rank: Int, target_disp: Aint, op: In<h::Op>, win: In<h::Win>);
            #[counts]
            fn get GET = c::get_from(origin_addr: Buf, origin_count: Num, origin_type: In<h::Datatype>,
                target_rank: Int, target_disp: Aint, target_count: Num, target_type: In<h::Datatype>,
                win: In<h::Win>);
            #[counts]
            fn get_accumulate GET_ACCUMULATE = c::get_accumulate(origin_addr: Buf, origin_count: Num,
                origin_type: In<h::Datatype>, result_addr: Buf, result_count: Num, result_type: In<h::Datatype>,
                target_rank: Int, target_disp: Aint, target_count: Num, target_type: In<h::Datatype>, op: In<h::Op>,
                win: In<h::Win>);
            #[counts]
            fn put PUT = c::put(origin_addr: Buf, origin_count: Num, origin_type: In<h::Datatype>, target_rank: Int,
                target_disp: Aint, target_count: Num, target_type: In<h::Datatype>, win: In<h::Win>);
            #[counts]
            fn raccumulate RACCUMULATE = c::raccumulate(origin_addr: Buf, origin_count: Num,
                origin_type: In<h::Datatype>, target_rank: Int, target_disp: Aint, target_count: Num,
                target_type: In<h::Datatype>, op: In<h::Op>, win: In<h::Win>, request: Out<h::Request>);
            #[counts]
            fn rget RGET = c::rget(origin_addr: Buf, origin_count: Num, origin_type: In<h::Datatype>,
                target_rank: Int, target_disp: Aint, target_count: Num, target_type: In<h::Datatype>,
                win: In<h::Win>, request: Out<h::Request>);
            #[counts]
            fn rget_accumulate RGET_ACCUMULATE = c::rget_accumulate(origin_addr: Buf, origin_count: Num,
                origin_type: In<h::Datatype>, result_addr: Buf, result_count: Num, result_type: In<h::Datatype>,
                target_rank: Int, target_disp: Aint, target_count: Num, target_type: In<h::Datatype>, op: In<h::Op>,
                win: In<h::Win>, request: Out<h::Request>);
            #[counts]
            fn rput RPUT = c::rput(origin_addr: Buf, origin_count: Num, origin_type: In<h::Datatype>, target_rank: Int,
                target_disp: Aint, target_count: Num, target_type: In<h::Datatype>, win: In<h::Win>,
                request: Out<h::Request>);
        }
    };
}
