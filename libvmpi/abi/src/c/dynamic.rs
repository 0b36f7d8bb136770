//! Dynamic processes: MPI 4.1 chapter 11.

use super::args::{array, not_negative, not_null, on_comm, put_text, text};
use crate::abi::{Abi, CComm, CInfo, dec, enc};
use crate::entry::Target;
use std::ffi::{c_char, c_int};
use vmpi_core::comm;
use vmpi_core::dynamic::{self, Command, Spawned};
use vmpi_core::errors::{Class, Result};
use vmpi_core::handle::{Comm, Handle};
use vmpi_core::info;

/// The arguments of a command: strings up to a null pointer; a null array (`MPI_ARGV_NULL`) has none.
///
/// # Safety
/// `argv` is null or such an array.
unsafe fn arguments(argv: *const *mut c_char) -> Result<Vec<Vec<u8>>> {
    let mut list = Vec::new();
    if argv.is_null() {
        return Ok(list);
    }
    // SAFETY: the array ends with a null pointer, and all before it are strings.
    unsafe {
        while !argv.add(list.len()).read().is_null() {
            list.push(text(argv.add(list.len()).read(), "argv")?.to_vec());
        }
    }
    Ok(list)
}

/// One command of a spawn.
///
/// # Safety
/// MPI's contract for the arguments.
unsafe fn command<A: Abi>(
    command: *const c_char,
    argv: *const *mut c_char,
    maxprocs: c_int,
    info: CInfo<A>,
) -> Result<Command> {
    // SAFETY: passed on.
    unsafe {
        let info = info::hints(dec::<A, _>(info))?;
        Ok(Command { command: text(command, "command")?.to_vec(), arguments: arguments(argv)?, maxprocs, info })
    }
}

/// The port that MPI_Comm_accept and MPI_Comm_connect mean, read by the root only.
///
/// # Safety
/// MPI's contract for the arguments.
unsafe fn port<A: Abi>(port_name: *const c_char, info: CInfo<A>) -> Result<Vec<u8>> {
    info::hints(dec::<A, _>(info))?;
    // SAFETY: passed on.
    Ok(unsafe { text(port_name, "port_name")? }.to_vec())
}

/// Write what a spawn gives back.
///
/// # Safety
/// `intercomm` is writable; `codes` is null (`MPI_ERRCODES_IGNORE`) or has room for a code of each process asked for.
unsafe fn give<A: Abi>(spawned: Spawned, intercomm: *mut CComm<A>, codes: *mut c_int) -> Result<()> {
    if !codes.is_null() {
        for (index, class) in spawned.codes.iter().enumerate() {
            // SAFETY: as the caller says.
            unsafe { codes.add(index).write(A::err_out(class.0)) };
        }
    }
    let handle = spawned.result.as_ref().map_or(Comm::NULL, |comm| comm.handle);
    // SAFETY: as the caller says.
    unsafe { *intercomm = enc::<A, _>(handle) };
    spawned.result.map(drop)
}

