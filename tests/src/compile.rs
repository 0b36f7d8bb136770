//! Test programs, compiled by the compiler wrappers of the real MPIs, and by vmpi's own.

use crate::installation::prefix;
use crate::place::{Turn, making, put_whole, room, top};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which MPI a program is built for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Mpi {
    Openmpi,
    Mpich,
    /// The MPI-5 standard's ABI: vmpi's own wrappers and headers.
    Standard,
}

impl Mpi {
    /// As Debian's alternatives name it, and vmpi's directories.
    pub fn name(self) -> &'static str {
        match self {
            Mpi::Openmpi => "openmpi",
            Mpi::Mpich => "mpich",
            Mpi::Standard => "standard",
        }
    }
}

/// How a program is compiled, apart from what all are.
#[derive(Copy, Clone, Debug, Default)]
pub struct Flavour<'a> {
    /// Behind the binary's name; empty: the usual one.
    pub name: &'a str,
    /// Instead of the compiler that Debian's wrapper takes.
    pub compiler: Option<&'a str>,
    pub options: &'a [&'a str],
}

/// The binary of `programs/NAME` for `mpi`, compiled if it is older than its sources. Call it in one's turn only.
///
/// # Panics
/// If the program does not compile.
pub fn program(name: &str, mpi: Mpi) -> PathBuf {
    flavoured(name, mpi, Flavour::default())
}

/// As [`program`], compiled otherwise.
///
/// # Panics
/// As [`program`].
pub fn flavoured(name: &str, mpi: Mpi, flavour: Flavour) -> PathBuf {
    let source = top().join("tests/programs").join(name);
    let binary = room("bin").join(format!("{name}.{}{}", mpi.name(), flavour.name));
    let newer = |path: &Path| fs::metadata(path).and_then(|m| m.modified()).ok();
    let mut sources = vec![source.clone()];
    let beside = fs::read_dir(top().join("tests/programs")).expect("the programs are there").flatten();
    sources.extend(beside.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|is| is == "h")));
    if mpi == Mpi::Standard {
        sources.push(top().join("libvmpi/include/mpi.h"));
    }
    let is_made = || sources.iter().all(|source| newer(&binary) > newer(source));
    if is_made() {
        return binary;
    }
    let _making = making();
    if is_made() {
        return binary;
    }
    let fortran = !name.ends_with(".c") && !name.ends_with(".cc");
    let (own, theirs) = match name {
        _ if fortran => ("vmpifort", "mpif90"),
        _ if name.ends_with(".cc") => ("vmpicxx", "mpicxx"),
        _ => ("vmpicc", "mpicc"),
    };
    let wrapper = match mpi {
        Mpi::Standard => prefix().join("bin").join(own).display().to_string(),
        _ => format!("{theirs}.{}", mpi.name()),
    };
    let mut command = Command::new(&wrapper);
    if let Some(compiler) = flavour.compiler {
        let variables = ["OMPI_CC", "OMPI_CXX", "OMPI_FC", "MPICH_CC", "MPICH_CXX", "MPICH_FC"];
        command.envs(variables.map(|variable| (variable, compiler)));
    }
    command.args(["-g", "-O1"]).args(flavour.options).arg(&source).args(["-ldl", "-lm", "-pthread"]);
    let module_of_its_own = room("modules").join(format!("{name}.{}{}", mpi.name(), flavour.name));
    if fortran {
        fs::create_dir_all(&module_of_its_own).expect("target/ is writable");
        command
            .args(["-w", "-cpp", "-fallow-argument-mismatch", "-ffree-line-length-none", "-J"])
            .arg(module_of_its_own);
    } else {
        command.arg("-w");
    }
    put_whole(&binary, |unfinished| {
        let output = command.arg("-o").arg(unfinished).output();
        let output = output.unwrap_or_else(|e| panic!("{wrapper}: {e}; run `cargo xtask setup` first"));
        assert!(output.status.success(), "{wrapper} {name} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    });
    binary
}

/// As [`program`], with a turn of its own.
///
/// # Panics
/// As [`program`].
pub fn made(name: &str, mpi: Mpi) -> PathBuf {
    let _turn = Turn::take();
    program(name, mpi)
}
