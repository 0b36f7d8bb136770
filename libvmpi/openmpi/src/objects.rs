//! Open MPI's exported data objects: what `MPI_COMM_WORLD`, `MPI_INT` and so on are the addresses of.
//!
//! A program copies each object that it names into itself (a copy relocation), so sizes are exactly Open MPI's, the
//! contents that decoding reads are there before any code runs, and every address is taken through the dynamic
//! symbol, as the tables below do: their entries are relocations that the dynamic linker fills in.

use crate::handles::{Cell, Kind};
use std::ffi::{c_int, c_void};
use vmpi_abi::codec::PREDEFINED;
use vmpi_core::consts::{dt, op};
use vmpi_core::handle::{Comm, Datatype, Errhandler, File, Group, Handle, Info, Message, Op, Request, Session, Win};

/// A predefined object of `8 + 8 * WORDS` bytes.
#[repr(C, align(32))]
pub struct Object<const WORDS: usize> {
    cell: Cell,
    rest: [u64; WORDS],
}

impl<const WORDS: usize> Object<WORDS> {
    const fn new(magic: u32, id: u32) -> Self {
        Object { cell: Cell { magic, id }, rest: [0; WORDS] }
    }
}

/// Where an object lies for the whole process, which may be inside the program.
#[derive(Copy, Clone)]
#[repr(transparent)]
pub struct Address(pub *const c_void);

// SAFETY: the address of a static object that is never written.
unsafe impl Sync for Address {}

/// One predefined object: its kind's magic, its core handle, its Fortran number, its address.
#[cfg(test)]
struct Entry {
    magic: u32,
    id: u32,
    fortran: c_int,
    address: Address,
}

/// Open MPI gives the object no number in Fortran.
const NO_NUMBER: c_int = -1;

/// More than the largest number of a predefined object in Fortran.
pub const FORTRAN_NUMBERS: usize = 128;

macro_rules! objects {
    ($($kind:ident, $size:literal: $($name:ident = $value:expr, $fortran:expr;)*;)*) => {
        $($(
            #[doc = concat!("`", stringify!($value), "`.")]
            #[unsafe(no_mangle)]
            pub static $name: Object<{ $size / 8 - 1 }> = Object::new(<$kind as Kind>::MAGIC, $value.0);
            const _: () = assert!(size_of::<Object<{ $size / 8 - 1 }>>() == $size);
        )*)*

        #[cfg(test)]
        static ENTRIES: &[Entry] = &[$($(
            Entry {
                magic: <$kind as Kind>::MAGIC,
                id: $value.0,
                fortran: $fortran,
                address: Address((&raw const $name).cast()),
            },
        )*)*];

        /// Address of a predefined object by its core handle; null where there is none.
        pub static BY_ID: [Address; PREDEFINED] = {
            let mut table = [Address(std::ptr::null()); PREDEFINED];
            $($(
                if table[$value.0 as usize].0.is_null() {
                    table[$value.0 as usize] = Address((&raw const $name).cast());
                }
            )*)*
            table
        };

        const NUMBERS: &[(u32, u32, c_int)] = &[$($( (<$kind as Kind>::MAGIC, $value.0, $fortran), )*)*];
    };
}

