//! mpi_f08 with large counts: the kinds of arguments that differ, and the procedures that have other arguments than with INTEGERs.
//!
//! The others are rows of the other tables, marked `#[counts]`.

use super::args::{ConstAints, Count, Counts};
use std::ffi::c_void;

pub type Num = Count;
pub type Nums = Counts;
/// MPI_Count and MPI_Aint have the same size.
pub type ConstNums = ConstAints;

/// The value of a count argument (negative ones are reported by the function itself).
///
/// # Safety
/// `count` must be the address of an INTEGER(KIND=MPI_COUNT_KIND).
#[inline]
pub unsafe fn n(count: *mut c_void) -> usize {
    // SAFETY: promised by the caller.
    usize::try_from(unsafe { count.cast::<i64>().read_unaligned() }).unwrap_or(0)
}

/// Procedures with arguments of their own.
#[macro_export]
macro_rules! f_table_large {
    ($A:ty) => {
        $crate::export_f! { $A, large, [mpi MPI];
            fn type_get_contents TYPE_GET_CONTENTS = c::type_get_contents_c(datatype: In<h::Datatype>, max_integers: Count,
                max_addresses: Count, max_large_counts: Count, max_datatypes: Count, integers: Ints, addresses: Aints,
                large_counts: Counts, datatypes: Outs<h::Datatype>[$crate::fortran::large::n(max_datatypes)]);
            fn type_get_envelope TYPE_GET_ENVELOPE = c::type_get_envelope_c(datatype: In<h::Datatype>, integers: Counts,
                addresses: Counts, large_counts: Counts, datatypes: Counts, combiner: Ints);
            fn win_shared_query WIN_SHARED_QUERY = c::win_shared_query_c(win: In<h::Win>, rank: Int, size: Aints,
                disp_unit: Aints, baseptr: Buf);
        }
    };
}
