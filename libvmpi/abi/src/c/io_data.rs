//! Files: reads and writes. MPI 4.1 section 14.4.

use super::io::{get, on_file};
use super::number::{Number, named, names};
use super::status::write_status;
use crate::abi::{Abi, CDatatype, CFile, CRequest, dec, enc};
use crate::entry;
use std::ffi::{c_int, c_void};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Handle, Request};
use vmpi_core::io::access::{self, Place, Way};
use vmpi_core::io::{Buffer, File};
use vmpi_core::status::Status;
use vmpi_core::{consts, datatype, request};

/// The (buffer, count, datatype) of an access, checked.
fn buffer<A: Abi>(buf: *mut c_void, count: i64, ty: CDatatype<A>) -> Result<Buffer> {
    let Ok(count) = u64::try_from(count) else {
        return fail(Class::Count, format!("the count is {count}, which is negative"));
    };
    let handle = dec::<A, _>(ty);
    let ty = datatype::get_committed(handle)?;
    let addr = A::buf_in(buf);
    if buf.is_null() && count > 0 && ty.size() > 0 && ty.is_dense() && ty.true_lb() == 0 {
        return fail(Class::Buffer, format!("the buffer is a null pointer, but the count is {count}"));
    }
    if addr as usize == consts::IN_PLACE {
        return fail(Class::Buffer, "MPI_IN_PLACE is not a buffer of a file access");
    }
    if ty.size().checked_mul(count).is_none_or(|bytes| bytes > i64::MAX as u64) {
        return fail(Class::Count, format!("{count} elements of {} bytes are too many", ty.size()));
    }
    Ok(Buffer { addr: addr.cast_mut(), count, ty, handle })
}

/// A request of an independent access, which is complete already.
///
/// # Safety
/// As `access::alone`.
unsafe fn start_alone(file: &std::rc::Rc<File>, way: Way, place: Place, buffer: Buffer) -> Result<Request> {
    // SAFETY: passed on.
    Ok(request::insert_done(unsafe { access::alone(file, way, place, buffer)? }))
}

/// Reads and writes that wait: `name "MPI_Name" how way (offset) place`.
macro_rules! blocking {
    ($($name:ident $mpi:literal $how:ident $way:ident ($($offset:ident)?) $place:expr;)*) => {$(
        #[doc = concat!("`", $mpi, "`, `", $mpi, "_c`.")]
        ///
        /// # Safety
        /// The C function's contract.
        pub unsafe fn $name<A: Abi>(
            fh: CFile<A>, $($offset: i64,)? buf: *mut c_void, count: impl Number, ty: CDatatype<A>, status: *mut A::Status,
        ) -> c_int {
            entry::run::<A>(named(count, names!($mpi)), on_file::<A>(fh), || {
                let (file, buffer) = (get::<A>(fh)?, buffer::<A>(buf, count.get(), ty)?);
                // SAFETY: the program keeps buffer and status until the call returns.
                unsafe { write_status::<A>(status, &access::$how(&file, Way::$way, $place, buffer)?) };
                Ok(())
            })
        }
    )*};
}

/// Reads and writes with a request.
macro_rules! nonblocking {
    ($($name:ident $mpi:literal $how:path, $way:ident ($($offset:ident)?) $place:expr;)*) => {$(
        #[doc = concat!("`", $mpi, "`, `", $mpi, "_c`.")]
        ///
        /// # Safety
        /// The C function's contract.
        pub unsafe fn $name<A: Abi>(
            fh: CFile<A>, $($offset: i64,)? buf: *mut c_void, count: impl Number, ty: CDatatype<A>, req: *mut CRequest<A>,
        ) -> c_int {
            entry::run::<A>(named(count, names!($mpi)), on_file::<A>(fh), || {
                let file = get::<A>(fh)?;
                if req.is_null() {
                    return fail(Class::Arg, "the request argument is a null pointer");
                }
                // SAFETY: the program keeps the buffer until the request is complete; `req` is its to write.
                unsafe {
                    *req = enc::<A, Request>(Request::NULL);
                    let buffer = buffer::<A>(buf, count.get(), ty)?;
                    *req = enc::<A, Request>($how(&file, Way::$way, $place, buffer)?);
                }
                Ok(())
            })
        }
    )*};
}