objects! {
    Message, 256:
        ompi_message_null = Message::NULL, 0;
        ompi_message_no_proc = Message::NO_PROC, 1;
    ;
    Datatype, 512:
        ompi_mpi_datatype_null = Datatype::NULL, 0;
        ompi_mpi_byte = dt::BYTE, 1;
        ompi_mpi_packed = dt::PACKED, 2;
        ompi_mpi_ub = dt::UB, 3;
        ompi_mpi_lb = dt::LB, 4;
        ompi_mpi_character = dt::CHARACTER, 5;
        ompi_mpi_logical = dt::LOGICAL, 6;
        ompi_mpi_integer = dt::INTEGER, 7;
        ompi_mpi_integer1 = dt::INTEGER1, 8;
        ompi_mpi_integer2 = dt::INTEGER2, 9;
        ompi_mpi_integer4 = dt::INTEGER4, 10;
        ompi_mpi_integer8 = dt::INTEGER8, 11;
        ompi_mpi_integer16 = dt::INTEGER16, 12;
        ompi_mpi_real = dt::REAL, 13;
        ompi_mpi_real4 = dt::REAL4, 14;
        ompi_mpi_real8 = dt::REAL8, 15;
        ompi_mpi_real16 = dt::REAL16, 16;
        ompi_mpi_dblprec = dt::DOUBLE_PRECISION, 17;
        ompi_mpi_cplex = dt::COMPLEX, 18;
        ompi_mpi_complex8 = dt::COMPLEX8, 19;
        ompi_mpi_complex16 = dt::COMPLEX16, 20;
        ompi_mpi_complex32 = dt::COMPLEX32, 21;
        ompi_mpi_dblcplex = dt::DOUBLE_COMPLEX, 22;
        ompi_mpi_2real = dt::TWO_REAL, 23;
        ompi_mpi_2dblprec = dt::TWO_DOUBLE_PRECISION, 24;
        ompi_mpi_2integer = dt::TWO_INTEGER, 25;
        ompi_mpi_2cplex = dt::TWO_COMPLEX, 26;
        ompi_mpi_2dblcplex = dt::TWO_DOUBLE_COMPLEX, 27;
        ompi_mpi_real2 = dt::REAL2, 28;
        ompi_mpi_logical1 = dt::LOGICAL1, 29;
        ompi_mpi_logical2 = dt::LOGICAL2, 30;
        ompi_mpi_logical4 = dt::LOGICAL4, 31;
        ompi_mpi_logical8 = dt::LOGICAL8, 32;
        ompi_mpi_wchar = dt::WCHAR, 33;
        ompi_mpi_char = dt::CHAR, 34;
        ompi_mpi_unsigned_char = dt::UNSIGNED_CHAR, 35;
        ompi_mpi_signed_char = dt::SIGNED_CHAR, 36;
        ompi_mpi_short = dt::SHORT, 37;
        ompi_mpi_unsigned_short = dt::UNSIGNED_SHORT, 38;
        ompi_mpi_int = dt::INT, 39;
        ompi_mpi_unsigned = dt::UNSIGNED, 40;
        ompi_mpi_long = dt::LONG, 41;
        ompi_mpi_unsigned_long = dt::UNSIGNED_LONG, 42;
        ompi_mpi_long_long_int = dt::LONG_LONG, 43;
        ompi_mpi_unsigned_long_long = dt::UNSIGNED_LONG_LONG, 44;
        ompi_mpi_float = dt::FLOAT, 45;
        ompi_mpi_double = dt::DOUBLE, 46;
        ompi_mpi_long_double = dt::LONG_DOUBLE, 47;
        ompi_mpi_float_int = dt::FLOAT_INT, 48;
        ompi_mpi_double_int = dt::DOUBLE_INT, 49;
        ompi_mpi_longdbl_int = dt::LONG_DOUBLE_INT, 50;
        ompi_mpi_long_int = dt::LONG_INT, 51;
        ompi_mpi_2int = dt::TWO_INT, 52;
        ompi_mpi_short_int = dt::SHORT_INT, 53;
        ompi_mpi_cxx_bool = dt::CXX_BOOL, 54;
        ompi_mpi_cxx_cplex = dt::CXX_FLOAT_COMPLEX, 55;
        ompi_mpi_cxx_dblcplex = dt::CXX_DOUBLE_COMPLEX, 56;
        ompi_mpi_cxx_ldblcplex = dt::CXX_LONG_DOUBLE_COMPLEX, 57;
        ompi_mpi_int8_t = dt::INT8_T, 58;
        ompi_mpi_uint8_t = dt::UINT8_T, 59;
        ompi_mpi_int16_t = dt::INT16_T, 60;
        ompi_mpi_uint16_t = dt::UINT16_T, 61;
        ompi_mpi_int32_t = dt::INT32_T, 62;
        ompi_mpi_uint32_t = dt::UINT32_T, 63;
        ompi_mpi_int64_t = dt::INT64_T, 64;
        ompi_mpi_uint64_t = dt::UINT64_T, 65;
        ompi_mpi_aint = dt::AINT, 66;
        ompi_mpi_offset = dt::OFFSET, 67;
        ompi_mpi_c_bool = dt::C_BOOL, 68;
        ompi_mpi_c_float_complex = dt::C_FLOAT_COMPLEX, 69;
        ompi_mpi_c_double_complex = dt::C_DOUBLE_COMPLEX, 70;
        ompi_mpi_c_long_double_complex = dt::C_LONG_DOUBLE_COMPLEX, 71;
        ompi_mpi_count = dt::COUNT, 72;
        ompi_mpi_short_float = dt::SHORT_FLOAT, 74;
        ompi_mpi_c_short_float_complex = dt::C_SHORT_FLOAT_COMPLEX, 75;
        ompi_mpi_complex4 = dt::COMPLEX4, NO_NUMBER;
        ompi_mpi_ldblcplex = dt::C_LONG_DOUBLE_COMPLEX, NO_NUMBER;
    ;
    Comm, 512:
        ompi_mpi_comm_world = Comm::WORLD, 0;
        ompi_mpi_comm_self = Comm::SELF, 1;
        ompi_mpi_comm_null = Comm::NULL, 2;
    ;
    Errhandler, 1024:
        ompi_mpi_errhandler_null = Errhandler::NULL, 0;
        ompi_mpi_errors_are_fatal = Errhandler::ARE_FATAL, 1;
        ompi_mpi_errors_return = Errhandler::RETURN, 2;
        ompi_mpi_errors_abort = Errhandler::ABORT, 3;
    ;
    File, 1536:
        ompi_mpi_file_null = File::NULL, 0;
    ;
    Group, 256:
        ompi_mpi_group_null = Group::NULL, 0;
        ompi_mpi_group_empty = Group::EMPTY, 1;
    ;
    Info, 256:
        ompi_mpi_info_null = Info::NULL, 0;
        ompi_mpi_info_env = Info::ENV, 1;
    ;
    Session, 512:
        ompi_mpi_instance_null = Session::NULL, 0;
    ;
    Op, 2048:
        ompi_mpi_op_null = Op::NULL, 0;
        ompi_mpi_op_max = op::MAX, 1;
        ompi_mpi_op_min = op::MIN, 2;
        ompi_mpi_op_sum = op::SUM, 3;
        ompi_mpi_op_prod = op::PROD, 4;
        ompi_mpi_op_land = op::LAND, 5;
        ompi_mpi_op_band = op::BAND, 6;
        ompi_mpi_op_lor = op::LOR, 7;
        ompi_mpi_op_bor = op::BOR, 8;
        ompi_mpi_op_lxor = op::LXOR, 9;
        ompi_mpi_op_bxor = op::BXOR, 10;
        ompi_mpi_op_maxloc = op::MAXLOC, 11;
        ompi_mpi_op_minloc = op::MINLOC, 12;
        ompi_mpi_op_replace = op::REPLACE, 13;
        ompi_mpi_op_no_op = op::NO_OP, 14;
    ;
    Win, 512:
        ompi_mpi_win_null = Win::NULL, 0;
    ;
    Request, 256:
        ompi_request_null = Request::NULL, 0;
    ;
}

