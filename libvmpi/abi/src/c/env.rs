//! The environment: start and end, versions, error codes, timers, memory (MPI 4.1 chapters 9 and 11), and vmpi's own
//! clocks (MPIX_).

use super::args::{not_null, put_text, text};
use crate::abi::{Abi, CComm, CInfo, dec};
use crate::entry::{self, Target};
use crate::numbers::LASTCODE;
use std::ffi::{c_char, c_double, c_int, c_longlong, c_void};
use vmpi_core::errhandler::codes;
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::Comm;
use vmpi_core::{clock, comm, consts, face, info, init, overlap, process, regions, thread_level};

/// What MPI_Alloc_mem gives at least: a cache line.
const ALIGNMENT_BYTES: usize = 64;

/// Start MPI, once.
fn start<A: Abi>(required: i32) -> Result<i32> {
    if process::is_finalized() {
        return fail(Class::Other, "MPI was finalized already, and it cannot be started twice");
    }
    if process::is_initialized() {
        return fail(Class::Other, "MPI is initialized already");
    }
    face::adopt(A::FACE);
    let level = init::init(A::NAME, required)?;
    overlap::begin();
    Ok(level)
}

/// An alignment asked for by the hint of MPI 4.1 section 10.1 (a power of two), or the usual one.
fn alignment(hints: &info::Entries) -> usize {
    hints
        .get(b"mpi_minimum_memory_alignment")
        .and_then(|value| std::str::from_utf8(value).ok()?.trim().parse::<usize>().ok())
        .filter(|bytes| bytes.is_power_of_two())
        .map_or(ALIGNMENT_BYTES, |bytes| bytes.max(ALIGNMENT_BYTES))
}

/// MPI_Abort: say who called it, and end the job, or what the communicator has of it.
fn end_job(comm: Comm, code: c_int) -> Result<()> {
    let pid = std::process::id();
    let who = if process::is_active() {
        let (rank, size) = process::world();
        format!("rank {rank} of {size} (process {pid})")
    } else {
        format!("process {pid}, outside MPI_Init and MPI_Finalize,")
    };
    let said =
        |communicator: &str| format!("{who} called MPI_Abort with error code {code} (communicator: {communicator})");
    match comm::get(comm) {
        Ok(comm) => process::abort_group(code, &said(&comm.describe()), comm.job_ranks()),
        Err(error) => process::abort(code, &said(&error.message)),
    }
}

/// A code that the program asks about, in the core's numbers, if it is one. Tools show what they get, so a number up to
/// MPI_ERR_LASTCODE that is none may be asked about, too.
fn code<A: Abi>(asked: c_int) -> Result<Option<i32>> {
    let code = A::err_in(asked);
    if codes::is_known(code) {
        return Ok(Some(code));
    }
    if (0..=A::err_out(LASTCODE)).contains(&asked) {
        return Ok(None);
    }
    fail(Class::Arg, format!("{asked} is not an error code"))
}

