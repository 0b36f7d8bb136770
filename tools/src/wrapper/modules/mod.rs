//! The Fortran side of vmpi's own ABI: mpif.h and the modules mpi and mpi_f08, made from mpi.h.
//!
//! `vmpifort -modules DIR` writes and compiles them, so that they fit the compiler: `cargo xtask build` does it with gfortran, and
//! a user with another gfortran does it once more. Reading order: `header` (mpi.h as data), `procedure` (what its functions are in
//! Fortran), `constants`, then `print` (the three files).

mod constants;
mod header;
mod print;
mod procedure;

use crate::failure::Failure;
use std::path::Path;
use std::process::Command;

/// vmpi's mpi.h, the table that everything here is made from.
const MPI_H: &str = include_str!("../../../../libvmpi/include/mpi.h");

/// Write mpif.h, mpi.f90 and mpi_f08.f90 to `dir`, and compile the modules with `compiler`.
///
/// # Errors
/// 125: a file cannot be written, or the compiler refuses.
pub fn make(dir: &Path, compiler: &[String]) -> Result<(), Failure> {
    let cannot = |what: &Path, why: &std::io::Error| Failure::own(format!("cannot write {}: {why}", what.display()));
    std::fs::create_dir_all(dir).map_err(|e| cannot(dir, &e))?;
    let procedures = procedure::all(MPI_H);
    let constants = constants::all(MPI_H);
    for (name, text) in [
        ("mpif.h", print::mpif_h(&constants)),
        ("mpi.f90", print::module_mpi(&constants, &procedures)),
        ("mpi_f08.f90", print::module_f08(MPI_H, &constants, &procedures)),
    ] {
        let file = dir.join(name);
        std::fs::write(&file, text).map_err(|e| cannot(&file, &e))?;
    }
    let (program, flags) = compiler.split_first().ok_or_else(|| Failure::own("no compiler is named"))?;
    for name in ["mpi.f90", "mpi_f08.f90"] {
        let mut command = Command::new(program);
        // The modules declare and define nothing, so no object file is kept.
        command.args(flags).args(["-w", "-fsyntax-only", "-J"]).arg(dir).arg(dir.join(name));
        let output = command.output().map_err(|e| Failure::not_found(format!("cannot run {program}: {e}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::own(format!("{program} does not compile {}:\n{said}", dir.join(name).display())));
        }
    }
    Ok(())
}