/// The core handle of each Fortran number of a kind; `u32::MAX` where there is none.
pub const fn by_number(magic: u32) -> [u32; FORTRAN_NUMBERS] {
    let mut table = [u32::MAX; FORTRAN_NUMBERS];
    let mut i = 0;
    while i < NUMBERS.len() {
        let (of, id, fortran) = NUMBERS[i];
        if of == magic && fortran != NO_NUMBER {
            assert!(table[fortran as usize] == u32::MAX, "two objects with one Fortran number");
            table[fortran as usize] = id;
        }
        i += 1;
    }
    table
}

/// Fortran number of a predefined object by its core handle; the core handle's own value where Open MPI has no number.
pub static NUMBER_BY_ID: [c_int; PREDEFINED] = {
    let mut table = [0; PREDEFINED];
    let mut id = 0;
    while id < PREDEFINED {
        table[id] = id as c_int;
        id += 1;
    }
    let mut i = 0;
    while i < NUMBERS.len() {
        let (_, id, fortran) = NUMBERS[i];
        if fortran != NO_NUMBER {
            table[id as usize] = fortran;
        }
        i += 1;
    }
    table
};

/// What Debian's C++ library of Open MPI needs to be loaded: data that the library of the C++ bindings names.
mod for_libmpi_cxx {
    use super::Object;

