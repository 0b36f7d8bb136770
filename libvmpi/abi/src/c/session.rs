//! Sessions: MPI 4.1 sections 11.3, 7.3.2 and 7.4.2.

use super::args::{handle_at, not_null, put_text, text};
use crate::abi::{Abi, CComm, CErrhandler, CGroup, CInfo, CSession, dec, enc};
use crate::entry::Target;
use std::ffi::{c_char, c_int};
use std::rc::Rc;
use vmpi_core::errors::{Class, fail};
use vmpi_core::handle::{Comm, Handle, Session};
use vmpi_core::{construct, group, info, overlap, session};

fn on<A: Abi>(session: CSession<A>) -> Target {
    Target::Session(dec::<A, Session>(session))
}

/// The error handler of a session behind a pointer.
fn pointed<A: Abi>(session: *const CSession<A>) -> Target {
    if session.is_null() {
        return Target::Process;
    }
    // SAFETY: not null, and MPI says that it points to a session.
    on::<A>(unsafe { session.read() })
}

crate::entry_points! {
    /// `MPI_Session_init`.
    anytime fn session_init = "MPI_Session_init"(
        info: CInfo<A>, errhandler: CErrhandler<A>, session: *mut CSession<A>,
    ) => {
        not_null(session, "session")?;
        let hints = info::hints(dec::<A, _>(info))?;
        vmpi_core::face::adopt(A::FACE);
        *session = enc::<A, _>(session::init(A::NAME, &hints, dec::<A, _>(errhandler))?);
        overlap::begin();
    }

    /// `MPI_Session_finalize`.
    active fn session_finalize = "MPI_Session_finalize"(session: *mut CSession<A>)
        for pointed::<A>(session) =>
    {
        session::finalize(handle_at::<A, _>(session, "session")?)?;
        *session = enc::<A, _>(Session::NULL);
    }

    /// `MPI_Session_get_info`.
    active fn session_get_info = "MPI_Session_get_info"(session: CSession<A>, info: *mut CInfo<A>)
        for on::<A>(session) =>
    {
        let entries = session::get(dec::<A, _>(session))?;
        not_null(info, "info_used")?;
        *info = enc::<A, _>(info::insert(entries));
    }

    /// `MPI_Session_set_info`, which only Open MPI has.
    active fn session_set_info = "MPI_Session_set_info"(session: CSession<A>, info: CInfo<A>) for on::<A>(session) => {
        session::add_hints(dec::<A, _>(session), &*info::hints(dec::<A, _>(info))?)?;
    }

    /// `MPI_Session_get_num_psets`.
    active fn session_get_num_psets = "MPI_Session_get_num_psets"(
        session: CSession<A>, info: CInfo<A>, count: *mut c_int,
    ) for on::<A>(session) => {
        session::get(dec::<A, _>(session))?;
        info::hints(dec::<A, _>(info))?;
        not_null(count, "npset_names")?;
        *count = A::PSETS.len() as c_int;
    }

    /// `MPI_Session_get_nth_pset`: `length` is the room with the NUL; 0 asks for the room needed.
    active fn session_get_nth_pset = "MPI_Session_get_nth_pset"(
        session: CSession<A>, info: CInfo<A>, n: c_int, length: *mut c_int, name: *mut c_char,
    ) for on::<A>(session) => {
        session::get(dec::<A, _>(session))?;
        info::hints(dec::<A, _>(info))?;
        not_null(length, "pset_len")?;
        let Some(pset) = usize::try_from(n).ok().and_then(|n| A::PSETS.get(n)) else {
            return fail(Class::Arg, format!("there is no process set number {n}, there are {}", A::PSETS.len()));
        };
        let Ok(room) = usize::try_from(*length) else {
            return fail(Class::Arg, format!("pset_len is {}, it must not be negative", *length));
        };
        if room > 0 {
            not_null(name, "pset_name")?;
            put_text(name, room, pset.as_bytes());
        }
        *length = pset.len() as c_int + 1;
    }

    /// `MPI_Session_get_pset_info`.
    active fn session_get_pset_info = "MPI_Session_get_pset_info"(
        session: CSession<A>, name: *const c_char, info: *mut CInfo<A>,
    ) for on::<A>(session) => {
        let entries = session::pset_info(dec::<A, _>(session), text(name, "pset_name")?)?;
        not_null(info, "info")?;
        *info = enc::<A, _>(info::insert(Rc::new(entries)));
    }

    /// `MPI_Group_from_session_pset`; a name that is no set is an error, as it is for Open MPI and MPICH.
    active fn group_from_session_pset = "MPI_Group_from_session_pset"(
        session: CSession<A>, name: *const c_char, newgroup: *mut CGroup<A>,
    ) for on::<A>(session) => {
        let members = session::group_from_pset(dec::<A, _>(session), text(name, "pset_name")?)?;
        not_null(newgroup, "newgroup")?;
        *newgroup = enc::<A, _>(group::insert(Rc::new(members)));
    }

    /// `MPI_Comm_create_from_group`.
    active fn comm_create_from_group = "MPI_Comm_create_from_group"(
        group: CGroup<A>, tag: *const c_char, info: CInfo<A>, errhandler: CErrhandler<A>, newcomm: *mut CComm<A>,
    ) for Target::Process => {
        let group = group::get(dec::<A, _>(group))?;
        let hints = info::hints(dec::<A, _>(info))?;
        let tag = string_tag::<A>(tag)?;
        not_null(newcomm, "newcomm")?;
        let made = construct::create_from_group(&group, tag, &hints, dec::<A, _>(errhandler))?;
        *newcomm = enc::<A, _>(made.map_or(Comm::NULL, |comm| comm.handle));
    }

    /// `MPI_Intercomm_create_from_groups`; the remote group is looked at by the local leader only.
    active fn intercomm_create_from_groups = "MPI_Intercomm_create_from_groups"(
        local_group: CGroup<A>, local_leader: c_int, remote_group: CGroup<A>, remote_leader: c_int, tag: *const c_char,
        info: CInfo<A>, errhandler: CErrhandler<A>, newcomm: *mut CComm<A>,
    ) for Target::Process => {
        let local = group::get(dec::<A, _>(local_group))?;
        let remote = || group::get(dec::<A, _>(remote_group));
        let hints = info::hints(dec::<A, _>(info))?;
        let tag = string_tag::<A>(tag)?;
        not_null(newcomm, "newintercomm")?;
        let handler = dec::<A, _>(errhandler);
        let made =
            construct::intercomm_create_from_groups(&local, local_leader, remote, remote_leader, tag, &hints, handler)?;
        *newcomm = enc::<A, _>(made.handle);
    }
}