crate::entry_points! {
    /// `MPI_Init`; the arguments of main are not needed. The level of threads is the environment's to say, else that of one thread.
    anytime fn init = "MPI_Init"(_argc: *mut c_int, _argv: *mut *mut *mut c_char) => {
        start::<A>(thread_level::of_init()?)?;
    }

    /// `MPI_Init_thread`.
    anytime fn init_thread = "MPI_Init_thread"(
        _argc: *mut c_int, _argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int,
    ) => {
        not_null(provided, "provided")?;
        let level = A::thread_in(required);
        let levels = [
            consts::THREAD_SINGLE, consts::THREAD_FUNNELED, consts::THREAD_SERIALIZED, consts::THREAD_MULTIPLE,
        ];
        if !levels.contains(&level) {
            return fail(Class::Arg, format!("{required} is not a level of thread support"));
        }
        *provided = A::thread_out(start::<A>(level)?);
    }

    /// `MPI_Finalize`.
    active fn finalize = "MPI_Finalize"() for Target::Process => {
        init::finalize()?;
    }

    /// `MPI_Initialized`.
    anytime fn initialized = "MPI_Initialized"(flag: *mut c_int) => {
        not_null(flag, "flag")?;
        *flag = c_int::from(process::is_initialized());
    }

    /// `MPI_Finalized`.
    anytime fn finalized = "MPI_Finalized"(flag: *mut c_int) => {
        not_null(flag, "flag")?;
        *flag = c_int::from(process::is_finalized());
    }

    /// `MPI_Abort`: ends the whole job, whatever the communicator, unless the job survives deaths (`--enable-recovery`).
    at_once fn abort = "MPI_Abort"(comm: CComm<A>, errorcode: c_int) => {
        end_job(dec::<A, _>(comm), errorcode)?;
    }

    /// `MPI_Get_version`.
    anytime fn get_version = "MPI_Get_version"(version: *mut c_int, subversion: *mut c_int) => {
        not_null(version, "version")?;
        not_null(subversion, "subversion")?;
        (*version, *subversion) = A::VERSION;
    }

    /// `MPI_Get_library_version`.
    anytime fn get_library_version = "MPI_Get_library_version"(version: *mut c_char, length: *mut c_int) => {
        not_null(version, "version")?;
        not_null(length, "resultlen")?;
        let own = match A::RELEASE {
            "" => format!("vmpi {} (virtualized MPI, with the ABI of {})", env!("CARGO_PKG_VERSION"), A::NAME),
            its => format!("{its} (its ABI; this is vmpi {}, a virtualized MPI)", env!("CARGO_PKG_VERSION")),
        };
        *length = put_text(version, A::MAX_LIBRARY_VERSION_STRING, own.as_bytes());
    }

    /// `MPI_Get_processor_name`.
    active fn get_processor_name = "MPI_Get_processor_name"(name: *mut c_char, length: *mut c_int)
        for Target::Process =>
    {
        not_null(name, "name")?;
        not_null(length, "resultlen")?;
        *length = put_text(name, A::MAX_PROCESSOR_NAME, process::processor_name().as_bytes());
    }

    /// `MPI_Query_thread`.
    active fn query_thread = "MPI_Query_thread"(provided: *mut c_int) for Target::Process => {
        not_null(provided, "provided")?;
        *provided = A::thread_out(process::thread_level());
    }

    /// `MPI_Is_thread_main`.
    active fn is_thread_main = "MPI_Is_thread_main"(flag: *mut c_int) for Target::Process => {
        not_null(flag, "flag")?;
        *flag = c_int::from(process::is_thread_main());
    }

    /// `MPI_Error_class`.
    anytime fn error_class = "MPI_Error_class"(errorcode: c_int, errorclass: *mut c_int) => {
        not_null(errorclass, "errorclass")?;
        *errorclass = A::err_out(code::<A>(errorcode)?.map_or(Class::Unknown, codes::error_class).0);
    }

    /// `MPI_Error_string`.
    anytime fn error_string = "MPI_Error_string"(errorcode: c_int, string: *mut c_char, length: *mut c_int) => {
        not_null(string, "string")?;
        not_null(length, "resultlen")?;
        let meaning = code::<A>(errorcode)?
            .map_or_else(|| format!("{errorcode} is not an MPI error code"), codes::error_string);
        *length = put_text(string, A::MAX_ERROR_STRING, meaning.as_bytes());
    }

    /// `MPI_Add_error_class`.
    active fn add_error_class = "MPI_Add_error_class"(errorclass: *mut c_int) for Target::Process => {
        not_null(errorclass, "errorclass")?;
        *errorclass = A::err_out(codes::add_error_class());
    }

    /// `MPI_Add_error_code`.
    active fn add_error_code = "MPI_Add_error_code"(errorclass: c_int, errorcode: *mut c_int) for Target::Process => {
        not_null(errorcode, "errorcode")?;
        *errorcode = A::err_out(codes::add_error_code(A::err_in(errorclass))?);
    }

    /// `MPI_Add_error_string`.
    active fn add_error_string = "MPI_Add_error_string"(errorcode: c_int, string: *const c_char)
        for Target::Process =>
    {
        let string = text(string, "string")?;
        codes::add_error_string(A::err_in(errorcode), &String::from_utf8_lossy(string))?;
    }

    /// `MPI_Alloc_mem`; `baseptr` points to where the address goes.
    active fn alloc_mem = "MPI_Alloc_mem"(size: isize, info: CInfo<A>, baseptr: *mut c_void) for Target::Process => {
        let Ok(bytes) = usize::try_from(size) else {
            return fail(Class::Arg, format!("size is {size}, it must not be negative"));
        };
        let hints = info::hints(dec::<A, _>(info))?;
        not_null(baseptr, "baseptr")?;
        let mut memory = std::ptr::null_mut();
        // One byte at least: an address that can be freed.
        if libc::posix_memalign(&raw mut memory, alignment(&hints), bytes.max(1)) != 0 {
            return fail(Class::NoMem, format!("{bytes} bytes could not be allocated"));
        }
        baseptr.cast::<*mut c_void>().write(memory);
    }

    /// `MPI_Free_mem`; null is allowed.
    active fn free_mem = "MPI_Free_mem"(base: *mut c_void) for Target::Process => {
        libc::free(base);
    }

    /// `MPIX_Start_processor_timer`: the core-POV timer of the caller's core runs (EuroMPI'20 paper, listing 3).
    active fn start_processor_timer = "MPIX_Start_processor_timer"() for Target::Process => {
        clock::start_processor_timer();
    }

    /// `MPIX_Stop_processor_timer`: and stops.
    active fn stop_processor_timer = "MPIX_Stop_processor_timer"() for Target::Process => {
        clock::stop_processor_timer();
    }

    /// `MPIX_Rcounter`: what this rank has counted of an event (`vmpirun --counters`).
    active fn rcounter = "MPIX_Rcounter"(event: *const c_char, count: *mut c_longlong) for Target::Process => {
        not_null(count, "count")?;
        *count = clock::rcounter(&String::from_utf8_lossy(text(event, "event")?))?.cast_signed();
    }

    /// `MPIX_Pcounter`: what ranks have counted on the caller's core in metered sections.
    active fn pcounter = "MPIX_Pcounter"(event: *const c_char, count: *mut c_longlong) for Target::Process => {
        not_null(count, "count")?;
        *count = clock::pcounter(&String::from_utf8_lossy(text(event, "event")?))?.cast_signed();
    }

    /// `MPIX_Compute`: in a simulated job, compute for so many seconds of virtual time.
    active fn mpix_compute = "MPIX_Compute"(seconds: c_double) for Target::Process => {
        vmpi_core::simulate::compute(seconds)?;
    }

    /// `MPIX_Yield`: let the next ready rank of this core run.
    active fn mpix_yield = "MPIX_Yield"() for Target::Process => {
        process::yield_core();
    }
}

