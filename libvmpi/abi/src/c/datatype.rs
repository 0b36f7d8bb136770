//! Datatype constructors, commit, free, dup (MPI 4.1 section 5.1 and 19.1.9).

#![allow(unsafe_code)]

use super::number::{Number, array, is_large, named, names, numbers, put, take};
use crate::abi::{Abi, CDatatype, dec, enc};
use crate::entry::{self, Target};
use std::ffi::c_int;
use std::rc::Rc;
use vmpi_core::attr;
use vmpi_core::datatype::{self, Recipe, Rules, Type};
use vmpi_core::errors::Result;
use vmpi_core::handle::{Datatype, Handle};

/// The extent rules of the library that this face stands in for.
pub fn rules<A: Abi>() -> Rules {
    match A::NAME {
        "Open MPI" => Rules::OpenMpi,
        "MPICH" => Rules::Mpich,
        _ => Rules::Standard,
    }
}

/// The type behind a C handle.
pub(super) fn get<A: Abi>(handle: CDatatype<A>) -> Result<Rc<Type>> {
    datatype::get(dec::<A, Datatype>(handle))
}

/// Follow the recipe that `recipe` makes of the arguments and hand out the new handle.
///
/// # Safety
/// `newtype` is null or valid for writes.
unsafe fn make<A: Abi>(
    function: &'static str,
    large: bool,
    newtype: *mut CDatatype<A>,
    recipe: impl FnOnce() -> Result<Recipe>,
) -> c_int {
    entry::run::<A>(function, Target::Process, || {
        let made = datatype::create(recipe()?, rules::<A>(), large)?;
        // SAFETY: the caller's promise.
        unsafe { put(newtype, enc::<A, Datatype>(made), "newtype") }
    })
}

/// MPI_Type_contiguous.
///
/// # Safety
/// As the C function.
pub unsafe fn type_contiguous<A: Abi>(count: impl Number, oldtype: CDatatype<A>, newtype: *mut CDatatype<A>) -> c_int {
    let recipe = || Ok(Recipe::Contiguous { count: count.get(), child: get::<A>(oldtype)? });
    // SAFETY: the caller's promise.
    unsafe { make::<A>(named(count, names!("MPI_Type_contiguous")), is_large(count), newtype, recipe) }
}

/// MPI_Type_vector.
///
/// # Safety
/// As the C function.
pub unsafe fn type_vector<A: Abi>(
    count: impl Number,
    blocklength: impl Number,
    stride: impl Number,
    oldtype: CDatatype<A>,
    newtype: *mut CDatatype<A>,
) -> c_int {
    let recipe = || {
        let (count, blocklength, stride) = (count.get(), blocklength.get(), stride.get());
        Ok(Recipe::Vector { count, blocklength, stride, child: get::<A>(oldtype)? })
    };
    // SAFETY: the caller's promise.
    unsafe { make::<A>(named(count, names!("MPI_Type_vector")), is_large(count), newtype, recipe) }
}

/// MPI_Type_create_hvector, MPI_Type_hvector.
///
/// # Safety
/// As the C function.
pub unsafe fn type_create_hvector<A: Abi>(
    count: impl Number,
    blocklength: impl Number,
    stride: impl Number,
    oldtype: CDatatype<A>,
    newtype: *mut CDatatype<A>,
) -> c_int {
    let recipe = || {
        let (count, blocklength, stride) = (count.get(), blocklength.get(), stride.get());
        Ok(Recipe::Hvector { count, blocklength, stride, child: get::<A>(oldtype)? })
    };
    // SAFETY: the caller's promise.
    unsafe { make::<A>(named(count, names!("MPI_Type_create_hvector")), is_large(count), newtype, recipe) }
}

