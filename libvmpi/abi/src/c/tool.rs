//! The tool information interface: MPI 4.1 chapter 15. Its functions return codes of their own and call no error handler.
//!
//! Its handles are opaque pointers in every face: here they hold the core's numbers, from 1 (0 is the null handle).

use super::args::put_text;
use crate::abi::{Abi, CComm, CDatatype, dec, enc};
use std::ffi::{CStr, c_char, c_int, c_void};
use vmpi_core::consts::{self, dt};
use vmpi_core::handle::{self, Datatype};
use vmpi_core::tool::{self, Failure, Kind, Result, Value, category, cvar, enumeration, pvar};

/// A handle of the tool interface.
pub type Opaque = *mut c_void;

pub(super) fn opaque(number: usize) -> Opaque {
    std::ptr::without_provenance_mut(number)
}

pub(super) const INVALID: Failure = Failure(consts::T_ERR_INVALID);

/// Run the body of a function that needs the interface to be initialized.
pub(super) fn run<A: Abi>(body: impl FnOnce() -> Result<()>) -> c_int {
    match tool::check().and_then(|()| body()) {
        Ok(()) => 0,
        Err(Failure(code)) => A::err_out(code),
    }
}

/// An output argument that must not be null.
///
/// # Safety
/// `pointer` is null or valid for writes.
pub(super) unsafe fn put<T>(pointer: *mut T, value: T) -> Result<()> {
    if pointer.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, and the caller's promise.
    unsafe { pointer.write(value) };
    Ok(())
}

/// An output argument that the caller may not want.
///
/// # Safety
/// As [`put`].
pub(super) unsafe fn offer<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: not null, and the caller's promise.
        unsafe { pointer.write(value) };
    }
}

/// A string result: cut to `*length` bytes with its NUL; `*length` becomes the room needed. Without `text`, or with a
/// length of 0, only the room is told (MPI 4.1 section 15.3.3).
///
/// # Safety
/// Both are null or valid for writes, `text` with room for `*length` bytes.
pub(super) unsafe fn offer_text(text: *mut c_char, length: *mut c_int, string: &str) {
    if length.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        if !text.is_null() && *length > 0 {
            put_text(text, *length as usize, string.as_bytes());
        }
        *length = string.len() as c_int + 1;
    }
}

/// A name argument.
///
/// # Safety
/// `name` is null or a string with a NUL.
pub(super) unsafe fn name_at<'a>(name: *const c_char) -> Result<&'a [u8]> {
    if name.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, and the caller's promise.
    Ok(unsafe { CStr::from_ptr(name) }.to_bytes())
}

pub(super) fn datatype_of<A: Abi>(kind: Kind) -> CDatatype<A> {
    enc::<A, Datatype>(match kind {
        Kind::Int => dt::INT,
        Kind::Count => dt::UNSIGNED_LONG_LONG,
        Kind::Seconds => dt::DOUBLE,
        Kind::Text => dt::CHAR,
    })
}

fn enum_handle(index: Option<usize>) -> Opaque {
    opaque(index.map_or(0, |index| index + 1))
}

/// Copy a value to the program's buffer.
///
/// # Safety
/// `buffer` is null or has room for it.
pub(super) unsafe fn store(value: Value, buffer: *mut c_void) -> Result<()> {
    if buffer.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, and the caller's promise.
    unsafe {
        match value {
            Value::Int(value) => buffer.cast::<c_int>().write_unaligned(value),
            Value::Count(value) => buffer.cast::<u64>().write_unaligned(value),
            Value::Seconds(value) => buffer.cast::<f64>().write_unaligned(value),
            Value::Text(text) => {
                put_text(buffer.cast(), text.len() + 1, text.as_bytes());
            }
        }
    }
    Ok(())
}

/// Bytes from one value of a variable with several to the next one: they are counters.
const STRIDE: usize = size_of::<u64>();

/// Copy all values of a handle to the program's buffer.
///
/// # Safety
/// `buffer` is null or has room for them.
unsafe fn store_all(values: &[Value], buffer: *mut c_void) -> Result<()> {
    for (index, value) in values.iter().enumerate() {
        // A null pointer stays the same for the first one, which is refused.
        // SAFETY: the caller's promise.
        unsafe { store(*value, buffer.cast::<u8>().wrapping_add(index * STRIDE).cast())? };
    }
    Ok(())
}

