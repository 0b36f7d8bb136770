//! Files, as Fortran calls them.

/// MPI 4.1 chapter 14, and the error handlers of files.
#[macro_export]
macro_rules! f_table_io {
    ($A:ty, $face:ident) => {
        $crate::export_f! { $A, $face, [mpi MPI];
            fn file_open FILE_OPEN = c::file_open(comm: In<h::Comm>, filename: StrIn[filename_len], amode: Int,
                info: In<h::Info>, fh: Out<h::File>; filename_len);
            fn file_close FILE_CLOSE = c::file_close(fh: InOut<h::File>);
            fn file_delete FILE_DELETE = c::file_delete(filename: StrIn[filename_len], info: In<h::Info>; filename_len);
            fn file_set_size FILE_SET_SIZE = c::file_set_size(fh: In<h::File>, size: Count);
            fn file_preallocate FILE_PREALLOCATE = c::file_preallocate(fh: In<h::File>, size: Count);
            fn file_get_size FILE_GET_SIZE = c::file_get_size(fh: In<h::File>, size: Counts);
            fn file_get_group FILE_GET_GROUP = c::file_get_group(fh: In<h::File>, group: Out<h::Group>);
            fn file_get_amode FILE_GET_AMODE = c::file_get_amode(fh: In<h::File>, amode: Ints);
            fn file_set_info FILE_SET_INFO = c::file_set_info(fh: In<h::File>, info: In<h::Info>);
            fn file_get_info FILE_GET_INFO = c::file_get_info(fh: In<h::File>, info: Out<h::Info>);
            fn file_set_view FILE_SET_VIEW = c::file_set_view(fh: In<h::File>, disp: Count, etype: In<h::Datatype>,
                filetype: In<h::Datatype>, datarep: StrIn[datarep_len], info: In<h::Info>; datarep_len);
            fn file_get_view FILE_GET_VIEW = c::file_get_view(fh: In<h::File>, disp: Counts, etype: Out<h::Datatype>,
                filetype: Out<h::Datatype>, datarep: StrOut[datarep_len]; datarep_len);
            fn file_seek FILE_SEEK = c::file_seek(fh: In<h::File>, offset: Count, whence: Int);
            fn file_get_position FILE_GET_POSITION = c::file_get_position(fh: In<h::File>, offset: Counts);
            fn file_get_byte_offset FILE_GET_BYTE_OFFSET = c::file_get_byte_offset(fh: In<h::File>, offset: Count,
                disp: Counts);
            fn file_seek_shared FILE_SEEK_SHARED = c::file_seek_shared(fh: In<h::File>, offset: Count, whence: Int);
            fn file_get_position_shared FILE_GET_POSITION_SHARED = c::file_get_position_shared(fh: In<h::File>,
                offset: Counts);
            fn file_get_type_extent FILE_GET_TYPE_EXTENT = c::file_get_type_extent(fh: In<h::File>,
                datatype: In<h::Datatype>, extent: Aints);
            fn file_set_atomicity FILE_SET_ATOMICITY = c::file_set_atomicity(fh: In<h::File>, flag: LogicalIn);
            fn file_get_atomicity FILE_GET_ATOMICITY = c::file_get_atomicity(fh: In<h::File>, flag: LogicalOut);
            fn file_sync FILE_SYNC = c::file_sync(fh: In<h::File>);
            fn register_datarep REGISTER_DATAREP = f::register_datarep(datarep: StrIn[datarep_len], read_fn: Buf,
                write_fn: Buf, extent_fn: Buf, extra_state: Aint; datarep_len);
            fn file_call_errhandler FILE_CALL_ERRHANDLER = c::file_call_errhandler(fh: In<h::File>, errorcode: Int);
            fn file_create_errhandler FILE_CREATE_ERRHANDLER = f::comm_create_errhandler(function: Buf,
                errhandler: Out<h::Errhandler>);
            fn file_get_errhandler FILE_GET_ERRHANDLER = c::file_get_errhandler(fh: In<h::File>,
                errhandler: Out<h::Errhandler>);
            fn file_set_errhandler FILE_SET_ERRHANDLER = c::file_set_errhandler(fh: In<h::File>,
                errhandler: In<h::Errhandler>);
            #[counts]
            fn file_read FILE_READ = c::file_read(fh: In<h::File>, buf: Buf, count: Num, ty: In<h::Datatype>,
                status: Status);
            #[counts]
            fn file_read_at FILE_READ_AT = c::file_read_at(fh: In<h::File>, offset: Count, buf: Buf, count: Num,
                ty: In<h::Datatype>, status: Status);
            #[counts]
            fn file_read_all FILE_READ_ALL = c::file_read_all(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>, status: Status);
            #[counts]
            fn file_read_at_all FILE_READ_AT_ALL = c::file_read_at_all(fh: In<h::File>, offset: Count, buf: Buf,
                count: Num, ty: In<h::Datatype>, status: Status);
            #[counts]
            fn file_read_shared FILE_READ_SHARED = c::file_read_shared(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>, status: Status);
            #[counts]
            fn file_read_ordered FILE_READ_ORDERED = c::file_read_ordered(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>, status: Status);
            #[counts]
            fn file_write FILE_WRITE = c::file_write(fh: In<h::File>, buf: Buf, count: Num, ty: In<h::Datatype>,
                status: Status);
            #[counts]
            fn file_write_at FILE_WRITE_AT = c::file_write_at(fh: In<h::File>, offset: Count, buf: Buf, count: Num,
                ty: In<h::Datatype>, status: Status);
            #[counts]
            fn file_write_all FILE_WRITE_ALL = c::file_write_all(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>, status: Status);
            #[counts]
            fn file_write_at_all FILE_WRITE_AT_ALL = c::file_write_at_all(fh: In<h::File>, offset: Count, buf: Buf,
                count: Num, ty: In<h::Datatype>, status: Status);
            #[counts]
            fn file_write_shared FILE_WRITE_SHARED = c::file_write_shared(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>, status: Status);
            #[counts]
            fn file_write_ordered FILE_WRITE_ORDERED = c::file_write_ordered(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>, status: Status);
            #[counts]
            fn file_iread FILE_IREAD = c::file_iread(fh: In<h::File>, buf: Buf, count: Num, ty: In<h::Datatype>,
                request: Out<h::Request>);
            #[counts]
            fn file_iread_at FILE_IREAD_AT = c::file_iread_at(fh: In<h::File>, offset: Count, buf: Buf, count: Num,
                ty: In<h::Datatype>, request: Out<h::Request>);
            #[counts]
            fn file_iread_all FILE_IREAD_ALL = c::file_iread_all(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>, request: Out<h::Request>);
            #[counts]
            fn file_iread_at_all FILE_IREAD_AT_ALL = c::file_iread_at_all(fh: In<h::File>, offset: Count, buf: Buf,
                count: Num, ty: In<h::Datatype>, request: Out<h::Request>);
            #[counts]
            fn file_iread_shared FILE_IREAD_SHARED = c::file_iread_shared(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>, request: Out<h::Request>);
            #[counts]
            fn file_iwrite FILE_IWRITE = c::file_iwrite(fh: In<h::File>, buf: Buf, count: Num, ty: In<h::Datatype>,
                request: Out<h::Request>);
            #[counts]
            fn file_iwrite_at FILE_IWRITE_AT = c::file_iwrite_at(fh: In<h::File>, offset: Count, buf: Buf, count: Num,
                ty: In<h::Datatype>, request: Out<h::Request>);
            #[counts]
            fn file_iwrite_all FILE_IWRITE_ALL = c::file_iwrite_all(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>, request: Out<h::Request>);
            #[counts]
            fn file_iwrite_at_all FILE_IWRITE_AT_ALL = c::file_iwrite_at_all(fh: In<h::File>, offset: Count, buf: Buf,
                count: Num, ty: In<h::Datatype>, request: Out<h::Request>);
            #[counts]
            fn file_iwrite_shared FILE_IWRITE_SHARED = c::file_iwrite_shared(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>, request: Out<h::Request>);
            #[counts]
            fn file_read_all_begin FILE_READ_ALL_BEGIN = c::file_read_all_begin(fh: In<h::File>, buf: Buf, count: Num,
                ty: In<h::Datatype>);
            fn file_read_all_end FILE_READ_ALL_END = c::file_read_all_end(fh: In<h::File>, buf: Buf, status: Status);
            #[counts]
            fn file_read_at_all_begin FILE_READ_AT_ALL_BEGIN = c::file_read_at_all_begin(fh: In<h::File>,
                offset: Count, buf: Buf, count: Num, ty: In<h::Datatype>);
            fn file_read_at_all_end FILE_READ_AT_ALL_END = c::file_read_at_all_end(fh: In<h::File>, buf: Buf,
                status: Status);
            #[counts]
            fn file_read_ordered_begin FILE_READ_ORDERED_BEGIN = c::file_read_ordered_begin(fh: In<h::File>, buf: Buf,
                count: Num, ty: In<h::Datatype>);
            fn file_read_ordered_end FILE_READ_ORDERED_END = c::file_read_ordered_end(fh: In<h::File>, buf: Buf,
                status: Status);
            #[counts]
            fn file_write_all_begin FILE_WRITE_ALL_BEGIN = c::file_write_all_begin(fh: In<h::File>, buf: Buf,
                count: Num, ty: In<h::Datatype>);
            fn file_write_all_end FILE_WRITE_ALL_END = c::file_write_all_end(fh: In<h::File>, buf: Buf,
                status: Status);
            #[counts]
            fn file_write_at_all_begin FILE_WRITE_AT_ALL_BEGIN = c::file_write_at_all_begin(fh: In<h::File>,
                offset: Count, buf: Buf, count: Num, ty: In<h::Datatype>);
            fn file_write_at_all_end FILE_WRITE_AT_ALL_END = c::file_write_at_all_end(fh: In<h::File>, buf: Buf,
                status: Status);
            #[counts]
            fn file_write_ordered_begin FILE_WRITE_ORDERED_BEGIN = c::file_write_ordered_begin(fh: In<h::File>,
                buf: Buf, count: Num, ty: In<h::Datatype>);
            fn file_write_ordered_end FILE_WRITE_ORDERED_END = c::file_write_ordered_end(fh: In<h::File>, buf: Buf,
                status: Status);
        }
    };
}
