//! Windows: making, freeing, asking (MPI 4.1 section 12.2).

use super::args::{handle_at, not_null, on_comm, put_text, text};
use super::number::Number;
use crate::abi::{Abi, CComm, CGroup, CInfo, CWin, dec, enc};
use crate::entry::Target;
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;
use vmpi_core::attr::{self, Value};
use vmpi_core::comm::{self, Communicator};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Handle, Win};
use vmpi_core::rma::{self, Ask, Memory, Window};
use vmpi_core::{consts, group, info};

/// The error handler of a window argument.
pub fn on_win<A: Abi>(win: CWin<A>) -> Target {
    Target::Win(dec::<A, _>(win))
}

/// The window of an argument.
pub fn get<A: Abi>(win: CWin<A>) -> Result<Rc<Window>> {
    rma::get_window(dec::<A, _>(win))
}

fn size_in(size: isize) -> Result<u64> {
    match u64::try_from(size) {
        Ok(size) => Ok(size),
        Err(_) => fail(Class::Size, format!("the size is {size}, which is negative")),
    }
}

fn unit_in(unit: i64) -> Result<i64> {
    if unit <= 0 {
        return fail(Class::Disp, format!("the displacement unit is {unit}, it must be positive"));
    }
    Ok(unit)
}

/// Make a window and give it its predefined attributes, in this face's numbers.
///
/// # Safety
/// `win` must be null or writable.
unsafe fn make<A: Abi>(comm: &Rc<Communicator>, ask: &Ask, win: *mut CWin<A>) -> Result<Rc<Window>> {
    let window = rma::create(comm, ask)?;
    let handle = window.handle();
    let (base, bytes, unit) = window.own();
    for (keyval, value) in [
        (consts::WIN_BASE, Value::Pointer(base)),
        (consts::WIN_SIZE, Value::Address(bytes as isize)),
        (consts::WIN_DISP_UNIT, Value::Address(unit as isize)),
        (consts::WIN_CREATE_FLAVOR, Value::Integer(A::win_flavor_out(window.flavor))),
        (consts::WIN_MODEL, Value::Integer(A::win_model_out(consts::WIN_UNIFIED))),
    ] {
        attr::set_predefined(attr::Kind::Win, handle.raw(), keyval, value);
    }
    // SAFETY: checked by the callers not to be null, and writable as they promise.
    unsafe { *win = enc::<A, _>(handle) };
    Ok(window)
}

fn hints<A: Abi>(info: CInfo<A>) -> Result<Rc<info::Entries>> {
    info::hints(dec::<A, _>(info))
}

/// # Safety
/// As MPI_Win_shared_query and MPI_Win_shared_query_c.
unsafe fn shared_query<A: Abi, N: Number>(
    (win, rank): (CWin<A>, c_int),
    size: *mut isize,
    disp_unit: *mut N,
    baseptr: *mut c_void,
) -> Result<()> {
    let (bytes, unit, base) = get::<A>(win)?.shared_query(A::rank_in(rank))?;
    not_null(size, "size")?;
    not_null(disp_unit, "disp_unit")?;
    not_null(baseptr, "baseptr")?;
    let given = N::from_i64(unit);
    if given.get() != unit {
        return fail(Class::ValueTooLarge, format!("the displacement unit {unit} does not fit an int"));
    }
    // SAFETY: the caller's.
    unsafe {
        size.write_unaligned(bytes as isize);
        disp_unit.write_unaligned(given);
        baseptr.cast::<usize>().write_unaligned(base);
    }
    Ok(())
}

