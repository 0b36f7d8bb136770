//! What the variables of the tool information interface are made of.

use crate::consts;

/// What a call of the tool interface returns when it fails: one of `consts::T_ERR_*`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Failure(pub i32);

pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// A value of a variable.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Value {
    Int(i32),
    Count(u64),
    Seconds(f64),
    Text(&'static str),
}

/// What kind of value a variable has.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// MPI_INT.
    Int,
    /// MPI_UNSIGNED_LONG_LONG.
    Count,
    /// MPI_DOUBLE.
    Seconds,
    /// MPI_CHAR, with a NUL at the end.
    Text,
}

impl Kind {
    /// Nothing yet.
    pub fn zero(self) -> Value {
        match self {
            Kind::Int => Value::Int(0),
            Kind::Count => Value::Count(0),
            Kind::Seconds => Value::Seconds(0.0),
            Kind::Text => Value::Text(""),
        }
    }
}

/// How much a user must know to want a variable.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Verbosity {
    User = consts::T_VERBOSITY_USER_BASIC,
    Tuner = consts::T_VERBOSITY_TUNER_BASIC,
    Developer = consts::T_VERBOSITY_MPIDEV_BASIC,
}

/// Position of a name in a list.
///
/// # Errors
/// `T_ERR_INVALID_NAME`.
pub(crate) fn index_of(names: impl Iterator<Item = &'static str>, wanted: &[u8]) -> Result<usize> {
    names.into_iter().position(|name| name.as_bytes() == wanted).ok_or(Failure(consts::T_ERR_INVALID_NAME))
}
