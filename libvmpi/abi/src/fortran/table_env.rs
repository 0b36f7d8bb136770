//! Start, end, environment and info objects, as Fortran calls them.

/// Procedures that are new in MPI 4, which Open MPI 4.1 does not have.
#[macro_export]
macro_rules! f_table_mpi4 {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn comm_idup_with_info COMM_IDUP_WITH_INFO = c::comm_idup_with_info(comm: In<h::Comm>, info: In<h::Info>,
                newcomm: Out<h::Comm>, request: Out<h::Request>);
            fn info_get_string INFO_GET_STRING = f::info_get_string(info: In<h::Info>, key: StrIn[key_len],
                buflen: Ints, value: StrOut[value_len], flag: LogicalOut; key_len, value_len);
            fn info_create_env INFO_CREATE_ENV = f::info_create_env(info: Out<h::Info>);
        }
    };
}

/// Start, end and environment.
#[macro_export]
macro_rules! f_table_env {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn abort ABORT = c::abort(comm: In<h::Comm>, errorcode: Int);
            fn add_error_class ADD_ERROR_CLASS = c::add_error_class(errorclass: Ints);
            fn add_error_code ADD_ERROR_CODE = c::add_error_code(errorclass: Int, errorcode: Ints);
            fn add_error_string ADD_ERROR_STRING = c::add_error_string(errorcode: Int, string: StrIn[string_len];
                string_len);
            fn alloc_mem ALLOC_MEM = c::alloc_mem(size: Aint, info: In<h::Info>, baseptr: Buf);
            fn alloc_mem_cptr ALLOC_MEM_CPTR = c::alloc_mem(size: Aint, info: In<h::Info>, baseptr: Buf);
            fn error_class ERROR_CLASS = c::error_class(errorcode: Int, errorclass: Ints);
            fn error_string ERROR_STRING = c::error_string(errorcode: Int, string: StrOut[string_len], resultlen: Ints;
                string_len);
            fn finalize FINALIZE = c::finalize();
            fn finalized FINALIZED = c::finalized(flag: LogicalOut);
            fn free_mem FREE_MEM = c::free_mem(base: Buf);
            fn get_library_version GET_LIBRARY_VERSION = c::get_library_version(version: StrOut[version_len],
                resultlen: Ints; version_len);
            fn get_processor_name GET_PROCESSOR_NAME = c::get_processor_name(name: StrOut[name_len], resultlen: Ints;
                name_len);
            fn get_version GET_VERSION = c::get_version(version: Ints, subversion: Ints);
            fn init INIT = f::init();
            fn init_thread INIT_THREAD = f::init_thread(required: Int, provided: Ints);
            fn initialized INITIALIZED = c::initialized(flag: LogicalOut);
            fn is_thread_main IS_THREAD_MAIN = c::is_thread_main(flag: LogicalOut);
            fn query_thread QUERY_THREAD = c::query_thread(provided: Ints);
        }
    };
}

/// Info objects.
#[macro_export]
macro_rules! f_table_info {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn info_create INFO_CREATE = c::info_create(info: Out<h::Info>);
            fn info_delete INFO_DELETE = c::info_delete(info: In<h::Info>, key: StrIn[key_len]; key_len);
            fn info_dup INFO_DUP = c::info_dup(info: In<h::Info>, newinfo: Out<h::Info>);
            fn info_free INFO_FREE = c::info_free(info: InOut<h::Info>);
            fn info_get INFO_GET = c::info_get(info: In<h::Info>, key: StrIn[key_len], valuelen: Int,
                value: StrOut[value_len], flag: LogicalOut; key_len, value_len);
            fn info_get_nkeys INFO_GET_NKEYS = c::info_get_nkeys(info: In<h::Info>, nkeys: Ints);
            fn info_get_nthkey INFO_GET_NTHKEY = c::info_get_nthkey(info: In<h::Info>, index: Int, key: StrOut[key_len];
                key_len);
            fn info_get_valuelen INFO_GET_VALUELEN = c::info_get_valuelen(info: In<h::Info>, key: StrIn[key_len],
                valuelen: Ints, flag: LogicalOut; key_len);
            fn info_set INFO_SET = c::info_set(info: In<h::Info>, key: StrIn[key_len], value: StrIn[value_len]; key_len,
                value_len);
        }
    };
}
