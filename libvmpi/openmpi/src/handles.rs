//! The handle codec: an Open MPI handle is the address of eight bytes that say what it is.
//!
//! Predefined handles are the addresses of exported objects (`objects`); handles of what the program created are the
//! addresses of cells that are allocated in chunks and never move, so that both ways between address and number are
//! arithmetic and one load. A cell says the same for ever: that its object was freed is known to the core's tables.

use crate::OpenMpi;
use crate::objects::{self, FORTRAN_NUMBERS};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use vmpi_abi::abi::Codec;
use vmpi_abi::codec::{is_predefined, unknown};
use vmpi_core::handle::{
    Comm, Datatype, Errhandler, FIRST_DYNAMIC, File, Group, Handle, Info, Message, Op, Request, Session, Win,
};

/// What lies where a handle points.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(C, align(8))]
pub struct Cell {
    /// The kind of handle ([`Kind::MAGIC`]).
    pub magic: u32,
    /// The core handle.
    pub id: u32,
}

/// Distance between two cells, in bytes: as malloc aligns, so that handles look like any other pointer.
const CELL_BYTES: usize = 16;
/// Cells in the first chunk; each chunk has twice as many as the one before.
const FIRST_CHUNK: u32 = 1024;
/// Chunks until the 32-bit handles are used up.
const CHUNKS: usize = 22;

/// The cells of one kind of handle.
pub struct Slab {
    magic: u32,
    chunks: [AtomicPtr<u8>; CHUNKS],
}

impl Slab {
    pub const fn new(magic: u32) -> Slab {
        Slab { magic, chunks: [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNKS] }
    }

    /// Chunk, cells in it, and place in it of the cell with `index`.
    fn place(index: u32) -> (usize, usize, usize) {
        let position = index as u64 + FIRST_CHUNK as u64;
        let chunk = (position.ilog2() - FIRST_CHUNK.ilog2()) as usize;
        let cells = (FIRST_CHUNK as u64) << chunk;
        (chunk, cells as usize, (position - cells) as usize)
    }

    /// The address of the cell of the created object with `index`.
    #[inline]
    pub fn address(&self, index: u32) -> *mut c_void {
        let (chunk, cells, place) = Slab::place(index);
        let mut base = self.chunks[chunk].load(Ordering::Acquire); // SYNC with the exchange in `grow`
        if base.is_null() {
            base = self.grow(chunk, cells, index - place as u32);
        }
        // SAFETY: the chunk has `cells` cells and `place` is below that.
        unsafe { base.add(place * CELL_BYTES) }.cast()
    }

    /// Has the cell with `index` been made? Those of all handles that a program may know have.
    #[inline]
    fn has(&self, index: u32) -> bool {
        let (chunk, ..) = Slab::place(index);
        self.chunks.get(chunk).is_some_and(|base| !base.load(Ordering::Acquire).is_null()) // SYNC as in `address`
    }

    /// Allocate the chunk whose first cell has index `first`.
    #[cold]
    fn grow(&self, chunk: usize, cells: usize, first: u32) -> *mut u8 {
        let layout = Layout::from_size_align(cells * CELL_BYTES, CELL_BYTES).expect("a chunk's size is a power of two");
        // SAFETY: the size is not zero.
        let base = unsafe { alloc(layout) };
        if base.is_null() {
            handle_alloc_error(layout);
        }
        for i in 0..cells {
            let id = FIRST_DYNAMIC.wrapping_add(first).wrapping_add(i as u32);
            // SAFETY: inside the new chunk, aligned for a cell.
            unsafe { base.add(i * CELL_BYTES).cast::<Cell>().write(Cell { magic: self.magic, id }) };
        }
        let none = std::ptr::null_mut();
        // SYNC with the load in `address`: whoever sees the chunk sees its cells.
        match self.chunks[chunk].compare_exchange(none, base, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => base,
            Err(other) => {
                // SAFETY: allocated above with this layout, and seen by nobody.
                unsafe { dealloc(base, layout) };
                other
            }
        }
    }
}

/// A kind of handle as this face writes it.
pub trait Kind: Handle {
    /// The first four bytes of every object of this kind.
    const MAGIC: u32;
    /// Cells of the created objects.
    fn slab() -> &'static Slab;
    /// Core handles of the predefined objects by Fortran number.
    fn numbers() -> &'static [u32; FORTRAN_NUMBERS];
}

macro_rules! kinds {
    ($($kind:ident = $magic:literal;)*) => {$(
        impl Kind for $kind {
            const MAGIC: u32 = 0x564d_5000 + $magic;
            #[inline]
            fn slab() -> &'static Slab {
                static SLAB: Slab = Slab::new(<$kind as Kind>::MAGIC);
                &SLAB
            }
            #[inline]
            fn numbers() -> &'static [u32; FORTRAN_NUMBERS] {
                static NUMBERS: [u32; FORTRAN_NUMBERS] = objects::by_number(<$kind as Kind>::MAGIC);
                &NUMBERS
            }
        }
    )*};
}

