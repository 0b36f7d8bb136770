//! Groups: MPI 4.1 section 7.3.

use super::args::{array, fill, handle_at, not_negative, not_null};
use crate::abi::{Abi, CGroup, dec, enc};
use crate::entry::Target;
use std::ffi::c_int;
use std::rc::Rc;
use vmpi_core::errors::{Class, Result};
use vmpi_core::group::{self, Members};
use vmpi_core::handle::{Group, Handle};
use vmpi_core::{consts, process};

fn get<A: Abi>(group: CGroup<A>) -> Result<Rc<Members>> {
    group::get(dec::<A, _>(group))
}

fn made<A: Abi>(members: Members) -> CGroup<A> {
    enc::<A, _>(group::insert(Rc::new(members)))
}

/// Combine two groups into a third.
///
/// # Safety
/// `newgroup` must be null or writable.
unsafe fn combine<A: Abi>(
    group1: CGroup<A>,
    group2: CGroup<A>,
    newgroup: *mut CGroup<A>,
    operation: fn(&Members, &Members) -> Members,
) -> Result<()> {
    let (first, second) = (get::<A>(group1)?, get::<A>(group2)?);
    not_null(newgroup, "newgroup")?;
    // SAFETY: not null, and writable as the caller says.
    unsafe { *newgroup = made::<A>(operation(&first, &second)) };
    Ok(())
}

/// Choose members of a group by an array (of ranks or of ranges).
///
/// # Safety
/// `newgroup` must be null or writable, `items` null or `n` elements long.
unsafe fn choose<A: Abi, T>(
    group: CGroup<A>,
    n: c_int,
    items: *const T,
    newgroup: *mut CGroup<A>,
    operation: fn(&Members, &[T]) -> Result<Members>,
) -> Result<()> {
    let members = get::<A>(group)?;
    let count = not_negative(n, Class::Arg, "n")?;
    not_null(newgroup, "newgroup")?;
    // SAFETY: as the caller says.
    let items = unsafe { array(items, count, "ranks")? };
    // SAFETY: not null, and writable as the caller says.
    unsafe { *newgroup = made::<A>(operation(&members, items)?) };
    Ok(())
}

