//! Events of the tool information interface: MPI 4.1 section 15.3.8.

use super::tool::{INVALID, Opaque, datatype_of, fill, name_at, offer, offer_text, opaque, put, store};
use crate::abi::{Abi, CDatatype, CInfo, enc};
use std::ffi::{c_char, c_int, c_void};
use std::rc::Rc;
use std::sync::Arc;
use vmpi_core::consts::{self, T_CB_REQUIRE_NONE};
use vmpi_core::handle::Info;
use vmpi_core::info::{self, Entries};
use vmpi_core::tool::{category, event};

/// `MPI_T_event_cb_function`: instance, registration, safety, user data.
pub type EventFunction = Option<unsafe extern "C" fn(Opaque, Opaque, c_int, *mut c_void)>;
/// `MPI_T_event_free_cb_function`: registration, safety, user data.
pub type FreeFunction = Option<unsafe extern "C" fn(Opaque, c_int, *mut c_void)>;
/// `MPI_T_event_dropped_cb_function`: count, registration, source, safety, user data.
pub type DroppedFunction = Option<unsafe extern "C" fn(i64, Opaque, c_int, c_int, *mut c_void)>;

/// The program's pointer, which callbacks of any thread are given.
#[derive(Copy, Clone)]
struct UserData(*mut c_void);

#[allow(unsafe_code)]
// SAFETY: it is handed back and never looked at.
unsafe impl Send for UserData {}
#[allow(unsafe_code)]
// SAFETY: as above.
unsafe impl Sync for UserData {}

impl UserData {
    fn get(self) -> *mut c_void {
        self.0
    }
}

/// There are no hints, so none are in use.
fn no_hints<A: Abi>() -> CInfo<A> {
    enc::<A, Info>(info::insert(Rc::new(Entries::default())))
}

fn safety_in<A: Abi>(safety: c_int) -> c_int {
    A::NUMBERS.tool_safeties.to_core(safety)
}

/// Callbacks are called when the call is over, where nothing is required of them.
fn safety_out<A: Abi>() -> c_int {
    A::NUMBERS.tool_safeties.to_face(T_CB_REQUIRE_NONE)
}

