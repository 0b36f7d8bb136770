//! Types by what they must hold: MPI_Type_create_f90_* and MPI_Type_match_size (MPI 4.1 section 19.1.9).

use super::Type;
use super::basic::BASICS;
use super::recipe::Recipe;
use crate::consts::{self, UNDEFINED, dt};
use crate::errors::{Class, Result, fail};
use crate::handle::Datatype;

/// Decimal precision and exponent range of gfortran's real kinds, the kind's size, its real and its complex type.
const REALS: &[(i32, i32, Datatype, Datatype)] = &[
    (6, 37, dt::FLOAT, dt::COMPLEX),
    (15, 307, dt::DOUBLE, dt::DOUBLE_COMPLEX),
    (18, 4931, dt::LONG_DOUBLE, dt::C_LONG_DOUBLE_COMPLEX),
    (33, 4931, dt::REAL16, dt::COMPLEX32),
];

/// Decimal range of the integer kinds.
const INTEGERS: &[(i32, Datatype)] =
    &[(2, dt::INT8_T), (4, dt::SHORT), (9, dt::INT), (18, dt::LONG), (38, dt::INTEGER16)];

/// The predefined type that an f90 recipe asks for.
pub(super) fn base(recipe: &Recipe) -> Result<Type> {
    let handle = match *recipe {
        Recipe::F90Real { precision, range } => real(precision, range)?.0,
        Recipe::F90Complex { precision, range } => real(precision, range)?.1,
        Recipe::F90Integer { range } => match INTEGERS.iter().find(|row| range <= row.0) {
            Some(row) if range >= 0 => row.1,
            _ => return fail(Class::Arg, format!("there is no integer kind of decimal range {range}")),
        },
        _ => return fail(Class::Intern, "not an f90 recipe"),
    };
    match BASICS.iter().find(|basic| basic.handle == handle) {
        Some(basic) => Ok(Type::basic(basic)),
        None => fail(Class::Intern, format!("{handle:?} has no row")),
    }
}

fn real(precision: i32, range: i32) -> Result<(Datatype, Datatype)> {
    if precision == UNDEFINED && range == UNDEFINED {
        return fail(Class::Arg, "precision and range are both MPI_UNDEFINED");
    }
    let enough = |need: i32, have: i32| need == UNDEFINED || (0..=have).contains(&need);
    match REALS.iter().find(|row| enough(precision, row.0) && enough(range, row.1)) {
        Some(row) => Ok((row.2, row.3)),
        None => fail(Class::Arg, format!("there is no real kind of precision {precision} and range {range}")),
    }
}

/// The Fortran type of a class (`consts::TYPECLASS_*`) with `size` bytes (MPI_Type_match_size).
pub fn match_size(class: i32, size: i32) -> Result<Datatype> {
    let found = match (class, size) {
        (consts::TYPECLASS_REAL, 2) => dt::REAL2,
        (consts::TYPECLASS_REAL, 4) => dt::REAL4,
        (consts::TYPECLASS_REAL, 8) => dt::REAL8,
        (consts::TYPECLASS_REAL, 16) => dt::REAL16,
        (consts::TYPECLASS_INTEGER, 1) => dt::INTEGER1,
        (consts::TYPECLASS_INTEGER, 2) => dt::INTEGER2,
        (consts::TYPECLASS_INTEGER, 4) => dt::INTEGER4,
        (consts::TYPECLASS_INTEGER, 8) => dt::INTEGER8,
        (consts::TYPECLASS_INTEGER, 16) => dt::INTEGER16,
        (consts::TYPECLASS_COMPLEX, 4) => dt::COMPLEX4,
        (consts::TYPECLASS_COMPLEX, 8) => dt::COMPLEX8,
        (consts::TYPECLASS_COMPLEX, 16) => dt::COMPLEX16,
        (consts::TYPECLASS_COMPLEX, 32) => dt::COMPLEX32,
        (consts::TYPECLASS_LOGICAL, 1) => dt::LOGICAL1,
        (consts::TYPECLASS_LOGICAL, 2) => dt::LOGICAL2,
        (consts::TYPECLASS_LOGICAL, 4) => dt::LOGICAL4,
        (consts::TYPECLASS_LOGICAL, 8) => dt::LOGICAL8,
        (consts::TYPECLASS_LOGICAL, 16) => dt::LOGICAL16,
        (
            consts::TYPECLASS_REAL | consts::TYPECLASS_INTEGER | consts::TYPECLASS_COMPLEX | consts::TYPECLASS_LOGICAL,
            _,
        ) => return fail(Class::Arg, format!("no type of this class has {size} bytes")),
        _ => return fail(Class::Arg, format!("{class} is none of MPI_TYPECLASS_*")),
    };
    Ok(found)
}