crate::entry_points! {
    /// `MPI_Win_create`.
    active fn win_create = "MPI_Win_create"(
        base: *mut c_void, size: isize, disp_unit: impl Into<i64>, info: CInfo<A>, comm: CComm<A>, win: *mut CWin<A>,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get_intra(dec::<A, _>(comm))?;
        let hints = hints::<A>(info)?;
        let (bytes, unit) = (size_in(size)?, unit_in(disp_unit.into())?);
        not_null(win, "win")?;
        let base = A::buf_in(base) as usize;
        if base == consts::BOTTOM && bytes > 0 {
            return fail(Class::Arg, format!("the base address is null, but the size is {bytes}"));
        }
        make::<A>(&comm, &Ask { memory: Memory::Own { base, bytes }, unit, hints }, win)?;
    }

    /// `MPI_Win_allocate`; `baseptr` points to where the address goes.
    active fn win_allocate = "MPI_Win_allocate"(
        size: isize, disp_unit: impl Into<i64>, info: CInfo<A>, comm: CComm<A>, baseptr: *mut c_void,
        win: *mut CWin<A>,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get_intra(dec::<A, _>(comm))?;
        let hints = hints::<A>(info)?;
        let (bytes, unit) = (size_in(size)?, unit_in(disp_unit.into())?);
        not_null(baseptr, "baseptr")?;
        not_null(win, "win")?;
        let window = make::<A>(&comm, &Ask { memory: Memory::Allocate { bytes }, unit, hints }, win)?;
        baseptr.cast::<usize>().write_unaligned(window.own().0);
    }

    /// `MPI_Win_allocate_shared`.
    active fn win_allocate_shared = "MPI_Win_allocate_shared"(
        size: isize, disp_unit: impl Into<i64>, info: CInfo<A>, comm: CComm<A>, baseptr: *mut c_void,
        win: *mut CWin<A>,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get_intra(dec::<A, _>(comm))?;
        let hints = hints::<A>(info)?;
        let (bytes, unit) = (size_in(size)?, unit_in(disp_unit.into())?);
        not_null(baseptr, "baseptr")?;
        not_null(win, "win")?;
        let apart = hints.get(b"alloc_shared_noncontig") == Some(b"true");
        let window = make::<A>(&comm, &Ask { memory: Memory::Share { bytes, apart }, unit, hints }, win)?;
        baseptr.cast::<usize>().write_unaligned(window.own().0);
    }

    /// `MPI_Win_create_dynamic`.
    active fn win_create_dynamic = "MPI_Win_create_dynamic"(info: CInfo<A>, comm: CComm<A>, win: *mut CWin<A>)
        for on_comm::<A>(comm) =>
    {
        let comm = comm::get_intra(dec::<A, _>(comm))?;
        let hints = hints::<A>(info)?;
        not_null(win, "win")?;
        make::<A>(&comm, &Ask { memory: Memory::Dynamic, unit: 1, hints }, win)?;
    }

    /// `MPI_Win_attach`.
    active fn win_attach = "MPI_Win_attach"(win: CWin<A>, base: *mut c_void, size: isize) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        let (base, bytes) = (A::buf_in(base) as usize, size_in(size)?);
        if base == consts::BOTTOM && bytes > 0 {
            return fail(Class::Arg, format!("the base address is null, but the size is {bytes}"));
        }
        window.attach(base, bytes)?;
    }

    /// `MPI_Win_detach`.
    active fn win_detach = "MPI_Win_detach"(win: CWin<A>, base: *const c_void) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        let base = A::buf_in(base) as usize;
        if base == consts::BOTTOM {
            return fail(Class::Arg, "the base address is null");
        }
        window.detach(base)?;
    }

    /// `MPI_Win_shared_query`; `baseptr` points to where the address goes.
    active fn win_shared_query = "MPI_Win_shared_query"(
        win: CWin<A>, rank: c_int, size: *mut isize, disp_unit: *mut c_int, baseptr: *mut c_void,
    ) for on_win::<A>(win) => {
        shared_query::<A, _>((win, rank), size, disp_unit, baseptr)?;
    }

    /// `MPI_Win_shared_query_c`.
    active fn win_shared_query_c = "MPI_Win_shared_query_c"(
        win: CWin<A>, rank: c_int, size: *mut isize, disp_unit: *mut isize, baseptr: *mut c_void,
    ) for on_win::<A>(win) => {
        shared_query::<A, _>((win, rank), size, disp_unit, baseptr)?;
    }

    /// `MPI_Win_free`.
    active fn win_free = "MPI_Win_free"(win: *mut CWin<A>) for {
        // SAFETY: null or the program's handle.
        unsafe { freed::<A>(win) }
    } => {
        rma::free(handle_at::<A, _>(win, "win")?)?;
        *win = enc::<A, _>(Win::NULL);
    }

    /// `MPI_Win_get_group`.
    active fn win_get_group = "MPI_Win_get_group"(win: CWin<A>, newgroup: *mut CGroup<A>) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        not_null(newgroup, "group")?;
        *newgroup = enc::<A, _>(group::insert(window.comm.local.clone()));
    }

    /// `MPI_Win_set_info`.
    active fn win_set_info = "MPI_Win_set_info"(win: CWin<A>, info: CInfo<A>) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        window.add_hints(&*info::get(dec::<A, _>(info))?);
    }

    /// `MPI_Win_get_info`.
    active fn win_get_info = "MPI_Win_get_info"(win: CWin<A>, info_used: *mut CInfo<A>) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        not_null(info_used, "info_used")?;
        *info_used = enc::<A, _>(info::insert(window.hints()));
    }

    /// `MPI_Win_set_name`.
    active fn win_set_name = "MPI_Win_set_name"(win: CWin<A>, name: *const c_char) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        let name = text(name, "win_name")?;
        window.set_name(&name[..name.len().min(A::MAX_OBJECT_NAME - 1)]);
    }

    /// `MPI_Win_get_name`; MPI_WIN_NULL has a name too (MPI 4.1 section 7.8).
    active fn win_get_name = "MPI_Win_get_name"(win: CWin<A>, name: *mut c_char, resultlen: *mut c_int)
        for on_win::<A>(win) =>
    {
        let handle: Win = dec::<A, _>(win);
        let stored = if handle.is_null() { b"MPI_WIN_NULL".to_vec() } else { get::<A>(win)?.name() };
        not_null(name, "win_name")?;
        not_null(resultlen, "resultlen")?;
        *resultlen = put_text(name, A::MAX_OBJECT_NAME, &stored);
    }
}

