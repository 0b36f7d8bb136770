//! IEEE quadruple precision in software (gfortran's `real(16)`): what the reductions need, rounded to nearest even.

use std::ops::{Add, Mul, Sub};

/// The bits of a quadruple-precision number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Quad(pub u128);

const SIGN: u128 = 1 << 127;
const INFINITY: u128 = 0x7fff << 112;
const HIDDEN: u128 = 1 << 112;
const NAN: Quad = Quad(INFINITY | 1 << 111);

impl Quad {
    fn is_nan(self) -> bool {
        self.0 & !SIGN > INFINITY
    }
    fn negative(self) -> bool {
        self.0 & SIGN != 0
    }
    fn negated(self) -> Quad {
        Quad(self.0 ^ SIGN)
    }
    fn magnitude(self) -> u128 {
        self.0 & !SIGN
    }
    /// Exponent (1 for subnormals) and significand of a finite number.
    fn split(self) -> (i32, u128) {
        let exponent = (self.magnitude() >> 112) as i32;
        let fraction = self.0 & (HIDDEN - 1);
        if exponent == 0 { (1, fraction) } else { (exponent, fraction | HIDDEN) }
    }

    /// Is `self < other`? No if either is not a number.
    pub fn less(self, other: Quad) -> bool {
        if self.is_nan() || other.is_nan() || self.magnitude() | other.magnitude() == 0 {
            return false;
        }
        match (self.negative(), other.negative()) {
            (true, false) => true,
            (false, true) => false,
            (false, false) => self.magnitude() < other.magnitude(),
            (true, true) => self.magnitude() > other.magnitude(),
        }
    }
}

fn shift_sticky(value: u128, by: u32) -> u128 {
    match by {
        0 => value,
        1..=127 => (value >> by) | u128::from(value & ((1 << by) - 1) != 0),
        _ => u128::from(value != 0),
    }
}

fn wide_mul(a: u128, b: u128) -> (u128, u128) {
    const LOW: u128 = (1 << 64) - 1;
    let (ah, al, bh, bl) = (a >> 64, a & LOW, b >> 64, b & LOW);
    let (ll, lh, hl, hh) = (al * bl, al * bh, ah * bl, ah * bh);
    let middle = (ll >> 64) + (lh & LOW) + (hl & LOW);
    (hh + (lh >> 64) + (hl >> 64) + (middle >> 64), (middle << 64) | (ll & LOW))
}

/// Round `significand` (three bits finer than `exponent` says) and put the number together.
fn pack(sign: u128, mut exponent: i32, mut significand: u128) -> Quad {
    if significand == 0 {
        return Quad(sign);
    }
    // Normalize to 116 bits; not below the smallest exponent.
    let excess = 12 - significand.leading_zeros() as i32;
    if excess > 0 {
        significand = shift_sticky(significand, excess as u32);
        exponent += excess;
    } else {
        let by = (-excess).min(exponent - 1).max(0);
        significand <<= by;
        exponent -= by;
    }
    if exponent < 1 {
        significand = shift_sticky(significand, (1 - exponent) as u32);
        exponent = 1;
    }
    let rest = significand & 7;
    let mut value = significand >> 3;
    if rest > 4 || (rest == 4 && value & 1 == 1) {
        value += 1;
    }
    if value >= HIDDEN << 1 {
        value >>= 1;
        exponent += 1;
    }
    if exponent >= 0x7fff {
        return Quad(sign | INFINITY);
    }
    // A significand without its leading bit is subnormal: exponent field 0.
    let field = if value & HIDDEN == 0 { 0 } else { (exponent as u128) << 112 };
    Quad(sign | field | (value & (HIDDEN - 1)))
}

impl Add for Quad {
    type Output = Quad;

    /// self + other
    fn add(self, other: Quad) -> Quad {
        if self.is_nan() || other.is_nan() {
            return NAN;
        }
        if self.magnitude() == INFINITY || other.magnitude() == INFINITY {
            return match (self.magnitude() == INFINITY, other.magnitude() == INFINITY) {
                (true, true) if self.0 != other.0 => NAN,
                (true, _) => self,
                _ => other,
            };
        }
        let (big, small) = if self.magnitude() >= other.magnitude() { (self, other) } else { (other, self) };
        let ((exponent, a), (lower, b)) = (big.split(), small.split());
        // Three more bits: guard, round, and one that is set if anything non-zero was shifted out.
        let (a, b) = (a << 3, shift_sticky(b << 3, (exponent - lower) as u32));
        let sign = big.0 & SIGN;
        if big.negative() == small.negative() {
            return pack(sign, exponent, a + b);
        }
        if a == b {
            return Quad(0);
        }
        pack(sign, exponent, a - b)
    }
}

impl Sub for Quad {
    type Output = Quad;

    /// self - other
    fn sub(self, other: Quad) -> Quad {
        if other.is_nan() { other } else { self.add(other.negated()) }
    }
}

impl Mul for Quad {
    type Output = Quad;

    /// self * other
    fn mul(self, other: Quad) -> Quad {
        let sign = (self.0 ^ other.0) & SIGN;
        if self.is_nan() || other.is_nan() {
            return NAN;
        }
        if self.magnitude() == INFINITY || other.magnitude() == INFINITY {
            return if self.magnitude() == 0 || other.magnitude() == 0 { NAN } else { Quad(sign | INFINITY) };
        }
        if self.magnitude() == 0 || other.magnitude() == 0 {
            return Quad(sign);
        }
        let ((ea, a), (eb, b)) = (self.split(), other.split());
        // Normalize both to 113 bits, so that the product has 225 or 226.
        let (la, lb) = (a.leading_zeros() as i32 - 15, b.leading_zeros() as i32 - 15);
        let (high, low) = wide_mul(a << la, b << lb);
        // Product / 2^109 keeps 116 or 117 bits: 113 and the three extra ones.
        let sticky = u128::from(low & ((1 << 109) - 1) != 0);
        let product = (high << 19) | (low >> 109) | sticky;
        pack(sign, ea - la + eb - lb - 16383, product)
    }
}