/// A value from the program's buffer; no text can be written.
///
/// # Safety
/// `buffer` is null or holds one.
unsafe fn load(kind: Kind, buffer: *const c_void) -> Result<Value> {
    if buffer.is_null() {
        return Err(INVALID);
    }
    // SAFETY: not null, and the caller's promise.
    unsafe {
        Ok(match kind {
            Kind::Int => Value::Int(buffer.cast::<c_int>().read_unaligned()),
            Kind::Count => Value::Count(buffer.cast::<u64>().read_unaligned()),
            Kind::Seconds => Value::Seconds(buffer.cast::<f64>().read_unaligned()),
            Kind::Text => return Err(Failure(consts::T_ERR_CVAR_SET_NEVER)),
        })
    }
}

/// Elements of a variable's datatype that a value has.
fn count_of(value: Value) -> c_int {
    if let Value::Text(text) = value { text.len() as c_int + 1 } else { 1 }
}

fn session_of(session: Opaque) -> usize {
    session.addr()
}

/// Is this MPI_T_PVAR_ALL_HANDLES?
fn is_all<A: Abi>(handle: Opaque) -> bool {
    A::is_all_handles(handle)
}

/// Functions of the interface, each of which wants it initialized.
#[macro_export]
#[doc(hidden)]
macro_rules! tool_functions {
    ($(
        $(#[$doc:meta])*
        fn $func:ident ( $($arg:ident : $ty:ty),* $(,)? ) $body:block
    )*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// Pointers must be what MPI says of this function's arguments, or null where it refuses or allows null.
        #[allow(clippy::too_many_arguments)] // As many as MPI says.
        pub unsafe fn $func<A: Abi>($($arg: $ty),*) -> c_int {
            $crate::c::tool::run::<A>(|| {
                // SAFETY: the caller keeps MPI's contract for the arguments.
                #[allow(unused_unsafe, clippy::macro_metavars_in_unsafe)]
                unsafe { $body }
                Ok(())
            })
        }
    )*};
}

/// `MPI_T_init_thread`: every level is granted.
///
/// # Safety
/// `provided` is null or valid for writes.
pub unsafe fn t_init_thread<A: Abi>(required: c_int, provided: *mut c_int) -> c_int {
    if provided.is_null() {
        return A::err_out(consts::T_ERR_INVALID);
    }
    tool::init();
    // SAFETY: not null, and the caller's promise.
    unsafe { provided.write(required) };
    0
}

/// `MPI_T_finalize`.
///
/// # Safety
/// None is needed; entry points have this form.
pub unsafe fn t_finalize<A: Abi>() -> c_int {
    run::<A>(tool::finalize)
}

