//! MPI_Pack, MPI_Unpack and their relatives (MPI 4.1 sections 5.2 and 5.3).

#![allow(unsafe_code)]

use super::datatype::rules;
use super::number::{self, Number, named, names, put, take};
use crate::abi::{Abi, CComm, CDatatype, dec};
use crate::entry::{self, Target};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::rc::Rc;
use vmpi_core::datatype::{self, Type, external};
use vmpi_core::errors::{Class, Result, fail};
use vmpi_core::handle::{Comm, Datatype};

/// Count and committed type.
fn elements<A: Abi>(count: impl Number, datatype: CDatatype<A>) -> Result<(u64, Rc<Type>)> {
    let count = number::count(count)?;
    Ok((count, datatype::get_committed(dec::<A, Datatype>(datatype))?))
}

/// The position argument, checked, and the room after it.
///
/// # Safety
/// `position` is null or valid for reads.
unsafe fn room(buffer: *const c_void, size: i64, position: *const impl Number, what: &str) -> Result<(usize, usize)> {
    // SAFETY: the caller's promise.
    let at = unsafe { take(position, "position") }?.get();
    if at < 0 || size < at {
        return fail(Class::Arg, format!("position {at} is outside {what} of {size} bytes"));
    }
    if buffer.is_null() && size > at {
        return fail(Class::Buffer, format!("{what} is a null pointer"));
    }
    Ok((at as usize, (size - at) as usize))
}

/// A buffer of elements: null only for nothing or for absolute addresses.
fn check_buffer(buffer: *const c_void, count: u64, ty: &Type) -> Result<()> {
    // A type that starts at an address of its own goes with MPI_BOTTOM, which is the null pointer in C.
    if buffer.is_null() && count > 0 && ty.size() > 0 && ty.named().is_some() {
        return fail(Class::Buffer, "the buffer is a null pointer");
    }
    Ok(())
}

fn bottom<A: Abi>(buffer: *const c_void) -> *const c_void {
    let buffer = A::buf_in(buffer);
    if buffer.addr() == vmpi_core::consts::BOTTOM { std::ptr::null() } else { buffer }
}

