//! The arithmetic of a predefined datatype's elements.

use num_enum::TryFromPrimitive;

/// The arithmetic of an element. Numbers are bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug, TryFromPrimitive)]
#[repr(u8)]
pub enum Element {
    I8,
    I16,
    I32,
    I64,
    I128,
    U8,
    U16,
    U32,
    U64,
    /// IEEE half precision.
    F16,
    F32,
    F64,
    /// C `long double`.
    F80,
    /// IEEE quadruple precision (`__float128`, gfortran's `real(16)`).
    F128,
    C16,
    C32,
    C64,
    C80,
    C128,
    L8,
    L16,
    L32,
    L64,
    L128,
    FloatInt,
    DoubleInt,
    LongInt,
    IntInt,
    ShortInt,
    ExtendedInt,
    FloatFloat,
    DoubleDouble,
}

impl Element {
    /// A real floating-point number.
    pub fn is_real(self) -> bool {
        matches!(self, Element::F16 | Element::F32 | Element::F64 | Element::F80 | Element::F128)
    }

    /// Bytes of one element.
    pub fn bytes(self) -> usize {
        match self {
            Element::I8 | Element::U8 | Element::L8 => 1,
            Element::I16 | Element::U16 | Element::L16 | Element::F16 => 2,
            Element::I32 | Element::U32 | Element::L32 | Element::F32 | Element::C16 => 4,
            Element::I64 | Element::U64 | Element::L64 | Element::F64 | Element::C32 => 8,
            Element::FloatInt | Element::IntInt | Element::ShortInt | Element::FloatFloat => 8,
            Element::I128 | Element::L128 | Element::F80 | Element::F128 | Element::C64 => 16,
            Element::DoubleInt | Element::LongInt | Element::DoubleDouble => 16,
            Element::C80 | Element::C128 | Element::ExtendedInt => 32,
        }
    }
}
