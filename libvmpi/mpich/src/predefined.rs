//! MPICH's predefined handles, as mpi.h has them, and what distinguishes the kinds of handles.
//!
//! Bits 26 to 29 of a handle are its kind, bits 30 and 31 say where its object lies: 0 nowhere (a null handle), 1 built
//! in, 2 in MPICH's first block, 3 in a later one. What the program created has 3 here, so that it never meets the
//! pair types, which MPICH keeps in its first block. Kind 11 is shared by requests and messages; bit 25 tells them apart.

use vmpi_abi::codec::PREDEFINED;
use vmpi_core::consts::{dt, op};
use vmpi_core::handle::{Comm, Datatype, Errhandler, Group, Handle, Info, Message, Op, Request, Session, Win};

/// Entries of a kind's table of predefined handles.
const SLOTS: usize = 512;

/// Predefined handles of a kind with their core handles, by [`slot`].
pub type Table = [(u32, u32); SLOTS];

/// Where a handle is in its kind's table: its lowest seven bits, and where its object lies.
#[inline]
pub const fn slot(c: u32) -> usize {
    (c & 0x7f | c >> 30 << 7) as usize
}

/// A kind of handle as this face writes it.
pub trait Kind: Handle {
    /// The bits that tell the kind.
    const MASK: u32;
    /// Their value in handles of what the program created.
    const BITS: u32;
    /// The predefined handles.
    fn table() -> &'static Table;
}

const fn table(rows: &[(u32, u32)]) -> Table {
    let mut table = [(0, u32::MAX); SLOTS];
    let mut i = 0;
    while i < rows.len() {
        let at = slot(rows[i].0);
        assert!(table[at].0 == 0, "two handles in one slot");
        table[at] = rows[i];
        i += 1;
    }
    table
}

macro_rules! kinds {
    ($($kind:ident, $bits:literal, $mask:literal: $($c:literal = $value:expr;)*;)*) => {
        $(
            impl Kind for $kind {
                const MASK: u32 = $mask;
                const BITS: u32 = $bits;
                #[inline]
                fn table() -> &'static Table {
                    static TABLE: Table = table(&[$(($c, $value.0)),*]);
                    &TABLE
                }
            }
        )*

        /// The C handle of each predefined core handle; 0 where MPICH has none.
        pub static BY_ID: [u32; PREDEFINED] = {
            let mut table = [0; PREDEFINED];
            $($( table[$value.0 as usize] = $c; )*)*
            table
        };

        #[cfg(test)]
        pub fn for_each(check: &mut impl Check) {
            $($( check.check::<$kind>($c, $value.0); )*)*
        }
    };
}

/// Something to do with every predefined handle.
#[cfg(test)]
pub trait Check {
    fn check<H: Kind>(&mut self, c: u32, id: u32);
}