/// # Safety
/// `win` must be null or readable.
unsafe fn freed<A: Abi>(win: *const CWin<A>) -> Target {
    // SAFETY: the caller's promise.
    if win.is_null() { Target::Process } else { on_win::<A>(unsafe { win.read() }) }
}

/// The table of windows.
#[macro_export]
macro_rules! c_table_win {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::win];
            fn MPI_Win_create = win_create(base: *mut c_void, size: isize, disp_unit: c_int, info: $crate::abi::CInfo<$A>, comm: $crate::abi::CComm<$A>, win: *mut $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_allocate = win_allocate(size: isize, disp_unit: c_int, info: $crate::abi::CInfo<$A>, comm: $crate::abi::CComm<$A>, baseptr: *mut c_void, win: *mut $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_allocate_shared = win_allocate_shared(size: isize, disp_unit: c_int, info: $crate::abi::CInfo<$A>, comm: $crate::abi::CComm<$A>, baseptr: *mut c_void, win: *mut $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_create_dynamic = win_create_dynamic(info: $crate::abi::CInfo<$A>, comm: $crate::abi::CComm<$A>, win: *mut $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_attach = win_attach(win: $crate::abi::CWin<$A>, base: *mut c_void, size: isize) -> c_int;
            fn MPI_Win_detach = win_detach(win: $crate::abi::CWin<$A>, base: *const c_void) -> c_int;
            fn MPI_Win_shared_query = win_shared_query(win: $crate::abi::CWin<$A>, rank: c_int, size: *mut isize, disp_unit: *mut c_int, baseptr: *mut c_void) -> c_int;
            fn MPI_Win_free = win_free(win: *mut $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_get_group = win_get_group(win: $crate::abi::CWin<$A>, newgroup: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Win_set_info = win_set_info(win: $crate::abi::CWin<$A>, info: $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Win_get_info = win_get_info(win: $crate::abi::CWin<$A>, info_used: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Win_set_name = win_set_name(win: $crate::abi::CWin<$A>, name: *const c_char) -> c_int;
            fn MPI_Win_get_name = win_get_name(win: $crate::abi::CWin<$A>, name: *mut c_char, resultlen: *mut c_int) -> c_int;
        }
    };
}

/// The functions of windows with large displacement units (MPI 4.0).
#[macro_export]
macro_rules! c_table_win_c {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::win];
            fn MPI_Win_create_c = win_create(base: *mut c_void, size: isize, disp_unit: i64, info: $crate::abi::CInfo<$A>, comm: $crate::abi::CComm<$A>, win: *mut $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_allocate_c = win_allocate(size: isize, disp_unit: i64, info: $crate::abi::CInfo<$A>, comm: $crate::abi::CComm<$A>, baseptr: *mut c_void, win: *mut $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_allocate_shared_c = win_allocate_shared(size: isize, disp_unit: i64, info: $crate::abi::CInfo<$A>, comm: $crate::abi::CComm<$A>, baseptr: *mut c_void, win: *mut $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_shared_query_c = win_shared_query_c(win: $crate::abi::CWin<$A>, rank: c_int, size: *mut isize, disp_unit: *mut isize, baseptr: *mut c_void) -> c_int;
        }
    };
}
