//! What a datatype is: size, bounds, name, how it was made; counts in a status (MPI 4.1 sections 5.1.7-5.1.13, 3.2.5).

#![allow(unsafe_code)]

use super::datatype::get;
use super::number::{Number, named, named_by, names, put};
use crate::abi::{Abi, CDatatype, dec, enc};
use crate::entry::{self, Target};
use std::ffi::{CStr, c_char, c_int};
use vmpi_core::consts::UNDEFINED;
use vmpi_core::datatype::{self, Item, Type};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Datatype, Handle};

/// MPI_Type_size, MPI_Type_size_x.
///
/// # Safety
/// As the C function.
pub unsafe fn type_size<A: Abi>(datatype: CDatatype<A>, size: *mut impl Number) -> c_int {
    entry::run::<A>(named_by(size, names!("MPI_Type_size")), Target::Process, || {
        let value = Number::from_u64(get::<A>(datatype)?.size());
        // SAFETY: the caller's promise.
        unsafe { put(size, value, "size") }
    })
}

macro_rules! two_bounds {
    ($(#[$doc:meta])* $function:ident $name:literal $lb:ident $extent:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C function.
        pub unsafe fn $function<A: Abi>(
            datatype: CDatatype<A>,
            lb: *mut impl Number,
            extent: *mut impl Number,
        ) -> c_int {
            entry::run::<A>(named_by(lb, names!($name)), Target::Process, || {
                let ty = get::<A>(datatype)?;
                // SAFETY: the caller's promise.
                unsafe {
                    put(lb, Number::from_i64(ty.$lb()), "lb")?;
                    put(extent, Number::from_i64(ty.$extent()), "extent")
                }
            })
        }
    };
}

two_bounds! {
    /// MPI_Type_get_extent, MPI_Type_get_extent_x.
    type_get_extent "MPI_Type_get_extent" lb extent
}
two_bounds! {
    /// MPI_Type_get_true_extent, MPI_Type_get_true_extent_x.
    type_get_true_extent "MPI_Type_get_true_extent" true_lb true_extent
}

macro_rules! one_bound {
    ($($(#[$doc:meta])* $function:ident $name:literal $method:ident;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C function.
        pub unsafe fn $function<A: Abi>(datatype: CDatatype<A>, value: *mut isize) -> c_int {
            entry::run::<A>($name, Target::Process, || {
                let bound = get::<A>(datatype)?.$method() as isize;
                // SAFETY: the caller's promise.
                unsafe { put(value, bound, stringify!($method)) }
            })
        }
    )*};
}
one_bound! {
    /// MPI_Type_extent.
    type_extent "MPI_Type_extent" extent;
    /// MPI_Type_lb.
    type_lb "MPI_Type_lb" lb;
    /// MPI_Type_ub.
    type_ub "MPI_Type_ub" ub;
}

/// MPI_Type_get_name.
///
/// # Safety
/// As the C function.
pub unsafe fn type_get_name<A: Abi>(datatype: CDatatype<A>, name: *mut c_char, length: *mut c_int) -> c_int {
    entry::run::<A>("MPI_Type_get_name", Target::Process, || {
        // MPI 4.1 section 7.8 gives the null handles names.
        let value = match dec::<A, Datatype>(datatype) {
            null if null.is_null() => "MPI_DATATYPE_NULL".into(),
            datatype => datatype::name(datatype)?,
        };
        let bytes = &value.as_bytes()[..value.len().min(A::MAX_OBJECT_NAME - 1)];
        if name.is_null() {
            return fail(Class::Arg, "type_name is a null pointer");
        }
        // SAFETY: the program gives room for MPI_MAX_OBJECT_NAME characters.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), name.cast(), bytes.len());
            name.add(bytes.len()).write(0);
            put(length, bytes.len() as c_int, "resultlen")
        }
    })
}

/// MPI_Type_set_name.
///
/// # Safety
/// As the C function.
pub unsafe fn type_set_name<A: Abi>(datatype: CDatatype<A>, name: *const c_char) -> c_int {
    entry::run::<A>("MPI_Type_set_name", Target::Process, || {
        if name.is_null() {
            return fail(Class::Arg, "type_name is a null pointer");
        }
        // SAFETY: a C string, by the function's contract.
        let text = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let end = (0..=text.len().min(A::MAX_OBJECT_NAME - 1)).rev().find(|&i| text.is_char_boundary(i));
        datatype::set_name(dec::<A, Datatype>(datatype), &text[..end.unwrap_or(0)])
    })
}

/// Numbers of integers, addresses, large counts in the contents.
fn envelope(ty: &Type, items: &[Item]) -> (i64, i64, i64) {
    let large = |item: &Item| ty.is_large() && matches!(item, Item::Count(_) | Item::Address(_));
    let larges = items.iter().filter(|item| large(item)).count();
    let addresses = items.iter().filter(|item| !large(item) && matches!(item, Item::Address(_))).count();
    ((items.len() - larges - addresses) as i64, addresses as i64, larges as i64)
}

fn refuse_large(ty: &Type) -> Result<()> {
    if ty.is_large() {
        return fail(Class::Type, "the datatype was made with large counts: ask with the _c function");
    }
    Ok(())
}

/// MPI_Type_get_envelope.
///
/// # Safety
/// As the C function.
pub unsafe fn type_get_envelope<A: Abi>(
    datatype: CDatatype<A>,
    integers: *mut c_int,
    addresses: *mut c_int,
    datatypes: *mut c_int,
    combiner: *mut c_int,
) -> c_int {
    entry::run::<A>("MPI_Type_get_envelope", Target::Process, || {
        let ty = get::<A>(datatype)?;
        refuse_large(&ty)?;
        let (ints, addrs, _) = envelope(&ty, &ty.recipe().items());
        // SAFETY: the caller's promise.
        unsafe {
            put(integers, c_int::from_i64(ints), "num_integers")?;
            put(addresses, c_int::from_i64(addrs), "num_addresses")?;
            put(datatypes, ty.recipe().children().len() as c_int, "num_datatypes")?;
            put(combiner, A::combiner_out(ty.recipe().combiner()), "combiner")
        }
    })
}

/// MPI_Type_get_envelope_c.
///
/// # Safety
/// As the C function.
pub unsafe fn type_get_envelope_c<A: Abi>(
    datatype: CDatatype<A>,
    integers: *mut i64,
    addresses: *mut i64,
    large_counts: *mut i64,
    datatypes: *mut i64,
    combiner: *mut c_int,
) -> c_int {
    entry::run::<A>("MPI_Type_get_envelope_c", Target::Process, || {
        let ty = get::<A>(datatype)?;
        let (ints, addrs, larges) = envelope(&ty, &ty.recipe().items());
        // SAFETY: the caller's promise.
        unsafe {
            put(integers, ints, "num_integers")?;
            put(addresses, addrs, "num_addresses")?;
            put(large_counts, larges, "num_large_counts")?;
            put(datatypes, ty.recipe().children().len() as i64, "num_datatypes")?;
            put(combiner, A::combiner_out(ty.recipe().combiner()), "combiner")
        }
    })
}

/// Where MPI_Type_get_contents puts one kind of argument.
struct Room<T> {
    next: *mut T,
    what: &'static str,
}

impl<T> Room<T> {
    fn new(array: *mut T, room: i64, needed: i64, what: &'static str) -> Result<Room<T>> {
        if room < needed {
            return fail(Class::Arg, format!("{what} has room for {room}, the datatype has {needed}"));
        }
        Ok(Room { next: array, what })
    }
    /// # Safety
    /// At most as often as `needed` said.
    unsafe fn put(&mut self, value: T) -> Result<()> {
        // SAFETY: the program gave room, or a null pointer, which `put` refuses.
        unsafe { put(self.next, value, self.what)? };
        self.next = self.next.wrapping_add(1);
        Ok(())
    }
}

/// MPI_Type_get_contents.
///
/// # Safety
/// As the C function.
pub unsafe fn type_get_contents<A: Abi>(
    datatype: CDatatype<A>,
    max_integers: c_int,
    max_addresses: c_int,
    max_datatypes: c_int,
    integers: *mut c_int,
    addresses: *mut isize,
    datatypes: *mut CDatatype<A>,
) -> c_int {
    entry::run::<A>("MPI_Type_get_contents", Target::Process, || {
        refuse_large(&*get::<A>(datatype)?)?;
        let (max, pointers) = ([max_integers, max_addresses, 0, max_datatypes], (integers, addresses));
        let max = max.map(i64::from);
        // SAFETY: the caller's promise.
        unsafe { contents::<A>(datatype, max, pointers.0, pointers.1, std::ptr::null_mut(), datatypes) }
    })
}

/// MPI_Type_get_contents_c.
///
/// # Safety
/// As the C function.
#[allow(clippy::too_many_arguments)]
pub unsafe fn type_get_contents_c<A: Abi>(
    datatype: CDatatype<A>,
    max_integers: i64,
    max_addresses: i64,
    max_large_counts: i64,
    max_datatypes: i64,
    integers: *mut c_int,
    addresses: *mut isize,
    large_counts: *mut i64,
    datatypes: *mut CDatatype<A>,
) -> c_int {
    entry::run::<A>("MPI_Type_get_contents_c", Target::Process, || {
        let max = [max_integers, max_addresses, max_large_counts, max_datatypes];
        // SAFETY: the caller's promise.
        unsafe { contents::<A>(datatype, max, integers, addresses, large_counts, datatypes) }
    })
}

/// # Safety
/// The arrays have room for `max` integers, addresses, large counts, types.
unsafe fn contents<A: Abi>(
    datatype: CDatatype<A>,
    max: [i64; 4],
    integers: *mut c_int,
    addresses: *mut isize,
    large_counts: *mut i64,
    datatypes: *mut CDatatype<A>,
) -> Result<()> {
    let ty = get::<A>(datatype)?;
    let items = ty.recipe().items();
    let (ints, addrs, larges) = envelope(&ty, &items);
    let mut integers = Room::new(integers, max[0], ints, "array_of_integers")?;
    let mut addresses = Room::new(addresses, max[1], addrs, "array_of_addresses")?;
    let mut large_counts = Room::new(large_counts, max[2], larges, "array_of_large_counts")?;
    let children = ty.recipe().children().len() as i64;
    let mut datatypes = Room::new(datatypes, max[3], children, "array_of_datatypes")?;
    let (items, types) = datatype::contents(dec::<A, Datatype>(datatype))?;
    for item in items {
        // SAFETY: `envelope` counted them by the same rule.
        unsafe {
            match item {
                Item::Count(v) | Item::Address(v) if ty.is_large() => large_counts.put(v)?,
                Item::Address(v) => addresses.put(v as isize)?,
                Item::Integer(v) | Item::Count(v) => integers.put(v as c_int)?,
                Item::Order(v) => integers.put(A::order_out(v))?,
                Item::Distribution(v) => integers.put(A::distribution_out(v))?,
                Item::Argument(v) => integers.put(A::darg_out(v))?,
            }
        }
    }
    for handle in types {
        // SAFETY: as many as children.
        unsafe { datatypes.put(enc::<A, Datatype>(handle))? };
    }
    Ok(())
}

/// `None` is MPI_UNDEFINED.
fn or_undefined<N: Number>(value: Option<u64>) -> N {
    value.map_or(N::from_i64(UNDEFINED.into()), N::from_u64)
}

macro_rules! status_count {
    ($(#[$doc:meta])* $function:ident $name:literal $method:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C function.
        pub unsafe fn $function<A: Abi>(
            status: *const A::Status,
            datatype: CDatatype<A>,
            count: *mut impl Number,
        ) -> c_int {
            entry::run::<A>(named_by(count, names!($name)), Target::Process, || {
                if status.is_null() || A::status_ignored(status) {
                    return fail(Class::Arg, "the status is MPI_STATUS_IGNORE");
                }
                let ty = get::<A>(datatype)?;
                // SAFETY: the caller's promise.
                let bytes = unsafe { A::status_raw(status) }.bytes;
                // SAFETY: the caller's promise.
                unsafe { put(count, or_undefined(ty.$method(bytes)), "count") }
            })
        }
    };
}

status_count! {
    /// MPI_Get_count.
    get_count "MPI_Get_count" count_in
}
status_count! {
    /// MPI_Get_elements, MPI_Get_elements_x.
    get_elements "MPI_Get_elements" elements_in
}

/// Change a status.
///
/// # Safety
/// `status` is null, ignored or valid for reads and writes.
unsafe fn update_status<A: Abi>(
    status: *mut A::Status,
    change: impl FnOnce(&mut vmpi_core::status::Status),
) -> Result<()> {
    if status.is_null() || A::status_ignored(status) {
        return fail(Class::Arg, "the status is MPI_STATUS_IGNORE");
    }
    // SAFETY: the caller's promise.
    unsafe {
        let mut value = A::status_raw(status);
        change(&mut value);
        A::status_set_raw(status, &value);
    }
    Ok(())
}

/// MPI_Status_set_elements, MPI_Status_set_elements_x.
///
/// # Safety
/// As the C function.
pub unsafe fn status_set_elements<A: Abi>(status: *mut A::Status, datatype: CDatatype<A>, count: impl Number) -> c_int {
    entry::run::<A>(named(count, names!("MPI_Status_set_elements")), Target::Process, || {
        let elements = super::number::count(count)?;
        let Some(bytes) = get::<A>(datatype)?.bytes_of(elements) else {
            return fail(Class::Arg, format!("{elements} elements are more than the datatype can count"));
        };
        // SAFETY: the caller's promise.
        unsafe { update_status::<A>(status, |status| status.bytes = bytes) }
    })
}

/// MPI_Status_set_cancelled.
///
/// # Safety
/// As the C function.
pub unsafe fn status_set_cancelled<A: Abi>(status: *mut A::Status, flag: c_int) -> c_int {
    entry::run::<A>("MPI_Status_set_cancelled", Target::Process, || {
        // SAFETY: the caller's promise.
        unsafe { update_status::<A>(status, |status| status.cancelled = flag != 0) }
    })
}

/// MPI_Get_address, MPI_Address.
///
/// # Safety
/// As the C function.
pub unsafe fn get_address<A: Abi>(location: *const std::ffi::c_void, address: *mut isize) -> c_int {
    entry::run_any_time::<A>("MPI_Get_address", || {
        // SAFETY: the caller's promise.
        unsafe { put(address, location as isize, "address") }
    })
}

/// MPI_Aint_add.
///
/// # Safety
/// Safe; unsafe like all of the table.
pub unsafe fn aint_add<A: Abi>(base: isize, displacement: isize) -> isize {
    base.wrapping_add(displacement)
}

/// MPI_Aint_diff.
///
/// # Safety
/// Safe; unsafe like all of the table.
pub unsafe fn aint_diff<A: Abi>(a: isize, b: isize) -> isize {
    a.wrapping_sub(b)
}

/// Part of `c_table_datatype`.
#[macro_export]
macro_rules! c_table_datatype_query {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::datatype_query];
            fn MPI_Type_size = type_size(datatype: $crate::abi::CDatatype<$A>, size: *mut c_int) -> c_int;
            fn MPI_Type_size_x = type_size(datatype: $crate::abi::CDatatype<$A>, size: *mut $crate::c::number::X) -> c_int;
            fn MPI_Type_get_extent = type_get_extent(datatype: $crate::abi::CDatatype<$A>, lb: *mut isize, extent: *mut isize) -> c_int;
            fn MPI_Type_get_extent_x = type_get_extent(datatype: $crate::abi::CDatatype<$A>, lb: *mut $crate::c::number::X, extent: *mut $crate::c::number::X) -> c_int;
            fn MPI_Type_get_true_extent = type_get_true_extent(datatype: $crate::abi::CDatatype<$A>, lb: *mut isize, extent: *mut isize) -> c_int;
            fn MPI_Type_get_true_extent_x = type_get_true_extent(datatype: $crate::abi::CDatatype<$A>, lb: *mut $crate::c::number::X, extent: *mut $crate::c::number::X) -> c_int;
            fn MPI_Type_extent = type_extent(datatype: $crate::abi::CDatatype<$A>, extent: *mut isize) -> c_int;
            fn MPI_Type_lb = type_lb(datatype: $crate::abi::CDatatype<$A>, lb: *mut isize) -> c_int;
            fn MPI_Type_ub = type_ub(datatype: $crate::abi::CDatatype<$A>, ub: *mut isize) -> c_int;
            fn MPI_Type_get_name = type_get_name(datatype: $crate::abi::CDatatype<$A>, name: *mut c_char, length: *mut c_int) -> c_int;
            fn MPI_Type_set_name = type_set_name(datatype: $crate::abi::CDatatype<$A>, name: *const c_char) -> c_int;
            fn MPI_Type_get_envelope = type_get_envelope(datatype: $crate::abi::CDatatype<$A>, integers: *mut c_int, addresses: *mut c_int, datatypes: *mut c_int, combiner: *mut c_int) -> c_int;
            fn MPI_Type_get_contents = type_get_contents(datatype: $crate::abi::CDatatype<$A>, max_integers: c_int, max_addresses: c_int, max_datatypes: c_int, integers: *mut c_int, addresses: *mut isize, datatypes: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Get_count = get_count(status: *const <$A as $crate::abi::Abi>::Status, datatype: $crate::abi::CDatatype<$A>, count: *mut c_int) -> c_int;
            fn MPI_Get_elements = get_elements(status: *const <$A as $crate::abi::Abi>::Status, datatype: $crate::abi::CDatatype<$A>, count: *mut c_int) -> c_int;
            fn MPI_Get_elements_x = get_elements(status: *const <$A as $crate::abi::Abi>::Status, datatype: $crate::abi::CDatatype<$A>, count: *mut $crate::c::number::X) -> c_int;
            fn MPI_Status_set_elements = status_set_elements(status: *mut <$A as $crate::abi::Abi>::Status, datatype: $crate::abi::CDatatype<$A>, count: c_int) -> c_int;
            fn MPI_Status_set_elements_x = status_set_elements(status: *mut <$A as $crate::abi::Abi>::Status, datatype: $crate::abi::CDatatype<$A>, count: $crate::c::number::X) -> c_int;
            fn MPI_Status_set_cancelled = status_set_cancelled(status: *mut <$A as $crate::abi::Abi>::Status, flag: c_int) -> c_int;
            fn MPI_Get_address = get_address(location: *const c_void, address: *mut isize) -> c_int;
            fn MPI_Address = get_address(location: *const c_void, address: *mut isize) -> c_int;
            fn MPI_Aint_add = aint_add(base: isize, displacement: isize) -> isize;
            fn MPI_Aint_diff = aint_diff(a: isize, b: isize) -> isize;
        }
    };
}

