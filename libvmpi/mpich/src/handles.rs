//! The handle codec: MPICH's handles are ints, the same in C and Fortran; `MPI_File` is a pointer in C.

use crate::Mpich;
use crate::predefined::{BY_ID, Kind, slot};
use std::ffi::{c_int, c_void};
use vmpi_abi::abi::Codec;
use vmpi_abi::codec::{is_predefined, unknown};
use vmpi_core::handle::{FIRST_DYNAMIC, File, Handle};
use vmpi_core::process;

/// Where an object lies (bits 30 and 31) that the program created.
const CREATED: u32 = 3;

#[inline]
fn decode<H: Kind>(c: u32) -> H {
    if c >> 30 == CREATED {
        let index = c & !(CREATED << 30 | H::MASK);
        return if c & H::MASK == H::BITS { H::from_raw(FIRST_DYNAMIC + index) } else { unknown() };
    }
    let (known, id) = H::table()[slot(c)];
    if known == c { H::from_raw(id) } else { unknown() }
}

#[inline]
fn encode<H: Kind>(h: H) -> u32 {
    match h.raw().checked_sub(FIRST_DYNAMIC) {
        Some(index) if index & (CREATED << 30 | H::MASK) == 0 => CREATED << 30 | H::BITS | index,
        // What names nothing here names nothing there either.
        Some(_) if h == unknown() => u32::MAX,
        Some(index) => too_many(index),
        None if is_predefined(h.raw()) => BY_ID[h.raw() as usize],
        None => 0,
    }
}

#[cold]
fn too_many(index: u32) -> ! {
    process::abort(1, &format!("MPICH's handles have no room for {index} objects of one kind at a time"))
}

impl<H: Kind> Codec<H> for Mpich {
    type C = c_int;

    #[inline]
    fn dec(c: c_int) -> H {
        decode(c as u32)
    }

    #[inline]
    fn enc(h: H) -> c_int {
        encode(h) as c_int
    }

    #[inline]
    fn fdec(f: c_int) -> H {
        decode(f as u32)
    }

    #[inline]
    fn fenc(h: H) -> c_int {
        encode(h) as c_int
    }
}

/// Both as a pointer and as an INTEGER a file is the core's number, and `MPI_FILE_NULL` is 0.
impl Codec<File> for Mpich {
    type C = *mut c_void;

    fn dec(c: *mut c_void) -> File {
        u32::try_from(c as usize).map_or(unknown(), |value| Mpich::fdec(value as c_int))
    }

    fn enc(h: File) -> *mut c_void {
        <Mpich as Codec<File>>::fenc(h) as u32 as usize as *mut c_void
    }

    fn fdec(f: c_int) -> File {
        match f as u32 {
            0 => File::NULL,
            value if value >= FIRST_DYNAMIC => File(value),
            _ => unknown(),
        }
    }

    fn fenc(h: File) -> c_int {
        if h.is_null() { 0 } else { h.0 as c_int }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predefined::{Check, for_each};
    use vmpi_core::consts::dt;
    use vmpi_core::handle::{Comm, Datatype, Message, Request};

    #[test]
    fn predefined_handles_go_there_and_back() {
        struct RoundTrip(usize);
        impl Check for RoundTrip {
            fn check<H: Kind>(&mut self, c: u32, id: u32) {
                assert_eq!(<Mpich as Codec<H>>::dec(c as c_int).raw(), id);
                assert_eq!(<Mpich as Codec<H>>::enc(H::from_raw(id)), c as c_int);
                self.0 += 1;
            }
        }
        let mut checked = RoundTrip(0);
        for_each(&mut checked);
        assert!(checked.0 > 100);
    }

    #[test]
    fn created_handles_go_there_and_back() {
        for index in [0, 1, 127, 128, 1 << 20, (1 << 25) - 1] {
            let request = Request(FIRST_DYNAMIC + index);
            let c = <Mpich as Codec<Request>>::enc(request);
            assert_eq!(<Mpich as Codec<Request>>::dec(c), request);
            assert_eq!(<Mpich as Codec<Message>>::dec(c).raw(), u32::MAX, "a request is no message");
            assert_eq!(<Mpich as Codec<Comm>>::dec(c).raw(), u32::MAX, "a request is no communicator");
            let datatype = Datatype(FIRST_DYNAMIC + index);
            assert_eq!(<Mpich as Codec<Datatype>>::dec(<Mpich as Codec<Datatype>>::enc(datatype)), datatype);
        }
    }

    #[test]
    fn what_is_no_handle_is_unknown() {
        for garbage in [0, 1, -1, 0x4400_0002, 0x4c00_0405, 0x0400_0001] {
            assert_eq!(<Mpich as Codec<Comm>>::dec(garbage).raw(), u32::MAX);
        }
        // The size in an MPICH datatype handle counts: 0x05 with another size is no MPI_INT.
        assert_eq!(<Mpich as Codec<Datatype>>::dec(0x4c00_0405), dt::INT);
        assert_eq!(<Mpich as Codec<Datatype>>::dec(0x4c00_0805).raw(), u32::MAX);
    }

    #[test]
    fn files() {
        assert!(<Mpich as Codec<File>>::enc(File::NULL).is_null());
        assert_eq!(<Mpich as Codec<File>>::dec(std::ptr::null_mut()), File::NULL);
        let file = File(FIRST_DYNAMIC + 7);
        assert_eq!(<Mpich as Codec<File>>::dec(<Mpich as Codec<File>>::enc(file)), file);
        assert_eq!(<Mpich as Codec<File>>::fdec(<Mpich as Codec<File>>::fenc(file)), file);
        assert_eq!(<Mpich as Codec<File>>::dec(usize::MAX as *mut c_void).raw(), u32::MAX);
    }
}
