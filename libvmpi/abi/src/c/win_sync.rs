//! Synchronisation of windows (MPI 4.1 section 12.5).

use super::args::not_null;
use super::win::{get, on_win};
use crate::abi::{Abi, CGroup, CWin, dec};
use std::ffi::c_int;
use std::rc::Rc;
use vmpi_core::consts;
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::group::{self, Members};
use vmpi_core::rma::{self, LockKind};

fn group_in<A: Abi>(group: CGroup<A>) -> Result<Rc<Members>> {
    group::get(dec::<A, _>(group))
}

fn kind_in<A: Abi>(kind: c_int) -> Result<LockKind> {
    match A::lock_in(kind) {
        consts::LOCK_SHARED => Ok(LockKind::Shared),
        consts::LOCK_EXCLUSIVE => Ok(LockKind::Exclusive),
        _ => fail(Class::Locktype, format!("{kind} is neither MPI_LOCK_SHARED nor MPI_LOCK_EXCLUSIVE")),
    }
}

crate::entry_points! {
    /// `MPI_Win_fence`.
    active fn win_fence = "MPI_Win_fence"(assert: c_int, win: CWin<A>) for on_win::<A>(win) => {
        rma::fence(&*get::<A>(win)?, A::win_assert_in(assert))?;
    }

    /// `MPI_Win_post`.
    active fn win_post = "MPI_Win_post"(group: CGroup<A>, assert: c_int, win: CWin<A>) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        rma::post(&window, &*group_in::<A>(group)?, A::win_assert_in(assert))?;
    }

    /// `MPI_Win_start`.
    active fn win_start = "MPI_Win_start"(group: CGroup<A>, assert: c_int, win: CWin<A>) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        rma::start(&window, &*group_in::<A>(group)?, A::win_assert_in(assert))?;
    }

    /// `MPI_Win_complete`.
    active fn win_complete = "MPI_Win_complete"(win: CWin<A>) for on_win::<A>(win) => {
        rma::complete(&*get::<A>(win)?)?;
    }

    /// `MPI_Win_wait`.
    active fn win_wait = "MPI_Win_wait"(win: CWin<A>) for on_win::<A>(win) => {
        rma::wait(&*get::<A>(win)?)?;
    }

    /// `MPI_Win_test`.
    active fn win_test = "MPI_Win_test"(win: CWin<A>, flag: *mut c_int) for on_win::<A>(win) => {
        let window = get::<A>(win)?;
        not_null(flag, "flag")?;
        *flag = c_int::from(rma::test(&window)?);
    }

    /// `MPI_Win_lock`.
    active fn win_lock = "MPI_Win_lock"(lock_type: c_int, rank: c_int, assert: c_int, win: CWin<A>)
        for on_win::<A>(win) =>
    {
        let window = get::<A>(win)?;
        let kind = kind_in::<A>(lock_type)?;
        rma::lock(&window, kind, A::rank_in(rank), A::win_assert_in(assert))?;
    }

    /// `MPI_Win_unlock`.
    active fn win_unlock = "MPI_Win_unlock"(rank: c_int, win: CWin<A>) for on_win::<A>(win) => {
        rma::unlock(&*get::<A>(win)?, A::rank_in(rank))?;
    }

    /// `MPI_Win_lock_all`.
    active fn win_lock_all = "MPI_Win_lock_all"(assert: c_int, win: CWin<A>) for on_win::<A>(win) => {
        rma::lock_all(&*get::<A>(win)?, A::win_assert_in(assert))?;
    }

    /// `MPI_Win_unlock_all`.
    active fn win_unlock_all = "MPI_Win_unlock_all"(win: CWin<A>) for on_win::<A>(win) => {
        rma::unlock_all(&*get::<A>(win)?)?;
    }

    /// `MPI_Win_flush`.
    active fn win_flush = "MPI_Win_flush"(rank: c_int, win: CWin<A>) for on_win::<A>(win) => {
        rma::flush(&*get::<A>(win)?, A::rank_in(rank))?;
    }

    /// `MPI_Win_flush_local`.
    active fn win_flush_local = "MPI_Win_flush_local"(rank: c_int, win: CWin<A>) for on_win::<A>(win) => {
        rma::flush_local(&*get::<A>(win)?, A::rank_in(rank))?;
    }

    /// `MPI_Win_flush_all`.
    active fn win_flush_all = "MPI_Win_flush_all"(win: CWin<A>) for on_win::<A>(win) => {
        rma::flush_all(&*get::<A>(win)?)?;
    }

    /// `MPI_Win_flush_local_all`.
    active fn win_flush_local_all = "MPI_Win_flush_local_all"(win: CWin<A>) for on_win::<A>(win) => {
        rma::flush_local_all(&*get::<A>(win)?)?;
    }

    /// `MPI_Win_sync`.
    active fn win_sync = "MPI_Win_sync"(win: CWin<A>) for on_win::<A>(win) => {
        rma::sync(&*get::<A>(win)?);
    }
}

/// The table of synchronisation.
#[macro_export]
macro_rules! c_table_win_sync {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::win_sync];
            fn MPI_Win_fence = win_fence(assert: c_int, win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_post = win_post(group: $crate::abi::CGroup<$A>, assert: c_int, win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_start = win_start(group: $crate::abi::CGroup<$A>, assert: c_int, win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_complete = win_complete(win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_wait = win_wait(win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_test = win_test(win: $crate::abi::CWin<$A>, flag: *mut c_int) -> c_int;
            fn MPI_Win_lock = win_lock(lock_type: c_int, rank: c_int, assert: c_int, win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_unlock = win_unlock(rank: c_int, win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_lock_all = win_lock_all(assert: c_int, win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_unlock_all = win_unlock_all(win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_flush = win_flush(rank: c_int, win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_flush_local = win_flush_local(rank: c_int, win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_flush_all = win_flush_all(win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_flush_local_all = win_flush_local_all(win: $crate::abi::CWin<$A>) -> c_int;
            fn MPI_Win_sync = win_sync(win: $crate::abi::CWin<$A>) -> c_int;
        }
    };
}
