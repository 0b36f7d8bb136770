//! Where the libraries whose ABIs vmpi has differ in what they allow.

use std::sync::OnceLock;

/// What the library that a program was built for does. The default is what Open MPI does.
#[derive(Copy, Clone, Debug, Default)]
pub struct Face {
    /// MPI_LAND, MPI_LOR and MPI_LXOR are defined on real numbers, too, where the standard has none.
    pub logical_on_reals: bool,
    /// MPI_BYTE has the bitwise operations only, but in accumulation into windows, as it has in the standard; else it is an unsigned number.
    pub bytes_are_bits: bool,
    pub characters: Characters,
    /// What is both sent from and received into in one collective is looked for in all of them. (At the root of MPI_Reduce every
    /// library does, and in MPI_Allreduce of more than one element.)
    pub refuses_aliases: bool,
    /// A program's error handler may change what the call returns.
    pub handlers_choose: bool,
}

/// What MPI_CHARACTER is in reductions. In the standard it is no number.
#[derive(Copy, Clone, Debug, Default)]
pub enum Characters {
    #[default]
    Unsigned,
    Signed,
    NoNumbers,
}

static FACE: OnceLock<Face> = OnceLock::new();

/// The process has this face. The first call counts: a process has one.
pub fn adopt(face: Face) {
    let _ = FACE.set(face);
}

/// The face of this process.
#[inline]
pub(crate) fn face() -> Face {
    FACE.get().copied().unwrap_or_default()
}
