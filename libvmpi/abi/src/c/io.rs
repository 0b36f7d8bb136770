//! Files: everything but the data. MPI 4.1 chapter 14.

use super::args::{not_null, text};
use super::datatype::rules;
use super::number::put;
use crate::abi::{Abi, CComm, CDatatype, CFile, CGroup, CInfo, dec, enc};
use crate::entry::Target;
use crate::fortran::datarep;
use crate::fortran::through::Procedures;
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;
use vmpi_core::errors::{Class, Error, Result, fail};
use vmpi_core::handle::{self, Datatype, File, Handle};
use vmpi_core::io::representation::{self, Convert, Registered};
use vmpi_core::io::{self, manage};
use vmpi_core::{comm, datatype, group, info};

/// The error handler of a file argument; that of MPI_FILE_NULL if there is no such file.
pub(super) fn on_file<A: Abi>(file: CFile<A>) -> Target {
    Target::File(dec::<A, _>(file))
}

/// As `on_file`, for an inout argument.
///
/// # Safety
/// `fh` must be null or readable.
unsafe fn on_file_at<A: Abi>(fh: *const CFile<A>) -> Target {
    // SAFETY: not null, so the caller's promise is that it is readable.
    if fh.is_null() { Target::File(File::NULL) } else { on_file::<A>(unsafe { *fh }) }
}

pub(super) fn get<A: Abi>(file: CFile<A>) -> Result<Rc<io::File>> {
    io::get(dec::<A, _>(file))
}

fn hints<A: Abi>(given: CInfo<A>) -> Result<Rc<info::Entries>> {
    info::hints(dec::<A, _>(given))
}

/// The name of a file or of a data representation: not empty.
///
/// # Safety
/// `pointer` must be null or a string with a NUL.
unsafe fn name_at<'a>(pointer: *const c_char, what: &str) -> Result<&'a [u8]> {
    // SAFETY: the caller's promise.
    match unsafe { text(pointer, what)? } {
        [] => fail(Class::BadFile, format!("the {what} is an empty string")),
        name => Ok(name),
    }
}