macro_rules! indexed {
    ($(#[$doc:meta])* $function:ident $name:literal $recipe:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C function.
        pub unsafe fn $function<A: Abi>(
            count: impl Number,
            blocklengths: *const impl Number,
            displacements: *const impl Number,
            oldtype: CDatatype<A>,
            newtype: *mut CDatatype<A>,
        ) -> c_int {
            let recipe = || {
                let child = get::<A>(oldtype)?;
                // SAFETY: the program passes arrays of `count`.
                let (blocklengths, displacements) = unsafe {
                    (
                        numbers(blocklengths, count.get(), "array_of_blocklengths")?,
                        numbers(displacements, count.get(), "array_of_displacements")?,
                    )
                };
                Ok(Recipe::$recipe { blocklengths, displacements, child })
            };
            // SAFETY: the caller's promise.
            unsafe { make::<A>(named(count, names!($name)), is_large(count), newtype, recipe) }
        }
    };
}

indexed! {
    /// MPI_Type_indexed.
    type_indexed "MPI_Type_indexed" Indexed
}
indexed! {
    /// MPI_Type_create_hindexed, MPI_Type_hindexed.
    type_create_hindexed "MPI_Type_create_hindexed" Hindexed
}

macro_rules! indexed_block {
    ($(#[$doc:meta])* $function:ident $name:literal $recipe:ident) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// As the C function.
        pub unsafe fn $function<A: Abi>(
            count: impl Number,
            blocklength: impl Number,
            displacements: *const impl Number,
            oldtype: CDatatype<A>,
            newtype: *mut CDatatype<A>,
        ) -> c_int {
            let recipe = || {
                let child = get::<A>(oldtype)?;
                // SAFETY: the program passes an array of `count`.
                let displacements = unsafe { numbers(displacements, count.get(), "array_of_displacements")? };
                Ok(Recipe::$recipe { blocklength: blocklength.get(), displacements, child })
            };
            // SAFETY: the caller's promise.
            unsafe { make::<A>(named(count, names!($name)), is_large(count), newtype, recipe) }
        }
    };
}

indexed_block! {
    /// MPI_Type_create_indexed_block.
    type_create_indexed_block "MPI_Type_create_indexed_block" IndexedBlock
}
indexed_block! {
    /// MPI_Type_create_hindexed_block.
    type_create_hindexed_block "MPI_Type_create_hindexed_block" HindexedBlock
}

/// MPI_Type_create_struct, MPI_Type_struct.
///
/// # Safety
/// As the C function.
pub unsafe fn type_create_struct<A: Abi>(
    count: impl Number,
    blocklengths: *const impl Number,
    displacements: *const impl Number,
    types: *const CDatatype<A>,
    newtype: *mut CDatatype<A>,
) -> c_int {
    let recipe = || {
        // SAFETY: the program passes arrays of `count`.
        let (blocklengths, displacements, types) = unsafe {
            (
                numbers(blocklengths, count.get(), "array_of_blocklengths")?,
                numbers(displacements, count.get(), "array_of_displacements")?,
                array(types, count.get(), "array_of_types")?,
            )
        };
        let children = types.iter().map(|&t| get::<A>(t)).collect::<Result<_>>()?;
        Ok(Recipe::Struct { blocklengths, displacements, children })
    };
    // SAFETY: the caller's promise.
    unsafe { make::<A>(named(count, names!("MPI_Type_create_struct")), is_large(count), newtype, recipe) }
}

/// MPI_Type_create_resized.
///
/// # Safety
/// As the C function.
pub unsafe fn type_create_resized<A: Abi>(
    oldtype: CDatatype<A>,
    lb: impl Number,
    extent: impl Number,
    newtype: *mut CDatatype<A>,
) -> c_int {
    let recipe = || Ok(Recipe::Resized { lb: lb.get(), extent: extent.get(), child: get::<A>(oldtype)? });
    // SAFETY: the caller's promise.
    unsafe { make::<A>(named(lb, names!("MPI_Type_create_resized")), is_large(lb), newtype, recipe) }
}

/// MPI_Type_create_subarray.
///
/// # Safety
/// As the C function.
pub unsafe fn type_create_subarray<A: Abi>(
    ndims: c_int,
    sizes: *const impl Number,
    subsizes: *const impl Number,
    starts: *const impl Number,
    order: c_int,
    oldtype: CDatatype<A>,
    newtype: *mut CDatatype<A>,
) -> c_int {
    let recipe = || {
        let child = get::<A>(oldtype)?;
        let n = ndims.into();
        // SAFETY: the program passes arrays of `ndims`.
        let (sizes, subsizes, starts) = unsafe {
            (
                numbers(sizes, n, "array_of_sizes")?,
                numbers(subsizes, n, "array_of_subsizes")?,
                numbers(starts, n, "array_of_starts")?,
            )
        };
        Ok(Recipe::Subarray { sizes, subsizes, starts, order: A::order_in(order), child })
    };
    let function = super::number::named_by(sizes, names!("MPI_Type_create_subarray"));
    // SAFETY: the caller's promise.
    unsafe { make::<A>(function, function.ends_with("_c"), newtype, recipe) }
}

/// MPI_Type_create_darray.
///
/// # Safety
/// As the C function.
#[allow(clippy::too_many_arguments)]
pub unsafe fn type_create_darray<A: Abi>(
    size: c_int,
    rank: c_int,
    ndims: c_int,
    gsizes: *const impl Number,
    distribs: *const c_int,
    dargs: *const c_int,
    psizes: *const c_int,
    order: c_int,
    oldtype: CDatatype<A>,
    newtype: *mut CDatatype<A>,
) -> c_int {
    let recipe = || {
        let child = get::<A>(oldtype)?;
        let n = ndims.into();
        // SAFETY: the program passes arrays of `ndims`.
        let (sizes, distribs, dargs, grid) = unsafe {
            (
                numbers(gsizes, n, "array_of_gsizes")?,
                array(distribs, n, "array_of_distribs")?,
                array(dargs, n, "array_of_dargs")?,
                numbers(psizes, n, "array_of_psizes")?,
            )
        };
        Ok(Recipe::Darray {
            size: size.into(),
            rank: rank.into(),
            sizes,
            distributions: distribs.iter().map(|&d| A::distribution_in(d)).collect(),
            arguments: dargs.iter().map(|&a| A::darg_in(a)).collect(),
            grid,
            order: A::order_in(order),
            child,
        })
    };
    let function = super::number::named_by(gsizes, names!("MPI_Type_create_darray"));
    // SAFETY: the caller's promise.
    unsafe { make::<A>(function, function.ends_with("_c"), newtype, recipe) }
}

/// MPI_Type_create_f90_real.
///
/// # Safety
/// As the C function.
pub unsafe fn type_create_f90_real<A: Abi>(precision: c_int, range: c_int, newtype: *mut CDatatype<A>) -> c_int {
    let recipe = || Ok(Recipe::F90Real { precision, range });
    // SAFETY: the caller's promise.
    unsafe { make::<A>("MPI_Type_create_f90_real", false, newtype, recipe) }
}

/// MPI_Type_create_f90_complex.
///
/// # Safety
/// As the C function.
pub unsafe fn type_create_f90_complex<A: Abi>(precision: c_int, range: c_int, newtype: *mut CDatatype<A>) -> c_int {
    let recipe = || Ok(Recipe::F90Complex { precision, range });
    // SAFETY: the caller's promise.
    unsafe { make::<A>("MPI_Type_create_f90_complex", false, newtype, recipe) }
}

/// MPI_Type_create_f90_integer.
///
/// # Safety
/// As the C function.
pub unsafe fn type_create_f90_integer<A: Abi>(range: c_int, newtype: *mut CDatatype<A>) -> c_int {
    let recipe = || Ok(Recipe::F90Integer { range });
    // SAFETY: the caller's promise.
    unsafe { make::<A>("MPI_Type_create_f90_integer", false, newtype, recipe) }
}

/// MPI_Type_match_size.
///
/// # Safety
/// As the C function.
pub unsafe fn type_match_size<A: Abi>(typeclass: c_int, size: c_int, datatype: *mut CDatatype<A>) -> c_int {
    entry::run::<A>("MPI_Type_match_size", Target::Process, || {
        let found = datatype::f90::match_size(A::typeclass_in(typeclass), size)?;
        // SAFETY: the caller's promise.
        unsafe { put(datatype, enc::<A, Datatype>(found), "datatype") }
    })
}

/// MPI_Type_commit.
///
/// # Safety
/// As the C function.
pub unsafe fn type_commit<A: Abi>(datatype: *mut CDatatype<A>) -> c_int {
    entry::run::<A>("MPI_Type_commit", Target::Process, || {
        // SAFETY: the caller's promise.
        datatype::commit(dec::<A, Datatype>(unsafe { take(datatype, "datatype") }?))
    })
}

/// MPI_Type_dup.
///
/// # Safety
/// As the C function.
pub unsafe fn type_dup<A: Abi>(oldtype: CDatatype<A>, newtype: *mut CDatatype<A>) -> c_int {
    entry::run::<A>("MPI_Type_dup", Target::Process, || {
        let old = dec::<A, Datatype>(oldtype);
        let made = datatype::dup(old)?;
        // What a failing copy callback leaves.
        // SAFETY: the caller's promise.
        unsafe { put(newtype, enc::<A, Datatype>(Datatype::NULL), "newtype") }?;
        if let Err(error) = attr::copy_all(attr::Kind::Type, old.raw(), made.raw()) {
            attr::drop_all(attr::Kind::Type, made.raw());
            datatype::free(made)?;
            return Err(error);
        }
        // SAFETY: the caller's promise.
        unsafe { put(newtype, enc::<A, Datatype>(made), "newtype") }
    })
}

/// MPI_Type_free.
///
/// # Safety
/// As the C function.
pub unsafe fn type_free<A: Abi>(datatype: *mut CDatatype<A>) -> c_int {
    entry::run::<A>("MPI_Type_free", Target::Process, || {
        // SAFETY: the caller's promise.
        let handle = dec::<A, Datatype>(unsafe { take(datatype, "datatype") }?);
        datatype::registry::check_free(handle)?;
        attr::delete_all(attr::Kind::Type, handle.raw())?; // if a callback fails, the type stays
        datatype::free(handle)?;
        // SAFETY: the caller's promise.
        unsafe { put(datatype, enc::<A, Datatype>(Datatype::NULL), "datatype") }
    })
}

/// The chapter's functions.
#[macro_export]
macro_rules! c_table_datatype {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::datatype];
            fn MPI_Type_contiguous = type_contiguous(count: c_int, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_vector = type_vector(count: c_int, blocklength: c_int, stride: c_int, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_hvector = type_create_hvector(count: c_int, blocklength: c_int, stride: isize, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_hvector = type_create_hvector(count: c_int, blocklength: c_int, stride: isize, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_indexed = type_indexed(count: c_int, lengths: *const c_int, places: *const c_int, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_hindexed = type_create_hindexed(count: c_int, lengths: *const c_int, places: *const isize, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_hindexed = type_create_hindexed(count: c_int, lengths: *const c_int, places: *const isize, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_indexed_block = type_create_indexed_block(count: c_int, blocklength: c_int, places: *const c_int, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_hindexed_block = type_create_hindexed_block(count: c_int, blocklength: c_int, places: *const isize, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_struct = type_create_struct(count: c_int, lengths: *const c_int, places: *const isize, types: *const $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_struct = type_create_struct(count: c_int, lengths: *const c_int, places: *const isize, types: *const $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_resized = type_create_resized(oldtype: $crate::abi::CDatatype<$A>, lb: isize, extent: isize, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_subarray = type_create_subarray(ndims: c_int, sizes: *const c_int, subsizes: *const c_int, starts: *const c_int, order: c_int, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_darray = type_create_darray(size: c_int, rank: c_int, ndims: c_int, gsizes: *const c_int, distribs: *const c_int, dargs: *const c_int, psizes: *const c_int, order: c_int, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_f90_real = type_create_f90_real(precision: c_int, range: c_int, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_f90_complex = type_create_f90_complex(precision: c_int, range: c_int, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_f90_integer = type_create_f90_integer(range: c_int, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_match_size = type_match_size(typeclass: c_int, size: c_int, datatype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_commit = type_commit(datatype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_dup = type_dup(oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_free = type_free(datatype: *mut $crate::abi::CDatatype<$A>) -> c_int;
        }
        $crate::c_table_datatype_query!($A);
        $crate::c_table_datatype_pack!($A);
    };
}

/// The chapter's large-count (`_c`) functions, for faces that have them.
#[macro_export]
macro_rules! c_table_datatype_c {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::datatype];
            fn MPI_Type_contiguous_c = type_contiguous(count: i64, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_vector_c = type_vector(count: i64, blocklength: i64, stride: i64, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_hvector_c = type_create_hvector(count: i64, blocklength: i64, stride: i64, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_indexed_c = type_indexed(count: i64, lengths: *const i64, places: *const i64, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_hindexed_c = type_create_hindexed(count: i64, lengths: *const i64, places: *const i64, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_indexed_block_c = type_create_indexed_block(count: i64, blocklength: i64, places: *const i64, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_hindexed_block_c = type_create_hindexed_block(count: i64, blocklength: i64, places: *const i64, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_struct_c = type_create_struct(count: i64, lengths: *const i64, places: *const i64, types: *const $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_resized_c = type_create_resized(oldtype: $crate::abi::CDatatype<$A>, lb: i64, extent: i64, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_subarray_c = type_create_subarray(ndims: c_int, sizes: *const i64, subsizes: *const i64, starts: *const i64, order: c_int, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Type_create_darray_c = type_create_darray(size: c_int, rank: c_int, ndims: c_int, gsizes: *const i64, distribs: *const c_int, dargs: *const c_int, psizes: *const c_int, order: c_int, oldtype: $crate::abi::CDatatype<$A>, newtype: *mut $crate::abi::CDatatype<$A>) -> c_int;
        }
        $crate::c_table_datatype_query_c!($A);
        $crate::c_table_datatype_pack_c!($A);
    };
}
