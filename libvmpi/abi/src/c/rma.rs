//! One-sided operations (MPI 4.1 section 12.3).
//!
//! Every operation is complete when its call returns, so the requests of the request-based ones are born complete.

use super::args::not_null;
use super::win::{get, on_win};
use crate::abi::{Abi, CDatatype, COp, CRequest, CWin, dec, enc};
use std::ffi::{c_int, c_void};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::op::{self, Builtin};
use vmpi_core::rma::{self, Local, Operand, Place};
use vmpi_core::{consts, datatype};

fn count_in(count: impl Into<i64>) -> Result<u64> {
    let count = count.into();
    match u64::try_from(count) {
        Ok(count) => Ok(count),
        Err(_) => fail(Class::Count, format!("the count is {count}, which is negative")),
    }
}

/// A buffer of the origin.
fn local<A: Abi>(buf: *const c_void, count: impl Into<i64>, ty: CDatatype<A>) -> Result<Local> {
    let count = count_in(count)?;
    let ty = datatype::get_committed(dec::<A, _>(ty))?;
    if buf.is_null() && count > 0 && ty.size() > 0 && ty.is_dense() && ty.true_lb() == 0 {
        return fail(Class::Buffer, format!("the buffer is a null pointer, but the count is {count}"));
    }
    let buf = A::buf_in(buf);
    if buf as usize == consts::IN_PLACE {
        return fail(Class::Buffer, "MPI_IN_PLACE is not a buffer of a one-sided operation");
    }
    Ok(Local { buf: buf.cast_mut(), count, ty })
}

/// The buffer of an operand that the operation may not have.
fn operand<A: Abi>(
    buf: *const c_void,
    count: impl Into<i64>,
    ty: CDatatype<A>,
    op: &op::Operation,
    target: &Place,
) -> Result<Local> {
    if op.builtin() == Some(Builtin::NoOp) {
        return Ok(Local { buf: std::ptr::null_mut(), count: 0, ty: target.ty.clone() });
    }
    local::<A>(buf, count, ty)
}

fn place<A: Abi>(rank: c_int, disp: isize, count: impl Into<i64>, ty: CDatatype<A>) -> Result<Place> {
    let count = count_in(count)?;
    let ty = datatype::get_committed(dec::<A, _>(ty))?;
    Ok(Place { target: A::rank_in(rank), disp: disp as i64, count, ty })
}