crate::tool_functions! {
    /// `MPI_T_category_get_num_events`.
    fn t_category_get_num_events(index: c_int, count: *mut c_int) {
        put(count, category::get(index)?.events().len() as c_int)?;
    }

    /// `MPI_T_category_get_events`.
    fn t_category_get_events(index: c_int, length: c_int, indices: *mut c_int) {
        fill(&category::get(index)?.events(), length, indices)?;
    }

    /// `MPI_T_source_get_num`: this process.
    fn t_source_get_num(count: *mut c_int) {
        put(count, 1)?;
    }

    /// `MPI_T_source_get_info`.
    fn t_source_get_info(
        index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char, desc_len: *mut c_int,
        ordering: *mut c_int, ticks_per_second: *mut i64, max_ticks: *mut i64, info: *mut CInfo<A>,
    ) {
        event::source_time(index)?;
        offer_text(name, name_len, event::SOURCE_NAME);
        offer_text(desc, desc_len, event::SOURCE_DESCRIPTION);
        offer(ordering, A::NUMBERS.tool_orders.to_face(consts::T_SOURCE_ORDERED));
        offer(ticks_per_second, event::TICKS_PER_SECOND);
        offer(max_ticks, i64::MAX);
        if !info.is_null() {
            info.write(no_hints::<A>());
        }
    }

    /// `MPI_T_source_get_timestamp`.
    fn t_source_get_timestamp(index: c_int, timestamp: *mut i64) {
        put(timestamp, event::source_time(index)?)?;
    }

    /// `MPI_T_event_get_num`.
    fn t_event_get_num(count: *mut c_int) {
        put(count, event::ALL.len() as c_int)?;
    }

    /// `MPI_T_event_get_index`.
    fn t_event_get_index(name: *const c_char, index: *mut c_int) {
        put(index, event::index_of(name_at(name)?)? as c_int)?;
    }

    /// `MPI_T_event_get_info`: `*elements` is the arrays' room, and becomes the number of elements.
    fn t_event_get_info(
        index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, datatypes: *mut CDatatype<A>,
        displacements: *mut isize, elements: *mut c_int, enumtype: *mut Opaque, info: *mut CInfo<A>,
        desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int,
    ) {
        let known = event::get(index)?;
        offer_text(name, name_len, known.name);
        offer_text(desc, desc_len, known.description);
        offer(verbosity, A::NUMBERS.tool_verbosities.to_face(known.verbosity as i32));
        if !elements.is_null() {
            let room = usize::try_from(elements.read()).unwrap_or(0);
            for (place, element) in known.elements.iter().enumerate().take(room) {
                if !datatypes.is_null() {
                    datatypes.add(place).write(datatype_of::<A>(element.kind));
                }
                if !displacements.is_null() {
                    displacements.add(place).write(known.displacement(place) as isize);
                }
            }
            elements.write(known.elements.len() as c_int);
        }
        offer(enumtype, opaque(0));
        if !info.is_null() {
            info.write(no_hints::<A>());
        }
        offer(bind, A::NUMBERS.tool_bindings.to_face(consts::T_BIND_NO_OBJECT));
    }

    /// `MPI_T_event_handle_alloc`; the object is not looked at, no event belongs to one; there are no hints.
    fn t_event_handle_alloc(index: c_int, _object: *mut c_void, _info: CInfo<A>, registration: *mut Opaque) {
        event::get(index)?;
        if registration.is_null() {
            return Err(INVALID);
        }
        registration.write(opaque(event::allocate(index)?));
    }

    /// `MPI_T_event_handle_set_info`.
    fn t_event_handle_set_info(registration: Opaque, _info: CInfo<A>) {
        event::check(registration.addr())?;
    }

    /// `MPI_T_event_handle_get_info`.
    fn t_event_handle_get_info(registration: Opaque, info: *mut CInfo<A>) {
        event::check(registration.addr())?;
        put(info, no_hints::<A>())?;
    }

    /// `MPI_T_event_handle_free`.
    fn t_event_handle_free(registration: Opaque, user_data: *mut c_void, function: FreeFunction) {
        let last = function.map(|function| -> event::Last {
            // SAFETY: the program's function has the type that MPI says.
            Box::new(move || unsafe { function(registration, safety_out::<A>(), user_data) })
        });
        event::free(registration.addr(), last)?;
    }

    /// `MPI_T_event_register_callback`; a null function takes the callback of that level away.
    fn t_event_register_callback(
        registration: Opaque, safety: c_int, _info: CInfo<A>, user_data: *mut c_void, function: EventFunction,
    ) {
        let data = UserData(user_data);
        let callback = function.map(|function| -> event::Callback {
            Arc::new(move |instance, registration| {
                // SAFETY: the program's function has the type that MPI says.
                unsafe { function(opaque(instance), opaque(registration), safety_out::<A>(), data.get()) }
            })
        });
        event::set_callback(registration.addr(), safety_in::<A>(safety), callback, user_data.expose_provenance())?;
    }

    /// `MPI_T_event_callback_set_info`.
    fn t_event_callback_set_info(registration: Opaque, safety: c_int, _info: CInfo<A>) {
        event::check_level(registration.addr(), safety_in::<A>(safety))?;
    }

    /// `MPI_T_event_callback_get_info`.
    fn t_event_callback_get_info(registration: Opaque, safety: c_int, info: *mut CInfo<A>) {
        event::check_level(registration.addr(), safety_in::<A>(safety))?;
        put(info, no_hints::<A>())?;
    }

    /// `MPI_T_event_set_dropped_handler`; it gets the user data of the callback.
    fn t_event_set_dropped_handler(registration: Opaque, function: DroppedFunction) {
        let handler = function.map(|function| -> event::Dropped {
            Arc::new(move |many, registration, user_data| {
                let data = std::ptr::with_exposed_provenance_mut(user_data);
                // SAFETY: the program's function has the type that MPI says.
                unsafe { function(many, opaque(registration), 0, safety_out::<A>(), data) }
            })
        });
        event::set_dropped(registration.addr(), handler)?;
    }

    /// `MPI_T_event_read`.
    fn t_event_read(instance: Opaque, element: c_int, buffer: *mut c_void) {
        store(event::read(instance.addr(), element)?, buffer)?;
    }

    /// `MPI_T_event_copy`: all elements, where MPI_T_event_get_info says.
    fn t_event_copy(instance: Opaque, buffer: *mut c_void) {
        let known = event::type_of(instance.addr())?;
        if buffer.is_null() {
            return Err(INVALID);
        }
        for element in 0..known.elements.len() {
            let place = buffer.cast::<u8>().add(known.displacement(element));
            store(event::read(instance.addr(), element as i32)?, place.cast())?;
        }
    }

    /// `MPI_T_event_get_timestamp`.
    fn t_event_get_timestamp(instance: Opaque, timestamp: *mut i64) {
        put(timestamp, event::time(instance.addr())?)?;
    }

    /// `MPI_T_event_get_source`.
    fn t_event_get_source(instance: Opaque, index: *mut c_int) {
        event::type_of(instance.addr())?;
        put(index, 0)?;
    }
}