crate::entry_points! {
    /// `MPI_Comm_spawn`; command, arguments, number and info matter at the root only.
    active fn comm_spawn = "MPI_Comm_spawn"(
        program: *const c_char, argv: *mut *mut c_char, maxprocs: c_int, info: CInfo<A>, root: c_int,
        comm: CComm<A>, intercomm: *mut CComm<A>, errcodes: *mut c_int,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get_intra(dec::<A, _>(comm))?;
        not_null(intercomm, "intercomm")?;
        let spawned =
            dynamic::spawn(&comm, root, || Ok(vec![command::<A>(program, argv.cast_const(), maxprocs, info)?]))?;
        give::<A>(spawned, intercomm, errcodes)?;
    }

    /// `MPI_Comm_spawn_multiple`; all arrays matter at the root only.
    active fn comm_spawn_multiple = "MPI_Comm_spawn_multiple"(
        count: c_int, programs: *mut *mut c_char, argvs: *mut *mut *mut c_char, maxprocs: *const c_int,
        infos: *const CInfo<A>, root: c_int, comm: CComm<A>, intercomm: *mut CComm<A>, errcodes: *mut c_int,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get_intra(dec::<A, _>(comm))?;
        not_null(intercomm, "intercomm")?;
        let spawned = dynamic::spawn(&comm, root, || {
            let count = match not_negative(count, Class::Count, "count")? {
                0 => return vmpi_core::errors::fail(Class::Count, "there is no command"),
                count => count,
            };
            let programs = array(programs.cast_const(), count, "array_of_commands")?;
            let maxprocs = array(maxprocs, count, "array_of_maxprocs")?;
            let infos = array(infos, count, "array_of_info")?;
            // MPI_ARGVS_NULL is null.
            let argv = |index: usize| if argvs.is_null() { std::ptr::null_mut() } else { argvs.add(index).read() };
            (0..count)
                .map(|i| command::<A>(programs[i], argv(i).cast_const(), maxprocs[i], infos[i]))
                .collect()
        })?;
        give::<A>(spawned, intercomm, errcodes)?;
    }

    /// `MPI_Open_port`; no info key is known.
    active fn open_port = "MPI_Open_port"(info: CInfo<A>, port_name: *mut c_char) for Target::Process => {
        info::hints(dec::<A, _>(info))?;
        not_null(port_name, "port_name")?;
        put_text(port_name, A::MAX_PORT_NAME, dynamic::open_port()?.as_bytes());
    }

    /// `MPI_Close_port`.
    active fn close_port = "MPI_Close_port"(port_name: *const c_char) for Target::Process => {
        dynamic::close_port(text(port_name, "port_name")?)?;
    }

    /// `MPI_Comm_accept`; port name and info matter at the root only.
    active fn comm_accept = "MPI_Comm_accept"(
        port_name: *const c_char, info: CInfo<A>, root: c_int, comm: CComm<A>, newcomm: *mut CComm<A>,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get_intra(dec::<A, _>(comm))?;
        not_null(newcomm, "newcomm")?;
        *newcomm = enc::<A, _>(dynamic::accept(&comm, root, || port::<A>(port_name, info))?.handle);
    }

    /// `MPI_Comm_connect`; port name and info matter at the root only.
    active fn comm_connect = "MPI_Comm_connect"(
        port_name: *const c_char, info: CInfo<A>, root: c_int, comm: CComm<A>, newcomm: *mut CComm<A>,
    ) for on_comm::<A>(comm) => {
        let comm = comm::get_intra(dec::<A, _>(comm))?;
        not_null(newcomm, "newcomm")?;
        *newcomm = enc::<A, _>(dynamic::connect(&comm, root, || port::<A>(port_name, info))?.handle);
    }

    /// `MPI_Comm_join`.
    active fn comm_join = "MPI_Comm_join"(fd: c_int, intercomm: *mut CComm<A>) for Target::Process => {
        not_null(intercomm, "intercomm")?;
        *intercomm = enc::<A, _>(dynamic::join(fd)?.handle);
    }

    /// `MPI_Publish_name`; a name is known in its job (and to other jobs of the same vmpid).
    active fn publish_name = "MPI_Publish_name"(
        service_name: *const c_char, info: CInfo<A>, port_name: *const c_char,
    ) for Target::Process => {
        info::hints(dec::<A, _>(info))?;
        dynamic::publish_name(text(service_name, "service_name")?, text(port_name, "port_name")?)?;
    }

    /// `MPI_Unpublish_name`.
    active fn unpublish_name = "MPI_Unpublish_name"(
        service_name: *const c_char, info: CInfo<A>, port_name: *const c_char,
    ) for Target::Process => {
        info::hints(dec::<A, _>(info))?;
        dynamic::unpublish_name(text(service_name, "service_name")?, text(port_name, "port_name")?)?;
    }

    /// `MPI_Lookup_name`.
    active fn lookup_name = "MPI_Lookup_name"(
        service_name: *const c_char, info: CInfo<A>, port_name: *mut c_char,
    ) for Target::Process => {
        info::hints(dec::<A, _>(info))?;
        not_null(port_name, "port_name")?;
        let port = dynamic::lookup_name(text(service_name, "service_name")?)?;
        put_text(port_name, A::MAX_PORT_NAME, port.as_bytes());
    }
}

/// C functions of dynamic processes.
#[macro_export]
macro_rules! c_table_dynamic {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::dynamic];
            fn MPI_Close_port = close_port(port_name: *const c_char) -> c_int;
            fn MPI_Comm_accept = comm_accept(port_name: *const c_char, info: $crate::abi::CInfo<$A>, root: c_int,
                comm: $crate::abi::CComm<$A>, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_connect = comm_connect(port_name: *const c_char, info: $crate::abi::CInfo<$A>, root: c_int,
                comm: $crate::abi::CComm<$A>, newcomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_join = comm_join(fd: c_int, intercomm: *mut $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Comm_spawn = comm_spawn(command: *const c_char, argv: *mut *mut c_char, maxprocs: c_int,
                info: $crate::abi::CInfo<$A>, root: c_int, comm: $crate::abi::CComm<$A>,
                intercomm: *mut $crate::abi::CComm<$A>, errcodes: *mut c_int) -> c_int;
            fn MPI_Comm_spawn_multiple = comm_spawn_multiple(count: c_int, commands: *mut *mut c_char,
                argvs: *mut *mut *mut c_char, maxprocs: *const c_int, infos: *const $crate::abi::CInfo<$A>,
                root: c_int, comm: $crate::abi::CComm<$A>, intercomm: *mut $crate::abi::CComm<$A>,
                errcodes: *mut c_int) -> c_int;
            fn MPI_Lookup_name = lookup_name(service_name: *const c_char, info: $crate::abi::CInfo<$A>,
                port_name: *mut c_char) -> c_int;
            fn MPI_Open_port = open_port(info: $crate::abi::CInfo<$A>, port_name: *mut c_char) -> c_int;
            fn MPI_Publish_name = publish_name(service_name: *const c_char, info: $crate::abi::CInfo<$A>,
                port_name: *const c_char) -> c_int;
            fn MPI_Unpublish_name = unpublish_name(service_name: *const c_char, info: $crate::abi::CInfo<$A>,
                port_name: *const c_char) -> c_int;
        }
    };
}
