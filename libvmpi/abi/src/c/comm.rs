//! Communicators: MPI 4.1 chapter 7.

use super::args::{handle_at, not_null, on_comm, put_text, text};
use crate::abi::{Abi, CComm, CGroup, CInfo, CRequest, dec, enc};
use crate::entry::Target;
use std::ffi::{c_char, c_int};
use std::rc::Rc;
use vmpi_core::comm::{self, Communicator};
use vmpi_core::errors::Result;
use vmpi_core::handle::{Comm, Handle, Info};
use vmpi_core::{construct, group, info};

/// The C handle of what a constructor made; null for ranks that are not in it.
fn made<A: Abi>(comm: Option<Rc<Communicator>>) -> CComm<A> {
    enc::<A, _>(comm.map_or(Comm::NULL, |comm| comm.handle))
}

fn get<A: Abi>(comm: CComm<A>) -> Result<Rc<Communicator>> {
    comm::get(dec::<A, _>(comm))
}

crate::entry_points! {
    /// `MPI_Comm_size`.
    active fn comm_size = "MPI_Comm_size"(comm: CComm<A>, size: *mut c_int) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(size, "size")?;
        *size = comm.size() as c_int;
    }

    /// `MPI_Comm_rank`.
    active fn comm_rank = "MPI_Comm_rank"(comm: CComm<A>, rank: *mut c_int) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(rank, "rank")?;
        *rank = comm.rank as c_int;
    }

    /// `MPI_Comm_compare`.
    active fn comm_compare = "MPI_Comm_compare"(comm1: CComm<A>, comm2: CComm<A>, result: *mut c_int)
        for on_comm::<A>(comm1) =>
    {
        let (first, second) = (get::<A>(comm1)?, get::<A>(comm2)?);
        not_null(result, "result")?;
        *result = A::compare_out(construct::compare(&first, &second));
    }

    /// `MPI_Comm_dup`.
    active fn comm_dup = "MPI_Comm_dup"(comm: CComm<A>, newcomm: *mut CComm<A>) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(newcomm, "newcomm")?;
        *newcomm = enc::<A, _>(Comm::NULL); // what a failing copy callback leaves
        *newcomm = enc::<A, _>(construct::dup(&comm)?);
    }

    /// `MPI_Comm_dup_with_info`.
    active fn comm_dup_with_info = "MPI_Comm_dup_with_info"(
        comm: CComm<A>, info: CInfo<A>, newcomm: *mut CComm<A>,
    ) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        let hints = info::hints(dec::<A, _>(info))?;
        not_null(newcomm, "newcomm")?;
        *newcomm = enc::<A, _>(Comm::NULL);
        *newcomm = enc::<A, _>(construct::dup_with_info(&comm, hints)?);
    }

    /// `MPI_Comm_idup`.
    active fn comm_idup = "MPI_Comm_idup"(
        comm: CComm<A>, newcomm: *mut CComm<A>, request: *mut CRequest<A>,
    ) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(newcomm, "newcomm")?;
        not_null(request, "request")?;
        *newcomm = enc::<A, _>(Comm::NULL);
        let (handle, started) = construct::idup(&comm, Rc::default())?;
        *newcomm = enc::<A, _>(handle);
        *request = enc::<A, _>(started);
    }

    /// `MPI_Comm_idup_with_info`.
    active fn comm_idup_with_info = "MPI_Comm_idup_with_info"(
        comm: CComm<A>, info: CInfo<A>, newcomm: *mut CComm<A>, request: *mut CRequest<A>,
    ) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        let hints = info::hints(dec::<A, _>(info))?;
        not_null(newcomm, "newcomm")?;
        not_null(request, "request")?;
        *newcomm = enc::<A, _>(Comm::NULL);
        let (handle, started) = construct::idup(&comm, hints)?;
        *newcomm = enc::<A, _>(handle);
        *request = enc::<A, _>(started);
    }

    /// `MPI_Comm_create`.
    active fn comm_create = "MPI_Comm_create"(comm: CComm<A>, group: CGroup<A>, newcomm: *mut CComm<A>)
        for on_comm::<A>(comm) =>
    {
        let comm = get::<A>(comm)?;
        let group = group::get(dec::<A, _>(group))?;
        not_null(newcomm, "newcomm")?;
        *newcomm = made::<A>(construct::create(&comm, &group)?);
    }

    /// `MPI_Comm_create_group`.
    active fn comm_create_group = "MPI_Comm_create_group"(
        comm: CComm<A>, group: CGroup<A>, tag: c_int, newcomm: *mut CComm<A>,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get_intra(dec::<A, _>(comm))?;
        let group = group::get(dec::<A, _>(group))?;
        not_null(newcomm, "newcomm")?;
        *newcomm = made::<A>(construct::create_group(&comm, group, tag)?);
    }

    /// `MPI_Comm_split`.
    active fn comm_split = "MPI_Comm_split"(comm: CComm<A>, color: c_int, key: c_int, newcomm: *mut CComm<A>)
        for on_comm::<A>(comm) =>
    {
        let comm = get::<A>(comm)?;
        not_null(newcomm, "newcomm")?;
        *newcomm = made::<A>(construct::split(&comm, undefined_in::<A>(color), key)?);
    }

    /// `MPI_Comm_split_type`.
    active fn comm_split_type = "MPI_Comm_split_type"(
        comm: CComm<A>, split_type: c_int, key: c_int, info: CInfo<A>, newcomm: *mut CComm<A>,
    ) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        let hints = info::hints(dec::<A, _>(info))?;
        not_null(newcomm, "newcomm")?;
        let kind = match undefined_in::<A>(split_type) {
            vmpi_core::consts::UNDEFINED => vmpi_core::consts::UNDEFINED,
            kind => A::split_type_in(kind),
        };
        let (part, chosen) = construct::split_type(&comm, kind, key, &hints)?;
        let info = dec::<A, Info>(info);
        if let (Some(chosen), true, false) = (chosen, part.is_some(), info.is_null()) {
            info::change(info, |entries| {
                entries.set(b"mpi_hw_resource_type", chosen.as_bytes());
                Ok(())
            })?;
        }
        if let Some(part) = &part {
            part.add_hints(&hints);
        }
        *newcomm = made::<A>(part);
    }

    /// `MPI_Comm_free`.
    active fn comm_free = "MPI_Comm_free"(comm: *mut CComm<A>) for pointed::<A>(comm) => {
        construct::free(handle_at::<A, _>(comm, "comm")?)?;
        *comm = enc::<A, _>(Comm::NULL);
    }

    /// `MPI_Comm_disconnect`.
    active fn comm_disconnect = "MPI_Comm_disconnect"(comm: *mut CComm<A>) for pointed::<A>(comm) => {
        construct::disconnect(handle_at::<A, _>(comm, "comm")?)?;
        *comm = enc::<A, _>(Comm::NULL);
    }

    /// `MPI_Comm_test_inter`.
    active fn comm_test_inter = "MPI_Comm_test_inter"(comm: CComm<A>, flag: *mut c_int) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(flag, "flag")?;
        *flag = c_int::from(comm.is_inter());
    }

    /// `MPI_Comm_remote_size`.
    active fn comm_remote_size = "MPI_Comm_remote_size"(comm: CComm<A>, size: *mut c_int) for on_comm::<A>(comm) => {
        let comm = comm::get_inter(dec::<A, _>(comm))?;
        not_null(size, "size")?;
        *size = comm.peers().size() as c_int;
    }

    /// `MPI_Comm_remote_group`.
    active fn comm_remote_group = "MPI_Comm_remote_group"(comm: CComm<A>, group: *mut CGroup<A>)
        for on_comm::<A>(comm) =>
    {
        let comm = comm::get_inter(dec::<A, _>(comm))?;
        not_null(group, "group")?;
        *group = enc::<A, _>(group::insert(comm.peers().clone()));
    }

    /// `MPI_Comm_group`.
    active fn comm_group = "MPI_Comm_group"(comm: CComm<A>, group: *mut CGroup<A>) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(group, "group")?;
        *group = enc::<A, _>(group::insert(comm.local.clone()));
    }

    /// `MPI_Comm_set_name`; longer names than the face allows are cut.
    active fn comm_set_name = "MPI_Comm_set_name"(comm: CComm<A>, name: *const c_char) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        let name = text(name, "comm_name")?;
        comm.set_name(&name[..name.len().min(A::MAX_OBJECT_NAME - 1)]);
    }

    /// `MPI_Comm_get_name`; MPI_COMM_NULL has a name too (MPI 4.1 section 7.8).
    active fn comm_get_name = "MPI_Comm_get_name"(comm: CComm<A>, name: *mut c_char, length: *mut c_int)
        for on_comm::<A>(comm) =>
    {
        let comm: Comm = dec::<A, _>(comm);
        let stored = if comm.is_null() { b"MPI_COMM_NULL".to_vec() } else { comm::get(comm)?.name() };
        not_null(name, "comm_name")?;
        not_null(length, "resultlen")?;
        *length = put_text(name, A::MAX_OBJECT_NAME, &stored);
    }

    /// `MPI_Comm_set_info`.
    active fn comm_set_info = "MPI_Comm_set_info"(comm: CComm<A>, info: CInfo<A>) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        let hints = info::get(dec::<A, _>(info))?;
        comm.add_hints(&hints);
    }

    /// `MPI_Comm_get_info`.
    active fn comm_get_info = "MPI_Comm_get_info"(comm: CComm<A>, info: *mut CInfo<A>) for on_comm::<A>(comm) => {
        let comm = get::<A>(comm)?;
        not_null(info, "info_used")?;
        *info = enc::<A, _>(info::insert(Rc::new(comm.hints())));
    }

    /// `MPI_Comm_get_parent`.
    active fn comm_get_parent = "MPI_Comm_get_parent"(parent: *mut CComm<A>) for Target::Process => {
        not_null(parent, "parent")?;
        *parent = enc::<A, _>(comm::parent());
    }

    /// `MPI_Intercomm_create`; the peer communicator is looked at by the local leader only.
    active fn intercomm_create = "MPI_Intercomm_create"(
        local_comm: CComm<A>, local_leader: c_int, peer_comm: CComm<A>, remote_leader: c_int, tag: c_int,
        newcomm: *mut CComm<A>,
    ) for on_comm::<A>(local_comm) => {
        let local = comm::get_intra(dec::<A, _>(local_comm))?;
        not_null(newcomm, "newintercomm")?;
        let made = construct::intercomm_create(&local, local_leader, || get::<A>(peer_comm), remote_leader, tag)?;
        *newcomm = enc::<A, _>(made.handle);
    }

    /// `MPI_Intercomm_merge`.
    active fn intercomm_merge = "MPI_Intercomm_merge"(comm: CComm<A>, high: c_int, newcomm: *mut CComm<A>)
        for on_comm::<A>(comm) =>
    {
        let comm = comm::get_inter(dec::<A, _>(comm))?;
        not_null(newcomm, "newintracomm")?;
        *newcomm = enc::<A, _>(construct::intercomm_merge(&comm, high != 0)?.handle);
    }
}