/// Split collective reads and writes: `begin end "kind" way (offset) place`.
macro_rules! split {
    ($($begin:ident $end:ident $kind:literal $way:ident ($($offset:ident)?) $place:expr;)*) => {$(
        #[doc = concat!("`MPI_File_", $kind, "_begin`, `MPI_File_", $kind, "_begin_c`.")]
        ///
        /// # Safety
        /// The C function's contract.
        pub unsafe fn $begin<A: Abi>(
            fh: CFile<A>, $($offset: i64,)? buf: *mut c_void, count: impl Number, ty: CDatatype<A>,
        ) -> c_int {
            const NAME: &str = concat!("MPI_File_", $kind, "_begin");
            entry::run::<A>(named(count, &[NAME, concat!("MPI_File_", $kind, "_begin_c"), NAME]), on_file::<A>(fh), || {
                let (file, buffer) = (get::<A>(fh)?, buffer::<A>(buf, count.get(), ty)?);
                // SAFETY: the program keeps the buffer until the access is ended.
                unsafe { access::begin(&file, $kind, Way::$way, $place, buffer) }
            })
        }

        #[doc = concat!("`MPI_File_", $kind, "_end`.")]
        ///
        /// # Safety
        /// The C function's contract.
        pub unsafe fn $end<A: Abi>(fh: CFile<A>, _buf: *mut c_void, status: *mut A::Status) -> c_int {
            entry::run::<A>(concat!("MPI_File_", $kind, "_end"), on_file::<A>(fh), || {
                let done: Status = access::end(&get::<A>(fh)?, $kind)?;
                // SAFETY: the status is the program's to write.
                unsafe { write_status::<A>(status, &done) };
                Ok(())
            })
        }
    )*};
}

blocking! {
    file_read "MPI_File_read" alone Read () Place::Individual;
    file_read_at "MPI_File_read_at" alone Read (offset) Place::At(offset);
    file_read_all "MPI_File_read_all" together Read () Place::Individual;
    file_read_at_all "MPI_File_read_at_all" together Read (offset) Place::At(offset);
    file_read_shared "MPI_File_read_shared" alone Read () Place::Shared;
    file_read_ordered "MPI_File_read_ordered" together Read () Place::Ordered;
    file_write "MPI_File_write" alone Write () Place::Individual;
    file_write_at "MPI_File_write_at" alone Write (offset) Place::At(offset);
    file_write_all "MPI_File_write_all" together Write () Place::Individual;
    file_write_at_all "MPI_File_write_at_all" together Write (offset) Place::At(offset);
    file_write_shared "MPI_File_write_shared" alone Write () Place::Shared;
    file_write_ordered "MPI_File_write_ordered" together Write () Place::Ordered;
}

nonblocking! {
    file_iread "MPI_File_iread" start_alone, Read () Place::Individual;
    file_iread_at "MPI_File_iread_at" start_alone, Read (offset) Place::At(offset);
    file_iread_all "MPI_File_iread_all" access::start, Read () Place::Individual;
    file_iread_at_all "MPI_File_iread_at_all" access::start, Read (offset) Place::At(offset);
    file_iread_shared "MPI_File_iread_shared" start_alone, Read () Place::Shared;
    file_iwrite "MPI_File_iwrite" start_alone, Write () Place::Individual;
    file_iwrite_at "MPI_File_iwrite_at" start_alone, Write (offset) Place::At(offset);
    file_iwrite_all "MPI_File_iwrite_all" access::start, Write () Place::Individual;
    file_iwrite_at_all "MPI_File_iwrite_at_all" access::start, Write (offset) Place::At(offset);
    file_iwrite_shared "MPI_File_iwrite_shared" start_alone, Write () Place::Shared;
}

