//! The handle codec: a handle's address, and its INTEGER, is the core's number.

use crate::Standard;
use std::ffi::{c_int, c_void};
use vmpi_abi::abi::Codec;
use vmpi_abi::codec::unknown;
use vmpi_core::handle::Handle;

impl<H: Handle> Codec<H> for Standard {
    type C = *mut c_void;

    #[inline]
    fn dec(c: *mut c_void) -> H {
        u32::try_from(c as usize).map_or(unknown(), H::from_raw)
    }

    #[inline]
    fn enc(h: H) -> *mut c_void {
        h.raw() as usize as *mut c_void
    }

    #[inline]
    fn fdec(f: c_int) -> H {
        H::from_raw(f as u32)
    }

    #[inline]
    fn fenc(h: H) -> c_int {
        h.raw() as c_int
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi_core::handle::{Comm, FIRST_DYNAMIC};

    #[test]
    fn a_handle_is_its_number() {
        for raw in [Comm::WORLD.0, Comm::NULL.0, FIRST_DYNAMIC, FIRST_DYNAMIC + 70_000] {
            let c = <Standard as Codec<Comm>>::enc(Comm(raw));
            assert_eq!(c as usize, raw as usize);
            assert_eq!(<Standard as Codec<Comm>>::dec(c), Comm(raw));
            assert_eq!(<Standard as Codec<Comm>>::fdec(<Standard as Codec<Comm>>::fenc(Comm(raw))), Comm(raw));
        }
        assert_eq!(<Standard as Codec<Comm>>::dec(usize::MAX as *mut c_void).0, u32::MAX);
    }
}