/// Part of `c_table_datatype_c`.
#[macro_export]
macro_rules! c_table_datatype_query_c {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::datatype_query];
            fn MPI_Type_size_c = type_size(datatype: $crate::abi::CDatatype<$A>, size: *mut i64) -> c_int;
            fn MPI_Type_get_extent_c = type_get_extent(datatype: $crate::abi::CDatatype<$A>, lb: *mut i64, extent: *mut i64) -> c_int;
            fn MPI_Type_get_true_extent_c = type_get_true_extent(datatype: $crate::abi::CDatatype<$A>, lb: *mut i64, extent: *mut i64) -> c_int;
            fn MPI_Type_get_envelope_c = type_get_envelope_c(datatype: $crate::abi::CDatatype<$A>, integers: *mut i64, addresses: *mut i64, large_counts: *mut i64, datatypes: *mut i64, combiner: *mut c_int) -> c_int;
            fn MPI_Type_get_contents_c = type_get_contents_c(datatype: $crate::abi::CDatatype<$A>, max_integers: i64, max_addresses: i64, max_large_counts: i64, max_datatypes: i64, integers: *mut c_int, addresses: *mut isize, large_counts: *mut i64, datatypes: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Get_count_c = get_count(status: *const <$A as $crate::abi::Abi>::Status, datatype: $crate::abi::CDatatype<$A>, count: *mut i64) -> c_int;
            fn MPI_Status_set_elements_c = status_set_elements(status: *mut <$A as $crate::abi::Abi>::Status, datatype: $crate::abi::CDatatype<$A>, count: i64) -> c_int;
            fn MPI_Get_elements_c = get_elements(status: *const <$A as $crate::abi::Abi>::Status, datatype: $crate::abi::CDatatype<$A>, count: *mut i64) -> c_int;
        }
    };
}