kinds! {
    Comm, 0x0400_0000, 0x3c00_0000:
        0x0400_0000 = Comm::NULL;
        0x4400_0000 = Comm::WORLD;
        0x4400_0001 = Comm::SELF;
    ;
    Group, 0x0800_0000, 0x3c00_0000:
        0x0800_0000 = Group::NULL;
        0x4800_0000 = Group::EMPTY;
    ;
    Win, 0x2000_0000, 0x3c00_0000:
        0x2000_0000 = Win::NULL;
    ;
    Session, 0x3800_0000, 0x3c00_0000:
        0x3800_0000 = Session::NULL;
    ;
    Info, 0x1c00_0000, 0x3c00_0000:
        0x1c00_0000 = Info::NULL;
        0x5c00_0001 = Info::ENV;
    ;
    Errhandler, 0x1400_0000, 0x3c00_0000:
        0x1400_0000 = Errhandler::NULL;
        0x5400_0000 = Errhandler::ARE_FATAL;
        0x5400_0001 = Errhandler::RETURN;
        0x5400_0002 = Errhandler::THROW;
        0x5400_0003 = Errhandler::ABORT;
    ;
    Request, 0x2c00_0000, 0x3e00_0000:
        0x2c00_0000 = Request::NULL;
    ;
    Message, 0x2e00_0000, 0x3e00_0000:
        0x2c00_0000 = Message::NULL;
        0x6c00_0000 = Message::NO_PROC;
    ;
    Op, 0x1800_0000, 0x3c00_0000:
        0x1800_0000 = Op::NULL;
        0x5800_0001 = op::MAX;
        0x5800_0002 = op::MIN;
        0x5800_0003 = op::SUM;
        0x5800_0004 = op::PROD;
        0x5800_0005 = op::LAND;
        0x5800_0006 = op::BAND;
        0x5800_0007 = op::LOR;
        0x5800_0008 = op::BOR;
        0x5800_0009 = op::LXOR;
        0x5800_000a = op::BXOR;
        0x5800_000b = op::MINLOC;
        0x5800_000c = op::MAXLOC;
        0x5800_000d = op::REPLACE;
        0x5800_000e = op::NO_OP;
    ;
    Datatype, 0x0c00_0000, 0x3c00_0000:
        0x0c00_0000 = Datatype::NULL;
        0x4c00_0843 = dt::AINT;
        0x4c00_0845 = dt::COUNT;
        0x4c00_0844 = dt::OFFSET;
        0x4c00_010f = dt::PACKED;
        0x4c00_0203 = dt::SHORT;
        0x4c00_0405 = dt::INT;
        0x4c00_0807 = dt::LONG;
        0x4c00_0809 = dt::LONG_LONG;
        0x4c00_0204 = dt::UNSIGNED_SHORT;
        0x4c00_0406 = dt::UNSIGNED;
        0x4c00_0808 = dt::UNSIGNED_LONG;
        0x4c00_0819 = dt::UNSIGNED_LONG_LONG;
        0x4c00_040a = dt::FLOAT;
        0x4c00_0840 = dt::C_FLOAT_COMPLEX;
        0x4c00_0834 = dt::CXX_FLOAT_COMPLEX;
        0x4c00_080b = dt::DOUBLE;
        0x4c00_1041 = dt::C_DOUBLE_COMPLEX;
        0x4c00_1035 = dt::CXX_DOUBLE_COMPLEX;
        0x4c00_041d = dt::LOGICAL;
        0x4c00_041b = dt::INTEGER;
        0x4c00_041c = dt::REAL;
        0x4c00_081e = dt::COMPLEX;
        0x4c00_081f = dt::DOUBLE_PRECISION;
        0x4c00_1022 = dt::DOUBLE_COMPLEX;
        0x4c00_011a = dt::CHARACTER;
        0x4c00_100c = dt::LONG_DOUBLE;
        0x4c00_2042 = dt::C_LONG_DOUBLE_COMPLEX;
        0x4c00_2036 = dt::CXX_LONG_DOUBLE_COMPLEX;
        0x8c00_0000 = dt::FLOAT_INT;
        0x8c00_0001 = dt::DOUBLE_INT;
        0x8c00_0002 = dt::LONG_INT;
        0x4c00_0816 = dt::TWO_INT;
        0x8c00_0003 = dt::SHORT_INT;
        0x8c00_0004 = dt::LONG_DOUBLE_INT;
        0x4c00_0821 = dt::TWO_REAL;
        0x4c00_1023 = dt::TWO_DOUBLE_PRECISION;
        0x4c00_0820 = dt::TWO_INTEGER;
        0x4c00_013f = dt::C_BOOL;
        0x4c00_0133 = dt::CXX_BOOL;
        0x4c00_040e = dt::WCHAR;
        0x4c00_0137 = dt::INT8_T;
        0x4c00_013b = dt::UINT8_T;
        0x4c00_0101 = dt::CHAR;
        0x4c00_0118 = dt::SIGNED_CHAR;
        0x4c00_0102 = dt::UNSIGNED_CHAR;
        0x4c00_010d = dt::BYTE;
        0x4c00_0238 = dt::INT16_T;
        0x4c00_023c = dt::UINT16_T;
        0x4c00_0439 = dt::INT32_T;
        0x4c00_043d = dt::UINT32_T;
        0x4c00_083a = dt::INT64_T;
        0x4c00_083e = dt::UINT64_T;
        0x4c00_0147 = dt::LOGICAL1;
        0x4c00_012d = dt::INTEGER1;
        0x4c00_0248 = dt::LOGICAL2;
        0x4c00_022f = dt::INTEGER2;
        0x4c00_0226 = dt::REAL2;
        0x4c00_0246 = dt::C_FLOAT16;
        0x4c00_0449 = dt::LOGICAL4;
        0x4c00_0430 = dt::INTEGER4;
        0x4c00_0427 = dt::REAL4;
        0x4c00_042e = dt::COMPLEX4;
        0x4c00_084a = dt::LOGICAL8;
        0x4c00_0831 = dt::INTEGER8;
        0x4c00_0829 = dt::REAL8;
        0x4c00_0828 = dt::COMPLEX8;
        0x4c00_104b = dt::LOGICAL16;
        0x4c00_1032 = dt::INTEGER16;
        0x4c00_102b = dt::REAL16;
        0x4c00_102a = dt::COMPLEX16;
        0x4c00_202c = dt::COMPLEX32;
        0x4c00_0010 = dt::LB;
        0x4c00_0011 = dt::UB;
    ;
}