split! {
    file_read_all_begin file_read_all_end "read_all" Read () Place::Individual;
    file_read_at_all_begin file_read_at_all_end "read_at_all" Read (offset) Place::At(offset);
    file_read_ordered_begin file_read_ordered_end "read_ordered" Read () Place::Ordered;
    file_write_all_begin file_write_all_end "write_all" Write () Place::Individual;
    file_write_at_all_begin file_write_at_all_end "write_at_all" Write (offset) Place::At(offset);
    file_write_ordered_begin file_write_ordered_end "write_ordered" Write () Place::Ordered;
}

/// The table of this section.
#[macro_export]
macro_rules! c_table_io_data {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::io_data];
            fn MPI_File_read = file_read(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_at = file_read_at(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_all = file_read_all(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_at_all = file_read_at_all(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_shared = file_read_shared(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_ordered = file_read_ordered(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write = file_write(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_at = file_write_at(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_all = file_write_all(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_at_all = file_write_at_all(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_shared = file_write_shared(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_ordered = file_write_ordered(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_iread = file_iread(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iread_at = file_iread_at(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iread_all = file_iread_all(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iread_at_all = file_iread_at_all(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iread_shared = file_iread_shared(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iwrite = file_iwrite(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iwrite_at = file_iwrite_at(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iwrite_all = file_iwrite_all(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iwrite_at_all = file_iwrite_at_all(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iwrite_shared = file_iwrite_shared(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_read_all_begin = file_read_all_begin(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_read_all_end = file_read_all_end(fh: $crate::abi::CFile<$A>, buf: *mut c_void, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_at_all_begin = file_read_at_all_begin(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_read_at_all_end = file_read_at_all_end(fh: $crate::abi::CFile<$A>, buf: *mut c_void, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_ordered_begin = file_read_ordered_begin(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_read_ordered_end = file_read_ordered_end(fh: $crate::abi::CFile<$A>, buf: *mut c_void, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_all_begin = file_write_all_begin(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_write_all_end = file_write_all_end(fh: $crate::abi::CFile<$A>, buf: *mut c_void, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_at_all_begin = file_write_at_all_begin(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_write_at_all_end = file_write_at_all_end(fh: $crate::abi::CFile<$A>, buf: *mut c_void, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_ordered_begin = file_write_ordered_begin(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: c_int, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_write_ordered_end = file_write_ordered_end(fh: $crate::abi::CFile<$A>, buf: *mut c_void, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
        }
    };
}

/// Its large-count functions.
#[macro_export]
macro_rules! c_table_io_data_c {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::io_data];
            fn MPI_File_read_c = file_read(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_at_c = file_read_at(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_all_c = file_read_all(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_at_all_c = file_read_at_all(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_shared_c = file_read_shared(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_read_ordered_c = file_read_ordered(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_c = file_write(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_at_c = file_write_at(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_all_c = file_write_all(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_at_all_c = file_write_at_all(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_shared_c = file_write_shared(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_write_ordered_c = file_write_ordered(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, status: *mut <$A as $crate::abi::Abi>::Status) -> c_int;
            fn MPI_File_iread_c = file_iread(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iread_at_c = file_iread_at(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iread_all_c = file_iread_all(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iread_at_all_c = file_iread_at_all(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iread_shared_c = file_iread_shared(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iwrite_c = file_iwrite(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iwrite_at_c = file_iwrite_at(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iwrite_all_c = file_iwrite_all(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iwrite_at_all_c = file_iwrite_at_all(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_iwrite_shared_c = file_iwrite_shared(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>, req: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_File_read_all_begin_c = file_read_all_begin(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_read_at_all_begin_c = file_read_at_all_begin(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_read_ordered_begin_c = file_read_ordered_begin(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_write_all_begin_c = file_write_all_begin(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_write_at_all_begin_c = file_write_at_all_begin(fh: $crate::abi::CFile<$A>, offset: i64, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_File_write_ordered_begin_c = file_write_ordered_begin(fh: $crate::abi::CFile<$A>, buf: *mut c_void, count: i64, ty: $crate::abi::CDatatype<$A>) -> c_int;
        }
    };
}
