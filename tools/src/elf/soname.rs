//! The MPI that a soname stands for.

use std::fmt;

/// A C ABI of MPI that programs are built for.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Face {
    OpenMpi,
    Mpich,
    /// The MPI-5 standard's ABI.
    Standard,
}

impl Face {
    /// All of them; a program without a visible MPI gets the first that is installed.
    pub const ALL: [Face; 3] = [Face::OpenMpi, Face::Mpich, Face::Standard];

    /// The name in messages, and the directory of its libraries.
    pub fn name(self) -> &'static str {
        match self {
            Face::OpenMpi => "openmpi",
            Face::Mpich => "mpich",
            Face::Standard => "standard",
        }
    }

    /// What mpi4py's wheels call it (MPI4PY_MPIABI), and the library that they should open.
    pub fn for_mpi4py(self) -> (&'static str, &'static str) {
        match self {
            Face::OpenMpi => ("openmpi", "libmpi.so.40"),
            Face::Mpich => ("mpich", "libmpi.so.12"),
            Face::Standard => ("mpiabi", "libmpi_abi.so.1"),
        }
    }
}

impl fmt::Display for Face {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Face::OpenMpi => "Open MPI",
            Face::Mpich => "MPICH",
            Face::Standard => "the MPI-5 standard ABI",
        })
    }
}

/// What a soname says about MPI.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Soname {
    /// Not an MPI library.
    Other,
    /// An MPI library that a face replaces.
    Mpi(Face),
    /// An MPI library of an ABI that vmpi has no face for.
    Unknown,
}

/// Classify a soname: Open MPI 4 and 5 have version 40, MPICH and Intel MPI 12, the standard ABI 0 and 1.
pub fn of_soname(soname: &str) -> Soname {
    let Some((stem, version)) = soname.split_once(".so.") else { return Soname::Other };
    let version = version.split('.').next().unwrap_or(version);
    let openmpi = ["libmpi_mpifh", "libmpi_usempif08", "libmpi_usempi", "libmpi_usempi_ignore_tkr", "libmpi_cxx"];
    let mpich = ["libmpich", "libmpifort", "libmpichfort", "libmpicxx", "libmpichcxx", "libmpich_mpi"];
    let bare = stem.strip_suffix("-gfortran").unwrap_or(stem);
    match (bare, version) {
        ("libmpi", "40") => Soname::Mpi(Face::OpenMpi),
        ("libmpi", "12") => Soname::Mpi(Face::Mpich),
        ("libmpi_abi" | "libmpifort_abi", "0" | "1") => Soname::Mpi(Face::Standard),
        (stem, "40") if openmpi.contains(&stem) => Soname::Mpi(Face::OpenMpi),
        (stem, "12") if mpich.contains(&stem) => Soname::Mpi(Face::Mpich),
        ("libmpi" | "libmpich" | "libmpi_abi", _) => Soname::Unknown,
        _ => Soname::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table() {
        for (soname, expected) in [
            ("libmpi.so.40", Soname::Mpi(Face::OpenMpi)),
            ("libmpi_usempif08-gfortran.so.40", Soname::Mpi(Face::OpenMpi)),
            ("libmpi_mpifh.so.40", Soname::Mpi(Face::OpenMpi)),
            ("libmpi.so.12", Soname::Mpi(Face::Mpich)),
            ("libmpich.so.12", Soname::Mpi(Face::Mpich)),
            ("libmpifort.so.12", Soname::Mpi(Face::Mpich)),
            ("libmpi_abi.so.1", Soname::Mpi(Face::Standard)),
            ("libmpi_abi.so.0", Soname::Mpi(Face::Standard)),
            ("libmpi.so.20", Soname::Unknown),
            ("libmpich.so.10", Soname::Unknown),
            ("libmpi.so", Soname::Other),
            ("libc.so.6", Soname::Other),
            ("libmpfr.so.6", Soname::Other),
        ] {
            assert_eq!(of_soname(soname), expected, "{soname}");
        }
    }
}
