//! The loops of the built-in operations, one for each operation and arithmetic.

#![allow(unsafe_code)]

use super::Builtin;
use super::element::Element;
use super::extended::{self, Extended};
use super::half::Half;
use super::quad::Quad;
use super::truth::Truth;
use std::ops::{Add, Mul, Sub};

/// `inout[i] = input[i] op inout[i]` for a number of elements, at any alignment.
///
/// # Safety
/// Both addresses hold that many elements.
pub type Kernel = unsafe fn(input: *const u8, inout: *mut u8, count: usize);

/// # Safety
/// As [`Kernel`].
#[inline(always)]
unsafe fn fold<T: Copy>(input: *const u8, inout: *mut u8, count: usize, f: impl Fn(T, T) -> T) {
    let (input, inout) = (input.cast::<T>(), inout.cast::<T>());
    for i in 0..count {
        // SAFETY: the caller's promise; the accesses are unaligned ones.
        unsafe {
            let value = f(input.add(i).read_unaligned(), inout.add(i).read_unaligned());
            inout.add(i).write_unaligned(value);
        }
    }
}

/// A value and its place, as C lays the struct out. Padding is neither read nor written.
#[repr(C)]
struct Pair<V, I> {
    value: V,
    index: I,
}

/// # Safety
/// As [`Kernel`].
#[inline(always)]
unsafe fn fold_pairs<V: Copy, I: Copy + PartialOrd>(
    input: *const u8,
    inout: *mut u8,
    count: usize,
    better: impl Fn(V, V) -> bool,
) {
    let (input, inout) = (input.cast::<Pair<V, I>>(), inout.cast::<Pair<V, I>>());
    for i in 0..count {
        // SAFETY: the caller's promise; the accesses are unaligned ones.
        unsafe {
            let (from, to) = (input.add(i), inout.add(i));
            let (value, index) =
                ((&raw const (*from).value).read_unaligned(), (&raw const (*from).index).read_unaligned());
            let (old, old_index) =
                ((&raw const (*to).value).read_unaligned(), (&raw const (*to).index).read_unaligned());
            if better(value, old) || (!better(old, value) && index < old_index) {
                (&raw mut (*to).value).write_unaligned(value);
                (&raw mut (*to).index).write_unaligned(index);
            }
        }
    }
}

macro_rules! kernel {
    ($t:ty, |$a:ident, $b:ident| $value:expr) => {{
        /// # Safety
        /// As [`Kernel`].
        unsafe fn run(input: *const u8, inout: *mut u8, count: usize) {
            // SAFETY: the caller's promise.
            unsafe { fold::<$t>(input, inout, count, |$a: $t, $b: $t| $value) }
        }
        Some(run as Kernel)
    }};
}

macro_rules! pair {
    ($op:expr, $v:ty, $i:ty, |$a:ident, $b:ident| $less:expr) => {{
        /// # Safety
        /// As [`Kernel`].
        unsafe fn minloc(input: *const u8, inout: *mut u8, count: usize) {
            // SAFETY: the caller's promise.
            unsafe { fold_pairs::<$v, $i>(input, inout, count, |$a, $b| $less) }
        }
        /// # Safety
        /// As [`Kernel`].
        unsafe fn maxloc(input: *const u8, inout: *mut u8, count: usize) {
            // SAFETY: the caller's promise.
            unsafe { fold_pairs::<$v, $i>(input, inout, count, |$b, $a| $less) }
        }
        match $op {
            Builtin::Minloc => Some(minloc as Kernel),
            Builtin::Maxloc => Some(maxloc as Kernel),
            _ => None,
        }
    }};
}

macro_rules! integer {
    ($op:expr, $t:ty) => {
        match $op {
            Builtin::Max => kernel!($t, |a, b| a.max(b)),
            Builtin::Min => kernel!($t, |a, b| a.min(b)),
            Builtin::Sum => kernel!($t, |a, b| a.wrapping_add(b)),
            Builtin::Prod => kernel!($t, |a, b| a.wrapping_mul(b)),
            Builtin::Band => kernel!($t, |a, b| a & b),
            Builtin::Bor => kernel!($t, |a, b| a | b),
            Builtin::Bxor => kernel!($t, |a, b| a ^ b),
            _ => logical!($op, $t),
        }
    };
}

macro_rules! logical {
    ($op:expr, $t:ty) => {
        match $op {
            Builtin::Land => kernel!($t, |a, b| <$t>::from(a != 0 && b != 0)),
            Builtin::Lor => kernel!($t, |a, b| <$t>::from(a != 0 || b != 0)),
            Builtin::Lxor => kernel!($t, |a, b| <$t>::from((a != 0) != (b != 0))),
            _ => None,
        }
    };
}