/// MPI_Pack.
///
/// # Safety
/// As the C function.
pub unsafe fn pack<A: Abi>(
    inbuf: *const c_void,
    incount: impl Number,
    datatype: CDatatype<A>,
    outbuf: *mut c_void,
    outsize: impl Number,
    position: *mut impl Number,
    comm: CComm<A>,
) -> c_int {
    let comm = dec::<A, Comm>(comm);
    entry::run::<A>(named(incount, names!("MPI_Pack")), Target::Comm(comm), || {
        vmpi_core::comm::get(comm)?;
        let (count, ty) = elements::<A>(incount, datatype)?;
        let inbuf = bottom::<A>(inbuf);
        check_buffer(inbuf, count, &ty)?;
        // SAFETY: the caller's promise.
        let (at, left) = unsafe { room(outbuf, outsize.get(), position, "the output buffer") }?;
        let bytes = ty.size().saturating_mul(count);
        if bytes > left as u64 {
            return fail(Class::Truncate, format!("{bytes} bytes do not fit the {left} left in the output buffer"));
        }
        if bytes > 0 {
            // SAFETY: checked above against what the program says there is.
            unsafe {
                let out = std::slice::from_raw_parts_mut(outbuf.cast::<u8>().add(at), bytes as usize);
                datatype::pack(&ty, count, inbuf.cast(), 0, out);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { put(position, Number::from_u64(at as u64 + bytes), "position") }
    })
}

/// MPI_Unpack.
///
/// # Safety
/// As the C function.
pub unsafe fn unpack<A: Abi>(
    inbuf: *const c_void,
    insize: impl Number,
    position: *mut impl Number,
    outbuf: *mut c_void,
    outcount: impl Number,
    datatype: CDatatype<A>,
    comm: CComm<A>,
) -> c_int {
    let comm = dec::<A, Comm>(comm);
    entry::run::<A>(named(insize, names!("MPI_Unpack")), Target::Comm(comm), || {
        vmpi_core::comm::get(comm)?;
        let (count, ty) = elements::<A>(outcount, datatype)?;
        let outbuf = bottom::<A>(outbuf).cast_mut();
        check_buffer(outbuf, count, &ty)?;
        // SAFETY: the caller's promise.
        let (at, left) = unsafe { room(inbuf, insize.get(), position, "the input buffer") }?;
        let bytes = ty.size().saturating_mul(count);
        if bytes > left as u64 {
            return fail(Class::Truncate, format!("{bytes} bytes are wanted, {left} are left in the input buffer"));
        }
        if bytes > 0 {
            // SAFETY: checked above against what the program says there is.
            unsafe {
                let data = std::slice::from_raw_parts(inbuf.cast::<u8>().add(at), bytes as usize);
                datatype::unpack(&ty, count, outbuf.cast(), 0, data);
            }
        }
        // SAFETY: the caller's promise.
        unsafe { put(position, Number::from_u64(at as u64 + bytes), "position") }
    })
}

/// MPI_Pack_size.
///
/// # Safety
/// As the C function.
pub unsafe fn pack_size<A: Abi>(
    incount: impl Number,
    datatype: CDatatype<A>,
    comm: CComm<A>,
    size: *mut impl Number,
) -> c_int {
    let comm = dec::<A, Comm>(comm);
    entry::run::<A>(named(incount, names!("MPI_Pack_size")), Target::Comm(comm), || {
        vmpi_core::comm::get(comm)?;
        let (count, ty) = elements::<A>(incount, datatype)?;
        // SAFETY: the caller's promise.
        unsafe { put(size, Number::from_u64(ty.size().saturating_mul(count)), "size") }
    })
}

/// # Safety
/// `datarep` is null or a C string.
unsafe fn check_datarep(datarep: *const c_char) -> Result<()> {
    if datarep.is_null() {
        return fail(Class::Arg, "datarep is a null pointer");
    }
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(datarep) };
    if name != c"external32" {
        let name = name.to_string_lossy();
        return fail(Class::UnsupportedDatarep, format!("data representation \"{name}\" is not \"external32\""));
    }
    Ok(())
}

/// MPI_Pack_external.
///
/// # Safety
/// As the C function.
pub unsafe fn pack_external<A: Abi>(
    datarep: *const c_char,
    inbuf: *const c_void,
    incount: impl Number,
    datatype: CDatatype<A>,
    outbuf: *mut c_void,
    outsize: impl Number,
    position: *mut impl Number,
) -> c_int {
    entry::run::<A>(named(outsize, names!("MPI_Pack_external")), Target::Process, || {
        // SAFETY: the caller's promise.
        unsafe { check_datarep(datarep)? };
        let (count, ty) = elements::<A>(incount, datatype)?;
        let inbuf = bottom::<A>(inbuf);
        check_buffer(inbuf, count, &ty)?;
        // SAFETY: the caller's promise.
        let (at, left) = unsafe { room(outbuf, outsize.get(), position, "the output buffer") }?;
        let bytes = external::size(&ty, count, rules::<A>());
        if bytes > left as u64 {
            return fail(Class::Truncate, format!("{bytes} bytes do not fit the {left} left in the output buffer"));
        }
        let mut out = Vec::with_capacity(bytes as usize);
        // SAFETY: the caller's promise; the output fits, as checked above.
        unsafe {
            external::pack_external(&ty, count, inbuf.cast(), rules::<A>(), &mut out)?;
            std::ptr::copy_nonoverlapping(out.as_ptr(), outbuf.cast::<u8>().wrapping_add(at), out.len());
            put(position, Number::from_u64((at + out.len()) as u64), "position")
        }
    })
}

/// MPI_Unpack_external.
///
/// # Safety
/// As the C function.
pub unsafe fn unpack_external<A: Abi>(
    datarep: *const c_char,
    inbuf: *const c_void,
    insize: impl Number,
    position: *mut impl Number,
    outbuf: *mut c_void,
    outcount: impl Number,
    datatype: CDatatype<A>,
) -> c_int {
    entry::run::<A>(named(insize, names!("MPI_Unpack_external")), Target::Process, || {
        // SAFETY: the caller's promise.
        unsafe { check_datarep(datarep)? };
        let (count, ty) = elements::<A>(outcount, datatype)?;
        let outbuf = bottom::<A>(outbuf).cast_mut();
        check_buffer(outbuf, count, &ty)?;
        // SAFETY: the caller's promise.
        let (at, left) = unsafe { room(inbuf, insize.get(), position, "the input buffer") }?;
        let data = match left {
            0 => &[][..],
            // SAFETY: `room` checked the range against what the program says there is.
            _ => unsafe { std::slice::from_raw_parts(inbuf.cast::<u8>().add(at), left) },
        };
        // SAFETY: the caller's promise.
        unsafe {
            let read = external::unpack_external(&ty, count, outbuf.cast(), rules::<A>(), data)?;
            put(position, Number::from_u64((at + read) as u64), "position")
        }
    })
}

/// MPI_Pack_external_size.
///
/// # Safety
/// As the C function.
pub unsafe fn pack_external_size<A: Abi>(
    datarep: *const c_char,
    incount: impl Number,
    datatype: CDatatype<A>,
    size: *mut impl Number,
) -> c_int {
    entry::run::<A>(number::named_by(size, names!("MPI_Pack_external_size")), Target::Process, || {
        // SAFETY: the caller's promise.
        unsafe { check_datarep(datarep)? };
        let (count, ty) = elements::<A>(incount, datatype)?;
        // SAFETY: the caller's promise.
        unsafe { put(size, Number::from_u64(external::size(&ty, count, rules::<A>())), "size") }
    })
}

/// Part of `c_table_datatype`.
#[macro_export]
macro_rules! c_table_datatype_pack {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::datatype_pack];
            fn MPI_Pack = pack(inbuf: *const c_void, incount: c_int, datatype: $crate::abi::CDatatype<$A>, outbuf: *mut c_void, outsize: c_int, position: *mut c_int, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Unpack = unpack(inbuf: *const c_void, insize: c_int, position: *mut c_int, outbuf: *mut c_void, outcount: c_int, datatype: $crate::abi::CDatatype<$A>, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Pack_size = pack_size(incount: c_int, datatype: $crate::abi::CDatatype<$A>, comm: $crate::abi::CComm<$A>, size: *mut c_int) -> c_int;
            fn MPI_Pack_external = pack_external(datarep: *const c_char, inbuf: *const c_void, incount: c_int, datatype: $crate::abi::CDatatype<$A>, outbuf: *mut c_void, outsize: isize, position: *mut isize) -> c_int;
            fn MPI_Unpack_external = unpack_external(datarep: *const c_char, inbuf: *const c_void, insize: isize, position: *mut isize, outbuf: *mut c_void, outcount: c_int, datatype: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Pack_external_size = pack_external_size(datarep: *const c_char, incount: c_int, datatype: $crate::abi::CDatatype<$A>, size: *mut isize) -> c_int;
        }
    };
}

/// Part of `c_table_datatype_c`.
#[macro_export]
macro_rules! c_table_datatype_pack_c {
    ($A:ty) => {
        $crate::export_c! { $A, [$crate::c::datatype_pack];
            fn MPI_Pack_c = pack(inbuf: *const c_void, incount: i64, datatype: $crate::abi::CDatatype<$A>, outbuf: *mut c_void, outsize: i64, position: *mut i64, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Unpack_c = unpack(inbuf: *const c_void, insize: i64, position: *mut i64, outbuf: *mut c_void, outcount: i64, datatype: $crate::abi::CDatatype<$A>, comm: $crate::abi::CComm<$A>) -> c_int;
            fn MPI_Pack_size_c = pack_size(incount: i64, datatype: $crate::abi::CDatatype<$A>, comm: $crate::abi::CComm<$A>, size: *mut i64) -> c_int;
            fn MPI_Pack_external_c = pack_external(datarep: *const c_char, inbuf: *const c_void, incount: i64, datatype: $crate::abi::CDatatype<$A>, outbuf: *mut c_void, outsize: i64, position: *mut i64) -> c_int;
            fn MPI_Unpack_external_c = unpack_external(datarep: *const c_char, inbuf: *const c_void, insize: i64, position: *mut i64, outbuf: *mut c_void, outcount: i64, datatype: $crate::abi::CDatatype<$A>) -> c_int;
            fn MPI_Pack_external_size_c = pack_external_size(datarep: *const c_char, incount: i64, datatype: $crate::abi::CDatatype<$A>, size: *mut i64) -> c_int;
        }
    };
}