/// `MPI_Pcontrol` (MPI 4.1 section 15.2.4). It is variadic in C; on this machine a function with its fixed argument and one more may be called so: `label`
/// is what lies where that is passed, and means nothing unless the user says so. Works at any time.
///
/// # Safety
/// None is needed; entry points have this form.
pub unsafe fn pcontrol<A: Abi>(level: c_int, label: *const c_char) -> c_int {
    regions::control(level, label);
    0
}

/// The name of a region goes to `note`, if somebody wants to know.
///
/// # Safety
/// `name` must be a string, or null, which is refused.
unsafe fn region<A: Abi>(function: &'static str, name: *const c_char, note: fn(&[u8])) -> c_int {
    if !regions::are_wanted() {
        return 0;
    }
    // SAFETY: the caller's promise.
    match unsafe { text(name, "name") } {
        Ok(name) => {
            note(name);
            0
        }
        Err(error) => entry::run_any_time::<A>(function, || Err(error)),
    }
}

/// `MPIX_Region_begin`: a part of the program begins that it names itself. Works at any time.
///
/// # Safety
/// `name` must be a string.
pub unsafe fn region_begin<A: Abi>(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { region::<A>("MPIX_Region_begin", name, regions::begin) }
}

/// `MPIX_Region_end`: and ends.
///
/// # Safety
/// `name` must be a string.
pub unsafe fn region_end<A: Abi>(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { region::<A>("MPIX_Region_end", name, regions::end) }
}