/// The table of this section.
#[macro_export]
macro_rules! c_table_tool_events {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::tool_event];
            fn MPI_T_category_get_num_events = t_category_get_num_events(index: c_int, count: *mut c_int) -> c_int;
            fn MPI_T_category_get_events = t_category_get_events(index: c_int, length: c_int, indices: *mut c_int) -> c_int;
            fn MPI_T_source_get_num = t_source_get_num(count: *mut c_int) -> c_int;
            fn MPI_T_source_get_info = t_source_get_info(index: c_int, name: *mut c_char, name_len: *mut c_int, desc: *mut c_char, desc_len: *mut c_int, ordering: *mut c_int, ticks_per_second: *mut i64, max_ticks: *mut i64, info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_T_source_get_timestamp = t_source_get_timestamp(index: c_int, timestamp: *mut i64) -> c_int;
            fn MPI_T_event_get_num = t_event_get_num(count: *mut c_int) -> c_int;
            fn MPI_T_event_get_index = t_event_get_index(name: *const c_char, index: *mut c_int) -> c_int;
            fn MPI_T_event_get_info = t_event_get_info(index: c_int, name: *mut c_char, name_len: *mut c_int, verbosity: *mut c_int, datatypes: *mut $crate::abi::CDatatype<$A>, displacements: *mut isize, elements: *mut c_int, enumtype: *mut *mut c_void, info: *mut $crate::abi::CInfo<$A>, desc: *mut c_char, desc_len: *mut c_int, bind: *mut c_int) -> c_int;
            fn MPI_T_event_handle_alloc = t_event_handle_alloc(index: c_int, object: *mut c_void, info: $crate::abi::CInfo<$A>, registration: *mut *mut c_void) -> c_int;
            fn MPI_T_event_handle_set_info = t_event_handle_set_info(registration: *mut c_void, info: $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_T_event_handle_get_info = t_event_handle_get_info(registration: *mut c_void, info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_T_event_handle_free = t_event_handle_free(registration: *mut c_void, user_data: *mut c_void, function: functions::FreeFunction) -> c_int;
            fn MPI_T_event_register_callback = t_event_register_callback(registration: *mut c_void, safety: c_int, info: $crate::abi::CInfo<$A>, user_data: *mut c_void, function: functions::EventFunction) -> c_int;
            fn MPI_T_event_callback_set_info = t_event_callback_set_info(registration: *mut c_void, safety: c_int, info: $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_T_event_callback_get_info = t_event_callback_get_info(registration: *mut c_void, safety: c_int, info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_T_event_set_dropped_handler = t_event_set_dropped_handler(registration: *mut c_void, function: functions::DroppedFunction) -> c_int;
            fn MPI_T_event_read = t_event_read(instance: *mut c_void, element: c_int, buffer: *mut c_void) -> c_int;
            fn MPI_T_event_copy = t_event_copy(instance: *mut c_void, buffer: *mut c_void) -> c_int;
            fn MPI_T_event_get_timestamp = t_event_get_timestamp(instance: *mut c_void, timestamp: *mut i64) -> c_int;
            fn MPI_T_event_get_source = t_event_get_source(instance: *mut c_void, index: *mut c_int) -> c_int;
        }
    };
}
