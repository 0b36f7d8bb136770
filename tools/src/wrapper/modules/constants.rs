//! The named constants of Fortran, from mpi.h's and what only Fortran has.

use super::header;
use super::procedure::HANDLES;

/// A parameter.
#[derive(Clone, Debug)]
pub struct Constant {
    pub name: String,
    pub ty: Type,
    pub value: i64,
}

/// What a parameter is.
#[derive(Copy, Clone, Debug)]
pub enum Type {
    Integer,
    /// INTEGER(KIND=MPI_OFFSET_KIND).
    Offset,
    /// A handle of this type in mpi_f08, else INTEGER.
    Handle(&'static str),
}

/// What mpi.h does not say or says otherwise.
const FORTRAN: &[(&str, i64)] = &[
    ("MPI_ADDRESS_KIND", 8),
    ("MPI_OFFSET_KIND", 8),
    ("MPI_COUNT_KIND", 8),
    ("MPI_INTEGER_KIND", 4),
    ("MPI_STATUS_SIZE", 8),
    ("MPI_SOURCE", 1),
    ("MPI_TAG", 2),
    ("MPI_ERROR", 3),
];

pub fn all(mpi_h: &str) -> Vec<Constant> {
    let own = FORTRAN.iter().map(|&(name, value)| Constant { name: name.into(), ty: Type::Integer, value });
    let theirs = header::constants(mpi_h).into_iter().filter_map(|(name, ty, value)| {
        let ty = match ty.as_deref() {
            None => Type::Integer,
            Some("MPI_Offset") => Type::Offset,
            Some(ty) => Type::Handle(HANDLES.iter().find(|known| **known == ty)?),
        };
        // The tool interface is C's only; the Fortran form of a status is C's business.
        if name.starts_with("MPI_T_") || name.starts_with("MPI_F_") {
            return None;
        }
        // Fortran's strings have no NUL.
        let longest = name.starts_with("MPI_MAX_");
        Some(Constant { name, ty, value: value - i64::from(longest) })
    });
    own.chain(theirs).collect()
}
