//! Each arithmetic against a reference.

#![allow(unsafe_code)]

use super::*;
use crate::consts::dt;
use proptest::prelude::*;
use std::ops::{Add, Mul, Sub};
use vmpi_shared::arith::extended::{self, Extended};
use vmpi_shared::arith::half::Half;
use vmpi_shared::arith::quad::Quad;

fn reduce<T: Copy>(op: Builtin, element: Element, input: &[T], inout: &mut [T]) {
    let kernel = kernel(op, element).unwrap_or_else(|| panic!("{op:?} on {element:?}"));
    // SAFETY: slices of equal length.
    unsafe { kernel(input.as_ptr().cast(), inout.as_mut_ptr().cast(), input.len()) };
}

#[test]
fn quadruple_precision_is_gccs() {
    // Operands, sum, difference, product, less: printed by a C program with __float128.
    let mut lines = 0;
    for line in include_str!("quad_vectors.txt").lines() {
        let words: Vec<u128> = line.split_whitespace().map(|w| u128::from_str_radix(w, 16).unwrap()).collect();
        let (a, b) = (Quad(words[0]), Quad(words[1]));
        let nan = |q: Quad| q.0 & !(1 << 127) > 0x7fff << 112;
        let same = |x: Quad, y: u128| x.0 == y || (nan(x) && nan(Quad(y)));
        assert!(same(a.add(b), words[2]), "{a:x?} + {b:x?} = {:x?}, not {:x}", a.add(b), words[2]);
        assert!(same(a.sub(b), words[3]), "{a:x?} - {b:x?} = {:x?}, not {:x}", a.sub(b), words[3]);
        assert!(same(a.mul(b), words[4]), "{a:x?} * {b:x?} = {:x?}, not {:x}", a.mul(b), words[4]);
        assert_eq!(a.less(b), words[5] == 1, "{a:x?} < {b:x?}");
        lines += 1;
    }
    assert!(lines >= 150);
}

/// An integer as x87 extended precision.
fn extended(value: i64) -> Extended {
    let mut bytes = [0; 16];
    let magnitude = value.unsigned_abs();
    if magnitude != 0 {
        let shift = magnitude.leading_zeros();
        bytes[..8].copy_from_slice(&(magnitude << shift).to_le_bytes());
        let exponent = 16383 + 63 - shift as u16 + if value < 0 { 0x8000 } else { 0 };
        bytes[8..10].copy_from_slice(&exponent.to_le_bytes());
    }
    Extended(bytes)
}

proptest! {
    #[test]
    fn extended_precision_adds_and_multiplies(a in -1i64 << 60..1 << 60, b in -1i64 << 60..1 << 60, c in any::<i32>(), d in any::<i32>()) {
        let (c, d) = (i64::from(c), i64::from(d));
        prop_assert_eq!(&extended::add(extended(a), extended(b)).0[..10], &extended(a + b).0[..10]);
        prop_assert_eq!(&extended::sub(extended(a), extended(b)).0[..10], &extended(a - b).0[..10]);
        prop_assert_eq!(&extended::mul(extended(c), extended(d)).0[..10], &extended(c * d).0[..10]);
        prop_assert_eq!(extended::less(extended(a), extended(b)), a < b);
        prop_assert!(!extended::less(extended(a), extended(a)));
    }

    #[test]
    fn integers(pairs in prop::collection::vec(any::<(i32, i32)>(), 0..40)) {
        let (input, start): (Vec<i32>, Vec<i32>) = pairs.into_iter().unzip();
        type Fold = fn(i32, i32) -> i32;
        let table: &[(Builtin, Fold)] = &[
            (Builtin::Sum, i32::wrapping_add),
            (Builtin::Prod, i32::wrapping_mul),
            (Builtin::Max, std::cmp::Ord::max),
            (Builtin::Min, std::cmp::Ord::min),
            (Builtin::Band, |a, b| a & b),
            (Builtin::Bor, |a, b| a | b),
            (Builtin::Bxor, |a, b| a ^ b),
            (Builtin::Land, |a, b| i32::from(a != 0 && b != 0)),
            (Builtin::Lor, |a, b| i32::from(a != 0 || b != 0)),
            (Builtin::Lxor, |a, b| i32::from((a != 0) ^ (b != 0))),
        ];
        for (op, f) in table {
            let mut inout = start.clone();
            reduce(*op, Element::I32, &input, &mut inout);
            let expected: Vec<i32> = input.iter().zip(&start).map(|(&a, &b)| f(a, b)).collect();
            prop_assert_eq!(inout, expected, "{:?}", op);
        }
    }
}

#[test]
fn complex_numbers_multiply() {
    let (input, mut inout) = ([[1.0f64, 2.0], [0.0, 1.0]], [[3.0, -1.0], [0.0, 1.0]]);
    reduce(Builtin::Prod, Element::C64, &input, &mut inout);
    assert_eq!(inout, [[5.0, 5.0], [-1.0, 0.0]]);
    let long = |re, im| [extended(re), extended(im)];
    let (input, mut inout) = ([long(1, 2)], [long(3, -1)]);
    reduce(Builtin::Prod, Element::C80, &input, &mut inout);
    assert_eq!(inout.map(|c| c.map(|x| x.0)), [long(5, 5)].map(|c| c.map(|x| x.0)));
}