crate::entry_points! {
    /// `MPI_File_open`.
    active fn file_open = "MPI_File_open"(
        comm: CComm<A>, filename: *const c_char, amode: c_int, info: CInfo<A>, fh: *mut CFile<A>,
    ) for Target::File(File::NULL) => {
        let comm = comm::get_intra(dec::<A, _>(comm))?;
        not_null(fh, "fh")?;
        let name = name_at(filename, "filename")?;
        *fh = enc::<A, _>(File::NULL);
        *fh = enc::<A, _>(io::open(&comm, name, A::amode_in(amode), &*hints::<A>(info)?)?);
    }

    /// `MPI_File_delete`.
    active fn file_delete = "MPI_File_delete"(filename: *const c_char, info: CInfo<A>) for Target::File(File::NULL) => {
        hints::<A>(info)?;
        io::delete(name_at(filename, "filename")?)?;
    }

    /// `MPI_File_set_size`.
    active fn file_set_size = "MPI_File_set_size"(fh: CFile<A>, size: i64) for on_file::<A>(fh) => {
        manage::set_size(&*get::<A>(fh)?, size)?;
    }

    /// `MPI_File_preallocate`.
    active fn file_preallocate = "MPI_File_preallocate"(fh: CFile<A>, size: i64) for on_file::<A>(fh) => {
        manage::preallocate(&*get::<A>(fh)?, size)?;
    }

    /// `MPI_File_get_size`.
    active fn file_get_size = "MPI_File_get_size"(fh: CFile<A>, size: *mut i64) for on_file::<A>(fh) => {
        let file = get::<A>(fh)?;
        put(size, file.size()?, "size")?;
    }

    /// `MPI_File_get_group`.
    active fn file_get_group = "MPI_File_get_group"(fh: CFile<A>, group: *mut CGroup<A>) for on_file::<A>(fh) => {
        let file = get::<A>(fh)?;
        not_null(group, "group")?;
        *group = enc::<A, _>(group::insert(file.comm.local.clone()));
    }

    /// `MPI_File_get_amode`.
    active fn file_get_amode = "MPI_File_get_amode"(fh: CFile<A>, amode: *mut c_int) for on_file::<A>(fh) => {
        put(amode, A::amode_out(get::<A>(fh)?.amode), "amode")?;
    }

    /// `MPI_File_set_info`.
    active fn file_set_info = "MPI_File_set_info"(fh: CFile<A>, info: CInfo<A>) for on_file::<A>(fh) => {
        let file = get::<A>(fh)?;
        manage::set_hints(&file, &*hints::<A>(info)?)?;
    }

    /// `MPI_File_get_info`; the program frees what it gets.
    active fn file_get_info = "MPI_File_get_info"(fh: CFile<A>, info_used: *mut CInfo<A>) for on_file::<A>(fh) => {
        let file = get::<A>(fh)?;
        not_null(info_used, "info_used")?;
        *info_used = enc::<A, _>(info::insert(Rc::new(manage::hints(&file))));
    }

    /// `MPI_File_set_view`.
    active fn file_set_view = "MPI_File_set_view"(
        fh: CFile<A>, disp: i64, etype: CDatatype<A>, filetype: CDatatype<A>, datarep: *const c_char, info: CInfo<A>,
    ) for on_file::<A>(fh) => {
        let file = get::<A>(fh)?;
        file.check_no_split()?;
        let etype = datatype::get_committed(dec::<A, _>(etype))?;
        let filetype = datatype::get_committed(dec::<A, _>(filetype))?;
        let name = manage::representation_name(text(datarep, "datarep")?)?;
        let disp = A::displacement_in(disp);
        manage::set_view(&file, disp, etype, filetype, name, rules::<A>(), &*hints::<A>(info)?)?;
    }

    /// `MPI_File_get_view`: derived types come as new handles.
    active fn file_get_view = "MPI_File_get_view"(
        fh: CFile<A>, disp: *mut i64, etype: *mut CDatatype<A>, filetype: *mut CDatatype<A>, datarep: *mut c_char,
    ) for on_file::<A>(fh) => {
        let view = get::<A>(fh)?.view();
        not_null(datarep, "datarep")?;
        put(disp, view.displacement, "disp")?;
        not_null(etype, "etype")?;
        not_null(filetype, "filetype")?;
        *etype = enc::<A, _>(datatype::handle_of(&view.etype));
        *filetype = enc::<A, _>(datatype::handle_of(&view.filetype));
        super::args::put_text(datarep, representation::MAX_NAME, view.representation.name().as_bytes());
    }

    /// `MPI_File_seek`.
    active fn file_seek = "MPI_File_seek"(fh: CFile<A>, offset: i64, whence: c_int) for on_file::<A>(fh) => {
        manage::seek(&*get::<A>(fh)?, offset, A::whence_in(whence))?;
    }

    /// `MPI_File_get_position`.
    active fn file_get_position = "MPI_File_get_position"(fh: CFile<A>, offset: *mut i64) for on_file::<A>(fh) => {
        put(offset, manage::position(&*get::<A>(fh)?), "offset")?;
    }

    /// `MPI_File_get_byte_offset`.
    active fn file_get_byte_offset = "MPI_File_get_byte_offset"(fh: CFile<A>, offset: i64, disp: *mut i64)
        for on_file::<A>(fh) =>
    {
        put(disp, manage::byte_offset(&*get::<A>(fh)?, offset)?, "disp")?;
    }

    /// `MPI_File_seek_shared`.
    active fn file_seek_shared = "MPI_File_seek_shared"(fh: CFile<A>, offset: i64, whence: c_int)
        for on_file::<A>(fh) =>
    {
        manage::seek_shared(&*get::<A>(fh)?, offset, A::whence_in(whence))?;
    }

    /// `MPI_File_get_position_shared`.
    active fn file_get_position_shared = "MPI_File_get_position_shared"(fh: CFile<A>, offset: *mut i64)
        for on_file::<A>(fh) =>
    {
        put(offset, manage::position_shared(&*get::<A>(fh)?)?, "offset")?;
    }

    /// `MPI_File_get_type_extent`; `MPI_File_get_type_extent_c` has the same arguments in every ABI of 64 bits.
    active fn file_get_type_extent = "MPI_File_get_type_extent"(
        fh: CFile<A>, datatype: CDatatype<A>, extent: *mut isize,
    ) for on_file::<A>(fh) => {
        let file = get::<A>(fh)?;
        let ty = datatype::get(dec::<A, _>(datatype))?;
        put(extent, manage::type_extent(&file, &ty)? as isize, "extent")?;
    }

    /// `MPI_File_set_atomicity`.
    active fn file_set_atomicity = "MPI_File_set_atomicity"(fh: CFile<A>, flag: c_int) for on_file::<A>(fh) => {
        manage::set_atomicity(&*get::<A>(fh)?, flag != 0)?;
    }

    /// `MPI_File_get_atomicity`.
    active fn file_get_atomicity = "MPI_File_get_atomicity"(fh: CFile<A>, flag: *mut c_int) for on_file::<A>(fh) => {
        put(flag, c_int::from(manage::is_atomic(&*get::<A>(fh)?)), "flag")?;
    }

    /// `MPI_File_sync`.
    active fn file_sync = "MPI_File_sync"(fh: CFile<A>) for on_file::<A>(fh) => {
        manage::sync(&*get::<A>(fh)?)?;
    }
}

