//! Arithmetic on C's `long double` (x87 extended precision), which Rust has no type for.

#![allow(unsafe_code)]

/// One `long double` in its sixteen bytes.
#[derive(Copy, Clone)]
#[repr(C, align(16))]
pub struct Extended(pub [u8; 16]);

macro_rules! arithmetic {
    ($($(#[$doc:meta])* $name:ident $instruction:literal;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(a: Extended, b: Extended) -> Extended {
            let mut result = Extended([0; 16]);
            // SAFETY: reads ten bytes of `a` and `b`, writes ten of `result`; leaves the x87 stack as it was.
            unsafe {
                std::arch::asm!(
                    "fld tbyte ptr [{a}]",
                    "fld tbyte ptr [{b}]",
                    $instruction,
                    "fstp tbyte ptr [{r}]",
                    a = in(reg) &a, b = in(reg) &b, r = in(reg) &mut result,
                    out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                    out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                    options(nostack),
                );
            }
            result
        }
    )*};
}

arithmetic! {
    /// a + b
    add "faddp st(1), st";
    /// a * b
    mul "fmulp st(1), st";
    /// a - b
    sub "fsubp st(1), st";
}

/// Is `a < b`? No if either is not a number.
#[inline]
pub fn less(a: Extended, b: Extended) -> bool {
    let result: u8;
    // SAFETY: reads ten bytes of `a` and `b`; leaves the x87 stack as it was.
    unsafe {
        std::arch::asm!(
            "fld tbyte ptr [{a}]",
            "fld tbyte ptr [{b}]",
            "fcomip st, st(1)",
            "fstp st(0)",
            "seta {r}",
            a = in(reg) &a, b = in(reg) &b, r = out(reg_byte) result,
            out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
            out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
            options(nostack, readonly),
        );
    }
    result != 0
}