macro_rules! clocks {
    ($($(#[$doc:meta])* $func:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// None is needed; entry points have this form.
        pub unsafe fn $func<A: Abi>() -> c_double {
            clock::$func()
        }
    )*};
}

clocks! {
    /// `MPI_Wtime`: seconds; works at any time.
    wtime;
    /// `MPI_Wtick`: seconds.
    wtick;
    /// `MPIX_Rtime`: process-POV clock in seconds (EuroMPI'20 paper, listing 2).
    rtime;
    /// `MPIX_Ptime`: core-POV timer in seconds (EuroMPI'20 paper, listing 3).
    ptime;
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_env {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::env];
            fn MPI_Init = init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int;
            fn MPI_Init_thread = init_thread(argc: *mut c_int, argv: *mut *mut *mut c_char, required: c_int, provided: *mut c_int) -> c_int;
            fn MPI_Finalize = finalize() -> c_int;
            fn MPI_Initialized = initialized(flag: *mut c_int) -> c_int;
            fn MPI_Finalized = finalized(flag: *mut c_int) -> c_int;
            fn MPI_Abort = abort(comm: $crate::abi::CComm<$A>, errorcode: c_int) -> c_int;
            fn MPI_Get_version = get_version(version: *mut c_int, subversion: *mut c_int) -> c_int;
            fn MPI_Get_library_version = get_library_version(version: *mut c_char, length: *mut c_int) -> c_int;
            fn MPI_Get_processor_name = get_processor_name(name: *mut c_char, length: *mut c_int) -> c_int;
            fn MPI_Query_thread = query_thread(provided: *mut c_int) -> c_int;
            fn MPI_Is_thread_main = is_thread_main(flag: *mut c_int) -> c_int;
            fn MPI_Error_class = error_class(errorcode: c_int, errorclass: *mut c_int) -> c_int;
            fn MPI_Error_string = error_string(errorcode: c_int, string: *mut c_char, length: *mut c_int) -> c_int;
            fn MPI_Add_error_class = add_error_class(errorclass: *mut c_int) -> c_int;
            fn MPI_Add_error_code = add_error_code(errorclass: c_int, errorcode: *mut c_int) -> c_int;
            fn MPI_Add_error_string = add_error_string(errorcode: c_int, string: *const c_char) -> c_int;
            fn MPI_Pcontrol = pcontrol(level: c_int, label: *const c_char) -> c_int;
            fn MPI_Alloc_mem = alloc_mem(size: isize, info: $crate::abi::CInfo<$A>, baseptr: *mut c_void) -> c_int;
            fn MPI_Free_mem = free_mem(base: *mut c_void) -> c_int;
            fn MPI_Wtime = wtime() -> c_double;
            fn MPI_Wtick = wtick() -> c_double;
            fn MPIX_Rtime = rtime() -> c_double;
            fn MPIX_Ptime = ptime() -> c_double;
            fn MPIX_Start_processor_timer = start_processor_timer() -> c_int;
            fn MPIX_Stop_processor_timer = stop_processor_timer() -> c_int;
            fn MPIX_Rcounter = rcounter(event: *const c_char, count: *mut std::ffi::c_longlong) -> c_int;
            fn MPIX_Pcounter = pcounter(event: *const c_char, count: *mut std::ffi::c_longlong) -> c_int;
            fn MPIX_Region_begin = region_begin(name: *const c_char) -> c_int;
            fn MPIX_Region_end = region_end(name: *const c_char) -> c_int;
            fn MPIX_Yield = mpix_yield() -> c_int;
            fn MPIX_Compute = mpix_compute(seconds: c_double) -> c_int;
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alignment_hint_must_be_a_power_of_two() {
        let mut hints = info::Entries::default();
        assert_eq!(alignment(&hints), 64);
        for (value, bytes) in [("4096", 4096), ("16", 64), ("100", 64), ("x", 64)] {
            hints.set(b"mpi_minimum_memory_alignment", value.as_bytes());
            assert_eq!(alignment(&hints), bytes);
        }
    }
}