/// Write an operation and its request-based form.
macro_rules! operations {
    ($(
        $(#[$doc:meta])*
        fn $func:ident $rfunc:ident = $name:literal $rname:literal ( $($arg:ident : $ty:ty),* $(,)? ), $win:ident =>
            $body:block
    )*) => {$(
        crate::entry_points! {
            $(#[$doc])*
            active fn $func = $name($($arg: $ty,)* $win: CWin<A>) for on_win::<A>($win) => $body

            $(#[$doc])*
            /// Its request is complete, but for a target on another node.
            active fn $rfunc = $rname($($arg: $ty,)* $win: CWin<A>, request: *mut CRequest<A>) for on_win::<A>($win) => {
                not_null(request, "request")?;
                let starting = rma::Starting::begin();
                $body
                *request = enc::<A, _>(starting.request());
            }
        }
    )*};
}

operations! {
    /// `MPI_Put`.
    fn put rput = "MPI_Put" "MPI_Rput"(
        origin_addr: *const c_void, origin_count: impl Into<i64>, origin_type: CDatatype<A>, target_rank: c_int,
        target_disp: isize, target_count: impl Into<i64>, target_type: CDatatype<A>,
    ), win => {
        let window = get::<A>(win)?;
        let origin = local::<A>(origin_addr, origin_count, origin_type)?;
        rma::put(&window, &origin, &place::<A>(target_rank, target_disp, target_count, target_type)?)?;
    }

    /// `MPI_Get`.
    fn get_from rget = "MPI_Get" "MPI_Rget"(
        origin_addr: *mut c_void, origin_count: impl Into<i64>, origin_type: CDatatype<A>, target_rank: c_int,
        target_disp: isize, target_count: impl Into<i64>, target_type: CDatatype<A>,
    ), win => {
        let window = get::<A>(win)?;
        let origin = local::<A>(origin_addr, origin_count, origin_type)?;
        rma::get(&window, &origin, &place::<A>(target_rank, target_disp, target_count, target_type)?)?;
    }

    /// `MPI_Accumulate`.
    fn accumulate raccumulate = "MPI_Accumulate" "MPI_Raccumulate"(
        origin_addr: *const c_void, origin_count: impl Into<i64>, origin_type: CDatatype<A>, target_rank: c_int,
        target_disp: isize, target_count: impl Into<i64>, target_type: CDatatype<A>, op: COp<A>,
    ), win => {
        let window = get::<A>(win)?;
        let place = place::<A>(target_rank, target_disp, target_count, target_type)?;
        let op = op::get(dec::<A, _>(op))?;
        let origin = operand::<A>(origin_addr, origin_count, origin_type, &op, &place)?;
        rma::accumulate(&window, &Operand { origin: &origin, op: &op }, &place)?;
    }

    /// `MPI_Get_accumulate`.
    fn get_accumulate rget_accumulate = "MPI_Get_accumulate" "MPI_Rget_accumulate"(
        origin_addr: *const c_void, origin_count: impl Into<i64>, origin_type: CDatatype<A>, result_addr: *mut c_void,
        result_count: impl Into<i64>, result_type: CDatatype<A>, target_rank: c_int, target_disp: isize,
        target_count: impl Into<i64>, target_type: CDatatype<A>, op: COp<A>,
    ), win => {
        let window = get::<A>(win)?;
        let place = place::<A>(target_rank, target_disp, target_count, target_type)?;
        let op = op::get(dec::<A, _>(op))?;
        let origin = operand::<A>(origin_addr, origin_count, origin_type, &op, &place)?;
        let result = local::<A>(result_addr, result_count, result_type)?;
        rma::get_accumulate(&window, &Operand { origin: &origin, op: &op }, &result, &place)?;
    }
}

crate::entry_points! {
    /// `MPI_Fetch_and_op`.
    active fn fetch_and_op = "MPI_Fetch_and_op"(
        origin_addr: *const c_void, result_addr: *mut c_void, ty: CDatatype<A>, target_rank: c_int, target_disp: isize,
        op: COp<A>, win: CWin<A>,
    ) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        let place = place::<A>(target_rank, target_disp, 1, ty)?;
        let op = op::get(dec::<A, _>(op))?;
        let origin = operand::<A>(origin_addr, 1, ty, &op, &place)?;
        let result = local::<A>(result_addr, 1, ty)?;
        rma::fetch_and_op(&window, origin.buf, result.buf, &place, &op)?;
    }

    /// `MPI_Compare_and_swap`.
    active fn compare_and_swap = "MPI_Compare_and_swap"(
        origin_addr: *const c_void, compare_addr: *const c_void, result_addr: *mut c_void, ty: CDatatype<A>,
        target_rank: c_int, target_disp: isize, win: CWin<A>,
    ) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        let place = place::<A>(target_rank, target_disp, 1, ty)?;
        let origin = local::<A>(origin_addr, 1, ty)?;
        let compare = local::<A>(compare_addr, 1, ty)?;
        let result = local::<A>(result_addr, 1, ty)?;
        rma::compare_and_swap(&window, origin.buf, compare.buf, result.buf, &place)?;
    }
}

/// The rows of operations whose counts may be large. `$N`: the C type of counts.
#[macro_export]
#[doc(hidden)]
macro_rules! rma_rows {
    ($A:ty, $N:ty; $put:ident $rput:ident $get:ident $rget:ident $accumulate:ident $raccumulate:ident
        $get_accumulate:ident $rget_accumulate:ident) => {
        $crate::export_c! { $A, [$crate::c::rma];
            fn $put = put(origin_addr: *const c_void, origin_count: $N, origin_type: $crate::abi::CDatatype<$A>, target_rank: c_int, target_disp: isize, target_count: $N, target_type: $crate::abi::CDatatype<$A>, win: $crate::abi::CWin<$A>) -> c_int;
            fn $rput = rput(origin_addr: *const c_void, origin_count: $N, origin_type: $crate::abi::CDatatype<$A>, target_rank: c_int, target_disp: isize, target_count: $N, target_type: $crate::abi::CDatatype<$A>, win: $crate::abi::CWin<$A>, request: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn $get = get_from(origin_addr: *mut c_void, origin_count: $N, origin_type: $crate::abi::CDatatype<$A>, target_rank: c_int, target_disp: isize, target_count: $N, target_type: $crate::abi::CDatatype<$A>, win: $crate::abi::CWin<$A>) -> c_int;
            fn $rget = rget(origin_addr: *mut c_void, origin_count: $N, origin_type: $crate::abi::CDatatype<$A>, target_rank: c_int, target_disp: isize, target_count: $N, target_type: $crate::abi::CDatatype<$A>, win: $crate::abi::CWin<$A>, request: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn $accumulate = accumulate(origin_addr: *const c_void, origin_count: $N, origin_type: $crate::abi::CDatatype<$A>, target_rank: c_int, target_disp: isize, target_count: $N, target_type: $crate::abi::CDatatype<$A>, op: $crate::abi::COp<$A>, win: $crate::abi::CWin<$A>) -> c_int;
            fn $raccumulate = raccumulate(origin_addr: *const c_void, origin_count: $N, origin_type: $crate::abi::CDatatype<$A>, target_rank: c_int, target_disp: isize, target_count: $N, target_type: $crate::abi::CDatatype<$A>, op: $crate::abi::COp<$A>, win: $crate::abi::CWin<$A>, request: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn $get_accumulate = get_accumulate(origin_addr: *const c_void, origin_count: $N, origin_type: $crate::abi::CDatatype<$A>, result_addr: *mut c_void, result_count: $N, result_type: $crate::abi::CDatatype<$A>, target_rank: c_int, target_disp: isize, target_count: $N, target_type: $crate::abi::CDatatype<$A>, op: $crate::abi::COp<$A>, win: $crate::abi::CWin<$A>) -> c_int;
            fn $rget_accumulate = rget_accumulate(origin_addr: *const c_void, origin_count: $N, origin_type: $crate::abi::CDatatype<$A>, result_addr: *mut c_void, result_count: $N, result_type: $crate::abi::CDatatype<$A>, target_rank: c_int, target_disp: isize, target_count: $N, target_type: $crate::abi::CDatatype<$A>, op: $crate::abi::COp<$A>, win: $crate::abi::CWin<$A>, request: *mut $crate::abi::CRequest<$A>) -> c_int;
        }
    };
}

/// The table of operations.
#[macro_export]
macro_rules! c_table_rma {
    ($A:ty) => {
        $crate::rma_rows! { $A, c_int; MPI_Put MPI_Rput MPI_Get MPI_Rget MPI_Accumulate MPI_Raccumulate
            MPI_Get_accumulate MPI_Rget_accumulate }
        $crate::export_c! { $A, [$crate::c::rma];
            fn MPI_Fetch_and_op = fetch_and_op(origin_addr: *const c_void, result_addr: *mut c_void, ty: $crate::abi::CDatatype<$A>, target_rank: c_int, target_disp: isize, op: $crate::abi::COp<$A>, win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Compare_and_swap = compare_and_swap(origin_addr: *const c_void, compare_addr: *const c_void, result_addr: *mut c_void, ty: $crate::abi::CDatatype<$A>, target_rank: c_int, target_disp: isize, win: $crate::abi::CWin<$A>) -> c_int;
        }
    };
}

/// The operations with large counts (MPI 4.0).
#[macro_export]
macro_rules! c_table_rma_c {
    ($A:ty) => {
        $crate::rma_rows! { $A, i64; MPI_Put_c MPI_Rput_c MPI_Get_c MPI_Rget_c MPI_Accumulate_c MPI_Raccumulate_c
        MPI_Get_accumulate_c MPI_Rget_accumulate_c }
    };
}