#[test]
fn the_lower_place_wins_a_tie() {
    #[derive(Copy, Clone, PartialEq, Debug)]
    #[repr(C)]
    struct DoubleInt(f64, i32);
    let input = [DoubleInt(1.0, 7), DoubleInt(2.0, 3), DoubleInt(5.0, 1), DoubleInt(-1.0, 4)];
    let start = [DoubleInt(1.0, 2), DoubleInt(2.0, 5), DoubleInt(4.0, 0), DoubleInt(0.0, 9)];
    let mut inout = start;
    reduce(Builtin::Minloc, Element::DoubleInt, &input, &mut inout);
    assert_eq!(inout, [DoubleInt(1.0, 2), DoubleInt(2.0, 3), DoubleInt(4.0, 0), DoubleInt(-1.0, 4)]);
    let mut inout = start;
    reduce(Builtin::Maxloc, Element::DoubleInt, &input, &mut inout);
    assert_eq!(inout, [DoubleInt(1.0, 2), DoubleInt(2.0, 3), DoubleInt(5.0, 1), DoubleInt(0.0, 9)]);
}

#[test]
fn unaligned_vectors_are_reduced() {
    let mut bytes = [0u8; 2 * 8 * 5 + 1];
    let (input, inout) = bytes.split_at_mut(8 * 5 + 1);
    for i in 0..5 {
        input[1 + 8 * i..][..8].copy_from_slice(&(i as f64).to_ne_bytes());
        inout[8 * i..][..8].copy_from_slice(&10.0f64.to_ne_bytes());
    }
    let kernel = kernel(Builtin::Sum, Element::F64).unwrap();
    // SAFETY: five elements each.
    unsafe { kernel(input[1..].as_ptr(), inout.as_mut_ptr(), 5) };
    assert_eq!(inout[32..], 14.0f64.to_ne_bytes());
}

#[test]
fn only_the_standards_pairs_of_operation_and_type() {
    let allowed = |op, datatype| element::of(datatype).and_then(|e| kernel(op, e)).is_some();
    for (op, datatype, expected) in [
        (Builtin::Sum, dt::DOUBLE, true),
        (Builtin::Sum, dt::C_FLOAT_COMPLEX, true),
        (Builtin::Max, dt::C_FLOAT_COMPLEX, false),
        (Builtin::Band, dt::BYTE, true),
        (Builtin::Band, dt::DOUBLE, false),
        (Builtin::Land, dt::C_BOOL, true),
        (Builtin::Sum, dt::C_BOOL, false),
        (Builtin::Lor, dt::LOGICAL, true),
        (Builtin::Sum, dt::WCHAR, false),
        (Builtin::Minloc, dt::INT, false),
        (Builtin::Minloc, dt::LONG_DOUBLE_INT, true),
        (Builtin::Sum, dt::DOUBLE_INT, false),
        (Builtin::Sum, dt::LONG_DOUBLE, true),
        (Builtin::Sum, dt::REAL16, true),
        (Builtin::Prod, dt::COMPLEX32, true),
        (Builtin::Bxor, dt::AINT, true),
    ] {
        assert_eq!(allowed(op, datatype), expected, "{op:?} {datatype:?}");
    }
}

#[test]
fn half_precision_rounds_to_nearest_even() {
    // Every half there and back.
    for bits in 0..=u16::MAX {
        let single = Half(bits).single();
        match bits & 0x7c00 == 0x7c00 && bits & 0x3ff != 0 {
            true => assert!(single.is_nan() && Half::round(single).single().is_nan()),
            false => assert_eq!(Half::round(single), Half(bits)),
        }
    }
    let largest = 65504.0;
    assert_eq!(Half(0x7bff).single(), largest);
    assert_eq!(Half(1).single(), 2f32.powi(-24));
    // Between neighbours: what is nearer, and the even one from the middle.
    for bits in 0..0x7bff_u16 {
        let (low, high) = (Half(bits).single(), Half(bits + 1).single());
        let middle = (low + high) / 2.0;
        assert_eq!(Half::round(middle), Half(bits + (bits & 1)), "{middle}");
        assert_eq!(Half::round(middle.next_down()), Half(bits));
        assert_eq!(Half::round(-middle.next_up()), Half((bits + 1) | 0x8000));
    }
    assert_eq!(Half::round(65519.99), Half(0x7bff));
    assert_eq!(Half::round(65520.0), Half(0x7c00));
    assert_eq!(Half::round(f32::MIN_POSITIVE), Half(0));
}

#[test]
fn halves_are_reduced() {
    let halves = |numbers: [f32; 3]| numbers.map(Half::round);
    let (input, start) = (halves([1.5, 2.25, -1.0]), halves([1.000_976_6, 3.0, 65504.0]));
    for (op, wanted) in [
        (Builtin::Sum, [2.5, 5.25, 65504.0]),
        (Builtin::Prod, [1.501_953_1, 6.75, -65504.0]),
        (Builtin::Max, [1.5, 3.0, 65504.0]),
        (Builtin::Min, [1.000_976_6, 2.25, -1.0]),
    ] {
        let mut inout = start;
        reduce(op, Element::F16, &input, &mut inout);
        assert_eq!(inout, halves(wanted), "{op:?}");
    }
    let (input, mut inout) = ([[1.0, 2.0].map(Half::round)], [[3.0, -1.0].map(Half::round)]);
    reduce(Builtin::Prod, Element::C16, &input, &mut inout);
    assert_eq!(inout, [[5.0, 5.0].map(Half::round)]);
}
