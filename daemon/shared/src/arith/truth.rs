//! Real numbers as C's conditions: zero is false, all else is true, also what is not a number.

use super::extended::Extended;
use super::half::Half;
use super::quad::Quad;

/// A number that can be read as true or false.
pub trait Truth {
    fn truth(self) -> bool;
    /// One or zero.
    fn from_truth(truth: bool) -> Self;
}

impl Truth for f32 {
    fn truth(self) -> bool {
        self != 0.0
    }
    fn from_truth(truth: bool) -> f32 {
        f32::from(truth)
    }
}

impl Truth for f64 {
    fn truth(self) -> bool {
        self != 0.0
    }
    fn from_truth(truth: bool) -> f64 {
        f64::from(truth)
    }
}

impl Truth for Half {
    fn truth(self) -> bool {
        self.0 << 1 != 0
    }
    fn from_truth(truth: bool) -> Half {
        Half(if truth { 0x3c00 } else { 0 })
    }
}

impl Truth for Quad {
    fn truth(self) -> bool {
        self.0 << 1 != 0
    }
    fn from_truth(truth: bool) -> Quad {
        Quad(if truth { 0x3fff << 112 } else { 0 })
    }
}

impl Truth for Extended {
    /// The significand has its first bit in the open, and only zero's is 0.
    fn truth(self) -> bool {
        self.0[..8] != [0; 8]
    }
    fn from_truth(truth: bool) -> Extended {
        let mut bytes = [0; 16];
        if truth {
            bytes[7..10].copy_from_slice(&[0x80, 0xff, 0x3f]);
        }
        Extended(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Truth + Copy>(zeros: &[T], others: &[T]) {
        assert!(T::from_truth(true).truth() && !T::from_truth(false).truth());
        assert!(zeros.iter().all(|zero| !zero.truth()));
        assert!(others.iter().all(|other| other.truth()));
    }

    #[test]
    fn zero_of_either_sign_is_false() {
        round_trip(&[0.0, -0.0], &[f32::MIN_POSITIVE, f32::NAN, -1.0]);
        round_trip(&[0.0, -0.0], &[f64::MIN_POSITIVE, f64::NAN, -1.0]);
        round_trip(&[Half(0), Half(0x8000)], &[Half(1), Half(0x7e00)]);
        round_trip(&[Quad(0), Quad(1 << 127)], &[Quad(1), Quad(0x7fff << 112 | 1)]);
        let mut negative_zero = Extended([0; 16]);
        negative_zero.0[9] = 0x80;
        round_trip(&[negative_zero], &[Extended::from_truth(true)]);
        assert!(!super::super::extended::less(Extended::from_truth(true), Extended::from_truth(true)));
        let two = super::super::extended::add(Extended::from_truth(true), Extended::from_truth(true));
        assert!(super::super::extended::less(Extended::from_truth(true), two));
    }
}