kinds! {
    Comm = 1;
    Group = 2;
    Win = 3;
    File = 4;
    Session = 5;
    Message = 6;
    Info = 7;
    Errhandler = 8;
    Request = 9;
    Datatype = 10;
    Op = 11;
}

/// Addresses below this are no objects (null, and small integers taken for handles of another MPI).
const LOWEST_ADDRESS: usize = 4096;

impl<H: Kind> Codec<H> for OpenMpi {
    type C = *mut c_void;

    #[inline]
    fn dec(c: *mut c_void) -> H {
        if (c as usize) < LOWEST_ADDRESS || !(c as usize).is_multiple_of(align_of::<Cell>()) {
            return unknown();
        }
        // SAFETY: MPI's contract: a handle is one that this library gave out or exports, and each starts with a cell.
        let cell = unsafe { *c.cast::<Cell>() };
        if cell.magic == H::MAGIC { H::from_raw(cell.id) } else { unknown() }
    }

    #[inline]
    fn enc(h: H) -> *mut c_void {
        match h.raw().checked_sub(FIRST_DYNAMIC) {
            Some(_) if h == unknown() => std::ptr::null_mut(),
            Some(index) => H::slab().address(index),
            None if is_predefined(h.raw()) => objects::BY_ID[h.raw() as usize].0.cast_mut(),
            None => std::ptr::null_mut(),
        }
    }

    #[inline]
    fn fdec(f: c_int) -> H {
        match H::numbers().get(f as usize) {
            Some(&id) => H::from_raw(id),
            // A variable that was never set holds any number.
            None => match (f as u32).checked_sub(FIRST_DYNAMIC) {
                Some(index) if !H::slab().has(index) => unknown(),
                _ => H::from_raw(f as u32),
            },
        }
    }

    #[inline]
    fn fenc(h: H) -> c_int {
        if is_predefined(h.raw()) {
            return objects::NUMBER_BY_ID[h.raw() as usize];
        }
        // The program may hand it back.
        let _ = <OpenMpi as Codec<H>>::enc(h);
        h.raw() as c_int
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dec<H: Kind>(c: *mut c_void) -> H {
        OpenMpi::dec(c)
    }

    #[test]
    fn created_handles_go_there_and_back() {
        for index in [0, 1, 1022, 1023, 1024, 3071, 3072, 100_000] {
            let request = Request::from_raw(FIRST_DYNAMIC + index);
            let c = <OpenMpi as Codec<Request>>::enc(request);
            assert_eq!(c, <OpenMpi as Codec<Request>>::enc(request));
            assert_eq!(dec::<Request>(c), request);
            assert_eq!(dec::<Comm>(c).raw(), u32::MAX, "a request is no communicator");
            assert_eq!(<OpenMpi as Codec<Request>>::fdec(<OpenMpi as Codec<Request>>::fenc(request)), request);
        }
    }

    #[test]
    fn numbers_that_nobody_gave_out_are_no_handles() {
        for number in [-5, FIRST_DYNAMIC as c_int + 3_000_000, 123_456_789, c_int::MAX, c_int::MIN] {
            let session = <OpenMpi as Codec<Session>>::fdec(number);
            assert_eq!(session, unknown(), "{number}");
            assert!(<OpenMpi as Codec<Session>>::enc(session).is_null(), "{number}");
        }
        assert!(Session::slab().chunks.iter().skip(1).all(|chunk| chunk.load(Ordering::Relaxed).is_null()));
    }

    #[test]
    fn places_are_distinct_and_in_their_chunks() {
        let mut last = (0, 0, usize::MAX);
        for index in 0..10_000 {
            let at = Slab::place(index);
            assert!(at.2 < at.1);
            assert!(at.0 > last.0 && at.2 == 0 || at.0 == last.0 && at.2 == last.2.wrapping_add(1));
            last = at;
        }
        assert!(Slab::place(u32::MAX - FIRST_DYNAMIC).0 < CHUNKS);
    }

    #[test]
    fn what_is_no_handle_is_unknown() {
        for garbage in [0usize, 1, 4095, 0x44000000 + 1, usize::MAX] {
            assert_eq!(dec::<Comm>(garbage as *mut c_void).raw(), u32::MAX);
        }
        let words = [0u64; 2];
        assert_eq!(dec::<Datatype>((&raw const words).cast_mut().cast()).raw(), u32::MAX);
    }

    #[test]
    fn fortran_numbers_that_name_nothing() {
        assert_eq!(<OpenMpi as Codec<Comm>>::fdec(-1).raw(), u32::MAX);
        assert_eq!(<OpenMpi as Codec<Datatype>>::fdec(100).raw(), u32::MAX);
    }
}