tool_functions! {
    /// `MPI_T_enum_get_info`.
    fn t_enum_get_info(handle: Opaque, count: *mut c_int, name: *mut c_char, name_len: *mut c_int) {
        let known = enumeration::get(handle.addr().wrapping_sub(1))?;
        offer(count, known.items.len() as c_int);
        offer_text(name, name_len, known.name);
    }

    /// `MPI_T_enum_get_item`.
    fn t_enum_get_item(handle: Opaque, index: c_int, value: *mut c_int, name: *mut c_char, name_len: *mut c_int) {
        let known = enumeration::get(handle.addr().wrapping_sub(1))?;
        let item = usize::try_from(index).ok().and_then(|index| known.items.get(index));
        let (number, text) = item.ok_or(Failure(consts::T_ERR_INVALID_INDEX))?;
        offer(value, *number);
        offer_text(name, name_len, text);
    }

    /// `MPI_T_cvar_get_num`.
    fn t_cvar_get_num(count: *mut c_int) {
        put(count, cvar::ALL.len() as c_int)?;
    }

    /// `MPI_T_cvar_get_info`.
    fn t_cvar_get_info(
        index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, datatype: *mut CDatatype<A>,
        enumtype: *mut Opaque, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int, scope: *mut c_int,
    ) {
        let known = cvar::get(index)?;
        offer_text(name, name_len, known.name);
        offer(verbosity, A::NUMBERS.tool_verbosities.to_face(known.verbosity as i32));
        offer(datatype, datatype_of::<A>(known.kind));
        offer(enumtype, enum_handle(known.enumeration));
        offer_text(desc, desc_len, known.description);
        offer(bind, A::NUMBERS.tool_bindings.to_face(consts::T_BIND_NO_OBJECT));
        offer(scope, A::NUMBERS.tool_scopes.to_face(known.scope()));
    }

    /// `MPI_T_cvar_get_index`.
    fn t_cvar_get_index(name: *const c_char, index: *mut c_int) {
        put(index, cvar::index_of(name_at(name)?)? as c_int)?;
    }

    /// `MPI_T_cvar_handle_alloc`; the object is not looked at, no variable belongs to one.
    fn t_cvar_handle_alloc(index: c_int, _object: *mut c_void, handle: *mut Opaque, count: *mut c_int) {
        let known = cvar::get(index)?;
        if handle.is_null() || count.is_null() {
            return Err(INVALID);
        }
        handle.write(opaque(cvar::allocate(index)?));
        count.write(count_of(known.read()));
    }

    /// `MPI_T_cvar_handle_free`.
    fn t_cvar_handle_free(handle: *mut Opaque) {
        if handle.is_null() {
            return Err(INVALID);
        }
        cvar::free(handle.read().addr())?;
        handle.write(opaque(0));
    }

    /// `MPI_T_cvar_read`.
    fn t_cvar_read(handle: Opaque, buffer: *mut c_void) {
        store(cvar::of_handle(handle.addr())?.read(), buffer)?;
    }

    /// `MPI_T_cvar_write`.
    fn t_cvar_write(handle: Opaque, buffer: *const c_void) {
        let known = cvar::of_handle(handle.addr())?;
        cvar::write(known, load(known.kind, buffer)?)?;
    }

    /// `MPI_T_pvar_get_num`.
    fn t_pvar_get_num(count: *mut c_int) {
        put(count, pvar::ALL.len() as c_int)?;
    }

    /// `MPI_T_pvar_get_info`.
    fn t_pvar_get_info(
        index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, class: *mut c_int,
        datatype: *mut CDatatype<A>, enumtype: *mut Opaque, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int,
        readonly: *mut c_int, continuous: *mut c_int, atomic: *mut c_int,
    ) {
        let known = pvar::get(index)?;
        let fixed = c_int::from(known.is_continuous());
        offer_text(name, name_len, known.name);
        offer(verbosity, A::NUMBERS.tool_verbosities.to_face(known.verbosity as i32));
        offer(class, A::NUMBERS.tool_classes.to_face(known.class));
        offer(datatype, datatype_of::<A>(known.kind));
        offer(enumtype, enum_handle(known.enumeration));
        offer_text(desc, desc_len, known.description);
        let bound = if known.is_of_comm() { consts::T_BIND_MPI_COMM } else { consts::T_BIND_NO_OBJECT };
        offer(bind, A::NUMBERS.tool_bindings.to_face(bound));
        offer(readonly, fixed);
        offer(continuous, fixed);
        offer(atomic, 1 - fixed);
    }

    /// `MPI_T_pvar_get_index`.
    fn t_pvar_get_index(name: *const c_char, class: c_int, index: *mut c_int) {
        put(index, pvar::index_of(name_at(name)?, A::NUMBERS.tool_classes.to_core(class))? as c_int)?;
    }

    /// `MPI_T_pvar_session_create`.
    fn t_pvar_session_create(session: *mut Opaque) {
        if session.is_null() {
            return Err(INVALID);
        }
        session.write(opaque(pvar::create_session()));
    }

    /// `MPI_T_pvar_session_free`.
    fn t_pvar_session_free(session: *mut Opaque) {
        if session.is_null() {
            return Err(INVALID);
        }
        pvar::free_session(session_of(session.read()))?;
        session.write(opaque(0));
    }

    /// `MPI_T_pvar_handle_alloc`.
    fn t_pvar_handle_alloc(
        session: Opaque, index: c_int, object: *mut c_void, handle: *mut Opaque, count: *mut c_int,
    ) {
        if handle.is_null() || count.is_null() {
            return Err(INVALID);
        }
        let comm = match pvar::get(index)?.is_of_comm() {
            // The address of a communicator's handle.
            true if object.is_null() => return Err(INVALID),
            true => Some(dec::<A, handle::Comm>(object.cast::<CComm<A>>().read())),
            false => None,
        };
        let (number, values) = pvar::allocate(session_of(session), index, comm)?;
        handle.write(opaque(number));
        count.write(values as c_int);
    }

    /// `MPI_T_pvar_handle_free`.
    fn t_pvar_handle_free(session: Opaque, handle: *mut Opaque) {
        if handle.is_null() {
            return Err(INVALID);
        }
        pvar::free(session_of(session), handle.read().addr())?;
        handle.write(opaque(0));
    }

    /// `MPI_T_pvar_start`.
    fn t_pvar_start(session: Opaque, handle: Opaque) {
        let session = session_of(session);
        if is_all::<A>(handle) { pvar::set_all_started(session, true)? } else { pvar::start(session, handle.addr())? }
    }

    /// `MPI_T_pvar_stop`.
    fn t_pvar_stop(session: Opaque, handle: Opaque) {
        let session = session_of(session);
        if is_all::<A>(handle) { pvar::set_all_started(session, false)? } else { pvar::stop(session, handle.addr())? }
    }

    /// `MPI_T_pvar_read`.
    fn t_pvar_read(session: Opaque, handle: Opaque, buffer: *mut c_void) {
        store_all(&pvar::read(session_of(session), handle.addr())?, buffer)?;
    }

    /// `MPI_T_pvar_write`.
    fn t_pvar_write(session: Opaque, handle: Opaque, buffer: *const c_void) {
        let known = pvar::of_handle(session_of(session), handle.addr())?;
        let count = pvar::count(session_of(session), handle.addr())?;
        let at = |index: usize| buffer.cast::<u8>().wrapping_add(index * STRIDE).cast();
        let values = (0..count).map(|index| load(known.kind, at(index))).collect::<Result<Vec<Value>>>()?;
        pvar::write(session_of(session), handle.addr(), &values)?;
    }

    /// `MPI_T_pvar_reset`.
    fn t_pvar_reset(session: Opaque, handle: Opaque) {
        let session = session_of(session);
        if is_all::<A>(handle) { pvar::reset_all(session)? } else { pvar::reset(session, handle.addr())? }
    }

    /// `MPI_T_pvar_readreset`.
    fn t_pvar_readreset(session: Opaque, handle: Opaque, buffer: *mut c_void) {
        if buffer.is_null() {
            return Err(INVALID);
        }
        store_all(&pvar::read_and_reset(session_of(session), handle.addr())?, buffer)?;
    }

    /// `MPI_T_category_get_num`.
    fn t_category_get_num(count: *mut c_int) {
        put(count, category::ALL.len() as c_int)?;
    }

    /// `MPI_T_category_get_info`.
    fn t_category_get_info(
        index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char, desc_len: *mut c_int,
        cvars: *mut c_int, pvars: *mut c_int, categories: *mut c_int,
    ) {
        let known = category::get(index)?;
        offer_text(name, name_len, known.name);
        offer_text(desc, desc_len, known.description);
        offer(cvars, known.cvars().len() as c_int);
        offer(pvars, known.pvars().len() as c_int);
        offer(categories, known.categories.len() as c_int);
    }

    /// `MPI_T_category_get_index`.
    fn t_category_get_index(name: *const c_char, index: *mut c_int) {
        put(index, category::index_of(name_at(name)?)? as c_int)?;
    }

    /// `MPI_T_category_get_cvars`.
    fn t_category_get_cvars(index: c_int, length: c_int, indices: *mut c_int) {
        fill(&category::get(index)?.cvars(), length, indices)?;
    }

    /// `MPI_T_category_get_pvars`.
    fn t_category_get_pvars(index: c_int, length: c_int, indices: *mut c_int) {
        fill(&category::get(index)?.pvars(), length, indices)?;
    }

    /// `MPI_T_category_get_categories`.
    fn t_category_get_categories(index: c_int, length: c_int, indices: *mut c_int) {
        fill(category::get(index)?.categories, length, indices)?;
    }

    /// `MPI_T_category_changed`: never.
    fn t_category_changed(update: *mut c_int) {
        put(update, 0)?;
    }
}