/// A string tag argument.
///
/// # Safety
/// `tag` must be null or a string with a NUL.
unsafe fn string_tag<'a, A: Abi>(tag: *const c_char) -> vmpi_core::errors::Result<&'a [u8]> {
    // SAFETY: as promised.
    let tag = unsafe { text(tag, "stringtag")? };
    if tag.len() >= A::MAX_STRINGTAG_LEN {
        let (length, most) = (tag.len(), A::MAX_STRINGTAG_LEN - 1);
        return fail(Class::Arg, format!("the string tag has {length} bytes, the longest may have {most}"));
    }
    Ok(tag)
}

/// The table of this chapter.
#[macro_export]
macro_rules! c_table_session {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::session];
            fn MPI_Session_init = session_init(info: $crate::abi::CInfo<$A>, errhandler: $crate::abi::CErrhandler<$A>, session: *mut $crate::abi::CSession<$A>) -> c_int;
            fn MPI_Session_finalize = session_finalize(session: *mut $crate::abi::CSession<$A>) -> c_int;
            fn MPI_Session_get_info = session_get_info(session: $crate::abi::CSession<$A>, info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Session_get_num_psets = session_get_num_psets(session: $crate::abi::CSession<$A>, info: $crate::abi::CInfo<$A>, count: *mut c_int) -> c_int;
            fn MPI_Session_get_nth_pset = session_get_nth_pset(session: $crate::abi::CSession<$A>, info: $crate::abi::CInfo<$A>, n: c_int, length: *mut c_int, name: *mut c_char) -> c_int;
            fn MPI_Session_get_pset_info = session_get_pset_info(session: $crate::abi::CSession<$A>, name: *const c_char, info: *mut $crate::abi::CInfo<$A>) -> c_int;
            fn MPI_Group_from_session_pset = group_from_session_pset(session: $crate::abi::CSession<$A>, name: *const c_char, newgroup: *mut $crate::abi::CGroup<$A>) -> c_int;
            fn MPI_Comm_create_from_group = comm_create_from_group(group: $crate::abi::CGroup<$A>, tag: *const c_char, info: $crate::abi::CInfo<$A>, errhandler: $crate::abi::CErrhandler<$A>, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Intercomm_create_from_groups = intercomm_create_from_groups(local_group: $crate::abi::CGroup<$A>, local_leader: c_int, remote_group: $crate::abi::CGroup<$A>, remote_leader: c_int, tag: *const c_char, info: $crate::abi::CInfo<$A>, errhandler: $crate::abi::CErrhandler<$A>, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
        }
        $crate::export_c! { $A, [$crate::c::errhandler];
            fn MPI_Session_create_errhandler = session_create_errhandler(function: $crate::c::errhandler::SessionHandler<$A>, errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Session_set_errhandler = session_set_errhandler(object: $crate::abi::CSession<$A>, errhandler: $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Session_get_errhandler = session_get_errhandler(object: $crate::abi::CSession<$A>, errhandler: *mut $crate::abi::CErrhandler<$A>) -> c_int;
            fn MPI_Session_call_errhandler = session_call_errhandler(object: $crate::abi::CSession<$A>, errorcode: c_int) -> c_int;
        }
    };
}
