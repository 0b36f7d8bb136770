//! The representation "external32": big-endian, with the standard's sizes (MPI 4.1 section 14.5.2).

#![allow(unsafe_code)]

use super::basic::{Form, Unit};
use super::{Rules, Type, pack, unpack};
use crate::errors::{Class, Result, fail};

/// Bytes of one part of `unit` in external32.
fn part_bytes(unit: Unit, rules: Rules) -> usize {
    match unit.form {
        Form::Long | Form::UnsignedLong => 4,
        // Open MPI writes it at its size in memory; MPICH ends the program.
        Form::Wide if rules != Rules::OpenMpi => 2,
        _ => unit.bytes.into(),
    }
}

/// Bytes of `count` elements in external32 (MPI_Pack_external_size).
pub fn size(ty: &Type, count: u64, rules: Rules) -> u64 {
    let unit_bytes = |unit: Unit| part_bytes(unit, rules) as u64 * u64::from(unit.parts);
    ty.signature().total(&unit_bytes).saturating_mul(count)
}

/// Append `count` elements at `buf` to `out`.
///
/// # Errors
/// `Class::Conversion` for a C long or wide character that needs more bytes than external32 has for it.
///
/// # Safety
/// `buf` must hold `count` elements.
pub unsafe fn pack_external(ty: &Type, count: u64, buf: *const u8, rules: Rules, out: &mut Vec<u8>) -> Result<()> {
    let mut native = vec![0; ty.size() as usize];
    let mut error = None;
    for i in 0..count {
        // SAFETY: the caller's promise.
        unsafe { pack(ty, count, buf, i * ty.size(), &mut native) };
        let mut rest = native.as_slice();
        ty.signature().visit(&mut |unit, number| {
            let (bytes, width) = (usize::from(unit.bytes), part_bytes(unit, rules));
            let (here, after) = rest.split_at(bytes * usize::from(unit.parts) * number as usize);
            rest = after;
            for value in here.chunks_exact(bytes) {
                if let Err(e) = encode(value, unit.form, width, out) {
                    error = Some(e);
                    return false;
                }
            }
            true
        });
        if let Some(error) = error.take() {
            return Err(error);
        }
    }
    Ok(())
}

/// Read `count` elements from the start of `data` into `buf`; returns the bytes read.
///
/// # Errors
/// `Class::Truncate` if `data` is too short.
///
/// # Safety
/// `buf` must have room for `count` elements.
pub unsafe fn unpack_external(ty: &Type, count: u64, buf: *mut u8, rules: Rules, data: &[u8]) -> Result<usize> {
    let needed = size(ty, count, rules);
    if needed > data.len() as u64 {
        return fail(Class::Truncate, format!("{needed} bytes of external32 data are needed, {} are left", data.len()));
    }
    let mut native = Vec::with_capacity(ty.size() as usize);
    let mut rest = data;
    for i in 0..count {
        native.clear();
        ty.signature().visit(&mut |unit, number| {
            let width = part_bytes(unit, rules);
            let (here, after) = rest.split_at(width * usize::from(unit.parts) * number as usize);
            rest = after;
            for value in here.chunks_exact(width) {
                decode(value, unit, &mut native);
            }
            true
        });
        // SAFETY: the caller's promise.
        unsafe { unpack(ty, count, buf, i * ty.size(), &native) };
    }
    Ok(needed as usize)
}

fn encode(value: &[u8], form: Form, width: usize, out: &mut Vec<u8>) -> Result<()> {
    match form {
        Form::Raw => out.extend_from_slice(value),
        Form::Extended => out.extend_from_slice(&extended_to_quad(value).to_be_bytes()),
        _ => {
            let (kept, cut) = value.split_at(width);
            // What is cut off must be what reading puts there again.
            let above = extension(form, kept[width - 1]);
            if cut.iter().any(|&byte| byte != above) {
                return fail(Class::Conversion, format!("an integer does not fit the {width} bytes of external32"));
            }
            out.extend(kept.iter().rev());
        }
    }
    Ok(())
}

fn decode(value: &[u8], unit: Unit, native: &mut Vec<u8>) {
    match unit.form {
        Form::Raw => native.extend_from_slice(value),
        Form::Extended => {
            let mut bits = [0; 16];
            bits.copy_from_slice(value);
            native.extend_from_slice(&quad_to_extended(u128::from_be_bytes(bits)));
        }
        _ => {
            native.extend(value.iter().rev());
            native.extend(std::iter::repeat_n(extension(unit.form, value[0]), usize::from(unit.bytes) - value.len()));
        }
    }
}

/// The bytes above a number whose highest byte is `top`.
fn extension(form: Form, top: u8) -> u8 {
    if form == Form::Long && top & 0x80 != 0 { 0xff } else { 0 }
}

/// x87 extended precision (10 bytes) to IEEE quadruple bits; exact.
fn extended_to_quad(value: &[u8]) -> u128 {
    let mut low = [0; 8];
    low.copy_from_slice(&value[..8]);
    let mantissa = u64::from_le_bytes(low);
    let top = u16::from_le_bytes([value[8], value[9]]);
    let (sign, exponent) = (u128::from(top >> 15) << 127, u128::from(top & 0x7fff));
    if mantissa == 0 && exponent != 0x7fff {
        return sign;
    }
    if exponent == 0 && mantissa >> 63 == 0 {
        // The two formats share their exponent range: a subnormal stays one.
        return sign | (u128::from(mantissa) << 49);
    }
    // The integer bit is implicit in the quadruple format.
    let exponent = if exponent == 0 { 1 } else { exponent };
    sign | (exponent << 112) | (u128::from(mantissa & (u64::MAX >> 1)) << 49)
}

/// IEEE quadruple bits to x87 extended precision, rounded to nearest even.
fn quad_to_extended(bits: u128) -> [u8; 16] {
    let sign = ((bits >> 127) as u16) << 15;
    let mut exponent = ((bits >> 112) & 0x7fff) as u16;
    let fraction = bits & ((1 << 112) - 1);
    let mut mantissa = (fraction >> 49) as u64;
    if exponent != 0 {
        mantissa |= 1 << 63;
    }
    let rest = fraction & ((1 << 49) - 1);
    let half = 1u128 << 48;
    if exponent == 0x7fff {
        if rest != 0 {
            mantissa |= 1 << 62; // keep a NaN a (quiet) NaN
        }
    } else if rest > half || (rest == half && mantissa & 1 == 1) {
        let (sum, overflow) = mantissa.overflowing_add(1);
        mantissa = sum;
        if overflow {
            mantissa = 1 << 63;
            exponent += 1;
        } else if exponent == 0 && mantissa >> 63 == 1 {
            exponent = 1;
        }
    }
    let mut out = [0; 16];
    out[..8].copy_from_slice(&mantissa.to_le_bytes());
    out[8..10].copy_from_slice(&(sign | exponent).to_le_bytes());
    out
}
