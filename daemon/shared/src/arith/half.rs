//! Arithmetic on IEEE half precision (`_Float16`, MPI_REAL2), which Rust has no stable type for.
//!
//! Each operation is done in single precision and rounded once more: with 24 bits, more than twice the 11 of a half and two,
//! sum, difference and product come out as if they had been rounded only once.

use std::ops::{Add, Mul, Sub};

/// One half-precision number, as its bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Half(pub u16);

impl Half {
    /// The nearest half, ties to even; too large becomes infinity.
    pub fn round(value: f32) -> Half {
        let bits = value.to_bits();
        let sign = (bits >> 16) as u16 & 0x8000;
        let magnitude = bits & 0x7fff_ffff;
        let rounded = match magnitude {
            // Not a number: keep what fits of the payload, and keep it quiet.
            0x7f80_0001.. => 0x7e00 | (magnitude >> 13) & 0x3ff,
            // From halfway between the largest half and the next power of two on.
            0x477f_f000.. => 0x7c00,
            // Normal: another bias for the exponent; a carry out of the fraction belongs to it.
            0x3880_0000.. => nearest(magnitude - (112 << 23), 13),
            // Subnormal: a multiple of 2^-24.
            0x3300_0000.. => nearest(magnitude & 0x7f_ffff | 0x80_0000, 126 - (magnitude >> 23)),
            _ => 0,
        };
        Half(sign | rounded as u16)
    }

    /// The same number in single precision.
    pub fn single(self) -> f32 {
        let (exponent, fraction) = (u32::from(self.0 >> 10) & 0x1f, u32::from(self.0) & 0x3ff);
        let magnitude = match exponent {
            // Exact: 24 bits are enough for ten.
            0 => (fraction as f32 / (1u32 << 24) as f32).to_bits(),
            0x1f => 0x7f80_0000 | fraction << 13,
            _ => (exponent + 112) << 23 | fraction << 13,
        };
        f32::from_bits(magnitude | (u32::from(self.0) & 0x8000) << 16)
    }

    pub fn less(self, other: Half) -> bool {
        self.single() < other.single()
    }
}

/// `value / 2^shift`, to the nearest whole number, ties to even.
fn nearest(value: u32, shift: u32) -> u32 {
    let (kept, half) = (value >> shift, 1 << (shift - 1));
    let rest = value & ((1 << shift) - 1);
    kept + u32::from(rest > half || rest == half && kept & 1 == 1)
}

impl Add for Half {
    type Output = Half;

    fn add(self, other: Half) -> Half {
        Half::round(self.single() + other.single())
    }
}

impl Sub for Half {
    type Output = Half;

    fn sub(self, other: Half) -> Half {
        Half::round(self.single() - other.single())
    }
}

impl Mul for Half {
    type Output = Half;

    fn mul(self, other: Half) -> Half {
        Half::round(self.single() * other.single())
    }
}