macro_rules! real {
    ($op:expr, $t:ty, $add:expr, $mul:expr, $less:expr) => {
        match $op {
            Builtin::Max => kernel!($t, |a, b| if $less(b, a) { a } else { b }),
            Builtin::Min => kernel!($t, |a, b| if $less(a, b) { a } else { b }),
            Builtin::Sum => kernel!($t, |a, b| $add(a, b)),
            Builtin::Prod => kernel!($t, |a, b| $mul(a, b)),
            // No operations on these in the standard; MPICH has them, and reads a number as C does.
            Builtin::Land => kernel!($t, |a, b| <$t>::from_truth(a.truth() && b.truth())),
            Builtin::Lor => kernel!($t, |a, b| <$t>::from_truth(a.truth() || b.truth())),
            Builtin::Lxor => kernel!($t, |a, b| <$t>::from_truth(a.truth() != b.truth())),
            _ => None,
        }
    };
}

macro_rules! complex {
    ($op:expr, $t:ty, $add:expr, $sub:expr, $mul:expr) => {
        match $op {
            Builtin::Sum => kernel!([$t; 2], |a, b| [$add(a[0], b[0]), $add(a[1], b[1])]),
            Builtin::Prod => kernel!([$t; 2], |a, b| {
                [$sub($mul(a[0], b[0]), $mul(a[1], b[1])), $add($mul(a[0], b[1]), $mul(a[1], b[0]))]
            }),
            _ => None,
        }
    };
}

macro_rules! native {
    ($name:ident, $t:ty, $operator:tt -> $r:ty) => {
        #[inline(always)]
        fn $name(a: $t, b: $t) -> $r {
            a $operator b
        }
    };
}
native!(add32, f32, + -> f32);
native!(sub32, f32, - -> f32);
native!(mul32, f32, * -> f32);
native!(less32, f32, < -> bool);
native!(add64, f64, + -> f64);
native!(sub64, f64, - -> f64);
native!(mul64, f64, * -> f64);
native!(less64, f64, < -> bool);

/// `inout[i] = input[i] op inout[i]` for as many whole elements as both hold. False: the operation is not defined there, and nothing has been done.
pub fn combine(op: Builtin, element: Element, input: &[u8], inout: &mut [u8]) -> bool {
    let Some(kernel) = kernel(op, element) else { return false };
    let count = input.len().min(inout.len()) / element.bytes();
    // SAFETY: both hold so many.
    unsafe { kernel(input.as_ptr(), inout.as_mut_ptr(), count) };
    true
}

/// The loop of `op` on `element`; `None` if the operation is not defined there.
pub fn kernel(op: Builtin, element: Element) -> Option<Kernel> {
    match element {
        Element::I8 => integer!(op, i8),
        Element::I16 => integer!(op, i16),
        Element::I32 => integer!(op, i32),
        Element::I64 => integer!(op, i64),
        Element::I128 => integer!(op, i128),
        Element::U8 => integer!(op, u8),
        Element::U16 => integer!(op, u16),
        Element::U32 => integer!(op, u32),
        Element::U64 => integer!(op, u64),
        Element::F16 => real!(op, Half, Half::add, Half::mul, Half::less),
        Element::F32 => real!(op, f32, add32, mul32, less32),
        Element::F64 => real!(op, f64, add64, mul64, less64),
        Element::F80 => real!(op, Extended, extended::add, extended::mul, extended::less),
        Element::F128 => real!(op, Quad, Quad::add, Quad::mul, Quad::less),
        Element::C16 => complex!(op, Half, Half::add, Half::sub, Half::mul),
        Element::C32 => complex!(op, f32, add32, sub32, mul32),
        Element::C64 => complex!(op, f64, add64, sub64, mul64),
        Element::C80 => complex!(op, Extended, extended::add, extended::sub, extended::mul),
        Element::C128 => complex!(op, Quad, Quad::add, Quad::sub, Quad::mul),
        Element::L8 => logical!(op, u8),
        Element::L16 => logical!(op, u16),
        Element::L32 => logical!(op, u32),
        Element::L64 => logical!(op, u64),
        Element::L128 => logical!(op, u128),
        Element::FloatInt => pair!(op, f32, i32, |a, b| a < b),
        Element::DoubleInt => pair!(op, f64, i32, |a, b| a < b),
        Element::LongInt => pair!(op, i64, i32, |a, b| a < b),
        Element::IntInt => pair!(op, i32, i32, |a, b| a < b),
        Element::ShortInt => pair!(op, i16, i32, |a, b| a < b),
        Element::ExtendedInt => pair!(op, Extended, i32, |a, b| extended::less(a, b)),
        Element::FloatFloat => pair!(op, f32, f32, |a, b| a < b),
        Element::DoubleDouble => pair!(op, f64, f64, |a, b| a < b),
    }
}