/// Indices into the program's array, as many as it has room for.
///
/// # Safety
/// `indices` has room for `length` numbers.
pub(super) unsafe fn fill(known: &[usize], length: c_int, indices: *mut c_int) -> Result<()> {
    let Ok(room) = usize::try_from(length) else { return Err(INVALID) };
    if room > 0 && !known.is_empty() && indices.is_null() {
        return Err(INVALID);
    }
    for (place, index) in known.iter().take(room).enumerate() {
        // SAFETY: within the room, and not null.
        unsafe { indices.add(place).write(*index as c_int) };
    }
    Ok(())
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_tool {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::tool];
            fn MPI_T_init_thread = t_init_thread(required: c_int, provided: *mut c_int) -> c_int;
            fn MPI_T_finalize = t_finalize() -> c_int;
            fn MPI_T_enum_get_info = t_enum_get_info(handle: *mut c_void, count: *mut c_int, name: *mut c_char, name_len: *mut c_int) -> c_int;
            fn MPI_T_enum_get_item = t_enum_get_item(handle: *mut c_void, index: c_int, value: *mut c_int, name: *mut c_char, name_len: *mut c_int) -> c_int;
            fn MPI_T_cvar_get_num = t_cvar_get_num(count: *mut c_int) -> c_int;
            fn MPI_T_cvar_get_info = t_cvar_get_info(index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, datatype: *mut $crate::abi::CDatatype<$A>, enumtype: *mut *mut c_void, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int, scope: *mut c_int) -> c_int;
            fn MPI_T_cvar_get_index = t_cvar_get_index(name: *const c_char, index: *mut c_int) -> c_int;
            fn MPI_T_cvar_handle_alloc = t_cvar_handle_alloc(index: c_int, object: *mut c_void, handle: *mut *mut c_void, count: *mut c_int) -> c_int;
            fn MPI_T_cvar_handle_free = t_cvar_handle_free(handle: *mut *mut c_void) -> c_int;
            fn MPI_T_cvar_read = t_cvar_read(handle: *mut c_void, buffer: *mut c_void) -> c_int;
            fn MPI_T_cvar_write = t_cvar_write(handle: *mut c_void, buffer: *const c_void) -> c_int;
            fn MPI_T_pvar_get_num = t_pvar_get_num(count: *mut c_int) -> c_int;
            fn MPI_T_pvar_get_info = t_pvar_get_info(index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, class: *mut c_int, datatype: *mut $crate::abi::CDatatype<$A>, enumtype: *mut *mut c_void, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int, readonly: *mut c_int, continuous: *mut c_int, atomic: *mut c_int) -> c_int;
            fn MPI_T_pvar_get_index = t_pvar_get_index(name: *const c_char, class: c_int, index: *mut c_int) -> c_int;
            fn MPI_T_pvar_session_create = t_pvar_session_create(session: *mut *mut c_void) -> c_int;
            fn MPI_T_pvar_session_free = t_pvar_session_free(session: *mut *mut c_void) -> c_int;
            fn MPI_T_pvar_handle_alloc = t_pvar_handle_alloc(session: *mut c_void, index: c_int, object: *mut c_void, handle: *mut *mut c_void, count: *mut c_int) -> c_int;
            fn MPI_T_pvar_handle_free = t_pvar_handle_free(session: *mut c_void, handle: *mut *mut c_void) -> c_int;
            fn MPI_T_pvar_start = t_pvar_start(session: *mut c_void, handle: *mut c_void) -> c_int;
            fn MPI_T_pvar_stop = t_pvar_stop(session: *mut c_void, handle: *mut c_void) -> c_int;
            fn MPI_T_pvar_read = t_pvar_read(session: *mut c_void, handle: *mut c_void, buffer: *mut c_void) -> c_int;
            fn MPI_T_pvar_write = t_pvar_write(session: *mut c_void, handle: *mut c_void, buffer: *const c_void) -> c_int;
            fn MPI_T_pvar_reset = t_pvar_reset(session: *mut c_void, handle: *mut c_void) -> c_int;
            fn MPI_T_pvar_readreset = t_pvar_readreset(session: *mut c_void, handle: *mut c_void, buffer: *mut c_void) -> c_int;
            fn MPI_T_category_get_num = t_category_get_num(count: *mut c_int) -> c_int;
            fn MPI_T_category_get_info = t_category_get_info(index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char, desc_len: *mut c_int, cvars: *mut c_int, pvars: *mut c_int, categories: *mut c_int) -> c_int;
            fn MPI_T_category_get_index = t_category_get_index(name: *const c_char, index: *mut c_int) -> c_int;
            fn MPI_T_category_get_cvars = t_category_get_cvars(index: c_int, length: c_int, indices: *mut c_int) -> c_int;
            fn MPI_T_category_get_pvars = t_category_get_pvars(index: c_int, length: c_int, indices: *mut c_int) -> c_int;
            fn MPI_T_category_get_categories = t_category_get_categories(index: c_int, length: c_int, indices: *mut c_int) -> c_int;
            fn MPI_T_category_changed = t_category_changed(update: *mut c_int) -> c_int;
        }
    };
}