/// `MPI_File_close`.
///
/// # Safety
/// The C function's contract.
pub unsafe fn file_close<A: Abi>(fh: *mut CFile<A>) -> c_int {
    // SAFETY: the caller keeps MPI's contract for the argument.
    let target = unsafe { on_file_at::<A>(fh) };
    crate::entry::run::<A>("MPI_File_close", target, || {
        not_null(fh, "fh")?;
        // SAFETY: not null, and the caller keeps MPI's contract for the argument.
        let handle = dec::<A, File>(unsafe { *fh });
        let outcome = io::close(handle);
        if io::get(handle).is_err() {
            // SAFETY: as above.
            unsafe { *fh = enc::<A, _>(File::NULL) };
        }
        outcome?;
        vmpi_core::errhandler::forget(Target::File(handle));
        Ok(())
    })
}

/// `MPI_Datarep_conversion_function` with its count as `int` or `MPI_Count`.
pub type Conversion<A, N> =
    Option<unsafe extern "C" fn(*mut c_void, CDatatype<A>, N, *mut c_void, i64, *mut c_void) -> c_int>;
/// `MPI_Datarep_extent_function`.
pub type ExtentFunction<A> = Option<unsafe extern "C" fn(CDatatype<A>, *mut isize, *mut c_void) -> c_int>;

/// What a callback about a data representation returned.
pub(crate) fn conversion_outcome(name: &str, code: i32) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(Error {
            code,
            message: format!("a function of the data representation {name:?} returned error code {code}"),
            ..Error::new(Class::Conversion, "")
        }),
    }
}

/// A conversion function of the program, for any number of elements.
fn converter<A: Abi, N: TryFrom<u64> + 'static>(
    name: &str,
    function: Conversion<A, N>,
    extra_state: *mut c_void,
) -> Option<Convert> {
    let (function, name) = (function?, name.to_owned());
    Some(Box::new(move |user, handle: Datatype, count, data, position| {
        let Ok(n) = N::try_from(count) else {
            let why = format!("{count} elements are too many for the functions of the data representation {name:?}");
            return fail(Class::Count, why);
        };
        // SAFETY: the program's function, called as MPI 4.1 section 14.5.3 says.
        let code = unsafe { function(user, enc::<A, _>(handle), n, data, position, extra_state) };
        conversion_outcome(&name, A::err_in(code))
    }))
}

/// # Safety
/// As `register_datarep`.
unsafe fn register<A: Abi, N: TryFrom<u64> + 'static>(
    datarep: *const c_char,
    read: Conversion<A, N>,
    write: Conversion<A, N>,
    extent: ExtentFunction<A>,
    extra_state: *mut c_void,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let name = manage::representation_name(unsafe { text(datarep, "datarep")? })?.to_owned();
    let Some(extent) = extent else {
        return fail(Class::Arg, "the extent function is a null pointer");
    };
    let functions = [read, write].map(|function| function.map_or(0, |function| function as usize));
    let procedures = [functions[0], functions[1], extent as usize];
    if Procedures::from_fortran(procedures).is_some() {
        let [read, write, extent] = procedures.map(|procedure| procedure as *mut c_void);
        // SAFETY: the addresses of Fortran procedures, which a profiling tool handed on.
        return unsafe { datarep::registered::<A>(name, read, write, extent, extra_state as isize) };
    }
    let (read, write) = (converter::<A, N>(&name, read, extra_state), converter::<A, N>(&name, write, extra_state));
    let whose = name.clone();
    let extent = Box::new(move |handle: Datatype| {
        let mut value = 0;
        // SAFETY: as in `converter`.
        let code = unsafe { extent(enc::<A, handle::Datatype>(handle), &raw mut value, extra_state) };
        conversion_outcome(&whose, A::err_in(code))?;
        Ok(value as i64)
    });
    representation::register(Registered { name, read, write, extent })
}