crate::entry_points! {
    /// `MPI_Group_size`.
    active fn group_size = "MPI_Group_size"(group: CGroup<A>, size: *mut c_int) for Target::Process => {
        let members = get::<A>(group)?;
        not_null(size, "size")?;
        *size = members.size() as c_int;
    }

    /// `MPI_Group_rank`.
    active fn group_rank = "MPI_Group_rank"(group: CGroup<A>, rank: *mut c_int) for Target::Process => {
        let members = get::<A>(group)?;
        not_null(rank, "rank")?;
        let me = process::endpoint_rank();
        *rank = A::rank_out(members.rank_of(me).map_or(consts::UNDEFINED, |rank| rank as i32));
    }

    /// `MPI_Group_translate_ranks`.
    active fn group_translate_ranks = "MPI_Group_translate_ranks"(
        group1: CGroup<A>, n: c_int, ranks1: *const c_int, group2: CGroup<A>, ranks2: *mut c_int,
    ) for Target::Process => {
        let (first, second) = (get::<A>(group1)?, get::<A>(group2)?);
        let count = not_negative(n, Class::Arg, "n")?;
        let ranks: Vec<i32> = array(ranks1, count, "ranks1")?.iter().map(|&rank| A::rank_in(rank)).collect();
        if count > 0 {
            not_null(ranks2, "ranks2")?;
        }
        fill(ranks2, first.translate(&ranks, &second)?.into_iter().map(A::rank_out));
    }

    /// `MPI_Group_compare`.
    active fn group_compare = "MPI_Group_compare"(group1: CGroup<A>, group2: CGroup<A>, result: *mut c_int)
        for Target::Process =>
    {
        let (first, second) = (get::<A>(group1)?, get::<A>(group2)?);
        not_null(result, "result")?;
        *result = A::compare_out(first.compare(&second));
    }

    /// `MPI_Group_union`.
    active fn group_union = "MPI_Group_union"(group1: CGroup<A>, group2: CGroup<A>, newgroup: *mut CGroup<A>)
        for Target::Process =>
    {
        combine::<A>(group1, group2, newgroup, Members::union)?;
    }

    /// `MPI_Group_intersection`.
    active fn group_intersection = "MPI_Group_intersection"(
        group1: CGroup<A>, group2: CGroup<A>, newgroup: *mut CGroup<A>,
    ) for Target::Process => {
        combine::<A>(group1, group2, newgroup, Members::intersection)?;
    }

    /// `MPI_Group_difference`.
    active fn group_difference = "MPI_Group_difference"(
        group1: CGroup<A>, group2: CGroup<A>, newgroup: *mut CGroup<A>,
    ) for Target::Process => {
        combine::<A>(group1, group2, newgroup, Members::difference)?;
    }

    /// `MPI_Group_incl`.
    active fn group_incl = "MPI_Group_incl"(
        group: CGroup<A>, n: c_int, ranks: *const c_int, newgroup: *mut CGroup<A>,
    ) for Target::Process => {
        choose::<A, _>(group, n, ranks, newgroup, Members::incl)?;
    }

    /// `MPI_Group_excl`.
    active fn group_excl = "MPI_Group_excl"(
        group: CGroup<A>, n: c_int, ranks: *const c_int, newgroup: *mut CGroup<A>,
    ) for Target::Process => {
        choose::<A, _>(group, n, ranks, newgroup, Members::excl)?;
    }

    /// `MPI_Group_range_incl`.
    active fn group_range_incl = "MPI_Group_range_incl"(
        group: CGroup<A>, n: c_int, ranges: *const [c_int; 3], newgroup: *mut CGroup<A>,
    ) for Target::Process => {
        choose::<A, _>(group, n, ranges, newgroup, Members::range_incl)?;
    }

    /// `MPI_Group_range_excl`.
    active fn group_range_excl = "MPI_Group_range_excl"(
        group: CGroup<A>, n: c_int, ranges: *const [c_int; 3], newgroup: *mut CGroup<A>,
    ) for Target::Process => {
        choose::<A, _>(group, n, ranges, newgroup, Members::range_excl)?;
    }

    /// `MPI_Group_free`.
    active fn group_free = "MPI_Group_free"(group: *mut CGroup<A>) for Target::Process => {
        group::free(handle_at::<A, _>(group, "group")?)?;
        *group = enc::<A, _>(Group::NULL);
    }
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_group {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::group];
            fn MPI_Group_size = group_size(group: $crate::abi::CGroup<$A>, size: *mut c_int) -> c_int;
            fn MPI_Group_rank = group_rank(group: $crate::abi::CGroup<$A>, rank: *mut c_int) -> c_int;
            fn MPI_Group_translate_ranks = group_translate_ranks(group1: $crate::abi::CGroup<$A>, n: c_int, ranks1: *const c_int, group2: $crate::abi::CGroup<$A>, ranks2: *mut c_int) -> c_int;
            fn MPI_Group_compare = group_compare(group1: $crate::abi::CGroup<$A>, group2: $crate::abi::CGroup<$A>, result: *mut c_int) -> c_int;
            fn MPI_Group_union = group_union(group1: $crate::abi::CGroup<$A>, group2: $crate::abi::CGroup<$A>, newgroup: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Group_intersection = group_intersection(group1: $crate::abi::CGroup<$A>, group2: $crate::abi::CGroup<$A>, newgroup: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Group_difference = group_difference(group1: $crate::abi::CGroup<$A>, group2: $crate::abi::CGroup<$A>, newgroup: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Group_incl = group_incl(group: $crate::abi::CGroup<$A>, n: c_int, ranks: *const c_int, newgroup: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Group_excl = group_excl(group: $crate::abi::CGroup<$A>, n: c_int, ranks: *const c_int, newgroup: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Group_range_incl = group_range_incl(group: $crate::abi::CGroup<$A>, n: c_int, ranges: *const [c_int; 3], newgroup: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Group_range_excl = group_range_excl(group: $crate::abi::CGroup<$A>, n: c_int, ranges: *const [c_int; 3], newgroup: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Group_free = group_free(group: *mut $crate::abi::CGroup<$A>) -> c_int;
        }
    };
}
