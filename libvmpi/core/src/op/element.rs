//! What a predefined datatype is to a reduction: its arithmetic (MPI 4.1 section 6.9.2).

use crate::consts::dt;
use crate::face::{Characters, face};
use crate::handle::Datatype;
use vmpi_shared::arith::Element;

/// The arithmetic of a predefined datatype; `None` if it has none.
pub fn of(datatype: Datatype) -> Option<Element> {
    use Element::*;
    Some(match datatype {
        // MPI_CHAR is no number in the standard; MPICH reduces it all the same, and programs rely on it.
        dt::CHAR | dt::SIGNED_CHAR | dt::INT8_T | dt::INTEGER1 => I8,
        dt::SHORT | dt::INT16_T | dt::INTEGER2 => I16,
        dt::INT | dt::INT32_T | dt::INTEGER | dt::INTEGER4 => I32,
        dt::LONG | dt::LONG_LONG | dt::INT64_T | dt::INTEGER8 | dt::AINT | dt::OFFSET | dt::COUNT => I64,
        dt::INTEGER16 => I128,
        dt::CHARACTER => match face().characters {
            Characters::Unsigned => U8,
            Characters::Signed => I8,
            Characters::NoNumbers => return None,
        },
        dt::UNSIGNED_CHAR | dt::UINT8_T | dt::BYTE => U8,
        dt::UNSIGNED_SHORT | dt::UINT16_T => U16,
        dt::UNSIGNED | dt::UINT32_T => U32,
        dt::UNSIGNED_LONG | dt::UNSIGNED_LONG_LONG | dt::UINT64_T => U64,
        dt::REAL2 | dt::SHORT_FLOAT | dt::C_FLOAT16 => F16,
        dt::FLOAT | dt::REAL | dt::REAL4 => F32,
        dt::DOUBLE | dt::DOUBLE_PRECISION | dt::REAL8 => F64,
        dt::LONG_DOUBLE => F80,
        dt::REAL16 => F128,
        dt::COMPLEX4 | dt::C_SHORT_FLOAT_COMPLEX => C16,
        dt::C_FLOAT_COMPLEX | dt::CXX_FLOAT_COMPLEX | dt::COMPLEX | dt::COMPLEX8 => C32,
        dt::C_DOUBLE_COMPLEX | dt::CXX_DOUBLE_COMPLEX | dt::DOUBLE_COMPLEX | dt::COMPLEX16 => C64,
        dt::C_LONG_DOUBLE_COMPLEX | dt::CXX_LONG_DOUBLE_COMPLEX => C80,
        dt::COMPLEX32 => C128,
        dt::C_BOOL | dt::CXX_BOOL | dt::LOGICAL1 => L8,
        dt::LOGICAL2 => L16,
        dt::LOGICAL | dt::LOGICAL4 => L32,
        dt::LOGICAL8 => L64,
        dt::LOGICAL16 => L128,
        dt::FLOAT_INT => FloatInt,
        dt::DOUBLE_INT => DoubleInt,
        dt::LONG_INT => LongInt,
        dt::TWO_INT | dt::TWO_INTEGER => IntInt,
        dt::SHORT_INT => ShortInt,
        dt::LONG_DOUBLE_INT => ExtendedInt,
        dt::TWO_REAL => FloatFloat,
        dt::TWO_DOUBLE_PRECISION => DoubleDouble,
        _ => return None,
    })
}