    macro_rules! zeroed {
        ($($name:ident: [$ty:ty; $n:literal];)*) => {$(
            #[unsafe(no_mangle)]
            pub static mut $name: [$ty; $n] = [0; $n];
        )*};
    }

    zeroed! {
        ompi_errcode_intern_lastused: [u32; 1];
        ompi_errcodes_intern: [u64; 15];
        ompi_registered_datareps: [u64; 8];
    }

    /// `MPI::ERRORS_THROW_EXCEPTIONS`: not an error handler of vmpi (a C++ exception cannot go through it), so it decodes to
    /// none. libmpi_cxx writes its callbacks into it.
    #[unsafe(no_mangle)]
    pub static mut ompi_mpi_errors_throw_exceptions: Object<127> = Object::new(0, u32::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenMpi;
    use vmpi_abi::abi::Codec;

    fn round_trip<H: Kind>() -> usize {
        let mut found = 0;
        for entry in ENTRIES.iter().filter(|entry| entry.magic == H::MAGIC) {
            let handle = H::from_raw(entry.id);
            let c = entry.address.0.cast_mut();
            assert_eq!(<OpenMpi as Codec<H>>::dec(c), handle);
            // A second object of the same meaning is never made from a core handle.
            let made = <OpenMpi as Codec<H>>::enc(handle);
            assert_eq!(<OpenMpi as Codec<H>>::dec(made), handle);
            assert!(made == c || entry.fortran == NO_NUMBER);
            let f = <OpenMpi as Codec<H>>::fenc(handle);
            assert_eq!(<OpenMpi as Codec<H>>::fdec(f), handle);
            if entry.fortran != NO_NUMBER {
                assert_eq!(f, entry.fortran);
            }
            found += 1;
        }
        found
    }

    #[test]
    fn predefined_handles_go_there_and_back() {
        let found = round_trip::<Comm>()
            + round_trip::<Group>()
            + round_trip::<Win>()
            + round_trip::<File>()
            + round_trip::<Session>()
            + round_trip::<Message>()
            + round_trip::<Info>()
            + round_trip::<Errhandler>()
            + round_trip::<Request>()
            + round_trip::<Datatype>()
            + round_trip::<Op>();
        assert_eq!(found, ENTRIES.len());
    }

    #[test]
    fn numbers_of_mpif_h() {
        assert_eq!(<OpenMpi as Codec<Datatype>>::fdec(17), dt::DOUBLE_PRECISION);
        assert_eq!(<OpenMpi as Codec<Op>>::fdec(3), op::SUM);
        assert_eq!(<OpenMpi as Codec<Comm>>::fdec(2), Comm::NULL);
        assert_eq!(<OpenMpi as Codec<Comm>>::fdec(3).raw(), u32::MAX);
    }
}
