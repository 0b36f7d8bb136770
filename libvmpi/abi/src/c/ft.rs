//! Fault tolerance: the MPIX_ functions of user-level failure mitigation (ULFM), as Open MPI 5 and MPICH name them.

use super::args::{not_null, on_comm};
use crate::abi::{Abi, CComm, CGroup, CRequest, dec, enc};
use std::ffi::c_int;
use std::rc::Rc;
use vmpi_core::comm::{self, Communicator};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Comm, Handle, Request};
use vmpi_core::{group, ulfm};

fn get<A: Abi>(comm: CComm<A>) -> Result<Rc<Communicator>> {
    comm::get(dec::<A, _>(comm))
}

crate::entry_points! {
    /// `MPIX_Comm_revoke`.
    active fn comm_revoke = "MPIX_Comm_revoke"(comm: CComm<A>) for on_comm::<A>(comm) => {
        ulfm::revoke(&*get::<A>(comm)?)?;
    }

    /// `MPIX_Comm_is_revoked`.
    active fn comm_is_revoked = "MPIX_Comm_is_revoked"(comm: CComm<A>, flag: *mut c_int) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(flag, "flag")?;
        *flag = c_int::from(ulfm::is_revoked(&comm));
    }

    /// `MPIX_Comm_agree`; the flag is written before an error is raised.
    active fn comm_agree = "MPIX_Comm_agree"(comm: CComm<A>, flag: *mut c_int) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(flag, "flag")?;
        ulfm::agree(&comm, flag)?;
    }

    /// `MPIX_Comm_iagree`.
    active fn comm_iagree = "MPIX_Comm_iagree"(comm: CComm<A>, flag: *mut c_int, request: *mut CRequest<A>)
        for on_comm::<A>(comm) =>
    {
        let comm = get::<A>(comm)?;
        not_null(flag, "flag")?;
        not_null(request, "request")?;
        *request = enc::<A, _>(Request::NULL);
        *request = enc::<A, _>(ulfm::iagree(&comm, flag)?);
    }

    /// `MPIX_Comm_shrink`.
    active fn comm_shrink = "MPIX_Comm_shrink"(comm: CComm<A>, newcomm: *mut CComm<A>) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(newcomm, "newcomm")?;
        *newcomm = enc::<A, _>(Comm::NULL);
        *newcomm = enc::<A, _>(ulfm::shrink(&comm)?);
    }

    /// `MPIX_Comm_ishrink`.
    active fn comm_ishrink = "MPIX_Comm_ishrink"(
        comm: CComm<A>, newcomm: *mut CComm<A>, request: *mut CRequest<A>,
    ) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(newcomm, "newcomm")?;
        not_null(request, "request")?;
        *newcomm = enc::<A, _>(Comm::NULL);
        let (handle, started) = ulfm::ishrink(&comm)?;
        *newcomm = enc::<A, _>(handle);
        *request = enc::<A, _>(started);
    }

    /// `MPIX_Comm_failure_ack`.
    active fn comm_failure_ack = "MPIX_Comm_failure_ack"(comm: CComm<A>) for on_comm::<A>(comm) => {
        ulfm::failure_ack(&*get::<A>(comm)?);
    }

    /// `MPIX_Comm_failure_get_acked`.
    active fn comm_failure_get_acked = "MPIX_Comm_failure_get_acked"(comm: CComm<A>, failed: *mut CGroup<A>)
        for on_comm::<A>(comm) =>
    {
        let comm = get::<A>(comm)?;
        not_null(failed, "failedgrp")?;
        *failed = enc::<A, _>(group::insert(Rc::new(ulfm::failure_get_acked(&comm))));
    }

    /// `MPIX_Comm_get_failed`.
    active fn comm_get_failed = "MPIX_Comm_get_failed"(comm: CComm<A>, failed: *mut CGroup<A>)
        for on_comm::<A>(comm) =>
    {
        let comm = get::<A>(comm)?;
        not_null(failed, "failedgrp")?;
        *failed = enc::<A, _>(group::insert(Rc::new(ulfm::get_failed(&comm))));
    }

    /// `MPIX_Comm_ack_failed`; a number larger than that of failures acknowledges all.
    active fn comm_ack_failed = "MPIX_Comm_ack_failed"(comm: CComm<A>, num_to_ack: c_int, num_acked: *mut c_int)
        for on_comm::<A>(comm) =>
    {
        let comm = get::<A>(comm)?;
        not_null(num_acked, "num_acked")?;
        let Ok(number) = usize::try_from(num_to_ack) else {
            return fail(Class::Arg, format!("the number of failures to acknowledge is {num_to_ack}, which is negative"));
        };
        *num_acked = ulfm::ack_failed(&comm, number) as c_int;
    }
}

/// What every face has.
#[macro_export]
macro_rules! c_table_ft {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::ft];
            fn MPIX_Comm_revoke = comm_revoke(comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPIX_Comm_agree = comm_agree(comm: $crate::abi::CComm<$A>, flag: *mut c_int) -> c_int;
            fn MPIX_Comm_shrink = comm_shrink(comm: $crate::abi::CComm<$A>, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPIX_Comm_failure_ack = comm_failure_ack(comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPIX_Comm_failure_get_acked = comm_failure_get_acked(comm: $crate::abi::CComm<$A>,
                failed: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPIX_Comm_get_failed = comm_get_failed(comm: $crate::abi::CComm<$A>,
                failed: *mut $crate::abi::CGroup<$A>) -> c_int;
        }
    };
}

/// What Open MPI 5 has beyond that.
#[macro_export]
macro_rules! c_table_ft_openmpi {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::ft];
            fn MPIX_Comm_is_revoked = comm_is_revoked(comm: $crate::abi::CComm<$A>, flag: *mut c_int) -> c_int;
            fn MPIX_Comm_iagree = comm_iagree(comm: $crate::abi::CComm<$A>, flag: *mut c_int,
                request: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPIX_Comm_ack_failed = comm_ack_failed(comm: $crate::abi::CComm<$A>, num_to_ack: c_int,
                num_acked: *mut c_int) -> c_int;
        }
    };
}

/// What no other library has yet; with vmpi.h.
#[macro_export]
macro_rules! c_table_ft_own {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::ft];
            fn MPIX_Comm_ishrink = comm_ishrink(comm: $crate::abi::CComm<$A>, newcomm: *mut $crate::abi::CComm<$A>,
                request: *mut $crate::abi::CRequest<$A>) -> c_int;
        }
    };
}