crate::entry_points! {
    /// `MPI_Register_datarep`.
    active fn register_datarep = "MPI_Register_datarep"(
        datarep: *const c_char, read: Conversion<A, c_int>, write: Conversion<A, c_int>, extent: ExtentFunction<A>,
        extra_state: *mut c_void,
    ) for Target::File(File::NULL) => {
        register::<A, c_int>(datarep, read, write, extent, extra_state)?;
    }

    /// `MPI_Register_datarep_c`.
    active fn register_datarep_c = "MPI_Register_datarep_c"(
        datarep: *const c_char, read: Conversion<A, i64>, write: Conversion<A, i64>, extent: ExtentFunction<A>,
        extra_state: *mut c_void,
    ) for Target::File(File::NULL) => {
        register::<A, i64>(datarep, read, write, extent, extra_state)?;
    }
}

/// The table of this chapter, without the data accesses.
#[macro_export]
macro_rules! c_table_io {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::io];
            fn MPI_File_open = file_open(comm: $crate::abi::CComm<$A>, filename: *const c_char, amode: c_int, info: $crate::abi::CInfo<$A>, fh: *mut $crate::abi::CFile<$A>) -> c_int;
            fn MPI_File_close = file_close(fh: *mut $crate::abi::CFile<$A>) -> c_int;
            fn MPI_File_delete = file_delete(filename: *const c_char, info: $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_File_set_size = file_set_size(fh: $crate::abi::CFile<$A>, size: i64) -> c_int;
            fn MPI_File_preallocate = file_preallocate(fh: $crate::abi::CFile<$A>, size: i64) -> c_int;
            fn MPI_File_get_size = file_get_size(fh: $crate::abi::CFile<$A>, size: *mut i64) -> c_int;
            fn MPI_File_get_group = file_get_group(fh: $crate::abi::CFile<$A>, group: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_File_get_amode = file_get_amode(fh: $crate::abi::CFile<$A>, amode: *mut c_int) -> c_int;
            fn MPI_File_set_info = file_set_info(fh: $crate::abi::CFile<$A>, info: $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_File_get_info = file_get_info(fh: $crate::abi::CFile<$A>, info_used: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_File_set_view = file_set_view(fh: $crate::abi::CFile<$A>, disp: i64, etype: $crate::abi::CDatatype<$A>, filetype: $crate::abi::CDatatype<$A>, datarep: *const c_char, info: $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_File_get_view = file_get_view(fh: $crate::abi::CFile<$A>, disp: *mut i64, etype: *mut $crate::abi::CDatatype<$A>, filetype: *mut $crate::abi::CDatatype<$A>, datarep: *mut c_char) -> c_int;
            fn MPI_File_seek = file_seek(fh: $crate::abi::CFile<$A>, offset: i64, whence: c_int) -> c_int;
            fn MPI_File_get_position = file_get_position(fh: $crate::abi::CFile<$A>, offset: *mut i64) -> c_int;
            fn MPI_File_get_byte_offset = file_get_byte_offset(fh: $crate::abi::CFile<$A>, offset: i64, disp: *mut i64) -> c_int;
            fn MPI_File_seek_shared = file_seek_shared(fh: $crate::abi::CFile<$A>, offset: i64, whence: c_int) -> c_int;
            fn MPI_File_get_position_shared = file_get_position_shared(fh: $crate::abi::CFile<$A>, offset: *mut i64) -> c_int;
            fn MPI_File_get_type_extent = file_get_type_extent(fh: $crate::abi::CFile<$A>, datatype: $crate::abi::CDatatype<$A>, extent: *mut isize) -> c_int;
            fn MPI_File_set_atomicity = file_set_atomicity(fh: $crate::abi::CFile<$A>, flag: c_int) -> c_int;
            fn MPI_File_get_atomicity = file_get_atomicity(fh: $crate::abi::CFile<$A>, flag: *mut c_int) -> c_int;
            fn MPI_File_sync = file_sync(fh: $crate::abi::CFile<$A>) -> c_int;
            fn MPI_Register_datarep = register_datarep(datarep: *const c_char, read: $crate::c::io::Conversion<$A, c_int>, write: $crate::c::io::Conversion<$A, c_int>, extent: $crate::c::io::ExtentFunction<$A>, extra_state: *mut c_void) -> c_int;
        }
    };
}

/// Its large-count functions.
#[macro_export]
macro_rules! c_table_io_c {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::io];
            fn MPI_File_get_type_extent_c = file_get_type_extent(fh: $crate::abi::CFile<$A>, datatype: $crate::abi::CDatatype<$A>, extent: *mut isize) -> c_int;
            fn MPI_Register_datarep_c = register_datarep_c(datarep: *const c_char, read: $crate::c::io::Conversion<$A, i64>, write: $crate::c::io::Conversion<$A, i64>, extent: $crate::c::io::ExtentFunction<$A>, extra_state: *mut c_void) -> c_int;
        }
    };
}