/// MPI_UNDEFINED in a color; every other value is the program's own.
fn undefined_in<A: Abi>(color: c_int) -> i32 {
    if A::rank_in(color) == vmpi_core::consts::UNDEFINED { vmpi_core::consts::UNDEFINED } else { color }
}

/// The error handler of a communicator behind a pointer.
fn pointed<A: Abi>(comm: *const CComm<A>) -> Target {
    if comm.is_null() {
        return Target::Process;
    }
    // SAFETY: not null, and MPI says that it points to a communicator.
    on_comm::<A>(unsafe { comm.read() })
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_comm {
    ($A:ty) => {
        $crate::c_table_dynamic! { $A }
        $crate::export_c! { $A, [$crate::c::comm];
            fn MPI_Comm_size = comm_size(comm: $crate::abi::CComm<$A>, size: *mut c_int) -> c_int;
            fn MPI_Comm_rank = comm_rank(comm: $crate::abi::CComm<$A>, rank: *mut c_int) -> c_int;
            fn MPI_Comm_compare = comm_compare(comm1: $crate::abi::CComm<$A>, comm2: $crate::abi::CComm<$A>, result: *mut c_int) -> c_int;
            fn MPI_Comm_dup = comm_dup(comm: $crate::abi::CComm<$A>, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_dup_with_info = comm_dup_with_info(comm: $crate::abi::CComm<$A>, info: $crate::abi::CInfo<$A>, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_idup = comm_idup(comm: $crate::abi::CComm<$A>, newcomm: *mut $crate::abi::CComm<$A>, request: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Comm_idup_with_info = comm_idup_with_info(comm: $crate::abi::CComm<$A>, info: $crate::abi::CInfo<$A>, newcomm: *mut $crate::abi::CComm<$A>, request: *mut $crate::abi::CRequest<$A>) -> c_int;
            fn MPI_Comm_create = comm_create(comm: $crate::abi::CComm<$A>, group: $crate::abi::CGroup<$A>, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_create_group = comm_create_group(comm: $crate::abi::CComm<$A>, group: $crate::abi::CGroup<$A>, tag: c_int, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_split = comm_split(comm: $crate::abi::CComm<$A>, color: c_int, key: c_int, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_split_type = comm_split_type(comm: $crate::abi::CComm<$A>, split_type: c_int, key: c_int, info: $crate::abi::CInfo<$A>, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_free = comm_free(comm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_disconnect = comm_disconnect(comm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_test_inter = comm_test_inter(comm: $crate::abi::CComm<$A>, flag: *mut c_int) -> c_int;
            fn MPI_Comm_remote_size = comm_remote_size(comm: $crate::abi::CComm<$A>, size: *mut c_int) -> c_int;
            fn MPI_Comm_remote_group = comm_remote_group(comm: $crate::abi::CComm<$A>, group: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Comm_group = comm_group(comm: $crate::abi::CComm<$A>, group: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Comm_set_name = comm_set_name(comm: $crate::abi::CComm<$A>, name: *const c_char) -> c_int;
            fn MPI_Comm_get_name = comm_get_name(comm: $crate::abi::CComm<$A>, name: *mut c_char, length: *mut c_int) -> c_int;
            fn MPI_Comm_set_info = comm_set_info(comm: $crate::abi::CComm<$A>, info: $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Comm_get_info = comm_get_info(comm: $crate::abi::CComm<$A>, info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Comm_get_parent = comm_get_parent(parent: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Intercomm_create = intercomm_create(local_comm: $crate::abi::CComm<$A>, local_leader: c_int, peer_comm: $crate::abi::CComm<$A>, remote_leader: c_int, tag: c_int, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Intercomm_merge = intercomm_merge(comm: $crate::abi::CComm<$A>, high: c_int, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
        }
    };
}
